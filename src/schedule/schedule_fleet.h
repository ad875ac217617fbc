/* Many schedules on one page: when capacity moves, and which boundaries coincide. */
#ifndef FLYBALL_SCHEDULE_FLEET_H
#define FLYBALL_SCHEDULE_FLEET_H

#include "schedule_timeline_core.h"

struct schedule_fleet_row {
    str name; /* "namespace/name" */
    struct schedule_timeline line;
};

/* The rows have timelines of the same range. At most a week fits a terminal: one cell per two hours. */
void schedule_fleet_text(struct buf *out, struct arena *a, const struct schedule_fleet_row *rows,
                         size_t n, const struct tz *zone);
void schedule_fleet_svg(struct buf *out, struct arena *a, const struct schedule_fleet_row *rows,
                        size_t n, const struct tz *zone);

#endif
