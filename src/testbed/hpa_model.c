/* The HorizontalPodAutoscaler's arithmetic, as pure functions: see hpa_model.h for the inputs.
 *
 * A decision takes four steps, in the order of Kubernetes' own controller:
 *
 *     metrics --propose_replicas--> one count per metric
 *             --recommend---------> the largest of them
 *             --stabilize---------> not above the lowest recent one (up), not below the highest (down)
 *             --limit_change------> within the scaling policies and within min and max
 *
 * Invariant: a metric that cannot be read never scales down. With some metrics missing, only a larger count
 * is accepted; with all of them missing, the count stays and `active` is false.
 *
 * struct hpa_history is the only state, owned by the caller: recommendations of the stabilization windows,
 * and the changes of the last hour, the longest period that a policy may have. Counts are rounded up after
 * 1e-9 is subtracted, so that an exact ratio computed in floating point does not cost a replica.
 *
 * Left out: the CPU initialization period and readiness delay of new pods; the caller leaves such pods out. */
#include "hpa_model.h"

#include <math.h>

struct hpa_behavior hpa_model_default_behavior(void)
{
    return (struct hpa_behavior){
        .up = { .stabilization_s = 0,
                .select = HPA_SELECT_MAX,
                .policies = { { HPA_PODS, 4, 15 }, { HPA_PERCENT, 100, 15 } },
                .policy_n = 2,
                .tolerance = 0.1 },
        .down = { .stabilization_s = 300,
                  .select = HPA_SELECT_MAX,
                  .policies = { { HPA_PERCENT, 100, 15 } },
                  .policy_n = 1,
                  .tolerance = 0.1 },
    };
}

void hpa_model_history_done(struct hpa_history *history)
{
    vec_done(&history->recommendations);
    vec_done(&history->ups);
    vec_done(&history->downs);
}

/* ---- what the metrics ask for */

static int32_t to_replicas(double wanted)
{
    return wanted >= INT32_MAX ? INT32_MAX : (int32_t)wanted;
}

/* Ratios this near to 1 change nothing; the two directions may have different tolerances. */
static bool is_within_tolerance(const struct hpa_input *in, double ratio)
{
    return ratio >= 1 - in->behavior.down.tolerance && ratio <= 1 + in->behavior.up.tolerance;
}

/* Metric type Pods: a pod without the metric is assumed to use exactly the target when scaling down, and nothing
 * when scaling up; if that turns the direction around, nothing changes (calcPlainMetricReplicas). */
static int32_t propose_by_pod_average(const struct hpa_metric *m, const struct hpa_input *in)
{
    int32_t missing = MAX(in->current - m->reporting, 0);
    if (m->reporting <= 0 || m->target <= 0)
        return in->current;
    double ratio = m->value / m->reporting / m->target;
    if (!missing)
        return is_within_tolerance(in, ratio) ? in->current
                                              : to_replicas(ceil(ratio * m->reporting - 1e-9));
    double assumed = ratio < 1 ? m->target * missing : 0;
    int32_t all = m->reporting + missing;
    double rest = (m->value + assumed) / all / m->target;
    if (is_within_tolerance(in, rest) || (ratio < 1 && rest > 1) || (ratio > 1 && rest < 1))
        return in->current;
    int32_t wanted = to_replicas(ceil(rest * all - 1e-9));
    return (rest < 1 && wanted > in->current) || (rest > 1 && wanted < in->current) ? in->current
                                                                                    : wanted;
}

/* The count at which one metric would be at its target. */
static int32_t propose_replicas(const struct hpa_metric *m, const struct hpa_input *in)
{
    if (m->kind == HPA_POD_AVERAGE)
        return propose_by_pod_average(m, in);
    int32_t ready = in->ready > 0 ? in->ready : in->current;
    double usage = m->kind == HPA_AVERAGE_VALUE ? m->target * in->current : m->target;
    if (usage <= 0)
        return in->current;
    double ratio = m->value / usage;
    if (is_within_tolerance(in, ratio))
        return in->current;
    double wanted = m->kind == HPA_AVERAGE_VALUE ? m->value / m->target : ratio * ready;
    return to_replicas(ceil(wanted - 1e-9)); /* 3.0000000001 pods are three */
}

/* The largest proposal, or the current count where missing metrics leave the answer open. */
static int32_t recommend_replicas(const struct hpa_input *in, bool *ret_active)
{
    int32_t most = -1;
    bool missing = false;
    for (size_t i = 0; i < in->metric_n; i++) {
        if (in->metrics[i].available)
            most = MAX(most, propose_replicas(&in->metrics[i], in));
        else
            missing = true;
    }
    *ret_active = most >= 0;
    if (most < 0 || (missing && most < in->current))
        return in->current;
    return most;
}

/* ---- behavior */

/* Drops samples up to `before_s`, keeping the order of the others. */
static void forget_samples(struct hpa_sample *at, size_t *n, int64_t before_s)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (at[i].at_s > before_s)
            at[kept++] = at[i];
    *n = kept;
}

