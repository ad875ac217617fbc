/* Peace with the HPA: whose CPU request must not move, and the least limit that goes with it.
 *
 * An HPA on CPU utilization divides usage by the request. A market that moves the request moves
 * the denominator, and the replica count follows the market instead of the load. So the request of
 * such a pod is held at its original value, and only the limit moves. The limit stays high enough
 * for usage above the HPA's target to be visible: below, throttling would hide the load that the
 * HPA waits for. */
#ifndef FLYBALL_HPA_PEACE_CORE_H
#define FLYBALL_HPA_PEACE_CORE_H

#include "../base/str.h"

enum hpa_peace {
    HPA_PEACE_NONE,       /* no HPA divides by the request */
    HPA_PEACE_HELD,       /* the request is held */
    HPA_PEACE_MOVED,      /* the owner gave the request to the market */
    HPA_PEACE_NO_REQUEST, /* there is nothing to hold, and the HPA cannot work either */
    HPA_PEACE_N
};
const char *hpa_peace_name(enum hpa_peace peace);

/* The default of an HPA without metrics, which the API server fills in; also for a target that is
 * not a positive whole number. */
enum { HPA_TARGET_DEFAULT = 80 };
#define HPA_TOLERANCE_DEFAULT 0.1

struct hpa_divisor { /* an HPA that divides by the pod's CPU request */
    str name;        /* of the HPA */
    int64_t target_percent;
    double tolerance_up; /* of its behavior */
};

struct hpa_peace_metric {
    str type;        /* "Resource", "ContainerResource", ... */
    str name;        /* "cpu", "memory" */
    str target_type; /* "Utilization", "AverageValue", "Value" */
    int64_t percent; /* of a utilization target; <= 0: unreadable */
};

/* Does this metric divide by the request of the resource ("cpu" or "memory")? */
bool hpa_peace_divides(const struct hpa_peace_metric *metric, str resource);

/* The target of the metric, or the default if it is not a positive number. */
int64_t hpa_peace_target(const struct hpa_peace_metric *metric);

struct hpa_peace_pod {
    int64_t original_request_milli;
    int64_t desired_limit_milli; /* of the market */
    bool move;                   /* the annotation mbcas.io/hpa (or hpaPeace) is "move" */
};

struct hpa_peace_result {
    enum hpa_peace state;
    int64_t request_milli, limit_milli;
    int64_t floor_milli; /* least limit; 0 unless held */
};

/* `divisor` is the HPA with the highest target, or NULL. */
struct hpa_peace_result hpa_peace_decide(const struct hpa_peace_pod *pod,
                                         const struct hpa_divisor *divisor);

/* Reads the annotation's value; false: neither "hold" nor "move", which means hold. */
bool hpa_peace_read(str text, bool *ret_move);

#endif
