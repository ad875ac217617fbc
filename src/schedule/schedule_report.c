/* The words of a pass: conditions, events and status fields. See schedule_report.h. */
#include "schedule_report.h"

#include "schedule_timeline.h"

#include <stdarg.h>
#include <stdio.h>

void report_event(struct planner *p, bool warning, const char *reason, const char *format, ...)
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

void report_condition(struct planner *p, const char *type, bool holds, const char *reason,
                      str message)
{
    schedule_status_condition(&p->status,
                              &(struct schedule_condition){ type, holds, reason, message });
}

str report_old_reason(const struct planner *p, const char *type)
{
    return json_text(json_get(schedule_old_condition(p->pass->object.status, type), "reason"));
}

/* Ready is False for this reason; an event says so once. */
void report_not_ready(struct planner *p, const char *reason, const char *event, str message)
{
    if (!str_eqc(report_old_reason(p, "Ready"), reason))
        report_event(p, true, event, STR_FMT, STR_ARG(message));
    report_condition(p, "Ready", false, reason, message);
}

void report_ready(struct planner *p, const char *reason, str message)
{
    bool was = schedule_condition_holds(p->pass->object.status, "Ready");
    if (!was && str_eqc(str_c(reason), "Reconciled"))
        report_event(p, false, "Reconciled", STR_FMT, STR_ARG(message));
    report_condition(p, "Ready", true, reason, message);
    schedule_status_clear(&p->status,
                          &(struct schedule_condition){ "Error", false, "Reconciled",
                                                        S("the target HPA is usable") });
}

/* ---- lint */

static str trigger_problem(const struct planner *p, size_t trigger)
{
    for (size_t i = 0; i < p->spec->problems_n; i++)
        if (p->spec->problems[i].trigger == (int)trigger)
            return p->spec->problems[i].text;
    return S("");
}

static const char *problem_event(enum schedule_problem_kind kind)
{
    if (kind == SCHEDULE_INVALID_TIMEZONE || !schedule_problem_is_error(kind))
        return schedule_problem_reason(kind);
    return "InvalidTrigger";
}

/* One condition that lists every problem, and one event for each that was not listed before. */
void report_spec(struct planner *p)
{
    const struct schedule_spec *spec = p->spec;
    str before =
        json_text(json_get(schedule_old_condition(p->pass->object.status, "SpecValid"), "message"));
    auto_buf struct buf message = { 0 };
    const char *reason = NULL;
    for (size_t i = 0; i < spec->problems_n; i++) {
        const struct schedule_problem *one = &spec->problems[i];
        if (!reason && schedule_problem_is_error(one->kind))
            reason = schedule_problem_reason(one->kind);
        if (str_find(before, one->text) == SIZE_MAX)
            report_event(p, true, problem_event(one->kind), STR_FMT, STR_ARG(one->text));
        if (message.n < 20000)
            buf_printf(&message, "%s" STR_FMT, i ? "; " : "", STR_ARG(one->text));
    }
    str text = message.n ? buf_str(&message) : S("every trigger can be read");
    report_condition(p, "SpecValid", !reason, reason ? reason : "Valid", text);
    size_t usable = 0;
    for (size_t i = 0; i < spec->triggers_n; i++)
        usable += spec->triggers[i].use == SCHEDULE_USED;
    report_condition(p, "Scheduled", usable > 0, usable ? "ScheduleEnqueued" : "NoUsableTrigger",
                     arena_printf(p->a, "%zu of %zu triggers can be used", usable,
                                  spec->triggers_n));
}

void report_query(struct planner *p)
{
    str problem = p->pass->query_problem;
    bool bad = problem.n > 0, has_query = p->spec->advice.enabled && p->spec->advice.query.n;
    if (!has_query && !schedule_old_condition(p->pass->object.status, "QueryValid"))
        return;
    if (bad && !str_eqc(report_old_reason(p, "QueryValid"), "InvalidQuery"))
        report_event(p, true, "InvalidQuery", STR_FMT, STR_ARG(problem));
    report_condition(p, "QueryValid", !bad, bad ? "InvalidQuery" : "Valid",
                     bad         ? problem
                     : has_query ? S("smartRecommendation.query can be sent")
                                 : S("smartRecommendation has no query of its own"));
}

/* ---- the planner's questions */

str planner_target_text(const struct planner *p)
{
    return arena_printf(p->a, "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT, STR_ARG(p->target.ns),
                        STR_ARG(p->target.name));
}

const struct schedule_trigger *planner_trigger(const struct planner *p, str source,
                                               const char *prefix, size_t *ret_at)
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

bool planner_desired_done(const struct planner *p)
{
    return p->last.has_desired && p->last.desired == p->config.desired &&
           str_eq(p->last_source, p->source);
}

/* ---- what happened, in events and status */

