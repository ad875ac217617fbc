/* Conditions, events and status fields of a pass: see schedule_report_core.h.
 *
 * An event is emitted on a change only. Since passes repeat, every function here compares with the old status
 * first: a reason that Ready already has, a problem that the message of SpecValid already lists, a source that
 * status.source already names are not reported again. Because the status is written after the events, a crash in
 * between repeats an event; it never loses one. */
#include "schedule_report_core.h"

#include "../base/rfc3339.h"
#include "schedule_timeline_core.h"

#include <stdarg.h>
#include <stdio.h>

void schedule_report_event(struct schedule_planner *p, bool warning, const char *reason,
                           const char *format, ...)
{
    struct schedule_plan *plan = &p->plan;
    if (plan->events_n == p->events_cap) {
        p->events_cap = MAX(p->events_cap * 2, (size_t)8);
        struct schedule_event *more = arena_array(p->a, p->events_cap, sizeof(*more));
        if (plan->events_n)
            memcpy(more, plan->events, plan->events_n * sizeof(*more));
        plan->events = more;
    }
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    plan->events[plan->events_n++] =
        (struct schedule_event){ warning, reason, arena_str(p->a, str_c(text)) };
}

/* ---- conditions */

void schedule_report_condition(struct schedule_planner *p, const char *type, bool holds,
                               const char *reason, str message)
{
    schedule_status_condition(&p->status,
                              &(struct schedule_condition){ type, holds, reason, message });
}

str schedule_report_old_reason(const struct schedule_planner *p, const char *type)
{
    return json_text(json_get(schedule_condition_find(p->pass->object.status, type), "reason"));
}

void schedule_report_not_ready(struct schedule_planner *p, const char *reason, const char *event,
                               str message)
{
    if (!str_eqc(schedule_report_old_reason(p, "Ready"), reason))
        schedule_report_event(p, true, event, STR_FMT, STR_ARG(message));
    schedule_report_condition(p, "Ready", false, reason, message);
}

void schedule_report_ready(struct schedule_planner *p, const char *reason, str message)
{
    bool was = schedule_condition_is_true(p->pass->object.status, "Ready");
    if (!was && str_eqc(str_c(reason), "Reconciled"))
        schedule_report_event(p, false, "Reconciled", STR_FMT, STR_ARG(message));
    schedule_report_condition(p, "Ready", true, reason, message);
    schedule_status_clear(&p->status,
                          &(struct schedule_condition){ "Error", false, "Reconciled",
                                                        S("the target HPA is usable") });
}

/* ---- lint */

/* The first problem of a trigger; "" if it has none. */
static str trigger_problem(const struct schedule_planner *p, size_t trigger)
{
    for (size_t i = 0; i < p->spec->problems_n; i++)
        if (p->spec->problems[i].trigger == (int)trigger)
            return p->spec->problems[i].text;
    return S("");
}

/* The event reason for a problem: SmartHPA's own where it has one. */
static const char *problem_event(enum schedule_problem_kind kind)
{
    if (kind == SCHEDULE_INVALID_TIMEZONE || !schedule_problem_is_error(kind))
        return schedule_problem_reason(kind);
    return "InvalidTrigger";
}

/* One condition that lists all problems, and one event for each that the old condition did not list. */
void schedule_report_spec(struct schedule_planner *p)
{
    const struct schedule_spec *spec = p->spec;
    str before = json_text(
        json_get(schedule_condition_find(p->pass->object.status, "SpecValid"), "message"));
    auto_buf struct buf message = { 0 };
    const char *reason = NULL;
    for (size_t i = 0; i < spec->problems_n; i++) {
        const struct schedule_problem *one = &spec->problems[i];
        if (!reason && schedule_problem_is_error(one->kind))
            reason = schedule_problem_reason(one->kind);
        if (str_find(before, one->text) == SIZE_MAX)
            schedule_report_event(p, true, problem_event(one->kind), STR_FMT, STR_ARG(one->text));
        if (message.n < 20000)
            buf_printf(&message, "%s" STR_FMT, i ? "; " : "", STR_ARG(one->text));
    }
    str text = message.n ? buf_str(&message) : S("all triggers are valid");
    schedule_report_condition(p, "SpecValid", !reason, reason ? reason : "Valid", text);
    size_t usable = 0;
    for (size_t i = 0; i < spec->triggers_n; i++)
        usable += spec->triggers[i].use == SCHEDULE_USED;
    schedule_report_condition(p, "Scheduled", usable > 0,
                              usable ? "ScheduleEnqueued" : "NoUsableTrigger",
                              arena_printf(p->a, "%zu of %zu triggers are usable", usable,
                                           spec->triggers_n));
}

