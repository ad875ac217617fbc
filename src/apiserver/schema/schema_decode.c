/* Decodes a JSON value as a built-in type.
 *
 * kube-apiserver decodes into Go structs and encodes them again. An object that makes this round trip loses
 * unknown fields and empty optional values, and gains the fields that are always written (`status: {}`,
 * `creationTimestamp: null`). Clients rely on both, so this walk reproduces the result on the tree, in
 * place and in one pass:
 *
 *   value of the wrong type        error naming the path
 *   unknown field                  dropped, reported to `unknown`
 *   null                           dropped
 *   zero, "", [] or {}             dropped if the field's presence is SCHEMA_OMIT
 *   absent                         written as zero or null if the presence is SCHEMA_ALWAYS*
 *   quantity, time, base64         rewritten in canonical form
 *
 * New nodes come from the caller's arena. Recursion is as deep as the value, which the parser limits. */
#include "schema.h"

#include "../../base/base64.h"
#include "../../base/quantity.h"
#include "../../base/rfc3339.h"

struct decoder {
    struct arena *arena;
    struct schema_unknown *unknown;
    err_t *e;
};

static int decode_value(struct decoder *d, const struct schema *s, struct json *value,
                        const struct field_path *at);

/* Returns -EINVAL: "PATH: expected WANTED, got TYPE". */
static int fail_type(struct decoder *d, const struct field_path *at, const char *wanted,
                     const struct json *got)
{
    str path = field_path_text(d->arena, at);
    return err_set(d->e, EINVAL, STR_FMT ": expected %s, got %s", STR_ARG(path), wanted,
                   json_type_name(got));
}

/* ---- zero values */

static struct json *zero_value(struct arena *a, const struct schema *s);

/* Adds the fields that Go writes even when they are not set. */
static void add_always_written(struct arena *a, const struct schema_message *m, struct json *object)
{
    for (uint32_t i = 0; i < m->n_fields; i++) {
        const struct schema_field *f = &m->fields[i];
        if (!f->name.n || f->presence < SCHEMA_ALWAYS || json_get_str(object, f->name))
            continue;
        bool null = f->presence == SCHEMA_ALWAYS_NULL;
        json_set(a, object, f->name, null ? json_new_null(a) : zero_value(a, &f->schema));
    }
}

/* What Go writes for a field of this type that is not set. */
static struct json *zero_value(struct arena *a, const struct schema *s)
{
    if (s->format == SCHEMA_TIME || s->format == SCHEMA_MICRO_TIME || s->format == SCHEMA_BYTES)
        return json_new_null(a);
    switch (s->type) {
    case SCHEMA_OBJECT:
        if (!s->message)
            return json_new_null(a);
        struct json *object = json_new_obj(a);
        add_always_written(a, s->message, object);
        return object;
    case SCHEMA_STRING:
        return json_new_str(a, s->format == SCHEMA_QUANTITY ? S("0") : S(""));
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_INT_OR_STRING:
        return json_new_int(a, 0);
    case SCHEMA_BOOLEAN:
        return json_new_bool(a, false);
    default:
        return json_new_null(a);
    }
}

/* True for what Go's `omitempty` leaves out. */
static bool is_zero(const struct json *v)
{
    switch (v->type) {
    case JSON_BOOL:
        return !v->boolean;
    case JSON_INT:
        return v->integer == 0;
    case JSON_REAL:
        return v->real == 0;
    case JSON_STR:
    case JSON_ARR:
    case JSON_OBJ:
        return v->n == 0;
    default:
        return true;
    }
}

/* ---- scalars */

/* Accepts text or a number and writes the canonical text. */
static int decode_quantity(struct decoder *d, struct json *value, const struct field_path *at)
{
    char room[QUANTITY_TEXT_MAX];
    str text = json_text(value), canonical = text;
    if (value->type == JSON_INT || value->type == JSON_REAL)
        text = json_to_str(d->arena, value);
    else if (value->type != JSON_STR)
        return fail_type(d, at, "a quantity", value);
    err_t why;
    if (quantity_canonical(text, room, &canonical, &why) < 0) {
        str path = field_path_text(d->arena, at);
        return err_set(d->e, EINVAL, STR_FMT ": %s", STR_ARG(path), why.text);
    }
    *value = *json_new_str(d->arena, canonical);
    return 0;
}

