/* Clocks: see clock.h. The only file in `base` that reads the time. */
#include "clock.h"

#include <time.h>

static int64_t read_clock(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t); /* cannot fail for these three on Linux */
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_mono_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
