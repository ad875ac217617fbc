/* Reading iCalendar text: see schedule_ical_core.h.
 *
 * The text is a list of lines NAME;PARAM=VALUE:VALUE. A line that begins with a blank continues the one before.
 * BEGIN and END nest components; only VEVENTs directly in a VCALENDAR are read:
 *
 *     next_line -> split_line -> on_line --+-> begin, end of components
 *                                          +-> set_property of the open event
 *     END:VEVENT -> finish_event: start and end as a length, UNTIL and EXDATE as days of the event's own zone
 *
 * The bytes come from a ConfigMap that any tenant may write: every number is bounded, and the work that COUNT causes is
 * taken from a budget. Errors name the line. */
#include "schedule_ical_core.h"

#include "schedule_lex.h"

enum {
    DEPTH_MAX = 8,
    EXCLUDED_MAX = 2000, /* per event */
    COUNT_BUDGET = 4000000,
    LOOKUP_BUDGET = 50000, /* days that one lookup may have to try: about a millisecond */
};

/* A date or a date and time as it is written. */
struct moment {
    bool set, is_date, utc;
    int32_t day, second;
    const struct tz *zone; /* TZID; NULL: none */
};

struct draft {
    struct moment start, end;
    int64_t duration; /* in seconds; -1: not given */
    str rule;
    struct moment *excluded;
    size_t excluded_n;
    bool cancelled;
};

struct ical {
    struct arena *a;
    schedule_calendar_zone_fn *find_zone;
    str rest;
    size_t line, event_line;
    int depth;         /* of components; 1: VCALENDAR */
    bool seen, closed; /* BEGIN and END of the first VCALENDAR */
    int event_depth;   /* of the open VEVENT; 0: none */
    struct draft draft;
    struct schedule_ical_event *events;
    size_t n, cap;
    int64_t budget, lookup;
    err_t *e;
};

#define FAIL(c, ...) ical_fail(c, arena_printf((c)->a, __VA_ARGS__))

static int ical_fail(struct ical *c, str why)
{
    return err_set(c->e, EINVAL, "line %zu: " STR_FMT, c->line, STR_ARG(why));
}

/* ---- lines */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* One line of the text as it is written, without its end. */
static str cut_line(str *rest)
{
    str line;
    str_cut(rest, '\n', &line);
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    return line;
}

/* The next line with its continuations joined; false at the end of the text. The lengths are added up first: joining
 * one by one would need memory in the square of the number of continuations. */
static bool next_line(struct ical *c, str *ret)
{
    if (!c->rest.n)
        return false;
    str line = cut_line(&c->rest), rest = c->rest;
    size_t total = line.n;
    c->line++;
    while (rest.n && is_blank(rest.p[0]))
        total += str_from(cut_line(&rest), 1).n;
    *ret = line;
    if (rest.p == c->rest.p)
        return true;
    char *joined = arena_array(c->a, total + 1, 1);
    size_t at = line.n;
    memcpy(joined, line.p, line.n);
    for (; c->rest.n && is_blank(c->rest.p[0]); c->line++) {
        str part = str_from(cut_line(&c->rest), 1);
        memcpy(joined + at, part.p, part.n);
        at += part.n;
    }
    *ret = (str){ joined, at };
    return true;
}

struct property {
    str name, value;
    str zone_name; /* the parameter TZID; "": not given */
};

static str unquote(str s)
{
    return s.n > 1 && s.p[0] == '"' && s.p[s.n - 1] == '"' ? str_upto(str_from(s, 1), s.n - 2) : s;
}

/* Where the name and its parameters end: the first colon or semicolon outside quotes. */
static size_t find_end(str s)
{
    bool quoted = false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"')
            quoted = !quoted;
        else if (!quoted && (s.p[i] == ':' || s.p[i] == ';'))
            return i;
    }
    return SIZE_MAX;
}

static bool split_line(str line, struct property *ret)
{
    size_t at = find_end(line);
    *ret = (struct property){ .name = str_upto(line, at) };
    while (at != SIZE_MAX && line.p[at] == ';') {
        line = str_from(line, at + 1);
        at = find_end(line);
        str param = str_upto(line, at);
        size_t equals = str_find_char(param, '=');
        str value = equals == SIZE_MAX ? S("") : unquote(str_from(param, equals + 1));
        if (str_eq_nocase(str_upto(param, equals), S("TZID")))
            ret->zone_name = value;
    }
    if (at == SIZE_MAX)
        return false;
    ret->value = str_from(line, at + 1);
    return true;
}

/* ---- values */

