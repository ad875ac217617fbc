/* Cron lines: what is read, what is refused, and the library's ways around daylight saving. The vectors of
 * smarthpa-keda-cron hold the ordinary days. */
#include "base/rfc3339.h"
#include "schedule/schedule_cron_core.h"
#include "tap.h"

static void lines_are_read(void)
{
    static const struct {
        const char *text;
        uint64_t minutes, hours, days, months, weekdays;
    } t[] = {
        { "0 9 1 1 0", 1, 1 << 9, 1 << 1, 1 << 1, 1 },
        { "*/20 0-3 28-31/2 jan,MAR mon-WED", 1 | UINT64_C(1) << 20 | UINT64_C(1) << 40, 0xf,
          UINT64_C(1) << 28 | UINT64_C(1) << 30, 1 << 1 | 1 << 3, 0xe },
        { " 50/4  22/1 5 ? * ", UINT64_C(1) << 50 | UINT64_C(1) << 54 | UINT64_C(1) << 58, 3 << 22,
          1 << 5, 0x1ffe, 0x7f },
        { "@weekly", 1, 1, 0xfffffffe, 0x1ffe, 1 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct schedule_cron c;
        err_t e;
        if (!OK_CALL(schedule_cron_parse(str_c(t[i].text), &c, &e), &e))
            continue;
        OK(c.minutes == t[i].minutes && c.hours == t[i].hours && c.days == t[i].days &&
           c.months == t[i].months && c.weekdays == t[i].weekdays);
    }
}

static void odd_lines_are_refused(void)
{
    static const char *const t[] = { "",
                                     "* * * *",
                                     "* * * * * *",
                                     "60 * * * *",
                                     "* 24 * * *",
                                     "* * 0 * *",
                                     "* * * 13 *",
                                     "* * * * 7",
                                     "5-1 * * * *",
                                     "*/0 * * * *",
                                     "1- * * * *",
                                     "-1 * * * *",
                                     "1,, * * * *",
                                     "x * * * *",
                                     "@reboot",
                                     "1/x * * * *",
                                     "99999999999999999999 * * * *" };
    for (size_t i = 0; i < countof(t); i++) {
        struct schedule_cron c;
        err_t e = { 0 };
        OK(schedule_cron_parse(str_c(t[i]), &c, &e) < 0);
        OK(str_find(str_c(e.text), str_c(t[i])) != SIZE_MAX);
    }
}

static void clocks_that_jump(void)
{
    static const struct {
        const char *line, *zone, *now, *next; /* NULL: none within five years */
    } t[] = {
        { "30 2 * * *", "America/New_York", "2026-03-08T06:00:00Z", "2026-03-09T06:30:00Z" },
        { "30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z" },
        { "0 9 * * 5", "Africa/Cairo", "2026-04-23T06:00:00Z", "2026-05-01T06:00:00Z" },
        { "0 0 29 2 *", "UTC", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z" },
        { "0 0 30 2 *", "UTC", "2026-03-01T00:00:00Z", NULL },
        { "0 0 13 * 5", "UTC", "2026-06-03T00:00:00Z", "2026-06-05T00:00:00Z" }, /* either */
        { "0 0 13 */1 *", "UTC", "2026-06-03T00:00:00Z", "2026-06-13T00:00:00Z" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct schedule_cron c;
        const struct tz *zone;
        int64_t now, want = 0, next = 0;
        err_t e;
        OK_CALL(schedule_cron_parse(str_c(t[i].line), &c, &e), &e);
        OK_CALL(tz_get(str_c(t[i].zone), &zone, &e), &e);
        OK_CALL(rfc3339_parse(str_c(t[i].now), &now, &e), &e);
        if (t[i].next)
            OK_CALL(rfc3339_parse(str_c(t[i].next), &want, &e), &e);
        EQ_INT(schedule_cron_next(&c, zone, now, &next), t[i].next != NULL);
        EQ_INT(next, want);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(lines_are_read), TAP(odd_lines_are_refused), TAP(clocks_that_jump), { 0 } });
}
