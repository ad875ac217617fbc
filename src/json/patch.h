/* JSON patch (RFC 6902) as kube-apiserver applies it, which is more lenient than the RFC:
 *
 *   replace of a missing member        works as add
 *   copy of a missing member           adds null
 *   test of a missing member           equals null
 *   a missing "value"                  is null
 *   negative indices                   count from the end
 *
 * The input document is not changed; on failure there is no result. */
#ifndef FLYBALL_PATCH_H
#define FLYBALL_PATCH_H

#include "json.h"

enum {
    PATCH_OPERATIONS_MAX = 10000,
    PATCH_COPY_BYTES_MAX = 3 << 20, /* by all "copy" operations together */
    /* List entries moved by all insertions and removals together: the maximum number of operations
     * on the longest list that a body can contain (16,384) passes; a longer list costs at most 0.5
     * s. */
    PATCH_MOVES_MAX = 256 << 20,
};

/* 0, or
 *   -EINVAL   the patch is malformed: not a list of objects, op or path not a string (HTTP 400)
 *   -E2BIG    too many operations (HTTP 413)
 *   -ENOENT   it cannot be applied: unknown operation, missing path, bad index, too much copied or
 *             moved
 *   -ESTALE   a "test" failed (both HTTP 422) */
int patch_apply(struct arena *a, const struct json *doc, const struct json *patch,
                struct json **ret, err_t *e);

#endif
