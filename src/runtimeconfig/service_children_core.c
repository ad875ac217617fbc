/* Children of a service: see service_children_core.h. The InferenceService has its own file, service_runtime_core.c.
 *
 *     image without a model ----> AIMModel
 *     overrides ----------------> AIMServiceTemplate "<base>-ovr-<hash>"
 *     caching requested --------> AIMTemplateCache, named after the template
 *     otherwise ----------------> PersistentVolumeClaim "<isvc>-temp-cache"
 *
 * Fields have two names where the generations of AIM differ; both are read here, so that no other file needs to
 * know. Names and labels are those of the original operator (names_core.c). */
#include "service_children_core.h"

#include "../base/quantity.h"
#include "../base/sha256.h"
#include "derive_core.h"
#include "names_core.h"

/* ---- fields of the service */

str aim_service_model_ref(const struct json *service)
{
    const struct json *model = json_at(service, "spec", "model", NULL);
    str ref = json_text(json_get(model, "ref"));
    return ref.n ? ref : json_text(json_get(model, "name"));
}

str aim_service_model_image(const struct json *service)
{
    return json_text(json_at(service, "spec", "model", "image", NULL));
}

str aim_service_template_ref(const struct json *service)
{
    str ref = json_text(json_at(service, "spec", "templateRef", NULL));
    return ref.n ? ref : json_text(json_at(service, "spec", "template", "name", NULL));
}

static str caching_mode(const struct json *service)
{
    return json_text(json_at(service, "spec", "caching", "mode", NULL));
}

/* Every mode of the newer generation has a cache: Always and Auto are older names of Shared, Never of Dedicated. */
bool aim_service_wants_cache(const struct json *service)
{
    return caching_mode(service).n ||
           json_bool(json_at(service, "spec", "cacheModel", NULL), false);
}

/* The mode of the service decides which caches it may use; see service_observe.c. */
bool aim_service_is_dedicated(const struct json *service)
{
    str mode = caching_mode(service);
    return str_eqc(mode, "Dedicated") || str_eqc(mode, "Never");
}

/* templateRef is the name of the older generation, templateName that of the newer one. */
str aim_service_cache_template(const struct json *cache)
{
    const struct json *spec = json_get(cache, "spec");
    str ref = json_text(json_get(spec, "templateRef"));
    return ref.n ? ref : json_text(json_get(spec, "templateName"));
}

const struct json *aim_service_overrides(const struct json *service)
{
    const struct json *overrides = json_at(service, "spec", "overrides", NULL);
    return json_len(overrides) ? overrides : NULL;
}

str aim_service_storage_class(const struct aim_service_basis *b)
{
    return b->own->storage_class.n ? b->own->storage_class : b->config->storage_class;
}

int64_t aim_service_headroom(const struct aim_service_basis *b)
{
    return b->own->has_headroom      ? b->own->headroom_percent
           : b->config->has_headroom ? b->config->headroom_percent
                                     : PVC_HEADROOM_DEFAULT;
}

/* ---- pieces */

static str meta_text(const struct json *object, const char *key)
{
    return json_text(json_at(object, "metadata", key, NULL));
}

static struct json *make_child(struct arena *a, str name, str ns)
{
    struct json *object = json_new_obj(a), *metadata = json_make(a, object, "metadata", NULL);
    json_set_str(a, metadata, "name", name);
    json_set_str(a, metadata, "namespace", ns);
    json_set_str(a, json_make(a, metadata, "labels", NULL), "app.kubernetes.io/managed-by",
                 S("aim-controller"));
    return object;
}

static void set_label(struct arena *a, struct json *object, const struct aim_service_basis *b,
                      const char *name, str value)
{
    struct json *labels = json_make(a, object, "metadata", "labels", NULL);
    json_set_str(a, labels, aim_names_label_key(a, b->group, name).p, value);
}

static void copy_member(struct arena *a, const struct json *from, struct json *to, const char *key)
{
    if (json_get(from, key))
        json_set(a, to, str_c(key), json_copy(a, json_get(from, key)));
}

