/* Families of market. nash, bid, qlearn, smoothing, faststep, split and the infinite rows of reward pin
 * the original and run through compat_core; the others bind the product. */
#include "golden.h"

#include "base/quantity.h"
#include "market/market.h"
#include "market/milli.h"
#include "testbed/vpa_model.h"

#include <math.h>

static const struct tolerance same = { 0, 0 }, close = { 1e-9, 1e-9 };

static int64_t integer(const struct json *o, const char *key)
{
    return json_int(json_get(o, key), 0);
}

static double real_at(const struct json *o, const char *key)
{
    return golden_real(json_get(o, key), 0);
}

/* ---- the market */

static struct bid *read_bids(struct golden *g, const struct json *list)
{
    struct bid *bids = arena_array(g->arena, json_len(list), sizeof(*bids));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *b = json_item(list, i);
        bids[i] = (struct bid){ integer(b, "demand"), integer(b, "min"), integer(b, "max"),
                                real_at(b, "weight") };
    }
    return bids;
}

static void check_allocations(struct golden *g, const int64_t *got, const struct json *want)
{
    for (size_t i = 0; i < json_len(want); i++)
        golden_eq_int(g, "allocation", got[i], json_item(want, i));
}

static void run_nash(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    size_t n = json_len(json_get(in, "bids"));
    struct bid *bids = read_bids(g, json_get(in, "bids"));
    int64_t capacity = integer(in, "capacity"), *x = arena_array(g->arena, n, sizeof(*x));
    market_compat_clear(capacity, bids, n, x);
    check_allocations(g, x, json_get(want, "allocations"));
    golden_eq_real(g, "shadow_price", market_price(capacity, bids, n),
                   json_get(want, "shadow_price"), close);
    golden_eq_str(g, "mode", str_c(market_mode_name(market_mode(capacity, bids, n))),
                  json_get(want, "mode"));
}

static void run_nash_exact(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    size_t n = json_len(json_get(in, "bids"));
    struct bid *bids = read_bids(g, json_get(in, "bids"));
    int64_t *x = arena_array(g->arena, n, sizeof(*x));
    struct clear_scratch scratch = { 0 };
    struct clearing clearing = market_clear(integer(in, "capacity"), bids, n, &scratch, x);
    clear_scratch_done(&scratch);
    check_allocations(g, x, json_get(want, "allocations"));
    golden_eq_str(g, "kind", clearing.capped ? S("overload_capped") : S("bargain"),
                  json_get(want, "kind"));
    golden_eq_int(g, "total", clearing.total_milli, json_get(want, "total"));
    golden_eq_real(g, "lambda", clearing.lambda, json_get(want, "lambda"), close);
}

/* ---- the agent */

static struct agent_rules read_rules(const struct json *config)
{
    return (struct agent_rules){
        .absolute_min_milli = integer(config, "absolute_min_allocation"),
        .need_headroom = real_at(config, "need_headroom"),
        .want_headroom = real_at(config, "want_headroom"),
        .alpha_down = real_at(config, "alpha_down"),
        .alpha_up = real_at(config, "alpha_up"),
        .idle_decay = real_at(config, "idle_decay_rate"),
        .target_throttling = real_at(config, "target_throttling"),
        .infinite_reward = true,
    };
}

static enum agent_action read_action(const struct json *v)
{
    for (int a = 0; a < AGENT_ACTION_N; a++)
        if (str_eqc(json_text(v), agent_action_name((enum agent_action)a)))
            return (enum agent_action)a;
    return AGENT_ACTION_N;
}

static void check_state(struct golden *g, int state, const struct json *want)
{
    char name[24];
    agent_state_name(state, name);
    golden_eq_str(g, "state", str_c(name), want);
}

static void run_state(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input");
    check_state(g,
                agent_state(integer(in, "usage_milli"), real_at(in, "throttling"),
                            integer(in, "allocation_milli")),
                json_at(c, "expected", "state", NULL));
}

static void run_reward(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_at(c, "expected", "reward", NULL);
    struct agent_rules rules = { .infinite_reward = json_is(want, JSON_STR) };
    struct agent_outcome o = { integer(in, "usage_milli"), integer(in, "allocation_milli"),
                               real_at(in, "throttling"),
                               json_bool(json_get(in, "slo_violation"), false) };
    golden_eq_real(g, "reward", agent_reward(&rules, o, integer(in, "prev_allocation_milli")), want,
                   same);
}

