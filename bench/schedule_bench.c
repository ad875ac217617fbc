/* schedule: what holds now, for 10,000 objects of 10 triggers in 23 zones. Budget: 50 ms of CPU. And calendars: 1,000 of
 * 500 events each. Budget: 1 ms per lookup, 64 MB together.
 *
 * Beside it, what a user would write instead: every trigger's start and end of today from localtime_r()
 * and mktime() with the zone in TZ, as scripts around cron jobs do. That knows neither priorities nor
 * resting values nor daylight saving gaps; it is here to show the cost of the conversions alone, and
 * runs on a part of the objects. */
#include "base/civil.h"
#include "base/clock.h"
#include "base/random.h"
#include "budget.h"
#include "schedule/schedule_core.h"

#include <stdio.h>
#include <time.h>

enum { OBJECTS = 10000, TRIGGERS = 10, ROUNDS = 5, PEER_OBJECTS = 200 };
enum { CALENDARS = 1000, EVENTS = 500, LOOKUPS = 20000 };

static const char *const zones[] = {
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Asia/Shanghai",
    "Asia/Beirut",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Antarctica/Troll",
    "Asia/Tehran",
    "America/Mexico_City",
};

static struct schedule_trigger make_trigger(struct random *r, size_t index)
{
    struct schedule_trigger t = {
        .name = S("t"),
        .priority = random_below(r, 5),
        .weekdays = (uint8_t)(1 + random_below(r, 127)),
        .first_day = INT32_MIN,
        .last_day = INT32_MAX,
        .start_s = (int32_t)random_below(r, 48) * 1800,
        .start = { .has_min = true, .has_max = true, .min = 5, .max = 50 },
        .end = { .has_min = true, .has_max = true, .min = 1, .max = 10 },
    };
    t.end_s = (t.start_s + 1800 * (1 + (int32_t)random_below(r, 40))) % 86400;
    if (tz_get(str_c(zones[index % countof(zones)]), &t.zone, NULL) < 0)
        t.zone = tz_utc();
    return t;
}

static double effective_ms(const struct schedule_spec *specs, int64_t now, size_t *ret_open)
{
    struct schedule_trigger_now states[TRIGGERS];
    int64_t before = clock_cpu_ns();
    size_t open = 0;
    for (size_t i = 0; i < OBJECTS; i++)
        open += schedule_effective(&specs[i], now - 30 * CIVIL_DAY_S, now, states).within_n;
    *ret_open = open;
    return (double)(clock_cpu_ns() - before) / NS_PER_MS;
}

static double peer_ms(const struct schedule_spec *specs, int64_t now)
{
    int64_t before = clock_cpu_ns(), sum = 0;
    for (size_t i = 0; i < PEER_OBJECTS; i++) {
        for (size_t k = 0; k < TRIGGERS; k++) {
            const struct schedule_trigger *t = &specs[i].triggers[k];
            struct tm day;
            time_t at = (time_t)now;
            setenv("TZ", tz_name(t->zone).p, 1);
            tzset();
            localtime_r(&at, &day);
            int32_t edges[] = { t->start_s, t->end_s };
            for (int e = 0; e < 2; e++) {
                struct tm edge = day;
                edge.tm_hour = edges[e] / 3600;
                edge.tm_min = edges[e] / 60 % 60;
                edge.tm_sec = edges[e] % 60;
                edge.tm_isdst = -1;
                sum += mktime(&edge);
            }
        }
    }
    double ms = (double)(clock_cpu_ns() - before) / NS_PER_MS;
    return sum ? ms : 0;
}

static void measure(const char *when, const struct schedule_spec *specs, int64_t now)
{
    double best = 1e9;
    size_t open = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double ms = effective_ms(specs, now, &open);
        best = MIN(best, ms);
    }
    double peer = peer_ms(specs, now) * OBJECTS / PEER_OBJECTS;
    printf("%-26s %7.2f ms (%.0f ns per trigger, %zu windows open)\n", when, best,
           best * 1e6 / (OBJECTS * TRIGGERS), open);
    printf(
        "%-26s %7.2f ms by localtime/mktime, two edges per trigger (from %d objects): %.1f times\n",
        "", peer, PEER_OBJECTS, peer / best);
    char what[80];
    snprintf(what, sizeof(what), "effective() of %d schedules, %s", OBJECTS, when);
    budget(what, best, 50, "ms");
}

/* ---- calendars */