void schedule_report_query(struct schedule_planner *p)
{
    str problem = p->pass->query_problem;
    bool bad = problem.n > 0, has_query = p->spec->advice.enabled && p->spec->advice.query.n;
    if (!has_query && !schedule_condition_find(p->pass->object.status, "QueryValid"))
        return;
    if (bad && !str_eqc(schedule_report_old_reason(p, "QueryValid"), "InvalidQuery"))
        schedule_report_event(p, true, "InvalidQuery", STR_FMT, STR_ARG(problem));
    schedule_report_condition(p, "QueryValid", !bad, bad ? "InvalidQuery" : "Valid",
                              bad         ? problem
                              : has_query ? S("smartRecommendation.query is valid")
                                          : S("smartRecommendation uses the built-in queries"));
}

/* The time until which the floor stays as it is. */
static str forecast_until(const struct schedule_planner *p)
{
    char text[RFC3339_TEXT_MAX];
    return arena_str(p->a, rfc3339_text(p->forecast.next, text));
}

void schedule_report_forecast(struct schedule_planner *p)
{
    if (!p->spec->advice.enabled || !p->spec->advice.forecast) {
        schedule_status_clear(&p->status, &(struct schedule_condition){
                                              "Forecast", false, "Off",
                                              S("smartRecommendation.mode is not Forecast") });
        return;
    }
    if (p->forecast_reason) {
        schedule_report_condition(p, "Forecast", false, p->forecast_reason, p->forecast_message);
        return;
    }
    str message =
        arena_printf(p->a, "the forecast needs %d replicas until " STR_FMT "%s", p->forecast.floor,
                     STR_ARG(forecast_until(p)),
                     schedule_planner_is_at_zero(p) ? "; a window scales the workload to zero"
                     : p->forecast.is_capped        ? "; maxReplicas is lower"
                     : p->raises                    ? ""
                                                    : "; minReplicas is not lower");
    schedule_report_condition(p, "Forecast", true, "Forecasting", message);
}

/* ---- queries */

str schedule_planner_target_text(const struct schedule_planner *p)
{
    str kind =
        p->target.kind == SCHEDULE_TARGET_HPA ? S("HorizontalPodAutoscaler") : p->target.kind_name;
    return arena_printf(p->a, STR_FMT " " STR_FMT "/" STR_FMT, STR_ARG(kind), STR_ARG(p->target.ns),
                        STR_ARG(p->target.name));
}

const struct schedule_trigger *schedule_planner_trigger(const struct schedule_planner *p,
                                                        str source, const char *prefix,
                                                        size_t *ret_at)
{
    if (!str_starts(source, str_c(prefix)))
        return NULL;
    for (size_t i = 0; i < p->spec->triggers_n; i++) {
        if (str_eq(str_from(source, strlen(prefix)), p->spec->triggers[i].name)) {
            *ret_at = i;
            return &p->spec->triggers[i];
        }
    }
    return NULL;
}

bool schedule_planner_is_scaled(const struct schedule_planner *p)
{
    return p->last.has_desired && p->last.desired == p->config.desired &&
           str_eq(p->last_source, p->source);
}

bool schedule_planner_is_at_zero(const struct schedule_planner *p)
{
    return p->config.has_desired && p->config.desired == 0;
}

/* ---- the outcome */

/* Events for a trigger that ended, lost to another one, or started. */
static void report_source_change(struct schedule_planner *p)
{
    size_t at;
    if (str_eq(p->source, p->last_source))
        return;
    const struct schedule_trigger *before =
        schedule_planner_trigger(p, p->last_source, "start:", &at);
    if (before && p->plan.states[at].state == SCHEDULE_STATE_WITHIN)
        schedule_report_event(p, false, "TriggerSuperseded",
                              "trigger " STR_FMT " is still open, but " STR_FMT " takes precedence",
                              STR_ARG(before->name), STR_ARG(p->source));
    else if (before)
        schedule_report_event(p, false, "TriggerEnded",
                              "the window of trigger " STR_FMT " has ended; " STR_FMT
                              " governs now",
                              STR_ARG(before->name), STR_ARG(p->source));
    const struct schedule_trigger *now = schedule_planner_trigger(p, p->source, "start:", &at);
    if (now)
        schedule_report_event(p, false, "TriggerStarted",
                              "trigger " STR_FMT " (priority %lld) governs now", STR_ARG(now->name),
                              (long long)now->priority);
}

