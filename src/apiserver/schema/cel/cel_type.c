/* Types: building, printing, comparing, and unification.
 *
 * A signature may contain type variables (list(A) + list(A)); each use of it gets fresh ones, and bindings remember
 * their types. Trying an overload binds variables; when it does not fit, the log undoes them. `dyn` fits
 * everything, as does the type of an expression that is already wrong, so that one mistake is reported once. */
#include "cel_node.h"

#define SIMPLE(symbol, which) const struct cel_type symbol = { .kind = which, .min_size = 1 }
SIMPLE(cel_dyn, CEL_DYN);
SIMPLE(cel_int, CEL_INT);
SIMPLE(cel_double, CEL_DOUBLE);
SIMPLE(cel_null, CEL_NULL);
SIMPLE(cel_timestamp, CEL_TIMESTAMP);
SIMPLE(cel_authorizer_type, CEL_AUTHORIZER);
SIMPLE(cel_resource_check_type, CEL_RESOURCE_CHECK);
const struct cel_type cel_bool = { .kind = CEL_BOOL, .min_size = 4 };
const struct cel_type cel_string = { .kind = CEL_STRING, .min_size = 2 };

const struct cel_type *cel_new_type(struct arena *a, enum cel_kind kind,
                                    const struct cel_type *first, const struct cel_type *second)
{
    struct cel_type *t = arena_new(a, struct cel_type);
    t->kind = kind;
    t->of[0] = first;
    t->of[1] = second;
    return t;
}

/* How many types a kind is made of. */
static uint32_t count_parts(enum cel_kind kind)
{
    return kind == CEL_MAP                                                ? 2
           : kind == CEL_LIST || kind == CEL_OPTIONAL || kind == CEL_TYPE ? 1
                                                                          : 0;
}

static const char *const kind_names[CEL_KIND_N] = {
    [CEL_DYN] = "dyn",
    [CEL_ERROR] = "!error!",
    [CEL_NULL] = "null",
    [CEL_BOOL] = "bool",
    [CEL_INT] = "int",
    [CEL_UINT] = "uint",
    [CEL_DOUBLE] = "double",
    [CEL_STRING] = "string",
    [CEL_BYTES] = "bytes",
    [CEL_TIMESTAMP] = "timestamp",
    [CEL_DURATION] = "duration",
    [CEL_LIST] = "list",
    [CEL_MAP] = "map",
    [CEL_OBJECT] = "object",
    [CEL_OPTIONAL] = "optional_type",
    [CEL_TYPE] = "type",
    [CEL_PARAM] = "dyn",
    [CEL_QUANTITY] = "kubernetes.Quantity",
    [CEL_URL] = "kubernetes.URL",
    [CEL_IP] = "net.IP",
    [CEL_CIDR] = "net.CIDR",
    [CEL_FORMAT] = "kubernetes.NamedFormat",
    [CEL_SEMVER] = "kubernetes.Semver",
    [CEL_AUTHORIZER] = "kubernetes.authorization.Authorizer",
    [CEL_PATH_CHECK] = "kubernetes.authorization.PathCheck",
    [CEL_GROUP_CHECK] = "kubernetes.authorization.GroupCheck",
    [CEL_RESOURCE_CHECK] = "kubernetes.authorization.ResourceCheck",
    [CEL_DECISION] = "kubernetes.authorization.Decision",
};

/* "map(string, int)", as error messages print it. */
static void put_type(struct buf *out, const struct cel_type *t)
{
    buf_put(out, t->kind == CEL_OBJECT && t->name ? str_c(t->name) : str_c(kind_names[t->kind]));
    uint32_t parts = count_parts(t->kind);
    if (parts && t->of[0]) {
        buf_putc(out, '(');
        put_type(out, t->of[0]);
        if (parts == 2) {
            buf_put(out, S(", "));
            put_type(out, t->of[1]);
        }
        buf_putc(out, ')');
    }
}

str cel_type_text(struct arena *a, const struct cel_type *t)
{
    auto_buf struct buf out = { 0 };
    put_type(&out, t);
    return arena_str(a, buf_str(&out));
}

