/* The node's side of a round: see node_core.h.
 *
 *      market_node_guarantee()         baseline, held, min-cpu, boost -> g
 *         |
 *         v
 *      market_node_limits_capacity()   pressure -> kappa -> K     or     sleepers -> C + lent
 *         |
 *         v
 *      market_node_share()             C divided by need; requests will carry it
 *         |
 *         v
 *      market_node_price()             honest demand against C: mode, shadow price, lambda
 *         |
 *         v
 *      (limits: round_core.c)
 *         |
 *         v
 *      market_node_requests()          shares -> requests, within what the node can allocate
 *
 * The invariants: guarantees add up to at most C unless the baselines alone do not; shares add up
 * to at most C; requests add up to at most what can be allocated, or to what they were before. The
 * price never depends on kappa: it is what the node lacks, not what limits may borrow. */
#include "node_core.h"

#include "limit_core.h"
#include "milli.h"
#include "request_core.h"

#include "../base/clock.h"

#include <math.h>

enum { WINDOWS_BEFORE_SLEEP = 8, WRITE_APART_S = 5 };

static const double utilization_s = 60; /* time constant */

static int64_t allocatable(const struct round *r)
{
    return r->allocatable_milli > 0 ? r->allocatable_milli : r->capacity_milli;
}

static double weight_of(const struct market_pod *pod)
{
    double weight = pod->weight > 0 ? (double)pod->weight : 1;
    return pod->elastic ? weight / 10 : weight;
}

/* ---- once a second */

void market_node_sample(struct market_node *node, struct market_pod *const *pods, size_t n,
                        int64_t cores_milli, double seconds)
{
    int64_t used = 0, asleep = 0;
    for (size_t i = 0; i < n; i++) {
        used += pods[i]->second_milli;
        asleep += pods[i]->asleep ? pods[i]->second_milli : 0;
        node->sees_pressure |= pods[i]->waited_usec >= 0;
    }
    node->asleep_milli = MAX(node->asleep_milli, asleep);
    double now = cores_milli > 0 ? (double)used / (double)cores_milli : 0;
    double part = 1 - exp(-MAX(seconds, 0.0) / utilization_s);
    node->utilization += part * (now - node->utilization);
}

/* ---- guarantees */

void market_node_guarantee(const struct round *r, const struct market_pod_rules *rules)
{
    struct floor_pod *floors = arena_array(r->arena, r->n, sizeof(*floors));
    for (size_t i = 0; i < r->n; i++) {
        const struct market_pod *pod = r->pods[i];
        floors[i] = (struct floor_pod){ .min_milli = pod->min_milli,
                                        .max_milli = pod->max_milli,
                                        .original_limit_milli = pod->original_limit_milli,
                                        .held_milli = pod->held_milli,
                                        .boost_milli = pod->boost_milli,
                                        .weight = weight_of(pod),
                                        .problems = pod->problems & FLOOR_ANNOTATION_PROBLEMS };
    }
    struct floor_rules floor = { .capacity_milli = r->capacity_milli,
                                 .baseline_milli = rules->agent.baseline_milli,
                                 .absolute_min_milli = rules->agent.absolute_min_milli,
                                 .max_share = rules->max_min_share };
    struct floor_result result = floor_guarantee(&floor, floors, r->n, r->scratch, r->arena);
    r->node->floor = result;
    r->node->guaranteed_milli = 0;
    for (size_t i = 0; i < r->n; i++) {
        int64_t kept = result.overloaded ? floors[i].overload_milli : floors[i].guaranteed_milli;
        r->pods[i]->guaranteed_milli = milli32(MAX(kept, INT64_C(1)));
        r->pods[i]->problems = (uint16_t)floors[i].problems;
        r->node->guaranteed_milli += kept;
    }
}

/* ---- what limits may add up to */

/* A pod that needs less than its baseline, and did so for long, lends what it does not use. */
static bool is_asleep(const struct market_pod *pod, const struct market_pod_rules *rules)
{
    int64_t baseline = MAX(rules->agent.baseline_milli, rules->agent.absolute_min_milli);
    if (pod->max_milli > 0)
        baseline = MIN(baseline, (int64_t)pod->max_milli);
    return 11 * market_pod_need(pod) <= 10 * baseline && pod->limit_milli <= baseline &&
           pod->guaranteed_milli <= baseline && !pod->held_milli &&
           pod->peak_n >= WINDOWS_BEFORE_SLEEP;
}

