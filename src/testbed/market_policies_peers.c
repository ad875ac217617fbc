/* What the market is compared with: limits that stay as they are, no limits, the VPA's recommender
 * with in-place updates, a window in the manner of Autopilot, and MBCAS' arithmetic.
 *
 * The VPA and Autopilot start with a day of history made of the same demand, cut at the original
 * limits, because in a cluster they would have it. Autopilot's constants are approximate: its
 * code is not public. Only the VPA and ours size memory. */
#include "market_policies.h"

#include "../base/clock.h"
#include "../market/market.h"
#include "vpa_model.h"

#include <math.h>

enum { DAY_S = 86400, MINUTE_S = 60 };

/* ---- static and unlimited */

const struct market_policy market_policy_static = { "static", "original requests and limits", NULL,
                                                    NULL, NULL };

static void *remove_limits(struct plant *p, int seconds, uint64_t seed)
{
    (void)seconds, (void)seed;
    for (size_t i = 0; i < p->pod_n; i++)
        p->pods[i].limit = 0;
    return NULL;
}

const struct market_policy market_policy_unlimited = {
    "unlimited", "original requests, no limits: what requests alone would serve", remove_limits,
    NULL, NULL
};

/* Mean demand of a minute of the day before, cut at the limit, as its usage would have been. */
static double past_usage(const struct plant_pod *pod, int64_t minute, int seconds)
{
    double sum = 0, limit = (double)pod->original_limit / 1000;
    for (int s = 0; s < MINUTE_S; s += 5) {
        int64_t second = (minute * MINUTE_S + s) % seconds;
        sum += fmin(plant_demand(&pod->load, second), limit > 0 ? limit : INFINITY);
    }
    return sum / (MINUTE_S / 5);
}

/* Its working set at that time of the day before, cut at the limit. */
static double past_memory(const struct plant_pod *pod, int64_t second)
{
    const struct plant_memory *m = &pod->memory;
    double mib = plant_memory_at(m, pod->load.seed, second, second) + m->hot;
    return fmin(mib * 1024 * 1024, (double)m->original_limit);
}

/* ---- VPA */

struct vpa_policy {
    struct vpa pods[PLANT_PODS_MAX];
    double usage_usec[PLANT_PODS_MAX];
    int64_t oom_kills[PLANT_PODS_MAX]; /* that the recommender knows */
};

static const int64_t epoch_s = 1700000000;

/* Mean cores of a pod since the last call, one minute ago. */
static double take_usage(const struct plant_pod *pod, double *last_usec)
{
    double used = pod->usage_usec - *last_usec;
    *last_usec = pod->usage_usec;
    return used / MINUTE_S / 1e6;
}

static void *start_vpa(struct plant *p, int seconds, uint64_t seed)
{
    (void)seed;
    struct vpa_policy *v = mem_zero(1, sizeof(*v));
    for (size_t i = 0; i < p->pod_n; i++) {
        vpa_init(&v->pods[i]);
        for (int64_t minute = 0; minute < DAY_S / MINUTE_S; minute++) {
            vpa_add_cpu(&v->pods[i], epoch_s - DAY_S + minute * MINUTE_S,
                        past_usage(&p->pods[i], minute, seconds));
            if (p->pods[i].memory.shape)
                vpa_add_memory(&v->pods[i], epoch_s - DAY_S + minute * MINUTE_S,
                               past_memory(&p->pods[i], minute * MINUTE_S));
        }
    }
    return v;
}

/* Memory as the VPA sizes it: the limit keeps its ratio, so it moves in both directions. */
static void run_vpa_memory(struct vpa_policy *v, struct plant *p, size_t i,
                           const struct vpa_recommendation *r)
{
    struct plant_pod *pod = &p->pods[i];
    const struct plant_memory *m = &pod->memory;
    int64_t target = r->target.memory_bytes;
    if (!m->shape || target <= 0)
        return;
    double change = fabs((double)(target - m->request)) / (double)m->request;
    if (m->request < r->lower.memory_bytes || m->request > r->upper.memory_bytes || change > 0.1)
        plant_resize_memory(p, pod, m->original_limit / m->original_request * target, target);
    for (; v->oom_kills[i] < m->oom_kills; v->oom_kills[i]++)
        vpa_add_oom(&v->pods[i], epoch_s + p->second, (double)m->request);
    vpa_add_memory(&v->pods[i], epoch_s + p->second, (double)m->working_set);
}

