/* ConfigMaps as one snapshot. The connection to Prometheus that they configure is in saturation_prometheus.c.
 *
 * Each ConfigMap has its own cache with a field selector for its name, so watching them costs a
 * constant amount of memory.
 *
 *     cache of a ConfigMap ─► on_..._change ─► text of the last good data ─┐
 *     kept entries (saturation_keep.c) ──────────► saturation_config_restore ─┴─► replace_snapshot ─► s->snapshot
 *
 * The invariant: an edit can only improve the configuration. A ConfigMap that is deleted or emptied
 * changes nothing, and an invalid entry keeps its last good value, also across restarts. The only
 * exception is the ConfigMap of a namespace: deleting it makes the global values apply again.
 *
 * Readers hold a reference to a snapshot; the texts (`..._text`) are owned by struct saturation. */
#include "../base/duration.h"
#include "../base/log.h"
#include "../json/yaml.h"
#include "saturation_state.h"

enum { LOCAL_PAUSE_NS = 50000 }; /* ten times what a snapshot takes per namespace */

static void set_text(char **to, str from)
{
    free(*to);
    *to = from.n ? mem_dup(from.p, from.n) : NULL;
}

/* ---- the snapshot */

static int by_ns(const void *a, const void *b)
{
    const struct sat_local_source *x = a, *y = b;
    return str_cmp(x->ns, y->ns);
}

struct local_sources {
    struct sat_local_source *at; /* with room for all */
    size_t n;
    struct map by_ns;
};

/* The source of namespace `ns`, appended if there is none yet. */
static struct sat_local_source *find_or_add_local(struct local_sources *l, str ns)
{
    struct sat_local_source *found = map_get(&l->by_ns, ns);
    if (found)
        return found;
    l->at[l->n] = (struct sat_local_source){ .ns = ns };
    map_put(&l->by_ns, ns, &l->at[l->n]);
    return &l->at[l->n++];
}

static bool has_no_data(str data)
{
    auto_arena struct arena scratch = { 0 };
    struct json *tree = NULL;
    return !data.n || json_parse(&scratch, data, &tree, NULL) < 0 || !json_is(tree, JSON_OBJ) ||
           !tree->n;
}

/* The older name of a ConfigMap wins whole if it has data, as in the namespace of the controller. */
static void gather_locals(struct saturation *s, struct arena *a, struct sat_sources *out)
{
    size_t most = cache_count(s->local_saturation) + cache_count(s->local_zero) +
                  (s->local_later ? cache_count(s->local_later) : 0);
    struct local_sources l = { .at = arena_array(a, most, sizeof(*l.at)) };
    const struct configmap_record *r;
    if (s->local_later)
        cache_each(r, s->local_later)
            if (!str_eq(r->meta.ns, s->o.ns))
                find_or_add_local(&l, r->meta.ns)->saturation = r->data;
    cache_each(r, s->local_saturation)
        if (!str_eq(r->meta.ns, s->o.ns) &&
            !(has_no_data(r->data) && find_or_add_local(&l, r->meta.ns)->saturation.n))
            find_or_add_local(&l, r->meta.ns)->saturation = r->data;
    cache_each(r, s->local_zero)
        if (!str_eq(r->meta.ns, s->o.ns))
            find_or_add_local(&l, r->meta.ns)->zero = r->data;
    map_done(&l.by_ns);
    qsort(l.at, l.n, sizeof(*l.at), by_ns);
    out->locals = l.at;
    out->local_n = l.n;
}

/* ---- events about ConfigMaps. They are read before this process leads, so events wait for its first cycle. */

enum { WARNINGS_MAX = 32 };

struct config_warning {
    char *ns, *map, *message; /* owned */
    const char *reason;
};