/* Objects are the same if they share one field table: each schema node has its own. Those without one have a name. */
bool cel_same_type(const struct cel_type *a, const struct cel_type *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || (a->kind == CEL_PARAM && a->id != b->id) ||
        (a->kind == CEL_OBJECT && (a->fields != b->fields || a->n_fields != b->n_fields ||
                                   (a->open && (!b->open || strcmp(a->name, b->name) != 0)))))
        return false;
    for (uint32_t i = 0; i < count_parts(a->kind); i++)
        if (!a->of[i] || !b->of[i] ? a->of[i] != b->of[i] : !cel_same_type(a->of[i], b->of[i]))
            return false;
    return true;
}

/* ---- signatures */

/* Reads one type of a signature in prefix notation: "LMsi" is list(map(string, int)). */
const struct cel_type *cel_read_type(struct arena *a, const char **signature,
                                     const struct cel_type *const params[2])
{
    static const struct {
        char letter;
        enum cel_kind kind;
    } letters[] = {
        { 'b', CEL_BOOL },        { 'i', CEL_INT },
        { 'u', CEL_UINT },        { 'd', CEL_DOUBLE },
        { 's', CEL_STRING },      { 'y', CEL_BYTES },
        { 't', CEL_TIMESTAMP },   { 'r', CEL_DURATION },
        { 'n', CEL_NULL },        { 'D', CEL_DYN },
        { 'Q', CEL_QUANTITY },    { 'U', CEL_URL },
        { 'P', CEL_IP },          { 'C', CEL_CIDR },
        { 'F', CEL_FORMAT },      { 'V', CEL_SEMVER },
        { 'X', CEL_AUTHORIZER },  { 'Y', CEL_PATH_CHECK },
        { 'Z', CEL_GROUP_CHECK }, { 'W', CEL_RESOURCE_CHECK },
        { 'R', CEL_DECISION },    { 'L', CEL_LIST },
        { 'M', CEL_MAP },         { 'O', CEL_OPTIONAL },
        { 'T', CEL_TYPE },
    };
    char letter = *(*signature)++;
    if (letter == 'A' || letter == 'B')
        return params[letter - 'A'];
    for (size_t i = 0; i < countof(letters); i++) {
        if (letters[i].letter != letter)
            continue;
        uint32_t parts = count_parts(letters[i].kind);
        const struct cel_type *first = parts ? cel_read_type(a, signature, params) : NULL;
        const struct cel_type *second = parts == 2 ? cel_read_type(a, signature, params) : NULL;
        return cel_new_type(a, letters[i].kind, first, second);
    }
    return &cel_dyn;
}

/* ---- unification */

const struct cel_type *cel_new_variable(struct cel_bindings *b)
{
    struct cel_type *t = arena_new(b->arena, struct cel_type);
    t->kind = CEL_PARAM;
    t->id = b->n;
    if (b->n == b->cap) {
        uint32_t cap = b->cap ? b->cap * 2 : 32;
        const struct cel_type **grown = arena_array(b->arena, cap, sizeof(*grown));
        if (b->n)
            memcpy(grown, b->at, b->n * sizeof(*grown));
        b->at = grown, b->cap = cap;
    }
    b->at[b->n++] = NULL;
    return t;
}

/* Binds a variable and logs its former type, so that a failed attempt can be undone. */
static void bind(struct cel_bindings *b, uint32_t id, const struct cel_type *t)
{
    if (b->n_log == b->cap_log) {
        uint32_t cap = b->cap_log ? b->cap_log * 2 : 32;
        __typeof__(b->log) grown = arena_array(b->arena, cap, sizeof(*grown));
        if (b->n_log)
            memcpy(grown, b->log, b->n_log * sizeof(*grown));
        b->log = grown, b->cap_log = cap;
    }
    b->log[b->n_log].id = id;
    b->log[b->n_log++].was = b->at[id];
    b->at[id] = t;
}

uint32_t cel_bindings_mark(const struct cel_bindings *b)
{
    return b->n_log;
}

void cel_bindings_undo(struct cel_bindings *b, uint32_t mark)
{
    while (b->n_log > mark) {
        b->n_log--;
        b->at[b->log[b->n_log].id] = b->log[b->n_log].was;
    }
}

static bool is_loose(const struct cel_type *t)
{
    return t->kind == CEL_DYN || t->kind == CEL_ERROR;
}

/* True if `a` is the same as or less specific than `b`. */
static bool is_more_general(const struct cel_type *a, const struct cel_type *b)
{
    if (a->kind == CEL_DYN || a->kind == CEL_PARAM)
        return true;
    if (b->kind == CEL_DYN || b->kind == CEL_PARAM || a->kind != b->kind)
        return false;
    if (a->kind == CEL_TYPE)
        return true;
    for (uint32_t i = 0; i < count_parts(a->kind); i++)
        if (!is_more_general(a->of[i], b->of[i]))
            return false;
    return count_parts(a->kind) ? true : cel_same_type(a, b);
}

