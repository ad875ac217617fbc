/* Protobuf messages as the JSON text of their declared members, so that everything after this step is the same for both
 * encodings: parsing, projecting, comparing. It is to messages what trim.h is to JSON, and costs less: a field that no
 * path needs is skipped by its length. */
#ifndef FLYBALL_PROTOTRIM_H
#define FLYBALL_PROTOTRIM_H

#include "../base/buf.h"
#include "fieldtree.h"
#include "prototable.h"

/* Finds the field of every path in the table; false if one is not there or cannot be read, and then the objects must be
 * requested in JSON: a field is never guessed. */
bool prototrim_resolve(const struct prototable *t, const struct prototable_message *m,
                       struct kept *keep);

/* Appends the message as JSON. `keep` was resolved with the same table and message. False if the message is malformed;
 * then the content of `out` is undefined. */
bool prototrim(const struct prototable *t, const struct prototable_message *m,
               const struct kept *keep, str bytes, struct buf *out);

/* The same with all members; the message must be complete. */
bool prototrim_whole(const struct prototable *t, const struct prototable_message *m, str bytes,
                     struct buf *out);

#endif
