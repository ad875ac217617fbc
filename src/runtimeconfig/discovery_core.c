/* Discovery: the Job that asks a model's image which profile it would use; see discovery_core.h.
 *
 * The Job runs the image of the model with `dry-run` and prints its answer to the log, which
 * discovery_parse_core.c reads. Since the image is not ours, the Job gets no more rights than it needs: no
 * root, no capabilities, no privilege escalation, the default seccomp profile.
 *
 * Its name contains a hash of everything that it is made of: a changed template gets another Job, and an
 * unchanged one is not run twice. Failed attempts back off from one minute to one hour, counted per hash of the
 * question, so that a corrected template is tried at once. */
#include "discovery_core.h"

#include "../base/duration.h"
#include "../base/sha256.h"
#include "service_children_core.h"

#include <math.h>

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

/* ---- the job */

/* The part of the hash that describes the hardware, in the order of the original. */
static void put_hardware_text(struct buf *b, const struct json *spec)
{
    const struct json *gpu = json_at(spec, "hardware", "gpu", NULL);
    buf_put(b, text_of(spec, "metric"));
    buf_put(b, text_of(spec, "precision"));
    if (json_is(gpu, JSON_OBJ))
        buf_printf(b, STR_FMT "%lld", STR_ARG(text_of(gpu, "model")),
                   (long long)json_int(json_get(gpu, "requests"), 0));
    buf_put(b, text_of(spec, "profileId"));
}

static str hash_text(struct arena *a, const struct buf *text, size_t digits)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(buf_str(text), hex);
    return arena_str(a, str_upto(str_c(hex), digits));
}

str aim_discovery_hash(struct arena *a, const struct aim_discovery_question *q)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, q->model);
    buf_put(&text, q->image);
    put_hardware_text(&text, q->spec);
    return hash_text(a, &text, DISCOVERY_HASH_DIGITS);
}

/* Everything that changes what the Job does is part of the hash. The template is shortened so that the name
 * fits a label. */
static str job_name(struct arena *a, const struct aim_discovery_question *q)
{
    enum { DIGITS = 8, TEMPLATE_MAX = 45 };
    auto_buf struct buf text = { 0 };
    const struct json *env = q->cluster ? NULL : json_get(q->spec, "env");
    buf_put(&text, q->model);
    buf_put(&text, q->image);
    buf_put(&text, q->service_account);
    for (size_t i = 0; i < json_len(env); i++) {
        buf_put(&text, text_of(json_item(env, i), "name"));
        buf_put(&text, text_of(json_item(env, i), "value"));
    }
    for (size_t i = 0; i < json_len(q->pull_secrets); i++)
        buf_put(&text, text_of(json_item(q->pull_secrets, i), "name"));
    put_hardware_text(&text, q->spec);
    return arena_printf(a, "discover-" STR_FMT "-" STR_FMT,
                        STR_ARG(str_upto(q->template, TEMPLATE_MAX)),
                        STR_ARG(hash_text(a, &text, DIGITS)));
}

static void push_env(struct arena *a, struct json *env, const char *name, str value)
{
    struct json *one = json_new_obj(a);
    if (!value.n)
        return;
    json_set_str(a, one, "name", str_c(name));
    json_set_str(a, one, "value", value);
    json_push(a, env, one);
}

/* Our variables come after those of the template, which may not override the question that is asked. */
static struct json *env_of(struct arena *a, const struct aim_discovery_question *q)
{
    struct json *env = json_new_arr(a);
    const struct json *gpu = json_at(q->spec, "hardware", "gpu", NULL);
    int64_t count = json_int(json_get(gpu, "requests"), 0);
    push_env(a, env, "AIM_LOG_LEVEL_ROOT", S("CRITICAL"));
    push_env(a, env, "AIM_LOG_LEVEL", S("CRITICAL"));
    if (!q->cluster)
        env = aim_service_merge_named(a, env, json_get(q->spec, "env"));
    push_env(a, env, "AIM_METRIC", text_of(q->spec, "metric"));
    push_env(a, env, "AIM_PRECISION", text_of(q->spec, "precision"));
    push_env(a, env, "AIM_GPU_MODEL", text_of(gpu, "model"));
    if (count > 0)
        push_env(a, env, "AIM_GPU_COUNT", arena_printf(a, "%lld", (long long)count));
    push_env(a, env, "AIM_PROFILE_ID", text_of(q->spec, "profileId"));
    return env;
}

static struct json *text_list(struct arena *a, const char *first, const char *second)
{
    struct json *list = json_new_arr(a);
    json_push(a, list, json_new_str(a, str_c(first)));
    if (second)
        json_push(a, list, json_new_str(a, str_c(second)));
    return list;
}

