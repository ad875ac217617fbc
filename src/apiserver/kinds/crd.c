/* CustomResourceDefinitions: defaults, the status that the server keeps, and the kinds that a definition
 * declares. The rules that a definition must satisfy are in crd_check.c and crd_conversion.c; conflicts about
 * names are resolved in crd_names.c.
 *
 * A stored definition becomes one struct kind per version. They live in the arena of the caller, so a
 * change of the definition builds new kinds and drops the old arena as a whole. */
#include "../schema/cel/cel_rules.h"
#include "../schema/format.h"
#include "../schema/types.h"
#include "kind_hooks.h"

/* singular and listKind follow from the kind. */
static void fill_crd(struct arena *a, struct json *object)
{
    struct json *names = json_make(a, object, "spec", "names", NULL);
    str kind = json_text(json_get(names, "kind"));
    if (!json_text(json_get(names, "singular")).n && kind.n)
        json_set_str(a, names, "singular", arena_lower(a, kind));
    if (!json_text(json_get(names, "listKind")).n && kind.n)
        json_set_str(a, names, "listKind", arena_printf(a, STR_FMT "List", STR_ARG(kind)));
}

/* ---- status */

/* True if the list contains an equal value. */
static bool list_has(const struct json *list, const struct json *value)
{
    for (uint32_t i = 0; i < json_len(list); i++)
        if (json_eq(list->items[i], value))
            return true;
    return false;
}

/* Adds the storage version to status.storedVersions, which lists every version that objects were
 * ever stored as. */
static void record_stored_version(const struct kind_change *c, struct arena *a)
{
    const struct json *versions = json_at(c->object, "spec", "versions", NULL);
    struct json *status = json_make(a, c->object, "status", NULL);
    struct json *stored = json_copy(a, json_get(status, "storedVersions"));
    for (uint32_t i = 0; i < json_len(versions); i++) {
        const struct json *name = json_get(versions->items[i], "name");
        if (!json_bool(json_get(versions->items[i], "storage"), false))
            continue;
        if (list_has(stored, name))
            break;
        if (!json_is(stored, JSON_ARR))
            stored = json_new_arr(a);
        json_push(a, stored, json_copy(a, name));
        break;
    }
    if (stored)
        json_set(a, status, S("storedVersions"), stored);
}

/* Adds every format in the schemas that OpenAPI does not define to `seen`, once. */
static void collect_unknown_formats(struct arena *a, const struct json *node, struct json *seen)
{
    const struct json *format = json_get(node, "format");
    if (json_is(format, JSON_STR) && format->n &&
        !format_is_known(json_text(format), json_text(json_get(node, "type"))))
        json_set(a, seen, json_text(format), json_new_bool(a, true));
    for (uint32_t i = 0; json_is(node, JSON_ARR) && i < node->n; i++)
        collect_unknown_formats(a, node->items[i], seen);
    json_each(m, node)
        if (!str_eqc(m->key, "default") && !str_eqc(m->key, "enum") &&
            !str_eqc(m->key, "additionalPrinterColumns"))
            collect_unknown_formats(a, m->value, seen);
}

/* Warns about unknown formats, except those that the old definition already had. */
static void warn_unknown_formats(const struct kind_change *c, struct kind_env *env)
{
    struct json *now = json_new_obj(env->arena), *before = json_new_obj(env->arena);
    collect_unknown_formats(env->arena, json_at(c->object, "spec", "versions", NULL), now);
    collect_unknown_formats(env->arena, json_at(c->old, "spec", "versions", NULL), before);
    json_each(m, now)
        if (!json_get_str(before, m->key))
            env->warn(env->context, arena_printf(env->arena, "unrecognized format \"" STR_FMT "\"",
                                                 STR_ARG(m->key)));
}

/* additionalProperties and additionalItems are a schema or a bool; kube-apiserver cannot decode
 * anything else and answers 400. */
static bool has_readable_schemas(const struct json *node)
{
    bool readable = true;
    for (uint32_t i = 0; json_is(node, JSON_ARR) && readable && i < node->n; i++)
        readable = has_readable_schemas(node->items[i]);
    json_each(m, node) {
        bool either = str_eqc(m->key, "additionalProperties") || str_eqc(m->key, "additionalItems");
        if (either && !json_is(m->value, JSON_OBJ) && !json_is(m->value, JSON_BOOL) &&
            !json_is(m->value, JSON_NULL))
            return false;
        if (!str_eqc(m->key, "default") && !str_eqc(m->key, "enum") && !str_eqc(m->key, "example"))
            readable = readable && has_readable_schemas(m->value);
    }
    return readable;
}

/* Refuses undecodable schemas, maintains status.storedVersions and warns. */
static void prepare_crd(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault)
{
    if (!has_readable_schemas(json_at(c->object, "spec", "versions", NULL))) {
        kind_fault_set(fault, 400, "BadRequest",
                       S("CustomResourceDefinition in version \"v1\" cannot be handled as a "
                         "CustomResourceDefinition: boolean or JSON schema expected"));
        return;
    }
    bool status = c->sub == KIND_STATUS;
    if (!status || !json_len(json_at(c->object, "status", "storedVersions", NULL)))
        record_stored_version(c, env->arena);
    if (!status && env->warn)
        warn_unknown_formats(c, env);
}

