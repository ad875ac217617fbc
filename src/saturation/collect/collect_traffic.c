/* Prometheus queries of the slo policy, three per fetch: values by pod, values of the
 * model, and latency histograms. Each query joins many expressions with `or`; label_replace adds a
 * label `q` that identifies the expression in the answer. Separate queries were rejected: 20 per
 * model would be 20,000 requests per cycle for 1,000 models that are asked about one by one. An expression without series is simply
 * absent from the answer.
 *
 * Rates and means are over one minute, four scrapes of 15 s, the shortest window that survives a
 * lost scrape; latency histograms are over five, so that their tail has requests in it. Where a gateway counts requests as they arrive, its count is used; otherwise
 * arrivals are first tokens plus the growth of the queues. */
#include "collect_query.h"

#include <math.h>

/* One expression of a query: aggregation by labels ("": all) of a function of a metric. */
struct expression {
    const char *q, *aggregation, *labels, *function;
    const char *metric, *range; /* metric NULL: the gateway's queue, `function` is its unit */
    bool any_model;             /* the metric has no label model_name */
    bool tail;                  /* the 99th percentile of it */
};

static void put_expression(struct buf *out, const struct collect_scope *scope,
                           const struct expression *x)
{
    buf_put(out, x->tail ? S("histogram_quantile(0.99, ") : S(""));
    collect_put_aggregation(out, scope, x->aggregation, x->labels, x->any_model);
    collect_put_series(out, scope, x->function, x->metric, x->range,
                       x->any_model ? COLLECT_ANY_MODEL : COLLECT_NS_FIRST);
    buf_put(out, x->tail ? S("))") : S(")"));
}

/* Requests of a model that the gateway holds: those for it as a target, or by its own name where a request names no
 * other target. The metric has two names; a picker that exports both counts each request twice, and `or` keeps one. */
static void put_gateway_queue(struct buf *out, const struct collect_scope *scope, const char *part)
{
    static const char *const prefixes[] = { "llm_d_epp_", "inference_extension_" };
    for (int by_target = 1; by_target >= 0; by_target--) {
        buf_put(out, by_target ? S("") : S(" or "));
        collect_put_aggregation(out, scope, "sum", "", false);
        buf_put(out, by_target ? S("label_replace(") : S(""));
        for (size_t i = 0; i < countof(prefixes); i++) {
            buf_printf(out, "%s%sflow_control_queue_%s", i ? " or " : "", prefixes[i], part);
            collect_put_matchers(out, scope, by_target ? COLLECT_TARGET : COLLECT_NO_TARGET);
        }
        buf_put(out,
                by_target ? S(",\"model_name\",\"$1\",\"target_model_name\",\"(.+)\"))") : S(")"));
    }
}

static void put_expressions(struct buf *out, const struct collect_scope *scope,
                            const struct expression *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (all[i].metric && str_starts(str_c(all[i].metric), S("sglang:")) &&
            !collect_has_sglang(scope))
            continue;
        buf_put(out, i ? S(" or label_replace(") : S("label_replace("));
        if (all[i].metric)
            put_expression(out, scope, &all[i]);
        else
            put_gateway_queue(out, scope, all[i].function);
        buf_printf(out, ",\"q\",\"%s\",\"\",\"\")", all[i].q);
    }
}

#define ITL "vllm:inter_token_latency_seconds"
#define OLD_ITL "vllm:time_per_output_token_seconds"
#define TTFT "vllm:time_to_first_token_seconds"
#define TPOT "vllm:request_time_per_output_token_seconds"
#define RUNNING "vllm:num_requests_running"
#define WAITING "vllm:num_requests_waiting"
#define OUTPUT "vllm:request_generation_tokens"
#define PROMPT "vllm:request_prompt_tokens"
#define GATEWAY "inference_objective_request_total"

