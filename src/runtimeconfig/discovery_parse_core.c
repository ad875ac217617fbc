/* Reading the answer of a discovery job: see discovery_core.h.
 *
 * The container prints a JSON array, and sometimes other things before and after it. The log is untrusted: it comes from the
 * image. The whole text is tried first; then the array that ends at the last "]", from each "[" before it; then the same
 * for earlier "]". A bound on the number of attempts keeps a log full of brackets from costing more than its size. */
#include "discovery_core.h"

#include "../base/quantity.h"

enum { PARSES_MAX = 256, ENDS_MAX = 64 };

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

/* ---- finding the array */

/* A non-empty array of objects; ours must also have the keys of an answer. */
static bool is_answer(const struct json *v, bool as_original)
{
    if (!json_is(v, JSON_ARR) || !json_len(v))
        return false;
    for (size_t i = 0; i < json_len(v); i++)
        if (!json_is(json_item(v, i), JSON_OBJ))
            return false;
    const struct json *first = json_item(v, 0);
    return as_original || (json_get(first, "profile") && json_get(first, "models"));
}

/* Does an array of objects begin here? */
static bool begins_objects(str log, size_t at)
{
    if (log.p[at] != '[')
        return false;
    for (at++; at < log.n && strchr(" \t\r\n", log.p[at]) && log.p[at]; at++)
        ;
    return at < log.n && log.p[at] == '{';
}

/* The answer that ends at `end`; NULL: none. */
static struct json *find_from(struct arena *a, str log, size_t end, bool as_original,
                              size_t *budget)
{
    for (size_t i = end; i > 0 && *budget > 0; i--) {
        struct json *v = NULL;
        if (!begins_objects(log, i - 1))
            continue;
        --*budget;
        struct arena_mark mark = arena_mark(a);
        if (json_parse(a, (str){ log.p + i - 1, end - i + 1 }, &v, NULL) == 0 &&
            is_answer(v, as_original))
            return v;
        arena_reset(a, mark);
    }
    return NULL;
}

/* The original looks only before the last "]"; we also look before earlier ones, since a log may end with other
 * output. */
static struct json *find_answer(struct arena *a, str log, bool as_original)
{
    struct json *v = NULL;
    size_t budget = PARSES_MAX, ends = as_original ? 1 : ENDS_MAX;
    if (json_parse(a, str_trim(log), &v, NULL) == 0 && is_answer(v, as_original))
        return v;
    for (size_t i = log.n; i > 0 && ends > 0; i--) {
        if (log.p[i - 1] != ']')
            continue;
        ends--;
        v = find_from(a, log, i, as_original, &budget);
        if (v)
            return v;
    }
    return NULL;
}

/* ---- reading it */

static int copy_text(struct arena *a, const struct json *from, const char *key, struct json *to,
                     err_t *e)
{
    const struct json *v = json_get(from, key);
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_STR))
        return err_set(e, EINVAL, "discovery output: profile.metadata.%s must be a string", key);
    if (json_text(v).n)
        json_set_str(a, to, key, json_text(v));
    return 0;
}

/* A field of the wrong type fails the whole answer: a profile without its GPU count would be scheduled
 * anywhere. */
static int read_metadata(struct arena *a, const struct json *from, struct json *to, err_t *e)
{
    static const char *const texts[] = { "engine", "gpu", "precision", "metric", "type" };
    const struct json *count = json_get(from, "gpu_count");
    for (size_t i = 0; i < countof(texts); i++) {
        int r = copy_text(a, from, texts[i], to, e);
        if (r)
            return r;
    }
    if (count && !json_is(count, JSON_NULL) && !json_is(count, JSON_INT))
        return err_set(e, EINVAL,
                       "discovery output: profile.metadata.gpu_count must be an integer");
    if (json_int(count, 0))
        json_set_int(a, to, "gpuCount", count->integer);
    return 0;
}

