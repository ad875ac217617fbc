/* The syntax tree and what the parts of the compiler share. Private to cel/. */
#ifndef FLYBALL_APISERVER_CEL_NODE_H
#define FLYBALL_APISERVER_CEL_NODE_H

#include "cel.h"

struct regex;

enum cel_node_kind {
    CEL_N_CONST,
    CEL_N_IDENT,
    CEL_N_SELECT, /* a.b, or has(a.b) with `test` */
    CEL_N_CALL,
    CEL_N_LIST,
    CEL_N_MAP,
    CEL_N_STRUCT,
    CEL_N_LOOP, /* a comprehension */
};

enum {
    CEL_CANDIDATES_MAX = 24,
    CEL_DEPTH_MAX = 250,
    CEL_ISSUES_MAX = 100,
    CEL_WEIGHT_MAX = 100000
};

/* Each implementation; several overloads may share one. The order is that of cel_decl.c. */
enum cel_fn {
    CEL_F_NONE,
    CEL_F_NOT,
    CEL_F_NEGATE,
    CEL_F_AND,
    CEL_F_OR,
    CEL_F_COND,
    CEL_F_EQ,
    CEL_F_NE,
    CEL_F_LT,
    CEL_F_LE,
    CEL_F_GT,
    CEL_F_GE,
    CEL_F_LT_TEXT,
    CEL_F_LE_TEXT,
    CEL_F_GT_TEXT,
    CEL_F_GE_TEXT,
    CEL_F_ADD,
    CEL_F_ADD_TEXT,
    CEL_F_ADD_LIST,
    CEL_F_SUB,
    CEL_F_MUL,
    CEL_F_DIV,
    CEL_F_MOD,
    CEL_F_INDEX_LIST,
    CEL_F_INDEX_MAP,
    CEL_F_INDEX_OPT,
    CEL_F_OPT_INDEX,
    CEL_F_IN_LIST,
    CEL_F_IN_MAP,
    CEL_F_SIZE,
    CEL_F_TYPE,
    CEL_F_DYN,
    CEL_F_BOOL,
    CEL_F_BYTES,
    CEL_F_BYTES_TEXT,
    CEL_F_DOUBLE,
    CEL_F_DURATION,
    CEL_F_INT,
    CEL_F_STRING,
    CEL_F_STRING_BYTES,
    CEL_F_TIMESTAMP,
    CEL_F_UINT,
    CEL_F_MATCHES,
    CEL_F_CONTAINS,
    CEL_F_STARTS,
    CEL_F_ENDS,
    CEL_F_TIME_PART,
    CEL_F_NOT_STRICTLY_FALSE,
    CEL_F_OPT_OF,
    CEL_F_OPT_NON_ZERO,
    CEL_F_OPT_NONE,
    CEL_F_OPT_VALUE,
    CEL_F_OPT_HAS,
    CEL_F_OPT_OR,
    CEL_F_OPT_OR_VALUE,
    CEL_F_OPT_SELECT,
    CEL_F_OPT_UNWRAP,
    CEL_F_CHAR_AT,
    CEL_F_INDEX_OF_TEXT,
    CEL_F_LAST_INDEX_OF_TEXT,
    CEL_F_LOWER,
    CEL_F_UPPER,
    CEL_F_REPLACE,
    CEL_F_SPLIT,
    CEL_F_SUBSTRING,
    CEL_F_TRIM,
    CEL_F_FORMAT,
    CEL_F_QUOTE,
    CEL_F_JOIN,
    CEL_F_INDEX_OF,
    CEL_F_LAST_INDEX_OF,
    CEL_F_IS_SORTED,
    CEL_F_SUM,
    CEL_F_MIN,
    CEL_F_MAX,
    CEL_F_SLICE,
    CEL_F_FLATTEN,
    CEL_F_SORT,
    CEL_F_SORT_BY,
    CEL_F_RANGE,
    CEL_F_REVERSE,
    CEL_F_DISTINCT,
    CEL_F_FIRST,
    CEL_F_LAST,
    CEL_F_SETS_CONTAINS,
    CEL_F_SETS_EQUIVALENT,
    CEL_F_SETS_INTERSECTS,
    CEL_F_MAP_INSERT,
    CEL_F_MAP_MERGE,
    CEL_F_FIND,
    CEL_F_FIND_ALL,
    CEL_F_URL,
    CEL_F_IS_URL,
    CEL_F_URL_PART,
    CEL_F_URL_QUERY,
    CEL_F_QUANTITY,
    CEL_F_IS_QUANTITY,
    CEL_F_Q_SIGN,
    CEL_F_Q_COMPARE,
    CEL_F_Q_FLOAT,
    CEL_F_Q_INT,
    CEL_F_Q_IS_INT,
    CEL_F_Q_ADD,
    CEL_F_IP,
    CEL_F_IS_IP,
    CEL_F_IP_CANONICAL,
    CEL_F_IP_IS,
    CEL_F_IP_FAMILY,
    CEL_F_CIDR,
    CEL_F_IS_CIDR,
    CEL_F_CIDR_HAS_IP,
    CEL_F_CIDR_HAS_IP_TEXT,
    CEL_F_CIDR_HAS_CIDR,
    CEL_F_CIDR_HAS_CIDR_TEXT,
    CEL_F_CIDR_IP,
    CEL_F_CIDR_BITS,
    CEL_F_CIDR_MASKED,
    CEL_F_NAME_FORMAT,
    CEL_F_NAMED,
    CEL_F_VALIDATE,
    CEL_F_SEMVER,
    CEL_F_IS_SEMVER,
    CEL_F_V_COMPARE,
    CEL_F_V_PART,
    CEL_F_AUTHZ,
    CEL_F_AUTHZ_CHECK,
    CEL_F_DECISION,
    CEL_F_ESCAPE_KEY,
    CEL_F_N
};

