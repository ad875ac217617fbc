/* The capacity settings in a vLLM server's command line: how many tokens and requests fit into one
 * batch, and how the KV cache is divided. Read from a pod template, so that the capacity of a
 * variant is known before its first pod runs. */
#ifndef FLYBALL_VLLM_ARGS_CORE_H
#define FLYBALL_VLLM_ARGS_CORE_H

#include "../../json/json.h"

struct sat_vllm_args {
    double gpu_memory_utilization;
    int64_t block_size; /* tokens */
    str kv_cache_dtype; /* in the arena of sat_vllm_args_parse() */
    int64_t tensor_parallel;
    int64_t gpu_blocks_override; /* 0: vLLM decides */
    int64_t max_batched_tokens;  /* as configured; 0: unset */
    int64_t max_seqs, max_model_len;
    bool enforce_eager, v1_engine, chunked_prefill;
    bool sglang;                /* the settings are SGLang's */
    int64_t kv_tokens_override; /* SGLang: size of the KV cache; 0: it decides */
};

/* `containers` is the list in a pod template. The last occurrence of a flag wins, also across
 * containers; an invalid number leaves the default. */
struct sat_vllm_args sat_vllm_args_parse(struct arena *a, const struct json *containers);

/* The same for SGLang, whose flags have other names. */
struct sat_vllm_args sat_sglang_args_parse(struct arena *a, const struct json *containers);
/* Whether a container runs SGLang, by its image or its command. */
bool sat_is_sglang(struct arena *a, const struct json *containers);

int64_t sat_vllm_batched_tokens(
    const struct sat_vllm_args *args); /* as configured, else vLLM's default */

/* Whether replicas with these arguments have the same capacity on the same hardware. */
bool sat_vllm_args_alike(const struct sat_vllm_args *a, const struct sat_vllm_args *b);

#endif
