/* One replica of a vLLM server: continuous batching over a paged KV cache, in virtual time.
 *
 * The server works in iterations. Every iteration gives each decoding sequence one more token and spends what
 * is left of the token budget on prompts, in order of arrival and in chunks (chunked prefill). The laws:
 *
 *   1. Time of an iteration = base + perSeq * decoding sequences + perPromptToken * prompt tokens computed in it
 *      + perCachedToken * tokens that the decoding sequences attend to; times 1 +- `noise`, uniform.
 *      Linear because each term is: reading the weights once, one row per sequence through the layers,
 *      compute-bound prefill, and memory-bound reading of the KV cache (roofline argument; the same form as in
 *      Patel et al., "Splitwise", ISCA 2024, and Agrawal et al., "Sarathi-Serve", OSDI 2024).
 *   2. Decode first: decoding sequences are never stalled by a prompt (Sarathi-Serve; vLLM V1 scheduler).
 *   3. The cache has `kv_blocks` blocks of `block_tokens` tokens (Kwon et al., "PagedAttention", SOSP 2023). A
 *      request enters when its whole context fits and a seat is free; the head of the queue blocks the rest.
 *   4. A decoding sequence takes a block when it crosses a block boundary. When blocks run out the youngest
 *      sequence is preempted: it loses its blocks, goes to the head of the queue, and is computed again,
 *      prompt and answer so far (vLLM: preemption by recomputation). No request enters in that iteration.
 *   5. The first token appears at the end of the iteration that ends the prefill; results of an iteration
 *      appear when it ends.
 *
 * An iteration costs O(1), however many sequences run: all decoding sequences advance in step, so it is enough to
 * count how many there are in each phase of a block (`phase`), the sum of what they attend to, and a heap of
 * the iterations at which they end. Only entering, ending and preemption touch a single sequence.
 *
 * Counters and histograms are those of a vLLM server's /metrics (replica_metrics.c), same names and bounds. */
#ifndef FLYBALL_REPLICA_MODEL_H
#define FLYBALL_REPLICA_MODEL_H

#include "../base/err.h"
#include "../base/random.h"
#include "../base/vec.h"

struct replica_profile { /* one accelerator that runs one model */
    double base_ms, per_seq_ms, per_prompt_token_ms, per_cached_token_ms;
    double noise;      /* share of an iteration's time, for example 0.03 */
    int32_t kv_blocks; /* cache size */
    int32_t block_tokens;
    int32_t max_seqs;           /* seats in the batch; at most max_batched_tokens count */
    int32_t max_batched_tokens; /* of one iteration */
};

struct replica_request {
    int64_t arrived_ns;
    int32_t prompt_tokens, output_tokens;
    uint32_t id; /* the caller's */
};

struct replica_result { /* of a request that ended */
    struct replica_request request;
    int64_t first_ns, end_ns; /* first token, last token */
};

enum { REPLICA_BOUNDS_MAX = 24, REPLICA_PHASES_MAX = 256 };

struct replica_histogram {
    double sum;
    uint64_t count;
    uint32_t bucket
        [REPLICA_BOUNDS_MAX]; /* not cumulative; what exceeds the last bound is only in `count` */
};

struct replica_bounds { /* upper bounds of a histogram's buckets */
    const double *at;
    size_t n;
};
extern const struct replica_bounds replica_ttft_bounds, replica_tpot_bounds, replica_token_bounds,
    replica_e2e_bounds;

struct replica_counters { /* since the start, as a server counts them */
    uint64_t succeeded, preempted;
    uint64_t prompt_tokens;                        /* of requests that got their first token */
    uint64_t generation_tokens;                    /* each counts when it is made */
    struct replica_histogram ttft, itl, tpot, e2e; /* seconds; tpot: mean per request */
    struct replica_histogram prompt, generation;   /* tokens per request that ended */
};

struct replica_seq { /* one that has a seat, or waits */
    struct replica_request request;
    int64_t first_ns;            /* 0: no token yet */
    int32_t generated;           /* tokens; of a decoding one: when it joined */
    int32_t unprefilled;         /* tokens of its context still to compute */
    int32_t phase;               /* decoding: (context - iteration) modulo block_tokens, constant */
    int32_t joined_tokens;       /* decoding: context when it joined */
    uint64_t joined_at, ends_at; /* decoding: iterations */
    int32_t older, younger;      /* seats, in order of entering; -1: none */
    int32_t heap_at;             /* place in `ends`; -1: not decoding */
};

struct replica {
    struct replica_profile profile;
    struct random random;
    int64_t now_ns;  /* end of the last iteration, or later when idle */
    int64_t end_ns;  /* of the iteration under way; 0: none */
    int64_t took_ns; /* of the iteration under way */

    struct replica_seq *seats; /* owned, [max_seqs] */
    int32_t *free_seats;       /* owned stack */
    int32_t free_n;
    int32_t oldest, youngest; /* -1: none runs */
    int32_t *ends;            /* owned heap of seats by ends_at */
    int32_t decoding;         /* sequences, and places of `ends` */
    int32_t prefilling;       /* sequences; they are the youngest ones */
    int32_t first_prefilling; /* seat; -1: none */
    int32_t completing;       /* of the prefilling ones: end in the iteration under way */
    uint64_t iteration;       /* ended so far */
    uint64_t attended;        /* context tokens of all decoding sequences */
    int32_t phase[REPLICA_PHASES_MAX];
    int32_t used_blocks;

    struct replica_seq *waiting; /* owned ring */
    size_t waiting_first, waiting_n, waiting_cap;
    int64_t waiting_tokens; /* prompts and recomputed context of those that wait */

    struct replica_counters counters;
    void (*ended)(void *context, const struct replica_result *result); /* may be NULL */
    void *context;
};

/* -EINVAL for a profile that cannot serve. */
int replica_profile_check(const struct replica_profile *profile, err_t *e);

void replica_init(struct replica *r, const struct replica_profile *profile, int64_t now_ns,
                  uint64_t seed);
void replica_done(struct replica *r);

/* A request that the whole cache cannot hold is cut to what fits: a real server rejects it. */
void replica_submit(struct replica *r, struct replica_request request);
void replica_advance(struct replica *r, int64_t until_ns);

/* Hands back those that wait and have no token yet; what runs goes on. */
void replica_give_back(struct replica *r,
                       void (*receive)(void *context, struct replica_request request),
                       void *context);
/* Hands back everything, also what runs. */
void replica_evict(struct replica *r,
                   void (*receive)(void *context, struct replica_request request), void *context);

static inline int32_t replica_running(const struct replica *r)
{
    return r->decoding + r->prefilling;
}

static inline bool replica_is_idle(const struct replica *r)
{
    return !replica_running(r) && !r->waiting_n;
}

/* What routers compare: tokens held, and waiting prompts four times because they still have to be computed, over
 * the size of the cache. */
static inline double replica_load(const struct replica *r)
{
    double size = (double)r->profile.kv_blocks * r->profile.block_tokens;
    return ((double)r->used_blocks * r->profile.block_tokens + 4 * (double)r->waiting_tokens) /
           size;
}

static inline double replica_kv_usage(const struct replica *r) /* 0..1 */
{
    return (double)r->used_blocks / r->profile.kv_blocks;
}

#endif
