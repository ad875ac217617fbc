/* States and children of caches: see cache_core.h.
 *
 *     AIMTemplateCache --one per source--> AIMModelCache --> PersistentVolumeClaim
 *           status: the worst of them                   --> Job (download), deleted 10 minutes after it ends
 *
 * A finished job is deleted by its TTL. The state therefore does not depend on the job alone: a cache that was
 * Available stays so while the volume that was filled is bound, and is not downloaded again. */
#include "cache_core.h"

#include "../base/quantity.h"
#include "names_core.h"
#include "service_children_core.h"

static str meta_text(const struct json *object, const char *key)
{
    return json_text(json_at(object, "metadata", key, NULL));
}

static struct aim_cache_state make_state(const char *status, const char *reason, str message)
{
    return (struct aim_cache_state){ .status = status, .reason = reason, .message = message };
}

/* ---- a model cache's state */

/* A claim of a class that binds late stays Pending until the job uses it, so waiting for it would never end. */
enum aim_cache_volume_phase aim_cache_volume_phase(const struct json *claim,
                                                   bool waits_for_consumer)
{
    str phase = json_text(json_at(claim, "status", "phase", NULL));
    if (!claim)
        return AIM_CACHE_VOLUME_ABSENT;
    if (str_eqc(phase, "Bound"))
        return AIM_CACHE_VOLUME_BOUND;
    if (str_eqc(phase, "Lost"))
        return AIM_CACHE_VOLUME_LOST;
    return waits_for_consumer ? AIM_CACHE_VOLUME_LAZY : AIM_CACHE_VOLUME_PENDING;
}

/* Conditions decide; status.succeeded is the fallback for a job whose conditions were not set yet. */
enum aim_cache_job_phase aim_cache_job_phase(const struct json *job, str *ret_message)
{
    const struct json *status = json_get(job, "status"), *list = json_get(status, "conditions");
    if (!job)
        return AIM_CACHE_JOB_ABSENT;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *c = json_item(list, i);
        str type = json_text(json_get(c, "type"));
        if (!str_eqc(json_text(json_get(c, "status")), "True"))
            continue;
        *ret_message = json_text(json_get(c, "message"));
        if (str_eqc(type, "Complete"))
            return AIM_CACHE_JOB_DONE;
        if (str_eqc(type, "Failed"))
            return AIM_CACHE_JOB_FAILED;
    }
    return json_int(json_get(status, "succeeded"), 0) > 0 ? AIM_CACHE_JOB_DONE
                                                          : AIM_CACHE_JOB_RUNNING;
}

/* The state once the volume can be written to: depends on the job. */
static struct aim_cache_state state_of_download(struct arena *a,
                                                const struct aim_cache_model_facts *f)
{
    struct aim_cache_state s =
        make_state("Progressing", "Downloading", S("The model is being downloaded"));
    if (f->filling.stale)
        return make_state("Progressing", "VolumeReplaced",
                          S("The volume with the model was deleted; it is downloaded again"));
    switch (f->job) {
    case AIM_CACHE_JOB_DONE:
        return make_state("Available", "Warm", S("The model is cached in its volume"));
    case AIM_CACHE_JOB_FAILED:
        return make_state("Failed", "DownloadFailed",
                          arena_printf(a, "The download failed: " STR_FMT,
                                       STR_ARG(f->job_message)));
    case AIM_CACHE_JOB_ABSENT:
        if (f->was_available && !f->filling.replaced &&
            f->volume == AIM_CACHE_VOLUME_BOUND) /* the finished job was deleted */
            return make_state("Available", "Warm", S("The model is cached in its volume"));
        s.wants_job = !f->job_leaving;
        return s;
    default:
        return s;
    }
}

/* The volume comes first, then the download: the job cannot start without it. */
static struct aim_cache_state state_of_volume(struct arena *a,
                                              const struct aim_cache_model_facts *f)
{
    struct aim_cache_state s;
    switch (f->volume) {
    case AIM_CACHE_VOLUME_ABSENT:
        if (!f->size_known)
            return make_state("Failed", "SizeUnknown",
                              S("spec.size is missing or not a quantity of bytes such as 16Gi; the "
                                "volume cannot be created"));
        s = make_state("Pending", "WaitingForPVC", S("The volume is being created"));
        s.wants_volume = true;
        return s;
    case AIM_CACHE_VOLUME_PENDING:
        return make_state("Pending", "WaitingForPVC", S("Waiting for the volume to be bound"));
    case AIM_CACHE_VOLUME_LOST:
        return make_state("Failed", "PVCLost", S("PVC lost"));
    default:
        return state_of_download(a, f);
    }
}

/* A job of another volume is deleted in any state: a volume that is being deleted waits for its pods. */
struct aim_cache_state aim_cache_model_state(struct arena *a, const struct aim_cache_model_facts *f)
{
    if (f->config_missing)
        return make_state("Failed", "RuntimeConfigMissing", f->config_message);
    struct aim_cache_state s = state_of_volume(a, f);
    s.drops_job = f->filling.stale;
    return s;
}

/* ---- a model cache's children */

