/* --from-prometheus of flyball simulate: a trace made of a cluster's own vLLM series, to ask what the last days would
 * have cost with another policy.
 *
 * Prometheus knows rates and means, not requests: arrivals are drawn as a Poisson process with the measured rate of
 * each step, and every request of a step has the mean lengths of that step. Bursts shorter than a step and the
 * spread of lengths are lost, which the report notes. */
#include "simulate.h"

#include "../base/clock.h"
#include "../net/loop.h"
#include "../prom/query.h"

#include <math.h>
#include <stdio.h>

enum { POINTS_MAX = 10000, REQUESTS_MAX = 50000000 };

enum question { RATE, PROMPT, OUTPUT, QUESTION_N };

struct answers {
    double *at[QUESTION_N]; /* owned, [n], one value per step; NaN: no sample */
    size_t n;               /* steps */
    int64_t start_ms, step_ms;
    size_t left; /* questions without an answer */
    bool failed;
    err_t e;
    struct loop *loop;
};

struct asked { /* context of one query; lives in ask_all() until all are answered */
    struct answers *answers;
    enum question question;
};

/* The model, and the namespace if one is given. Both come from flags and are escaped. */
static void put_matchers(struct buf *out, const struct simulate_source *s)
{
    buf_put(out, S("{model_name=\""));
    prom_query_escape(out, str_c(s->model));
    if (s->ns) {
        buf_put(out, S("\",namespace=\""));
        prom_query_escape(out, str_c(s->ns));
    }
    buf_put(out, S("\"}"));
}

/* The rate over one step, summed over all replicas. */
static void put_rate(struct buf *out, const struct simulate_source *s, const char *metric,
                     int64_t step_ms)
{
    buf_printf(out, "sum(rate(vllm:%s", metric);
    put_matchers(out, s);
    buf_printf(out, "[%llds]))", (long long)(step_ms / 1000));
}

/* The PromQL of one question: a rate, or a mean as the ratio of two rates. */
static void put_question(struct buf *out, const struct simulate_source *s, enum question question,
                         int64_t step_ms)
{
    static const char *const metrics[QUESTION_N][2] = {
        [RATE] = { "time_to_first_token_seconds_count", NULL },
        [PROMPT] = { "prompt_tokens_total", "time_to_first_token_seconds_count" },
        [OUTPUT] = { "request_generation_tokens_sum", "request_generation_tokens_count" },
    };
    put_rate(out, s, metrics[question][0], step_ms);
    if (metrics[question][1]) {
        buf_put(out, S("/"));
        put_rate(out, s, metrics[question][1], step_ms);
    }
}

/* Stores the samples of one answer by step; the last answer stops the loop. The first failure is kept. */
static void take_answer(void *context, const struct prom_result *result, const err_t *failure)
{
    const struct asked *asked = context;
    struct answers *a = asked->answers;
    if (failure && !a->failed) {
        a->failed = true;
        a->e = *failure;
    }
    for (size_t i = 0; result && result->n && i < result->series[0].sample_n; i++) {
        const struct prom_sample *s = &result->series[0].samples[i];
        int64_t at = (s->time_ms - a->start_ms + a->step_ms / 2) / a->step_ms;
        if (at >= 0 && (size_t)at < a->n && isfinite(s->value) && s->value >= 0)
            a->at[asked->question][at] = s->value;
    }
    if (--a->left == 0)
        loop_stop(a->loop);
}

/* Requests of one step: rate and lengths at its end hold for it. */
static void draw_requests(struct trace *trace, const struct answers *a, size_t i, struct random *r,
                          const double lengths[2])
{
    double begin = (double)i * (double)a->step_ms / 1e3, end = begin + (double)a->step_ms / 1e3;
    double rate = a->at[RATE][i];
    for (double at = begin; rate > 0 && trace->requests.n < REQUESTS_MAX;) {
        at += -log(1 - random_unit(r)) / rate;
        if (at >= end)
            return;
        vec_push(&trace->requests, ((struct replica_request){
                                       (int64_t)(at * 1e9), (int32_t)lround(lengths[0]),
                                       (int32_t)lround(lengths[1]), (uint32_t)trace->requests.n }));
    }
}

