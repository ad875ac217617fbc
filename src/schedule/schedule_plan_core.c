/* Planning one pass over a schedule: see schedule_plan_core.h.
 *
 * The problem. A schedule writes two numbers into an object that it does not own: an HPA that users
 * edit, that GitOps tools reset, that may not exist yet, may be deleted, or may already be managed by
 * another schedule. Writes fail, answers get lost, and the process may stop between any two of them. In all of
 * these cases the bounds must converge to what the spec requires, an event must be emitted once, and if
 * nothing changed, nothing may be written.
 *
 * The invariant. A plan is a function of the pass: the spec, the live HPA, the old status and now. No step
 * depends on which event led to the pass. "We did that already" is derived from what is stored in the cluster:
 *
 *     status.source             the source of the last completed pass: detects transitions
 *     status.lastAppliedConfig  the bounds written last: distinguishes drift from a transition
 *     HPA annotation baseline   the bounds before our first write: what to restore; and what is beneath a floor
 *     Contended, since when     another client keeps writing: back off until then
 *
 * How data moves. The steps run in a fixed order. Each one either ends the plan (with a write, or with a
 * status that explains why nothing is written) or lets it continue:
 *
 *     pass --> deleting? --------> plan_deletion: restore the baseline, remove the finalizer
 *       |
 *       +--> finalizer, spec problems, query
 *       +--> plan_template ------> create the template's HPA
 *       +--> find_target --------> NoTarget, RefNotPermitted, HPANotFound, HPAAlreadyManaged
 *       +--> decide_bounds         schedule_effective() + schedule_apply(), or the baseline; schedule_floor_apply()
 *       +--> suspended? ---------> Ready with reason Suspended
 *       +--> plan_patch ---------> merge patch of min, max and the baseline annotation
 *       +--> plan_scale ---------> scale subresource of the workload
 *       +--> schedule_report_outcome: status, events
 *
 * After each write the controller records the result in the pass and plans again, from the top. A write that
 * succeeded removes its own cause, so the loop ends; the pass that reports is one that has nothing to
 * write. A crash at any point repeats at most one write, which is idempotent.
 *
 * Drift is a difference that the same source would have to write again: the target is the one applied
 * last, but the HPA has other bounds. It is corrected at once unless driftPolicy is OnTransition. Five
 * corrections in ten minutes mean that another controller enforces its own values; fighting it would
 * add and remove pods at every round, so flyball backs off for ten minutes and sets the condition Contended.
 *
 * Why not a queue of transitions: it would be lost or repeated after a restart, which is how SmartHPA loses a
 * window. Why is the baseline on the HPA: in our own status it would be lost when the schedule is recreated.
 * Why one kind of write per plan: a plan with three would need a branch for each one that may fail.
 *
 * Everything that a plan points to lives in the arena of the pass. */
#include "schedule_plan_core.h"

#include "schedule_floor_core.h"
#include "schedule_template_core.h"

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

static void wake_no_later(struct schedule_planner *p, int64_t at)
{
    p->plan.wake = MIN(p->plan.wake, MAX(at, p->pass->now + 1));
}

/* A denied write is retried with exponential backoff, because an API server that is starting denies
 * everything until it has read its roles. An invalid write is not: it stays invalid until something changes. */
static void wake_after_refusal(struct schedule_planner *p)
{
    unsigned times = p->pass->memory->forbidden;
    if (times)
        wake_no_later(p, p->pass->now + (INT64_C(1) << MIN(times - 1, 10U)));
}

/* ---- template and target */

