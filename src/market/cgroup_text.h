/* Parsers for the kernel's small text files about cgroups: quotas, pressure, mounts. Counters
 * (cpu.stat) are parsed by demand_core. Each returns false for invalid text and then leaves its
 * results unchanged. */
#ifndef FLYBALL_CGROUP_TEXT_H
#define FLYBALL_CGROUP_TEXT_H

#include "../base/arena.h"

/* cpu.max of v2, "20000 100000" or "max 100000", to millicores; -1: no quota. */
bool cgroup_text_max(str text, int64_t *ret_milli);

/* The same for v1, from cpu.cfs_quota_us ("-1": none) and cpu.cfs_period_us. */
bool cgroup_text_quota(str quota, str period, int64_t *ret_milli);

/* A file with one number: cpuacct.usage, cpu.cfs_period_us. */
bool cgroup_text_number(str text, int64_t *ret);

/* cpu.pressure: microseconds in which some task waited for CPU. */
bool cgroup_text_pressure(str text, int64_t *ret_some_usec);

/* Where cgroups are mounted, from /proc/self/mountinfo: the first mount of each kind at or below
 * `base`; empty: none. */
struct cgroup_mounts {
    str unified;      /* v2 */
    str cpu, cpuacct; /* v1 */
};
struct cgroup_mounts cgroup_text_mounts(struct arena *a, str mountinfo, str base);

#endif
