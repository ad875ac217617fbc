/* Yardsticks for policies, found by search with the trace known: what a run starts with, the best fleet that never
 * changes, and the best plan. Each uses one variant, the cheapest that reaches the goal. */
#ifndef FLYBALL_FLEET_SEARCH_H
#define FLYBALL_FLEET_SEARCH_H

#include "fleet.h"

struct fleet_static {
    int replicas[FLEET_VARIANTS_MAX];
    size_t variant; /* the one that is used */
    bool attains;   /* the goal; false: no fleet within the bounds does, this is the one that comes nearest */
    struct fleet_score score;
};

/* What the first five minutes need: the cheapest fleet that attains the goal on them. */
struct fleet_static fleet_find_warm(const struct fleet_config *config, struct fleet_trace trace,
                                    const struct fleet_hooks *hooks);

/* The cheapest fleet of one variant that attains the goal on the whole trace without any change. */
struct fleet_static fleet_find_static(const struct fleet_config *config, struct fleet_trace trace,
                                      const struct fleet_hooks *hooks);

#endif
