/* Parses the .types tables of the built-in kinds (kinds/types/README.md has the grammar) into messages.
 *
 * The tables are compiled in, packed with gzip (embed.py), and parsed once, on first use. They are our
 * own text, so a mistake in them is a bug: the parser asserts instead of reporting, and types_test.c
 * reads every line of them.
 *
 *   text --find_types--> names --read_fields--> fields --flatten_embedded--> --make_shapes--> done
 *
 * The order of these passes matters. Types refer to each other in any order and in cycles
 * (JSONSchemaProps contains itself), so all names must exist before the first field is read. A type that
 * embeds another copies its fields, so all fields must be read before. Shapes point to the shapes of
 * other types, so they come last, when every schema is complete.
 *
 * Everything lives in one arena for the life of the process; names and descriptions are slices of the
 * unpacked text. Nothing changes after load_types(), so no caller needs a copy. */
#include "types.h"

#include "../../base/map.h"
#include "../../base/vec.h"
#include "../../net/gzip.h"

extern const unsigned char types_packed[];
extern const size_t types_packed_n;

struct type {
    struct schema_message message; /* first member: a message pointer is also a type pointer */
    struct schema schema;
    struct shape shape;
    str package;
    str lines;      /* the lines of its fields, in `types.text` */
    bool flattened; /* embedded fields have been copied */
};

static struct {
    struct arena arena;
    struct buf text;    /* unpacked tables; names and descriptions point into it */
    struct map by_name; /* full name to struct type */
    VEC(const struct schema_message *) all;
} types;

/* Takes the next word of a line; empty at its end. */
static str next_word(str *rest)
{
    while (rest->n && rest->p[0] == ' ')
        *rest = str_from(*rest, 1);
    size_t n = str_find_char(*rest, ' ');
    str word = str_upto(*rest, n);
    *rest = str_from(*rest, word.n);
    return word;
}

/* Cuts " -- description" off the end of a line and returns the description. */
static str take_description(str *line)
{
    size_t at = str_find(*line, S(" -- "));
    if (at == SIZE_MAX)
        return S("");
    str description = str_from(*line, at + 4);
    *line = str_upto(*line, at);
    return description;
}

/* A name without a dot belongs to the package of the type that refers to it. Asserts that it
 * exists. */
static struct type *find_type(str package, str name)
{
    if (str_find_char(name, '.') == SIZE_MAX)
        name = arena_printf(&types.arena, STR_FMT "." STR_FMT, STR_ARG(package), STR_ARG(name));
    struct type *type = map_get(&types.by_name, name);
    assert(type);
    return type;
}

/* True if `word` names a scalar; sets its type and format. */
static bool read_scalar_type(str word, struct schema *s)
{
    static const struct {
        const char *word;
        enum schema_type type;
        enum schema_format format;
    } scalars[] = {
        { "string", SCHEMA_STRING, SCHEMA_PLAIN },
        { "int32", SCHEMA_INTEGER, SCHEMA_INT32 },
        { "int64", SCHEMA_INTEGER, SCHEMA_INT64 },
        { "float64", SCHEMA_NUMBER, SCHEMA_PLAIN },
        { "bool", SCHEMA_BOOLEAN, SCHEMA_PLAIN },
        { "bytes", SCHEMA_STRING, SCHEMA_BYTES },
        { "quantity", SCHEMA_STRING, SCHEMA_QUANTITY },
        { "time", SCHEMA_STRING, SCHEMA_TIME },
        { "microtime", SCHEMA_STRING, SCHEMA_MICRO_TIME },
        { "intstr", SCHEMA_INT_OR_STRING, SCHEMA_PLAIN },
        { "any", SCHEMA_ANY, SCHEMA_PLAIN },
    };
    for (size_t i = 0; i < countof(scalars); i++) {
        if (!str_eqc(word, scalars[i].word))
            continue;
        s->type = scalars[i].type;
        s->format = scalars[i].format;
        s->preserve_unknown = s->type == SCHEMA_ANY;
        return true;
    }
    return false;
}

