/* The schemas are those of version 3, bent into the older form: references move and lose their wrapping,
 * the scalars that may be written in two ways are strings, and what version 2 has no word for goes.
 *
 * The protobuf form numbers every keyword; extensions and plain values travel as text, for which JSON
 * will do since it is YAML. A message is written behind its length, so inner ones are built first. */
#include "openapi_v2.h"

#include "openapi.h"

#include <string.h>

/* ---- from version 3 */

static void bend(struct arena *a, struct json *v);

static void bend_reference(struct arena *a, struct json *schema, str target)
{
    const str from = S("#/components/schemas/");
    if (str_starts(target, from))
        json_set_str(a, schema, "$ref",
                     arena_printf(a, "#/definitions/" STR_FMT, STR_ARG(str_from(target, from.n))));
}

static void bend_schema(struct arena *a, struct json *schema)
{
    const struct json *all_of = json_get(schema, "allOf");
    str target = json_text(json_get(json_len(all_of) == 1 ? json_item(all_of, 0) : schema, "$ref"));
    if (target.n) {
        bend_reference(a, schema, target);
        json_del(schema, S("allOf"));
    }
    if (json_get(schema, "oneOf") && !json_get(schema, "type"))
        json_set_str(a, schema, "type", S("string"));
    static const char *const unknown[] = { "oneOf", "anyOf", "not", "nullable" };
    for (size_t i = 0; i < countof(unknown); i++)
        json_del(schema, str_c(unknown[i]));
    json_each(m, json_get(schema, "properties"))
        bend(a, m->value);
    bend(a, json_get(schema, "items"));
    bend(a, json_get(schema, "additionalProperties"));
    all_of = json_get(schema, "allOf");
    for (size_t i = 0; i < json_len(all_of); i++)
        bend(a, json_item(all_of, i));
}

static void bend(struct arena *a, struct json *v)
{
    if (json_is(v, JSON_OBJ))
        bend_schema(a, v);
}

static bool first_of_version(const struct kind *const *kinds, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (str_eq(kinds[i]->group, kinds[j]->group) &&
            str_eq(kinds[i]->version, kinds[j]->version))
            return false;
    return true;
}

struct json *openapi_v2_document(struct arena *a, const struct kind *const *kinds, size_t n,
                                 str version)
{
    struct json *document = json_new_obj(a), *definitions = json_new_obj(a);
    for (size_t i = 0; i < n; i++) {
        if (!first_of_version(kinds, i))
            continue;
        struct json *v3 = openapi_document(a, kinds, n, kinds[i]->group, kinds[i]->version);
        json_each(m, json_at(v3, "components", "schemas", NULL))
            json_set(a, definitions, m->key, m->value);
    }
    json_each(m, definitions)
        bend(a, m->value);
    json_set_str(a, document, "swagger", S("2.0"));
    struct json *info = json_make(a, document, "info", NULL);
    json_set_str(a, info, "title", S("Kubernetes"));
    json_set_str(a, info, "version", version);
    json_set(a, document, S("paths"), json_new_obj(a));
    json_set(a, document, S("definitions"), definitions);
    return document;
}

/* ---- protobuf */

enum { WIRE_VARINT = 0, WIRE_DOUBLE = 1, WIRE_BYTES = 2 };
enum { EXTENSION = 31 }; /* a NamedAny of a Schema */

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

