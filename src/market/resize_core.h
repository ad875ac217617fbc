/* What may be patched into a running pod: its QoS class must stay, steps are bounded, and the pod's
 * amount is split over its containers to the millicore. */
#ifndef FLYBALL_RESIZE_CORE_H
#define FLYBALL_RESIZE_CORE_H

#include "../json/json.h"

/* ---- QoS */

enum qos { QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED, QOS_N };

/* From the containers of a pod spec (init containers too, where they are given in the list). */
enum qos resize_qos_class(const struct json *containers);
const char *resize_qos_name(enum qos qos);

/* ---- safety of a step */

enum resize_step_verdict {
    STEP_OK,
    STEP_COOLDOWN,  /* too soon after the last one */
    STEP_TOO_LARGE, /* `allowed_milli` is the largest step in that direction */
    STEP_NOT_POSITIVE,
};

struct resize_step {
    enum resize_step_verdict verdict;
    int64_t allowed_milli; /* what may be applied now; the current value when nothing may */
    int64_t wait_ns;       /* cooldown: how long to wait */
    str reason;            /* "" when ok: one sentence */
};

#define STEP_COOLDOWN_NS INT64_C(5000000000)
#define STEP_FACTOR_MAX 10.0
#define STEP_DELTA_MAX_MILLI INT64_C(20000)

int64_t resize_step_max(int64_t current_milli); /* the largest limit that one step may lead to */

/* `since_last_ns` < 0: never applied before. */
struct resize_step resize_step_check(struct arena *a, int64_t current_milli, int64_t desired_milli,
                                     int64_t since_last_ns);

/* ---- containers */

struct container_share {
    int64_t weight_milli; /* its share before flyball touched the pod */
    bool fixed;           /* must not be resized: its restart policy would restart it */
    int64_t limit_milli, request_milli; /* in when fixed, else out */
};

/* Splits so that the sums are exactly `limit` and `request` (less what fixed containers have), every
 * container gets at least SHARE_MIN_MILLI, and no request reaches its limit. -ERANGE when that cannot be. */
#define SHARE_MIN_MILLI INT64_C(10)
int resize_split(int64_t limit_milli, int64_t request_milli, struct container_share *shares,
                 size_t n, err_t *e);

/* What resize_split() can do with a pod: the agent wishes no other amounts, so that wish and pod agree. */
struct resize_room {
    int64_t fixed_limit, fixed_request, movable; /* movable: how many containers are not fixed */
};

void resize_room_add(struct resize_room *room, const struct container_share *share);
int64_t resize_limit_within(const struct resize_room *room, int64_t limit_milli);
/* `limit` is one that resize_limit_within() gave. */
int64_t resize_request_within(const struct resize_room *room, int64_t limit_milli,
                              int64_t request_milli);

#endif
