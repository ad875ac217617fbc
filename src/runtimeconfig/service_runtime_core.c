/* The InferenceService of a service: see service_children_core.h.
 *
 * KServe runs the ServingRuntime that has the name of the template; the InferenceService only adds what is specific to
 * this service: replicas, environment, resources, volumes and credentials. For each of these the service takes
 * precedence over the template, then the model, then the configuration; lists are merged by name:
 *
 *                        service   template   model   configuration
 *     environment        x         x                  x               merged by name
 *     resources          x         x          x                       the first that is set, over defaults per GPU
 *     pull secrets       x         x          x       x               merged by name
 *     service account    x         x          x       x               the first that is set */
#include "service_children_core.h"

#include "names_core.h"
#include "template_core.h"

struct maker {
    struct arena *a;
    const struct aim_service_basis *b;
};

static const struct json *spec_of(const struct json *object)
{
    return json_get(object, "spec");
}

static str name_of(const struct json *object)
{
    return json_text(json_at(object, "metadata", "name", NULL));
}

/* ---- metadata */

/* Labels that the original sets; metric and precision come from the discovered profile only. */
static void put_labels(struct maker *m, struct json *labels)
{
    const struct aim_service_basis *b = m->b;
    const struct json *profile = json_at(b->template, "status", "profile", "metadata", NULL);
    str model = json_text(json_get(spec_of(b->template), "modelName"));
    str source = aim_service_source_id(json_item(aim_service_sources(b->template), 0));
    const struct {
        const char *key;
        str value;
    } ours[] = {
        { "template", aim_names_label_value(m->a, name_of(b->template)) },
        { "model-id", aim_names_label_value(m->a, source.n ? source : model) },
        { "aim-image", aim_names_label_value(m->a, model) },
        { "service-name", aim_names_label_value(m->a, name_of(b->service)) },
        { "template.metric", json_text(json_get(profile, "metric")) },
        { "template.precision", json_text(json_get(profile, "precision")) },
    };
    json_set_str(m->a, labels, "app.kubernetes.io/name", S("aim-service"));
    json_set_str(m->a, labels, "app.kubernetes.io/component", S("inference-service"));
    json_set_str(m->a, labels, "app.kubernetes.io/managed-by", S("aim-controller"));
    for (size_t i = 0; i < countof(ours); i++)
        if (ours[i].value.n)
            json_set_str(m->a, labels, aim_names_label_key(m->a, b->group, ours[i].key).p,
                         ours[i].value);
}

/* Labels and annotations of the service are copied first, so that ours win. */
static void put_metadata(struct maker *m, struct json *object,
                         const struct aim_service_storage *storage)
{
    const struct json *from = json_get(m->b->service, "metadata");
    str ns = json_text(json_get(from, "namespace"));
    struct json *metadata = json_make(m->a, object, "metadata", NULL);
    json_set_str(m->a, metadata, "name",
                 aim_names_inference_service(m->a, json_text(json_get(from, "name")), ns));
    json_set_str(m->a, metadata, "namespace", ns);
    struct json *labels = json_make(m->a, metadata, "labels", NULL);
    json_each(label, json_get(from, "labels"))
        json_set(m->a, labels, label->key, json_copy(m->a, label->value));
    put_labels(m, labels);
    struct json *notes = json_make(m->a, metadata, "annotations", NULL);
    json_each(note, json_get(from, "annotations"))
        if (!str_starts(note->key,
                        S("kubectl.kubernetes.io/"))) /* describes the service, not this object */
            json_set(m->a, notes, note->key, json_copy(m->a, note->value));
    if (storage->mode)
        json_set_str(m->a, notes, aim_names_label_key(m->a, m->b->group, "storage").p,
                     str_c(storage->mode));
    if (json_get(spec_of(m->b->service), "autoScaling"))
        json_set_str(m->a, notes, "serving.kserve.io/autoscalerClass", S("keda"));
    if (!notes->n)
        json_del(metadata, S("annotations"));
}

/* ---- resources */

static int64_t gpu_count(const struct json *template)
{
    int64_t found =
        json_int(json_at(template, "status", "profile", "metadata", "gpu_count", NULL), 0);
    return found > 0 ? found : aim_template_gpu_count(spec_of(template));
}

static void copy_resources(struct arena *a, struct json *into, const struct json *from,
                           const char *key)
{
    json_each(m, json_get(from, key))
        json_set(a, json_make(a, into, key, NULL), m->key, json_copy(a, m->value));
}

