/* The metrics that WVA 0.9 added, for dashboards that were made for it. They are exported while a
 * ConfigMap with a name of 0.9 or an annotated scaler is in use, or always with --wva-metrics 0.9. */
#ifndef FLYBALL_SATURATION_GAUGES_H
#define FLYBALL_SATURATION_GAUGES_H

#include "saturation_gather.h"

/* Once per cycle over all models, which took so many seconds of CPU time. Registers them when they are first needed. */
void saturation_gauges_cycle(struct saturation *s, double seconds);
void saturation_gauges_done(struct saturation *s);
/* Whether names of 0.9 are in use: also for events, and the labels of wva_replica_scaling_total. Once they are, they
 * stay until a restart. */
bool saturation_gauges_wanted(const struct saturation *s);
/* Notes what a decision is based on; `up`: the metrics were fresh. */
void saturation_gauges_note(struct gathering *g, const struct decide_answers *answers,
                            const struct sat_config *config);
void saturation_gauges_note_held(struct gathering *g, const char *reason);
void saturation_gauges_count_error(struct saturation *s, const char *component, const char *type);
/* A change of the target by the scale-to-zero or minimum policy. */
void saturation_gauges_count_enforced(struct saturation *s, bool to_zero);

/* A query of Prometheus was answered, or failed. For struct sat_collector. */
void saturation_gauges_observe(void *context, const char *kind, double seconds,
                               const err_t *failure);
/* Ready pods that report a model, but belong to none of its variants. */
void saturation_gauges_count_strays(struct saturation *s, str ns, size_t n);

#endif