/* Resource amounts have no finer unit than a thousandth; kube-apiserver rounds up on decode. */
static void round_to_milli(struct arena *a, struct json *value)
{
    char room[QUANTITY_TEXT_MAX];
    struct quantity q;
    int64_t milli = 0;
    if (quantity_parse(json_text(value), &q, NULL) < 0 || quantity_scaled(&q, -3, &milli) < 0)
        return;
    struct quantity rounded = quantity_of(milli, -3, q.format);
    if (quantity_cmp(&q, &rounded) != 0)
        *value = *json_new_str(a, quantity_text(&rounded, room));
}

/* Parses RFC 3339 and writes it in UTC, to the second or to the microsecond. */
static int decode_time(struct decoder *d, const struct schema *s, struct json *value,
                       const struct field_path *at)
{
    char text[RFC3339_TEXT_MAX];
    int64_t instant = 0;
    err_t why;
    bool micro = s->format == SCHEMA_MICRO_TIME;
    int failed = micro ? rfc3339_parse_micro(json_text(value), &instant, &why)
                       : rfc3339_parse(json_text(value), &instant, &why);
    if (failed) {
        str path = field_path_text(d->arena, at);
        return err_set(d->e, EINVAL, STR_FMT ": %s", STR_ARG(path), why.text);
    }
    *value = *json_new_str(d->arena,
                           micro ? rfc3339_micro_text(instant, text) : rfc3339_text(instant, text));
    return 0;
}

/* Accepts base64 with line breaks and writes it without. */
static int decode_bytes(struct decoder *d, struct json *value, const struct field_path *at)
{
    auto_buf struct buf bytes = { 0 }, text = { 0 };
    if (base64_decode(&bytes, json_text(value)) < 0)
        return fail_type(d, at, "base64 text", value);
    base64_encode(&text, buf_str(&bytes)); /* canonical: drops line breaks */
    *value = *json_new_str(d->arena, buf_str(&text));
    return 0;
}

static int decode_string(struct decoder *d, const struct schema *s, struct json *value,
                         const struct field_path *at)
{
    if (s->format == SCHEMA_QUANTITY)
        return decode_quantity(d, value, at);
    if (value->type != JSON_STR)
        return fail_type(d, at, "a string", value);
    if (s->format == SCHEMA_TIME || s->format == SCHEMA_MICRO_TIME)
        return decode_time(d, s, value, at);
    return s->format == SCHEMA_BYTES ? decode_bytes(d, value, at) : 0;
}

/* An integer that does not fit the width of its field is an error, not truncated. */
static int decode_integer(struct decoder *d, const struct schema *s, const struct json *value,
                          const struct field_path *at)
{
    if (value->type != JSON_INT)
        return fail_type(d, at, "an integer", value);
    if (s->format == SCHEMA_INT32 && (value->integer < INT32_MIN || value->integer > INT32_MAX))
        return fail_type(d, at, "an integer of 32 bits", value);
    return 0;
}

static int decode_int_or_string(struct decoder *d, const struct json *value,
                                const struct field_path *at)
{
    if (value->type == JSON_STR)
        return 0;
    if (value->type != JSON_INT || value->integer < INT32_MIN || value->integer > INT32_MAX)
        return fail_type(d, at, "an integer of 32 bits or a string", value);
    return 0;
}

/* ---- containers */

/* Decodes the fields of an object and drops what is unknown, null or empty. */
static int decode_message(struct decoder *d, const struct schema *s, struct json *value,
                          const struct field_path *up)
{
    if (value->type != JSON_OBJ)
        return fail_type(d, up, "an object", value);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < value->n; i++) {
        struct json_member m = value->members[i];
        struct field_path at = { up, .key = m.key };
        const struct schema_field *f = schema_field(s, m.key);
        if (!f) {
            schema_unknown_add(d->unknown, &at);
            continue;
        }
        if (json_is(m.value, JSON_NULL))
            continue;
        int failed = decode_value(d, &f->schema, m.value, &at);
        if (failed)
            return failed;
        if (f->presence == SCHEMA_OMIT && is_zero(m.value))
            continue;
        value->members[kept++] = m;
    }
    value->n = kept;
    json_reindex(value);
    add_always_written(d->arena, s->message, value);
    return 0;
}

