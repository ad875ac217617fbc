/* The meaning of an unquoted YAML scalar in Kubernetes: see yaml.h for the list. The rules are
 * those of YAML 1.1 without base-60 numbers; underscores in numbers are ignored.
 *
 * The order of the checks matters: words (null, booleans) first, then integers, then reals;
 * everything else is text. "1e3" and "3.0" become integers, because Kubernetes converts YAML to
 * JSON and Go prints them as 1000 and 3. */
#include "yaml.h"

#include <math.h>

enum { NUMBER_MAX = 400 }; /* longer digit strings are text */

static bool one_of(str text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eqc(text, words[i]))
            return true;
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static unsigned digit_of(char c)
{
    if (is_digit(c))
        return (unsigned)(c - '0');
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 99;
}

/* Removes "0x", "0o", "0b" or a leading "0"; returns the base. */
static unsigned take_base(str *digits)
{
    if (digits->n < 2 || digits->p[0] != '0')
        return 10;
    unsigned base = 8;
    switch (digits->p[1] | 0x20) {
    case 'x':
        base = 16;
        break;
    case 'b':
        base = 2;
        break;
    case 'o':
        break;
    default:
        *digits = str_from(*digits, 1);
        return 8;
    }
    *digits = str_from(*digits, 2);
    return base;
}

/* An integer in Go's notation; above 63 bits it is a real, as in JSON, and above 64 not an
 * integer. */
static struct json *read_integer(struct arena *a, str text)
{
    bool negative = text.n && text.p[0] == '-';
    if (text.n && (text.p[0] == '-' || text.p[0] == '+'))
        text = str_from(text, 1);
    unsigned base = take_base(&text);
    if (!text.n)
        return NULL;
    uint64_t value = 0;
    for (size_t i = 0; i < text.n; i++) {
        unsigned digit = digit_of(text.p[i]);
        if (digit >= base || value > (UINT64_MAX - digit) / base)
            return NULL;
        value = value * base + digit;
    }
    if (value <= (uint64_t)INT64_MAX + negative)
        return json_new_int(a, negative ? (int64_t)(0 - value) : (int64_t)value);
    return negative ? NULL : json_new_real(a, (double)value);
}

static size_t skip_digits(str text, size_t at)
{
    while (at < text.n && is_digit(text.p[at]))
        at++;
    return at;
}

/* digits [ "." digits ] [ e [+-] digits ], with at least one digit. */
static bool is_real(str text)
{
    size_t at = text.n && (text.p[0] == '-' || text.p[0] == '+');
    size_t start = at;
    at = skip_digits(text, at);
    bool whole = at > start;
    if (at < text.n && text.p[at] == '.') {
        start = ++at;
        at = skip_digits(text, at);
        if (!whole && at == start)
            return false;
    } else if (!whole) {
        return false;
    }
    if (at < text.n && (text.p[at] | 0x20) == 'e') {
        at++;
        at += at < text.n && (text.p[at] == '-' || text.p[at] == '+');
        start = at;
        at = skip_digits(text, at);
        if (at == start)
            return false;
    }
    return at == text.n;
}

/* Go prints 3.0 as 3 when Kubernetes converts YAML to JSON, so a whole real is an integer. */
static struct json *read_real(struct arena *a, const char *text)
{
    double value = strtod(text, NULL);
    if (!isfinite(value))
        return NULL;
    if (value == trunc(value) && value >= -0x1p63 && value < 0x1p63)
        return json_new_int(a, (int64_t)value);
    return json_new_real(a, value);
}

static struct json *read_number(struct arena *a, str text)
{
    char plain[NUMBER_MAX + 1];
    size_t n = 0;
    if (text.n > NUMBER_MAX)
        return NULL;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != '_')
            plain[n++] = text.p[i];
    plain[n] = '\0';
    struct json *v = read_integer(a, (str){ plain, n });
    if (!v && is_real((str){ plain, n }))
        v = read_real(a, plain);
    return v;
}

struct json *yaml_resolve(struct arena *a, str text)
{
    static const char *const yes[] = { "y",    "Y",    "yes", "Yes", "YES", "true",
                                       "True", "TRUE", "on",  "On",  "ON" };
    static const char *const no[] = { "n",     "N",     "no",  "No",  "NO", "false",
                                      "False", "FALSE", "off", "Off", "OFF" };
    static const char *const nothing[] = { "", "~", "null", "Null", "NULL" };
    static const char *const unsayable[] = { ".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
                                             "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF" };
    struct json *v = NULL;
    if (text.n <= 5) {
        if (one_of(text, nothing, countof(nothing)))
            return json_new_null(a);
        if (one_of(text, yes, countof(yes)))
            return json_new_bool(a, true);
        if (one_of(text, no, countof(no)))
            return json_new_bool(a, false);
        if (one_of(text, unsayable, countof(unsayable)))
            return NULL;
    }
    if (is_digit(text.p[0]) || strchr("+-.", text.p[0]))
        v = read_number(a, text);
    return v ? v : json_new_str(a, text);
}
