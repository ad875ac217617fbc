/* Calendars: what counts as a day of theirs, what is refused, and what a lookup costs. Rules are compared with another
 * implementation in test/integration/calendar_rules.py. */
#include "base/buf.h"
#include "base/clock.h"
#include "schedule/schedule_core.h"
#include "schedule/schedule_windows_core.h"
#include "tap.h"
#include "json/yaml.h"

#define CALENDAR(lines) "BEGIN:VCALENDAR\r\n" lines "END:VCALENDAR\r\n"
#define EVENT(lines) "BEGIN:VEVENT\r\n" lines "END:VEVENT\r\n"

static int64_t day_of(int year, int month, int day)
{
    return civil_to_days((struct civil_date){ year, month, day });
}

static struct schedule_calendar *read_calendar(const char *text)
{
    struct schedule_calendar *c = NULL;
    err_t e;
    OK_CALL(schedule_calendar_parse(str_c(text), tz_get, &c, &e), &e);
    return c;
}

static const struct tz *zone_of(const char *name)
{
    const struct tz *zone = NULL;
    OK(tz_get(str_c(name), &zone, NULL) == 0);
    return zone;
}

static void days_of_events(void)
{
    struct schedule_calendar *c = read_calendar(CALENDAR(
        "X-WR-CALNAME:Holi\r\n days\r\n" EVENT(
            "DTSTART;VALUE=DATE:20261224\r\nDTEND;VALUE=DATE:20261227\r\n")
            EVENT(
                "DTSTART;TZID=\"Europe/Berlin\":20260601T230000\r\nDTEND;TZID=Europe/Berlin:20260602T010000\r\n")
                EVENT("DTSTART:20260701\r\nSTATUS:CANCELLED\r\n") EVENT(
                    "dtstart:20260801T000000Z\r\nDURATION:P1D\r\nBEGIN:VALARM\r\nTRIGGER:-PT5M\r\n"
                    "DTSTART:20200101\r\nEND:VALARM\r\n")
                    EVENT("DTSTART:20260901T220000\r\nDURATION:PT3H\r\n")));
    if (!c)
        return;
    EQ_INT(schedule_calendar_events(c), 4);
    const struct tz *berlin = zone_of("Europe/Berlin"), *tokyo = zone_of("Asia/Tokyo");
    OK(!schedule_calendar_has_day(c, berlin, day_of(2026, 12, 23)));
    for (int day = 24; day < 27; day++)
        OK(schedule_calendar_has_day(c, berlin, day_of(2026, 12, day)) &&
           schedule_calendar_has_day(c, tokyo, day_of(2026, 12, day)));
    OK(!schedule_calendar_has_day(c, berlin, day_of(2026, 12, 27)));
    OK(schedule_calendar_has_day(c, berlin, day_of(2026, 6, 1)));
    OK(schedule_calendar_has_day(c, berlin, day_of(2026, 6, 2)));
    OK(!schedule_calendar_has_day(c, tokyo,
                                  day_of(2026, 6, 1))); /* it is already the second there */
    OK(schedule_calendar_has_day(c, tokyo, day_of(2026, 6, 2)));
    OK(!schedule_calendar_has_day(c, berlin, day_of(2026, 7, 1)));
    OK(schedule_calendar_has_day(c, tz_utc(), day_of(2026, 8, 1)));
    OK(!schedule_calendar_has_day(c, tz_utc(), day_of(2026, 8, 2)));
    OK(!schedule_calendar_has_day(c, tz_utc(), day_of(2020, 1, 1)));
    for (int i = 0; i < 2; i++) /* floating: local time everywhere */
        OK(schedule_calendar_has_day(c, i ? berlin : tokyo, day_of(2026, 9, 1)) &&
           schedule_calendar_has_day(c, i ? berlin : tokyo, day_of(2026, 9, 2)) &&
           !schedule_calendar_has_day(c, i ? berlin : tokyo, day_of(2026, 8, 31)));
    schedule_calendar_free(c);
}

