/* A vLLM server as its metrics show it: continuous batching over a paged KV cache.
 *
 * Waiting requests are admitted in order while there is a seat, room in the batch and KV blocks for
 * their prompt; a step that admits computes the prompts (prefill), any other step gives every running
 * request one more token (decode). The time a step takes is linear in tokens (prefill) or requests
 * (decode), as measured on real servers. When blocks run out, the youngest request is preempted: it
 * loses its cache and waits at the front to be computed again. */
#ifndef FLYBALL_VLLM_MODEL_H
#define FLYBALL_VLLM_MODEL_H

#include "../base/buf.h"
#include "../base/vec.h"
#include "replica_model.h"

struct vllm_profile {         /* one accelerator running one model */
    int32_t kv_blocks;        /* cache size */
    int32_t block_tokens;     /* tokens a block */
    int32_t max_running;      /* seats in the batch */
    int32_t max_batch_tokens; /* prompt tokens in one prefill step */
    double decode_base_ms, decode_per_request_ms;
    double prefill_base_ms, prefill_per_token_ms;
};

enum { VLLM_BUCKETS = 12 };

struct vllm_histogram {
    double sum;
    uint64_t count;
    uint64_t bucket[VLLM_BUCKETS]; /* not cumulative */
};

struct vllm_running {
    struct replica_request request;
    int32_t generated; /* tokens so far */
    int32_t blocks;    /* KV blocks held */
    bool told_first;   /* its first token was already counted (it was preempted since) */
};

struct vllm {
    struct vllm_profile profile;
    int64_t now_ns;
    VEC(struct vllm_running) waiting; /* in order of service */
    VEC(struct vllm_running) running; /* oldest first */
    int32_t used_blocks;

    uint64_t succeeded, preempted;
    struct vllm_histogram first_token, per_token, whole; /* seconds */
    uint64_t prompt_sum, prompt_count, output_sum, output_count;
};

void vllm_init(struct vllm *server, const struct vllm_profile *profile, int64_t now_ns);
void vllm_done(struct vllm *server);

/* A request longer than the whole cache is cut to what fits, as a server with that setting rejects it. */
void vllm_submit(struct vllm *server, struct replica_request request);
void vllm_advance(struct vllm *server, int64_t until_ns);

/* Hands every unfinished request to `receive` (a pod that goes away sends its clients elsewhere). */
void vllm_evict(struct vllm *server, void (*receive)(void *context, struct replica_request request),
                void *context);

double vllm_kv_usage(const struct vllm *server); /* 0..1 */

/* Its /metrics page, in the names and labels that a real server uses. */
void vllm_print_metrics(const struct vllm *server, str model, struct buf *out);

#endif
