/* Compiling and running.
 *
 * cel_compile() takes an expression through all phases: parse, check, constants, cost. cel_run() walks the
 * tree.
 *
 *   text --cel_parse--> tree --cel_check--> types, overloads, slots --cel_check_literals--> patterns compiled
 *                                                                                               |
 *   objects as variables ------------------------------> cel_run --> value, cost     program <--+-- cel_estimate
 *
 * Errors are values: a call with an error among its arguments returns it, && and || may absorb it. Variables are
 * slots of a frame, so a name costs one load. Most of the values that a run handles are JSON of the object; they
 * are converted one by one when they are read (cel_value.c).
 *
 * The real cost is counted by the rules of cel-go, and exceeding the limit ends the run: `exceeded` makes every
 * node return at once, so that a result is never used after it is set. */
#include "cel_node.h"

#include <math.h>

static struct cel_value cel_eval(struct cel_machine *m, const struct cel_node *node);

/* Cancels the run; every caller returns this value. */
static struct cel_value cancel_run(struct cel_machine *m)
{
    static const char text[] = "operation cancelled: actual cost limit exceeded";
    m->exceeded = true;
    return (struct cel_value){ .kind = CEL_ERROR, .text = text, .n = sizeof(text) - 1 };
}

/* Adds to the cost; false: the run is cancelled. */
static bool charge_cost(struct cel_machine *m, uint64_t cost)
{
    m->cost += cost;
    if (m->cost > m->limit)
        cancel_run(m);
    return !m->exceeded;
}

/* ---- selecting */

static struct cel_value no_such_key(struct cel_machine *m, str key)
{
    return cel_fail(m->arena, "no such key: " STR_FMT, STR_ARG(key));
}

/* A field of a map or object, or of what the server provides. */
static bool find_field(struct cel_machine *m, struct cel_value from, str key, struct cel_value *ret)
{
    if (from.kind == CEL_MAP || from.kind == CEL_OBJECT)
        return cel_lookup(m, from, cel_of_text(key), ret);
    if (from.kind == CEL_DYN && m->host) { /* variables of a policy */
        struct cel_value v = m->host->field(m->host, m->arena, key);
        if (ret)
            *ret = v;
        return true;
    }
    return false;
}

/* a.b, a.?b and has(a.b). Through an optional the result is an optional again, empty if the field is absent. */
static struct cel_value eval_select(struct cel_machine *m, const struct cel_node *node)
{
    struct cel_value from = cel_eval(m, node->select.from), found;
    if (cel_is_error(from) || (!node->select.test && !charge_cost(m, 1)))
        return cel_is_error(from) ? from : cancel_run(m);
    bool optional = from.kind == CEL_OPTIONAL || node->select.optional;
    if (from.kind == CEL_OPTIONAL) {
        if (!from.value)
            return node->select.test ? cel_of_bool(false) : from;
        from = *from.value;
    }
    bool container = from.kind == CEL_MAP || from.kind == CEL_OBJECT || from.kind == CEL_DYN;
    if (!container && !(optional && from.kind == CEL_NULL))
        return cel_no_overload();
    bool has = find_field(m, from, node->select.key, node->select.test ? NULL : &found);
    if (node->select.test)
        return cel_of_bool(has);
    if (optional)
        return !has                  ? (struct cel_value){ .kind = CEL_OPTIONAL }
               : cel_is_error(found) ? found
                                     : cel_optional_of(m->arena, found);
    if (!has && from.kind == CEL_OBJECT && !from.is_json) { /* an unset field is null or "" */
        const struct cel_field *f = cel_find_field(from.type, node->select.key);
        return f && f->type->kind == CEL_STRING ? cel_of_text(S(""))
                                                : (struct cel_value){ .kind = CEL_NULL };
    }
    return has ? found : no_such_key(m, node->select.field);
}

/* ---- operators that do not evaluate all their operands */