/* Parses the TYPE of a field: a scalar, []T, map:T, either:T or the name of a type. */
static void read_type_word(str package, str word, struct schema *s)
{
    if (read_scalar_type(word, s))
        return;
    bool list = str_starts(word, S("[]")), map = str_starts(word, S("map:"));
    if (list || map) {
        struct schema *element = arena_new(&types.arena, struct schema);
        read_type_word(package, str_from(word, list ? 2 : 4), element);
        s->type = list ? SCHEMA_ARRAY : SCHEMA_OBJECT;
        s->element = element;
        return;
    }
    bool either = str_starts(word, S("either:"));
    struct type *type = find_type(package, str_from(word, either ? 7 : 0));
    s->type = either ? SCHEMA_ANY : SCHEMA_OBJECT;
    s->message = &type->message;
    s->atomic = type->message.atomic;
}

/* The limits of a schema, allocated on first use with no limit set. */
static struct schema_limits *limits_for(struct schema *s)
{
    if (!s->limits) {
        struct schema_limits *limits = arena_new(&types.arena, struct schema_limits);
        limits->max_length = limits->max_items = limits->max_properties = -1;
        limits->min_length = limits->min_items = limits->min_properties = -1;
        s->limits = limits;
    }
    return (struct schema_limits *)s->limits;
}

/* keys=a,b makes a list a map of items identified by these fields. */
static void read_keys(struct schema *s, str value)
{
    str *keys = arena_array(&types.arena, 4, sizeof(*keys));
    for (str key; str_cut(&value, ',', &key);) {
        assert(s->n_list_keys < 4);
        keys[s->n_list_keys++] = key;
    }
    s->list = SHAPE_MAP_LIST;
    s->list_keys = keys;
}

/* A|B: the allowed strings. */
static void read_enum(struct schema *s, str value)
{
    struct json *values = json_new_arr(&types.arena);
    for (str word; str_cut(&value, '|', &word);)
        json_push(&types.arena, values, json_new_str(&types.arena, word));
    limits_for(s)->one_of_values = values;
}

/* patch=merge+retainKeys:name: strategies joined by "+", then the merge key. */
static void read_patch(struct schema_field *f, str value)
{
    str strategy = value;
    size_t colon = str_find_char(value, ':');
    if (colon != SIZE_MAX) {
        strategy = str_upto(value, colon);
        f->patch_key = str_from(value, colon + 1);
    }
    for (str word; str_cut(&strategy, '+', &word);)
        f->patch |= shape_patch_parse(word);
}

/* The tables are our own text, so a malformed number asserts. */
static double parse_number(str value)
{
    double number = 0;
    int failed = str_to_f64(value, &number);
    assert(!failed);
    return number;
}

/* The schema that a rule on values applies to: the items of a list, the values of a map, or the field. */
static struct schema *value_schema(struct schema *s)
{
    bool container = s->type == SCHEMA_ARRAY || (s->type == SCHEMA_OBJECT && !s->message);
    return container ? (struct schema *)s->element : s;
}

static void set_bound(struct schema *s, bool upper, str value)
{
    struct schema_limits *l = limits_for(s);
    *(upper ? &l->maximum : &l->minimum) = parse_number(value);
    l->has |= upper ? SCHEMA_HAS_MAXIMUM : SCHEMA_HAS_MINIMUM;
}

/* format=NAME, or format=NAME? if an empty text is valid too. */
static void read_format(struct schema *s, str value)
{
    struct schema_limits *l = limits_for(s);
    l->empty_allowed = str_ends(value, S("?"));
    l->format = str_upto(value, value.n - l->empty_allowed);
}

/* Parses an option that is a rule for the value (kinds/kind_rules.c applies it). False: not a rule. */
static bool read_rule(struct schema_field *f, str name, str value)
{
    struct schema *s = &f->schema, *values = value_schema(s);
    bool published = str_eqc(name, "enum"), checked = str_eqc(name, "oneof");
    if (published || checked || str_eqc(name, "words")) {
        read_enum(values, value);
        limits_for(values)->has |= published ? 0
                                   : checked ? SCHEMA_WORDS_UNPUBLISHED
                                             : SCHEMA_WORDS_UNCHECKED;
    } else if (str_eqc(name, "min") || str_eqc(name, "max")) {
        set_bound(values, str_eqc(name, "max"), value);
    } else if (str_eqc(name, "format")) {
        read_format(values, value);
    } else if (str_eqc(name, "keyformat")) {
        limits_for(s)->key_format = value;
    } else if (str_eqc(name, "most")) {
        limits_for(s)->max_items = (int64_t)parse_number(value);
    } else if (str_eqc(name, "unique")) {
        limits_for(s)->unique = true;
        limits_for(s)->unique_by = value;
    } else if (str_eqc(name, "immutable")) {
        f->immutable = true;
    } else if (str_eqc(name, "need")) {
        f->needed = true;
    } else {
        return false;
    }
    return true;
}

