/* The metrics of schedules; see schedule_metrics.h.
 *
 * Names and labels are those of SmartHPA where it has the metric. Gauges of an object are removed with it;
 * counters stay, so that a scrape after the deletion still sees their last value. The info series of the
 * governing trigger has the trigger as a label, so the last one shown is remembered per object (`active`, owned
 * by the caller) and removed before the next is set. */
#include "schedule_metrics.h"

static const double lag_bounds[] = { .01, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 300 };

static struct metric_family *add_gauge(struct metrics *r, const char *name, const char *help,
                                       const char *label)
{
    return metrics_family(r, &(struct metric_spec){ .name = name,
                                                    .help = help,
                                                    .kind = METRIC_GAUGE,
                                                    .labels = { "namespace", "name", label } });
}

static struct metric_family *add_counter(struct metrics *r, const char *name, const char *help,
                                         const char *label, const char *label2)
{
    return metrics_family(r, &(struct metric_spec){
                                 .name = name,
                                 .help = help,
                                 .kind = METRIC_COUNTER,
                                 .labels = { "namespace", "name", label, label2 } });
}

/* Registers all families; namespace and name are the first labels of every series but the histogram. */
void schedule_metrics_init(struct schedule_metrics *m, struct metrics *registry)
{
    m->applied = add_counter(registry, "smarthpa_trigger_applied_total",
                             "Bounds written for a trigger", "trigger", "phase");
    m->failures = add_counter(registry, "smarthpa_hpa_update_failures_total",
                              "Writes of bounds that failed", "reason", NULL);
    m->drift = add_counter(registry, "smarthpa_drift_corrections_total",
                           "Bounds restored after another client changed them", NULL, NULL);
    m->active = add_gauge(registry, "smarthpa_active_triggers", "Open windows", NULL);
    m->active_info = add_gauge(registry, "smarthpa_active_trigger_info",
                               "1 for the governing trigger", "trigger");
    m->effective =
        add_gauge(registry, "smarthpa_effective_replicas", "Bounds that should apply", "bound");
    m->next = add_gauge(registry, "smarthpa_next_transition_timestamp_seconds",
                        "Time of the next possible change", NULL);
    m->problems = add_gauge(registry, "smarthpa_spec_problems", "Problems of the spec", "kind");
    m->advice_age = add_gauge(registry, "smarthpa_recommendation_age_seconds",
                              "Age of the published recommendation", NULL);
    m->advice_under = add_gauge(registry, "smarthpa_recommendation_backtest_under_ratio",
                                "Share of replica time missing in the backtest", NULL);
    m->lag =
        metrics_family(registry,
                       &(struct metric_spec){ .name = "smarthpa_transition_lag_seconds",
                                              .help = "Time from a boundary to the written bounds",
                                              .kind = METRIC_HISTOGRAM,
                                              .bounds = lag_bounds,
                                              .bound_n = countof(lag_bounds) });
}

/* Removes an object's series, one per value of the third label. */
static void drop_bounds(struct metric_family *f, str ns, str name, const char *const *thirds)
{
    for (; *thirds; thirds++)
        metric_drop(f, (const str[]){ ns, name, str_c(*thirds) });
}

static const char *const bound_names[] = { "min", "max", NULL };

/* One series per kind of problem. A kind without problems has no series, so that an alert on it can resolve. */
static void count_problems(const struct schedule_metrics *m, const struct schedule_object *o)
{
    size_t counts[SCHEDULE_PROBLEM_N] = { 0 };
    for (size_t i = 0; i < o->spec->problems_n; i++)
        counts[o->spec->problems[i].kind]++;
    for (int k = 0; k < SCHEDULE_PROBLEM_N; k++) {
        const str labels[] = { o->ns, o->name,
                               str_c(schedule_problem_reason((enum schedule_problem_kind)k)) };
        if (counts[k])
            metric_set(metric_at(m->problems, labels), (double)counts[k]);
        else
            metric_drop(m->problems, labels);
    }
}

static void hide_active(const struct schedule_metrics *m, str ns, str name, char **active)
{
    if (*active)
        metric_drop(m->active_info, (const str[]){ ns, name, str_c(*active) });
    free(take(*active));
}

/* Updates the open windows and moves the info series to the governing trigger. */
static void show_active(const struct schedule_metrics *m, const struct schedule_object *o,
                        const struct schedule_effective *e, char **active)
{
    bool open = e->source == SCHEDULE_FROM_START;
    str now = open ? o->spec->triggers[e->trigger].name : S("");
    metric_set(METRIC(m->active, o->ns, o->name), (double)e->within_n);
    if (str_eq(now, str_c(*active)))
        return;
    hide_active(m, o->ns, o->name, active);
    if (!open)
        return;
    metric_set(METRIC(m->active_info, o->ns, o->name, now), 1);
    *active = mem_dup(now.p, now.n);
}

/* A pass that decided nothing (plan->states is NULL) leaves the last decision in the metrics. */
void schedule_metrics_pass(const struct schedule_metrics *m, const struct schedule_object *o,
                           const struct schedule_plan *plan, char **active)
{
    const struct schedule_effective *e = &plan->effective;
    count_problems(m, o);
    if (!plan->states)
        return;
    show_active(m, o, e, active);
    if (e->next)
        metric_set(METRIC(m->next, o->ns, o->name), (double)e->next);
    else
        metric_drop(m->next, (const str[]){ o->ns, o->name });
    if (!plan->governed) {
        drop_bounds(m->effective, o->ns, o->name, bound_names);
        return;
    }
    metric_set(METRIC(m->effective, o->ns, o->name, S("min")), plan->target.min);
    metric_set(METRIC(m->effective, o->ns, o->name, S("max")), plan->target.max);
}

/* Counts a write of bounds. `late_s` is the time since the boundary; negative: the write was not due to one. */
void schedule_metrics_write(const struct schedule_metrics *m, const struct schedule_object *o,
                            const struct schedule_plan *plan, double late_s)
{
    str trigger = plan->states && plan->effective.trigger >= 0
                      ? o->spec->triggers[plan->effective.trigger].name
                      : S("");
    metric_add(METRIC(m->applied, o->ns, o->name, trigger, str_c(schedule_phase_name(plan->phase))),
               1);
    if (plan->reverts)
        metric_add(METRIC(m->drift, o->ns, o->name), 1);
    if (late_s >= 0)
        metric_observe(METRIC_ALONE(m->lag), late_s);
}

void schedule_metrics_failure(const struct schedule_metrics *m, str ns, str name, str reason)
{
    metric_add(METRIC(m->failures, ns, name, reason), 1);
}

void schedule_metrics_drop(const struct schedule_metrics *m, str ns, str name, char **active)
{
    const str labels[] = { ns, name };
    hide_active(m, ns, name, active);
    for (int k = 0; k < SCHEDULE_PROBLEM_N; k++)
        metric_drop(m->problems,
                    (const str[]){ ns, name,
                                   str_c(schedule_problem_reason((enum schedule_problem_kind)k)) });
    metric_drop(m->active, labels);
    metric_drop(m->next, labels);
    metric_drop(m->advice_age, labels);
    metric_drop(m->advice_under, labels);
    drop_bounds(m->effective, ns, name, bound_names);
}
