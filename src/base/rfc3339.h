/* Timestamps as Kubernetes writes them: RFC 3339, "2026-01-05T11:15:44Z" (Time, whole seconds) and
 * "2026-01-05T11:15:44.000250Z" (MicroTime, exactly six digits). Printed in UTC, parsed with any
 * offset. A leap second (":60") is rejected, as by kube-apiserver. */
#ifndef FLYBALL_RFC3339_H
#define FLYBALL_RFC3339_H

#include "str.h"

enum { RFC3339_TEXT_MAX = 40 }; /* room for any printed timestamp and its NUL */

/* All count from 1970-01-01T00:00:00Z. The first ignores a fraction; the second keeps it to the
 * nanosecond, and returns -ERANGE outside the years 1678 to 2261; the third requires a fraction of
 * exactly six digits. */
int rfc3339_parse(str text, int64_t *ret_s, err_t *e);
int rfc3339_parse_ns(str text, int64_t *ret_ns, err_t *e);
int rfc3339_parse_micro(str text, int64_t *ret_us, err_t *e);

/* Consumes "2026-01-05" and returns the days since 1970; false if there is no valid date. */
bool rfc3339_take_date(str *rest, int64_t *ret_days);

str rfc3339_text(int64_t seconds, char out[static RFC3339_TEXT_MAX]);
str rfc3339_micro_text(int64_t microseconds, char out[static RFC3339_TEXT_MAX]);

#endif
