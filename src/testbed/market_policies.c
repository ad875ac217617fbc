/* Our market in the closed loop: the product's own cores, driven as the node agent drives them, with
 * one market per node. What is simulated here is the agent's sampler and its owner: pods that cannot
 * be resized do not bid and are subtracted from the capacity; limits that shrink are written
 * before those that grow; a resize under way is not repeated. */
#include "market_policies.h"

#include "../base/clock.h"
#include "../market/boost_core.h"
#include "../market/market_advice_core.h"
#include "../market/memory_track_core.h"
#include "../market/round_core.h"
#include "market_loads.h"

#include <math.h>

enum { RESERVE_WINDOW_S = 300 };

struct sized_pod {
    struct market_pod market;
    bool exists;
    int64_t started_s; /* of the start that was seen last */
    double peak_milli; /* of a pod that does not bid: decays over five minutes */
    struct memory_track memory;
    int64_t oom_kills; /* that the track knows */
};

struct our_market {
    struct market_config config;
    struct market_pod_rules rules;
    struct clear_scratch scratch;
    struct market_node nodes[PLANT_NODES_MAX];
    struct sized_pod pods[PLANT_PODS_MAX];
    uint64_t seed;
    bool moves; /* the recommendations are followed */
    double prices[PLANT_NODES_MAX];
    market_advice_list advices;
    struct arena texts; /* of the advices */
};

static void init_pod(struct our_market *m, struct plant *p, size_t i)
{
    const struct plant_pod *pod = &p->pods[i];
    struct market_pod *market = &m->pods[i].market;
    market_pod_init(market, &m->config, 1, m->seed + i);
    market_pod_set_limit(market, pod->limit, pod->request);
    market->min_milli = (int32_t)pod->min_cpu;
    market->max_milli = (int32_t)pod->max_cpu;
    market->original_limit_milli = (int32_t)pod->original_limit;
    market->elastic = pod->elastic;
    m->pods[i].exists = true;
}

static struct our_market *start_market(struct plant *p, uint64_t seed, double overcommit)
{
    struct our_market *m = mem_zero(1, sizeof(*m));
    m->config = market_config_default(MARKET_DEFAULTS);
    m->config.limit_overcommit = overcommit;
    m->rules = market_pod_rules_from(&m->config);
    m->seed = seed;
    for (size_t i = 0; i < p->pod_n; i++)
        init_pod(m, p, i);
    return m;
}

static void *start_overcommitted(struct plant *p, int seconds, uint64_t seed)
{
    (void)seconds;
    return start_market(p, seed, market_config_default(MARKET_DEFAULTS).limit_overcommit);
}

static void *start_strict(struct plant *p, int seconds, uint64_t seed)
{
    (void)seconds;
    return start_market(p, seed, 1);
}

static void *start_moving(struct plant *p, int seconds, uint64_t seed)
{
    struct our_market *m = start_overcommitted(p, seconds, seed);
    m->moves = true;
    return m;
}

static void stop_market(void *state)
{
    struct our_market *m = state;
    vec_done(&m->advices);
    arena_done(&m->texts);
    for (size_t i = 0; i < PLANT_PODS_MAX; i++)
        if (m->pods[i].exists)
            market_pod_done(&m->pods[i].market);
    clear_scratch_done(&m->scratch);
    free(m);
}

/* ---- once a second */

static int64_t now_ns(const struct plant *p)
{
    return p->second * NS_PER_S + 1;
}

/* A pod is Ready when its start-up work is done; the boost lasts no longer here. */
static void apply_boost(struct market_pod *m, const struct plant *p, const struct plant_pod *pod)
{
    struct boost boost = { .type = pod->boost_factor ? BOOST_FACTOR : BOOST_NONE,
                           .factor = pod->boost_factor };
    struct boost_pod at = { .now_s = p->second,
                            .started_s = pod->started_s,
                            .max_s = BOOST_MAX_S_DEFAULT,
                            .original_request_milli = pod->original_request,
                            .original_limit_milli = pod->original_limit };
    struct boost_state s = boost_at(&boost, &at);
    bool boosting = s.boosting && pod->startup_left > 0;
    m->boost_milli = boosting ? (int32_t)s.limit_milli : 0;
    m->ignore_readings = boosting;
}

