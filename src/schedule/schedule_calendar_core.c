/* Calendars as sets of days: see schedule_calendar_core.h.
 *
 * Three tables, in one block. Events that occur once are merged and sorted, so that a lookup is a binary search;
 * recurring ones are asked one by one, which takes some tens of nanoseconds each.
 *
 *     days    all-day events, as ranges of dates        the same dates in every zone
 *     spans   timed events, as ranges of instants       the day that they fall on depends on the zone
 *     rules   recurring events, and events in floating local time */
#include "schedule_calendar_core.h"

#include "schedule_ical_core.h"

struct range {
    int64_t from, to; /* [from, to) */
};

struct recurring {
    struct schedule_rule rule;
    const struct tz *zone; /* NULL: all-day, or the zone of the reader */
    const int32_t *excluded;
    int32_t second, length;
    int16_t excluded_n; /* at most 2,000 */
    bool all_day;
};

struct schedule_calendar {
    size_t bytes, events, days_n, spans_n, rules_n;
    int64_t first, last;
    struct range *days, *spans;
    struct recurring *rules;
};

/* ---- building */

static int by_start(const void *x, const void *y)
{
    int64_t a = ((const struct range *)x)->from, b = ((const struct range *)y)->from;
    return (a > b) - (a < b);
}

/* Sorts and merges ranges that touch; returns how many are left. */
static size_t merge_ranges(struct range *ranges, size_t n)
{
    size_t kept = 0;
    if (n)
        qsort(ranges, n, sizeof(*ranges), by_start);
    for (size_t i = 0; i < n; i++) {
        if (kept && ranges[i].from <= ranges[kept - 1].to)
            ranges[kept - 1].to = MAX(ranges[kept - 1].to, ranges[i].to);
        else
            ranges[kept++] = ranges[i];
    }
    return kept;
}

struct tables {
    struct range *days, *spans;
    struct recurring *rules;
    size_t days_n, spans_n, rules_n, excluded_n;
    int64_t first, last;
};

/* An event that occurs once becomes a range of days or instants; all others, and those in the local time of the
 * reader, stay rules that are evaluated per day. */
static void add_event(struct tables *t, const struct schedule_ical_event *event)
{
    bool once = event->rule.freq == SCHEDULE_ONCE;
    int64_t day = event->rule.first_day,
            days = event->all_day ? event->length : event->length / CIVIL_DAY_S + 3;
    if (once && event->excluded_n)
        return; /* its only occurrence is the excluded one, or the exclusion names none */
    t->first = MIN(t->first, day - 2);
    t->last = MAX(t->last, once                                ? day + days
                           : event->rule.last_day == INT32_MAX ? INT64_MAX
                                                               : event->rule.last_day + days);
    if (once && event->all_day) {
        t->days[t->days_n++] = (struct range){ day, day + event->length };
    } else if (once && event->zone) {
        int64_t at = tz_resolve(event->zone, day * CIVIL_DAY_S + event->second).first;
        t->spans[t->spans_n++] = (struct range){ at, at + MAX(event->length, INT64_C(1)) };
    } else {
        t->rules[t->rules_n++] = (struct recurring){ .rule = event->rule,
                                                     .zone = event->zone,
                                                     .excluded = event->excluded,
                                                     .excluded_n = (int16_t)event->excluded_n,
                                                     .second = event->second,
                                                     .length = (int32_t)event->length,
                                                     .all_day = event->all_day };
        t->excluded_n += event->excluded_n;
    }
}

/* Copies the tables into one block. */
static struct schedule_calendar *pack_tables(const struct tables *t, size_t events)
{
    size_t ranges = (t->days_n + t->spans_n) * sizeof(struct range),
           bytes = sizeof(struct schedule_calendar) + ranges +
                   t->rules_n * sizeof(struct recurring) + t->excluded_n * sizeof(int32_t);
    struct schedule_calendar *c = mem_zero(1, bytes);
    *c = (struct schedule_calendar){ bytes,      events,   t->days_n, t->spans_n,
                                     t->rules_n, t->first, t->last };
    c->rules = (struct recurring *)(void *)(c + 1);
    c->days = (struct range *)(void *)(c->rules + t->rules_n);
    c->spans = c->days + t->days_n;
    int32_t *excluded = (int32_t *)(void *)(c->spans + t->spans_n);
    if (t->days_n)
        memcpy(c->days, t->days, t->days_n * sizeof(*c->days));
    if (t->spans_n)
        memcpy(c->spans, t->spans, t->spans_n * sizeof(*c->spans));
    for (size_t i = 0; i < t->rules_n; i++) {
        c->rules[i] = t->rules[i];
        c->rules[i].excluded = excluded;
        for (int32_t k = 0; k < t->rules[i].excluded_n; k++)
            *excluded++ = t->rules[i].excluded[k];
    }
    return c;
}

