/* Arbitration between capacity and optimizer: the saturation analysis decides about safety, the
 * optimizer about everything else. And scale to zero: when an idle model loses its last replica. */
#ifndef FLYBALL_HYBRID_CORE_H
#define FLYBALL_HYBRID_CORE_H

#include "target_core.h"

struct hybrid_input {
    str variant;
    int current;
    int capacity_target; /* from the saturation analysis */
    int model_target;    /* from the optimizer */
    bool scale_down_safe;
};

struct hybrid_decision {
    int replicas;
    bool safety_override; /* the optimizer was overruled */
    bool capacity_based, model_based;
    str reason;
};

struct hybrid_decision hybrid_arbitrate(struct arena *a, struct hybrid_input in);
const char *sat_action_name(int from, int to); /* "scale-up", "scale-down", "no-change" */

struct hybrid_zero_input {
    bool scale_to_zero;  /* allowed for this model */
    bool requests_known; /* the number of recent requests could be read */
    double requests;     /* in the retention period */
    const double *costs; /* per target; NaN: unknown */
};

/* Changes the targets (sorted by variant) in place: all to zero if that is enabled and the model is
 * idle; with scale to zero disabled the cheapest variant keeps one replica. Returns whether a
 * target changed. */
bool hybrid_enforce_zero(struct sat_target *targets, size_t n, const struct hybrid_zero_input *in);

#endif