static void broken_calendars_are_refused(void)
{
    static const struct {
        const char *text, *why;
    } t[] = {
        { "", "there is no VCALENDAR" },
        { "hello\n", "not a line of iCalendar" },
        { "BEGIN:VEVENT\nEND:VEVENT\n", "does not begin with BEGIN:VCALENDAR" },
        { "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\n", "ends before END:VCALENDAR" },
        { CALENDAR(EVENT("SUMMARY:x\r\n")),
          "line 4: the event that begins in line 2 has no DTSTART" },
        { CALENDAR(EVENT("DTSTART:2026-01-01\r\n")),
          "line 3: DTSTART \"2026-01-01\" is not a date" },
        { CALENDAR(EVENT("DTSTART:20260230\r\n")), "is not a date" },
        { CALENDAR(EVENT("DTSTART:20260102\r\nDTEND:20260101\r\n")), "before DTSTART" },
        { CALENDAR(EVENT("DTSTART;TZID=Mars/Base:20260102T100000\r\n")), "Mars/Base" },
        { CALENDAR(EVENT("DTSTART:20260102\r\nRRULE:FREQ=HOURLY\r\n")), "FREQ=HOURLY" },
        { CALENDAR(EVENT("DTSTART:20260102\r\nRRULE:FREQ=YEARLY;BYSETPOS=1\r\n")), "BYSETPOS=1" },
        { CALENDAR(EVENT("DTSTART:20260102\r\nRDATE:20260103\r\n")), "RDATE is not supported" },
        { CALENDAR(EVENT("DTSTART:20260102\r\nDURATION:P5\r\n")), "DURATION" },
        { CALENDAR(EVENT("DTSTART:20260102\r\nDTEND:20280102\r\n")), "longer than 400 days" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct schedule_calendar *c;
        err_t e = { 0 };
        EQ_INT(schedule_calendar_parse(str_c(t[i].text), tz_get, &c, &e), -EINVAL);
        if (!OK(str_find(str_c(e.text), str_c(t[i].why)) != SIZE_MAX))
            printf("# %s, want %s\n", e.text, t[i].why);
    }
}

/* COUNT must not keep the reader busy: a rule that never matches, many times. */
static void work_is_bounded(void)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("BEGIN:VCALENDAR\n"));
    for (int i = 0; i < 200; i++)
        buf_put(
            &text,
            S("BEGIN:VEVENT\nDTSTART:16000101\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;COUNT=9\n"
              "END:VEVENT\n"));
    buf_put(&text, S("END:VCALENDAR\n"));
    struct schedule_calendar *c;
    err_t e;
    EQ_INT(schedule_calendar_parse(buf_str(&text), tz_get, &c, &e), -EINVAL);
    OK(str_find(str_c(e.text), S("COUNT is too large")) != SIZE_MAX);
}

/* A line that continues 100,000 times: joined as often, it would take 5 GB. */
static void continuations_are_joined_once(void)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:"));
    for (int i = 0; i < 100000; i++)
        buf_put(&text, S("x\n "));
    buf_put(&text, S("y\nDTSTART;VALUE=DATE:2026\r\n 12\r\n\t25\nEND:VEVENT\nEND:VCALENDAR\n"));
    struct schedule_calendar *c = read_calendar(text.p);
    if (!c)
        return;
    OK(schedule_calendar_has_day(c, tz_utc(), day_of(2026, 12, 25)));
    OK(!schedule_calendar_has_day(c, tz_utc(), day_of(2026, 12, 26)));
    schedule_calendar_free(c);
}

/* A megabyte of rules that never match, each a year long: a lookup would take seconds. */
static void a_lookup_is_bounded(void)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("BEGIN:VCALENDAR\n"));
    for (int i = 0; i < 9000; i++)
        buf_put(&text,
                S("BEGIN:VEVENT\nDTSTART:20200101\nDURATION:P365D\nRRULE:FREQ=YEARLY;BYMONTH=2;"
                  "BYMONTHDAY=30\nEND:VEVENT\n"));
    buf_put(&text, S("END:VCALENDAR\n"));
    struct schedule_calendar *c = NULL;
    err_t e = { 0 };
    if (!EQ_INT(schedule_calendar_parse(buf_str(&text), tz_get, &c, &e), -EINVAL))
        schedule_calendar_free(c);
    OK(str_find(str_c(e.text), S("too many or too long")) != SIZE_MAX);
}

static struct schedule_calendar_found find_one(void *context, str name)
{
    return (struct schedule_calendar_found){ str_eqc(name, "holidays") ? context : NULL,
                                             str_eqc(name, "torn") ? "line 3: no DTSTART" : NULL };
}

