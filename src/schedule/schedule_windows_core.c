/* Wall-clock windows as instants: see schedule_windows_core.h.
 *
 * The problem. A trigger is written in local time ("weekdays 22:00 to 06:00, Europe/Berlin, from
 * 2026-11-01, but not on 2026-12-25"), and everything else needs instants: is it open now, since when, when
 * does the next boundary come. Local time is not a line. A zone skips readings (spring), shows readings
 * twice (autumn), moves by a whole day (Samoa skipped 2011-12-30), and lets two neighboring windows touch at
 * midnight, where they are one window and not two.
 *
 * The invariant. A window is one interval [from, to). It covers every instant whose reading lies between
 * startTime and endTime on a selected day, so that daylight saving neither splits it nor opens it twice:
 *
 *     reading      01:30   02:00    gap     03:00   03:30        start 02:30 -> the instant of the jump
 *     instant  ------|-------|===============|-------|------
 *
 *     reading      02:00   03:00|02:00   03:00   04:00          start 02:30 -> its first occurrence
 *     instant  ------|--------|----|-------|-------|------      end   02:30 -> its last occurrence
 *
 * How data moves. Each local day yields zero, one or two pieces; touching pieces form the window:
 *
 *     day_pieces(day)       start <= end          one piece,  [start, end) of that day
 *                           overnight, Start      one piece,  [start, end of the next day)
 *                           overnight, Calendar   two pieces, [00:00, end) and [start, 24:00)
 *
 *     find_open_piece  ->  schedule_window_near      extends it over touching pieces in both directions
 *                          schedule_window_now       the same without a limit, in closed form
 *     day_last_end     ->  schedule_last_end         walks back, day by day
 *     day_next_boundary -> schedule_next_boundary    walks forward, day by day
 *
 * Order of boundaries. Starts and ends grow with the day, with one exception: where an hour repeats
 * around midnight, the end of one day (last occurrence) may be later than the start of the next day (first
 * occurrence). A search that finds its answer on one day therefore looks at one neighboring day as well.
 * Days that are further away matter only where a zone jumps a day; find_open_piece looks at two.
 *
 * Cost. A day that is not selected is skipped by a bit test. Within a span of constant offset a reading
 * becomes an instant by one subtraction (is_plain); only readings within STEADY_MARGIN_S of a transition
 * search the zone's table. A trigger costs some tens of nanoseconds, so a pass evaluates all of them
 * instead of keeping a timer per boundary; bench/schedule_bench.c holds 10,000 schedules of 10 triggers
 * to 50 ms.
 *
 * Why not compare the current reading with startTime and endTime: in a repeated hour the same reading is inside and
 * outside of the window. Why not precompute a year of transitions: they would be invalid after every edit of the
 * spec and every update of the zone.
 *
 * Nothing here allocates; a view borrows its trigger. */
#include "schedule_windows_core.h"

#include "../base/civil.h"
#include "schedule_line_core.h"

enum {
    STEADY_MARGIN_S = 30 * 3600, /* no zone has ever jumped further than 24 hours */
    CALENDAR_DAYS = 1500, /* how far the end of a run of days is looked for, for display only */
    WEEK_DAYS = 7,
};

struct schedule_view schedule_view(const struct schedule_trigger *t, int64_t now)
{
    struct tz_span steady = tz_span_at(t->zone, now);
    return (struct schedule_view){ t, now, civil_day_of(now + steady.offset), steady };
}

static bool has_date(const int32_t *days, size_t n, int64_t day)
{
    for (size_t i = 0; i < n && days[i] <= day; i++)
        if (days[i] == day)
            return true;
    return false;
}

static bool any_has_day(const struct schedule_calendar *const *calendars, size_t n,
                        const struct tz *zone, int64_t day)
{
    for (size_t i = 0; i < n; i++)
        if (schedule_calendar_has_day(calendars[i], zone, day))
            return true;
    return false;
}

bool schedule_trigger_includes_day(const struct schedule_trigger *t, int64_t day)
{
    return has_date(t->included_days, t->included_n, day) ||
           any_has_day(t->included_calendars, t->included_calendars_n, t->zone, day);
}

bool schedule_trigger_has_day(const struct schedule_trigger *t, int64_t day)
{
    bool selected = (!t->weekdays || t->weekdays >> civil_weekday(day) & 1) &&
                    day >= t->first_day && day <= t->last_day;
    if (!selected)
        selected = schedule_trigger_includes_day(t, day);
    return selected && !has_date(t->excluded_days, t->excluded_n, day) &&
           !any_has_day(t->excluded_calendars, t->excluded_calendars_n, t->zone, day);
}