/* True if the HPA of the template must be created first. Otherwise reports TemplateValid. */
static bool plan_template(struct schedule_planner *p)
{
    const struct schedule_pass *pass = p->pass;
    if (!p->spec->template)
        return false;
    struct schedule_template_problem problem = schedule_template_check(p->a, &pass->object);
    if (!problem.reason && pass->create_failed)
        problem = (struct schedule_template_problem){ "CreateFailed", pass->failure };
    if (!problem.reason && !pass->template_found) {
        p->plan.create = schedule_template_hpa(p->a, &pass->object);
        return true;
    }
    str own = schedule_template_target(p->a, p->spec, pass->object.ns, pass->object.name).name;
    bool is_stale = pass->hpa.ours && str_eq(own, p->target.name) && !pass->template_applied &&
                    !str_eq(pass->hpa.template_hash, schedule_template_hash(p->a, p->spec));
    if (!problem.reason && is_stale && !p->spec->suspend && !pass->object.paused) {
        p->plan.create = schedule_template_apply(p->a, &pass->object, pass->hpa.bounds);
        p->plan.updates_template = true;
        return true;
    }
    bool new = !str_eqc(schedule_report_old_reason(p, "TemplateValid"),
                        problem.reason ? problem.reason : "Valid");
    if (problem.reason && new)
        schedule_report_event(p, true, "HPACreateFailed", STR_FMT, STR_ARG(problem.message));
    schedule_report_condition(p, "TemplateValid", !problem.reason,
                              problem.reason ? problem.reason : "Valid",
                              problem.reason ? problem.message : S("the template's HPA exists"));
    return false;
}

static void report_missing_target(struct schedule_planner *p)
{
    str message =
        arena_printf(p->a, STR_FMT " does not exist", STR_ARG(schedule_planner_target_text(p)));
    schedule_report_not_ready(p, "HPANotFound", "HPANotFound", message);
    schedule_report_condition(p, "Error", true, "HPANotFound", message);
    schedule_report_condition(p, "HPAValid", false, "HPANotFound", message);
    json_del(p->status.next, S(SCHEDULE_OWN_MIN)); /* a new HPA has bounds of its own */
    wake_no_later(p, p->pass->now + SCHEDULE_MISSING_RETRY_S);
}

/* Neither writes nor reveals anything about the target: its existence is not visible to this namespace. */
static void report_refused_target(struct schedule_planner *p)
{
    const char *reason = p->pass->refused_reason;
    str message = p->pass->refused;
    schedule_report_not_ready(p, reason, reason, message);
    schedule_report_condition(p, "Error", true, reason, message);
    schedule_report_condition(p, "HPAValid", false, reason, message);
}

/* True if the target exists and this schedule may manage it; otherwise reports why not. */
static bool find_target(struct schedule_planner *p)
{
    const struct schedule_pass *pass = p->pass;
    if (!p->target.name.n) {
        schedule_report_not_ready(
            p, "NoTarget", "NoTarget",
            S("there is no target HPA; set HPAObjectRef.name or a valid HPASpecTemplate"));
        return false;
    }
    struct json *ref = json_new_obj(p->a);
    json_set_str(p->a, ref, "namespace", p->target.ns);
    json_set_str(p->a, ref, "name", p->target.name);
    if (p->target.kind != SCHEDULE_TARGET_HPA)
        json_set_str(p->a, ref, "kind", p->target.kind_name);
    json_set(p->a, p->status.next, S("HPAObjectRef"), ref);
    json_del(p->status.next, S("currentConfig"));
    if (pass->refused.n) {
        report_refused_target(p);
        return false;
    }
    if (!pass->hpa.found) {
        report_missing_target(p);
        return false;
    }
    struct schedule_config live = {
        .has_min = true, .has_max = true, .min = pass->hpa.bounds.min, .max = pass->hpa.bounds.max
    };
    if (p->target.kind != SCHEDULE_TARGET_WORKLOAD)
        json_set(p->a, p->status.next, S("currentConfig"), schedule_config_json(p->a, &live));
    schedule_report_condition(p, "HPAValid", true, "Reconciled",
                              arena_printf(p->a, STR_FMT " exists",
                                           STR_ARG(schedule_planner_target_text(p))));
    if (pass->managed_by.n) {
        schedule_report_not_ready(
            p, "HPAAlreadyManaged", "HPAAlreadyManaged",
            arena_printf(p->a, STR_FMT " is already managed by " STR_FMT ", which is older",
                         STR_ARG(schedule_planner_target_text(p)), STR_ARG(pass->managed_by)));
        return false;
    }
    return true;
}

/* ---- bounds */

