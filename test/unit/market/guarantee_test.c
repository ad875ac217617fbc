/* Properties of the market's rules on random nodes: what is promised to every pod holds whatever the
 * others ask for. */
#include "tap.h"

#include "base/clock.h"
#include "base/random.h"
#include "market/limit_core.h"
#include "market/request_core.h"
#include "market/round_core.h"

enum { NODES = 10000, PODS_MAX = 24 };

struct node {
    struct floor_rules rules;
    struct floor_pod pods[PODS_MAX + 1];
    size_t n;
};

static int64_t random_between(struct random *r, int64_t low, int64_t high)
{
    return low + (int64_t)random_below(r, (uint32_t)(high - low + 1));
}

static bool one_in(struct random *r, uint32_t n)
{
    return random_below(r, n) == 0;
}

static struct node random_node(struct random *r)
{
    struct node node = { .rules = { .capacity_milli = random_between(r, 0, 16000),
                                    .baseline_milli = random_between(r, 10, 300),
                                    .absolute_min_milli = 10,
                                    .max_share = (double)random_between(r, 0, 100) / 100 } };
    node.n = (size_t)random_between(r, 1, PODS_MAX);
    for (size_t i = 0; i < node.n; i++)
        node.pods[i] = (struct floor_pod){
            .min_milli = one_in(r, 3) ? random_between(r, 1, 20000) : 0,
            .max_milli = one_in(r, 4) ? random_between(r, 1, 4000) : 0,
            .original_limit_milli = one_in(r, 4) ? 0 : random_between(r, 10, 4000),
            .held_milli = one_in(r, 4) ? random_between(r, 1, 2000) : 0,
            .boost_milli = one_in(r, 4) ? random_between(r, 1, 6000) : 0,
            .weight = (double)random_between(r, 1, 40) / 10,
        };
    return node;
}

static struct floor_result guarantee(struct node *node)
{
    auto_arena struct arena a = { 0 };
    struct clear_scratch scratch = { 0 };
    struct floor_result r = floor_guarantee(&node->rules, node->pods, node->n, &scratch, &a);
    clear_scratch_done(&scratch);
    return r;
}

/* No pod is below its baseline while the baselines fit, and guarantees never exceed the node. */
static void guarantees_fit_the_node(void)
{
    struct random r;
    random_init(&r, 1, 1);
    size_t fits = 0, bad = 0;
    for (int k = 0; k < NODES; k++) {
        struct node node = random_node(&r);
        struct floor_result result = guarantee(&node);
        int64_t sum = 0, overload = 0, baselines = 0;
        for (size_t i = 0; i < node.n; i++) {
            sum += node.pods[i].guaranteed_milli;
            overload += node.pods[i].overload_milli;
            baselines += node.pods[i].baseline_milli;
            bad += node.pods[i].guaranteed_milli < node.pods[i].baseline_milli;
            bad += node.pods[i].overload_milli > node.pods[i].baseline_milli;
        }
        fits += !result.overloaded;
        bad += result.overloaded != (baselines > node.rules.capacity_milli);
        bad += result.overloaded ? overload != node.rules.capacity_milli
                                 : sum + result.room_milli != node.rules.capacity_milli;
    }
    EQ_INT(bad, 0);
    OK(fits > NODES / 4 && fits < NODES);
}

/* A pod that asks for everything takes from others what is above their baseline at most. */
static void a_greedy_pod_takes_no_baseline(void)
{
    struct random r;
    random_init(&r, 2, 1);
    size_t bad = 0, fits = 0;
    for (int k = 0; k < NODES; k++) {
        struct node node = random_node(&r);
        node.pods[node.n++] = (struct floor_pod){ .min_milli = 1000000,
                                                  .original_limit_milli = 1000000,
                                                  .held_milli = 1000000,
                                                  .boost_milli = 1000000,
                                                  .weight = 100 };
        struct floor_result result = guarantee(&node);
        fits += !result.overloaded;
        for (size_t i = 0; i + 1 < node.n && !result.overloaded; i++)
            bad += node.pods[i].guaranteed_milli < node.pods[i].baseline_milli;
    }
    EQ_INT(bad, 0);
    OK(fits > NODES / 4);
}

