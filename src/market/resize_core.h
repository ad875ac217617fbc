/* What may be patched into a running pod: its QoS class must not change, steps are bounded, and
 * the pod's amount is split over its containers exactly to the millicore. */
#ifndef FLYBALL_RESIZE_CORE_H
#define FLYBALL_RESIZE_CORE_H

#include "../json/json.h"

/* ---- QoS */

enum qos { QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED, QOS_N };

/* The QoS class that follows from a list of containers (add init containers to the list if there
 * are any). */
enum qos resize_qos_class(const struct json *containers);
const char *resize_qos_name(enum qos qos);

/* ---- bounds of a step */

enum resize_step_verdict {
    STEP_OK,
    STEP_COOLDOWN,  /* too soon after the last step */
    STEP_TOO_LARGE, /* `allowed_milli` is the largest step in that direction */
    STEP_NOT_POSITIVE,
};

struct resize_step {
    enum resize_step_verdict verdict;
    int64_t allowed_milli; /* what may be applied now; the current value: nothing */
    int64_t wait_ns;       /* for a cooldown: how long to wait */
    str reason;            /* one sentence; "" if OK */
};

#define STEP_COOLDOWN_NS INT64_C(5000000000)
#define STEP_FACTOR_MAX 10.0
#define STEP_DELTA_MAX_MILLI INT64_C(20000)

int64_t resize_step_max(int64_t current_milli); /* the largest limit after one step */

/* `since_last_ns` < 0: there was no step before. */
struct resize_step resize_step_check(struct arena *a, int64_t current_milli, int64_t desired_milli,
                                     int64_t since_last_ns);

/* ---- containers */

struct container_share {
    int64_t weight_milli;               /* what it had before the first resize */
    bool fixed;                         /* must not be resized: its resizePolicy would restart it */
    int64_t limit_milli, request_milli; /* input if fixed, else output */
};

/* Splits so that the sums are exactly `limit` and `request` (including what fixed containers
 * have), every container gets at least SHARE_MIN_MILLI, and every request is below its limit.
 * -ERANGE if that is impossible. */
#define SHARE_MIN_MILLI INT64_C(10)
int resize_split(int64_t limit_milli, int64_t request_milli, struct container_share *shares,
                 size_t n, err_t *e);

/* The amounts that resize_split() can give to a pod. The agent desires no others: otherwise spec
 * and pod would differ forever. */
struct resize_room {
    int64_t fixed_limit, fixed_request,
        movable; /* movable: number of containers that are not fixed */
};

void resize_room_add(struct resize_room *room, const struct container_share *share);
int64_t resize_limit_within(const struct resize_room *room, int64_t limit_milli);
/* `limit_milli` is a result of resize_limit_within(). */
int64_t resize_request_within(const struct resize_room *room, int64_t limit_milli,
                              int64_t request_milli);

#endif
