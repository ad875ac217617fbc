/* Scrapes as a page for Prometheus: see fleet_page.h. */
#include "fleet_page.h"

#include <math.h>
#include <stdio.h>

static const struct {
    enum series_field field;
    const char *name;
} fleet_page_fields[] = {
    { SERIES_RUNNING, "num_requests_running" },
    { SERIES_WAITING, "num_requests_waiting" },
    { SERIES_KV, "kv_cache_usage_perc" },
    { SERIES_SUCCESS, "request_success_total" },
    { SERIES_PROMPT_TOKENS, "prompt_tokens_total" },
    { SERIES_GENERATION_TOKENS, "generation_tokens_total" },
    { SERIES_TTFT_SUM, "time_to_first_token_seconds_sum" },
    { SERIES_TTFT_COUNT, "time_to_first_token_seconds_count" },
    { SERIES_ITL_SUM, "inter_token_latency_seconds_sum" },
    { SERIES_ITL_COUNT, "inter_token_latency_seconds_count" },
    { SERIES_INPUT_SUM, "request_prompt_tokens_sum" },
    { SERIES_INPUT_COUNT, "request_prompt_tokens_count" },
    { SERIES_OUTPUT_SUM, "request_generation_tokens_sum" },
    { SERIES_OUTPUT_COUNT, "request_generation_tokens_count" },
};

static void fleet_page_put_histogram(struct buf *out, const char *pod, const char *name,
                                     const struct replica_bounds *bounds, const uint32_t *bucket,
                                     double all, int64_t at_ms)
{
    double below = 0;
    for (size_t i = 0; i <= bounds->n; i++) {
        char le[32] = "+Inf";
        if (i < bounds->n)
            snprintf(le, sizeof(le), "%g", bounds->at[i]);
        below = i < bounds->n ? below + bucket[i] : all;
        buf_printf(out, "vllm:%s_bucket{" FLEET_PAGE_LABELS ",pod=\"%s\",le=\"%s\"} %g %lld\n",
                   name, pod, le, below, (long long)at_ms);
    }
}

void fleet_page_put(struct buf *out, const char *pod, const struct replica_profile *profile,
                    const struct series_scrape *x, int64_t base_ms)
{
    int64_t at_ms = base_ms + llround(x->at_s * 1000);
    for (size_t i = 0; i < countof(fleet_page_fields); i++)
        buf_printf(out, "vllm:%s{" FLEET_PAGE_LABELS ",pod=\"%s\"} %.17g %lld\n",
                   fleet_page_fields[i].name, pod, x->field[fleet_page_fields[i].field],
                   (long long)at_ms);
    buf_printf(out,
               "vllm:cache_config_info{" FLEET_PAGE_LABELS
               ",pod=\"%s\",block_size=\"%d\",num_gpu_blocks=\"%d\"} 1 %lld\n",
               pod, profile->block_tokens, profile->kv_blocks, (long long)at_ms);
    fleet_page_put_histogram(out, pod, "time_to_first_token_seconds", &replica_ttft_bounds,
                             x->bucket[SERIES_TTFT], x->field[SERIES_TTFT_COUNT], at_ms);
    fleet_page_put_histogram(out, pod, "request_time_per_output_token_seconds",
                             &replica_tpot_bounds, x->bucket[SERIES_TPOT],
                             x->field[SERIES_TPOT_COUNT], at_ms);
    fleet_page_put_histogram(out, pod, "request_prompt_tokens", &replica_token_bounds,
                             x->bucket[SERIES_INPUT], x->field[SERIES_INPUT_COUNT], at_ms);
}
