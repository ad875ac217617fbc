/* One pass: see schedule_plan.h.
 *
 * The order is that of the rules: deletion, finalizer, lint, template, target, rival, suspension, bounds,
 * replicas, status. Each step either ends the plan (with a status that says why) or lets it go on. */
#include "schedule_plan.h"

#include "../kube/grant.h"
#include "schedule_report.h"
#include "schedule_template.h"

static const char *const phase_names[SCHEDULE_PHASE_N] = {
    [SCHEDULE_PHASE_START] = "start",
    [SCHEDULE_PHASE_NEXT] = "next",
    [SCHEDULE_PHASE_END] = "end",
    [SCHEDULE_PHASE_RESTORE] = "restore",
};

const char *schedule_phase_name(enum schedule_phase phase)
{
    return phase_names[phase];
}

void schedule_memory_revert(struct schedule_memory *m, int64_t now)
{
    m->reverts[m->next] = now;
    m->next = (m->next + 1) % SCHEDULE_REVERTS_MAX;
}

static void wake_by(struct planner *p, int64_t at)
{
    p->plan.wake = MIN(p->plan.wake, MAX(at, p->pass->now + 1));
}

/* A server that is starting forbids everything until it has read its roles: what is not allowed is tried again, ever
 * less often. What is invalid stays so until something changes. */
static void wake_for_refused(struct planner *p)
{
    unsigned times = p->pass->memory->forbidden;
    if (times)
        wake_by(p, p->pass->now + (INT64_C(1) << MIN(times - 1, 10U)));
}

/* ---- template and target */

/* True when an HPA must be created first. */
static bool judge_template(struct planner *p)
{
    const struct schedule_pass *pass = p->pass;
    if (!p->spec->template)
        return false;
    struct schedule_template_problem problem = schedule_template_check(p->a, &pass->object);
    if (!problem.reason && pass->create_failed)
        problem = (struct schedule_template_problem){ "CreateFailed", pass->trouble };
    if (!problem.reason && !pass->template_found) {
        p->plan.create = schedule_template_hpa(p->a, &pass->object);
        return true;
    }
    bool new =
        !str_eqc(report_old_reason(p, "TemplateValid"), problem.reason ? problem.reason : "Valid");
    if (problem.reason && new)
        report_event(p, true, "HPACreateFailed", STR_FMT, STR_ARG(problem.message));
    report_condition(p, "TemplateValid", !problem.reason, problem.reason ? problem.reason : "Valid",
                     problem.reason ? problem.message : S("the template's HPA exists"));
    return false;
}

static void target_missing(struct planner *p)
{
    str message = arena_printf(p->a, STR_FMT " does not exist", STR_ARG(planner_target_text(p)));
    report_not_ready(p, "HPANotFound", "HPANotFound", message);
    report_condition(p, "Error", true, "HPANotFound", message);
    report_condition(p, "HPAValid", false, "HPANotFound", message);
    wake_by(p, p->pass->now + SCHEDULE_MISSING_RETRY_S);
}

/* Nothing is written, and nothing is told about the target: whether it exists is not the referrer's business. */
static void target_refused(struct planner *p)
{
    str message = p->pass->refused;
    report_not_ready(p, GRANT_REFUSED, GRANT_REFUSED, message);
    report_condition(p, "Error", true, GRANT_REFUSED, message);
    report_condition(p, "HPAValid", false, GRANT_REFUSED, message);
}

/* True when there is an HPA that is ours to govern. */
static bool find_target(struct planner *p)
{
    const struct schedule_pass *pass = p->pass;
    if (!p->target.name.n) {
        report_not_ready(p, "NoTarget", "NoTarget",
                         S("neither HPAObjectRef.name nor a usable HPASpecTemplate names an HPA"));
        return false;
    }
    struct json *ref = json_new_obj(p->a);
    json_set_str(p->a, ref, "namespace", p->target.ns);
    json_set_str(p->a, ref, "name", p->target.name);
    json_set(p->a, p->status.next, S("HPAObjectRef"), ref);
    if (pass->refused.n) {
        target_refused(p);
        return false;
    }
    if (!pass->hpa.found) {
        target_missing(p);
        return false;
    }
    report_condition(p, "HPAValid", true, "Reconciled",
                     arena_printf(p->a, STR_FMT " exists", STR_ARG(planner_target_text(p))));
    if (pass->rival.n) {
        report_not_ready(p, "HPAAlreadyManaged", "HPAAlreadyManaged",
                         arena_printf(p->a,
                                      STR_FMT " is already governed by " STR_FMT ", which is older",
                                      STR_ARG(planner_target_text(p)), STR_ARG(pass->rival)));
        return false;
    }
    return true;
}

/* ---- bounds */

