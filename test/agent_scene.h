/* The node agent on the embedded API server, on a clock of its own, with cgroups of files that behave. A
 * few lines here take the place of the controller and the kubelet: they put desired limits into force. */
#ifndef FLYBALL_AGENT_SCENE_H
#define FLYBALL_AGENT_SCENE_H

#include "base/log.h"
#include "base/rfc3339.h"
#include "cgroup_world.h"
#include "cluster.h"
#include "market/market_agent.h"
#include "market/market_records.h"
#include "prom/exposition.h"
#include "tap.h"

enum { START_S = 1780000000 };

struct scene {
    struct cluster c;
    struct cgroup_world world;
    struct timer kubelet;
    const char *settings[7];
    bool idle_kubelet;     /* nothing that is desired comes into force */
    int64_t most_milli;    /* the highest sum of limits in force */
    int64_t most_promised; /* and of those together with what is desired */
};

struct cluster_answer patch_sub(struct cluster *c, const struct resource *resource, const char *ns,
                                const char *name, const char *sub, str body);
/* ---- pods */

struct pod_spec {
    const char *ns, *name, *annotations;
    int64_t request, limit; /* limit 0: none */
    double demand;
    const struct json *owner; /* NULL: none */
};

/* ReplicaSets are cut by their hash, so the owner of this test is a StatefulSet. */
str owner_text(struct arena *a, const struct json *owner);
void report_limit(struct scene *s, const char *ns, const char *name, int64_t milli);
struct world_group *group_named(struct scene *s, const char *path);
const char *pod_path(struct scene *s, const struct json *pod);
void add_pod(struct scene *s, struct pod_spec p);
struct world_group *group_of(struct scene *s, const char *ns, const char *name);
/* ---- in place of controller and kubelet */

int64_t milli_of(const struct json *quantity);
struct json *allocations(struct scene *s);
/* Nested turns of the loop are not possible in a timer, so the test calls this between them. */
void act(struct scene *s);
void pass(struct scene *s, int64_t seconds);
/* ---- life */

void agent_up(struct scene *s);
void stopped(void *context);
/* As SIGTERM does it: the last writes are made. */
void agent_down(struct scene *s);
void begin(struct scene *s);
void end(struct scene *s);
struct json *allocation(struct scene *s, const char *name);
double metric(struct scene *s, const char *series);

#endif