static int64_t lend_baselines(const struct round *r, const struct market_pod_rules *rules)
{
    struct market_node *node = r->node;
    int64_t baselines = 0, peak = 0;
    node->asleep_peaks[node->asleep_at] = node->asleep_milli;
    node->asleep_at = (uint8_t)((node->asleep_at + 1) % MARKET_NODE_WINDOWS);
    node->asleep_n = (uint8_t)MIN(node->asleep_n + 1, MARKET_NODE_WINDOWS);
    node->asleep_milli = 0;
    for (size_t i = 0; i < node->asleep_n; i++)
        peak = MAX(peak, node->asleep_peaks[i]);
    for (size_t i = 0; i < r->n; i++) {
        struct market_pod *pod = r->pods[i];
        bool slept = pod->asleep; /* what it used is in the peaks only if it slept before */
        pod->asleep = is_asleep(pod, rules);
        baselines += pod->asleep && slept ? pod->guaranteed_milli : 0;
    }
    return MAX(baselines - (115 * peak + 99) / 100, INT64_C(0));
}

static int64_t overcommit(const struct round *r, const struct market_pod_rules *rules)
{
    struct market_node *node = r->node;
    struct overcommit_seconds *seconds = arena_array(r->arena, r->n, sizeof(*seconds));
    struct overcommit_state state = { .kappa_milli = node->kappa.kappa_milli,
                                      .utilization_ppm = (int64_t)(node->utilization * 1e6),
                                      .wanted_milli = node->wanted_milli,
                                      .since_fall_s = INT32_MAX };
    for (size_t i = 0; i < r->n; i++) {
        struct market_pod *pod = r->pods[i];
        seconds[i] = (struct overcommit_seconds){ pod->seconds_counted, pod->seconds_waited };
        pod->seconds_counted = pod->seconds_waited = 0;
        state.limits_milli += pod->limit_milli;
    }
    node->worst = overcommit_add_window(&node->pressure, seconds, r->n).worst;
    state.pressure = node->pressure;
    if (node->fell_ns)
        state.since_fall_s = (r->now_ns - node->fell_ns) / NS_PER_S;
    node->kappa = overcommit_next(rules->overcommit, !node->sees_pressure,
                                  MAX(r->capacity_milli, INT64_C(1)), &state);
    if (node->kappa.reason == OVERCOMMIT_FALL)
        node->fell_ns = r->now_ns;
    node->sees_pressure = false;
    return node->kappa.limits_capacity_milli;
}

int64_t market_node_limits_capacity(const struct round *r, const struct market_pod_rules *rules)
{
    r->node->capacity_milli = r->capacity_milli;
    r->node->lent_milli = 0;
    if (rules->overcommit > 1)
        return overcommit(r, rules);
    r->node->kappa = (struct overcommit_kappa){ 1000, r->capacity_milli, OVERCOMMIT_OFF };
    if (rules->lend_baseline && !r->node->floor.overloaded)
        r->node->lent_milli = lend_baselines(r, rules);
    return r->capacity_milli + r->node->lent_milli;
}

/* ---- shares */

/* What the pod must have of the capacity, if the needs of all pods fit. */
static int64_t share_need(const struct market_pod *pod)
{
    int64_t need = pod->elastic ? 0 : market_pod_need(pod);
    if (pod->max_milli > 0)
        need = MIN(need, (int64_t)pod->max_milli);
    return MAX(need, (int64_t)pod->guaranteed_milli);
}

void market_node_share(const struct round *r, const struct market_pod_rules *rules)
{
    if (!(rules->overcommit > 1) || r->node->floor.overloaded) {
        bool on = rules->overcommit > 1; /* under overload, the guarantees are the shares */
        for (size_t i = 0; i < r->n; i++)
            r->pods[i]->share_milli = on ? r->pods[i]->guaranteed_milli : 0;
        return;
    }
    struct bid *bids = arena_array(r->arena, r->n, sizeof(*bids));
    int64_t *x = arena_array(r->arena, r->n, sizeof(*x)), needs = 0;
    for (size_t i = 0; i < r->n; i++)
        needs += share_need(r->pods[i]);
    for (size_t i = 0; i < r->n; i++) {
        const struct market_pod *pod = r->pods[i];
        int64_t need = share_need(pod), guaranteed = pod->guaranteed_milli;
        int64_t headroom = pod->elastic ? 0 : 11 * market_pod_need(pod) / 10;
        if (pod->max_milli > 0)
            headroom = MIN(headroom, (int64_t)pod->max_milli);
        bool fits = needs <= r->capacity_milli;
        bids[i] = (struct bid){ .min_milli = fits ? need : guaranteed,
                                .max_milli = fits ? MAX(headroom, need) : need,
                                .weight = weight_of(pod) };
    }
    market_clear(MIN(r->capacity_milli, allocatable(r)), bids, r->n, r->scratch, x);
    for (size_t i = 0; i < r->n; i++)
        r->pods[i]->share_milli = milli32(x[i]);
}

