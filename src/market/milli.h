/* Amounts of CPU in millicores: rounding, and the conversion to the 32 bits in which they are
 * kept per pod. */
#ifndef FLYBALL_MARKET_MILLI_H
#define FLYBALL_MARKET_MILLI_H

#include "../base/base.h"

/* Rounds to the nearest, halves away from zero, as llround() but inline; NaN becomes the
 * minimum. */
static inline int64_t milli_round(double milli)
{
    static const double most = 9e18;
    milli = MIN(MAX(milli, -most), most);
    int64_t whole = (int64_t)milli;
    double rest = milli - (double)whole;
    return whole + (rest >= 0.5) - (rest <= -0.5);
}

/* Clamps to two million cores. */
static inline int32_t milli32(int64_t milli)
{
    return (int32_t)MAX(MIN(milli, (int64_t)INT32_MAX), (int64_t)INT32_MIN);
}

#endif
