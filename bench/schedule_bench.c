/* schedule: what holds now, for 10,000 objects of 10 triggers in 23 zones. Budget: 50 ms of CPU.
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
    printf("%-26s %7.2f ms (%.0f ns a trigger, %zu windows open)\n", when, best,
           best * 1e6 / (OBJECTS * TRIGGERS), open);
    printf(
        "%-26s %7.2f ms by localtime/mktime, two edges a trigger (from %d objects): %.1f times\n",
        "", peer, PEER_OBJECTS, peer / best);
    char what[80];
    snprintf(what, sizeof(what), "effective() of %d schedules, %s", OBJECTS, when);
    budget(what, best, 50, "ms");
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
    return EXIT_SUCCESS;
}
