/* CPU usage and throttling of a cgroup, from two readings of cpu.stat. */
#ifndef FLYBALL_DEMAND_CORE_H
#define FLYBALL_DEMAND_CORE_H

#include "../base/str.h"

struct demand_cpu_stat {
    int64_t usage_usec;
    int64_t throttled_usec;            /* summed over CPUs: can grow faster than time */
    uint32_t nr_periods, nr_throttled; /* low 32 bits: only differences are used */
};

/* Parses cpu.stat of cgroup v2, or of v1, which has no usage. Lines that are not "name number" are
 * skipped; missing names are 0. */
struct demand_cpu_stat demand_cpu_stat_parse(str text);

struct demand_window {
    int64_t usage_milli;
    double demand;    /* MBCAS' signal: throttled time over used time, 1 from 10 % on */
    double throttled; /* our signal: share of periods that hit the quota, 0..1 */
};

/* Compares two readings `elapsed_ns` apart. All zero if less than 1 ms was used or a counter was
 * reset. */
struct demand_window demand_measure(struct demand_cpu_stat before, struct demand_cpu_stat after,
                                    int64_t elapsed_ns);

#endif
