/* Builds snapshots of the configuration: see snapshot.h.
 *
 * Everything in a snapshot lives in its arena and is copied from the sources, so a snapshot
 * outlives the caches that it was read from. It is freed with its last reference. Durations of
 * WVA's metrics cache (PROMETHEUS_METRICS_CACHE_*) become the ages of metrics: there is no cache
 * here, but the feeds fetch at the same rhythm. */
#include "snapshot.h"

#include "../../base/clock.h"
#include "../../base/duration.h"

static const int64_t interval_default_ns = 30 * NS_PER_S, interval_least_ns = 100 * NS_PER_MS;
static const struct sat_ages ages_default = { 30 * NS_PER_S, 60 * NS_PER_S, 300 * NS_PER_S };

static const struct json *parse_json(struct arena *a, str text)
{
    struct json *tree = NULL;
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

/* ---- durations of the optimization ConfigMap */

static void read_interval(struct sat_snapshot *s, const struct json *data,
                          struct sat_report *report)
{
    const struct json *v = json_get(data, "GLOBAL_OPT_INTERVAL");
    int64_t ns;
    err_t e;
    if (!v)
        return;
    if (duration_parse(json_text(v), &ns, &e) < 0)
        report->interval_problem = arena_printf(&s->arena, "GLOBAL_OPT_INTERVAL: %s", e.text);
    else if (ns < interval_least_ns)
        report->interval_problem =
            arena_printf(&s->arena,
                         "GLOBAL_OPT_INTERVAL \"" STR_FMT "\" is too short; use at least 100ms",
                         STR_ARG(json_text(v)));
    else
        s->interval_ns = ns;
}

#define CACHE_KEY "PROMETHEUS_METRICS_CACHE_"

struct cache_settings {
    const struct json *data[2]; /* the ConfigMap, then the environment */
    struct arena *arena;
    str problems;
};

/* The first valid duration under `key`; invalid ones are added to the problems. */
static int64_t read_duration(struct cache_settings *c, const char *key, int64_t otherwise)
{
    for (size_t i = 0; i < countof(c->data); i++) {
        const struct json *v = json_get(c->data[i], key);
        int64_t ns = -1;
        if (!v)
            continue;
        if (duration_parse(json_text(v), &ns, NULL) == 0 && ns > 0)
            return ns;
        if (ns != 0) /* 0 means off and is no problem */
            c->problems = arena_printf(c->arena, STR_FMT "%s%s \"" STR_FMT "\" is not a duration",
                                       STR_ARG(c->problems), c->problems.n ? "; " : "", key,
                                       STR_ARG(json_text(v)));
    }
    return otherwise;
}

/* On unless the setting has another value than these. */
static bool is_cache_enabled(const struct cache_settings *c)
{
    str setting = S("");
    for (size_t i = 0; i < countof(c->data) && !setting.n; i++)
        setting = json_text(json_get(c->data[i], CACHE_KEY "ENABLED"));
    return !setting.n || str_eqc(setting, "true") || str_eqc(setting, "1") ||
           str_eqc(setting, "yes");
}

static void read_ages(struct sat_snapshot *s, const struct json *data, const struct json *defaults,
                      str *ret_problems)
{
    struct cache_settings c = { { data, defaults }, &s->arena, S("") };
    /* At most one cycle, or two decisions would use the same metrics. */
    int64_t fetch = MIN(ages_default.fetch_ns, s->interval_ns);
    if (is_cache_enabled(&c))
        fetch = read_duration(&c, CACHE_KEY "FETCH_INTERVAL",
                              read_duration(&c, CACHE_KEY "TTL", fetch));
    if (fetch < interval_least_ns) { /* every pod would be scraped without a pause */
        fetch = interval_least_ns;
        c.problems =
            arena_printf(c.arena, STR_FMT "%s" CACHE_KEY "FETCH_INTERVAL must be at least 100ms",
                         STR_ARG(c.problems), c.problems.n ? "; " : "");
    }
    int64_t fresh = read_duration(&c, CACHE_KEY "FRESH_THRESHOLD", ages_default.fresh_ns);
    int64_t unavailable =
        read_duration(&c, CACHE_KEY "UNAVAILABLE_THRESHOLD", ages_default.unavailable_ns);
    *ret_problems = c.problems;
    /* One fetch may fail before metrics count as stale, however long the interval is. */
    s->ages = (struct sat_ages){ fetch, MAX(fresh, 2 * fetch), MAX(unavailable, 4 * fetch) };
}

/* ---- namespaces */

static int by_ns(const void *a, const void *b)
{
    const struct sat_local *x = a, *y = b;
    return str_cmp(x->ns, y->ns);
}

const struct sat_local *sat_snapshot_local(const struct sat_snapshot *s, str ns)
{
    struct sat_local key = { .ns = ns };
    return s->local_n ? bsearch(&key, s->locals, s->local_n, sizeof(*s->locals), by_ns) : NULL;
}

static void read_locals(struct sat_snapshot *s, const struct sat_sources *from,
                        const struct sat_snapshot *before, struct sat_report *report)
{
    s->locals = arena_array(&s->arena, from->local_n, sizeof(*s->locals));
    report->locals = arena_array(&s->arena, from->local_n, sizeof(*report->locals));
    for (size_t i = 0; i < from->local_n; i++) {
        const struct sat_local_source *source = &from->locals[i];
        const struct sat_local *old = before ? sat_snapshot_local(before, source->ns) : NULL;
        struct sat_load saturation =
            sat_table_load(&s->arena, parse_json(&s->arena, source->saturation),
                           old ? &old->saturation : NULL);
        struct zero_load zero = zero_table_load(&s->arena, parse_json(&s->arena, source->zero),
                                                old ? &old->zero : NULL);
        report->locals[i] = (struct sat_local_report){ saturation, zero.problems };
        s->locals[s->local_n++] =
            (struct sat_local){ arena_str(&s->arena, source->ns), saturation.table, zero.table };
    }
}

/* ---- the whole */

struct sat_snapshot *sat_snapshot_new(const struct sat_sources *from,
                                      const struct sat_snapshot *before,
                                      struct sat_report *ret_report)
{
    struct sat_snapshot *s = mem_zero(1, sizeof(*s));
    *ret_report = (struct sat_report){ 0 };
    s->refs = 1;
    s->generation = before ? before->generation + 1 : 1;
    s->interval_ns = before ? before->interval_ns : interval_default_ns;
    const struct json *optimization = parse_json(&s->arena, from->optimization);
    const struct json *defaults = parse_json(&s->arena, from->defaults);
    if (!before)
        read_interval(s, defaults, ret_report);
    read_interval(s, optimization, ret_report);
    read_ages(s, optimization, defaults, &ret_report->age_problems);
    ret_report->global = sat_table_load(&s->arena, parse_json(&s->arena, from->saturation),
                                        before ? &before->saturation : NULL);
    s->saturation = ret_report->global.table;
    struct zero_load zero = zero_table_load(&s->arena, parse_json(&s->arena, from->zero),
                                            before ? &before->zero : NULL);
    s->zero = zero.table;
    ret_report->zero_problems = zero.problems;
    s->catalog = optimize_catalog_read(&s->arena, parse_json(&s->arena, from->costs),
                                       parse_json(&s->arena, from->classes));
    read_locals(s, from, before, ret_report);
    return s;
}

struct sat_snapshot *sat_snapshot_ref(struct sat_snapshot *s)
{
    s->refs++;
    return s;
}

void sat_snapshot_unref(struct sat_snapshot *s)
{
    if (!s || --s->refs)
        return;
    arena_done(&s->arena);
    free(s);
}

struct sat_resolved sat_snapshot_resolve(const struct sat_snapshot *s, const struct sat_lookup *q)
{
    const struct sat_local *local = sat_snapshot_local(s, q->ns);
    return sat_config_resolve(&s->saturation, local ? &local->saturation : NULL, q);
}

const struct zero_table *sat_snapshot_zero(const struct sat_snapshot *s, str ns)
{
    const struct sat_local *local = sat_snapshot_local(s, ns);
    return local && local->zero.n ? &local->zero : &s->zero;
}
