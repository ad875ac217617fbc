/* Cgroups of ordinary files that behave: every 100 ms of the loop's time each group runs under the model of
 * the kernel's quota, and its counters are written where an agent reads them. */
#ifndef FLYBALL_CGROUP_WORLD_H
#define FLYBALL_CGROUP_WORLD_H

#include "base/buf.h"
#include "cgroup_files.h"
#include "net/loop.h"
#include "testbed/cfs_model.h"

enum { WORLD_GROUPS = 8 };

struct world_group {
    char path[200]; /* below the root */
    struct cfs_group cfs;
    double demand_milli;
    bool quota_file; /* the limit is read from cpu.max, else set by the test */
    bool gone;
};

struct cgroup_world {
    struct cgroup_files files;
    struct loop *loop;
    struct timer timer;
    struct world_group groups[WORLD_GROUPS];
    size_t n;
    bool silent; /* counters are not written */
};

void cgroup_world_init(struct cgroup_world *w, struct loop *loop);
void cgroup_world_done(struct cgroup_world *w);
struct world_group *cgroup_world_add(struct cgroup_world *w, const char *path, double demand_milli,
                                     int64_t limit_milli);
/* The same with its limit in a file of its own. */
struct world_group *cgroup_world_add_quota(struct cgroup_world *w, const char *path,
                                           double demand_milli, int64_t limit_milli);
void cgroup_world_drop(struct cgroup_world *w, struct world_group *g);
void cgroup_world_run(struct cgroup_world *w, int64_t seconds);
void cgroup_world_read_quota(struct cgroup_world *w, struct world_group *g);
void cgroup_world_write(struct cgroup_world *w, struct world_group *g);
void cgroup_world_step(struct timer *timer);

#endif