static bool matches_any(const struct json *patterns, str key)
{
    for (size_t i = 0; i < json_len(patterns); i++)
        if (aim_names_match_key(json_text(json_item(patterns, i)), key, NULL))
            return true;
    return false;
}

void aim_service_copy_labels(struct arena *a, const struct runtimeconfig_spec *config,
                             const struct json *parent, struct json *to)
{
    struct json *labels = json_make(a, to, "metadata", "labels", NULL);
    json_each(m, json_at(parent, "metadata", "labels", NULL))
        if (!json_get_str(labels, m->key) && matches_any(config->propagate, m->key))
            json_set(a, labels, m->key, json_copy(a, m->value));
}

static const struct json *find_named(const struct json *list, str name)
{
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eq(json_text(json_get(json_item(list, i), "name")), name))
            return json_item(list, i);
    return NULL;
}

/* Used for env, secrets and other lists that Kubernetes merges by name. */
struct json *aim_service_merge_named(struct arena *a, const struct json *under,
                                     const struct json *over)
{
    struct json *merged = json_new_arr(a);
    for (size_t i = 0; i < json_len(under); i++) {
        str name = json_text(json_get(json_item(under, i), "name"));
        const struct json *winner = find_named(over, name);
        json_push(a, merged, json_copy(a, winner ? winner : json_item(under, i)));
    }
    for (size_t i = 0; i < json_len(over); i++)
        if (!find_named(merged, json_text(json_get(json_item(over, i), "name"))))
            json_push(a, merged, json_copy(a, json_item(over, i)));
    return merged;
}

/* ---- model and templates */

/* Created in the namespace of the service, with its credentials, because the image may be private. */
struct json *aim_service_model(struct arena *a, const struct aim_service_basis *b)
{
    str image = aim_service_model_image(b->service);
    struct json *model =
        make_child(a, aim_names_model_of_image(a, image), meta_text(b->service, "namespace"));
    const struct json *from = json_get(b->service, "spec");
    struct json *spec = json_make(a, model, "spec", NULL);
    set_label(a, model, b, "auto-created", S("true"));
    json_set_str(a, spec, "image", image);
    copy_member(a, from, spec, "runtimeConfigName");
    copy_member(a, from, spec, "imagePullSecrets");
    copy_member(a, from, spec, "serviceAccountName");
    aim_service_copy_labels(a, b->config, b->service, model);
    return model;
}

/* Sources of the same name may be on different S3 servers, which only their environment shows. */
static str endpoint_of(const struct json *source)
{
    const struct json *env = json_get(source, "env");
    for (size_t i = 0; i < json_len(env); i++)
        if (str_eqc(json_text(json_get(json_item(env, i), "name")), "AWS_ENDPOINT_URL"))
            return json_text(json_get(json_item(env, i), "value"));
    return S("");
}

bool aim_service_is_custom_model(const struct json *custom, const struct json *model)
{
    const struct json *want = json_get(custom, "modelSources"),
                      *have = json_at(model, "spec", "modelSources", NULL);
    if (json_len(want) != json_len(have) || !json_len(want) ||
        !str_eq(json_text(json_get(custom, "baseImage")),
                json_text(json_at(model, "spec", "image", NULL))))
        return false;
    for (size_t i = 0; i < json_len(want); i++) {
        const struct json *x = json_item(want, i), *y = json_item(have, i);
        if (!str_eq(aim_service_source_id(x), aim_service_source_id(y)) ||
            !str_eq(json_text(json_get(x, "sourceUri")), json_text(json_get(y, "sourceUri"))) ||
            !str_eq(endpoint_of(x), endpoint_of(y)))
            return false;
    }
    return true;
}

