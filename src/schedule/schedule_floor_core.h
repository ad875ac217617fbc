/* The floor under minReplicas within a plan: reading it, raising to it, and finding what is beneath it. Used only by
 * schedule_plan_core.c. Pure. */
#ifndef FLYBALL_SCHEDULE_FLOOR_CORE_H
#define FLYBALL_SCHEDULE_FLOOR_CORE_H

#include "schedule_report_core.h"

/* Sets `raised` and `has_stale_note` from the annotation and, if another client removed or replaced it, from the status. */
void schedule_floor_find_raised(struct schedule_planner *p);

/* Mode Forecast: sets `forecast`, or the reason why there is none. Returns when that changes; 0: never. */
int64_t schedule_floor_read(struct schedule_planner *p);

/* Raises plan.target.min to the floor, at most to maxReplicas; or prepares taking back what an earlier pass raised. */
void schedule_floor_apply(struct schedule_planner *p);

#endif
