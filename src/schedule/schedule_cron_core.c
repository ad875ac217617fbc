/* Cron lines as the Go library evaluates them: see schedule_cron_core.h.
 *
 * The search goes from the largest unit to the smallest: month, day, hour, minute, second. A unit that
 * does not match is advanced until it does. The first advance of a search truncates the time to the
 * start of that unit; whenever a unit wraps around, the search starts over with the largest one:
 *
 *     month -> day -> hour -> minute -> second -> found
 *       ^________|_______|________|_________|    on wrap-around
 *
 * All of this uses the zone's wall clock, converted the way Go's time.Date does, because its choices in
 * gaps and repeated hours are what users of KEDA observe. The conversions must not be "fixed". */
#include "schedule_cron_core.h"

#include "../base/civil.h"

/* ---- parsing */

struct field_range {
    const char *what;
    int least, most;
    const char *const *names; /* names of the values from `least` on; NULL: none */
};

static const char *const month_names[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul",
                                           "aug", "sep", "oct", "nov", "dec", NULL };
static const char *const weekday_names[] = {
    "sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL
};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELD_N };

static const struct field_range ranges[FIELD_N] = {
    [MINUTE] = { "minute", 0, 59 },
    [HOUR] = { "hour", 0, 23 },
    [DAY] = { "day of the month", 1, 31 },
    [MONTH] = { "month", 1, 12, month_names },
    [WEEKDAY] = { "weekday", 0, 6, weekday_names },
};

static bool value_of(const struct field_range *range, str text, int *ret)
{
    int64_t number;
    for (int i = 0; range->names && range->names[i]; i++)
        if (str_eq_nocase(text, str_c(range->names[i]))) {
            *ret = range->least + i;
            return true;
        }
    if (!text.n || text.p[0] < '0' || text.p[0] > '9' || str_to_i64(text, &number) < 0 ||
        number < range->least || number > range->most)
        return false;
    *ret = (int)number;
    return true;
}

static bool is_star(str text)
{
    return str_eq(text, S("*")) || str_eq(text, S("?"));
}

/* Adds "*", "5" or "1-5", optionally with a step ("/2"), to the set; "5/2" runs to the end of the range. */
static bool add_range(const struct field_range *range, str part, uint64_t *set, bool *star)
{
    size_t slash = str_find_char(part, '/');
    str span = str_upto(part, slash);
    int64_t step = 1;
    int from = range->least, to = range->most;
    bool steps = slash != SIZE_MAX;
    if (steps && (str_to_i64(str_from(part, slash + 1), &step) < 0 || step < 1))
        return false;
    if (is_star(span)) {
        *star |= step == 1;
    } else {
        size_t dash = str_find_char(span, '-');
        if (!value_of(range, str_upto(span, dash), &from))
            return false;
        if (dash != SIZE_MAX ? !value_of(range, str_from(span, dash + 1), &to) : !steps)
            to = dash != SIZE_MAX ? -1 : from;
    }
    for (int64_t value = from; value <= to; value += step)
        *set |= UINT64_C(1) << value;
    return from <= to;
}

static int read_field(int field, str text, uint64_t *set, bool *star, err_t *e)
{
    const struct field_range *range = &ranges[field];
    str part, rest = text;
    while (str_cut(&rest, ',', &part))
        if (!add_range(range, part, set, star))
            return err_set(e, EINVAL,
                           "the %s \"" STR_FMT
                           "\" is not *, a value from %d to %d, a range such as 1-5 or a "
                           "step such as */2",
                           range->what, STR_ARG(part), range->least, range->most);
    return *set ? 0 : err_set(e, EINVAL, "the %s is empty", range->what);
}

