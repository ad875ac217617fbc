/* Builds a schema graph from the openAPIV3Schema of a CustomResourceDefinition.
 *
 * The form of the document is checked first (schema_structural.c), so the builder can rely on it. What is
 * left to report are patterns that do not compile and defaults that their own schema would refuse.
 *
 * The walk is bottom-up: a node is complete (fields, element, limits, default, shape) before its parent
 * uses it, which is why a default can be pruned and validated by the schema that declares it. Texts are
 * copied into the arena; the graph does not refer to the document that it was built from. */
#include "schema.h"

#include "../../base/regex.h"
#include "../../json/seen.h"
#include "types.h"

enum { ENUM_SCAN_MAX = 32 }; /* enum values compared one by one; a longer list gets an index */

struct builder {
    struct arena *arena;
    struct field_errors *errors;
};

static const struct schema *build_schema(struct builder *b, const struct json *node,
                                         const struct field_path *at);

/* x-kubernetes-int-or-string replaces the type. */
static enum schema_type parse_type(const struct json *node)
{
    static const struct {
        const char *name;
        enum schema_type type;
    } types[] = {
        { "object", SCHEMA_OBJECT },   { "array", SCHEMA_ARRAY },   { "string", SCHEMA_STRING },
        { "integer", SCHEMA_INTEGER }, { "number", SCHEMA_NUMBER }, { "boolean", SCHEMA_BOOLEAN },
    };
    if (json_bool(json_get(node, "x-kubernetes-int-or-string"), false))
        return SCHEMA_INT_OR_STRING;
    for (size_t i = 0; i < countof(types); i++)
        if (str_eqc(json_text(json_get(node, "type")), types[i].name))
            return types[i].type;
    return SCHEMA_ANY;
}

/* ---- limits */

/* The schemas of allOf, anyOf or oneOf as a NULL-terminated array; NULL if there are none. */
static const struct schema **build_alternatives(struct builder *b, const struct json *node,
                                                const char *key, const struct field_path *up)
{
    const struct json *list = json_get(node, key);
    if (!json_len(list))
        return NULL;
    struct field_path at = { up, .key = str_c(key) };
    const struct schema **all = arena_array(b->arena, json_len(list) + 1, sizeof(*all));
    for (uint32_t i = 0; i < json_len(list); i++)
        all[i] = build_schema(b, json_item(list, i),
                              &(struct field_path){ &at, .index = i, .how = FIELD_INDEX });
    return all;
}

/* Compiles the pattern. One that uses syntax our engine lacks (-ENOTSUP) is kept but not checked. */
static void build_pattern(struct builder *b, const struct json *node, const struct field_path *up,
                          struct schema_limits *l)
{
    const struct json *pattern = json_get(node, "pattern");
    if (!json_text(pattern).n)
        return;
    err_t e;
    l->pattern = arena_str(b->arena, json_text(pattern));
    int failed = regex_compile(b->arena, l->pattern, &l->regex, &e);
    if (failed && failed != -ENOTSUP)
        field_invalid(b->errors, &(struct field_path){ up, .key = S("pattern") }, pattern,
                      "must be a valid regular expression, but isn't: %s", e.text);
}

/* Reads bounds and sizes; -1 means that a size is not limited. */
static void build_numbers(const struct json *node, struct schema_limits *l)
{
    const struct json *v;
    if ((v = json_get(node, "minimum")))
        l->minimum = json_real(v, 0), l->has |= SCHEMA_HAS_MINIMUM;
    if ((v = json_get(node, "maximum")))
        l->maximum = json_real(v, 0), l->has |= SCHEMA_HAS_MAXIMUM;
    if ((v = json_get(node, "multipleOf")) && json_real(v, 0) > 0)
        l->multiple_of = json_real(v, 0), l->has |= SCHEMA_HAS_MULTIPLE;
    if (json_bool(json_get(node, "exclusiveMinimum"), false))
        l->has |= SCHEMA_EXCLUSIVE_MINIMUM;
    if (json_bool(json_get(node, "exclusiveMaximum"), false))
        l->has |= SCHEMA_EXCLUSIVE_MAXIMUM;
    l->min_length = json_int(json_get(node, "minLength"), -1);
    l->max_length = json_int(json_get(node, "maxLength"), -1);
    l->min_items = json_int(json_get(node, "minItems"), -1);
    l->max_items = json_int(json_get(node, "maxItems"), -1);
    l->min_properties = json_int(json_get(node, "minProperties"), -1);
    l->max_properties = json_int(json_get(node, "maxProperties"), -1);
}

