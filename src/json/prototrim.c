/* Messages to JSON text: see prototrim.h.
 *
 *     wire      08 01   12 0a "k8s.io/..."   22 81 02 <257 bytes>   ...
 *     number    1       2                    4
 *     wanted    no      "nodeName"           no: skip 257 bytes
 *
 * The text has to be what kube-apiserver would have sent as JSON, trimmed. Some things differ between the encodings:
 *
 *   time, quantity, int-or-string    messages on the wire, scalars in JSON
 *   map                              a repeated message { 1: key, 2: value }
 *   zero values                      always on the wire, in JSON only for some fields (prototable.h has which)
 *
 * A value that a path goes through is written in the order of the wire, because members are found by name. A value that is
 * kept whole is written in the order of the table, which is that of the JSON encoder, so that a cache which changes from
 * one encoding to the other sees no difference.
 *
 * The bytes are untrusted. The recursion is as deep as the types, which do not contain themselves; text is at most six
 * times its bytes; a wire type that does not fit the table is malformed, and unknown numbers are skipped. */
#include "prototrim.h"

#include "../base/base64.h"
#include "../base/rfc3339.h"
#include "json.h"
#include "protowire.h"

struct trim {
    const struct prototable *table;
    struct buf *out;
};

static const struct kept keep_all = { .whole = true };

static const struct prototable_message *message_of(const struct trim *t,
                                                   const struct prototable_field *f)
{
    return &t->table->messages[f->message];
}

/* ---- resolving */

/* Does what is kept of a member fit the type of its field? */
static bool resolve_field(const struct prototable *t, struct kept *k)
{
    const struct prototable_field *f = k->wire;
    const struct prototable_message *m = f->type == PROTO_MESSAGE ? &t->messages[f->message] : NULL;
    if (f->flags & PROTO_MAP)
        return !k->each; /* any key may be there */
    if (k->whole && m && !m->complete)
        return false;
    if (f->flags & PROTO_LIST)
        return !k->members && (!k->each || (m && prototrim_resolve(t, m, k->each)));
    return m ? !k->each && prototrim_resolve(t, m, k) : !k->each && !k->members;
}

bool prototrim_resolve(const struct prototable *t, const struct prototable_message *m,
                       struct kept *keep)
{
    for (struct kept *k = keep->members; k; k = k->next) {
        k->wire = prototable_member(t, m, k->key);
        if (!k->wire || !resolve_field(t, k))
            return false;
    }
    return !keep->each && (!keep->whole || m->complete);
}

/* ---- scalars */

static void put_integer(struct buf *out, int64_t value)
{
    char room[STR_I64_ROOM];
    buf_put(out, str_of_i64(value, room));
}

static bool put_time(struct buf *out, const uint64_t parts[static 3], bool micro)
{
    char text[RFC3339_TEXT_MAX];
    int64_t seconds = (int64_t)parts[1], nanos = (int64_t)parts[2];
    const int64_t most = INT64_C(253402300799), least = -INT64_C(62135596800); /* years 1 to 9999 */
    if (seconds < least || seconds > most) {
        buf_put(out, S("null"));
        return true;
    }
    buf_putc(out, '"');
    buf_put(out, micro ? rfc3339_micro_text(seconds * 1000000 + nanos % 1000000000 / 1000, text)
                       : rfc3339_text(seconds, text));
    buf_putc(out, '"');
    return true;
}

/* A value that is a small message on the wire, of three fields at most. */
static bool put_wrapped(struct buf *out, enum prototable_type type, str bytes)
{
    uint64_t integers[4] = { 0 };
    str texts[4] = { 0 };
    struct protowire_field part;
    bool empty = !bytes.n;
    while (bytes.n) {
        if (!protowire_take(&bytes, &part))
            return false;
        if (part.number > 3)
            continue;
        integers[part.number] = part.integer;
        texts[part.number] = part.bytes;
    }
    if (type == PROTO_QUANTITY)
        json_write_text(out, texts[1].n ? texts[1] : S("0"));
    else if (type == PROTO_INT_OR_STRING && integers[1])
        json_write_text(out, texts[3]);
    else if (type == PROTO_INT_OR_STRING)
        put_integer(out, (int32_t)integers[2]);
    else if (empty)
        buf_put(out, S("null"));
    else
        return put_time(out, integers, type == PROTO_MICRO_TIME);
    return true;
}

