/* Schedules for people: a week as rows of hours in a terminal, the same as SVG, and the answer to
 * "why does this hold now?". Everything here prints what the core already decided. */
#ifndef FLYBALL_SCHEDULE_DRAW_H
#define FLYBALL_SCHEDULE_DRAW_H

#include "schedule_timeline_core.h"

/* One row a local day of `zone`, one cell half an hour. */
void schedule_draw_text(struct buf *out, const struct schedule_timeline *line,
                        const struct tz *zone);

/* The same as one self-contained SVG document; `title` is escaped. */
void schedule_draw_svg(struct buf *out, const struct schedule_timeline *line, const struct tz *zone,
                       str title);

/* Who governs at `now`, why the others do not, and what comes next. */
void schedule_explain(struct buf *out, const struct schedule_spec *spec, int64_t created,
                      int64_t now);

/* What is wrong with the spec, a line each; nothing when nothing is. */
void schedule_draw_problems(struct buf *out, const struct schedule_spec *spec);

/* "Wed 2026-06-03 09:00:00 +02:00": an instant on the zone's wall. */
void schedule_draw_wall(struct buf *out, const struct tz *zone, int64_t at);

#endif
