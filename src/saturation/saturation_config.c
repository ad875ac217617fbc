/* ConfigMaps as one snapshot, and the connection to Prometheus that they configure.
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
#include "saturation_state.h"

/* ---- Prometheus */

struct connection {
    const char *url, *token, *token_file, *ca, *cert, *key, *server_name, *skip, *allow_http;
};

/* Flags always win. If a flag or the environment sets the URL, the ConfigMap is ignored; if only
 * the ConfigMap sets it, its other settings win over the environment. */
static struct connection read_connection(const struct saturation *s, const struct json *data)
{
    struct connection c = { 0 };
    const struct {
        const char **to, *flag, *key;
    } all[] = {
        { &c.url, "wva-prometheus-url", "PROMETHEUS_BASE_URL" },
        { &c.token, "", "PROMETHEUS_BEARER_TOKEN" },
        { &c.token_file, "wva-prometheus-token-file", "PROMETHEUS_TOKEN_PATH" },
        { &c.ca, "wva-prometheus-ca-file", "PROMETHEUS_CA_CERT_PATH" },
        { &c.cert, "wva-prometheus-cert-file", "PROMETHEUS_CLIENT_CERT_PATH" },
        { &c.key, "wva-prometheus-key-file", "PROMETHEUS_CLIENT_KEY_PATH" },
        { &c.server_name, "wva-prometheus-server-name", "PROMETHEUS_SERVER_NAME" },
        { &c.skip, "wva-prometheus-skip-verify", "PROMETHEUS_TLS_INSECURE_SKIP_VERIFY" },
        { &c.allow_http, "wva-prometheus-allow-http", "PROMETHEUS_ALLOW_HTTP" },
    };
    for (size_t i = 0; i < countof(all); i++)
        *all[i].to = saturation_options_get(s, all[i].flag, all[i].key);
    bool named = c.url != NULL;
    for (size_t i = 0; !named && i < countof(all); i++) {
        str value = json_text(json_get(data, all[i].key));
        if (value.n && !saturation_options_get(s, all[i].flag, NULL))
            *all[i].to = value.p;
    }
    return c;
}

static int check_connection(const struct connection *c, err_t *e)
{
    bool plain = str_starts(str_c(c->url), S("http://"));
    if (!plain && !str_starts(str_c(c->url), S("https://")))
        return err_set(e, EINVAL, "invalid Prometheus URL \"%s\"; use https://...", c->url);
    if (plain && !(c->allow_http && !strcmp(c->allow_http, "true")))
        return err_set(e, EINVAL,
                       "Prometheus URL \"%s\" does not use TLS; use https:// or set "
                       "PROMETHEUS_ALLOW_HTTP to \"true\"",
                       c->url);
    bool skips = c->skip && !strcmp(c->skip, "true");
    if (plain &&
        (c->token || c->token_file || c->ca || c->cert || c->key || c->server_name || skips))
        return err_set(
            e, EINVAL,
            "Prometheus URL \"%s\" does not use TLS; remove the token and TLS settings or "
            "use https://",
            c->url);
    return 0;
}

/* Creates a client; the TLS context is owned by it afterwards. */
static int open_prometheus(struct saturation *s, const struct connection *c,
                           struct prom_client **ret, err_t *e)
{
    struct tls *tls = NULL;
    bool pair = c->cert && c->key, skips = c->skip && !strcmp(c->skip, "true");
    struct tls_client_options t = { .ca_file = skips ? NULL : c->ca, /* may be unset */
                                    .cert_file = pair ? c->cert : NULL,
                                    .key_file = pair ? c->key : NULL,
                                    .server_name = str_c(c->server_name),
                                    .skip_verify = skips };
    int r = check_connection(c, e);
    if (r == 0 && str_starts(str_c(c->url), S("https://")))
        r = tls_client_new(&t, &tls, e);
    if (r < 0)
        return r;
    struct prom_client_options o = { .url = str_c(c->url),
                                     .tls = tls,
                                     .token = str_c(c->token),
                                     .token_file = c->token ? NULL : c->token_file };
    r = prom_client_new(manager_loop(s->manager), &o, ret, e);
    tls_unref(tls);
    return r;
}