/* Adds the finalizer and the condition Terminating: a definition stays until its objects are
 * deleted. */
void crd_mark_deleting(struct arena *a, struct json *object)
{
    struct json *metadata = json_make(a, object, "metadata", NULL);
    struct json *finalizers = json_get(metadata, "finalizers");
    struct json *name = json_new_str(a, S("customresourcecleanup.apiextensions.k8s.io"));
    if (!json_is(finalizers, JSON_ARR))
        json_set(a, metadata, S("finalizers"), finalizers = json_new_arr(a));
    if (!list_has(finalizers, name))
        json_push(a, finalizers, name);
    struct json *status = json_make(a, object, "status", NULL);
    struct json *conditions = json_get(status, "conditions");
    if (!json_is(conditions, JSON_ARR))
        json_set(a, status, S("conditions"), conditions = json_new_arr(a));
    struct json *condition = json_new_obj(a);
    json_set_str(a, condition, "type", S("Terminating"));
    json_set_str(a, condition, "status", S("True"));
    json_set_str(a, condition, "lastTransitionTime",
                 json_text(json_get(metadata, "deletionTimestamp")));
    json_set_str(a, condition, "reason", S("InstanceDeletionPending"));
    json_set_str(a, condition, "message",
                 S("CustomResourceDefinition marked for deletion; CustomResource deletion "
                   "will begin soon"));
    json_push(a, conditions, condition);
}

const struct kind_hooks kind_hooks_crd = { .fill = fill_crd,
                                           .prepare = prepare_crd,
                                           .validate = crd_check };

/* ---- kinds */

/* Copies a list of strings into the arena of the kinds. */
static const str *copy_strings(struct arena *a, const struct json *list, uint32_t *ret_n)
{
    *ret_n = (uint32_t)json_len(list);
    str *words = arena_array(a, *ret_n, sizeof(*words));
    for (uint32_t i = 0; i < *ret_n; i++)
        words[i] = arena_str(a, json_text(json_item(list, i)));
    return words;
}

static const char *text_at(struct arena *a, const struct json *node, const char *key)
{
    return arena_str(a, json_text(json_get(node, key))).p;
}

/* Clients look for this prefix to find the columns that a definition declares. quoted: kube-apiserver */
#define COLUMN_DESCRIPTION "Custom resource definition column (in JSONPath format): "

static const struct kind_column name_column = {
    .name = "Name",
    .type = "string",
    .format = "name",
    .description = "Name of the object, unique within its namespace.",
};

static const struct kind_column age_column = {
    .name = "Age",
    .type = "date",
    .format = "",
    .description = "Time at which the object was created.",
};

/* NULL if the path cannot be parsed: the column stays empty. */
static const struct jsonpath *compile_path(struct arena *a, str path)
{
    struct jsonpath *compiled = arena_new(a, struct jsonpath);
    struct jsonpath_source source = { .text = path, .flags = JSONPATH_ALLOW_MISSING };
    return jsonpath_parse(a, source, compiled, NULL) < 0 ? NULL : compiled;
}

/* The name, then the declared columns; without any, the age. */
static void make_columns(struct arena *a, const struct json *version, struct kind *k)
{
    const struct json *list = json_get(version, "additionalPrinterColumns");
    struct kind_column *columns = arena_array(a, json_len(list) + 2, sizeof(*columns));
    columns[k->n_columns++] = name_column;
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *c = list->items[i];
        const char *description = text_at(a, c, "description");
        str path = arena_str(a, json_text(json_get(c, "jsonPath")));
        columns[k->n_columns++] = (struct kind_column){
            .name = text_at(a, c, "name"),
            .type = text_at(a, c, "type"),
            .format = text_at(a, c, "format"),
            .description = *description
                               ? description
                               : arena_printf(a, COLUMN_DESCRIPTION STR_FMT, STR_ARG(path)).p,
            .priority = (int)json_int(json_get(c, "priority"), 0),
            .find = compile_path(a, path),
        };
    }
    if (!json_len(list)) {
        columns[k->n_columns] = age_column;
        columns[k->n_columns++].find = compile_path(a, S(".metadata.creationTimestamp"));
    }
    k->columns = columns;
}

/* selectableFields; the label is the path without the leading dot. */
static void make_selectable(struct arena *a, const struct json *version, struct kind *k)
{
    const struct json *list = json_get(version, "selectableFields");
    struct kind_selectable *fields = arena_array(a, json_len(list), sizeof(*fields));
    for (uint32_t i = 0; i < json_len(list); i++) {
        str path = arena_str(a, json_text(json_get(list->items[i], "jsonPath")));
        fields[k->n_selectable++] =
            (struct kind_selectable){ .label = str_from(path, 1), .path = str_from(path, 1) };
    }
    k->selectable = fields;
}