static void warn_map(struct saturation *s, str ns, str map, const char *reason, str message)
{
    if (s->config_warning_n == WARNINGS_MAX)
        return; /* all are in the log */
    if (!s->config_warnings)
        s->config_warnings = mem_zero(WARNINGS_MAX, sizeof(*s->config_warnings));
    s->config_warnings[s->config_warning_n++] =
        (struct config_warning){ mem_dup(ns.p, ns.n), mem_dup(map.p, map.n),
                                 mem_dup(message.p, message.n), reason };
}

void saturation_config_warn(struct saturation *s, const char *reason, str message)
{
    log_warn(reason, KV("message", message));
    warn_map(s, s->o.ns, s->o.saturation_map, reason, message);
}

static void drop_warnings(struct saturation *s)
{
    for (size_t i = 0; i < s->config_warning_n; i++) {
        free(s->config_warnings[i].ns);
        free(s->config_warnings[i].map);
        free(s->config_warnings[i].message);
    }
    free(take(s->config_warnings));
    s->config_warning_n = 0;
}

void saturation_config_emit(struct saturation *s)
{
    for (size_t i = 0; i < s->config_warning_n; i++) {
        const struct config_warning *w = &s->config_warnings[i];
        events_emit(manager_events(s->manager),
                    &(struct kube_event){ .resource = &resource_configmaps,
                                          .ns = str_c(w->ns),
                                          .name = str_c(w->map),
                                          .warning = true,
                                          .reason = w->reason,
                                          .message = str_c(w->message) });
    }
    drop_warnings(s);
}

static void report_entry_problems(struct saturation *s, const struct sat_load *load, str ns,
                                  str map)
{
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < load->problem_n; i++) {
        warn_map(s, ns, map, "ConfigInvalid",
                 arena_printf(&a, "entry " STR_FMT ": " STR_FMT "; %s",
                              STR_ARG(load->problems[i].key), STR_ARG(load->problems[i].text),
                              load->problems[i].kept ? "the last good value stays"
                                                     : "the entry is skipped"));
        const struct sat_load_problem *p = &load->problems[i];
        log_error(p->unreadable ? "Failed to parse saturation scaling config entry"
                                : "Invalid saturation scaling config entry",
                  KV("key", p->key), KV("namespace", ns), KV("error", p->text),
                  KV_C("instead", p->kept ? "the last good value stays" : "the entry is skipped"));
    }
}

/* Warns about analyzers that do not exist here: they have no vote. */
static void warn_unknown_analyzers(struct saturation *s, const struct sat_table *table, str map)
{
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < table->n; i++)
        for (size_t k = 0; k < table->at[i].policy.analyzer_n; k++) {
            str type = table->at[i].policy.analyzers[k].type;
            if (str_eqc(type, "saturation"))
                continue;
            log_warn("AnalyzerUnknown: this analyzer has no vote", KV("entry", table->at[i].key),
                     KV("analyzer", type));
            warn_map(s, s->o.ns, map, "AnalyzerUnknown",
                     arena_printf(&a, "entry " STR_FMT ": the analyzer " STR_FMT " has no vote",
                                  STR_ARG(table->at[i].key), STR_ARG(type)));
        }
}

static void log_zero_problems(str problems, str ns)
{
    if (problems.n)
        log_error("Invalid scale-to-zero config", KV("namespace", ns), KV("entries", problems));
}

static void log_age_problems(const struct sat_report *report)
{
    if (report->age_problems.n)
        log_error("Invalid metrics cache config; using defaults",
                  KV("error", report->age_problems));
}

static str text_or_kept(const struct saturation *s, struct arena *a, const char *text, str map)
{
    return text ? str_c(text) : saturation_keep_read(s, a, map);
}