/* The price, lambda and the mode agree: 0 exactly when no pod is short. */
static void the_price_is_zero_exactly_when_nobody_is_short(void)
{
    struct random r;
    random_init(&r, 3, 1);
    size_t bad = 0, congested = 0;
    struct clear_scratch scratch = { 0 };
    for (int k = 0; k < NODES; k++) {
        struct bid bids[PODS_MAX];
        int64_t x[PODS_MAX], capacity = random_between(&r, 1, 20000);
        size_t n = (size_t)random_between(&r, 1, PODS_MAX);
        for (size_t i = 0; i < n; i++) {
            int64_t min = random_between(&r, 0, 400), max = min + random_between(&r, 0, 1500);
            bids[i] = (struct bid){ max, min, max, (double)random_between(&r, 1, 40) / 10 };
        }
        struct clearing c = market_clear(capacity, bids, n, &scratch, x);
        struct price p = price_of(capacity, bids, n, &c, x);
        bool is_short = p.rationed > 0;
        congested += is_short;
        bad += is_short != (p.shadow_price > 0);
        bad += is_short != (p.lambda_per_core > 0);
        bad += is_short != (p.mode != MARKET_UNCONGESTED);
    }
    clear_scratch_done(&scratch);
    EQ_INT(bad, 0);
    OK(congested > NODES / 4 && congested < NODES);
}

/* Requests stay within what the node can allocate, unless they were above it before. */
static void requests_fit_the_node(void)
{
    struct random r;
    random_init(&r, 4, 1);
    size_t bad = 0, deferred = 0;
    struct clear_scratch scratch = { 0 };
    for (int k = 0; k < NODES; k++) {
        auto_arena struct arena a = { 0 };
        struct request_pod pods[PODS_MAX];
        size_t n = (size_t)random_between(&r, 1, PODS_MAX);
        int64_t allocatable = random_between(&r, 0, 12000), before = 0, after = 0;
        for (size_t i = 0; i < n; i++) {
            int64_t limit = random_between(&r, 2, 2000);
            pods[i] =
                (struct request_pod){ .share_milli = random_between(&r, 0, 1500),
                                      .limit_milli = limit,
                                      .request_milli = random_between(&r, 1, 1500),
                                      .held_milli = one_in(&r, 5) ? random_between(&r, 1, 900) : 0,
                                      .since_s = random_between(&r, 0, 120),
                                      .writable = !one_in(&r, 4),
                                      .with_limit = one_in(&r, 3) };
            before += pods[i].request_milli;
        }
        int64_t room = request_settle(allocatable, pods, n, &scratch, &a);
        for (size_t i = 0; i < n; i++) {
            after += pods[i].request_milli;
            deferred += pods[i].reason == REQUEST_DEFERRED;
            bad += pods[i].writable && pods[i].request_milli >= pods[i].limit_milli;
        }
        bad += after > MAX(allocatable, before) || room != allocatable - after;
    }
    clear_scratch_done(&scratch);
    EQ_INT(bad, 0);
    OK(deferred > 100);
}

/* ---- whole rounds */

struct world {
    struct market_config config;
    struct market_pod_rules rules;
    struct market_pod pods[PODS_MAX];
    struct market_pod *list[PODS_MAX];
    int64_t limits[PODS_MAX], requests[PODS_MAX];
    size_t n;
    struct market_node node;
    struct clear_scratch scratch;
    int64_t now_ns;
};

static void world_init(struct world *w, size_t n, double overcommit)
{
    *w = (struct world){ .config = market_config_default(MARKET_DEFAULTS), .n = n };
    w->config.limit_overcommit = overcommit;
    w->rules = market_pod_rules_from(&w->config);
    for (size_t i = 0; i < n; i++) {
        market_pod_init(&w->pods[i], &w->config, 1, i);
        w->list[i] = &w->pods[i];
    }
}

static void world_done(struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        market_pod_done(&w->pods[i]);
    clear_scratch_done(&w->scratch);
}

/* One slow window in which pod i uses `used[i]` millicores; then the round, applied at once. */
static struct clearing world_round(struct world *w, int64_t capacity, const int64_t *used)
{
    auto_arena struct arena a = { 0 };
    for (int second = 0; second < 16; second++) {
        w->now_ns += NS_PER_S;
        for (size_t i = 0; i < w->n; i++) {
            struct demand_cpu_stat stat = w->pods[i].last;
            int64_t limit = MAX((int64_t)w->pods[i].limit_milli, INT64_C(1));
            stat.usage_usec += MIN(used[i], limit) * 1000;
            stat.nr_periods += 10;
            stat.nr_throttled += used[i] > limit ? 10 : 0;
            stat.throttled_usec += used[i] > limit ? (used[i] - limit) * 1000 : 0;
            market_pod_sample(&w->pods[i], &w->rules, stat, w->now_ns);
            market_pod_sample_pressure(&w->pods[i], 0);
        }
        market_node_sample(&w->node, w->list, w->n, capacity, 1);
    }
    struct round round = { capacity, w->list, w->n, w->now_ns, &w->scratch, &a, &w->node, 0 };
    struct clearing c = market_slow_round(&round, &w->rules, w->limits, w->requests);
    for (size_t i = 0; i < w->n; i++)
        market_pod_set_limit(&w->pods[i], w->limits[i], w->requests[i]);
    return c;
}

