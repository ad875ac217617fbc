/* The rule of KEDA's cron scaler, for users who migrate from it: two cron lines in a time zone, active
 * between a time of the first and the next time of the second. Around daylight saving a line means what
 * it means in the Go cron library that KEDA uses: a time in a gap is skipped, a repeated time occurs
 * twice, and some zones lose a day. Our own schedules do none of that (schedule_windows_core.h); it is
 * kept here so that a comparison of both is exact. */
#ifndef FLYBALL_SCHEDULE_CRON_CORE_H
#define FLYBALL_SCHEDULE_CRON_CORE_H

#include "../base/tz.h"

/* Sets of allowed values, one bit per value. */
struct schedule_cron {
    uint64_t minutes, hours, days, months, weekdays;
    bool any_day, any_weekday; /* written as "*": both fields must match; otherwise either */
};

/* "30 6 * * 1-5": minute, hour, day, month, weekday, each a list of values, ranges and steps; months and
 * weekdays also by name; or a macro such as @daily. */
int schedule_cron_parse(str text, struct schedule_cron *ret, err_t *e);

/* Does any date match? "0 9 30 2 *" never does. */
bool schedule_cron_has_times(const struct schedule_cron *cron);
#define SCHEDULE_CRON_NEVER "it never matches: none of its months has one of its days"

/* The first matching time after `now`; false: none within five years. */
bool schedule_cron_next(const struct schedule_cron *cron, const struct tz *zone, int64_t now,
                        int64_t *ret_next);

/* For evaluation on the wall clock, without the library's rules on daylight saving: */

/* Does a line select this day (days since 1970-01-01), and does it select every day? */
bool schedule_cron_has_day(const struct schedule_cron *cron, int64_t day);
bool schedule_cron_is_daily(const struct schedule_cron *cron);
/* The last matching minute of a day up to this one, or the first from this one on; -1: none. */
int schedule_cron_minute_before(const struct schedule_cron *cron, int minute);
int schedule_cron_minute_after(const struct schedule_cron *cron, int minute);

struct schedule_cron_now {
    int64_t next_start, next_end; /* INT64_MAX: never */
    bool active;                  /* the end comes first, or both at once */
};

struct schedule_cron_now schedule_cron_at(const struct schedule_cron *start,
                                          const struct schedule_cron *end, const struct tz *zone,
                                          int64_t now);

#endif
