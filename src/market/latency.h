/* Latencies from Prometheus: the 99th percentile of each pod that has an objective, all of them in one query.
 * What Prometheus does not know stays unknown: no data is no breach. */
#ifndef FLYBALL_LATENCY_H
#define FLYBALL_LATENCY_H

#include "../base/buf.h"
#include "../net/loop.h"

struct latency;

struct latency_options {
    struct loop *loop;
    uint64_t seed;
    void (*began)(void *context); /* an answer follows; also a failure, with nothing after it */
    void (*latency)(void *context, str ns, str pod, double ms); /* positive, may be infinite */
    void *context;
};

struct latency *latency_new(const struct latency_options *options);
void latency_free(struct latency *s);

/* Where Prometheus is; empty: nowhere, and nothing is asked. */
int latency_set_url(struct latency *s, str url, err_t *e);

struct latency_pod {
    str ns, pod;
};

/* Asks about these unless an answer is still awaited or the last question was less than 5 s ago. */
void latency_request(struct latency *s, const struct latency_pod *targets, size_t n);

/* The query. Names are those of namespaces and pods: letters, digits, dashes and dots. */
void latency_build_query(struct buf *out, const struct latency_pod *targets, size_t n);

#endif
