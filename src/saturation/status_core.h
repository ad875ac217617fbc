/* The status of a VariantAutoscaling: what it should say, and the smallest patch to get there.
 *
 * Numbers that wander from cycle to cycle (load, latencies, those in a condition's words) are no news by
 * themselves: they are written when they moved by a tenth, or along with something that is. */
#ifndef FLYBALL_STATUS_CORE_H
#define FLYBALL_STATUS_CORE_H

#include "../json/json.h"

struct sat_load_view { /* NaN: not known */
    double arrival_per_min, input_tokens, output_tokens;
    double itl_ms, ttft_ms;
};

enum sat_condition_type {
    SAT_TARGET_RESOLVED,
    SAT_METRICS_AVAILABLE,
    SAT_OPTIMIZATION_READY,
    SAT_CONDITION_N
};

struct sat_condition {
    bool known; /* else the condition stays as it is */
    bool holds;
    const char *reason;
    str message;
};

struct sat_view {
    str accelerator; /* "": no allocations are shown */
    bool has_current;
    int current, wanted; /* replicas that are, and that the workload's spec has */
    double cost;         /* of one replica */
    struct sat_load_view load;
    bool has_desired;
    int desired;
    bool applied;
    struct sat_condition conditions[SAT_CONDITION_N];
};

/* Would the status say the same, but for numbers that wander? */
bool sat_view_is_same(const struct sat_view *a, const struct sat_view *b);

/* The merge patch; NULL when there is nothing to write. `old` NULL: no status yet. */
struct json *sat_status_patch(struct arena *a, const struct json *old, const struct sat_view *view,
                              int64_t generation, int64_t now_s);

const struct json *sat_status_condition(const struct json *status, enum sat_condition_type type);
extern const char *const sat_condition_names[SAT_CONDITION_N];

#endif
