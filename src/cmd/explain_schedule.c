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
#include "schedule_calendar.h"

/* The schedule as the controller reads it, except for what only matters for writes. */
static struct schedule_object read_object(struct explain *x, const struct json *tree,
                                          struct command_calendars *calendars)
{
    const struct json *metadata = json_get(tree, "metadata");
    struct schedule_spec *spec = schedule_spec_read(&x->arena, json_get(tree, "spec"),
                                                    command_calendars_use(calendars, x->ns));
    schedule_spec_set_name(spec, x->ns, x->name);
    struct schedule_object o = {
        .ns = x->ns,
        .name = x->name,
        .uid = json_text(json_get(metadata, "uid")),
        .generation = json_int(json_get(metadata, "generation"), 0),
        .has_finalizer = true, /* irrelevant here */
        .paused =
            str_eqc(json_text(json_at(metadata, "annotations", SCHEDULE_PAUSED, NULL)), "true"),
        .spec = spec,
        .status = json_get(tree, "status"),
    };
    rfc3339_parse(json_text(json_get(metadata, "creationTimestamp")), &o.created, NULL);
    return o;
}

/* What the schedule governs, as the controller finds it: an HPA, the ScaledObject that is the target or owns the HPA, or
 * a workload. */
struct governed {
    str kind;
    str name;
    str owned; /* the HPA that the schedule names, if a ScaledObject owns it; empty: none */
    struct schedule_hpa as;       /* in the form that a plan needs */
    struct explain_record record; /* `as` borrows from it */
};

static int find_scaled_object(struct explain *x, str ns, str name, struct governed *g, err_t *e)
{
    struct json *object = NULL;
    int r = explain_get(x, &schedule_scaled_resource, ns, name, &object, e);
    if (r < 0 && r != -ENOENT)
        return r;
    g->kind = str_c(schedule_scaled_resource.kind);
    g->name = name;
    explain_record_done(&g->record);
    g->record = explain_record_make(x, &schedule_scaled_cache, object);
    g->as = schedule_record_scaled(record_as(struct schedule_scaled_record, g->record.record));
    return 0;
}

/* The HPA that the schedule names. If KEDA made it for a ScaledObject, that one is governed: KEDA reverts changes of
 * its HPA. */
static int find_hpa(struct explain *x, str ns, str name, struct governed *g, err_t *e)
{
    struct json *object = NULL;
    int r = explain_get(x, &resource_hpas, ns, name, &object, e);
    if (r < 0 && r != -ENOENT)
        return r;
    g->record = explain_record_make(x, &schedule_hpa_cache, object);
    const struct schedule_hpa_record *hpa = record_as(struct schedule_hpa_record, g->record.record);
    g->as = schedule_record_hpa(hpa, S(""));
    if (!hpa || !hpa->scaled_object.n)
        return 0;
    g->owned = name;
    return find_scaled_object(x, ns, arena_str(&x->arena, hpa->scaled_object), g, e);
}

/* The number of replicas is read only of kinds that need no discovery. */
static int find_workload(struct explain *x, const struct schedule_target *target,
                         struct governed *g, err_t *e)
{
    static const struct resource *const known[] = { &resource_deployments, &resource_statefulsets,
                                                    &resource_replicasets };
    struct json *object = NULL;
    int r = -ENOENT;
    for (size_t i = 0; i < countof(known); i++)
        if (str_eqc(target->kind_name, known[i]->kind) && str_eqc(target->api_version, "apps/v1"))
            r = explain_get(x, known[i], target->ns, target->name, &object, e);
    if (r < 0 && r != -ENOENT)
        return r;
    g->kind = target->kind_name;
    g->as = (struct schedule_hpa){
        .kind = target->kind,
        .found = true,
        .has_target = true,
        .may_be_zero = true,
        .replicas = object ? json_int(json_at(object, "spec", "replicas", NULL), 1) : -1,
    };
    return 0;
}

static int find_governed(struct explain *x, const struct schedule_target *target,
                         struct governed *g, err_t *e)
{
    if (target->kind == SCHEDULE_TARGET_SCALED_OBJECT)
        return find_scaled_object(x, target->ns, target->name, g, e);
    return target->kind == SCHEDULE_TARGET_WORKLOAD ? find_workload(x, target, g, e)
                                                    : find_hpa(x, target->ns, target->name, g, e);
}

/* A workload without an autoscaler has no bounds to compare. */
static void put_workload(struct explain *x, const struct schedule_hpa *live,
                         const struct schedule_plan *plan)
{
    if (live->replicas >= 0)
        buf_printf(&x->out, " has %lld replicas.", (long long)live->replicas);
    else
        buf_put(&x->out, S(" has no autoscaler."));
    if (plan->governed)
        buf_printf(&x->out, " When a window opens or closes, it is scaled to between %d and %d.",
                   plan->target.min, plan->target.max);
    buf_put(&x->out, S("\n"));
}