static struct sat_sources global_sources(const struct saturation *s, struct arena *a, bool kept)
{
    const char *const texts[] = { s->optimization_text, s->saturation_text, s->zero_text,
                                  s->costs_text, s->classes_text };
    const str maps[] = { s->o.optimization_map, s->o.saturation_map, s->o.zero_map,
                         S(SAT_COSTS_MAP), S(SAT_CLASSES_MAP) };
    str at[countof(texts)];
    for (size_t i = 0; i < countof(texts); i++)
        at[i] = text_or_kept(s, a, kept ? NULL : texts[i], maps[i]);
    return (struct sat_sources){ .optimization = at[0],
                                 .saturation = at[1],
                                 .zero = at[2],
                                 .costs = at[3],
                                 .classes = at[4],
                                 .defaults = s->o.defaults };
}

/* Builds a snapshot from the current texts; starts a cycle if the interval changed or thresholds
 * appeared. */
static void replace_snapshot(struct saturation *s, struct sat_report *report)
{
    auto_arena struct arena scratch = { 0 };
    struct sat_sources from = global_sources(s, &scratch, false);
    gather_locals(s, &scratch, &from);
    struct sat_snapshot *old = s->snapshot, *now = sat_snapshot_new(&from, old, report);
    bool sooner = old->interval_ns != now->interval_ns || (!old->saturation.n && now->saturation.n);
    s->snapshot = now;
    sat_snapshot_unref(old);
    if (sooner)
        controller_add(s->engine, S(""), S("cycle"));
}

void saturation_config_restore(struct saturation *s)
{
    auto_arena struct arena scratch = { 0 };
    struct sat_report report;
    struct json *data = NULL;
    err_t e;
    struct sat_sources good = global_sources(s, &scratch, true);
    saturation_keep_read_locals(s, &scratch, &good);
    uint64_t generation = s->snapshot->generation;
    sat_snapshot_unref(s->snapshot);
    s->snapshot = sat_snapshot_new(&good, NULL, &report);
    s->snapshot->generation = generation; /* no reader has seen this snapshot */
    replace_snapshot(s, &report);
    report_entry_problems(s, &report.global, s->o.ns,
                          s->o.saturation_map); /* the ConfigMap may have come first */
    if (s->optimization_text || json_parse(&scratch, good.optimization, &data, NULL) < 0)
        return;
    if (saturation_prometheus_connect(s, data, &e) < 0)
        log_error("cannot create the Prometheus client", KV_C("error", e.text));
}

/* ---- events: each cache has its own handler */

/* An empty ConfigMap is treated as missing: the last good data is kept. */
static bool is_empty_map(const struct record *now)
{
    if (!has_no_data(record_as(struct configmap_record, now)->data))
        return false;
    log_warn("ConfigMap has no entries; keeping the last good ones", KV("name", now->name));
    return true;
}

static bool is_dispatched(enum sat_configmap which, const struct record *old,
                          const struct record *now)
{
    struct sat_event event = { .source = SAT_FROM_CONFIGMAP,
                               .type = !now  ? SAT_DELETED
                                       : old ? SAT_UPDATED
                                             : SAT_CREATED,
                               .configmap = which,
                               .own = true };
    return sat_dispatch(&event).passes;
}

static void on_optimization_change(void *context, const struct record *old,
                                   const struct record *now)
{
    struct saturation *s = context;
    struct sat_report report;
    err_t e;
    if (!is_dispatched(SAT_CONFIGMAP_OPTIMIZATION, old, now) || is_empty_map(now))
        return;
    set_text(&s->optimization_text, record_as(struct configmap_record, now)->data);
    replace_snapshot(s, &report);
    char text[DURATION_TEXT_MAX];
    log_info("Updated global optimization config from ConfigMap",
             KV("interval", duration_text(s->snapshot->interval_ns, text)));
    if (report.interval_problem.n)
        log_error("Invalid optimization config; keeping the last interval",
                  KV("error", report.interval_problem));
    log_age_problems(&report);
    auto_arena struct arena scratch = { 0 };
    struct json *data = NULL;
    json_parse(&scratch, str_c(s->optimization_text), &data, NULL);
    if (saturation_prometheus_connect(s, data, &e) < 0)
        log_error("cannot create the Prometheus client", KV_C("error", e.text));
}

