/* Windows of triggers that are written as cron lines.
 *
 *     schedule: "0 9 * * MON-FRI"     a line with a duration: opens at each matching time. The duration counts on the
 *     duration: 8h                    wall clock, so that this is the same as 09:00 to 17:00 on these days.
 *
 *     schedule: "0 9 * * 1-5"         two lines, as KEDA's cron scaler has them: open between a time of the first and
 *     endSchedule: "0 17 * * *"       the next time of the second, exactly as KEDA evaluates them.
 *
 * Used only by schedule_windows_core.c, which documents what they return. */
#ifndef FLYBALL_SCHEDULE_LINE_CORE_H
#define FLYBALL_SCHEDULE_LINE_CORE_H

#include "schedule_windows_core.h"

bool schedule_line_window_now(const struct schedule_view *v, struct schedule_span *ret);
bool schedule_line_is_before_window(const struct schedule_view *v);
bool schedule_line_has_day(const struct schedule_view *v); /* does a window open or close today? */
bool schedule_line_last_end(const struct schedule_view *v, int64_t after, int64_t *ret);
bool schedule_line_next_boundary(const struct schedule_view *v, int64_t *ret);

#endif