static const struct keyword of_schema[] = {
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

static void put_varint(struct buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_putc(out, (char)(value | 0x80));
    buf_putc(out, (char)value);
}

static void put_bytes(struct buf *out, unsigned number, str bytes)
{
    put_varint(out, number << 3 | WIRE_BYTES);
    put_varint(out, bytes.n);
    buf_put(out, bytes);
}

static void put_integer(struct buf *out, unsigned number, uint64_t value)
{
    put_varint(out, number << 3 | WIRE_VARINT);
    put_varint(out, value);
}

static void put_number(struct buf *out, unsigned number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_varint(out, number << 3 | WIRE_DOUBLE);
    for (unsigned i = 0; i < sizeof(bits); i++)
        buf_putc(out, (char)(bits >> (8 * i)));
}

static void put_any(struct buf *out, unsigned number, const struct json *value)
{
    auto_buf struct buf text = { 0 }, any = { 0 };
    json_write(&text, value);
    put_bytes(&any, 2, buf_str(&text));
    put_bytes(out, number, buf_str(&any));
}

static void put_schema_as(struct buf *out, unsigned number, const struct json *schema)
{
    auto_buf struct buf inner = { 0 };
    put_schema(&inner, schema);
    put_bytes(out, number, buf_str(&inner));
}

static void put_named_schemas(struct buf *out, unsigned number, const struct json *schemas)
{
    auto_buf struct buf all = { 0 };
    json_each(m, schemas) {
        auto_buf struct buf named = { 0 };
        put_bytes(&named, 1, m->key);
        put_schema_as(&named, 2, m->value);
        put_bytes(&all, 1, buf_str(&named));
    }
    put_bytes(out, number, buf_str(&all));
}

static void put_elements(struct buf *out, unsigned number, const struct json *value)
{
    auto_buf struct buf inner = { 0 };
    if (json_is(value, JSON_OBJ))
        put_schema_as(&inner, 1, value);
    else
        put_integer(&inner, 2, json_bool(value, false));
    put_bytes(out, number, buf_str(&inner));
}

/* A message whose field 1 holds the one value. */
static void put_wrapped(struct buf *out, const struct keyword *k, const struct json *value)
{
    auto_buf struct buf inner = { 0 };
    if (k->form == TYPE)
        put_bytes(&inner, 1, json_text(value));
    else
        put_schema_as(&inner, 1, value);
    put_bytes(out, k->number, buf_str(&inner));
}

static void put_list(struct buf *out, const struct keyword *k, const struct json *values)
{
    for (size_t i = 0; i < json_len(values); i++) {
        const struct json *value = json_item(values, i);
        if (k->form == TEXTS)
            put_bytes(out, k->number, json_text(value));
        else if (k->form == ANYS)
            put_any(out, k->number, value);
        else
            put_schema_as(out, k->number, value);
    }
}

static void put_keyword(struct buf *out, const struct keyword *k, const struct json *value)
{
    switch (k->form) {
    case TEXT:
        put_bytes(out, k->number, json_text(value));
        break;
    case NUMBER:
        put_number(out, k->number, json_real(value, 0));
        break;
    case COUNT:
        put_integer(out, k->number, (uint64_t)json_int(value, 0));
        break;
    case FLAG:
        put_integer(out, k->number, json_bool(value, false));
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

static void put_extension(struct buf *out, str name, const struct json *value)
{
    auto_buf struct buf named = { 0 };
    put_bytes(&named, 1, name);
    put_any(&named, 2, value);
    put_bytes(out, EXTENSION, buf_str(&named));
}

static void put_schema(struct buf *out, const struct json *schema)
{
    json_each(m, schema) {
        for (size_t i = 0; i < countof(of_schema); i++)
            if (str_eqc(m->key, of_schema[i].name))
                put_keyword(out, &of_schema[i], m->value);
        if (str_starts(m->key, S("x-")))
            put_extension(out, m->key, m->value);
    }
}

void openapi_v2_protobuf(struct buf *out, const struct json *document)
{
    auto_buf struct buf info = { 0 };
    put_bytes(&info, 1, json_text(json_at(document, "info", "title", NULL)));
    put_bytes(&info, 2, json_text(json_at(document, "info", "version", NULL)));
    put_bytes(out, 1, json_text(json_get(document, "swagger")));
    put_bytes(out, 2, buf_str(&info));
    put_bytes(out, 8, S("")); /* no paths */
    put_named_schemas(out, 9, json_get(document, "definitions"));
}
