/* flyball explain hpa: what governs a HorizontalPodAutoscaler. Three parts of flyball can, all at the same time:
 *
 *      bounds      a schedule writes minReplicas and maxReplicas
 *      replicas    a VariantAutoscaling provides the number that one of its metrics reads
 *      requests    the market holds the CPU requests that a utilization target divides by
 *
 * A ScaledObject of KEDA that owns the HPA overwrites everything written to it, so it is shown first. Nothing is written
 * to the HPA about any of this, which is why the answer is derived: from the targets of all schedules that the user may
 * list, and from the metrics of the HPA itself. */
#include "../market/hpa_peace_core.h"
#include "../saturation/saturation_records.h"
#include "../schedule/schedule_plan_core.h"
#include "../schedule/schedule_records.h"
#include "explain.h"

/* Lists a kind in all namespaces, or only in the object's own if that is all the user may read. NULL: the cluster does
 * not serve it, or the user may not read it. */
static const struct json *list_items(struct explain *x, const struct resource *resource)
{
    struct json *list;
    err_t ignored;
    if (explain_get(x, resource, S(""), S(""), &list, &ignored) < 0 &&
        explain_get(x, resource, x->ns, S(""), &list, &ignored) < 0)
        return NULL;
    return json_get(list, "items");
}

/* Calendars and defaults do not matter here: they change when a schedule applies, not what it applies to. */
static bool schedule_targets_hpa(struct explain *x, const struct json *schedule)
{
    const struct json *metadata = json_get(schedule, "metadata");
    const struct schedule_spec *spec =
        schedule_spec_read(&x->arena, json_get(schedule, "spec"), (struct schedule_defaults){ 0 });
    struct schedule_target target =
        schedule_target(&x->arena, spec, json_text(json_get(metadata, "namespace")),
                        json_text(json_get(metadata, "name")));
    return target.kind == SCHEDULE_TARGET_HPA && str_eq(target.ns, x->ns) &&
           str_eq(target.name, x->name);
}

/* Several schedules may name one HPA: their conditions show which of them governs. */
static size_t put_schedules(struct explain *x)
{
    const struct json *items = list_items(x, &schedule_resource);
    size_t n = 0;
    for (size_t i = 0; i < json_len(items); i++) {
        const struct json *one = json_item(items, i), *metadata = json_get(one, "metadata");
        if (!schedule_targets_hpa(x, one))
            continue;
        str ns = json_text(json_get(metadata, "namespace")),
            name = json_text(json_get(metadata, "name"));
        n++;
        buf_printf(&x->out,
                   "  bounds         SmartHorizontalPodAutoscaler " STR_FMT "/" STR_FMT
                   " sets them; see: flyball explain shpa " STR_FMT " -n " STR_FMT "\n",
                   STR_ARG(ns), STR_ARG(name), STR_ARG(name), STR_ARG(ns));
    }
    return n;
}

/* KEDA creates an HPA for each ScaledObject, and compares it with its own idea on every change. */
static size_t put_owner(struct explain *x, const struct json *hpa)
{
    const struct json *owners = json_at(hpa, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < json_len(owners); i++) {
        const struct json *owner = json_item(owners, i);
        if (!str_eqc(json_text(json_get(owner, "kind")), "ScaledObject"))
            continue;
        buf_printf(
            &x->out,
            "  owner          ScaledObject " STR_FMT
            " of KEDA, which reverts changes made here; let schedules name the ScaledObject\n",
            STR_ARG(json_text(json_get(owner, "name"))));
        return 1;
    }
    return 0;
}

/* The metrics by which variants are served: to Prometheus, and by flyball's own external metrics. */
static bool is_decision(str metric)
{
    static const char *const names[] = { "wva_desired_replicas", "wva_desired_ratio",
                                         "inferno_desired_replicas", "inferno_desired_ratio",
                                         "workload_optimized_replicas" };
    for (size_t i = 0; i < countof(names); i++)
        if (str_eqc(metric, names[i]))
            return true;
    return false;
}

/* Without the label, an HPA reads the sum or the largest of all variants that the metric has. */
static size_t put_decision(struct explain *x, const struct json *metric)
{
    str name = json_text(json_at(metric, "external", "metric", "name", NULL));
    const struct json *labels =
        json_at(metric, "external", "metric", "selector", "matchLabels", NULL);
    str variant = json_text(json_get(labels, "variant_name"));
    if (!is_decision(name))
        return 0;
    buf_printf(&x->out, "  replicas       metric " STR_FMT, STR_ARG(name));
    if (variant.n)
        buf_printf(&x->out,
                   " of VariantAutoscaling " STR_FMT "; see: flyball explain va " STR_FMT
                   " -n " STR_FMT,
                   STR_ARG(variant), STR_ARG(variant), STR_ARG(x->ns));
    else
        buf_put(&x->out, S(", without the label variant_name: it may mix several variants"));
    buf_putc(&x->out, '\n');
    return 1;
}

/* By the rule that the agent applies to the pods of this HPA. */
static size_t put_division(struct explain *x, const struct json *metric)
{
    const struct json *part = json_get(metric, "resource"), *target = json_get(part, "target");
    struct hpa_peace_metric m = { .type = json_text(json_get(metric, "type")),
                                  .name = json_text(json_get(part, "name")),
                                  .target_type = json_text(json_get(target, "type")),
                                  .percent = json_int(json_get(target, "averageUtilization"), 0) };
    if (!hpa_peace_divides(&m, S("cpu")))
        return 0;
    buf_printf(
        &x->out,
        "  requests       it divides CPU usage by the requests of its pods (target %lld %%), so the market "
        "changes only their limits, unless mbcas.io/hpa=move\n",
        (long long)hpa_peace_target(&m));
    return 1;
}

static int explain_hpa_owner(struct explain *x, err_t *e)
{
    struct json *hpa;
    int r = explain_get(x, &resource_hpas, x->ns, x->name, &hpa, e);
    if (r < 0)
        return r;
    const struct json *spec = json_get(hpa, "spec"), *status = json_get(hpa, "status"),
                      *metrics = json_get(spec, "metrics");
    buf_printf(&x->out,
               "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT " of " STR_FMT " " STR_FMT "\n",
               STR_ARG(x->ns), STR_ARG(x->name),
               STR_ARG(json_text(json_at(spec, "scaleTargetRef", "kind", NULL))),
               STR_ARG(json_text(json_at(spec, "scaleTargetRef", "name", NULL))));
    buf_printf(&x->out, "  has            min %lld, max %lld; %lld replicas, wants %lld\n",
               (long long)json_int(json_get(spec, "minReplicas"), 1),
               (long long)json_int(json_get(spec, "maxReplicas"), 0),
               (long long)json_int(json_get(status, "currentReplicas"), 0),
               (long long)json_int(json_get(status, "desiredReplicas"), 0));
    size_t found = put_owner(x, hpa) + put_schedules(x);
    for (size_t i = 0; i < json_len(metrics); i++)
        found += put_decision(x, json_item(metrics, i)) + put_division(x, json_item(metrics, i));
    if (!found)
        buf_put(
            &x->out,
            S("  governed by    nothing of flyball: no schedule names it and no metric of it is flyball's\n"));
    return 0;
}

static const char *const words[] = { "hpa", "horizontalpodautoscaler", "horizontalpodautoscalers",
                                     NULL };
const struct explainer explain_hpa = {
    words, "what governs a HorizontalPodAutoscaler: schedule, variant, market or KEDA",
    explain_hpa_owner, &resource_hpas
};
