/* The laws of replica_model.h, and the fast model against a slow one that walks through every sequence. */
#include "tap.h"

#include "testbed/replica_metrics.h"
#include "testbed/replica_model.h"

static const int64_t second = 1000000000;

static const struct replica_profile plain = {
    .base_ms = 20,
    .per_seq_ms = 0.5,
    .per_prompt_token_ms = 0.1,
    .per_cached_token_ms = 0.001,
    .kv_blocks = 1000,
    .block_tokens = 16,
    .max_seqs = 64,
    .max_batched_tokens = 512,
};

struct ends { /* results by request id */
    struct replica_result at[4096];
    size_t n;
};

static void keep_end(void *context, const struct replica_result *result)
{
    struct ends *ends = context;
    ends->at[result->request.id] = *result;
    ends->n++;
}

static void start_replica(struct replica *r, const struct replica_profile *p, struct ends *ends)
{
    replica_init(r, p, 0, 1);
    r->ended = keep_end;
    r->context = ends;
    ends->n = 0;
}

static struct ends shared_ends;

/* Law 1 and 5: the time of an iteration, and when the first token appears. */
static void one_request_takes_its_time(void)
{
    struct replica r;
    start_replica(&r, &plain, &shared_ends);
    replica_submit(&r, (struct replica_request){ 0, 100, 11, 0 });
    replica_advance(&r, 10 * second);
    EQ_INT(shared_ends.n, 1);
    EQ_REAL((double)shared_ends.at[0].first_ns / 1e6, 20 + 0.1 * 100);
    double decode = 0;
    for (int i = 0; i < 10; i++)
        decode += 20 + 0.5 + 0.001 * (100 + i);
    EQ_REAL((double)shared_ends.at[0].end_ns / 1e6, 30 + decode);
    EQ_INT(r.counters.itl.count, 10);
    EQ_INT(r.counters.prompt_tokens, 100);
    EQ_INT(r.counters.generation_tokens, 11);
    EQ_INT(r.used_blocks, 0);
    replica_done(&r);
}

/* Law 2: a prompt is computed in chunks of what decoding leaves of the budget. */
static void long_prompts_are_chunked(void)
{
    struct replica r;
    start_replica(&r, &plain, &shared_ends);
    replica_submit(&r, (struct replica_request){ 0, 1200, 1, 0 });
    replica_advance(&r, 10 * second);
    EQ_REAL((double)shared_ends.at[0].first_ns / 1e6, 3 * 20 + 0.1 * 1200); /* 512, 512, 176 */
    replica_done(&r);

    start_replica(&r, &plain, &shared_ends);
    replica_submit(&r, (struct replica_request){ 0, 10, 100, 0 });
    replica_advance(&r, 21 * second / 1000); /* it decodes from now on */
    EQ_INT(r.decoding, 1);
    replica_submit(&r, (struct replica_request){ 21 * second / 1000, 512, 1, 1 });
    replica_advance(&r, 100 * second);
    /* 511 tokens fit beside one that decodes: the prompt takes two iterations */
    EQ_INT(shared_ends.n, 2);
    double first = 20.5 + 0.001 * 10 + 0.1 * 0, then = 20.5 + 0.001 * 11 + 0.1 * 511,
           last = 20.5 + 0.001 * 12 + 0.1 * 1;
    OK(fabs((double)shared_ends.at[1].first_ns / 1e6 - (21 + first + then + last)) < 1e-5);
    replica_done(&r);
}

/* Law 3: seats and the head of the queue. */
static void a_request_waits_for_a_seat(void)
{
    struct replica_profile p = plain;
    struct replica r;
    p.max_seqs = 2;
    start_replica(&r, &p, &shared_ends);
    for (uint32_t i = 0; i < 5; i++)
        replica_submit(&r, (struct replica_request){ 0, 16, 50, i });
    replica_advance(&r, second / 2);
    EQ_INT(replica_running(&r), 2);
    EQ_INT(r.waiting_n, 3);
    EQ_INT(r.waiting_tokens, 48);
    replica_advance(&r, 100 * second);
    EQ_INT(shared_ends.n, 5);
    OK(shared_ends.at[4].first_ns > shared_ends.at[2].first_ns);
    replica_done(&r);
}

