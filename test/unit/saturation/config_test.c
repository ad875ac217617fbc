/* The saturation ConfigMap by presence: layers, selectors, and what stays when an edit is wrong. */
#include "base/clock.h"
#include "saturation/config/config_core.h"
#include "saturation/config/snapshot.h"
#include "saturation/objects/status_core.h"
#include "saturation/wva/optimize_core.h"
#include "saturation/zero/zero_core.h"
#include "tap.h"

#include <math.h>

static struct arena arena;

static struct json *data(const char *const *pairs)
{
    struct json *out = json_new_obj(&arena);
    for (; *pairs; pairs += 2)
        json_set_str(&arena, out, pairs[0], str_c(pairs[1]));
    return out;
}

#define LOAD(before, ...)                                                                          \
    sat_table_load(&arena, data((const char *const[]){ __VA_ARGS__, NULL }), before)

static const str variants[][2] = { { STR_INIT("a-va"), STR_INIT("dep-a") },
                                   { STR_INIT("b-va"), STR_INIT("dep-b") } };

static struct sat_resolved resolve(const struct sat_table *global, const struct sat_table *local)
{
    struct sat_lookup q = { S("llama"), S("prod"), variants, 2 };
    return sat_config_resolve(global, local, &q);
}

static void a_field_that_is_zero_is_set(void)
{
    struct sat_load l = LOAD(NULL, "default", "queueSpareTrigger: 0\nkvSpareTrigger: 0");
    struct sat_config c = resolve(&l.table, NULL).config;
    EQ_REAL(c.queue_spare_trigger, 0);
    EQ_REAL(c.kv_spare_trigger, 0);
    EQ_REAL(c.kv_threshold, 0.8);
    EQ_REAL(c.queue_threshold, 5);
}

static void an_override_needs_only_what_differs(void)
{
    struct sat_load l = LOAD(NULL, "default", "kvCacheThreshold: 0.7", "x",
                             "model_id: llama\nnamespace: prod\nkvSpareTrigger: 0.2");
    struct sat_resolved r = resolve(&l.table, NULL);
    EQ_INT((int64_t)l.loaded, 2);
    EQ_REAL(r.config.kv_threshold, 0.7);
    EQ_REAL(r.config.kv_spare_trigger, 0.2);
    EQ_STR(r.override->key, S("x"));
}

static void the_best_fit_wins(void)
{
    struct sat_load l =
        LOAD(NULL, "z", "model_id: llama\nnamespace: prod\nqueueLengthThreshold: 30", "m",
             "model_id: llama\nqueueLengthThreshold: 20", "a-va", "queueLengthThreshold: 10",
             "other", "model_id: llama\nnamespace: dev\nqueueLengthThreshold: 40");
    EQ_REAL(resolve(&l.table, NULL).config.queue_threshold, 30);
    l = LOAD(NULL, "m", "model_id: llama\nqueueLengthThreshold: 20", "a-va",
             "queueLengthThreshold: 10");
    EQ_REAL(resolve(&l.table, NULL).config.queue_threshold, 20);
    l = LOAD(NULL, "dep-b", "queueLengthThreshold: 11", "a-va", "queueLengthThreshold: 10");
    EQ_REAL(resolve(&l.table, NULL).config.queue_threshold, 10);
    l = LOAD(NULL, "m2", "model_id: llama\nqueueLengthThreshold: 2", "m1",
             "model_id: llama\nqueueLengthThreshold: 1");
    struct sat_resolved r = resolve(&l.table, NULL);
    EQ_REAL(r.config.queue_threshold, 1);
    EQ_INT((int64_t)r.matching, 2);
}

static void a_bad_edit_keeps_the_last_good_entry(void)
{
    struct sat_load one = LOAD(NULL, "default", "kvCacheThreshold: 0.6", "llama",
                               "queueLengthThreshold: 9", "gone", "queueLengthThreshold: 1");
    struct sat_load two = LOAD(&one.table, "default", "kvCacheThreshold: [", "llama",
                               "queueLengthThreshold: -1", "new", "kvCacheThreshold: .nan");
    EQ_INT((int64_t)two.loaded, 0);
    EQ_INT((int64_t)two.table.n, 2);
    EQ_INT((int64_t)two.problem_n, 3);
    OK(two.problems[0].unreadable && two.problems[0].kept);
    OK(!two.problems[1].unreadable && two.problems[1].kept);
    OK(!two.problems[2].unreadable && !two.problems[2].kept);
    EQ_STR(two.problems[1].text, S("queueLengthThreshold must be >= 0, got -1.0"));
    struct sat_config c = resolve(&two.table, NULL).config;
    EQ_REAL(c.kv_threshold, 0.6);
    EQ_REAL(c.queue_threshold, 9);
    /* What was good makes no sense any more with another default. */
    struct sat_load three = LOAD(NULL, "llama", "kvSpareTrigger: 0.5");
    struct sat_load four =
        LOAD(&three.table, "default", "kvCacheThreshold: 0.3", "llama", "kvSpareTrigger: [");
    EQ_INT((int64_t)four.table.n, 1);
    OK(!four.problems[0].kept);
}

