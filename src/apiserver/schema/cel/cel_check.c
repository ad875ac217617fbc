/* The type checker: gives every node its type, every call the overloads that may apply, and every variable its
 * slot in the frame of the run.
 *
 * A call whose argument types are known keeps one overload, so that running it needs no search. With `dyn`
 * several stay, and the run decides by the kinds of the values. The checker goes on after an error: the wrong
 * expression has the type "error", which fits everywhere. */
#include "cel_node.h"

enum { SCOPE_MAX = 64 };

struct checker {
    struct arena *arena;
    struct cel_issues *issues;
    const struct cel_env *env;
    struct cel_bindings bindings;
    struct {
        str name;
        const struct cel_type *type;
        uint32_t slot;
    } scope[SCOPE_MAX];
    uint32_t n_scope, n_slots, uses;
};

static const struct cel_type error_type = { .kind = CEL_ERROR };

static const struct cel_type *check_node(struct checker *c, struct cel_node *node);

/* ---- identifiers */

/* Names of types that are values: type(x) == int. */
static const struct cel_type *find_type_name(str name)
{
    static const struct cel_type any_list = { .kind = CEL_LIST, .of = { &cel_dyn } },
                                 any_map = { .kind = CEL_MAP, .of = { &cel_dyn, &cel_dyn } },
                                 any_optional = { .kind = CEL_OPTIONAL, .of = { &cel_dyn } },
                                 any_type = { .kind = CEL_TYPE, .of = { &cel_dyn } },
                                 uint_type = { .kind = CEL_UINT }, bytes = { .kind = CEL_BYTES },
                                 duration = { .kind = CEL_DURATION }, ip = { .kind = CEL_IP },
                                 cidr = { .kind = CEL_CIDR }, quantity = { .kind = CEL_QUANTITY },
                                 url = { .kind = CEL_URL }, semver = { .kind = CEL_SEMVER };
    static const struct {
        const char *name;
        const struct cel_type *type;
    } names[] = { { "bool", &cel_bool },
                  { "int", &cel_int },
                  { "uint", &uint_type },
                  { "double", &cel_double },
                  { "string", &cel_string },
                  { "bytes", &bytes },
                  { "list", &any_list },
                  { "map", &any_map },
                  { "null_type", &cel_null },
                  { "type", &any_type },
                  { "google.protobuf.Timestamp", &cel_timestamp },
                  { "google.protobuf.Duration", &duration },
                  { "optional_type", &any_optional },
                  { "net.IP", &ip },
                  { "net.CIDR", &cidr },
                  { "kubernetes.Quantity", &quantity },
                  { "kubernetes.URL", &url },
                  { "kubernetes.Semver", &semver } };
    for (size_t i = 0; i < countof(names); i++)
        if (str_eqc(name, names[i].name))
            return names[i].type;
    return NULL;
}

/* Resolves a name to a variable in scope, one of the environment or a type. */
static const struct cel_type *find_ident(struct checker *c, struct cel_node *node, str name)
{
    for (uint32_t i = c->n_scope; i-- > 0;) {
        if (!str_eq(c->scope[i].name, name))
            continue;
        node->kind = CEL_N_IDENT;
        node->ident.name = name;
        node->ident.slot = c->scope[i].slot;
        return c->scope[i].type;
    }
    for (size_t i = 0; i < c->env->n_variables; i++) {
        if (!str_eq(c->env->variables[i].name, name))
            continue;
        node->kind = CEL_N_IDENT;
        node->ident.name = name;
        node->ident.slot = (uint32_t)i;
        c->uses |= i < 32 ? 1u << i : 0;
        return c->env->variables[i].type;
    }
    const struct cel_type *type = find_type_name(name);
    if (!type)
        return NULL;
    node->kind = CEL_N_CONST;
    node->constant = (struct cel_value){ .kind = CEL_TYPE, .type = type };
    return cel_new_type(c->arena, CEL_TYPE, type, NULL);
}

/* A name that does not resolve gets the type "error", so that it is reported once and not again by each
 * operator. */
static const struct cel_type *check_ident(struct checker *c, struct cel_node *node)
{
    str name = node->ident.name;
    const struct cel_type *type = find_ident(c, node, name);
    if (type)
        return type;
    cel_issue(c->issues, node->at, "undeclared reference to '" STR_FMT "' (in container '')",
              STR_ARG(name));
    return &error_type;
}

