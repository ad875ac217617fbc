/* Decodes protobuf bodies by the field numbers in the .types tables.
 *
 *   "k8s\0"  runtime.Unknown {  1: TypeMeta { 1: apiVersion, 2: kind }   2: bytes of the object  }
 *                                                                             |
 *   types_message(kind) ------------------ numbers, names, types ------> read_message ---> JSON tree
 *
 * The result is the tree that the same object would have as JSON, so nothing after this step knows which one
 * the client sent. Some types differ between the two encodings:
 *
 *   time, quantity, int-or-string    messages on the wire, scalars in JSON
 *   bytes                            raw on the wire, base64 in JSON
 *   map                              a repeated message { 1: key, 2: value }
 *   embedded type                    a message of its own number; its fields belong to the parent in JSON
 *
 * The body is untrusted. Everything is bounded by it: a length that exceeds its message is an error, nesting
 * is limited to NESTING_MAX, and unknown field numbers are skipped, so the fields of a newer client do no
 * harm. test/fuzz/protobuf_fuzz.c feeds it arbitrary bytes. */
#include "protobuf.h"

#include "../schema/types.h"
#include "kinds.h"

#include "../../base/base64.h"
#include "../../base/rfc3339.h"

enum { NESTING_MAX = 64 };
enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct reader {
    struct arena *arena;
    err_t *e;
    unsigned depth;
};

struct item { /* one field on the wire */
    uint32_t number;
    enum wire wire;
    uint64_t integer; /* WIRE_VARINT, WIRE_FIXED64, WIRE_FIXED32 */
    str bytes;        /* WIRE_BYTES */
};

static int read_message(struct reader *r, const struct schema_message *m, str bytes,
                        struct json *object);

static int fail_body(struct reader *r, const char *what)
{
    return err_set(r->e, EINVAL, "malformed protobuf body: %s", what);
}

/* ---- the wire */

/* False if the number does not end within ten bytes or within the message. */
static bool take_varint(str *bytes, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < bytes->n; i++) {
        uint64_t part = (unsigned char)bytes->p[i];
        value |= (part & 0x7f) << (7 * i);
        if (part & 0x80)
            continue;
        *bytes = str_from(*bytes, i + 1);
        *ret = value;
        return true;
    }
    return false;
}

/* Little-endian, four or eight bytes. */
static bool take_fixed(str *bytes, unsigned width, uint64_t *ret)
{
    uint64_t value = 0;
    if (bytes->n < width)
        return false;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)(unsigned char)bytes->p[i] << (8 * i);
    *bytes = str_from(*bytes, width);
    *ret = value;
    return true;
}

