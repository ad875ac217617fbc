/* Latencies from Prometheus: the 99th percentile of each pod that has an objective, in one query
 * for all pods. A pod without data stays unknown and is not treated as missing its objective. */
#ifndef FLYBALL_LATENCY_H
#define FLYBALL_LATENCY_H

#include "../base/buf.h"
#include "../net/loop.h"

struct latency;

struct latency_options {
    struct loop *loop;
    uint64_t seed;
    void (*on_answer)(
        void *context); /* an answer arrived; latencies follow, none after a failure */
    void (*on_latency)(void *context, str ns, str pod, double ms); /* ms > 0, may be infinite */
    void *context;
};

struct latency *latency_new(const struct latency_options *options);
void latency_free(struct latency *s);

/* Sets the URL of Prometheus; empty: none, and no query is sent. */
int latency_set_url(struct latency *s, str url, err_t *e);

struct latency_pod {
    str ns, pod;
};

/* Queries these pods, unless a query is pending or the last one was sent less than 5 s ago. */
void latency_request(struct latency *s, const struct latency_pod *targets, size_t n);

/* Appends the query. Names of namespaces and pods consist of letters, digits, dashes and dots. */
void latency_build_query(struct buf *out, const struct latency_pod *targets, size_t n);

#endif