/* Default CPU and memory per GPU, as in the original operator. */
static void put_default_resources(struct arena *a, struct json *resources, int64_t gpus)
{
    struct json *requests = json_make(a, resources, "requests", NULL);
    json_set_str(a, requests, "cpu", arena_printf(a, "%lld", 4 * (long long)gpus));
    json_set_str(a, requests, "memory", arena_printf(a, "%lldGi", 32 * (long long)gpus));
    json_set_str(a, json_make(a, resources, "limits", NULL), "memory",
                 arena_printf(a, "%lldGi", 48 * (long long)gpus));
}

/* hardware.cpu of a template: a number of CPUs, or a quantity. */
static void copy_cpu(struct arena *a, struct json *into, const struct json *cpu)
{
    static const char *const both[] = { "requests", "limits" };
    for (size_t i = 0; i < countof(both); i++)
        if (json_get(cpu, both[i]))
            json_set(a, json_make(a, into, both[i], NULL), S("cpu"),
                     json_copy(a, json_get(cpu, both[i])));
}

/* Defaults, overlaid by the first of service, template and model that sets resources; GPUs are always added. */
static struct json *resources_of(struct maker *m)
{
    const struct aim_service_basis *b = m->b;
    const struct json *whose[] = { json_get(spec_of(b->service), "resources"),
                                   json_get(spec_of(b->template), "resources"),
                                   json_get(spec_of(b->model), "resources") };
    enum { GPUS_MAX = 1024 }; /* more than any node has; keeps the products small */
    int64_t gpus = MIN(gpu_count(b->template), (int64_t)GPUS_MAX);
    str resource = aim_template_gpu_resource(spec_of(b->template));
    struct json *resources = json_new_obj(m->a);
    if (gpus)
        put_default_resources(m->a, resources, gpus);
    copy_cpu(m->a, resources, json_at(spec_of(b->template), "hardware", "cpu", NULL));
    for (size_t i = 0; i < countof(whose); i++) {
        if (!json_len(whose[i]))
            continue;
        copy_resources(m->a, resources, whose[i], "requests");
        copy_resources(m->a, resources, whose[i], "limits");
        break;
    }
    static const char *const both[] = { "requests", "limits" };
    for (size_t i = 0; gpus && i < countof(both); i++) {
        struct json *part = json_make(m->a, resources, both[i], NULL);
        if (!json_get_str(part, resource))
            json_set_str(m->a, part, resource.p, arena_printf(m->a, "%lld", (long long)gpus));
    }
    return resources;
}

/* ---- predictor */

/* Cache path, configuration, template, service: later ones win. */
static struct json *env_of(struct maker *m, const struct aim_service_storage *storage)
{
    struct json *first = json_new_arr(m->a);
    if (storage->n) {
        struct json *path = json_new_obj(m->a);
        json_set_str(m->a, path, "name", S("AIM_CACHE_PATH"));
        json_set_str(m->a, path, "value", S(SERVICE_CACHE_ROOT));
        json_push(m->a, first, path);
    }
    struct json *env = aim_service_merge_named(m->a, first, m->b->config->env);
    env = aim_service_merge_named(m->a, env, json_get(spec_of(m->b->template), "env"));
    return aim_service_merge_named(m->a, env, json_get(spec_of(m->b->service), "env"));
}

/* The secrets of service, template, model and configuration, in this order, each once. */
static struct json *pull_secrets_of(struct maker *m)
{
    const struct aim_service_basis *b = m->b;
    const struct json *lists[] = { json_get(spec_of(b->service), "imagePullSecrets"),
                                   json_get(spec_of(b->template), "imagePullSecrets"),
                                   json_get(spec_of(b->model), "imagePullSecrets"),
                                   b->config->pull_secrets };
    struct json *all = json_new_arr(m->a);
    for (size_t i = 0; i < countof(lists); i++)
        all = aim_service_merge_named(m->a, all, lists[i]);
    return all;
}

/* The first of service, template, model and configuration that names a service account. */
static str account_of(const struct aim_service_basis *b)
{
    const str names[] = { json_text(json_get(spec_of(b->service), "serviceAccountName")),
                          json_text(json_get(spec_of(b->template), "serviceAccountName")),
                          json_text(json_get(spec_of(b->model), "serviceAccountName")),
                          b->config->service_account };
    for (size_t i = 0; i < countof(names); i++)
        if (names[i].n)
            return names[i];
    return S("");
}

