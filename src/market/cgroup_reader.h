/* The CPU counters of one cgroup and of its direct children (a pod and its containers), read
 * through descriptors that stay open: a pread of cpu.stat costs 2 us, opening it costs 10.
 *
 * The kernel counts throttling for each cgroup separately: a pod is not throttled itself when
 * one of its containers is. So both levels are read and combined into counters that only grow:
 *
 *   usage_usec                 of the cgroup, which includes its children
 *   throttled_usec             the sum, because a thread is throttled at one level at a time
 *   nr_periods, nr_throttled   in each interval, of the level that hit its quota most often
 *
 * The caller of cgroup_open() owns the group and keeps the tree alive. Reading needs no
 * privilege. */
#ifndef FLYBALL_CGROUP_READER_H
#define FLYBALL_CGROUP_READER_H

#include "cgroup_tree.h"
#include "demand_core.h"

struct cgroup;

/* `path` is relative to the tree's root: "kubepods/pod1234". */
int cgroup_open(const struct cgroup_tree *tree, str path, struct cgroup **ret, err_t *e);
void cgroup_close(struct cgroup *g);
const char *cgroup_path(const struct cgroup *g); /* relative to the tree's root */

/* Updates `total`, the result of the last reading (`{0}` before the first). -ENODEV or -ENOENT:
 * the cgroup no longer exists. */
int cgroup_read(struct cgroup *g, struct demand_cpu_stat *total, err_t *e);

/* Finds children that were created or removed. cgroup_read() by itself notices only removed
 * ones. */
void cgroup_rescan(struct cgroup *g);
size_t cgroup_level_count(const struct cgroup *g); /* cgroups that are read: 1 and the children */

/* Microseconds in which some task waited for CPU; -EOPNOTSUPP if the kernel does not report it. */
int cgroup_read_pressure(struct cgroup *g, int64_t *ret_usec);

/* Read and set the quota in millicores; -1: no quota. */
int cgroup_read_limit(const struct cgroup *g, int64_t *ret_milli, err_t *e);
int cgroup_set_limit(const struct cgroup *g, int64_t milli, err_t *e);

#endif