static void run_action(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *values = json_get(in, "q");
    double q[AGENT_ACTION_N];
    for (int a = 0; a < AGENT_ACTION_N; a++)
        q[a] = real_at(values, agent_action_name((enum agent_action)a));
    golden_eq_str(g, "action",
                  str_c(agent_action_name(agent_greedy(q, real_at(in, "shadow_price")))),
                  json_at(c, "expected", "action", NULL));
}

static void check_bid(struct golden *g, struct bid bid, const struct json *want)
{
    golden_eq_int(g, "demand", bid.demand_milli, json_get(want, "demand"));
    golden_eq_real(g, "weight", bid.weight, json_get(want, "weight"), same);
    golden_eq_int(g, "min", bid.min_milli, json_get(want, "min"));
    golden_eq_int(g, "max", bid.max_milli, json_get(want, "max"));
}

static void run_bid(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    struct agent_rules rules = read_rules(json_get(in, "config"));
    rules.cost_efficiency = str_eqc(json_text(json_get(in, "mode")), "cost_efficiency");
    struct compat_agent own;
    struct agent *agent = &own.agent;
    market_compat_agent_init(&own, 0, 1);
    agent->usage_milli = (int32_t)integer(in, "usage_milli");
    agent->throttling = real_at(in, "throttling");
    agent->allocation_milli = (int32_t)integer(in, "allocation_milli");
    own.smoothed_milli = integer(in, "smoothed_demand");
    const struct json *history = json_get(in, "throttling_history");
    for (size_t i = 0; i < json_len(history) && i < COMPAT_HISTORY; i++)
        own.history[own.history_n++] = json_real(json_item(history, i), 0);
    struct bid bid = market_compat_bid(&own, &rules, read_action(json_get(in, "action")),
                                       real_at(in, "shadow_price"),
                                       json_bool(json_get(in, "in_grace_period"), false));
    check_bid(g, bid, want);
    check_state(g, agent_state(agent->usage_milli, agent->throttling, agent->allocation_milli),
                json_get(want, "state"));
    if (json_get(want, "smoothed_demand"))
        golden_eq_int(g, "smoothed_demand", own.smoothed_milli, json_get(want, "smoothed_demand"));
    agent_done(agent);
}

static struct json *printed_table(struct golden *g, const struct agent *agent)
{
    struct json *table = json_new_obj(g->arena);
    for (int s = 0; s < AGENT_STATE_N; s++) {
        const struct agent_row *at = agent_row(agent, s);
        if (at < agent->rows || at >= agent->rows + agent->row_n)
            continue;
        char name[24];
        agent_state_name(s, name);
        struct json *row = json_new_obj(g->arena);
        for (int a = 0; a < AGENT_ACTION_N; a++) {
            double q = at->q[a];
            if (at->known & 1 << a)
                json_set(g->arena, row, str_c(agent_action_name((enum agent_action)a)),
                         isfinite(q) ? json_new_real(g->arena, q)
                         : isnan(q)  ? json_new_str(g->arena, S("NaN"))
                         : q > 0     ? json_new_str(g->arena, S("+Inf"))
                                     : json_new_str(g->arena, S("-Inf")));
        }
        json_set(g->arena, table, str_c(name), row);
    }
    return table;
}