/* Decodes the values of a map. null becomes the zero value of the element type. */
static int decode_map(struct decoder *d, const struct schema *s, struct json *value,
                      const struct field_path *up)
{
    if (value->type != JSON_OBJ)
        return fail_type(d, up, "an object", value);
    json_each(m, value) {
        struct field_path at = { up, .key = m->key };
        if (json_is(m->value, JSON_NULL) && s->element->type != SCHEMA_ANY)
            m->value = s->element->format == SCHEMA_BYTES ? json_new_str(d->arena, S(""))
                                                          : zero_value(d->arena, s->element);
        if (json_is(m->value, JSON_NULL))
            continue;
        int failed = decode_value(d, s->element, m->value, &at);
        if (failed)
            return failed;
        if (s->element->format == SCHEMA_QUANTITY)
            round_to_milli(d->arena, m->value);
    }
    return 0;
}

/* Decodes the items of a list. null becomes the zero value of the element type. */
static int decode_list(struct decoder *d, const struct schema *s, struct json *value,
                       const struct field_path *up)
{
    if (value->type != JSON_ARR)
        return fail_type(d, up, "an array", value);
    for (uint32_t i = 0; i < value->n; i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        if (json_is(value->items[i], JSON_NULL) && s->element->type != SCHEMA_ANY)
            value->items[i] = zero_value(d->arena, s->element);
        if (json_is(value->items[i], JSON_NULL))
            continue;
        int failed = decode_value(d, s->element, value->items[i], &at);
        if (failed)
            return failed;
    }
    return 0;
}

/* Decodes one value by its type; returns -EINVAL with a sentence on a type mismatch. */
static int decode_value(struct decoder *d, const struct schema *s, struct json *value,
                        const struct field_path *at)
{
    switch (s->type) {
    case SCHEMA_OBJECT:
        return s->message ? decode_message(d, s, value, at) : decode_map(d, s, value, at);
    case SCHEMA_ARRAY:
        return decode_list(d, s, value, at);
    case SCHEMA_STRING:
        return decode_string(d, s, value, at);
    case SCHEMA_INTEGER:
        return decode_integer(d, s, value, at);
    case SCHEMA_INT_OR_STRING:
        return decode_int_or_string(d, value, at);
    case SCHEMA_NUMBER:
        if (value->type != JSON_INT && value->type != JSON_REAL)
            return fail_type(d, at, "a number", value);
        return 0;
    case SCHEMA_BOOLEAN:
        return value->type == JSON_BOOL ? 0 : fail_type(d, at, "a boolean", value);
    default: /* any, or either:T, below which kube-apiserver reports no unknown fields */
        if (!s->message || value->type != JSON_OBJ)
            return 0;
        return decode_message(&(struct decoder){ d->arena, NULL, d->e }, s, value, at);
    }
}

int schema_decode(const struct schema *s, struct arena *a, struct json *value,
                  struct schema_unknown *unknown, err_t *e)
{
    return decode_value(&(struct decoder){ a, unknown, e }, s, value, NULL);
}

int schema_decode_at(const struct schema *s, struct arena *a, struct json *value,
                     const struct field_path *at, struct schema_unknown *unknown, err_t *e)
{
    return decode_value(&(struct decoder){ a, unknown, e }, s, value, at);
}

/* Truncates integers to the width of their fields, as a Go conversion would. */
void schema_wrap_integers(const struct schema *s, struct json *value)
{
    if (json_is(value, JSON_INT) && s->format == SCHEMA_INT32)
        value->integer = (int32_t)(uint32_t)value->integer;
    for (uint32_t i = 0; json_is(value, JSON_ARR) && s->element && i < value->n; i++)
        schema_wrap_integers(s->element, value->items[i]);
    json_each(m, value) {
        const struct schema_field *f = schema_field(s, m->key);
        if (f)
            schema_wrap_integers(&f->schema, m->value);
    }
}
