#include "tap.h"

#include "base/random.h"

/* First outputs of the reference generator for seed 42, stream 54. */
static void matches_the_reference(void)
{
    static const uint32_t want[] = { 0xa15c02b7, 0x7b47f409, 0xba1d3330,
                                     0x83d2f293, 0xbfa4784b, 0xcbed606e };
    struct random r;
    random_init(&r, 42, 54);
    for (size_t i = 0; i < countof(want); i++)
        EQ_INT(random_u32(&r), want[i]);
}

static void stays_in_range(void)
{
    struct random r;
    random_init(&r, 3, 3);
    uint32_t seen[7] = { 0 };
    for (int i = 0; i < 7000; i++) {
        seen[random_below(&r, 7)]++;
        double unit = random_unit(&r);
        OK(unit >= 0 && unit < 1);
    }
    for (size_t i = 0; i < countof(seen); i++)
        OK(seen[i] > 850 && seen[i] < 1150);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(matches_the_reference), TAP(stays_in_range), { 0 } });
}