/* Parses one OPTION of a field, such as min=1 or keys=name. */
static void read_option(struct schema_field *f, str option)
{
    struct schema *s = &f->schema;
    size_t at = str_find_char(option, '=');
    str name = str_upto(option, at), value = at == SIZE_MAX ? S("") : str_from(option, at + 1);
    if (read_rule(f, name, value))
        return;
    if (str_eqc(name, "default")) {
        struct json *fallback = NULL;
        int failed = json_parse(&types.arena, value, &fallback, NULL);
        assert(!failed);
        s->fallback = fallback;
    } else if (str_eqc(name, "keys")) {
        read_keys(s, value);
    } else if (str_eqc(name, "patch")) {
        read_patch(f, value);
    } else if (str_eqc(name, "set")) {
        s->list = SHAPE_SET_LIST;
    } else {
        assert(str_eqc(name, "atomic"));
        s->atomic = true;
    }
}

/* Takes the flags ! ? * off the end of a field name and derives its presence. */
static void read_flags(str *name, struct schema_field *f)
{
    bool keep = false, always = false;
    for (; name->n; name->n--) {
        char last = name->p[name->n - 1];
        if (last == '!')
            f->required = true;
        else if (last == '?')
            keep = true;
        else if (last == '*')
            always = true;
        else
            break;
    }
    f->presence = keep && always ? SCHEMA_ALWAYS_NULL
                  : always       ? SCHEMA_ALWAYS
                  : keep         ? SCHEMA_KEEP
                                 : SCHEMA_OMIT;
}

/* Parses one line: NUMBER NAME[FLAGS] TYPE [OPTION...] [-- DESCRIPTION]. */
static void read_field(const struct type *type, str line, struct schema_field *f)
{
    f->schema.description = take_description(&line);
    int64_t number = 0;
    int failed = str_to_i64(next_word(&line), &number);
    assert(!failed && number >= 0 && number < UINT16_MAX);
    f->number = (uint16_t)number;
    str name = next_word(&line);
    read_flags(&name, f);
    f->name = str_eqc(name, "@") ? S("") : name;
    read_type_word(type->package, next_word(&line), &f->schema);
    for (str option; (option = next_word(&line)).n;)
        read_option(f, option);
}

/* Second pass, for one type: counts its lines, then parses them. */
static void read_fields(struct type *type)
{
    uint32_t n = 0;
    for (str rest = type->lines, line; rest.n && str_cut(&rest, '\n', &line);)
        n++;
    struct schema_field *fields = arena_array(&types.arena, n, sizeof(*fields));
    n = 0;
    for (str rest = type->lines, line; rest.n && str_cut(&rest, '\n', &line);)
        read_field(type, line, &fields[n++]);
    type->message.fields = fields;
    type->message.n_fields = n;
}

/* Appends the fields of embedded types to the type itself. The copies have no number: in protobuf
 * they are found through the embedding field. */
static void flatten_embedded(struct type *type)
{
    if (type->flattened)
        return;
    type->flattened = true;
    struct schema_message *m = &type->message;
    uint32_t n_embedded = 0;
    for (uint32_t i = 0; i < m->n_fields; i++) {
        if (m->fields[i].name.n)
            continue;
        flatten_embedded((struct type *)(void *)m->fields[i].schema.message);
        n_embedded += m->fields[i].schema.message->n_fields;
    }
    if (!n_embedded)
        return;
    struct schema_field *fields =
        arena_array(&types.arena, m->n_fields + n_embedded, sizeof(*fields));
    memcpy(fields, m->fields, m->n_fields * sizeof(*fields));
    uint32_t n = m->n_fields;
    for (uint32_t i = 0; i < m->n_fields; i++) {
        const struct schema_message *inner =
            m->fields[i].name.n ? NULL : m->fields[i].schema.message;
        for (uint32_t j = 0; inner && j < inner->n_fields; j++) {
            if (!inner->fields[j].name.n)
                continue;
            fields[n] = inner->fields[j];
            fields[n++].number = 0;
        }
    }
    m->fields = fields;
    m->n_fields = n;
}