/* A calendar that exists but cannot be read is reported as such, with the reason; one that a file lacks is a warning. */
static void says_what_is_wrong_with_them(void)
{
    auto_arena struct arena a = { 0 };
    struct json *tree = NULL;
    json_parse(
        &a,
        S("{\"triggers\":[{\"name\":\"t\",\"interval\":{\"recurring\":\"M\",\"excludeDatesFrom\":"
          "[\"torn\",\"gone\"]},\"startTime\":\"09:00\",\"endTime\":\"17:00\"}]}"),
        &tree, NULL);
    struct schedule_defaults defaults = { .find_calendar = find_one };
    struct schedule_spec *spec = schedule_spec_read(&a, tree, defaults);
    if (!EQ_INT(spec->problems_n, 2))
        return;
    EQ_STR(str_c(schedule_problem_reason(spec->problems[0].kind)), S("InvalidCalendar"));
    OK(str_find(spec->problems[0].text, S("line 3: no DTSTART")) != SIZE_MAX);
    OK(str_find(spec->problems[0].text, S("not found")) == SIZE_MAX);
    EQ_STR(str_c(schedule_problem_reason(spec->problems[1].kind)), S("UnknownCalendar"));
    defaults.calendars_incomplete = true;
    spec = schedule_spec_read(&a, tree, defaults);
    OK(schedule_problem_is_error(spec->problems[0].kind));
    OK(!schedule_problem_is_error(spec->problems[1].kind));
}

static void schedules_use_them(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_calendar *c =
        read_calendar(CALENDAR(EVENT("DTSTART;VALUE=DATE:20201225\r\nRRULE:FREQ=YEARLY\r\n")));
    const struct schedule_calendar *defaults[] = { c };
    struct json *tree = NULL;
    err_t e;
    OK_CALL(
        yaml_parse(
            &a,
            S("triggers:\n"
              "- {name: a, startTime: '00:00', endTime: '23:59:59', interval: {recurring: "
              "'M,TU,W,TH,F,SAT,SUN', excludeDatesFrom: [holidays, nosuch], ignoreDefaultCalendars: true}}\n"
              "- {name: b, startTime: '09:00', endTime: '17:00', interval: {includeDatesFrom: [holidays], "
              "includeDates: ['2026-12-31'], ignoreDefaultCalendars: true}}\n"
              "- {name: c, startTime: '09:00', endTime: '17:00', interval: {recurring: F}}\n"),
            &tree, &e),
        &e);
    struct schedule_spec *spec =
        schedule_spec_read(&a, tree,
                           (struct schedule_defaults){ .find_zone = tz_get,
                                                       .find_calendar = find_one,
                                                       .calendars = c,
                                                       .default_calendars = defaults,
                                                       .default_calendars_n = 1 });
    EQ_INT(spec->problems_n, 1);
    OK(spec->problems[0].kind == SCHEDULE_UNKNOWN_CALENDAR);
    static const int64_t noon = 12 * 3600;
    struct schedule_trigger_now states[3];
    schedule_effective(spec, 0, day_of(2026, 12, 25) * CIVIL_DAY_S + noon, states); /* a Friday */
    EQ_INT(states[0].state, SCHEDULE_STATE_INACTIVE);
    EQ_INT(states[1].state, SCHEDULE_STATE_WITHIN);
    EQ_INT(states[2].state, SCHEDULE_STATE_INACTIVE);
    schedule_effective(spec, 0, day_of(2027, 3, 1) * CIVIL_DAY_S + noon, states);
    EQ_INT(states[0].window_s,
           day_of(2026, 12, 26) * CIVIL_DAY_S); /* since the holiday, not "always" */
    EQ_INT(states[0].window_e, day_of(2027, 12, 25) * CIVIL_DAY_S);
    EQ_INT(states[1].state, SCHEDULE_STATE_INACTIVE);
    schedule_effective(spec, 0, day_of(2026, 12, 31) * CIVIL_DAY_S + noon, states);
    EQ_INT(states[1].state, SCHEDULE_STATE_WITHIN);
    schedule_effective(spec, 0, day_of(2026, 12, 18) * CIVIL_DAY_S + noon, states);
    EQ_INT(states[2].state, SCHEDULE_STATE_WITHIN);
    schedule_calendar_free(c);
}

static struct schedule_spec *read_triggers(struct arena *a, struct schedule_calendar *c,
                                           const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(a, str_c(yaml), &tree, &e), &e);
    return schedule_spec_read(a, tree,
                              (struct schedule_defaults){
                                  .find_zone = tz_get, .find_calendar = find_one, .calendars = c });
}