/* The name depends on all that makes the model another one, so that two services find the same. */
static str custom_model_name(struct arena *a, const struct json *custom)
{
    enum { DIGITS = 8 };
    const struct json *sources = json_get(custom, "modelSources");
    str image = json_text(json_get(custom, "baseImage"));
    struct json *inputs = aim_derive_inputs(a, &image, 1);
    for (size_t i = 0; i < json_len(sources); i++) {
        const struct json *source = json_item(sources, i);
        json_push(a, inputs, json_new_str(a, aim_service_source_id(source)));
        json_push(a, inputs, json_new_str(a, json_text(json_get(source, "sourceUri"))));
        if (endpoint_of(source).n)
            json_push(a, inputs, json_new_str(a, endpoint_of(source)));
    }
    str part = json_len(sources) ? aim_service_source_id(json_item(sources, 0)) : S("custom-model");
    return aim_derive_name(a, &part, 1, inputs, DIGITS);
}

/* Without an owner: a second service that describes the same model uses it, and outlives the first. */
struct json *aim_service_custom_model(struct arena *a, const struct aim_service_basis *b)
{
    static const char *const copied[] = { "runtimeConfigName", "imagePullSecrets",
                                          "serviceAccountName" };
    const struct json *from = json_get(b->service, "spec");
    const struct json *custom = json_at(from, "model", "custom", NULL);
    struct json *model =
        make_child(a, custom_model_name(a, custom), meta_text(b->service, "namespace"));
    struct json *spec = json_make(a, model, "spec", NULL);
    set_label(a, model, b, "custom-model", S("true"));
    json_set_str(a, spec, "image", json_text(json_get(custom, "baseImage")));
    copy_member(a, custom, spec, "modelSources");
    copy_member(a, custom, json_make(a, spec, "custom", NULL), "hardware");
    for (size_t i = 0; i < countof(copied); i++)
        copy_member(a, from, spec, copied[i]);
    aim_service_copy_labels(a, b->config, b->service, model);
    return model;
}

/* The overrides in the key order of the original operator: the hash in the derived name depends on it. */
static str overrides_text(struct arena *a, const struct json *overrides)
{
    struct json *ordered = json_new_obj(a);
    static const char *const keys[] = { "metric", "precision", "gpuSelector", "hardware" };
    static const char *const gpu_keys[] = { "count", "model", "resourceName" };
    for (size_t i = 0; i < countof(keys); i++)
        copy_member(a, overrides, ordered, keys[i]);
    const struct json *selector = json_get(overrides, "gpuSelector");
    if (selector) {
        struct json *gpu = json_new_obj(a);
        for (size_t i = 0; i < countof(gpu_keys); i++)
            copy_member(a, selector, gpu, gpu_keys[i]);
        json_set(a, ordered, S("gpuSelector"), gpu);
    }
    return json_to_str(a, ordered);
}

/* The GPU of the overrides in the newer form; either generation of AIM names it differently. */
static struct json *overridden_gpu(struct arena *a, const struct json *overrides)
{
    const struct json *older = json_get(overrides, "gpuSelector");
    struct json *gpu = json_new_obj(a);
    copy_member(a, older, gpu, "model");
    copy_member(a, older, gpu, "resourceName");
    if (json_get(older, "count"))
        json_set(a, gpu, S("requests"), json_copy(a, json_get(older, "count")));
    json_each(m, json_at(overrides, "hardware", "gpu", NULL))
        json_set(a, gpu, m->key, json_copy(a, m->value));
    return gpu;
}

/* In the form of the base, so that the derived template does not describe its GPU twice. */
static void override_gpu(struct arena *a, struct json *spec, const struct json *overrides)
{
    const struct json *gpu = overridden_gpu(a, overrides);
    bool older = json_get(spec, "gpuSelector") ||
                 (!json_get(spec, "hardware") && json_get(overrides, "gpuSelector"));
    if (!gpu->n)
        return;
    struct json *to = older ? json_make(a, spec, "gpuSelector", NULL)
                            : json_make(a, spec, "hardware", "gpu", NULL);
    if (json_get(gpu, "model"))
        json_del(to, S("minVram")); /* one of the two selects the GPU */
    if (json_get(gpu, "minVram"))
        json_del(to, S("model"));
    json_each(m, gpu) {
        str key = older && str_eqc(m->key, "requests") ? S("count") : m->key;
        if (!older || !str_eqc(key, "minVram"))
            json_set(a, to, key, json_copy(a, m->value));
    }
}

