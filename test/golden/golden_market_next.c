/* Families market-*: floors, prices, memory, peace with HPAs, boosts, both resources together and
 * overcommit. An expected `error` means that the input is refused; its words are not compared. The
 * order of a node's problems is not compared either, because nothing depends on it. */
#include "golden.h"

#include "market/boost_core.h"
#include "market/floor_core.h"
#include "market/hpa_peace_core.h"
#include "market/joint_core.h"
#include "market/memory_core.h"
#include "market/overcommit_core.h"
#include "market/price_core.h"
#include "market/request_core.h"

#include <math.h>

static const struct tolerance nine_digits = { 0, 1e-8 };
static const int64_t whole_max = INT64_C(1) << 53;

/* ---- reading: the first wrong field makes the input bad */

struct reader {
    const struct json *o;
    bool bad;
};

static bool is_whole(const struct json *v)
{
    return json_is(v, JSON_INT) ||
           (json_is(v, JSON_REAL) && v->real == floor(v->real) && fabs(v->real) < 0x1p53);
}

static int64_t read_range(struct reader *r, const char *key, int64_t least, int64_t most)
{
    const struct json *v = json_get(r->o, key);
    int64_t value = json_is(v, JSON_REAL) ? (int64_t)v->real : json_int(v, 0);
    if (!is_whole(v) || value < least || value > most)
        r->bad = true;
    return value;
}

static bool is_absent(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

static int64_t read_or(struct reader *r, const char *key, int64_t least, int64_t most,
                       int64_t otherwise)
{
    return is_absent(json_get(r->o, key)) ? otherwise : read_range(r, key, least, most);
}

static double read_number(struct reader *r, const char *key, double least, double most,
                          double otherwise)
{
    const struct json *v = json_get(r->o, key);
    if (!v)
        return otherwise;
    double value = json_real(v, NAN);
    if (!(json_is(v, JSON_INT) || json_is(v, JSON_REAL)) || !(value >= least && value <= most))
        r->bad = true;
    return value;
}

static bool read_flag(struct reader *r, const char *key, bool otherwise)
{
    const struct json *v = json_get(r->o, key);
    if (v && !json_is(v, JSON_BOOL))
        r->bad = true;
    return json_bool(v, otherwise);
}

static void check_numbers(struct golden *g, const char *what, const int64_t *got, size_t n,
                          const struct json *want)
{
    golden_ok(g, json_len(want) == n, "%s: want %zu numbers, got %zu", what, json_len(want), n);
    for (size_t i = 0; i < MIN(n, json_len(want)); i++)
        golden_eq_int(g, what, got[i], json_item(want, i));
}

/* ---- floor */

static bool has_problem(const struct json *problems, size_t pod, enum floor_problem problem)
{
    struct floor_problem_name name = floor_problem_name(problem);
    for (size_t i = 0; i < json_len(problems); i++) {
        const struct json *p = json_item(problems, i);
        if (json_int(json_get(p, "pod"), -1) == (int64_t)pod &&
            str_eqc(json_text(json_get(p, "annotation")), name.source) &&
            str_eqc(json_text(json_get(p, "code")), name.code))
            return true;
    }
    return false;
}

static void check_problems(struct golden *g, const struct floor_pod *pods, size_t n,
                           const struct json *want)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        for (int problem = 0; problem < FLOOR_PROBLEM_N; problem++) {
            struct floor_problem_name name = floor_problem_name((enum floor_problem)problem);
            if (!(pods[i].problems & UINT32_C(1) << problem))
                continue;
            found++;
            golden_ok(g, has_problem(want, i, (enum floor_problem)problem),
                      "problem of pod %zu not wanted: %s %s", i, name.source, name.code);
        }
    golden_ok(g, found == json_len(want), "problems: want %zu, got %zu", json_len(want), found);
}

