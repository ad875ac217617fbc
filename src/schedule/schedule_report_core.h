/* What a pass says: conditions, events and the fields of the status. Used by schedule_plan_core.c only, which
 * decides what is to be said. */
#ifndef FLYBALL_SCHEDULE_REPORT_CORE_H
#define FLYBALL_SCHEDULE_REPORT_CORE_H

#include "schedule_plan_core.h"
#include "schedule_status_core.h"

struct schedule_planner {
    struct arena *a;
    const struct schedule_pass *pass;
    const struct schedule_spec *spec;
    struct schedule_target target;
    struct schedule_status status;
    struct schedule_plan plan;
    size_t events_cap;

    /* what the old status says we did last */
    struct schedule_config last;
    str last_source;

    /* what should hold */
    struct schedule_config config;
    enum schedule_applied applied;
    str source;
    bool restores;
};

/* ---- the planner's questions */

str schedule_planner_target_text(
    const struct schedule_planner *p); /* "HorizontalPodAutoscaler ns/name" */
/* The trigger of a source such as "start:office", when the source has that prefix. */
const struct schedule_trigger *schedule_planner_trigger(const struct schedule_planner *p,
                                                        str source, const char *prefix,
                                                        size_t *ret_at);
/* The workload was scaled for this source already. */
bool schedule_planner_is_scaled(const struct schedule_planner *p);

/* ---- saying it */

void schedule_report_event(struct schedule_planner *p, bool warning, const char *reason,
                           const char *format, ...) PRINTF_LIKE(4, 5);
void schedule_report_condition(struct schedule_planner *p, const char *type, bool holds,
                               const char *reason, str message);
str schedule_report_old_reason(const struct schedule_planner *p, const char *type);
/* Ready is False for this reason; an event says so once. */
void schedule_report_not_ready(struct schedule_planner *p, const char *reason, const char *event,
                               str message);
void schedule_report_ready(struct schedule_planner *p, const char *reason, str message);
/* SpecValid and Scheduled, and an event for each problem that is new. */
void schedule_report_spec(struct schedule_planner *p);
/* QueryValid, where there is a query: whether it can be confined to the namespace. */
void schedule_report_query(struct schedule_planner *p);
/* All that a finished pass has to tell: what changed, what was applied, how triggers stand. */
void schedule_report_outcome(struct schedule_planner *p);

#endif
