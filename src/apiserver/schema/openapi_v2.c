/* Derives the OpenAPI v2 document from the v3 schemas: references move to #/definitions and lose their
 * `allOf` wrapper, scalars that accept two types become strings, and keywords that v2 does not have are
 * dropped.
 *
 * The protobuf form (openapi.v2.Document) gives every keyword a field number; extensions and plain values
 * travel as YAML text, for which JSON is good enough. Because a message is written after its length, inner
 * messages are built in buffers of their own first. */
#include "openapi_v2.h"

#include "../../json/protowire.h"
#include "openapi.h"

#include <string.h>

/* ---- from version 3 */

static void convert_to_v2(struct arena *a, struct json *v);

/* #/components/schemas/X becomes #/definitions/X. */
static void convert_reference(struct arena *a, struct json *schema, str target)
{
    const str from = S("#/components/schemas/");
    if (str_starts(target, from))
        json_set_str(a, schema, "$ref",
                     arena_printf(a, "#/definitions/" STR_FMT, STR_ARG(str_from(target, from.n))));
}

/* Rewrites one v3 schema in place. */
static void convert_schema(struct arena *a, struct json *schema)
{
    const struct json *all_of = json_get(schema, "allOf");
    str target = json_text(json_get(json_len(all_of) == 1 ? json_item(all_of, 0) : schema, "$ref"));
    if (target.n) {
        convert_reference(a, schema, target);
        json_del(schema, S("allOf"));
    }
    if (json_get(schema, "oneOf") && !json_get(schema, "type"))
        json_set_str(a, schema, "type", S("string"));
    static const char *const unsupported[] = { "oneOf", "anyOf", "not", "nullable" };
    for (size_t i = 0; i < countof(unsupported); i++)
        json_del(schema, str_c(unsupported[i]));
    json_each(m, json_get(schema, "properties"))
        convert_to_v2(a, m->value);
    convert_to_v2(a, json_get(schema, "items"));
    convert_to_v2(a, json_get(schema, "additionalProperties"));
    all_of = json_get(schema, "allOf");
    for (size_t i = 0; i < json_len(all_of); i++)
        convert_to_v2(a, json_item(all_of, i));
}

static void convert_to_v2(struct arena *a, struct json *v)
{
    if (json_is(v, JSON_OBJ))
        convert_schema(a, v);
}

/* True if no earlier kind has the same group and version. */
static bool is_first_of_version(const struct kind *const *kinds, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (str_eq(kinds[i]->group, kinds[j]->group) &&
            str_eq(kinds[i]->version, kinds[j]->version))
            return false;
    return true;
}

/* Collects the schemas of every version, then converts them. */
struct json *openapi_v2_document(struct arena *a, const struct kind *const *kinds, size_t n,
                                 str version)
{
    struct json *document = json_new_obj(a), *definitions = json_new_obj(a);
    for (size_t i = 0; i < n; i++) {
        if (!is_first_of_version(kinds, i))
            continue;
        struct json *v3 = openapi_document(a, kinds, n, kinds[i]->group, kinds[i]->version);
        json_each(m, json_at(v3, "components", "schemas", NULL))
            json_set(a, definitions, m->key, m->value);
    }
    json_each(m, definitions)
        convert_to_v2(a, m->value);
    json_set_str(a, document, "swagger", S("2.0"));
    struct json *info = json_make(a, document, "info", NULL);
    json_set_str(a, info, "title", S("Kubernetes"));
    json_set_str(a, info, "version", version);
    json_set(a, document, S("paths"), json_new_obj(a));
    json_set(a, document, S("definitions"), definitions);
    return document;
}

/* ---- protobuf */

enum { EXTENSION = 31 }; /* field number of vendor_extension in Schema */

enum form {
    TEXT,
    TEXTS,
    NUMBER,
    COUNT,
    FLAG,
    ANY,
    ANYS,
    SCHEMAS,
    TYPE,          /* TypeItem */
    ITEMS,         /* ItemsItem */
    ELEMENTS,      /* AdditionalPropertiesItem */
    NAMED_SCHEMAS, /* Properties, Definitions */
};

struct keyword {
    const char *name;
    unsigned number;
    enum form form;
};

static const struct keyword schema_keywords[] = {
    { "$ref", 1, TEXT },
    { "format", 2, TEXT },
    { "title", 3, TEXT },
    { "description", 4, TEXT },
    { "default", 5, ANY },
    { "multipleOf", 6, NUMBER },
    { "maximum", 7, NUMBER },
    { "exclusiveMaximum", 8, FLAG },
    { "minimum", 9, NUMBER },
    { "exclusiveMinimum", 10, FLAG },
    { "maxLength", 11, COUNT },
    { "minLength", 12, COUNT },
    { "pattern", 13, TEXT },
    { "maxItems", 14, COUNT },
    { "minItems", 15, COUNT },
    { "uniqueItems", 16, FLAG },
    { "maxProperties", 17, COUNT },
    { "minProperties", 18, COUNT },
    { "required", 19, TEXTS },
    { "enum", 20, ANYS },
    { "additionalProperties", 21, ELEMENTS },
    { "type", 22, TYPE },
    { "items", 23, ITEMS },
    { "allOf", 24, SCHEMAS },
    { "properties", 25, NAMED_SCHEMAS },
};