static void run_qlearn(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *steps = json_get(in, "steps");
    struct agent_rules rules = {
        .learning_rate = real_at(in, "alpha"),
        .discount = real_at(in, "gamma"),
        .absolute_min_milli = 10,
        .need_headroom = 0.15,
        .want_headroom = 0.10,
        .infinite_reward = true,
    };
    struct compat_agent own;
    struct agent *agent = &own.agent;
    market_compat_agent_init(&own, real_at(in, "epsilon0"), 1);
    agent->allocation_milli = (int32_t)integer(in, "initial_allocation");
    for (size_t i = 0; i < json_len(steps); i++) {
        const struct json *step = json_item(steps, i);
        const struct json *want = json_item(json_at(c, "expected", "steps", NULL), i);
        struct agent_outcome o = { integer(step, "usage_milli"), integer(step, "allocation_milli"),
                                   real_at(step, "throttling"),
                                   json_bool(json_get(step, "slo_violation"), false) };
        double price = real_at(step, "shadow_price");
        market_compat_learn(&own, &rules, o);
        check_bid(g, market_compat_bid(&own, &rules, agent_choose(agent, 0, false), 0, false),
                  json_get(want, "bid_first_pass"));
        enum agent_action action = agent_choose(agent, price, false);
        check_bid(g, market_compat_bid(&own, &rules, action, price, false), json_get(want, "bid"));
        golden_eq_str(g, "action", str_c(agent_action_name(action)), json_get(want, "action"));
        check_state(g, agent->state, json_get(want, "state"));
        golden_eq_real(g, "epsilon", agent->epsilon, json_get(want, "epsilon"), close);
        golden_eq_json(g, "q", printed_table(g, agent), json_get(want, "q"));
    }
    agent_done(agent);
}

/* ---- limits */

static void check_write(struct golden *g, struct compat_write w, const struct compat_pod *pod,
                        const struct json *want, const char *flag)
{
    golden_eq_bool(g, flag, w.written, json_get(want, flag));
    golden_eq_int(g, "last_allocation", pod->last_allocation, json_get(want, "last_allocation"));
    if (!w.written)
        return;
    golden_eq_str(g, "limit", arena_printf(g->arena, "%lldm", (long long)w.limit_milli),
                  json_get(want, "limit"));
    golden_eq_str(g, "request", arena_printf(g->arena, "%lldm", (long long)w.request_milli),
                  json_get(want, "request"));
}

static void run_smoothing(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    struct compat_pod pod = { integer(in, "last_allocation"), integer(in, "last_smoothed") };
    struct compat_write w = market_compat_smooth(
        &pod, (struct compat_smoothing){
                  integer(in, "nash_allocation"), integer(in, "pod_limit_container0"),
                  json_bool(json_get(in, "within_30s_of_last_write"), false),
                  real_at(in, "min_change_percent"), integer(in, "absolute_min_allocation") });
    check_write(g, w, &pod, want, "written");
    golden_eq_int(g, "last_smoothed", pod.last_smoothed, json_get(want, "last_smoothed"));
}

static void run_faststep(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    struct compat_pod pod = { .last_allocation = integer(in, "last_allocation") };
    struct demand_window window =
        demand_measure((struct demand_cpu_stat){ 0 },
                       (struct demand_cpu_stat){ .usage_usec = integer(in, "delta_usage_usec"),
                                                 .throttled_usec =
                                                     integer(in, "delta_throttled_usec") },
                       2000000000);
    struct compat_write w =
        market_compat_fast_step(&pod, window.demand, real_at(in, "throttling_threshold"),
                                real_at(in, "fast_step_min"), real_at(in, "fast_step_max"));
    check_write(g, w, &pod, want, "boosted");
}

static int64_t read_milli(struct golden *g, const struct json *v)
{
    int64_t milli = -1;
    err_t e;
    if (json_text(v).n && quantity_parse_milli(json_text(v), &milli, &e))
        golden_ok(g, false, "%s", e.text);
    return milli;
}

static void run_split(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *list = json_get(in, "containers");
    const struct json *want = json_at(c, "expected", "containers", NULL);
    size_t n = json_len(list);
    struct compat_container *current = arena_array(g->arena, n, sizeof(*current));
    struct compat_container *got = arena_array(g->arena, n, sizeof(*got));
    for (size_t i = 0; i < n; i++) {
        current[i].limit_milli = read_milli(g, json_get(json_item(list, i), "limit_cpu"));
        current[i].request_milli = read_milli(g, json_get(json_item(list, i), "request_cpu"));
    }
    market_compat_split(integer(in, "desired_limit_milli"), integer(in, "desired_request_milli"),
                        current, n, got);
    for (size_t i = 0; i < n; i++) {
        const struct json *w = json_item(want, i);
        golden_ok(g, got[i].limit_milli == read_milli(g, json_get(w, "limit_cpu")),
                  "limit of %zu is %lld", i, (long long)got[i].limit_milli);
        golden_ok(g, got[i].request_milli == read_milli(g, json_get(w, "request_cpu")),
                  "request of %zu is %lld", i, (long long)got[i].request_milli);
    }
}