/* Engine arguments are kept as they are: their keys belong to the engine. */
static int read_profile(struct arena *a, const struct json *from, struct json *profile, err_t *e)
{
    const struct json *args = json_get(from, "engine_args"), *env = json_get(from, "env_vars");
    json_each(m, env)
        if (!json_is(m->value, JSON_STR))
            return err_set(e, EINVAL,
                           "discovery output: profile.env_vars." STR_FMT " must be a string",
                           STR_ARG(m->key));
    int r =
        read_metadata(a, json_get(from, "metadata"), json_make(a, profile, "metadata", NULL), e);
    json_set(a, profile, S("engine_args"), args ? json_copy(a, args) : json_new_null(a));
    if (json_len(env))
        json_set(a, profile, S("env_vars"), json_copy(a, env));
    return r;
}

/* Gigabytes of 2^30 bytes, as a quantity. */
static str size_text(struct arena *a, double gigabytes)
{
    char room[QUANTITY_TEXT_MAX];
    double bytes = gigabytes * 1073741824.0;
    int64_t whole = bytes > -9e18 && bytes < 9e18 ? (int64_t)bytes : 0;
    struct quantity q = quantity_of(whole, 0, QUANTITY_BINARY);
    return arena_str(a, quantity_text(&q, room));
}

/* Models with their sizes; a missing size is 0, which means unknown. */
static int read_sources(struct arena *a, const struct json *models, struct json **ret, err_t *e)
{
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < json_len(models); i++) {
        const struct json *m = json_item(models, i), *size = json_get(m, "size_gb");
        struct json *one = json_new_obj(a);
        bool number = !size || json_is(size, JSON_INT) || json_is(size, JSON_REAL) ||
                      json_is(size, JSON_NULL);
        if (!json_is(m, JSON_OBJ) || !number)
            return err_set(e, EINVAL, "discovery output: models[%zu] is invalid", i);
        json_set_str(a, one, "modelId", text_of(m, "name"));
        json_set_str(a, one, "sourceUri", text_of(m, "source"));
        json_set_str(a, one, "size", size_text(a, json_real(size, 0)));
        json_push(a, list, one);
    }
    *ret = list->n ? list : NULL;
    return 0;
}

/* ---- hardware */

/* "2 x MI300X", for the printer column. */
static str summary_of(struct arena *a, const struct json *hardware)
{
    const struct json *gpu = json_get(hardware, "gpu");
    str model = text_of(gpu, "model");
    long long count = (long long)json_int(json_get(gpu, "requests"), 0);
    if (count > 0)
        return arena_printf(a, "%lld x " STR_FMT, count, STR_ARG(model.n ? model : S("GPU")));
    if (json_is(gpu, JSON_OBJ))
        return model.n ? model : S("GPU");
    return json_get(hardware, "cpu") ? S("CPU") : S("");
}

/* The hardware of the spec, with the GPU that the profile names. */
static struct json *resolve_hardware(struct arena *a, const struct json *spec,
                                     const struct json *metadata)
{
    const struct json *from = json_get(spec, "hardware");
    struct json *hardware = json_is(from, JSON_OBJ) ? json_copy(a, from) : json_new_obj(a);
    str gpu = text_of(metadata, "gpu");
    int64_t count = json_int(json_get(metadata, "gpuCount"), 0);
    if (gpu.n)
        json_set_str(a, json_make(a, hardware, "gpu", NULL), "model", gpu);
    if (count > 0)
        json_set_int(a, json_make(a, hardware, "gpu", NULL), "requests", count);
    return hardware->n ? hardware : NULL;
}

/* Only the first profile of the answer is used, as in the original. */
int aim_discovery_parse(struct arena *a, str log, const struct json *spec, bool as_original,
                        struct aim_discovery_result *ret, err_t *e)
{
    struct aim_discovery_result result = { .profile = json_new_obj(a) };
    const struct json *answer = find_answer(a, str_upto(log, DISCOVERY_LOG_BYTES), as_original);
    if (!answer)
        return err_set(e, EINVAL, "discovery output: no JSON array of profiles in the log");
    const struct json *first = json_item(answer, 0);
    int r = read_profile(a, json_get(first, "profile"), result.profile, e);
    r = r ? r : read_sources(a, json_get(first, "models"), &result.sources, e);
    if (r)
        return r;
    result.hardware = resolve_hardware(a, spec, json_get(result.profile, "metadata"));
    result.summary = summary_of(a, result.hardware);
    *ret = result;
    return 0;
}

