/* One round of a node's market. The slow round closes the windows of all pods, lets the agents
 * learn and bid, clears the market and derives limits; the fast round only raises limits of
 * throttled pods. */
#ifndef FLYBALL_ROUND_CORE_H
#define FLYBALL_ROUND_CORE_H

#include "market_pod_core.h"

struct round {
    int64_t capacity_milli;
    struct market_pod **pods; /* borrowed, in any order */
    size_t n;
    int64_t now_ns;
    struct clear_scratch *scratch;
    struct arena *arena; /* scratch for the duration of the call */
};

/* The slow round. ret_limits[i] is the limit that pod i should have; its current limit means "no
 * change". The sum never exceeds capacity, unless the present limits already do and no reduction is
 * large enough to be worth a resize. */
struct clearing market_slow_round(const struct round *round, const struct market_pod_rules *rules,
                                  int64_t *ret_limits);

/* The fast round: only raises limits, and only into CPU that no pod holds. */
void market_fast_round(const struct round *round, const struct market_pod_rules *rules,
                       int64_t *ret_limits);

#endif