/* Writes the overrides into the spec of the derived template. */
static void apply_overrides(struct arena *a, struct json *spec, const struct json *overrides)
{
    copy_member(a, overrides, spec, "metric");
    copy_member(a, overrides, spec, "precision");
    override_gpu(a, spec, overrides);
    json_each(m, json_at(overrides, "hardware", "cpu", NULL))
        json_set(a, json_make(a, spec, "hardware", "cpu", NULL), m->key, json_copy(a, m->value));
}

/* A profile in the spec describes the base; the overridden fields in it are removed. */
static void drop_overridden_profile(struct json *spec, const struct json *overrides)
{
    struct json *metadata = json_at(spec, "profile", "metadata", NULL);
    if (json_get(overrides, "metric"))
        json_del(metadata, S("metric"));
    if (json_get(overrides, "precision"))
        json_del(metadata, S("precision"));
    if (json_get(overrides, "gpuSelector") || json_get(overrides, "hardware")) {
        json_del(metadata, S("gpu"));
        json_del(metadata, S("gpu_count"));
    }
}

/* The base spec with overrides, plus env, secrets and resources of the service. */
struct json *aim_service_derived_template(struct arena *a, const struct aim_service_basis *b,
                                          const struct json *base)
{
    const struct json *overrides = aim_service_overrides(b->service);
    const struct json *wishes = json_get(b->service, "spec");
    str name = aim_names_derived_template(a, meta_text(base, "name"), overrides_text(a, overrides));
    struct json *template = make_child(a, name, meta_text(b->service, "namespace"));
    const struct json *from = json_get(base, "spec");
    struct json *spec = json_is(from, JSON_OBJ) ? json_copy(a, from) : json_new_obj(a);
    json_set(a, template, S("spec"), spec);
    apply_overrides(a, spec, overrides);
    drop_overridden_profile(spec, overrides);
    if (json_len(json_get(wishes, "env")))
        json_set(a, spec, S("env"),
                 aim_service_merge_named(a, json_get(spec, "env"), json_get(wishes, "env")));
    if (json_len(json_get(wishes, "imagePullSecrets")))
        json_set(a, spec, S("imagePullSecrets"),
                 aim_service_merge_named(a, json_get(wishes, "imagePullSecrets"),
                                         json_get(spec, "imagePullSecrets")));
    copy_member(a, wishes, spec, "resources");
    copy_member(a, wishes, spec, "runtimeConfigName");
    set_label(a, template, b, "derived-template", S("true"));
    aim_service_copy_labels(a, b->config, b->service, template);
    return template;
}

/* ---- storage */

const struct json *aim_service_sources(const struct json *template)
{
    const struct json *found = json_at(template, "status", "modelSources", NULL);
    return json_len(found) ? found : json_at(template, "spec", "modelSources", NULL);
}

str aim_service_source_id(const struct json *source)
{
    str id = json_text(json_get(source, "modelId"));
    return id.n ? id : json_text(json_get(source, "name"));
}

static int64_t parse_size(const struct json *size)
{
    int64_t bytes = -1;
    if (json_is(size, JSON_INT))
        return size->integer;
    return json_is(size, JSON_STR) && quantity_parse_value(json_text(size), &bytes, NULL) == 0
               ? bytes
               : -1;
}

/* Unknown (-1) if any size is: a volume that is too small fails in the middle of a download. */
int64_t aim_service_sources_bytes(const struct json *sources)
{
    int64_t sum = 0;
    for (size_t i = 0; i < json_len(sources); i++) {
        int64_t bytes = parse_size(json_get(json_item(sources, i), "size"));
        if (bytes <= 0 || __builtin_add_overflow(sum, bytes, &sum))
            return -1;
    }
    return json_len(sources) ? sum : -1;
}