/* Law 4: the youngest leaves, is computed again, and none is lost. */
static void the_youngest_is_preempted(void)
{
    struct replica_profile p = plain;
    struct replica r;
    p.kv_blocks = 20; /* 320 tokens: two of 100 + 100 do not fit to the end */
    start_replica(&r, &p, &shared_ends);
    replica_submit(&r, (struct replica_request){ 0, 100, 100, 0 });
    replica_submit(&r, (struct replica_request){ 0, 100, 100, 1 });
    replica_advance(&r, 1000 * second);
    EQ_INT(shared_ends.n, 2);
    OK(r.counters.preempted >= 1);
    OK(shared_ends.at[0].end_ns < shared_ends.at[1].end_ns);
    EQ_INT(r.counters.generation_tokens, 200); /* tokens are made once */
    EQ_INT(r.counters.prompt_tokens, 200);     /* and prompts counted once */
    EQ_INT(r.counters.ttft.count, 2);
    EQ_INT(r.used_blocks, 0);
    replica_done(&r);
}

/* ---- against a model that walks through every sequence in every iteration */

struct slow_seq {
    struct replica_request request;
    int32_t stored, generated, unprefilled, blocks;
    int64_t first_ns, end_ns;
    bool prefilling;
};

struct slow {
    const struct replica_profile *p;
    struct slow_seq waiting[4096], running[4096];
    size_t waiting_n, running_n;
    int32_t used;
    int64_t now_ns;
    struct slow_seq done[4096];
    size_t done_n, next; /* next: of the requests to come */
};

static int32_t slow_blocks(const struct slow *s, int32_t tokens)
{
    return (tokens + s->p->block_tokens - 1) / s->p->block_tokens;
}

static void slow_preempt(struct slow *s)
{
    struct slow_seq x = s->running[--s->running_n];
    s->used -= x.blocks;
    x.blocks = x.stored = 0;
    memmove(s->waiting + 1, s->waiting, s->waiting_n * sizeof(*s->waiting));
    s->waiting[0] = x;
    s->waiting_n++;
}

/* Blocks for those that decode, the youngest making room; true: a sequence left. */
static bool slow_grow(struct slow *s)
{
    bool left = false;
    for (;;) {
        int32_t need = 0;
        for (size_t i = 0; i < s->running_n; i++)
            if (!s->running[i].prefilling)
                need += slow_blocks(s, s->running[i].stored + 1) - s->running[i].blocks;
        if (s->used + need <= s->p->kv_blocks || s->running_n < 2)
            break;
        slow_preempt(s);
        left = true;
    }
    for (size_t i = 0; i < s->running_n; i++) {
        struct slow_seq *x = &s->running[i];
        if (x->prefilling)
            continue;
        int32_t more = slow_blocks(s, x->stored + 1) - x->blocks;
        x->blocks += more;
        s->used += more;
    }
    return left;
}

static void slow_enter(struct slow *s)
{
    struct slow_seq x = s->waiting[0];
    int32_t tokens = x.request.prompt_tokens + x.generated;
    memmove(s->waiting, s->waiting + 1, --s->waiting_n * sizeof(*s->waiting));
    x.prefilling = true;
    x.unprefilled = tokens;
    x.blocks = slow_blocks(s, tokens);
    s->used += x.blocks;
    s->running[s->running_n++] = x;
}

static bool slow_can_enter(const struct slow *s)
{
    if (!s->waiting_n || s->running_n >= (size_t)s->p->max_seqs)
        return false;
    int32_t tokens = s->waiting[0].request.prompt_tokens + s->waiting[0].generated;
    return s->used + slow_blocks(s, tokens) <= s->p->kv_blocks;
}

