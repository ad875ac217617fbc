/* The soak test: the embedded API server, all controllers, node agents and the simulated cluster in one process,
 * for hours of virtual time under steady churn. What must stay flat is memory, descriptors and timers.
 *
 *     soak.c           the clock of the run: churn, hourly samples, restarts, the verdict
 *     soak_world.c     what runs: server, clients, managers, agents
 *     soak_objects.c   the population: which objects there are, their bodies and edits */
#ifndef FLYBALL_SOAK_H
#define FLYBALL_SOAK_H

#include "base/metrics.h"
#include "base/random.h"
#include "base/vec.h"
#include "kube/manager.h"
#include "net/loop.h"

struct apiserver;
struct http_server;

enum { SOAK_NODES = 10 }; /* with an agent each */

struct soak_agent {
    struct soak_world *world;
    char node[16], root[256];
    struct kube *kube;
    struct manager *manager;
};

struct soak_world {
    struct loop *loop;
    struct apiserver *server;
    struct http_server *http; /* /metrics, which simulated autoscalers read */
    struct metrics *metrics;  /* outlive the managers that count in them */
    struct kube *kube;        /* the soak's own */
    struct kube *operator_kube, *testbed_kube;
    struct manager *operator, * testbed;
    struct soak_agent agents[SOAK_NODES];
    char dir[128], cgroup_root[160], metrics_url[64];

    size_t pending;           /* requests of the soak that are not answered yet */
    size_t answered, refused; /* refused: with a code that no race explains */
    size_t raced;             /* 404 and 409: a controller or a finalizer was first */
    char first_refusal[512];
};

int world_start(struct soak_world *w, err_t *e);
int world_start_controllers(struct soak_world *w, err_t *e);
int world_restart_operator(struct soak_world *w, err_t *e);
int world_restart_testbed(struct soak_world *w, err_t *e);
int world_restart_agent(struct soak_world *w, size_t agent, err_t *e);
void world_stop(struct soak_world *w);
void world_run_for(struct soak_world *w, int64_t ns);                      /* of virtual time */
void world_send(struct soak_world *w, const struct kube_request *request); /* counts the answer */
void world_drain(struct soak_world *w); /* until all are answered */
int64_t world_count(struct soak_world *w, const struct resource *resource); /* -1: no answer */
size_t world_timers(const struct soak_world *w);

/* ---- objects */

struct soak_object {
    const struct resource *resource;
    int kind, unit; /* kind: an index of soak_objects.c's table */
    bool absent;    /* was deleted, and is made again by the next step */
};

struct soak_population {
    VEC(struct soak_object) objects;
    VEC(size_t) absent; /* indexes */
    struct random random;
    size_t created, edited, deleted;
};

/* `n` objects beside nodes, namespaces and configuration; children that controllers make come on top. */
void population_make(struct soak_population *p, struct soak_world *w, size_t n, uint64_t seed);
void population_churn(struct soak_population *p, struct soak_world *w); /* one step */
void population_edit_config(struct soak_population *p, struct soak_world *w);
void population_done(struct soak_population *p);

extern const struct resource soak_shpas, soak_variants, soak_services, soak_allocations;

#endif
