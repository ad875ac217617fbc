/* AIMArtifact: see artifact_core.h.
 *
 *     size unknown  -> job "<name>-check-size-<hash>" -> status.discoveredSizeBytes
 *     size known    -> volume "<name>-cache-<hash>", once; then job "<name>-download-<hash>"
 *
 * A download that succeeded is final as long as the volume that it filled exists. Children carry a hash of the uid in their names, so that
 * an artifact that was deleted and created again never finds the volume of its predecessor. */
#include "artifact_core.h"

#include "../base/quantity.h"
#include "derive_core.h"
#include "engine_children_core.h"
#include "names_core.h"
#include "service_children_core.h"

#define DOWNLOADER "ghcr.io/silogen/aim-artifact-downloader:0.2.0"
#define MOUNT "/cache"

enum { UID = 1000, SIZE_TTL_S = 300, DOWNLOAD_TTL_S = 600, RETRIES = 2 };

static const int64_t size_max = (int64_t)1 << 50;

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

static str meta_of(const struct aim_artifact_question *q, const char *key)
{
    return json_text(json_at(q->artifact, "metadata", key, NULL));
}

/* ---- sizes */

int64_t aim_artifact_quantity(const struct json *v)
{
    int64_t bytes = 0;
    if (json_is(v, JSON_INT))
        return v->integer;
    return json_is(v, JSON_STR) && quantity_parse_value(json_text(v), &bytes, NULL) == 0 ? bytes
                                                                                         : 0;
}

int64_t aim_artifact_bytes(const struct json *artifact)
{
    int64_t given = aim_artifact_quantity(json_at(artifact, "spec", "size", NULL));
    return given > 0 ? given
                     : json_int(json_at(artifact, "status", "discoveredSizeBytes", NULL), 0);
}

str aim_artifact_invalid_size(struct arena *a, const struct json *artifact)
{
    const struct json *size = json_at(artifact, "spec", "size", NULL);
    if (!size || json_is(size, JSON_NULL) || aim_artifact_quantity(size) > 0)
        return S("");
    return json_to_str(a, size);
}

int64_t aim_artifact_headroom_percent(const struct json *config)
{
    enum { DEFAULT = 10 };
    const struct json *own = json_at(config, "storage", "pvcHeadroomPercent", NULL);
    return json_int(own, json_int(json_get(config, "pvcHeadroomPercent"), DEFAULT));
}

/* "1.5 GiB": one decimal below 100, none above. */
str aim_artifact_display(struct arena *a, int64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    size_t unit = 0;
    double value = (double)bytes;
    if (bytes < 0 || bytes > (int64_t)7 << 60)
        return S("");
    if (bytes < 1024)
        return arena_printf(a, "%lld B", (long long)bytes);
    for (value /= 1024; value >= 1024 && unit + 1 < countof(units); unit++)
        value /= 1024;
    str text = arena_printf(a, value >= 100 ? "%.0f" : "%.1f", value);
    if (str_ends(text, S(".0")))
        text = str_upto(text, text.n - 2);
    return arena_printf(a, STR_FMT " %s", STR_ARG(text), units[unit]);
}

/* The last line that is not empty. */
static str last_line(str log)
{
    log = str_trim(log);
    for (size_t i = log.n; i > 0; i--)
        if (log.p[i - 1] == '\n')
            return str_from(log, i);
    return log;
}

/* The job may print other lines first; the answer is the last one. */
int aim_artifact_parse_size(struct arena *a, str log, int64_t *ret_bytes, err_t *e)
{
    str line = last_line(log);
    struct json *tree = NULL;
    err_t why;
    if (!line.n)
        return err_set(e, EINVAL, "no output from check-size job");
    if (json_parse(a, line, &tree, &why))
        return err_set(e, EINVAL, "failed to parse check-size output: %s", why.text);
    const struct json *bytes = json_get(tree, "sizeBytes");
    if (!json_is(tree, JSON_OBJ) || (bytes && !json_is(bytes, JSON_INT)))
        return err_set(e, EINVAL,
                       "failed to parse check-size output: sizeBytes must be an integer");
    int64_t n = json_int(bytes, 0);
    if (n < 1 || n > size_max)
        return err_set(e, EINVAL, "invalid size: %lld bytes", (long long)n);
    *ret_bytes = n;
    return 0;
}

/* ---- children */

static str child_name(struct arena *a, const struct aim_artifact_question *q, const char *role)
{
    enum { DIGITS = 8 };
    str parts[] = { meta_of(q, "name"), str_c(role) }, uid = meta_of(q, "uid");
    return aim_derive_name(a, parts, countof(parts), aim_derive_inputs(a, &uid, 1), DIGITS);
}