/* ---- resizing */

static void run_safety(struct golden *g, const struct json *c)
{
    static const char *const names[] = { [STEP_OK] = "ok",
                                         [STEP_COOLDOWN] = "cooldown",
                                         [STEP_TOO_LARGE] = "step_size",
                                         [STEP_NOT_POSITIVE] = "step_size" };
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    int64_t ago = integer(in, "last_applied_seconds_ago"), current = 0, desired = 0;
    struct resize_step step = resize_step_check(g->arena, 1, 1, ago < 0 ? -1 : ago * 1000000000);
    bool readable =
        quantity_parse_milli(json_text(json_get(in, "current_limit")), &current, NULL) == 0 &&
        quantity_parse_milli(json_text(json_get(in, "desired_limit")), &desired, NULL) == 0;
    if (step.verdict != STEP_COOLDOWN && readable)
        step = resize_step_check(g->arena, current, desired, -1);
    const char *got = step.verdict == STEP_COOLDOWN ? "cooldown"
                      : readable                    ? names[step.verdict]
                                                    : "parse";
    golden_eq_str(g, "result", str_c(got), json_get(want, "result"));
    if (!strcmp(got, "step_size"))
        golden_eq_str(g, "message", step.reason, json_get(want, "message"));
}

static void run_qos(struct golden *g, const struct json *c)
{
    const struct json *list = json_at(c, "input", "containers", NULL);
    struct json *containers = json_new_arr(g->arena);
    for (size_t i = 0; i < json_len(list); i++) {
        struct json *container = json_new_obj(g->arena);
        json_set(g->arena, container, S("resources"), json_item(list, i));
        json_push(g->arena, containers, container);
    }
    golden_eq_str(g, "kubernetes_qos", str_c(resize_qos_name(resize_qos_class(containers))),
                  json_at(c, "expected", "kubernetes_qos", NULL));
}

/* ---- counters */

static void check_stat(struct golden *g, struct demand_cpu_stat stat, const struct json *want)
{
    golden_eq_int(g, "usage_usec", stat.usage_usec, json_get(want, "usage_usec"));
    golden_eq_int(g, "throttled_usec", stat.throttled_usec, json_get(want, "throttled_usec"));
}

static void run_demand(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    struct demand_cpu_stat first = demand_cpu_stat_parse(json_text(json_get(in, "stat_first")));
    struct demand_cpu_stat second = demand_cpu_stat_parse(json_text(json_get(in, "stat_second")));
    check_stat(g, first, json_get(want, "parsed_first"));
    check_stat(g, second, json_get(want, "parsed_second"));
    int64_t elapsed = integer(in, "delta_time_ns");
    if (elapsed <= 0)
        elapsed = (int64_t)(real_at(in, "fallback_interval_s") * 1e9);
    struct demand_window w = demand_measure(first, second, elapsed);
    golden_eq_real(g, "demand", w.demand, json_at(want, "second", "demand", NULL), same);
    golden_eq_int(g, "usage_milli", w.usage_milli, json_at(want, "second", "usage_milli", NULL));
}

/* ---- what follows from the seed itself */

static void seed_nash(struct golden *g, const struct json *in, const struct json *want)
{
    const struct json *weights = json_get(in, "weights");
    size_t n = json_len(weights);
    struct bid *bids = arena_array(g->arena, n, sizeof(*bids));
    for (size_t i = 0; i < n; i++)
        bids[i] = (struct bid){ .min_milli = json_int(json_item(json_get(in, "mins"), i), 0),
                                .max_milli = json_int(json_item(json_get(in, "maxs"), i), 0),
                                .weight = json_real(json_item(weights, i), 0) };
    int64_t *x = arena_array(g->arena, n, sizeof(*x));
    struct clear_scratch scratch = { 0 };
    market_clear(integer(in, "capacity"), bids, n, &scratch, x);
    clear_scratch_done(&scratch);
    check_allocations(g, x, json_get(want, "allocations"));
}