/* Every day of a span of years has the same answer to a tie of two windows that stay open all the time. */
static void has_same_tie(const struct schedule_spec *spec, int64_t from, int64_t to, int winner,
                         int64_t since)
{
    for (int64_t day = from; day < to; day++) {
        struct schedule_trigger_now states[2];
        struct schedule_effective e =
            schedule_effective(spec, 0, day * CIVIL_DAY_S + 43200, states);
        if (!EQ_INT(e.trigger, winner) || !EQ_INT(e.since, since * CIVIL_DAY_S))
            return;
    }
}

#define WHOLE_DAY "startTime: '00:00', endTime: '23:59:59', interval: "
#define TIE(interval) "triggers:\n- {name: a, " WHOLE_DAY "{" interval "}}\n- {name: b, " WHOLE_DAY

/* What closed a window last, and when it opened, does not depend on how long ago that was: a date of a calendar six
 * years back, and included Sundays that join the weeks. */
static void a_tie_never_flips_with_calendars(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_calendar *c = read_calendar(CALENDAR(EVENT("DTSTART;VALUE=DATE:20200101\r\n")));
    struct schedule_spec *spec = read_triggers(
        &a, c,
        TIE("recurring: 'M,TU,W,TH,F,SAT,SUN', excludeDatesFrom: [holidays]") "{startDate: '2019-06-01', endDate: '2040-01-01'}}\n");
    has_same_tie(spec, day_of(2020, 1, 2), day_of(2027, 1, 1), 0, day_of(2020, 1, 2));
    schedule_calendar_free(c);
    c = read_calendar(
        CALENDAR(EVENT("DTSTART;VALUE=DATE:20261101\r\nRRULE:FREQ=WEEKLY;COUNT=20\r\n")));
    spec = read_triggers(
        &a, c,
        TIE("recurring: 'M,TU,W,TH,F,SAT', includeDatesFrom: [holidays]") "{startDate: '2026-11-04', endDate: '2026-12-31'}}\n");
    has_same_tie(spec, day_of(2026, 11, 4), day_of(2027, 1, 1), 1, day_of(2026, 11, 4));
    has_same_tie(spec, day_of(2027, 1, 1), day_of(2027, 3, 1), 0, day_of(2026, 10, 26));
    spec = read_triggers(
        &a, c,
        TIE("recurring: 'M,TU,W,TH,F,SAT', includeDates: ['2026-11-01', '2026-11-08', '2026-11-15']") "{startDate: '2026-11-04', endDate: '2026-11-21'}}\n");
    has_same_tie(spec, day_of(2026, 11, 4), day_of(2026, 11, 22), 1, day_of(2026, 11, 4));
    schedule_calendar_free(c);
}

/* 500 events of the most expensive kind: a lookup is far below a millisecond, and 1,000 such calendars fit 64 MB. */
static void cost_of_a_large_calendar(void)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("BEGIN:VCALENDAR\n"));
    for (int i = 0; i < 500; i++)
        buf_printf(
            &text,
            "BEGIN:VEVENT\nDTSTART;VALUE=DATE:2020%02d%02d\nRRULE:FREQ=YEARLY;BYMONTH=%d;BYDAY=-1MO\n"
            "END:VEVENT\n",
            i % 12 + 1, i % 28 + 1, i % 11 + 1);
    buf_put(&text, S("END:VCALENDAR\n"));
    struct schedule_calendar *c = read_calendar(text.p);
    if (!c)
        return;
    enum { LOOKUPS = 200 };
    int64_t start = clock_mono_ns();
    for (int i = 0; i < LOOKUPS; i++)
        OK(!schedule_calendar_has_day(c, tz_utc(), day_of(2026, 12, 1) + i % 28));
    int64_t each = (clock_mono_ns() - start) / LOOKUPS;
    printf("# %lld ns per lookup, %zu bytes\n", (long long)each, schedule_calendar_bytes(c));
    OK(each < 1000000); /* with sanitizers and on a busy machine */
    OK(schedule_calendar_bytes(c) * 1000 <= (size_t)64 << 20);
    schedule_calendar_free(c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(days_of_events),
                                        TAP(broken_calendars_are_refused),
                                        TAP(work_is_bounded),
                                        TAP(continuations_are_joined_once),
                                        TAP(a_lookup_is_bounded),
                                        TAP(says_what_is_wrong_with_them),
                                        TAP(schedules_use_them),
                                        TAP(a_tie_never_flips_with_calendars),
                                        TAP(cost_of_a_large_calendar),
                                        { 0 } });
}