/* Restarts all feeds: their queries went to the old client. */
static void restart_feeds(struct saturation *s, struct prom_client *client)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&s->models, slot));) {
        struct sat_model *m = slot->value;
        collect_stop(&m->feed);
        m->fed = false;
    }
    saturation_probe_stop(s);
    prom_client_free(s->collector.prometheus);
    s->collector.prometheus = client;
    saturation_probe_start(s);
    controller_add(s->engine, S(""), S("cycle"));
}

static bool must_use_prometheus(const struct saturation *s, const char *source)
{
    return source && !strcmp(source, "prometheus") && !s->collector.prometheus;
}

static void set_text(char **to, str from)
{
    free(*to);
    *to = from.n ? mem_dup(from.p, from.n) : NULL;
}

/* A no-op unless a setting changed. On failure metrics are unavailable and s->no_metrics explains
 * why. */
int saturation_config_connect(struct saturation *s, const struct json *data, err_t *e)
{
    const char *source = saturation_options_get(s, "wva-metrics-source", NULL);
    struct connection c = read_connection(s, data);
    auto_buf struct buf made_of = { 0 };
    struct prom_client *client = NULL;
    if (source && strcmp(source, "auto") && strcmp(source, "prometheus") && strcmp(source, "pods"))
        return err_set(e, EINVAL,
                       "invalid --wva-metrics-source \"%s\"; use auto, prometheus or pods", source);
    if (source && !strcmp(source, "pods"))
        c.url = NULL;
    const char *const parts[] = { c.url, c.token,       c.token_file, c.ca,        c.cert,
                                  c.key, c.server_name, c.skip,       c.allow_http };
    for (size_t i = 0; i < countof(parts); i++)
        buf_printf(&made_of, "%s\n", parts[i] ? parts[i] : "");
    if (s->connection && str_eqc(buf_str(&made_of), s->connection))
        return 0;
    set_text(&s->connection, buf_str(&made_of));
    set_text(&s->no_metrics, S(""));
    int r = c.url ? open_prometheus(s, &c, &client, e) : 0;
    if (r < 0)
        set_text(&s->no_metrics, str_c(e->text));
    restart_feeds(s, client);
    if (r == 0 && must_use_prometheus(s, source))
        set_text(&s->no_metrics, S("the URL of Prometheus is not set; set PROMETHEUS_BASE_URL"));
    return r;
}

/* ---- the snapshot */

static int by_ns(const void *a, const void *b)
{
    const struct sat_local_source *x = a, *y = b;
    return str_cmp(x->ns, y->ns);
}

/* The source of namespace `ns`, appended if there is none yet. */
static struct sat_local_source *find_or_add_local(struct sat_local_source *at, size_t *n, str ns)
{
    for (size_t i = 0; i < *n; i++)
        if (str_eq(at[i].ns, ns))
            return &at[i];
    at[*n] = (struct sat_local_source){ .ns = ns };
    return &at[(*n)++];
}

static void gather_locals(struct saturation *s, struct arena *a, struct sat_sources *out)
{
    size_t most = cache_count(s->local_saturation) + cache_count(s->local_zero);
    struct sat_local_source *at = arena_array(a, most, sizeof(*at));
    const struct configmap_record *r;
    cache_each(r, s->local_saturation)
        if (!str_eq(r->meta.ns, s->o.ns))
            find_or_add_local(at, &out->local_n, r->meta.ns)->saturation = r->data;
    cache_each(r, s->local_zero)
        if (!str_eq(r->meta.ns, s->o.ns))
            find_or_add_local(at, &out->local_n, r->meta.ns)->zero = r->data;
    qsort(at, out->local_n, sizeof(*at), by_ns);
    out->locals = at;
}

static void log_entry_problems(const struct sat_load *load, str ns)
{
    for (size_t i = 0; i < load->problem_n; i++) {
        const struct sat_load_problem *p = &load->problems[i];
        log_error(p->unreadable ? "Failed to parse saturation scaling config entry"
                                : "Invalid saturation scaling config entry",
                  KV("key", p->key), KV("namespace", ns), KV("error", p->text),
                  KV_C("instead", p->kept ? "the last good value stays" : "the entry is skipped"));
    }
}