static void on_saturation_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    struct sat_report report;
    if (!is_dispatched(SAT_CONFIGMAP_SATURATION, old, now) || is_empty_map(now))
        return;
    set_text(&s->saturation_text, record_as(struct configmap_record, now)->data);
    replace_snapshot(s, &report);
    log_info("Updated global saturation config from ConfigMap",
             KV_INT("entries", report.global.loaded));
    report_entry_problems(s, &report.global, s->o.ns, now->name);
    warn_unknown_analyzers(s, &s->snapshot->saturation, now->name);
}

static void on_zero_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    struct sat_report report;
    if (!is_dispatched(SAT_CONFIGMAP_SATURATION, old, now) || is_empty_map(now))
        return;
    set_text(&s->zero_text, record_as(struct configmap_record, now)->data);
    replace_snapshot(s, &report);
    log_info("Updated global scale-to-zero config from ConfigMap",
             KV_INT("entries", s->snapshot->zero.n));
    log_zero_problems(report.zero_problems, s->o.ns);
}

/* Costs or service classes changed: use them only if they can be read. */
static void replace_catalog(struct saturation *s, char **text, const struct record *now)
{
    struct sat_report report;
    auto_arena struct arena scratch = { 0 };
    struct json *data = NULL;
    if (!now || is_empty_map(now)) /* deleted: keep the last good data */
        return;
    str fresh = record_as(struct configmap_record, now)->data;
    bool costs = text == &s->costs_text, read = json_parse(&scratch, fresh, &data, NULL) == 0;
    struct optimize_catalog c =
        optimize_catalog_read(&scratch, costs ? data : NULL, costs ? NULL : data);
    if (!read || c.problem.n) {
        log_error("Invalid optimizer config; keeping the last good one", KV("name", now->name),
                  KV("error", read ? c.problem : S("no data")));
        return;
    }
    set_text(text, fresh);
    replace_snapshot(s, &report);
    log_info("Updated optimizer config from ConfigMap", KV("name", now->name),
             KV_INT("accelerators", c.accelerator_n), KV_INT("classes", c.class_n),
             KV_INT("skipped", c.skipped));
}

static void on_costs_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    (void)old;
    replace_catalog(s, &s->costs_text, now);
}

static void on_classes_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    (void)old;
    replace_catalog(s, &s->classes_text, now);
}

static void log_local(struct saturation *s, const struct sat_report *report, str ns)
{
    const struct sat_local *local = sat_snapshot_local(s->snapshot, ns);
    log_info("Updated namespace-local saturation config from ConfigMap", KV("namespace", ns),
             KV_INT("entries", local ? local->saturation.n : 0));
    if (!local)
        return;
    const struct sat_local_report *of_local = &report->locals[local - s->snapshot->locals];
    report_entry_problems(s, &of_local->saturation, ns, s->o.saturation_map);
    log_zero_problems(of_local->zero_problems, ns);
}

static void free_changed_locals(struct map *changed)
{
    for (struct map_slot *slot = NULL; (slot = map_next(changed, slot));)
        free(slot->value);
    map_done(changed);
}

static void on_locals_timer(struct timer *timer)
{
    struct saturation *s = container_of(timer, struct saturation, locals_timer);
    struct map changed = s->changed_locals;
    auto_arena struct arena a = { 0 };
    struct sat_local_source *names = arena_array(&a, changed.n, sizeof(*names));
    struct sat_report report;
    size_t n = 0;
    s->changed_locals = (struct map){ 0 };
    for (struct map_slot *slot = NULL; (slot = map_next(&changed, slot));)
        names[n++] = (struct sat_local_source){ .ns = slot->key };
    qsort(names, n, sizeof(*names), by_ns);
    replace_snapshot(s, &report);
    for (size_t i = 0; i < n; i++)
        log_local(s, &report, names[i].ns);
    free_changed_locals(&changed);
    s->locals_after_ns =
        loop_mono_ns(manager_loop(s->manager)) + (int64_t)s->snapshot->local_n * LOCAL_PAUSE_NS;
}

