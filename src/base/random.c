/* PCG-XSH-RR 64/32 after O'Neill's paper: see random.h. A linear congruential generator whose
 * output is its high bits, xor-shifted and rotated by the highest five. The stream selects the
 * increment, which must be odd. */
#include "random.h"

#include <stdio.h>
#include <sys/random.h>

uint64_t random_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        perror("flyball: getrandom");
        abort();
    }
    return seed;
}

void random_init(struct random *r, uint64_t seed, uint64_t stream)
{
    *r = (struct random){ 0, (stream << 1) | 1 };
    random_u32(r);
    r->state += seed;
    random_u32(r);
}

uint32_t random_u32(struct random *r)
{
    uint64_t old = r->state;
    r->state = old * 6364136223846793005u + r->increment;
    uint32_t mixed = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return (mixed >> turn) | (mixed << (-turn & 31));
}

/* Rejects the first 2^32 mod bound values, so that every remainder is equally likely. */
uint32_t random_below(struct random *r, uint32_t bound)
{
    assert(bound > 0);
    uint32_t biased = -bound % bound; /* values below this would favor small results */
    uint32_t value;
    do
        value = random_u32(r);
    while (value < biased);
    return value % bound;
}

double random_unit(struct random *r)
{
    uint64_t high = random_u32(r), low = random_u32(r);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}
