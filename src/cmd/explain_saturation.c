/* flyball explain va: what was decided about a variant and why, which thresholds apply to its model
 * and where they come from, and how the variants of the model compare. Reads the API server only;
 * the status is the controller's. */
#include "../saturation/config_core.h"
#include "../saturation/saturation_records.h"
#include "../saturation/saturation_spec.h"
#include "../saturation/status_core.h"
#include "explain.h"

static const char *from_env(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static str name_of(const struct json *object)
{
    return json_text(json_at(object, "metadata", "name", NULL));
}

static str accelerator_of(const struct json *object)
{
    return json_text(json_at(object, "metadata", "labels", SAT_ACCELERATOR_LABEL, NULL));
}

/* ---- the model's variants */

struct siblings {
    const struct json **at; /* sorted by name */
    struct variant_spec *specs;
    size_t n;
};

static int by_name(const void *a, const void *b)
{
    const struct json *const *x = a, *const *y = b;
    return str_cmp(name_of(*x), name_of(*y));
}

/* All variants of the model in the namespace, with parsed specs. */
static int find_siblings(struct explain *x, str model, struct siblings *ret, err_t *e)
{
    struct json *list = NULL;
    int r = explain_get(x, &variant_resource, x->ns, S(""), &list, e);
    if (r < 0)
        return r;
    const struct json *items = json_get(list, "items");
    ret->at = arena_array(&x->arena, json_len(items), sizeof(*ret->at));
    ret->specs = arena_array(&x->arena, json_len(items), sizeof(*ret->specs));
    for (size_t i = 0; i < json_len(items); i++)
        if (str_eq(json_text(json_at(json_item(items, i), "spec", "modelID", NULL)), model))
            ret->at[ret->n++] = json_item(items, i);
    qsort(ret->at, ret->n, sizeof(*ret->at), by_name);
    for (size_t i = 0; i < ret->n; i++)
        ret->specs[i] = saturation_spec_read(&x->arena, json_get(ret->at[i], "spec"));
    return 0;
}

static void put_replicas(struct buf *out, const struct json *status, const char *part)
{
    const struct json *v = json_at(status, part, "numReplicas", NULL);
    if (v)
        buf_printf(out, "  %8lld", (long long)json_int(v, 0));
    else
        buf_put(out, S("         -"));
}

static void put_siblings(struct explain *x, const struct siblings *all)
{
    buf_put(&x->out, S("\nThe model's variants:\n"));
    buf_printf(&x->out, "  %-24s %-12s %8s  %8s  %8s\n", "variant", "accelerator", "cost",
               "replicas", "target");
    for (size_t i = 0; i < all->n; i++) {
        const struct json *status = json_get(all->at[i], "status");
        buf_printf(&x->out, "%s %-24s %-12s %8g", str_eq(name_of(all->at[i]), x->name) ? ">" : " ",
                   name_of(all->at[i]).p, accelerator_of(all->at[i]).p, all->specs[i].cost);
        put_replicas(&x->out, status, "currentAlloc");
        put_replicas(&x->out, status, "desiredOptimizedAlloc");
        buf_putc(&x->out, '\n');
    }
}

/* ---- thresholds */

/* The table of the ConfigMap; empty if there is none. */
static int read_table(struct explain *x, const char *ns, struct sat_load *ret, err_t *e)
{
    struct json *map = NULL;
    str name = str_c(from_env("SATURATION_CONFIG_MAP_NAME", "saturation-scaling-config"));
    int r = explain_get(x, &resource_configmaps, str_c(ns), name, &map, e);
    if (r < 0 && r != -ENOENT)
        return r;
    *ret = sat_table_load(&x->arena, json_get(map, "data"), NULL);
    return 0;
}

static void put_source(struct explain *x, const struct sat_resolved *r, bool local)
{
    if (r->override)
        buf_printf(&x->out, "entry " STR_FMT " of the %s ConfigMap", STR_ARG(r->override->key),
                   local ? "namespace's" : "global");
    else
        buf_printf(&x->out, "the %s defaults", local ? "namespace's" : "global");
}

static void put_problems(struct explain *x, const struct sat_load *l)
{
    for (size_t i = 0; i < l->problem_n; i++)
        buf_printf(&x->out,
                   "  entry " STR_FMT " is invalid: " STR_FMT
                   "; the controller keeps its last good value, if it has one\n",
                   STR_ARG(l->problems[i].key), STR_ARG(l->problems[i].text));
}

/* Prints the thresholds that the controller would resolve, with their source and invalid entries. */
static int put_thresholds(struct explain *x, str model, const struct siblings *all, err_t *e)
{
    const char *home = from_env("POD_NAMESPACE", "workload-variant-autoscaler-system");
    struct sat_load global, local = { 0 };
    int r = read_table(x, home, &global, e);
    if (r == 0 && !str_eqc(x->ns, home))
        r = read_table(x, x->ns.p, &local, e);
    if (r < 0)
        return r;
    str(*variants)[2] = arena_array(&x->arena, all->n, sizeof(*variants));
    for (size_t i = 0; i < all->n; i++) {
        variants[i][0] = name_of(all->at[i]);
        variants[i][1] = all->specs[i].target_name;
    }
    struct sat_lookup q = { model, x->ns, (const str(*)[2])variants, all->n };
    struct sat_resolved found = sat_config_resolve(&global.table, &local.table, &q);
    const struct sat_config *c = &found.config;
    buf_put(&x->out, S("\nThresholds, from "));
    put_source(x, &found, local.table.n > 0);
    buf_printf(
        &x->out,
        ":\n  saturated at KV cache >= %g or queue >= %g; scales up below %g or %g of spare\n",
        c->kv_threshold, c->queue_threshold, c->kv_spare_trigger, c->queue_spare_trigger);
    put_problems(x, &global);
    put_problems(x, &local);
    return 0;
}

/* ---- the answer */

static void put_spec(struct explain *x, const struct variant_spec *s, const struct json *object)
{
    buf_printf(&x->out,
               "VariantAutoscaling " STR_FMT "/" STR_FMT ": " STR_FMT " on " STR_FMT
               ", a replica costs %g\n",
               STR_ARG(x->ns), STR_ARG(x->name), STR_ARG(s->model), STR_ARG(accelerator_of(object)),
               s->cost);
    buf_printf(&x->out, "  scales " STR_FMT " " STR_FMT " %s, ", STR_ARG(s->target_kind),
               STR_ARG(s->target_name),
               s->writes_scale ? "by writing its replicas" : "through an HPA or KEDA");
    if (s->max)
        buf_printf(&x->out, "between %d and %d replicas\n", s->min, s->max);
    else
        buf_printf(&x->out, "at least %d replica%s\n", s->min, s->min == 1 ? "" : "s");
    for (size_t i = 0; i < s->problem_n; i++)
        buf_printf(&x->out, "  problem: " STR_FMT "\n", STR_ARG(s->problems[i]));
}

static void put_conditions(struct explain *x, const struct json *status)
{
    buf_put(&x->out, S("\nWhat was decided:\n"));
    for (int i = SAT_CONDITION_N; i--;) {
        const struct json *c = sat_status_condition(status, (enum sat_condition_type)i);
        if (c)
            buf_printf(&x->out, "  %-18s %-5s %s: %s\n", sat_condition_names[i],
                       json_text(json_get(c, "status")).p, json_text(json_get(c, "reason")).p,
                       json_text(json_get(c, "message")).p);
    }
    if (!json_len(json_get(status, "conditions")))
        buf_put(&x->out, S("  nothing yet: no controller has reconciled it\n"));
}

static int explain_variant(struct explain *x, err_t *e)
{
    struct json *object = NULL;
    struct siblings all = { 0 };
    int r = explain_get(x, &variant_resource, x->ns, x->name, &object, e);
    if (r < 0)
        return r;
    struct variant_spec spec = saturation_spec_read(&x->arena, json_get(object, "spec"));
    put_spec(x, &spec, object);
    put_conditions(x, json_get(object, "status"));
    if ((r = find_siblings(x, spec.model, &all, e)) < 0)
        return r;
    put_siblings(x, &all);
    const struct json *ready =
        sat_status_condition(json_get(object, "status"), SAT_OPTIMIZATION_READY);
    if (str_eqc(json_text(json_get(ready, "reason")), "LatencyTargets")) {
        buf_put(
            &x->out,
            S("\nLatency targets decide; the thresholds of KV cache and queue are not used.\n"));
        return 0;
    }
    return put_thresholds(x, spec.model, &all, e);
}

static const char *const words[] = { "va", "variantautoscaling", "variantautoscalings", NULL };

const struct explainer explain_saturation = {
    .words = words,
    .help = "how many replicas a VariantAutoscaling should have, and why",
    .run = explain_variant,
};
