/* Families market-overcommit and market-hpa-peace. As in golden_market_next.c, an expected `error`
 * means that the input is refused. */
#include "golden.h"

#include "market/hpa_peace_core.h"
#include "market/overcommit_core.h"
#include "market/request_core.h"

#include <math.h>

static const int64_t whole_max = INT64_C(1) << 53;

static int64_t whole(const struct json *v, int64_t least, int64_t most, bool *bad)
{
    if (!json_is(v, JSON_INT) || v->integer < least || v->integer > most)
        *bad = true;
    return json_int(v, 0);
}

static int64_t whole_or(const struct json *o, const char *key, int64_t least, int64_t otherwise,
                        bool *bad)
{
    const struct json *v = json_get(o, key);
    return v ? whole(v, least, whole_max, bad) : otherwise;
}

static bool flag_or(const struct json *o, const char *key, bool otherwise, bool *bad)
{
    const struct json *v = json_get(o, key);
    *bad |= v && !json_is(v, JSON_BOOL);
    return json_bool(v, otherwise);
}

/* ---- pressure */

static struct overcommit_seconds read_seconds(const struct json *pod, bool *bad)
{
    struct overcommit_seconds s = { 0 };
    int64_t share = whole(json_get(pod, "share_milli"), 0, whole_max, bad);
    const struct json *list = json_get(pod, "seconds");
    *bad |= !json_is(list, JSON_ARR);
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *second = json_item(list, i);
        struct overcommit_second reading = {
            .usage_milli = whole(json_item(second, 0), 0, whole_max, bad),
            .waited_usec = whole(json_item(second, 1), 0, whole_max, bad),
            .throttled = json_bool(json_item(second, 2), false),
        };
        *bad |= !json_is(json_item(second, 2), JSON_BOOL);
        enum overcommit_judgement judgement = overcommit_judge(share, reading);
        s.counted += judgement != OVERCOMMIT_IGNORED;
        s.victims += judgement == OVERCOMMIT_VICTIM;
    }
    return s;
}

static void run_pressure(struct golden *g, const struct json *in, const struct json *want)
{
    const struct json *list = json_get(in, "pods"), *before = json_get(in, "before");
    size_t n = json_len(list);
    bool bad = !json_is(list, JSON_ARR);
    struct overcommit_seconds *pods = arena_array(g->arena, n, sizeof(*pods));
    struct overcommit_pressure pressure = { 0 };
    if (before && json_get(before, "victims_ppm"))
        pressure.victims_ppm = whole(json_get(before, "victims_ppm"), 0, 1000000, &bad);
    if (before && json_get(before, "worst_ppm"))
        pressure.worst_ppm = whole(json_get(before, "worst_ppm"), 0, 1000000, &bad);
    for (size_t i = 0; i < n; i++)
        pods[i] = read_seconds(json_item(list, i), &bad);
    if (!golden_check_error(g, bad, want))
        return;
    struct overcommit_window w = overcommit_add_window(&pressure, pods, n);
    for (size_t i = 0; i < n; i++) {
        golden_eq_int(g, "counted", pods[i].counted, json_item(json_get(want, "counted"), i));
        golden_eq_int(g, "waited", pods[i].victims, json_item(json_get(want, "waited"), i));
    }
    golden_eq_int(g, "mean_ppm", w.mean_ppm, json_get(want, "mean_ppm"));
    golden_eq_int(g, "worst_now_ppm", w.worst_ppm, json_get(want, "worst_now_ppm"));
    golden_eq_int(g, "victims_ppm", pressure.victims_ppm, json_get(want, "victims_ppm"));
    golden_eq_int(g, "worst_ppm", pressure.worst_ppm, json_get(want, "worst_ppm"));
}

/* ---- kappa */