const struct cel_type *cel_most_general(const struct cel_type *a, const struct cel_type *b)
{
    return is_more_general(a, b) ? a : b;
}

/* True if the variable does not occur in the type: a type cannot contain itself. */
static bool is_not_in(const struct cel_bindings *b, uint32_t id, const struct cel_type *t)
{
    if (t->kind == CEL_PARAM) {
        if (t->id == id)
            return false;
        return !b->at[t->id] || is_not_in(b, id, b->at[t->id]);
    }
    for (uint32_t i = 0; i < count_parts(t->kind); i++)
        if (t->of[i] && !is_not_in(b, id, t->of[i]))
            return false;
    return true;
}

static bool unify(struct cel_bindings *b, const struct cel_type *a, const struct cel_type *t);

/* Whether the variable can have the type `t`; `bound`: it already had one. */
static bool unify_variable(struct cel_bindings *b, const struct cel_type *t,
                           const struct cel_type *variable, bool *bound)
{
    const struct cel_type *now = b->at[variable->id];
    *bound = true;
    if (cel_same_type(t, variable) || (now && cel_same_type(t, now)))
        return true;
    if (now) {
        if (!unify(b, t, now))
            return false;
        const struct cel_type *general = cel_most_general(t, now);
        if (general != now && is_not_in(b, variable->id, general))
            bind(b, variable->id, general);
        return true;
    }
    *bound = false;
    if (!is_not_in(b, variable->id, t))
        return false;
    bind(b, variable->id, t);
    return true;
}

/* null is a value of messages and wrapper types, but not of scalars, lists and maps. */
static bool accepts_null(const struct cel_type *t)
{
    switch (t->kind) {
    case CEL_NULL:
    case CEL_OBJECT:
    case CEL_OPTIONAL:
    case CEL_TIMESTAMP:
    case CEL_DURATION:
        return true;
    default:
        return t->kind >= CEL_QUANTITY;
    }
}

/* Makes both types equal by binding variables, if that is possible. May leave bindings behind when it fails:
 * the caller undoes them. */
static bool unify(struct cel_bindings *b, const struct cel_type *a, const struct cel_type *t)
{
    bool bound;
    if (t->kind == CEL_PARAM) {
        if (unify_variable(b, a, t, &bound))
            return true;
        if (bound)
            return false;
    }
    if (a->kind == CEL_PARAM)
        return unify_variable(b, t, a, &bound);
    if (is_loose(a) || is_loose(t))
        return true;
    if (a->kind == CEL_NULL || t->kind == CEL_NULL)
        return accepts_null(a->kind == CEL_NULL ? t : a);
    if (a->kind != t->kind)
        return false;
    if (a->kind == CEL_TYPE)
        return true;
    if (a->kind == CEL_OBJECT)
        return cel_same_type(a, t);
    for (uint32_t i = 0; i < count_parts(a->kind); i++)
        if (!unify(b, a->of[i], t->of[i]))
            return false;
    return true;
}

bool cel_assignable(struct cel_bindings *b, const struct cel_type *a, const struct cel_type *t)
{
    uint32_t mark = cel_bindings_mark(b);
    if (unify(b, a, t))
        return true;
    cel_bindings_undo(b, mark);
    return false;
}

/* The type with its variables replaced; `dyn`: also those that are still free. Types without variables are
 * shared, not copied. */
const struct cel_type *cel_substitute(struct cel_bindings *b, const struct cel_type *t, bool dyn)
{
    if (t->kind == CEL_PARAM) {
        if (b->at[t->id])
            return cel_substitute(b, b->at[t->id], dyn);
        return dyn ? &cel_dyn : t;
    }
    uint32_t parts = count_parts(t->kind);
    if (!parts || !t->of[0])
        return t;
    const struct cel_type *first = cel_substitute(b, t->of[0], dyn);
    const struct cel_type *second = parts == 2 ? cel_substitute(b, t->of[1], dyn) : NULL;
    if (first == t->of[0] && second == t->of[1])
        return t;
    struct cel_type *copy = arena_new(b->arena, struct cel_type);
    *copy = *t;
    copy->of[0] = first;
    copy->of[1] = second;
    return copy;
}
