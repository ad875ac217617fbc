/* Writes our schemas as OpenAPI v3 schemas, for /openapi/v3 and `kubectl explain`.
 *
 * Types that have a name become entries of components/schemas and are referred to; anonymous ones are described
 * in place. A reference that has a description of its own becomes an `allOf` with one entry, because siblings
 * of `$ref` are ignored. Types refer to themselves (JSONSchemaProps), so a type is added before its fields are
 * described.
 *
 * The names are those of Kubernetes (io.k8s.api.apps.v1.Deployment), because kubectl and controller tools look
 * them up. */
#include "openapi_schema.h"

#include "types.h"

#define QUANTITY "io.k8s.apimachinery.pkg.api.resource.Quantity"
#define INT_OR_STRING "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

static struct json *describe_schema(struct arena *a, struct json *schemas, const struct schema *s,
                                    bool described);

struct json *openapi_ref(struct arena *a, str name)
{
    struct json *ref = json_new_obj(a);
    json_set_str(a, ref, "$ref", arena_printf(a, "#/components/schemas/" STR_FMT, STR_ARG(name)));
    return ref;
}

/* An allOf with one reference, to which description and default can be added. */
static struct json *make_reference(struct arena *a, str name)
{
    struct json *node = json_new_obj(a), *all_of = json_new_arr(a);
    json_push(a, all_of, openapi_ref(a, name));
    json_set(a, node, S("allOf"), all_of);
    return node;
}

/* References Quantity or IntOrString, the two scalars that accept two JSON types. */
static struct json *reference_union(struct arena *a, struct json *schemas, bool quantity)
{
    str name = quantity ? S(QUANTITY) : S(INT_OR_STRING);
    if (!json_get_str(schemas, name)) {
        struct json *node = json_new_obj(a), *one_of = json_new_arr(a);
        for (int i = 0; i < 2; i++) {
            struct json *type = json_new_obj(a);
            json_set_str(a, type, "type", i ? S("string") : quantity ? S("number") : S("integer"));
            json_push(a, one_of, type);
        }
        json_set_str(a, node, "description",
                     quantity ? S("A number with an optional unit, such as 500m or 2Gi.")
                              : S("An integer, or a string such as a name or a percentage."));
        if (!quantity)
            json_set_str(a, node, "format", S("int-or-string"));
        json_set(a, node, S("oneOf"), one_of);
        json_set(a, schemas, name, node);
    }
    return make_reference(a, name);
}

/* References FieldsV1 or JSON, the named types of values that are not described further. */
static struct json *reference_any(struct arena *a, struct json *schemas, bool fields)
{
    str name = fields ? S("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1")
                      : S("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON");
    if (!json_get_str(schemas, name)) {
        struct json *node = json_new_obj(a);
        json_set_str(a, node, "description",
                     fields ? S("A set of fields, as a tree of JSON objects.") : S("Any value."));
        if (fields)
            json_set_str(a, node, "type", S("object"));
        json_set(a, schemas, name, node);
    }
    return make_reference(a, name);
}

/* Type, format and enum of a scalar. */
static struct json *describe_scalar(struct arena *a, struct json *schemas, const struct schema *s)
{
    static const char *const types[SCHEMA_TYPE_N] = {
        [SCHEMA_STRING] = "string",
        [SCHEMA_INTEGER] = "integer",
        [SCHEMA_NUMBER] = "number",
        [SCHEMA_BOOLEAN] = "boolean",
    };
    static const char *const formats[] = {
        [SCHEMA_TIME] = "date-time", [SCHEMA_MICRO_TIME] = "date-time", [SCHEMA_BYTES] = "byte",
        [SCHEMA_INT32] = "int32",    [SCHEMA_INT64] = "int64",
    };
    if (s->format == SCHEMA_QUANTITY || s->type == SCHEMA_INT_OR_STRING)
        return reference_union(a, schemas, s->format == SCHEMA_QUANTITY);
    struct json *node = json_new_obj(a);
    if (types[s->type])
        json_set_str(a, node, "type", str_c(types[s->type]));
    else
        json_set_str(a, node, "type", S("object")); /* SCHEMA_ANY */
    if (s->format < countof(formats) && formats[s->format])
        json_set_str(a, node, "format", str_c(formats[s->format]));
    if (s->limits && s->limits->one_of_values && !(s->limits->has & SCHEMA_WORDS_UNPUBLISHED))
        json_set(a, node, S("enum"), json_copy(a, s->limits->one_of_values));
    return node;
}