bool schedule_trigger_is_daily(const struct schedule_trigger *t)
{
    return (!t->weekdays || t->weekdays == 0x7f) && t->first_day == INT32_MIN &&
           t->last_day == INT32_MAX && !t->excluded_n && !t->excluded_calendars_n;
}

bool schedule_view_has_window(const struct schedule_view *v)
{
    return v->trigger->cron ? schedule_line_has_day(v)
                            : schedule_trigger_has_day(v->trigger, v->today);
}

/* ---- wall time to instant */

/* True if the offset is constant around the result, so that `*ret` is the only instant of this reading. */
static bool is_plain(const struct schedule_view *v, int64_t wall, int64_t *ret)
{
    int64_t instant = wall - v->steady.offset;
    *ret = instant;
    return instant - STEADY_MARGIN_S >= v->steady.from &&
           instant + STEADY_MARGIN_S < v->steady.until;
}

int64_t schedule_wall_start(const struct tz *zone, int64_t wall)
{
    return tz_resolve(zone, wall).first;
}

/* If the clock is set back to exactly this reading, the end is its first occurrence: after the second
 * one, no reading is before it. */
int64_t schedule_wall_end(const struct tz *zone, int64_t wall)
{
    struct tz_local at = tz_resolve(zone, wall);
    return at.kind == TZ_OVERLAP && at.last == at.transition ? at.first : at.last;
}

bool schedule_date_exists(const struct tz *zone, int64_t day)
{
    return schedule_wall_start(zone, day * CIVIL_DAY_S) <
           schedule_wall_end(zone, (day + 1) * CIVIL_DAY_S);
}

int64_t schedule_view_start(const struct schedule_view *v, int64_t day, int64_t second)
{
    int64_t wall = day * CIVIL_DAY_S + second, instant;
    return is_plain(v, wall, &instant) ? instant : schedule_wall_start(v->trigger->zone, wall);
}

int64_t schedule_view_end(const struct schedule_view *v, int64_t day, int64_t second)
{
    int64_t wall = day * CIVIL_DAY_S + second, instant;
    return is_plain(v, wall, &instant) ? instant : schedule_wall_end(v->trigger->zone, wall);
}

/* False for a date that the zone skips as a whole. */
static bool date_exists(const struct schedule_view *v, int64_t day)
{
    return schedule_view_start(v, day, 0) < schedule_view_end(v, day, CIVIL_DAY_S);
}

/* Appends a piece unless it is empty, which happens where the zone skips all of it. */
static int add_piece(struct schedule_span *out, int n, int64_t from, int64_t to)
{
    out[n] = (struct schedule_span){ from, to };
    return n + (from < to);
}

/* Returns the number of pieces of one local day, in order; 0 if the day is not selected. */
static int day_pieces(const struct schedule_view *v, int64_t day, struct schedule_span out[2])
{
    const struct schedule_trigger *t = v->trigger;
    if (!schedule_trigger_has_day(t, day))
        return 0;
    if (t->start_s <= t->end_s)
        return add_piece(out, 0, schedule_view_start(v, day, t->start_s),
                         schedule_view_end(v, day, t->end_s));
    if (t->overnight == SCHEDULE_START) {
        if (!date_exists(v, day))
            return 0;
        return add_piece(out, 0, schedule_view_start(v, day, t->start_s),
                         schedule_view_end(v, day + 1, t->end_s));
    }
    int n = add_piece(out, 0, schedule_view_start(v, day, 0), schedule_view_end(v, day, t->end_s));
    return add_piece(out, n, schedule_view_start(v, day, t->start_s),
                     schedule_view_end(v, day, CIVIL_DAY_S));
}

/* Days before the first and after the last one are not selected. Included dates are not in the range. */
int64_t schedule_trigger_first_day(const struct schedule_trigger *t)
{
    int64_t first = t->first_day;
    if (t->included_calendars_n)
        return INT32_MIN;
    return t->included_n ? MIN(first, (int64_t)t->included_days[0]) : first;
}

int64_t schedule_trigger_last_day(const struct schedule_trigger *t)
{
    int64_t last = t->last_day;
    if (t->included_calendars_n)
        return INT32_MAX;
    return t->included_n ? MAX(last, (int64_t)t->included_days[t->included_n - 1]) : last;
}

/* ---- the open window */

