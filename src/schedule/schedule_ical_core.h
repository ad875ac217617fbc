/* The events of an iCalendar text. Used only by schedule_calendar_core.c. */
#ifndef FLYBALL_SCHEDULE_ICAL_CORE_H
#define FLYBALL_SCHEDULE_ICAL_CORE_H

#include "../base/arena.h"
#include "schedule_calendar_core.h"

enum { SCHEDULE_EVENT_DAYS_MAX = 400 }; /* longest event */

struct schedule_ical_event {
    struct schedule_rule rule; /* SCHEDULE_ONCE: only on rule.first_day */
    const struct tz *zone;     /* NULL: all-day, or local time wherever it is read */
    bool all_day;
    int32_t second;    /* of the first day, at which it starts */
    int64_t length;    /* in days if all_day, otherwise in seconds */
    int32_t *excluded; /* days of occurrences that do not take place */
    size_t excluded_n;
};

int schedule_ical_read(struct arena *a, str text, schedule_calendar_zone_fn *find_zone,
                       struct schedule_ical_event **ret, size_t *ret_n, err_t *e);

#endif
