/* What a merge needs to know about a type. The API server creates shapes from static tables for its
 * built-in kinds and from the schema of a custom resource; server-side apply (fieldset, apply) and
 * strategic merge patch read them.
 *
 * A shape is plain data that refers to other shapes, so a table can be `static const` and cyclic,
 * or built in an arena. Its creator owns it; it must not change once it is in use.
 *
 *     static const struct shape_field env_fields[] = { { STR_INIT("name"), &shape_scalar }, ... };
 *     static const struct shape env = { SHAPE_OBJ, .fields = env_fields, .n_fields = 3 };
 *     static const struct shape envs = { SHAPE_LIST, .list = SHAPE_MAP_LIST, .element = &env,
 *                                        .keys = env_keys, .n_keys = 1 };
 *
 * How an OpenAPI schema becomes a shape:
 *   string / number, integer / boolean                              shape_string, _number, _boolean
 *   x-kubernetes-int-or-string                                      shape_scalar
 *   object with properties                                          SHAPE_OBJ with fields
 *   object with additionalProperties                                SHAPE_OBJ with element
 *   x-kubernetes-preserve-unknown-fields                            SHAPE_OBJ, element shape_any,
 *                                                                   fields as declared
 *   x-kubernetes-map-type: atomic                                   SHAPE_OBJ, atomic
 *   array, x-kubernetes-list-type: (none), atomic / set / map       SHAPE_LIST
 *   unknown type                                                    shape_any
 *   Quantity, IntOrString                                           shape_scalar
 *   Time, MicroTime, Duration                                       shape_string */
#ifndef FLYBALL_SHAPE_H
#define FLYBALL_SHAPE_H

#include "json.h"

enum shape_kind {
    SHAPE_ANY,    /* decided by the value: objects are granular maps, lists are atomic */
    SHAPE_SCALAR, /* one value, owned as a whole (also Quantity, IntOrString, Time) */
    SHAPE_OBJ,    /* fields, a map if `element` is set, or both */
    SHAPE_LIST,
};

/* The type of a scalar: apply rejects any other. */
enum shape_scalar_type { SHAPE_UNTYPED, SHAPE_STRING, SHAPE_NUMBER, SHAPE_BOOLEAN };

enum shape_list {
    SHAPE_ATOMIC_LIST, /* owned as a whole */
    SHAPE_SET_LIST,    /* unique scalars, each owned by its value */
    SHAPE_MAP_LIST,    /* objects, each identified by its `keys` */
};

/* The patchStrategy of strategic merge patch. Values combine: "merge,retainKeys". */
enum shape_patch {
    SHAPE_PATCH_DEFAULT = 0, /* maps merge, lists are replaced */
    SHAPE_PATCH_MERGE = 1,   /* a list: merge by patch_key; without one, as a set of scalars */
    SHAPE_PATCH_REPLACE = 2,
    SHAPE_PATCH_RETAIN_KEYS = 4,
};

struct shape_field {
    str name;
    const struct shape *shape;
    const struct json *value_if_absent; /* default; needed for keys of map lists; NULL: none */
    unsigned patch;                     /* of enum shape_patch */
    str patch_key;                      /* patchMergeKey; empty: none */
    /* Present in every object of a built-in kind, at least as {} or null: in the Go type it is a
     * struct by value (spec.strategy of a Deployment) or a list without omitempty (containers of a
     * pod). A manager that fills it owns its contents but not the field itself. */
    bool always;
};

struct shape {
    enum shape_kind kind;
    enum shape_list list;             /* SHAPE_LIST */
    enum shape_scalar_type scalar;    /* SHAPE_SCALAR */
    bool atomic;                      /* SHAPE_OBJ: owned as a whole */
    const struct shape_field *fields; /* SHAPE_OBJ: n_fields of them, in any order */
    uint32_t n_fields;
    const uint32_t *by_name; /* SHAPE_OBJ: indexes of `fields`, sorted by name; NULL: few fields */
    uint32_t n_keys;
    const str *keys;             /* SHAPE_MAP_LIST: names of the key fields, n_keys of them */
    const struct shape *element; /* of a list; of a map: members that are not in `fields` */
};

extern const struct shape shape_any;    /* deduced from the value */
extern const struct shape shape_scalar; /* any scalar */
extern const struct shape shape_string, shape_number, shape_boolean;
extern const struct shape shape_atomic_obj;  /* an object owned as a whole, contents unknown */
extern const struct shape shape_scalar_map;  /* labels, annotations, ConfigMap data */
extern const struct shape shape_scalar_list; /* an atomic list of scalars: container args */
extern const struct shape shape_scalar_set;  /* finalizers */

/* The declared field of that name, or NULL. */
const struct shape_field *shape_field(const struct shape *s, str name);
/* Sorts the names of a shape with many fields, once it is complete: a CRD may have thousands. */
void shape_sort_fields(struct arena *a, struct shape *s);

/* The shape of a member: that of its field, otherwise that of the map's elements; NULL:
 * undeclared. */
const struct shape *shape_member(const struct shape *s, str name);

/* Resolves SHAPE_ANY by a value (null: a map); returns any other shape unchanged. */
const struct shape *shape_for(const struct shape *s, const struct json *value);

unsigned shape_patch_parse(str strategy); /* x-kubernetes-patch-strategy to enum shape_patch */

#endif