struct json *aim_service_claim_spec(struct arena *a, str storage_class, int64_t bytes)
{
    const int64_t gib = (int64_t)1 << 30;
    struct json *spec = json_new_obj(a), *modes = json_new_arr(a);
    json_push(a, modes, json_new_str(a, S("ReadWriteMany")));
    json_set(a, spec, S("accessModes"), modes);
    json_set_str(a, json_make(a, spec, "resources", "requests", NULL), "storage",
                 arena_printf(a, "%lldGi", (long long)(bytes / gib)));
    if (storage_class.n)
        json_set_str(a, spec, "storageClassName", storage_class);
    return spec;
}

/* Sized for all model sources plus headroom. */
struct json *aim_service_volume(struct arena *a, const struct aim_service_basis *b)
{
    int64_t bytes = aim_service_sources_bytes(aim_service_sources(b->template));
    if (bytes <= 0)
        return NULL;
    str ns = meta_text(b->service, "namespace");
    str isvc = aim_names_inference_service(a, meta_text(b->service, "name"), ns);
    struct json *claim = make_child(a, aim_names_service_volume(a, isvc), ns);
    set_label(a, claim, b, "service-name", aim_names_label_value(a, meta_text(b->service, "name")));
    json_set(a, claim, S("spec"),
             aim_service_claim_spec(a, aim_service_storage_class(b),
                                    aim_names_volume_bytes(bytes, aim_service_headroom(b))));
    aim_service_copy_labels(a, b->config, b->service, claim);
    return claim;
}

/* Has the name of the template, so that all services with this template share it. */
/* The name of a cache of the newer generation: a dedicated one is never found by a service that is created again. */
static str newer_cache_name(struct arena *a, const struct aim_service_basis *b)
{
    enum { DIGITS = 8 };
    bool dedicated = aim_service_is_dedicated(b->service);
    str parts[] = { meta_text(b->template, "name"), meta_text(b->service, "name") };
    str of = meta_text(b->service, dedicated ? "uid" : "namespace");
    return aim_derive_name(a, parts, dedicated ? 2 : 1, aim_derive_inputs(a, &of, 1), DIGITS);
}

/* A service that asks with the field of the newer generation gets a cache of that generation, with artifacts. */
struct json *aim_service_template_cache(struct arena *a, const struct aim_service_basis *b)
{
    const struct json *from = json_get(b->service, "spec");
    bool newer = caching_mode(b->service).n > 0;
    str template = meta_text(b->template, "name");
    struct json *cache = make_child(a, newer ? newer_cache_name(a, b) : template,
                                    meta_text(b->service, "namespace"));
    struct json *spec = json_make(a, cache, "spec", NULL);
    set_label(a, cache, b, newer ? "service" : "service-name",
              aim_names_label_value(a, meta_text(b->service, "name")));
    json_set_str(a, spec, newer ? "templateName" : "templateRef", template);
    if (newer) {
        bool cluster = !meta_text(b->template, "namespace").n;
        json_set_str(a, spec, "templateScope", cluster ? S("Cluster") : S("Namespace"));
        json_set_str(a, spec, "mode",
                     aim_service_is_dedicated(b->service) ? S("Dedicated") : S("Shared"));
    }
    if (aim_service_storage_class(b).n)
        json_set_str(a, spec, "storageClassName", aim_service_storage_class(b));
    struct json *env =
        aim_service_merge_named(a, newer ? json_at(b->template, "spec", "env", NULL) : NULL,
                                json_get(from, "env"));
    if (env->n)
        json_set(a, spec, S("env"), env);
    copy_member(a, from, spec, "imagePullSecrets");
    copy_member(a, from, spec, "runtimeConfigName");
    aim_service_copy_labels(a, b->config, b->service, cache);
    return cache;
}