/* && and || are commutative in CEL: an error on one side is absorbed if the other side decides. */
static struct cel_value eval_logical(struct cel_machine *m, const struct cel_node *node, bool is_or)
{
    struct cel_value left = cel_eval(m, node->call.args[0]);
    if (left.kind == CEL_BOOL && left.boolean == is_or)
        return left;
    struct cel_value right = cel_eval(m, node->call.args[1]);
    if (m->exceeded)
        return cancel_run(m);
    if (right.kind == CEL_BOOL && right.boolean == is_or)
        return right;
    if (cel_is_error(left) || cel_is_error(right))
        return cel_is_error(left) ? left : right;
    return left.kind == CEL_BOOL && right.kind == CEL_BOOL ? cel_of_bool(!is_or)
                                                           : cel_no_overload();
}

static struct cel_value eval_condition(struct cel_machine *m, const struct cel_node *node)
{
    struct cel_value condition = cel_eval(m, node->call.args[0]);
    if (cel_is_error(condition))
        return condition;
    if (condition.kind != CEL_BOOL)
        return cel_no_overload();
    return cel_eval(m, node->call.args[condition.boolean ? 1 : 2]);
}

/* optional.or and orValue evaluate their argument only if it is needed. */
static struct cel_value eval_optional_or(struct cel_machine *m, const struct cel_node *node,
                                         bool unwrap)
{
    struct cel_value v = cel_eval(m, node->call.target);
    if (cel_is_error(v))
        return v;
    if (v.kind != CEL_OPTIONAL)
        return cel_no_overload();
    if (!v.value)
        return cel_eval(m, node->call.args[0]);
    return unwrap ? *v.value : v;
}

/* ---- calls */

/* Whether a value fits one type of a signature, which is skipped. */
static bool fits_type(const char **signature, struct cel_value v)
{
    static const uint8_t kinds[128] = {
        ['b'] = CEL_BOOL,
        ['i'] = CEL_INT,
        ['u'] = CEL_UINT,
        ['d'] = CEL_DOUBLE,
        ['s'] = CEL_STRING,
        ['y'] = CEL_BYTES,
        ['t'] = CEL_TIMESTAMP,
        ['r'] = CEL_DURATION,
        ['n'] = CEL_NULL,
        ['Q'] = CEL_QUANTITY,
        ['U'] = CEL_URL,
        ['P'] = CEL_IP,
        ['C'] = CEL_CIDR,
        ['F'] = CEL_FORMAT,
        ['V'] = CEL_SEMVER,
        ['X'] = CEL_AUTHORIZER,
        ['Y'] = CEL_PATH_CHECK,
        ['Z'] = CEL_GROUP_CHECK,
        ['W'] = CEL_RESOURCE_CHECK,
        ['R'] = CEL_DECISION,
        ['L'] = CEL_LIST,
        ['M'] = CEL_MAP,
        ['O'] = CEL_OPTIONAL,
        ['T'] = CEL_TYPE,
    };
    unsigned char letter = (unsigned char)*(*signature)++;
    uint8_t kind = kinds[letter & 127];
    bool good = !kind || v.kind == kind;
    if (letter == 'O' && good && v.value)
        return fits_type(signature, *v.value);
    if (letter == 'L' && good && strchr("iudbsytr", **signature) && **signature && v.n)
        good = v.is_json || v.list->items[0].kind == kinds[**signature & 127];
    for (int parts = letter == 'M'                                     ? 2
                     : letter == 'L' || letter == 'O' || letter == 'T' ? 1
                                                                       : 0;
         parts; parts--)
        fits_type(signature, (struct cel_value){ .kind = CEL_DYN });
    return good;
}

/* Whether the values fit the signature of an overload. Needed only where the checker saw `dyn`. */
static bool accepts_values(const struct cel_overload *o, const struct cel_value *args, uint32_t n)
{
    const char *at = o->signature + strcspn(o->signature, ".:") + 1;
    for (uint32_t i = 0; i < n; i++)
        if (!fits_type(&at, args[i]))
            return false;
    return true;
}

/* Work whose size follows from the arguments is charged before it is done. */
static bool is_charged_after(enum cel_fn fn)
{
    return fn == CEL_F_JOIN || fn == CEL_F_SLICE || fn == CEL_F_FLATTEN;
}

/* Operators that may skip operands are handled first; all other calls evaluate their arguments, return the
 * first error among them, choose the overload by the kinds of the values, and charge for it. */