static void sample_pods(struct our_market *m, struct plant *p)
{
    for (size_t i = 0; i < p->pod_n; i++) {
        const struct plant_pod *pod = &p->pods[i];
        struct market_pod *market = &m->pods[i].market;
        if (market->limit_milli != pod->limit || market->request_milli != pod->request) {
            bool grew = pod->limit > market->limit_milli;
            if (pod->request != market->request_milli)
                market->request_changed_ns = now_ns(p);
            market_pod_set_limit(market, pod->limit, pod->request);
            market_pod_note_resize_time(market, 1);
            market->grown_ns = grew ? now_ns(p) : market->grown_ns;
        }
        if (m->pods[i].started_s != pod->started_s)
            market->started_ns = now_ns(p);
        m->pods[i].started_s = pod->started_s;
        apply_boost(market, p, pod);
        market_pod_sample(market, &m->rules, plant_stat(pod), now_ns(p));
        market_pod_sample_pressure(market, (int64_t)pod->waited_usec);
        double used = pod->second_usec / 1000;
        m->pods[i].peak_milli = fmax(used, m->pods[i].peak_milli * (1 - 1.0 / RESERVE_WINDOW_S));
    }
}

struct bidders {
    struct market_pod *pods[PLANT_PODS_MAX];
    size_t index[PLANT_PODS_MAX];
    size_t n;
    int64_t reserved; /* by the others */
    int64_t requests;
};

static struct bidders find_bidders(struct our_market *m, const struct plant *p, int node)
{
    struct bidders b = { 0 };
    for (size_t i = 0; i < p->pod_n; i++) {
        const struct plant_pod *pod = &p->pods[i];
        if (pod->node != node)
            continue;
        if (!pod->fixed) {
            b.pods[b.n] = &m->pods[i].market;
            b.index[b.n++] = i;
            continue;
        }
        double used = fmin((double)pod->limit, m->pods[i].peak_milli);
        b.reserved += MAX(pod->request, (int64_t)used);
        b.requests += pod->request;
    }
    return b;
}

/* ---- rounds */

static void write_limits(struct plant *p, const struct bidders *b, const int64_t *limits,
                         const int64_t *requests)
{
    for (int falling = 1; falling >= 0; falling--)
        for (size_t k = 0; k < b->n; k++) {
            struct plant_pod *pod = &p->pods[b->index[k]];
            if ((requests[k] < pod->request) == falling)
                plant_resize(p, pod, limits[k], requests[k]);
        }
}

static void run_round(struct our_market *m, struct plant *p, int node, bool slow)
{
    auto_arena struct arena a = { 0 };
    struct bidders b = find_bidders(m, p, node);
    int64_t limits[PLANT_PODS_MAX], requests[PLANT_PODS_MAX];
    int64_t cores = (int64_t)(p->cores[node] * 1000);
    double headroom = m->config.request_headroom_percent / 100;
    struct round round = {
        .capacity_milli = MAX(plant_capacity(p, node) - b.reserved, INT64_C(0)),
        .pods = b.pods,
        .n = b.n,
        .now_ns = now_ns(p),
        .scratch = &m->scratch,
        .arena = &a,
        .node = &m->nodes[node],
        .allocatable_milli = (int64_t)((double)cores * (1 - headroom)) - b.requests,
    };
    if (slow)
        market_slow_round(&round, &m->rules, limits, requests);
    else
        market_fast_round(&round, &m->rules, limits, requests);
    for (size_t k = 0; k < b.n && slow; k++)
        p->pods[b.index[k]].share = b.pods[k]->share_milli;
    write_limits(p, &b, limits, requests);
}

/* ---- memory */

/* memoryManagement: full, with readings every ten seconds as in the agent. */
static void run_memory(struct our_market *m, struct plant *p, int node)
{
    struct memory_container containers[PLANT_PODS_MAX];
    size_t index[PLANT_PODS_MAX], n = 0;
    struct memory_node round = { .allocatable = p->memory[node],
                                 .kubernetes_minor = 34,
                                 .now_s = p->second + 1 };
    for (size_t i = 0; i < p->pod_n; i++) {
        const struct plant_memory *memory = &p->pods[i].memory;
        struct sized_pod *pod = &m->pods[i];
        if (p->pods[i].node != node || !memory->shape)
            continue;
        for (; pod->oom_kills < memory->oom_kills; pod->oom_kills++)
            memory_track_oom(&pod->memory, round.now_s, memory->limit);
        if (p->second >= memory->down_until_s)
            memory_track_sample(&pod->memory, round.now_s, memory->working_set,
                                memory->pressed ? 0.05 : 0);
        containers[n] = (struct memory_container){ .track = &pod->memory,
                                                   .limit = memory->limit,
                                                   .request = memory->request,
                                                   .busy = memory->resizing };
        index[n++] = i;
    }
    memory_round(&round, containers, n);
    for (size_t k = 0; k < n; k++)
        if (containers[k].change.action != MEMORY_KEEP)
            plant_resize_memory(p, &p->pods[index[k]], containers[k].change.limit,
                                containers[k].change.request);
}

/* ---- several nodes */

enum { REPORT_S = 60, MOVE_DOWN_S = 10 };
static str node_name(int node)
{
    static const char names[PLANT_NODES_MAX][2] = { "a", "b", "c", "d" };
    return (str){ names[node], 1 };
}