/* "@daily" and the like as five fields; any other text unchanged. */
static str expand_macro(str text)
{
    static const struct {
        const char *word, *line;
    } words[] = {
        { "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
        { "@weekly", "0 0 * * 0" }, { "@daily", "0 0 * * *" },    { "@midnight", "0 0 * * *" },
        { "@hourly", "0 * * * *" },
    };
    for (size_t i = 0; i < countof(words); i++)
        if (str_eqc(text, words[i].word))
            return str_c(words[i].line);
    return text;
}

/* Splits the line at blanks; every field is checked before any result is written. */
int schedule_cron_parse(str text, struct schedule_cron *ret, err_t *e)
{
    uint64_t sets[FIELD_N] = { 0 };
    bool stars[FIELD_N] = { false };
    str word, rest = str_trim(expand_macro(str_trim(text)));
    int n = 0;
    while (str_cut(&rest, ' ', &word)) {
        if (!word.n)
            continue;
        if (n < FIELD_N) {
            int r = read_field(n, word, &sets[n], &stars[n], e);
            if (r < 0)
                return err_wrap(e, "cron line \"" STR_FMT "\"", STR_ARG(text));
        }
        n++;
    }
    if (n != FIELD_N)
        return err_set(e, EINVAL,
                       "cron line \"" STR_FMT "\" has %d fields, but must have 5: minute, hour, "
                       "day, month, weekday",
                       STR_ARG(text), n);
    *ret = (struct schedule_cron){ sets[MINUTE],  sets[HOUR], sets[DAY],     sets[MONTH],
                                   sets[WEEKDAY], stars[DAY], stars[WEEKDAY] };
    return 0;
}

/* ---- the wall clock as Go has it */

struct wall {
    struct civil_date date;
    int64_t day; /* since 1970 */
    int hour, minute, second;
};

static struct wall wall_of(const struct tz *zone, int64_t at)
{
    int64_t local = at + tz_offset_at(zone, at), day = civil_day_of(local);
    int rest = (int)(local - day * CIVIL_DAY_S);
    return (struct wall){ civil_from_days(day), day, rest / 3600, rest / 60 % 60, rest % 60 };
}

/* Go's time.Date: takes the offset at the local time read as UTC; if that offset does not apply at the
 * result, uses the one that does. A time in a gap moves by the gap; of a repeated hour, one is chosen. */
static int64_t instant_of(const struct tz *zone, int64_t local)
{
    struct tz_span span = tz_span_at(zone, local);
    int64_t at = local - span.offset;
    return at >= span.from && at < span.until ? at : local - tz_offset_at(zone, at);
}

static int64_t clock_of(const struct wall *w)
{
    return w->hour * 3600 + w->minute * 60 + w->second;
}

/* The first advance of a search truncates to the start of the unit; after that, times are already truncated. */
static struct wall truncate_once(const struct tz *zone, const struct wall *w, int64_t local,
                                 bool moved)
{
    return moved ? *w : wall_of(zone, instant_of(zone, local));
}

static int64_t next_month(const struct tz *zone, const struct wall *now, bool moved)
{
    int64_t first = civil_to_days((struct civil_date){ now->date.year, now->date.month, 1 });
    struct wall w = truncate_once(zone, now, first * CIVIL_DAY_S, moved);
    struct civil_date next = { w.date.year + (w.date.month == 12), w.date.month % 12 + 1, 1 };
    int64_t day = civil_to_days(next) + w.date.day - 1;
    return instant_of(zone, day * CIVIL_DAY_S + clock_of(&w));
}

/* Where midnight does not exist or falls on the previous day, the library moves to the hour that it
 * considers midnight. That is how some zones lose a day. */
static int64_t next_day(const struct tz *zone, const struct wall *now, bool moved)
{
    struct wall w = truncate_once(zone, now, now->day * CIVIL_DAY_S, moved);
    int64_t at = instant_of(zone, (w.day + 1) * CIVIL_DAY_S + clock_of(&w));
    int hour = wall_of(zone, at).hour;
    return at + (hour > 12 ? 24 - hour : -hour) * 3600;
}

/* ---- the search */

static bool has_bit(uint64_t set, int value)
{
    return set >> value & 1;
}

static bool day_matches(const struct schedule_cron *c, const struct wall *w)
{
    bool day = has_bit(c->days, w->date.day), weekday = has_bit(c->weekdays, civil_weekday(w->day));
    return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

static bool unit_matches(const struct schedule_cron *c, int unit, const struct wall *w)
{
    switch (unit) {
    case MONTH:
        return has_bit(c->months, w->date.month);
    case DAY:
        return day_matches(c, w);
    case HOUR:
        return has_bit(c->hours, w->hour);
    case MINUTE:
        return has_bit(c->minutes, w->minute);
    default:
        return w->second == 0;
    }
}

struct search {
    const struct tz *zone;
    int64_t at;
    bool moved;
};

/* Advances by one unit; true if it wrapped around, so that the larger units must be checked again. */
static bool advance_unit(struct search *s, int unit, const struct wall *w)
{
    bool moved = s->moved;
    s->moved = true;
    switch (unit) {
    case MONTH:
        s->at = next_month(s->zone, w, moved);
        return wall_of(s->zone, s->at).date.month == 1;
    case DAY:
        s->at = next_day(s->zone, w, moved);
        return wall_of(s->zone, s->at).date.day == 1;
    case HOUR:
        if (!moved)
            s->at = instant_of(s->zone, w->day * CIVIL_DAY_S + w->hour * 3600);
        s->at += 3600;
        return wall_of(s->zone, s->at).hour == 0;
    case MINUTE:
        if (!moved)
            s->at -= ((s->at % 60) + 60) % 60;
        s->at += 60;
        return wall_of(s->zone, s->at).minute == 0;
    default:
        s->at++;
        return wall_of(s->zone, s->at).second == 0;
    }
}

/* Matches units from large to small; a mismatch advances that unit. */
bool schedule_cron_next(const struct schedule_cron *c, const struct tz *zone, int64_t now,
                        int64_t *ret_next)
{
    static const int units[] = { MONTH, DAY, HOUR, MINUTE, FIELD_N /* the second */ };
    enum { YEARS = 5, STEPS_MAX = 20000 }; /* a day that does not exist would loop forever */
    struct search s = { zone, now + 1, false };
    int64_t last_year = wall_of(zone, s.at).date.year + YEARS;
    size_t level = 0;
    for (int step = 0; step < STEPS_MAX && level < countof(units); step++) {
        struct wall w = wall_of(zone, s.at);
        if (!level && w.date.year > last_year)
            return false;
        if (unit_matches(c, units[level], &w))
            level++;
        else if (advance_unit(&s, units[level], &w))
            level = 0;
    }
    if (level < countof(units))
        return false;
    *ret_next = s.at;
    return true;
}

struct schedule_cron_now schedule_cron_at(const struct schedule_cron *start,
                                          const struct schedule_cron *end, const struct tz *zone,
                                          int64_t now)
{
    struct schedule_cron_now n = { INT64_MAX, INT64_MAX, false };
    schedule_cron_next(start, zone, now, &n.next_start);
    bool ends = schedule_cron_next(end, zone, now, &n.next_end);
    n.active = ends && n.next_end <= n.next_start;
    return n;
}

/* ---- on the wall clock */

bool schedule_cron_has_day(const struct schedule_cron *c, int64_t day)
{
    struct wall w = { .date = civil_from_days(day), .day = day };
    return has_bit(c->months, w.date.month) && day_matches(c, &w);
}

bool schedule_cron_has_times(const struct schedule_cron *c)
{
    static const int lengths[] = { 0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    if (!c->any_day && !c->any_weekday)
        return true; /* either may match, and every month has all weekdays */
    for (int month = 1; month <= 12; month++)
        for (int day = 1; has_bit(c->months, month) && day <= lengths[month]; day++)
            if (has_bit(c->days, day))
                return true;
    return false;
}

bool schedule_cron_is_daily(const struct schedule_cron *c)
{
    return c->months == 0x1ffe && c->days == 0xfffffffe && c->weekdays == 0x7f;
}

int schedule_cron_minute_before(const struct schedule_cron *c, int minute)
{
    for (int hour = minute / 60, most = minute % 60; hour >= 0; hour--, most = 59)
        for (int m = most; has_bit(c->hours, hour) && m >= 0; m--)
            if (has_bit(c->minutes, m))
                return hour * 60 + m;
    return -1;
}

int schedule_cron_minute_after(const struct schedule_cron *c, int minute)
{
    for (int hour = minute / 60, least = minute % 60; hour < 24; hour++, least = 0)
        for (int m = least; has_bit(c->hours, hour) && m < 60; m++)
            if (has_bit(c->minutes, m))
                return hour * 60 + m;
    return -1;
}