static struct cel_value eval_call(struct cel_machine *m, const struct cel_node *node)
{
    enum { ARGS_MAX = 5 };
    const struct cel_overload *o = &cel_overloads[node->call.candidates[0]];
    switch (o->fn) {
    case CEL_F_AND:
        return eval_logical(m, node, false);
    case CEL_F_OR:
        return eval_logical(m, node, true);
    case CEL_F_COND:
        return eval_condition(m, node);
    case CEL_F_OPT_OR:
    case CEL_F_OPT_OR_VALUE:
        return eval_optional_or(m, node, o->fn == CEL_F_OPT_OR_VALUE);
    default:
        break;
    }
    struct cel_value args[ARGS_MAX] = { 0 };
    uint32_t n = 0;
    if (node->call.target)
        args[n++] = cel_eval(m, node->call.target);
    for (uint32_t i = 0; i < node->call.n && n < ARGS_MAX; i++)
        args[n++] = cel_eval(m, node->call.args[i]);
    if (m->exceeded)
        return cancel_run(m);
    if (o->fn == CEL_F_NOT_STRICTLY_FALSE)
        return charge_cost(m, 1) ? cel_of_bool(args[0].kind != CEL_BOOL || args[0].boolean)
                                 : cancel_run(m);
    for (uint32_t i = 0; i < n; i++)
        if (cel_is_error(args[i]))
            return args[i];
    uint16_t i = 0;
    while (i < node->call.n_candidates &&
           !accepts_values(&cel_overloads[node->call.candidates[i]], args, n))
        i++;
    if (i == node->call.n_candidates)
        return charge_cost(m, 1) ? cel_no_overload() : cancel_run(m);
    o = &cel_overloads[node->call.candidates[i]];
    bool after = is_charged_after(o->fn);
    if (!after && !charge_cost(m, cel_call_cost(o, args, n, args[0])))
        return cancel_run(m);
    struct cel_value result = cel_call(m, node, o->fn, o, args, n);
    if (after && !charge_cost(m, cel_call_cost(o, args, n, result)))
        return cancel_run(m);
    return m->exceeded ? cancel_run(m) : result;
}

/* ---- containers and loops */

/* [a, ?b]: an optional item that is empty is left out. */
static struct cel_value eval_list(struct cel_machine *m, const struct cel_node *node)
{
    struct cel_value list = cel_new_list(m->arena, node->list.n);
    for (uint32_t i = 0; i < node->list.n; i++) {
        struct cel_value item = cel_eval(m, node->list.items[i]);
        if (cel_is_error(item))
            return item;
        if (node->list.optional && node->list.optional[i]) {
            if (item.kind != CEL_OPTIONAL)
                return cel_no_overload();
            if (!item.value)
                continue;
            item = *item.value;
        }
        list = cel_append(m->arena, list, item);
    }
    return charge_cost(m, 10) ? list : cancel_run(m);
}

/* {k: v} and Type{f: v}: a repeated key is an error, an empty optional value is left out. */
static struct cel_value eval_map(struct cel_machine *m, const struct cel_node *node)
{
    struct cel_value map = cel_new_map(m->arena, node->list.n);
    for (uint32_t i = 0; i < node->list.n; i++) {
        struct cel_value key = cel_eval(m, node->list.items[2 * i]);
        struct cel_value value = cel_eval(m, node->list.items[2 * i + 1]);
        if (cel_is_error(key) || cel_is_error(value))
            return cel_is_error(key) ? key : value;
        if (node->list.optional && node->list.optional[i]) {
            if (value.kind != CEL_OPTIONAL)
                return cel_no_overload();
            if (!value.value)
                continue;
            value = *value.value;
        }
        if (!cel_insert(m, &map, key, value)) {
            auto_buf struct buf text = { 0 };
            bool printable = cel_put_text(&text, key);
            return cel_fail(m->arena,
                            printable ? "Failed with repeated key: " STR_FMT
                                      : "unsupported key type" STR_FMT,
                            STR_ARG(printable ? buf_str(&text) : S("")));
        }
    }
    if (node->kind == CEL_N_STRUCT) {
        map.kind = CEL_OBJECT;
        map.type = node->type;
    }
    return charge_cost(m, node->kind == CEL_N_STRUCT ? 40 : 30) ? map : cancel_run(m);
}

