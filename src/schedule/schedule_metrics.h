/* What the schedule counts about itself: see docs/schedule.md for the meaning of each. */
#ifndef FLYBALL_SCHEDULE_METRICS_H
#define FLYBALL_SCHEDULE_METRICS_H

#include "../base/metrics.h"
#include "schedule_plan_core.h"

struct schedule_metrics {
    struct metric_family *applied, *failures, *active, *active_info, *effective, *next, *lag,
        *drift, *problems, *advice_age, *advice_under;
};

void schedule_metrics_init(struct schedule_metrics *m, struct metrics *registry);

/* How a finished pass found the object. `*active` is an owned copy of the trigger that is shown as
 * governing (NULL: none), so that its series goes when another takes its place. */
void schedule_metrics_pass(const struct schedule_metrics *m, const struct schedule_object *o,
                           const struct schedule_plan *plan, char **active);
/* Bounds were written; `late_s` after the boundary that asked for it, negative: there was none. */
void schedule_metrics_write(const struct schedule_metrics *m, const struct schedule_object *o,
                            const struct schedule_plan *plan, double late_s);
void schedule_metrics_failure(const struct schedule_metrics *m, str ns, str name, str reason);
void schedule_metrics_drop(const struct schedule_metrics *m, str ns, str name, char **active);

#endif
