/* The floor of mode Forecast in a plan: see schedule_floor_core.h.
 *
 *     plan.target (windows, or the user) --> schedule_floor_apply --> plan.target with a higher minimum
 *              own_min  <-----------------------'        '--> annotation: {"own": own_min, "floor": minimum}
 *
 * The next pass sees the raised minimum on the HPA and must not take it for the user's own: the annotation distinguishes
 * them, as long as minReplicas still is the floor that it names. If another client changed minReplicas since, the note
 * is stale and is removed at once: otherwise the same number, set by hand much later, would be taken back as ours.
 *
 * The bound beneath is also in the status, for the case that another client removes or replaces the annotation. The
 * annotation comes first, because it is written in the same patch as the floor. */
#include "schedule_floor_core.h"

/* Is the old status about the target of this pass? */
static bool has_same_target(const struct schedule_planner *p)
{
    const struct json *ref = json_get(p->pass->object.status, "HPAObjectRef");
    str kind = json_text(json_get(ref, "kind"));
    bool is_hpa = p->target.kind == SCHEDULE_TARGET_HPA;
    return str_eq(json_text(json_get(ref, "name")), p->target.name) &&
           str_eq(json_text(json_get(ref, "namespace")), p->target.ns) &&
           (is_hpa ? !kind.n : str_eq(kind, p->target.kind_name));
}

/* What the last completed pass raised, if minReplicas is unchanged since. */
static struct schedule_forecast_note read_status_note(const struct schedule_planner *p)
{
    int64_t own = json_int(json_get(p->pass->object.status, SCHEDULE_OWN_MIN), -1);
    int32_t min = p->pass->hpa.bounds.min;
    if (own < 0 || own >= min || !p->last.has_min || p->last.min != min || !has_same_target(p))
        return (struct schedule_forecast_note){ 0 };
    return (struct schedule_forecast_note){ true, (int32_t)own, min };
}

void schedule_floor_find_raised(struct schedule_planner *p)
{
    struct json *tree = NULL;
    if (p->pass->hpa.baseline.n)
        json_parse(p->a, p->pass->hpa.baseline, &tree, NULL);
    struct schedule_forecast_note note = schedule_forecast_note_read(tree);
    if (json_int(json_get(tree, "min"), -1) < 0) /* not an annotation that we wrote */
        p->raised = read_status_note(p);
    else if (note.is_set && note.floor == p->pass->hpa.bounds.min)
        p->raised = note;
    else
        p->has_stale_note = note.is_set;
}

static void set_reason(struct schedule_planner *p, const char *reason, str message)
{
    p->forecast_reason = reason;
    p->forecast_message = message;
}

static void set_unknown_reason(struct schedule_planner *p, bool is_stale)
{
    const struct schedule_pass *pass = p->pass;
    if (pass->advice_reason)
        set_reason(p, pass->advice_reason, pass->advice_problem);
    else if (is_stale)
        set_reason(p, "ForecastExpired", S("the forecast has expired; no newer one was computed"));
    else
        set_reason(p, "Pending", S("the history has not been analyzed yet"));
}

static str backtest_text(struct arena *a, const struct json *backtest)
{
    return arena_printf(
        a,
        "in the backtest, missing replicas change from %.2f %% to %.2f %% and the seasonal strength is "
        "%.2f; they must fall by a fifth, and the strength must be at least 0.3",
        100 * json_real(json_get(backtest, "underRatioWithout"), 0),
        100 * json_real(json_get(backtest, "underRatio"), 0),
        json_real(json_get(backtest, "seasonalStrength"), 0));
}

/* Unknown is no floor: the windows' own bounds apply. */
int64_t schedule_floor_read(struct schedule_planner *p)
{
    const struct schedule_pass *pass = p->pass;
    if (!p->spec->advice.enabled || !p->spec->advice.forecast)
        return 0;
    const struct json *advised = pass->recommendation
                                     ? pass->recommendation
                                     : json_get(pass->object.status, "recommendation"),
                      *backtest = json_get(advised, "backtest");
    struct schedule_forecast_now now =
        schedule_forecast_read(json_get(advised, "forecast"), pass->now);
    if (!json_get(advised, "forecast") || now.is_stale)
        set_unknown_reason(p, now.is_stale);
    else if (!backtest)
        set_reason(p, "InsufficientData", S("a backtest needs at least 14 days of history"));
    else if (!json_bool(json_get(backtest, "goodEnough"), false))
        set_reason(p, "BacktestFailed", backtest_text(p->a, backtest));
    else if (str_ends(json_text(json_get(advised, "signal")), S("Replicas")))
        set_reason(p, "LimitedSignal", /* a floor would be learned again from itself */
                   S("desired and current replicas are limited by minReplicas; Forecast needs the "
                     "metrics of the HPA or a query"));
    else if (p->target.kind == SCHEDULE_TARGET_WORKLOAD)
        set_reason(p, "Unsupported",
                   S("mode Forecast needs an HPA or a ScaledObject as the target"));
    else if (!now.floor)
        set_reason(p, "InsufficientData", S("the history has no data for this weekday"));
    else
        p->forecast = now;
    return now.next;
}

void schedule_floor_apply(struct schedule_planner *p)
{
    struct schedule_plan *plan = &p->plan;
    if (p->applied == SCHEDULE_APPLY_INVALID) {
        plan->target = p->pass->hpa.bounds;
        p->raised.is_set = false; /* nothing is written, not even the annotation */
        p->has_stale_note = false;
        return;
    }
    p->own_min = plan->target.min;
    p->forecast.is_capped = p->forecast.floor > plan->target.max;
    p->raises =
        MIN(p->forecast.floor, plan->target.max) > p->own_min && !schedule_planner_is_at_zero(p);
    if (!p->raises && !p->raised.is_set)
        return;
    if (p->raises) {
        plan->target.min = MIN(p->forecast.floor, plan->target.max);
        plan->governed = true;
        p->restores = false;
    }
    p->config.has_min = true; /* a changed floor is a transition, not drift */
    p->config.min = plan->target.min;
}