static void run_kappa(struct golden *g, const struct json *in, const struct json *want)
{
    bool bad = false;
    const struct json *most = json_get(in, "limit_overcommit");
    double limit_overcommit = json_real(most, NAN);
    bad |= !(json_is(most, JSON_INT) || json_is(most, JSON_REAL)) ||
           !(limit_overcommit >= 1 && limit_overcommit <= 10);
    int64_t capacity = whole(json_get(in, "capacity_milli"), 1, whole_max, &bad);
    bool blind = flag_or(in, "blind", false, &bad);
    struct overcommit_state s = { 0 };
    if (json_get(in, "kappa_milli")) {
        s.kappa_milli = MAX(whole(json_get(in, "kappa_milli"), 0, whole_max, &bad), INT64_C(1));
        s.pressure.victims_ppm = whole(json_get(in, "victims_ppm"), 0, 1000000, &bad);
        s.pressure.worst_ppm = whole(json_get(in, "worst_ppm"), 0, 1000000, &bad);
        s.utilization_ppm = whole(json_get(in, "utilisation_ppm"), 0, 2000000, &bad);
        s.wanted_milli = whole(json_get(in, "wanted_milli"), 0, whole_max, &bad);
        s.since_fall_s = whole(json_get(in, "since_fall_s"), 0, whole_max, &bad);
    } else
        s.limits_milli = whole(json_get(in, "limits_milli"), 0, whole_max, &bad);
    if (!golden_check_error(g, bad, want))
        return;
    struct overcommit_kappa k = overcommit_next(limit_overcommit, blind, capacity, &s);
    golden_eq_int(g, "kappa_milli", k.kappa_milli, json_get(want, "kappa_milli"));
    golden_eq_str(g, "reason", str_c(overcommit_reason_name(k.reason)), json_get(want, "reason"));
    golden_eq_int(g, "limits_capacity_milli", k.limits_capacity_milli,
                  json_get(want, "limits_capacity_milli"));
}

/* ---- requests */

static struct request_pod read_request_pod(const struct json *o, bool *bad)
{
    return (struct request_pod){
        .share_milli = whole(json_get(o, "share_milli"), 0, whole_max, bad),
        .limit_milli = whole(json_get(o, "limit_milli"), 2, whole_max, bad),
        .request_milli = whole(json_get(o, "request_milli"), 1, whole_max, bad),
        .held_milli = whole_or(o, "held_milli", 0, 0, bad),
        .since_s = whole_or(o, "since_s", 0, 60, bad),
        .guaranteed = flag_or(o, "guaranteed_qos", false, bad),
        .writable = flag_or(o, "writable", true, bad),
        .with_limit = flag_or(o, "with_limit", false, bad),
    };
}

static void run_requests(struct golden *g, const struct json *in, const struct json *want)
{
    const struct json *list = json_get(in, "pods");
    size_t n = json_len(list);
    bool bad = !json_is(list, JSON_ARR);
    struct request_pod *pods = arena_array(g->arena, n, sizeof(*pods));
    int64_t allocatable = whole(json_get(in, "allocatable_milli"), 0, whole_max, &bad);
    for (size_t i = 0; i < n; i++)
        pods[i] = read_request_pod(json_item(list, i), &bad);
    if (!golden_check_error(g, bad, want))
        return;
    struct clear_scratch scratch = { 0 };
    int64_t room = request_settle(allocatable, pods, n, &scratch, g->arena);
    clear_scratch_done(&scratch);
    for (size_t i = 0; i < n; i++) {
        golden_eq_int(g, "request", pods[i].request_milli,
                      json_item(json_get(want, "requests"), i));
        golden_eq_str(g, "reason", str_c(request_reason_name(pods[i].reason)),
                      json_item(json_get(want, "reasons"), i));
    }
    golden_eq_int(g, "room_milli", room, json_get(want, "room_milli"));
}

static void run_overcommit(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    str op = json_text(json_get(in, "op"));
    if (str_eq(op, S("pressure")))
        run_pressure(g, in, want);
    else if (str_eq(op, S("kappa")))
        run_kappa(g, in, want);
    else if (str_eq(op, S("requests")))
        run_requests(g, in, want);
    else
        golden_check_error(g, true, want);
}

/* ---- peace with HPAs */