/* One annotation must not starve the neighbors: it did, down to 14 millicores each. */
static void min_cpu_of_ten_cores_starves_nobody(void)
{
    for (int overcommit = 1; overcommit <= 2; overcommit++) {
        struct world w;
        int64_t used[6] = { 300, 260, 260, 260, 260, 260 };
        world_init(&w, 6, overcommit);
        w.pods[0].min_milli = 10000;
        for (size_t i = 0; i < 6; i++) {
            w.pods[i].original_limit_milli = i ? 300 : 500;
            market_pod_set_limit(&w.pods[i], i ? 300 : 500, i ? 100 : 200);
        }
        for (int k = 0; k < 20; k++)
            world_round(&w, 1800, used);
        for (size_t i = 0; i < 6; i++) {
            OK(w.limits[i] >= 250);
            OK(w.requests[i] < w.limits[i]);
        }
        EQ_INT(w.pods[0].guaranteed_milli, 500);
        OK(w.pods[0].problems & 1u << FLOOR_MIN_ABOVE_ORIGINAL_LIMIT);
        world_done(&w);
    }
}

static void throttled_pods_have_a_price(void)
{
    struct world w;
    int64_t used[3] = { 1500, 1500, 1500 };
    world_init(&w, 3, 1);
    for (size_t i = 0; i < 3; i++)
        market_pod_set_limit(&w.pods[i], 300, 270);
    struct clearing c = { 0 };
    for (int k = 0; k < 30; k++)
        c = world_round(&w, 1800, used);
    OK(c.price > 0 && c.lambda > 0);
    EQ_INT(c.mode, MARKET_CONGESTED);
    EQ_INT(w.node.published.mode, MARKET_CONGESTED);
    c = world_round(&w, 9000, used);
    OK(c.price == 0 && c.lambda == 0 && c.mode == MARKET_UNCONGESTED);
    world_done(&w);
}

/* Kappa changes once per round: it rises while idle CPU is wanted. */
static void kappa_rises_while_idle_cpu_is_wanted(void)
{
    struct world w;
    int64_t used[3] = { 1500, 10, 10 };
    world_init(&w, 3, 2.5);
    for (size_t i = 0; i < 3; i++)
        market_pod_set_limit(&w.pods[i], 600, 300);
    world_round(&w, 1000, used);
    EQ_INT(w.node.kappa.kappa_milli, 1800); /* what the limits add up to: nothing is cut */
    for (int k = 0; k < 4; k++)
        world_round(&w, 1000, used);
    EQ_INT(w.node.kappa.reason, OVERCOMMIT_RISE);
    EQ_INT(w.node.kappa.kappa_milli, 2000);
    world_done(&w);
}

/* Random nodes over several rounds: sums, requests below limits, guarantees kept. */
static void rounds_keep_their_promises(void)
{
    struct random r;
    random_init(&r, 5, 1);
    size_t bad = 0;
    for (int k = 0; k < NODES / 50; k++) {
        struct world w;
        int64_t used[PODS_MAX], capacity = random_between(&r, 1500, 12000), before = 0;
        world_init(&w, (size_t)random_between(&r, 1, 12), k % 2 ? 2.5 : 1);
        for (size_t i = 0; i < w.n; i++) {
            int64_t limit = random_between(&r, 50, 1000);
            used[i] = random_between(&r, 0, 1500);
            w.pods[i].min_milli = one_in(&r, 4) ? (int32_t)random_between(&r, 1, 20000) : 0;
            w.pods[i].max_milli = one_in(&r, 4) ? (int32_t)random_between(&r, 200, 2000) : 0;
            w.pods[i].original_limit_milli = (int32_t)limit;
            market_pod_set_limit(&w.pods[i], limit, limit_request(limit));
            before += w.pods[i].request_milli;
        }
        for (int round = 0; round < 12; round++) {
            world_round(&w, capacity, used);
            int64_t limits = 0, requests = 0;
            for (size_t i = 0; i < w.n; i++) {
                limits += w.limits[i];
                requests += w.requests[i];
                bad += w.requests[i] >= w.limits[i];
                bad += w.limits[i] < w.pods[i].guaranteed_milli;
            }
            bad += requests > MAX(capacity, before);
            int64_t most = capacity + w.node.lent_milli;
            bad += k % 2 == 0 && round > 2 && limits > MAX(most + most / 10, before * 10 / 9 + 12);
        }
        world_done(&w);
    }
    EQ_INT(bad, 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(guarantees_fit_the_node),
                                        TAP(a_greedy_pod_takes_no_baseline),
                                        TAP(the_price_is_zero_exactly_when_nobody_is_short),
                                        TAP(requests_fit_the_node),
                                        TAP(min_cpu_of_ten_cores_starves_nobody),
                                        TAP(throttled_pods_have_a_price),
                                        TAP(kappa_rises_while_idle_cpu_is_wanted),
                                        TAP(rounds_keep_their_promises),
                                        { 0 } });
}