static const struct expression by_pod[] = {
    { "itl_sum", "sum", "pod", "increase", ITL "_sum", "[1m]" },
    { "itl_count", "sum", "pod", "increase", ITL "_count", "[1m]" },
    { "old_itl_sum", "sum", "pod", "increase", OLD_ITL "_sum", "[1m]" },
    { "old_itl_count", "sum", "pod", "increase", OLD_ITL "_count", "[1m]" },
    { "prompt", "sum", "pod", "rate", "vllm:prompt_tokens_total", "[1m]" },
    { "gen", "sum", "pod", "rate", "vllm:generation_tokens_total", "[1m]" },
    { "running", "sum", "pod", "avg_over_time", RUNNING, "[1m]" },
    { "running_low", "sum", "pod", "min_over_time", RUNNING, "[1m]" },
    { "running_high", "sum", "pod", "max_over_time", RUNNING, "[1m]" },
    { "kv", "avg", "pod", "last_over_time", "vllm:kv_cache_usage_perc", "[1m]" },
    { "old_kv", "avg", "pod", "last_over_time", "vllm:gpu_cache_usage_perc", "[1m]" },
    { "cache", "count", "pod, num_gpu_blocks, block_size", "", "vllm:cache_config_info", "",
      .any_model = true },
    { "tokens", "max", "pod", "", "sglang:max_total_num_tokens", "" },
};

static const struct expression of_model[] = {
    { "gateway", "sum", "", "rate", GATEWAY, "[1m]" },
    { "old_gateway", "sum", "", "rate", "inference_model_request_total", "[1m]" },
    { "gateway_now", "sum", "", "rate", GATEWAY, "[30s]" },
    { "first_tokens_now", "sum", "", "rate", TTFT "_count", "[30s]" },
    { "first_tokens", "sum", "", "rate", TTFT "_count", "[1m]" },
    { "queue_slope", "sum", "", "deriv", WAITING, "[1m]" },
    { "prompt_tokens", "sum", "", "rate", "vllm:prompt_tokens_total", "[1m]" },
    { "out_sum", "sum", "", "increase", OUTPUT "_sum", "[3m]" },
    { "out_count", "sum", "", "increase", OUTPUT "_count", "[3m]" },
    { "tail", "sum", "le", "rate", PROMPT "_bucket", "[10m]", .tail = true },
    { "tail_count", "sum", "", "increase", PROMPT "_count", "[10m]" },
    { "waiting", "sum", "", "", WAITING, "" },
    { "hits", "sum", "", "rate", "vllm:prefix_cache_hits_total", "[5m]" },
    { "looked_up", "sum", "", "rate", "vllm:prefix_cache_queries_total", "[5m]" },
    { "old_hits", "sum", "", "rate", "vllm:prefix_cache_hits", "[5m]" },
    { "old_looked_up", "sum", "", "rate", "vllm:prefix_cache_queries", "[5m]" },
    { "queued", "", "", "size", NULL, "" },
    { "bytes", "", "", "bytes", NULL, "" },
};

static const struct expression histograms[] = {
    { "ttft", "sum", "le", "increase", TTFT "_bucket", "[5m]" },
    { "itl", "sum", "le", "increase", TPOT "_bucket", "[5m]" },
    { "old_itl", "sum", "le", "increase", OLD_ITL "_bucket", "[5m]" },
};

static const double histogram_seconds = 300;
static const double tail_requests_min = 100;

void collect_put_traffic(struct buf *out, const struct collect_scope *scope, enum collect_kind kind)
{
    if (kind == COLLECT_BY_POD)
        put_expressions(out, scope, by_pod, countof(by_pod));
    else if (kind == COLLECT_OF_MODEL)
        put_expressions(out, scope, of_model, countof(of_model));
    else
        put_expressions(out, scope, histograms, countof(histograms));
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
        { "tokens", &t->kv_tokens },
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
    double hits = find_value(result, "hits") / find_value(result, "looked_up");
    hits =
        isnan(hits) ? find_value(result, "old_hits") / find_value(result, "old_looked_up") : hits;
    double bytes = find_value(result, "bytes");
    t->hit_rate = hits > 0 ? fmin(hits, 1) : 0;
    t->queued = queued > 0 && isfinite(queued) ? queued : 0;
    t->queued_bytes = bytes > 0 && isfinite(bytes) ? bytes : 0;
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

void collect_take_traffic(struct sat_fetch *q, enum collect_kind kind,
                          const struct prom_result *result)
{
    if (kind == COLLECT_BY_POD)
        take_by_pod(q, result);
    else if (kind == COLLECT_OF_MODEL)
        take_of_model(&q->traffic, result);
    else
        take_histograms(&q->traffic, result);
}