/* The result for a template that states its profile itself and needs no Job. */
struct aim_discovery_result aim_discovery_inline(struct arena *a, const struct json *spec)
{
    static const char *const copied[] = { "metric", "precision", "type" };
    struct aim_discovery_result r = { .profile = json_new_obj(a) };
    const struct json *gpu = json_at(spec, "hardware", "gpu", NULL);
    struct json *metadata = json_make(a, r.profile, "metadata", NULL);
    int64_t count = json_int(json_get(gpu, "requests"), 0);
    for (size_t i = 0; i < countof(copied); i++)
        if (text_of(spec, copied[i]).n)
            json_set_str(a, metadata, copied[i], text_of(spec, copied[i]));
    if (text_of(gpu, "model").n)
        json_set_str(a, metadata, "gpu", text_of(gpu, "model"));
    if (count > 0)
        json_set_int(a, metadata, "gpuCount", count);
    r.hardware = resolve_hardware(a, spec, NULL);
    r.summary = summary_of(a, r.hardware);
    return r;
}

/* ---- GPUs in the cluster */

/* PCI device ids by model, sorted: what the node labeller writes. */
static const struct {
    const char *model, *ids[5];
} devices[] = {
    { "MI100", { "738c", "738e" } },
    { "MI210", { "740f" } },
    { "MI250", { "740c" } },
    { "MI250X", { "7408" } },
    { "MI300A", { "74a0", "74b4" } },
    { "MI300X", { "74a1", "74a9", "74b5", "74bd" } },
    { "MI308X", { "74a2", "74a8", "74b6", "74bc" } },
    { "MI325X", { "74a5", "74b9" } },
    { "MI350X", { "75a0", "75b0" } },
    { "MI355X", { "75a3", "75b3" } },
};

static void push_ids(struct arena *a, struct json *values, str model)
{
    for (size_t i = 0; i < countof(devices); i++)
        for (size_t k = 0; str_eq_nocase(model, str_c(devices[i].model)) && devices[i].ids[k]; k++)
            json_push(a, values, json_new_str(a, str_c(devices[i].ids[k])));
}

/* Pods must run on nodes with one of these devices; NULL: no restriction. */
static struct json *affinity_of(struct arena *a, struct json *values)
{
    struct json *affinity = json_new_obj(a), *terms = json_new_arr(a), *term = json_new_obj(a);
    struct json *expressions = json_new_arr(a), *one = json_new_obj(a);
    if (!values->n)
        return NULL;
    json_set_str(a, one, "key", S("amd.com/gpu.device-id"));
    json_set_str(a, one, "operator", S("In"));
    json_set(a, one, S("values"), values);
    json_push(a, expressions, one);
    json_set(a, term, S("matchExpressions"), expressions);
    json_push(a, terms, term);
    json_set(a, json_make(a, affinity, "requiredDuringSchedulingIgnoredDuringExecution", NULL),
             S("nodeSelectorTerms"), terms);
    return affinity;
}

/* Memory as nodes label it: "192G" means GiB. */
static int64_t memory_bytes(struct arena *a, str text, str *ret_shown)
{
    int64_t bytes = 0;
    *ret_shown = str_ends(text, S("G")) ? arena_printf(a, STR_FMT "i", STR_ARG(text)) : text;
    return quantity_parse_value(*ret_shown, &bytes, NULL) == 0 ? bytes : 0;
}

static int compare_texts(const void *x, const void *y)
{
    return str_cmp(*(const str *)x, *(const str *)y);
}

/* The models of `gpus` with at least this much memory, sorted and joined by ", ". */
static str join_models(struct arena *a, const struct json *gpus, int64_t least, struct json *values)
{
    str *names = arena_array(a, json_len(gpus) + 1, sizeof(*names)), shown;
    size_t n = 0;
    auto_buf struct buf out = { 0 };
    json_each(m, gpus)
        if (memory_bytes(a, json_text(m->value), &shown) >= least)
            names[n++] = m->key;
    qsort(names, n, sizeof(*names), compare_texts);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&out, "%s" STR_FMT, i ? ", " : "", STR_ARG(names[i]));
        if (values)
            push_ids(a, values, names[i]);
    }
    return arena_str(a, buf_str(&out));
}