static bool put_message(struct trim *t, const struct prototable_message *m, const struct kept *keep,
                        str bytes);

/* One value, which may be an element of a list or the value of a map. */
static bool put_value(struct trim *t, const struct prototable_field *f, const struct kept *keep,
                      const struct protowire_field *value)
{
    bool is_integer = f->type == PROTO_INT32 || f->type == PROTO_INT64 || f->type == PROTO_BOOL;
    if (value->type != (is_integer ? WIRE_VARINT : WIRE_BYTES))
        return false;
    switch ((enum prototable_type)f->type) {
    case PROTO_STRING:
        json_write_text(t->out, value->bytes);
        return true;
    case PROTO_BYTES:
        buf_putc(t->out, '"');
        base64_encode(t->out, value->bytes);
        buf_putc(t->out, '"');
        return true;
    case PROTO_INT32:
        put_integer(t->out, (int32_t)value->integer);
        return true;
    case PROTO_INT64:
        put_integer(t->out, (int64_t)value->integer);
        return true;
    case PROTO_BOOL:
        buf_put(t->out, value->integer ? S("true") : S("false"));
        return true;
    case PROTO_MESSAGE:
        return put_message(t, message_of(t, f), keep, value->bytes);
    default:
        return put_wrapped(t->out, (enum prototable_type)f->type, value->bytes);
    }
}

/* ---- members */

static void put_comma(struct buf *out)
{
    char last = out->n ? out->p[out->n - 1] : '{';
    if (last != '{' && last != '[')
        buf_putc(out, ',');
}

static void put_name(struct buf *out, str name)
{
    put_comma(out);
    buf_putc(out, '"');
    buf_put(out, name);
    buf_put(out, S("\":"));
}

/* An entry of a map, if it is kept. A key or value that is not there is the empty one. */
static bool put_entry(struct trim *t, const struct prototable_field *f, const struct kept *keep,
                      str bytes)
{
    struct protowire_field part, value = { .type = WIRE_BYTES };
    str key = S("");
    if (f->type == PROTO_INT32 || f->type == PROTO_INT64 || f->type == PROTO_BOOL)
        value.type = WIRE_VARINT;
    while (bytes.n) {
        if (!protowire_take(&bytes, &part))
            return false;
        if (part.number == 1)
            key = part.bytes;
        else if (part.number == 2)
            value = part;
    }
    if (!keep->whole && !fieldtree_find_kept(keep, key))
        return true;
    put_comma(t->out);
    json_write_text(t->out, key);
    buf_putc(t->out, ':');
    return put_value(t, f, &keep_all, &value);
}

/* One more element or entry; what is left out of a list is the inside of its elements, not the elements. */
static bool put_part(struct trim *t, const struct prototable_field *f, const struct kept *keep,
                     const struct protowire_field *part)
{
    if (f->flags & PROTO_MAP)
        return part->type == WIRE_BYTES && put_entry(t, f, keep, part->bytes);
    put_comma(t->out);
    return put_value(t, f, keep->whole || !keep->each ? keep : keep->each, part);
}

/* The elements or entries that follow each other on the wire; `*rest` is behind the first. */
static bool put_run(struct trim *t, const struct prototable_field *f, const struct kept *keep,
                    struct protowire_field part, str *rest)
{
    bool map = f->flags & PROTO_MAP;
    put_name(t->out, prototable_name(t->table, f));
    buf_putc(t->out, map ? '{' : '[');
    for (;;) {
        if (!put_part(t, f, keep, &part))
            return false;
        str next = *rest;
        if (!next.n)
            break;
        if (!protowire_take(&next, &part))
            return false;
        if (part.number != f->number)
            break;
        *rest = next;
    }
    buf_putc(t->out, map ? '}' : ']');
    return true;
}