/* The dotted name of a chain of identifiers; empty if it is anything else. */
static str get_qualified_name(struct checker *c, const struct cel_node *node)
{
    if (node->kind == CEL_N_IDENT)
        return node->ident.name;
    if (node->kind != CEL_N_SELECT || node->select.test || node->select.optional)
        return S("");
    str front = get_qualified_name(c, node->select.from);
    return front.n ? arena_join(c->arena, (str[]){ front, S("."), node->select.field }, 3) : front;
}

/* The type of a field, by the kind of what it is selected from. */
static const struct cel_type *select_field(struct checker *c, struct cel_node *node,
                                           const struct cel_type *from)
{
    str field = node->select.field;
    node->select.key = field;
    switch (from->kind) {
    case CEL_MAP:
        return from->of[1];
    case CEL_OBJECT:
        for (uint32_t i = 0; i < from->n_fields; i++) {
            if (!str_eq(from->fields[i].name, field))
                continue;
            node->select.key = from->fields[i].key;
            return from->fields[i].type;
        }
        if (from->open)
            return &cel_dyn;
        cel_issue(c->issues, node->at, "undefined field '" STR_FMT "'", STR_ARG(field));
        return &error_type;
    case CEL_PARAM:
        cel_assignable(&c->bindings, &cel_dyn, from);
        return &cel_dyn;
    case CEL_DYN:
    case CEL_ERROR:
        return &cel_dyn;
    default:
        cel_issue(c->issues, node->at, "type '" STR_FMT "' does not support field selection",
                  STR_ARG(cel_type_text(c->arena, from)));
        return &cel_dyn;
    }
}

/* a.b.c may be one dotted name (google.protobuf.Timestamp) or a chain of fields: the name is tried first. */
static const struct cel_type *check_select(struct checker *c, struct cel_node *node)
{
    str name = get_qualified_name(c, node);
    if (name.n &&
        str_find_char(name, '.') != SIZE_MAX) { /* a variable or type with a dotted name */
        const struct cel_type *type = find_ident(c, node, name);
        if (type)
            return type;
    }
    const struct cel_type *from =
        cel_substitute(&c->bindings, check_node(c, node->select.from), false);
    bool optional = from->kind == CEL_OPTIONAL;
    const struct cel_type *type = select_field(c, node, optional ? from->of[0] : from);
    if (optional || node->select.optional)
        type = cel_new_type(c->arena, CEL_OPTIONAL, type, NULL);
    return node->select.test ? &cel_bool : cel_substitute(&c->bindings, type, false);
}

/* ---- calls */

/* "found no matching overload for 'f' applied to 'int.(string, bool)'": the receiver before the dot. */
static void report_no_overload(struct checker *c, const struct cel_node *node,
                               const struct cel_type **types, uint32_t n, bool member)
{
    auto_buf struct buf text = { 0 };
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 && member) {
            buf_put(&text, cel_type_text(c->arena, cel_substitute(&c->bindings, types[i], true)));
            buf_put(&text, S(".("));
            continue;
        }
        buf_put(&text, i > (member ? 1u : 0u) ? S(", ") : i == 0 ? S("(") : S(""));
        buf_put(&text, cel_type_text(c->arena, cel_substitute(&c->bindings, types[i], true)));
    }
    if (!n)
        buf_putc(&text, '(');
    buf_putc(&text, ')');
    cel_issue(c->issues, node->at, "found no matching overload for '" STR_FMT "' applied to '%s'",
              STR_ARG(node->call.name), buf_str(&text).p);
}

static bool is_logical(str name)
{
    return str_eqc(name, "_&&_") || str_eqc(name, "_||_");
}

/* Tries one overload; returns its result type, or NULL. */
static const struct cel_type *try_overload(struct checker *c, const struct cel_overload *o,
                                           const struct cel_type **types, uint32_t n, bool member)
{
    size_t dot = strcspn(o->signature, ".:");
    if ((o->signature[dot] == '.') != member)
        return NULL;
    const struct cel_type *params[2] = { NULL, NULL };
    if (strpbrk(o->signature, "AB"))
        params[0] = cel_new_variable(&c->bindings), params[1] = cel_new_variable(&c->bindings);
    const char *at = o->signature;
    const struct cel_type *result = cel_read_type(c->arena, &at, params);
    uint32_t mark = cel_bindings_mark(&c->bindings), i = 0;
    for (at++; *at && i < n; i++)
        if (!cel_assignable(&c->bindings, types[i], cel_read_type(c->arena, &at, params)))
            break;
    if (i == n && !*at)
        return cel_substitute(&c->bindings, result, false);
    cel_bindings_undo(&c->bindings, mark);
    return NULL;
}