/* status and scale, as far as the version declares them. */
static void make_subresources(struct arena *a, const struct json *version, struct kind *k)
{
    const struct json *subresources = json_get(version, "subresources");
    const struct json *scale = json_get(subresources, "scale");
    if (json_get(subresources, "status"))
        k->subresources |= 1u << KIND_STATUS;
    if (!scale)
        return;
    k->subresources |= 1u << KIND_SCALE;
    k->scale_spec_path = arena_str(a, json_text(json_get(scale, "specReplicasPath")));
    k->scale_status_path = arena_str(a, json_text(json_get(scale, "statusReplicasPath")));
    k->scale_selector_path = arena_str(a, json_text(json_get(scale, "labelSelectorPath")));
}

/* The schema of one version, with the shape of a whole object. */
static const struct schema *make_schema(struct arena *a, const struct json *openapi)
{
    struct field_errors errors = { .arena = a }; /* stays empty: checked before it was stored */
    const struct schema *built = schema_from_openapi(a, openapi, NULL, &errors);
    struct schema *s = arena_new(a, struct schema);
    if (built)
        *s = *built;
    else /* stored by an older, less strict version: accept everything */
        *s = (struct schema){ .type = SCHEMA_OBJECT, .preserve_unknown = true };
    s->shape = schema_object_shape(a, schema_make_shape(a, s));
    return s;
}

/* The declared warning, or the standard one; empty for a version that is not deprecated. */
static str make_deprecation_warning(struct arena *a, const struct json *version,
                                    const struct kind *k)
{
    if (!k->deprecated)
        return S("");
    str given = json_text(json_get(version, "deprecationWarning"));
    return given.n ? arena_str(a, given)
                   : arena_printf(a, STR_FMT "/" STR_FMT " " STR_FMT " is deprecated",
                                  STR_ARG(k->group), STR_ARG(k->version), STR_ARG(k->kind));
}

/* One version of a definition as a kind. */
static struct kind *make_kind(struct arena *a, const struct json *crd, const struct json *version)
{
    const struct json *spec = json_get(crd, "spec"), *names = json_get(spec, "names");
    const struct json *openapi = json_at(version, "schema", "openAPIV3Schema", NULL);
    struct kind *k = arena_new(a, struct kind);
    *k = (struct kind){
        .group = arena_str(a, json_text(json_get(spec, "group"))),
        .version = arena_str(a, json_text(json_get(version, "name"))),
        .kind = arena_str(a, json_text(json_get(names, "kind"))),
        .list_kind = arena_str(a, json_text(json_get(names, "listKind"))),
        .plural = arena_str(a, json_text(json_get(names, "plural"))),
        .singular = arena_str(a, json_text(json_get(names, "singular"))),
        .namespaced = str_eqc(json_text(json_get(spec, "scope")), "Namespaced"),
        .custom = true,
        .verbs = KIND_ALL_VERBS,
        .has_generation = true,
        .openapi = json_copy(a, openapi),
        .deprecated = json_bool(json_get(version, "deprecated"), false),
    };
    k->short_names = copy_strings(a, json_get(names, "shortNames"), &k->n_short_names);
    k->categories = copy_strings(a, json_get(names, "categories"), &k->n_categories);
    k->deprecation_warning = make_deprecation_warning(a, version, k);
    k->schema = make_schema(a, openapi);
    k->rules = cel_validator_new(a, openapi, true);
    make_columns(a, version, k);
    make_selectable(a, version, k);
    make_subresources(a, version, k);
    return k;
}

/* Every version becomes a kind; only served ones are returned, and each refers to the stored one. */
void kinds_from_crd(struct arena *a, const struct json *crd, struct kinds_list *ret)
{
    const struct json *versions = json_at(crd, "spec", "versions", NULL);
    struct kind **all = arena_array(a, json_len(versions), sizeof(struct kind *));
    const struct kind *storage = NULL;
    *ret = (struct kinds_list){ arena_array(a, json_len(versions), sizeof(*ret->at)), 0 };
    for (uint32_t i = 0; i < json_len(versions); i++) {
        all[i] = make_kind(a, crd, versions->items[i]);
        if (json_bool(json_get(versions->items[i], "storage"), false) || !storage)
            storage = all[i];
        if (json_bool(json_get(versions->items[i], "served"), false))
            ret->at[ret->n++] = all[i];
    }
    const struct json *conversion = json_at(crd, "spec", "conversion", NULL), *webhook = NULL;
    if (str_eqc(json_text(json_get(conversion, "strategy")), "Webhook"))
        webhook = json_copy(a, json_get(conversion, "webhook"));
    for (uint32_t i = 0; i < json_len(versions); i++) {
        all[i]->storage = storage;
        all[i]->conversion = webhook;
        all[i]->generation = json_int(json_at(crd, "metadata", "generation", NULL), 0);
    }
}