/* Does the function read a list or text from end to end? The price at run time and the estimate both ask. */
static inline bool cel_fn_traverses(enum cel_fn fn)
{
    return fn == CEL_F_IS_SORTED || fn == CEL_F_SUM || fn == CEL_F_MIN || fn == CEL_F_MAX ||
           fn == CEL_F_INDEX_OF || fn == CEL_F_LAST_INDEX_OF || fn == CEL_F_INDEX_OF_TEXT ||
           fn == CEL_F_LAST_INDEX_OF_TEXT;
}

/* One way to call a function. The signature is the result, then '.' for a method or ':' for a function, then
 * the arguments: "b.ss" is string.f(string) -> bool. Letters are explained in cel_decl.c. */
struct cel_overload {
    const char *name, *signature;
    enum cel_fn fn;
};
extern const struct cel_overload cel_overloads[];
extern const size_t cel_n_overloads;

struct cel_node {
    enum cel_node_kind kind;
    uint32_t at;                 /* byte offset for messages */
    uint32_t depth;              /* of the tree below */
    uint32_t weight;             /* number of nodes; those that a macro uses twice count twice */
    const struct cel_type *type; /* set by the checker */
    union {
        struct cel_value constant;
        struct {
            str name;
            uint32_t slot; /* where the value is at run time */
        } ident;
        struct {
            struct cel_node *from;
            str field;
            str key;   /* in the object */
            bool test; /* has() */
            bool optional;
        } select;
        struct {
            str name;
            struct cel_node *target; /* NULL: a function */
            struct cel_node **args;
            uint32_t n;
            uint16_t candidates[CEL_CANDIDATES_MAX]; /* overloads that may apply */
            uint16_t n_candidates;
            const struct regex *regex; /* of a constant pattern */
        } call;
        struct {
            struct cel_node **items; /* of a map or struct: keys and values in turn */
            bool *optional;          /* per item or entry; NULL: none is */
            uint32_t n;              /* items or entries */
            str name;                /* of a struct */
        } list;
        struct {
            struct cel_node *range, *init, *cond, *step, *result;
            str var, var2, accu; /* var2 is empty with one variable */
            uint32_t var_slot, var2_slot, accu_slot;
        } loop;
    };
    /* for cel_cost.c: what is known of the size, and of the items of a list or map */
    struct cel_size {
        bool known, entries_known;
        struct cel_range size, key, value;
        bool is_map;
    } *size;
    bool has_path; /* the value is part of the object that `place` describes */
    const struct cel_type *place;
};

/* ---- errors of one compilation */

struct cel_issues {
    struct arena *arena; /* scratch, until the compilation ends */
    struct arena *keep;  /* of the program */
    str text;            /* the source */
    struct cel_issue {
        uint32_t at;
        str message;
    } items[CEL_ISSUES_MAX];
    size_t n;
};
void cel_issue(struct cel_issues *issues, uint32_t at, const char *format, ...) PRINTF_LIKE(3, 4);
str cel_issues_text(struct cel_issues *issues);

/* ---- the phases */