/* All operands of && and || must be bool; each that is not is reported by itself. */
static const struct cel_type *check_logical(struct checker *c, struct cel_node *node,
                                            const struct cel_type **types)
{
    bool good = true;
    for (uint32_t i = 0; i < node->call.n; i++) {
        if (cel_assignable(&c->bindings, types[i], &cel_bool))
            continue;
        cel_issue(c->issues, node->call.args[i]->at, "expected type 'bool' but found '" STR_FMT "'",
                  STR_ARG(cel_type_text(c->arena, cel_substitute(&c->bindings, types[i], true))));
        good = false;
    }
    for (size_t i = 0; i < cel_n_overloads; i++)
        if (str_eqc(node->call.name, cel_overloads[i].name))
            node->call.candidates[0] = (uint16_t)i, node->call.n_candidates = 1;
    return good ? &cel_bool : &error_type;
}

/* Only the environments of policies and of mutations have these functions. */
static bool is_hidden(const struct checker *c, const struct cel_overload *o)
{
    return o->fn == CEL_F_ESCAPE_KEY ? !c->env->patches : !c->env->policy && o->fn >= CEL_F_AUTHZ;
}

static bool has_function(const struct checker *c, str name)
{
    for (size_t i = 0; i < cel_n_overloads; i++)
        if (str_eqc(name, cel_overloads[i].name) && !is_hidden(c, &cel_overloads[i]))
            return true;
    return false;
}

/* Finds all overloads that fit; their results join to dyn if they differ. */
static const struct cel_type *resolve_call(struct checker *c, struct cel_node *node,
                                           const struct cel_type **types, uint32_t n)
{
    bool member = node->call.target != NULL;
    if (is_logical(node->call.name))
        return check_logical(c, node, types);
    const struct cel_type *result = NULL;
    node->call.n_candidates = 0;
    for (size_t i = 0; i < cel_n_overloads; i++) {
        const struct cel_overload *o = &cel_overloads[i];
        if (!str_eqc(node->call.name, o->name) || is_hidden(c, o) ||
            node->call.n_candidates == CEL_CANDIDATES_MAX)
            continue;
        const struct cel_type *type = try_overload(c, o, types, n, member);
        if (!type)
            continue;
        node->call.candidates[node->call.n_candidates++] = (uint16_t)i;
        if (!result)
            result = type;
        else if (result->kind != CEL_DYN && !cel_same_type(result, type))
            result = &cel_dyn;
    }
    if (result)
        return result;
    report_no_overload(c, node, types, n, member);
    return &error_type;
}

/* Types of the arguments first, then the overloads. A receiver that is a namespace, not a value, becomes part
 * of the function's name. */
static const struct cel_type *check_call(struct checker *c, struct cel_node *node)
{
    const struct cel_type **types = arena_array(c->arena, node->call.n + 1u, sizeof(*types));
    uint32_t n = 0;
    if (node->call.target) { /* optional.of(x) and the like are functions */
        str prefix = get_qualified_name(c, node->call.target);
        str name = arena_join(c->arena, (str[]){ prefix, S("."), node->call.name }, 3);
        if (prefix.n && has_function(c, name)) {
            node->call.name = arena_str(c->issues->keep, name);
            node->call.target = NULL;
        }
    }
    if (node->call.target)
        n = 1;
    for (uint32_t i = 0; i < node->call.n; i++)
        types[n + i] = check_node(c, node->call.args[i]);
    if (node->call.target)
        types[0] = check_node(c, node->call.target);
    if (!has_function(c, node->call.name)) {
        cel_issue(c->issues, node->at, "undeclared reference to '" STR_FMT "' (in container '')",
                  STR_ARG(node->call.name));
        return &error_type;
    }
    return resolve_call(c, node, types, n + node->call.n);
}

/* ---- containers */

/* The common type of the items so far and one more; a mixture is dyn. Literals that are not homogeneous are
 * refused later, except where format() takes them. */
static const struct cel_type *join_types(struct checker *c, const struct cel_type *before,
                                         const struct cel_type *type)
{
    if (!before)
        return type;
    if (cel_assignable(&c->bindings, before, type))
        return cel_most_general(before, type);
    return &cel_dyn;
}

