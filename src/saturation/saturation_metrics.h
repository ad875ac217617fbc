/* Exported metrics: the decision as HPAs and KEDA read it, under the seed's name, WVA's names
 * (wva_*) and optionally its former names (inferno_*). The series of a variant are removed when it
 * is deleted or its labels change. */
#ifndef FLYBALL_SATURATION_METRICS_H
#define FLYBALL_SATURATION_METRICS_H

#include "../base/metrics.h"

struct saturation_metric_set { /* with one prefix */
    struct metric_family *desired, *current, *ratio, *changes;
};

struct saturation_metrics {
    struct metric_family *optimized;
    struct saturation_metric_set wva, inferno; /* inferno.desired NULL: not exported */
    struct metric_family *cycles, *cycle_seconds, *models;
    struct metric_family *limited; /* targets that a limiter cut */
    bool has_instance;
    bool by_target; /* also under the name of the workload: see saturation_options.c */
    str instance;
};

struct variant_labels {
    str ns, name, target, model, accelerator;
};

struct variant_series { /* the exported series of a variant; texts owned; model NULL: none */
    char *target, *model, *accelerator;
    int current, desired;
};

void saturation_metrics_init(struct saturation_metrics *m, struct metrics *registry, str instance,
                             bool inferno);
/* Sets the gauges and removes those with previous labels. */
void saturation_metrics_show(const struct saturation_metrics *m, struct variant_series *shown,
                             const struct variant_labels *labels, int current, int desired);
void saturation_metrics_hide(const struct saturation_metrics *m, struct variant_series *shown,
                             str ns, str name);

/* What decided a change; the label `reason` of the counter. */
enum sat_cause {
    SAT_CAUSE_SATURATION, /* KV cache and queue */
    SAT_CAUSE_SLO,        /* latency targets */
    SAT_CAUSE_OPTIMIZER,  /* the model-based optimizer */
    SAT_CAUSE_SAFETY,     /* the optimizer was overruled */
    SAT_CAUSE_BOUNDS,     /* a minimum or maximum */
    SAT_CAUSE_ZERO,       /* scale to zero */
    SAT_CAUSE_WAKE,       /* scale from zero */
    SAT_CAUSE_N
};

/* The same with the label values of WVA 0.9, beside the others. `by_tokens`: its version 2 analyzer decided. */
void saturation_metrics_count_change_09(const struct saturation_metrics *m,
                                        const struct variant_labels *labels, bool up,
                                        enum sat_cause cause, bool by_tokens);
/* Counts a new target. */
void saturation_metrics_count_change(const struct saturation_metrics *m,
                                     const struct variant_labels *labels, bool up,
                                     enum sat_cause cause);

#endif
