/* Inspection of images: see model_inspection.h.
 *
 *     turn: metadata of this image? -- yes --> nothing to do (status.inspectedImage remembers which image they are of)
 *              | no, or the spec changed
 *           pull secrets (pull_secrets.c) -> keychain -> registry_inspect (src/registry)
 *              |                |                                |
 *              +--- failure ----+------- enqueue the model <-----+
 *     next turn: labels -> metadata, or the failure as a condition and a time for the next try
 *
 * A failure never removes metadata that were found before. It is tried again after a time that depends on its cause: what
 * the network or the registry caused soon, what only a user can mend rarely; a change of the spec at once. Secrets are read
 * with a get, when they are needed, and not kept: the operator needs neither list nor watch on them. A changed secret
 * is therefore noticed with the next try. */
#include "model_inspection.h"

#include "../registry/registry.h"
#include "aim.h"
#include "inspection_core.h"
#include "pull_secrets.h"

enum { LABELS_BYTES = 256 << 10 };

struct aim_inspection {
    struct aim_tracked *of;
    char *key; /* owned; the image and credentials that were asked for */
    enum aim_model_inspection state;
    unsigned failures; /* in a row, of this key */
    int64_t retry_ns;  /* of a failure: monotonic clock */
    const char *reason;
    char *message;  /* owned; of a failure */
    char *metadata; /* owned; JSON, of a success */

    /* while it is going on */
    struct arena arena;
    struct registry_inspect question;
    struct aim_pull_secrets secrets;
    struct registry_inspection *asked;
};

/* ---- life */

int aim_inspection_start(struct aim *aim, err_t *e)
{
    struct manager *m = aim->manager;
    bool on;
    int r = manager_setting_bool(m, "inspect-images", &on, e);
    if (r < 0 || !on)
        return r;
    aim->inspector = registry_inspector_new(&(struct registry_inspector_options){
        .loop = manager_loop(m),
        .plain_http = str_c(manager_setting(m, "registry-plain-http")),
        .allow_private = str_c(manager_setting(m, "registry-allow-private")),
        .mirrors = str_c(manager_setting(m, "registry-mirror")),
        .ca_file = manager_setting(m, "registry-ca-file"),
        .api_server = kube_host(manager_kube(m)) });
    return 0;
}

void aim_inspection_stop(struct aim *aim)
{
    registry_inspector_free(aim->inspector);
    aim->inspector = NULL;
}

/* Ends what is going on, and frees the secrets. */
static void end_inspection(struct aim_inspection *i)
{
    aim_pull_secrets_cancel(&i->secrets);
    registry_inspection_cancel(i->asked);
    i->asked = NULL;
    arena_done(&i->arena);
    i->arena = (struct arena){ 0 };
}

void aim_inspection_free(struct aim_inspection *i)
{
    if (!i)
        return;
    end_inspection(i);
    free(i->key);
    free(i->message);
    free(i->metadata);
    free(i);
}

static int64_t mono_ns(const struct aim_inspection *i)
{
    return loop_mono_ns(manager_loop(i->of->of->aim->manager));
}

/* ---- results */

/* 5 s and doubling up to 10 min for what passes by itself; 1 min up to 1 h for what a user must mend. */
static int64_t retry_after_ns(const char *reason, unsigned failures, str retry_after)
{
    bool passes = !strcmp(reason, "RegistryUnreachable") || !strcmp(reason, "ServerUnavailable");
    int64_t first = passes ? 5 : 60, most = passes ? 600 : 3600, given;
    if (!strcmp(reason, "RateLimited")) {
        first = most = 300;
        if (str_to_i64(str_trim(retry_after), &given) == 0 && given > 0)
            first = most = MIN(given, (int64_t)3600);
    }
    return MIN(first << MIN(failures, 12u), most) * NS_PER_S;
}

static void enqueue_model(const struct aim_inspection *i)
{
    controller_add(i->of->of->controller, i->of->ns, i->of->name);
}