struct cel_node *cel_parse(struct cel_issues *issues);

/* Tokens, for the parser. */
enum cel_token_kind { CEL_T_END, CEL_T_MARK, CEL_T_WORD, CEL_T_CONST, CEL_T_BAD };
struct cel_token {
    enum cel_token_kind kind;
    uint32_t at;
    str text; /* a mark or word */
    struct cel_value constant;
};
struct cel_token cel_next_token(struct cel_issues *issues, uint32_t *at);

struct cel_builder { /* makes nodes */
    struct cel_issues *issues;
    struct arena *arena;
    uint32_t at;
};
struct cel_node *cel_new_node(struct cel_builder *b, enum cel_node_kind kind);
void cel_adopt(struct cel_node *node, const struct cel_node *child); /* counts a new child */
struct cel_node *cel_new_ident(struct cel_builder *b, str name);
struct cel_node *cel_new_call(struct cel_builder *b, const char *name, struct cel_node *target,
                              size_t n, struct cel_node *const *args);
/* Expands a macro; NULL: `name` with these arguments is none. */
struct cel_node *cel_expand_macro(struct cel_builder *b, str name, struct cel_node *target,
                                  struct cel_node **args, uint32_t n);

/* Types. */
const struct cel_type *cel_new_type(struct arena *a, enum cel_kind kind,
                                    const struct cel_type *first, const struct cel_type *second);
/* Reads one type of a signature and moves on; `params` are the variables A and B. */
const struct cel_type *cel_read_type(struct arena *a, const char **signature,
                                     const struct cel_type *const params[2]);
bool cel_same_type(const struct cel_type *a, const struct cel_type *b);

struct cel_bindings { /* the types of type variables */
    struct arena *arena;
    const struct cel_type **at;
    uint32_t n, cap;
    struct {
        uint32_t id;
        const struct cel_type *was;
    } *log; /* to undo a failed attempt */
    uint32_t n_log, cap_log;
};
const struct cel_type *cel_new_variable(struct cel_bindings *b);
bool cel_assignable(struct cel_bindings *b, const struct cel_type *a, const struct cel_type *t);
uint32_t cel_bindings_mark(const struct cel_bindings *b);
void cel_bindings_undo(struct cel_bindings *b, uint32_t mark);
/* The type with variables replaced; with `dyn`, unbound ones by dyn. */
const struct cel_type *cel_substitute(struct cel_bindings *b, const struct cel_type *t, bool dyn);
const struct cel_type *cel_most_general(const struct cel_type *a, const struct cel_type *b);

struct cel_checked {
    uint32_t n_slots, uses;
};
const struct cel_type *cel_check(struct cel_issues *issues, const struct cel_env *env,
                                 struct cel_node *root, struct cel_checked *ret);
void cel_check_literals(struct cel_issues *issues, struct cel_node *node);
struct cel_range cel_estimate(struct arena *a, const struct cel_env *env, struct cel_node *root);

/* The type of NAME{...}: cel_struct.c; NULL: there is none. Lives in the arena. */
const struct cel_type *cel_struct_type(struct arena *a, str name);

/* ---- run time */

struct cel_list {
    uint32_t n, cap;
    struct cel_value *items;
};
struct cel_map {
    uint32_t n, cap, slots; /* slots: of the index; 0: none yet */
    struct cel_value *keys, *values;
    uint32_t *index;
};

struct cel_machine {
    struct arena *arena;
    struct cel_value *frame;
    struct cel_host *host;
    uint64_t cost, limit;
    uint64_t
        steps; /* comparisons and regular expressions: work that the cost model does not count */
    bool exceeded;
};
enum { CEL_STEPS_MAX = 16 * 1024 * 1024, CEL_TEXT_MAX = 16 * 1024 * 1024 };

struct cel_value cel_call(struct cel_machine *m, const struct cel_node *node, enum cel_fn fn,
                          const struct cel_overload *o, struct cel_value *args, uint32_t n);
uint64_t cel_call_cost(const struct cel_overload *o, const struct cel_value *args, uint32_t n,
                       struct cel_value result);
struct cel_value cel_no_overload(void);

static inline struct cel_value cel_of_bool(bool b)
{
    return (struct cel_value){ .kind = CEL_BOOL, .boolean = b };
}
static inline struct cel_value cel_of_int(int64_t i)
{
    return (struct cel_value){ .kind = CEL_INT, .integer = i };
}
static inline struct cel_value cel_of_real(double d)
{
    return (struct cel_value){ .kind = CEL_DOUBLE, .real = d };
}
static inline bool cel_is_error(struct cel_value v)
{
    return v.kind == CEL_ERROR;
}