/* The bounds before our first write; false if the annotation is missing or invalid. */
static bool read_baseline(struct schedule_planner *p, struct schedule_bounds *ret)
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

/* Is minReplicas still what a window set? Under a floor, the window's is the bound beneath it, and our own write may be
 * newer than the status. Without a source, the status is unknown: then the bound counts as the user's. */
static bool has_windows_min(const struct schedule_planner *p, struct schedule_bounds own)
{
    bool by_window = p->last_source.n && !str_eqc(p->last_source, "none");
    if (!p->last.has_min)
        return false;
    return p->raised.is_set
               ? by_window && (p->last.min == p->raised.floor || p->last.min == own.min)
               : p->last.min == own.min;
}

/* No trigger governs: each bound that still has the value we wrote returns to the baseline. What lies beneath a floor
 * is never the floor itself. */
static void decide_restore(struct schedule_planner *p)
{
    struct schedule_bounds live = p->pass->hpa.bounds, own = live, before;
    if (p->raised.is_set)
        own.min = p->raised.own;
    p->plan.target = own;
    if (read_baseline(p, &before)) {
        if (has_windows_min(p, own))
            p->plan.target.min = before.min;
        if (p->last.has_max && live.max == p->last.max)
            p->plan.target.max = before.max;
    }
    if (p->plan.target.min > p->plan.target.max)
        p->plan.target =
            own; /* one bound was changed by hand and conflicts with the other one's baseline */
    p->restores = !schedule_bounds_equal(p->plan.target, live) || p->has_stale_note;
}

/* Evaluates the schedule at now and merges the result into the live bounds: sets plan->target. */
static void decide_bounds(struct schedule_planner *p)
{
    const struct schedule_pass *pass = p->pass;
    struct schedule_plan *plan = &p->plan;
    plan->states = arena_array(p->a, p->spec->triggers_n, sizeof(*plan->states));
    plan->effective = schedule_effective(p->spec, pass->object.created, pass->now, plan->states);
    p->source = schedule_source_text(p->a, p->spec, &plan->effective);
    p->config = plan->effective.config;
    if (plan->effective.source != SCHEDULE_FROM_START && pass->hpa.ours)
        schedule_config_fill(&p->config, &p->spec->template_config);
    if (pass->hpa.kind == SCHEDULE_TARGET_SCALED_OBJECT && p->config.has_min &&
        schedule_planner_is_at_zero(p))
        p->config.min = 0; /* or KEDA would scale the workload up again within seconds */
    if (pass->hpa.has_idle && p->config.has_min)
        p->config.min =
            MAX(p->config.min, MIN(pass->hpa.idle, INT32_MAX - 1) + 1); /* KEDA's rule */
    if (plan->effective.next)
        wake_no_later(p, plan->effective.next);
    schedule_floor_find_raised(p);
    struct schedule_bounds live = pass->hpa.bounds;
    if (p->raised.is_set)
        live.min = p->raised.own;
    if (plan->effective.source == SCHEDULE_FROM_NONE && schedule_config_empty(&p->config)) {
        decide_restore(p);
    } else {
        p->applied = schedule_apply(&p->config, live, pass->hpa.may_be_zero, &plan->target);
        plan->governed = p->applied != SCHEDULE_APPLY_INVALID;
    }
    int64_t floor_changes = schedule_floor_read(p);
    if (floor_changes)
        wake_no_later(p, floor_changes);
    schedule_floor_apply(p);
}

/* Classifies the write that this pass may make, for the metrics. */
static enum schedule_phase phase_of(const struct schedule_planner *p)
{
    size_t at = 0;
    if (p->restores)
        return SCHEDULE_PHASE_RESTORE;
    if (p->plan.effective.source != SCHEDULE_FROM_START)
        return SCHEDULE_PHASE_END;
    bool was_open = schedule_planner_trigger(p, p->last_source, "start:", &at) != NULL;
    bool other = !str_eq(p->last_source, p->source);
    return was_open && other && p->plan.states[at].state != SCHEDULE_STATE_WITHIN
               ? SCHEDULE_PHASE_NEXT
               : SCHEDULE_PHASE_START;
}

