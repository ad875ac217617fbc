/* One round of a node's market. The slow round closes the windows of all pods, lets the agents
 * learn and bid, clears the market and derives limits; the fast round only raises limits of
 * throttled pods. */
#ifndef FLYBALL_ROUND_CORE_H
#define FLYBALL_ROUND_CORE_H

#include "node_core.h"

/* The slow round. ret_limits[i] is the limit that pod i should have; its current limit means "no
 * change"; ret_requests[i] is the request that goes with it. The limits never
 * add up to more than market_node_limits_capacity(), unless the present ones already do and no
 * reduction is large enough to be worth a resize, or a pod would be below its share. */
struct clearing market_slow_round(const struct round *round, const struct market_pod_rules *rules,
                                  int64_t *ret_limits, int64_t *ret_requests);

/* The fast round: only raises limits, and only into CPU that no pod holds. */
void market_fast_round(const struct round *round, const struct market_pod_rules *rules,
                       int64_t *ret_limits, int64_t *ret_requests);

#endif