/* Draws the requests of all steps. Where a step has no mean length, the last known one is used. */
static int make_trace(const struct answers *a, uint64_t seed, struct trace *ret, err_t *e)
{
    static const double tokens_max = 1 << 20;
    struct trace trace = { 0 };
    struct random r;
    double lengths[2] = { NAN, NAN }; /* the last known ones */
    random_init(&r, seed, 5);
    for (size_t i = 0; i < a->n; i++) {
        if (a->at[PROMPT][i] > 0)
            lengths[0] = fmin(a->at[PROMPT][i], tokens_max);
        if (a->at[OUTPUT][i] > 0)
            lengths[1] = fmin(a->at[OUTPUT][i], tokens_max);
        if (lengths[0] > 0 && lengths[1] > 0)
            draw_requests(&trace, a, i, &r, lengths);
    }
    if (!trace.requests.n)
        return err_set(e, ENODATA,
                       "Prometheus has no requests of this model in that time; check --model, "
                       "--namespace and --since");
    if (trace.requests.n >= REQUESTS_MAX) {
        trace_done(&trace);
        return err_set(e, E2BIG, "more than %d requests in that time; choose a shorter --since",
                       REQUESTS_MAX);
    }
    trace.length_ns = trace.requests.at[trace.requests.n - 1].arrived_ns + NS_PER_MS;
    *ret = trace;
    return 0;
}

/* Asks all questions and waits for the answers. */
static int ask_all(const struct simulate_source *s, struct answers *a, err_t *e)
{
    struct prom_client *client;
    struct asked asked[QUESTION_N];
    if (prom_client_new(a->loop,
                        &(struct prom_client_options){ .url = str_c(s->url),
                                                       .token_file = s->token_file,
                                                       .timeout_ns = 60 * NS_PER_S,
                                                       .retry = { 2, NS_PER_S, 2, 0.1 } },
                        &client, e) < 0)
        return -e->code;
    a->left = QUESTION_N;
    for (int i = 0; i < QUESTION_N; i++) {
        auto_buf struct buf promql = { 0 };
        asked[i] = (struct asked){ a, (enum question)i };
        put_question(&promql, s, (enum question)i, a->step_ms);
        prom_client_query(client, &(struct prom_query){ .promql = buf_str(&promql),
                                                        .start_ms = a->start_ms,
                                                        .end_ms = a->start_ms +
                                                                  a->step_ms * (int64_t)(a->n - 1),
                                                        .step_ms = a->step_ms,
                                                        .on_done = take_answer,
                                                        .context = &asked[i] });
    }
    loop_run(a->loop);
    prom_client_free(client);
    return a->failed
               ? err_set(e, a->e.code, "cannot query Prometheus at %s: %.300s", s->url, a->e.text)
               : 0;
}

/* The step grows with the time span, so that a query never asks for more points than Prometheus returns. */
int simulate_trace_from_prometheus(const struct simulate_source *s, uint64_t seed,
                                   struct trace *ret, err_t *e)
{
    static const int64_t step_least_ms = 60000;
    struct answers a = { 0 };
    int64_t since_ms = s->since_ns / 1000000;
    a.step_ms = MAX(step_least_ms, (since_ms / POINTS_MAX / 1000 + 1) * 1000);
    a.n = (size_t)(since_ms / a.step_ms);
    if (a.n < 2)
        return err_set(e, EINVAL, "--since must be 2m or more");
    a.start_ms = clock_wall_ns() / 1000000 - a.step_ms * (int64_t)(a.n - 1);
    if (loop_new(&(struct loop_options){ 0 }, &a.loop, e) < 0)
        return -e->code;
    for (int i = 0; i < QUESTION_N; i++) {
        a.at[i] = mem_zero(a.n, sizeof(double));
        for (size_t k = 0; k < a.n; k++)
            a.at[i][k] = NAN;
    }
    int r = ask_all(s, &a, e);
    r = r < 0 ? r : make_trace(&a, seed, ret, e);
    for (int i = 0; i < QUESTION_N; i++)
        free(a.at[i]);
    loop_free(a.loop);
    return r;
}
