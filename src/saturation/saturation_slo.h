/* The slo policy in the engine: which latency targets apply to a model, what its replicas report,
 * and one step of slo_core.h per cycle. Private to the engine. */
#ifndef FLYBALL_SATURATION_SLO_H
#define FLYBALL_SATURATION_SLO_H

#include "saturation_gather.h"
#include "slo_core.h"

enum slo_source { SLO_FROM_ENTRY, SLO_FROM_CLASS, SLO_DERIVED };

struct sat_slo { /* of one model; owned by it */
    struct slo_state state;
    struct slo_config config; /* in force */
    enum slo_source source;   /* of the targets */
    struct slo_output out;    /* of the last step */
    int64_t stepped_ns;       /* mono; 0: never */
    double ok; /* share of requests within the targets at the last step; NaN: unknown */
};

/* Whether this policy decides about the model: where it is configured, and by default where the
 * servers count tokens and requests. Once it has decided it stays in charge while metrics are
 * missing. */
bool saturation_slo_applies(const struct gathering *g);

/* Whether the model's traffic is known, so that the short cycle of the policy is useful. */
bool saturation_slo_has_traffic(const struct saturation *s, const struct sat_model *m);

/* Targets of the variants, sorted by name. There is one step per cycle; in between the last answer
 * is repeated. */
struct sat_targets saturation_slo_decide(struct gathering *g);

/* The latency targets in force, for conditions: "TTFT 2.00 s, ITL 0.060 s, goal 99%, from the
 * ConfigMap". */
str saturation_slo_describe(struct arena *a, const struct sat_slo *slo);
/* Mean latencies of the last minute and their targets, for the rule `need`. */
struct decide_latency saturation_slo_latency(const struct gathering *g);

/* Time between two steps, and between two fetches of the metrics they use. */
int64_t saturation_slo_cycle_ns(const struct saturation *s);

#endif
