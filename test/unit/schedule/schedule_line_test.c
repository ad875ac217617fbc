/* Cron lines: with a duration they are windows like any other, and two lines are what KEDA makes of them. */
#include "base/civil.h"
#include "base/random.h"
#include "base/rfc3339.h"
#include "schedule/schedule_core.h"
#include "schedule/schedule_windows_core.h"
#include "tap.h"
#include "json/yaml.h"

enum { ROUNDS = 3000 };

static const char *const zones[] = { "UTC",
                                     "Europe/Berlin",
                                     "America/New_York",
                                     "America/Sao_Paulo",
                                     "Asia/Kolkata",
                                     "Africa/Cairo",
                                     "Australia/Lord_Howe",
                                     "Pacific/Apia",
                                     "Antarctica/Troll",
                                     "Pacific/Chatham" };

static int64_t at(const char *text)
{
    int64_t s = 0;
    OK(rfc3339_parse(str_c(text), &s, NULL) == 0);
    return s;
}

static struct schedule_spec *read_spec(struct arena *a, str text)
{
    struct json *tree = NULL;
    err_t e;
    if (!OK_CALL(yaml_parse(a, text, &tree, &e), &e))
        return NULL;
    return schedule_spec_read(a, tree, (struct schedule_defaults){ .find_zone = tz_get });
}

static int64_t random_instant(struct random *r)
{
    static const char *const jumps[] = {
        "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-03-08T07:00:00Z",
        "2026-11-01T06:00:00Z", "2011-12-30T10:00:00Z", "2026-04-04T15:00:00Z",
        "2018-11-04T03:00:00Z", "2026-04-23T22:00:00Z", "2030-06-01T00:00:00Z",
    };
    int64_t spread = 4 * CIVIL_DAY_S;
    return at(jumps[random_below(r, countof(jumps))]) - spread +
           (int64_t)random_below(r, (uint32_t)(2 * spread));
}

/* Every weekday at some time for some hours, written in both ways, is the same window at every instant. */
static void a_duration_is_a_time_of_day(void)
{
    struct random r;
    random_init(&r, 11, 1);
    int bad = 0;
    for (int round = 0; round < ROUNDS && bad < 5; round++) {
        auto_arena struct arena a = { 0 };
        int from = (int)random_below(&r, 1430), length = 1 + (int)random_below(&r, 1439);
        int to = (from + length) % 1440;
        if (from + length == 1440)
            continue; /* 00:00 as an end of the same day is another window */
        str zone = str_c(zones[random_below(&r, countof(zones))]);
        struct schedule_spec *spec =
            read_spec(&a,
                      arena_printf(&a,
                                   "triggers:\n"
                                   "- {name: a, timezone: " STR_FMT
                                   ", schedule: '%d %d * * 1-5', duration: %dm}\n"
                                   "- {name: b, timezone: " STR_FMT
                                   ", startTime: '%02d:%02d', endTime: '%02d:%02d', "
                                   "interval: {recurring: 'M,TU,W,TH,F', overnightDay: Start}}\n",
                                   STR_ARG(zone), from % 60, from / 60, length, STR_ARG(zone),
                                   from / 60, from % 60, to / 60, to % 60));
        int64_t now = random_instant(&r);
        struct schedule_view x = schedule_view(&spec->triggers[0], now),
                             y = schedule_view(&spec->triggers[1], now);
        if (str_eqc(zone, "Pacific/Apia"))
            continue; /* a night that would open on the skipped date differs on purpose */
        struct schedule_span p = { 0 }, q = { 0 };
        int64_t e1 = 0, e2 = 0, n1 = 0, n2 = 0;
        bool open = schedule_window_now(&x, &p);
        bad += !EQ_INT(open, schedule_window_now(&y, &q));
        bad += !EQ_INT(p.from, q.from) || !EQ_INT(p.to, q.to);
        if (!open) {
            schedule_last_end(&x, now - 8 * CIVIL_DAY_S, &e1);
            schedule_last_end(&y, now - 8 * CIVIL_DAY_S, &e2);
            bad += !EQ_INT(e1, e2);
            schedule_next_boundary(&x, &n1);
            schedule_next_boundary(&y, &n2);
            bad += !EQ_INT(n1, n2);
        }
        if (bad)
            printf("# %d for %d in " STR_FMT " at %lld\n", from, length, STR_ARG(zone),
                   (long long)now);
    }
}

