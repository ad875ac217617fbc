/* Merges a config into the bounds of a live HPA, by the rules of autoscaling/v2. */
#ifndef FLYBALL_SCHEDULE_APPLY_CORE_H
#define FLYBALL_SCHEDULE_APPLY_CORE_H

#include "schedule_spec.h"

struct schedule_bounds {
    int32_t min, max; /* min of an HPA without minReplicas: 1 */
};

static inline bool schedule_bounds_equal(struct schedule_bounds x, struct schedule_bounds y)
{
    return x.min == y.min && x.max == y.max;
}

enum schedule_applied {
    SCHEDULE_APPLY_OK,
    SCHEDULE_APPLY_CLAMPED,          /* the merged min was above max: lowered to max */
    SCHEDULE_APPLY_ZERO_UNSUPPORTED, /* min 0 requires an Object or External metric; using 1 */
    SCHEDULE_APPLY_INVALID,          /* not valid for any HPA: nothing changes */
    SCHEDULE_APPLY_N
};

/* A config that no HPA accepts, whatever its bounds are now: min above max, or out of range. */
bool schedule_config_is_impossible(const struct schedule_config *c);

enum schedule_applied schedule_apply(const struct schedule_config *config,
                                     struct schedule_bounds live, bool may_be_zero,
                                     struct schedule_bounds *ret);

const char *schedule_applied_name(enum schedule_applied applied); /* "ok", "clamped", ... */

#endif