/* "minReplicas 1 -> 5, maxReplicas 10 -> 50": what changed. */
static str bounds_change(struct arena *a, struct schedule_bounds from, struct schedule_bounds to)
{
    str min = arena_printf(a, "minReplicas %d -> %d", from.min, to.min);
    str max = arena_printf(a, "maxReplicas %d -> %d", from.max, to.max);
    if (from.max == to.max)
        return min;
    return from.min == to.min ? max
                              : arena_printf(a, STR_FMT ", " STR_FMT, STR_ARG(min), STR_ARG(max));
}

/* Events for bounds that were written, and for a config that could be applied only in part. */
static void report_bounds_change(struct schedule_planner *p)
{
    const struct schedule_pass *pass = p->pass;
    struct schedule_bounds from = pass->changed_from, to = pass->hpa.bounds;
    bool back = p->plan.effective.source == SCHEDULE_FROM_NONE && !p->plan.governed;
    if (pass->changed && !schedule_bounds_equal(from, to))
        schedule_report_event(p, false, back ? "BaselineRestored" : "HPAUpdated",
                              STR_FMT ": " STR_FMT " by " STR_FMT "%s",
                              STR_ARG(schedule_planner_target_text(p)),
                              STR_ARG(bounds_change(p->a, from, to)), STR_ARG(p->source),
                              p->raises ? " and the forecast" : "");
    if (!pass->changed && str_eq(p->source, p->last_source))
        return;
    if (p->applied == SCHEDULE_APPLY_CLAMPED)
        schedule_report_event(
            p, true, "HPAConfigClamped",
            STR_FMT " does not fit the live bounds that it leaves unset; minReplicas is lowered to "
                    "maxReplicas, %d",
            STR_ARG(p->source), p->plan.target.min);
    if (p->applied == SCHEDULE_APPLY_ZERO_UNSUPPORTED)
        schedule_report_event(
            p, true, "ScaleToZeroUnsupported",
            STR_FMT " sets minReplicas 0, which requires an Object or External metric; using 1",
            STR_ARG(p->source));
}

/* status.lastAppliedConfig: what this pass applied, and bounds of earlier passes that are still unchanged. Drift
 * detection and restoring depend on it. */
static void set_last_applied(struct schedule_planner *p)
{
    struct schedule_status *s = &p->status;
    struct schedule_bounds live = p->pass->hpa.bounds, target = p->plan.target;
    struct schedule_config now = { 0 };
    bool clamped = p->applied == SCHEDULE_APPLY_CLAMPED;
    if (p->config.has_min || clamped || (p->last.has_min && p->last.min == live.min))
        now.has_min = true, now.min = target.min;
    if (p->config.has_max || (p->last.has_max && p->last.max == live.max))
        now.has_max = true, now.max = target.max;
    bool scaled = p->pass->scaled == SCHEDULE_SCALE_DONE || schedule_planner_is_scaled(p);
    if (p->config.has_desired && scaled)
        now.has_desired = true, now.desired = p->config.desired;
    if (p->pass->scaled == SCHEDULE_SCALE_FAILED && p->last.has_desired && p->last.desired == 0)
        now.has_desired = true,
        now.desired = 0; /* the workload must still be scaled up from zero */
    if (schedule_config_empty(&now))
        json_del(s->next, S("lastAppliedConfig"));
    else
        json_set(p->a, s->next, S("lastAppliedConfig"), schedule_config_json(p->a, &now));
    if (p->pass->changed)
        schedule_status_time(s, "lastAppliedTime", p->pass->now);
    if (p->raises && schedule_bounds_equal(target, live))
        json_set_int(p->a, s->next, SCHEDULE_OWN_MIN, p->own_min);
    else
        json_del(s->next, S(SCHEDULE_OWN_MIN));
}

