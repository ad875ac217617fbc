/* JSON merge patch (RFC 7386): objects merge, null removes a member, anything else replaces it,
 * lists as a whole. As in Kubernetes, null members of objects inside lists are removed too. */
#ifndef FLYBALL_MERGE_H
#define FLYBALL_MERGE_H

#include "json.h"

/* A new tree; neither the target (NULL: none) nor the patch is changed or shared. */
struct json *merge_patch(struct arena *a, const struct json *target, const struct json *patch);

/* The smallest patch that turns `from` into `to`; NULL if they are equal. Changes that a merge
 * patch cannot express (a member that is null in `to`) are omitted. */
struct json *merge_diff(struct arena *a, const struct json *from, const struct json *to);

/* One patch with the effect of `first` and then `second`. NULL: there is none, because an object would replace a value of
 * another type, and a merge patch cannot express that. Neither is changed or shared. */
struct json *merge_compose(struct arena *a, const struct json *first, const struct json *second);

#endif
