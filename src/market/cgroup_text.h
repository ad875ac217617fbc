/* The kernel's small files about cgroups, as text: quotas, pressure, mounts. Counters (cpu.stat) are read
 * by demand_core. Each answers false for what it cannot read and touches nothing then. */
#ifndef FLYBALL_CGROUP_TEXT_H
#define FLYBALL_CGROUP_TEXT_H

#include "../base/arena.h"

/* cpu.max of v2, "20000 100000" or "max 100000", to millicores; -1: no quota. */
bool cgroup_text_max(str text, int64_t *ret_milli);

/* The same of v1, from cpu.cfs_quota_us ("-1": none) and cpu.cfs_period_us. */
bool cgroup_text_quota(str quota, str period, int64_t *ret_milli);

/* A file of one number: cpuacct.usage, cpu.cfs_period_us. */
bool cgroup_text_number(str text, int64_t *ret);

/* cpu.pressure: microseconds in which some task waited for CPU. */
bool cgroup_text_pressure(str text, int64_t *ret_some_usec);

/* Where cgroups are mounted, out of /proc/self/mountinfo; the first of each kind at or below `base`
 * counts. Empty: there is none. */
struct cgroup_mounts {
    str unified;      /* v2 */
    str cpu, cpuacct; /* v1 */
};
struct cgroup_mounts cgroup_text_mounts(struct arena *a, str mountinfo, str base);

#endif