static void put_schema(struct buf *out, const struct json *schema);

/* openapi.v2.Any: the value as YAML text in field 2. */
static void put_any(struct buf *out, unsigned number, const struct json *value)
{
    auto_buf struct buf text = { 0 }, any = { 0 };
    json_write(&text, value);
    protowire_put_bytes(&any, 2, buf_str(&text));
    protowire_put_bytes(out, number, buf_str(&any));
}

static void put_schema_as(struct buf *out, unsigned number, const struct json *schema)
{
    auto_buf struct buf inner = { 0 };
    put_schema(&inner, schema);
    protowire_put_bytes(out, number, buf_str(&inner));
}

/* Properties or Definitions: a list of name and schema pairs. */
static void put_named_schemas(struct buf *out, unsigned number, const struct json *schemas)
{
    auto_buf struct buf all = { 0 };
    json_each(m, schemas) {
        auto_buf struct buf named = { 0 };
        protowire_put_bytes(&named, 1, m->key);
        put_schema_as(&named, 2, m->value);
        protowire_put_bytes(&all, 1, buf_str(&named));
    }
    protowire_put_bytes(out, number, buf_str(&all));
}

/* AdditionalPropertiesItem: a schema, or a bool. */
static void put_elements(struct buf *out, unsigned number, const struct json *value)
{
    auto_buf struct buf inner = { 0 };
    if (json_is(value, JSON_OBJ))
        put_schema_as(&inner, 1, value);
    else
        protowire_put_varint(&inner, 2, json_bool(value, false));
    protowire_put_bytes(out, number, buf_str(&inner));
}

/* TypeItem or ItemsItem: a message whose field 1 holds the value. */
static void put_wrapped(struct buf *out, const struct keyword *k, const struct json *value)
{
    auto_buf struct buf inner = { 0 };
    if (k->form == TYPE)
        protowire_put_bytes(&inner, 1, json_text(value));
    else
        put_schema_as(&inner, 1, value);
    protowire_put_bytes(out, k->number, buf_str(&inner));
}

/* A repeated field: one entry per value. */
static void put_list(struct buf *out, const struct keyword *k, const struct json *values)
{
    for (size_t i = 0; i < json_len(values); i++) {
        const struct json *value = json_item(values, i);
        if (k->form == TEXTS)
            protowire_put_bytes(out, k->number, json_text(value));
        else if (k->form == ANYS)
            put_any(out, k->number, value);
        else
            put_schema_as(out, k->number, value);
    }
}

/* Writes one keyword in the form that its message declares. */
static void put_keyword(struct buf *out, const struct keyword *k, const struct json *value)
{
    switch (k->form) {
    case TEXT:
        protowire_put_bytes(out, k->number, json_text(value));
        break;
    case NUMBER:
        protowire_put_double(out, k->number, json_real(value, 0));
        break;
    case COUNT:
        protowire_put_varint(out, k->number, (uint64_t)json_int(value, 0));
        break;
    case FLAG:
        protowire_put_varint(out, k->number, json_bool(value, false));
        break;
    case ANY:
        put_any(out, k->number, value);
        break;
    case TEXTS:
    case ANYS:
    case SCHEMAS:
        put_list(out, k, value);
        break;
    case TYPE:
    case ITEMS:
        put_wrapped(out, k, value);
        break;
    case ELEMENTS:
        put_elements(out, k->number, value);
        break;
    case NAMED_SCHEMAS:
        put_named_schemas(out, k->number, value);
        break;
    }
}

/* NamedAny: an x-kubernetes-* keyword and its value. */
static void put_extension(struct buf *out, str name, const struct json *value)
{
    auto_buf struct buf named = { 0 };
    protowire_put_bytes(&named, 1, name);
    put_any(&named, 2, value);
    protowire_put_bytes(out, EXTENSION, buf_str(&named));
}

static void put_schema(struct buf *out, const struct json *schema)
{
    json_each(m, schema) {
        for (size_t i = 0; i < countof(schema_keywords); i++)
            if (str_eqc(m->key, schema_keywords[i].name))
                put_keyword(out, &schema_keywords[i], m->value);
        if (str_starts(m->key, S("x-")))
            put_extension(out, m->key, m->value);
    }
}

void openapi_v2_protobuf(struct buf *out, const struct json *document)
{
    auto_buf struct buf info = { 0 };
    protowire_put_bytes(&info, 1, json_text(json_at(document, "info", "title", NULL)));
    protowire_put_bytes(&info, 2, json_text(json_at(document, "info", "version", NULL)));
    protowire_put_bytes(out, 1, json_text(json_get(document, "swagger")));
    protowire_put_bytes(out, 2, buf_str(&info));
    protowire_put_bytes(out, 8, S("")); /* no paths */
    put_named_schemas(out, 9, json_get(document, "definitions"));
}