/* Compares the bounds of the target with those of the schedule. */
static void put_target(struct explain *x, const struct schedule_pass *pass,
                       const struct schedule_plan *plan, const struct governed *g, str ns)
{
    struct schedule_bounds live = pass->hpa.bounds;
    if (g->owned.n)
        buf_printf(&x->out,
                   "\nHorizontalPodAutoscaler " STR_FMT "/" STR_FMT
                   " belongs to a ScaledObject of KEDA, whose bounds are set instead.",
                   STR_ARG(ns), STR_ARG(g->owned));
    buf_printf(&x->out, "\n" STR_FMT " " STR_FMT "/" STR_FMT, STR_ARG(g->kind), STR_ARG(ns),
               STR_ARG(g->name));
    if (pass->refused.n)
        buf_put(&x->out,
                S(" is in another namespace, which does not allow it; see condition Ready.\n"));
    else if (!pass->hpa.found)
        buf_put(&x->out, S(" does not exist.\n"));
    else if (pass->hpa.kind == SCHEDULE_TARGET_WORKLOAD)
        put_workload(x, &pass->hpa, plan);
    else if (pass->object.spec->suspend || pass->object.paused)
        buf_printf(&x->out, " has min %d, max %d; the schedule is suspended.\n", live.min,
                   live.max);
    else if (schedule_bounds_equal(live, plan->target))
        buf_printf(&x->out, " has min %d, max %d, as it should.\n", live.min, live.max);
    else
        buf_printf(&x->out, " has min %d, max %d and should have min %d, max %d.\n", live.min,
                   live.max, plan->target.min, plan->target.max);
    if (pass->hpa.paused)
        buf_put(&x->out, S("An annotation of KEDA pauses it.\n"));
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
static void explain_plan(struct explain *x, struct schedule_pass *pass,
                         const struct schedule_target *target, const struct governed *g)
{
    pass->hpa = g->as;
    pass->template_found = g->as.found;
    struct schedule_plan plan = schedule_plan(&x->arena, pass);
    buf_printf(&x->out, "SmartHorizontalPodAutoscaler " STR_FMT "/" STR_FMT "\n", STR_ARG(x->ns),
               STR_ARG(x->name));
    schedule_explain(&x->out, pass->object.spec, pass->object.created, x->at);
    if (target->name.n)
        put_target(x, pass, &plan, g, target->ns);
    else
        buf_put(&x->out, S("\nNo HorizontalPodAutoscaler is configured.\n"));
    put_conditions(x, pass->object.status);
    if (pass->object.spec->problems_n)
        buf_put(&x->out, S("\nProblems:\n"));
    schedule_draw_problems(&x->out, pass->object.spec);
}

static int explain_tree(struct explain *x, const struct json *tree,
                        struct command_calendars *calendars, err_t *e)
{
    struct schedule_memory memory = { 0 };
    struct schedule_pass pass = { .object = read_object(x, tree, calendars),
                                  .now = x->at,
                                  .memory = &memory };
    struct schedule_target target = schedule_target(&x->arena, pass.object.spec, x->ns, x->name);
    struct governed g = { .kind = str_c(resource_hpas.kind),
                          .name = target.name,
                          .as.replicas = -1 };
    int r = 0;
    pass.refused = read_refusal(x, &pass.object, &target);
    pass.refused_reason = GRANT_REFUSED;
    if (target.name.n && !pass.refused.n)
        r = find_governed(x, &target, &g, e);
    if (r == 0)
        explain_plan(x, &pass, &target, &g);
    explain_record_done(&g.record);
    return r;
}

static int explain_schedule_object(struct explain *x, err_t *e)
{
    struct json *tree = NULL;
    struct command_calendars calendars = { .operator_ns = x->operator_ns };
    int r = explain_get(x, &schedule_resource, x->ns, x->name, &tree, e);
    if (r < 0)
        return r;
    command_calendars_fetch(&calendars, x);
    r = explain_tree(x, tree, &calendars, e);
    command_calendars_done(&calendars);
    return r;
}

static const char *const words[] = { "shpa", "smarthpa", "smarthorizontalpodautoscaler",
                                     "smarthorizontalpodautoscalers", NULL };

const struct explainer explain_schedule = {
    .words = words,
    .help = "which trigger of a SmartHorizontalPodAutoscaler applies, and the next changes",
    .run = explain_schedule_object,
    .resource = &schedule_resource,
};
