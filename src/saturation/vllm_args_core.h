/* What a vLLM server's command line says of its capacity: how many tokens and requests it takes into one
 * batch, and how its KV cache is cut. Read from a pod template, so that a variant without replicas can be
 * judged before its first pod runs. */
#ifndef FLYBALL_VLLM_ARGS_CORE_H
#define FLYBALL_VLLM_ARGS_CORE_H

#include "../json/json.h"

struct sat_vllm_args {
    double gpu_memory_utilization;
    int64_t block_size; /* tokens */
    str kv_cache_dtype; /* in the arena given to sat_vllm_args_parse */
    int64_t tensor_parallel;
    int64_t gpu_blocks_override; /* 0: vLLM decides */
    int64_t max_batched_tokens;  /* as written; 0: not given */
    int64_t max_seqs, max_model_len;
    bool enforce_eager, v1_engine, chunked_prefill;
};

/* `containers` is the list of a pod template. Of a flag given twice the last counts, across containers too;
 * what is no number leaves the default. */
struct sat_vllm_args sat_vllm_args_parse(struct arena *a, const struct json *containers);

int64_t sat_vllm_batched_tokens(
    const struct sat_vllm_args *args); /* in force: as written, or what vLLM takes */

/* Would a replica of the one hold as much as one of the other, on the same hardware? */
bool sat_vllm_args_alike(const struct sat_vllm_args *a, const struct sat_vllm_args *b);

#endif
