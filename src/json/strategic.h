/* Strategic merge patch: a merge patch that merges lists by key according to their shape (shape.h).
 *
 *   $patch: replace | delete                 in a map, or as an element of a merged list
 *   $deleteFromPrimitiveList/<field>: []     removes scalars from a merged list
 *   $setElementOrder/<field>: []             the desired order of the merged list
 *   $retainKeys: []                          members of a map to keep; removes all others
 *
 * As in Kubernetes, elements of the patch come before elements that only the server has, unless the
 * live list or $setElementOrder defines another order. */
#ifndef FLYBALL_STRATEGIC_H
#define FLYBALL_STRATEGIC_H

#include "shape.h"

/* Replaces `*object` with a new tree; neither the old one nor the patch is changed. 0, or
 *   -EINVAL   a directive is malformed (HTTP 400)
 *   -ENOTSUP  a list of lists cannot be merged (HTTP 422)
 *   -EBADMSG  the patch does not fit: no merge key in an element, unknown $patch (HTTP 500) */
int strategic_patch(struct arena *a, const struct shape *shape, struct json **object,
                    const struct json *patch, err_t *e);

#endif