static bool scales_owner(const struct json *hpa, const struct json *pod)
{
    const struct json *ref = json_get(hpa, "scaleTargetRef"), *owners = json_get(pod, "owners");
    if (!str_eq(json_text(json_get(hpa, "namespace")), json_text(json_get(pod, "namespace"))))
        return false;
    for (size_t i = 0; i < json_len(owners); i++) {
        const struct json *owner = json_item(owners, i);
        if (str_eq(json_text(json_get(owner, "kind")), json_text(json_get(ref, "kind"))) &&
            str_eq(json_text(json_get(owner, "name")), json_text(json_get(ref, "name"))))
            return true;
    }
    return false;
}

/* The highest target among the metrics of this HPA that divide by the CPU request; 0: none. */
static int64_t highest_target(const struct json *hpa)
{
    const struct json *metrics = json_get(hpa, "metrics");
    int64_t highest = json_len(metrics) ? 0 : HPA_TARGET_DEFAULT;
    for (size_t i = 0; i < json_len(metrics); i++) {
        const struct json *m = json_item(metrics, i), *value = json_get(m, "value");
        struct hpa_peace_metric metric = { .type = json_text(json_get(m, "type")),
                                           .name = json_text(json_get(m, "name")),
                                           .target_type = json_text(json_get(m, "target")),
                                           .percent =
                                               json_is(value, JSON_INT) ? value->integer : 0 };
        if (hpa_peace_divides(&metric, S("cpu")))
            highest = MAX(highest, hpa_peace_target(&metric));
    }
    return highest;
}

static struct hpa_divisor find_divisor(const struct json *hpas, const struct json *pod)
{
    struct hpa_divisor best = { 0 };
    for (size_t i = 0; i < json_len(hpas); i++) {
        const struct json *hpa = json_item(hpas, i), *tolerance = json_get(hpa, "tolerance_up");
        int64_t target = scales_owner(hpa, pod) ? highest_target(hpa) : 0;
        if (target <= best.target_percent)
            continue;
        best = (struct hpa_divisor){ .name = json_text(json_get(hpa, "name")),
                                     .target_percent = target,
                                     .tolerance_up = HPA_TOLERANCE_DEFAULT };
        if (json_is(tolerance, JSON_INT) || json_is(tolerance, JSON_REAL))
            best.tolerance_up = json_real(tolerance, HPA_TOLERANCE_DEFAULT);
    }
    return best;
}

static void run_hpa_peace(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *pod = json_get(in, "pod");
    const struct json *annotation = json_at(pod, "annotations", "mbcas.io/hpa", NULL);
    bool bad = false, valid = true;
    struct hpa_peace_pod p = {
        .original_request_milli =
            whole(json_get(pod, "original_request_milli"), 0, whole_max, &bad),
        .desired_limit_milli = whole(json_get(in, "desired_limit_milli"), 0, whole_max, &bad),
    };
    if (!golden_check_error(g, bad, want))
        return;
    if (annotation)
        valid = hpa_peace_read(json_text(annotation), &p.move);
    struct hpa_divisor divisor = find_divisor(json_get(in, "hpas"), pod);
    bool found = divisor.target_percent > 0;
    struct hpa_peace_result r = hpa_peace_decide(&p, found ? &divisor : NULL);
    golden_eq_str(g, "peace", str_c(hpa_peace_name(r.state)), json_get(want, "peace"));
    golden_eq_int(g, "request_milli", r.request_milli, json_get(want, "request_milli"));
    golden_eq_int(g, "limit_milli", r.limit_milli, json_get(want, "limit_milli"));
    golden_ok(g, valid == !json_get(want, "problem"), "problem: got %s", valid ? "none" : "one");
    if (found)
        golden_eq_str(g, "hpa", divisor.name, json_get(want, "hpa"));
    else
        golden_ok(g, json_is(json_get(want, "hpa"), JSON_NULL), "hpa: want one, got none");
    if (json_get(want, "floor_milli"))
        golden_eq_int(g, "floor_milli", r.floor_milli, json_get(want, "floor_milli"));
}

const struct golden_family golden_market_shares[] = {
    { "market-hpa-peace", run_hpa_peace, NULL },
    { "market-overcommit", run_overcommit, NULL },
    { 0 },
};
