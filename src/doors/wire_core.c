/* The messages of KEDA's external scaler on the wire; see wire_core.h.
 *
 * A message is a sequence of fields, each a tag (number << 3 | type) and a value. Reading is a loop over
 * get_field(), which skips what it does not know, including groups, so that a newer KEDA can add fields.
 * Strings must be UTF-8, as protobuf requires.
 *
 * Limits: a message has at most WIRE_MESSAGE_MAX bytes, metadata at most WIRE_PAIRS_MAX keys, and groups nest
 * at most GROUP_DEPTH_MAX deep; they are skipped with a stack of numbers, not by recursion. Integers longer
 * than 64 bits, field number 0 and lengths beyond the message are -EBADMSG. test/fuzz/scaler_wire_fuzz.c reads random
 * bytes through all of it.
 *
 * Strings refer to the message; only the array of pairs is taken from the arena. */
#include "wire_core.h"

#include "../base/utf8.h"
#include "../json/protowire.h"

#include <math.h>

enum { WIRE_GROUP_START = 3, WIRE_GROUP_END = 4 }; /* beside those of protowire.h */

enum { VARINT_BYTES_MAX = 10, GROUP_DEPTH_MAX = 100, FIELD_MAX = (1 << 29) - 1 };

/* ---- frames */

void wire_put_frame(struct buf *out, str message)
{
    uint32_t n = (uint32_t)message.n;
    buf_putc(out, 0); /* not compressed */
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_putc(out, (char)(n >> shift & 0xff));
    buf_put(out, message);
}

int wire_get_frame(str body, str *ret_message, err_t *e)
{
    if (body.n < WIRE_FRAME_HEADER)
        return err_set(e, EBADMSG, "the request has no complete gRPC frame");
    if (body.p[0] != 0)
        return err_set(e, ENOTSUP, "compressed gRPC messages are not supported");
    uint32_t n = 0;
    for (int i = 1; i < WIRE_FRAME_HEADER; i++)
        n = n << 8 | (unsigned char)body.p[i];
    if (n > WIRE_MESSAGE_MAX)
        return err_set(e, EMSGSIZE, "the message has %u bytes; at most %d are accepted", n,
                       WIRE_MESSAGE_MAX);
    if (body.n - WIRE_FRAME_HEADER != n)
        return err_set(e, EBADMSG, "the request is not exactly one gRPC frame");
    *ret_message = str_from(body, WIRE_FRAME_HEADER);
    return 0;
}

/* ---- reading fields */

struct field {
    uint32_t number;
    unsigned type;  /* enum protowire_type, or a group */
    uint64_t value; /* WIRE_VARINT */
    str bytes;      /* WIRE_BYTES */
};

/* Seven bits per byte, least significant first. The tenth byte can hold one bit. */
static int get_varint(str *rest, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < VARINT_BYTES_MAX && i < rest->n; i++) {
        unsigned char byte = (unsigned char)rest->p[i];
        if (i == VARINT_BYTES_MAX - 1 && byte > 1)
            return -EBADMSG; /* more than 64 bits */
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *rest = str_from(*rest, i + 1);
            *ret = value;
            return 0;
        }
    }
    return -EBADMSG;
}

/* Cuts `n` bytes off the front, which must be there. */
static int skip_bytes(str *rest, uint64_t n, str *ret)
{
    if (n > rest->n)
        return -EBADMSG;
    *ret = str_upto(*rest, (size_t)n);
    *rest = str_from(*rest, (size_t)n);
    return 0;
}

/* Field number and type; number 0 and numbers above 2^29 - 1 do not exist. */
static int get_tag(str *rest, struct field *ret)
{
    uint64_t tag;
    if (get_varint(rest, &tag) < 0 || tag >> 3 == 0 || tag >> 3 > FIELD_MAX)
        return -EBADMSG;
    ret->number = (uint32_t)(tag >> 3);
    ret->type = tag & 7;
    return 0;
}

/* The value after a tag, except of groups. */
static int get_value(str *rest, struct field *f)
{
    uint64_t n;
    str ignored;
    switch (f->type) {
    case WIRE_VARINT:
        return get_varint(rest, &f->value);
    case WIRE_FIXED64:
        return skip_bytes(rest, 8, &ignored);
    case WIRE_FIXED32:
        return skip_bytes(rest, 4, &ignored);
    case WIRE_BYTES:
        return get_varint(rest, &n) < 0 ? -EBADMSG : skip_bytes(rest, n, &f->bytes);
    case WIRE_GROUP_START:
    case WIRE_GROUP_END:
        break;
    }
    return -EBADMSG;
}

/* Skips to the end of a group; groups can contain groups. */
static int skip_group(str *rest, uint32_t number)
{
    uint32_t open[GROUP_DEPTH_MAX] = { number };
    size_t depth = 1;
    while (depth > 0) {
        struct field f;
        if (!rest->n || get_tag(rest, &f) < 0)
            return -EBADMSG;
        if (f.type == WIRE_GROUP_START) {
            if (depth == GROUP_DEPTH_MAX)
                return -EBADMSG;
            open[depth++] = f.number;
        } else if (f.type == WIRE_GROUP_END) {
            if (f.number != open[--depth])
                return -EBADMSG;
        } else if (get_value(rest, &f) < 0) {
            return -EBADMSG;
        }
    }
    return 0;
}

