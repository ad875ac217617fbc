/* flyball explain shpa: which trigger applies to an HPA and why, its desired and current bounds,
 * and the next changes.
 *
 * The objects are read into the structs that the controller uses, schedule_plan() computes what
 * the controller would write now, and the result is shown instead of applied. With --at it is
 * another time. */
#include "../base/rfc3339.h"
#include "../kube/grant.h"
#include "../schedule/schedule_draw.h"
#include "../schedule/schedule_records.h"
#include "../schedule/schedule_status_core.h"
#include "explain.h"

static bool has_metric(const struct json *hpa, const char *type)
{
    const struct json *metrics = json_at(hpa, "spec", "metrics", NULL);
    for (size_t i = 0; i < json_len(metrics); i++)
        if (str_eqc(json_text(json_get(json_item(metrics, i), "type")), type))
            return true;
    return false;
}

/* The fields of the HPA that a plan depends on; replicas -1: there is no HPA. */
static struct schedule_hpa read_hpa(const struct json *hpa)
{
    if (!hpa)
        return (struct schedule_hpa){ .replicas = -1 };
    return (struct schedule_hpa){
        .found = true,
        .bounds = { (int32_t)json_int(json_at(hpa, "spec", "minReplicas", NULL), 1),
                    (int32_t)json_int(json_at(hpa, "spec", "maxReplicas", NULL), 1) },
        .may_be_zero = has_metric(hpa, "Object") || has_metric(hpa, "External"),
        .baseline = json_text(json_at(hpa, "metadata", "annotations", SCHEDULE_BASELINE, NULL)),
        .has_target = json_at(hpa, "spec", "scaleTargetRef", NULL) != NULL,
        .replicas = json_int(json_at(hpa, "status", "currentReplicas", NULL), 0),
    };
}

/* The schedule as the controller reads it, except for what only matters for writes. */
static struct schedule_object read_object(struct explain *x, const struct json *tree)
{
    const struct json *metadata = json_get(tree, "metadata");
    struct schedule_object o = {
        .ns = x->ns,
        .name = x->name,
        .uid = json_text(json_get(metadata, "uid")),
        .generation = json_int(json_get(metadata, "generation"), 0),
        .has_finalizer = true, /* irrelevant here */
        .paused =
            str_eqc(json_text(json_at(metadata, "annotations", SCHEDULE_PAUSED, NULL)), "true"),
        .spec = schedule_spec_read(&x->arena, json_get(tree, "spec"),
                                   (struct schedule_defaults){ .find_zone = tz_get }),
        .status = json_get(tree, "status"),
    };
    rfc3339_parse(json_text(json_get(metadata, "creationTimestamp")), &o.created, NULL);
    return o;
}

/* Compares the bounds of the HPA with those of the schedule. */
static void put_hpa(struct explain *x, const struct schedule_pass *pass,
                    const struct schedule_plan *plan, const struct schedule_target *target)
{
    struct schedule_bounds live = pass->hpa.bounds;
    buf_printf(&x->out, "\nHorizontalPodAutoscaler " STR_FMT "/" STR_FMT, STR_ARG(target->ns),
               STR_ARG(target->name));
    if (pass->refused.n)
        buf_put(&x->out,
                S(" is in another namespace, which does not allow it; see condition Ready.\n"));
    else if (!pass->hpa.found)
        buf_put(&x->out, S(" does not exist.\n"));
    else if (pass->object.spec->suspend || pass->object.paused)
        buf_printf(&x->out, " has min %d, max %d; the schedule is suspended.\n", live.min,
                   live.max);
    else if (schedule_bounds_equal(live, plan->target))
        buf_printf(&x->out, " has min %d, max %d, as it should.\n", live.min, live.max);
    else
        buf_printf(&x->out, " has min %d, max %d and should have min %d, max %d.\n", live.min,
                   live.max, plan->target.min, plan->target.max);
}

static void put_conditions(struct explain *x, const struct json *status)
{
    const struct json *list = json_get(status, "conditions");
    if (json_len(list))
        buf_put(&x->out, S("\nConditions:\n"));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *one = json_item(list, i);
        buf_printf(&x->out, "  %-10s %-5s %s: %s\n", json_text(json_get(one, "type")).p,
                   json_text(json_get(one, "status")).p, json_text(json_get(one, "reason")).p,
                   json_text(json_get(one, "message")).p);
    }
}

/* Takes the decision from the status: the operator can read grants in other namespaces, the user
 * may not. */
static str read_refusal(const struct explain *x, const struct schedule_object *o,
                        const struct schedule_target *target)
{
    const struct json *ready = schedule_condition_find(o->status, "Ready");
    bool refused =
        !str_eq(target->ns, x->ns) && str_eqc(json_text(json_get(ready, "reason")), GRANT_REFUSED);
    return refused ? json_text(json_get(ready, "message")) : S("");
}

/* Plans as the controller would at this time, and shows the plan instead of applying it. */
static int explain_schedule_object(struct explain *x, err_t *e)
{
    struct json *tree = NULL, *hpa = NULL;
    int r = explain_get(x, &schedule_resource, x->ns, x->name, &tree, e);
    if (r < 0)
        return r;
    struct schedule_memory memory = { 0 };
    struct schedule_pass pass = { .object = read_object(x, tree), .now = x->at, .memory = &memory };
    struct schedule_target target = schedule_target(&x->arena, pass.object.spec, x->ns, x->name);
    pass.refused = read_refusal(x, &pass.object, &target);
    pass.refused_reason = GRANT_REFUSED;
    if (target.name.n && !pass.refused.n) {
        r = explain_get(x, &resource_hpas, target.ns, target.name, &hpa, e);
        if (r < 0 && r != -ENOENT)
            return r;
    }
    pass.hpa = read_hpa(hpa);
    pass.template_found = pass.hpa.found;
    struct schedule_plan plan = schedule_plan(&x->arena, &pass);
    buf_printf(&x->out, "SmartHorizontalPodAutoscaler " STR_FMT "/" STR_FMT "\n", STR_ARG(x->ns),
               STR_ARG(x->name));
    schedule_explain(&x->out, pass.object.spec, pass.object.created, x->at);
    if (target.name.n)
        put_hpa(x, &pass, &plan, &target);
    else
        buf_put(&x->out, S("\nNo HorizontalPodAutoscaler is configured.\n"));
    put_conditions(x, pass.object.status);
    if (pass.object.spec->problems_n)
        buf_put(&x->out, S("\nProblems:\n"));
    schedule_draw_problems(&x->out, pass.object.spec);
    return 0;
}

static const char *const words[] = { "shpa", "smarthpa", "smarthorizontalpodautoscaler",
                                     "smarthorizontalpodautoscalers", NULL };

const struct explainer explain_schedule = {
    .words = words,
    .help = "which trigger of a SmartHorizontalPodAutoscaler applies, and the next changes",
    .run = explain_schedule_object,
};