static void tell_source(struct planner *p)
{
    size_t at;
    if (str_eq(p->source, p->last_source))
        return;
    const struct schedule_trigger *before = planner_trigger(p, p->last_source, "start:", &at);
    if (before && p->plan.states[at].state == SCHEDULE_STATE_WITHIN)
        report_event(p, false, "TriggerSuperseded",
                     "trigger " STR_FMT " is open but " STR_FMT " governs now",
                     STR_ARG(before->name), STR_ARG(p->source));
    else if (before)
        report_event(p, false, "TriggerEnded",
                     "the window of trigger " STR_FMT " is over, " STR_FMT " governs now",
                     STR_ARG(before->name), STR_ARG(p->source));
    const struct schedule_trigger *now = planner_trigger(p, p->source, "start:", &at);
    if (now)
        report_event(p, false, "TriggerStarted", "trigger " STR_FMT " (priority %lld) governs now",
                     STR_ARG(now->name), (long long)now->priority);
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

static void tell_change(struct planner *p)
{
    const struct schedule_pass *pass = p->pass;
    struct schedule_bounds from = pass->changed_from, to = pass->hpa.bounds;
    bool back = p->plan.effective.source == SCHEDULE_FROM_NONE && !p->plan.governed;
    if (pass->changed)
        report_event(p, false, back ? "BaselineRestored" : "HPAUpdated",
                     STR_FMT ": " STR_FMT " by " STR_FMT, STR_ARG(planner_target_text(p)),
                     STR_ARG(bounds_change(p->a, from, to)), STR_ARG(p->source));
    if (!pass->changed && str_eq(p->source, p->last_source))
        return;
    if (p->applied == SCHEDULE_APPLY_CLAMPED)
        report_event(
            p, true, "HPAConfigClamped",
            STR_FMT
            " and the bounds it leaves as they are do not fit together; minReplicas is %d, as "
            "maxReplicas",
            STR_ARG(p->source), p->plan.target.min);
    if (p->applied == SCHEDULE_APPLY_ZERO_UNSUPPORTED)
        report_event(p, true, "ScaleToZeroUnsupported",
                     STR_FMT
                     " asks for minReplicas 0, which needs an Object or External metric; 1 is used",
                     STR_ARG(p->source));
}

static void status_applied(struct planner *p)
{
    struct schedule_status *s = &p->status;
    struct schedule_bounds live = p->pass->hpa.bounds, target = p->plan.target;
    struct schedule_config now = { 0 };
    bool clamped = p->applied == SCHEDULE_APPLY_CLAMPED;
    if (p->config.has_min || clamped || (p->last.has_min && p->last.min == live.min))
        now.has_min = true, now.min = target.min;
    if (p->config.has_max || (p->last.has_max && p->last.max == live.max))
        now.has_max = true, now.max = target.max;
    bool scaled = p->pass->scaled == SCHEDULE_SCALE_DONE || planner_desired_done(p);
    if (p->config.has_desired && scaled)
        now.has_desired = true, now.desired = p->config.desired;
    if (p->pass->scaled == SCHEDULE_SCALE_FAILED && p->last.has_desired && p->last.desired == 0)
        now.has_desired = true, now.desired = 0; /* still to be woken up */
    if (schedule_config_empty(&now))
        json_del(s->next, S("lastAppliedConfig"));
    else
        json_set(p->a, s->next, S("lastAppliedConfig"), schedule_config_json(p->a, &now));
    if (p->pass->changed)
        schedule_status_time(s, "lastAppliedTime", p->pass->now);
}

static void status_triggers(struct planner *p)
{
    struct json *list = json_new_arr(p->a);
    struct schedule_status one = { .a = p->a };
    for (size_t i = 0; i < p->spec->triggers_n; i++) {
        const struct schedule_trigger_now *now = &p->plan.states[i];
        one.next = json_new_obj(p->a);
        schedule_status_text(&one, "name", p->spec->triggers[i].name);
        schedule_status_text(&one, "state", str_c(schedule_state_name(now->state)));
        schedule_status_time(&one, "windowStart", now->window_s);
        schedule_status_time(&one, "windowEnd", now->window_e);
        schedule_status_text(&one, "problem", trigger_problem(p, i));
        json_push(p->a, list, one.next);
    }
    json_set(p->a, p->status.next, S("triggers"), list);
}

static void judge_bounds(struct planner *p)
{
    const struct schedule_pass *pass = p->pass;
    if (pass->rejected) {
        report_not_ready(p, "Rejected", "HPAUpdateFailed", pass->trouble);
        report_condition(p, "Error", true, "Rejected", pass->trouble);
    } else if (p->applied == SCHEDULE_APPLY_INVALID) {
        report_not_ready(
            p, "InvalidSpec", "InvalidTrigger",
            arena_printf(p->a, STR_FMT " asks for %s, which no HPA can have; nothing is changed",
                         STR_ARG(p->source), schedule_config_text(p->a, &p->config).p));
    } else {
        report_ready(p, "Reconciled", S("SmartHPA reconciled successfully"));
    }
    if (schedule_bounds_equal(p->plan.target, pass->hpa.bounds))
        schedule_status_clear(&p->status,
                              &(struct schedule_condition){ "Contended", false, "Quiet",
                                                            S("nobody else changes the bounds") });
    if (pass->scaled == SCHEDULE_SCALE_FAILED)
        report_event(p, true, "DesiredReplicasFailed", STR_FMT, STR_ARG(pass->trouble));
}

void report_outcome(struct planner *p)
{
    tell_source(p);
    tell_change(p);
    status_applied(p);
    status_triggers(p);
    judge_bounds(p);
    size_t at;
    const struct schedule_trigger *open = planner_trigger(p, p->source, "start:", &at);
    schedule_status_text(&p->status, "activeTrigger", open ? open->name : S(""));
    schedule_status_text(&p->status, "source", p->source);
    schedule_status_time(&p->status, "nextTransitionTime", p->plan.effective.next);
}