bool cel_equal(struct cel_machine *m, struct cel_value a, struct cel_value b);
/* -1, 0, 1; 2: not comparable (NaN); -2: no such overload. */
int cel_compare(struct cel_value a, struct cel_value b);
uint64_t cel_size(struct cel_value v); /* 1 for values without a size */
int64_t cel_count_chars(str text);
struct cel_value cel_item(struct cel_machine *m, struct cel_value list, uint32_t i);
/* The value of a key; false: there is none. `get` may be NULL. */
bool cel_lookup(struct cel_machine *m, struct cel_value map, struct cel_value key,
                struct cel_value *ret);
struct cel_value cel_key_at(struct cel_machine *m, struct cel_value map, uint32_t i);
struct cel_value cel_value_at(struct cel_machine *m, struct cel_value map, uint32_t i);
struct cel_value cel_new_list(struct arena *a, uint32_t cap);
struct cel_value cel_append(struct arena *a, struct cel_value list, struct cel_value item);
struct cel_value cel_new_map(struct arena *a, uint32_t cap);
/* false: the key is there already, or of a kind that cannot be one */
bool cel_insert(struct cel_machine *m, struct cel_value *map, struct cel_value key,
                struct cel_value value);
const struct cel_type *cel_type_of(struct arena *a, struct cel_value v);
bool cel_is_zero(struct cel_value v);
struct cel_value cel_kept_text(struct arena *a, struct buf *b);

/* string(v): false if there is no such conversion. */
bool cel_put_text(struct buf *out, struct cel_value v);

/* The libraries. Each returns the result of one function. */
struct cel_value cel_call_text(struct cel_machine *m, const struct cel_node *node, enum cel_fn fn,
                               const struct cel_value *a, uint32_t n);
struct cel_value cel_call_regex(struct cel_machine *m, const struct cel_node *node, enum cel_fn fn,
                                const struct cel_value *a, uint32_t n);
struct cel_value cel_call_list(struct cel_machine *m, enum cel_fn fn, const struct cel_overload *o,
                               const struct cel_value *a, uint32_t n);
struct cel_value cel_call_number(struct cel_machine *m, enum cel_fn fn, const struct cel_value *a,
                                 uint32_t n);
struct cel_value cel_convert(struct cel_machine *m, enum cel_fn fn, struct cel_value v);
struct cel_value cel_call_time(struct cel_machine *m, const char *name, const struct cel_value *a,
                               uint32_t n);
struct cel_value cel_call_net(struct cel_machine *m, enum cel_fn fn, const struct cel_overload *o,
                              const struct cel_value *a);
struct cel_value cel_call_url(struct cel_machine *m, enum cel_fn fn, const struct cel_overload *o,
                              const struct cel_value *a);
struct cel_value cel_call_quantity(struct cel_machine *m, enum cel_fn fn,
                                   const struct cel_overload *o, const struct cel_value *a);
struct cel_value cel_call_version(struct cel_machine *m, enum cel_fn fn,
                                  const struct cel_overload *o, const struct cel_value *a,
                                  uint32_t n);
struct cel_value cel_call_names(struct cel_machine *m, enum cel_fn fn, const struct cel_overload *o,
                                const struct cel_value *a);
struct cel_value cel_call_authorizer(struct cel_machine *m, enum cel_fn fn,
                                     const struct cel_overload *o, const struct cel_value *a,
                                     uint32_t n);
struct cel_value cel_format_text(struct cel_machine *m, str format, struct cel_value args);
bool cel_net_equal(struct cel_value a, struct cel_value b);
bool cel_version_equal(struct cel_value a, struct cel_value b);
bool cel_put_net(struct buf *out, struct cel_value v);
str cel_url_text(struct cel_value v);
uint32_t cel_format_regex_size(struct cel_value format);

/* RFC 3339, with any offset, as Go parses it. */
bool cel_parse_timestamp(str text, struct cel_value *ret);
bool cel_parse_schema_time(str text, bool date, struct cel_value *ret);
bool cel_parse_schema_duration(str text, int64_t *ret_ns);
bool cel_in_time_range(int64_t seconds);
void cel_put_timestamp(struct buf *out, struct cel_value v);
void cel_put_duration(struct buf *out, int64_t ns);

#endif