static void fail_inspection(struct aim_inspection *i, const char *reason, str message,
                            str retry_after)
{
    free(i->message);
    i->message = mem_dup(message.p, message.n);
    i->reason = reason;
    i->state = MODEL_INSPECTION_FAILED;
    i->retry_ns = mono_ns(i) + retry_after_ns(reason, i->failures, retry_after);
    i->failures++;
    end_inspection(i);
    enqueue_model(i);
}

static void keep_metadata(struct aim_inspection *i, const struct json *labels)
{
    struct json *metadata;
    err_t e;
    if (aim_inspection_metadata(&i->arena, labels, &metadata, &e) < 0) {
        fail_inspection(i, "MetadataFormatInvalid",
                        arena_printf(&i->arena, "Failed to extract metadata: %s", e.text), S(""));
        return;
    }
    json_set(&i->arena, metadata, S("originalLabels"), aim_inspection_labels(&i->arena, labels));
    str text = json_to_str(&i->arena, metadata);
    if (text.n > LABELS_BYTES) {
        fail_inspection(i, "MetadataFormatInvalid",
                        S("Failed to extract metadata: the labels are larger than 256 KiB"), S(""));
        return;
    }
    free(i->metadata);
    i->metadata = mem_dup(text.p, text.n);
    i->state = MODEL_INSPECTED;
    i->failures = 0;
    end_inspection(i);
    enqueue_model(i);
}

static void on_inspected(void *context, const struct registry_result *result)
{
    struct aim_inspection *i = context;
    i->asked = NULL;
    if (result->cause == REGISTRY_OK)
        keep_metadata(i, result->labels);
    else
        fail_inspection(i, registry_cause_reason(result->cause), result->message,
                        result->retry_after);
}

/* ---- credentials */

static void ask_registry(struct aim_inspection *i)
{
    struct registry_inspect *q = &i->question;
    err_t e;
    if (registry_keychain_find(&i->arena, i->secrets.found, i->secrets.found_n, &q->image, true,
                               &q->credentials, &e) < 0) {
        fail_inspection(i, "ImagePullAuthFailure", str_c(e.text), S(""));
        return;
    }
    i->asked = registry_inspect(i->of->of->aim->inspector, q);
}

/* The secrets are read, or could not be. */
static void on_secrets(void *context, const char *reason, str message)
{
    struct aim_inspection *i = context;
    if (reason)
        fail_inspection(i, reason, message, S(""));
    else
        ask_registry(i);
}

/* ---- turns */

/* Everything that the answer depends on: another text is another question. */
static str make_key(struct aim_turn *t)
{
    const struct json *spec = json_get(t->object, "spec"),
                      *secrets = json_get(spec, "imagePullSecrets");
    auto_buf struct buf b = { 0 };
    buf_printf(&b, STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(json_text(json_get(spec, "image"))),
               STR_ARG(json_text(json_get(spec, "serviceAccountName"))),
               STR_ARG(t->settings.service_account));
    if (secrets)
        buf_put(&b, json_to_str(t->r->arena, secrets));
    if (t->settings.pull_secrets)
        buf_put(&b, json_to_str(t->r->arena, t->settings.pull_secrets));
    return arena_str(t->r->arena, buf_str(&b));
}

/* The secrets of the model first, then those of its configuration, then those of the service account. */
static void begin_inspection(struct aim_turn *t, struct aim_inspection *i)
{
    const struct json *spec = json_get(t->object, "spec");
    str account = json_text(json_get(spec, "serviceAccountName"));
    struct registry_inspect *q = &i->question;
    err_t e;
    end_inspection(i);
    i->state = MODEL_INSPECTING;
    *q = (struct registry_inspect){ .architecture = aim_world_architecture(aim_world(t->aim)),
                                    .tenant = i->of->ns,
                                    .done = on_inspected,
                                    .context = i };
    str image = arena_str(&i->arena, json_text(json_get(spec, "image")));
    if (registry_reference_parse(&i->arena, image, &q->image, &e) < 0) {
        fail_inspection(i, "InvalidImageReference", str_c(e.text), S(""));
        return;
    }
    account = account.n                       ? account
              : t->settings.service_account.n ? t->settings.service_account
                                              : S("default");
    const struct json *lists[] = { json_get(spec, "imagePullSecrets"), t->settings.pull_secrets };
    i->secrets = (struct aim_pull_secrets){ .kube = manager_kube(t->aim->manager),
                                            .arena = &i->arena,
                                            .ns = t->ns.n ? t->ns : aim_operator_namespace(t->aim),
                                            .account = account,
                                            .done = on_secrets,
                                            .context = i };
    aim_pull_secrets_read(&i->secrets, lists, countof(lists));
}

