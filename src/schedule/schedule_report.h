/* What a pass says: conditions, events and the fields of the status. Used by schedule_plan.c only, which
 * decides what is to be said. */
#ifndef FLYBALL_SCHEDULE_REPORT_H
#define FLYBALL_SCHEDULE_REPORT_H

#include "schedule_plan.h"
#include "schedule_status.h"

struct planner {
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

str planner_target_text(const struct planner *p); /* "HorizontalPodAutoscaler ns/name" */
/* The trigger of a source such as "start:office", when the source has that prefix. */
const struct schedule_trigger *planner_trigger(const struct planner *p, str source,
                                               const char *prefix, size_t *ret_at);
/* The workload was scaled for this source already. */
bool planner_desired_done(const struct planner *p);

/* ---- saying it */

void report_event(struct planner *p, bool warning, const char *reason, const char *format, ...)
    PRINTF_LIKE(4, 5);
void report_condition(struct planner *p, const char *type, bool holds, const char *reason,
                      str message);
str report_old_reason(const struct planner *p, const char *type);
/* Ready is False for this reason; an event says so once. */
void report_not_ready(struct planner *p, const char *reason, const char *event, str message);
void report_ready(struct planner *p, const char *reason, str message);
/* SpecValid and Scheduled, and an event for each problem that is new. */
void report_spec(struct planner *p);
/* QueryValid, where there is a query: whether it can be confined to the namespace. */
void report_query(struct planner *p);
/* All that a finished pass has to tell: what changed, what was applied, how triggers stand. */
void report_outcome(struct planner *p);

#endif
