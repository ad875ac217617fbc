/* CronJobs, ReplicationControllers, PodTemplates, PersistentVolumes, StorageClasses and CSIDrivers: defaults
 * and the rules that span fields.
 *
 * Bounds, words and immutable fields are declared in types/more.types, and the pod template inside a workload
 * is checked by podspec_check.c, with a few rules that depend on the workload (a ReplicationController always
 * restarts its pods, a job never does). Kinds whose controllers do not exist here are stored and validated
 * only. */
#include "../../base/quantity.h"
#include "../../base/tz.h"
#include "../schema/format.h"
#include "cron_line.h"
#include "kind_hooks.h"

/* ---- CronJob */

static struct json *job_template(const struct json *object)
{
    return json_at(object, "spec", "jobTemplate", "spec", "template", NULL);
}

static void fill_cronjob(struct arena *a, struct json *object)
{
    podspec_fill(a, json_get(job_template(object), "spec"), false);
}

static void check_schedule(const struct json *schedule, const struct field_path *at,
                           struct field_errors *errors)
{
    str text = str_trim(json_text(schedule));
    err_t e;
    if (!text.n)
        return;
    if (str_find(text, S("TZ=")) != SIZE_MAX)
        field_invalid(errors, at, schedule,
                      "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    else if (cron_line_check(text, &e) < 0)
        field_invalid(errors, at, schedule, "%s", e.text);
}

static void validate_cronjob(const struct kind_change *c, struct kind_env *env UNUSED,
                             struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") }, job = { &at, .key = S("jobTemplate") },
                      spec = { &job, .key = S("spec") }, template = { &spec, .key = S("template") };
    const struct json *name = json_at(c->object, "metadata", "name", NULL);
    const struct json *zone = json_at(c->object, "spec", "timeZone", NULL);
    const struct json *pod = json_get(job_template(c->object), "spec");
    const struct json *selector =
        json_at(c->object, "spec", "jobTemplate", "spec", "selector", NULL);
    const struct tz *found;
    check_schedule(json_at(c->object, "spec", "schedule", NULL), AT(&at, "schedule"), errors);
    if (!c->old && json_text(name).n > 52) /* room for the suffix of its jobs */
        field_invalid(errors, AT(AT(NULL, "metadata"), "name"), name,
                      "must be no more than 52 characters");
    if (zone && (!json_text(zone).n || tz_get(json_text(zone), &found, NULL) < 0))
        field_invalid(errors, AT(&at, "timeZone"), zone, "unknown time zone " STR_FMT,
                      STR_ARG(json_text(zone)));
    if (selector)
        field_invalid(errors, AT(&spec, "selector"), selector, "`selector` will be auto-generated");
    podspec_check(pod, AT(&template, "spec"), (struct podspec_rules){ .template = true }, errors);
    str restart = json_text(json_get(pod, "restartPolicy"));
    if (!str_eqc(restart, "OnFailure") && !str_eqc(restart, "Never"))
        field_required(errors, AT(AT(&template, "spec"), "restartPolicy"),
                       "valid values: \"OnFailure\", \"Never\"");
}

const struct kind_hooks kind_hooks_cronjob = { .fill = fill_cronjob, .validate = validate_cronjob };

/* ---- ReplicationController */

/* The selector defaults to the labels of the template. */
static void fill_rc(struct arena *a, struct json *object)
{
    struct json *spec = json_get(object, "spec");
    const struct json *labels = json_at(spec, "template", "metadata", "labels", NULL);
    podspec_fill(a, json_at(spec, "template", "spec", NULL), false);
    if (!json_len(json_get(spec, "selector")) && json_len(labels))
        json_set(a, spec, S("selector"), json_copy(a, labels));
}

static void validate_rc(const struct kind_change *c, struct kind_env *env UNUSED,
                        struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") }, template = { &at, .key = S("template") };
    const struct json *spec = json_get(c->object, "spec"), *body = json_get(spec, "template");
    const struct json *labels = json_at(body, "metadata", "labels", NULL);
    if (!json_len(json_get(spec, "selector")))
        field_required(errors, AT(&at, "selector"), NULL);
    if (!body) {
        field_required(errors, &template, NULL);
        return;
    }
    json_each(m, json_get(spec, "selector")) {
        if (json_eq(m->value, json_get_str(labels, m->key)))
            continue;
        field_invalid(errors, AT(AT(&template, "metadata"), "labels"), labels,
                      "`selector` does not match template `labels`");
        break;
    }
    podspec_check(json_get(body, "spec"), AT(&template, "spec"),
                  (struct podspec_rules){ .restart_policy = "Always", .template = true }, errors);
}

const struct kind_hooks kind_hooks_rc = { .fill = fill_rc, .validate = validate_rc };

static void fill_podtemplate(struct arena *a, struct json *object)
{
    podspec_fill(a, json_at(object, "template", "spec", NULL), false);
}

static void validate_podtemplate(const struct kind_change *c, struct kind_env *env UNUSED,
                                 struct field_errors *errors)
{
    podspec_check(json_at(c->object, "template", "spec", NULL), AT(AT(NULL, "template"), "spec"),
                  (struct podspec_rules){ .template = true }, errors);
}

const struct kind_hooks kind_hooks_podtemplate = { .fill = fill_podtemplate,
                                                   .validate = validate_podtemplate };

/* ---- PersistentVolume */

/* A finalizer protects a volume while a claim uses it. */
static void prepare_pv(const struct kind_change *c, struct kind_env *env,
                       struct kind_fault *fault UNUSED)
{
    struct arena *a = env->arena;
    if (c->old)
        return;
    struct json *metadata = json_make(a, c->object, "metadata", NULL);
    struct json *finalizers = json_get(metadata, "finalizers");
    struct json *name = json_new_str(a, S("kubernetes.io/pv-protection"));
    if (!json_is(finalizers, JSON_ARR))
        json_set(a, metadata, S("finalizers"), finalizers = json_new_arr(a));
    for (uint32_t i = 0; i < finalizers->n; i++)
        if (json_eq(finalizers->items[i], name))
            return;
    json_push(a, finalizers, name);
    json_set_str(a, json_make(a, c->object, "status", NULL), "lastPhaseTransitionTime",
                 json_text(json_get(metadata, "creationTimestamp")));
}

static bool is_volume_source(str key)
{
    static const char *const others[] = { "capacity",
                                          "accessModes",
                                          "claimRef",
                                          "persistentVolumeReclaimPolicy",
                                          "storageClassName",
                                          "mountOptions",
                                          "volumeMode",
                                          "nodeAffinity",
                                          "volumeAttributesClassName",
                                          NULL };
    return !format_is_one_of(key, others);
}

/* A volume has exactly one source. It is whatever member of the spec is not one of the common fields, so that
 * new kinds of volumes need no change here. */
static void check_sources(const struct kind_change *c, const struct json *spec,
                          const struct field_path *at, struct field_errors *errors)
{
    size_t n = 0;
    json_each(m, spec) {
        if (!is_volume_source(m->key))
            continue;
        struct field_path source = { at, .key = m->key };
        if (n++)
            field_forbidden(errors, &source, "may not specify more than 1 volume type");
        if (c->old && !json_eq(m->value, json_get_str(json_get(c->old, "spec"), m->key)))
            field_forbidden(errors, AT(at, "persistentvolumesource"),
                            "spec.persistentvolumesource is immutable after creation");
    }
    const struct json *path = json_at(spec, "hostPath", "path", NULL);
    if (json_get(spec, "hostPath") && !json_text(path).n)
        field_required(errors, AT(AT(at, "hostPath"), "path"), NULL);
    if (str_find(json_text(path), S("..")) != SIZE_MAX)
        field_invalid(errors, AT(AT(at, "hostPath"), "path"), path, "must not contain '..'");
    if (!n)
        field_required(errors, at, "must specify a volume type");
}

/* Repeated as kube-apiserver does, once as a quantity and once as a size. */
static void check_capacity(const struct json *size, const struct field_path *at,
                           struct field_errors *errors)
{
    struct quantity q;
    if (!size || quantity_parse(json_text(size), &q, NULL) < 0)
        return;
    if (q.negative)
        field_invalid(errors, at, size, "must be a valid resource quantity");
    if (q.negative || quantity_is_zero(&q))
        field_invalid(errors, at, size, "must be greater than zero");
}

/* The kind's own messages first, then the volume source, whose order among them the recordings pin. */
static void validate_pv(const struct kind_change *c, struct kind_env *env UNUSED,
                        struct field_errors *errors)
{
    static const char *const once = "ReadWriteOncePod", *const capacity[] = { "storage", NULL };
    static const char *const all_modes[] = { "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                             "ReadWriteOncePod", NULL };
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec"), *modes = json_get(spec, "accessModes");
    const struct json *room = json_get(spec, "capacity"),
                      *class = json_get(spec, "storageClassName");
    if (json_len(room) != 1 || !json_get(room, "storage"))
        field_not_supported(errors, AT(&at, "capacity"), room, capacity);
    for (uint32_t i = 0; i < json_len(modes); i++)
        if (!format_is_one_of(json_text(modes->items[i]), all_modes))
            field_not_supported(errors, AT(&at, "accessModes"), modes->items[i], all_modes);
    check_capacity(json_get(room, "storage"), AT_KEY(AT(&at, "capacity"), S("storage")), errors);
    for (uint32_t i = 0; json_len(modes) > 1 && i < modes->n; i++)
        if (str_eqc(json_text(modes->items[i]), once)) {
            field_forbidden(errors, AT(&at, "accessModes"),
                            "may not use ReadWriteOncePod with other access modes");
            break;
        }
    if (json_text(class).n && format_dns_subdomain(json_text(class)))
        field_invalid(errors, AT(&at, "storageClassName"), class, "%s",
                      format_dns_subdomain(json_text(class)));
    check_sources(c, spec, &at, errors);
}

const struct kind_hooks kind_hooks_pv = { .prepare = prepare_pv, .validate = validate_pv };

/* ---- StorageClass and CSIDriver */

static void validate_storageclass(const struct kind_change *c, struct kind_env *env UNUSED,
                                  struct field_errors *errors)
{
    json_each(m, json_get(c->object, "parameters"))
        if (!m->key.n)
            field_invalid(errors, AT(NULL, "parameters"), json_new_str(errors->arena, m->key),
                          "field can not be empty.");
}

const struct kind_hooks kind_hooks_storageclass = { .validate = validate_storageclass };

/* Token audiences are unique, and a token lives between ten minutes and 2^32 seconds. */
static void validate_csidriver(const struct kind_change *c, struct kind_env *env UNUSED,
                               struct field_errors *errors)
{
    static const char *const modes[] = { "Ephemeral", "Persistent", NULL };
    struct field_path at = { NULL, .key = S("spec") }, up = { &at, .key = S("tokenRequests") };
    const struct json *spec = json_get(c->object, "spec");
    const struct json *list = json_get(spec, "volumeLifecycleModes");
    const struct json *tokens = json_get(spec, "tokenRequests");
    struct seen audiences = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(list); i++)
        if (!format_is_one_of(json_text(list->items[i]), modes))
            field_not_supported(errors, AT(&at, "volumeLifecycleModes"), list->items[i], modes);
    for (uint32_t i = 0; i < json_len(tokens); i++) {
        const struct json *audience = json_get(tokens->items[i], "audience");
        const struct json *life = json_get(tokens->items[i], "expirationSeconds");
        if (seen_value(&audiences, audience, i))
            field_duplicate(errors, AT(AT_INDEX(&up, i), "audience"), audience);
        if (life && (life->integer < 600 || life->integer > INT64_C(4294967296)))
            field_invalid(errors, AT(AT_INDEX(&up, i), "expirationSeconds"), life,
                          life->integer < 600
                              ? "may not specify a duration less than 10 minutes"
                              : "may not specify a duration larger than 2^32 seconds");
    }
}

/* A generation appears with the first change of the spec. */
static void prepare_csidriver(const struct kind_change *c, struct kind_env *env,
                              struct kind_fault *fault UNUSED)
{
    if (c->old && !json_eq(json_get(c->object, "spec"), json_get(c->old, "spec")))
        json_set_int(env->arena, json_make(env->arena, c->object, "metadata", NULL), "generation",
                     json_int(json_at(c->old, "metadata", "generation", NULL), 0) + 1);
}

const struct kind_hooks kind_hooks_csidriver = { .prepare = prepare_csidriver,
                                                 .validate = validate_csidriver };

/* ---- CSIStorageCapacity */

static void validate_storage_capacity(const struct kind_change *c, struct kind_env *env UNUSED,
                                      struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("nodeTopology") };
    kind_check_selector(json_get(c->object, "nodeTopology"), &at, errors);
}

const struct kind_hooks kind_hooks_csistoragecapacity = { .validate = validate_storage_capacity };