/* The next field; 0: there is none, 1: there is. */
static int get_field(str *rest, struct field *ret)
{
    if (!rest->n)
        return 0;
    if (get_tag(rest, ret) < 0)
        return -EBADMSG;
    int r = ret->type == WIRE_GROUP_START ? skip_group(rest, ret->number) : get_value(rest, ret);
    return r < 0 ? r : 1;
}

static bool is_text(const struct field *f, uint32_t number)
{
    return f->number == number && f->type == WIRE_BYTES;
}

static int set_text(const struct field *f, str *ret)
{
    if (!utf8_valid(f->bytes))
        return -EBADMSG;
    *ret = f->bytes;
    return 0;
}

/* ---- requests */

/* One entry of a map<string, string>, which is a message with two fields. */
static int get_pair(str message, struct wire_pair *ret)
{
    struct wire_pair pair = { S(""), S("") };
    struct field f = { 0 };
    int r;
    while ((r = get_field(&message, &f)) > 0)
        if ((is_text(&f, 1) && set_text(&f, &pair.key) < 0) ||
            (is_text(&f, 2) && set_text(&f, &pair.value) < 0))
            return -EBADMSG;
    *ret = pair;
    return r;
}

struct ref_reader {
    struct wire_ref ref;
    struct wire_pair *pairs; /* room for WIRE_PAIRS_MAX */
};

/* Adds an entry. A repeated key replaces the earlier value, as in protobuf. */
static int add_pair(struct ref_reader *reader, str message)
{
    struct wire_pair pair;
    if (get_pair(message, &pair) < 0)
        return -EBADMSG;
    size_t at = 0;
    while (at < reader->ref.metadata_n && !str_eq(reader->pairs[at].key, pair.key))
        at++;
    if (at == WIRE_PAIRS_MAX)
        return -EBADMSG;
    reader->pairs[at] = pair;
    reader->ref.metadata_n = MAX(reader->ref.metadata_n, at + 1);
    return 0;
}

/* A ScaledObjectRef. May be called again for a repeated field, whose parts are then merged. */
static int read_ref(struct ref_reader *reader, str message)
{
    struct field f = { 0 };
    int r;
    while ((r = get_field(&message, &f)) > 0)
        if ((is_text(&f, 1) && set_text(&f, &reader->ref.name) < 0) ||
            (is_text(&f, 2) && set_text(&f, &reader->ref.ns) < 0) ||
            (is_text(&f, 3) && add_pair(reader, f.bytes) < 0))
            return -EBADMSG;
    return r;
}

/* Unset strings are empty, as in protobuf, never NULL. */
static struct ref_reader start_ref(struct arena *a)
{
    struct ref_reader reader = { .ref = { .name = S(""), .ns = S("") } };
    reader.pairs = arena_array(a, WIRE_PAIRS_MAX, sizeof(struct wire_pair));
    reader.ref.metadata = reader.pairs;
    return reader;
}

static int fail_message(const char *name, err_t *e)
{
    return err_set(e, EBADMSG, "the request is not a valid %s", name);
}

int wire_get_ref(struct arena *a, str message, struct wire_ref *ret, err_t *e)
{
    struct ref_reader reader = start_ref(a);
    if (read_ref(&reader, message) < 0)
        return fail_message("ScaledObjectRef", e);
    *ret = reader.ref;
    return 0;
}

int wire_get_metrics_request(struct arena *a, str message, struct wire_metrics_request *ret,
                             err_t *e)
{
    struct ref_reader reader = start_ref(a);
    struct field f = { 0 };
    str metric = S("");
    int r;
    while ((r = get_field(&message, &f)) > 0)
        if ((is_text(&f, 1) && read_ref(&reader, f.bytes) < 0) || /* several are merged */
            (is_text(&f, 2) && set_text(&f, &metric) < 0))
            return fail_message("GetMetricsRequest", e);
    if (r < 0)
        return fail_message("GetMetricsRequest", e);
    *ret = (struct wire_metrics_request){ reader.ref, metric };
    return 0;
}

str wire_metadata(const struct wire_ref *ref, const char *key)
{
    for (size_t i = 0; i < ref->metadata_n; i++)
        if (str_eqc(ref->metadata[i].key, key))
            return ref->metadata[i].value;
    return S("");
}

/* ---- responses: a field with its zero value is not written */

static void put_text(struct buf *out, uint32_t number, str text)
{
    if (text.n)
        protowire_put_bytes(out, number, text);
}

/* Only positive zero is the default value: the bits of -0.0 are not all zero. */
static void put_double(struct buf *out, uint32_t number, double value)
{
    if (value != 0 || signbit(value))
        protowire_put_double(out, number, value);
}

static void put_int(struct buf *out, uint32_t number, int64_t value)
{
    if (value)
        protowire_put_varint(out, number, (uint64_t)value);
}

void wire_put_active(struct buf *out, bool active)
{
    put_int(out, 1, active);
}

void wire_put_metrics(struct buf *out, const struct wire_metric *m, size_t n)
{
    auto_buf struct buf one = { 0 };
    for (size_t i = 0; i < n; i++) {
        buf_clear(&one);
        put_text(&one, 1, m[i].name);
        put_int(&one, 2, m[i].value);
        put_double(&one, 3, m[i].real);
        protowire_put_bytes(out, 1, buf_str(&one));
    }
}

void wire_put_health(struct buf *out, bool serving)
{
    enum { SERVING = 1, NOT_SERVING = 2 };
    put_int(out, 1, serving ? SERVING : NOT_SERVING);
}