static struct floor_pod read_floor_pod(struct reader *node, const struct json *o)
{
    struct reader r = { .o = o };
    struct floor_pod pod = {
        .original_limit_milli = read_or(&r, "original_limit_milli", 0, whole_max, 0),
        .held_milli = read_or(&r, "held_milli", 0, whole_max, 0),
        .boost_milli = read_or(&r, "boost_milli", 0, whole_max, 0),
        .weight = read_number(&r, "weight", 0, INFINITY, 1),
    };
    const struct json *min = json_get(o, "min_cpu"), *max = json_get(o, "max_cpu");
    if (!is_absent(min))
        pod.min_milli = floor_read_min(json_text(min), &pod.problems);
    if (!is_absent(max))
        pod.max_milli = floor_read_max(json_text(max), &pod.problems);
    node->bad |= r.bad || !json_is(o, JSON_OBJ);
    return pod;
}

static void check_floors(struct golden *g, const struct floor_result *r,
                         const struct floor_pod *pods, size_t n, const struct json *want)
{
    int64_t *numbers = arena_array(g->arena, n, sizeof(*numbers));
    golden_eq_str(g, "mode", r->overloaded ? S("overloaded") : S("fits"), json_get(want, "mode"));
    for (size_t i = 0; i < n; i++)
        numbers[i] = pods[i].guaranteed_milli;
    check_numbers(g, "guaranteed", numbers, n, json_get(want, "guaranteed"));
    check_problems(g, pods, n, json_get(want, "problems"));
    if (!r->overloaded) {
        golden_eq_int(g, "room_milli", r->room_milli, json_get(want, "room_milli"));
        return;
    }
    for (size_t i = 0; i < n; i++)
        numbers[i] = pods[i].overload_milli;
    check_numbers(g, "allocations", numbers, n, json_get(want, "allocations"));
    golden_eq_bool(g, "below_kernel_minimum", r->below_kernel_minimum,
                   json_get(want, "below_kernel_minimum"));
}

static void run_floor(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *list = json_get(in, "pods");
    struct reader r = { .o = in };
    size_t n = json_len(list);
    struct floor_pod *pods = arena_array(g->arena, n, sizeof(*pods));
    struct floor_rules rules = {
        .capacity_milli = read_range(&r, "capacity_milli", -whole_max, whole_max),
        .baseline_milli = read_or(&r, "baseline_milli", 1, whole_max, 100),
        .absolute_min_milli = read_or(&r, "absolute_min_milli", 1, whole_max, 10),
        .max_share = read_number(&r, "max_min_share", 0, 1, 0.5),
    };
    for (size_t i = 0; i < n; i++)
        pods[i] = read_floor_pod(&r, json_item(list, i));
    if (!golden_check_error(g, r.bad || !json_is(list, JSON_ARR), want))
        return;
    struct clear_scratch scratch = { 0 };
    struct floor_result result = floor_guarantee(&rules, pods, n, &scratch, g->arena);
    clear_scratch_done(&scratch);
    check_floors(g, &result, pods, n, want);
}

/* ---- price */

static struct bid read_price_bid(struct reader *node, const struct json *o)
{
    struct reader r = { .o = o };
    struct bid bid = { .min_milli = read_range(&r, "min_milli", 0, whole_max),
                       .max_milli = read_range(&r, "max_milli", 0, whole_max) };
    bid.demand_milli = read_or(&r, "honest_max_milli", 0, whole_max, bid.max_milli);
    bid.weight = read_number(&r, "weight", 0, INFINITY, NAN);
    node->bad |= r.bad || isnan(bid.weight);
    return bid;
}

static enum market_mode read_mode(const struct json *v)
{
    for (int m = 0; m < MARKET_MODE_N; m++)
        if (str_eqc(json_text(v), market_mode_name((enum market_mode)m)))
            return (enum market_mode)m;
    return MARKET_MODE_N;
}

static void check_published(struct golden *g, const struct json *in, const struct price *price,
                            const struct json *want)
{
    const struct json *old = json_get(in, "published");
    int64_t now = json_int(json_get(in, "now_s"), 0);
    struct price_published p = { .price = golden_real(json_get(old, "price"), 0),
                                 .mode = read_mode(json_get(old, "mode")),
                                 .at_s = json_int(json_get(old, "at_s"), 0),
                                 .is_set = !is_absent(old) };
    if (price_should_publish(&p, price, now))
        p = (struct price_published){ price->shadow_price, price->mode, now, 0, true };
    golden_eq_real(g, "published price", p.price, json_get(want, "price"), nine_digits);
    golden_eq_str(g, "published mode", str_c(market_mode_name(p.mode)), json_get(want, "mode"));
    golden_eq_int(g, "published at_s", p.at_s, json_get(want, "at_s"));
}

