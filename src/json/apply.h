/* Server-side apply, and field ownership for every other write.
 *
 * The rules are those of Kubernetes (structured-merge-diff): an applied configuration owns the
 * fields that it names; setting a field that another manager owns to another value is a conflict; a
 * field that its only applier no longer names is removed. Writes that are not applies (POST, PUT,
 * PATCH) own what they changed. Ownership is stored in metadata.managedFields, one entry per
 * manager, operation, subresource and, for updates, version.
 *
 * The place of these functions in a request:
 *   apply_patch     takes the stored object and the configuration, and returns the new object; before
 *                   defaulting, before validation, and before status, generation and the like are reset
 *   apply_update    takes the stored object and the new one; after defaulting, before such resets
 * Both return the object with its managedFields, with the old timestamps if nothing else changed,
 * so that the caller can compare it with the stored object to decide whether to write.
 *
 * All functions are pure: their inputs are not changed. The result may share nodes with them. */
#ifndef FLYBALL_APPLY_H
#define FLYBALL_APPLY_H

#include "fieldset.h"

/* The limit on managedFields entries in a request: each is compared with the others and with all
 * changes. More are treated like malformed entries. */
enum { APPLY_MANAGERS_MAX = 1024 };

struct apply_request {
    const struct shape *shape; /* of the whole object at `version`, including metadata */
    /* The shape at another version, for entries of that version; a NULL result means that it is no
     * longer served, and its entries are dropped. A NULL function: all versions have `shape`. */
    const struct shape *(*shape_of)(void *context, str version);
    /* Converts an object to another version. NULL: versions differ only in their apiVersion. */
    const struct json *(*view)(void *context, str version, const struct json *object);
    void *context;
    /* Fields that this (sub)resource does not write, and therefore never owns: {status} for an
     * object with a status subresource, {spec, metadata} or as the kind defines for /status. NULL:
     * none. */
    const struct fieldset *ignored;
    str version;     /* apiVersion of the request */
    str kind;        /* that a configuration must have; "": not checked */
    str subresource; /* "" for the object itself */
    str manager;     /* fieldManager, or the user agent up to "/"; "" means "unknown" */
    str now;         /* RFC 3339, whole seconds, "Z" */
    bool force;      /* apply_patch: take ownership of conflicting fields */

    const struct json *live;   /* the stored object; NULL: it is being created */
    const struct json *blank;  /* an object of that kind before anything is set; NULL: no fields */
    const struct json *object; /* the configuration or the new object */
};

struct apply_conflict {
    str message; /* conflict with "alice" using v1 */
    str field;   /* .spec.ports[port=80,protocol="TCP"].name */
};

struct apply_result {
    struct json *object;
    /* After -EEXIST: sorted by manager and path; `message` is that of the Status. */
    const struct apply_conflict *conflicts;
    size_t n_conflicts;
    str message;
};

/* 0, or
 *   -EINVAL   the configuration has managedFields, or another apiVersion or kind (HTTP 400)
 *   -EEXIST   conflicts, listed in the result (HTTP 409)
 *   -EBADMSG  it does not fit the shape: unknown field, wrong type, keys missing or twice (HTTP
 * 500) */
int apply_patch(struct arena *a, const struct apply_request *r, struct apply_result *ret, err_t *e);

/* The last step before a write: if `object` differs from `live` only in the timestamps of its
 * managedFields, restores the old timestamps. Both functions above do this too, but later defaults
 * and resets may make two objects equal. */
void apply_keep_times(struct arena *a, const struct json *live, struct json *object);

/* Never fails: an object whose ownership cannot be determined is returned without managedFields, as
 * kube-apiserver does. */
struct json *apply_update(struct arena *a, const struct apply_request *r);

#endif
