/* The rule at the end of a TZif file: a POSIX TZ string such as "CET-1CEST,M3.5.0,M10.5.0/3", which
 * applies after the last listed transition. Used by tz.c only. */
#ifndef FLYBALL_TZ_RULE_H
#define FLYBALL_TZ_RULE_H

#include "tz.h"

enum { TZ_OFFSET_LIMIT = 26 * 3600 }; /* seconds; the absolute value of an offset is smaller */

struct tz_date {
    enum { TZ_MONTH_WEEK_DAY, TZ_JULIAN, TZ_DAY_OF_YEAR } kind;
    int month, week, day; /* M: 1..12, 1..5 (5: the last), 0..6. J: day 1..365. n: day 0..365 */
    int32_t time; /* seconds after midnight of that day; may be negative or more than a day */
};

struct tz_rule {
    bool has_dst;
    int32_t standard, daylight; /* offsets in seconds */
    struct tz_date start, end;  /* of daylight time, each in the local time before the change */
};

int tz_rule_parse(str text, struct tz_rule *ret);
struct tz_span tz_rule_span(const struct tz_rule *rule, int64_t utc); /* |utc| below 2^60 */

#endif