/* A comprehension: the only loop of the language. Its variables are slots that no outer scope uses, so nothing
 * needs to be saved. The accumulator may hold an error, which the last step decides on (exists() absorbs it,
 * map() returns it). */
static struct cel_value eval_loop(struct cel_machine *m, const struct cel_node *node)
{
    struct cel_value range = cel_eval(m, node->loop.range);
    if (cel_is_error(range))
        return range;
    bool list = range.kind == CEL_LIST, two = node->loop.var2.n > 0;
    if (!list && range.kind != CEL_MAP)
        return cel_no_overload();
    m->frame[node->loop.accu_slot] = cel_eval(m, node->loop.init);
    for (uint32_t i = 0; i < range.n; i++) {
        struct cel_value condition = cel_eval(m, node->loop.cond);
        if (condition.kind == CEL_BOOL && !condition.boolean)
            break;
        if (m->exceeded)
            return cancel_run(m);
        struct cel_value *var = &m->frame[node->loop.var_slot];
        if (two) {
            *var = list ? cel_of_int(i) : cel_key_at(m, range, i);
            m->frame[node->loop.var2_slot] =
                list ? cel_item(m, range, i) : cel_value_at(m, range, i);
        } else {
            *var = list ? cel_item(m, range, i) : cel_key_at(m, range, i);
        }
        m->frame[node->loop.accu_slot] = cel_eval(m, node->loop.step);
    }
    return cel_eval(m, node->loop.result);
}

/* The value of a node. The depth of the tree is bounded by the parser, and so is this recursion. */
static struct cel_value cel_eval(struct cel_machine *m, const struct cel_node *node)
{
    if (m->exceeded)
        return cancel_run(m);
    switch (node->kind) {
    case CEL_N_CONST:
        return node->constant;
    case CEL_N_IDENT:
        return charge_cost(m, 1) ? m->frame[node->ident.slot] : cancel_run(m);
    case CEL_N_SELECT:
        return eval_select(m, node);
    case CEL_N_CALL:
        return eval_call(m, node);
    case CEL_N_LIST:
        return eval_list(m, node);
    case CEL_N_LOOP:
        return eval_loop(m, node);
    default:
        return eval_map(m, node);
    }
}

/* ---- the interface */

/* A copy of the result type that outlives the compilation. Objects belong to the environment and do so anyway. */
static const struct cel_type *keep_type(struct arena *a, const struct cel_type *type)
{
    if (!type || type->kind == CEL_OBJECT)
        return type;
    return cel_new_type(a, type->kind, keep_type(a, type->of[0]), keep_type(a, type->of[1]));
}

int cel_compile(struct arena *a, const struct cel_env *env, str text,
                const struct cel_program **ret, str *ret_issues)
{
    auto_arena struct arena scratch = { 0 };
    struct cel_issues *issues = arena_new(&scratch, struct cel_issues);
    issues->arena = &scratch;
    issues->keep = a;
    issues->text = arena_str(a, text); /* nodes refer to it */
    struct cel_node *root = cel_parse(issues);
    struct cel_checked checked;
    const struct cel_type *result = root ? cel_check(issues, env, root, &checked) : NULL;
    if (result)
        cel_check_literals(issues, root);
    if (issues->n || !result) {
        *ret_issues = arena_str(a, cel_issues_text(issues));
        return -EINVAL;
    }
    struct cel_program *p = arena_new(a, struct cel_program);
    *p = (struct cel_program){ .root = root,
                               .result = keep_type(a, result),
                               .n_slots = checked.n_slots,
                               .n_variables = (uint32_t)env->n_variables,
                               .uses = checked.uses,
                               .cost = cel_estimate(&scratch, env, root) };
    *ret = p;
    return 0;
}

struct cel_value cel_run(const struct cel_program *p, struct cel_run *run)
{
    struct cel_machine m = { .arena = run->arena,
                             .host = run->host,
                             .limit = run->limit ? run->limit : CEL_COST_CALL };
    m.frame = arena_room(run->arena, MAX(p->n_slots, 1u) * sizeof(*m.frame));
    if (p->n_variables)
        memcpy(m.frame, run->variables, p->n_variables * sizeof(*m.frame));
    struct cel_value v = cel_eval(&m, p->root);
    run->cost = m.cost;
    run->exceeded = m.exceeded;
    return v;
}
