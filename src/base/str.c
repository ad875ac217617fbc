/* String slices: see str.h. Everything here accepts the empty slice {NULL, 0}, which must not reach
 * memcmp() and memchr(): passing them NULL is undefined even for a length of 0. Nothing allocates,
 * and nothing depends on the locale: letters are ASCII letters, and the order is that of bytes, as
 * Kubernetes sorts names. Numbers are read whole or not at all: "12x" is no number. */
#include "str.h"

#include <math.h>

/* Byte order, a prefix before what it is a prefix of. Not the order of any locale. */
int str_cmp(str a, str b)
{
    size_t common = MIN(a.n, b.n);
    int order = common ? memcmp(a.p, b.p, common) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

bool str_starts(str s, str prefix)
{
    return s.n >= prefix.n && str_eq(str_upto(s, prefix.n), prefix);
}

bool str_ends(str s, str suffix)
{
    return s.n >= suffix.n && str_eq(str_from(s, s.n - suffix.n), suffix);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* ASCII letters only, as header names and most keywords need it. */
bool str_eq_nocase(str a, str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

size_t str_find(str s, str needle)
{
    if (needle.n == 0)
        return 0;
    const char *hit = s.n ? memmem(s.p, s.n, needle.p, needle.n) : NULL;
    return hit ? (size_t)(hit - s.p) : SIZE_MAX;
}

size_t str_find_char(str s, char c)
{
    const char *hit = s.n ? memchr(s.p, c, s.n) : NULL;
    return hit ? (size_t)(hit - s.p) : SIZE_MAX;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

str str_trim(str s)
{
    while (s.n && is_blank(s.p[0]))
        s = str_from(s, 1);
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* After a mismatch only the last star is tried again: what an earlier one could match, the last
 * one can match too. */
bool str_matches_glob(str pattern, str text, char any_byte)
{
    size_t star = SIZE_MAX, mark = 0, p = 0, t = 0;
    while (t < text.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.n && (pattern.p[p] == any_byte || pattern.p[p] == text.p[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++mark;
        } else
            return false;
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

/* After the last part `rest` is {NULL, 0}, which differs from an empty last part: "a," has two parts. */
bool str_cut(str *rest, char separator, str *ret_part)
{
    if (!rest->p)
        return false;
    size_t at = str_find_char(*rest, separator);
    if (at == SIZE_MAX) {
        *ret_part = *rest;
        *rest = (str){ NULL, 0 };
    } else {
        *ret_part = str_upto(*rest, at);
        *rest = str_from(*rest, at + 1);
    }
    return true;
}

/* Accumulates toward the sign, so that INT64_MIN parses without overflow. */
int str_to_i64(str s, int64_t *ret)
{
    bool negative = s.n && s.p[0] == '-';
    size_t i = negative || (s.n && s.p[0] == '+');
    if (i == s.n)
        return -EINVAL;
    int64_t value = 0;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -EINVAL;
        int digit = s.p[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return -ERANGE;
    }
    *ret = value;
    return 0;
}

/* strtod() also accepts blanks, hexadecimal, inf and nan: the check of the characters excludes
 * them. The program never sets a locale, so the decimal separator is a point. */
int str_to_f64(str s, double *ret)
{
    char text[400]; /* strtod() needs a NUL; longer than any double that is printed in full */
    if (s.n == 0 || s.n >= sizeof(text))
        return -EINVAL;
    for (size_t i = 0; i < s.n; i++)
        if (!strchr("0123456789+-.eE", s.p[i]) || !s.p[i])
            return -EINVAL;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    char *end;
    double value = strtod(text, &end);
    if (end != text + s.n)
        return -EINVAL;
    if (!isfinite(value))
        return -ERANGE;
    *ret = value;
    return 0;
}

/* Writes from the end of `room`. The magnitude is unsigned, because that of INT64_MIN does not fit in an
 * int64_t. */
str str_of_i64(int64_t value, char room[STR_I64_ROOM])
{
    char *end = room + STR_I64_ROOM - 1, *at = end;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    *end = '\0';
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--at = '-';
    return (str){ at, (size_t)(end - at) };
}