static void set_label(struct arena *a, const struct aim_artifact_question *q, struct json *metadata,
                      const char *key, str value)
{
    json_set(a, json_make(a, metadata, "labels", NULL), arena_printf(a, "%s/%s", q->group, key),
             json_new_str(a, value));
}

/* A child with its name and the label by which it is found again. */
static struct json *new_child(struct arena *a, const struct aim_artifact_question *q,
                              const char *version, const char *kind, const char *role)
{
    struct json *child = json_new_obj(a), *metadata = json_make(a, child, "metadata", NULL);
    json_set_str(a, child, "apiVersion", str_c(version));
    json_set_str(a, child, "kind", str_c(kind));
    json_set_str(a, metadata, "name", child_name(a, q, role));
    json_set_str(a, metadata, "namespace", meta_of(q, "namespace"));
    set_label(a, q, metadata, "cache.name", meta_of(q, "name"));
    return child;
}

/* Configuration, then the artifact: later ones win. */
static struct json *env_over(struct arena *a, const struct aim_artifact_question *q,
                             const struct json *under)
{
    struct json *env = aim_service_merge_named(a, under, json_get(q->config, "env"));
    return aim_service_merge_named(a, env, json_at(q->artifact, "spec", "env", NULL));
}

static struct json *text_list(struct arena *a, str one)
{
    struct json *list = json_new_arr(a);
    json_push(a, list, json_new_str(a, one));
    return list;
}

static struct json *new_container(struct arena *a, const struct aim_artifact_question *q,
                                  const char *name)
{
    struct json *c = json_new_obj(a);
    str image = json_text(json_at(q->artifact, "spec", "modelDownloadImage", NULL));
    json_set_str(a, c, "name", str_c(name));
    json_set_str(a, c, "image", image.n ? image : S(DOWNLOADER));
    json_set_str(a, c, "imagePullPolicy", S("IfNotPresent"));
    json_set(a, c, S("args"),
             text_list(a, json_text(json_at(q->artifact, "spec", "sourceUri", NULL))));
    json_make(a, c, "resources", NULL);
    return c;
}

/* A job with one container; returns its pod spec. */
static struct json *put_job(struct arena *a, const struct aim_artifact_question *q,
                            struct json *job, const char *component, struct json *container,
                            int64_t ttl_s)
{
    struct json *metadata = json_get(job, "metadata"), *spec = json_make(a, job, "spec", NULL);
    struct json *pod = json_make(a, spec, "template", "spec", NULL), *list = json_new_arr(a);
    struct json *security = json_make(a, pod, "securityContext", NULL);
    const struct json *secrets = json_at(q->artifact, "spec", "imagePullSecrets", NULL);
    set_label(a, q, metadata, "cache.type", S("artifact"));
    set_label(a, q, metadata, "component", str_c(component));
    json_set(a, json_make(a, spec, "template", "metadata", NULL), S("labels"),
             json_copy(a, json_get(metadata, "labels")));
    json_set_int(a, spec, "backoffLimit", RETRIES);
    json_set_int(a, spec, "ttlSecondsAfterFinished", ttl_s);
    json_push(a, list, container);
    json_set(a, pod, S("containers"), list);
    json_set_str(a, pod, "restartPolicy", S("Never"));
    json_set_bool(a, security, "runAsNonRoot", true);
    json_set_int(a, security, "runAsUser", UID);
    json_set_int(a, security, "runAsGroup", UID);
    if (json_len(secrets))
        json_set(a, pod, S("imagePullSecrets"), json_copy(a, secrets));
    return pod;
}

struct json *aim_artifact_size_job(struct arena *a, const struct aim_artifact_question *q)
{
    struct json *job = new_child(a, q, "batch/v1", "Job", "check-size");
    struct json *c = new_container(a, q, "check-size"), *env = env_over(a, q, NULL);
    json_set(a, c, S("command"), text_list(a, S("/check-size.sh")));
    if (env->n)
        json_set(a, c, S("env"), env);
    put_job(a, q, job, "check-size", c, SIZE_TTL_S);
    return job;
}

/* "hf://acme/tiny" is "acme_tiny". */
static str source_label(struct arena *a, str uri)
{
    size_t at = str_find(uri, S("://"));
    return aim_names_label_value(a, at == SIZE_MAX ? uri : str_from(uri, at + 3));
}

static str storage_class(const struct aim_artifact_question *q)
{
    str own = json_text(json_at(q->artifact, "spec", "storageClassName", NULL));
    str nested = json_text(json_at(q->config, "storage", "defaultStorageClassName", NULL));
    return own.n ? own : nested.n ? nested : text_of(q->config, "defaultStorageClassName");
}

