/* Queries Prometheus for a feed, in the words of WVA, so that recording rules and caches made for
 * it apply. Many models in one query: see collect_group.c, which uses the texts of this file too.
 *
 * The decision needs KV cache and queue, so those two queries must be answered; the others are for
 * the status, the optimizer and the slo policy, and may fail.
 *
 * All models share one pool of connections. The first query of a fetch therefore goes alone, and
 * the others follow once it was answered: a model whose queries hang holds one connection, not one
 * per query. Queries that timed out last time are marked (`suspect`): the client sends the others
 * first.
 *
 *     KV ─► answered ─► QUEUE, ARRIVAL, INPUT, OUTPUT, TTFT, ITL, traffic (3), REQUESTS
 *                         └─► a pod has a queue but no KV ─► OLD_KV (the metric's name before vLLM renamed it)
 */
#include "../../base/duration.h"
#include "collect_query.h"

#include <math.h>
#include <stdio.h>

struct collect_query {
    struct sat_fetch *fetch;
    enum collect_kind kind;
    int64_t sent_ns;
    struct prom_call *call;
};

/* ---- texts */

static str read_label(const struct sat_fetch *q, bool model)
{
    return model ? q->feed->model : q->feed->ns;
}

/* namespace="a", or namespace=~"a|b" with each value once. */
static void put_matcher(struct buf *out, const struct collect_scope *scope, bool model,
                        const char *label)
{
    auto_map struct map seen = { 0 };
    str *values = mem_zero(scope->n, sizeof(*values));
    size_t n = 0;
    for (size_t i = 0; i < scope->n; i++) {
        str value = read_label(scope->fetches[i], model);
        if (scope->n == 1 || !map_put(&seen, value, values))
            values[n++] = value;
    }
    prom_query_any_of(out, label, values, n);
    free(values);
}

/* Matchers in WVA's order, so that a cache or recording rule made for its queries applies: queries
 * about the load of the whole model begin with the model. */
void collect_put_matchers(struct buf *out, const struct collect_scope *scope,
                          enum collect_match match)
{
    bool model_first = match == COLLECT_MODEL_FIRST;
    const char *labels[] = { "namespace",
                             match == COLLECT_TARGET ? "target_model_name" : "model_name" };
    buf_putc(out, '{');
    put_matcher(out, scope, model_first, labels[model_first]);
    if (match != COLLECT_ANY_MODEL) {
        buf_putc(out, ',');
        put_matcher(out, scope, !model_first, labels[!model_first]);
    }
    buf_put(out, match == COLLECT_NO_TARGET ? S(",target_model_name=\"\"}") : S("}"));
}

void collect_put_aggregation(struct buf *out, const struct collect_scope *scope,
                             const char *aggregation, const char *labels, bool any_model)
{
    const char *of_model = scope->n == 1 ? "" : any_model ? "namespace" : "namespace, model_name";
    if (*labels || *of_model)
        buf_printf(out, "%s by (%s%s%s) (", aggregation, of_model, *labels && *of_model ? ", " : "",
                   labels);
    else
        buf_printf(out, "%s(", aggregation);
}

static const struct {
    const char *vllm, *sglang;
} other_names[] = {
    { "kv_cache_usage_perc", "token_usage" },
    { "num_requests_waiting", "num_queue_reqs" },
    { "num_requests_running", "num_running_reqs" },
    { "request_success_total", "num_requests_total" },
    { "request_prompt_tokens", "prompt_tokens_histogram" },
    { "request_generation_tokens", "generation_tokens_histogram" },
    { "prefix_cache_hits_total", "cached_tokens_total" },
    { "prefix_cache_queries_total", "prompt_tokens_total" },
};

/* Metrics with the same meaning mostly have the same name after the prefix; parts of a histogram keep their ending. Back to vLLM,
 * the last row does not count: its name has another meaning there too. */
const char *collect_translate(str metric, bool to_sglang, char out[static COLLECT_NAME_MAX])
{
    str stem = str_from(metric, strlen(to_sglang ? "vllm:" : "sglang:"));
    const char *prefix = to_sglang ? "sglang:" : "vllm:";
    if (!str_starts(metric, to_sglang ? S("vllm:") : S("sglang:")))
        return NULL;
    snprintf(out, COLLECT_NAME_MAX, "%s" STR_FMT, prefix, STR_ARG(stem));
    for (size_t i = 0; i < countof(other_names) - !to_sglang; i++) {
        const char *from = to_sglang ? other_names[i].vllm : other_names[i].sglang;
        if (str_starts(stem, str_c(from)))
            snprintf(out, COLLECT_NAME_MAX, "%s%s" STR_FMT, prefix,
                     to_sglang ? other_names[i].sglang : other_names[i].vllm,
                     STR_ARG(str_from(stem, strlen(from))));
    }
    return out;
}