static void run_price(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *list = json_get(in, "bids");
    struct reader r = { .o = in };
    size_t n = json_len(list);
    struct bid *bids = arena_array(g->arena, n, sizeof(*bids));
    int64_t *x = arena_array(g->arena, n, sizeof(*x));
    int64_t capacity = read_range(&r, "capacity_milli", -whole_max, whole_max);
    for (size_t i = 0; i < n; i++)
        bids[i] = read_price_bid(&r, json_item(list, i));
    if (!golden_check_error(g, r.bad || !json_is(list, JSON_ARR), want))
        return;
    struct clear_scratch scratch = { 0 };
    struct clearing clearing = market_clear(MAX(capacity, INT64_C(0)), bids, n, &scratch, x);
    struct price price = price_of(capacity, bids, n, &clearing, x);
    clear_scratch_done(&scratch);
    golden_eq_str(g, "mode", str_c(market_mode_name(price.mode)), json_get(want, "mode"));
    golden_eq_real(g, "lambda_per_core", price.lambda_per_core, json_get(want, "lambda_per_core"),
                   nine_digits);
    golden_eq_real(g, "shadow_price", price.shadow_price, json_get(want, "shadow_price"),
                   nine_digits);
    golden_eq_int(g, "demand_milli", price.demand_milli, json_get(want, "demand_milli"));
    golden_eq_int(g, "rationed", (int64_t)price.rationed, json_get(want, "rationed"));
    check_numbers(g, "allocation", x, n, json_get(want, "allocations"));
    if (json_get(want, "published"))
        check_published(g, in, &price, json_get(want, "published"));
}

/* ---- memory */

static int64_t read_since(struct reader *r, const char *key)
{
    return read_or(r, key, 0, whole_max, MEMORY_NEVER);
}

static size_t read_list(struct reader *r, const char *key, size_t most, int64_t *ret)
{
    const struct json *list = json_get(r->o, key);
    size_t n = json_len(list);
    r->bad |= n > most || (list && !json_is(list, JSON_ARR));
    for (size_t i = 0; i < MIN(n, most); i++) {
        const struct json *v = json_item(list, i);
        ret[i] = json_int(v, 0);
        r->bad |= !json_is(v, JSON_INT) || ret[i] < 0;
    }
    return MIN(n, most);
}

static void run_memory_need(struct golden *g, struct reader *r, const struct json *want)
{
    int64_t hourly[MEMORY_HOURS], daily[MEMORY_DAYS];
    int64_t ws = read_range(r, "ws", 0, whole_max);
    size_t hours = read_list(r, "hourly", MEMORY_HOURS, hourly);
    size_t days = read_list(r, "daily", MEMORY_DAYS, daily);
    if (!golden_check_error(g, r->bad, want))
        return;
    int64_t need = memory_need(ws, hourly, hours, daily, days);
    golden_eq_int(g, "need", need, json_get(want, "need"));
    golden_eq_int(g, "want", memory_want(need), json_get(want, "want"));
    golden_eq_int(g, "safe", memory_guarded(ws), json_get(want, "safe"));
}

static void run_memory_bid(struct golden *g, struct reader *r, const struct json *want)
{
    struct memory_signals s = { .working_set = read_range(r, "ws", 0, whole_max),
                                .limit = read_range(r, "limit", 0, whole_max),
                                .need = read_range(r, "need", 0, whole_max),
                                .psi = read_number(r, "psi", 0, 1, 0),
                                .slope = read_number(r, "slope", -INFINITY, INFINITY, 0),
                                .since_oom_s = read_since(r, "since_oom_s") };
    s.limit_at_oom = read_or(r, "limit_at_oom", 0, whole_max, s.limit);
    if (!golden_check_error(g, r->bad, want))
        return;
    struct memory_bid bid = memory_bid(&s);
    golden_eq_int(g, "safe", bid.safe, json_get(want, "safe"));
    golden_eq_int(g, "want", bid.want, json_get(want, "want"));
    golden_eq_bool(g, "urgent", bid.urgent, json_get(want, "urgent"));
}

