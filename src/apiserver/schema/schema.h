/* What a value may look like: one structural schema for built-in kinds and custom resources alike.
 *
 * Built-in kinds are written down in types/ (a compact text, read once at start); the schema of
 * a custom resource comes from its CustomResourceDefinition. Both become the same graph, and
 * every question is asked of the graph:
 *
 *   schema_decode     built-in: does it read as this type at all? drop what is unknown, make
 *                     quantities canonical, leave out empty values as the Go types do
 *   schema_prune      custom: drop what is unknown
 *   schema_default    fill in what is absent
 *   schema_validate   custom: all that is wrong with a value, by field
 *   schema_shape      what patches and server-side apply need (json/shape.h)
 *   schema_openapi    the same as an OpenAPI v3 schema, for clients
 *
 * A graph lives in one arena, is never changed once made, and may be cyclic (a schema describes
 * schemas): walkers are bounded by the depth of the value, which the parser bounds. */
#ifndef FLYBALL_APISERVER_SCHEMA_H
#define FLYBALL_APISERVER_SCHEMA_H

#include "../../json/shape.h"
#include "field.h"

struct regex;

enum schema_type {
    SCHEMA_ANY, /* no type given */
    SCHEMA_OBJECT,
    SCHEMA_ARRAY,
    SCHEMA_STRING,
    SCHEMA_INTEGER,
    SCHEMA_NUMBER,
    SCHEMA_BOOLEAN,
    SCHEMA_INT_OR_STRING,
    SCHEMA_TYPE_N,
};

/* Strings and numbers that mean more. The first row changes the value when it is decoded. */
enum schema_format {
    SCHEMA_PLAIN,
    SCHEMA_QUANTITY,   /* "1000m" becomes "1"; numbers become strings */
    SCHEMA_TIME,       /* RFC 3339 to the second, in UTC */
    SCHEMA_MICRO_TIME, /* RFC 3339 with exactly six digits */
    SCHEMA_BYTES,      /* base64 */
    SCHEMA_INT32,
    SCHEMA_INT64,
    SCHEMA_OTHER, /* of a custom resource: `limits->format` says which */
};

/* How the field of a built-in type behaves when it holds nothing. */
enum schema_presence {
    SCHEMA_KEEP,   /* optional: there if it was given, even when zero */
    SCHEMA_OMIT,   /* left out when zero, "" or empty */
    SCHEMA_ALWAYS, /* always there: as zero, "" or {} when not given, lists and times as null */
    SCHEMA_ALWAYS_NULL, /* always there: as null when not given */
};

struct seen;

struct schema_limits {                    /* what few schemas have; allocated only for those */
    double minimum, maximum, multiple_of; /* see `has` */
    int64_t min_length, max_length;       /* of text in code points; -1: none */
    int64_t min_items, max_items;
    int64_t min_properties, max_properties;
    unsigned has; /* SCHEMA_HAS_* */
    str pattern;
    const struct regex *regex; /* of the pattern; NULL where it uses what we do not speak */
    str format;
    const struct json *one_of_values; /* enum: an array; NULL: none */
    const struct seen *words;         /* the same, to be looked up where there are many; or NULL */
    const str *required;              /* of a custom resource: members that must be there */
    uint32_t n_required;
    const struct schema **all_of, **any_of, **one_of; /* NULL-ended; NULL: none */
    const struct schema *not_schema;
};

enum {
    SCHEMA_HAS_MINIMUM = 1,
    SCHEMA_HAS_MAXIMUM = 2,
    SCHEMA_HAS_MULTIPLE = 4,
    SCHEMA_EXCLUSIVE_MINIMUM = 8,
    SCHEMA_EXCLUSIVE_MAXIMUM = 16,
    SCHEMA_WORDS_UNCHECKED = 32, /* of one_of_values: code says where a fault of them is told */
};

struct schema_message;

struct schema {
    enum schema_type type;
    enum schema_format format;
    bool nullable, preserve_unknown, embedded, atomic;
    enum shape_list list; /* SCHEMA_ARRAY */
    const str *list_keys; /* of a map list */
    uint32_t n_list_keys;
    const struct schema_message *message; /* SCHEMA_OBJECT with properties; else NULL */
    const struct schema *element; /* of an array; of an object: additionalProperties; NULL: none */
    const struct json *fallback;  /* the default; NULL: none */
    const struct schema_limits *limits; /* NULL: none */
    str description;
    const struct shape *shape;
};

struct schema_field {
    str name;
    struct schema schema;
    uint16_t number; /* in protobuf; 0: none */
    bool required;   /* in OpenAPI */
    bool needed;     /* of a built-in type: refused as required when empty */
    enum schema_presence presence;
    unsigned patch; /* of enum shape_patch */
    str patch_key;
};

