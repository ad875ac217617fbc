/* Recurrence rules of iCalendar (RFC 5545, 3.3.10), as far as whole days go: FREQ from DAILY to YEARLY with INTERVAL,
 * COUNT, UNTIL, BYDAY, BYMONTH, BYMONTHDAY and WKST. A rule is never expanded: whether it selects a day is decided from
 * the day itself, so that a rule without an end costs no more than one with ten occurrences. */
#ifndef FLYBALL_SCHEDULE_RULE_CORE_H
#define FLYBALL_SCHEDULE_RULE_CORE_H

#include "../base/civil.h"
#include "../base/err.h"
#include "../base/str.h"

enum schedule_freq {
    SCHEDULE_ONCE, /* no rule */
    SCHEDULE_DAILY,
    SCHEDULE_WEEKLY,
    SCHEDULE_MONTHLY,
    SCHEDULE_YEARLY,
};

enum { SCHEDULE_ORDINALS_MAX = 14 };

struct schedule_rule { /* packed: there may be half a million of them */
    int32_t interval;  /* at least 1 */
    int32_t count; /* occurrences; 0: not limited. schedule_rule_finish() turns it into last_day */
    int32_t first_day, last_day; /* days since 1970-01-01; INT32_MAX: no end */
    struct {
        int32_t year;
        uint8_t month, day;
    } first;                  /* the date of first_day */
    uint16_t months;          /* bit 1 is January; 0: all */
    uint32_t month_days;      /* bit 1 is the first day of the month */
    uint32_t month_days_back; /* bit 1 is the last day of the month */
    uint8_t freq;             /* enum schedule_freq */
    uint8_t weekdays;         /* bit 0 is Sunday; without a number */
    uint8_t week_start;       /* 0 is Sunday */
    uint8_t ordinals_n;
    struct {
        int8_t number; /* 1 is the first one of the month or year, -1 the last */
        uint8_t weekday;
    } ordinals[SCHEDULE_ORDINALS_MAX];
};

/* Reads the value of RRULE. UNTIL is returned as text: its meaning depends on the event. */
int schedule_rule_parse(str text, struct schedule_rule *ret, str *ret_until, err_t *e);

/* Sets the first day and resolves COUNT. Days that were looked at are taken off `*budget`; -E2BIG if it is used up,
 * so that no text can keep the reader busy for long. */
int schedule_rule_finish(struct schedule_rule *r, int32_t first_day, int64_t *budget);

bool schedule_rule_has_day(const struct schedule_rule *r, int64_t day);

#endif