static void slow_iteration(struct slow *s)
{
    bool left = slow_grow(s);
    int32_t decoding = 0, computed = 0;
    double attended = 0;
    for (size_t i = 0; i < s->running_n; i++)
        if (!s->running[i].prefilling) {
            decoding++;
            attended += s->running[i].stored;
        }
    int32_t budget = s->p->max_batched_tokens - decoding;
    for (size_t i = 0; budget; i++) {
        if (i == s->running_n && !left && slow_can_enter(s))
            slow_enter(s);
        if (i == s->running_n)
            break;
        struct slow_seq *x = &s->running[i];
        int32_t chunk = x->prefilling ? MIN(x->unprefilled, budget) : 0;
        x->unprefilled -= chunk;
        budget -= chunk;
        computed += chunk;
    }
    double ms = s->p->base_ms + s->p->per_seq_ms * decoding + s->p->per_prompt_token_ms * computed +
                s->p->per_cached_token_ms * attended;
    s->now_ns += (int64_t)(ms * 1e6);
    size_t kept = 0;
    for (size_t i = 0; i < s->running_n; i++) {
        struct slow_seq x = s->running[i];
        bool token = !x.prefilling || !x.unprefilled;
        if (token) {
            x.stored = x.request.prompt_tokens + x.generated;
            x.generated++;
            x.prefilling = false;
            x.first_ns = x.first_ns ? x.first_ns : s->now_ns;
        }
        if (token && x.generated >= x.request.output_tokens) {
            x.end_ns = s->now_ns;
            s->used -= x.blocks;
            s->done[s->done_n++] = x;
        } else {
            s->running[kept++] = x;
        }
    }
    s->running_n = kept;
}

/* Runs it over requests that arrive at given times. */
static void slow_run(struct slow *s, const struct replica_request *requests, size_t n)
{
    while (s->done_n < n) {
        if (!s->running_n && !s->waiting_n)
            s->now_ns = MAX(s->now_ns, requests[s->next].arrived_ns);
        for (; s->next < n && requests[s->next].arrived_ns <= s->now_ns; s->next++)
            s->waiting[s->waiting_n++] = (struct slow_seq){ .request = requests[s->next] };
        slow_iteration(s);
    }
}

static void fast_equals_slow(void)
{
    static struct slow slow;
    static struct replica_request requests[1500];
    uint64_t preempted = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct replica_profile p = plain;
        struct random random;
        struct replica r;
        random_init(&random, seed, 1);
        p.kv_blocks = seed % 2 ? 1000 : 300;
        p.max_seqs = seed % 3 ? 64 : 10;
        int64_t at = 1;
        for (uint32_t i = 0; i < countof(requests); i++) {
            at += random_below(&random, (uint32_t)(seed < 4 ? 400 : 100)) * 1000003 + 1;
            requests[i] = (struct replica_request){ at, 1 + (int32_t)random_below(&random, 1500),
                                                    1 + (int32_t)random_below(&random, 300), i };
        }
        slow = (struct slow){ .p = &p };
        slow_run(&slow, requests, countof(requests));
        start_replica(&r, &p, &shared_ends);
        for (size_t i = 0; i < countof(requests); i++) {
            replica_advance(&r, requests[i].arrived_ns);
            replica_submit(&r, requests[i]);
        }
        replica_advance(&r, 100000 * second);
        preempted += r.counters.preempted;
        EQ_INT(shared_ends.n, countof(requests));
        size_t wrong = 0;
        for (size_t i = 0; i < slow.done_n; i++) {
            const struct replica_result *fast = &shared_ends.at[slow.done[i].request.id];
            wrong += fast->first_ns != slow.done[i].first_ns || fast->end_ns != slow.done[i].end_ns;
        }
        EQ_INT(wrong, 0);
        replica_done(&r);
    }
    OK(preempted > 0);
}

/* ---- books */

/* Blocks, phases and attended tokens are sums over the seats. */
static void check_books(const struct replica *r)
{
    int32_t blocks = 0, decoding = 0, phases = 0;
    uint64_t attended = 0;
    for (int32_t i = r->oldest; i >= 0; i = r->seats[i].younger) {
        const struct replica_seq *s = &r->seats[i];
        int32_t tokens = s->request.prompt_tokens + s->generated;
        if (s->heap_at >= 0) {
            tokens = s->joined_tokens + (int32_t)(r->iteration - s->joined_at);
            attended += (uint64_t)tokens;
            decoding++;
            tokens += r->end_ns != 0; /* in the iteration under way it got room for one more */
        }
        blocks += (tokens + r->profile.block_tokens - 1) / r->profile.block_tokens;
    }
    for (int32_t i = 0; i < r->profile.block_tokens; i++)
        phases += r->phase[i];
    EQ_INT(r->used_blocks, blocks);
    EQ_INT(r->attended, attended);
    EQ_INT(r->decoding, decoding);
    EQ_INT(phases, decoding);
    OK(r->used_blocks >= 0 && r->used_blocks <= r->profile.kv_blocks);
}

