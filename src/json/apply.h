/* Who owns which field: server-side apply, and the bookkeeping of every other write.
 *
 * The rules are those of Kubernetes (structured-merge-diff): an applied configuration owns the
 * fields it names; a field owned by somebody else and given another value is a conflict; a field no
 * longer named by its only applier disappears. Writes that are not applies (POST, PUT, PATCH) own
 * what they changed. Ownership is kept in metadata.managedFields, one entry for each manager,
 * operation, subresource and, for updates, version.
 *
 * Where this stands in a request:
 *   apply_patch     takes the stored object and the configuration, and makes the new object, before
 *                   defaults are filled in, and before validation and before status, generation and
 *                   the like are reset;
 *   apply_update    takes the stored object and the new one, after defaults and before such resets.
 * Both return the object with its managedFields, with the old times where nothing else changed, so
 * that comparing with the stored object tells whether to write.
 *
 * Everything is a pure function: the trees given are not changed. The result may share parts with them. */
#ifndef FLYBALL_APPLY_H
#define FLYBALL_APPLY_H

#include "fieldset.h"

/* Entries of managedFields that an object may bring along: each is compared with the others and with what
 * changes. More of them are treated like entries that cannot be read. */
enum { APPLY_MANAGERS_MAX = 1024 };

struct apply_request {
    const struct shape *shape; /* of the whole object at `version`, with metadata */
    /* The shape at another version, for entries written there; NULL result: no longer served, the
     * entry is dropped. Without the function every version has `shape`. */
    const struct shape *(*shape_of)(void *context, str version);
    /* An object of this version as the other one shows it; NULL: the same, but for its apiVersion. */
    const struct json *(*view)(void *context, str version, const struct json *object);
    void *context;
    /* Fields this (sub)resource does not write, and so never owns: {status} for an object with a
     * status subresource, {spec, metadata} or what the kind says for /status. NULL: none. */
    const struct fieldset *ignored;
    str version;     /* apiVersion of the request */
    str kind;        /* what a configuration must be; "": not checked */
    str subresource; /* "" for the object itself */
    str manager;     /* fieldManager, or what the user agent says before "/"; "" is "unknown" */
    str now;         /* RFC 3339, seconds, "Z" */
    bool force;      /* apply_patch: take over what others own */

    const struct json *live;   /* stored object; NULL: it is being created */
    const struct json *blank;  /* object of that kind before anything is set; NULL: has no fields */
    const struct json *object; /* the configuration, or the new object */
};

struct apply_conflict {
    str message; /* conflict with "alice" using v1 */
    str field;   /* .spec.ports[port=80,protocol="TCP"].name */
};

struct apply_result {
    struct json *object;
    /* After -EEXIST, sorted by manager and path; the whole sentence for the Status. */
    const struct apply_conflict *conflicts;
    size_t n_conflicts;
    str message;
};

/* 0, or
 *   -EINVAL   the configuration has managedFields, or another apiVersion or kind (HTTP 400)
 *   -EEXIST   conflicts, listed in the result (HTTP 409)
 *   -EBADMSG  it does not fit the shape: unknown field, wrong type, keys missing or twice (HTTP 500) */
int apply_patch(struct arena *a, const struct apply_request *r, struct apply_result *ret, err_t *e);

/* For the last step before a write: when `object` differs from `live` in nothing but the times of its
 * managedFields, it gets the old times back. Both functions here do it, but defaults and resets
 * that come later may make two objects equal. */
void apply_keep_times(struct arena *a, const struct json *live, struct json *object);

/* Never fails: an object whose ownership cannot be worked out is returned without managedFields, as
 * the API server does. */
struct json *apply_update(struct arena *a, const struct apply_request *r);

#endif
