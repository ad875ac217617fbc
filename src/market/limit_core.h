/* From an allocation to a limit that is worth writing: rounding, boosts, and the smallest
 * change. */
#ifndef FLYBALL_LIMIT_CORE_H
#define FLYBALL_LIMIT_CORE_H

#include "../base/base.h"

/* The request that goes with a limit: 90 %, rounded to the nearest and below the limit, so that a
 * Burstable pod never becomes Guaranteed. */
int64_t limit_request(int64_t limit_milli);

/* Exponential smoothing: fast down, slow up. Not rounded, so that small steps add up. */
double limit_smooth(double allocation_milli, double last_milli);

struct limit_boost_rules {
    double threshold;          /* throttling above this causes a boost */
    double step_min, step_max; /* relative boost at no and at full throttling */
};

/* The boosted limit; the current one if throttling is not above the threshold. Never lower. */
int64_t limit_boost(int64_t current_milli, double throttling,
                    const struct limit_boost_rules *rules);

/* Is the change large enough for an API call? */
bool limit_differs(int64_t from_milli, int64_t to_milli, double min_change_percent);

#endif