/* "MI300X (192Gi)": the model with the most memory. */
static str highest_model(struct arena *a, const struct json *gpus)
{
    str best = S("none detected"), shown;
    int64_t most = -1;
    json_each(m, gpus) {
        int64_t bytes = memory_bytes(a, json_text(m->value), &shown);
        if (bytes > most) {
            most = bytes;
            best = arena_printf(a, STR_FMT " (" STR_FMT ")", STR_ARG(m->key), STR_ARG(shown));
        }
    }
    return best;
}

/* Any model with enough memory is accepted; the node affinity lists all of them. */
static struct aim_discovery_gpu check_memory(struct arena *a, str least, const struct json *gpus)
{
    struct json *values = json_new_arr(a);
    int64_t bytes = 0;
    struct aim_discovery_gpu r = { 0 };
    str models = quantity_parse_value(least, &bytes, NULL) == 0
                     ? join_models(a, gpus, bytes, values)
                     : S("");
    r.available = models.n > 0;
    r.component =
        models.n
            ? aim_engine_make("GPU", ENGINE_READY, "GPUAvailable",
                              arena_printf(a, "GPU available (any model accepted): " STR_FMT,
                                           STR_ARG(models)))
            : aim_engine_make("GPU", ENGINE_NOT_AVAILABLE, "VRAMNotAvailable",
                              arena_printf(a,
                                           "Required minimum VRAM (" STR_FMT
                                           ") exceeds available GPUs. Highest available: " STR_FMT,
                                           STR_ARG(least), STR_ARG(highest_model(a, gpus))));
    r.node_affinity = affinity_of(a, values);
    return r;
}

/* The affinity is set even if the model is absent now: nodes may be added. */
static struct aim_discovery_gpu check_model(struct arena *a, str model, const struct json *gpus)
{
    struct json *values = json_new_arr(a);
    struct aim_discovery_gpu r = { 0 };
    str found = S("");
    json_each(m, gpus)
        if (str_eq_nocase(m->key, model))
            found = m->key;
    str all = join_models(a, gpus, 0, NULL);
    push_ids(a, values, model);
    r.available = found.n > 0;
    r.component =
        found.n ? aim_engine_make("GPU", ENGINE_READY, "GPUAvailable",
                                  arena_printf(a, "GPU model '" STR_FMT "' is available",
                                               STR_ARG(found)))
                : aim_engine_make("GPU", ENGINE_NOT_AVAILABLE, "GPUNotAvailable",
                                  arena_printf(a,
                                               "Required GPU model '" STR_FMT
                                               "' not available in cluster. Available: " STR_FMT,
                                               STR_ARG(model), STR_ARG(all.n ? all : S("none"))));
    r.node_affinity = affinity_of(a, values);
    return r;
}

/* Whether the cluster has the GPUs that a template asks for. A minimum of memory wins over a model. */
struct aim_discovery_gpu aim_discovery_gpu(struct arena *a, const struct json *spec,
                                           const struct json *gpus)
{
    const struct json *gpu = json_at(spec, "hardware", "gpu", NULL);
    str model = text_of(gpu, "model"), least = text_of(gpu, "minVram");
    if (json_int(json_get(gpu, "requests"), 0) <= 0 && !model.n)
        return (struct aim_discovery_gpu){ .available = true };
    if (least.n)
        return check_memory(a, least, gpus);
    if (model.n)
        return check_model(a, model, gpus);
    str all = join_models(a, gpus, 0, NULL);
    return (struct aim_discovery_gpu){
        .available = all.n > 0,
        .component =
            all.n ? aim_engine_make("GPU", ENGINE_READY, "GPUAvailable",
                                    arena_printf(a, "GPU available (any model accepted): " STR_FMT,
                                                 STR_ARG(all)))
                  : aim_engine_make("GPU", ENGINE_NOT_AVAILABLE, "GPUNotAvailable",
                                    S("No GPUs available in cluster")),
    };
}
