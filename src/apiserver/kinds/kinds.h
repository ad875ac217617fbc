/* Kinds: everything the server knows of one served group/version/kind, as data, and the steps of a
 * write that depend on the kind. Pure functions over trees: no store, no clock, no I/O; what
 * a step must look up comes through `struct kind_env`.
 *
 * A write walks these steps (the verbs in between belong to the caller):
 *
 *   body -> kind_decode -> [patch, managed fields] -> kind_prepare -> kind_validate -> store
 *
 *   kind_decode    reads, drops unknown fields, fills in defaults        400 on failure
 *   kind_prepare   what a strategy and the admission plug-ins set: status kept apart, generation,
 *                  cluster addresses, tolerations, QoS class             403, 409, 422 possible
 *   kind_validate  names, labels, immutability, everything else          422 with causes
 *
 * Memory: built-in kinds live for ever (kinds_builtin); kinds of a CustomResourceDefinition live
 * in the arena given to kinds_from_crd. Trees belong to the arena of the request. */
#ifndef FLYBALL_APISERVER_KINDS_H
#define FLYBALL_APISERVER_KINDS_H

#include "../schema/kind.h"

/* All built-in kinds, several versions of one resource side by side (the preferred one first).
 * Parsed from types/ on first use; the same array for ever after. */
const struct kind *const *kinds_builtin(size_t *ret_n);

/* One of them by plural name, NULL when there is none. */
const struct kind *kinds_find(str group, str version, str plural);

/* What a subresource reads and writes: the object itself, its Scale, or what is posted to it. */
const struct kind *kind_of_sub(const struct kind *k, enum kind_sub sub);
const struct kind *kind_posted(enum kind_sub sub); /* NULL: not one that is posted to */

str kind_api_version(struct arena *a, const struct kind *k); /* "v1", "apps/v1" */

/* ---- steps of a write */

/* A failure that becomes a Status. Where `errors` is not empty it is Invalid (422) with causes. */
struct kind_fault {
    int code;                 /* HTTP; 0: no fault */
    const char *reason;       /* "Forbidden", "AlreadyExists", "Invalid", ... */
    str message;              /* whole message, in the request's arena */
    const char *cause;        /* reason of the one cause beside the message; NULL: none */
    const struct kind *about; /* what the Status speaks of; NULL: the kind that is stored */
    struct field_errors errors;
};

struct kind_env {
    struct arena *arena; /* of the request */
    int64_t now_ns;      /* wall clock */
    void *context;
    /* The stored object, or NULL; valid until the request ends. */
    const struct json *(*lookup)(void *context, const struct kind *k, str ns, str name);
    /* Does a service hold this text: an address, a port of the nodes? */
    bool (*service_holds)(void *context, str text);
    /* Marks the ports from `first` on that services hold; NULL: service_holds is asked for each. */
    void (*service_ports)(void *context, bool *used, int64_t first, int64_t n);
    /* Told once for every header "Warning: 299 - <text>". */
    void (*warn)(void *context, str text);
};

struct kind_change {
    const struct kind *kind;
    enum kind_sub sub;   /* KIND_SCALE is written as a change of the parent: see kind_scale_apply */
    struct json *object; /* the new state; changed in place by kind_prepare */
    const struct json *old; /* NULL: a create */
};

/* Makes sense of a body. For a custom resource metadata is read as a built-in type and the rest is
 * pruned and defaulted. `unknown` gets the dropped fields (for fieldValidation); may be NULL. */
int kind_decode(const struct kind *k, struct arena *a, struct json *object,
                struct schema_unknown *unknown, err_t *e);

/* An object of that kind before anything is set: the fields that are always written; NULL where there
 * are none, as in custom resources. */
struct json *kind_nothing(const struct kind *k, struct arena *a);

/* What was stored, as it is served now: a custom resource is pruned and defaulted by the schema its
 * stored version has today, pruned by that of `k` and gets the apiVersion of `k`; a built-in object is converted from k->storage. */
void kind_read(const struct kind *k, struct arena *a, struct json *object);

/* The reverse: from the served version to k->storage. Nothing to do for most kinds. */
void kind_store(const struct kind *k, struct arena *a, struct json *object);

/* System metadata (uid, creationTimestamp, resourceVersion, name from generateName, deletion)
 * is set by the caller before; generation is set here. */
void kind_prepare(const struct kind_change *change, struct kind_env *env,
                  struct kind_fault *ret_fault);
void kind_validate(const struct kind_change *change, struct kind_env *env,
                   struct kind_fault *ret_fault);

/* Top-level or dotted fields that a write through `sub` does not touch, so that no manager comes to
 * own them: NULL-ended ("status", "metadata.labels"). */
const char *const *kind_reset_fields(const struct kind *k, enum kind_sub sub);

/* ---- selectors, grace */

/* The value a field selector compares; false when the kind does not know the label. */
bool kind_field_value(const struct kind *k, const struct json *object, str label, str *ret_value);
bool kind_field_known(const struct kind *k, str label);

/* Seconds a delete waits before the object goes, `asked` being DeleteOptions.gracePeriodSeconds
 * or -1. 0: at once. Only pods wait. */
int64_t kind_grace_seconds(const struct kind *k, const struct json *object, int64_t asked);

/* Called when a delete sets deletionTimestamp: the generation goes up where there is one, a
 * namespace becomes Terminating. */
void kind_mark_deleting(const struct kind *k, struct arena *a, struct json *object);

/* ---- scale */

/* autoscaling/v1 Scale of an object; NULL and a fault when its replicas cannot be read. Without a
 * place for the fault they count as none: who patches a Scale may set what is not there yet. */
struct json *kind_scale_of(const struct kind *k, struct arena *a, const struct json *object,
                           struct kind_fault *ret_fault);
/* Writes the replicas of a Scale into a copy of the object; then kind_prepare/kind_validate. */
void kind_scale_apply(const struct kind *k, struct arena *a, const struct json *scale,
                      struct json *object, struct kind_fault *ret_fault);
const struct kind *kind_scale_kind(void); /* schema of Scale itself: decode, shape, openapi */

/* ---- custom resource definitions */

struct kinds_list {
    const struct kind *
        *at; /* one a served version, storage version's kind reachable by ->storage */
    size_t n;
};

/* The kinds a stored (so: valid) definition makes. Everything lives in `a`. */
void kinds_from_crd(struct arena *a, const struct json *crd, struct kinds_list *ret);

/* Settles status.acceptedNames and the conditions NamesAccepted and Established of `crd`, given all
 * definitions (itself among them). True if the status changed. */
bool kinds_settle_crd(struct arena *a, struct json *crd, const struct json *const *all, size_t n,
                      int64_t now_ns);

#endif
