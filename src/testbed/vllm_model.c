/* The batching model: see vllm_model.h. A step is atomic: its results appear when it ends. */
#include "vllm_model.h"

#include <math.h>

static const double bucket_seconds[VLLM_BUCKETS] = { 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                     1,    2.5,   5,    10,  30,   120 };

void vllm_init(struct vllm *server, const struct vllm_profile *profile, int64_t now_ns)
{
    *server = (struct vllm){ .profile = *profile, .now_ns = now_ns };
}

void vllm_done(struct vllm *server)
{
    vec_done(&server->waiting);
    vec_done(&server->running);
}

static void observe(struct vllm_histogram *h, double seconds)
{
    h->sum += seconds;
    h->count++;
    for (size_t i = 0; i < VLLM_BUCKETS; i++)
        if (seconds <= bucket_seconds[i]) {
            h->bucket[i]++;
            break;
        }
}

static int32_t blocks_for(const struct vllm *s, int32_t tokens)
{
    return (tokens + s->profile.block_tokens - 1) / s->profile.block_tokens;
}

void vllm_submit(struct vllm *server, struct replica_request request)
{
    int32_t most = server->profile.kv_blocks * server->profile.block_tokens;
    request.prompt_tokens = MAX(1, MIN(request.prompt_tokens, most / 2));
    request.output_tokens = MAX(1, MIN(request.output_tokens, most - request.prompt_tokens));
    vec_push(&server->waiting, ((struct vllm_running){ .request = request }));
}

/* What has to be computed before the next token: the prompt, and what a preemption threw away. */
static int32_t context_tokens(const struct vllm_running *r)
{
    return r->request.prompt_tokens + r->generated;
}

/* Moves what fits from waiting to running; returns the tokens to prefill, 0: nothing was admitted. */
static int32_t admit(struct vllm *s)
{
    int32_t tokens = 0;
    size_t admitted = 0;
    while (admitted < s->waiting.n && s->running.n < (size_t)s->profile.max_running) {
        struct vllm_running *next = &s->waiting.at[admitted];
        int32_t blocks = blocks_for(s, context_tokens(next) + 1);
        bool too_many = tokens && tokens + context_tokens(next) > s->profile.max_batch_tokens;
        if (too_many || s->used_blocks + blocks > s->profile.kv_blocks)
            break;
        tokens += context_tokens(next);
        s->used_blocks += blocks;
        next->blocks = blocks;
        vec_push(&s->running, *next);
        admitted++;
    }
    if (admitted) {
        memmove(s->waiting.at, s->waiting.at + admitted,
                (s->waiting.n - admitted) * sizeof(*s->waiting.at));
        s->waiting.n -= admitted;
    }
    return tokens;
}

static void preempt_youngest(struct vllm *s)
{
    struct vllm_running youngest = s->running.at[--s->running.n];
    s->used_blocks -= youngest.blocks;
    youngest.blocks = 0;
    s->preempted++;
    vec_push(&s->waiting, youngest);
    memmove(s->waiting.at + 1, s->waiting.at, (s->waiting.n - 1) * sizeof(*s->waiting.at));
    s->waiting.at[0] = youngest;
}

/* Every running request that must cross a block boundary gets a block, the youngest making room. */
static void grow_caches(struct vllm *s)
{
    for (size_t i = 0; i < s->running.n; i++) {
        int32_t more =
            blocks_for(s, context_tokens(&s->running.at[i]) + 1) - s->running.at[i].blocks;
        while (more > 0 && s->used_blocks + more > s->profile.kv_blocks && s->running.n > i + 1)
            preempt_youngest(s);
        s->running.at[i].blocks += more;
        s->used_blocks += more;
    }
}

static void finish(struct vllm *s, const struct vllm_running *r)
{
    s->succeeded++;
    s->prompt_sum += (uint64_t)r->request.prompt_tokens;
    s->prompt_count++;
    s->output_sum += (uint64_t)r->request.output_tokens;
    s->output_count++;
    observe(&s->whole, (double)(s->now_ns - r->request.arrived_ns) / 1e9);
    s->used_blocks -= r->blocks;
}

/* Counts one token of each running request from index `from`; the finished ones leave. */
static void count_tokens(struct vllm *s, size_t from, double step_s)
{
    size_t kept = from;
    for (size_t i = from; i < s->running.n; i++) {
        struct vllm_running *r = &s->running.at[i];
        if (!r->told_first)
            observe(&s->first_token, (double)(s->now_ns - r->request.arrived_ns) / 1e9);
        else
            observe(&s->per_token, step_s);
        r->told_first = true;
        if (++r->generated >= r->request.output_tokens)
            finish(s, r);
        else
            s->running.at[kept++] = *r;
    }
    s->running.n = kept;
}