/* The volume has room for the artifact and the configured headroom, rounded up to whole GiB. */
struct json *aim_artifact_volume(struct arena *a, const struct aim_artifact_question *q)
{
    struct json *claim = new_child(a, q, "v1", "PersistentVolumeClaim", "cache");
    struct json *metadata = json_get(claim, "metadata");
    str made = json_text(json_at(q->artifact, "metadata", "labels", "template-created", NULL));
    int64_t bytes = aim_names_volume_bytes(aim_artifact_bytes(q->artifact),
                                           aim_artifact_headroom_percent(q->config));
    set_label(a, q, metadata, "source-model",
              source_label(a, json_text(json_at(q->artifact, "spec", "sourceUri", NULL))));
    if (str_eqc(made, "true"))
        set_label(a, q, metadata, "cache.type", S("template-cache"));
    json_set(a, claim, S("spec"), aim_service_claim_spec(a, storage_class(q), bytes));
    return claim;
}

static void push_env(struct arena *a, struct json *env, const char *name, str value)
{
    struct json *one = json_new_obj(a);
    json_set_str(a, one, "name", str_c(name));
    json_set_str(a, one, "value", value);
    json_push(a, env, one);
}

/* The downloader's own settings, which the configuration and the artifact may override. */
static struct json *download_env(struct arena *a, const struct aim_artifact_question *q)
{
    struct json *env = json_new_arr(a);
    push_env(a, env, "AIM_DOWNLOADER_PROTOCOL", S("XET,HF_TRANSFER"));
    push_env(a, env, "TMPDIR", S("/tmp/"));
    push_env(a, env, "HF_HOME", S("/tmp/.hf"));
    push_env(a, env, "EXPECTED_SIZE_BYTES",
             arena_printf(a, "%lld", (long long)aim_artifact_bytes(q->artifact)));
    push_env(a, env, "MOUNT_PATH", S(MOUNT));
    push_env(a, env, "ARTIFACT_NAME", meta_of(q, "name"));
    push_env(a, env, "ARTIFACT_NAMESPACE", meta_of(q, "namespace"));
    push_env(a, env, "STALL_TIMEOUT", S("120"));
    push_env(a, env, "TARGET_DIR", S(MOUNT));
    return env_over(a, q, env);
}

/* Runs as an ordinary user; fsGroup makes the volume writable for it. */
struct json *aim_artifact_download_job(struct arena *a, const struct aim_artifact_question *q)
{
    struct json *job = new_child(a, q, "batch/v1", "Job", "download");
    struct json *c = new_container(a, q, "model-download"), *mounts = json_new_arr(a);
    struct json *mount = json_new_obj(a), *volumes = json_new_arr(a), *volume = json_new_obj(a);
    json_set(a, c, S("env"), download_env(a, q));
    json_set_int(a, json_make(a, c, "securityContext", NULL), "runAsUser", UID);
    json_set_int(a, json_get(c, "securityContext"), "runAsGroup", UID);
    json_set_str(a, mount, "name", S("cache"));
    json_set_str(a, mount, "mountPath", S(MOUNT));
    json_push(a, mounts, mount);
    json_set(a, c, S("volumeMounts"), mounts);
    struct json *pod = put_job(a, q, job, "download", c, DOWNLOAD_TTL_S);
    json_set_int(a, json_get(pod, "securityContext"), "fsGroup", UID);
    json_set_str(a, volume, "name", S("cache"));
    json_set_str(a, json_make(a, volume, "persistentVolumeClaim", NULL), "claimName",
                 child_name(a, q, "cache"));
    json_push(a, volumes, volume);
    json_set(a, pod, S("volumes"), volumes);
    return job;
}

/* Lets the pod report its progress in the status of the artifact. */
struct json *aim_artifact_role_binding(struct arena *a, const struct aim_artifact_question *q)
{
    struct json *binding = json_new_obj(a), *metadata = json_make(a, binding, "metadata", NULL);
    struct json *role = json_make(a, binding, "roleRef", NULL), *subjects = json_new_arr(a);
    struct json *account = json_new_obj(a);
    json_set_str(a, metadata, "name", S(ARTIFACT_ROLE));
    json_set_str(a, metadata, "namespace", meta_of(q, "namespace"));
    json_set_str(a, role, "apiGroup", S("rbac.authorization.k8s.io"));
    json_set_str(a, role, "kind", S("ClusterRole"));
    json_set_str(a, role, "name", S(ARTIFACT_ROLE));
    json_set_str(a, account, "kind", S("ServiceAccount"));
    json_set_str(a, account, "name", S("default"));
    json_set_str(a, account, "namespace", meta_of(q, "namespace"));
    json_push(a, subjects, account);
    json_set(a, binding, S("subjects"), subjects);
    return binding;
}
