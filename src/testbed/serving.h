/* Simulated vLLM servers: a pod that names a model serves, on its own loopback address, the /metrics page
 * that a real server would, out of the batching model (replica_model.h). Requests come from traffic.h.
 *
 * Annotations of the pod, usually set in a Deployment's template:
 *
 *     testbed.flyball.dev/model: meta/llama-3-8b      name of the model; makes the pod a server
 *     testbed.flyball.dev/accelerator: L40S           speed and cache size: L40S, A100 (default) or H100
 *     prometheus.io/port: "8000"                      port of /metrics, unless a port is named "metrics"
 *
 * Queued requests are kept in memory only: when `flyball up` ends they are lost, as with real servers that are
 * killed. */
#ifndef FLYBALL_SERVING_H
#define FLYBALL_SERVING_H

#include "../json/json.h"
#include "../net/loop.h"
#include "replica_model.h"

struct http_server;

struct vllm_server { /* of one pod */
    struct replica replica;
    struct http_server *http; /* owned */
    struct serving *of;       /* its owner */
    char *ns, *name, *model;  /* owned */
    int64_t drained_ns; /* deadline for running requests, new ones go elsewhere; 0: not draining */
};

struct serving {
    struct loop *loop;
    VEC(struct vllm_server *) servers; /* owned, oldest first */
    uint64_t made; /* servers so far: the seed of the next, the same in every run */
    /* Receives the requests of a server that goes away. */
    void (*orphaned)(void *context, const struct vllm_server *from, struct replica_request request);
    void *context;
};

struct serving_pod {
    str ns, name, ip;
    str model, accelerator, port; /* of the annotations; port may be "" */
    const struct json *containers;
    int64_t now_ns;
};

/* Starts a server for the pod unless it has one. */
int serving_put(struct serving *s, const struct serving_pod *pod, err_t *e);
/* For a pod that is being deleted: waiting requests go to another server, running ones may finish within 30 s (the
 * default grace period). True while requests run. */
bool serving_drain(struct serving *s, str ns, str name, int64_t now_ns);
void serving_remove(struct serving *s, str ns, str name); /* no effect if there is none */
void serving_done(struct serving *s);

/* The least loaded server of that model; NULL: there is none. */
struct vllm_server *serving_pick(const struct serving *s, str ns, str model);

#endif
