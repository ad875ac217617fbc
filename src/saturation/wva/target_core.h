/* Replicas of each variant from spare capacity. */
#ifndef FLYBALL_TARGET_CORE_H
#define FLYBALL_TARGET_CORE_H

#include "analysis_core.h"

struct sat_state { /* a variant apart from its metrics */
    str variant;
    int current; /* spec.replicas of its workload */
    int desired; /* target of the last decision; 0: none */
    int pending; /* replicas that are not ready yet */

    /* Used by sat_decide only. */
    int min, max; /* bounds in force (variant, HPA, ScaledObject); max 0: none */
    double cost;  /* used when no replica reports */
    int stuck;    /* pending replicas that exceeded the transition timeout */
    bool settled; /* `current` did not change within the transition timeout */
    double tolerance_up, tolerance_down; /* of the HPA that follows the target; 0: none */
};

/* The nearest number of replicas within the bounds. */
static inline int sat_clamp_to_bounds(const struct sat_state *s, int replicas)
{
    return MAX(s->min, MIN(replicas, s->max > 0 ? s->max : INT32_MAX));
}

/* The target that an HPA with its tolerance follows: a scale-up within the tolerance is enlarged, a
 * scale-down within it is dropped. */
int sat_apply_tolerance(const struct sat_state *s, int target);

struct sat_target {
    str variant;
    int replicas;
    str reason;
    bool by_bounds; /* changed by a minimum or maximum, not by the load */
};

struct sat_targets {
    struct sat_target *at; /* sorted by variant */
    size_t n;
    bool in_transition;
    int needed; /* replicas that the load of the whole model needs (sat_decide) */
};

/* The rule `need`: the model gets the replicas that its load needs; the cheapest variant grows
 * first and the most expensive one shrinks first, within bounds. See target_core.c. */
struct sat_targets sat_decide(struct arena *a, const struct sat_config *config,
                              const struct sat_analysis *analysis, const struct sat_state *states,
                              size_t n);

/* WVA's rules, for comparison: one step of one variant per cycle, and a lock on the whole model
 * (2026) or on the variant (seed era) until the target is reached. */
enum sat_era { SAT_ERA_SEED, SAT_ERA_2026, SAT_ERA_09 };
struct sat_targets sat_decide_compat(struct arena *a, enum sat_era era,
                                     const struct sat_analysis *analysis,
                                     const struct sat_state *states, size_t n);

#endif