/* The definition, minute by minute: open if a fire of the last `length` minutes began. */
static void lines_agree_with_their_definition(void)
{
    static const char *const lines[] = { "*/20 * * * *", "0 9-17/2 * * *", "30 6 1,15 * *",
                                         "0 0 * * 0",    "5,50 22 * 11 *", "0 * * * *" };
    struct random r;
    random_init(&r, 12, 1);
    int bad = 0;
    for (int round = 0; round < ROUNDS / 3 && bad < 5; round++) {
        auto_arena struct arena a = { 0 };
        const char *line = lines[random_below(&r, countof(lines))];
        int length = 1 + (int)random_below(&r, 2000);
        struct schedule_spec *spec =
            read_spec(&a, arena_printf(&a, "triggers: [{name: a, schedule: '%s', duration: %dm}]",
                                       line, length));
        const struct schedule_trigger *t = &spec->triggers[0];
        int64_t now = at("2026-11-01T00:00:00Z") + (int64_t)random_below(&r, 40 * 86400);
        bool want = false;
        for (int64_t m = now / 60; m > now / 60 - length && !want; m--)
            want = schedule_cron_has_day(t->cron, m / 1440) &&
                   schedule_cron_minute_after(t->cron, (int)(m % 1440)) == m % 1440;
        struct schedule_view v = schedule_view(t, now);
        struct schedule_span span;
        bool got = schedule_window_now(&v, &span);
        bad += !EQ_INT(got, want);
        if (got && span.from != INT64_MIN && span.from > at("2026-10-01T00:00:00Z")) {
            struct schedule_view before = schedule_view(t, span.from - 1);
            bad += !OK(!schedule_window_now(&before, &span)); /* it really opened there */
        }
        if (bad)
            printf("# %s for %d min at %lld\n", line, length, (long long)now);
    }
}

static void endless_lines(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_spec *spec = read_spec(
        &a,
        S("triggers:\n"
          "- {name: a, timezone: Europe/Berlin, schedule: '0 * * * *', duration: 1h}\n"
          "- {name: b, schedule: '0 0 * * 1-5', duration: 72h}\n"
          "- {name: c, schedule: '0 0 * * *', duration: 24h, interval: {startDate: 2026-06-01}}\n"
          "- {name: d, schedule: '0 0 * * *', duration: 24h, interval: {excludeDates: [2026-06-10]}}\n"));
    struct schedule_trigger_now states[4];
    int64_t now = at("2026-10-25T01:30:00Z");
    struct schedule_effective e = schedule_effective(spec, 0, now, states);
    EQ_INT(spec->problems_n, 0);
    OK(states[0].window_s == INT64_MIN && states[0].window_e == INT64_MAX);
    OK(states[1].window_s == INT64_MIN && states[1].window_e == INT64_MAX);
    EQ_INT(states[2].window_s, at("2026-06-01T00:00:00Z"));
    EQ_INT(states[3].window_s, at("2026-06-11T00:00:00Z"));
    EQ_INT(e.trigger, 3); /* opened last */
}

