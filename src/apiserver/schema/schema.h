/* What a valid value looks like: one schema graph for built-in kinds and custom resources.
 *
 * Built-in kinds are declared in kinds/types (compact tables, parsed once by types.c); the schema of a
 * custom resource comes from its CustomResourceDefinition (schema_build.c). Both become the same graph,
 * and every step of a write asks the graph:
 *
 *   schema_decode     built-in: parse as this type; drop unknown fields, canonicalize quantities and
 *                     times, omit empty values as the Go types do
 *   schema_prune      custom: drop unknown fields
 *   schema_default    set defaults
 *   schema_validate   custom: everything that is wrong with a value, by field
 *   schema_shape      what patches and server-side apply need (json/shape.h)
 *
 * A graph lives in one arena, never changes once it is built, and may be cyclic (a schema can describe
 * schemas). Walkers are bounded by the depth of the value, which the parser limits.
 *
 * Read first: this header, then types.c (where graphs come from) and schema_decode.c (the most used walk). */
#ifndef FLYBALL_APISERVER_SCHEMA_H
#define FLYBALL_APISERVER_SCHEMA_H

#include "../../json/shape.h"
#include "field.h"

struct regex;

enum schema_type {
    SCHEMA_ANY, /* no type declared */
    SCHEMA_OBJECT,
    SCHEMA_ARRAY,
    SCHEMA_STRING,
    SCHEMA_INTEGER,
    SCHEMA_NUMBER,
    SCHEMA_BOOLEAN,
    SCHEMA_INT_OR_STRING,
    SCHEMA_TYPE_N,
};

/* Strings and numbers with a meaning. Quantities, times and bytes are rewritten when decoded. */
enum schema_format {
    SCHEMA_PLAIN,
    SCHEMA_QUANTITY,   /* "1000m" is written as "1", a number as a string */
    SCHEMA_TIME,       /* RFC 3339 to the second, in UTC */
    SCHEMA_MICRO_TIME, /* RFC 3339 with six fractional digits */
    SCHEMA_BYTES,      /* base64 */
    SCHEMA_INT32,
    SCHEMA_INT64,
};

/* How a field of a built-in type is written when it is empty. */
enum schema_presence {
    SCHEMA_KEEP,        /* written if the client set it, even to zero */
    SCHEMA_OMIT,        /* omitted if zero, "" or empty */
    SCHEMA_ALWAYS,      /* always written; unset: zero, "" or {}, lists and times null */
    SCHEMA_ALWAYS_NULL, /* always written; unset: null */
};

struct seen;

struct schema_limits { /* restrictions of values; allocated only where there are any */
    double minimum, maximum, multiple_of; /* valid if `has` has their bit */
    int64_t min_length, max_length;       /* of text, in code points; -1: no limit, also below */
    int64_t min_items, max_items;
    int64_t min_properties, max_properties;
    unsigned has;       /* SCHEMA_HAS_* and the bits below */
    bool unique;        /* items of a built-in list must differ */
    bool empty_allowed; /* of a built-in type: an empty text satisfies the format */
    str pattern;
    const struct regex *regex; /* the compiled pattern; NULL: none, or syntax we do not support */
    str format;                /* of text; of a built-in type: see kinds/kind_rules.c */
    str key_format;            /* the format of the keys of a built-in map */
    str unique_by; /* with `unique`: the field that must differ; empty: the whole item */
    const struct json *one_of_values; /* enum, an array; NULL: none */
    const struct seen *words;         /* index of a long enum; or NULL */
    const str *required;              /* of a custom resource: members that must be set */
    uint32_t n_required;
    const struct schema **all_of, **any_of, **one_of; /* NULL-terminated; NULL: none */
    const struct schema *not_schema;
};

enum {
    SCHEMA_HAS_MINIMUM = 1,
    SCHEMA_HAS_MAXIMUM = 2,
    SCHEMA_HAS_MULTIPLE = 4,
    SCHEMA_EXCLUSIVE_MINIMUM = 8,
    SCHEMA_EXCLUSIVE_MAXIMUM = 16,
    SCHEMA_WORDS_UNPUBLISHED = 64, /* one_of_values is checked, but not part of OpenAPI */
    SCHEMA_WORDS_UNCHECKED = 32,   /* one_of_values is for OpenAPI; the kind checks it itself */
};

struct schema_message;

struct schema {
    enum schema_type type;
    enum schema_format format;
    bool nullable, preserve_unknown, embedded, atomic;
    enum shape_list list; /* of an array */
    const str *list_keys; /* of a map list: the fields that identify an item */
    uint32_t n_list_keys;
    const struct schema_message
        *message; /* the fields of an object; NULL: a map, or not an object */
    const struct schema
        *element;                /* items of an array, additionalProperties of an object; or NULL */
    const struct json *fallback; /* the default; NULL: none */
    const struct schema_limits *limits; /* NULL: none */
    str description;
    const struct shape *shape;
};

