/* The system clocks in nanoseconds. Only the loop and the commands read them; a decision receives
 * `now` as an argument. */
#ifndef FLYBALL_CLOCK_H
#define FLYBALL_CLOCK_H

#include "base.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

int64_t clock_wall_ns(void); /* since 1970-01-01T00:00:00Z */
int64_t clock_mono_ns(void); /* monotonic */
int64_t clock_cpu_ns(void);  /* CPU time of this process, for benchmarks */

#endif
