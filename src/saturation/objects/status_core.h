/* The status of a VariantAutoscaling: its content, and the smallest patch to get there.
 *
 * Numbers that fluctuate from cycle to cycle (load, latencies, numbers in messages) do not cause a
 * write by themselves: they are written when they changed by a tenth, or together with something
 * else. */
#ifndef FLYBALL_STATUS_CORE_H
#define FLYBALL_STATUS_CORE_H

#include "../../json/json.h"

struct sat_load_view { /* NaN: unknown */
    double arrival_per_min, input_tokens, output_tokens;
    double itl_ms, ttft_ms;
};

enum sat_condition_type {
    SAT_TARGET_RESOLVED,
    SAT_METRICS_AVAILABLE,
    SAT_OPTIMIZATION_READY,
    SAT_ACTIVE,
    SAT_RESOURCE_CONSTRAINED,
    SAT_CONDITION_N
};

struct sat_condition {
    bool known; /* else the condition is left unchanged */
    bool holds;
    const char *reason;
    str message;
};

struct sat_view {
    str accelerator; /* "": no allocations in the status */
    bool has_current;
    int current, wanted; /* replicas that exist, and spec.replicas of the workload */
    double cost;         /* per replica */
    struct sat_load_view load;
    bool gone; /* the workload does not exist: the status shows no replicas of it */
    bool has_desired;
    int desired;
    bool applied;
    struct sat_condition conditions[SAT_CONDITION_N];
};

/* Whether two views differ in nothing but fluctuating numbers. */
bool sat_view_is_same(const struct sat_view *a, const struct sat_view *b);

/* The merge patch; NULL: nothing to write. `old` NULL: no status yet. */
struct json *sat_status_patch(struct arena *a, const struct json *old, const struct sat_view *view,
                              int64_t generation, int64_t now_s);

const struct json *sat_status_condition(const struct json *status, enum sat_condition_type type);
extern const char *const sat_condition_names[SAT_CONDITION_N];

#endif
