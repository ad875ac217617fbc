/* From spare capacity to replicas of each variant. */
#ifndef FLYBALL_TARGET_CORE_H
#define FLYBALL_TARGET_CORE_H

#include "analysis_core.h"

/* No workload has more, whatever an object claims: counts of a thousand variants add up within an int. */
enum { SAT_REPLICAS_MAX = 1 << 20 };

struct sat_state { /* what is known of a variant besides its metrics */
    str variant;
    int current; /* spec.replicas of its workload */
    int desired; /* the target of the last decision; 0: none */
    int pending; /* replicas that are not ready yet */

    /* Used by sat_decide only. */
    int min, max; /* bounds in force (variant, HPA, ScaledObject); max 0: none */
    double cost;  /* used when no replica reports */
    int stuck;    /* of the pending ones: not ready for longer than a transition may take */
    bool settled; /* current has stood still for longer than a transition may take */
    double tolerance_up, tolerance_down; /* of the HPA that follows; 0: it is written directly */
};

/* The nearest number of replicas that the bounds allow. */
static inline int sat_bounded(const struct sat_state *s, int replicas)
{
    return MAX(s->min, MIN(replicas, s->max > 0 ? s->max : INT32_MAX));
}

/* The target that an HPA with its tolerance follows: one that it would take for noise is enlarged where replicas
 * are added, and dropped where they are removed. */
int sat_clear_tolerance(const struct sat_state *s, int target);

struct sat_target {
    str variant;
    int replicas;
    str reason;
    bool by_bounds; /* a minimum or maximum moved it, not the load */
};

struct sat_targets {
    struct sat_target *at; /* sorted by variant */
    size_t n;
    bool in_transition;
    int needed; /* replicas of the whole model that its load asks for (sat_decide) */
};

/* Our rule: the model gets the number of replicas that its load needs, the cheapest variants growing
 * first and the most expensive shrinking first, within bounds. A variant on its way to an earlier
 * target holds only while it can still get there; replicas that do not become ready (no room, a crash) are
 * no capacity, and their variant does not grow. A scale-down that has not happened yet is withdrawn when the
 * load needs the replicas again. */
struct sat_targets sat_decide(struct arena *a, const struct sat_config *config,
                              const struct sat_analysis *analysis, const struct sat_state *states,
                              size_t n);

/* The original's rules, for comparison: one step of one variant a cycle, and a lock on the whole
 * model (2026) or the variant (seed era) while any target is not reached. */
enum sat_era { SAT_ERA_SEED, SAT_ERA_2026 };
struct sat_targets sat_decide_compat(struct arena *a, enum sat_era era,
                                     const struct sat_analysis *analysis,
                                     const struct sat_state *states, size_t n);

#endif