static enum memory_qos read_qos(str qos)
{
    return str_eq(qos, S("Guaranteed"))   ? MEMORY_GUARANTEED
           : str_eq(qos, S("BestEffort")) ? MEMORY_BEST_EFFORT
                                          : MEMORY_BURSTABLE;
}

static void run_memory_settle(struct golden *g, struct reader *r, const struct json *want)
{
    struct memory_state s = {
        .working_set = read_range(r, "ws", 0, whole_max),
        .limit = read_range(r, "limit", 0, whole_max),
        .request = read_range(r, "request", 0, whole_max),
        .need = read_range(r, "need", 0, whole_max),
        .want = read_range(r, "want", 0, whole_max),
        .room = read_or(r, "room", -whole_max, whole_max, 0),
        .restarts_on_resize =
            str_eq(json_text(json_get(r->o, "resize_policy")), S("RestartContainer")),
        .allow_restart = read_flag(r, "allow_restart", false),
        .swap = read_flag(r, "swap", false),
        .qos = read_qos(json_text(json_get(r->o, "qos"))),
        .shrink = read_flag(r, "shrink", false),
        .kubernetes_minor = (int)read_or(r, "kubernetes_minor", 0, 1000, 34),
        .known_s = read_or(r, "known_s", 0, whole_max, 0),
        .since_change_s = read_since(r, "since_change_s"),
        .since_oom_s = read_since(r, "since_oom_s"),
        .since_psi_s = read_since(r, "since_psi_s"),
        .hpa_memory = read_flag(r, "hpa_memory", false),
    };
    if (!golden_check_error(g, r->bad, want))
        return;
    struct memory_change change = memory_settle(&s);
    golden_eq_int(g, "limit", change.limit, json_get(want, "limit"));
    golden_eq_int(g, "request", change.request, json_get(want, "request"));
    golden_eq_str(g, "action", str_c(memory_action_name(change.action)), json_get(want, "action"));
    if (change.action == MEMORY_KEEP ||
        change.action == MEMORY_GROW) /* the sheet names no others */
        golden_eq_str(g, "reason", str_c(change.reason), json_get(want, "reason"));
}

static void run_memory(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expected");
    struct reader r = { .o = json_get(c, "input") };
    str op = json_text(json_get(r.o, "op"));
    if (str_eq(op, S("need")))
        run_memory_need(g, &r, want);
    else if (str_eq(op, S("bid")))
        run_memory_bid(g, &r, want);
    else if (str_eq(op, S("settle")))
        run_memory_settle(g, &r, want);
    else
        golden_check_error(g, true, want);
}

/* ---- boost */

/* The settings have the shape of an annotation's `cpu`. */
static void run_boost(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *annotation = json_get(in, "annotation"), *defaults = json_get(in, "default");
    struct reader r = { .o = in }, d = { .o = defaults };
    struct boost boost = { 0 };
    err_t e;
    struct boost_pod pod = {
        .now_s = read_range(&r, "now_s", -whole_max, whole_max),
        .started_s = read_range(&r, "started_s", -whole_max, whole_max),
        .ready_s = read_or(&r, "ready_since_s", -whole_max, whole_max, 0),
        .is_ready = !is_absent(json_get(in, "ready_since_s")),
        .max_s = read_or(&d, "maxSeconds", 0, whole_max, BOOST_MAX_S_DEFAULT),
        .original_request_milli = read_or(&r, "original_request_milli", 0, whole_max, 0),
        .original_limit_milli = read_or(&r, "original_limit_milli", 0, whole_max, 0),
        .max_milli = read_or(&r, "max_cpu_milli", 0, whole_max, 0),
    };
    if (!golden_check_error(g, r.bad || d.bad, want))
        return;
    int problem = is_absent(annotation) ? boost_read(defaults, &boost, &e)
                                        : boost_parse(g->arena, json_text(annotation), &boost, &e);
    struct boost_state s = boost_at(&boost, &pod);
    golden_eq_bool(g, "boosting", s.boosting, json_get(want, "boosting"));
    golden_eq_int(g, "limit_milli", s.limit_milli, json_get(want, "limit_milli"));
    golden_eq_bool(g, "remember", s.is_reading_valid, json_get(want, "remember"));
    golden_ok(g, (problem != 0) == !is_absent(json_get(want, "problem")), "problem: got %s",
              problem ? e.text : "none");
    if (s.has_end)
        golden_eq_int(g, "until_s", s.until_s, json_get(want, "until_s"));
    else
        golden_ok(g, is_absent(json_get(want, "until_s")), "until_s: want one, got none");
}