/* The ConfigMap of a namespace: when it is deleted the global values apply again. A snapshot has all namespaces, so there
 * is a pause between two that grows with their number: otherwise the work would grow with its square. */
static void on_local_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    const struct record *any = now ? now : old;
    if (str_eq(any->ns, s->o.ns))
        return;
    if (!map_get(&s->changed_locals, any->ns)) {
        char *ns = mem_dup(any->ns.p, any->ns.n);
        map_put(&s->changed_locals, (str){ ns, any->ns.n }, ns);
    }
    struct loop *loop = manager_loop(s->manager);
    if (!timer_is_set(&s->locals_timer))
        timer_set(loop, &s->locals_timer, MAX(loop_mono_ns(loop), s->locals_after_ns),
                  on_locals_timer);
}

struct watched {
    struct cache **cache;
    str ns, name;
    cache_handler_fn *handler;
};

/* ---- the names of WVA 0.9 */

/* The older name wins whole if its ConfigMap has data. */
static bool is_shadowed(struct saturation *s, struct cache *older, str name,
                        const struct record *now)
{
    const struct configmap_record *r = cache_get(older, s->o.ns, name);
    if (!r || has_no_data(r->data))
        return false;
    log_warn("ConfigShadowed: another ConfigMap for the same purpose is in use",
             KV("ignored", now->name), KV("used", name));
    auto_arena struct arena a = { 0 };
    warn_map(s, now->ns, now->name, "ConfigShadowed",
             arena_printf(&a, "it is ignored, because " STR_FMT " has data", STR_ARG(name)));
    return true;
}

static void on_later_saturation(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    if (!now || is_shadowed(s, s->saturation, s->o.saturation_map, now))
        return;
    s->nine |= s->o.metrics != METRICS_SEED;
    on_saturation_change(context, old, now);
}

/* In WVA 0.9 its entry `default` stops every decision; here it has no effect. */
static void on_queueing(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    (void)old;
    if (now && !has_no_data(record_as(struct configmap_record, now)->data))
        warn_map(s, now->ns, now->name, "ConfigIgnored",
                 S("flyball has no queueing model analyzer; remove this ConfigMap"));
}

/* Its key config.yaml holds what used to be keys of the ConfigMap. */
static void on_later_optimization(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    auto_arena struct arena a = { 0 };
    struct json *data = NULL, *inner = NULL;
    if (!now || is_shadowed(s, s->optimization, s->o.optimization_map, now))
        return;
    const struct configmap_record *r = record_as(struct configmap_record, now);
    if (json_parse(&a, r->data, &data, NULL) < 0 || !json_is(data, JSON_OBJ) ||
        yaml_parse(&a, json_text(json_get(data, "config.yaml")), &inner, NULL) < 0)
        return;
    json_each(m, inner)
        if (!json_get_str(data, m->key) && m->value->type != JSON_ARR && m->value->type != JSON_OBJ)
            json_set(&a, data, m->key,
                     json_is(m->value, JSON_STR) ? m->value
                                                 : json_new_str(&a, json_to_str(&a, m->value)));
    json_del(data, S("config.yaml"));
    struct configmap_record flat = *r;
    flat.data = json_to_str(&a, data);
    s->nine |= s->o.metrics != METRICS_SEED;
    on_optimization_change(context, old, &flat.meta);
}

static int watch_map(struct saturation *s, str ns, str name, enum cache_need need,
                     struct cache **ret, err_t *e)
{
    struct cache_spec spec = saturation_configmap_cache;
    spec.need = need;
    spec.ns = ns;
    spec.field_selector = arena_printf(&s->arena, "metadata.name=" STR_FMT, STR_ARG(name));
    return manager_cache(s->manager, &spec, ret, e);
}

