/* One round of a node's market: windows close, agents learn and bid, the market clears, limits follow. */
#ifndef FLYBALL_ROUND_CORE_H
#define FLYBALL_ROUND_CORE_H

#include "market_pod_core.h"

struct round {
    int64_t capacity_milli;
    struct market_pod **pods; /* borrowed; any order */
    size_t n;
    int64_t now_ns;
    struct clear_scratch *scratch;
    struct arena *arena; /* for the call */
};

/* The slow round. ret_limits[i] is the limit pod i should have (its current one: leave it alone). The sum
 * of the answers never exceeds capacity, except by what pods already have when all of them need it. */
struct clearing market_slow_round(const struct round *round, const struct market_pod_rules *rules,
                                  int64_t *ret_limits);

/* The fast round: only raises, and only into what the node still has. */
void market_fast_round(const struct round *round, const struct market_pod_rules *rules,
                       int64_t *ret_limits);

#endif
