/* The scaling policies that `flyball simulate` compares. The product's rules are the product's own cores, fed
 * through the product's own collection rules; the peers are models of what others run:
 *
 *   static        no change
 *   plan          replicas by time, known beforehand (the oracle's)
 *   slo           the product's latency policy (slo_core.h)
 *   need, 2026, seed   the product's saturation rules (decide_core.h), through an HPA as users run them
 *   v2            capacity in tokens (token_core.h), through an HPA
 *   v2-taught     the same, after it saw a queue at every replica at the load of the first minutes
 *   need-direct, 2026-direct, v2-direct   the same, writing the scale themselves
 *   queue-model   the product's optimizer (optimize_core.h) with the true profile
 *   hpa-running, hpa-kv, hpa-queue   HPA v2 (hpa_model.h) on a vLLM metric
 *   keda          a KEDA ScaledObject on waiting requests: polling 30 s, target average, HPA beneath */
#ifndef FLYBALL_POLICIES_H
#define FLYBALL_POLICIES_H

#include "fleet.h"

/* NULL: no such policy. Free it with fleet_policy_free(). */
struct fleet_policy *fleet_policy_new(str name, const struct fleet_config *config);
void fleet_policy_free(struct fleet_policy *p);

/* "slo, need, ..." for messages. */
extern const char policy_names[];

/* A plan: at each of `n` steps of `step_s` the replicas of one variant that are wanted. Borrowed. */
struct policy_plan {
    size_t variant;
    double step_s;
    const int *replicas;
    size_t n;
};
struct fleet_policy *fleet_policy_plan_new(const struct policy_plan *plan);

/* What Prometheus would hold about the time before second 0, for the policy slo to replay: 20 minutes of the
 * requests of the trace's first two minutes, at the same mean rate, served by `initial`. (A trace has no past. Two
 * minutes, in which no new replica can serve anyway, give away the least about what follows.) NULL: they are
 * empty. */
struct policy_history;
struct policy_history *fleet_policy_history_new(const struct fleet_config *config,
                                                struct fleet_trace trace, const int *initial);
void fleet_policy_history_free(struct policy_history *h);

/* ---- for the files that hold them */

struct policy_kind {
    const char *name;
    struct fleet_policy *(*make)(const struct fleet_config *config);
};
struct fleet_policy *fleet_policy_hpa_running(const struct fleet_config *config);
struct fleet_policy *fleet_policy_hpa_kv(const struct fleet_config *config);
struct fleet_policy *fleet_policy_hpa_queue(const struct fleet_config *config);
struct fleet_policy *fleet_policy_keda(const struct fleet_config *config);
struct fleet_policy *fleet_policy_slo(const struct fleet_config *config);
struct fleet_policy *fleet_policy_need(const struct fleet_config *config);
struct fleet_policy *fleet_policy_seed(const struct fleet_config *config);
struct fleet_policy *fleet_policy_2026(const struct fleet_config *config);
struct fleet_policy *fleet_policy_v2(const struct fleet_config *config);
struct fleet_policy *fleet_policy_need_direct(const struct fleet_config *config);
struct fleet_policy *fleet_policy_2026_direct(const struct fleet_config *config);
struct fleet_policy *fleet_policy_v2_direct(const struct fleet_config *config);
struct fleet_policy *fleet_policy_v2_taught(const struct fleet_config *config);
struct fleet_policy *fleet_policy_queue_model(const struct fleet_config *config);

/* An HPA per variant that follows a desired number of replicas (metric type External, AverageValue 1). */
struct policy_followers;
struct policy_followers *fleet_policy_followers_new(size_t variants);
void fleet_policy_followers_free(struct policy_followers *p);
void fleet_policy_follow(struct policy_followers *p, const struct fleet *f, const int *desired,
                         int *ret_targets);

#endif