/* True if we wrote this target to this HPA before and another client changed it since. */
static bool is_drift(const struct schedule_planner *p)
{
    struct schedule_bounds t = p->plan.target;
    return p->plan.governed && p->pass->hpa.baseline.n && str_eq(p->source, p->last_source) &&
           (!p->config.has_min || (p->last.has_min && p->last.min == t.min)) &&
           (!p->config.has_max || (p->last.has_max && p->last.max == t.max));
}

/* True while flyball backs off because another client keeps changing the bounds; see the head of this file. */
static bool is_contended(struct schedule_planner *p)
{
    int64_t now = p->pass->now,
            since = schedule_condition_since(p->pass->object.status, "Contended");
    const struct schedule_memory *m = p->pass->memory;
    bool backing_off = schedule_condition_is_true(p->pass->object.status, "Contended") &&
                       now < since + SCHEDULE_CONTEND_S;
    int64_t oldest = m->reverts[m->next];
    if (!backing_off && (!oldest || oldest <= now - SCHEDULE_CONTEND_S))
        return false;
    str message = arena_printf(p->a,
                               "another client keeps changing the bounds of " STR_FMT
                               "; flyball will not correct them for %d minutes",
                               STR_ARG(schedule_planner_target_text(p)), SCHEDULE_CONTEND_S / 60);
    if (!backing_off)
        schedule_report_event(p, true, "HPAContended", STR_FMT, STR_ARG(message));
    wake_no_later(p, (backing_off ? since : now) + SCHEDULE_CONTEND_S);
    schedule_report_condition(p, "Contended", true, "ManualDrift", message);
    return true;
}

#define BASELINE_NOTE "{\"min\":%d,\"max\":%d}"
#define FORECAST_NOTE "{\"min\":%d,\"max\":%d,\"own\":%d,\"floor\":%d}"

/* The merge patch: the bounds that the config sets, and the baseline annotation when it changes. The annotation also
 * keeps minReplicas beneath a floor: in our status alone, a crash between both writes would lose it. `note_only`: the
 * bounds stay as another client set them, and the annotation is not to claim them as a floor. */
static const struct json *bounds_patch(struct schedule_planner *p, bool note_only)
{
    struct schedule_bounds live = p->pass->hpa.bounds, to = p->plan.target, before;
    struct json *patch = json_new_obj(p->a), *spec = NULL;
    bool keda = p->pass->hpa.kind == SCHEDULE_TARGET_SCALED_OBJECT;
    if (!note_only)
        spec = json_make(p->a, patch, "spec", NULL);
    if (spec && (p->config.has_min || to.min != live.min))
        json_set_int(p->a, spec, keda ? "minReplicaCount" : "minReplicas", to.min);
    if (spec && (p->config.has_max || to.max != live.max))
        json_set_int(p->a, spec, keda ? "maxReplicaCount" : "maxReplicas", to.max);
    struct json *note = NULL;
    bool has_baseline = read_baseline(p, &before);
    if (!has_baseline)
        before = (struct schedule_bounds){ p->raised.is_set ? p->raised.own : live.min, live.max };
    if (p->restores)
        note = json_new_null(p->a);
    else if (p->raises && !note_only)
        note = json_new_str(p->a, arena_printf(p->a, FORECAST_NOTE, before.min, before.max,
                                               p->own_min, to.min));
    else if (!has_baseline || p->has_stale_note || p->raised.is_set)
        note = json_new_str(p->a, arena_printf(p->a, BASELINE_NOTE, before.min, before.max));
    if (note)
        json_set(p->a, json_make(p->a, patch, "metadata", "annotations", NULL),
                 S(SCHEDULE_BASELINE), note);
    return patch;
}

