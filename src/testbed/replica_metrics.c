/* The /metrics page of a simulated vLLM server: see replica_metrics.h. Bucket bounds are printed as Python
 * prints floats ("1.0", not "1"), because queries match the label `le` as text. */
#include "replica_metrics.h"

#include "../prom/exposition.h"

#include <math.h>

struct page {
    struct buf *out;
    str labels; /* model_name="...", escaped */
};

static void print_type(const struct page *p, const char *name, const char *type)
{
    buf_printf(p->out, "# TYPE vllm:%s %s\n", name, type);
}

static void print_value(const struct page *p, const char *name, const char *type, double value)
{
    print_type(p, name, type);
    buf_printf(p->out, "vllm:%s{" STR_FMT "} %.17g\n", name, STR_ARG(p->labels), value);
}

/* Buckets are stored per bound and printed cumulative, as the exposition format requires. */
static void print_histogram(const struct page *p, const char *name,
                            const struct replica_histogram *h, const struct replica_bounds *bounds)
{
    uint64_t below = 0;
    print_type(p, name, "histogram");
    for (size_t i = 0; i < bounds->n; i++) {
        below += h->bucket[i];
        buf_printf(p->out, "vllm:%s_bucket{" STR_FMT ",le=\"%g%s\"} %llu\n", name,
                   STR_ARG(p->labels), bounds->at[i],
                   bounds->at[i] == floor(bounds->at[i]) ? ".0" : "", /* as Python */
                   (unsigned long long)below);
    }
    buf_printf(p->out,
               "vllm:%s_bucket{" STR_FMT ",le=\"+Inf\"} %llu\n"
               "vllm:%s_sum{" STR_FMT "} %.17g\n"
               "vllm:%s_count{" STR_FMT "} %llu\n",
               name, STR_ARG(p->labels), (unsigned long long)h->count, name, STR_ARG(p->labels),
               h->sum, name, STR_ARG(p->labels), (unsigned long long)h->count);
}

void replica_print_metrics(const struct replica *r, str model, struct buf *out)
{
    const struct replica_counters *c = &r->counters;
    auto_buf struct buf labels = { 0 };
    buf_put(&labels, S("model_name=\""));
    exposition_write_label(&labels, model);
    buf_put(&labels, S("\""));
    struct page p = { out, buf_str(&labels) };
    print_value(&p, "num_requests_running", "gauge", replica_running(r));
    print_value(&p, "num_requests_waiting", "gauge", (double)r->waiting_n);
    print_value(&p, "kv_cache_usage_perc", "gauge", replica_kv_usage(r));
    print_value(&p, "num_preemptions_total", "counter", (double)c->preempted);
    print_value(&p, "prompt_tokens_total", "counter", (double)c->prompt_tokens);
    print_value(&p, "generation_tokens_total", "counter", (double)c->generation_tokens);
    print_value(&p, "request_success_total", "counter", (double)c->succeeded);
    print_type(&p, "cache_config_info", "gauge");
    buf_printf(out,
               "vllm:cache_config_info{" STR_FMT ",block_size=\"%d\",num_gpu_blocks=\"%d\"} 1\n",
               STR_ARG(p.labels), r->profile.block_tokens, r->profile.kv_blocks);
    print_histogram(&p, "request_prompt_tokens", &c->prompt, &replica_token_bounds);
    print_histogram(&p, "request_generation_tokens", &c->generation, &replica_token_bounds);
    print_histogram(&p, "time_to_first_token_seconds", &c->ttft, &replica_ttft_bounds);
    print_histogram(&p, "inter_token_latency_seconds", &c->itl, &replica_tpot_bounds);
    print_histogram(&p, "time_per_output_token_seconds", &c->itl, &replica_tpot_bounds);
    print_histogram(&p, "request_time_per_output_token_seconds", &c->tpot, &replica_tpot_bounds);
    print_histogram(&p, "e2e_request_latency_seconds", &c->e2e, &replica_e2e_bounds);
}