/* The type of an item of a literal; of an optional item (?x) the type inside the optional. */
static const struct cel_type *check_item(struct checker *c, struct cel_node *node, bool optional)
{
    const struct cel_type *type = cel_substitute(&c->bindings, check_node(c, node), false);
    if (!optional)
        return type;
    if (type->kind == CEL_OPTIONAL)
        return type->of[0];
    if (type->kind != CEL_DYN && type->kind != CEL_ERROR)
        cel_issue(c->issues, node->at,
                  "expected type 'optional_type(" STR_FMT ")' but found '" STR_FMT "'",
                  STR_ARG(cel_type_text(c->arena, type)), STR_ARG(cel_type_text(c->arena, type)));
    return type;
}

static const struct cel_type *check_list(struct checker *c, struct cel_node *node)
{
    const struct cel_type *item = NULL;
    for (uint32_t i = 0; i < node->list.n; i++)
        item = join_types(c, item,
                          check_item(c, node->list.items[i],
                                     node->list.optional && node->list.optional[i]));
    return cel_new_type(c->arena, CEL_LIST, item ? item : cel_new_variable(&c->bindings), NULL);
}

static const struct cel_type *check_map(struct checker *c, struct cel_node *node)
{
    const struct cel_type *key = NULL, *value = NULL;
    for (uint32_t i = 0; i < node->list.n; i++) {
        key = join_types(c, key, check_node(c, node->list.items[2 * i]));
        value = join_types(c, value,
                           check_item(c, node->list.items[2 * i + 1],
                                      node->list.optional && node->list.optional[i]));
    }
    if (!key)
        key = cel_new_variable(&c->bindings), value = cel_new_variable(&c->bindings);
    return cel_new_type(c->arena, CEL_MAP, key, value);
}

/* Object{...} takes any field, which is checked when the result is merged into the object; JSONPatch{...} has four. */
static const struct cel_type *check_struct(struct checker *c, struct cel_node *node)
{
    str name = node->list.name;
    const struct cel_type *type = c->env->patches ? cel_struct_type(c->issues->keep, name) : NULL;
    if (!type)
        cel_issue(c->issues, node->at, "undeclared reference to '" STR_FMT "' (in container '')",
                  STR_ARG(name));
    for (uint32_t i = 0; i < node->list.n; i++) {
        struct cel_node *key = node->list.items[2 * i], *value = node->list.items[2 * i + 1];
        if (key->kind == CEL_N_IDENT) {
            struct cel_value text = cel_of_text(key->ident.name);
            key->kind = CEL_N_CONST;
            key->constant = text;
            key->type = &cel_string;
        }
        const struct cel_type *got =
            check_item(c, value, node->list.optional && node->list.optional[i]);
        if (!type || type->open)
            continue;
        const struct cel_field *field = cel_find_field(type, cel_text(key->constant));
        if (!field || !cel_assignable(&c->bindings, field->type, got))
            cel_issue(c->issues, key->at,
                      "expected type of field '" STR_FMT "' is '" STR_FMT
                      "' but provided type is '" STR_FMT "'",
                      STR_ARG(cel_text(key->constant)),
                      STR_ARG(field ? cel_type_text(c->arena, field->type) : S("")),
                      STR_ARG(cel_type_text(c->arena, cel_substitute(&c->bindings, got, true))));
    }
    return type ? type : &error_type;
}

static uint32_t push_variable(struct checker *c, str name, const struct cel_type *type)
{
    uint32_t slot = c->n_slots++;
    if (c->n_scope == SCOPE_MAX) {
        cel_issue(c->issues, 0, "too many nested variables");
        return slot;
    }
    c->scope[c->n_scope].name = name;
    c->scope[c->n_scope].type = type;
    c->scope[c->n_scope++].slot = slot;
    return slot;
}

static void expect_type(struct checker *c, const struct cel_node *node, const struct cel_type *want)
{
    if (!cel_assignable(&c->bindings, want, node->type))
        cel_issue(c->issues, node->at, "expected type '" STR_FMT "' but found '" STR_FMT "'",
                  STR_ARG(cel_type_text(c->arena, cel_substitute(&c->bindings, want, true))),
                  STR_ARG(cel_type_text(c->arena, cel_substitute(&c->bindings, node->type, true))));
}

/* The types of one or two variables over a range. */
static void get_variable_types(struct checker *c, const struct cel_node *node,
                               const struct cel_type *range, const struct cel_type *ret[2])
{
    bool two = node->loop.var2.n > 0;
    ret[0] = ret[1] = &cel_dyn;
    switch (range->kind) {
    case CEL_LIST:
        ret[0] = two ? &cel_int : range->of[0];
        ret[1] = range->of[0];
        break;
    case CEL_MAP:
        ret[0] = range->of[0];
        ret[1] = range->of[1];
        break;
    case CEL_PARAM:
        cel_assignable(&c->bindings, &cel_dyn, range);
        break;
    case CEL_DYN:
    case CEL_ERROR:
        break;
    default:
        cel_issue(c->issues, node->loop.range->at,
                  "expression of type '" STR_FMT
                  "' cannot be range of a comprehension (must be list, map, or dynamic)",
                  STR_ARG(cel_type_text(c->arena, range)));
        ret[0] = ret[1] = &error_type;
    }
}

