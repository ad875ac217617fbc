/* POSIX TZ rules: see tz_rule.h.
 *
 * An edge is an instant at which the rule changes the offset: two per year. Spans are computed from
 * the edges of three years around the instant, so that edges outside of their year (hours outside
 * 0..24, southern summers, negative daylight saving time as in Dublin) need no special case:
 *
 *          year - 1         |          year          |         year + 1
 *     ----[ start .. end ]--+----[ start .. end ]----+----[ start .. end ]---->
 *                                     ^ utc
 *
 * Edges that do not change the offset are dropped. Daylight time all year is written as an end and
 * a start at the same instant: then at most the two outermost edges remain, and the rule is stored
 * as standard time. */
#include "tz_rule.h"

#include "civil.h"

#include <ctype.h>

enum { YEARS = 3, HOUR_S = 3600, RULE_HOURS_MAX = 167 };

struct edge {
    int64_t at;
    int32_t offset; /* from `at` on */
};

/* ---- parse */

static bool take_char(str *rest, char c)
{
    if (!rest->n || rest->p[0] != c)
        return false;
    *rest = str_from(*rest, 1);
    return true;
}

/* An unsigned number of at most three digits; false if it is missing or larger than `most`. */
static bool take_number(str *rest, int most, int *ret)
{
    int value = 0, digits = 0;
    for (; rest->n && isdigit((unsigned char)rest->p[0]) && digits < 3; digits++) {
        value = value * 10 + (rest->p[0] - '0');
        *rest = str_from(*rest, 1);
    }
    *ret = value;
    return digits > 0 && value <= most;
}

/* "EST" or "<+0330>"; the name itself is not kept. */
static bool take_name(str *rest)
{
    size_t n = 0;
    bool quoted = take_char(rest, '<');
    while (n < rest->n && (isalpha((unsigned char)rest->p[n]) ||
                           (quoted && (isdigit((unsigned char)rest->p[n]) || rest->p[n] == '+' ||
                                       rest->p[n] == '-'))))
        n++;
    *rest = str_from(*rest, n);
    return n >= 3 && (!quoted || take_char(rest, '>'));
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(str *rest, int hours_max, int32_t *ret)
{
    bool negative = take_char(rest, '-');
    if (!negative)
        take_char(rest, '+');
    int hours, minutes = 0, seconds = 0;
    if (!take_number(rest, hours_max, &hours) ||
        (take_char(rest, ':') && (!take_number(rest, 59, &minutes) ||
                                  (take_char(rest, ':') && !take_number(rest, 59, &seconds)))))
        return false;
    int32_t value = hours * HOUR_S + minutes * 60 + seconds;
    *ret = negative ? -value : value;
    return true;
}

/* Mm.w.d, Jn or n, then optionally /time; the time defaults to 02:00. */
static bool take_date(str *rest, struct tz_date *ret)
{
    struct tz_date d = { .time = 2 * HOUR_S };
    if (take_char(rest, 'M')) {
        d.kind = TZ_MONTH_WEEK_DAY;
        if (!take_number(rest, 12, &d.month) || !take_char(rest, '.') ||
            !take_number(rest, 5, &d.week) || !take_char(rest, '.') ||
            !take_number(rest, 6, &d.day) || d.month < 1 || d.week < 1)
            return false;
    } else if (take_char(rest, 'J')) {
        d.kind = TZ_JULIAN;
        if (!take_number(rest, 365, &d.day) || d.day < 1)
            return false;
    } else {
        d.kind = TZ_DAY_OF_YEAR;
        if (!take_number(rest, 365, &d.day))
            return false;
    }
    if (take_char(rest, '/') && !take_time(rest, RULE_HOURS_MAX, &d.time))
        return false;
    *ret = d;
    return true;
}

/* ---- edges */

/* The w-th weekday of a month, as days since 1970. */
static int64_t month_week_to_days(const struct tz_date *d, int64_t year)
{
    int64_t first = civil_to_days((struct civil_date){ year, d->month, 1 });
    int day = (d->day - civil_weekday(first) + 7) % 7 + (d->week - 1) * 7;
    while (day >= civil_month_days(year, d->month)) /* week 5 is the last one */
        day -= 7;
    return first + day;
}

/* The date of a rule in a given year, in local seconds. */
static int64_t date_in_year(const struct tz_date *d, int64_t year)
{
    int64_t day;
    if (d->kind == TZ_MONTH_WEEK_DAY) {
        day = month_week_to_days(d, year);
    } else {
        day = civil_to_days((struct civil_date){ year, 1, 1 }) + d->day;
        if (d->kind == TZ_JULIAN) /* counts from 1 and never counts February 29 */
            day += (civil_is_leap(year) && d->day >= 60) - 1;
    }
    return day * CIVIL_DAY_S + d->time;
}

/* By time; at the same instant the end of daylight time comes first, so that the start wins. */
static void sort_edges(struct edge *edges, size_t n, const struct tz_rule *rule)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i;
             j > 0 && (edges[j - 1].at > edges[j].at ||
                       (edges[j - 1].at == edges[j].at && edges[j - 1].offset == rule->daylight));
             j--) {
            struct edge moved = edges[j];
            edges[j] = edges[j - 1];
            edges[j - 1] = moved;
        }
}