struct schema_message {
    str name; /* "core.v1.PodSpec"; empty in custom resources */
    str description;
    struct schema_field *fields; /* those with an empty name embed a message: protobuf only */
    uint32_t n_fields;
    bool atomic;               /* of a built-in type: owned as a whole wherever it is used */
    const struct shape *shape; /* granular or atomic as the type says */
};

const struct schema_field *schema_field(const struct schema *s, str name);

/* What `element` describes depends on the type: a list's items or a map's values. */
static inline const struct schema *schema_map_element(const struct schema *s)
{
    return s->type == SCHEMA_ARRAY ? NULL : s->element;
}

static inline const struct schema *schema_list_element(const struct schema *s)
{
    return s->type == SCHEMA_OBJECT ? NULL : s->element;
}

/* Paths of what was dropped, in the order met: "spec.replicsa", "spec.ports[0].nosuch"; those beyond
 * the first SCHEMA_UNKNOWN_BYTES are not listed (at most 50 are ever reported). */
enum { SCHEMA_UNKNOWN_BYTES = 4 * 1024 * 1024 };

struct schema_unknown {
    struct arena *arena;
    str *paths;
    size_t n, cap, bytes;
};

bool schema_unknown_fits(const struct schema_unknown *unknown);

void schema_report(struct schema_unknown *unknown, const struct field_path *at); /* NULL: nobody */

/* Reads `value` as a built-in type would: -EINVAL with a sentence when a value has the wrong type
 * ("spec.replicas: expected an integer, got string"), else the value is in normal form: unknown
 * fields dropped and told to `unknown` (which may be NULL), null dropped, quantities, times and
 * base64 canonical, empty values left out or filled in as `presence` says. Changes the tree. */
int schema_decode(const struct schema *s, struct arena *a, struct json *value,
                  struct schema_unknown *unknown, err_t *e);
/* The same for a part of an object: `at` is where it is. */
int schema_decode_at(const struct schema *s, struct arena *a, struct json *value,
                     const struct field_path *at, struct schema_unknown *unknown, err_t *e);

/* Numbers that are too large for their fields keep their low 32 bits, as where they are assigned. */
void schema_wrap_integers(const struct schema *s, struct json *value);

/* Drops fields that the schema does not name, telling `unknown` (which may be NULL). An embedded
 * resource keeps apiVersion, kind and metadata. `root` says that `value` is a whole object. */
void schema_prune(const struct schema *s, struct json *value, bool root,
                  struct schema_unknown *unknown);

/* Fills in defaults, top down: a default that is an object gets its own defaults. null counts as
 * absent, and goes, where the schema is not nullable. */
/* Nulls that schema_default() would drop: what is applied may not have them. */
void schema_check_nulls(const struct schema *s, const struct json *value,
                        const struct field_path *at, struct field_errors *errors);
void schema_default(const struct schema *s, struct arena *a, struct json *value);

/* All that is wrong with `value`, under the path `at` (NULL: the object itself). With `old`, what
 * was wrong there before and has not changed is forgiven (ratcheting). */
void schema_validate(const struct schema *s, const struct json *value, const struct json *old,
                     const struct field_path *at, struct field_errors *errors);

/* For json/apply and json/strategic; lives as long as the schema. */
static inline const struct shape *schema_shape(const struct schema *s)
{
    return s->shape;
}

/* Makes the shape of a schema whose messages and elements have theirs already. */
const struct shape *schema_make_shape(struct arena *a, const struct schema *s);
/* Of a whole object: patches and apply see metadata as what it is in every object, whatever the schema of a
 * definition says of it. */
const struct shape *schema_whole_shape(struct arena *a, const struct shape *of_schema);
void schema_fill_shape(struct arena *a, const struct schema_message *m, struct shape *shape);

/* ---- custom resources */

/* Reads `openapi` (spec.versions[].schema.openAPIV3Schema) into the arena. Whatever is wrong with it
 * — not structural, unknown list keys, defaults that do not fit — goes to `errors` under `at`;
 * the result is usable only when nothing was added there. */
const struct schema *schema_from_openapi(struct arena *a, const struct json *openapi,
                                         const struct field_path *at, struct field_errors *errors);

/* The first half of it: only the complaints about the form (schema_structural.c). */
void schema_check_structural(const struct json *openapi, const struct field_path *at,
                             struct field_errors *errors);

/* True if x-kubernetes-validations occurs anywhere: accepted, but not enforced, so say so. */
bool schema_has_rules(const struct json *openapi);

#endif
