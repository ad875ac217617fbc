/* Windows of cron lines: see schedule_line_core.h.
 *
 * A line with a duration is evaluated on the wall clock, with the rules of schedule_windows_core: a fire is a wall
 * time w, and its piece is [start of w, end of w + duration). Both conversions grow with w, which makes the search
 * simple: the last fire that has begun also ends last.
 *
 *     fires      |--->      |--->  |--->
 *                              |--->   |--->         pieces that touch or overlap are one window
 *     windows    [===)      [===========)
 *
 * A window can be endless ("0 * * * *" for 1h). Where every day is selected, that is decided in closed form; where
 * days are excluded, the walk goes day by day, because fires within a day need not be looked at if no gap between
 * them is longer than the duration.
 *
 * Two lines follow KEDA: open if the next end comes before, or with, the next start. From that follows what is needed
 * here. Just before a time of the first line that is not one of the second, the window is closed; so it is open since
 * the last such time. While it is closed, the last time of the second line is when it closed. */
#include "schedule_line_core.h"

#include "../base/civil.h"

enum {
    MINUTE_S = 60,
    DAY_MINUTES = 1440,
    BACK_MINUTES = 180,   /* no zone sets its clock back further within a day */
    FIRE_DAYS_MAX = 3000, /* February 29 may be eight years away */
    EPOCH_DAY = 0,        /* walks end in 1970 and 2100: a window that long is endless */
    LAST_DAY = 47482,
};

/* ---- fires of a line with a duration */

struct fire {
    int64_t day;
    int minute; /* of the day */
};

/* On an included date, the times of the line apply whatever its own days are. */
static bool has_fires(const struct schedule_view *v, int64_t day)
{
    const struct schedule_trigger *t = v->trigger;
    return schedule_trigger_has_day(t, day) &&
           (schedule_cron_has_day(t->cron, day) || schedule_trigger_includes_day(t, day));
}

static int64_t wall_of(struct fire f)
{
    return f.day * CIVIL_DAY_S + f.minute * MINUTE_S;
}

static int64_t fire_start(const struct schedule_view *v, struct fire f)
{
    return schedule_view_start(v, f.day, f.minute * MINUTE_S);
}

static int64_t fire_end(const struct schedule_view *v, struct fire f)
{
    return schedule_view_end(v, f.day, f.minute * MINUTE_S + (int64_t)v->trigger->duration_s);
}

/* The last fire of an earlier day; false: none in reach. */
static bool last_fire_before_day(const struct schedule_view *v, int64_t day, struct fire *ret)
{
    const struct schedule_trigger *t = v->trigger;
    int64_t stop = MAX(day - FIRE_DAYS_MAX, schedule_trigger_first_day(t));
    for (int64_t d = MIN(day - 1, schedule_trigger_last_day(t)); d >= stop; d--) {
        if (!has_fires(v, d))
            continue;
        *ret = (struct fire){ d, schedule_cron_minute_before(t->cron, DAY_MINUTES - 1) };
        return true;
    }
    return false;
}

/* The first fire of a later day; false: none in reach. */
static bool first_fire_after_day(const struct schedule_view *v, int64_t day, struct fire *ret)
{
    const struct schedule_trigger *t = v->trigger;
    int64_t stop = MIN(day + FIRE_DAYS_MAX, schedule_trigger_last_day(t));
    for (int64_t d = MAX(day + 1, schedule_trigger_first_day(t)); d <= stop; d++) {
        if (!has_fires(v, d))
            continue;
        *ret = (struct fire){ d, schedule_cron_minute_after(t->cron, 0) };
        return true;
    }
    return false;
}

static bool fire_before(const struct schedule_view *v, struct fire f, struct fire *ret)
{
    int minute = f.minute ? schedule_cron_minute_before(v->trigger->cron, f.minute - 1) : -1;
    if (minute < 0)
        return last_fire_before_day(v, f.day, ret);
    *ret = (struct fire){ f.day, minute };
    return true;
}