static struct json *discovery_container(struct arena *a, const struct aim_discovery_question *q)
{
    struct json *c = json_new_obj(a), *security = json_make(a, c, "securityContext", NULL);
    json_set_str(a, c, "name", S("discovery"));
    json_set_str(a, c, "image", q->image);
    json_set(a, c, S("args"), text_list(a, "dry-run", "--format=json"));
    json_set(a, c, S("env"), env_of(a, q));
    json_make(a, c, "resources", NULL);
    json_set_bool(a, security, "allowPrivilegeEscalation", false);
    json_set_bool(a, security, "runAsNonRoot", true);
    json_set(a, json_make(a, security, "capabilities", NULL), S("drop"), text_list(a, "ALL", NULL));
    return c;
}

/* The pod security standard "restricted", so that the Job runs in namespaces that enforce it. */
static void put_pod(struct arena *a, struct json *pod, const struct aim_discovery_question *q)
{
    enum { NOBODY = 65532 };
    struct json *containers = json_new_arr(a),
                *security = json_make(a, pod, "securityContext", NULL);
    json_push(a, containers, discovery_container(a, q));
    json_set(a, pod, S("containers"), containers);
    json_set_str(a, pod, "restartPolicy", S("Never"));
    json_set_bool(a, security, "runAsNonRoot", true);
    json_set_int(a, security, "runAsUser", NOBODY);
    json_set_str(a, json_make(a, security, "seccompProfile", NULL), "type", S("RuntimeDefault"));
    if (json_len(q->pull_secrets))
        json_set(a, pod, S("imagePullSecrets"), json_copy(a, q->pull_secrets));
    if (q->service_account.n)
        json_set_str(a, pod, "serviceAccountName", q->service_account);
}

struct json *aim_discovery_job(struct arena *a, const struct aim_discovery_question *q)
{
    enum { TTL_S = 60 };
    struct json *job = json_new_obj(a), *spec = json_make(a, job, "spec", NULL);
    struct json *metadata = json_make(a, job, "metadata", NULL);
    struct json *labels = json_make(a, metadata, "labels", NULL);
    str key = arena_printf(a, "%s/template", q->group);
    json_set_str(a, job, "apiVersion", S("batch/v1"));
    json_set_str(a, job, "kind", S("Job"));
    json_set_str(a, metadata, "name", job_name(a, q));
    json_set_str(a, metadata, "namespace", q->ns);
    json_set_str(a, labels, "app.kubernetes.io/name", S("aim-discovery"));
    json_set_str(a, labels, "app.kubernetes.io/component", S("discovery"));
    json_set_str(a, labels, "app.kubernetes.io/managed-by", S("aim-controller"));
    json_set_str(a, labels, key.p, q->template);
    json_set_int(a, spec, "backoffLimit", 0);
    json_set_int(a, spec, "ttlSecondsAfterFinished", TTL_S);
    json_set_str(a, json_make(a, spec, "template", "metadata", "labels", NULL), key.p, q->template);
    put_pod(a, json_make(a, spec, "template", "spec", NULL), q);
    return job;
}

/* ---- attempts */

int64_t aim_discovery_backoff_s(int64_t attempts)
{
    enum { FIRST_S = 60, MOST_S = 3600 };
    if (attempts <= 0)
        return 0;
    return attempts > 6 ? MOST_S : MIN((int64_t)FIRST_S << (attempts - 1), (int64_t)MOST_S);
}

/* False: a recent attempt for the same question failed; the message states how long to wait. */
bool aim_discovery_may_create(struct arena *a, const struct aim_discovery_attempts *state,
                              str spec_hash, str *ret_message)
{
    *ret_message = S("");
    if (!state || !str_eq(state->spec_hash, spec_hash))
        return true;
    double left = (double)aim_discovery_backoff_s(state->attempts) - state->last_ago_s;
    if (left <= 0)
        return true;
    char room[DURATION_TEXT_MAX];
    str wait = duration_text((int64_t)llround(left) * 1000000000, room);
    *ret_message = arena_printf(a, "Waiting " STR_FMT " before retry (attempt %lld)", STR_ARG(wait),
                                (long long)state->attempts + 1);
    return false;
}

/* True if the Job ended, either way; a failure is explained by its message, or by its reason. */
bool aim_discovery_is_complete(const struct json *job, bool *ret_succeeded, str *ret_reason)
{
    const struct json *list = json_at(job, "status", "conditions", NULL);
    *ret_succeeded = false;
    *ret_reason = S("");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *c = json_item(list, i);
        if (!str_eqc(text_of(c, "status"), "True"))
            continue;
        if (str_eqc(text_of(c, "type"), "Complete")) {
            *ret_succeeded = true;
            return true;
        }
        if (str_eqc(text_of(c, "type"), "Failed")) {
            str message = text_of(c, "message"), reason = text_of(c, "reason");
            *ret_reason = message.n ? message : reason.n ? reason : S("Unknown failure");
            return true;
        }
    }
    return false;
}
