/* The civil calendar as numbers: proleptic Gregorian dates and days since 1970-01-01. No zones, no
 * clock; exact for every year that fits in 64-bit seconds. */
#ifndef FLYBALL_CIVIL_H
#define FLYBALL_CIVIL_H

#include "base.h"

#define CIVIL_DAY_S INT64_C(86400)

struct civil_date {
    int64_t year;
    int month; /* 1..12 */
    int day;   /* 1..31 */
};

bool civil_is_leap(int64_t year);
int civil_month_days(int64_t year, int month);
bool civil_is_date(struct civil_date date); /* false for 2026-02-30 */

int64_t civil_to_days(struct civil_date date); /* since 1970-01-01; the date must be valid */
struct civil_date civil_from_days(int64_t days);
int civil_weekday(int64_t days); /* 0 is Sunday */

/* The day that contains a second; rounds down before 1970 too. */
static inline int64_t civil_day_of(int64_t seconds)
{
    return seconds / CIVIL_DAY_S - (seconds % CIVIL_DAY_S < 0);
}

#endif