/* Limits keep their original ratio to the request. */
static void run_vpa(void *state, struct plant *p)
{
    struct vpa_policy *v = state;
    if (p->second % MINUTE_S)
        return;
    for (size_t i = 0; i < p->pod_n; i++) {
        struct plant_pod *pod = &p->pods[i];
        vpa_add_cpu(&v->pods[i], epoch_s + p->second, take_usage(pod, &v->usage_usec[i]));
        struct vpa_recommendation r = vpa_recommend(&v->pods[i], 1);
        int64_t target = MAX(r.target.cpu_milli, INT64_C(10));
        bool outside = pod->request < r.lower.cpu_milli || pod->request > r.upper.cpu_milli;
        double change = fabs((double)(target - pod->request)) / (double)pod->request;
        if (outside || change > 0.1)
            plant_resize(p, pod, pod->original_limit * target / pod->original_request, target);
        run_vpa_memory(v, p, i, &r);
    }
}

const struct market_policy market_policy_vpa = { "vpa", "VPA-like, in place", start_vpa, run_vpa,
                                                 free };

/* ---- Autopilot */

enum { BUCKETS = 200, HOUR = 60 };

struct window { /* of one pod: usage weighted by load, half-life 12 h */
    double weight[BUCKETS];
    double recent[HOUR]; /* recommendations of the last hour, one per minute */
};

struct autopilot_policy {
    struct window pods[PLANT_PODS_MAX];
    double usage_usec[PLANT_PODS_MAX];
};

static double bucket_cores(int bucket)
{
    return 0.005 * pow(1.05, bucket);
}

static void window_add(struct window *w, double cores)
{
    double decay = exp2(-1.0 / (12 * 60));
    int bucket = cores > 0.005 ? (int)(log(cores / 0.005) / log(1.05)) : 0;
    for (int i = 0; i < BUCKETS; i++)
        w->weight[i] *= decay;
    w->weight[MIN(bucket, BUCKETS - 1)] += cores;
}

static double window_limit(struct window *w, int64_t minute)
{
    double total = 0, sum = 0, most = 0;
    int bucket = 0;
    for (int i = 0; i < BUCKETS; i++)
        total += w->weight[i];
    for (; bucket < BUCKETS - 1 && sum + w->weight[bucket] < 0.95 * total; bucket++)
        sum += w->weight[bucket];
    w->recent[minute % HOUR] = bucket_cores(bucket + 1) * 1.15;
    for (int i = 0; i < HOUR; i++)
        most = fmax(most, w->recent[i]);
    return most;
}

static void *start_autopilot(struct plant *p, int seconds, uint64_t seed)
{
    (void)seed;
    struct autopilot_policy *v = mem_zero(1, sizeof(*v));
    for (size_t i = 0; i < p->pod_n; i++)
        for (int64_t minute = 0; minute < DAY_S / MINUTE_S; minute++)
            window_add(&v->pods[i], past_usage(&p->pods[i], minute, seconds));
    return v;
}

static void run_autopilot(void *state, struct plant *p)
{
    struct autopilot_policy *v = state;
    if (p->second % MINUTE_S)
        return;
    for (size_t i = 0; i < p->pod_n; i++) {
        struct plant_pod *pod = &p->pods[i];
        window_add(&v->pods[i], take_usage(pod, &v->usage_usec[i]));
        double cores = window_limit(&v->pods[i], p->second / MINUTE_S);
        int64_t limit = MAX((int64_t)(cores * 1000), INT64_C(11));
        if (fabs((double)(limit - pod->limit)) / (double)pod->limit > 0.1)
            plant_resize(p, pod, limit, limit_request(limit));
    }
}

const struct market_policy market_policy_autopilot = { "autopilot", "Autopilot-like window",
                                                       start_autopilot, run_autopilot, free };

/* ---- MBCAS */