/* The accumulator is visible to condition, step and result, the variables of the loop to condition and step
 * only. The step must have the type of the accumulator, whose type variables it may bind (the empty list of
 * map()). */
static const struct cel_type *check_loop(struct checker *c, struct cel_node *node)
{
    const struct cel_type *range =
        cel_substitute(&c->bindings, check_node(c, node->loop.range), false);
    const struct cel_type *accu = check_node(c, node->loop.init), *variables[2];
    uint32_t scope = c->n_scope;
    node->loop.accu_slot = push_variable(c, node->loop.accu, accu);
    uint32_t inner = c->n_scope;
    get_variable_types(c, node, range, variables);
    node->loop.var_slot = push_variable(c, node->loop.var, variables[0]);
    if (node->loop.var2.n)
        node->loop.var2_slot = push_variable(c, node->loop.var2, variables[1]);
    check_node(c, node->loop.cond);
    expect_type(c, node->loop.cond, &cel_bool);
    check_node(c, node->loop.step);
    expect_type(c, node->loop.step, accu);
    c->n_scope = inner;
    const struct cel_type *result = check_node(c, node->loop.result);
    c->n_scope = scope;
    return cel_substitute(&c->bindings, result, false);
}

static const struct cel_type *type_of_constant(struct checker *c, const struct cel_value *v)
{
    return v->kind == CEL_TYPE ? cel_new_type(c->arena, CEL_TYPE, v->type, NULL)
                               : cel_new_type(c->arena, v->kind, NULL, NULL);
}

static const struct cel_type *check_kind(struct checker *c, struct cel_node *node)
{
    switch (node->kind) {
    case CEL_N_CONST:
        return type_of_constant(c, &node->constant);
    case CEL_N_IDENT:
        return check_ident(c, node);
    case CEL_N_SELECT:
        return check_select(c, node);
    case CEL_N_CALL:
        return check_call(c, node);
    case CEL_N_LIST:
        return check_list(c, node);
    case CEL_N_MAP:
        return check_map(c, node);
    case CEL_N_STRUCT:
        return check_struct(c, node);
    default:
        return check_loop(c, node);
    }
}

static const struct cel_type *check_node(struct checker *c, struct cel_node *node)
{
    node->type = check_kind(c, node);
    return node->type;
}

/* Replaces type variables everywhere, for the phases that follow. */
static void settle_types(struct checker *c, struct cel_node *node)
{
    node->type = cel_substitute(&c->bindings, node->type, true);
    if (node->kind == CEL_N_SELECT)
        settle_types(c, node->select.from);
    if (node->kind == CEL_N_CALL && node->call.target)
        settle_types(c, node->call.target);
    for (uint32_t i = 0; node->kind == CEL_N_CALL && i < node->call.n; i++)
        settle_types(c, node->call.args[i]);
    bool pairs = node->kind == CEL_N_MAP || node->kind == CEL_N_STRUCT;
    for (uint32_t i = 0;
         (pairs || node->kind == CEL_N_LIST) && i < node->list.n * (pairs ? 2u : 1u); i++)
        settle_types(c, node->list.items[i]);
    if (node->kind == CEL_N_LOOP) {
        struct cel_node *const parts[] = { node->loop.range, node->loop.init, node->loop.cond,
                                           node->loop.step, node->loop.result };
        for (size_t i = 0; i < countof(parts); i++)
            settle_types(c, parts[i]);
    }
}

/* Returns the type of the expression, or NULL with the issues filled. The first slots of the frame are the
 * variables of the environment. */
const struct cel_type *cel_check(struct cel_issues *issues, const struct cel_env *env,
                                 struct cel_node *root, struct cel_checked *ret)
{
    struct checker c = { .arena = issues->arena,
                         .issues = issues,
                         .env = env,
                         .bindings = { .arena = issues->arena },
                         .n_slots = (uint32_t)env->n_variables };
    check_node(&c, root);
    if (issues->n)
        return NULL;
    settle_types(&c, root);
    *ret = (struct cel_checked){ c.n_slots, c.uses };
    return root->type;
}
