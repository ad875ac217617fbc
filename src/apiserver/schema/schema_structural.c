/* Checks that an OpenAPI schema is structural, as apiextensions.k8s.io/v1 requires.
 *
 * Structural means: every field that is mentioned anywhere has its type declared outside of allOf, anyOf,
 * oneOf and not; inside of those, only values may be restricted. A value can then be pruned and defaulted by
 * looking at one place in the schema.
 *
 * Three walks find the violations, each reporting the paths and reasons that kube-apiserver reports:
 *
 *   check_node       the skeleton: types, list and map extensions, forbidden keywords
 *   check_nested     below allOf, anyOf, oneOf, not: no structural keyword may appear there
 *   check_complete   what a junctor of the root mentions must exist in the skeleton
 *
 * Nothing is built here; schema_build.c runs only if nothing was reported. */
#include "schema.h"

#include "../../json/seen.h"

enum level { AT_ROOT, AT_FIELD, AT_ITEM };

struct checker {
    struct field_errors *errors;
    const struct field_path *root;
};

static void check_node(struct checker *c, const struct json *node, enum level level,
                       const struct field_path *at);
static void check_nested(struct checker *c, const struct json *node, const struct field_path *at);

static str text_of(const struct json *node, const char *key)
{
    return json_text(json_get(node, key));
}

static bool has_flag(const struct json *node, const char *key)
{
    return json_bool(json_get(node, key), false);
}

#define CHILD(up, name) (&(struct field_path){ (up), .key = S(name) })
#define CHILD_C(up, name) (&(struct field_path){ (up), .key = str_c(name) })
#define KEYED(up, name) (&(struct field_path){ (up), .key = (name), .how = FIELD_KEY })
#define INDEXED(up, at) (&(struct field_path){ (up), .index = (at), .how = FIELD_INDEX })

/* ---- keywords that no schema may use */

static const char *const forbidden_keywords[] = {
    "id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"
};

/* A node with a forbidden keyword is not reported for its missing type as well. */
static bool has_forbidden_keyword(const struct json *node)
{
    for (size_t i = 0; i < countof(forbidden_keywords); i++)
        if (json_get(node, forbidden_keywords[i]))
            return true;
    return false;
}