/* True if the HPA must be patched first. */
static bool plan_patch(struct schedule_planner *p)
{
    struct schedule_plan *plan = &p->plan;
    if (p->pass->rejected)
        wake_after_refusal(p);
    bool is_equal = schedule_bounds_equal(plan->target, p->pass->hpa.bounds);
    bool new_note = p->raised.is_set ? !p->raises || p->raised.own != p->own_min : p->raises;
    if ((is_equal && !new_note && !p->has_stale_note) || p->pass->rejected)
        return false;
    bool drift = !is_equal && is_drift(p);
    p->contended = drift && p->spec->drift == SCHEDULE_ENFORCE && is_contended(p);
    bool keeps_drift = drift && (p->spec->drift == SCHEDULE_ON_TRANSITION || p->contended);
    if (keeps_drift && !p->has_stale_note)
        return false;
    plan->reverts = drift && !keeps_drift;
    plan->to = keeps_drift ? p->pass->hpa.bounds : plan->target;
    plan->patch = bounds_patch(p, keeps_drift);
    return true;
}

/* ---- replicas */

/* For a plain workload, which has no bounds of its own to compare with: another source, an edit of the same one, or a step
 * of a ramp. */
static bool has_new_bounds(const struct schedule_planner *p)
{
    struct schedule_bounds t = p->plan.target;
    const struct schedule_config *last = &p->last;
    return !str_eq(p->source, p->last_source) ||
           (p->config.has_min && !(last->has_min && last->min == t.min)) ||
           (p->config.has_max && !(last->has_max && last->max == t.max)) ||
           (p->config.has_desired && !(last->has_desired && last->desired == p->config.desired));
}

/* True if the workload must be scaled first: for desiredReplicas, and when a window at zero begins or ends. */
static bool plan_scale(struct schedule_planner *p)
{
    struct schedule_plan *plan = &p->plan;
    struct schedule_bounds bounds = plan->target;
    bool leaves_zero =
        p->last.has_desired && p->last.desired == 0 && !schedule_planner_is_at_zero(p);
    if (p->pass->scaled != SCHEDULE_SCALE_NOT_TRIED || p->applied == SCHEDULE_APPLY_INVALID)
        return false;
    if (p->target.kind == SCHEDULE_TARGET_WORKLOAD) {
        plan->scale = plan->governed && has_new_bounds(p);
        plan->scale_clamps = !p->config.has_desired;
        plan->scale_down_too =
            !p->config.has_desired || p->spec->desired == SCHEDULE_EXACT || p->config.desired == 0;
        plan->replicas = MAX(bounds.min, MIN(p->config.desired, bounds.max));
        if (schedule_planner_is_at_zero(p))
            plan->replicas = 0;
    } else if (schedule_planner_is_at_zero(p)) {
        plan->scale = !schedule_planner_is_scaled(p) || p->pass->hpa.replicas > 0;
        plan->scale_down_too = true;
    } else if (leaves_zero) {
        plan->scale = true;
        plan->replicas = MAX(1, bounds.min);
        if (p->config.has_desired)
            plan->replicas = MAX(plan->replicas, MIN(p->config.desired, bounds.max));
    } else if (p->config.has_desired) {
        plan->scale = !schedule_planner_is_scaled(p);
        plan->replicas = MAX(bounds.min, MIN(p->config.desired, bounds.max));
        plan->scale_down_too = p->spec->desired == SCHEDULE_EXACT;
    }
    return plan->scale;
}

/* ---- the pass */

/* What a deletion restores: the baseline or, if another client removed the annotation, what a floor raised. */
static bool find_bounds_before(struct schedule_planner *p, struct schedule_bounds *ret)
{
    schedule_floor_find_raised(p);
    if (read_baseline(p, ret))
        return true;
    *ret = (struct schedule_bounds){ p->raised.own, p->pass->hpa.bounds.max };
    return p->raised.is_set;
}