static bool fire_after(const struct schedule_view *v, struct fire f, struct fire *ret)
{
    int minute = schedule_cron_minute_after(v->trigger->cron, f.minute + 1);
    if (minute < 0)
        return first_fire_after_day(v, f.day, ret);
    *ret = (struct fire){ f.day, minute };
    return true;
}

/* The last fire that has begun. A clock that was set back shows readings twice, so the search begins a little later
 * than the current reading. */
static bool last_fire(const struct schedule_view *v, struct fire *ret)
{
    int64_t reading = v->now + v->steady.offset - v->today * CIVIL_DAY_S;
    int minute = (int)MIN(reading / MINUTE_S + BACK_MINUTES, (int64_t)DAY_MINUTES);
    struct fire f = { v->today, minute };
    if (!has_fires(v, v->today) || minute == DAY_MINUTES)
        f = (struct fire){ v->today + 2, 0 }; /* from the end of tomorrow on */
    while (fire_before(v, f, &f))
        if (fire_start(v, f) <= v->now) {
            *ret = f;
            return true;
        }
    return false;
}

/* ---- the window of a fire */

static bool touches_next(const struct schedule_view *v, struct fire earlier, struct fire later)
{
    return wall_of(earlier) + v->trigger->duration_s >= wall_of(later) ||
           fire_end(v, earlier) >= fire_start(v, later);
}

/* Every day is selected, and no pause between fires is longer than the duration. */
static bool is_endless(const struct schedule_trigger *t)
{
    int first = schedule_cron_minute_after(t->cron, 0),
        last = schedule_cron_minute_before(t->cron, DAY_MINUTES - 1);
    int64_t overnight = (int64_t)(first + DAY_MINUTES - last) * MINUTE_S;
    return schedule_cron_is_daily(t->cron) && schedule_trigger_is_daily(t) &&
           t->line_gap_s <= t->duration_s && overnight <= t->duration_s;
}

static int64_t walk_back(const struct schedule_view *v, struct fire f)
{
    const struct schedule_trigger *t = v->trigger;
    for (struct fire p; fire_before(v, f, &p) && touches_next(v, p, f);) {
        f = p;
        if (t->line_gap_s <= t->duration_s)
            f.minute = schedule_cron_minute_after(t->cron, 0);
        if (f.day < EPOCH_DAY)
            return INT64_MIN;
    }
    return fire_start(v, f);
}

static int64_t walk_ahead(const struct schedule_view *v, struct fire f)
{
    const struct schedule_trigger *t = v->trigger;
    for (struct fire n; fire_after(v, f, &n) && touches_next(v, f, n);) {
        f = n;
        if (t->line_gap_s <= t->duration_s)
            f.minute = schedule_cron_minute_before(t->cron, DAY_MINUTES - 1);
        if (f.day > LAST_DAY)
            return INT64_MAX;
    }
    return fire_end(v, f);
}

/* ---- two lines */

/* The last time of a line at or before now. Only the search for the next one knows the rules of the library, so it is
 * repeated from ever earlier instants. */
static bool last_time(const struct schedule_cron *cron, const struct tz *zone, int64_t now,
                      int64_t *ret)
{
    enum { FIRST_SPAN_S = 3600, GROWTH = 8, YEARS = 6 };
    for (int64_t span = FIRST_SPAN_S; span < YEARS * 366 * CIVIL_DAY_S; span *= GROWTH) {
        int64_t at = now - span, next;
        bool found = false;
        while (schedule_cron_next(cron, zone, at, &next) && next <= now) {
            *ret = at = next;
            found = true;
        }
        if (found)
            return true;
    }
    return false;
}

static bool is_time_of(const struct schedule_cron *cron, const struct tz *zone, int64_t at)
{
    int64_t next;
    return schedule_cron_next(cron, zone, at - 1, &next) && next == at;
}

static bool pair_is_open(const struct schedule_trigger *t, int64_t at)
{
    return schedule_cron_at(t->cron, t->cron_end, t->zone, at).active;
}