/* ---- both resources */

static struct joint_pod read_joint_pod(struct reader *node, const struct json *o)
{
    struct reader r = { .o = o };
    struct joint_pod pod = { .weight = read_number(&r, "weight", 0, INFINITY, 1),
                             .cpu_floor_milli = read_range(&r, "cpu_floor", 0, whole_max),
                             .cpu_max_milli = read_range(&r, "cpu_max", 0, whole_max),
                             .memory_safe_mib = read_range(&r, "memory_safe", 0, whole_max),
                             .memory_want_mib = read_range(&r, "memory_want", 0, whole_max),
                             .cpu_now_milli = read_or(&r, "cpu_now", 0, whole_max, -1),
                             .memory_now_mib = read_or(&r, "memory_now", 0, whole_max, -1) };
    node->bad |= r.bad;
    return pod;
}

static void check_resource(struct golden *g, const char *name, const struct joint_price *price,
                           const char *lambda_key, const int64_t *x, size_t n,
                           const struct json *want)
{
    golden_eq_str(g, name, str_c(market_mode_name(price->mode)), json_get(want, "mode"));
    golden_eq_real(g, lambda_key, price->lambda, json_get(want, lambda_key), nine_digits);
    check_numbers(g, name, x, n, json_get(want, "allocations"));
}

static void run_joint(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *list = json_get(in, "pods");
    struct reader r = { .o = in };
    size_t n = json_len(list);
    struct joint_pod *pods = arena_array(g->arena, n, sizeof(*pods));
    int64_t *x = arena_array(g->arena, n, sizeof(*x)), *y = arena_array(g->arena, n, sizeof(*y));
    int64_t cpu = read_range(&r, "capacity_cpu_milli", 0, whole_max);
    int64_t memory = read_range(&r, "capacity_memory_mib", 0, whole_max);
    for (size_t i = 0; i < n; i++)
        pods[i] = read_joint_pod(&r, json_item(list, i));
    if (!golden_check_error(g, r.bad || !json_is(list, JSON_ARR), want))
        return;
    struct clear_scratch scratch = { 0 };
    struct joint_result result = joint_clear(cpu, memory, pods, n, &scratch, g->arena);
    clear_scratch_done(&scratch);
    for (size_t i = 0; i < n; i++) {
        x[i] = pods[i].cpu_milli;
        y[i] = pods[i].memory_mib;
        golden_eq_str(g, "plan", str_c(joint_plan_name(pods[i].plan)),
                      json_item(json_get(want, "plan"), i));
    }
    check_resource(g, "cpu", &result.cpu, "lambda_per_core", x, n, json_get(want, "cpu"));
    check_resource(g, "memory", &result.memory, "lambda_per_gib", y, n, json_get(want, "memory"));
    golden_eq_str(g, "dominant", str_c(joint_resource_name(result.dominant)),
                  json_get(want, "dominant"));
}

const struct golden_family golden_market_next[] = {
    { "market-boost", run_boost, NULL }, { "market-floor", run_floor, NULL },
    { "market-joint", run_joint, NULL }, { "market-memory", run_memory, NULL },
    { "market-price", run_price, NULL }, { 0 },
};