static str pod_name(struct our_market *m, size_t i)
{
    return arena_printf(&m->texts, "pod-%02zu", i);
}

/* A person or a descheduler that follows each recommendation at once: the pod starts again elsewhere. */
static void follow_moves(struct our_market *m, struct plant *p,
                         const struct market_advice_pod *pods)
{
    for (size_t k = 0; k < m->advices.n; k++) {
        const struct market_advice *advice = &m->advices.at[k];
        for (size_t i = 0; i < p->pod_n && advice->fresh && advice->kind == MARKET_ADVICE_MOVE;
             i++) {
            if (!str_eq(pods[i].name, advice->name))
                continue;
            for (int node = 0; node < (int)p->node_n; node++)
                if (str_eq(node_name(node), advice->target))
                    p->pods[i].node = node;
            p->pods[i].memory.down_until_s = p->second + MOVE_DOWN_S;
        }
    }
}

static void run_cluster(struct our_market *m, struct plant *p)
{
    struct market_advice_node nodes[PLANT_NODES_MAX] = { 0 };
    struct market_advice_pod pods[PLANT_PODS_MAX] = { 0 };
    for (int node = 0; node < (int)p->node_n; node++)
        nodes[node] = (struct market_advice_node){ .name = node_name(node),
                                                   .capacity_milli = plant_capacity(p, node),
                                                   .memory_free = INT64_MAX,
                                                   .price = m->prices[node] };
    for (size_t i = 0; i < p->pod_n; i++) {
        const struct market_pod *market = &m->pods[i].market;
        pods[i] = (struct market_advice_pod){ .name = pod_name(m, i),
                                              .node = (size_t)p->pods[i].node,
                                              .workload = SIZE_MAX,
                                              .bid_max_milli = market->bid_max_milli,
                                              .got_milli = market->share_milli,
                                              .movable = true };
        nodes[p->pods[i].node].wanted_milli += market->bid_max_milli;
    }
    struct market_advice_view view = {
        .nodes = nodes, .node_n = p->node_n, .pods = pods, .pod_n = p->pod_n, .now_s = p->second + 1
    };
    market_advice_update(&view, &m->advices, &m->texts);
    follow_moves(m, p, pods);
}

static void run_market(void *state, struct plant *p)
{
    struct our_market *m = state;
    sample_pods(m, p);
    for (int node = 0; node < (int)p->node_n && p->second % MEMORY_READ_S == 0; node++)
        if (p->memory[node])
            run_memory(m, p, node);
    if (m->moves && p->second % REPORT_S == 0)
        run_cluster(m, p);
    for (int node = 0; node < (int)p->node_n; node++) {
        struct bidders b = find_bidders(m, p, node);
        market_node_sample(&m->nodes[node], b.pods, b.n, (int64_t)(p->cores[node] * 1000), 1);
        if (p->second % 15 == 0) {
            run_round(m, p, node, true);
            m->prices[node] += (m->nodes[node].price.shadow_price - m->prices[node]) / 40;
        } else if (p->second % 2 == 0)
            run_round(m, p, node, false);
    }
}

/* ---- all of them */

static const struct market_policy ours = { "flyball", "the market, with limitOvercommit",
                                           start_overcommitted, run_market, stop_market };
static const struct market_policy moving = { "flyball-moves",
                                             "the same, and recommended moves are followed",
                                             start_moving, run_market, stop_market };
static const struct market_policy strict = { "flyball-strict", "the market, limitOvercommit 1",
                                             start_strict, run_market, stop_market };

static const struct market_policy *const all[] = {
    &market_policy_static,
    &market_policy_vpa,
    &market_policy_autopilot,
    &market_policy_mbcas,
    &strict,
    &ours,
    &moving,
    &market_policy_unlimited,
};

const struct market_policy *plant_policy_at(size_t i)
{
    return i < countof(all) ? all[i] : NULL;
}

const struct market_policy *plant_policy_find(str name)
{
    for (size_t i = 0; i < countof(all); i++)
        if (str_eqc(name, all[i]->name))
            return all[i];
    return NULL;
}

struct plant_score plant_simulate(const struct market_workload *workload,
                                  const struct market_policy *policy, uint64_t seed, double system)
{
    struct plant *p = mem_zero(1, sizeof(*p));
    plant_init(p, seed);
    workload->build(p);
    p->system = system;
    void *state = policy->start ? policy->start(p, workload->seconds, seed) : NULL;
    for (int second = 0; second < workload->seconds; second++) {
        plant_run_second(p);
        if (policy->on_second)
            policy->on_second(state, p);
    }
    struct plant_score score = plant_score(p);
    if (policy->stop)
        policy->stop(state);
    free(p);
    return score;
}