/* All-day events and meetings on random days of ten years; `rules` of the events recur. */
static void write_calendar(struct buf *out, struct random *r, uint32_t rules)
{
    static const char *const repeats[] = { "FREQ=YEARLY", "FREQ=WEEKLY;BYDAY=MO,WE;INTERVAL=2",
                                           "FREQ=MONTHLY;BYDAY=-1FR",
                                           "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH" };
    buf_clear(out);
    buf_put(out, S("BEGIN:VCALENDAR\n"));
    for (uint32_t i = 0; i < EVENTS; i++) {
        struct civil_date d = civil_from_days(20000 + random_below(r, 3650));
        buf_printf(out, "BEGIN:VEVENT\nUID:%u\nSUMMARY:day %u\n", i, i);
        if (random_below(r, 4))
            buf_printf(out, "DTSTART;VALUE=DATE:%04d%02d%02d\n", (int)d.year, d.month, d.day);
        else
            buf_printf(out, "DTSTART;TZID=Europe/Berlin:%04d%02d%02dT180000\nDURATION:PT10H\n",
                       (int)d.year, d.month, d.day);
        if (i < rules)
            buf_printf(out, "RRULE:%s\n", repeats[i % countof(repeats)]);
        buf_put(out, S("END:VEVENT\n"));
    }
    buf_put(out, S("END:VCALENDAR\n"));
}

static void measure_calendars(uint32_t rules)
{
    struct random r;
    random_init(&r, 3, rules);
    struct schedule_calendar **all = mem_zero(CALENDARS, sizeof(struct schedule_calendar *));
    auto_buf struct buf text = { 0 };
    size_t bytes = 0, hits = 0;
    int64_t before = clock_cpu_ns(), parsed = 0;
    for (int i = 0; i < CALENDARS; i++) {
        err_t e;
        write_calendar(&text, &r, rules);
        before = clock_cpu_ns();
        if (schedule_calendar_parse(buf_str(&text), tz_get, &all[i], &e) < 0) {
            printf("%s\n", e.text);
            exit(EXIT_FAILURE);
        }
        parsed += clock_cpu_ns() - before;
        bytes += schedule_calendar_bytes(all[i]);
    }
    const struct tz *zone = NULL;
    if (tz_get(S("America/New_York"), &zone, NULL) < 0)
        zone = tz_utc();
    before = clock_cpu_ns();
    for (int i = 0; i < LOOKUPS; i++)
        hits += schedule_calendar_has_day(all[i % CALENDARS], zone, 20000 + random_below(&r, 3650));
    double us = (double)(clock_cpu_ns() - before) / 1e3 / LOOKUPS;
    printf(
        "%d calendars of %d events, %u of them recur: %.1f ms to read one, %.2f us per lookup (%zu of %d "
        "days found), %.1f MB; the last one's text has %.1f kB\n",
        CALENDARS, EVENTS, rules, (double)parsed / 1e6 / CALENDARS, us, hits, LOOKUPS,
        (double)bytes / 1e6, (double)text.n / 1e3);
    char what[80];
    snprintf(what, sizeof(what), "lookup in a calendar with %u rules", rules);
    budget(what, us / 1e3, 1, "ms");
    snprintf(what, sizeof(what), "%d calendars with %u rules", CALENDARS, rules);
    budget(what, (double)bytes / 1e6, 64, "MB");
    for (int i = 0; i < CALENDARS; i++)
        schedule_calendar_free(all[i]);
    free(all);
}

int main(void)
{
    struct random r;
    random_init(&r, 7, 7);
    struct schedule_spec *specs = mem_zero(OBJECTS, sizeof(*specs));
    for (size_t i = 0; i < OBJECTS; i++) {
        specs[i].triggers = mem_zero(TRIGGERS, sizeof(*specs[i].triggers));
        specs[i].triggers_n = TRIGGERS;
        for (size_t k = 0; k < TRIGGERS; k++)
            specs[i].triggers[k] = make_trigger(&r, i * TRIGGERS + k);
    }
    printf("effective() for %d objects of %d triggers in %zu zones, best of %d, CPU time\n",
           OBJECTS, TRIGGERS, countof(zones), ROUNDS);
    measure("an ordinary day", specs, INT64_C(1780488000));       /* 2026-06-03 */
    measure("the day clocks change", specs, INT64_C(1774753200)); /* 2026-03-29 */
    for (size_t i = 0; i < OBJECTS; i++)
        free(specs[i].triggers);
    free(specs);
    measure_calendars(0);
    measure_calendars(EVENTS / 10);
    measure_calendars(EVENTS);
    return EXIT_SUCCESS;
}
