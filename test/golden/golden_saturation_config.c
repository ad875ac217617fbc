/* Families of the saturation feature's configuration and watches: wva-config-entry, wva-config-merge,
 * wva-scale-to-zero-config, wva-events. The merge is the original's, so it runs in compat mode. */
#include "golden.h"

#include "base/duration.h"
#include "saturation/config/config_core.h"
#include "saturation/wva/dispatch_core.h"
#include "saturation/zero/zero_core.h"

static const struct tolerance exact = { 1e-12, 0 };

static const char *const number_names[SAT_NUMBER_N] = {
    "kvCacheThreshold",  "queueLengthThreshold", "kvSpareTrigger",
    "queueSpareTrigger", "scaleUpThreshold",     "scaleDownBoundary",
};

/* ---- wva-config-entry */

static void check_entry(struct golden *g, enum sat_era era, str yaml, const struct json *want)
{
    struct sat_entry entry = { 0 };
    err_t e = { 0 };
    int r = sat_entry_parse(g->arena, yaml, era, &entry, &e);
    const char *status = "parse-error";
    if (r == 0) {
        r = sat_entry_check_compat(&entry, era, &e);
        status = r == 0 ? "accepted" : "invalid";
    }
    golden_eq_str(g, "status", str_c(status), json_get(want, "status"));
    if (json_get(want, "error"))
        golden_eq_str(g, "error", str_c(e.text), json_get(want, "error"));
    const struct json *config = json_get(want, "config");
    if (!config || r < 0)
        return;
    for (int i = 0; i < SAT_NUMBER_N; i++)
        golden_eq_real(g, number_names[i], entry.number[i], json_get(config, number_names[i]),
                       exact);
    golden_eq_str(g, "model_id", entry.model, json_get(config, "model_id"));
    golden_eq_str(g, "namespace", entry.ns, json_get(config, "namespace"));
    golden_eq_bool(g, "enableLimiter", entry.limiter, json_get(config, "enableLimiter"));
    golden_eq_str(g, "analyzerName", entry.analyzer, json_get(config, "analyzerName"));
}

static void run_entry(struct golden *g, const struct json *c)
{
    str yaml = json_text(json_at(c, "input", "yaml", NULL));
    const struct json *want = json_get(c, "expected");
    check_entry(g, SAT_ERA_2026, yaml, json_get(want, "feb2026"));
    check_entry(g, SAT_ERA_SEED, yaml, json_get(want, "seedEra"));
}

/* ---- wva-config-merge */

static int by_key(const void *a, const void *b)
{
    const struct sat_entry *x = a, *y = b;
    return str_cmp(x->key, y->key);
}

static void run_merge(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *data = json_get(in, "data");
    const struct json *want = json_at(c, "expected", "config", NULL);
    struct sat_entry *entries = arena_array(g->arena, json_len(data), sizeof(*entries));
    struct sat_table table = { entries, 0 };
    json_each(m, data) {
        struct sat_entry entry;
        if (sat_entry_parse(g->arena, json_text(m->value), SAT_ERA_SEED, &entry, NULL) < 0 ||
            sat_entry_check_compat(&entry, SAT_ERA_SEED, NULL) < 0)
            continue;
        entry.key = m->key;
        entries[table.n++] = entry;
    }
    qsort(entries, table.n, sizeof(*entries), by_key);
    struct sat_resolved r = sat_config_resolve_compat(&table, json_text(json_get(in, "modelID")),
                                                      json_text(json_get(in, "namespace")));
    golden_eq_real(g, number_names[0], r.config.kv_threshold, json_get(want, number_names[0]),
                   exact);
    golden_eq_real(g, number_names[1], r.config.queue_threshold, json_get(want, number_names[1]),
                   exact);
    golden_eq_real(g, number_names[2], r.config.kv_spare_trigger, json_get(want, number_names[2]),
                   exact);
    golden_eq_real(g, number_names[3], r.config.queue_spare_trigger,
                   json_get(want, number_names[3]), exact);
    golden_eq_int(g, "matchingOverrides", (int64_t)r.matching,
                  json_at(c, "expected", "matchingOverrides", NULL));
}

/* ---- wva-scale-to-zero-config */

