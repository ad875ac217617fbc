/* Deleting: what DELETE, the garbage collector, namespaces and definitions all do.
 *
 * An object goes at once unless something holds it: finalizers, or (pods on a node) a grace period. Then
 * it is only marked, and goes when the last hold does. */
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
    int64_t grace_s; /* -1: not said */
    bool dry_run;
};

enum removal { REMOVAL_FAILED, REMOVAL_GONE, REMOVAL_MARKED, REMOVAL_UNCHANGED };

struct removed {
    enum removal how;
    struct json *tree; /* as it is shown, in the version of the kind */
    const struct object *stored;
    err_t error; /* REMOVAL_FAILED */
};

/* `old` is what store_latest() has at the key. */
struct removed remove_object(struct server *s, struct arena *a, const struct kind *k,
                             const struct object *old, const struct remove_options *options);

/* An object's stored tree, for a controller to change; NULL when it is not there. */
struct json *edit_begin(struct server *s, struct arena *a, str key, const struct kind **ret_kind);
/* Stages the changed tree; an object that nothing holds any more goes instead. */
bool edit_end(struct server *s, struct arena *a, const struct kind *k, str key, struct json *tree);

bool list_has(const struct json *strings, str wanted);
bool list_drop(struct json *strings, str unwanted); /* true: it was there */

static inline bool kind_is(const struct kind *k, str group, str plural)
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