/* Up: no more than the least recommended in the window; down: no less than the most. */
static int32_t stabilize_replicas(struct hpa_history *h, const struct hpa_input *in,
                                  int32_t recommendation)
{
    int64_t up_from = in->now_s - in->behavior.up.stabilization_s;
    int64_t down_from = in->now_s - in->behavior.down.stabilization_s;
    int32_t up = recommendation, down = recommendation;
    for (size_t i = 0; i < h->recommendations.n; i++) {
        struct hpa_sample s = h->recommendations.at[i];
        if (s.at_s > up_from)
            up = MIN(up, s.replicas);
        if (s.at_s > down_from)
            down = MAX(down, s.replicas);
    }
    forget_samples(h->recommendations.at, &h->recommendations.n, MIN(up_from, down_from));
    vec_push(&h->recommendations, ((struct hpa_sample){ in->now_s, recommendation }));
    int32_t stable = in->current;
    if (stable < up)
        stable = up;
    if (stable > down)
        stable = down;
    return stable;
}

/* Replicas added (or removed) after `from_s`. */
static int32_t sum_changes_since(const struct hpa_sample *at, size_t n, int64_t from_s)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += at[i].at_s > from_s ? at[i].replicas : 0;
    return sum;
}

/* Replicas at the beginning of a policy's period: the current ones without the changes made since. */
static int32_t count_at_start(const struct hpa_history *h, const struct hpa_input *in,
                              int32_t period_s)
{
    int64_t from_s = in->now_s - period_s;
    return in->current - sum_changes_since(h->ups.at, h->ups.n, from_s) +
           sum_changes_since(h->downs.at, h->downs.n, from_s);
}

/* The most replicas that the scaling policies allow; selectPolicy picks the loosest (Max) or tightest (Min). */
static int32_t find_up_limit(const struct hpa_history *h, const struct hpa_input *in)
{
    const struct hpa_rules *rules = &in->behavior.up;
    if (rules->select == HPA_SELECT_DISABLED)
        return in->current;
    int32_t limit = rules->select == HPA_SELECT_MIN ? INT32_MAX : INT32_MIN;
    for (size_t i = 0; i < rules->policy_n; i++) {
        struct hpa_policy p = rules->policies[i];
        int32_t start = count_at_start(h, in, p.period_s);
        int32_t proposed =
            p.type == HPA_PODS ? start + p.value : to_replicas(ceil(start * (1 + p.value / 100.0)));
        limit = rules->select == HPA_SELECT_MIN ? MIN(limit, proposed) : MAX(limit, proposed);
    }
    return rules->policy_n ? limit : INT32_MAX;
}

/* The fewest replicas that the scaling policies allow; the mirror image of find_up_limit(). */
static int32_t find_down_limit(const struct hpa_history *h, const struct hpa_input *in)
{
    const struct hpa_rules *rules = &in->behavior.down;
    if (rules->select == HPA_SELECT_DISABLED)
        return in->current;
    int32_t limit = rules->select == HPA_SELECT_MIN ? INT32_MIN : INT32_MAX;
    for (size_t i = 0; i < rules->policy_n; i++) {
        struct hpa_policy p = rules->policies[i];
        int32_t start = count_at_start(h, in, p.period_s);
        int32_t proposed =
            p.type == HPA_PODS ? start - p.value : (int32_t)(start * (1 - p.value / 100.0));
        limit = rules->select == HPA_SELECT_MIN ? MAX(limit, proposed) : MIN(limit, proposed);
    }
    return rules->policy_n ? limit : 0;
}

/* Applies the policies first and the bounds second; the reason names the one that was decisive. */
static struct hpa_decision limit_change(const struct hpa_history *h, const struct hpa_input *in,
                                        int32_t stable)
{
    if (stable > in->current) {
        int32_t rate = MAX(find_up_limit(h, in), in->current), most = MIN(rate, in->max);
        if (stable > most)
            return (struct hpa_decision){ most,
                                          most == in->max ? "TooManyReplicas" : "ScaleUpLimit",
                                          true };
    } else if (stable < in->current) {
        int32_t rate = MIN(find_down_limit(h, in), in->current), least = MAX(rate, in->min);
        if (stable < least)
            return (struct hpa_decision){ least,
                                          least == in->min ? "TooFewReplicas" : "ScaleDownLimit",
                                          true };
    }
    return (struct hpa_decision){ stable, "DesiredWithinRange", true };
}

struct hpa_decision hpa_model_decide(struct hpa_history *history, const struct hpa_input *in)
{
    /* The first decision records the current count as a recommendation (recordInitialRecommendation): a target with a
     * new HPA, or whose controller has just started, does not scale down before the window has passed. */
    if (!history->recommendations.n)
        vec_push(&history->recommendations, ((struct hpa_sample){ in->now_s, in->current }));
    if (in->current == 0) /* disabled by a scale to zero */
        return (struct hpa_decision){ 0, "DesiredWithinRange", false };
    if (in->current > in->max)
        return (struct hpa_decision){ in->max, "TooManyReplicas", true };
    if (in->current < in->min)
        return (struct hpa_decision){ in->min, "TooFewReplicas", true };
    bool active;
    int32_t recommendation = recommend_replicas(in, &active);
    struct hpa_decision decision =
        limit_change(history, in, stabilize_replicas(history, in, recommendation));
    decision.active = active;
    return decision;
}

void hpa_model_scaled(struct hpa_history *history, int64_t now_s, int32_t from, int32_t to)
{
    enum { KEPT_S = 3600 }; /* the longest period a policy may have */
    forget_samples(history->ups.at, &history->ups.n, now_s - KEPT_S);
    forget_samples(history->downs.at, &history->downs.n, now_s - KEPT_S);
    if (to > from)
        vec_push(&history->ups, ((struct hpa_sample){ now_s, to - from }));
    else if (to < from)
        vec_push(&history->downs, ((struct hpa_sample){ now_s, from - to }));
}
