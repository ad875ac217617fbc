/* The report of a pass: conditions, events and the fields of the status. Used only by
 * schedule_plan_core.c, which decides what to report. */
#ifndef FLYBALL_SCHEDULE_REPORT_CORE_H
#define FLYBALL_SCHEDULE_REPORT_CORE_H

#include "schedule_forecast_core.h"
#include "schedule_plan_core.h"
#include "schedule_status_core.h"

#define SCHEDULE_OWN_MIN "minReplicasWithoutForecast" /* a field of the status */

/* The state of one call of schedule_plan(). */
struct schedule_planner {
    struct arena *a;
    const struct schedule_pass *pass;
    const struct schedule_spec *spec;
    struct schedule_target target;
    struct schedule_status status;
    struct schedule_plan plan;
    size_t events_cap;

    /* from the old status: what was applied last, and its source */
    struct schedule_config last;
    str last_source;

    /* what should apply now */
    struct schedule_config config;
    enum schedule_applied applied;
    str source;
    bool restores;  /* the target is the baseline */
    bool contended; /* another client keeps changing the bounds, and they are left as they are */

    /* mode Forecast: a floor under minReplicas */
    struct schedule_forecast_note raised; /* written by an earlier pass, and still in place */
    bool has_stale_note; /* written, but another client changed minReplicas since */
    struct schedule_forecast_now forecast;
    const char *forecast_reason; /* why there is no floor; NULL: there is one */
    str forecast_message;
    bool raises;     /* the floor is above... */
    int32_t own_min; /* ...what the windows, or else the user, set */
};

/* ---- queries */

str schedule_planner_target_text(
    const struct schedule_planner *p); /* "HorizontalPodAutoscaler ns/name" */
/* The trigger of a source such as "start:office"; NULL if the source has another prefix or no trigger. */
const struct schedule_trigger *schedule_planner_trigger(const struct schedule_planner *p,
                                                        str source, const char *prefix,
                                                        size_t *ret_at);
/* Was the workload already scaled to desiredReplicas for this source? */
bool schedule_planner_is_scaled(const struct schedule_planner *p);
/* Does the config that applies keep the workload at zero? */
bool schedule_planner_is_at_zero(const struct schedule_planner *p);

/* ---- reporting */

void schedule_report_event(struct schedule_planner *p, bool warning, const char *reason,
                           const char *format, ...) PRINTF_LIKE(4, 5);
void schedule_report_condition(struct schedule_planner *p, const char *type, bool holds,
                               const char *reason, str message);
str schedule_report_old_reason(const struct schedule_planner *p, const char *type);
/* Sets Ready to False; emits the event when the reason is new. */
void schedule_report_not_ready(struct schedule_planner *p, const char *reason, const char *event,
                               str message);
void schedule_report_ready(struct schedule_planner *p, const char *reason, str message);
/* Sets SpecValid and Scheduled; emits an event for each new problem. */
void schedule_report_spec(struct schedule_planner *p);
/* Sets QueryValid if there is a query: can it be restricted to the schedule's namespace? */
void schedule_report_query(struct schedule_planner *p);
/* Sets Forecast if the mode is or was Forecast: the floor, or why there is none. */
void schedule_report_forecast(struct schedule_planner *p);
/* Everything that a completed pass reports: transitions, changed bounds, applied config, trigger states. */
void schedule_report_outcome(struct schedule_planner *p);

#endif