static void seed_price(struct golden *g, const struct json *in, const struct json *want)
{
    const struct json *weights = json_get(in, "weights");
    size_t n = json_len(weights);
    struct bid *bids = arena_array(g->arena, n, sizeof(*bids));
    for (size_t i = 0; i < n; i++)
        bids[i] = (struct bid){ .demand_milli = json_int(json_item(json_get(in, "demands"), i), 0),
                                .weight = json_real(json_item(weights, i), 0) };
    golden_eq_real(g, "price", market_price(integer(in, "capacity"), bids, n),
                   json_get(want, "price"), close);
}

static void seed_q_update(struct golden *g, const struct json *in, const struct json *want)
{
    struct agent_rules rules = { .learning_rate = real_at(in, "alpha"),
                                 .discount = real_at(in, "gamma") };
    struct agent agent;
    agent_init(&agent, 0, 1);
    agent.state = agent.action = 0;
    agent_add_row(&agent, 0)->q[0] = real_at(in, "q");
    /* an outcome that earns exactly the reward: enough, unthrottled (10 + 5), and 5 lost by change */
    struct agent_outcome o = { .usage_milli = 100, .allocation_milli = 170, .throttling = 0 };
    double reward = agent_reward(&rules, o, agent.allocation_milli);
    agent_learn(&agent, &rules, o);
    if (golden_ok(g, fabs(reward - real_at(in, "reward")) < 1e-9, "the outcome earns %g", reward))
        golden_eq_real(g, "q", agent_row(&agent, 0)->q[0], json_get(want, "q"), close);
    agent_done(&agent);
}

static void seed_reward(struct golden *g, const struct json *in, const struct json *want)
{
    struct agent_outcome o = { integer(in, "usage"), integer(in, "allocation"),
                               real_at(in, "throttling"),
                               json_bool(json_get(in, "slo_violation"), false) };
    struct agent_rules rules = { 0 };
    golden_eq_real(g, "reward", agent_reward(&rules, o, integer(in, "prev_allocation")),
                   json_get(want, "reward"), close);
}

static void run_seed(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    str op = json_text(json_get(in, "op"));
    if (str_eqc(op, "smooth_up")) {
        golden_eq_int(g, "smoothed",
                      milli_round(limit_smooth(real_at(in, "new"), real_at(in, "last"))),
                      json_get(want, "smoothed"));
    } else if (str_eqc(op, "request_from_limit")) {
        golden_eq_int(g, "request", limit_request(integer(in, "limit")), json_get(want, "request"));
    } else if (str_eqc(op, "fast_step")) {
        struct limit_boost_rules rules = { real_at(in, "threshold"), real_at(in, "min"),
                                           real_at(in, "max") };
        int64_t boosted = limit_boost(integer(in, "current"), real_at(in, "throttling"), &rules);
        golden_eq_int(g, "new", boosted, json_get(want, "new"));
        golden_eq_bool(g, "boost", boosted > integer(in, "current"), json_get(want, "boost"));
    } else if (str_eqc(op, "nash")) {
        seed_nash(g, in, want);
    } else if (str_eqc(op, "shadow_price")) {
        seed_price(g, in, want);
    } else if (str_eqc(op, "q_update")) {
        seed_q_update(g, in, want);
    } else if (str_eqc(op, "demand_reduction")) {
        golden_eq_int(g, "demand",
                      agent_price_response(integer(in, "demand"), real_at(in, "price")),
                      json_get(want, "demand"));
    } else if (str_eqc(op, "reward")) {
        seed_reward(g, in, want);
    } else {
        golden_ok(g, false, "unknown op " STR_FMT, STR_ARG(op));
    }
}

/* ---- configuration */

static const char *from_case(void *context, const char *name)
{
    const struct json *v = json_get(context, name);
    return v ? json_text(v).p : NULL;
}

static void check_config(struct golden *g, const struct market_config *config,
                         const struct json *want)
{
    struct json *got = market_config_print(config, g->arena);
    json_each(m, want) {
        const struct json *v = json_get_str(got, m->key);
        if (json_is(v, JSON_REAL))
            golden_eq_real(g, m->key.p, v->real, m->value, same);
        else
            golden_eq_json(g, m->key.p, v, m->value);
    }
}

