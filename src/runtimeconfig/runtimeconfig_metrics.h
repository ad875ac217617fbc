/* Metrics of the feature. */
#ifndef FLYBALL_RUNTIMECONFIG_METRICS_H
#define FLYBALL_RUNTIMECONFIG_METRICS_H

#include "../base/metrics.h"
#include "aim_kinds.h"
#include "path_core.h"
#include "resolve_core.h"

struct runtimeconfig_metrics {
    struct metric_family *resolutions, *consumers, *renders, *conflicts, *statuses, *refused;
};

void runtimeconfig_metrics_init(struct runtimeconfig_metrics *m, struct metrics *registry);
void runtimeconfig_metrics_resolved(const struct runtimeconfig_metrics *m, enum aim_kind kind,
                                    enum aim_resolve_outcome outcome);
void runtimeconfig_metrics_rendered(const struct runtimeconfig_metrics *m, bool worked);
/* The number of consumers of a configuration; ns is empty for a cluster configuration. */
void runtimeconfig_metrics_consumers(const struct runtimeconfig_metrics *m, str ns, str name,
                                     size_t total);
void runtimeconfig_metrics_forget(const struct runtimeconfig_metrics *m, str ns, str name);
/* An InferenceService was not sent because it was incomplete; stays 0 unless there is a bug. */
void runtimeconfig_metrics_refused(const struct runtimeconfig_metrics *m);
void runtimeconfig_metrics_conflicts(const struct runtimeconfig_metrics *m, size_t n);

#endif