int schedule_calendar_parse(str text, schedule_calendar_zone_fn *find_zone,
                            struct schedule_calendar **ret, err_t *e)
{
    auto_arena struct arena a = { 0 };
    struct schedule_ical_event *events;
    size_t n;
    int r = schedule_ical_read(&a, text, find_zone, &events, &n, e);
    if (r < 0)
        return r;
    size_t room = MAX(n, (size_t)1);
    struct tables t = { .days = arena_array(&a, room, sizeof(*t.days)),
                        .spans = arena_array(&a, room, sizeof(*t.spans)),
                        .rules = arena_array(&a, room, sizeof(*t.rules)),
                        .first = INT64_MAX,
                        .last = INT64_MIN };
    for (size_t i = 0; i < n; i++)
        add_event(&t, &events[i]);
    t.days_n = merge_ranges(t.days, t.days_n);
    t.spans_n = merge_ranges(t.spans, t.spans_n);
    *ret = pack_tables(&t, n);
    return 0;
}

str schedule_calendar_text(const struct json *data)
{
    const struct json *text = json_get(data, "calendar.ics");
    if (!text && json_len(data) == 1)
        json_each(m, data)
            text = m->value;
    return json_text(text);
}

void schedule_calendar_free(struct schedule_calendar *c)
{
    free(c);
}

/* ---- looking up */

/* Does any range overlap [from, to)? They are sorted and disjoint. */
static bool ranges_overlap(const struct range *ranges, size_t n, int64_t from, int64_t to)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].to <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && ranges[low].from < to;
}

static bool occurs_on(const struct recurring *r, int64_t day)
{
    if (!schedule_rule_has_day(&r->rule, day))
        return false;
    int32_t low = 0, high = r->excluded_n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (r->excluded[middle] < day)
            low = middle + 1;
        else
            high = middle;
    }
    return low == r->excluded_n || r->excluded[low] != day;
}

static bool all_day_covers(const struct recurring *r, int64_t day)
{
    for (int32_t back = 0; back < r->length; back++)
        if (occurs_on(r, day - back))
            return true;
    return false;
}

/* Does an occurrence of a timed event overlap the local day [from, to) of the reader's zone? */
static bool timed_covers(const struct recurring *r, const struct tz *zone, const struct range *day)
{
    zone = r->zone ? r->zone : zone;
    int64_t first = civil_day_of(day->from - r->length) - 2, last = civil_day_of(day->to) + 2;
    for (int64_t d = MAX(first, (int64_t)r->rule.first_day); d <= last; d++) {
        if (!occurs_on(r, d))
            continue;
        int64_t at = tz_resolve(zone, d * CIVIL_DAY_S + r->second).first;
        if (at < day->to && at + MAX(r->length, 1) > day->from)
            return true;
    }
    return false;
}

bool schedule_calendar_has_day(const struct schedule_calendar *c, const struct tz *zone,
                               int64_t day)
{
    if (day < c->first || day > c->last)
        return false;
    if (ranges_overlap(c->days, c->days_n, day, day + 1))
        return true;
    struct range local = { tz_resolve(zone, day * CIVIL_DAY_S).first,
                           tz_resolve(zone, (day + 1) * CIVIL_DAY_S).first };
    if (local.from < local.to && ranges_overlap(c->spans, c->spans_n, local.from, local.to))
        return true;
    for (size_t i = 0; i < c->rules_n; i++) {
        const struct recurring *r = &c->rules[i];
        if (r->all_day ? all_day_covers(r, day) : timed_covers(r, zone, &local))
            return true;
    }
    return false;
}

void schedule_calendar_range(const struct schedule_calendar *c, int64_t *ret_first,
                             int64_t *ret_last)
{
    *ret_first = c->first;
    *ret_last = c->last;
}

size_t schedule_calendar_events(const struct schedule_calendar *c)
{
    return c->events;
}

size_t schedule_calendar_bytes(const struct schedule_calendar *c)
{
    return c->bytes;
}
