/* Durations in the notation of Go ("1h30m", "250ms"), which Kubernetes and all four replaced systems
 * speak: 64-bit nanoseconds, the same texts accepted and the same text printed. */
#ifndef FLYBALL_DURATION_H
#define FLYBALL_DURATION_H

#include "str.h"

enum { DURATION_TEXT_MAX = 32 }; /* room for any printed duration and its NUL */

/* Units ns, us, µs, ms, s, m, h; decimal fractions; a sign; "0" alone. What is below a nanosecond is
 * dropped. -EINVAL, or -ERANGE when it does not fit. */
int duration_parse(str text, int64_t *ret_ns, err_t *e);

str duration_text(int64_t ns, char out[static DURATION_TEXT_MAX]); /* 90 s is "1m30s" */

/* As Prometheus writes ranges: the largest of d, h, m, s that divides it, else whole seconds,
 * and never less than "1s" (90 s is "90s", an hour and a half "90m"). */
str duration_prom_text(int64_t ns, char out[static DURATION_TEXT_MAX]);

#endif
