/* JSON merge patch (RFC 7386): members replace, objects merge, null removes, lists are replaced as a
 * whole. As in Kubernetes, members that are null are also left out of objects inside lists. */
#ifndef FLYBALL_MERGE_H
#define FLYBALL_MERGE_H

#include "json.h"

/* A new tree; neither the target (NULL: nothing there) nor the patch is changed or shared. */
struct json *merge_patch(struct arena *a, const struct json *target, const struct json *patch);

/* The smallest patch that makes `to` out of `from`; NULL when they are equal. What cannot be said
 * in a merge patch (a member that is null in `to`) is left out. */
struct json *merge_diff(struct arena *a, const struct json *from, const struct json *to);

#endif
