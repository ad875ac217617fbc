/* A latency objective in the market: a pod that misses its target weighs more, one that is well within it less;
 * one whose error budget burns fast is helped at once; and what the misses teach of the pod tells what limit
 * would do. */
#ifndef FLYBALL_LATENCY_CORE_H
#define FLYBALL_LATENCY_CORE_H

#include "../base/base.h"

enum { LATENCY_WINDOWS = 4 };

struct latency_state { /* `{0}` knows nothing */
    float previous;    /* log of latency over target at the last step */
    bool known;
    float over[LATENCY_WINDOWS],
        seen[LATENCY_WINDOWS]; /* seconds over the target, and of which that is known */
    float fit_xy, fit_xx;      /* least squares of latency over congestion */
};

/* The next weight, 0.5 .. 4, after a step at which the latency was `ratio` times its target. Proportional and
 * integral in the logarithm, so that twice and half are alike. Ratio 0: nothing is known, and the weight
 * goes back towards 1. */
double latency_weight(struct latency_state *state, double weight, double ratio);

/* Notes `seconds` during which the latency was over its target or not. True: of the 1 % of the time that an
 * objective for the 99th percentile allows, 14.4 times as much is used up over 5 minutes and over an hour,
 * or 6 times over half an hour and over 6 hours. The short window of each pair ends it soon. */
bool latency_is_burning(struct latency_state *state, bool over, double seconds);

/* The limit at which the latency would meet its target, when it was `ratio` times that while `usage_milli` of
 * `limit_milli` were used; 0: not known, or it would not help. By a queue that shares its server: latency
 * grows as 1 / (1 - usage / limit). */
double latency_limit(struct latency_state *state, double ratio, double usage_milli,
                     double limit_milli);

#endif
