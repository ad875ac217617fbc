/* OpenAPI schemas as CEL types.
 *
 * What an expression can see of an object: properties with a type, items, additionalProperties with a schema, and of a
 * whole resource apiVersion, kind and metadata.name and generateName. Everything else does not exist for it. Sizes come
 * along for the estimated cost: maxItems, maxProperties, maxLength, or what fits in a request of 3 MiB. */
#include "cel_node.h"

#define REQUEST_BYTES INT64_C(3145728)

/* Reserved words, which an expression must escape as __word__. */
static bool is_keyword(str name)
{
    static const char *const words[] = { "true",     "false",     "null",     "in",   "as",
                                         "break",    "const",     "continue", "else", "for",
                                         "function", "if",        "import",   "let",  "loop",
                                         "package",  "namespace", "return",   "var",  "void",
                                         "while" };
    for (size_t i = 0; i < countof(words); i++)
        if (str_eqc(name, words[i]))
            return true;
    return false;
}

/* A field name as an identifier, by the rules of Kubernetes; keywords are wrapped, so that every valid name
 * stays unique. */
static bool cel_escape(struct arena *a, str name, str *ret)
{
    auto_buf struct buf out = { 0 };
    if (!name.n || (name.p[0] >= '0' && name.p[0] <= '9'))
        return false;
    if (is_keyword(name)) {
        *ret = arena_printf(a, "__" STR_FMT "__", STR_ARG(name));
        return true;
    }
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (c == '_' && i + 1 < name.n && name.p[i + 1] == '_')
            buf_put(&out, S("__underscores__")), i++;
        else if (plain || c == '_')
            buf_putc(&out, c);
        else if (c == '.' || c == '-' || c == '/')
            buf_put(&out, c == '.' ? S("__dot__") : c == '-' ? S("__dash__") : S("__slash__"));
        else
            return false;
    }
    *ret = arena_str(a, buf_str(&out));
    return true;
}

