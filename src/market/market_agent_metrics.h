/* Metrics of the node agent, with MBCAS' names. Numbers of a pod are kept with the pod, in a
 * tenth of the memory that as many series would take. */
#ifndef FLYBALL_MARKET_AGENT_METRICS_H
#define FLYBALL_MARKET_AGENT_METRICS_H

#include "../base/metrics.h"
#include "sampler.h"

enum { AGENT_POD_FAMILIES = 10, AGENT_REWARD_BUCKETS = 10, AGENT_LATENCY_BUCKETS = 8 };

struct agent_rewards { /* of one pod */
    uint32_t counts[AGENT_REWARD_BUCKETS];
    double sum;
};

struct agent_changes { /* the same, from the first requested limit on */
    int64_t asked_ns;  /* monotonic; a limit that is not in force yet; 0: none */
    uint32_t ups, downs, latencies[AGENT_LATENCY_BUCKETS];
    double latency_sum;
};

struct agent_metrics {
    struct metric *managed, *duration, *read_errors, *refused_writes, *overcommit, *limits,
        *requests, *victims, *oom_kills, *problems, *lent, *iterations, *price, *lambda, *capacity;
    struct metric_family *mode, *mode_total;
    struct metric_family *of_pods[AGENT_POD_FAMILIES];
};

struct market_agent;

void market_agent_metrics_init(struct agent_metrics *m, struct metrics *registry,
                               struct market_agent *agent);
void market_agent_metrics_done(struct agent_metrics *m); /* stop reading the agent's pods */
void market_agent_metrics_add_round(struct agent_metrics *m, const struct round_report *report);

void market_agent_metrics_add_reward(struct agent_rewards *r, double reward);
void market_agent_metrics_add_latency(struct agent_changes *c, double seconds);

#endif
