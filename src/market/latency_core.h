/* A latency objective in the market. A pod that misses its target gains weight and one that is
 * well within it loses some; one whose error budget burns fast is boosted at once; and a model
 * fitted to past latencies estimates the limit that would attain the target. */
#ifndef FLYBALL_LATENCY_CORE_H
#define FLYBALL_LATENCY_CORE_H

#include "../base/base.h"

enum { LATENCY_WINDOWS = 4 };

struct latency_state { /* `{0}`: nothing known yet */
    float previous;    /* log(latency / target) at the last step */
    bool known;
    float over[LATENCY_WINDOWS],
        seen[LATENCY_WINDOWS]; /* seconds over the target, and seconds observed */
    float fit_xy, fit_xx;      /* least squares of latency against congestion */
};

/* The next weight, 0.5 .. 4, after a step in which latency was `ratio` times its target. A PI
 * controller in the logarithm, so that twice and half the target have the same effect. Ratio 0:
 * unknown; the weight returns towards 1. */
double latency_weight(struct latency_state *state, double weight, double ratio);

/* Adds `seconds` during which latency was over its target, or not. True if the error budget (1 %
 * of the time, for a 99th percentile) burns at 14.4 times its rate over 5 minutes and over an
 * hour, or at 6 times over 30 minutes and over 6 hours. The short window of each pair ends the
 * alarm soon. */
bool latency_is_burning(struct latency_state *state, bool over, double seconds);

/* The limit at which latency would attain its target, after a step in which it was `ratio` times
 * the target while `usage_milli` of `limit_milli` were used; 0: unknown, or a higher limit would
 * not help. The model is a processor-sharing queue: latency grows as 1 / (1 - usage / limit). */
double latency_limit(struct latency_state *state, double ratio, double usage_milli,
                     double limit_milli);

#endif