static void books_balance(void)
{
    struct random random;
    struct replica r;
    struct replica_profile p = plain;
    uint64_t submitted = 0, prompt = 0, output = 0;
    random_init(&random, 1, 1);
    p.kv_blocks = 400;
    p.noise = 0.03;
    start_replica(&r, &p, &shared_ends);
    for (int64_t now = 1; now < 200; now++) {
        for (uint32_t n = random_below(&random, 12); n; n--, submitted++) {
            struct replica_request q = { now * second, 1 + (int32_t)random_below(&random, 2000),
                                         1 + (int32_t)random_below(&random, 300),
                                         (uint32_t)submitted };
            prompt += (uint64_t)q.prompt_tokens;
            output += (uint64_t)q.output_tokens;
            replica_submit(&r, q);
        }
        replica_advance(&r, (now + 1) * second);
        check_books(&r);
        EQ_INT(shared_ends.n + r.waiting_n + (size_t)replica_running(&r), submitted);
    }
    OK(r.counters.preempted > 0); /* the load was heavy enough to test that */
    replica_advance(&r, 100000 * second);
    check_books(&r);
    EQ_INT(shared_ends.n, submitted);
    EQ_INT(r.counters.succeeded, submitted);
    EQ_INT(r.counters.prompt_tokens, prompt);
    EQ_INT(r.counters.generation_tokens, output);
    EQ_REAL(r.counters.generation.sum, (double)output);
    EQ_INT(r.counters.ttft.count, submitted);
    EQ_INT(r.used_blocks, 0);
    EQ_INT(r.waiting_tokens, 0);
    replica_done(&r);
}

static double total_end(uint64_t seed, double slower)
{
    struct replica_profile p = plain;
    struct replica r;
    struct random random;
    random_init(&random, 5, 1);
    p.noise = 0.03;
    p.base_ms *= slower;
    p.per_prompt_token_ms *= slower;
    replica_init(&r, &p, 0, seed);
    for (int i = 0; i < 300; i++) {
        replica_advance(&r, i * second / 10);
        replica_submit(&r, (struct replica_request){
                               i * second / 10, 1 + (int32_t)random_below(&random, 900), 50, 0 });
    }
    replica_advance(&r, 10000 * second);
    double sum = r.counters.e2e.sum;
    replica_done(&r);
    return sum;
}

static void same_seed_same_times(void)
{
    OK(total_end(3, 1) == total_end(3, 1));
    OK(total_end(3, 1) != total_end(4, 1));
    OK(total_end(3, 1.2) > total_end(3, 1)); /* slower hardware is slower */
}

static void count(void *context, struct replica_request request)
{
    (void)request;
    ++*(int *)context;
}

static void what_waits_is_given_back(void)
{
    struct replica r;
    int back = 0, evicted = 0;
    start_replica(&r, &plain, &shared_ends);
    for (uint32_t i = 0; i < 200; i++)
        replica_submit(&r, (struct replica_request){ 0, 100, 100, i });
    replica_advance(&r, second);
    int running = replica_running(&r);
    OK(running > 0 && r.waiting_n > 0);
    replica_give_back(&r, count, &back);
    EQ_INT(back + running + (int)shared_ends.n, 200);
    EQ_INT(r.waiting_n, 0);
    EQ_INT(r.waiting_tokens, 0);
    check_books(&r);
    replica_evict(&r, count, &evicted);
    EQ_INT(evicted, running);
    OK(replica_is_idle(&r));
    EQ_INT(r.used_blocks, 0);
    replica_done(&r);
}