static bool pair_window_now(const struct schedule_view *v, struct schedule_span *ret)
{
    enum { TIMES_MAX = 366 }; /* in a row that leave it open: then it counts as endless */
    const struct schedule_trigger *t = v->trigger;
    struct schedule_cron_now now = schedule_cron_at(t->cron, t->cron_end, t->zone, v->now);
    if (!now.active)
        return false;
    int64_t from = v->now;
    bool found = last_time(t->cron, t->zone, from, &from);
    for (int starts = 0; found && is_time_of(t->cron_end, t->zone, from); starts++)
        found = starts < TIMES_MAX && last_time(t->cron, t->zone, from - 1, &from);
    int64_t to = now.next_end;
    int ends = 0;
    for (; ends < TIMES_MAX && pair_is_open(t, to); ends++)
        to = schedule_cron_at(t->cron, t->cron_end, t->zone, to).next_end;
    *ret = (struct schedule_span){ found ? from : INT64_MIN, ends < TIMES_MAX ? to : INT64_MAX };
    return true;
}

static int64_t local_day(const struct schedule_view *v, int64_t at)
{
    return civil_day_of(at + tz_offset_at(v->trigger->zone, at));
}

/* Does the next start, or the last end, fall on today? */
static bool pair_opens_today(const struct schedule_view *v)
{
    int64_t next;
    return schedule_cron_next(v->trigger->cron, v->trigger->zone, v->now, &next) &&
           local_day(v, next) == v->today;
}

static bool pair_closed_today(const struct schedule_view *v)
{
    int64_t last;
    return last_time(v->trigger->cron_end, v->trigger->zone, v->now, &last) &&
           local_day(v, last) == v->today;
}

/* ---- both */

bool schedule_line_window_now(const struct schedule_view *v, struct schedule_span *ret)
{
    struct fire f;
    if (v->trigger->cron_end)
        return pair_window_now(v, ret);
    if (!last_fire(v, &f) || fire_end(v, f) <= v->now)
        return false;
    if (is_endless(v->trigger))
        *ret = (struct schedule_span){ INT64_MIN, INT64_MAX };
    else
        *ret = (struct schedule_span){ walk_back(v, f), walk_ahead(v, f) };
    return true;
}

bool schedule_line_is_before_window(const struct schedule_view *v)
{
    if (v->trigger->cron_end)
        return pair_opens_today(v) && !pair_closed_today(v);
    return v->now < fire_start(v, (struct fire){ v->today,
                                                 schedule_cron_minute_after(v->trigger->cron, 0) });
}

bool schedule_line_has_day(const struct schedule_view *v)
{
    return v->trigger->cron_end ? pair_opens_today(v) || pair_closed_today(v)
                                : has_fires(v, v->today);
}

bool schedule_line_last_end(const struct schedule_view *v, int64_t after, int64_t *ret)
{
    int64_t end;
    struct schedule_span window;
    struct schedule_view at = *v;
    if (schedule_line_window_now(v, &window)) { /* the one before the open window */
        if (window.from == INT64_MIN)
            return false;
        at = schedule_view(v->trigger, window.from - 1);
    }
    if (v->trigger->cron_end) {
        if (!last_time(v->trigger->cron_end, v->trigger->zone, at.now, &end))
            return false;
    } else {
        struct fire f;
        if (!last_fire(&at, &f))
            return false;
        end = fire_end(&at, f);
    }
    if (end <= after)
        return false;
    *ret = end;
    return true;
}

bool schedule_line_next_boundary(const struct schedule_view *v, int64_t *ret)
{
    const struct schedule_trigger *t = v->trigger;
    struct schedule_span window;
    struct fire f;
    if (schedule_line_window_now(v, &window)) {
        *ret = window.to;
        return window.to != INT64_MAX;
    }
    if (t->cron_end)
        return schedule_cron_next(t->cron, t->zone, v->now, ret);
    f = (struct fire){ v->today - 1, 0 };
    while (fire_after(v, f, &f) && f.day <= v->today + SCHEDULE_AHEAD_DAYS) {
        *ret = fire_start(v, f);
        if (*ret > v->now)
            return true;
    }
    return false;
}
