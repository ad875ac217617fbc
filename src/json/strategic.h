/* Strategic merge patch: a merge patch that knows which lists merge by key (shape.h).
 *
 *   $patch: replace | delete                 in a map, or as an element of a merged list
 *   $deleteFromPrimitiveList/<field>: []     takes scalars out of a merged list
 *   $setElementOrder/<field>: []             the order the merged list is to have
 *   $retainKeys: []                          members of a map that may stay
 *
 * Elements a patch brings stand before those only the server has, unless the order of the live list
 * or of $setElementOrder says otherwise, as with Kubernetes. */
#ifndef FLYBALL_STRATEGIC_H
#define FLYBALL_STRATEGIC_H

#include "shape.h"

/* Puts a new tree in place of `*object`; neither the old one nor the patch is changed. 0, or
 *   -EINVAL   a directive is malformed (HTTP 400)
 *   -ENOTSUP  a list of lists cannot be merged (HTTP 422)
 *   -EBADMSG  the patch does not fit: no merge key in an element, unknown $patch (HTTP 500) */
int strategic_patch(struct arena *a, const struct shape *shape, struct json **object,
                    const struct json *patch, err_t *e);

#endif