/* Registers the type that a "type" line opens; its fields are read later. */
static struct type *add_type(str package, str line)
{
    struct type *type = arena_new(&types.arena, struct type);
    type->message.description = take_description(&line);
    str name = next_word(&line);
    type->message.atomic = str_eqc(next_word(&line), "atomic");
    type->message.name =
        arena_printf(&types.arena, STR_FMT "." STR_FMT, STR_ARG(package), STR_ARG(name));
    type->message.shape = &type->shape;
    type->package = package;
    type->schema = (struct schema){ .type = SCHEMA_OBJECT,
                                    .message = &type->message,
                                    .atomic = type->message.atomic,
                                    .shape = &type->shape };
    struct type *existing = map_put(&types.by_name, type->message.name, type);
    assert(!existing);
    vec_push(&types.all, &type->message);
    return type;
}

/* Unzips the compiled-in tables. */
static void unpack_text(void)
{
    str packed = { (const char *)types_packed, types_packed_n };
    struct gzip *z = gzip_reader_new();
    int failed = gzip_read(z, &packed, &types.text, SIZE_MAX / 2);
    assert(!failed && gzip_is_complete(z));
    gzip_free(z);
}

/* First pass: registers every type and remembers which lines hold its fields. */
static void find_types(void)
{
    str package = S(""), rest = buf_str(&types.text), line;
    for (struct type *type = NULL; rest.n && str_cut(&rest, '\n', &line);) {
        if (str_starts(line, S("package "))) {
            package = str_from(line, 8);
        } else if (str_starts(line, S("type "))) {
            type = add_type(package, str_from(line, 5));
            type->lines = (str){ rest.p, 0 };
        } else {
            assert(type && str_starts(line, S(" ")));
            type->lines.n = (size_t)(line.p + line.n - type->lines.p);
        }
    }
}

/* Shapes from the inside out: the shape of a list refers to the shape of its items. */
static void make_shape(struct schema *s)
{
    if (s->element)
        make_shape((struct schema *)s->element);
    s->shape = schema_make_shape(&types.arena, s);
}

/* Last pass: gives every field its shape, then every message. */
static void make_shapes(void)
{
    for (size_t i = 0; i < types.all.n; i++) {
        struct schema_message *m = (struct schema_message *)types.all.at[i];
        for (uint32_t j = 0; j < m->n_fields; j++)
            make_shape(&m->fields[j].schema);
    }
    for (size_t i = 0; i < types.all.n; i++)
        schema_fill_shape(&types.arena, types.all.at[i], (struct shape *)types.all.at[i]->shape);
}

/* Runs the passes once; later calls return at once. */
static void load_types(void)
{
    if (types.all.n)
        return;
    unpack_text();
    find_types();
    for (size_t i = 0; i < types.all.n; i++)
        read_fields((struct type *)(void *)types.all.at[i]);
    for (size_t i = 0; i < types.all.n; i++)
        flatten_embedded((struct type *)(void *)types.all.at[i]);
    make_shapes();
}

const struct schema_message *types_message(const char *name)
{
    load_types();
    return map_get(&types.by_name, str_c(name));
}

const struct schema *types_schema(const char *name)
{
    load_types();
    const struct type *type = map_get(&types.by_name, str_c(name));
    assert(type);
    return &type->schema;
}

const struct schema_message *const *types_all(size_t *ret_n)
{
    load_types();
    *ret_n = types.all.n;
    return types.all.at;
}

str types_openapi_name(struct arena *a, str name)
{
    const char *prefix = str_starts(name, S("meta.")) ? "io.k8s.apimachinery.pkg.apis."
                         : str_starts(name, S("apiextensions."))
                             ? "io.k8s.apiextensions-apiserver.pkg.apis."
                             : "io.k8s.api.";
    return arena_printf(a, "%s" STR_FMT, prefix, STR_ARG(name));
}
