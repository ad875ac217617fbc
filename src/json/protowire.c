/* Reads and writes fields of protobuf messages: see protowire.h.
 *
 * The bytes are untrusted: a length is compared with what is left before it is used, a number has at most ten bytes,
 * and the types that Kubernetes never writes (groups) are malformed. Nothing recurses. */
#include "protowire.h"

bool protowire_take_varint(str *rest, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < rest->n; i++) {
        uint64_t part = (unsigned char)rest->p[i];
        value |= (part & 0x7f) << (7 * i);
        if (part & 0x80)
            continue;
        *rest = (str){ rest->p + i + 1, rest->n - i - 1 };
        *ret = value;
        return true;
    }
    return false;
}

/* Little-endian, four or eight bytes. */
static bool take_fixed(str *rest, unsigned width, uint64_t *ret)
{
    uint64_t value = 0;
    if (rest->n < width)
        return false;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)(unsigned char)rest->p[i] << (8 * i);
    *rest = str_from(*rest, width);
    *ret = value;
    return true;
}

bool protowire_take(str *rest, struct protowire_field *ret)
{
    uint64_t key = 0, length = 0;
    if (!protowire_take_varint(rest, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return false;
    *ret = (struct protowire_field){ .number = (uint32_t)(key >> 3),
                                     .type = (enum protowire_type)(key & 7) };
    switch (ret->type) {
    case WIRE_VARINT:
        return protowire_take_varint(rest, &ret->integer);
    case WIRE_FIXED64:
        return take_fixed(rest, 8, &ret->integer);
    case WIRE_FIXED32:
        return take_fixed(rest, 4, &ret->integer);
    case WIRE_BYTES:
        if (!protowire_take_varint(rest, &length) || length > rest->n)
            return false;
        ret->bytes = (str){ rest->p, (size_t)length };
        *rest = (str){ rest->p + length, rest->n - (size_t)length };
        return true;
    default:
        return false;
    }
}

bool protowire_find(str message, uint32_t number, str *ret)
{
    struct protowire_field f;
    *ret = S("");
    while (message.n) {
        if (!protowire_take(&message, &f))
            return false;
        if (f.number == number && f.type == WIRE_BYTES)
            *ret = f.bytes;
    }
    return true;
}

bool protowire_has_magic(str body)
{
    return body.n >= WIRE_MAGIC_BYTES && memcmp(body.p, "k8s", WIRE_MAGIC_BYTES) == 0;
}

bool protowire_unwrap(str body, str *ret_object)
{
    return protowire_has_magic(body) &&
           protowire_find(str_from(body, WIRE_MAGIC_BYTES), WIRE_UNKNOWN_RAW, ret_object);
}

/* ---- writing */

/* Seven bits per byte, least significant first; the high bit marks that more follow. */
static void put_number(struct buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_putc(out, (char)(value | 0x80));
    buf_putc(out, (char)value);
}

static void put_key(struct buf *out, uint32_t number, enum protowire_type type)
{
    put_number(out, (uint64_t)number << 3 | type);
}

void protowire_put_varint(struct buf *out, uint32_t number, uint64_t value)
{
    put_key(out, number, WIRE_VARINT);
    put_number(out, value);
}

void protowire_put_fixed64(struct buf *out, uint32_t number, uint64_t value)
{
    put_key(out, number, WIRE_FIXED64);
    for (unsigned i = 0; i < sizeof(value); i++)
        buf_putc(out, (char)(value >> (8 * i)));
}

void protowire_put_double(struct buf *out, uint32_t number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    protowire_put_fixed64(out, number, bits);
}

void protowire_put_bytes(struct buf *out, uint32_t number, str bytes)
{
    put_key(out, number, WIRE_BYTES);
    put_number(out, bytes.n);
    buf_put(out, bytes);
}
