/* The framer of protobuf streams: see frame.h; protowire.h has the form of lists and watches.
 *
 * A list is followed in two levels, the envelope (runtime.Unknown) and the list in its field 2:
 *
 *     "k8s\0"  1: TypeMeta   2: [ 1: ListMeta   2: item   2: item ... ]   3, 4: empty texts
 *     start    outside ----  between ------------------------------ -----  outside
 *
 * At each level a header (number, type, length) is read first; its few bytes may be split between two pieces, so
 * they are collected in `carry` one at a time. The length then decides what happens to the value: skip it (`skip`), or
 * collect it (`want` bytes, place FRAME_INSIDE). `left` counts what is left of the list, so that a length
 * which exceeds the list is found before it is trusted. As with JSON, a value that arrives in one piece is passed on
 * without a copy, and memory is one item.
 *
 * In a watch the header is a length of four bytes, and every value is a document. */
#include "frame.h"

#include "json.h"
#include "protowire.h"

enum { HEADER_MAX = 20, EVENT_HEADER = 4 };

static int fail_list(err_t *e, const char *what)
{
    return err_set(e, EBADMSG, "the answer is no list in protobuf: %s", what);
}

/* ---- watches */

static int start_event(struct frame *f, err_t *e)
{
    uint32_t n = 0;
    for (int i = 0; i < EVENT_HEADER; i++)
        n = n << 8 | (unsigned char)f->carry.p[i];
    if (f->carry.p[0]) /* 16 MiB or more: text, which has no byte 0 there */
        return err_set(e, EBADMSG, "the answer is no watch in protobuf");
    buf_clear(&f->carry);
    if (n > FRAME_ITEM_MAX)
        return err_set(e, EMSGSIZE,
                       "a watch event of %u bytes is larger than %d MiB, more than any API server "
                       "stores",
                       n, FRAME_ITEM_MAX >> 20);
    f->want = n;
    f->place = FRAME_INSIDE;
    return 0;
}

/* ---- lists */

/* The list is over: what follows belongs to the envelope. */
static void close_list(struct frame *f)
{
    if (f->place == FRAME_BETWEEN && !f->left)
        f->place = FRAME_OUTSIDE;
}

/* Decides what happens to a value of `length` bytes. `depth` is 1 once a list was found, and 2 while its ListMeta is
 * collected. */
static int start_value(struct frame *f, uint32_t number, uint64_t length, err_t *e)
{
    if (f->place == FRAME_OUTSIDE) {
        if (number != WIRE_UNKNOWN_RAW || f->depth) {
            f->skip = length;
            return 0;
        }
        f->depth = 1;
        f->left = length;
        f->place = FRAME_BETWEEN;
        close_list(f);
        return 0;
    }
    if (length > f->left)
        return fail_list(e, "an item is longer than the list");
    f->left -= length;
    bool is_item = number == WIRE_LIST_ITEM, is_meta = number == WIRE_LIST_META;
    if (!is_item && !is_meta) {
        f->skip = length;
        close_list(f);
        return 0;
    }
    f->depth = is_meta ? 2 : 1;
    f->want = length;
    f->place = FRAME_INSIDE;
    return 0;
}

/* Adds a byte to the header. Once it is complete, the carry is empty again. */
static int feed_header(struct frame *f, char c, err_t *e)
{
    uint64_t key = 0, length = 0;
    static const uint8_t fixed[8] = { [WIRE_FIXED64] = 8, [WIRE_FIXED32] = 4 };
    if (f->place == FRAME_BETWEEN && !f->left--)
        return fail_list(e, "an item is longer than the list");
    buf_putc(&f->carry, c);
    str rest = buf_str(&f->carry);
    bool complete = protowire_take_varint(&rest, &key);
    unsigned type = key & 7;
    if (complete && (type == WIRE_BYTES || type == WIRE_VARINT))
        complete = protowire_take_varint(&rest, &length);
    if (!complete)
        return f->carry.n > HEADER_MAX ? fail_list(e, "a number does not end") : 0;
    if (type != WIRE_BYTES && type != WIRE_VARINT && !fixed[type])
        return fail_list(e, "a field has an unknown type");
    if (!(key >> 3) || key >> 3 > UINT32_MAX)
        return fail_list(e, "a field has no number");
    buf_clear(&f->carry);
    if (type == WIRE_BYTES)
        return start_value(f, (uint32_t)(key >> 3), length, e);
    f->skip = fixed[type];
    if (f->place == FRAME_BETWEEN && f->skip > f->left)
        return fail_list(e, "an item is longer than the list");
    if (f->place == FRAME_BETWEEN)
        f->left -= f->skip;
    close_list(f);
    return 0;
}