static struct json *shown_entry(struct arena *a, const struct zero_entry *x)
{
    struct json *out = json_new_obj(a);
    json_set(a, out, S("enable_scale_to_zero"),
             x->has_enabled ? json_new_bool(a, x->enabled) : json_new_null(a));
    json_set_str(a, out, "model_id", x->model_id);
    json_set_str(a, out, "namespace", x->ns);
    json_set_str(a, out, "retention_period", x->retention);
    return out;
}

static void run_zero(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    str model = json_text(json_get(in, "modelID"));
    bool env = str_eq_nocase(json_text(json_get(in, "env")), S("true"));
    struct zero_table table = zero_table_load(g->arena, json_get(in, "data"), NULL).table;
    struct json *parsed = json_new_obj(g->arena);
    for (size_t i = 0; i < table.n; i++)
        json_set(g->arena, parsed, table.at[i].model, shown_entry(g->arena, &table.at[i]));
    bool enabled = zero_enabled(&table, model, env);
    int64_t retention = zero_retention_ns(&table, model);
    char text[DURATION_TEXT_MAX];
    golden_eq_json(g, "parsed", parsed, json_get(want, "parsed"));
    golden_eq_bool(g, "enabled", enabled, json_get(want, "enabled"));
    golden_eq_int(g, "minReplicas", enabled ? 0 : 1, json_get(want, "minReplicas"));
    golden_eq_int(g, "retentionNs", retention, json_get(want, "retentionNs"));
    golden_eq_str(g, "promDuration", duration_prom_text(retention, text),
                  json_get(want, "promDuration"));
}

/* ---- wva-events */

static const char *const action_names[] = {
    [SAT_DO_NOTHING] = "none",
    [SAT_RECONCILE] = "reconcile-va",
    [SAT_RECONCILE_TARGETING] = "reconcile-matching-vas",
    [SAT_UPDATE_INTERVAL] = "update-interval",
    [SAT_REPLACE_CONFIG] = "replace-saturation-config",
    [SAT_ALERT] = "alert",
};

static struct sat_event read_event(const struct json *in)
{
    str resource = json_text(json_get(in, "resource")), what = json_text(json_get(in, "event"));
    str map = json_text(json_get(in, "configMap")),
        set = json_text(json_get(in, "deletionTimestamp"));
    bool channel = str_eqc(what, "ChannelGeneric");
    return (struct sat_event){
        .source = channel                               ? SAT_FROM_ENGINE
                  : str_eqc(resource, "Deployment")     ? SAT_FROM_WORKLOAD
                  : str_eqc(resource, "ConfigMap")      ? SAT_FROM_CONFIGMAP
                  : str_eqc(resource, "ServiceMonitor") ? SAT_FROM_SERVICEMONITOR
                                                        : SAT_FROM_VARIANT,
        .type = str_eqc(what, "Create")   ? SAT_CREATED
                : str_eqc(what, "Update") ? SAT_UPDATED
                : str_eqc(what, "Delete") ? SAT_DELETED
                                          : SAT_GENERIC,
        .configmap = str_eqc(map, "optimization") ? SAT_CONFIGMAP_OPTIMIZATION
                     : str_eqc(map, "saturation") ? SAT_CONFIGMAP_SATURATION
                                                  : SAT_CONFIGMAP_OTHER,
        .own = json_bool(json_get(in, "own"), false) ||
               str_eqc(json_text(json_get(in, "namespace")), "controller"),
        .deleting = str_eqc(set, "newly-set") || str_eqc(set, "still-set"),
    };
}

static void run_events(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    struct sat_event event = read_event(in);
    struct sat_dispatch d = sat_dispatch(&event);
    golden_eq_bool(g, "passes", d.passes, json_get(want, "passes"));
    golden_eq_str(g, "action", str_c(action_names[d.action]), json_get(want, "action"));
    if (json_get(want, "requests"))
        golden_eq_int(g, "requests",
                      d.action == SAT_RECONCILE_TARGETING
                          ? json_int(json_get(in, "matchingVAsInNamespace"), 0)
                          : 0,
                      json_get(want, "requests"));
}

const struct golden_family golden_saturation_config[] = {
    { "wva-config-entry", run_entry },
    { "wva-config-merge", run_merge },
    { "wva-scale-to-zero-config", run_zero },
    { "wva-events", run_events },
    { 0 },
};