static const str *copy_strings(struct arena *a, const struct json *list, uint32_t *ret_n)
{
    *ret_n = (uint32_t)json_len(list);
    str *copy = arena_array(a, *ret_n, sizeof(*copy));
    for (uint32_t i = 0; i < *ret_n; i++)
        copy[i] = arena_str(a, json_text(json_item(list, i)));
    return copy;
}

/* True if any keyword needs a struct schema_limits: most nodes have none, and it is large. */
static bool has_limits(const struct json *node)
{
    static const char *const keys[] = {
        "pattern",  "minimum",  "maximum",       "multipleOf",    "minLength", "maxLength",
        "minItems", "maxItems", "minProperties", "maxProperties", "format",    "enum",
        "required", "allOf",    "anyOf",         "oneOf",         "not",
    };
    for (size_t i = 0; i < countof(keys); i++)
        if (json_get(node, keys[i]))
            return true;
    return false;
}

/* Reads every keyword that restricts values. */
static void build_limits(struct builder *b, const struct json *node, const struct field_path *at,
                         struct schema *s)
{
    if (!has_limits(node))
        return;
    struct schema_limits *l = arena_new(b->arena, struct schema_limits);
    build_numbers(node, l);
    build_pattern(b, node, at, l);
    l->format = arena_str(b->arena, json_text(json_get(node, "format")));
    if (json_is(json_get(node, "enum"), JSON_ARR))
        l->one_of_values = json_copy(b->arena, json_get(node, "enum"));
    if (json_len(l->one_of_values) > ENUM_SCAN_MAX) {
        struct seen *words = arena_new(b->arena, struct seen);
        *words = seen_list(b->arena, l->one_of_values, NULL);
        l->words = words;
    }
    l->required = copy_strings(b->arena, json_get(node, "required"), &l->n_required);
    l->all_of = build_alternatives(b, node, "allOf", at);
    l->any_of = build_alternatives(b, node, "anyOf", at);
    l->one_of = build_alternatives(b, node, "oneOf", at);
    if (json_is(json_get(node, "not"), JSON_OBJ))
        l->not_schema =
            build_schema(b, json_get(node, "not"), &(struct field_path){ at, .key = S("not") });
    s->limits = l;
}

/* ---- structure */

/* additionalProperties: true. */
static const struct schema *new_any_schema(struct arena *a)
{
    struct schema *s = arena_new(a, struct schema);
    s->nullable = true;
    s->shape = &shape_any;
    return s;
}

/* Turns `properties` into a message with one field per property. */
static void build_properties(struct builder *b, const struct json *node,
                             const struct field_path *up, struct schema *s)
{
    const struct json *properties = json_get(node, "properties");
    if (!json_len(properties))
        return;
    struct schema_message *m = arena_new(b->arena, struct schema_message);
    struct field_path at = { up, .key = S("properties") };
    m->fields = arena_array(b->arena, json_len(properties), sizeof(*m->fields));
    json_each(p, properties) {
        struct field_path key = { &at, .key = p->key, .how = FIELD_KEY };
        m->fields[m->n_fields++] = (struct schema_field){
            .name = arena_str(b->arena, p->key),
            .schema = *build_schema(b, p->value, &key),
        };
    }
    m->atomic = s->atomic;
    struct shape *shape = arena_new(b->arena, struct shape);
    schema_fill_shape(b->arena, m, shape);
    m->shape = shape;
    s->message = m;
}

/* items of an array, or additionalProperties of an object. */
static void build_element(struct builder *b, const struct json *node, const struct field_path *up,
                          struct schema *s)
{
    const struct json *items = json_get(node, "items");
    const struct json *others = json_get(node, "additionalProperties");
    if (json_is(items, JSON_OBJ))
        s->element = build_schema(b, items, &(struct field_path){ up, .key = S("items") });
    else if (json_is(others, JSON_OBJ))
        s->element =
            build_schema(b, others, &(struct field_path){ up, .key = S("additionalProperties") });
    else if (json_bool(others, false))
        s->element = new_any_schema(b->arena); /* declares no field, so objects are pruned empty */
}