/* The bounds from before our first write; false when the annotation is absent or damaged. */
static bool read_baseline(struct planner *p, struct schedule_bounds *ret)
{
    struct json *tree;
    if (!p->pass->hpa.baseline.n || json_parse(p->a, p->pass->hpa.baseline, &tree, NULL) < 0)
        return false;
    int64_t min = json_int(json_get(tree, "min"), -1), max = json_int(json_get(tree, "max"), -1);
    if (min < 0 || max < 1 || min > max || max > INT32_MAX)
        return false;
    *ret = (struct schedule_bounds){ (int32_t)min, (int32_t)max };
    return true;
}

/* Nothing governs: what still is as we wrote it goes back to what was before. */
static void decide_baseline(struct planner *p)
{
    struct schedule_bounds live = p->pass->hpa.bounds, before;
    p->plan.target = live;
    if (!read_baseline(p, &before))
        return;
    if (p->last.has_min && live.min == p->last.min)
        p->plan.target.min = before.min;
    if (p->last.has_max && live.max == p->last.max)
        p->plan.target.max = before.max;
    if (p->plan.target.min > p->plan.target.max)
        p->plan.target = live; /* half of it was changed by hand, and the halves do not fit */
    p->restores = !schedule_bounds_equal(p->plan.target, live);
}

static void decide_bounds(struct planner *p)
{
    const struct schedule_pass *pass = p->pass;
    struct schedule_plan *plan = &p->plan;
    plan->states = arena_array(p->a, p->spec->triggers_n, sizeof(*plan->states));
    plan->effective = schedule_effective(p->spec, pass->object.created, pass->now, plan->states);
    p->source = schedule_source_text(p->a, p->spec, &plan->effective);
    p->config = plan->effective.config;
    if (plan->effective.source != SCHEDULE_FROM_START && pass->hpa.ours)
        schedule_config_fill(&p->config, &p->spec->created);
    if (plan->effective.next)
        wake_by(p, plan->effective.next);
    if (plan->effective.source == SCHEDULE_FROM_NONE && schedule_config_empty(&p->config)) {
        decide_baseline(p);
    } else {
        p->applied =
            schedule_apply(&p->config, pass->hpa.bounds, pass->hpa.may_be_zero, &plan->target);
        plan->governed = p->applied != SCHEDULE_APPLY_INVALID;
    }
}

static enum schedule_phase phase_of(const struct planner *p)
{
    size_t at = 0;
    if (p->restores)
        return SCHEDULE_PHASE_RESTORE;
    if (p->plan.effective.source != SCHEDULE_FROM_START)
        return SCHEDULE_PHASE_END;
    bool was_open = planner_trigger(p, p->last_source, "start:", &at) != NULL;
    bool other = !str_eq(p->last_source, p->source);
    return was_open && other && p->plan.states[at].state != SCHEDULE_STATE_WITHIN
               ? SCHEDULE_PHASE_NEXT
               : SCHEDULE_PHASE_START;
}

/* We wrote this target to this HPA before, and somebody changed it since. */
static bool is_drift(const struct planner *p)
{
    struct schedule_bounds t = p->plan.target;
    return p->plan.governed && p->pass->hpa.baseline.n && str_eq(p->source, p->last_source) &&
           (!p->config.has_min || (p->last.has_min && p->last.min == t.min)) &&
           (!p->config.has_max || (p->last.has_max && p->last.max == t.max));
}

/* True while we let the other writer have its way. Five corrections in ten minutes are a fight. */
static bool is_contended(struct planner *p)
{
    int64_t now = p->pass->now,
            since = schedule_condition_since(p->pass->object.status, "Contended");
    const struct schedule_memory *m = p->pass->memory;
    bool backing_off = schedule_condition_holds(p->pass->object.status, "Contended") &&
                       now < since + SCHEDULE_CONTEND_S;
    int64_t oldest = m->reverts[m->next];
    if (!backing_off && (!oldest || oldest <= now - SCHEDULE_CONTEND_S))
        return false;
    str message = arena_printf(p->a,
                               "somebody else keeps changing the bounds of " STR_FMT
                               "; it is left alone for %d minutes",
                               STR_ARG(planner_target_text(p)), SCHEDULE_CONTEND_S / 60);
    if (!backing_off)
        report_event(p, true, "HPAContended", STR_FMT, STR_ARG(message));
    wake_by(p, (backing_off ? since : now) + SCHEDULE_CONTEND_S);
    report_condition(p, "Contended", true, "ManualDrift", message);
    return true;
}

static const struct json *bounds_patch(struct planner *p)
{
    struct schedule_bounds live = p->pass->hpa.bounds, to = p->plan.target, before;
    struct json *patch = json_new_obj(p->a), *spec = json_make(p->a, patch, "spec", NULL);
    if (p->config.has_min || to.min != live.min)
        json_set_int(p->a, spec, "minReplicas", to.min);
    if (p->config.has_max || to.max != live.max)
        json_set_int(p->a, spec, "maxReplicas", to.max);
    struct json *note = NULL;
    if (p->restores)
        note = json_new_null(p->a);
    else if (!read_baseline(p, &before))
        note =
            json_new_str(p->a, arena_printf(p->a, "{\"min\":%d,\"max\":%d}", live.min, live.max));
    if (note)
        json_set(p->a, json_make(p->a, patch, "metadata", "annotations", NULL),
                 S(SCHEDULE_BASELINE), note);
    return patch;
}