static bool read_digits(str s, size_t from, size_t n, int *ret)
{
    int64_t number;
    str part = str_upto(str_from(s, from), n);
    if (from + n > s.n || part.p[0] == '-' || part.p[0] == '+' || str_to_i64(part, &number) < 0)
        return false;
    *ret = (int)number;
    return true;
}

/* "20261224", "20261224T180000", "20261224T170000Z" */
static bool read_moment(str s, struct moment *ret)
{
    int year, month, day, hour = 0, minute = 0, second = 0;
    if (!read_digits(s, 0, 4, &year) || !read_digits(s, 4, 2, &month) ||
        !read_digits(s, 6, 2, &day))
        return false;
    struct civil_date date = { year, month, day };
    bool has_time = s.n > 8;
    if (year < 1600 || !civil_is_date(date))
        return false;
    if (has_time &&
        (s.p[8] != 'T' || !read_digits(s, 9, 2, &hour) || !read_digits(s, 11, 2, &minute) ||
         !read_digits(s, 13, 2, &second) || hour > 23 || minute > 59 || second > 60))
        return false;
    bool utc = s.n == 16 && s.p[15] == 'Z';
    if (has_time && s.n != 15 && !utc)
        return false;
    *ret = (struct moment){ .set = true,
                            .is_date = !has_time,
                            .utc = utc,
                            .day = (int32_t)civil_to_days(date),
                            .second = hour * 3600 + minute * 60 + MIN(second, 59) };
    return true;
}

static int read_property_moment(struct ical *c, const struct property *p, str value,
                                struct moment *ret)
{
    err_t why;
    if (!read_moment(str_trim(value), ret))
        return FAIL(c,
                    STR_FMT " \"" STR_FMT
                            "\" is not a date or time; use YYYYMMDD or YYYYMMDDTHHMMSS",
                    STR_ARG(p->name), STR_ARG(str_upto(value, 40)));
    if (p->zone_name.n && !ret->is_date && !ret->utc &&
        c->find_zone(p->zone_name, &ret->zone, &why) < 0)
        return FAIL(c,
                    "TZID \"" STR_FMT
                    "\" is not a known time zone; use an IANA name such as Europe/Berlin",
                    STR_ARG(str_upto(p->zone_name, 60)));
    return 0;
}

/* "P1D", "PT1H30M", "P2W" as seconds; -1: not valid. */
static int64_t read_duration(str s)
{
    int64_t total = 0;
    bool in_time = false, any = false;
    if (s.n && s.p[0] == '+')
        s = str_from(s, 1);
    if (!s.n || s.p[0] != 'P')
        return -1;
    for (s = str_from(s, 1); s.n;) {
        if (s.p[0] == 'T' && !in_time) {
            in_time = true;
            s = str_from(s, 1);
            continue;
        }
        int64_t number = 0;
        size_t n = 0;
        while (n < s.n && n < 7 && s.p[n] >= '0' && s.p[n] <= '9')
            number = number * 10 + (s.p[n++] - '0');
        char unit = n && n < s.n ? s.p[n] : '\0';
        int64_t scale = unit == 'W' && !in_time   ? 7 * CIVIL_DAY_S
                        : unit == 'D' && !in_time ? CIVIL_DAY_S
                        : unit == 'H' && in_time  ? 3600
                        : unit == 'M' && in_time  ? 60
                        : unit == 'S' && in_time  ? 1
                                                  : 0;
        if (!scale)
            return -1;
        total += number * scale;
        any = true;
        s = str_from(s, n + 1);
    }
    return any ? total : -1;
}

/* ---- an event */

static int64_t wall_of(const struct moment *m)
{
    return m->day * CIVIL_DAY_S + m->second;
}

/* The instant of a moment; a floating one is read in `floating`. */
static int64_t instant_of(const struct moment *m, const struct tz *floating)
{
    const struct tz *zone = m->utc ? tz_utc() : m->zone ? m->zone : floating;
    return tz_resolve(zone, wall_of(m)).first;
}

/* Local day and second of a moment in the zone of the event. */
static void local_of(const struct moment *m, const struct schedule_ical_event *event, int32_t *day,
                     int32_t *second)
{
    const struct tz *zone = event->zone ? event->zone : tz_utc();
    int64_t local = wall_of(m);
    if (m->utc || m->zone) {
        int64_t at = instant_of(m, zone);
        local = at + tz_offset_at(zone, at);
    }
    *day = (int32_t)civil_day_of(local);
    *second = (int32_t)(local - *day * CIVIL_DAY_S);
}

