/* The HorizontalPodAutoscaler (autoscaling/v2) as documented: ratio with tolerance, not-ready and
 * missing pods, stabilization windows, scaling policies, bounds. One `struct hpa_history` per HPA. */
#ifndef FLYBALL_HPA_MODEL_H
#define FLYBALL_HPA_MODEL_H

#include "../base/str.h"
#include "../base/vec.h"

enum hpa_select { HPA_SELECT_MAX, HPA_SELECT_MIN, HPA_SELECT_DISABLED };
enum hpa_policy_type { HPA_PODS, HPA_PERCENT };

struct hpa_policy {
    enum hpa_policy_type type;
    int32_t value;
    int32_t period_s;
};

struct hpa_rules { /* one direction of spec.behavior */
    int32_t stabilization_s;
    enum hpa_select select;
    struct hpa_policy policies[4];
    size_t policy_n;
    double tolerance;
};

struct hpa_behavior {
    struct hpa_rules up, down;
};

struct hpa_behavior hpa_model_default_behavior(void);

enum hpa_target { HPA_VALUE, HPA_AVERAGE_VALUE, HPA_UTILIZATION, HPA_POD_AVERAGE };

struct hpa_metric {
    bool available; /* false: missing; forbids scaling down */
    enum hpa_target kind;
    double target; /* value, value per pod, or percent of the request */
    double value;  /* the metric's sum (VALUE, AVERAGE_VALUE), the sum over the pods that report it
                    * (POD_AVERAGE), or the mean utilization in percent */
    int32_t reporting; /* POD_AVERAGE: pods that report it; the others of `current` are missing */
};

struct hpa_sample {
    int64_t at_s;
    int32_t replicas; /* a recommendation, or the size of a change */
};

struct hpa_history { /* `{0}` is an empty one */
    VEC(struct hpa_sample) recommendations;
    VEC(struct hpa_sample) ups, downs;
};

void hpa_model_history_done(struct hpa_history *history);

struct hpa_input {
    int64_t now_s;
    int32_t current; /* spec.replicas of the target */
    int32_t ready;   /* pods that count for a VALUE metric; <= 0: current */
    int32_t min, max;
    const struct hpa_metric *metrics;
    size_t metric_n;
    struct hpa_behavior behavior;
};

struct hpa_decision {
    int32_t desired;
    const char *limited; /* reason of ScalingLimited: DesiredWithinRange, TooFewReplicas, ... */
    bool active;         /* ScalingActive: some metric could be read */
};

/* Decides, and remembers the recommendation. The caller calls hpa_model_scaled() when it changed the target. */
struct hpa_decision hpa_model_decide(struct hpa_history *history, const struct hpa_input *in);
void hpa_model_scaled(struct hpa_history *history, int64_t now_s, int32_t from, int32_t to);

#endif