/* True when the HPA must be written first. */
static bool plan_patch(struct planner *p)
{
    struct schedule_plan *plan = &p->plan;
    if (p->pass->rejected)
        wake_for_refused(p);
    if (schedule_bounds_equal(plan->target, p->pass->hpa.bounds) || p->pass->rejected)
        return false;
    bool drift = is_drift(p);
    if (drift && (p->spec->drift == SCHEDULE_ON_TRANSITION || is_contended(p)))
        return false;
    plan->reverts = drift;
    plan->to = plan->target;
    plan->patch = bounds_patch(p);
    return true;
}

/* ---- replicas */

static bool keeps_zero(const struct planner *p)
{
    return p->config.has_desired && p->config.desired == 0;
}

/* True when the workload must be scaled first. */
static bool plan_scale(struct planner *p)
{
    struct schedule_plan *plan = &p->plan;
    struct schedule_bounds bounds = plan->target;
    bool leaves_zero = p->last.has_desired && p->last.desired == 0 && !keeps_zero(p);
    if (p->pass->scaled != SCHEDULE_SCALE_NOT_TRIED || p->applied == SCHEDULE_APPLY_INVALID)
        return false;
    if (keeps_zero(p)) {
        plan->scale = !planner_desired_done(p) || p->pass->hpa.replicas > 0;
        plan->scale_down_too = true;
    } else if (leaves_zero) {
        plan->scale = true;
        plan->replicas = MAX(1, bounds.min);
        if (p->config.has_desired)
            plan->replicas = MAX(plan->replicas, MIN(p->config.desired, bounds.max));
    } else if (p->config.has_desired) {
        plan->scale = !planner_desired_done(p);
        plan->replicas = MAX(bounds.min, MIN(p->config.desired, bounds.max));
        plan->scale_down_too = p->spec->desired == SCHEDULE_EXACT;
    }
    return plan->scale;
}

/* ---- the pass */

static void plan_deletion(struct planner *p)
{
    const struct schedule_pass *pass = p->pass;
    if (!pass->object.has_finalizer)
        return;
    bool restore = p->spec->deletion == SCHEDULE_RESTORE && pass->hpa.found && !pass->rival.n;
    if (restore && !pass->changed && !pass->rejected && read_baseline(p, &p->plan.target)) {
        p->restores = true;
        p->config = (struct schedule_config){ .has_min = true, .has_max = true };
        p->plan.to = p->plan.target;
        p->plan.phase = SCHEDULE_PHASE_RESTORE;
        p->plan.patch = bounds_patch(p);
        return;
    }
    if (restore && pass->rejected && pass->memory->forbidden &&
        pass->memory->forbidden < SCHEDULE_FORBIDDEN_MAX) {
        wake_for_refused(p);
        return;
    }
    p->plan.remove_finalizer = true;
    report_event(p, false, "CleanupComplete", "the bounds of " STR_FMT " %s",
                 STR_ARG(planner_target_text(p)),
                 pass->changed ? "are those from before" : "stay as they are");
}

static void plan_living(struct planner *p)
{
    const struct schedule_pass *pass = p->pass;
    p->plan.add_finalizer = !pass->object.has_finalizer;
    report_spec(p);
    report_query(p);
    if (judge_template(p))
        return;
    bool found = find_target(p);
    decide_bounds(p);
    p->plan.governed &= !pass->refused.n;
    if (!found)
        return;
    if (p->spec->suspend || pass->object.paused) {
        report_ready(p, "Suspended", S("nothing is written while the schedule is suspended"));
        return;
    }
    p->plan.phase = phase_of(p);
    if (plan_patch(p) || plan_scale(p))
        return;
    report_outcome(p);
}

struct schedule_plan schedule_plan(struct arena *a, const struct schedule_pass *pass)
{
    const struct schedule_object *o = &pass->object;
    struct planner p = {
        .a = a,
        .pass = pass,
        .spec = o->spec,
        .target = schedule_target(a, o->spec, o->ns, o->name),
        .status = schedule_status(a, o->status, pass->now, o->generation),
        .plan = { .wake = pass->now + SCHEDULE_WAKE_MAX_S },
        .last = schedule_config_read(json_get(o->status, "lastAppliedConfig")),
        .last_source = json_text(json_get(o->status, "source")),
    };
    if (o->deleting) {
        plan_deletion(&p);
        return p.plan;
    }
    plan_living(&p);
    if (pass->recommendation)
        json_set(a, p.status.next, S("recommendation"), json_copy(a, pass->recommendation));
    if (!p.plan.create && !p.plan.patch && !p.plan.scale)
        p.plan.status = schedule_status_patch(&p.status);
    return p.plan;
}
