/* Traces: what the controllers did and how long it took, as spans for an OpenTelemetry collector (OTLP over HTTP in
 * protobuf). Off unless the environment names a collector.
 *
 *     reconcile                one turn of a controller
 *       collect                metrics of a model, samples of a node
 *       analyze, decide        the cores of a feature
 *       actuate                one request to the API server
 *
 * A span is a value: begin returns it, end encodes it. Nothing is kept in between, and everything accepts a tracer that is
 * NULL. Spans that a collector does not take in time are dropped and counted, never waited for. */
#ifndef FLYBALL_KUBE_TRACER_H
#define FLYBALL_KUBE_TRACER_H

#include "../base/metrics.h"
#include "../net/loop.h"

struct tracer;

struct tracer_span { /* zero: not recorded, and neither are its children */
    uint64_t trace[2], id, parent;
    int64_t
        start_ns; /* real time, whatever the clock of the loop shows: it measures this process */
};

struct tracer_attribute {
    const char *key;
    str text;       /* empty: the number */
    int64_t number; /* ignored if there is text */
};

struct tracer_result {
    const char *name;                  /* of the span */
    const struct tracer_attribute *at; /* those without text and number are left out */
    size_t n;
    str error; /* empty: no error */
};

/* From OTEL_EXPORTER_OTLP_ENDPOINT and its relatives (docs/operations.md). NULL: not requested, or not possible, which is
 * logged: a program must not stop because it cannot be watched. The loop must outlive it; `metrics` counts what is sent and
 * dropped. */
struct tracer *tracer_new(struct loop *loop, struct metrics *metrics);
void tracer_free(struct tracer *t); /* what was not sent is lost: at most the spans of a second */

struct tracer_span tracer_begin(struct tracer *t,
                                const struct tracer_span *parent); /* NULL: a new trace */
void tracer_end(struct tracer *t, const struct tracer_span *span,
                const struct tracer_result *result);

#endif
