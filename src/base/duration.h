/* Durations in Go's notation ("1h30m", "250ms"), which Kubernetes and all four replaced systems
 * use: 64-bit nanoseconds. Accepts exactly what Go's time.ParseDuration accepts and prints exactly
 * what Go prints. */
#ifndef FLYBALL_DURATION_H
#define FLYBALL_DURATION_H

#include "str.h"

enum { DURATION_TEXT_MAX = 32 }; /* room for any printed duration and its NUL */

/* Units ns, us, µs, ms, s, m, h; decimal fractions; an optional sign; "0" without a unit. Fractions
 * of a nanosecond are truncated. -EINVAL: not a duration; -ERANGE: it does not fit in 64 bits. */
int duration_parse(str text, int64_t *ret_ns, err_t *e);

str duration_text(int64_t ns, char out[static DURATION_TEXT_MAX]); /* 90 s is "1m30s" */

/* As Prometheus writes ranges: the largest unit of d, h and m that divides the duration, otherwise
 * whole seconds, but at least "1s" (90 s is "90s", an hour and a half is "90m"). */
str duration_prom_text(int64_t ns, char out[static DURATION_TEXT_MAX]);

#endif
