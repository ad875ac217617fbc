/* Calendars of dates, such as public holidays: iCalendar text (RFC 5545) as a set of days.
 *
 * Read are VEVENTs with DTSTART, DTEND or DURATION, RRULE (schedule_rule_core.h) and EXDATE; dates, local times with a
 * TZID, floating and UTC times. A day belongs to the calendar if any part of an event falls on it, in the zone of the
 * trigger that asks. Cancelled events and other components are skipped. Anything else that would change the answer
 * (RDATE, RECURRENCE-ID, unknown rule parts, unknown zones) is an error: half a calendar is worse than an old one.
 *
 * A calendar is one block of memory and never changes; events that do not recur are merged. */
#ifndef FLYBALL_SCHEDULE_CALENDAR_CORE_H
#define FLYBALL_SCHEDULE_CALENDAR_CORE_H

#include "../base/tz.h"
#include "../json/json.h"
#include "schedule_rule_core.h"

struct schedule_calendar;

/* Must agree with schedule_zone_fn of schedule_spec.h. */
typedef int schedule_calendar_zone_fn(str name, const struct tz **ret, err_t *e);

enum { SCHEDULE_CALENDAR_EVENTS_MAX = 20000 };

int schedule_calendar_parse(str text, schedule_calendar_zone_fn *find_zone,
                            struct schedule_calendar **ret, err_t *e);
/* The text of a calendar in the data of a ConfigMap: the key calendar.ics, or the only key; empty: neither. */
str schedule_calendar_text(const struct json *data);
void schedule_calendar_free(struct schedule_calendar *c);

/* Is any part of an event on this local day of the zone (days since 1970-01-01)? */
bool schedule_calendar_has_day(const struct schedule_calendar *c, const struct tz *zone,
                               int64_t day);

/* No event is on a day before the first or after the last one. INT64_MAX as last: a rule has no end. */
void schedule_calendar_range(const struct schedule_calendar *c, int64_t *ret_first,
                             int64_t *ret_last);

size_t schedule_calendar_events(const struct schedule_calendar *c);
size_t schedule_calendar_bytes(const struct schedule_calendar *c);

#endif