/* One volume and one mount per claim. */
static void put_volumes(struct maker *m, struct json *predictor, struct json *model,
                        const struct aim_service_storage *storage)
{
    if (!storage->n)
        return;
    struct json *volumes = json_new_arr(m->a), *mounts = json_new_arr(m->a);
    for (size_t i = 0; i < storage->n; i++) {
        struct json *volume = json_new_obj(m->a), *mount = json_new_obj(m->a);
        str name = arena_printf(m->a, "model-cache-%zu", i);
        json_set_str(m->a, volume, "name", name);
        json_set_str(m->a, json_make(m->a, volume, "persistentVolumeClaim", NULL), "claimName",
                     storage->mounts[i].claim);
        json_set_str(m->a, mount, "name", name);
        json_set_str(m->a, mount, "mountPath", storage->mounts[i].path);
        json_push(m->a, volumes, volume);
        json_push(m->a, mounts, mount);
    }
    json_set(m->a, predictor, S("volumes"), volumes);
    json_set(m->a, model, S("volumeMounts"), mounts);
}

static void put_replicas(struct maker *m, struct json *predictor)
{
    const struct json *spec = spec_of(m->b->service);
    int64_t replicas = json_int(json_get(spec, "replicas"), 1);
    json_set_int(m->a, predictor, "minReplicas", json_int(json_get(spec, "minReplicas"), replicas));
    json_set_int(m->a, predictor, "maxReplicas", json_int(json_get(spec, "maxReplicas"), replicas));
    if (json_get(spec, "autoScaling"))
        json_set(m->a, predictor, S("autoScaling"), json_copy(m->a, json_get(spec, "autoScaling")));
}

/* Empty lists are left out: server-side apply would otherwise own them. */
struct json *aim_service_inference_service(struct arena *a, const struct aim_service_basis *b,
                                           const struct aim_service_storage *storage)
{
    struct maker m = { a, b };
    struct json *object = json_new_obj(a);
    put_metadata(&m, object, storage);
    struct json *predictor = json_make(a, object, "spec", "predictor", NULL);
    struct json *model = json_make(a, predictor, "model", NULL);
    struct json *format = json_make(a, model, "modelFormat", NULL);
    json_set_str(a, format, "name", S("aim"));
    json_set_str(a, format, "version", S("1"));
    json_set_str(a, model, "runtime", name_of(b->template));
    json_set(a, model, S("resources"), resources_of(&m));
    struct json *env = env_of(&m, storage), *secrets = pull_secrets_of(&m);
    if (env->n)
        json_set(a, model, S("env"), env);
    if (secrets->n)
        json_set(a, predictor, S("imagePullSecrets"), secrets);
    if (account_of(b).n)
        json_set_str(a, predictor, "serviceAccountName", account_of(b));
    str priority = json_text(json_get(spec_of(b->service), "priorityClassName"));
    if (priority.n)
        json_set_str(a, predictor, "priorityClassName", priority);
    put_volumes(&m, predictor, model, storage);
    put_replicas(&m, predictor);
    return object;
}

/* ---- a live InferenceService */

static str mount_path(const struct json *mounts, str volume)
{
    for (size_t i = 0; i < json_len(mounts); i++)
        if (str_eq(json_text(json_get(json_item(mounts, i), "name")), volume))
            return json_text(json_get(json_item(mounts, i), "mountPath"));
    return S("");
}

/* Reads the mode from our annotation and the claims from volumes with our prefix; others are not ours. */
bool aim_service_read_storage(struct arena *a, const char *group,
                              const struct json *inference_service, const char *mode,
                              struct aim_service_storage *ret)
{
    const struct json *notes = json_at(inference_service, "metadata", "annotations", NULL);
    const struct json *predictor = json_at(inference_service, "spec", "predictor", NULL);
    const struct json *volumes = json_get(predictor, "volumes");
    const struct json *mounts = json_at(predictor, "model", "volumeMounts", NULL);
    str made = json_text(json_get_str(notes, aim_names_label_key(a, group, "storage")));
    if (!made.n || !str_eqc(made, mode))
        return false;
    struct aim_service_mount *list = arena_array(a, json_len(volumes) + 1, sizeof(*list));
    size_t n = 0;
    for (size_t i = 0; i < json_len(volumes); i++) {
        const struct json *volume = json_item(volumes, i);
        str name = json_text(json_get(volume, "name"));
        str claim = json_text(json_at(volume, "persistentVolumeClaim", "claimName", NULL));
        if (str_starts(name, S("model-cache-")) && claim.n)
            list[n++] = (struct aim_service_mount){ claim, mount_path(mounts, name) };
    }
    if (!n)
        return false;
    *ret = (struct aim_service_storage){ mode, list, n };
    return true;
}