static void two_lines_are_kedas(void)
{
    static const char *const pairs[][2] = {
        { "0 8 * * 1-5", "0 18 * * 1-5" }, { "0 8 * * 1-5", "0 18 * * *" },
        { "30 2 * * *", "0 5 * * *" },     { "0 22 * * *", "0 6 * * *" },
        { "*/30 * * * *", "15 * * * *" },  { "0 9 * * *", "0 * * * *" },
        { "0 9 1 * *", "0 9 * * 1" },
    };
    struct random r;
    random_init(&r, 13, 1);
    int bad = 0, open = 0;
    for (int round = 0; round < ROUNDS / 20 && bad < 5; round++) {
        auto_arena struct arena a = { 0 };
        const char *const *pair = pairs[random_below(&r, countof(pairs))];
        struct schedule_spec *spec = read_spec(
            &a,
            arena_printf(&a,
                         "triggers: [{name: a, timezone: %s, schedule: '%s', endSchedule: '%s'}]",
                         zones[random_below(&r, countof(zones))], pair[0], pair[1]));
        const struct schedule_trigger *t = &spec->triggers[0];
        int64_t now = random_instant(&r);
        if (!EQ_INT(t->use, SCHEDULE_USED))
            break;
        struct schedule_view v = schedule_view(t, now);
        struct schedule_span span;
        bool active = schedule_cron_at(t->cron, t->cron_end, t->zone, now).active;
        bool within = schedule_window_now(&v, &span);
        bad += !EQ_INT(within, active);
        open += within;
        int64_t probes[] = { within && span.from != INT64_MIN ? span.from : now, now,
                             within && span.to != INT64_MAX ? span.to - 1 : now };
        for (size_t i = 0; within && i < countof(probes); i++)
            bad += !OK(schedule_cron_at(t->cron, t->cron_end, t->zone, probes[i]).active);
        if (within && span.from != INT64_MIN)
            bad += !OK(!schedule_cron_at(t->cron, t->cron_end, t->zone, span.from - 1).active);
        if (within && span.to != INT64_MAX)
            bad += !OK(!schedule_cron_at(t->cron, t->cron_end, t->zone, span.to).active);
        int64_t end;
        if (!within && schedule_last_end(&v, 0, &end))
            bad += !OK(schedule_cron_at(t->cron, t->cron_end, t->zone, end - 1).active &&
                       !schedule_cron_at(t->cron, t->cron_end, t->zone, end).active);
        if (bad)
            printf("# %s / %s at %lld\n", pair[0], pair[1], (long long)now);
    }
    OK(open > 30);
}

static void problems_are_named(void)
{
    static const struct {
        const char *fields, *text;
    } t[] = {
        { "schedule: '0 9 * *', duration: 1h", "must have 5" },
        { "schedule: '0 9 * * *'", "needs a duration" },
        { "schedule: '0 9 * * *', duration: 30s", "from 1m to 744h" },
        { "schedule: '0 9 * * *', duration: 745h", "from 1m to 744h" },
        { "schedule: '0 9 * * *', duration: 1h, startTime: '09:00'",
          "cannot be combined with startTime" },
        { "schedule: '0 9 * * *', duration: 1h, endSchedule: '0 1 * * *'",
          "both duration and endSchedule" },
        { "schedule: '0 9 * * *', endSchedule: 'x'", "endSchedule: cron line" },
        { "endSchedule: '0 9 * * *'", "" },
        { "schedule: '0 9 * * *', endSchedule: '0 1 * * *', interval: {recurring: M}",
          "with interval" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct schedule_spec *spec =
            read_spec(&a, arena_printf(&a, "triggers: [{name: a, %s}]", t[i].fields));
        EQ_INT(spec->triggers[0].use, SCHEDULE_INVALID);
        if (*t[i].text && OK(spec->problems_n > 0))
            if (!OK(str_find(spec->problems[0].text, str_c(t[i].text)) != SIZE_MAX))
                printf("# " STR_FMT "\n", STR_ARG(spec->problems[0].text));
    }
}

/* An included date opens the window at the times of the line, whatever its weekday, as it does for times of day. */
static void included_dates_open_a_line(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_spec *spec =
        read_spec(&a,
                  S("triggers:\n- {name: t, schedule: '0 9 * * MON-FRI', duration: 8h, interval: "
                    "{endDate: '2026-06-30', includeDates: ['2026-06-06', '2026-07-04']}}\n"));
    static const struct {
        const char *now;
        bool open;
    } cases[] = {
        { "2026-06-05T12:00:00Z", true },  { "2026-06-06T08:59:59Z", false },
        { "2026-06-06T12:00:00Z", true },  { "2026-06-06T17:00:00Z", false },
        { "2026-06-07T12:00:00Z", false }, { "2026-07-03T12:00:00Z", false },
        { "2026-07-04T12:00:00Z", true },
    };
    for (size_t i = 0; spec && i < countof(cases); i++) {
        struct schedule_trigger_now state;
        schedule_effective(spec, 0, at(cases[i].now), &state);
        EQ_INT(state.state == SCHEDULE_STATE_WITHIN, cases[i].open);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_duration_is_a_time_of_day),
                                        TAP(lines_agree_with_their_definition),
                                        TAP(endless_lines),
                                        TAP(two_lines_are_kedas),
                                        TAP(problems_are_named),
                                        TAP(included_dates_open_a_line),
                                        { 0 } });
}
