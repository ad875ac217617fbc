/* When a trigger is active: its wall-clock windows as instants.
 *
 * A day of the trigger's calendar contributes one or two pieces [from, to); pieces that touch form a
 * window. Daylight saving never splits or repeats a window: it covers every instant whose wall
 * reading lies inside it, and is one interval. */
#ifndef FLYBALL_SCHEDULE_WINDOWS_CORE_H
#define FLYBALL_SCHEDULE_WINDOWS_CORE_H

#include "schedule_spec.h"

struct schedule_span {
    int64_t from, to; /* [from, to) */
};

enum { SCHEDULE_LOOK_DAYS = 8, SCHEDULE_AHEAD_DAYS = 400 };

/* A reading of the zone's wall clock, in seconds since 1970-01-01T00:00:00 as if it were UTC, as the
 * first instant of a window: the first whose reading is at or after it; */
int64_t schedule_wall_start(const struct tz *zone, int64_t wall);
/* and as its end: the instant after the last one whose reading is before it. */
int64_t schedule_wall_end(const struct tz *zone, int64_t wall);
bool schedule_date_exists(const struct tz *zone, int64_t day);

/* The trigger seen from an instant: its zone's local day there. */
struct schedule_view {
    const struct schedule_trigger *trigger;
    int64_t now;
    int64_t today;         /* local day, since 1970-01-01 */
    struct tz_span steady; /* the offset around now, so that most conversions need no search */
};

struct schedule_view schedule_view(const struct schedule_trigger *t, int64_t now);

bool schedule_trigger_has_day(const struct schedule_trigger *t, int64_t day);

/* The open window, cut SCHEDULE_LOOK_DAYS local days from now on both sides. */
bool schedule_window_now(const struct schedule_view *v, struct schedule_span *ret);

/* On a day that counts and outside the window: has the window still to open (today)? */
bool schedule_is_before_window(const struct schedule_view *v);

/* The last end at or before now that is later than `after`; INT64_MIN as `after`: however old. */
bool schedule_last_end(const struct schedule_view *v, int64_t after, int64_t *ret);

/* The first boundary of a piece after now, within SCHEDULE_AHEAD_DAYS. */
bool schedule_next_boundary(const struct schedule_view *v, int64_t *ret);

#endif