struct schema_field {
    str name;
    struct schema schema;
    uint16_t number; /* in protobuf; 0: none */
    bool required;   /* listed as required in OpenAPI; not checked */
    bool needed;     /* of a built-in type: an empty value is refused as required */
    bool immutable;  /* of a built-in type: an update must not change it */
    enum schema_presence presence;
    unsigned patch; /* bits of enum shape_patch */
    str patch_key;  /* of a strategic merge patch */
};

struct schema_message {
    str name; /* "core.v1.PodSpec"; empty in custom resources */
    str description;
    struct schema_field *fields; /* one with an empty name embeds a message, for protobuf only */
    uint32_t n_fields;
    bool atomic; /* of a built-in type: has one owner as a whole, wherever it is used */
    const struct shape *shape; /* granular or atomic, as `atomic` */
};

const struct schema_field *schema_field(const struct schema *s, str name);

/* `element` describes the items of a list or the values of a map. */
static inline const struct schema *schema_map_element(const struct schema *s)
{
    return s->type == SCHEMA_ARRAY ? NULL : s->element;
}

static inline const struct schema *schema_list_element(const struct schema *s)
{
    return s->type == SCHEMA_OBJECT ? NULL : s->element;
}

/* Paths of the fields that were dropped, in the order found: "spec.replicsa", "spec.ports[0].nosuch".
 * Those beyond the first SCHEMA_UNKNOWN_BYTES are not listed (at most 50 are ever reported). */
enum { SCHEMA_UNKNOWN_BYTES = 4 * 1024 * 1024 };

struct schema_unknown {
    struct arena *arena;
    str *paths;
    size_t n, cap, bytes;
};

bool schema_unknown_has_room(const struct schema_unknown *unknown);

/* `unknown` may be NULL: the field is dropped silently. */
void schema_unknown_add(struct schema_unknown *unknown, const struct field_path *at);

/* Decodes `value` as a built-in type. Returns -EINVAL with a sentence if a value has the wrong type
 * ("spec.replicas: expected an integer, got string"). Otherwise the tree is changed to its normal form:
 * unknown fields dropped and reported to `unknown` (which may be NULL), null dropped, quantities, times
 * and base64 canonical, empty values omitted or added according to their `presence`. */
int schema_decode(const struct schema *s, struct arena *a, struct json *value,
                  struct schema_unknown *unknown, err_t *e);
/* The same for a part of an object; `at` is its path. */
int schema_decode_at(const struct schema *s, struct arena *a, struct json *value,
                     const struct field_path *at, struct schema_unknown *unknown, err_t *e);

/* Truncates integers that are too large for int32 fields to their low 32 bits, as a Go conversion does. */
void schema_wrap_integers(const struct schema *s, struct json *value);

/* Drops fields that the schema does not declare and reports them to `unknown` (which may be NULL). An
 * embedded resource keeps apiVersion, kind and metadata, and so does a whole object (`root`). */
void schema_prune(const struct schema *s, struct json *value, bool root,
                  struct schema_unknown *unknown);

/* Sets defaults, top down: a default that is an object gets defaults of its own. Where the schema is not
 * nullable, null counts as absent and is dropped. */
void schema_default(const struct schema *s, struct arena *a, struct json *value);

/* Reports the nulls that schema_default() would drop: an applied configuration may not contain them. */
void schema_check_nulls(const struct schema *s, const struct json *value,
                        const struct field_path *at, struct field_errors *errors);

/* Reports everything that is wrong with `value`, below the path `at` (NULL: the object itself). With
 * `old`, values that have not changed are not reported (ratcheting). */
void schema_validate(const struct schema *s, const struct json *value, const struct json *old,
                     const struct field_path *at, struct field_errors *errors);

/* For json/apply and json/strategic; lives as long as the schema. */
static inline const struct shape *schema_shape(const struct schema *s)
{
    return s->shape;
}

/* The shape of a schema whose messages and elements already have theirs. */
const struct shape *schema_make_shape(struct arena *a, const struct schema *s);
/* The shape of a whole object: apiVersion, kind and metadata as in every object, whatever the schema of a
 * definition declares for them. */
const struct shape *schema_object_shape(struct arena *a, const struct shape *of_schema);
void schema_fill_shape(struct arena *a, const struct schema_message *m, struct shape *shape);

/* ---- custom resources */

/* Builds the graph of `openapi` (spec.versions[].schema.openAPIV3Schema) in the arena. Errors (not
 * structural, unknown list keys, invalid defaults) go to `errors` below `at`; the result is usable only if
 * none was added. */
const struct schema *schema_from_openapi(struct arena *a, const struct json *openapi,
                                         const struct field_path *at, struct field_errors *errors);

/* Only the first half: checks that the schema is structural. */
void schema_check_structural(const struct json *openapi, const struct field_path *at,
                             struct field_errors *errors);

/* True if there is a rule in x-kubernetes-validations anywhere; the rules themselves: cel/cel_rules.h. */
bool schema_has_cel_rules(const struct json *openapi);

#endif