struct mbcas_policy {
    struct market_config config;
    struct agent_rules rules;
    struct compat_agent agents[PLANT_PODS_MAX];
    struct compat_pod pods[PLANT_PODS_MAX];
    struct demand_cpu_stat sample[PLANT_PODS_MAX]; /* one slot for both loops, as in MBCAS */
    int64_t sample_ns[PLANT_PODS_MAX], written_s[PLANT_PODS_MAX];
    size_t n;
    bool known; /* agents exist after the first slow step */
};

static void *start_mbcas(struct plant *p, int seconds, uint64_t seed)
{
    (void)seconds;
    struct mbcas_policy *m = mem_zero(1, sizeof(*m));
    m->config = market_config_default(MARKET_DEFAULTS_COMPAT);
    m->rules = market_pod_rules_from(&m->config).agent;
    m->rules.infinite_reward = true;
    m->n = p->pod_n;
    for (size_t i = 0; i < p->pod_n; i++) {
        market_compat_agent_init(&m->agents[i], 0.2, seed + i);
        m->written_s[i] = -1000;
    }
    return m;
}

static void stop_mbcas(void *state)
{
    struct mbcas_policy *m = state;
    for (size_t i = 0; i < m->n; i++)
        agent_done(&m->agents[i].agent);
    free(m);
}

static struct demand_window read_window(struct mbcas_policy *m, const struct plant_pod *pod,
                                        size_t i, int64_t now_ns)
{
    struct demand_cpu_stat stat = plant_stat(pod);
    struct demand_window w = { 0 };
    if (m->sample_ns[i] && now_ns > m->sample_ns[i])
        w = demand_measure(m->sample[i], stat, now_ns - m->sample_ns[i]);
    m->sample[i] = stat;
    m->sample_ns[i] = now_ns;
    return w;
}

static void run_slow_step(struct mbcas_policy *m, struct plant *p, int node)
{
    struct bid bids[PLANT_PODS_MAX];
    int64_t x[PLANT_PODS_MAX];
    size_t index[PLANT_PODS_MAX], n = 0;
    bool grace = p->second < m->config.grace_ns / NS_PER_S;
    for (size_t i = 0; i < p->pod_n; i++) {
        if (p->pods[i].node != node)
            continue;
        struct demand_window w =
            read_window(m, &p->pods[i], i, p->second * NS_PER_S + 4 * NS_PER_MS);
        struct agent_outcome outcome = { w.usage_milli, p->pods[i].limit, w.demand, 0 };
        market_compat_learn(&m->agents[i], &m->rules, outcome);
        enum agent_action action = agent_choose(&m->agents[i].agent, 0, true);
        bids[n] = market_compat_bid(&m->agents[i], &m->rules, action, 0, grace);
        index[n++] = i;
    }
    int64_t capacity = plant_capacity(p, node);
    double price = market_price(capacity, bids, n);
    for (size_t k = 0; k < n; k++) {
        struct compat_agent *agent = &m->agents[index[k]];
        bids[k] = market_compat_bid(agent, &m->rules, agent_choose(&agent->agent, price, true),
                                    price, grace);
    }
    market_compat_clear(capacity, bids, n, x);
    for (size_t k = 0; k < n; k++) {
        size_t i = index[k];
        struct compat_smoothing in = { x[k], p->pods[i].limit, p->second - m->written_s[i] < 30,
                                       m->config.min_change_percent, 10 };
        struct compat_write write = market_compat_smooth(&m->pods[i], in);
        if (write.written && plant_resize(p, &p->pods[i], write.limit_milli, write.request_milli))
            m->written_s[i] = p->second;
    }
}

static void run_mbcas(void *state, struct plant *p)
{
    struct mbcas_policy *m = state;
    for (size_t i = 0; i < p->pod_n && m->known && p->second % 2 == 0; i++) {
        struct demand_window w = read_window(m, &p->pods[i], i, p->second * NS_PER_S);
        struct compat_write write = market_compat_fast_step(&m->pods[i], w.demand, 0.1, 0.2, 0.4);
        if (write.written)
            plant_resize(p, &p->pods[i], write.limit_milli, write.request_milli);
    }
    if (p->second % 15)
        return;
    for (int node = 0; node < (int)p->node_n; node++)
        run_slow_step(m, p, node);
    m->known = true;
}

const struct market_policy market_policy_mbcas = { "mbcas", "MBCAS' arithmetic (compat mode)",
                                                   start_mbcas, run_mbcas, stop_mbcas };
