/* What the node agent counts, under the names of the original. */
#ifndef FLYBALL_MARKET_AGENT_METRICS_H
#define FLYBALL_MARKET_AGENT_METRICS_H

#include "../base/metrics.h"
#include "sampler.h"

struct agent_metrics {
    struct metric *managed, *duration, *read_errors, *iterations, *price, *lambda, *capacity;
    struct metric_family *mode, *mode_total;
    /* of a pod: namespace and pod are their labels */
    struct metric_family *changes, *latency, *reward, *throttling, *allocation, *usage;
};

void agent_metrics_init(struct agent_metrics *m, struct metrics *registry);
void agent_metrics_round(struct agent_metrics *m, const struct round_report *report);
void agent_metrics_change(struct agent_metrics *m, str ns, str pod, bool up);
void agent_metrics_show(struct agent_metrics *m, str ns, str pod, const struct sampled *sampled);
void agent_metrics_forget(struct agent_metrics *m, str ns, str pod);

#endif
