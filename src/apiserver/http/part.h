/* Stored objects, sent in parts.
 *
 * An answer that is pulled (a watch, a large list) must not copy an object of a megabyte for each client that has
 * stopped reading: objects are immutable and shared, so the stream keeps a reference and its position in the text,
 * and copies what fits each time. Objects of at most PART_WHOLE bytes are copied whole. */
#ifndef FLYBALL_PART_H
#define FLYBALL_PART_H

#include "../store/object.h"

enum { PART_WHOLE = 16 * 1024 };

struct part {
    struct object *object; /* owned reference; NULL: nothing is being sent */
    int64_t rev;           /* the resourceVersion to show */
    size_t skip;           /* bytes of the JSON that are left out at its beginning */
    size_t at;             /* bytes sent so far, of what is not left out */
};

/* Both append the beginning of the object, up to `room` bytes, and return true when that was all of it. The first
 * shows the resourceVersion `rev`, the second leaves out kind and apiVersion, as object_put_as() and
 * object_put_item() do. */
bool part_begin_as(struct part *p, struct buf *out, size_t room, struct object *o, int64_t rev);
bool part_begin_item(struct part *p, struct buf *out, size_t room, struct object *o);
/* Appends up to `room` further bytes. True: the object is complete and released. */
bool part_continue(struct part *p, struct buf *out, size_t room);
void part_done(struct part *p); /* releases an object that will not be completed */

#endif
