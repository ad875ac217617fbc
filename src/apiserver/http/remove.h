/* Deletion, for the DELETE verb and for the controllers of garbage, namespaces and definitions.
 *
 * An object is deleted at once unless finalizers or (pods on a node) a grace period hold it. Then it is only
 * marked with a deletionTimestamp and is deleted when the last hold ends. */
#ifndef FLYBALL_REMOVE_H
#define FLYBALL_REMOVE_H

#include "write.h"

enum propagation {
    PROPAGATE_DEFAULT,
    PROPAGATE_BACKGROUND,
    PROPAGATE_FOREGROUND,
    PROPAGATE_ORPHAN
};

struct remove_options {
    enum propagation propagation;
    int64_t grace_s; /* -1: unset */
    bool dry_run;
};

enum removal { REMOVAL_FAILED, REMOVAL_GONE, REMOVAL_MARKED, REMOVAL_UNCHANGED };

struct removed {
    enum removal how;
    struct json *tree;           /* for the answer, in the version of the kind */
    const struct object *stored; /* borrowed; NULL after a dry run or failure */
    err_t error;                 /* REMOVAL_FAILED */
};

/* `old` is the object's store_latest(). */
struct removed remove_object(struct server *s, struct arena *a, const struct kind *k,
                             const struct object *old, const struct remove_options *options);

/* On JSON arrays of strings, such as finalizers. */
bool remove_list_contains(const struct json *strings, str wanted);
bool remove_from_list(struct json *strings, str unwanted); /* true: it was in the array */

static inline bool remove_is_kind(const struct kind *k, str group, str plural)
{
    return str_eq(k->group, group) && str_eq(k->plural, plural);
}

#define FINALIZER_ORPHAN S("orphan")
#define FINALIZER_FOREGROUND S("foregroundDeletion")
#define FINALIZER_CLAIM S("kubernetes.io/pvc-protection")
#define FINALIZER_CRD S("customresourcecleanup.apiextensions.k8s.io")
#define CRD_GROUP S("apiextensions.k8s.io")
#define CRD_PLURAL S("customresourcedefinitions")

#endif
