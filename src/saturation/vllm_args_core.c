/* See vllm_args_core.h. */
#include "vllm_args_core.h"

#include "text_core.h"

/* All words of one container: its command and arguments, or the script that they pass to a shell. */
static struct sat_words container_words(struct arena *a, const struct json *container)
{
    const struct json *lists[] = { json_get(container, "command"), json_get(container, "args") };
    struct sat_words w = { arena_array(a, json_len(lists[0]) + json_len(lists[1]), sizeof(str)),
                           0 };
    for (size_t l = 0; l < countof(lists); l++)
        for (size_t i = 0; i < json_len(lists[l]); i++)
            w.at[w.n++] = json_text(json_item(lists[l], i));
    static const char *const shells[] = { "sh", "bash", "/bin/sh", "/bin/bash" };
    for (size_t i = 0; w.n >= 3 && i < countof(shells); i++)
        if (str_eqc(w.at[0], shells[i]) && str_eqc(w.at[1], "-c"))
            return sat_split_command(a, w.at[2]);
    return w;
}

/* "--max-num_seqs" is "max-num-seqs": vLLM accepts hyphens and underscores. */
static bool is_flag(str word, const char *name)
{
    size_t n = strlen(name);
    if (word.n != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (word.p[i] != name[i] && !(word.p[i] == '_' && name[i] == '-'))
            return false;
    return true;
}

/* Stores one flag; unknown flags are ignored. `given`: the flag has a value. */
static void read_flag(struct sat_vllm_args *args, str name, str value, bool given)
{
    const struct {
        const char *name;
        int64_t *target;
    } numbers[] = {
        { "block-size", &args->block_size },
        { "tensor-parallel-size", &args->tensor_parallel },
        { "num-gpu-blocks-override", &args->gpu_blocks_override },
        { "max-num-batched-tokens", &args->max_batched_tokens },
        { "max-num-seqs", &args->max_seqs },
        { "max-model-len", &args->max_model_len },
    };
    const struct {
        const char *name;
        bool *target;
    } switches[] = { { "enforce-eager", &args->enforce_eager },
                     { "enable-chunked-prefill", &args->chunked_prefill } };
    for (size_t i = 0; given && i < countof(numbers); i++)
        if (is_flag(name, numbers[i].name))
            (void)str_to_i64(value, numbers[i].target); /* unchanged if it is not a number */
    for (size_t i = 0; i < countof(switches); i++)
        if (is_flag(name, switches[i].name))
            *switches[i].target = !(given && str_eq_nocase(value, S("false")));
    if (given && is_flag(name, "gpu-memory-utilization"))
        (void)str_to_f64(value, &args->gpu_memory_utilization);
    if (given && is_flag(name, "kv-cache-dtype"))
        args->kv_cache_dtype = value;
}

static void read_words(struct sat_vllm_args *args, struct sat_words w)
{
    for (size_t i = 0; i < w.n; i++) {
        if (!str_starts(w.at[i], S("--")))
            continue;
        str word = str_from(w.at[i], 2);
        size_t equals = str_find_char(word, '=');
        bool next = equals == SIZE_MAX && i + 1 < w.n && !str_starts(w.at[i + 1], S("--"));
        if (equals != SIZE_MAX)
            read_flag(args, str_upto(word, equals), str_from(word, equals + 1), true);
        else
            read_flag(args, word, next ? w.at[i + 1] : S(""), next);
        i += next;
    }
}

/* VLLM_USE_V1=0 selects the old engine, which does not chunk prompts. */
static void read_engine(struct sat_vllm_args *args, const struct json *container)
{
    const struct json *env = json_get(container, "env");
    for (size_t i = 0; i < json_len(env); i++) {
        const struct json *variable = json_item(env, i);
        if (!str_eqc(json_text(json_get(variable, "name")), "VLLM_USE_V1"))
            continue;
        args->v1_engine = !str_eqc(json_text(json_get(variable, "value")), "0");
        args->chunked_prefill = args->v1_engine;
    }
}

struct sat_vllm_args sat_vllm_args_parse(struct arena *a, const struct json *containers)
{
    struct sat_vllm_args args = {
        .gpu_memory_utilization = 0.9,
        .block_size = 16,
        .kv_cache_dtype = S("auto"),
        .tensor_parallel = 1,
        .max_seqs = 256,
        .v1_engine = true,
        .chunked_prefill = true,
    };
    for (size_t i = 0; i < json_len(containers); i++)
        read_engine(&args, json_item(containers, i));
    for (size_t i = 0; i < json_len(containers); i++)
        read_words(&args, container_words(a, json_item(containers, i)));
    return args;
}

int64_t sat_vllm_batched_tokens(const struct sat_vllm_args *args)
{
    enum { V1_CHUNK = 8192, V0_CHUNK = 2048 };
    if (args->max_batched_tokens > 0)
        return args->max_batched_tokens;
    if (args->chunked_prefill)
        return args->v1_engine ? V1_CHUNK : V0_CHUNK;
    return MAX(args->max_model_len, (int64_t)V0_CHUNK);
}

bool sat_vllm_args_alike(const struct sat_vllm_args *a, const struct sat_vllm_args *b)
{
    return a->gpu_memory_utilization == b->gpu_memory_utilization &&
           a->block_size == b->block_size && str_eq(a->kv_cache_dtype, b->kv_cache_dtype) &&
           a->tensor_parallel == b->tensor_parallel &&
           a->gpu_blocks_override == b->gpu_blocks_override &&
           sat_vllm_batched_tokens(a) == sat_vllm_batched_tokens(b);
}
