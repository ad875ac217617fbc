/* The rule of KEDA's cron scaler, for people who come from it: two cron lines in a zone, active between the
 * one and the other. What a line means around daylight saving is what the Go cron library does that KEDA
 * stands on: a time in a gap is skipped, a repeated one comes twice, and some zones lose a day. Our own
 * schedules do none of that (schedule_windows_core.h); here it is kept so that a comparison is exact. */
#ifndef FLYBALL_SCHEDULE_CRON_CORE_H
#define FLYBALL_SCHEDULE_CRON_CORE_H

#include "../base/tz.h"

/* Sets of allowed values, a bit each. */
struct schedule_cron {
    uint64_t minutes, hours, days, months, weekdays;
    bool any_day, any_weekday; /* written as a star: then both must hold, else either */
};

/* "30 6 * * 1-5": minute, hour, day, month, weekday, each a list of values, ranges and steps, months and
 * weekdays also by name; or a word such as @daily. */
int schedule_cron_parse(str text, struct schedule_cron *ret, err_t *e);

/* The first time after `now`; false: none within five years. */
bool schedule_cron_next(const struct schedule_cron *cron, const struct tz *zone, int64_t now,
                        int64_t *ret_next);

struct schedule_cron_now {
    int64_t next_start, next_end; /* INT64_MAX: never */
    bool active;                  /* the end comes first, or both at once */
};

struct schedule_cron_now schedule_cron_at(const struct schedule_cron *start,
                                          const struct schedule_cron *end, const struct tz *zone,
                                          int64_t now);

#endif
