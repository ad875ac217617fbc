/* Which flags a model server was started with, read from the containers of its pods; see vllm_args_core.h.
 *
 * Commands come in three forms, all of which occur in the field: a list of words, a shell with a script (["sh",
 * "-c", "vllm serve ..."]), and a mixture of command and args. Flags may be "--name value" or "--name=value",
 * with hyphens or underscores. Unknown flags are skipped, and a value that is not a number leaves the default:
 * the server has its own opinion about it, and its metrics will show which.
 *
 * Defaults are those of vLLM and SGLang. They matter, because two variants can share a measured capacity only
 * if everything that decides the size of the KV cache is the same (sat_vllm_args_alike). */
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

typedef void read_flag_fn(struct sat_vllm_args *args, str name, str value, bool given);

static void read_words(struct sat_vllm_args *args, struct sat_words w, read_flag_fn *apply)
{
    for (size_t i = 0; i < w.n; i++) {
        if (!str_starts(w.at[i], S("--")))
            continue;
        str word = str_from(w.at[i], 2);
        size_t equals = str_find_char(word, '=');
        bool next = equals == SIZE_MAX && i + 1 < w.n && !str_starts(w.at[i + 1], S("--"));
        if (equals != SIZE_MAX)
            apply(args, str_upto(word, equals), str_from(word, equals + 1), true);
        else
            apply(args, word, next ? w.at[i + 1] : S(""), next);
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
        read_words(&args, container_words(a, json_item(containers, i)), read_flag);
    return args;
}

/* ---- SGLang */

/* "--chunked-prefill-size -1" turns chunking off; a positive size is that of a batch. */
static void read_sglang_flag(struct sat_vllm_args *args, str name, str value, bool given)
{
    const struct {
        const char *name;
        int64_t *target;
    } numbers[] = {
        { "page-size", &args->block_size },
        { "tp", &args->tensor_parallel },
        { "tp-size", &args->tensor_parallel },
        { "tensor-parallel-size", &args->tensor_parallel },
        { "max-running-requests", &args->max_seqs },
        { "max-total-tokens", &args->kv_tokens_override },
        { "context-length", &args->max_model_len },
        { "max-prefill-tokens", &args->max_batched_tokens },
    };
    for (size_t i = 0; given && i < countof(numbers); i++)
        if (is_flag(name, numbers[i].name))
            (void)str_to_i64(value, numbers[i].target); /* unchanged if it is not a number */
    int64_t chunk;
    if (given && is_flag(name, "chunked-prefill-size") && str_to_i64(value, &chunk) == 0) {
        args->chunked_prefill = chunk > 0;
        args->max_batched_tokens = chunk > 0 ? chunk : args->max_batched_tokens;
    }
    if (given && is_flag(name, "mem-fraction-static"))
        (void)str_to_f64(value, &args->gpu_memory_utilization);
    if (given && is_flag(name, "kv-cache-dtype"))
        args->kv_cache_dtype = value;
    if (is_flag(name, "disable-cuda-graph"))
        args->enforce_eager = true;
}

struct sat_vllm_args sat_sglang_args_parse(struct arena *a, const struct json *containers)
{
    struct sat_vllm_args args = {
        .gpu_memory_utilization = 0.9,
        .block_size = 1,
        .kv_cache_dtype = S("auto"),
        .tensor_parallel = 1,
        .max_seqs = 256,
        .v1_engine = true,
        .chunked_prefill = true,
        .sglang = true,
    };
    for (size_t i = 0; i < json_len(containers); i++)
        read_words(&args, container_words(a, json_item(containers, i)), read_sglang_flag);
    return args;
}

static str lower_text(struct arena *a, str text)
{
    char *copy = arena_alloc(a, text.n + 1);
    for (size_t i = 0; i < text.n; i++)
        copy[i] = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] + 32) : text.p[i];
    return (str){ copy, text.n };
}

static bool has_word(str text, const char *word)
{
    return str_find(text, str_c(word)) != SIZE_MAX;
}

/* By the image's name or by the command; anything else is taken for vLLM. */
bool sat_is_sglang(struct arena *a, const struct json *containers)
{
    for (size_t i = 0; i < json_len(containers); i++) {
        const struct json *c = json_item(containers, i);
        if (has_word(lower_text(a, json_text(json_get(c, "image"))), "sglang"))
            return true;
        const struct json *lists[] = { json_get(c, "command"), json_get(c, "args") };
        auto_buf struct buf line = { 0 };
        for (size_t l = 0; l < countof(lists); l++)
            for (size_t w = 0; w < json_len(lists[l]); w++)
                buf_printf(&line, "%s" STR_FMT, line.n ? " " : "",
                           STR_ARG(json_text(json_item(lists[l], w))));
        str words = lower_text(a, buf_str(&line));
        if (has_word(words, "sglang.launch_server") || has_word(words, "sglang serve"))
            return true;
    }
    return false;
}

/* The size of a batch that the server uses if the flag is not set, which depends on the engine and on chunking. */
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
           a->tensor_parallel == b->tensor_parallel && a->sglang == b->sglang &&
           a->kv_tokens_override == b->kv_tokens_override &&
           a->gpu_blocks_override == b->gpu_blocks_override &&
           sat_vllm_batched_tokens(a) == sat_vllm_batched_tokens(b);
}
