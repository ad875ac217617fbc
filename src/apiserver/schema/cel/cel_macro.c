/* Macros: calls whose arguments are expressions to be evaluated once per item. Each becomes a comprehension:
 *
 *     accu = init
 *     for (var in range) { if (!cond) break; accu = step }
 *     result
 *
 * which is what cel-go does, and what the cost model of Kubernetes is defined on. A binding (optMap, sortBy) is
 * a comprehension over nothing whose accumulator is the variable. */
#include "cel_node.h"

#define ACCU S("@result")

static struct cel_node *new_const(struct cel_builder *b, struct cel_value v)
{
    struct cel_node *node = cel_new_node(b, CEL_N_CONST);
    node->constant = v;
    return node;
}

static struct cel_node *call2(struct cel_builder *b, const char *name, struct cel_node *left,
                              struct cel_node *right)
{
    return cel_new_call(b, name, NULL, 2, (struct cel_node *[]){ left, right });
}

/* A list or map literal, empty or with one item. */
static struct cel_node *new_items(struct cel_builder *b, enum cel_node_kind kind,
                                  struct cel_node *item)
{
    struct cel_node *node = cel_new_node(b, kind);
    if (item) {
        node->list.items = arena_array(b->arena, 1, sizeof(*node->list.items));
        node->list.items[0] = item;
        node->list.n = 1;
        cel_adopt(node, item);
    }
    return node;
}

struct loop {
    struct cel_node *range, *init, *cond, *step, *result;
    str var, var2, accu;
};

static struct cel_node *new_loop(struct cel_builder *b, struct loop loop)
{
    struct cel_node *node = cel_new_node(b, CEL_N_LOOP);
    struct cel_node *const parts[] = { loop.range, loop.init, loop.cond, loop.step, loop.result };
    node->loop.range = loop.range;
    node->loop.init = loop.init;
    node->loop.cond = loop.cond;
    node->loop.step = loop.step;
    node->loop.result = loop.result;
    node->loop.var = loop.var;
    node->loop.var2 = loop.var2;
    node->loop.accu = loop.accu;
    for (size_t i = 0; i < countof(parts); i++)
        cel_adopt(node, parts[i]);
    return node;
}

/* The name of a variable; reports anything else. */
static bool get_variable(struct cel_builder *b, const struct cel_node *arg, str *ret)
{
    if (arg->kind == CEL_N_IDENT && !str_eqc(arg->ident.name, "@result")) {
        *ret = arg->ident.name;
        return true;
    }
    cel_issue(b->issues, arg->at, "argument must be a simple name");
    return false;
}

static struct cel_node *accu(struct cel_builder *b)
{
    return cel_new_ident(b, ACCU);
}

/* all, exists, exists_one. */
static struct cel_node *expand_quantifier(struct cel_builder *b, str name, struct loop loop,
                                          struct cel_node *predicate)
{
    loop.accu = ACCU;
    loop.result = accu(b);
    if (str_eqc(name, "all")) {
        struct cel_node *now = accu(b);
        loop.init = new_const(b, cel_of_bool(true));
        loop.cond = cel_new_call(b, "@not_strictly_false", NULL, 1, &now);
        loop.step = call2(b, "_&&_", accu(b), predicate);
    } else if (str_eqc(name, "exists")) {
        struct cel_node *now = accu(b);
        struct cel_node *not_yet = cel_new_call(b, "!_", NULL, 1, &now);
        loop.init = new_const(b, cel_of_bool(false));
        loop.cond = cel_new_call(b, "@not_strictly_false", NULL, 1, &not_yet);
        loop.step = call2(b, "_||_", accu(b), predicate);
    } else {
        struct cel_node *more = call2(b, "_+_", accu(b), new_const(b, cel_of_int(1)));
        loop.init = new_const(b, cel_of_int(0));
        loop.cond = new_const(b, cel_of_bool(true));
        loop.step =
            cel_new_call(b, "_?_:_", NULL, 3, (struct cel_node *[]){ predicate, more, accu(b) });
        loop.result = call2(b, "_==_", accu(b), new_const(b, cel_of_int(1)));
    }
    return new_loop(b, loop);
}

/* map, filter, transformList, transformMap: `grown` is the accumulator with one more item. */
static struct cel_node *expand_collector(struct cel_builder *b, struct loop loop,
                                         struct cel_node *filter, struct cel_node *grown,
                                         enum cel_node_kind kind)
{
    loop.accu = ACCU;
    loop.init = new_items(b, kind, NULL);
    loop.cond = new_const(b, cel_of_bool(true));
    loop.step =
        filter ? cel_new_call(b, "_?_:_", NULL, 3, (struct cel_node *[]){ filter, grown, accu(b) })
               : grown;
    loop.result = accu(b);
    return new_loop(b, loop);
}

static struct cel_node *append(struct cel_builder *b, struct cel_node *item)
{
    return call2(b, "_+_", accu(b), new_items(b, CEL_N_LIST, item));
}

/* Binds `name` to a value within `result`. */
static struct cel_node *new_binding(struct cel_builder *b, str name, struct cel_node *value,
                                    struct cel_node *result)
{
    return new_loop(b, (struct loop){ .range = new_items(b, CEL_N_LIST, NULL),
                                      .init = value,
                                      .cond = new_const(b, cel_of_bool(false)),
                                      .step = cel_new_ident(b, name),
                                      .result = result,
                                      .var = S("#unused"),
                                      .accu = name });
}