/* The words after "invalid KEY:" are our own; which key it is, and all else, must agree. */
static void run_config(struct golden *g, const struct json *c)
{
    struct json *data = json_at(c, "input", "configmap_data", NULL);
    const struct json *want = json_get(c, "expected");
    struct market_config config = market_config_default(MARKET_DEFAULTS_COMPAT);
    err_t e = { 0 };
    str expected = json_text(json_get(want, "config_error"));
    bool good = market_config_read_compat(&config, g->arena, data, &e) == 0;
    size_t key = MIN(str_find(expected, S(": ")), expected.n);
    golden_ok(g, good == (expected.n == 0) && str_starts(str_c(e.text), str_upto(expected, key)),
              "config_error: want \"" STR_FMT "\", got \"%s\"", STR_ARG(expected), e.text);
    market_config_read_env_compat(&config, g->arena, from_case, json_at(c, "input", "env", NULL));
    e.text[0] = '\0';
    (void)market_config_check(&config, &e);
    golden_eq_str(g, "validate_error", str_c(e.text), json_get(want, "validate_error"));
    check_config(g, &config, json_get(want, "config"));
}

/* ---- the yardstick */

static void check_amount(struct golden *g, const char *what, struct vpa_amount got,
                         const struct json *want, double slack)
{
    struct tolerance t = { .absolute = slack };
    golden_eq_real(g, what, (double)got.cpu_milli, json_get(want, "cpu_milli"), t);
    golden_eq_real(g, what, (double)got.memory_bytes, json_get(want, "mem_bytes"), t);
}

static void run_vpa(struct golden *g, const struct json *c)
{
    static const struct {
        const char *name;
        double share;
    } percentiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p95", 0.95 } };
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *events = json_get(in, "events");
    struct vpa *vpa = arena_new(g->arena, struct vpa);
    vpa_init(vpa);
    for (size_t i = 0; i < json_len(events); i++) {
        const struct json *e = json_item(events, i);
        vpa_add_cpu(vpa, integer(e, "t"), real_at(e, "cpu_milli") / 1000);
        vpa_add_memory(vpa, integer(e, "t"), real_at(e, "mem_bytes"));
        if (json_get(e, "oom_requested_bytes"))
            vpa_add_oom(vpa, integer(e, "t"), real_at(e, "oom_requested_bytes"));
    }
    for (size_t i = 0; i < countof(percentiles); i++) {
        const struct json *w = json_get(json_get(want, "percentiles"), percentiles[i].name);
        golden_eq_real(g, percentiles[i].name, vpa_percentile(&vpa->cpu, percentiles[i].share),
                       json_get(w, "cpu_cores"), close);
        golden_eq_real(g, percentiles[i].name, vpa_percentile(&vpa->memory, percentiles[i].share),
                       json_get(w, "mem_bytes"), (struct tolerance){ 0, 1e-9 });
    }
    struct vpa_recommendation r = vpa_recommend(vpa, (int)integer(in, "containers_in_pod"));
    double confidence =
        fmin((double)(vpa->last_cpu_s - vpa->first_cpu_s) / 86400, (double)vpa->samples / 1440);
    check_amount(g, "target", r.target, json_get(want, "target"), 1);
    check_amount(g, "lower_bound", r.lower, json_get(want, "lower_bound"), 1);
    check_amount(g, "upper_bound", r.upper, json_get(want, "upper_bound"), 2 + 1 / confidence);
}

const struct golden_family golden_market[] = {
    { "mbcas-action", run_action },
    { "mbcas-bid", run_bid },
    { "mbcas-config", run_config },
    { "mbcas-demand", run_demand },
    { "mbcas-faststep", run_faststep },
    { "mbcas-nash", run_nash },
    { "mbcas-nash-exact", run_nash_exact },
    { "mbcas-qlearn", run_qlearn },
    { "mbcas-qos", run_qos },
    { "mbcas-reward", run_reward },
    { "mbcas-safety", run_safety },
    { "mbcas-seed", run_seed },
    { "mbcas-smoothing", run_smoothing },
    { "mbcas-split", run_split },
    { "mbcas-state", run_state },
    { "mbcas-vpa", run_vpa },
    { 0 },
};