/* An integer is a number of bytes; a string is a quantity. */
int64_t aim_cache_bytes(const struct json *cache)
{
    const struct json *size = json_at(cache, "spec", "size", NULL);
    int64_t bytes = -1;
    if (json_is(size, JSON_INT))
        return size->integer > 0 ? size->integer : -1;
    if (!json_is(size, JSON_STR) || quantity_parse_value(json_text(size), &bytes, NULL) < 0)
        return -1;
    return bytes > 0 ? bytes : -1;
}

/* Metadata that the claim and the job share; its label leads back to the cache. */
static struct json *make_child(struct arena *a, const char *group, const struct json *cache,
                               str name)
{
    struct json *object = json_new_obj(a), *metadata = json_make(a, object, "metadata", NULL);
    struct json *labels = json_make(a, metadata, "labels", NULL);
    json_set_str(a, metadata, "name", name);
    json_set_str(a, metadata, "namespace", meta_text(cache, "namespace"));
    json_set_str(a, labels, "app.kubernetes.io/managed-by", S("aim-controller"));
    json_set_str(a, labels, aim_names_label_key(a, group, "model-cache").p,
                 aim_names_label_value(a, meta_text(cache, "name")));
    return object;
}

/* The storage class of the cache, or else of the configuration; the size includes the headroom. */
struct json *aim_cache_claim(struct arena *a, const char *group, const struct json *cache,
                             const struct runtimeconfig_spec *config)
{
    str class = json_text(json_at(cache, "spec", "storageClassName", NULL));
    int64_t headroom = config->has_headroom ? config->headroom_percent : PVC_HEADROOM_DEFAULT;
    struct json *claim =
        make_child(a, group, cache, aim_names_model_cache_volume(a, meta_text(cache, "name")));
    json_set(a, claim, S("spec"),
             aim_service_claim_spec(a, class.n ? class : config->storage_class,
                                    aim_names_volume_bytes(aim_cache_bytes(cache), headroom)));
    aim_service_copy_labels(a, config, cache, claim);
    return claim;
}

/* The storage initializer of KServe, which is called with the source and the target directory. */
static struct json *download_container(struct arena *a, const struct json *spec,
                                       const struct runtimeconfig_spec *config)
{
    struct json *container = json_new_obj(a), *args = json_new_arr(a), *mounts = json_new_arr(a);
    struct json *mount = json_new_obj(a);
    str image = json_text(json_get(spec, "modelDownloadImage"));
    json_set_str(a, container, "name", S("model-download"));
    json_set_str(a, container, "image", image.n ? image : S(AIM_CACHE_DOWNLOAD_IMAGE));
    json_push(a, args, json_copy(a, json_get(spec, "sourceUri")));
    json_push(a, args, json_new_str(a, S("/cache")));
    json_set(a, container, S("args"), args);
    struct json *env = aim_service_merge_named(a, config->env, json_get(spec, "env"));
    if (env->n)
        json_set(a, container, S("env"), env);
    json_set_str(a, mount, "name", S("cache"));
    json_set_str(a, mount, "mountPath", S("/cache"));
    json_push(a, mounts, mount);
    json_set(a, container, S("volumeMounts"), mounts);
    return container;
}

/* The pod of the download job: not root, restarts are up to the job. */
static void fill_pod(struct arena *a, struct json *pod, const struct json *cache,
                     const struct runtimeconfig_spec *config)
{
    enum { UID = 1000 };
    const struct json *spec = json_get(cache, "spec");
    struct json *containers = json_new_arr(a), *volumes = json_new_arr(a),
                *volume = json_new_obj(a);
    struct json *security = json_make(a, pod, "securityContext", NULL);
    json_set_int(a, security, "runAsUser", UID);
    json_set_int(a, security, "fsGroup", UID);
    json_set_bool(a, security, "runAsNonRoot", true);
    json_set_str(a, pod, "restartPolicy", S("Never"));
    json_push(a, containers, download_container(a, spec, config));
    json_set(a, pod, S("containers"), containers);
    json_set_str(a, volume, "name", S("cache"));
    json_set_str(a, json_make(a, volume, "persistentVolumeClaim", NULL), "claimName",
                 aim_names_model_cache_volume(a, meta_text(cache, "name")));
    json_push(a, volumes, volume);
    json_set(a, pod, S("volumes"), volumes);
    struct json *secrets =
        aim_service_merge_named(a, json_get(spec, "imagePullSecrets"), config->pull_secrets);
    str account = json_text(json_get(spec, "serviceAccountName"));
    account = account.n ? account : config->service_account;
    if (secrets->n)
        json_set(a, pod, S("imagePullSecrets"), secrets);
    if (account.n)
        json_set_str(a, pod, "serviceAccountName", account);
}

