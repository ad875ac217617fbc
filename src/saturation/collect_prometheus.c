/* Queries Prometheus for a feed, in the words of WVA, so that recording rules and caches made for
 * it apply.
 *
 * The decision needs KV cache and queue, so those two queries must be answered; the others are for
 * the status, the optimizer and the slo policy, and may fail.
 *
 * All models share one pool of connections. The first query of a fetch therefore goes alone, and
 * the others follow once it was answered: a model whose queries hang holds one connection, not one
 * per query. Queries that timed out last time are marked (`doubted`): the client sends the others
 * first.
 *
 *     KV ─► answered ─► QUEUE, ARRIVAL, INPUT, OUTPUT, TTFT, ITL, traffic (3), REQUESTS
 *                         └─► a pod has a queue but no KV ─► OLD_KV (the metric's name before vLLM renamed it)
 */
#include "../base/duration.h"
#include "collect.h"

#include <math.h>

enum query_kind {
    KV,
    QUEUE,
    ARRIVAL,
    INPUT,
    OUTPUT,
    TTFT,
    ITL,
    BY_POD, /* this and the next two: see collect_traffic.c */
    OF_MODEL,
    HISTOGRAMS,
    REQUESTS,
    OLD_KV,
    QUERY_N
};

struct collect_query {
    struct sat_fetch *fetch;
    enum query_kind kind;
    struct prom_call *call;
};

/* Matchers in WVA's order, so that a cache or recording rule made for its queries applies: queries
 * about the load of the whole model begin with the model. */
static void put_matchers(struct buf *out, const struct sat_feed *feed, bool model_first)
{
    buf_putc(out, '{');
    prom_query_matcher(out, model_first ? "model_name" : "namespace",
                       model_first ? feed->model : feed->ns);
    buf_putc(out, ',');
    prom_query_matcher(out, model_first ? "namespace" : "model_name",
                       model_first ? feed->ns : feed->model);
    buf_putc(out, '}');
}

static void put_highest(struct buf *out, const struct sat_feed *feed, const char *metric)
{
    buf_printf(out, "max by (pod) (max_over_time(%s", metric);
    put_matchers(out, feed, false);
    buf_put(out, S("[1m]))"));
}

static void put_mean(struct buf *out, const struct sat_feed *feed, const char *metric)
{
    buf_printf(out, "sum(rate(%s_sum", metric);
    put_matchers(out, feed, true);
    buf_printf(out, "[1m]))/sum(rate(%s_count", metric);
    put_matchers(out, feed, true);
    buf_put(out, S("[1m]))"));
}

static void put_requests(struct buf *out, const struct sat_feed *feed, enum query_kind kind)
{
    char range[DURATION_TEXT_MAX] = "1m";
    if (kind == REQUESTS)
        duration_prom_text(feed->retention_ns, range);
    buf_put(out, kind == REQUESTS ? S("sum(increase(") : S("sum(rate("));
    buf_put(out, S("vllm:request_success_total"));
    put_matchers(out, feed, kind == ARRIVAL);
    buf_printf(out, "[%s]))", range);
}

static bool is_traffic_query(enum query_kind kind)
{
    return kind == BY_POD || kind == OF_MODEL || kind == HISTOGRAMS;
}

static void put_query(struct buf *out, const struct sat_feed *feed, enum query_kind kind)
{
    static const char *const names[QUERY_N] = {
        [KV] = "vllm:kv_cache_usage_perc",           [QUEUE] = "vllm:num_requests_waiting",
        [INPUT] = "vllm:request_prompt_tokens",      [OUTPUT] = "vllm:request_generation_tokens",
        [TTFT] = "vllm:time_to_first_token_seconds", [ITL] = "vllm:time_per_output_token_seconds",
        [OLD_KV] = "vllm:gpu_cache_usage_perc",
    };
    if (is_traffic_query(kind))
        collect_put_traffic_query(out, feed, (enum traffic_query)(kind - BY_POD));
    else if (kind == KV || kind == QUEUE || kind == OLD_KV)
        put_highest(out, feed, names[kind]);
    else if (kind == ARRIVAL || kind == REQUESTS)
        put_requests(out, feed, kind);
    else
        put_mean(out, feed, names[kind]);
}

/* ---- answers */

