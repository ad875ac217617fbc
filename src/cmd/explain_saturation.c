/* flyball explain va: what was decided about a variant and why, which thresholds apply to its model and where
 * they come from, and how the variants of the model compare.
 *
 * Reads the API server only: the status that the controller wrote, the ConfigMaps that it would read, and the
 * state that it saved. Thresholds are resolved by the controller's own core (config_core.h), so the answer
 * cannot differ from what it uses. Names of ConfigMaps come from the same environment variables, with the same
 * defaults. */
#include "../saturation/config/config_core.h"
#include "../saturation/objects/saturation_spec.h"
#include "../saturation/objects/status_core.h"
#include "../saturation/saturation_records.h"
#include "explain.h"

#include "../kube/keep.h"

#include <math.h>

/* An empty variable counts as unset, as in the operator. */
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
    int r = explain_get(x, &saturation_variant_resource, x->ns, S(""), &list, e);
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

/* The table of variants; the one in question is marked. */
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

/* Names the entry that overrides the defaults, and which of the two ConfigMaps it is in. */
static void put_source(struct explain *x, const struct sat_resolved *r, bool local)
{
    if (r->override)
        buf_printf(&x->out, "entry " STR_FMT " of the %s ConfigMap", STR_ARG(r->override->key),
                   local ? "namespace's" : "global");
    else
        buf_printf(&x->out, "the %s defaults", local ? "namespace's" : "global");
}

/* Entries that the controller ignores, which is often the answer to the question. */
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

/* Model, cost, target and bounds, and what the controller would reject. */
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

/* In the order from the result to its causes, which is the reverse of the enum. */
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

/* ---- the slo policy: what it learned and decided, from flyball's own ConfigMap */

/* The saved text of the model, or NULL. It is in the namespace of the operator. */
static const struct json *find_saved(struct explain *x, str ns, str model)
{
    struct json *map = NULL, *tree = NULL;
    str home = str_c(from_env("POD_NAMESPACE", "workload-variant-autoscaler-system"));
    str key = keep_key(&x->arena, "slo", (const str[]){ ns, model }, 2);
    err_t ignored;
    if (explain_get(x, &resource_configmaps, home, S("flyball-saturation-state"), &map, &ignored) <
        0)
        return NULL;
    str text = json_text(json_get_str(json_get(map, "data"), key));
    return text.n && json_parse(&x->arena, text, &tree, NULL) == 0 ? tree : NULL;
}

static double number_of(const struct json *o, const char *key)
{
    return json_real(json_get(o, key), NAN);
}

/* Speeds are saved relative to the latency target, as the fit works with them; here they become milliseconds
 * again. */
static void put_learned(struct explain *x, const struct json *saved)
{
    const struct json *list = json_get(saved, "variants");
    double itl = number_of(saved, "itl");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *v = json_item(list, i);
        double idle = json_real(json_item(json_get(v, "th"), 0), NAN);
        double prompt = json_real(json_item(json_get(v, "th"), 1), NAN);
        buf_printf(&x->out,
                   "  " STR_FMT ": %.1f ms per token without load, %.3f ms per prompt token; a "
                   "replica carries %.2f; starts in %.0f s; %.0f samples\n",
                   STR_ARG(json_text(json_get(v, "name"))), 1000 * itl / idle,
                   prompt / idle * 1e-4 * 1000, number_of(v, "capacity"), number_of(v, "start"),
                   number_of(v, "samples"));
    }
}

/* What the slo policy knew at its last decision. A number that it did not have is not printed. */
static void put_slo(struct explain *x, const struct json *saved)
{
    const struct json *now = json_get(saved, "now"), *decisions = json_get(saved, "decisions");
    buf_printf(&x->out, "\nLatency targets as of " STR_FMT ", in busy replicas:\n",
               STR_ARG(json_text(json_get(saved, "at"))));
    buf_printf(
        &x->out,
        "  demand %.2f, expected in %.0f s %.2f, headroom %.0f%%, needed %.2f, there are %.2f\n",
        number_of(now, "demand"), number_of(now, "horizonSeconds"), number_of(now, "forecast"),
        100 * (number_of(now, "headroom") - 1), number_of(now, "need"), number_of(now, "have"));
    if (number_of(now, "level") > 0)
        buf_printf(&x->out, "  load comes and goes faster than replicas start: holds %.2f\n",
                   number_of(now, "level"));
    if (number_of(now, "attained") >= 0)
        buf_printf(&x->out, "  %.2f%% of the requests are within the targets, goal %g%%; ",
                   100 * number_of(now, "attained"),
                   100 * number_of(json_get(saved, "targets"), "goal"));
    buf_printf(&x->out, "error budget spent: %.0f%%\nLearned:\n",
               100 * number_of(now, "budgetSpent"));
    put_learned(x, saved);
    if (json_len(decisions))
        buf_put(&x->out, S("Last decisions:\n"));
    for (size_t i = 0; i < json_len(decisions); i++)
        buf_printf(&x->out, "  " STR_FMT "  " STR_FMT "\n",
                   STR_ARG(json_text(json_get(json_item(decisions, i), "at"))),
                   STR_ARG(json_text(json_get(json_item(decisions, i), "text"))));
}

/* Order: identity, decision, siblings, and then whichever rule decided. */
static int explain_variant(struct explain *x, err_t *e)
{
    struct json *object = NULL;
    struct siblings all = { 0 };
    int r = explain_get(x, &saturation_variant_resource, x->ns, x->name, &object, e);
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
        const struct json *saved = find_saved(x, x->ns, spec.model);
        if (saved)
            put_slo(x, saved);
        return 0;
    }
    return put_thresholds(x, spec.model, &all, e);
}

static const char *const words[] = { "va", "variantautoscaling", "variantautoscalings", NULL };

const struct explainer explain_saturation = {
    .words = words,
    .help = "how many replicas a VariantAutoscaling should have, and why",
    .run = explain_variant,
    .resource = &saturation_variant_resource,
};