/* Reports keywords that apiextensions.k8s.io/v1 does not accept in any schema. */
static void check_forbidden(struct checker *c, const struct json *node, const struct field_path *at)
{
    for (size_t i = 0; i < countof(forbidden_keywords); i++)
        if (json_get(node, forbidden_keywords[i]))
            field_forbidden(c->errors, CHILD_C(at, forbidden_keywords[i]), "%s is not supported",
                            forbidden_keywords[i]);
    if (has_flag(node, "uniqueItems"))
        field_forbidden(
            c->errors, CHILD(at, "uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
    if (json_is(json_get(node, "items"), JSON_ARR) && json_len(json_get(node, "items")))
        field_forbidden(c->errors, CHILD(at, "items"),
                        "items must be a schema object and not an array");
    const struct json *others = json_get(node, "additionalProperties");
    bool all_others = json_is(others, JSON_BOOL) && others->boolean;
    if (others && !all_others && json_len(json_get(node, "properties")))
        field_forbidden(c->errors, CHILD(at, "additionalProperties"),
                        "additionalProperties and properties are mutual exclusive");
    if (json_is(json_get(node, "x-kubernetes-preserve-unknown-fields"), JSON_BOOL) &&
        !has_flag(node, "x-kubernetes-preserve-unknown-fields"))
        field_invalid(c->errors, CHILD(at, "x-kubernetes-preserve-unknown-fields"),
                      json_get(node, "x-kubernetes-preserve-unknown-fields"),
                      "must be true or undefined");
}

/* Reports a type that OpenAPI does not define, and a default that can therefore not be checked. */
static void check_type_word(struct checker *c, const struct json *node, const struct field_path *at)
{
    static const char *const types[] = { "array",  "boolean", "integer", "number",
                                         "object", "string",  NULL };
    str type = text_of(node, "type");
    for (size_t i = 0; types[i]; i++)
        if (str_eqc(type, types[i]))
            return;
    const struct json *default_value = json_get(node, "default");
    if (type.n)
        field_not_supported(c->errors, CHILD(at, "type"), json_get(node, "type"), types);
    if (type.n && default_value && !json_is(default_value, JSON_NULL))
        field_type_invalid(c->errors, CHILD(at, "default"), default_value,
                           "must be of type " STR_FMT, STR_ARG(type));
    if (str_eqc(type, "null"))
        field_forbidden(c->errors, CHILD(at, "type"),
                        "type cannot be set to null, use nullable as an alternative");
}

/* ---- lists and maps */

/* A list or map extension requires the type it extends. */
static void check_required_type(struct checker *c, const struct json *node,
                                const struct field_path *at, const char *type,
                                const char *extension)
{
    if (!json_get(node, extension) || str_eqc(text_of(node, "type"), type))
        return;
    if (!text_of(node, "type").n)
        field_required(c->errors, CHILD(at, "type"),
                       "must be set when a list or map extension is used");
    else
        field_invalid(c->errors, CHILD(at, "type"), json_get(node, "type"), "must be %s with %s",
                      type, extension);
}

/* One entry of x-kubernetes-list-map-keys. */
struct map_key {
    uint32_t place; /* its index */
    bool again;     /* an earlier key is equal */
    bool required;  /* the items require this property */
};

/* Reports what makes one key unusable to identify the items of a map list. */
static void check_map_key(struct checker *c, const struct json *node, struct map_key which,
                          const struct field_path *at)
{
    const struct json *keys = json_get(node, "x-kubernetes-list-map-keys");
    const struct json *items = json_get(node, "items");
    str key = json_text(json_item(keys, which.place));
    const struct json *property = json_get_str(json_get(items, "properties"), key);
    struct field_path in_items = { at, .key = S("items") };
    struct field_path properties = { &in_items, .key = S("properties") };
    struct field_path keyed = { &properties, .key = key, .how = FIELD_KEY };
    str type = text_of(property, "type");
    if (!property)
        field_invalid(c->errors, CHILD(at, "x-kubernetes-list-map-keys"), keys,
                      "entries must all be names of item properties");
    else if (str_eqc(type, "array") || str_eqc(type, "object"))
        field_invalid(c->errors, CHILD(&keyed, "type"), json_get(property, "type"),
                      "must be a scalar type if parent array's x-kubernetes-list-type is map");
    if (property && !json_get(property, "default") && !which.required)
        field_required(
            c->errors, CHILD(&keyed, "default"),
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be "
            "a required property");
    if (has_flag(property, "nullable"))
        field_forbidden(c->errors, CHILD(&keyed, "nullable"),
                        "cannot be nullable when x-kubernetes-list-type is map");
    if (which.again)
        field_invalid(c->errors, CHILD(at, "x-kubernetes-list-map-keys"), keys,
                      "must not contain duplicate entries");
}

/* A list of type map: needs keys, and items that are objects with these keys. */
static void check_map_list(struct checker *c, const struct json *node, const struct field_path *at)
{
    const struct json *keys = json_get(node, "x-kubernetes-list-map-keys");
    const struct json *items = json_get(node, "items");
    if (!json_len(keys))
        field_required(c->errors, CHILD(at, "x-kubernetes-list-map-keys"),
                       "must not be empty if x-kubernetes-list-type is map");
    if (!items)
        field_required(c->errors, CHILD(at, "items"),
                       "must have a schema if x-kubernetes-list-type is map");
    else if (!str_eqc(text_of(items, "type"), "object"))
        field_invalid(c->errors, CHILD(CHILD(at, "items"), "type"), json_get(items, "type"),
                      "must be object if parent array's x-kubernetes-list-type is map");
    struct seen names = seen_new(c->errors->arena, 1);
    struct seen required = seen_list(c->errors->arena, json_get(items, "required"), NULL);
    for (uint32_t i = 0; str_eqc(text_of(items, "type"), "object") && i < json_len(keys); i++)
        check_map_key(c, node,
                      (struct map_key){ i, seen_value(&names, json_item(keys, i), i),
                                        seen_lookup(&required, json_item(keys, i)) },
                      at);
    if (has_flag(items, "nullable"))
        field_forbidden(c->errors, CHILD(CHILD(at, "items"), "nullable"),
                        "cannot be nullable when x-kubernetes-list-type is map");
}

/* A list of type set: its items must be comparable as a whole. */
static void check_set_list(struct checker *c, const struct json *node, const struct field_path *at)
{
    const struct json *items = json_get(node, "items");
    const struct field_path *in_items = CHILD(at, "items");
    if (has_flag(items, "nullable"))
        field_forbidden(c->errors, CHILD(in_items, "nullable"),
                        "cannot be nullable when x-kubernetes-list-type is set");
    if (str_eqc(text_of(items, "type"), "array") && json_get(items, "x-kubernetes-list-type") &&
        !str_eqc(text_of(items, "x-kubernetes-list-type"), "atomic"))
        field_invalid(c->errors, CHILD(in_items, "x-kubernetes-list-type"),
                      json_get(items, "x-kubernetes-list-type"), "must be atomic in a set");
    if (str_eqc(text_of(items, "type"), "object") &&
        !str_eqc(text_of(items, "x-kubernetes-map-type"), "atomic"))
        field_invalid(c->errors, CHILD(in_items, "x-kubernetes-map-type"),
                      json_get(items, "x-kubernetes-map-type"), "must be atomic in a set");
}

/* Checks x-kubernetes-list-type, x-kubernetes-list-map-keys and x-kubernetes-map-type. */
static void check_containers(struct checker *c, const struct json *node,
                             const struct field_path *at)
{
    static const char *const lists[] = { "atomic", "map", "set", NULL };
    static const char *const maps[] = { "atomic", "granular", NULL };
    const struct json *list = json_get(node, "x-kubernetes-list-type");
    const struct json *map = json_get(node, "x-kubernetes-map-type");
    str word = json_text(list);
    check_required_type(c, node, at, "array", "x-kubernetes-list-type");
    check_required_type(c, node, at, "object", "x-kubernetes-map-type");
    if (list && !str_eqc(word, "atomic") && !str_eqc(word, "map") && !str_eqc(word, "set"))
        field_not_supported(c->errors, CHILD(at, "x-kubernetes-list-type"), list, lists);
    if (map && !str_eqc(json_text(map), "atomic") && !str_eqc(json_text(map), "granular"))
        field_not_supported(c->errors, CHILD(at, "x-kubernetes-map-type"), map, maps);
    if (json_len(json_get(node, "x-kubernetes-list-map-keys")) && !str_eqc(word, "map")) {
        const struct field_path *type = CHILD(at, "x-kubernetes-list-type");
        if (list)
            field_invalid(c->errors, type, list,
                          "must be map if x-kubernetes-list-map-keys is non-empty");
        else
            field_required(c->errors, type,
                           "must be map if x-kubernetes-list-map-keys is non-empty");
    }
    if (str_eqc(word, "map"))
        check_map_list(c, node, at);
    if (str_eqc(word, "set"))
        check_set_list(c, node, at);
}

/* ---- allOf, anyOf, oneOf, not (junctors): only values may be restricted */

/* [{"type": "integer"}, {"type": "string"}]: allowed next to x-kubernetes-int-or-string. */
static bool is_int_or_string_pair(const struct json *any_of)
{
    const struct json *first = json_item(any_of, 0), *second = json_item(any_of, 1);
    return json_len(any_of) == 2 && json_len(first) == 1 && json_len(second) == 1 &&
           str_eqc(text_of(first, "type"), "integer") && str_eqc(text_of(second, "type"), "string");
}

/* Runs check_nested() on every schema in allOf, anyOf, oneOf and not. */
static void check_junctors(struct checker *c, const struct json *node, const struct field_path *up)
{
    static const char *const lists[] = { "allOf", "anyOf", "oneOf" };
    for (size_t i = 0; i < countof(lists); i++) {
        const struct json *list = json_get(node, lists[i]);
        struct field_path at = { up, .key = str_c(lists[i]) };
        if (str_eqc(at.key, "anyOf") && is_int_or_string_pair(list))
            continue;
        for (uint32_t j = 0; j < json_len(list); j++)
            check_nested(c, json_item(list, j), INDEXED(&at, j));
    }
    if (json_is(json_get(node, "not"), JSON_OBJ))
        check_nested(c, json_get(node, "not"), CHILD(up, "not"));
}

/* Below a junctor: reports every structural keyword, at any depth. */
static void check_nested(struct checker *c, const struct json *node, const struct field_path *at)
{
    static const char *const structure[] = {
        "type",
        "additionalProperties",
        "default",
        "title",
        "description",
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    };
    check_forbidden(c, node, at);
    for (size_t i = 0; i < countof(structure); i++)
        if (json_get(node, structure[i]))
            field_forbidden(c->errors, CHILD_C(at, structure[i]),
                            "must not be set inside allOf, anyOf, oneOf or not to be structural");
    check_junctors(c, node, at);
    if (json_is(json_get(node, "items"), JSON_OBJ))
        check_nested(c, json_get(node, "items"), CHILD(at, "items"));
    struct field_path properties = { at, .key = S("properties") };
    json_each(p, json_get(node, "properties"))
        check_nested(c, p->value, KEYED(&properties, p->key));
}

/* What a junctor mentions must be declared outside of it as well. Like kube-apiserver, this looks
 * at the junctors of the root only. */
static void check_complete(struct checker *c, const struct json *node, const struct json *outside,
                           const struct field_path *at)
{
    static const char *const lists[] = { "allOf", "anyOf", "oneOf" };
    for (size_t i = 0; i < countof(lists); i++) {
        const struct json *list = json_get(node, lists[i]);
        for (uint32_t j = 0; j < json_len(list); j++)
            check_complete(c, list->items[j], outside, at);
    }
    if (json_is(json_get(node, "not"), JSON_OBJ))
        check_complete(c, json_get(node, "not"), outside, at);
    if (node == outside)
        return;
    const struct json *items = json_get(outside, "items");
    struct field_path properties = { at, .key = S("properties") };
    if (json_get(node, "items") && !items)
        field_required(c->errors, CHILD(at, "items"), "a restriction mentions it");
    else if (json_get(node, "items"))
        check_complete(c, json_get(node, "items"), items, CHILD(at, "items"));
    json_each(p, json_get(node, "properties")) {
        const struct json *there = json_get_str(json_get(outside, "properties"), p->key);
        if (!there)
            field_required(c->errors, KEYED(&properties, p->key), "a restriction mentions it");
        else
            check_complete(c, p->value, there, KEYED(&properties, p->key));
    }
}

/* ---- types */

/* x-kubernetes-embedded-resource: must be an object with fields. */
static void check_embedded(struct checker *c, const struct json *node, const struct field_path *at)
{
    const struct json *type = json_get(node, "type");
    if (!str_eqc(json_text(type), "object")) {
        if (json_text(type).n)
            field_invalid(c->errors, CHILD(at, "type"), type,
                          "must be object in an embedded resource");
        else
            field_required(c->errors, CHILD(at, "type"), "must be object in an embedded resource");
    }
    if (json_get(node, "additionalProperties"))
        field_forbidden(c->errors, CHILD(at, "additionalProperties"),
                        "must not be used with x-kubernetes-embedded-resource");
    if (!has_flag(node, "x-kubernetes-preserve-unknown-fields") &&
        !json_len(json_get(node, "properties")))
        field_required(c->errors, CHILD(at, "properties"),
                       "must not be empty if x-kubernetes-embedded-resource is true without "
                       "x-kubernetes-preserve-unknown-fields");
}

/* Every node needs a type, except where an extension replaces it. */
static void check_type(struct checker *c, const struct json *node, enum level level,
                       const struct field_path *at)
{
    str type = text_of(node, "type");
    bool int_or_string = has_flag(node, "x-kubernetes-int-or-string");
    bool preserve = has_flag(node, "x-kubernetes-preserve-unknown-fields");
    check_type_word(c, node, at);
    if (has_flag(node, "x-kubernetes-embedded-resource"))
        check_embedded(c, node, at);
    else if (!type.n && !int_or_string && !preserve && !has_forbidden_keyword(node))
        field_required(c->errors, CHILD(at, "type"),
                       level == AT_ROOT   ? "must not be empty at the root"
                       : level == AT_ITEM ? "must not be empty for items of a list"
                                          : "must not be empty for a field of an object");
    if (level == AT_ROOT && type.n && !str_eqc(type, "object"))
        field_invalid(c->errors, CHILD(at, "type"), json_get(node, "type"),
                      "must be object at the root");
    if (int_or_string && preserve)
        field_invalid(c->errors, CHILD(at, "x-kubernetes-preserve-unknown-fields"),
                      json_get(node, "x-kubernetes-preserve-unknown-fields"),
                      "must be false with x-kubernetes-int-or-string");
    const struct json *items = json_get(node, "items");
    if (str_eqc(type, "array") && !json_is(items, JSON_OBJ) && !json_len(items))
        field_required(c->errors, CHILD(at, "items"), "must be specified");
}

/* apiVersion, kind and metadata have the same type in every object; a definition may at most
 * restrict the name. */
static void check_typemeta_fields(struct checker *c, const struct json *node, enum level level,
                                  const struct field_path *up)
{
    struct field_path properties = { up, .key = S("properties") };
    for (const char *const *name = (const char *const[]){ "apiVersion", "kind", NULL }; *name;
         name++) {
        const struct json *field = json_at(node, "properties", *name, NULL);
        if (field && !str_eqc(text_of(field, "type"), "string"))
            field_invalid(c->errors, CHILD(KEYED(&properties, str_c(*name)), "type"),
                          json_get(field, "type"), "must be string");
        if (level == AT_ROOT && json_get(field, "default"))
            field_forbidden(c->errors, CHILD(KEYED(&properties, str_c(*name)), "default"),
                            "must not be set at the root: every object sets this field");
    }
    const struct json *metadata = json_at(node, "properties", "metadata", NULL);
    struct field_path at = { &properties, .key = S("metadata"), .how = FIELD_KEY };
    if (!metadata)
        return;
    if (!str_eqc(text_of(metadata, "type"), "object"))
        field_invalid(c->errors, CHILD(&at, "type"), json_get(metadata, "type"), "must be object");
    bool more = false;
    json_each(m, metadata)
        more = more || (!str_eqc(m->key, "type") && !str_eqc(m->key, "properties"));
    json_each(p, json_get(metadata, "properties"))
        more = more || (!str_eqc(p->key, "name") && !str_eqc(p->key, "generateName"));
    if (level == AT_ROOT && more)
        field_forbidden(
            c->errors, &at,
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified");
}

/* Checks one node of the skeleton and everything below it. */
static void check_node(struct checker *c, const struct json *node, enum level level,
                       const struct field_path *at)
{
    if (text_of(node, "$schema").n)
        field_invalid(c->errors, c->root, NULL, "'schema' is not supported");
    check_forbidden(c, node, at);
    check_type(c, node, level, at);
    check_containers(c, node, at);
    check_junctors(c, node, at);
    if (level == AT_ROOT || has_flag(node, "x-kubernetes-embedded-resource"))
        check_typemeta_fields(c, node, level, at);
    const struct json *others = json_get(node, "additionalProperties");
    if (level == AT_ROOT && others)
        field_forbidden(c->errors, CHILD(at, "additionalProperties"),
                        "must not be used at the root");
    if (json_is(others, JSON_OBJ))
        check_node(c, others, AT_FIELD, CHILD(at, "additionalProperties"));
    if (json_is(json_get(node, "items"), JSON_OBJ))
        check_node(c, json_get(node, "items"), AT_ITEM, CHILD(at, "items"));
    struct field_path properties = { at, .key = S("properties") };
    json_each(p, json_get(node, "properties"))
        check_node(c, p->value, AT_FIELD, KEYED(&properties, p->key));
}

void schema_check_structural(const struct json *openapi, const struct field_path *at,
                             struct field_errors *errors)
{
    struct checker c = { errors, at };
    if (has_flag(openapi, "nullable"))
        field_forbidden(errors, CHILD(at, "nullable"), "nullable cannot be true at the root");
    check_node(&c, openapi, AT_ROOT, at);
    check_complete(&c, openapi, openapi, at);
}