/* A message that is on the wire was set, except for a time, which is there even if it is zero. */
static bool is_written(const struct prototable_field *f, const struct protowire_field *value)
{
    bool is_time = f->type == PROTO_TIME || f->type == PROTO_MICRO_TIME;
    if (f->flags & (PROTO_IF_SET | PROTO_ALWAYS) || (f->type >= PROTO_QUANTITY && !is_time))
        return true;
    return value->type == WIRE_BYTES ? value->bytes.n > 0 : value->integer != 0;
}

/* ---- messages */

/* The members that a path needs, in the order of the wire. */
static bool put_members(struct trim *t, const struct kept *keep, str bytes)
{
    struct protowire_field value;
    while (bytes.n) {
        if (!protowire_take(&bytes, &value))
            return false;
        const struct kept *k = keep->members;
        while (k && k->wire->number != value.number)
            k = k->next;
        if (!k)
            continue;
        if (k->wire->flags & (PROTO_LIST | PROTO_MAP)) {
            if (!put_run(t, k->wire, k, value, &bytes))
                return false;
        } else if (is_written(k->wire, &value)) {
            put_name(t->out, k->key);
            size_t start = t->out->n;
            if (!put_value(t, k->wire, k, &value))
                return false;
            fieldtree_note_span(k, start, t->out->n);
        }
    }
    return true;
}

/* What is written for a field that is not on the wire but always in JSON. */
static bool put_zero(struct trim *t, const struct prototable_field *f)
{
    bool null = f->flags & (PROTO_IF_SET | PROTO_LIST | PROTO_MAP);
    bool integer = f->type == PROTO_INT32 || f->type == PROTO_INT64 || f->type == PROTO_BOOL;
    put_name(t->out, prototable_name(t->table, f));
    if (null)
        buf_put(t->out, S("null"));
    return null ||
           put_value(t, f, &keep_all,
                     &(struct protowire_field){ .type = integer ? WIRE_VARINT : WIRE_BYTES });
}

/* One member of a message that is kept whole. Its elements may be anywhere on the wire; of several values the last
 * counts. */
static bool put_whole_member(struct trim *t, const struct prototable_field *f, str bytes)
{
    struct protowire_field value, last = { 0 };
    bool many = f->flags & (PROTO_LIST | PROTO_MAP), map = f->flags & PROTO_MAP;
    while (bytes.n) {
        if (!protowire_take(&bytes, &value))
            return false;
        if (value.number != f->number)
            continue;
        if (many && !last.number) {
            put_name(t->out, prototable_name(t->table, f));
            buf_putc(t->out, map ? '{' : '[');
        }
        if (many && !put_part(t, f, &keep_all, &value))
            return false;
        last = value;
    }
    if (!last.number)
        return !(f->flags & PROTO_ALWAYS) || put_zero(t, f);
    if (many) {
        buf_putc(t->out, map ? '}' : ']');
        return true;
    }
    if (!is_written(f, &last))
        return true;
    put_name(t->out, prototable_name(t->table, f));
    return put_value(t, f, &keep_all, &last);
}

static bool put_message(struct trim *t, const struct prototable_message *m, const struct kept *keep,
                        str bytes)
{
    bool fine = true;
    buf_putc(t->out, '{');
    if (keep->whole)
        for (unsigned i = 0; i < m->n && fine; i++)
            fine = put_whole_member(t, &t->table->fields[m->first + i], bytes);
    else
        fine = put_members(t, keep, bytes);
    buf_putc(t->out, '}');
    return fine;
}

bool prototrim(const struct prototable *table, const struct prototable_message *m,
               const struct kept *keep, str bytes, struct buf *out)
{
    struct trim t = { table, out };
    return put_message(&t, m, keep, bytes);
}

bool prototrim_whole(const struct prototable *table, const struct prototable_message *m, str bytes,
                     struct buf *out)
{
    assert(m->complete);
    return prototrim(table, m, &keep_all, bytes, out);
}
