/* Kinds: everything that the server knows about a group, version and kind, as data, and the steps of a
 * write that depend on the kind. Pure functions over trees: no store, no clock, no I/O; what a step must
 * look up comes through `struct kind_env`.
 *
 * A write runs these steps (what is between them belongs to the caller):
 *
 *   body -> kind_decode -> [patch, managed fields] -> kind_prepare -> kind_validate -> store
 *
 *   kind_decode    parses, drops unknown fields, sets defaults           400 on failure
 *   kind_prepare   what strategies and admission plug-ins set: status and generation,
 *                  cluster IPs, tolerations, QoS class                   403, 409 or 422
 *   kind_validate  names, labels, immutability, everything else          422 with causes
 *
 * Memory: built-in kinds live forever (kinds_builtin); the kinds of a CustomResourceDefinition live in the
 * arena given to kinds_from_crd. Trees belong to the arena of the request.
 *
 * Read first: kinds.c (the table of kinds), types/README.md (how fields are declared), kind_steps.c (the
 * steps). Each remaining file has the rules of one kind, or of one part of a PodSpec. */
#ifndef FLYBALL_APISERVER_KINDS_H
#define FLYBALL_APISERVER_KINDS_H

#include "../schema/kind.h"

/* All built-in kinds; versions of a resource are adjacent, the preferred one first. Built on first use; the
 * array never changes. */
const struct kind *const *kinds_builtin(size_t *ret_n);

/* A built-in kind by plural name; NULL if there is none. */
const struct kind *kinds_find(str group, str version, str plural);

/* The kind that a subresource reads and writes: the object itself, its Scale, or what is posted to it. */
const struct kind *kind_of_sub(const struct kind *k, enum kind_sub sub);
const struct kind *kind_of_posted_sub(
    enum kind_sub sub); /* NULL: `sub` is not one that is posted to */

str kind_api_version(struct arena *a, const struct kind *k); /* "v1", "apps/v1" */

/* ---- steps of a write */

/* A failure that becomes a Status. If `errors` is not empty, it is Invalid (422) with causes. */
struct kind_fault {
    int code;                 /* HTTP; 0: no fault */
    const char *reason;       /* "Forbidden", "AlreadyExists", "Invalid", ... */
    str message;              /* whole message, in the request's arena */
    const char *cause;        /* reason of a single cause without a field; NULL: none */
    const struct kind *about; /* the kind in Status.details; NULL: the kind that is written */
    struct field_errors errors;
};

struct kind_env {
    struct arena *arena; /* of the request */
    int64_t now_ns;      /* wall clock */
    void *context;
    /* The stored object, or NULL; valid until the request ends. */
    const struct json *(*lookup)(void *context, const struct kind *k, str ns, str name);
    /* All stored objects of a kind in a namespace ("": all), those not committed yet included; NULL: not available. */
    const struct json *(*list)(void *context, const struct kind *k, str ns);
    /* True if the JSON text of a stored service contains `text`: an address or a node port. */
    bool (*service_holds)(void *context, str text);
    /* Sets used[i] for each node port first + i in use; NULL: service_holds is called for each. */
    void (*service_ports)(void *context, bool *used, int64_t first, int64_t n);
    /* Called once per header "Warning: 299 - <text>". */
    void (*warn)(void *context, str text);
    bool no_accounts;        /* pods need no service account */
    const struct json *user; /* who asks: username, uid, groups, extra; or NULL */
};

struct kind_change {
    const struct kind *kind;
    enum kind_sub sub;      /* a write to /scale is a change of the parent: see kind_scale_apply */
    struct json *object;    /* the new state; kind_prepare changes it in place */
    const struct json *old; /* NULL: a create */
};

/* Decodes a body in place. Of a custom resource, metadata is decoded as a built-in type and the rest is
 * pruned and defaulted. `unknown` gets the dropped fields (for fieldValidation); may be NULL. */
int kind_decode(const struct kind *k, struct arena *a, struct json *object,
                struct schema_unknown *unknown, err_t *e);

/* An object with nothing set: only the fields that are always written; NULL for custom resources, which
 * have none. */
struct json *kind_empty_object(const struct kind *k, struct arena *a);

/* Converts a stored object to the served version. A custom resource is pruned and defaulted by the schema
 * that its stored version has today, pruned by that of `k`, and gets the apiVersion of `k`; a built-in
 * object is converted from k->storage. */
void kind_from_storage(const struct kind *k, struct arena *a, struct json *object);

/* The reverse: from the served version to k->storage. Most kinds need no conversion. */
void kind_to_storage(const struct kind *k, struct arena *a, struct json *object);

/* The caller has set system metadata (uid, creationTimestamp, resourceVersion, the generated name,
 * deletion); kind_prepare sets the generation. */
void kind_prepare(const struct kind_change *change, struct kind_env *env,
                  struct kind_fault *ret_fault);
void kind_validate(const struct kind_change *change, struct kind_env *env,
                   struct kind_fault *ret_fault);

/* Fields that a write through `sub` does not change, so that no manager comes to own them:
 * NULL-terminated, dotted ("status", "metadata.labels"). */
const char *const *kind_reset_fields(const struct kind *k, enum kind_sub sub);

/* ---- selectors, grace */

/* Label selectors: matchLabels and matchExpressions. */
bool kind_selector_matches(const struct json *selector, const struct json *labels);
bool kind_selector_is_empty(const struct json *selector);

/* The value that a field selector compares; false if the kind does not support the label. */
bool kind_field_value(const struct kind *k, const struct json *object, str label, str *ret_value);
bool kind_field_known(const struct kind *k, str label);

/* Grace period of a delete in seconds; `asked` is DeleteOptions.gracePeriodSeconds, or -1. Only pods have
 * one; 0 deletes at once. */
int64_t kind_grace_seconds(const struct kind *k, const struct json *object, int64_t asked);

/* Called when a delete sets deletionTimestamp: increments the generation, if there is one, and makes a
 * namespace Terminating. */
void kind_mark_deleting(const struct kind *k, struct arena *a, struct json *object);

/* ---- scale */

/* The autoscaling/v1 Scale of an object; NULL and a fault if its replicas cannot be read. If ret_fault is
 * NULL, unreadable replicas count as zero: a patch of a Scale may set a field that is not there yet. */
struct json *kind_scale_of(const struct kind *k, struct arena *a, const struct json *object,
                           struct kind_fault *ret_fault);
/* Writes the replicas of a Scale into a copy of the object; then kind_prepare/kind_validate. */
void kind_scale_apply(const struct kind *k, struct arena *a, const struct json *scale,
                      struct json *object, struct kind_fault *ret_fault);
const struct kind *kind_scale_kind(void); /* schema of Scale itself: decode, shape, openapi */

/* ---- custom resource definitions */

struct kinds_list {
    const struct kind **at; /* one per served version; each has the stored version in ->storage */
    size_t n;
};

/* The kinds that a stored, and therefore valid, definition declares. Everything lives in `a`. */
void kinds_from_crd(struct arena *a, const struct json *crd, struct kinds_list *ret);

/* Sets status.acceptedNames and the conditions NamesAccepted and Established of `crd`, given all
 * definitions (including this one). True if the status changed. */
bool kinds_accept_crd_names(struct arena *a, struct json *crd, const struct json *const *all,
                            size_t n, int64_t now_ns);

#endif