/* Stores one value per pod. A value of the old KV metric does not replace one of the new. */
static void take_by_pod(struct sat_fetch *q, const struct prom_result *result, enum query_kind kind)
{
    int64_t now = loop_mono_ns(q->feed->collector->loop);
    for (size_t i = 0; i < result->n; i++) {
        const struct prom_series *series = &result->series[i];
        str pod = prom_series_label(series, S("pod"));
        double value = series->samples[series->sample_n - 1].value;
        pod = pod.n ? pod : prom_series_label(series, S("pod_name"));
        if (!pod.n || !isfinite(value) || value < 0)
            continue; /* treated as not reported */
        struct sat_sample *s = collect_add_sample(&q->samples, pod, now);
        if (kind == QUEUE)
            s->queue = trunc(value);
        else if (kind == KV || isnan(s->kv))
            s->kv = value;
    }
}

static double single_value(const struct prom_result *result)
{
    const struct prom_series *s = result->n ? &result->series[0] : NULL;
    double value = s ? s->samples[s->sample_n - 1].value : NAN;
    return isfinite(value) && value >= 0 ? value : NAN;
}

static void take_answer(struct sat_fetch *q, enum query_kind kind, const struct prom_result *result)
{
    double value = single_value(result);
    switch (kind) {
    case KV:
    case QUEUE:
    case OLD_KV:
        take_by_pod(q, result, kind);
        break;
    case ARRIVAL:
        q->load.arrival_per_min = value * 60;
        break;
    case INPUT:
        q->load.input_tokens = value;
        break;
    case OUTPUT:
        q->load.output_tokens = value;
        break;
    case TTFT:
        q->load.ttft_ms = value * 1000;
        break;
    case ITL:
        q->load.itl_ms = value * 1000;
        break;
    case BY_POD:
    case OF_MODEL:
    case HISTOGRAMS:
        collect_take_traffic(q, (enum traffic_query)(kind - BY_POD), result);
        break;
    case REQUESTS:
        q->requests_known = !isnan(value);
        q->requests = value;
        break;
    case QUERY_N:
        break;
    }
}

static void on_answer(void *context, const struct prom_result *result, const err_t *failure);

static void send_query(struct sat_fetch *q, enum query_kind kind)
{
    auto_buf struct buf promql = { 0 };
    struct collect_query *query = &q->queries[kind];
    *query = (struct collect_query){ .fetch = q, .kind = kind };
    put_query(&promql, q->feed, kind);
    q->left++;
    query->call = prom_client_query(q->feed->collector->prometheus,
                                    &(struct prom_query){ .promql = buf_str(&promql),
                                                          .suspect = q->feed->hung >> kind & 1,
                                                          .on_done = on_answer,
                                                          .context = query });
}

static void send_other_queries(struct sat_fetch *q)
{
    for (int i = KV + 1; i <= REQUESTS; i++)
        if (is_traffic_query((enum query_kind)i) ? q->feed->collector->traffic_matters
                                                 : i != REQUESTS || q->feed->retention_ns)
            send_query(q, (enum query_kind)i);
}

static bool has_queue_without_kv(const struct sat_fetch *q)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&q->samples, slot));) {
        const struct sat_sample *s = slot->value;
        if (isnan(s->kv) && !isnan(s->queue))
            return true;
    }
    return false;
}

/* One query ended: store the answer, and send what depends on it. */
static void on_answer(void *context, const struct prom_result *result, const err_t *failure)
{
    struct collect_query *query = context;
    struct sat_fetch *q = query->fetch;
    bool hung = failure && failure->code == ETIMEDOUT;
    query->call = NULL;
    q->feed->hung = (q->feed->hung & ~(1u << query->kind)) | (unsigned)hung << query->kind;
    if (result)
        take_answer(q, query->kind, result);
    else if (query->kind == KV || query->kind == QUEUE)
        collect_fail(q, failure->text);
    if (query->kind == KV && (result || q->feed->collector->load_matters))
        send_other_queries(q);
    if (query->kind == QUEUE && result && has_queue_without_kv(q))
        send_query(q, OLD_KV);
    collect_finish_answer(q);
}

void collect_ask_prometheus(struct sat_fetch *q)
{
    q->queries = mem_zero(QUERY_N, sizeof(*q->queries));
    send_query(q, KV);
}

void collect_cancel_queries(struct sat_fetch *q)
{
    for (int i = 0; q->queries && i < QUERY_N; i++)
        if (q->queries[i].call)
            prom_call_cancel(q->queries[i].call);
    free(take(q->queries));
}
