#include "tap.h"

#include "testbed/vllm_model.h"

#include "base/random.h"

static const int64_t second = 1000000000;
static const struct vllm_profile profile = {
    .kv_blocks = 1000,
    .block_tokens = 16,
    .max_running = 64,
    .max_batch_tokens = 8192,
    .decode_base_ms = 20,
    .decode_per_request_ms = 0.5,
    .prefill_base_ms = 10,
    .prefill_per_token_ms = 0.05,
};

static void one_request_takes_its_time(void)
{
    struct vllm s;
    vllm_init(&s, &profile, 0);
    vllm_submit(&s, (struct replica_request){ 0, 100, 11 });
    vllm_advance(&s, 10 * second);
    EQ_INT(s.succeeded, 1);
    EQ_REAL(s.first_token.sum, 0.015);         /* 10 ms + 100 tokens of 0.05 ms */
    EQ_REAL(s.whole.sum, 0.015 + 10 * 0.0205); /* and ten steps alone in the batch */
    EQ_INT(s.per_token.count, 10);
    EQ_INT(s.used_blocks, 0);
    vllm_done(&s);
}

/* Under any load: no block is lost or used twice, and every request ends once. */
static void books_balance(void)
{
    struct random r;
    random_init(&r, 1, 1);
    struct vllm s;
    vllm_init(&s, &profile, 0);
    uint64_t submitted = 0, tokens = 0;
    for (int64_t now = 0; now < 120; now++) {
        for (uint32_t n = random_below(&r, 12); n; n--, submitted++) {
            int32_t out = 1 + (int32_t)random_below(&r, 600);
            tokens += (uint64_t)out;
            vllm_submit(&s, (struct replica_request){ now * second,
                                                   1 + (int32_t)random_below(&r, 2000), out });
        }
        vllm_advance(&s, (now + 1) * second);
        int32_t held = 0;
        for (size_t i = 0; i < s.running.n; i++)
            held += s.running.at[i].blocks;
        EQ_INT(held, s.used_blocks);
        OK(s.used_blocks <= profile.kv_blocks);
    }
    OK(s.preempted > 0); /* the load was heavy enough to test that */
    vllm_advance(&s, 100000 * second);
    EQ_INT(s.succeeded, submitted);
    EQ_INT(s.output_sum, tokens);
    EQ_INT(s.first_token.count, submitted);
    EQ_INT(s.used_blocks, 0);
    vllm_done(&s);
}

static void count(void *context, struct replica_request request)
{
    (void)request;
    ++*(int *)context;
}

static void eviction_returns_everyone(void)
{
    struct vllm s;
    vllm_init(&s, &profile, 0);
    for (int i = 0; i < 200; i++)
        vllm_submit(&s, (struct replica_request){ 0, 100, 1000 });
    vllm_advance(&s, second);
    OK(s.running.n > 0 && s.waiting.n > 0);
    int evicted = 0;
    vllm_evict(&s, count, &evicted);
    EQ_INT(evicted, 200);
    vllm_done(&s);
}

static void metrics_page_names_what_is_asked_for(void)
{
    struct vllm s;
    vllm_init(&s, &profile, 0);
    auto_buf struct buf page = { 0 };
    vllm_print_metrics(&s, S("llama"), &page);
    OK(str_find(buf_str(&page), S("vllm:kv_cache_usage_perc{model_name=\"llama\"} 0\n")) !=
       SIZE_MAX);
    OK(str_find(buf_str(&page),
                S("vllm:time_to_first_token_seconds_count{model_name=\"llama\"} 0\n")) != SIZE_MAX);
    vllm_done(&s);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(one_request_takes_its_time),
                                        TAP(books_balance),
                                        TAP(eviction_returns_everyone),
                                        TAP(metrics_page_names_what_is_asked_for),
                                        { 0 } });
}