/* x-kubernetes-list-type; a list without one is atomic. */
static void build_list(struct builder *b, const struct json *node, struct schema *s)
{
    str type = json_text(json_get(node, "x-kubernetes-list-type"));
    s->list = str_eqc(type, "set")   ? SHAPE_SET_LIST
              : str_eqc(type, "map") ? SHAPE_MAP_LIST
                                     : SHAPE_ATOMIC_LIST;
    s->list_keys =
        copy_strings(b->arena, json_get(node, "x-kubernetes-list-map-keys"), &s->n_list_keys);
}

/* Prunes and validates the default by its own schema before it is accepted. */
static void build_default(struct builder *b, const struct json *node, const struct field_path *up,
                          struct schema *s)
{
    const struct json *given = json_get(node, "default");
    if (!given || json_is(given, JSON_NULL))
        return;
    struct field_path at = { up, .key = S("default") };
    struct schema_unknown unknown = { .arena = b->arena };
    struct json *value = json_copy(b->arena, given);
    schema_prune(s, value, false, &unknown);
    if (unknown.n)
        field_invalid(b->errors, &at, given, "must not have unknown fields: " STR_FMT,
                      STR_ARG(unknown.paths[0]));
    s->fallback = json_copy(b->arena, value);
    schema_default(s, b->arena, value);
    schema_validate(s, value, NULL, &at, b->errors);
}

/* The shape of a whole object: apiVersion, kind and metadata have the same shape in every object,
 * whatever the definition declares for them. */
const struct shape *schema_object_shape(struct arena *a, const struct shape *of_schema)
{
    static const str scalars[] = { { "apiVersion", 10 }, { "kind", 4 } };
    struct shape *whole = arena_new(a, struct shape);
    struct shape_field *fields = arena_array(a, of_schema->n_fields + 3, sizeof(*fields));
    *whole = *of_schema;
    whole->n_fields = 0;
    for (uint32_t i = 0; i < of_schema->n_fields; i++) {
        str name = of_schema->fields[i].name;
        if (!str_eqc(name, "metadata") && !str_eq(name, scalars[0]) && !str_eq(name, scalars[1]))
            fields[whole->n_fields++] = of_schema->fields[i];
    }
    for (size_t i = 0; i < countof(scalars); i++)
        fields[whole->n_fields++] =
            (struct shape_field){ .name = scalars[i], .shape = &shape_scalar };
    fields[whole->n_fields++] =
        (struct shape_field){ .name = S("metadata"),
                              .shape = schema_shape(types_schema("meta.v1.ObjectMeta")) };
    whole->fields = fields;
    shape_sort_fields(a, whole);
    return whole;
}

/* Builds one node; its children are complete when this returns. */
static const struct schema *build_schema(struct builder *b, const struct json *node,
                                         const struct field_path *at)
{
    struct schema *s = arena_new(b->arena, struct schema);
    s->type = parse_type(node);
    s->nullable = json_bool(json_get(node, "nullable"), false);
    s->preserve_unknown = json_bool(json_get(node, "x-kubernetes-preserve-unknown-fields"), false);
    s->embedded = json_bool(json_get(node, "x-kubernetes-embedded-resource"), false);
    s->atomic = str_eqc(json_text(json_get(node, "x-kubernetes-map-type")), "atomic");
    s->description = arena_str(b->arena, json_text(json_get(node, "description")));
    build_list(b, node, s);
    build_properties(b, node, at, s);
    build_element(b, node, at, s);
    build_limits(b, node, at, s);
    build_default(b, node, at, s);
    s->shape = schema_make_shape(b->arena, s);
    if (s->embedded)
        s->shape = schema_object_shape(b->arena, s->shape);
    return s;
}

/* Builds only if the schema is structural; the builder relies on it. */
const struct schema *schema_from_openapi(struct arena *a, const struct json *openapi,
                                         const struct field_path *at, struct field_errors *errors)
{
    size_t before = errors->n;
    schema_check_structural(openapi, at, errors);
    if (errors->n > before)
        return NULL;
    return build_schema(&(struct builder){ a, errors }, openapi, at);
}

bool schema_has_cel_rules(const struct json *openapi)
{
    if (json_is(openapi, JSON_ARR)) {
        for (uint32_t i = 0; i < openapi->n; i++)
            if (schema_has_cel_rules(openapi->items[i]))
                return true;
        return false;
    }
    json_each(m, openapi)
        if ((str_eqc(m->key, "x-kubernetes-validations") && json_len(m->value)) ||
            schema_has_cel_rules(m->value))
            return true;
    return false;
}
