/* Simulated vLLM servers: a pod that names a model serves, on its own loopback address, the /metrics page
 * that a real server would, out of the batching model (replica_model.h). Requests come from traffic.h.
 *
 * This is set in annotations of the pod, which a Deployment's template carries:
 *
 *     testbed.flyball.dev/model: meta/llama-3-8b      which model; its presence makes it a server
 *     testbed.flyball.dev/accelerator: L40S           how fast and how large: L40S, A100 or H100
 *     prometheus.io/port: "8000"                      where /metrics is, unless a port is named "metrics"
 *
 * The requests in a server's queue live only here: when flyball up ends they are gone, as with real
 * servers that are killed. */
#ifndef FLYBALL_SERVING_H
#define FLYBALL_SERVING_H

#include "../json/json.h"
#include "../net/loop.h"
#include "replica_model.h"

struct http_server;

struct vllm_server { /* of one pod */
    struct replica replica;
    struct http_server *http;
    struct serving *of;
    char *ns, *name, *model; /* owned */
    int64_t drained_ns;      /* it gets nothing new, and ends then at the latest; 0: it serves */
};

struct serving {
    struct loop *loop;
    VEC(struct vllm_server *) servers; /* owned, oldest first */
    uint64_t made; /* servers so far: the seed of the next, the same in every run */
    /* Where requests of a server that goes away are sent next. */
    void (*orphaned)(void *context, const struct vllm_server *from, struct replica_request request);
    void *context;
};

struct serving_pod {
    str ns, name, ip;
    str model, accelerator, port; /* of the annotations; port may be "" */
    const struct json *containers;
    int64_t now_ns;
};

/* Makes the pod a server unless it is one already. */
int serving_put(struct serving *s, const struct serving_pod *pod, err_t *e);
/* A server whose pod is being deleted: what waits goes elsewhere, what runs is finished, for at most 30 s (the default
 * grace period). True while it has something to do. */
bool serving_drain(struct serving *s, str ns, str name, int64_t now_ns);
void serving_remove(struct serving *s, str ns, str name); /* harmless when it is none */
void serving_done(struct serving *s);

/* The server of that model with least to do, NULL when there is none. */
struct vllm_server *serving_pick(const struct serving *s, str ns, str model);

#endif