/* ---- prices */

struct clearing market_node_price(const struct round *r, const struct market_pod_rules *rules)
{
    struct bid *bids = arena_array(r->arena, r->n, sizeof(*bids));
    int64_t *x = arena_array(r->arena, r->n, sizeof(*x));
    for (size_t i = 0; i < r->n; i++) {
        int64_t demand = market_pod_honest_demand(r->pods[i], rules);
        bids[i] = (struct bid){ .demand_milli = demand,
                                .min_milli = r->pods[i]->guaranteed_milli,
                                .max_milli = demand,
                                .weight = weight_of(r->pods[i]) };
    }
    struct clearing clearing = market_clear(r->capacity_milli, bids, r->n, r->scratch, x);
    struct price price = price_of(r->capacity_milli, bids, r->n, &clearing, x);
    if (r->node->floor
            .overloaded) { /* the guarantees were cut to fit, so the bids do not show it */
        price.mode = MARKET_OVERLOADED;
        price.lambda_per_core = INFINITY;
    }
    clearing.price = price.shadow_price;
    clearing.lambda = price.lambda_per_core / 1000;
    clearing.mode = price.mode;
    clearing.demand_milli = price.demand_milli;
    struct market_node *node = r->node;
    int64_t now_s = r->now_ns / NS_PER_S;
    node->round++;
    node->price = price;
    node->published_now = price_should_publish(&node->published, &price, now_s);
    if (node->published_now)
        node->published = (struct price_published){ .price = price.shadow_price,
                                                    .mode = price.mode,
                                                    .at_s = now_s,
                                                    .round = node->round,
                                                    .is_set = true };
    return clearing;
}

/* ---- requests */

/* What the request should be without overcommit: a fixed part of the limit. Nothing is written for
 * a request alone. */
static int64_t plain_request(const struct market_pod *pod, int64_t limit_milli)
{
    bool is_kept = limit_milli == pod->limit_milli && pod->request_milli > 0;
    return is_kept ? pod->request_milli : limit_request(limit_milli);
}

/* The request that a pod should have, and whether it may change now. */
static struct request_pod make_request(const struct round *r, const struct market_pod_rules *rules,
                                       const struct market_pod *pod, int64_t limit_milli,
                                       bool raised_only)
{
    bool on = rules->overcommit > 1, changes = limit_milli != pod->limit_milli;
    int64_t since_s =
        pod->request_changed_ns ? (r->now_ns - pod->request_changed_ns) / NS_PER_S : INT32_MAX;
    bool is_off = pod->held_request_milli > 0 && pod->held_request_milli != pod->request_milli;
    bool may_change = !raised_only && since_s >= WRITE_APART_S && (on || is_off);
    limit_milli = MAX(limit_milli, INT64_C(2));
    int64_t share = MAX(pod->share_milli, pod->guaranteed_milli);
    if (!pod->guaranteed_milli) /* before its first clearing, the pod keeps its request */
        share = pod->request_milli;
    return (struct request_pod){
        .share_milli = on                    ? share
                       : pod->guaranteed_qos ? limit_milli
                                             : plain_request(pod, limit_milli),
        .limit_milli = limit_milli,
        .request_milli = MAX(pod->request_milli, 1),
        .held_milli = pod->held_request_milli,
        .since_s = since_s,
        .guaranteed = pod->guaranteed_qos,
        .writable = changes || may_change,
        .with_limit = changes || is_off,
    };
}

void market_node_requests(const struct round *r, const struct market_pod_rules *rules,
                          const int64_t *limits, bool raised_only, int64_t *ret_requests)
{
    struct request_pod *pods = arena_array(r->arena, r->n, sizeof(*pods));
    for (size_t i = 0; i < r->n; i++)
        pods[i] = make_request(r, rules, r->pods[i], limits[i], raised_only);
    request_settle(allocatable(r), pods, r->n, r->scratch, r->arena);
    r->node->requests_milli = 0;
    for (size_t i = 0; i < r->n; i++) {
        ret_requests[i] = pods[i].request_milli;
        r->node->requests_milli += ret_requests[i];
    }
}
