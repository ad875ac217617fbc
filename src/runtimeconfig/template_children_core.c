/* Children of a template: see template_children_core.h. Both have the name of the template, so that an InferenceService
 * finds its runtime by the name of its template. The image is that of the model; port and shared memory are fixed. */
#include "template_children_core.h"

#include "names_core.h"
#include "service_children_core.h"
#include "template_core.h"

static struct json *make_child(struct arena *a, const struct aim_template_basis *b)
{
    const struct json *meta = json_get(b->template, "metadata");
    struct json *object = json_new_obj(a), *metadata = json_make(a, object, "metadata", NULL);
    json_set_str(a, metadata, "name", json_text(json_get(meta, "name")));
    if (json_text(json_get(meta, "namespace")).n)
        json_set_str(a, metadata, "namespace", json_text(json_get(meta, "namespace")));
    json_set_str(a, json_make(a, metadata, "labels", NULL), "app.kubernetes.io/managed-by",
                 S("aim-controller"));
    aim_service_copy_labels(a, b->config, b->template, object);
    return object;
}

static struct json *make_list(struct arena *a, struct json *item)
{
    struct json *list = json_new_arr(a);
    json_push(a, list, item);
    return list;
}

static struct json *make_variable(struct arena *a, const char *name, str value)
{
    struct json *v = json_new_obj(a);
    json_set_str(a, v, "name", str_c(name));
    json_set_str(a, v, "value", value);
    return v;
}

static void put_gpus(struct arena *a, struct json *container, const struct aim_template_basis *b)
{
    int64_t gpus = json_int(json_at(b->profile, "metadata", "gpu_count", NULL), 0);
    str resource = aim_template_gpu_resource(json_get(b->template, "spec"));
    static const char *const both[] = { "requests", "limits" };
    for (size_t i = 0; gpus > 0 && i < countof(both); i++)
        json_set_str(a, json_make(a, container, "resources", both[i], NULL), resource.p,
                     arena_printf(a, "%lld", (long long)gpus));
}

/* vLLM needs shared memory (dshm) and serves HTTP on port 8000. */
static struct json *container_of_model(struct arena *a, const struct aim_template_basis *b)
{
    struct json *container = json_new_obj(a), *port = json_new_obj(a), *mount = json_new_obj(a);
    struct json *env = make_list(a, make_variable(a, "VLLM_ENABLE_METRICS", S("true")));
    json_set_str(a, container, "name", S("kserve-container"));
    json_set_str(a, container, "image", json_text(json_at(b->model, "spec", "image", NULL)));
    json_set(a, container, S("env"),
             aim_service_merge_named(a, env, json_at(b->template, "spec", "env", NULL)));
    json_set_int(a, port, "containerPort", 8000);
    json_set_str(a, port, "name", S("http"));
    json_set_str(a, port, "protocol", S("TCP"));
    json_set(a, container, S("ports"), make_list(a, port));
    json_set_str(a, mount, "name", S("dshm"));
    json_set_str(a, mount, "mountPath", S("/dev/shm"));
    json_set(a, container, S("volumeMounts"), make_list(a, mount));
    put_gpus(a, container, b);
    return container;
}

/* Storage is mounted by the InferenceService, so the storage helper of KServe is disabled. */
struct json *aim_template_serving_runtime(struct arena *a, const struct aim_template_basis *b)
{
    struct json *runtime = make_child(a, b), *spec = json_make(a, runtime, "spec", NULL);
    str name = json_text(json_at(runtime, "metadata", "name", NULL));
    json_set_str(a, json_make(a, runtime, "metadata", "labels", NULL),
                 aim_names_label_key(a, b->group, "template").p, aim_names_label_value(a, name));
    struct json *format = json_new_obj(a), *volume = json_new_obj(a);
    json_set_bool(a, json_make(a, spec, "storageHelper", NULL), "disabled", true);
    json_set_str(a, format, "name", S("aim"));
    json_set_str(a, format, "version", S("1"));
    json_set(a, spec, S("supportedModelFormats"), make_list(a, format));
    json_set(a, spec, S("containers"), make_list(a, container_of_model(a, b)));
    json_set_str(a, volume, "name", S("dshm"));
    struct json *memory = json_make(a, volume, "emptyDir", NULL);
    json_set_str(a, memory, "medium", S("Memory"));
    json_set_str(a, memory, "sizeLimit", S("8Gi"));
    json_set(a, spec, S("volumes"), make_list(a, volume));
    struct json *secrets =
        aim_service_merge_named(a, json_at(b->template, "spec", "imagePullSecrets", NULL),
                                json_at(b->model, "spec", "imagePullSecrets", NULL));
    if (secrets->n)
        json_set(a, spec, S("imagePullSecrets"), secrets);
    return runtime;
}

/* Copies the settings of the template that a cache understands. */
struct json *aim_template_cache(struct arena *a, const struct aim_template_basis *b)
{
    const struct json *from = json_get(b->template, "spec"), *caching = json_get(from, "caching");
    if (!json_bool(json_get(caching, "enabled"), false))
        return NULL;
    struct json *cache = make_child(a, b), *spec = json_make(a, cache, "spec", NULL);
    json_set_str(a, spec, "templateRef", json_text(json_at(b->template, "metadata", "name", NULL)));
    if (b->config->storage_class.n)
        json_set_str(a, spec, "storageClassName", b->config->storage_class);
    if (json_len(json_get(caching, "env")))
        json_set(a, spec, S("env"), json_copy(a, json_get(caching, "env")));
    static const char *const copied[] = { "imagePullSecrets", "serviceAccountName",
                                          "runtimeConfigName" };
    for (size_t i = 0; i < countof(copied); i++)
        if (json_get(from, copied[i]))
            json_set(a, spec, str_c(copied[i]), json_copy(a, json_get(from, copied[i])));
    return cache;
}