static void step(struct vllm *s)
{
    size_t before = s->running.n;
    int32_t prefill = admit(s);
    double ms;
    if (prefill) {
        ms = s->profile.prefill_base_ms + s->profile.prefill_per_token_ms * prefill;
    } else {
        grow_caches(s);
        before = 0;
        ms = s->profile.decode_base_ms + s->profile.decode_per_request_ms * (double)s->running.n;
    }
    s->now_ns += (int64_t)llround(ms * 1e6);
    count_tokens(s, before, ms / 1e3);
}

void vllm_advance(struct vllm *server, int64_t until_ns)
{
    while (server->now_ns < until_ns) {
        if (!server->running.n && !server->waiting.n)
            server->now_ns = until_ns;
        else
            step(server);
    }
}

void vllm_evict(struct vllm *server, void (*receive)(void *context, struct replica_request request),
                void *context)
{
    for (size_t i = 0; i < server->running.n; i++)
        receive(context, server->running.at[i].request);
    for (size_t i = 0; i < server->waiting.n; i++)
        receive(context, server->waiting.at[i].request);
    vec_clear(&server->running);
    vec_clear(&server->waiting);
    server->used_blocks = 0;
}

double vllm_kv_usage(const struct vllm *server)
{
    return (double)server->used_blocks / server->profile.kv_blocks;
}

/* ---- the metrics page */

static void print_value(struct buf *out, const char *name, const char *type, str model,
                        double value)
{
    buf_printf(out, "# TYPE vllm:%s %s\nvllm:%s{model_name=\"" STR_FMT "\"} %.17g\n", name, type,
               name, STR_ARG(model), value);
}

static void print_sum(struct buf *out, const char *name, str model, double sum, uint64_t count)
{
    buf_printf(out,
               "vllm:%s_sum{model_name=\"" STR_FMT "\"} %.17g\n"
               "vllm:%s_count{model_name=\"" STR_FMT "\"} %llu\n",
               name, STR_ARG(model), sum, name, STR_ARG(model), (unsigned long long)count);
}

static void print_histogram(struct buf *out, const char *name, str model,
                            const struct vllm_histogram *h)
{
    buf_printf(out, "# TYPE vllm:%s histogram\n", name);
    uint64_t below = 0;
    for (size_t i = 0; i < VLLM_BUCKETS; i++) {
        below += h->bucket[i];
        buf_printf(out, "vllm:%s_bucket{model_name=\"" STR_FMT "\",le=\"%g\"} %llu\n", name,
                   STR_ARG(model), bucket_seconds[i], (unsigned long long)below);
    }
    buf_printf(out, "vllm:%s_bucket{model_name=\"" STR_FMT "\",le=\"+Inf\"} %llu\n", name,
               STR_ARG(model), (unsigned long long)h->count);
    print_sum(out, name, model, h->sum, h->count);
}

void vllm_print_metrics(const struct vllm *s, str model, struct buf *out)
{
    print_value(out, "num_requests_running", "gauge", model, (double)s->running.n);
    print_value(out, "num_requests_waiting", "gauge", model, (double)s->waiting.n);
    print_value(out, "kv_cache_usage_perc", "gauge", model, vllm_kv_usage(s));
    print_value(out, "num_preemptions_total", "counter", model, (double)s->preempted);
    print_value(out, "request_success_total", "counter", model, (double)s->succeeded);
    buf_put(out, S("# TYPE vllm:cache_config_info gauge\n"));
    buf_printf(out,
               "vllm:cache_config_info{model_name=\"" STR_FMT
               "\",block_size=\"%d\",num_gpu_blocks=\"%d\"} 1\n",
               STR_ARG(model), s->profile.block_tokens, s->profile.kv_blocks);
    buf_put(out, S("# TYPE vllm:request_prompt_tokens summary\n"));
    print_sum(out, "request_prompt_tokens", model, (double)s->prompt_sum, s->prompt_count);
    buf_put(out, S("# TYPE vllm:request_generation_tokens summary\n"));
    print_sum(out, "request_generation_tokens", model, (double)s->output_sum, s->output_count);
    print_histogram(out, "time_to_first_token_seconds", model, &s->first_token);
    print_histogram(out, "time_per_output_token_seconds", model, &s->per_token);
    print_histogram(out, "e2e_request_latency_seconds", model, &s->whole);
}
