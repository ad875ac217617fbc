/* When a trigger is active: its wall-clock windows as instants.
 *
 * A day of the trigger's calendar contributes one or two pieces [from, to); pieces that touch form one
 * window. Daylight saving never splits or repeats a window: it is one interval that covers every instant
 * at which the wall clock shows a time inside it. */
#ifndef FLYBALL_SCHEDULE_WINDOWS_CORE_H
#define FLYBALL_SCHEDULE_WINDOWS_CORE_H

#include "schedule_spec.h"

struct schedule_span {
    int64_t from, to; /* [from, to) */
};

enum { SCHEDULE_LOOK_DAYS = 8, SCHEDULE_AHEAD_DAYS = 400 };

/* `wall` is a reading of the zone's wall clock, in seconds since 1970-01-01T00:00:00 as if it were UTC.
 * As the start of a window: the first instant that shows this reading or a later one. */
int64_t schedule_wall_start(const struct tz *zone, int64_t wall);
/* As the end of a window: the instant after the last one that shows an earlier reading. */
int64_t schedule_wall_end(const struct tz *zone, int64_t wall);
bool schedule_date_exists(const struct tz *zone, int64_t day);

/* A trigger at an instant, with the local day there. */
struct schedule_view {
    const struct schedule_trigger *trigger;
    int64_t now;
    int64_t today; /* local day, in days since 1970-01-01 */
    struct tz_span
        steady; /* the UTC offset around now and how long it applies: most conversions need no search */
};

struct schedule_view schedule_view(const struct schedule_trigger *t, int64_t now);

/* Do weekdays, date range and excluded dates select this local day, and do they select every day? */
bool schedule_trigger_has_day(const struct schedule_trigger *t, int64_t day);
bool schedule_trigger_is_daily(const struct schedule_trigger *t);
/* Is it one of the included dates, or in an included calendar? */
bool schedule_trigger_includes_day(const struct schedule_trigger *t, int64_t day);
/* No day before the first or after the last one is selected. */
int64_t schedule_trigger_first_day(const struct schedule_trigger *t);
int64_t schedule_trigger_last_day(const struct schedule_trigger *t);
/* Does the trigger have a window today? For a cron line, the line decides as well. */
bool schedule_view_has_window(const struct schedule_view *v);

/* The open window, looking at most SCHEDULE_LOOK_DAYS local days into the past and the future. */
bool schedule_window_near(const struct schedule_view *v, struct schedule_span *ret);

/* The open window as a whole: from when it opened until it closes, however far away. INT64_MIN: it never was
 * closed; INT64_MAX: it never closes. Both stay the same for as long as the window is open. */
bool schedule_window_now(const struct schedule_view *v, struct schedule_span *ret);

/* On a selected day, outside the window: will the window still open today? */
bool schedule_is_before_window(const struct schedule_view *v);

/* A time of a local day, in seconds from its midnight, as the start or the end of a window. */
int64_t schedule_view_start(const struct schedule_view *v, int64_t day, int64_t second);
int64_t schedule_view_end(const struct schedule_view *v, int64_t day, int64_t second);

/* The last end at or before now that is later than `after`; INT64_MIN as `after`: any age. */
bool schedule_last_end(const struct schedule_view *v, int64_t after, int64_t *ret);

/* The first start or end of a piece after now, within SCHEDULE_AHEAD_DAYS. */
bool schedule_next_boundary(const struct schedule_view *v, int64_t *ret);

#endif
