/* A queueing model of one LLM server: a batch of at most N requests in service, a queue in front of
 * it, and service rates that depend on how full the batch is. Computes latencies for a rate, and
 * the highest rate within latency targets.
 *
 * Single precision where WVA has it, because its answers are the reference. Times are in
 * milliseconds; rates are in requests/s in the interface and in requests/ms inside. */
#ifndef FLYBALL_QUEUE_CORE_H
#define FLYBALL_QUEUE_CORE_H

#include "../../base/err.h"

enum queue_times {
    QUEUE_BY_PHASE, /* prefill(n) = gamma + delta * tokens * n; decode(n) = alpha + beta n */
    QUEUE_BY_ITERATION, /* an iteration costs alpha, each computed token beta, each attended one gamma */
};

struct queue_spec {
    int batch_max; /* N >= 1 */
    int queue_max; /* Q >= 0 */
    enum queue_times times;
    float alpha, beta, gamma, delta;   /* ms; delta only by phase */
    float input_tokens, output_tokens; /* means per request */
    /* As WVA: latency that does not depend on the rate is treated as falling with it, so that a target above it is
     * refused and one below it accepted; and a server without a queue is never solved. */
    bool compat;
};

struct queue_model {
    struct queue_spec spec;
    float *service_rate;      /* owned, [N]: requests/ms with n + 1 in service */
    double *probability;      /* owned, [K + 1] */
    float rate_min, rate_max; /* requests/s */
};

struct queue_metrics {
    float throughput; /* requests/s */
    float response_ms, wait_ms, service_ms;
    float in_service;
    float prefill_ms, token_ms, ttft_ms;
    float max_rate, utilization;
};

struct queue_targets { /* 0: no target */
    float ttft_ms, itl_ms, tokens_per_s;
};

struct queue_size {
    float rate_ttft, rate_itl, rate_tps; /* requests/s that each target alone allows */
    struct queue_metrics metrics;        /* at the lowest of them */
    struct queue_targets achieved;
};

int queue_init(struct queue_model *model, const struct queue_spec *spec, err_t *e);
void queue_done(struct queue_model *model);

int queue_analyze(struct queue_model *model, float rate_per_s, struct queue_metrics *ret, err_t *e);
int queue_solve_size(struct queue_model *model, struct queue_targets targets,
                     struct queue_size *ret, err_t *e);

#endif
