/* Schedules for people: a week as rows of hours in a terminal, the same as SVG, and the answer to "why does
 * this apply now?". Everything here prints what the core decided. */
#ifndef FLYBALL_SCHEDULE_DRAW_H
#define FLYBALL_SCHEDULE_DRAW_H

#include "schedule_timeline_core.h"

/* One row per local day of `zone`, one cell per half hour. */
void schedule_draw_text(struct buf *out, const struct schedule_timeline *line,
                        const struct tz *zone);

/* The same as one self-contained SVG document; `title` is escaped. */
void schedule_draw_svg(struct buf *out, const struct schedule_timeline *line, const struct tz *zone,
                       str title);

/* Which trigger governs at `now`, why the others do not, and the next changes. */
void schedule_explain(struct buf *out, const struct schedule_spec *spec, int64_t created,
                      int64_t now);

/* The problems of the spec, one line each. */
void schedule_draw_problems(struct buf *out, const struct schedule_spec *spec);

/* "Wed 2026-06-03 09:00:00 +02:00": an instant in local time. */
void schedule_draw_wall(struct buf *out, const struct tz *zone, int64_t at);

#endif
