/* Civil dates: see civil.h.
 *
 * Years start in March, so that the leap day is the last day of its year and the months before it
 * follow a fixed pattern: the first day of month m (March is 0) is day (153 m + 2) / 5 of the year.
 * The calendar repeats after an era of 400 years or 146097 days. No loop and no table: both
 * directions take constant time for any year. */
#include "civil.h"

enum { ERA_YEARS = 400, ERA_DAYS = 146097, DAYS_TO_1970 = 719468 /* from 0000-03-01 */ };

bool civil_is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int civil_month_days(int64_t year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return month == 2 && civil_is_leap(year) ? 29 : days[month - 1];
}

bool civil_is_date(struct civil_date date)
{
    return date.month >= 1 && date.month <= 12 && date.day >= 1 &&
           date.day <= civil_month_days(date.year, date.month);
}

/* C division truncates toward zero; years and days before the epoch need rounding down. */
static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

int64_t civil_to_days(struct civil_date date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t month = (date.month + 9) % 12;
    int64_t era = floor_div(year, ERA_YEARS);
    int64_t year_in_era = year - era * ERA_YEARS;
    int64_t day_in_year = (153 * month + 2) / 5 + date.day - 1;
    int64_t day_in_era = year_in_era * 365 + year_in_era / 4 - year_in_era / 100 + day_in_year;
    return era * ERA_DAYS + day_in_era - DAYS_TO_1970;
}

struct civil_date civil_from_days(int64_t days)
{
    days += DAYS_TO_1970;
    int64_t era = floor_div(days, ERA_DAYS);
    int64_t day_in_era = days - era * ERA_DAYS;
    /* remove the leap days, so that every year has 365 days */
    int64_t year_in_era =
        (day_in_era - day_in_era / 1460 + day_in_era / 36524 - day_in_era / 146096) / 365;
    int64_t day_in_year = day_in_era - (year_in_era * 365 + year_in_era / 4 - year_in_era / 100);
    int64_t month = (5 * day_in_year + 2) / 153;
    return (struct civil_date){
        .year = era * ERA_YEARS + year_in_era + (month >= 10),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_in_year - (153 * month + 2) / 5 + 1),
    };
}

int civil_weekday(int64_t days)
{
    int64_t weekday = (days + 4) % 7;
    return (int)(weekday < 0 ? weekday + 7 : weekday);
}
