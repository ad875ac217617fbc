/* Yardsticks for policies, found by search with the trace known: what a run starts with, the best fleet that never
 * changes, and the best plan. Each uses one variant, the cheapest that reaches the goal. */
#ifndef FLYBALL_FLEET_SEARCH_H
#define FLYBALL_FLEET_SEARCH_H

#include "fleet.h"

struct fleet_static {
    int replicas[FLEET_VARIANTS_MAX];
    size_t variant; /* the one that is used */
    bool
        attains; /* the goal; false: no fleet within the bounds does, this is the one that comes nearest */
    struct fleet_score score;
};

/* What the fullest of the first five minutes needs: the cheapest fleet that attains the goal when that minute comes
 * four times in a row. */
struct fleet_static fleet_find_warm(const struct fleet_config *config, struct fleet_trace trace,
                                    const struct fleet_hooks *hooks);

/* The cheapest fleet of one variant that attains the goal on the whole trace without any change. */
struct fleet_static fleet_find_static(const struct fleet_config *config, struct fleet_trace trace,
                                      const struct fleet_hooks *hooks);

/* The same of one variant alone, if it costs at most `most_cost` an hour. */
struct fleet_static fleet_find_static_of(const struct fleet_config *config,
                                         struct fleet_trace trace, size_t variant,
                                         double most_cost);

/* The cheapest plan on a grid of FLEET_GRID_S that attains the goal, with the trace and the start delay known: see
 * fleet_oracle.c. It uses one variant. */
enum { FLEET_GRID_S = 30 };

struct fleet_plan {
    size_t variant;
    int *replicas; /* owned, wanted in each step of the grid; NULL: no plan attains the goal */
    size_t n;
    int step_s; /* of the grid */
};
struct fleet_plan fleet_find_oracle(const struct fleet_config *config, struct fleet_trace trace,
                                    const struct fleet_static *best_static,
                                    const struct fleet_hooks *hooks);

/* The cheapest plan with limited knowledge: see fleet_bounds.c. */
enum fleet_bound { FLEET_KNOWN_MEAN, FLEET_LAST_MINUTE };
struct fleet_plan fleet_find_bound(const struct fleet_config *config, struct fleet_trace trace,
                                   enum fleet_bound kind);
void fleet_plan_done(struct fleet_plan *plan);
struct fleet_score fleet_run_plan(const struct fleet_config *config, struct fleet_trace trace,
                                  const struct fleet_plan *plan, const struct fleet_hooks *hooks,
                                  struct fleet_points *ret_course);

#endif
