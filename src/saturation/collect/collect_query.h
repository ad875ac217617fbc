/* Shared by the files that query Prometheus: collect_prometheus.c (one model), collect_traffic.c
 * (the texts of the slo policy) and collect_group.c (many models in one query). */
#ifndef FLYBALL_SATURATION_COLLECT_QUERY_H
#define FLYBALL_SATURATION_COLLECT_QUERY_H

#include "collect.h"

enum collect_kind {
    COLLECT_KV,
    COLLECT_QUEUE,
    COLLECT_ARRIVAL,
    COLLECT_INPUT,
    COLLECT_OUTPUT,
    COLLECT_TTFT,
    COLLECT_ITL,
    COLLECT_BY_POD, /* this and the next two: see collect_traffic.c */
    COLLECT_OF_MODEL,
    COLLECT_HISTOGRAMS,
    COLLECT_REQUESTS,
    COLLECT_OLD_KV,
    COLLECT_KIND_N
};

/* The models that a query is about. One: the text is WVA's. Several: the answer has the labels
 * `namespace` and `model_name`, and may contain series of models that were not meant. */
struct collect_scope {
    struct sat_fetch *const *fetches; /* not NULL */
    size_t n;                         /* at least 1 */
};

/* `model_first` is WVA's order of the labels for the load of a whole model; `any_model`: the metric
 * has no label model_name. */
enum collect_match {
    COLLECT_NS_FIRST,
    COLLECT_MODEL_FIRST,
    COLLECT_ANY_MODEL,
    COLLECT_TARGET,    /* the gateway: the model is the target of requests, */
    COLLECT_NO_TARGET, /* or their model, and they name no target */
};
void collect_put_matchers(struct buf *out, const struct collect_scope *scope,
                          enum collect_match match);
/* "sum by (pod) (": the aggregation over everything but `labels` ("": all) and the model. */
void collect_put_aggregation(struct buf *out, const struct collect_scope *scope,
                             const char *aggregation, const char *labels, bool any_model);
/* function(metric{…}range), or metric{…} if there is no function; and the same of SGLang where a variant runs it. */
void collect_put_series(struct buf *out, const struct collect_scope *scope, const char *function,
                        const char *metric, const char *range, enum collect_match match);
bool collect_has_sglang(const struct collect_scope *scope);
void collect_put_query(struct buf *out, const struct collect_scope *scope, enum collect_kind kind);
void collect_put_traffic(struct buf *out, const struct collect_scope *scope,
                         enum collect_kind kind);

/* Stores the answer of one model, or why there is none. */
void collect_take_answer(struct sat_fetch *q, enum collect_kind kind,
                         const struct prom_result *result, const err_t *failure);
void collect_take_traffic(struct sat_fetch *q, enum collect_kind kind,
                          const struct prom_result *result);

/* Reports how long a query took. */
void collect_observe(const struct sat_collector *c, enum collect_kind kind, int64_t sent_ns,
                     const err_t *failure);
bool collect_needs(const struct sat_fetch *q, enum collect_kind kind);
bool collect_has_queue_without_kv(const struct sat_fetch *q);
void collect_send_query(struct sat_fetch *q, enum collect_kind kind); /* about this model alone */

#endif