/* Warns about settings of WVA that have no effect here. */
static void warn_ignored_settings(const struct sat_table *table)
{
    const struct sat_entry *x = sat_table_find(table, S("default"));
    bool tokens = x && str_eqc(x->analyzer, "saturation"), limits = x && x->limiter;
    if (tokens || limits)
        log_warn("ignoring saturation settings that are not supported",
                 KV_C("settings", !limits  ? "analyzerName"
                                  : tokens ? "analyzerName, enableLimiter"
                                           : "enableLimiter"));
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
    if (s->optimization_text || json_parse(&scratch, good.optimization, &data, NULL) < 0)
        return;
    if (saturation_config_connect(s, data, &e) < 0)
        log_error("cannot create the Prometheus client", KV_C("error", e.text));
}

/* ---- events: each cache has its own handler */

static bool has_no_data(str data)
{
    auto_arena struct arena scratch = { 0 };
    struct json *tree = NULL;
    return !data.n || json_parse(&scratch, data, &tree, NULL) < 0 || !json_is(tree, JSON_OBJ) ||
           !tree->n;
}

/* An empty ConfigMap is treated as missing: the last good data is kept. */
static bool is_empty_map(const struct record *now)
{
    if (!has_no_data(((const struct configmap_record *)(const void *)now)->data))
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
    set_text(&s->optimization_text, ((const struct configmap_record *)(const void *)now)->data);
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
    if (saturation_config_connect(s, data, &e) < 0)
        log_error("cannot create the Prometheus client", KV_C("error", e.text));
}

static void on_saturation_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    struct sat_report report;
    if (!is_dispatched(SAT_CONFIGMAP_SATURATION, old, now) || is_empty_map(now))
        return;
    set_text(&s->saturation_text, ((const struct configmap_record *)(const void *)now)->data);
    replace_snapshot(s, &report);
    log_info("Updated global saturation config from ConfigMap",
             KV_INT("entries", report.global.loaded));
    log_entry_problems(&report.global, s->o.ns);
    warn_ignored_settings(&s->snapshot->saturation);
}

static void on_zero_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    struct sat_report report;
    if (!is_dispatched(SAT_CONFIGMAP_SATURATION, old, now) || is_empty_map(now))
        return;
    set_text(&s->zero_text, ((const struct configmap_record *)(const void *)now)->data);
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
    str fresh = ((const struct configmap_record *)(const void *)now)->data;
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

/* The ConfigMap of a namespace: when it is deleted the global values apply again. */
static void on_local_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    struct sat_report report;
    const struct record *any = now ? now : old;
    if (str_eq(any->ns, s->o.ns))
        return;
    replace_snapshot(s, &report);
    const struct sat_local *local = sat_snapshot_local(s->snapshot, any->ns);
    log_info("Updated namespace-local saturation config from ConfigMap", KV("namespace", any->ns),
             KV_INT("entries", local ? local->saturation.n : 0));
    if (!local)
        return;
    const struct sat_local_report *report_of_local = &report.locals[local - s->snapshot->locals];
    log_entry_problems(&report_of_local->saturation, any->ns);
    log_zero_problems(report_of_local->zero_problems, any->ns);
}

struct watched {
    struct cache **cache;
    str ns, name;
    cache_handler_fn *handler;
};

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
    for (size_t i = 0; i < n; i++) {
        struct cache_spec spec = configmap_cache;
        spec.ns = all[i].ns;
        spec.field_selector =
            arena_printf(&s->arena, "metadata.name=" STR_FMT, STR_ARG(all[i].name));
        if (manager_cache(s->manager, &spec, all[i].cache, e) < 0)
            return -e->code;
    }
    for (size_t i = 0; i < n; i++)
        cache_handle(*all[i].cache, all[i].handler, s);
    struct sat_report report;
    s->snapshot =
        sat_snapshot_new(&(struct sat_sources){ .defaults = s->o.defaults }, NULL, &report);
    if (report.interval_problem.n)
        return err_set(e, EINVAL, "$" STR_FMT, STR_ARG(report.interval_problem));
    log_age_problems(&report);
    return saturation_keep_start(s, e);
}

void saturation_config_done(struct saturation *s)
{
    sat_snapshot_unref(take(s->snapshot));
    keep_free(take(s->keep));
    free(take(s->optimization_text));
    free(take(s->saturation_text));
    free(take(s->zero_text));
    free(take(s->costs_text));
    free(take(s->classes_text));
    free(take(s->connection));
    free(take(s->no_metrics));
    saturation_probe_stop(s);
    prom_client_free(s->collector.prometheus);
}
