/* JSON patch (RFC 6902) as a Kubernetes API server applies it, which is milder than the RFC:
 *
 *   replace of a missing member        works as add
 *   copy of a missing member           adds null
 *   test of a missing member           equals null
 *   a missing "value"                  is null
 *   negative indices                   count from the end
 *
 * Nothing is changed in the document that is given; on failure there is no result at all. */
#ifndef FLYBALL_PATCH_H
#define FLYBALL_PATCH_H

#include "json.h"

enum {
    PATCH_OPERATIONS_MAX = 10000,
    PATCH_COPY_BYTES_MAX = 3 << 20, /* by "copy" operations, together */
    /* Entries that move as others come and go before them, together: all operations there can be on
     * the longest list a body can have (16,384) pass; a list that was made longer costs 0.5 s at most. */
    PATCH_MOVES_MAX = 256 << 20,
};

/* 0, or
 *   -EINVAL   the patch cannot be read: not a list of objects, op or path not text (HTTP 400)
 *   -E2BIG    too many operations (HTTP 413)
 *   -ENOENT   it does not apply: unknown operation, missing path, bad index, copies or
 *             moves too much
 *   -ESTALE   a "test" failed (both HTTP 422) */
int patch_apply(struct arena *a, const struct json *doc, const struct json *patch,
                struct json **ret, err_t *e);

#endif