/* Watches the names of WVA 0.9 too, unless a flag or variable names the ConfigMap. */
static int watch_later_names(struct saturation *s, err_t *e)
{
    struct {
        bool wanted;
        str ns, name;
        cache_handler_fn *handler;
        struct cache **to; /* NULL: only its handler needs it */
    } all[] = {
        { !saturation_options_get(s, "wva-saturation-config-map", "SATURATION_CONFIG_MAP_NAME"),
          s->o.ns, S("wva-saturation-scaling-config"), on_later_saturation, NULL },
        { !saturation_options_get(s, "wva-config-map", "CONFIG_MAP_NAME"), s->o.ns,
          S("wva-manager-config"), on_later_optimization, NULL },
        { !saturation_options_get(s, "wva-saturation-config-map", "SATURATION_CONFIG_MAP_NAME"),
          S(""), S("wva-saturation-scaling-config"), on_local_change, &s->local_later },
        { true, s->o.ns, S("wva-queueing-model-config"), on_queueing, NULL },
    };
    for (size_t i = 0; i < countof(all); i++) {
        struct cache *cache;
        if (!all[i].wanted)
            continue;
        if (watch_map(s, all[i].ns, all[i].name, CACHE_IF_ALLOWED, &cache, e) < 0)
            return -e->code;
        if (all[i].to)
            *all[i].to = cache;
        cache_handle(cache, all[i].handler, s);
    }
    return 0;
}

int saturation_config_start(struct saturation *s, err_t *e)
{
    const struct watched all[] = {
        { &s->optimization, s->o.ns, s->o.optimization_map, on_optimization_change },
        { &s->saturation, s->o.ns, s->o.saturation_map, on_saturation_change },
        { &s->zero, s->o.ns, s->o.zero_map, on_zero_change },
        { &s->local_saturation, S(""), s->o.saturation_map, on_local_change },
        { &s->local_zero, S(""), s->o.zero_map, on_local_change },
        { &s->classes, s->o.ns, S(SAT_CLASSES_MAP), on_classes_change },
        { &s->costs, s->o.ns, S(SAT_COSTS_MAP), on_costs_change },
    };
    bool compat = s->o.mode == DECIDE_CAPACITY && decide_is_compat(s->o.rules);
    size_t n = countof(all) - (compat ? 2 : s->o.mode == DECIDE_CAPACITY ? 1 : 0);
    for (size_t i = 0; i < n; i++)
        if (watch_map(s, all[i].ns, all[i].name, saturation_configmap_cache.need, all[i].cache, e) <
            0)
            return -e->code;
    for (size_t i = 0; i < n; i++)
        cache_handle(*all[i].cache, all[i].handler, s);
    struct sat_report report;
    s->snapshot =
        sat_snapshot_new(&(struct sat_sources){ .defaults = s->o.defaults }, NULL, &report);
    if (report.interval_problem.n)
        return err_set(e, EINVAL, "$" STR_FMT, STR_ARG(report.interval_problem));
    log_age_problems(&report);
    if (watch_later_names(s, e) < 0)
        return -e->code;
    return saturation_keep_start(s, e);
}

void saturation_config_done(struct saturation *s)
{
    drop_warnings(s);
    char **texts[] = { &s->optimization_text, &s->saturation_text, &s->zero_text, &s->costs_text,
                       &s->classes_text,      &s->connection,      &s->no_metrics };
    for (size_t i = 0; i < countof(texts); i++)
        free(take(*texts[i]));
    timer_stop(&s->locals_timer);
    free_changed_locals(&s->changed_locals);
    sat_snapshot_unref(take(s->snapshot));
    keep_free(take(s->keep));
    saturation_probe_stop(s);
    prom_client_free(s->collector.prometheus);
}
