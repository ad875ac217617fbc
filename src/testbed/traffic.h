/* Where requests come from: ConfigMaps that name a model and how often it is asked.
 *
 *     kind: ConfigMap
 *     metadata: {name: chat, namespace: llm, labels: {testbed.flyball.dev/load: requests}}
 *     data:
 *       model: meta/llama-3-8b
 *       trace: conversation          a ConfigMap with label ...load: trace and a key trace.csv (trace.h)
 *       rate: "0s=1 30s=3 60s=1"     with a trace: how many times as fast it plays (1);
 *                                    without: requests a second (curve.h, from the creation on)
 *       promptTokens: "800"          without a trace: their mean length, and of the answers
 *       outputTokens: "200"
 *
 * Each request goes to the ready server of that model, in the same namespace, that has least to do. While
 * there is none they wait, up to a bound; beyond it they are lost, as behind a real gateway. */
#ifndef FLYBALL_TRAFFIC_H
#define FLYBALL_TRAFFIC_H

#include "../base/random.h"
#include "curve.h"
#include "serving.h"
#include "trace.h"

struct traffic_source { /* one ConfigMap */
    char *ns, *name, *model;
    struct curve rate;
    struct trace trace; /* no requests: evenly spaced ones at `rate` */
    int32_t prompt_tokens, output_tokens;
    int64_t origin_ns;                /* when the curve began */
    int64_t now_ns;                   /* requests up to here were sent */
    double position_ns;               /* in the trace */
    size_t next;                      /* request of the trace */
    double owed;                      /* part of a request that is due */
    struct random random;             /* lengths of requests without a trace */
    VEC(struct replica_request) held; /* no server was ready */
    uint64_t sent, lost;
};

struct traffic {
    struct serving *serving;
    VEC(struct traffic_source *) sources; /* owned */
};

struct traffic_spec { /* a ConfigMap's data, read */
    str ns, name;
    const struct json *data;
    str trace_csv; /* of the ConfigMap that `trace` names; "" without */
    int64_t created_ns, now_ns;
};

int traffic_put(struct traffic *t, const struct traffic_spec *spec, err_t *e); /* or replaces */
void traffic_remove(struct traffic *t, str ns, str name);
void traffic_done(struct traffic *t);

/* Sends everything that is due until then, and lets the servers work. */
void traffic_advance(struct traffic *t, int64_t now_ns);
/* A request that lost its server: for struct serving. */
void traffic_orphaned(void *context, const struct vllm_server *from,
                      struct replica_request request);

#endif
