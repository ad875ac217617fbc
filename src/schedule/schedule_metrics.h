/* Metrics of the schedule feature; docs/schedule.md explains each. */
#ifndef FLYBALL_SCHEDULE_METRICS_H
#define FLYBALL_SCHEDULE_METRICS_H

#include "../base/metrics.h"
#include "schedule_plan_core.h"

struct schedule_metrics {
    struct metric_family *applied, *failures, *active, *active_info, *effective, *next, *lag,
        *drift, *problems, *advice_age, *advice_under;
};

void schedule_metrics_init(struct schedule_metrics *m, struct metrics *registry);

/* The state after a pass. `*active` is an owned copy of the trigger in smarthpa_active_trigger_info (NULL:
 * none), so that its series is removed when another trigger takes over. */
void schedule_metrics_pass(const struct schedule_metrics *m, const struct schedule_object *o,
                           const struct schedule_plan *plan, char **active);
/* Bounds were written `late_s` seconds after the boundary that caused it; negative: no boundary did. */
void schedule_metrics_write(const struct schedule_metrics *m, const struct schedule_object *o,
                            const struct schedule_plan *plan, double late_s);
void schedule_metrics_failure(const struct schedule_metrics *m, str ns, str name, str reason);
void schedule_metrics_drop(const struct schedule_metrics *m, str ns, str name, char **active);

#endif