bool collect_has_sglang(const struct collect_scope *scope)
{
    for (size_t i = 0; i < scope->n; i++)
        if (scope->fetches[i]->feed->sglang)
            return true;
    return false;
}

void collect_put_series(struct buf *out, const struct collect_scope *scope, const char *function,
                        const char *metric, const char *range, enum collect_match match)
{
    char other[COLLECT_NAME_MAX];
    const char *names[] = { metric, collect_has_sglang(scope)
                                        ? collect_translate(str_c(metric), true, other)
                                        : NULL };
    for (size_t i = 0; i < countof(names) && names[i]; i++) {
        buf_printf(out, "%s%s%s%s", i ? " or " : "", function, *function ? "(" : "", names[i]);
        collect_put_matchers(out, scope, match);
        buf_printf(out, "%s%s", range, *function ? ")" : "");
    }
}

static void put_highest(struct buf *out, const struct collect_scope *scope, const char *metric)
{
    collect_put_aggregation(out, scope, "max", "pod", false);
    collect_put_series(out, scope, "max_over_time", metric, "[1m]", COLLECT_NS_FIRST);
    buf_putc(out, ')');
}

static void put_sum(struct buf *out, const struct collect_scope *scope, const char *metric,
                    const char *part)
{
    char name[COLLECT_NAME_MAX];
    snprintf(name, sizeof(name), "%s%s", metric, part);
    collect_put_aggregation(out, scope, "sum", "", false);
    collect_put_series(out, scope, "rate", name, "[1m]", COLLECT_MODEL_FIRST);
    buf_putc(out, ')');
}

static void put_request_count(struct buf *out, const struct collect_scope *scope)
{
    char text[DURATION_TEXT_MAX], range[DURATION_TEXT_MAX + 2];
    duration_prom_text(scope->fetches[0]->feed->retention_ns, text);
    snprintf(range, sizeof(range), "[%s]", text);
    collect_put_aggregation(out, scope, "sum", "", false);
    collect_put_series(out, scope, "increase", "vllm:request_success_total", range,
                       COLLECT_NS_FIRST);
    buf_putc(out, ')');
}

static bool is_traffic(enum collect_kind kind)
{
    return kind == COLLECT_BY_POD || kind == COLLECT_OF_MODEL || kind == COLLECT_HISTOGRAMS;
}

void collect_put_query(struct buf *out, const struct collect_scope *scope, enum collect_kind kind)
{
    static const char *const names[COLLECT_KIND_N] = {
        [COLLECT_KV] = "vllm:kv_cache_usage_perc",
        [COLLECT_QUEUE] = "vllm:num_requests_waiting",
        [COLLECT_ARRIVAL] = "vllm:request_success_total",
        [COLLECT_INPUT] = "vllm:request_prompt_tokens",
        [COLLECT_OUTPUT] = "vllm:request_generation_tokens",
        [COLLECT_TTFT] = "vllm:time_to_first_token_seconds",
        [COLLECT_ITL] = "vllm:time_per_output_token_seconds",
        [COLLECT_OLD_KV] = "vllm:gpu_cache_usage_perc",
    };
    if (is_traffic(kind)) {
        collect_put_traffic(out, scope, kind);
    } else if (kind == COLLECT_KV || kind == COLLECT_QUEUE || kind == COLLECT_OLD_KV) {
        put_highest(out, scope, names[kind]);
    } else if (kind == COLLECT_REQUESTS) {
        put_request_count(out, scope);
    } else if (kind == COLLECT_ARRIVAL) {
        put_sum(out, scope, names[kind], "");
    } else { /* a mean */
        put_sum(out, scope, names[kind], "_sum");
        buf_putc(out, '/');
        put_sum(out, scope, names[kind], "_count");
    }
}

/* ---- answers */

/* Stores one value per pod. A value of the old KV metric does not replace one of the new. */
static void take_by_pod(struct sat_fetch *q, const struct prom_result *result,
                        enum collect_kind kind)
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
        if (kind == COLLECT_QUEUE)
            s->queue = trunc(value);
        else if (kind == COLLECT_KV || isnan(s->kv))
            s->kv = value;
    }
}

static double single_value(const struct prom_result *result)
{
    const struct prom_series *s = result->n ? &result->series[0] : NULL;
    double value = s ? s->samples[s->sample_n - 1].value : NAN;
    return isfinite(value) && value >= 0 ? value : NAN;
}

