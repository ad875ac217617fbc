/* Seeded random numbers (PCG32, two 64-bit words of state). The generator is part of the state of
 * the code that uses it, so that a run can be repeated; only random_seed() asks the kernel. */
#ifndef FLYBALL_RANDOM_H
#define FLYBALL_RANDOM_H

#include "base.h"

struct random {
    uint64_t state, increment;
};

uint64_t random_seed(void); /* from the kernel */
void random_init(struct random *r, uint64_t seed, uint64_t stream);
uint32_t random_u32(struct random *r);
uint32_t random_below(struct random *r, uint32_t bound); /* uniform in [0, bound); bound > 0 */
double random_unit(struct random *r);                    /* uniform in [0, 1), 53 bits */

#endif