/* DTEND or DURATION as a length. All-day events count whole days, so that daylight saving cannot shorten them. */
static int set_length(struct ical *c, struct schedule_ical_event *event)
{
    const struct draft *d = &c->draft;
    const struct tz *zone = event->zone ? event->zone : tz_utc();
    int64_t seconds = d->duration;
    if (d->end.set)
        seconds = event->all_day ? (d->end.day - d->start.day) * CIVIL_DAY_S
                                 : instant_of(&d->end, zone) - instant_of(&d->start, zone);
    if (d->end.set && d->end.is_date != d->start.is_date)
        return FAIL(c, "DTSTART and DTEND must both be dates or both be times");
    if (seconds < 0 && (d->end.set || d->duration >= 0))
        return FAIL(c, "DTEND is before DTSTART");
    if (seconds > SCHEDULE_EVENT_DAYS_MAX * CIVIL_DAY_S)
        return FAIL(c, "the event is longer than %d days", SCHEDULE_EVENT_DAYS_MAX);
    seconds = MAX(seconds, INT64_C(0));
    event->length =
        event->all_day ? MAX((seconds + CIVIL_DAY_S - 1) / CIVIL_DAY_S, INT64_C(1)) : seconds;
    return 0;
}

/* UNTIL is the last instant at which an occurrence may start; a date is that whole day. */
static int set_until(struct ical *c, struct schedule_ical_event *event, str until)
{
    struct moment m;
    int32_t day, second;
    if (!until.n)
        return 0;
    if (!read_moment(until, &m))
        return FAIL(c, "UNTIL \"" STR_FMT "\" is not a date or time", STR_ARG(str_upto(until, 40)));
    local_of(&m, event, &day, &second);
    event->rule.last_day = !event->all_day && !m.is_date && second < event->second ? day - 1 : day;
    return 0;
}

