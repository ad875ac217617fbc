/* Recurrence rules: see schedule_rule_core.h.
 *
 * A rule selects a day if the day's period (day, week, month or year) is a multiple of INTERVAL away from that of the
 * first day, and every BY part that is given selects it. Parts that are not given are taken from the first day: a
 * yearly rule without any is a birthday. This is how dateutil reads rules, with which the tests compare. */
#include "schedule_rule_core.h"

static const char *const weekday_codes[7] = { "SU", "MO", "TU", "WE", "TH", "FR", "SA" };

/* ---- matching */

static bool has_bit(uint32_t set, int at)
{
    return set >> at & 1;
}

/* Whether the day is in a period (day, week, month or year) that INTERVAL selects, counted from the first one. */
static bool in_period(const struct schedule_rule *r, int64_t day, const struct civil_date *date)
{
    int64_t apart = 0;
    switch (r->freq) {
    case SCHEDULE_ONCE:
        return day == r->first_day;
    case SCHEDULE_DAILY:
        apart = day - r->first_day;
        break;
    case SCHEDULE_WEEKLY: {
        int64_t monday = r->first_day - (civil_weekday(r->first_day) - r->week_start + 7) % 7;
        apart = (day - monday) / 7;
        break;
    }
    case SCHEDULE_MONTHLY:
        apart = (date->year - r->first.year) * 12 + date->month - r->first.month;
        break;
    case SCHEDULE_YEARLY:
        apart = date->year - r->first.year;
        break;
    }
    return apart % r->interval == 0;
}

/* Is this the nth such weekday of the month, or of the year if the rule names no month? */
static bool is_ordinal(const struct schedule_rule *r, int number, int64_t day,
                       const struct civil_date *date)
{
    bool of_year = r->freq == SCHEDULE_YEARLY && !r->months;
    int64_t first =
        of_year ? civil_to_days((struct civil_date){ date->year, 1, 1 }) : day - date->day + 1;
    int64_t length =
        of_year ? 365 + civil_is_leap(date->year) : civil_month_days(date->year, date->month);
    int64_t nth = (day - first) / 7 + 1, nth_back = (first + length - 1 - day) / 7 + 1;
    return number > 0 ? nth == number : nth_back == -number;
}

static bool weekday_matches(const struct schedule_rule *r, int64_t day,
                            const struct civil_date *date)
{
    int weekday = civil_weekday(day);
    if (has_bit(r->weekdays, weekday))
        return true;
    for (int i = 0; i < r->ordinals_n; i++)
        if (r->ordinals[i].weekday == weekday && is_ordinal(r, r->ordinals[i].number, day, date))
            return true;
    return false;
}

/* A rule without BYDAY and BYMONTHDAY repeats the weekday or the date of its first day. */
static bool default_matches(const struct schedule_rule *r, int64_t day,
                            const struct civil_date *date)
{
    if (r->freq == SCHEDULE_WEEKLY)
        return civil_weekday(day) == civil_weekday(r->first_day);
    if (r->freq == SCHEDULE_MONTHLY)
        return date->day == r->first.day;
    if (r->freq == SCHEDULE_YEARLY)
        return date->day == r->first.day && (r->months || date->month == r->first.month);
    return true;
}

bool schedule_rule_has_day(const struct schedule_rule *r, int64_t day)
{
    if (day < r->first_day || day > r->last_day)
        return false;
    struct civil_date date = civil_from_days(day);
    if (!in_period(r, day, &date) || (r->months && !has_bit(r->months, date.month)))
        return false;
    bool by_date = r->month_days || r->month_days_back, by_weekday = r->weekdays || r->ordinals_n;
    if (by_date && !has_bit(r->month_days, date.day) &&
        !has_bit(r->month_days_back, civil_month_days(date.year, date.month) - date.day + 1))
        return false;
    if (by_weekday && !weekday_matches(r, day, &date))
        return false;
    return by_date || by_weekday || default_matches(r, day, &date);
}

int schedule_rule_finish(struct schedule_rule *r, int32_t first_day, int64_t *budget)
{
    enum { LAST_DAY = 100000 }; /* the year 2243 */
    r->first_day = first_day;
    struct civil_date first = civil_from_days(first_day);
    r->first.year = (int32_t)first.year;
    r->first.month = (uint8_t)first.month;
    r->first.day = (uint8_t)first.day;
    if (!r->count)
        return 0;
    int32_t left = r->count, until = r->last_day, day = first_day;
    for (; left && day <= MIN(until, LAST_DAY); day++) {
        if (--*budget < 0)
            return -E2BIG;
        left -= schedule_rule_has_day(r, day);
    }
    if (!left)
        r->last_day = day - 1;
    return 0;
}

/* ---- parsing */

/* An integer between two limits, with a sign if they allow it. */
static bool read_number(str text, int64_t least, int64_t most, int64_t *ret)
{
    if (text.n && text.p[0] == '+')
        text = str_from(text, 1);
    return text.n && text.n < 10 && str_to_i64(text, ret) == 0 && *ret >= least && *ret <= most;
}

