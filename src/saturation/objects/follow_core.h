/* Mistakes in an HPA or a ScaledObject that is meant to follow decisions: it does not read them, it multiplies
 * them, or it goes to zero when flyball is away. */
#ifndef FLYBALL_FOLLOW_CORE_H
#define FLYBALL_FOLLOW_CORE_H

#include "../../json/json.h"

struct follow_scaler {
    bool by_keda;                /* a ScaledObject */
    bool managed;                /* it describes a variant, or has the workload of one */
    const struct json *readings; /* spec.triggers, or spec.metrics of an HPA */
    bool has_fallback;
    int64_t fallback, min; /* spec.fallback.replicas, spec.minReplicaCount */
};

enum follow_mistake {
    FOLLOW_NOT_CONSUMED = 1 << 0,
    FOLLOW_WRONG_TYPE = 1 << 1, /* Value instead of AverageValue */
    FOLLOW_FALLBACK = 1 << 2    /* an error leads to zero replicas */
};

/* Several of enum follow_mistake; 0: nothing is wrong. */
unsigned follow_check(const struct follow_scaler *scaler);
/* Whether the text of triggers or metrics may mention a decision, without parsing it. */
bool follow_is_interesting(str readings);

/* The reason of an event about one of them, and the message. */
const char *follow_reason(enum follow_mistake one);
str follow_message(enum follow_mistake one);

#endif