/* Finds the piece that contains now. Days are tried by likelihood. */
static bool find_open_piece(const struct schedule_view *v, struct schedule_span *ret)
{
    static const int days[] = { 0, -1, 1, -2,
                                2 }; /* two days away: only where a zone jumps a day */
    for (size_t i = 0; i < countof(days); i++) {
        struct schedule_span pieces[2];
        int n = day_pieces(v, v->today + days[i], pieces);
        for (int k = 0; k < n; k++) {
            if (pieces[k].from <= v->now && v->now < pieces[k].to) {
                *ret = pieces[k];
                return true;
            }
        }
    }
    return false;
}

/* Starts with the piece that contains now and absorbs touching pieces, first backwards, then forwards. A
 * direction ends at the first day whose pieces leave a gap. */
bool schedule_window_near(const struct schedule_view *v, struct schedule_span *ret)
{
    struct schedule_span window, pieces[2];
    if (v->trigger->cron)
        return schedule_line_window_now(v, ret);
    if (!find_open_piece(v, &window))
        return false;
    for (int64_t day = v->today + 2; day >= v->today - SCHEDULE_LOOK_DAYS; day--) {
        int n = day_pieces(v, day, pieces);
        for (int k = n - 1; k >= 0; k--)
            if (pieces[k].from <= v->now && pieces[k].to >= window.from)
                window.from = MIN(window.from, pieces[k].from);
        if (n && pieces[0].to < window.from)
            break;
    }
    for (int64_t day = v->today - 2; day <= v->today + SCHEDULE_LOOK_DAYS; day++) {
        int n = day_pieces(v, day, pieces);
        for (int k = 0; k < n; k++)
            if (pieces[k].to > v->now && pieces[k].from <= window.to)
                window.to = MAX(window.to, pieces[k].to);
        if (n && pieces[n - 1].from > window.to)
            break;
    }
    *ret = window;
    return true;
}

/* Does each selected day touch the next one? Only then can a window be longer than SCHEDULE_LOOK_DAYS: any
 * other one closes once per day. */
static bool covers_whole_days(const struct schedule_trigger *t)
{
    return !t->cron && t->start_s == 0 && t->end_s == CIVIL_DAY_S;
}

static bool has_all_weekdays(const struct schedule_trigger *t)
{
    return !t->weekdays || t->weekdays == 0x7f;
}

static bool has_calendars(const struct schedule_trigger *t)
{
    return t->excluded_calendars_n || t->included_calendars_n || t->included_n;
}

/* Before this day, only weekdays, the range and excluded dates decide: no calendar or included date is earlier. Not
 * before 1970, so that a hostile calendar costs a bounded walk. */
static int64_t first_special_day(const struct schedule_trigger *t)
{
    const struct schedule_calendar *const *lists[] = { t->excluded_calendars,
                                                       t->included_calendars };
    size_t counts[] = { t->excluded_calendars_n, t->included_calendars_n };
    int64_t edge = t->included_n ? t->included_days[0] : INT64_MAX;
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < counts[k]; i++) {
            int64_t first, last;
            schedule_calendar_range(lists[k][i], &first, &last);
            edge = MIN(edge, first);
        }
    }
    return MAX(edge, INT64_C(0));
}

/* After this day, no calendar excludes one; INT64_MAX: a rule has no end. */
static int64_t last_excluding_day(const struct schedule_trigger *t)
{
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < t->excluded_calendars_n; i++) {
        int64_t first, last;
        schedule_calendar_range(t->excluded_calendars[i], &first, &last);
        latest = MAX(latest, last);
    }
    return latest;
}

/* The first day of the run of selected days that `today` is in; INT32_MIN: there is none. The walk ends at a day that
 * does not depend on today: otherwise the answer, and with it a tie, would change while the window stays open. */
static int64_t first_day_of_run(const struct schedule_trigger *t, int64_t today)
{
    int64_t first = t->first_day;
    if (has_calendars(t)) {
        int64_t stop = first_special_day(t) - WEEK_DAYS - 1, day = today - 1;
        bool is_dense =
            has_all_weekdays(t) && !t->excluded_n && t->first_day <= stop && today <= t->last_day;
        if (is_dense) /* only a calendar can end the run */
            day = MIN(day, last_excluding_day(t));
        for (; day >= stop; day--)
            if (!schedule_trigger_has_day(t, day))
                return day + 1;
    }
    for (size_t i = 0; i < t->excluded_n && t->excluded_days[i] < today; i++)
        first = MAX(first, (int64_t)t->excluded_days[i] + 1);
    return first;
}

