/* The steps of a write that are the same for all kinds: decoding, keeping spec and status apart, counting
 * generations, validating, and calling the hooks of the kind in between.
 *
 *                kind_decode            kind_prepare                kind_validate
 *   built-in     schema_decode          status, generation          metadata, .types rules
 *                schema_default         hooks->prepare              hooks->validate
 *                hooks->fill
 *   custom       ObjectMeta, prune,     status, generation          metadata, schema_validate,
 *                default                                            replicas of the scale
 *
 * The rule behind kind_prepare: a write to the main resource never changes the status, and a write to
 * /status changes nothing else. What the client sent for the other part is replaced by the stored value, not
 * refused, because clients send whole objects. */
#include "../schema/cel/cel_rules.h"
#include "../schema/types.h"
#include "kind_hooks.h"

#include <stdio.h>

void kind_fault_set(struct kind_fault *fault, int code, const char *reason, str message)
{
    if (fault->code)
        return; /* the first fault is reported */
    fault->code = code;
    fault->reason = reason;
    fault->message = message;
}

/* ---- decoding and conversion */

static int compare_paths(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* Decodes the metadata of embedded resources as ObjectMeta, at any depth. */
static int decode_embedded(const struct schema *s, struct arena *a, struct json *value,
                           const struct field_path *up, struct schema_unknown *unknown, err_t *e)
{
    int failed = 0;
    if (json_is(value, JSON_ARR) && s->element) {
        for (uint32_t i = 0; i < value->n && !failed; i++)
            failed = decode_embedded(s->element, a, value->items[i], AT_INDEX(up, i), unknown, e);
        return failed;
    }
    if (s->embedded && json_is(json_get(value, "metadata"), JSON_OBJ))
        failed = schema_decode_at(types_schema("meta.v1.ObjectMeta"), a,
                                  json_get(value, "metadata"), AT(up, "metadata"), unknown, e);
    json_each(m, value) {
        const struct schema_field *f = schema_field(s, m->key);
        const struct schema *schema = f ? &f->schema : s->element;
        struct field_path at = { up, .key = m->key };
        if (schema && !failed)
            failed = decode_embedded(schema, a, m->value, &at, unknown, e);
    }
    return failed;
}

/* metadata is decoded as a built-in type; everything else is pruned and defaulted. Unknown fields
 * are sorted, as kube-apiserver reports them. */
static int decode_custom(const struct kind *k, struct arena *a, struct json *object,
                         struct schema_unknown *unknown, err_t *e)
{
    struct json *metadata = json_make(a, object, "metadata", NULL);
    int failed = schema_decode_at(types_schema("meta.v1.ObjectMeta"), a, metadata,
                                  AT(NULL, "metadata"), unknown, e);
    if (failed)
        return failed;
    schema_prune(k->schema, object, true, unknown);
    failed = decode_embedded(k->schema, a, object, NULL, unknown, e);
    if (failed)
        return failed;
    schema_default(k->schema, a, object);
    if (unknown && unknown->n)
        qsort(unknown->paths, unknown->n, sizeof(*unknown->paths), compare_paths);
    return 0;
}

/* Returns -EINVAL if the body does not decode as this kind. */
int kind_decode(const struct kind *k, struct arena *a, struct json *object,
                struct schema_unknown *unknown, err_t *e)
{
    if (!json_is(object, JSON_OBJ))
        return err_set(e, EINVAL, "expected an object, got %s", json_type_name(object));
    if (k->custom)
        return decode_custom(k, a, object, unknown, e);
    if (!json_get(object, "apiVersion")) /* both are implied by the URL */
        json_set_str(a, object, "apiVersion", kind_api_version(a, k));
    if (!json_get(object, "kind"))
        json_set_str(a, object, "kind", k->kind);
    int failed = schema_decode(k->schema, a, object, unknown, e);
    if (failed)
        return failed;
    schema_default(k->schema, a, object);
    if (k->hooks && k->hooks->fill)
        k->hooks->fill(a, object);
    return 0;
}

struct json *kind_empty_object(const struct kind *k, struct arena *a)
{
    if (k->custom)
        return NULL;
    struct json *empty = json_new_obj(a);
    schema_decode(k->schema, a, empty, NULL, NULL);
    return empty;
}

/* A custom resource is pruned by the schema of today, which may differ from the one it was stored
 * under. */
void kind_from_storage(const struct kind *k, struct arena *a, struct json *object)
{
    if (k->custom) {
        schema_prune(k->storage->schema, object, true, NULL);
        schema_default(k->storage->schema, a, object);
        if (k != k->storage) /* another version is pruned, but gets no defaults */
            schema_prune(k->schema, object, true, NULL);
    } else if (k->storage != k && k->hooks->from_storage) {
        k->hooks->from_storage(a, object);
        schema_decode(k->schema, a, object, NULL, NULL); /* adds what this version always writes */
    } else {
        return;
    }
    json_set_str(a, object, "apiVersion", kind_api_version(a, k));
    json_set_str(a, object, "kind", k->kind);
}

void kind_to_storage(const struct kind *k, struct arena *a, struct json *object)
{
    if (k->custom) {
        schema_prune(k->storage->schema, object, true, NULL);
        schema_default(k->storage->schema, a, object);
    } else if (k->storage != k && k->hooks->to_storage) {
        k->hooks->to_storage(a, object);
        schema_decode(k->storage->schema, a, object, NULL, NULL);
    }
    json_set_str(a, object, "apiVersion", kind_api_version(a, k->storage));
}

/* ---- preparing */

static void restore_field(struct arena *a, struct json *object, const struct json *old,
                          const char *key)
{
    const struct json *was = json_get(old, key);
    if (was)
        json_set(a, object, str_c(key), json_copy(a, was));
    else
        json_del(object, str_c(key));
}

static void restore_metadata(struct arena *a, struct json *object, const struct json *old,
                             const char *key)
{
    restore_field(a, json_make(a, object, "metadata", NULL), json_get(old, "metadata"), key);
}

static void reset_status(const struct kind *k, struct arena *a, struct json *object)
{
    if (!(k->subresources & 1u << KIND_STATUS))
        return;
    json_del(object, S("status"));
    if (k->custom)
        return;
    schema_decode(k->schema, a, object, NULL, NULL); /* adds the empty status again */
    schema_default(k->schema, a, object);
}

/* A write to /status changes the status only; of a custom resource, metadata is restored as well. */
static void restore_all_but_status(const struct kind_change *c, struct arena *a)
{
    if (!c->kind->custom) {
        restore_field(a, c->object, c->old, "spec");
        return;
    }
    struct json *status = json_get(c->object, "status");
    struct json *managed = json_at(c->object, "metadata", "managedFields", NULL);
    struct json *version = json_at(c->object, "metadata", "resourceVersion", NULL);
    json_each(m, json_copy(a, c->old))
        json_set(a, c->object, m->key, m->value);
    json_del(c->object, S("status"));
    if (status)
        json_set(a, c->object, S("status"), status);
    struct json *metadata = json_make(a, c->object, "metadata", NULL);
    json_del(metadata, S("managedFields"));
    if (managed)
        json_set(a, metadata, S("managedFields"), managed);
    if (version)
        json_set(a, metadata, S("resourceVersion"), version);
}

/* True if the change counts as a new generation: any change of a custom resource outside of
 * metadata and status, any change of the spec (or the webhooks) of a built-in kind. */
static bool has_spec_changed(const struct kind *k, const struct json *object,
                             const struct json *old)
{
    if (!k->custom)
        return !json_eq(json_get(object, "spec"), json_get(old, "spec")) ||
               !json_eq(json_get(object, "webhooks"), json_get(old, "webhooks"));
    bool status_apart = k->subresources & 1u << KIND_STATUS;
    for (int side = 0; side < 2; side++) {
        json_each(m, side ? old : object) {
            if (str_eqc(m->key, "metadata") || (status_apart && str_eqc(m->key, "status")))
                continue;
            if (!json_eq(m->value, json_get_str(side ? object : old, m->key)))
                return true;
        }
    }
    return false;
}

/* Starts at 1 and counts changes of the spec. Kinds without a generation keep what the create
 * had. */
static void set_generation(const struct kind_change *c, struct arena *a)
{
    struct json *metadata = json_make(a, c->object, "metadata", NULL);
    if (!c->kind->has_generation) {
        if (c->old) /* a client may have set one on create */
            restore_field(a, metadata, json_get(c->old, "metadata"), "generation");
        return;
    }
    int64_t generation = 1;
    if (c->old) {
        generation = json_int(json_at(c->old, "metadata", "generation", NULL), 0);
        if (has_spec_changed(c->kind, c->object, c->old))
            generation++;
    }
    if (generation)
        json_set_int(a, metadata, "generation", generation);
    else
        json_del(metadata, S("generation"));
}

/* Separates spec and status, sets the generation, then runs the hook. */
void kind_prepare(const struct kind_change *c, struct kind_env *env, struct kind_fault *ret_fault)
{
    const struct kind *k = c->kind;
    *ret_fault = (struct kind_fault){ .errors.arena = env->arena };
    if (k->answer_only)
        return;
    if (!c->old) {
        if (!k->hooks || !k->hooks->status_on_create)
            reset_status(k, env->arena, c->object);
    } else if (c->sub == KIND_STATUS) {
        restore_all_but_status(c, env->arena);
    } else if (k->subresources & 1u << KIND_STATUS && c->sub != KIND_APPROVAL) {
        restore_field(env->arena, c->object, c->old, "status");
    }
    if (c->old) /* set by the server only */
        restore_metadata(env->arena, c->object, c->old, "creationTimestamp");
    set_generation(c, env->arena);
    if (k->hooks && k->hooks->prepare)
        k->hooks->prepare(c, env, ret_fault);
}

/* ---- validating */

/* Turns field errors into a 422 with the message that kube-apiserver would write. */
static void set_invalid(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault)
{
    str group = c->kind->group;
    fault->code = 422;
    fault->reason = "Invalid";
    fault->message =
        arena_printf(env->arena, STR_FMT "%s" STR_FMT " \"" STR_FMT "\" is invalid: " STR_FMT,
                     STR_ARG(c->kind->kind), group.n ? "." : "", STR_ARG(group),
                     STR_ARG(json_text(json_at(c->object, "metadata", "name", NULL))),
                     STR_ARG(field_summary(env->arena, &fault->errors)));
}

/* The fields that a custom resource declares as its replicas must be non-negative integers. */
static void check_scale(const struct kind *k, const struct json *object,
                        struct field_errors *errors)
{
    const str paths[] = { k->scale_spec_path, k->scale_status_path };
    for (size_t i = 0; i < countof(paths); i++) {
        str rest = str_from(paths[i], 1), key;
        const struct json *value = object;
        while (paths[i].n && json_is(value, JSON_OBJ) && str_cut(&rest, '.', &key))
            value = json_get_str(value, key);
        struct field_path at = { NULL, .key = paths[i] };
        if (paths[i].n && value &&
            (!json_is(value, JSON_INT) || value->integer < 0 || value->integer > INT32_MAX))
            field_invalid(errors, &at, value, "should be a non-negative integer");
    }
}

/* The CEL rules of a custom resource. They rely on the schema, so that some errors of it block them. */
static void run_rules(const struct kind_change *c, struct kind_env *env,
                      struct field_errors *errors)
{
    if (!c->kind->rules)
        return;
    for (size_t i = 0; i < errors->n_kept; i++) {
        enum field_reason reason = errors->at[i].reason;
        if (reason != FIELD_NOT_SUPPORTED && reason != FIELD_REQUIRED && reason != FIELD_TOO_LONG &&
            reason != FIELD_TOO_MANY && reason != FIELD_TYPE_INVALID)
            continue;
        field_add(errors,
                  (struct field_error){ .path = S("<nil>"),
                                        .reason = FIELD_INVALID,
                                        .message = S("Invalid value: null: some validation rules "
                                                     "were not checked because the object was "
                                                     "invalid; correct the existing errors to "
                                                     "complete validation") });
        return;
    }
    struct cel_validation run = { errors, env->warn, env->context, CEL_COST_OBJECT };
    cel_validate(c->kind->rules, c->object, c->old, NULL, &run);
}

/* Runs every check, then warns if nothing was wrong. */
void kind_validate(const struct kind_change *c, struct kind_env *env, struct kind_fault *ret_fault)
{
    const struct kind *k = c->kind;
    *ret_fault = (struct kind_fault){ .errors.arena = env->arena };
    struct field_errors *errors = &ret_fault->errors;
    if (!k->answer_only)
        kind_check_metadata(c, errors);
    if (k->custom) {
        const struct json *kind = json_get(c->object, "kind");
        if (!str_eq(json_text(kind), k->kind))
            field_invalid(errors, AT(NULL, "kind"), kind, "must be " STR_FMT, STR_ARG(k->kind));
        schema_validate(k->schema, c->object, c->old, NULL, errors);
        check_scale(k, c->object, errors);
        run_rules(c, env, errors);
    } else {
        kind_check_schema(k->schema, c->object, NULL, errors);
        if (c->old && c->sub == KIND_MAIN && k->hooks && k->hooks->rules_twice)
            kind_check_schema(k->schema, c->object, NULL, errors);
    }
    if (k->hooks && k->hooks->validate)
        k->hooks->validate(c, env, errors);
    if (c->old && !k->custom)
        kind_check_changes(k->schema->message, c->object, c->old, NULL, errors);
    if (errors->n)
        set_invalid(c, env, ret_fault);
    else
        kind_warn(c, env);
}

/* Which fields a write through `sub` cannot change, by kind. */
const char *const *kind_reset_fields(const struct kind *k, enum kind_sub sub)
{
    static const char *const empty[] = { NULL };
    static const char *const status[] = { "status", NULL };
    static const char *const spec[] = { "spec", NULL };
    static const char *const pod[] = { "spec", "metadata.deletionTimestamp",
                                       "metadata.ownerReferences", NULL };
    static const char *const deployment[] = { "spec", "metadata.labels", NULL };
    static const char *const custom[] = { "spec", "metadata", NULL };
    if (!(k->subresources & 1u << KIND_STATUS))
        return empty;
    if (sub != KIND_STATUS)
        return status;
    if (k->custom)
        return custom;
    return str_eqc(k->kind, "Pod") ? pod : str_eqc(k->kind, "Deployment") ? deployment : spec;
}

/* ---- selectors, grace */

static const struct kind_selectable *find_selectable(const struct kind *k, str label)
{
    for (uint32_t i = 0; i < k->n_selectable; i++)
        if (str_eq(k->selectable[i].label, label))
            return &k->selectable[i];
    return NULL;
}

bool kind_field_known(const struct kind *k, str label)
{
    return str_eqc(label, "metadata.name") ||
           (k->namespaced && str_eqc(label, "metadata.namespace")) || find_selectable(k, label);
}

static const struct json *get_at_path(const struct json *object, str path)
{
    str key;
    while (object && str_cut(&path, '.', &key))
        object = json_get_str(object, key);
    return object;
}

/* The text that a field selector compares with; numbers are formatted in a buffer of the thread,
 * valid until the next call. */
bool kind_field_value(const struct kind *k, const struct json *object, str label, str *ret_value)
{
    if (!kind_field_known(k, label))
        return false;
    const struct kind_selectable *field = find_selectable(k, label);
    const struct json *value = get_at_path(object, field ? field->path : label);
    str otherwise = field ? field->value_if_absent : S("");
    if (!value && str_starts(otherwise, S("@"))) {
        value = get_at_path(object, str_from(otherwise, 1));
        otherwise = S("");
    }
    static _Thread_local char number[32];
    if (json_is(value, JSON_STR)) {
        *ret_value = json_text(value);
    } else if (json_is(value, JSON_BOOL)) {
        *ret_value = value->boolean ? S("true") : S("false");
    } else if (json_is(value, JSON_INT)) {
        int n = snprintf(number, sizeof(number), "%lld", (long long)value->integer);
        *ret_value = (str){ number, (size_t)n };
    } else {
        *ret_value = otherwise;
    }
    return true;
}

/* A pod that is not bound or has finished is deleted at once. */
int64_t kind_grace_seconds(const struct kind *k, const struct json *object, int64_t asked)
{
    if (k->custom || k->group.n || !str_eqc(k->kind, "Pod"))
        return 0;
    if (asked < 0)
        asked = json_int(json_at(object, "spec", "terminationGracePeriodSeconds", NULL), 30);
    str phase = json_text(json_at(object, "status", "phase", NULL));
    bool bound = json_text(json_at(object, "spec", "nodeName", NULL)).n > 0;
    bool finished = str_eqc(phase, "Failed") || str_eqc(phase, "Succeeded");
    return !bound || finished ? 0 : MAX(asked, 0);
}

/* Deletion counts as a new generation; a definition gets a finalizer instead. */
void kind_mark_deleting(const struct kind *k, struct arena *a, struct json *object)
{
    if (k->hooks == &kind_hooks_crd) {
        crd_mark_deleting(a, object);
        return;
    }
    int64_t generation = json_int(json_at(object, "metadata", "generation", NULL), 0);
    if (generation > 0)
        json_set_int(a, json_make(a, object, "metadata", NULL), "generation", generation + 1);
    if (k->hooks == &kind_hooks_namespace)
        json_set_str(a, json_make(a, object, "status", NULL), "phase", S("Terminating"));
}
