/* A latency objective as bargaining power: a pod that misses its target weighs more in the market, one
 * that is well within it less. */
#ifndef FLYBALL_SLO_CORE_H
#define FLYBALL_SLO_CORE_H

#include "../base/base.h"

struct slo_state {  /* `{0}` knows nothing */
    float previous; /* log of latency over target at the last step */
    bool known;
};

/* The next weight, 0.5 .. 4, after a step at which the latency was `ratio` times its target. Proportional and
 * integral in the logarithm, so that twice and half are alike. Ratio 0: nothing is known, and the weight
 * goes back towards 1. */
double slo_weight(struct slo_state *state, double weight, double ratio);

#endif