static bool read_weekday(str text, uint8_t *ret)
{
    for (uint8_t i = 0; i < 7; i++)
        if (str_eq_nocase(text, str_c(weekday_codes[i]))) {
            *ret = i;
            return true;
        }
    return false;
}

/* "MO", "1FR", "-1SU" */
static bool read_by_day(struct schedule_rule *r, str item)
{
    uint8_t weekday;
    int64_t number;
    if (item.n < 2 || !read_weekday(str_from(item, item.n - 2), &weekday))
        return false;
    str prefix = str_upto(item, item.n - 2);
    if (!prefix.n) {
        r->weekdays = (uint8_t)(r->weekdays | 1u << weekday);
        return true;
    }
    if (!read_number(prefix, -53, 53, &number) || !number || r->ordinals_n == SCHEDULE_ORDINALS_MAX)
        return false;
    r->ordinals[r->ordinals_n].number = (int8_t)number;
    r->ordinals[r->ordinals_n++].weekday = weekday;
    return true;
}

static bool read_by_month(struct schedule_rule *r, str item)
{
    int64_t month;
    bool good = read_number(item, 1, 12, &month);
    if (good)
        r->months = (uint16_t)(r->months | 1u << month);
    return good;
}

static bool read_by_month_day(struct schedule_rule *r, str item)
{
    int64_t day;
    if (!read_number(item, -31, 31, &day) || !day)
        return false;
    if (day > 0)
        r->month_days |= UINT32_C(1) << day;
    else
        r->month_days_back |= UINT32_C(1) << -day;
    return true;
}

typedef bool read_item_fn(struct schedule_rule *r, str item);

static bool read_list(struct schedule_rule *r, str list, read_item_fn *read_item)
{
    str item;
    bool any = false;
    while (str_cut(&list, ',', &item)) {
        if (!read_item(r, item))
            return false;
        any = true;
    }
    return any;
}

static bool read_freq(struct schedule_rule *r, str value)
{
    static const char *const words[] = { "", "DAILY", "WEEKLY", "MONTHLY", "YEARLY" };
    for (int i = 1; i < 5; i++)
        if (str_eq_nocase(value, str_c(words[i])))
            r->freq = (uint8_t)i;
    return r->freq != SCHEDULE_ONCE;
}

/* One NAME=VALUE part; false: unknown or invalid. */
static bool read_part(struct schedule_rule *r, str name, str value, str *until)
{
    int64_t number = 0;
    if (str_eq_nocase(name, S("FREQ")))
        return read_freq(r, value);
    if (str_eq_nocase(name, S("INTERVAL"))) {
        bool good = read_number(value, 1, 100000, &number);
        r->interval = (int32_t)number;
        return good;
    }
    if (str_eq_nocase(name, S("COUNT"))) {
        bool good = read_number(value, 1, 1000000, &number);
        r->count = (int32_t)number;
        return good;
    }
    if (str_eq_nocase(name, S("UNTIL"))) {
        *until = value;
        return value.n > 0;
    }
    if (str_eq_nocase(name, S("BYDAY")))
        return read_list(r, value, read_by_day);
    if (str_eq_nocase(name, S("BYMONTH")))
        return read_list(r, value, read_by_month);
    if (str_eq_nocase(name, S("BYMONTHDAY")))
        return read_list(r, value, read_by_month_day);
    return str_eq_nocase(name, S("WKST")) && read_weekday(value, &r->week_start);
}

/* Numbers of weekdays have no meaning below a month; dateutil ignores them there. */
static void drop_ordinals(struct schedule_rule *r)
{
    for (int i = 0; i < r->ordinals_n; i++)
        r->weekdays = (uint8_t)(r->weekdays | 1u << r->ordinals[i].weekday);
    r->ordinals_n = 0;
}

/* Parts that would change the days and are not supported are an error, never ignored. */
int schedule_rule_parse(str text, struct schedule_rule *ret, str *ret_until, err_t *e)
{
    struct schedule_rule r = { .interval = 1, .last_day = INT32_MAX, .week_start = 1 };
    str part, until = S("");
    while (str_cut(&text, ';', &part)) {
        size_t equals = str_find_char(part, '=');
        if (equals == SIZE_MAX ||
            !read_part(&r, str_upto(part, equals), str_from(part, equals + 1), &until))
            return err_set(e, EINVAL,
                           "RRULE part \"" STR_FMT
                           "\" is not supported; use FREQ (DAILY to YEARLY), INTERVAL, COUNT, "
                           "UNTIL, BYDAY, BYMONTH, BYMONTHDAY or WKST",
                           STR_ARG(str_upto(part, 60)));
    }
    if (r.freq == SCHEDULE_ONCE)
        return err_set(e, EINVAL, "RRULE has no FREQ");
    if (r.freq == SCHEDULE_DAILY || r.freq == SCHEDULE_WEEKLY)
        drop_ordinals(&r);
    *ret = r;
    *ret_until = until;
    return 0;
}
