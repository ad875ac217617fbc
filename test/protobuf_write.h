/* Writes JSON objects as protobuf, the way Go's encoder does: fields in the order of their numbers, zero values of fields
 * that are not pointers included, keys of maps as they come. For tests and benchmarks; the program only reads protobuf. The
 * numbers are those of the embedded server, not those of the client, which is what is tested. */
#ifndef FLYBALL_TEST_PROTOBUF_WRITE_H
#define FLYBALL_TEST_PROTOBUF_WRITE_H

#include "apiserver/schema/types.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/rfc3339.h"
#include "json/json.h"

static UNUSED void wire_put_number(struct buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_putc(out, (char)(value | 0x80));
    buf_putc(out, (char)value);
}

static UNUSED void wire_put_integer(struct buf *out, unsigned number, uint64_t value)
{
    wire_put_number(out, number << 3);
    wire_put_number(out, value);
}

static UNUSED void wire_put_bytes(struct buf *out, unsigned number, str bytes)
{
    wire_put_number(out, number << 3 | 2);
    wire_put_number(out, bytes.n);
    buf_put(out, bytes);
}

static UNUSED void wire_put_message(struct buf *out, const struct schema_message *m,
                                    const struct json *object);

/* NULL: the zero value. */
static UNUSED void wire_put_time(struct buf *out, const struct json *v, bool micro)
{
    int64_t at = 0;
    if (!json_is(v, JSON_STR))
        return;
    int r = micro ? rfc3339_parse_micro(json_text(v), &at, NULL)
                  : rfc3339_parse(json_text(v), &at, NULL);
    assert(r == 0);
    int64_t unit = micro ? 1000000 : 1, rest = ((at % unit) + unit) % unit;
    wire_put_integer(out, 1, (uint64_t)((at - rest) / unit));
    wire_put_integer(out, 2, (uint64_t)(micro ? rest * 1000 : 0));
}

/* What is one message or text on the wire. */
static UNUSED void wire_put_inner(struct buf *out, const struct schema *s, const struct json *v)
{
    if (s->type == SCHEMA_OBJECT)
        wire_put_message(out, s->message, v);
    else if (s->type == SCHEMA_INT_OR_STRING) {
        wire_put_integer(out, 1, json_is(v, JSON_STR));
        wire_put_integer(out, 2, (uint64_t)json_int(v, 0));
        wire_put_bytes(out, 3, json_text(v));
    } else if (s->type != SCHEMA_STRING) { /* any value, as JSON */
        auto_buf struct buf text = { 0 };
        json_write(&text, v);
        wire_put_bytes(out, 1, buf_str(&text));
    } else if (s->format == SCHEMA_BYTES)
        base64_decode(out, json_text(v));
    else if (s->format == SCHEMA_QUANTITY)
        wire_put_bytes(out, 1, json_text(v));
    else if (s->format == SCHEMA_TIME || s->format == SCHEMA_MICRO_TIME)
        wire_put_time(out, v, s->format == SCHEMA_MICRO_TIME);
    else
        buf_put(out, json_text(v));
}

static UNUSED void wire_put_value(struct buf *out, const struct schema *s, unsigned number,
                                  const struct json *v)
{
    auto_buf struct buf inner = { 0 };
    if (s->type == SCHEMA_BOOLEAN) {
        wire_put_integer(out, number, v && json_is(v, JSON_BOOL) && v->boolean);
    } else if (s->type == SCHEMA_INTEGER) {
        wire_put_integer(out, number, (uint64_t)json_int(v, 0));
    } else {
        wire_put_inner(&inner, s, v);
        wire_put_bytes(out, number, buf_str(&inner));
    }
}

/* Is a field that has no value on the wire? It is if it is no pointer in Go. */
static UNUSED bool wire_has_zero(const struct schema_field *f)
{
    bool plain = f->schema.type == SCHEMA_STRING
                     ? f->schema.format != SCHEMA_QUANTITY
                     : f->schema.type == SCHEMA_INTEGER || f->schema.type == SCHEMA_BOOLEAN;
    return f->presence == SCHEMA_ALWAYS || (f->presence == SCHEMA_OMIT && plain);
}

static UNUSED void wire_put_field(struct buf *out, const struct schema_field *f,
                                  const struct json *v)
{
    const struct schema *s = &f->schema;
    bool there = v && v->type != JSON_NULL;
    if (s->type == SCHEMA_OBJECT && !s->message) {
        json_each(m, v) {
            auto_buf struct buf entry = { 0 };
            wire_put_bytes(&entry, 1, m->key);
            wire_put_value(&entry, s->element, 2, m->value);
            wire_put_bytes(out, f->number, buf_str(&entry));
        }
    } else if (s->type == SCHEMA_ARRAY) {
        for (size_t i = 0; i < json_len(v); i++)
            wire_put_value(out, s->element, f->number, json_item(v, i));
    } else if (there || wire_has_zero(f)) {
        wire_put_value(out, s, f->number, v);
    }
}

static UNUSED void wire_put_message(struct buf *out, const struct schema_message *m,
                                    const struct json *object)
{
    for (unsigned number = 1; number < 256; number++)
        for (uint32_t i = 0; i < m->n_fields; i++) {
            const struct schema_field *f = &m->fields[i];
            if (f->number == number) /* the fields of an embedded type are those of the object */
                wire_put_field(out, f, f->name.n ? json_get_str(object, f->name) : object);
        }
}

/* "k8s\0" and runtime.Unknown. */
static UNUSED void wire_put_object(struct buf *out, str api_version, str kind, str message)
{
    auto_buf struct buf type = { 0 };
    wire_put_bytes(&type, 1, api_version);
    wire_put_bytes(&type, 2, kind);
    buf_put(out, (str){ "k8s", 4 });
    wire_put_bytes(out, 1, buf_str(&type));
    wire_put_bytes(out, 2, message);
    wire_put_bytes(out, 3, S(""));
    wire_put_bytes(out, 4, S(""));
}

/* A frame of a watch. `object` is complete, with its envelope. */
static UNUSED void wire_put_event(struct buf *out, str type, str object)
{
    auto_buf struct buf raw = { 0 }, event = { 0 };
    wire_put_bytes(&raw, 1, object);
    wire_put_bytes(&event, 1, type);
    wire_put_bytes(&event, 2, buf_str(&raw));
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_putc(out, (char)(event.n >> shift & 0xff));
    buf_put(out, buf_str(&event));
}

#endif
