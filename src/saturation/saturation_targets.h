/* The workloads that variants scale: Deployments and StatefulSets, which are always watched, and any
 * other kind with a scale subresource, which is found and watched once a variant targets it. A
 * LeaderWorkerSet is one of those, with fields of its own. Private to the feature. */
#ifndef FLYBALL_SATURATION_TARGETS_H
#define FLYBALL_SATURATION_TARGETS_H

#include "saturation_state.h"

/* Looks up the kind of a variant's workload; called when its spec changed. */
void saturation_targets_join(struct saturation *s, struct variant *v);
/* The last variant of a workload is gone. */
void saturation_targets_leave(struct sat_workload *target);
void saturation_targets_stop(struct saturation *s);

/* The condition TargetResolved; its message may live in the arena. */
struct sat_condition saturation_targets_condition(const struct saturation *s, struct arena *a,
                                                  const struct variant *v);

/* A workload of another kind than Deployment and StatefulSet; NULL: none that can be scaled. */
const struct workload_record *saturation_targets_find(const struct variant *v);
const struct resource *saturation_targets_resource(const struct variant *v);
void saturation_targets_each_pod(const struct saturation *s, const struct variant *v,
                                 saturation_pod_fn *fn, void *context);

/* The label of an object whose labels are a struct labels: for labels_match(). */
bool saturation_get_label(const void *labels, str key, str *ret_value);

#endif