/* has(a.b) */
static struct cel_node *expand_has(struct cel_builder *b, struct cel_node *arg)
{
    if (arg->kind != CEL_N_SELECT || arg->select.optional) {
        cel_issue(b->issues, arg->at, "invalid argument to has() macro");
        return arg;
    }
    struct cel_node *node = cel_new_node(b, CEL_N_SELECT);
    node->select = arg->select;
    node->select.test = true;
    cel_adopt(node, arg->select.from);
    return node;
}

/* optMap(x, e): the value is bound to x, and the result is an optional again; optFlatMap: e is one already. */
static struct cel_node *expand_optional(struct cel_builder *b, struct cel_node *target,
                                        struct cel_node **args, bool flat)
{
    str name;
    if (!get_variable(b, args[0], &name))
        return target;
    struct cel_node *value = cel_new_call(b, "value", target, 0, NULL);
    struct cel_node *mapped = new_binding(b, name, value, args[1]);
    if (!flat)
        mapped = cel_new_call(b, "optional.of", NULL, 1, &mapped);
    return cel_new_call(b, "_?_:_", NULL, 3,
                        (struct cel_node *[]){ cel_new_call(b, "hasValue", target, 0, NULL), mapped,
                                               cel_new_call(b, "optional.none", NULL, 0, NULL) });
}

/* list.sortBy(e, key): sorts by a second list. */
static struct cel_node *expand_sort_by(struct cel_builder *b, struct cel_node *target,
                                       struct cel_node **args)
{
    str name, input = S("@__sortBy_input__");
    if (!get_variable(b, args[0], &name))
        return target;
    struct cel_node *keys =
        expand_collector(b, (struct loop){ .range = cel_new_ident(b, input), .var = name }, NULL,
                         append(b, args[1]), CEL_N_LIST);
    struct cel_node *sorted =
        cel_new_call(b, "@sortByAssociatedKeys", cel_new_ident(b, input), 1, &keys);
    return new_binding(b, input, target, sorted);
}

/* The forms with an index or key and a value. */
static struct cel_node *expand_two(struct cel_builder *b, str name, struct cel_node *target,
                                   struct cel_node **args, uint32_t n)
{
    struct loop loop = { .range = target };
    if (!get_variable(b, args[0], &loop.var) || !get_variable(b, args[1], &loop.var2))
        return target;
    if (str_eq(loop.var, loop.var2)) {
        cel_issue(b->issues, args[1]->at, "duplicate variable name: " STR_FMT, STR_ARG(loop.var));
        return target;
    }
    struct cel_node *filter = n == 4 ? args[2] : NULL, *last = args[n - 1];
    if (str_eqc(name, "transformList"))
        return expand_collector(b, loop, filter, append(b, last), CEL_N_LIST);
    if (str_eqc(name, "transformMap"))
        return expand_collector(b, loop, filter,
                                cel_new_call(b, "cel.@mapInsert", NULL, 3,
                                             (struct cel_node *[]){
                                                 accu(b), cel_new_ident(b, loop.var), last }),
                                CEL_N_MAP);
    if (str_eqc(name, "transformMapEntry"))
        return expand_collector(b, loop, filter, call2(b, "cel.@mapInsert", accu(b), last),
                                CEL_N_MAP);
    return expand_quantifier(b, name, loop, last);
}

static struct cel_node *expand_one(struct cel_builder *b, str name, struct cel_node *target,
                                   struct cel_node **args, uint32_t n)
{
    struct loop loop = { .range = target };
    if (!get_variable(b, args[0], &loop.var))
        return target;
    if (str_eqc(name, "map"))
        return expand_collector(b, loop, n == 3 ? args[1] : NULL, append(b, args[n - 1]),
                                CEL_N_LIST);
    if (str_eqc(name, "filter"))
        return expand_collector(b, loop, args[1], append(b, cel_new_ident(b, loop.var)),
                                CEL_N_LIST);
    return expand_quantifier(b, name, loop, args[1]);
}

/* NULL: not a macro, so the call is parsed as a function. A macro is known by name and number of arguments. */
struct cel_node *cel_expand_macro(struct cel_builder *b, str name, struct cel_node *target,
                                  struct cel_node **args, uint32_t n)
{
    if (!target)
        return str_eqc(name, "has") && n == 1 ? expand_has(b, args[0]) : NULL;
    bool all = str_eqc(name, "all") || str_eqc(name, "exists") || str_eqc(name, "existsOne");
    bool transform = str_eqc(name, "transformList") || str_eqc(name, "transformMap") ||
                     str_eqc(name, "transformMapEntry");
    if (n == 2 &&
        (all || str_eqc(name, "exists_one") || str_eqc(name, "map") || str_eqc(name, "filter")))
        return expand_one(b, name, target, args, n);
    if (n == 3 && str_eqc(name, "map"))
        return expand_one(b, name, target, args, n);
    if ((n == 3 && all) || ((n == 3 || n == 4) && transform))
        return expand_two(b, name, target, args, n);
    if (n == 2 && (str_eqc(name, "optMap") || str_eqc(name, "optFlatMap")))
        return expand_optional(b, target, args, str_eqc(name, "optFlatMap"));
    if (n == 2 && str_eqc(name, "sortBy"))
        return expand_sort_by(b, target, args);
    return NULL;
}