/* The edges of the years around `year`, sorted, without those that do not change the offset.
 * Returns how many. */
static size_t edges_around(const struct tz_rule *rule, int64_t year, struct edge edges[YEARS * 2])
{
    size_t n = 0, kept = 0;
    for (int64_t y = year - 1; y <= year + 1; y++) {
        edges[n++] =
            (struct edge){ date_in_year(&rule->start, y) - rule->standard, rule->daylight };
        edges[n++] = (struct edge){ date_in_year(&rule->end, y) - rule->daylight, rule->standard };
    }
    sort_edges(edges, n, rule);
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && edges[i + 1].at == edges[i].at)
            continue;
        if (kept == 0 || edges[kept - 1].offset != edges[i].offset)
            edges[kept++] = edges[i];
    }
    return kept;
}

/* std offset [ dst [offset] [ "," start "," end ] ]. POSIX offsets are west of Greenwich, ours
 * east. */
int tz_rule_parse(str text, struct tz_rule *ret)
{
    struct tz_rule rule = { 0 };
    int32_t west;
    str rest = text;
    if (!take_name(&rest) || !take_time(&rest, 24, &west))
        return -EINVAL;
    rule.standard = -west;
    if (rest.n == 0) {
        *ret = rule;
        return 0;
    }
    rule.has_dst = true;
    rule.daylight = rule.standard + HOUR_S;
    if (!take_name(&rest))
        return -EINVAL;
    if (rest.n && rest.p[0] != ',') {
        if (!take_time(&rest, 24, &west))
            return -EINVAL;
        rule.daylight = -west;
    }
    if (rest.n == 0)
        rest = S(",M3.2.0,M11.1.0"); /* the customary default: the dates of the United States */
    if (!take_char(&rest, ',') || !take_date(&rest, &rule.start) || !take_char(&rest, ',') ||
        !take_date(&rest, &rule.end) || rest.n)
        return -EINVAL;
    struct edge edges[YEARS * 2];
    if (edges_around(&rule, 2001, edges) <= 2) {
        rule.standard = edges[0].offset;
        rule.has_dst = false;
    }
    *ret = rule;
    return 0;
}

/* The last edge at or before `utc` starts the span and the next one ends it. */
struct tz_span tz_rule_span(const struct tz_rule *rule, int64_t utc)
{
    struct tz_span span = { INT64_MIN, INT64_MAX, rule->standard };
    if (!rule->has_dst)
        return span;
    struct edge edges[YEARS * 2];
    int64_t year = civil_from_days(civil_day_of(utc + rule->standard)).year;
    size_t n = edges_around(rule, year, edges), next = 0;
    while (next < n && edges[next].at <= utc)
        next++;
    if (next > 0) {
        span.from = edges[next - 1].at;
        span.offset = edges[next - 1].offset;
    } else {
        span.offset = n && edges[0].offset == rule->standard ? rule->daylight : rule->standard;
    }
    if (next < n)
        span.until = edges[next].at;
    return span;
}
