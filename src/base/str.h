/* Text as a slice: a pointer and a length that borrow bytes from their owner. Copy only to keep
 * (arena_str, mem_dup). A `str` need not end in NUL and may hold any byte. */
#ifndef FLYBALL_STR_H
#define FLYBALL_STR_H

#include "err.h"

typedef struct str {
    const char *p;
    size_t n;
} str;

#define S(literal) ((str){ ("" literal), sizeof(literal) - 1 })
#define STR_INIT(literal) { ("" literal), sizeof(literal) - 1 } /* in static tables */

/* For printf: printf(STR_FMT, STR_ARG(name)). */
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)MIN((s).n, (size_t)INT32_MAX), ((s).p ? (s).p : "")

static inline str str_c(const char *text)
{
    return (str){ text, text ? strlen(text) : 0 };
}

static inline bool str_eq(str a, str b)
{
    /* most texts differ in the first byte, which saves the call */
    return a.n == b.n && (a.n == 0 || (a.p[0] == b.p[0] && memcmp(a.p, b.p, a.n) == 0));
}

static inline bool str_eqc(str a, const char *text)
{
    return str_eq(a, str_c(text));
}

static inline str str_from(str s, size_t at) /* without the first `at` bytes */
{
    size_t skipped = MIN(at, s.n); /* adding even 0 to a NULL pointer would be undefined */
    return (str){ skipped ? s.p + skipped : s.p, s.n - skipped };
}

static inline str str_upto(str s, size_t n)
{
    return (str){ s.p, MIN(s.n, n) };
}

int str_cmp(str a, str b); /* by bytes, a prefix first */
bool str_starts(str s, str prefix);
bool str_ends(str s, str suffix);
bool str_eq_nocase(str a, str b);    /* ASCII */
size_t str_find(str s, str needle);  /* SIZE_MAX: not found */
size_t str_find_char(str s, char c); /* SIZE_MAX: not found */
str str_trim(str s);                 /* spaces, tabs, CR, LF at both ends */

/* "*" matches any run of bytes and `any_byte` any single one; '*' if there is no such character.
 * The work is at most text times pattern. */
bool str_matches_glob(str pattern, str text, char any_byte);

/* Removes the part before the next `separator` from `*rest`; false if nothing is left.
 * "a,,b" gives "a", "", "b"; "" gives one empty part. `rest->p` is NULL at the end. */
bool str_cut(str *rest, char separator, str *ret_part);

/* Conversions of the whole text, decimal, no blanks; -EINVAL or -ERANGE, without an error text. */
int str_to_i64(str s, int64_t *ret);
int str_to_f64(str s, double *ret); /* C syntax without hex, inf or nan */

/* A number in decimal, faster than snprintf, which parses its format on each call. The text is in
 * `room` and ends in NUL. */
enum { STR_I64_ROOM = 21 };
str str_of_i64(int64_t value, char room[STR_I64_ROOM]);

#endif