/* The inspection of the turn's model, started if it is due. */
static struct aim_inspection *advance_inspection(struct aim_turn *t)
{
    struct aim_inspection *i = t->tracked->inspection;
    str key = make_key(t);
    if (!i) {
        i = t->tracked->inspection = mem_zero(1, sizeof(*i));
        i->of = t->tracked;
    }
    bool same = i->key && str_eqc(key, i->key);
    if (!same) {
        free(i->key);
        i->key = mem_dup(key.p, key.n);
        i->failures = 0;
    }
    bool due = i->state == MODEL_INSPECTION_FAILED && mono_ns(i) >= i->retry_ns;
    if (!same || due || i->state == MODEL_NOT_INSPECTED)
        begin_inspection(t, i);
    if (i->state == MODEL_INSPECTION_FAILED)
        reconcile_again(t->r, MAX(i->retry_ns - mono_ns(i), NS_PER_S));
    return i;
}

/* The metadata in the status, if they are of the current image; those of another operator are not marked. */
static const struct json *known_metadata(struct aim_turn *t)
{
    const struct json *old = t->status.old;
    str image = json_text(json_at(t->object, "spec", "image", NULL));
    str inspected = json_text(json_get(old, "inspectedImage"));
    bool given = str_eqc(json_text(json_get(aim_status_find(old, "MetadataExtracted"), "reason")),
                         "MetadataProvided");
    if (given || (inspected.n && !str_eq(inspected, image)))
        return NULL;
    return json_get(old, "imageMetadata");
}

/* Without a due inspection the state follows from the metadata alone. */
static const struct json *find_metadata(struct aim_turn *t, struct aim_model_facts *f)
{
    struct json *found = NULL;
    const struct json *known = known_metadata(t);
    str image = json_text(json_at(t->object, "spec", "image", NULL));
    if (!aim_model_wants_inspection(t->object, &t->settings))
        return NULL;
    bool ours = known && str_eq(json_text(json_get(t->status.old, "inspectedImage")), image);
    f->inspection = known ? MODEL_INSPECTED : MODEL_NOT_INSPECTED;
    if (ours || !t->aim->inspector || t->deleting)
        return known;
    struct aim_inspection *i = advance_inspection(t);
    if (i->state == MODEL_INSPECTED &&
        json_parse(t->r->arena, arena_str(t->r->arena, str_c(i->metadata)), &found, NULL) == 0) {
        aim_status_text(&t->status, "inspectedImage", image);
        f->inspection = MODEL_INSPECTED;
        return found;
    }
    if (known)
        return known;
    f->inspection = i->failures ? MODEL_INSPECTION_FAILED : i->state; /* also while it is retried */
    f->inspection_reason = i->reason;
    f->inspection_message = i->message ? arena_str(t->r->arena, str_c(i->message)) : S("");
    return NULL;
}

const struct json *aim_inspection_turn(struct aim_turn *t, struct aim_model_facts *f)
{
    struct arena *a = t->r->arena;
    const struct json *metadata = find_metadata(t, f);
    struct json *model = json_new_obj(a);
    json_each(m, t->object)
        if (!str_eqc(m->key, "status"))
            json_append(a, model, m->key, m->value);
    if (metadata)
        json_set(a, json_make(a, model, "status", NULL), S("imageMetadata"),
                 json_copy(a, metadata));
    return model;
}
