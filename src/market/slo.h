/* Latencies from Prometheus: the 99th percentile of each pod that has an objective, all of them in one query.
 * What Prometheus does not know stays unknown: no data is no breach. */
#ifndef FLYBALL_SLO_H
#define FLYBALL_SLO_H

#include "../base/buf.h"
#include "../net/loop.h"

struct slo;

struct slo_options {
    struct loop *loop;
    uint64_t seed;
    void (*began)(void *context); /* an answer follows; also a failure, with nothing after it */
    void (*latency)(void *context, str ns, str pod, double ms); /* positive, may be infinite */
    void *context;
};

struct slo *slo_new(const struct slo_options *options);
void slo_free(struct slo *s);

/* Where Prometheus is; empty: nowhere, and nothing is asked. */
int slo_set_url(struct slo *s, str url, err_t *e);

struct slo_target {
    str ns, pod;
};

/* Asks about these unless an answer is still awaited or the last question was less than 5 s ago. */
void slo_ask(struct slo *s, const struct slo_target *targets, size_t n);

/* The query. Names are those of namespaces and pods: letters, digits, dashes and dots. */
void slo_query(struct buf *out, const struct slo_target *targets, size_t n);

#endif
