/* The CPU counters of one cgroup and of the cgroups directly in it (a pod and its containers), by
 * descriptors that stay open: a pread of cpu.stat costs 2 us where opening it costs 10.
 *
 * Throttling is counted for each cgroup alone. A pod whose container stands still is not throttled itself,
 * so both levels are read and combined into counters that only grow:
 *
 *   usage_usec                 of the cgroup, which includes what is in it
 *   throttled_usec             the sum: a thread stands still at one level at a time
 *   nr_periods, nr_throttled   in each interval those of the level that hit its quota most
 *
 * A group is owned by who opened it; the tree must stay. Reading needs no privilege. */
#ifndef FLYBALL_CGROUP_READER_H
#define FLYBALL_CGROUP_READER_H

#include "cgroup_tree.h"
#include "demand_core.h"

struct cgroup;

/* `path` is below the tree's root: "kubepods/pod1234". */
int cgroup_open(const struct cgroup_tree *tree, str path, struct cgroup **ret, err_t *e);
void cgroup_close(struct cgroup *g);

/* Brings `total` up to now: what the last reading left in it, `{0}` before the first. -ENODEV or -ENOENT: the
 * cgroup is gone. */
int cgroup_read(struct cgroup *g, struct demand_cpu_stat *total, err_t *e);

/* Looks for cgroups that came and went inside; cgroup_read() notices by itself only those that went. */
void cgroup_rescan(struct cgroup *g);
size_t cgroup_level_count(const struct cgroup *g); /* that are read: 1 and those inside */

/* Microseconds that some task waited for CPU so far; -EOPNOTSUPP where the kernel does not tell. */
int cgroup_read_pressure(const struct cgroup *g, int64_t *ret_usec);

/* The quota in millicores, -1 for none; and setting it. */
int cgroup_read_limit(const struct cgroup *g, int64_t *ret_milli, err_t *e);
int cgroup_set_limit(const struct cgroup *g, int64_t milli, err_t *e);

#endif