/* The magic bytes, before anything else; `in_text` is set once they were read. */
static int feed_magic(struct frame *f, char c, err_t *e)
{
    buf_putc(&f->carry, c);
    if (f->carry.n < WIRE_MAGIC_BYTES)
        return 0;
    if (!protowire_has_magic(buf_str(&f->carry)))
        return fail_list(e, "it does not start with the bytes k8s\\0");
    f->in_text = true;
    buf_clear(&f->carry);
    return 0;
}

/* ---- both */

/* A value is complete: reports a document, or keeps the ListMeta for the end. */
static int end_value(struct frame *f, str last, err_t *e)
{
    f->want = 0;
    f->place = f->mode == FRAME_PROTO_WATCH ? FRAME_OUTSIDE : FRAME_BETWEEN;
    bool is_meta = f->depth == 2;
    if (!is_meta) {
        int r = frame_deliver(f, last, e);
        close_list(f);
        return r;
    }
    buf_clear(&f->envelope);
    buf_put(&f->envelope, buf_str(&f->carry));
    buf_put(&f->envelope, last);
    buf_clear(&f->carry);
    f->depth = 1;
    close_list(f);
    return 0;
}

/* Collects bytes of the value; returns how many were used, or a failure. */
static int feed_value(struct frame *f, str bytes, size_t *ret_used, err_t *e)
{
    uint64_t missing = f->want - f->carry.n;
    *ret_used = (size_t)MIN(missing, (uint64_t)bytes.n);
    str part = str_upto(bytes, *ret_used);
    if (part.n == missing)
        return end_value(f, part, e);
    return frame_carry(f, part, e);
}

static int feed_byte(struct frame *f, char c, err_t *e)
{
    if (f->mode == FRAME_PROTO_LIST)
        return f->in_text ? feed_header(f, c, e) : feed_magic(f, c, e);
    buf_putc(&f->carry, c);
    return f->carry.n < EVENT_HEADER ? 0 : start_event(f, e);
}

int protoframe_feed(struct frame *f, str bytes, err_t *e)
{
    while (bytes.n || (f->place == FRAME_INSIDE && !f->want)) {
        size_t used = 1;
        int r = 0;
        if (f->skip) {
            used = (size_t)MIN(f->skip, (uint64_t)bytes.n);
            f->skip -= used;
        } else if (f->place == FRAME_INSIDE) {
            r = feed_value(f, bytes, &used, e);
        } else {
            r = feed_byte(f, bytes.p[0], e);
        }
        if (r < 0)
            return r;
        bytes = str_from(bytes, used);
    }
    return 0;
}

int protoframe_end(struct frame *f, str *ret_envelope, err_t *e)
{
    bool list = f->mode == FRAME_PROTO_LIST;
    bool whole = !f->carry.n && !f->skip && f->place == FRAME_OUTSIDE && (!list || f->depth);
    str version, token;
    if (!whole)
        return err_set(e, EBADMSG, "the answer ended in the middle of %s",
                       f->place == FRAME_INSIDE ? "an object"
                       : list                   ? "a list"
                                                : "an event");
    if (!protowire_find(buf_str(&f->envelope), WIRE_LIST_META_VERSION, &version) ||
        !protowire_find(buf_str(&f->envelope), WIRE_LIST_META_CONTINUE, &token))
        return fail_list(e, "its metadata is malformed");
    buf_put(&f->carry, S("{\"metadata\":{\"resourceVersion\":"));
    json_write_text(&f->carry, version);
    buf_put(&f->carry, S(",\"continue\":"));
    json_write_text(&f->carry, token);
    buf_put(&f->carry, S("}}"));
    *ret_envelope = buf_str(&f->carry);
    return 0;
}
