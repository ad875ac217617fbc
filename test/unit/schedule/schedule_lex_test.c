/* Words that the golden vectors do not have; they have the rest. */
#include "schedule/schedule_lex.h"
#include "tap.h"

static void times(void)
{
    static const struct {
        const char *text;
        int32_t want; /* -1: refused */
    } cases[] = {
        { "0:00:00", 0 },
        { "23:59:59", 86399 },
        { "24:00:00", -1 },
        { "1:2:3", -1 },
        { "001:00:00", -1 },
        { "-1:00:00", -1 },
        { "", -1 },
        { "09:00", -1 },
        { "09:00:00.000", 32400 },
        { "09:00:00.5x", -1 },
        { "09:00:00..5", -1 },
        { "\xd9\xa0\xd9\xa9:00:00", -1 },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        int32_t got = -1;
        int result = schedule_lex_time(str_c(cases[i].text), &got);
        EQ_INT(result, cases[i].want < 0 ? -EINVAL : 0);
        EQ_INT(got, cases[i].want);
    }
}

static void clocks(void)
{
    static const struct {
        const char *text;
        int32_t want; /* -1: refused */
    } cases[] = {
        { "09:05", 32700 },    { "9:05", 32700 }, { "23:59", 86340 },      { "00:00", 0 },
        { "09:05:00", 32700 }, { "24:00", -1 },   { "9am", -1 },           { "09:5", -1 },
        { "09:60", -1 },       { "09", -1 },      { "09:", -1 },           { "", -1 },
        { "09:05 ", -1 },      { "09:05:", -1 },  { "09:05:00,5", 32700 }, { "-1:00", -1 },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        int32_t got = -1;
        EQ_INT(schedule_lex_clock(str_c(cases[i].text), &got), cases[i].want < 0 ? -EINVAL : 0);
        EQ_INT(got, cases[i].want);
    }
}

static void dates(void)
{
    static const struct {
        const char *text;
        int32_t want; /* INT32_MIN: refused */
    } cases[] = {
        { "1970-01-01", 0 },         { "2000-03-01", 11017 },
        { "0001-01-01", -719162 },   { "9999-12-31", 2932896 },
        { "0000-01-01", INT32_MIN }, { "1900-02-29", INT32_MIN },
        { "2026-1-1", INT32_MIN },   { "2026-01-00", INT32_MIN },
        { "2026-00-01", INT32_MIN }, { "2026-01-01T00:00:00Z", INT32_MIN },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        int32_t got = INT32_MIN;
        int result = schedule_lex_date(str_c(cases[i].text), &got);
        EQ_INT(result, cases[i].want == INT32_MIN ? -EINVAL : 0);
        EQ_INT(got, cases[i].want);
    }
}

static void weekdays(void)
{
    static const struct {
        const char *word;
        int want; /* -1: unknown */
    } cases[] = {
        { "sun", 0 }, { "Monday", 1 }, { "tues", 2 }, { "WED", 3 },   { "thurs", 4 }, { "Fri", 5 },
        { "sa", 6 },  { "S", -1 },     { "T", -1 },   { "SUND", -1 }, { "", -1 },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        int got = -1;
        schedule_lex_weekday(str_c(cases[i].word), &got);
        EQ_INT(got, cases[i].want);
    }
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(times), TAP(clocks), TAP(dates), TAP(weekdays), { 0 } });
}
