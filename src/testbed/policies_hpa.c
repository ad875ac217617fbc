/* Policies that are a HorizontalPodAutoscaler, or that act through one.
 *
 *     fleet_policy_follow     an HPA per variant that follows a desired count published as a metric: the last step of the
 *                       product's rules as most users run them
 *     hpa-*             an HPA on the mean of a vLLM metric over ready pods
 *     keda              an HPA on the sum of a metric over the model's pods, as KEDA's Prometheus scaler provides it
 *
 * Each variant has an HPA of its own, with the default behavior. An HPA whose target has no replicas is
 * disabled, as in Kubernetes, so a policy that wakes a variant from zero writes its scale itself.
 *
 * Peers are tuned as well as a user with the profile at hand could tune them by arithmetic (running_target):
 * a comparison with a badly tuned peer would prove nothing. */
#include "fleet_query.h"
#include "hpa_model.h"
#include "policies.h"

#include <math.h>
#include <stdio.h>

static const double hpa_sync_s = 15;

/* ---- an HPA that follows a desired number */

struct policy_followers {
    size_t n;
    struct hpa_history history[FLEET_VARIANTS_MAX];
};

struct policy_followers *fleet_policy_followers_new(size_t variants)
{
    struct policy_followers *p = mem_zero(1, sizeof(*p));
    p->n = variants;
    return p;
}

void fleet_policy_followers_free(struct policy_followers *p)
{
    for (size_t i = 0; p && i < p->n; i++)
        hpa_model_history_done(&p->history[i]);
    free(p);
}

/* One HPA decision for one variant, recorded in its history. */
static int decide_variant(struct hpa_history *history, const struct fleet *f, size_t v,
                          const struct hpa_metric *metric)
{
    const struct fleet_variant *variant = &f->config->variants[v];
    struct hpa_input in = { .now_s = f->now_ns / 1000000000,
                            .current = f->current[v],
                            .ready = f->ready[v],
                            .min = MAX(variant->min, f->current[v] ? 1 : 0),
                            .max = variant->max,
                            .metrics = metric,
                            .metric_n = 1,
                            .behavior = hpa_model_default_behavior() };
    int desired = hpa_model_decide(history, &in).desired;
    hpa_model_scaled(history, in.now_s, in.current, desired);
    return desired;
}

void fleet_policy_follow(struct policy_followers *p, const struct fleet *f, const int *desired,
                         int *ret_targets)
{
    for (size_t v = 0; v < p->n; v++) {
        struct hpa_metric metric = { true, HPA_AVERAGE_VALUE, 1, desired[v], 0 };
        ret_targets[v] = decide_variant(&p->history[v], f, v, &metric);
        if (!f->current[v] && desired[v] > 0)
            ret_targets[v] = desired[v]; /* who wakes it from zero writes the scale itself */
    }
}

/* ---- an HPA on a metric of the pods */

struct hpa_policy_state {
    struct fleet_policy policy;
    size_t n;
    struct hpa_history history[FLEET_VARIANTS_MAX];
    enum series_field field;
    double target[FLEET_VARIANTS_MAX]; /* mean of a pod; of keda: the sum per replica */
    bool external; /* the sum over the model's pods, as KEDA's Prometheus scaler */
};

/* Sum over ready pods that report, and how many those are. */
static struct hpa_metric pods_metric(const struct hpa_policy_state *p, const struct fleet *f,
                                     size_t v)
{
    struct hpa_metric m = { .kind = HPA_POD_AVERAGE, .target = p->target[v] };
    for (size_t i = 0; i < f->replicas.n; i++) {
        const struct fleet_replica *r = f->replicas.at[i];
        const struct series_scrape *x =
            r->variant == v && r->phase == FLEET_READY ? series_last(r->series) : NULL;
        if (!x)
            continue;
        m.available = true;
        m.reporting++;
        m.value += x->field[p->field];
    }
    return m;
}