const struct cel_field *cel_find_field(const struct cel_type *t, str key)
{
    uint32_t low = 0, high = t->n_fields;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        int order = str_cmp(key, t->fields[mid].key);
        if (!order)
            return &t->fields[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

static int64_t get_limit(const struct json *schema, const char *key, int64_t otherwise)
{
    const struct json *limit = json_get(schema, key);
    return limit ? MAX(json_int(limit, 0), (int64_t)0) : otherwise;
}

/* Text, and the formats of text that are types of their own. */
static const struct cel_type *type_of_text(struct arena *a, const struct json *schema,
                                           struct cel_type *t)
{
    (void)a;
    str format = json_text(json_get(schema, "format"));
    t->kind = CEL_STRING;
    t->min_size = 2;
    t->max_elements = REQUEST_BYTES - 2;
    if (str_eqc(format, "byte")) {
        t->kind = CEL_BYTES;
        t->max_elements = get_limit(schema, "maxLength", t->max_elements);
    } else if (str_eqc(format, "duration")) {
        t->kind = CEL_DURATION;
        t->min_size = 3, t->max_elements = 32;
    } else if (str_eqc(format, "date")) {
        t->kind = CEL_TIMESTAMP;
        t->date = true;
        t->min_size = t->max_elements = 12;
    } else if (str_eqc(format, "date-time")) {
        t->kind = CEL_TIMESTAMP;
        t->min_size = 21, t->max_elements = 32;
    } else if (json_get(schema, "maxLength")) {
        int64_t most = get_limit(schema, "maxLength", 0);
        t->max_elements = most > INT64_MAX / 4 ? INT64_MAX : most * 4; /* bytes of a code point */
    } else if (json_len(json_get(schema, "enum"))) {
        t->max_elements = 0;
        const struct json *values = json_get(schema, "enum");
        for (uint32_t i = 0; i < values->n; i++)
            t->max_elements = MAX(t->max_elements, (int64_t)json_text(values->items[i]).n);
    }
    t->from_text = t->kind != CEL_STRING;
    return t;
}

static int compare_fields(const void *a, const void *b)
{
    return str_cmp(((const struct cel_field *)a)->key, ((const struct cel_field *)b)->key);
}

static bool is_required(const struct json *schema, str name)
{
    const struct json *required = json_get(schema, "required");
    for (uint32_t i = 0; i < json_len(required); i++)
        if (str_eq(json_text(required->items[i]), name))
            return true;
    return false;
}

/* kind, apiVersion and the visible part of metadata. */
static uint32_t add_resource_fields(struct cel_field *fields)
{
    static const struct cel_field metadata_fields[] = {
        { STR_INIT("generateName"), STR_INIT("generateName"), NULL },
        { STR_INIT("name"), STR_INIT("name"), NULL },
    };
    /* limits of text without maxLength */
    static const struct cel_type text = { .kind = CEL_STRING,
                                          .min_size = 2,
                                          .max_elements = REQUEST_BYTES - 2 };
    static struct cel_field named[countof(metadata_fields)];
    static struct cel_type metadata = { .kind = CEL_OBJECT,
                                        .name = "object",
                                        .fields = named,
                                        .n_fields = countof(named),
                                        .min_size = 2 };
    for (size_t i = 0; i < countof(named); i++) {
        named[i] = metadata_fields[i];
        named[i].type = &text;
    }
    fields[0] = (struct cel_field){ S("apiVersion"), S("apiVersion"), &text };
    fields[1] = (struct cel_field){ S("kind"), S("kind"), &text };
    fields[2] = (struct cel_field){ S("metadata"), S("metadata"), &metadata };
    return 3;
}

/* Fields sorted by key, for cel_find_field(). min_size counts the required fields, which bounds how many such
 * objects fit in a request; a default makes a field free. */
static const struct cel_type *type_of_object(struct arena *a, const struct json *schema, bool root,
                                             struct cel_type *t)
{
    const struct json *properties = json_get(schema, "properties");
    struct cel_field *fields = arena_array(a, json_len(properties) + 3, sizeof(*fields));
    uint32_t n = root ? add_resource_fields(fields) : 0;
    t->kind = CEL_OBJECT;
    t->name = "object";
    t->min_size = 2;
    json_each(m, properties) {
        bool known = root && (str_eqc(m->key, "apiVersion") || str_eqc(m->key, "kind") ||
                              str_eqc(m->key, "metadata"));
        bool embedded = json_bool(json_get(m->value, "x-kubernetes-embedded-resource"), false);
        const struct cel_type *type = known ? NULL : cel_type_of_schema(a, m->value, embedded);
        if (!type)
            continue;
        str name = S("");
        cel_escape(a, m->key, &name);
        fields[n++] = (struct cel_field){ arena_str(a, m->key), name, type };
        if (is_required(schema, m->key) && !json_get(m->value, "default"))
            t->min_size += (int64_t)m->key.n + type->min_size + 4;
    }
    qsort(fields, n, sizeof(*fields), compare_fields);
    t->fields = fields;
    t->n_fields = n;
    return t;
}

/* Without maxItems, as many items as fit in the largest request, each with its comma. */
static const struct cel_type *type_of_list(struct arena *a, const struct json *schema,
                                           struct cel_type *t)
{
    const struct json *items = json_get(schema, "items");
    bool embedded = json_bool(json_get(items, "x-kubernetes-embedded-resource"), false);
    t->kind = CEL_LIST;
    t->of[0] = json_is(items, JSON_OBJ) ? cel_type_of_schema(a, items, embedded) : NULL;
    if (!t->of[0])
        return NULL;
    t->min_size = 2;
    t->max_elements = get_limit(schema, "maxItems", (REQUEST_BYTES - 2) / (t->of[0]->min_size + 1));
    str type = json_text(json_get(schema, "x-kubernetes-list-type"));
    t->list = str_eqc(type, "set")   ? SHAPE_SET_LIST
              : str_eqc(type, "map") ? SHAPE_MAP_LIST
                                     : SHAPE_ATOMIC_LIST;
    const struct json *keys = json_get(schema, "x-kubernetes-list-map-keys");
    str *names = arena_array(a, json_len(keys) + 1, sizeof(*names));
    for (uint32_t i = 0; i < json_len(keys); i++)
        names[i] = arena_str(a, json_text(keys->items[i]));
    t->list_keys = names;
    t->n_list_keys = (uint32_t)json_len(keys);
    return t;
}

/* Like a list; each entry has at least quotes, an empty key, a colon and a comma. */
static const struct cel_type *type_of_map(struct arena *a, const struct json *schema,
                                          const struct json *others, struct cel_type *t)
{
    bool embedded = json_bool(json_get(others, "x-kubernetes-embedded-resource"), false);
    t->kind = CEL_MAP;
    t->of[0] = &cel_string;
    t->of[1] = cel_type_of_schema(a, others, embedded);
    if (!t->of[1])
        return NULL;
    t->min_size = 2;
    t->max_elements =
        get_limit(schema, "maxProperties", (REQUEST_BYTES - 2) / (t->of[1]->min_size + 6));
    return t;
}

/* Quantities and other int-or-string values are dyn: their kind is known only at run time. */
const struct cel_type *cel_type_of_schema(struct arena *a, const struct json *schema, bool root)
{
    struct cel_type *t = arena_new(a, struct cel_type);
    str type = json_text(json_get(schema, "type"));
    const struct json *others = json_get(schema, "additionalProperties");
    t->nullable = json_bool(json_get(schema, "nullable"), false);
    t->min_size = 1;
    if (json_bool(json_get(schema, "x-kubernetes-int-or-string"), false)) {
        int64_t most = get_limit(schema, "maxLength", 0);
        t->kind = CEL_DYN;
        t->max_elements = json_get(schema, "maxLength") ? most * 4 : REQUEST_BYTES - 2;
        return t;
    }
    if (str_eqc(type, "array"))
        return type_of_list(a, schema, t);
    if (str_eqc(type, "object") && json_is(others, JSON_OBJ))
        return type_of_map(a, schema, others, t);
    if (str_eqc(type, "object"))
        return type_of_object(a, schema, root, t);
    if (str_eqc(type, "string"))
        return type_of_text(a, schema, t);
    if (str_eqc(type, "boolean"))
        t->min_size = 4;
    t->kind = str_eqc(type, "boolean") ? CEL_BOOL : str_eqc(type, "number") ? CEL_DOUBLE : CEL_INT;
    return str_eqc(type, "boolean") || str_eqc(type, "number") || str_eqc(type, "integer") ? t
                                                                                           : NULL;
}
