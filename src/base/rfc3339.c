/* RFC 3339: see rfc3339.h.
 *
 * Functions named take_* consume a prefix of `*rest` and return false if it is not there; a false
 * anywhere rejects the whole text, so they need not restore `*rest`. Widths are fixed and nothing
 * is optional except the fraction, because this is Go's time.RFC3339 layout: lower-case letters, a
 * space instead of T and offsets without a colon are errors. strptime() was not an option: it
 * depends on the locale and accepts all of those. */
#include "rfc3339.h"

#include "civil.h"

#include <stdio.h>

struct instant {
    int64_t s;     /* since 1970, UTC */
    int64_t ns;    /* 0 to 999,999,999, also before 1970 */
    size_t digits; /* of the fraction, as written */
};

/* Exactly `digits` decimal digits. */
static bool take_number(str *rest, size_t digits, int *ret)
{
    if (rest->n < digits)
        return false;
    int value = 0;
    for (size_t i = 0; i < digits; i++) {
        if (rest->p[i] < '0' || rest->p[i] > '9')
            return false;
        value = value * 10 + (rest->p[i] - '0');
    }
    *rest = str_from(*rest, digits);
    *ret = value;
    return true;
}

static bool take_char(str *rest, char c)
{
    if (!rest->n || rest->p[0] != c)
        return false;
    *rest = str_from(*rest, 1);
    return true;
}

bool rfc3339_take_date(str *rest, int64_t *ret_days)
{
    int year, month, day;
    if (!take_number(rest, 4, &year) || !take_char(rest, '-') || !take_number(rest, 2, &month) ||
        !take_char(rest, '-') || !take_number(rest, 2, &day))
        return false;
    struct civil_date date = { year, month, day };
    if (!civil_is_date(date))
        return false;
    *ret_days = civil_to_days(date);
    return true;
}

static bool take_time(str *rest, int64_t *ret_s)
{
    int hour, minute, second;
    if (!take_number(rest, 2, &hour) || !take_char(rest, ':') || !take_number(rest, 2, &minute) ||
        !take_char(rest, ':') || !take_number(rest, 2, &second))
        return false;
    *ret_s = hour * 3600 + minute * 60 + second;
    return hour < 24 && minute < 60 && second < 60;
}

/* Digits beyond the ninth are consumed and ignored. */
static bool take_fraction(str *rest, struct instant *at)
{
    int64_t scale = 100000000;
    for (; rest->n && rest->p[0] >= '0' && rest->p[0] <= '9'; *rest = str_from(*rest, 1)) {
        at->ns += (rest->p[0] - '0') * scale;
        scale /= 10;
        at->digits++;
    }
    return at->digits > 0;
}

static bool take_offset(str *rest, int64_t *ret_s)
{
    *ret_s = 0;
    if (take_char(rest, 'Z'))
        return true;
    bool west = take_char(rest, '-');
    int hours, minutes;
    if ((!west && !take_char(rest, '+')) || !take_number(rest, 2, &hours) ||
        !take_char(rest, ':') || !take_number(rest, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_s = (west ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

static bool parse_instant(str rest, struct instant *ret)
{
    struct instant at = { 0 };
    int64_t days, time, offset;
    if (!rfc3339_take_date(&rest, &days) || !take_char(&rest, 'T') || !take_time(&rest, &time))
        return false;
    if (take_char(&rest, '.') && !take_fraction(&rest, &at))
        return false;
    if (!take_offset(&rest, &offset) || rest.n)
        return false;
    at.s = days * CIVIL_DAY_S + time - offset;
    *ret = at;
    return true;
}

static int refuse_text(str text, const char *example, err_t *e)
{
    return err_set(e, EINVAL, "time \"" STR_FMT "\" is not an RFC 3339 timestamp such as %s",
                   STR_ARG(text), example);
}

int rfc3339_parse(str text, int64_t *ret_s, err_t *e)
{
    struct instant at;
    if (!parse_instant(text, &at))
        return refuse_text(text, "2026-01-05T11:15:44Z", e);
    *ret_s = at.s;
    return 0;
}

int rfc3339_parse_ns(str text, int64_t *ret_ns, err_t *e)
{
    struct instant at;
    int64_t ns;
    if (!parse_instant(text, &at))
        return refuse_text(text, "2026-01-05T11:15:44Z", e);
    if (__builtin_mul_overflow(at.s, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, at.ns, &ns))
        return err_set(e, ERANGE, "time \"" STR_FMT "\" is not between the years 1678 and 2261",
                       STR_ARG(text));
    *ret_ns = ns;
    return 0;
}

int rfc3339_parse_micro(str text, int64_t *ret_us, err_t *e)
{
    struct instant at;
    if (!parse_instant(text, &at) || at.digits != 6)
        return refuse_text(text, "2026-01-05T11:15:44.000000Z (six decimal places)", e);
    *ret_us = at.s * 1000000 + at.ns / 1000;
    return 0;
}

/* Years before 1 and after 9999 print with more characters; RFC3339_TEXT_MAX has room for any int64_t. */
static int print_seconds(int64_t seconds, char out[static RFC3339_TEXT_MAX])
{
    int64_t days = civil_day_of(seconds);
    struct civil_date date = civil_from_days(days);
    int time = (int)((seconds % CIVIL_DAY_S + CIVIL_DAY_S) % CIVIL_DAY_S);
    return snprintf(out, RFC3339_TEXT_MAX, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)date.year,
                    date.month, date.day, time / 3600, time / 60 % 60, time % 60);
}

str rfc3339_text(int64_t seconds, char out[static RFC3339_TEXT_MAX])
{
    int n = print_seconds(seconds, out);
    n += snprintf(out + n, (size_t)(RFC3339_TEXT_MAX - n), "Z");
    return (str){ out, (size_t)n };
}

str rfc3339_micro_text(int64_t microseconds, char out[static RFC3339_TEXT_MAX])
{
    int64_t seconds = microseconds / 1000000 - (microseconds % 1000000 < 0);
    int n = print_seconds(seconds, out);
    n += snprintf(out + n, (size_t)(RFC3339_TEXT_MAX - n), ".%06dZ",
                  (int)((microseconds % 1000000 + 1000000) % 1000000));
    return (str){ out, (size_t)n };
}