/* The day before the first excluded one from `today` on, or the last day of the range; INT32_MAX: there is none. */
static int64_t last_day_of_run(const struct schedule_trigger *t, int64_t today)
{
    for (int64_t day = today + 1; has_calendars(t) && day < today + CALENDAR_DAYS; day++)
        if (!schedule_trigger_has_day(t, day))
            return day - 1;
    for (size_t i = 0; i < t->excluded_n; i++)
        if (t->excluded_days[i] > today)
            return MIN((int64_t)t->excluded_days[i] - 1, (int64_t)t->last_day);
    return t->last_day;
}

/* In closed form where days touch, so that an answer never depends on how far the search went: two windows that
 * are open since different instants must compare the same way every day. */
bool schedule_window_now(const struct schedule_view *v, struct schedule_span *ret)
{
    const struct schedule_trigger *t = v->trigger;
    struct schedule_span window;
    if (!schedule_window_near(v, &window))
        return false;
    if (covers_whole_days(t) && (has_all_weekdays(t) || has_calendars(t))) {
        /* Where a zone sets its clock back at midnight, the open piece may be that of a neighboring day. */
        int64_t day = schedule_trigger_has_day(t, v->today)       ? v->today
                      : schedule_trigger_has_day(t, v->today - 1) ? v->today - 1
                                                                  : v->today + 1;
        int64_t first = first_day_of_run(t, day), last = last_day_of_run(t, day);
        window.from =
            first == INT32_MIN ? INT64_MIN : MIN(window.from, schedule_view_start(v, first, 0));
        window.to =
            last == INT32_MAX ? INT64_MAX : MAX(window.to, schedule_view_end(v, last, CIVIL_DAY_S));
    }
    *ret = window;
    return true;
}

bool schedule_is_before_window(const struct schedule_view *v)
{
    const struct schedule_trigger *t = v->trigger;
    if (t->cron)
        return schedule_line_is_before_window(v);
    if (t->start_s <= t->end_s)
        return v->now < schedule_view_start(v, v->today, t->start_s);
    return v->now < schedule_view_end(v, v->today, t->end_s);
}

/* ---- previous end and next boundary */

/* Raises `*latest` to the last end of this day that is not after now; true if it did. */
static bool day_last_end(const struct schedule_view *v, int64_t day, int64_t *latest)
{
    struct schedule_span pieces[2];
    bool found = false;
    for (int k = day_pieces(v, day, pieces) - 1; k >= 0; k--) {
        if (pieces[k].to <= v->now && pieces[k].to > *latest) {
            *latest = pieces[k].to;
            found = true;
        }
    }
    return found;
}

/* The day at which a backward walk can stop: that of `after`, less the largest jump of any zone. */
static int64_t earliest_day(const struct schedule_view *v, int64_t after)
{
    int64_t first = schedule_trigger_first_day(v->trigger);
    return after == INT64_MIN ? first : MAX(first, civil_day_of(after) - 3);
}

bool schedule_last_end(const struct schedule_view *v, int64_t after, int64_t *ret)
{
    const struct schedule_trigger *t = v->trigger;
    if (t->cron)
        return schedule_line_last_end(v, after, ret);
    int64_t latest = after, stop = earliest_day(v, after);
    for (int64_t day = MIN(v->today + 2, schedule_trigger_last_day(t)); day >= stop; day--) {
        if (!day_last_end(v, day, &latest))
            continue;
        day_last_end(v, day - 1, &latest);
        *ret = latest;
        return true;
    }
    return false;
}

/* Lowers `*soonest` to the first boundary of this day after now; true if it did. */
static bool day_next_boundary(const struct schedule_view *v, int64_t day, int64_t *soonest)
{
    struct schedule_span pieces[2];
    bool found = false;
    for (int k = day_pieces(v, day, pieces) - 1; k >= 0; k--) {
        int64_t boundary = pieces[k].from > v->now ? pieces[k].from : pieces[k].to;
        if (boundary > v->now && boundary < *soonest) {
            *soonest = boundary;
            found = true;
        }
    }
    return found;
}

bool schedule_next_boundary(const struct schedule_view *v, int64_t *ret)
{
    const struct schedule_trigger *t = v->trigger;
    if (t->cron)
        return schedule_line_next_boundary(v, ret);
    int64_t soonest = INT64_MAX;
    int64_t stop = MIN(v->today + SCHEDULE_AHEAD_DAYS, schedule_trigger_last_day(t));
    for (int64_t day = MAX(v->today - 2, schedule_trigger_first_day(t)); day <= stop; day++) {
        if (!day_next_boundary(v, day, &soonest))
            continue;
        day_next_boundary(v, day + 1, &soonest);
        *ret = soonest;
        return true;
    }
    return false;
}
