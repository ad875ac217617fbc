/* cel: the Common Expression Language as kube-apiserver 1.36 has it, for the rules of custom resources and for
 * admission policies.
 *
 *   cel_lex, cel_parse, cel_macro   text to a tree; macros become comprehensions
 *   cel_type, cel_decl              types, unification, the table of functions
 *   cel_check, cel_literal          types of every node; overloads; constants that cannot work
 *   cel_cost                        the most that an expression can cost, from the sizes in a schema
 *   cel_eval, cel_value, cel_call   running a program; what it really costs
 *   cel_text, cel_lists, cel_time, cel_number, cel_net, cel_url, cel_version, cel_names   the libraries
 *   cel_schema                      OpenAPI schemas as types
 *   cel_struct                      Object{...} and JSONPatch{...} of mutating policies
 *   cel_definition, cel_validate    the rules of a definition; running them on an object
 *
 * Memory: a program lives in the arena that it was compiled in and never changes. Evaluating takes memory
 * from an arena of the caller, which resets it afterwards: nothing outlives the call. Every evaluation ends:
 * there are no loops but those over finite lists, and the cost limit cancels what takes too long.
 *
 * Read first: cel_compile, cel_run. */
#ifndef FLYBALL_APISERVER_CEL_H
#define FLYBALL_APISERVER_CEL_H

#include "../../../json/shape.h"
#include "../field.h"

/* A type, and the kind of a value at run time. */
enum cel_kind {
    CEL_DYN,
    CEL_ERROR,
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_UINT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_BYTES,
    CEL_TIMESTAMP,
    CEL_DURATION,
    CEL_LIST,
    CEL_MAP,
    CEL_OBJECT,
    CEL_OPTIONAL,
    CEL_TYPE,
    CEL_PARAM, /* a type variable */
    CEL_QUANTITY,
    CEL_URL,
    CEL_IP,
    CEL_CIDR,
    CEL_FORMAT,
    CEL_SEMVER,
    CEL_AUTHORIZER, /* and the steps of a check: see cel_host */
    CEL_PATH_CHECK,
    CEL_GROUP_CHECK,
    CEL_RESOURCE_CHECK,
    CEL_DECISION,
    CEL_KIND_N,
};

struct cel_field {
    str key;  /* in the object */
    str name; /* in an expression: "a__dash__b" for "a-b"; empty: cannot be named */
    const struct cel_type *type;
};

struct cel_type {
    enum cel_kind kind;
    bool nullable;
    bool date;      /* of a timestamp: a date without a time */
    bool from_text; /* bytes, timestamps and durations of a schema: text in the object */
    bool open;      /* of an object: every field exists and is dyn */
    enum shape_list list;
    uint32_t id;                    /* of a type variable */
    const char *name;               /* of an object */
    const struct cel_type *of[2];   /* list, optional, type: [0]; map: key and value */
    const struct cel_field *fields; /* of an object, sorted by key */
    uint32_t n_fields, n_list_keys;
    const str *list_keys;
    int64_t max_elements; /* the largest possible size, from the limits of the schema */
    int64_t min_size;     /* bytes of the smallest value in JSON */
};

extern const struct cel_type cel_dyn, cel_bool, cel_string, cel_int, cel_double, cel_null,
    cel_timestamp, cel_authorizer_type, cel_resource_check_type;

str cel_type_text(struct arena *a, const struct cel_type *t); /* "list(int)" */

struct cel_list;
struct cel_map;

/* A value. Values of objects refer to their JSON and become CEL values one by one, when read. */
struct cel_value {
    uint8_t kind; /* enum cel_kind */
    bool is_json; /* of a list, map or object: `json`, otherwise `list` or `map` */
    int16_t zone; /* of a timestamp: minutes east of UTC, for printing and for its parts */
    uint32_t n;   /* bytes of text, items of a list, nanoseconds of a timestamp */
    const struct cel_type *type; /* of a JSON value, or the value of CEL_TYPE */
    union {
        bool boolean;
        int64_t integer; /* also seconds of a timestamp, nanoseconds of a duration */
        uint64_t natural;
        double real;
        const char *text; /* also bytes, and the message of an error */
        const struct json *json;
        struct cel_list *list;
        struct cel_map *map;
        const struct cel_value *value; /* of an optional; NULL: none */
        const void *other;
    };
};

struct cel_variable {
    str name;
    const struct cel_type *type;
};

/* What an expression may refer to. */
struct cel_env {
    const struct cel_variable *variables;
    size_t n_variables;
    const struct cel_type *root; /* sizes of what the variables refer to; NULL: unknown */
    bool policy;                 /* authorizer functions exist */
    bool patches;                /* Object and JSONPatch may be constructed */
};

struct cel_range { /* of a cost or size */
    uint64_t min, max;
};

struct cel_program {
    struct cel_node *root;
    const struct cel_type *result;
    uint32_t n_slots, n_variables;
    uint32_t uses; /* bit i: variable i is used */
    struct cel_range cost;
};

/* Compiles an expression whose result is assignable to one of the `wanted` types (NULL: any). Returns
 * -EINVAL with the text of all errors, as kube-apiserver formats them. */
int cel_compile(struct arena *a, const struct cel_env *env, str text,
                const struct cel_program **ret, str *ret_issues);

/* A function that answers what only the server knows: variables of a policy, authorization. */
struct cel_host {
    struct cel_value (*field)(struct cel_host *host, struct arena *a, str name);
    struct cel_value (*check)(struct cel_host *host, struct arena *a, const struct cel_value *check,
                              str verb);
};

struct cel_run {
    struct arena *arena;
    const struct cel_value *variables; /* one per variable of the environment */
    struct cel_host *host;             /* may be NULL */
    uint64_t limit;                    /* of the cost; 0: CEL_COST_CALL */
    uint64_t cost;                     /* result */
    bool exceeded;                     /* result: the limit cancelled the evaluation */
};

enum { CEL_COST_CALL = 1000000, CEL_COST_OBJECT = 10000000 };

/* The value of the expression, of kind CEL_ERROR if it failed. */
struct cel_value cel_run(const struct cel_program *p, struct cel_run *run);

/* The value of a JSON tree; `type` NULL or CEL_DYN: as JSON has it. */
struct cel_value cel_of_json(struct arena *a, const struct json *json, const struct cel_type *type);
struct cel_value cel_of_text(str text);
struct cel_value cel_optional_of(struct arena *a, struct cel_value value);
struct cel_value cel_fail(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
static inline str cel_text(struct cel_value v)
{
    return (str){ v.text, v.n };
}
/* Reports the objects inside Object{...} whose type is not named after their place, a line each. */
void cel_check_names(struct arena *a, struct cel_value v, str place, struct buf *out);
/* The field `value` of item i in a list of JSONPatch. */
struct cel_value cel_patch_value(struct cel_value patches, uint32_t i);
/* JSON of a value; NULL if it has none (an optional without value is skipped). */
struct json *cel_to_json(struct arena *a, struct cel_value v);

bool cel_is_version(str text); /* semver.org 2.0.0 */

/* ---- schemas */

/* The type of values of an OpenAPI schema; NULL if expressions cannot see them. */
const struct cel_type *cel_type_of_schema(struct arena *a, const struct json *openapi, bool root);
const struct cel_field *cel_find_field(const struct cel_type *t, str key);

#endif
