/* Merging a config into an HPA: see schedule_apply_core.h. A config that no HPA accepts changes nothing at all. */
#include "schedule_apply_core.h"

static const char *const applied_names[SCHEDULE_APPLY_N] = {
    [SCHEDULE_APPLY_OK] = "ok",
    [SCHEDULE_APPLY_CLAMPED] = "clamped",
    [SCHEDULE_APPLY_ZERO_UNSUPPORTED] = "zero-unsupported",
    [SCHEDULE_APPLY_INVALID] = "invalid",
};

const char *schedule_applied_name(enum schedule_applied applied)
{
    return applied_names[applied];
}

bool schedule_config_is_impossible(const struct schedule_config *c)
{
    return (c->has_min && c->min < 0) || (c->has_max && c->max < 1) ||
           (c->has_min && c->has_max && c->min > c->max);
}

enum schedule_applied schedule_apply(const struct schedule_config *config,
                                     struct schedule_bounds live, bool may_be_zero,
                                     struct schedule_bounds *ret)
{
    *ret = live;
    if (schedule_config_is_impossible(config))
        return SCHEDULE_APPLY_INVALID;
    ret->min = config->has_min ? config->min : live.min;
    ret->max = config->has_max ? config->max : live.max;
    if (config->has_min && config->min == 0 && !may_be_zero) {
        ret->min = 1;
        return SCHEDULE_APPLY_ZERO_UNSUPPORTED;
    }
    if (ret->min > ret->max) {
        ret->min = ret->max;
        return SCHEDULE_APPLY_CLAMPED;
    }
    return SCHEDULE_APPLY_OK;
}