static void an_override_is_judged_with_what_is_under_it(void)
{
    struct sat_load l =
        LOAD(NULL, "default", "kvCacheThreshold: 0.3", "llama", "kvSpareTrigger: 0.5");
    EQ_INT((int64_t)l.problem_n, 1);
    EQ_STR(l.problems[0].text, S("kvCacheThreshold (0.30) should be >= kvSpareTrigger (0.50)"));
    /* Local entries become invalid under a later default: they are ignored, and nothing breaks. */
    struct sat_load local = LOAD(NULL, "llama", "kvSpareTrigger: 0.5");
    struct sat_resolved r = resolve(&l.table, &local.table);
    EQ_REAL(r.config.kv_spare_trigger, 0.1);
    OK(!r.override);
}

static void a_namespace_may_have_its_own(void)
{
    struct sat_load global = LOAD(NULL, "default", "kvCacheThreshold: 0.7\nqueueLengthThreshold: 8",
                                  "llama", "queueLengthThreshold: 80");
    struct sat_load local = LOAD(NULL, "default", "kvCacheThreshold: 0.6");
    struct sat_load empty = sat_table_load(&arena, NULL, NULL);
    EQ_REAL(resolve(&global.table, &local.table).config.kv_threshold, 0.6);
    EQ_REAL(resolve(&global.table, &local.table).config.queue_threshold, 8);
    EQ_REAL(resolve(&global.table, &empty.table).config.queue_threshold, 80);
}

static void zero_is_off_unless_said(void)
{
    struct json *d = data((const char *const[]){ "b", "model_id: m\nenable_scale_to_zero: true",
                                                 "a", "enable_scale_to_zero: true", "default",
                                                 "retention_period: 1h", NULL });
    struct zero_load load = zero_table_load(&arena, d, NULL);
    const struct zero_table t = load.table;
    EQ_STR(load.problems, S("a: it cannot be read or names no model_id"));
    OK(zero_enabled(&t, S("m"), false));
    OK(!zero_enabled(&t, S("x"), false));
    OK(zero_enabled(&t, S("x"), true));
    EQ_INT(zero_retention_ns(&t, S("m")), INT64_C(3600000000000));
}

static void a_bad_edit_keeps_the_last_good_zero_entry(void)
{
    struct zero_load one = zero_table_load(&arena,
                                           data((const char *const[]){
                                               "a", "model_id: m\nenable_scale_to_zero: false", "b",
                                               "model_id: n\nenable_scale_to_zero: true", NULL }),
                                           NULL);
    EQ_STR(one.problems, S(""));
    struct zero_load two = zero_table_load(&arena,
                                           data((const char *const[]){
                                               "a", "model_id: m\nenable_scale_to_zero: perhaps",
                                               "c", "enable_scale_to_zero: [", NULL }),
                                           &one.table);
    EQ_STR(two.problems, S("a: it cannot be read, the last good value stays; c: it cannot be read "
                           "or names no model_id"));
    EQ_INT((int64_t)two.table.n, 1);
    OK(!zero_enabled(&two.table, S("m"), true)); /* where zero is the rule, m is not let go */
    OK(!zero_enabled(&two.table, S("n"), false));
}

static void a_namespace_may_have_its_own_zero(void)
{
    static const struct sat_local_source locals[] = {
        { STR_INIT("a"), STR_INIT(""), STR_INIT("{\"default\":\"enable_scale_to_zero: true\"}") },
        { STR_INIT("b"), STR_INIT("{\"default\":\"kvCacheThreshold: 0.5\"}"), STR_INIT("") },
    };
    struct sat_report news;
    struct sat_snapshot *s = sat_snapshot_new(
        &(struct sat_sources){ .zero = S("{\"default\":\"enable_scale_to_zero: false\"}"),
                               .locals = locals,
                               .local_n = countof(locals) },
        NULL, &news);
    OK(zero_enabled(sat_snapshot_zero(s, S("a")), S("m"), false));
    OK(!zero_enabled(sat_snapshot_zero(s, S("b")), S("m"), true));
    OK(!zero_enabled(sat_snapshot_zero(s, S("c")), S("m"), true));
    sat_snapshot_unref(s);
}

/* The environment is the default for keys that the ConfigMap does not have, except for the interval, whose last good
 * value stays. */
