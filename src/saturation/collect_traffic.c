/* Prometheus queries of the slo policy, three per model and fetch: values by pod, values of the
 * model, and latency histograms. Each query joins many expressions with `or`; label_replace adds a
 * label `q` that identifies the expression in the answer. Separate queries were rejected: 20 per
 * model would be 20,000 requests per cycle for 1,000 models. An expression without series is simply
 * absent from the answer.
 *
 * Rates and means are over one minute, four scrapes of 15 s, the shortest window that survives a
 * lost scrape. Where a gateway counts requests as they arrive, its count is used; otherwise
 * arrivals are first tokens plus the growth of the queues. */
#include "collect.h"

#include <math.h>

static void put_matchers(struct buf *out, const struct sat_feed *feed, bool any_model)
{
    buf_putc(out, '{');
    prom_query_matcher(out, "namespace", feed->ns);
    if (!any_model) {
        buf_putc(out, ',');
        prom_query_matcher(out, "model_name", feed->model);
    }
    buf_putc(out, '}');
}

/* One expression of a query: `before`, the metric with its matchers, `after`. */
struct expression {
    const char *q, *before, *metric, *after;
    bool any_model; /* the metric has no label model_name */
};

static void put_expressions(struct buf *out, const struct sat_feed *feed,
                            const struct expression *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%slabel_replace(%s%s", i ? " or " : "", all[i].before, all[i].metric);
        put_matchers(out, feed, all[i].any_model);
        buf_printf(out, "%s,\"q\",\"%s\",\"\",\"\")", all[i].after, all[i].q);
    }
}

#define BY_POD "sum by (pod) ("
#define ITL "vllm:inter_token_latency_seconds"
#define OLD_ITL "vllm:time_per_output_token_seconds"
#define TTFT "vllm:time_to_first_token_seconds"
#define TPOT "vllm:request_time_per_output_token_seconds"
#define RUNNING "vllm:num_requests_running"

static const struct expression by_pod[] = {
    { "itl_sum", BY_POD "increase(", ITL "_sum", "[1m]))" },
    { "itl_count", BY_POD "increase(", ITL "_count", "[1m]))" },
    { "old_itl_sum", BY_POD "increase(", OLD_ITL "_sum", "[1m]))" },
    { "old_itl_count", BY_POD "increase(", OLD_ITL "_count", "[1m]))" },
    { "prompt", BY_POD "rate(", "vllm:prompt_tokens_total", "[1m]))" },
    { "gen", BY_POD "rate(", "vllm:generation_tokens_total", "[1m]))" },
    { "running", BY_POD "avg_over_time(", RUNNING, "[1m]))" },
    { "running_low", BY_POD "min_over_time(", RUNNING, "[1m]))" },
    { "running_high", BY_POD "max_over_time(", RUNNING, "[1m]))" },
    { "kv", "avg by (pod) (last_over_time(", "vllm:kv_cache_usage_perc", "[1m]))" },
    { "old_kv", "avg by (pod) (last_over_time(", "vllm:gpu_cache_usage_perc", "[1m]))" },
    { "cache", "count by (pod, num_gpu_blocks, block_size) (", "vllm:cache_config_info", ")",
      .any_model = true },
};

static const struct expression of_model[] = {
    { "gateway", "sum(rate(", "inference_objective_request_total", "[1m]))" },
    { "old_gateway", "sum(rate(", "inference_model_request_total", "[1m]))" },
    { "gateway_now", "sum(rate(", "inference_objective_request_total", "[30s]))" },
    { "first_tokens_now", "sum(rate(", TTFT "_count", "[30s]))" },
    { "first_tokens", "sum(rate(", TTFT "_count", "[1m]))" },
    { "queue_slope", "sum(deriv(", "vllm:num_requests_waiting", "[1m]))" },
    { "prompt_tokens", "sum(rate(", "vllm:prompt_tokens_total", "[1m]))" },
    { "out_sum", "sum(increase(", "vllm:request_generation_tokens_sum", "[3m]))" },
    { "out_count", "sum(increase(", "vllm:request_generation_tokens_count", "[3m]))" },
    { "tail", "histogram_quantile(0.99, sum by (le) (rate(", "vllm:request_prompt_tokens_bucket",
      "[10m])))" },
    { "tail_count", "sum(increase(", "vllm:request_prompt_tokens_count", "[10m]))" },
    { "waiting", "sum(", "vllm:num_requests_waiting", ")" },
    { "queued", "sum(", "inference_extension_flow_control_queue_size", ")" },
};

static const struct expression histograms[] = {
    { "ttft", "sum by (le) (increase(", TTFT "_bucket", "[1m]))" },
    { "itl", "sum by (le) (increase(", TPOT "_bucket", "[1m]))" },
    { "old_itl", "sum by (le) (increase(", OLD_ITL "_bucket", "[1m]))" },
};

static const double histogram_seconds = 60;
static const double tail_requests_min = 100;