/* A job without an owner; the caller sets it. */
struct json *aim_cache_job(struct arena *a, const char *group, const struct json *cache,
                           const struct runtimeconfig_spec *config)
{
    enum { RETRIES = 2, KEPT_S = 600 };
    str name = arena_printf(a, STR_FMT "-cache-download", STR_ARG(meta_text(cache, "name")));
    struct json *job = make_child(a, group, cache, name), *spec = json_make(a, job, "spec", NULL);
    aim_service_copy_labels(a, config, cache, job);
    json_set_int(a, spec, "backoffLimit", RETRIES);
    json_set_int(a, spec, "ttlSecondsAfterFinished", KEPT_S);
    struct json *template = json_make(a, spec, "template", NULL);
    json_set(a, json_make(a, template, "metadata", NULL), S("labels"),
             json_copy(a, json_at(job, "metadata", "labels", NULL)));
    fill_pod(a, json_make(a, template, "spec", NULL), cache, config);
    return job;
}

/* ---- template caches */

bool aim_cache_is_available(str status)
{
    return str_eqc(status, "Available") || str_eqc(status, "Ready");
}

int aim_cache_rank(str status)
{
    return aim_cache_is_available(status)   ? 3
           : str_eqc(status, "Progressing") ? 2
           : !str_eqc(status, "Failed")     ? 1
                                            : 0;
}

/* The best state wins, then the smaller name, so that all template caches choose the same one. */
const struct aim_cache_candidate *aim_cache_choose(const struct aim_cache_candidate *candidates,
                                                   size_t n, str source_uri, str storage_class)
{
    const struct aim_cache_candidate *best = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct aim_cache_candidate *c = &candidates[i];
        if (!str_eq(c->source_uri, source_uri) ||
            (storage_class.n && !str_eq(c->storage_class, storage_class)))
            continue;
        int order = best ? aim_cache_rank(c->status) - aim_cache_rank(best->status) : 1;
        if (order > 0 || (order == 0 && str_cmp(c->name, best->name) < 0))
            best = c;
    }
    return best;
}

/* Settings are copied from the template cache, as far as a model cache has them. */
struct json *aim_cache_model_cache(struct arena *a, const char *group,
                                   const struct json *template_cache, const struct json *source,
                                   const struct runtimeconfig_spec *config)
{
    const struct json *from = json_get(template_cache, "spec");
    struct json *cache = json_new_obj(a), *metadata = json_make(a, cache, "metadata", NULL);
    struct json *labels = json_make(a, metadata, "labels", NULL);
    struct json *spec = json_make(a, cache, "spec", NULL);
    json_set_str(a, metadata, "name", aim_names_model_cache(a, aim_service_source_id(source)));
    json_set_str(a, metadata, "namespace", meta_text(template_cache, "namespace"));
    json_set_str(a, labels, "app.kubernetes.io/managed-by", S("aim-controller"));
    json_set_str(a, labels, aim_names_label_key(a, group, "template-cache").p,
                 aim_names_label_value(a, meta_text(template_cache, "name")));
    aim_service_copy_labels(a, config, template_cache, cache);
    json_set(a, spec, S("sourceUri"), json_copy(a, json_get(source, "sourceUri")));
    if (json_get(source, "size"))
        json_set(a, spec, S("size"), json_copy(a, json_get(source, "size")));
    static const struct {
        const char *from, *to;
    } copied[] = {
        { "storageClassName", "storageClassName" }, { "env", "env" },
        { "imagePullSecrets", "imagePullSecrets" }, { "serviceAccountName", "serviceAccountName" },
        { "downloadImage", "modelDownloadImage" },  { "runtimeConfigName", "runtimeConfigName" }
    };
    for (size_t i = 0; i < countof(copied); i++)
        if (json_get(from, copied[i].from))
            json_set(a, spec, str_c(copied[i].to), json_copy(a, json_get(from, copied[i].from)));
    return cache;
}

/* The worst state of the sources is the state of the cache. */
struct aim_cache_state aim_cache_template_state(struct arena *a,
                                                const struct aim_cache_template_facts *f)
{
    if (f->config_missing)
        return make_state("Failed", "RuntimeConfigMissing", f->config_message);
    if (!f->template_found)
        return make_state("Pending", "AwaitingTemplate",
                          arena_printf(a, "Template \"" STR_FMT "\" does not exist",
                                       STR_ARG(f->template_name)));
    if (!f->sources)
        return make_state("Pending", "AwaitingModelSources",
                          arena_printf(a, "Template \"" STR_FMT "\" has no model sources yet",
                                       STR_ARG(f->template_name)));
    str counts = arena_printf(a, "%zu of %zu model sources are cached", f->available, f->sources);
    switch (f->worst) {
    case 0:
        return make_state("Failed", "CacheFailed", counts);
    case 1:
        return make_state("Pending", "CachePending", counts);
    case 2:
        return make_state("Progressing", "CacheWarming", counts);
    default:
        return make_state("Available", "CacheWarm", counts);
    }
}

str aim_cache_mount_path(struct arena *a, str source_name)
{
    bool is_safe = source_name.n && source_name.p[0] != '/' &&
                   str_find(source_name, S("..")) == SIZE_MAX &&
                   str_find_char(source_name, ':') == SIZE_MAX;
    return arena_printf(a, SERVICE_CACHE_ROOT "/" STR_FMT,
                        STR_ARG(is_safe ? source_name : aim_names_rfc1123(a, source_name)));
}
