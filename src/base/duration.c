/* Go durations: see duration.h.
 *
 *     duration   [+-] ( "0" | term { term } )
 *     term       digits [ "." digits ] unit
 *
 * Functions named take_* consume a prefix of `*rest`; they return what they read, and the caller
 * decides whether an empty prefix is an error.
 *
 * Two details follow Go rather than good taste. The magnitude is kept unsigned up to 2^63, so that
 * the most negative duration can be parsed. The fraction is converted through a double in the same
 * steps as in Go, so that the last nanosecond of "0.3333h" is the same; exact integer arithmetic
 * would be simpler, but would disagree with the API server. */
#include "duration.h"

#include <stdio.h>

#define MAGNITUDE_MAX (UINT64_C(1) << 63)

static const struct unit {
    const char *name;
    uint64_t ns;
} units[] = {
    { "ns", 1 },
    { "us", 1000 },
    { "\xc2\xb5s", 1000 }, /* U+00B5, micro sign */
    { "\xce\xbcs", 1000 }, /* U+03BC, Greek letter mu */
    { "ms", 1000000 },
    { "s", 1000000000 },
    { "m", 60 * UINT64_C(1000000000) },
    { "h", 3600 * UINT64_C(1000000000) },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int refuse_text(str text, err_t *e)
{
    return err_set(e, EINVAL,
                   "duration \"" STR_FMT
                   "\" is not a number with a unit (ns, us, ms, s, m, h) such as 30s or 1h30m",
                   STR_ARG(text));
}

static int refuse_range(str text, err_t *e)
{
    return err_set(e, ERANGE, "duration \"" STR_FMT "\" is longer than 292 years", STR_ARG(text));
}

/* The digits before the decimal point; false if the number exceeds 2^63. */
static bool take_whole(str *rest, uint64_t *ret)
{
    uint64_t value = 0;
    for (; rest->n && is_digit(rest->p[0]); *rest = str_from(*rest, 1)) {
        if (value > MAGNITUDE_MAX / 10)
            return false;
        value = value * 10 + (uint64_t)(rest->p[0] - '0');
        if (value > MAGNITUDE_MAX)
            return false;
    }
    *ret = value;
    return true;
}

struct fraction {
    uint64_t value;
    double scale; /* a power of ten: the fraction as written is value / scale */
};

/* The digits after the decimal point. Digits that no longer fit are consumed and ignored, as in
 * Go. */
static struct fraction take_fraction(str *rest)
{
    struct fraction f = { 0, 1 };
    bool full = false;
    for (; rest->n && is_digit(rest->p[0]); *rest = str_from(*rest, 1)) {
        uint64_t next = f.value * 10 + (uint64_t)(rest->p[0] - '0');
        full = full || f.value > (uint64_t)INT64_MAX / 10 || next > MAGNITUDE_MAX;
        if (!full)
            f = (struct fraction){ next, f.scale * 10 };
    }
    return f;
}

/* NULL: unknown unit. A unit extends to the next digit or point, so "1hm" is an unknown unit, not
 * two. */
static const struct unit *take_unit(str *rest)
{
    size_t n = 0;
    while (n < rest->n && rest->p[n] != '.' && !is_digit(rest->p[n]))
        n++;
    str name = str_upto(*rest, n);
    *rest = str_from(*rest, n);
    for (size_t i = 0; i < countof(units); i++)
        if (str_eqc(name, units[i].name))
            return &units[i];
    return NULL;
}

/* Adds one number with its unit to `*sum`, which never exceeds 2^63. */
static int take_term(str *rest, uint64_t *sum)
{
    size_t before = rest->n;
    uint64_t value, product;
    if (!take_whole(rest, &value))
        return -ERANGE;
    size_t digits = before - rest->n;
    struct fraction fraction = { 0, 1 };
    if (rest->n && rest->p[0] == '.') {
        *rest = str_from(*rest, 1);
        before = rest->n;
        fraction = take_fraction(rest);
        digits += before - rest->n;
    }
    if (digits == 0)
        return -EINVAL;
    const struct unit *unit = take_unit(rest);
    if (!unit)
        return -EINVAL;
    if (__builtin_mul_overflow(value, unit->ns, &product) || product > MAGNITUDE_MAX)
        return -ERANGE;
    product += (uint64_t)((double)fraction.value * ((double)unit->ns / fraction.scale));
    *sum += product; /* both at most 2^63 plus an hour: cannot wrap */
    return *sum > MAGNITUDE_MAX ? -ERANGE : 0;
}

int duration_parse(str text, int64_t *ret_ns, err_t *e)
{
    str rest = text;
    bool negative = rest.n && rest.p[0] == '-';
    if (negative || (rest.n && rest.p[0] == '+'))
        rest = str_from(rest, 1);
    if (rest.n == 0)
        return refuse_text(text, e);
    uint64_t sum = 0;
    if (!str_eq(rest, S("0")))
        while (rest.n) {
            int r = take_term(&rest, &sum);
            if (r)
                return r == -ERANGE ? refuse_range(text, e) : refuse_text(text, e);
        }
    if (!negative && sum == MAGNITUDE_MAX)
        return refuse_range(text, e);
    *ret_ns = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return 0;
}

/* "12.5" for 12500 and 3 digits: no trailing zeros, no trailing point. Returns the length. */
static size_t print_scaled(char *out, size_t room, uint64_t value, int digits)
{
    uint64_t scale = 1;
    for (int i = 0; i < digits; i++)
        scale *= 10;
    int n = snprintf(out, room, "%llu.%0*llu", (unsigned long long)(value / scale), digits,
                     (unsigned long long)(value % scale));
    size_t used = (size_t)n;
    while (used && out[used - 1] == '0')
        used--;
    return out[used - 1] == '.' ? used - 1 : used;
}

/* Below a second Go prints one unit with a fraction ("1.5ms"); from a second on it prints hours,
 * minutes and seconds without leading zero units ("1m0s"), and only the seconds have a fraction. */
str duration_text(int64_t ns, char out[static DURATION_TEXT_MAX])
{
    uint64_t left = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    size_t n = 0;
    if (ns < 0)
        out[n++] = '-';
    const char *unit = "s";
    int digits = 9;
    if (left > 0 && left < 1000)
        unit = "ns", digits = 0;
    else if (left > 0 && left < 1000000)
        unit = "\xc2\xb5s", digits = 3;
    else if (left > 0 && left < 1000000000)
        unit = "ms", digits = 6;
    uint64_t minute = 60 * UINT64_C(1000000000);
    uint64_t minutes = left / minute;
    if (minutes >= 60)
        n += (size_t)snprintf(out + n, DURATION_TEXT_MAX - n, "%lluh",
                              (unsigned long long)(minutes / 60));
    if (minutes > 0)
        n += (size_t)snprintf(out + n, DURATION_TEXT_MAX - n, "%llum",
                              (unsigned long long)(minutes % 60));
    left %= minute;
    if (digits == 0)
        n += (size_t)snprintf(out + n, DURATION_TEXT_MAX - n, "%llu", (unsigned long long)left);
    else
        n += print_scaled(out + n, DURATION_TEXT_MAX - n, left, digits);
    n += (size_t)snprintf(out + n, DURATION_TEXT_MAX - n, "%s", unit);
    return (str){ out, n };
}

str duration_prom_text(int64_t ns, char out[static DURATION_TEXT_MAX])
{
    static const struct {
        char unit;
        int64_t seconds;
    } steps[] = { { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 } };
    char unit = 's';
    int64_t count = MAX(ns / 1000000000, 1);
    for (size_t i = 0; ns > 0 && i < countof(steps); i++)
        if (ns % (steps[i].seconds * 1000000000) == 0) {
            unit = steps[i].unit;
            count = ns / (steps[i].seconds * 1000000000);
            break;
        }
    int n = snprintf(out, DURATION_TEXT_MAX, "%lld%c", (long long)count, unit);
    return (str){ out, (size_t)n };
}