/* Restores the baseline if deletionPolicy asks for it, then releases the object. */
static void plan_deletion(struct schedule_planner *p)
{
    const struct schedule_pass *pass = p->pass;
    if (!pass->object.has_finalizer)
        return;
    bool restore = p->spec->deletion == SCHEDULE_RESTORE && pass->hpa.found && !pass->managed_by.n;
    if (restore && !pass->changed && !pass->rejected && find_bounds_before(p, &p->plan.target)) {
        p->restores = true;
        p->config = (struct schedule_config){ .has_min = true, .has_max = true };
        p->plan.to = p->plan.target;
        p->plan.phase = SCHEDULE_PHASE_RESTORE;
        p->plan.patch = bounds_patch(p, false);
        return;
    }
    if (restore && pass->rejected && pass->memory->forbidden &&
        pass->memory->forbidden < SCHEDULE_FORBIDDEN_MAX) {
        wake_after_refusal(p);
        return;
    }
    p->plan.remove_finalizer = true;
    schedule_report_event(p, false, "CleanupComplete", "the bounds of " STR_FMT " were %s",
                          STR_ARG(schedule_planner_target_text(p)),
                          pass->changed ? "restored" : "left unchanged");
}

/* The steps for an object that is not being deleted, in the order drawn above. */
static void plan_update(struct schedule_planner *p)
{
    const struct schedule_pass *pass = p->pass;
    p->plan.add_finalizer = !pass->object.has_finalizer;
    schedule_report_spec(p);
    schedule_report_query(p);
    if (plan_template(p))
        return;
    bool found = find_target(p);
    decide_bounds(p);
    schedule_report_forecast(p);
    p->plan.governed &= !pass->refused.n;
    if (!found)
        return;
    if (p->spec->suspend || pass->object.paused) {
        schedule_report_ready(p, "Suspended", S("the schedule is suspended; nothing is written"));
        return;
    }
    if (pass->hpa.paused) {
        schedule_report_ready(p, "TargetPaused",
                              S("an annotation pauses the ScaledObject; nothing is written"));
        return;
    }
    p->plan.phase = phase_of(p);
    if (plan_patch(p) || plan_scale(p))
        return;
    schedule_report_outcome(p);
}

static bool has_applied_trigger(const struct schedule_spec *spec)
{
    for (size_t i = 0; i < spec->triggers_n; i++)
        if (str_starts(spec->triggers[i].name, S(SCHEDULE_ADVICE_PREFIX)))
            return true;
    return false;
}

/* status.recommendation. `applied` stays until the triggers that were applied are gone: it distinguishes them from triggers
 * of the user, when the recommendation is turned off. */
static void set_recommendation(struct schedule_planner *p)
{
    const struct json *old = json_get(p->pass->object.status, "recommendation");
    const struct schedule_advice *advice = &p->spec->advice;
    bool applied = json_bool(json_get(old, "applied"), false);
    if (p->pass->recommendation) {
        struct json *next = json_copy(p->a, p->pass->recommendation);
        if (applied)
            json_set_bool(p->a, next, "applied", true);
        json_set(p->a, p->status.next, S("recommendation"), next);
    } else if (applied && !(advice->enabled && advice->apply) && !has_applied_trigger(p->spec)) {
        json_set_bool(p->a, json_get(p->status.next, "recommendation"), "applied", false);
    }
}

/* The status patch is built only for a plan without writes: its content depends on their results. */
static struct schedule_pass with_workload_bounds(struct arena *a, const struct schedule_pass *pass)
{
    struct schedule_pass own = *pass;
    const struct schedule_object *o = &pass->object;
    struct schedule_trigger_now *states = arena_array(a, o->spec->triggers_n, sizeof(*states));
    struct schedule_effective e = schedule_effective(o->spec, o->created, pass->now, states);
    schedule_apply(&e.config, (struct schedule_bounds){ 0, INT32_MAX }, true, &own.hpa.bounds);
    return own;
}

struct schedule_plan schedule_plan(struct arena *a, const struct schedule_pass *pass)
{
    const struct schedule_object *o = &pass->object;
    struct schedule_pass own;
    if (pass->hpa.kind == SCHEDULE_TARGET_WORKLOAD) { /* it has no bounds of its own: none differ */
        own = with_workload_bounds(a, pass);
        pass = &own;
    }
    struct schedule_planner p = {
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
    plan_update(&p);
    set_recommendation(&p);
    if (!p.plan.create && !p.plan.patch && !p.plan.scale)
        p.plan.status = schedule_status_patch(&p.status);
    return p.plan;
}