static void take_result(struct sat_fetch *q, enum collect_kind kind,
                        const struct prom_result *result)
{
    double value = single_value(result);
    switch (kind) {
    case COLLECT_KV:
    case COLLECT_QUEUE:
    case COLLECT_OLD_KV:
        take_by_pod(q, result, kind);
        break;
    case COLLECT_ARRIVAL:
        q->load.arrival_per_min = value * 60;
        break;
    case COLLECT_INPUT:
        q->load.input_tokens = value;
        break;
    case COLLECT_OUTPUT:
        q->load.output_tokens = value;
        break;
    case COLLECT_TTFT:
        q->load.ttft_ms = value * 1000;
        break;
    case COLLECT_ITL:
        q->load.itl_ms = value * 1000;
        break;
    case COLLECT_BY_POD:
    case COLLECT_OF_MODEL:
    case COLLECT_HISTOGRAMS:
        collect_take_traffic(q, kind, result);
        break;
    case COLLECT_REQUESTS:
        q->requests_known = !isnan(value);
        q->requests = value;
        break;
    case COLLECT_KIND_N:
        break;
    }
}

void collect_take_answer(struct sat_fetch *q, enum collect_kind kind,
                         const struct prom_result *result, const err_t *failure)
{
    if (result)
        take_result(q, kind, result);
    else if (kind == COLLECT_KV || kind == COLLECT_QUEUE)
        collect_fail(q, failure->text);
}

void collect_observe(const struct sat_collector *c, enum collect_kind kind, int64_t sent_ns,
                     const err_t *failure)
{
    static const char *const names[COLLECT_KIND_N] = { [COLLECT_KV] = "kv_cache",
                                                       [COLLECT_QUEUE] = "queue_length",
                                                       [COLLECT_BY_POD] = "cache_config",
                                                       [COLLECT_REQUESTS] = "request_count",
                                                       [COLLECT_ARRIVAL] = "arrival_rate" };
    if (c->observed && names[kind])
        c->observed(c->context, names[kind],
                    (double)(loop_mono_ns(c->loop) - sent_ns) / (double)NS_PER_S, failure);
}

bool collect_needs(const struct sat_fetch *q, enum collect_kind kind)
{
    if (kind == COLLECT_KV || kind == COLLECT_OLD_KV)
        return false; /* the first one; and one that depends on an answer */
    return is_traffic(kind) ? q->feed->collector->traffic_matters
                            : kind != COLLECT_REQUESTS || q->feed->retention_ns;
}

bool collect_has_queue_without_kv(const struct sat_fetch *q)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&q->samples, slot));) {
        const struct sat_sample *s = slot->value;
        if (isnan(s->kv) && !isnan(s->queue))
            return true;
    }
    return false;
}

/* ---- one model */

/* One query ended: store the answer, and send what depends on it. */
static void on_answer(void *context, const struct prom_result *result, const err_t *failure)
{
    struct collect_query *query = context;
    struct sat_fetch *q = query->fetch;
    bool hung = failure && failure->code == ETIMEDOUT;
    query->call = NULL;
    collect_observe(q->feed->collector, query->kind, query->sent_ns, failure);
    q->feed->hung = (q->feed->hung & ~(1u << query->kind)) | (unsigned)hung << query->kind;
    q->answered_apart |= result != NULL;
    collect_take_answer(q, query->kind, result, failure);
    if (query->kind == COLLECT_KV && (result || q->feed->collector->load_matters))
        for (int i = 0; i < COLLECT_KIND_N; i++)
            if (collect_needs(q, (enum collect_kind)i))
                collect_send_query(q, (enum collect_kind)i);
    if (query->kind == COLLECT_QUEUE && result && collect_has_queue_without_kv(q))
        collect_send_query(q, COLLECT_OLD_KV);
    collect_finish_answer(q);
}

void collect_send_query(struct sat_fetch *q, enum collect_kind kind)
{
    auto_buf struct buf promql = { 0 };
    q->queries = q->queries ? q->queries : mem_zero(COLLECT_KIND_N, sizeof(*q->queries));
    struct collect_query *query = &q->queries[kind];
    *query = (struct collect_query){ .fetch = q,
                                     .kind = kind,
                                     .sent_ns = loop_mono_ns(q->feed->collector->loop) };
    collect_put_query(&promql, &(struct collect_scope){ &q, 1 }, kind);
    q->left++;
    query->call = prom_client_query(q->feed->collector->prometheus,
                                    &(struct prom_query){ .promql = buf_str(&promql),
                                                          .suspect = q->feed->hung >> kind & 1,
                                                          .on_done = on_answer,
                                                          .context = query });
}

void collect_ask_prometheus(struct sat_fetch *q)
{
    collect_send_query(q, COLLECT_KV);
}

void collect_cancel_queries(struct sat_fetch *q)
{
    for (int i = 0; q->queries && i < COLLECT_KIND_N; i++)
        if (q->queries[i].call)
            prom_call_cancel(q->queries[i].call);
    free(take(q->queries));
}
