/* Sources of requests: ConfigMaps that name a model and the rate of its requests.
 *
 *     kind: ConfigMap
 *     metadata: {name: chat, namespace: llm, labels: {testbed.flyball.dev/load: requests}}
 *     data:
 *       model: meta/llama-3-8b
 *       trace: conversation          a ConfigMap with label ...load: trace and a key trace.csv (trace.h)
 *       rate: "0s=1 30s=3 60s=1"     with a trace: its speed (default 1); otherwise requests per second; a
 *                                    curve (curve.h) from the creation of the ConfigMap on
 *       promptTokens: "800"          without a trace: mean length of prompts (default 800)
 *       outputTokens: "200"          and of answers (default 200)
 *
 * Each request goes to the least loaded server of that model in the same namespace. While there is none, requests
 * are held up to a limit; beyond it they are lost, as behind a real gateway. */
#ifndef FLYBALL_TRAFFIC_H
#define FLYBALL_TRAFFIC_H

#include "../base/random.h"
#include "curve.h"
#include "serving.h"
#include "trace.h"

struct traffic_source {      /* one ConfigMap */
    char *ns, *name, *model; /* owned */
    struct curve rate;
    struct trace trace; /* empty: evenly spaced requests at `rate` */
    int32_t prompt_tokens, output_tokens;
    int64_t origin_ns;                /* when the curve began */
    int64_t now_ns;                   /* requests up to here were sent */
    double position_ns;               /* in the trace */
    size_t next;                      /* request of the trace */
    double owed;                      /* fraction of a request that is due, without a trace */
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
/* Places a request whose server goes away: the callback `orphaned` of struct serving. */
void traffic_reroute(void *context, const struct vllm_server *from, struct replica_request request);

#endif