static void the_environment_is_under_the_configmap(void)
{
    struct sat_sources from = {
        .defaults = S("{\"GLOBAL_OPT_INTERVAL\":\"7s\",\"PROMETHEUS_METRICS_CACHE_TTL\":\"5s\","
                      "\"PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD\":\"20s\"}")
    };
    static const struct {
        const char *optimization;
        int interval_s, fetch_s, fresh_s;
        const char *problems;
    } t[] = {
        { "", 7, 5, 20 },
        { "{\"GLOBAL_OPT_INTERVAL\":\"9s\"}", 9, 5, 20 },
        { "{\"GLOBAL_OPT_INTERVAL\":\"abc\",\"PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL\":\"3s\"}", 9,
          3, 20 },
        { "{\"PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL\":\"0\"}", 9, 5, 20 }, /* off: the TTL */
        { "{\"PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD\":\"40s\"}", 9, 5, 40 },
        /* what a slow rhythm makes old is not stale */
        { "{\"PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL\":\"3m\"}", 9, 180, 360 },
        { "{\"PROMETHEUS_METRICS_CACHE_ENABLED\":\"false\"}", 9, 9,
          20 }, /* fetched in each cycle */
        { "{\"PROMETHEUS_METRICS_CACHE_ENABLED\":\"yes\"}", 9, 5, 20 },
        { "{\"PROMETHEUS_METRICS_CACHE_TTL\":\"soon\",\"PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD\":"
          "\"-1s\"}",
          9, 5, 20,
          "PROMETHEUS_METRICS_CACHE_TTL \"soon\" is not a duration; "
          "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD \"-1s\" is not a duration" },
    };
    struct sat_snapshot *before = NULL;
    for (size_t i = 0; i < countof(t); i++) {
        struct sat_report news;
        from.optimization = str_c(t[i].optimization);
        struct sat_snapshot *now = sat_snapshot_new(&from, before, &news);
        EQ_INT(now->interval_ns / NS_PER_S, t[i].interval_s);
        EQ_INT(now->ages.fetch_ns / NS_PER_S, t[i].fetch_s);
        EQ_INT(now->ages.fresh_ns / NS_PER_S, t[i].fresh_s);
        EQ_INT(news.interval_problem.n > 0, i == 2);
        EQ_STR(news.age_problems, str_c(t[i].problems));
        sat_snapshot_unref(before);
        before = now;
    }
    sat_snapshot_unref(before);
}

static void pods_are_not_scraped_without_a_pause(void)
{
    struct sat_report news;
    struct sat_sources from = { .optimization =
                                    S("{\"PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL\":\"1ns\"}") };
    struct sat_snapshot *s = sat_snapshot_new(&from, NULL, &news);
    EQ_INT(s->ages.fetch_ns, 100 * NS_PER_MS);
    OK(str_find(news.age_problems, S("at least 100ms")) != SIZE_MAX);
    sat_snapshot_unref(s);
}

/* No schema validates the data before it is read. */
static void data_of_any_shape_is_read(void)
{
    static const char *const shapes[] = { "[1,{},\"a\"]", "\"text\"", "7", "null", "{\"a\":[]}" };
    for (size_t i = 0; i < countof(shapes); i++) {
        auto_arena struct arena a = { 0 };
        struct json *v = NULL;
        err_t e;
        OK_CALL(json_parse(&a, str_c(shapes[i]), &v, &e), &e);
        EQ_INT((int64_t)zero_table_load(&a, v, NULL).table.n, 0);
        EQ_INT((int64_t)sat_table_load(&a, v, NULL).loaded, i == 4 ? 1 : 0);
        EQ_INT((int64_t)optimize_catalog_read(&a, v, v).accelerator_n, 0);
        struct sat_view view = { .accelerator = S("A100"), .has_current = true };
        struct json *patch = sat_status_patch(&a, v, &view, 1, 1780473600);
        OK(json_is(json_get(patch, "currentAlloc"), JSON_OBJ));
    }
}

int main(void)
{
    int failed = tap_run((struct tap_case[]){ TAP(data_of_any_shape_is_read),
                                              TAP(pods_are_not_scraped_without_a_pause),
                                              TAP(a_field_that_is_zero_is_set),
                                              TAP(an_override_needs_only_what_differs),
                                              TAP(the_best_fit_wins),
                                              TAP(a_bad_edit_keeps_the_last_good_entry),
                                              TAP(an_override_is_judged_with_what_is_under_it),
                                              TAP(a_namespace_may_have_its_own),
                                              TAP(zero_is_off_unless_said),
                                              TAP(a_bad_edit_keeps_the_last_good_zero_entry),
                                              TAP(a_namespace_may_have_its_own_zero),
                                              TAP(the_environment_is_under_the_configmap),
                                              { 0 } });
    arena_done(&arena);
    return failed;
}