/* The merge strategy of a list, which server-side apply and clients derive ownership from. */
static void add_list_type(struct arena *a, const struct schema *s, struct json *node)
{
    static const char *const types[] = { "atomic", "set", "map" };
    json_set_str(a, node, "x-kubernetes-list-type", str_c(types[s->list]));
    if (s->list != SHAPE_MAP_LIST)
        return;
    struct json *keys = json_new_arr(a);
    for (uint32_t i = 0; i < s->n_list_keys; i++)
        json_push(a, keys, json_new_str(a, s->list_keys[i]));
    json_set(a, node, S("x-kubernetes-list-map-keys"), keys);
}

/* Describes a schema in place, or by reference if it has a name; `described` adds description and
 * default. */
static struct json *describe_schema(struct arena *a, struct json *schemas, const struct schema *s,
                                    bool described)
{
    struct json *node;
    if (s->type == SCHEMA_OBJECT && s->message) {
        openapi_add_type(a, schemas, s->message);
        node = make_reference(a, types_openapi_name(a, s->message->name));
    } else if (s->type == SCHEMA_OBJECT) {
        node = json_new_obj(a);
        json_set_str(a, node, "type", S("object"));
        json_set(a, node, S("additionalProperties"),
                 describe_schema(a, schemas, s->element, false));
        if (s->atomic)
            json_set_str(a, node, "x-kubernetes-map-type", S("atomic"));
    } else if (s->type == SCHEMA_ARRAY) {
        node = json_new_obj(a);
        json_set_str(a, node, "type", S("array"));
        json_set(a, node, S("items"), describe_schema(a, schemas, s->element, false));
        add_list_type(a, s, node);
    } else {
        node = describe_scalar(a, schemas, s);
    }
    if (described && s->description.n)
        json_set_str(a, node, "description", s->description);
    if (described && s->fallback)
        json_set(a, node, S("default"), json_copy(a, s->fallback));
    return node;
}

static void add_patch(struct arena *a, const struct schema_field *f, struct json *node)
{
    static const char *const words[] = {
        [SHAPE_PATCH_MERGE] = "merge",
        [SHAPE_PATCH_RETAIN_KEYS] = "retainKeys",
        [SHAPE_PATCH_MERGE | SHAPE_PATCH_RETAIN_KEYS] = "merge,retainKeys",
    };
    if (f->patch < countof(words) && words[f->patch])
        json_set_str(a, node, "x-kubernetes-patch-strategy", str_c(words[f->patch]));
    if (f->patch_key.n)
        json_set_str(a, node, "x-kubernetes-patch-merge-key", f->patch_key);
}

/* Adds a type and everything it refers to, unless it is there already. */
void openapi_add_type(struct arena *a, struct json *schemas, const struct schema_message *m)
{
    str name = types_openapi_name(a, m->name);
    if (json_get_str(schemas, name))
        return;
    struct json *node = json_new_obj(a), *required = json_new_arr(a);
    json_set(a, schemas, name, node); /* before its fields: types may refer to themselves */
    if (m->description.n)
        json_set_str(a, node, "description", m->description);
    json_set_str(a, node, "type", S("object"));
    struct json *properties = json_new_obj(a);
    for (uint32_t i = 0; i < m->n_fields; i++) {
        const struct schema_field *f = &m->fields[i];
        if (!f->name.n)
            continue;
        struct json *property = f->schema.type == SCHEMA_ANY && !f->schema.element
                                    ? reference_any(a, schemas, str_eqc(f->name, "fieldsV1"))
                                    : describe_schema(a, schemas, &f->schema, true);
        add_patch(a, f, property);
        json_set(a, properties, f->name, property);
        if (f->required)
            json_push(a, required, json_new_str(a, f->name));
    }
    if (json_len(properties))
        json_set(a, node, S("properties"), properties);
    if (json_len(required))
        json_set(a, node, S("required"), required);
    if (m->atomic)
        json_set_str(a, node, "x-kubernetes-map-type", S("atomic"));
}

/* The schema of a definition, with apiVersion, kind and metadata added. */
struct json *openapi_of_custom(struct arena *a, const struct kind *k)
{
    struct json *node = json_copy(a, k->openapi);
    if (!json_is(node, JSON_OBJ))
        node = json_new_obj(a);
    struct json *properties = json_make(a, node, "properties", NULL);
    json_set_str(a, node, "type", S("object"));
    static const struct {
        const char *key, *description;
    } fields[] = {
        { "apiVersion", "API group and version of this object." },
        { "kind", "Kind of this object." },
    };
    for (size_t i = 0; i < countof(fields); i++) {
        struct json *field = json_new_obj(a);
        json_set_str(a, field, "type", S("string"));
        json_set_str(a, field, "description", str_c(fields[i].description));
        json_set(a, properties, str_c(fields[i].key), field);
    }
    struct json *metadata = make_reference(a, types_openapi_name(a, S("meta.v1.ObjectMeta")));
    json_set_str(a, metadata, "description", S("Standard object metadata."));
    json_set(a, properties, S("metadata"), metadata);
    return node;
}