/* Consumes one field from the wire. */
static int take_item(struct reader *r, str *bytes, struct item *ret)
{
    uint64_t key = 0, length = 0;
    if (!take_varint(bytes, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return fail_body(r, "field without a number");
    *ret = (struct item){ .number = (uint32_t)(key >> 3), .wire = (enum wire)(key & 7) };
    switch (ret->wire) {
    case WIRE_VARINT:
        return take_varint(bytes, &ret->integer) ? 0 : fail_body(r, "unterminated number");
    case WIRE_FIXED64:
        return take_fixed(bytes, 8, &ret->integer) ? 0 : fail_body(r, "truncated number");
    case WIRE_FIXED32:
        return take_fixed(bytes, 4, &ret->integer) ? 0 : fail_body(r, "truncated number");
    case WIRE_BYTES:
        if (!take_varint(bytes, &length) || length > bytes->n)
            return fail_body(r, "field longer than its message");
        ret->bytes = str_upto(*bytes, (size_t)length);
        *bytes = str_from(*bytes, (size_t)length);
        return 0;
    default:
        return fail_body(r, "unsupported wire type");
    }
}

/* ---- values that are messages on the wire and scalars in JSON */

struct parts { /* fields 1 to 3 of a small message */
    uint64_t integer[4];
    str text[4];
};

/* Reads the first three fields of a small wrapper message. */
static int read_parts(struct reader *r, str bytes, struct parts *ret)
{
    *ret = (struct parts){ 0 };
    while (bytes.n) {
        struct item item;
        int failed = take_item(r, &bytes, &item);
        if (failed)
            return failed;
        if (item.number > 3)
            continue;
        ret->integer[item.number] = item.integer;
        ret->text[item.number] = item.bytes;
    }
    return 0;
}

/* A message of seconds and nanoseconds; empty or out of range is null. */
static struct json *read_time(struct reader *r, const struct parts *parts, bool empty, bool micro)
{
    char text[RFC3339_TEXT_MAX];
    int64_t seconds = (int64_t)parts->integer[1], nanos = (int64_t)parts->integer[2];
    int64_t most = INT64_C(253402300799); /* the last second of the year 9999 */
    if (empty || seconds < -INT64_C(62135596800) || seconds > most)
        return json_new_null(r->arena);
    if (!micro)
        return json_new_str(r->arena, rfc3339_text(seconds, text));
    int64_t us = seconds * 1000000 + (nanos % 1000000000) / 1000;
    return json_new_str(r->arena, rfc3339_micro_text(us, text));
}

static struct json *read_int_or_string(struct reader *r, const struct parts *parts)
{
    return parts->integer[1] ? json_new_str(r->arena, parts->text[3])
                             : json_new_int(r->arena, (int32_t)parts->integer[2]);
}

static int read_raw(struct reader *r, str text, struct json **ret)
{
    *ret = json_new_null(r->arena);
    return text.n ? json_parse(r->arena, text, ret, r->e) : 0;
}

/* ---- values */

/* A string, base64 bytes, a quantity or a time. */
static int read_text(struct reader *r, const struct schema *s, const struct item *item,
                     struct json **ret)
{
    if (item->wire != WIRE_BYTES)
        return fail_body(r, "expected a string, got a number");
    if (s->format == SCHEMA_BYTES) {
        auto_buf struct buf text = { 0 };
        base64_encode(&text, item->bytes);
        *ret = json_new_str(r->arena, buf_str(&text));
        return 0;
    }
    if (s->format == SCHEMA_PLAIN) {
        *ret = json_new_str(r->arena, item->bytes);
        return 0;
    }
    struct parts parts;
    int failed = read_parts(r, item->bytes, &parts);
    if (failed)
        return failed;
    if (s->format == SCHEMA_QUANTITY)
        *ret = json_new_str(r->arena, parts.text[1].n ? parts.text[1] : S("0"));
    else
        *ret = read_time(r, &parts, !item->bytes.n, s->format == SCHEMA_MICRO_TIME);
    return 0;
}

/* An integer, a double or a bool. */
static int read_number(struct reader *r, const struct schema *s, const struct item *item,
                       struct json **ret)
{
    double real = 0;
    if (item->wire == WIRE_BYTES)
        return fail_body(r, "expected a number, got bytes");
    if (s->type == SCHEMA_BOOLEAN) {
        *ret = json_new_bool(r->arena, item->integer != 0);
    } else if (s->type == SCHEMA_NUMBER) {
        if (item->wire != WIRE_FIXED64)
            return fail_body(r, "expected a 64-bit floating point number");
        memcpy(&real, &item->integer, sizeof(real));
        *ret = json_new_real(r->arena, real);
    } else {
        int64_t integer =
            s->format == SCHEMA_INT32 ? (int32_t)(uint32_t)item->integer : (int64_t)item->integer;
        *ret = json_new_int(r->arena, integer);
    }
    return 0;
}

static int read_value(struct reader *r, const struct schema *s, const struct item *item,
                      struct json **ret);

/* A list as the value of a map: a message whose first field repeats. */
static int read_list(struct reader *r, const struct schema *s, str bytes, struct json *list)
{
    int failed = 0;
    while (bytes.n && !failed) {
        struct json *value = NULL;
        struct item item;
        failed = take_item(r, &bytes, &item);
        if (!failed && item.number == 1)
            failed = read_value(r, s->element, &item, &value);
        if (value)
            json_push(r->arena, list, value);
    }
    return failed;
}

/* Decodes one value by the type that the table declares. */
static int read_value(struct reader *r, const struct schema *s, const struct item *item,
                      struct json **ret)
{
    struct parts parts;
    int failed = 0;
    switch (s->type) {
    case SCHEMA_STRING:
        return read_text(r, s, item, ret);
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_BOOLEAN:
        return read_number(r, s, item, ret);
    case SCHEMA_OBJECT:
        if (item->wire != WIRE_BYTES || !s->message)
            return fail_body(r, "expected a message");
        *ret = json_new_obj(r->arena);
        return read_message(r, s->message, item->bytes, *ret);
    case SCHEMA_ARRAY:
        *ret = json_new_arr(r->arena);
        return read_list(r, s, item->bytes, *ret);
    default: /* int-or-string, or raw JSON in a message */
        failed = item->wire == WIRE_BYTES ? read_parts(r, item->bytes, &parts)
                                          : fail_body(r, "expected a message");
        if (failed)
            return failed;
        if (s->type == SCHEMA_INT_OR_STRING) {
            *ret = read_int_or_string(r, &parts);
            return 0;
        }
        return read_raw(r, parts.text[1], ret);
    }
}

/* ---- containers */

/* Repeated fields collect in one list or map. */
static struct json *get_or_add_container(struct arena *a, struct json *object, str name, bool list)
{
    struct json *value = json_get_str(object, name);
    if (!value)
        json_set(a, object, name, value = list ? json_new_arr(a) : json_new_obj(a));
    return value;
}

/* A map is a repeated message with a key and a value; a missing value is the empty one. */
static int read_entry(struct reader *r, const struct schema *element, const struct item *item,
                      struct json *map)
{
    struct json *value = NULL;
    str key = S(""), bytes = item->bytes;
    if (item->wire != WIRE_BYTES)
        return fail_body(r, "expected a map entry");
    while (bytes.n) {
        struct item part;
        int failed = take_item(r, &bytes, &part);
        if (!failed && part.number == 1)
            key = part.bytes;
        if (!failed && part.number == 2)
            failed = read_value(r, element, &part, &value);
        if (failed)
            return failed;
    }
    if (!value) {
        struct item empty = { .number = 2, .wire = WIRE_BYTES };
        int failed = read_value(r, element, &empty, &value);
        if (failed)
            return failed;
    }
    json_set(r->arena, map, key, value);
    return 0;
}

/* A list of numbers may come packed into one field. */
static int read_packed(struct reader *r, const struct schema *element, str bytes, struct json *list)
{
    while (bytes.n) {
        struct item item = { .wire = WIRE_VARINT };
        struct json *value = NULL;
        if (!take_varint(&bytes, &item.integer))
            return fail_body(r, "unterminated number");
        int failed = read_value(r, element, &item, &value);
        if (failed)
            return failed;
        json_push(r->arena, list, value);
    }
    return 0;
}

/* Decodes one field into the object; maps and lists collect repeated fields. */
static int read_field(struct reader *r, const struct schema_field *f, const struct item *item,
                      struct json *object)
{
    const struct schema *s = &f->schema;
    struct json *value = NULL;
    if (!f->name.n) /* embedded: its fields belong to this object */
        return item->wire == WIRE_BYTES ? read_message(r, s->message, item->bytes, object)
                                        : fail_body(r, "expected a message");
    if (s->type == SCHEMA_OBJECT && !s->message)
        return read_entry(r, s->element, item,
                          get_or_add_container(r->arena, object, f->name, false));
    if (s->type == SCHEMA_ARRAY) {
        struct json *list = get_or_add_container(r->arena, object, f->name, true);
        if (s->element->type == SCHEMA_INTEGER && item->wire == WIRE_BYTES)
            return read_packed(r, s->element, item->bytes, list);
        int failed = read_value(r, s->element, item, &value);
        if (!failed)
            json_push(r->arena, list, value);
        return failed;
    }
    int failed = read_value(r, s, item, &value);
    if (!failed)
        json_set(r->arena, object, f->name, value);
    return failed;
}

static const struct schema_field *field_by_number(const struct schema_message *m, uint32_t number)
{
    for (uint32_t i = 0; i < m->n_fields; i++)
        if (m->fields[i].number == number)
            return &m->fields[i];
    return NULL;
}

/* Decodes the fields of a message that the table knows. */
static int read_message(struct reader *r, const struct schema_message *m, str bytes,
                        struct json *object)
{
    if (r->depth == NESTING_MAX)
        return fail_body(r, "nested too deeply");
    r->depth++;
    int failed = 0;
    while (bytes.n && !failed) {
        struct item item;
        failed = take_item(r, &bytes, &item);
        const struct schema_field *f = failed ? NULL : field_by_number(m, item.number);
        if (f)
            failed = read_field(r, f, &item, object);
    }
    r->depth--;
    return failed;
}

/* ---- bodies */

static bool is_kind(struct arena *a, const struct kind *k, str api_version, str kind)
{
    return str_eq(k->kind, kind) && str_eq(kind_api_version(a, k), api_version);
}

/* The type of a body; NULL for kinds without field numbers. */
static const struct schema_message *find_message(struct arena *a, str api_version, str kind)
{
    size_t n = 0;
    const struct kind *const *kinds = kinds_builtin(&n);
    for (size_t i = 0; i < n; i++)
        if (is_kind(a, kinds[i], api_version, kind))
            return str_eqc(kinds[i]->group, "apiextensions.k8s.io") ? NULL
                                                                    : kinds[i]->schema->message;
    if (str_eqc(kind, "DeleteOptions"))
        return types_message("meta.v1.DeleteOptions");
    for (int sub = KIND_MAIN + 1; sub < KIND_SUB_N; sub++) {
        const struct kind *k = kind_of_sub(kinds[0], (enum kind_sub)sub);
        if (is_kind(a, k, api_version, kind))
            return k->schema->message;
    }
    return NULL;
}

static bool protobuf_has_magic(str body)
{
    return body.n >= 4 && memcmp(body.p, "k8s", 4) == 0;
}

/* Unwraps runtime.Unknown, finds the type, decodes the message. */
int protobuf_decode(struct arena *a, str body, struct json **ret, err_t *e)
{
    struct reader r = { .arena = a, .e = e };
    struct parts envelope, type;
    if (!protobuf_has_magic(body))
        return fail_body(&r, "it does not start with the bytes k8s\\0");
    int failed = read_parts(&r, str_from(body, 4), &envelope);
    if (!failed)
        failed = read_parts(&r, envelope.text[1], &type);
    if (failed)
        return failed;
    const struct schema_message *m = find_message(a, type.text[1], type.text[2]);
    if (!m)
        return err_set(e, ENOTSUP,
                       STR_FMT " of " STR_FMT " is not supported as protobuf; send JSON",
                       STR_ARG(type.text[2]), STR_ARG(type.text[1]));
    struct json *object = json_new_obj(a);
    json_set_str(a, object, "apiVersion", type.text[1]);
    json_set_str(a, object, "kind", type.text[2]);
    failed = read_message(&r, m, envelope.text[2], object);
    if (failed)
        return failed;
    *ret = object;
    return 0;
}
