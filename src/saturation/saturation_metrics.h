/* Metrics out: the decision as HPAs and KEDA read it, under the seed's name, the original's present names
 * (wva_*) and, if asked for, its former ones (inferno_*). A variant's series go with it, and with the
 * labels they had. */
#ifndef FLYBALL_SATURATION_METRICS_H
#define FLYBALL_SATURATION_METRICS_H

#include "../base/metrics.h"

struct saturation_metric_set { /* of one prefix */
    struct metric_family *desired, *current, *ratio, *changes;
};

struct saturation_metrics {
    struct metric_family *optimized;
    struct saturation_metric_set wva, inferno; /* inferno.desired NULL: not shown */
    struct metric_family *cycles, *cycle_seconds, *models;
    bool has_instance;
    str instance;
};

struct variant_labels {
    str ns, name, target, model, accelerator;
};

struct variant_series { /* what is shown of a variant; owned */
    char *target, *model, *accelerator;
    int current, desired;
};

void saturation_metrics_init(struct saturation_metrics *m, struct metrics *registry, str instance,
                             bool inferno);
/* Sets the gauges; those of other labels, that were shown before, are removed. */
void saturation_metrics_show(const struct saturation_metrics *m, struct variant_series *shown,
                             const struct variant_labels *labels, int current, int desired);
void saturation_metrics_hide(const struct saturation_metrics *m, struct variant_series *shown,
                             str ns, str name);

/* What decided a change: the label `reason` of the counter. */
enum sat_cause {
    SAT_CAUSE_SATURATION, /* KV cache and queue */
    SAT_CAUSE_SLO,        /* latency targets */
    SAT_CAUSE_OPTIMIZER,  /* the model-based optimizer */
    SAT_CAUSE_SAFETY,     /* the optimizer was overruled */
    SAT_CAUSE_BOUNDS,     /* a minimum or maximum */
    SAT_CAUSE_ZERO,       /* the rules about zero */
    SAT_CAUSE_N
};

/* A new target was decided on. */
void saturation_metrics_count_change(const struct saturation_metrics *m,
                                     const struct variant_labels *labels, bool up,
                                     enum sat_cause cause);

#endif
