/* The kernel's CPU bandwidth control (CFS quota) for one container, and its sharing of a full node.
 *
 * Every period of 100 ms the group may use limit * 100 ms of CPU. A group that wants d cores runs
 * ceil(d) threads flat out; when the quota is gone they all stop until the period ends, and the time
 * they stand still is counted for each of them (so throttled time can exceed wall time, as in the
 * kernel). Work that was not served is lost: demand is a rate, not a backlog. */
#ifndef FLYBALL_CFS_MODEL_H
#define FLYBALL_CFS_MODEL_H

#include "../base/buf.h"

struct cfs_group {
    int64_t limit_milli;   /* quota; <= 0: none */
    int64_t request_milli; /* share of a contended node */

    /* counters as in cpu.stat, monotonic */
    double usage_usec, throttled_usec;
    int64_t nr_periods, nr_throttled;
    double wanted_usec; /* what demand would have used: not a kernel counter, the yardstick */

    double phase_usec; /* how far into the current period we are */
};

/* Lets `ns` pass while the group wants `demand_milli` and the node gives it at most `grant_milli`. */
void cfs_run(struct cfs_group *group, double demand_milli, double grant_milli, int64_t ns);

struct cfs_claim {
    double demand_milli; /* wanted, already cut to the limit */
    double weight;       /* cpu.shares: the request */
    double grant_milli;  /* out: what the node gives */
};

/* Shares a node's cores by weight among claims that exceed it (work-conserving). */
void cfs_share(double capacity_milli, struct cfs_claim *claims, size_t n);

/* The text of a cgroup v2 cpu.stat. */
void cfs_print_stat(const struct cfs_group *group, struct buf *out);

#endif