void collect_put_traffic_query(struct buf *out, const struct sat_feed *feed,
                               enum traffic_query query)
{
    switch (query) {
    case TRAFFIC_BY_POD:
        put_expressions(out, feed, by_pod, countof(by_pod));
        break;
    case TRAFFIC_OF_MODEL:
        put_expressions(out, feed, of_model, countof(of_model));
        break;
    case TRAFFIC_HISTOGRAMS:
        put_expressions(out, feed, histograms, countof(histograms));
        break;
    }
}

/* ---- answers */

static double last_value(const struct prom_series *s)
{
    return s->samples[s->sample_n - 1].value;
}

static double number_label(const struct prom_series *s, str name)
{
    double value = NAN;
    str_to_f64(prom_series_label(s, name), &value);
    return value;
}

/* Stores the value of one expression in the sample of its pod. */
static void take_pod(struct sat_traffic_replica *t, const struct prom_series *s, str q)
{
    const struct {
        const char *q;
        double *to;
        bool old; /* used only if the current name of the metric is absent */
    } fields[] = {
        { "itl_sum", &t->itl_sum },
        { "itl_count", &t->itl_count },
        { "old_itl_sum", &t->itl_sum, 1 },
        { "old_itl_count", &t->itl_count, 1 },
        { "prompt", &t->prompt_rate },
        { "gen", &t->gen_rate },
        { "running", &t->running },
        { "running_low", &t->running_low },
        { "running_high", &t->running_high },
        { "kv", &t->kv },
        { "old_kv", &t->kv, 1 },
    };
    for (size_t i = 0; i < countof(fields); i++)
        if (str_eqc(q, fields[i].q) && (!fields[i].old || isnan(*fields[i].to)))
            *fields[i].to = last_value(s);
    if (str_eqc(q, "cache"))
        t->kv_tokens = number_label(s, S("num_gpu_blocks")) * number_label(s, S("block_size"));
}

static void take_by_pod(struct sat_fetch *q, const struct prom_result *result)
{
    int64_t now = loop_mono_ns(q->feed->collector->loop);
    for (size_t i = 0; i < result->n; i++) {
        const struct prom_series *s = &result->series[i];
        str pod = prom_series_label(s, S("pod")), about = prom_series_label(s, S("q"));
        bool ours = !str_eqc(about, "cache") ||
                    map_get(&q->samples, pod); /* no matcher for the model; comes last */
        if (pod.n && ours)
            take_pod(&collect_add_sample(&q->samples, pod, now)->traffic, s, about);
    }
}

static double find_value(const struct prom_result *result, const char *q)
{
    for (size_t i = 0; i < result->n; i++)
        if (str_eqc(prom_series_label(&result->series[i], S("q")), q))
            return last_value(&result->series[i]);
    return NAN;
}

static void take_of_model(struct sat_traffic *t, const struct prom_result *result)
{
    double first_tokens = find_value(result, "first_tokens"),
           slope = find_value(result, "queue_slope");
    double gateway = find_value(result, "gateway"), queued = find_value(result, "queued");
    gateway = isnan(gateway) ? find_value(result, "old_gateway") : gateway;
    t->arrival = !isnan(gateway) ? gateway : fmax(first_tokens + (isnan(slope) ? 0 : slope), 0);
    t->arrival_now = find_value(result, isnan(gateway) ? "first_tokens_now" : "gateway_now");
    t->in_tokens = find_value(result, "prompt_tokens") / first_tokens;
    t->out_tokens = find_value(result, "out_sum") / find_value(result, "out_count");
    t->in_tail =
        find_value(result, "tail_count") >= tail_requests_min ? find_value(result, "tail") : NAN;
    t->queued = isnan(queued) ? 0 : queued;
    t->waiting = find_value(result, "waiting") + t->queued;
}

static void take_histograms(struct sat_traffic *t, const struct prom_result *result)
{
    bool present = false; /* the current name of the metric */
    for (size_t i = 0; i < result->n; i++)
        present |= str_eqc(prom_series_label(&result->series[i], S("q")), "itl");
    t->seconds = histogram_seconds;
    for (size_t i = 0; i < result->n; i++) {
        const struct prom_series *s = &result->series[i];
        str q = prom_series_label(s, S("q")), le = prom_series_label(s, S("le"));
        double bound = str_eqc(le, "+Inf") ? INFINITY : number_label(s, S("le"));
        if (str_eqc(q, "ttft"))
            sat_traffic_add_bucket(&t->ttft, bound, last_value(s));
        else if (str_eqc(q, present ? "itl" : "old_itl"))
            sat_traffic_add_bucket(&t->itl, bound, last_value(s));
    }
}

void collect_take_traffic(struct sat_fetch *q, enum traffic_query query,
                          const struct prom_result *result)
{
    switch (query) {
    case TRAFFIC_BY_POD:
        take_by_pod(q, result);
        break;
    case TRAFFIC_OF_MODEL:
        take_of_model(&q->traffic, result);
        break;
    case TRAFFIC_HISTOGRAMS:
        take_histograms(&q->traffic, result);
        break;
    }
}
