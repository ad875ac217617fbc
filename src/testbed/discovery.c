/* Discovery Jobs of model templates, and those that ask for the size of an artifact (src/runtimeconfig): the answer that the
 * image would print.
 *
 * The image cannot run here. What it prints is a function of what the Job passes to it: the GPU, metric and precision in the
 * environment come back as the profile, and the path of the image is the name of the model. The pod is created with this
 * log in an annotation, from which the embedded API server serves it. */
#include "cluster.h"

#include "../json/json.h"

#define LOG "testbed.flyball.dev/log"

static str env_of(const struct json *container, const char *name)
{
    const struct json *env = json_get(container, "env");
    for (size_t i = 0; i < json_len(env); i++)
        if (str_eqc(json_text(json_get(json_item(env, i), "name")), name))
            return json_text(json_get(json_item(env, i), "value"));
    return S("");
}

/* "acme/tiny" of "registry.example.com/acme/tiny:1.0". */
static str model_of_image(str image)
{
    size_t digest = str_find_char(image, '@');
    if (digest != SIZE_MAX)
        image = str_upto(image, digest);
    size_t slash = str_find_char(image, '/');
    str first = slash == SIZE_MAX ? S("") : str_upto(image, slash);
    if (str_find_char(first, '.') != SIZE_MAX || str_find_char(first, ':') != SIZE_MAX)
        image = str_from(image, slash + 1);
    size_t tag = str_find_char(image, ':');
    return tag == SIZE_MAX ? image : str_upto(image, tag);
}

static str make_log(struct arena *a, const struct json *container)
{
    static const struct {
        const char *env, *key;
    } texts[] = { { "AIM_GPU_MODEL", "gpu" },
                  { "AIM_METRIC", "metric" },
                  { "AIM_PRECISION", "precision" } };
    enum { SIZE_GB = 2 };
    struct json *answer = json_new_obj(a), *models = json_new_arr(a), *model = json_new_obj(a);
    struct json *metadata = json_make(a, answer, "profile", "metadata", NULL);
    str name = model_of_image(json_text(json_get(container, "image")));
    int64_t gpus = 0;
    json_set_str(a, metadata, "engine", S("vllm"));
    for (size_t i = 0; i < countof(texts); i++)
        if (env_of(container, texts[i].env).n)
            json_set_str(a, metadata, texts[i].key, env_of(container, texts[i].env));
    if (str_to_i64(env_of(container, "AIM_GPU_COUNT"), &gpus) == 0)
        json_set_int(a, metadata, "gpu_count", gpus);
    json_set_str(a, model, "name", name);
    json_set_str(a, model, "source", arena_printf(a, "hf://" STR_FMT, STR_ARG(name)));
    json_set_int(a, model, "size_gb", SIZE_GB);
    json_push(a, models, model);
    json_set(a, answer, S("models"), models);
    return arena_printf(a, "[" STR_FMT "]\n", STR_ARG(json_to_str(a, answer)));
}

struct json *cluster_discovery_pod(struct arena *a, const struct json *job)
{
    const struct json *template = json_at(job, "spec", "template", NULL);
    const struct json *container = json_item(json_at(template, "spec", "containers", NULL), 0);
    str name = json_text(json_at(job, "metadata", "name", NULL));
    str does = json_text(json_get(container, "name"));
    bool sizes = str_eqc(does, "check-size"); /* of an artifact: 2 GiB, whatever the source */
    if (!sizes && !str_eqc(does, "discovery"))
        return NULL;
    struct json *pod = json_new_obj(a), *metadata = json_make(a, pod, "metadata", NULL);
    const struct json *labels = json_at(template, "metadata", "labels", NULL);
    json_set_str(a, metadata, "name", arena_printf(a, STR_FMT "-0", STR_ARG(name)));
    json_set(a, metadata, S("labels"), labels ? json_copy(a, labels) : json_new_obj(a));
    json_set_str(a, json_get(metadata, "labels"), "job-name", name);
    json_set_str(a, json_make(a, metadata, "annotations", NULL), LOG,
                 sizes ? S("{\"sizeBytes\":2147483648}\n") : make_log(a, container));
    json_set(a, pod, S("spec"), json_copy(a, json_get(template, "spec")));
    json_set_str(a, json_get(pod, "spec"), "nodeName", S("simulated")); /* uses nothing of a node */
    return pod;
}
