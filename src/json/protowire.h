/* Protobuf on the wire: a message is a sequence of fields, each a number, a wire type and a value. Reading copies nothing:
 * texts borrow from the message.
 *
 * Also the numbers of the envelopes around Kubernetes objects, which are the same for all kinds:
 *
 *     object      "k8s\0" Unknown { 1: TypeMeta { 1: apiVersion, 2: kind }   2: bytes of the object }
 *     list        the same, and the bytes are { 1: ListMeta { 2: resourceVersion, 3: continue }   2: item ... }
 *     watch       4 bytes of length, big-endian, then { 1: type   2: { 1: an object as above } } for each event */
#ifndef FLYBALL_PROTOWIRE_H
#define FLYBALL_PROTOWIRE_H

#include "../base/buf.h"

enum protowire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct protowire_field {
    uint32_t number;
    enum protowire_type type;
    uint64_t integer; /* WIRE_VARINT, WIRE_FIXED64, WIRE_FIXED32 */
    str bytes;        /* WIRE_BYTES */
};

/* Removes the first field from `*rest`, which must not be empty; false if it is malformed or incomplete. */
bool protowire_take(str *rest, struct protowire_field *ret);

/* False if the number does not end within ten bytes or within the text. */
bool protowire_take_varint(str *rest, uint64_t *ret);

/* The last field of this number if it is text or a message; "" if there is none. False: malformed. */
bool protowire_find(str message, uint32_t number, str *ret);

/* Append one field. What a zero means is the caller's: it is written like any other value. */
void protowire_put_varint(struct buf *out, uint32_t number, uint64_t value);
void protowire_put_fixed64(struct buf *out, uint32_t number, uint64_t value);
void protowire_put_double(struct buf *out, uint32_t number, double value);
void protowire_put_bytes(struct buf *out, uint32_t number, str bytes); /* text or a message */

enum {
    WIRE_UNKNOWN_RAW = 2,
    WIRE_LIST_META = 1,
    WIRE_LIST_ITEM = 2,
    WIRE_LIST_META_VERSION = 2,
    WIRE_LIST_META_CONTINUE = 3,
    WIRE_EVENT_TYPE = 1,
    WIRE_EVENT_OBJECT = 2,
    WIRE_RAW_BYTES = 1,
    WIRE_MAGIC_BYTES = 4,
};

bool protowire_has_magic(str body);
/* The bytes of the object in such an envelope; false if it is none. */
bool protowire_unwrap(str body, str *ret_object);

#endif