static void set_trigger_states(struct schedule_planner *p)
{
    struct json *list = json_new_arr(p->a);
    struct schedule_status one = { .a = p->a };
    for (size_t i = 0; i < p->spec->triggers_n; i++) {
        const struct schedule_trigger_now *now = &p->plan.states[i];
        one.next = json_new_obj(p->a);
        schedule_status_text(&one, "name", p->spec->triggers[i].name);
        schedule_status_text(&one, "state", str_c(schedule_state_name(now->state)));
        schedule_status_time(&one, "windowStart", now->window_s == INT64_MIN ? 0 : now->window_s);
        schedule_status_time(&one, "windowEnd", now->window_e == INT64_MAX ? 0 : now->window_e);
        schedule_status_text(&one, "problem", trigger_problem(p, i));
        json_push(p->a, list, one.next);
    }
    json_set(p->a, p->status.next, S("triggers"), list);
}

/* Ready, Error and Contended, from what became of the bounds. */
static void report_bounds(struct schedule_planner *p)
{
    const struct schedule_pass *pass = p->pass;
    if (pass->scaled == SCHEDULE_SCALE_FAILED && p->target.kind == SCHEDULE_TARGET_WORKLOAD) {
        schedule_report_not_ready(p, "ScaleFailed", "ScaleFailed", pass->failure);
        schedule_report_condition(p, "Error", true, "ScaleFailed", pass->failure);
    } else if (pass->rejected) {
        schedule_report_not_ready(p, "Rejected", "HPAUpdateFailed", pass->failure);
        schedule_report_condition(p, "Error", true, "Rejected", pass->failure);
    } else if (p->applied == SCHEDULE_APPLY_INVALID) {
        schedule_report_not_ready(
            p, "InvalidSpec", "InvalidTrigger",
            arena_printf(p->a,
                         STR_FMT " sets %s, which is not valid for an HPA; nothing was changed",
                         STR_ARG(p->source), schedule_config_text(p->a, &p->config).p));
    } else if (p->contended) {
        struct schedule_bounds live = pass->hpa.bounds, target = p->plan.target;
        schedule_report_condition(
            p, "Ready", false, "Contended", /* the event is HPAContended */
            arena_printf(p->a,
                         STR_FMT
                         " has min %d, max %d and should have min %d, max %d; see condition "
                         "Contended",
                         STR_ARG(schedule_planner_target_text(p)), live.min, live.max, target.min,
                         target.max));
    } else if (!schedule_bounds_equal(p->plan.target, pass->hpa.bounds)) {
        schedule_report_ready(p, "Drifted",
                              S("another client changed the bounds; driftPolicy OnTransition keeps "
                                "them until the next transition"));
    } else {
        schedule_report_ready(p, "Reconciled", S("SmartHPA reconciled successfully"));
    }
    if (schedule_bounds_equal(p->plan.target, pass->hpa.bounds))
        schedule_status_clear(&p->status, &(struct schedule_condition){
                                              "Contended", false, "Quiet",
                                              S("no other client changes the bounds") });
}

/* Emits an event when scaling to desiredReplicas begins to fail; it is tried again in every pass. */
static void report_scale(struct schedule_planner *p)
{
    const struct schedule_pass *pass = p->pass;
    bool fails = pass->scaled == SCHEDULE_SCALE_FAILED;
    if (fails && !pass->memory->scale_failed)
        schedule_report_event(p, true, "DesiredReplicasFailed", STR_FMT, STR_ARG(pass->failure));
    if (pass->scaled != SCHEDULE_SCALE_NOT_TRIED)
        pass->memory->scale_failed = fails;
}

void schedule_report_outcome(struct schedule_planner *p)
{
    bool retry = /* the next pass must see the same transition again */
        p->pass->scaled == SCHEDULE_SCALE_FAILED && p->target.kind == SCHEDULE_TARGET_WORKLOAD;
    if (!retry) {
        report_source_change(p);
        report_bounds_change(p);
        set_last_applied(p);
        schedule_status_text(&p->status, "source", p->source);
        report_scale(p);
    }
    set_trigger_states(p);
    report_bounds(p);
    size_t at;
    const struct schedule_trigger *open = schedule_planner_trigger(p, p->source, "start:", &at);
    schedule_status_text(&p->status, "activeTrigger", open ? open->name : S(""));
    schedule_status_time(&p->status, "nextTransitionTime", p->plan.effective.next);
}