static int compare_days(const void *x, const void *y)
{
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

/* An EXDATE removes the occurrence that starts at it; a date removes that of the day. */
static void set_excluded(struct ical *c, struct schedule_ical_event *event)
{
    const struct draft *d = &c->draft;
    event->excluded = arena_array(c->a, MAX(d->excluded_n, (size_t)1), sizeof(*event->excluded));
    for (size_t i = 0; i < d->excluded_n; i++) {
        int32_t day, second;
        local_of(&d->excluded[i], event, &day, &second);
        if (d->excluded[i].is_date || event->all_day || second == event->second)
            event->excluded[event->excluded_n++] =
                d->excluded[i].is_date ? d->excluded[i].day : day;
    }
    qsort(event->excluded, event->excluded_n, sizeof(*event->excluded), compare_days);
}

/* How many days a lookup tries for this event: every one on which an occurrence that still lasts may have begun. */
static int64_t lookup_days(const struct schedule_ical_event *event)
{
    if (event->all_day)
        return event->rule.freq == SCHEDULE_ONCE ? 0 : event->length;
    bool is_span = event->rule.freq == SCHEDULE_ONCE && event->zone;
    return is_span ? 0 : event->length / CIVIL_DAY_S + 5;
}

/* Turns the collected properties into an event. Cancelled events are dropped, not errors. */
static int finish_event(struct ical *c)
{
    const struct draft *d = &c->draft;
    struct schedule_ical_event event = { .rule = { .interval = 1, .last_day = INT32_MAX } };
    str until = S("");
    err_t why;
    if (d->cancelled)
        return 0;
    if (!d->start.set)
        return FAIL(c, "the event that begins in line %zu has no DTSTART", c->event_line);
    if (c->n == SCHEDULE_CALENDAR_EVENTS_MAX)
        return FAIL(c, "there are more than %d events", SCHEDULE_CALENDAR_EVENTS_MAX);
    event.all_day = d->start.is_date;
    event.zone = d->start.utc ? tz_utc() : d->start.zone;
    event.second = d->start.second;
    if (d->rule.n && schedule_rule_parse(d->rule, &event.rule, &until, &why) < 0)
        return FAIL(c, "%s", why.text);
    if (set_length(c, &event) < 0 || set_until(c, &event, until) < 0)
        return -c->e->code;
    if (schedule_rule_finish(&event.rule, d->start.day, &c->budget) < 0)
        return FAIL(c, "COUNT is too large; use UNTIL");
    set_excluded(c, &event);
    c->lookup += lookup_days(&event);
    if (c->lookup > LOOKUP_BUDGET)
        return FAIL(c,
                    "the recurring events are too many or too long: together they cover more "
                    "than %d days per occurrence",
                    LOOKUP_BUDGET);
    if (c->n == c->cap) {
        c->cap = MAX(c->cap * 2, (size_t)64);
        struct schedule_ical_event *more = arena_array(c->a, c->cap, sizeof(*more));
        if (c->n)
            memcpy(more, c->events, c->n * sizeof(*more));
        c->events = more;
    }
    c->events[c->n++] = event;
    return 0;
}

static int add_excluded(struct ical *c, const struct property *p)
{
    str rest = p->value, one;
    struct draft *d = &c->draft;
    if (!d->excluded)
        d->excluded = arena_array(c->a, EXCLUDED_MAX, sizeof(*d->excluded));
    while (str_cut(&rest, ',', &one)) {
        if (d->excluded_n == EXCLUDED_MAX)
            return FAIL(c, "the event has more than %d EXDATEs", EXCLUDED_MAX);
        if (read_property_moment(c, p, one, &d->excluded[d->excluded_n]) < 0)
            return -c->e->code;
        d->excluded_n++;
    }
    return 0;
}

/* Properties that change which days an event covers are read or refused; all others are ignored. */
static int set_property(struct ical *c, const struct property *p)
{
    struct draft *d = &c->draft;
    if (str_eq_nocase(p->name, S("DTSTART")))
        return read_property_moment(c, p, p->value, &d->start);
    if (str_eq_nocase(p->name, S("DTEND")))
        return read_property_moment(c, p, p->value, &d->end);
    if (str_eq_nocase(p->name, S("EXDATE")))
        return add_excluded(c, p);
    if (str_eq_nocase(p->name, S("DURATION"))) {
        d->duration = read_duration(str_trim(p->value));
        return d->duration < 0
                   ? FAIL(c,
                          "DURATION \"" STR_FMT "\" is not valid; use a form such as P1D or PT8H",
                          STR_ARG(str_upto(p->value, 40)))
                   : 0;
    }
    if (str_eq_nocase(p->name, S("RRULE"))) {
        if (d->rule.n)
            return FAIL(c, "the event has two RRULEs");
        d->rule = str_trim(p->value);
    } else if (str_eq_nocase(p->name, S("STATUS"))) {
        d->cancelled = str_eq_nocase(str_trim(p->value), S("CANCELLED"));
    } else if (str_eq_nocase(p->name, S("RDATE")) || str_eq_nocase(p->name, S("EXRULE")) ||
               str_eq_nocase(p->name, S("RECURRENCE-ID"))) {
        return FAIL(c, STR_FMT " is not supported; write the date as an event of its own",
                    STR_ARG(p->name));
    }
    return 0;
}

/* ---- components */

static int begin_component(struct ical *c, str name)
{
    if (!c->depth && !str_eq_nocase(name, S("VCALENDAR")))
        return FAIL(c, "the text does not begin with BEGIN:VCALENDAR");
    if (c->depth == DEPTH_MAX)
        return FAIL(c, "components are nested more than %d deep", DEPTH_MAX);
    c->depth++;
    c->seen = true;
    if (c->depth == 2 && str_eq_nocase(name, S("VEVENT"))) {
        c->event_depth = c->depth;
        c->event_line = c->line;
        c->draft = (struct draft){ .duration = -1 };
    }
    return 0;
}

static int end_component(struct ical *c)
{
    if (!c->depth)
        return FAIL(c, "END without BEGIN");
    bool is_event = c->event_depth == c->depth;
    c->depth--;
    c->closed |= !c->depth;
    if (!is_event)
        return 0;
    c->event_depth = 0;
    return finish_event(c);
}

static int on_line(struct ical *c, str line)
{
    struct property p;
    if (!str_trim(line).n)
        return 0;
    if (!split_line(line, &p))
        return FAIL(c, "\"" STR_FMT "\" is not a line of iCalendar; use NAME:VALUE",
                    STR_ARG(str_upto(line, 40)));
    if (str_eq_nocase(p.name, S("BEGIN")))
        return begin_component(c, str_trim(p.value));
    if (str_eq_nocase(p.name, S("END")))
        return end_component(c);
    if (!c->depth)
        return FAIL(c, "the text does not begin with BEGIN:VCALENDAR");
    return c->event_depth == c->depth ? set_property(c, &p) : 0;
}

int schedule_ical_read(struct arena *a, str text, schedule_calendar_zone_fn *find_zone,
                       struct schedule_ical_event **ret, size_t *ret_n, err_t *e)
{
    struct ical c = {
        .a = a, .find_zone = find_zone, .rest = text, .budget = COUNT_BUDGET, .e = e
    };
    str line;
    while (next_line(&c, &line))
        if (on_line(&c, line) < 0)
            return -e->code;
    if (!c.seen || c.depth)
        return FAIL(&c, c.seen ? "the text ends before END:VCALENDAR" : "there is no VCALENDAR");
    *ret = c.events;
    *ret_n = c.n;
    return 0;
}
