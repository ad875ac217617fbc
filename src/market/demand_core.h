/* What the kernel's counters say: CPU used and throttling, from two readings of cpu.stat. */
#ifndef FLYBALL_DEMAND_CORE_H
#define FLYBALL_DEMAND_CORE_H

#include "../base/str.h"

struct demand_cpu_stat {
    int64_t usage_usec;
    int64_t throttled_usec;            /* summed over CPUs: may grow faster than time */
    uint32_t nr_periods, nr_throttled; /* the low halves: only differences count */
};

/* Reads a cpu.stat of cgroup v2, or of v1 (which has no usage). Lines that are not "name number" are skipped, missing names are 0. */
struct demand_cpu_stat demand_cpu_stat_parse(str text);

struct demand_window {
    int64_t usage_milli;
    double demand;    /* throttled over used, 10 % and more is 1: the original's signal */
    double throttled; /* share of periods that hit the quota, 0..1: the honest one */
};

/* Between two readings `elapsed_ns` apart; all zero when less than 1 ms was used or a counter went back. */
struct demand_window demand_measure(struct demand_cpu_stat before, struct demand_cpu_stat after,
                                    int64_t elapsed_ns);

#endif