/* A request that can never fit is cut, and ends. */
static void too_long_requests_end(void)
{
    struct replica r;
    struct replica_profile p = plain;
    p.kv_blocks = 4;
    start_replica(&r, &p, &shared_ends);
    replica_submit(&r, (struct replica_request){ 0, 1 << 20, 1 << 20, 0 });
    replica_submit(&r, (struct replica_request){ 0, 0, 0, 1 });
    replica_advance(&r, 1000 * second);
    EQ_INT(shared_ends.n, 2);
    EQ_INT(r.used_blocks, 0);
    replica_done(&r);
}

static bool has_line(const struct buf *page, const char *line)
{
    return str_find(buf_str(page), str_c(line)) != SIZE_MAX;
}

static void metrics_page_is_a_real_servers(void)
{
    struct replica r;
    auto_buf struct buf page = { 0 };
    start_replica(&r, &plain, &shared_ends);
    replica_submit(&r, (struct replica_request){ 0, 100, 11, 0 });
    replica_advance(&r, 10 * second);
    replica_submit(&r, (struct replica_request){ 10 * second, 320, 11, 1 });
    replica_advance(&r, 10 * second + 1);
    replica_print_metrics(&r, S("meta/\"llama\""), &page);
#define LABELS "{model_name=\"meta/\\\"llama\\\"\""
    const char *const lines[] = {
        "vllm:num_requests_running" LABELS "} 1\n",
        "vllm:num_requests_waiting" LABELS "} 0\n",
        "vllm:kv_cache_usage_perc" LABELS "} 0.02",
        "vllm:cache_config_info" LABELS ",block_size=\"16\",num_gpu_blocks=\"1000\"} 1\n",
        "vllm:prompt_tokens_total" LABELS "} 100\n",
        "vllm:generation_tokens_total" LABELS "} 11\n",
        "vllm:request_success_total" LABELS "} 1\n",
        "vllm:time_to_first_token_seconds_bucket" LABELS ",le=\"0.02\"} 0\n",
        "vllm:time_to_first_token_seconds_bucket" LABELS ",le=\"0.04\"} 1\n", /* 30 ms */
        "vllm:time_to_first_token_seconds_bucket" LABELS ",le=\"1.0\"} 1\n",
        "vllm:time_to_first_token_seconds_count" LABELS "} 1\n",
        "vllm:inter_token_latency_seconds_count" LABELS "} 10\n",
        "vllm:time_per_output_token_seconds_count" LABELS "} 10\n",
        "vllm:request_time_per_output_token_seconds_count" LABELS "} 1\n",
        "vllm:request_prompt_tokens_sum" LABELS "} 100\n",
        "vllm:request_generation_tokens_bucket" LABELS ",le=\"10.0\"} 0\n",
        "vllm:request_generation_tokens_bucket" LABELS ",le=\"20.0\"} 1\n",
        "vllm:e2e_request_latency_seconds_count" LABELS "} 1\n",
    };
    for (size_t i = 0; i < countof(lines); i++)
        if (!OK(has_line(&page, lines[i])))
            printf("# %s", lines[i]);
    replica_done(&r);
}

static void profiles_are_checked(void)
{
    err_t e;
    OK(replica_profile_check(&plain, &e) == 0);
    struct replica_profile bad[8];
    for (size_t i = 0; i < countof(bad); i++)
        bad[i] = plain;
    bad[0].base_ms = 0;
    bad[1].per_seq_ms = -1;
    bad[2].per_cached_token_ms = NAN;
    bad[3].kv_blocks = 0;
    bad[4].block_tokens = 0;
    bad[5].max_seqs = 0;
    bad[6].max_batched_tokens = 1;
    bad[7].noise = 1;
    for (size_t i = 0; i < countof(bad); i++)
        OK(replica_profile_check(&bad[i], &e) < 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(one_request_takes_its_time),
                                        TAP(long_prompts_are_chunked),
                                        TAP(a_request_waits_for_a_seat),
                                        TAP(the_youngest_is_preempted),
                                        TAP(fast_equals_slow),
                                        TAP(books_balance),
                                        TAP(same_seed_same_times),
                                        TAP(what_waits_is_given_back),
                                        TAP(too_long_requests_end),
                                        TAP(metrics_page_is_a_real_servers),
                                        TAP(profiles_are_checked),
                                        { 0 } });
}
