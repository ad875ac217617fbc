/* The slo policy in the engine: which latency targets hold for a model, what its replicas report, and one step of
 * slo_core.h per cycle. Used by the engine only. */
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
    double ok;                /* share within the targets at the last step; NaN: not known */
};

/* Does this policy decide about the model? It does where it is asked for, and by default where the servers count
 * tokens and requests; once it has, it holds while they are silent. */
bool saturation_slo_applies(const struct gathering *g);

/* Is its traffic known, so that the policy's own short cycle makes sense? */
bool saturation_slo_has_traffic(const struct saturation *s, const struct sat_model *m);

/* Targets of the model's variants, by name. One step per cycle: in between the last answer is repeated. */
struct sat_targets saturation_slo_decide(struct gathering *g);

/* The latency targets in force, for conditions: "TTFT 2 s, ITL 0.06 s, goal 99%". */
str saturation_slo_describe(struct arena *a, const struct sat_slo *slo);
/* Means of the last minute beside the targets, for the rule `need`. */
struct decide_latency saturation_slo_latency(const struct gathering *g);

/* How often the policy wants to step, and its metrics to be fetched. */
int64_t saturation_slo_cycle_ns(const struct saturation *s);

#endif