static struct hpa_metric external_metric(const struct hpa_policy_state *p, const struct fleet *f,
                                         size_t v)
{
    double sum = fleet_query_sum(f, p->field, v);
    return (struct hpa_metric){ !isnan(sum), HPA_AVERAGE_VALUE, p->target[v], isnan(sum) ? 0 : sum,
                                0 };
}

/* Decides each variant by its own HPA; the reason lists the metric of those that have replicas. */
static void step_hpa(struct fleet_policy *policy, const struct fleet *f,
                     struct fleet_answer *answer)
{
    struct hpa_policy_state *p = container_of(policy, struct hpa_policy_state, policy);
    size_t said = 0;
    for (size_t v = 0; v < p->n; v++) {
        struct hpa_metric m = p->external ? external_metric(p, f, v) : pods_metric(p, f, v);
        answer->targets[v] = decide_variant(&p->history[v], f, v, &m);
        double shown = p->external || !m.reporting ? m.value : m.value / m.reporting;
        if (f->current[v] && said < sizeof(answer->reason))
            said += (size_t)snprintf(answer->reason + said, sizeof(answer->reason) - said,
                                     "%s" STR_FMT ": %s %.4g, target %.4g per replica",
                                     said ? "; " : "", STR_ARG(f->config->variants[v].name),
                                     p->external ? "sum" : "mean", shown, m.target);
    }
}

static void free_hpa(struct fleet_policy *policy)
{
    struct hpa_policy_state *p = container_of(policy, struct hpa_policy_state, policy);
    for (size_t v = 0; v < p->n; v++)
        hpa_model_history_done(&p->history[v]);
    free(p);
}

static struct hpa_policy_state *hpa_new(const struct fleet_config *c, const char *name,
                                        enum series_field field, double target)
{
    struct hpa_policy_state *p = mem_zero(1, sizeof(*p));
    p->policy = (struct fleet_policy){ name, hpa_sync_s, step_hpa, free_hpa };
    p->n = c->variant_n;
    p->field = field;
    for (size_t v = 0; v < c->variant_n; v++)
        p->target[v] = target;
    return p;
}

/* Running requests at which a replica of this variant reaches `share` of the ITL target, in a steady state with
 * requests of the trace's mean lengths: an iteration with n sequences computes n * in / out prompt tokens. This is
 * the best that a user with the profile at hand can tune by arithmetic. */
static double running_target(const struct fleet_config *c, size_t v, double share)
{
    const struct replica_profile *p = &c->variants[v].profile;
    double in = c->mean_prompt, out = fmax(c->mean_output, 1);
    double each =
        p->per_seq_ms + p->per_prompt_token_ms * in / out + p->per_cached_token_ms * (in + out / 2);
    double n = (share * c->itl_s * 1e3 - p->base_ms) / fmax(each, 1e-9);
    return fmax(1, fmin(n, p->max_seqs));
}

struct fleet_policy *fleet_policy_hpa_running(const struct fleet_config *config)
{
    static const double share = 0.8;
    struct hpa_policy_state *p = hpa_new(config, "hpa-running", SERIES_RUNNING, 1);
    for (size_t v = 0; v < config->variant_n; v++)
        p->target[v] = running_target(config, v, share);
    return &p->policy;
}

struct fleet_policy *fleet_policy_hpa_kv(const struct fleet_config *config)
{
    return &hpa_new(config, "hpa-kv", SERIES_KV, 0.7)->policy;
}

struct fleet_policy *fleet_policy_hpa_queue(const struct fleet_config *config)
{
    return &hpa_new(config, "hpa-queue", SERIES_WAITING, 5)->policy;
}

/* KEDA hands the Prometheus sum to an HPA as an external metric; the polling interval of 30 s and the cooldown
 * matter only between zero and one, which this model (minReplicaCount 1) never crosses. */
struct fleet_policy *fleet_policy_keda(const struct fleet_config *config)
{
    struct hpa_policy_state *p = hpa_new(config, "keda", SERIES_WAITING, 5);
    p->external = true;
    return &p->policy;
}
