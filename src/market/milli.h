/* Amounts of CPU in millicores: rounding, and the four bytes in which what is kept for every pod is kept. */
#ifndef FLYBALL_MARKET_MILLI_H
#define FLYBALL_MARKET_MILLI_H

#include "../base/base.h"

/* To the nearest, halves away from zero, as llround() but without a call; NaN is the least. */
static inline int64_t milli_round(double milli)
{
    static const double most = 9e18;
    milli = MIN(MAX(milli, -most), most);
    int64_t whole = (int64_t)milli;
    double rest = milli - (double)whole;
    return whole + (rest >= 0.5) - (rest <= -0.5);
}

/* Two million cores are enough for a pod: more counts as that. */
static inline int32_t milli32(int64_t milli)
{
    return (int32_t)MAX(MIN(milli, (int64_t)INT32_MAX), (int64_t)INT32_MIN);
}

#endif
