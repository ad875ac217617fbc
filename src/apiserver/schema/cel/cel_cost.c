/* The estimated cost of an expression: what it can cost at most on any object that the schema allows.
 *
 * The model is cel-go's, with the factors that Kubernetes adds: a name or selection costs 1, a call 1 or more,
 * depending on the sizes of its arguments, and a loop the size of its range times the cost of its body. Sizes come
 * from literals, from limits of the schema (maxItems, maxLength, ...) and otherwise from the size of the largest
 * request. Definitions are refused by the result, so that every number here is part of the API: it must not be made
 * better than the original.
 *
 * While walking, each node gets its `size` (if known) and its `place` in the schema (if it is part of the object).
 * `has_path` with an unknown place means: part of the object, of unknown size. */
#include "cel_cost.h"

static struct cel_range cost_node(struct coster *c, struct cel_node *node);

/* ---- sizes */

static struct cel_size *size_of(struct coster *c, struct cel_node *node)
{
    if (!node->size)
        node->size = arena_new(c->arena, struct cel_size);
    return node->size;
}

static void set_size(struct coster *c, struct cel_node *node, struct cel_range size)
{
    size_of(c, node)->known = true;
    node->size->size = size;
}

/* Sizes of the keys and values of a container that the expression itself builds. */
void cel_set_entries(struct coster *c, struct cel_node *node, bool map, struct cel_range key,
                     struct cel_range value)
{
    struct cel_size *s = size_of(c, node);
    s->entries_known = true;
    s->is_map = map;
    s->key = key;
    s->value = value;
}

/* The loop variable or accumulator that a name refers to; NULL: a variable of the environment. */
static const struct local *find_local(const struct coster *c, const struct cel_node *node)
{
    for (const struct local *l = c->locals; node->kind == CEL_N_IDENT && l; l = l->next)
        if (l->slot == node->ident.slot)
            return l;
    return NULL;
}

/* Sizes of the items of a list or map, if they are known. */
const struct cel_size *cel_find_entries(const struct coster *c, const struct cel_node *node)
{
    if (node->size && node->size->entries_known)
        return node->size;
    const struct local *l = find_local(c, node);
    return l && l->size.entries_known ? &l->size : NULL;
}

/* One step along a path through the schema. A path that starts in a literal is taken for the root, as the
 * original does. */
static void set_place(struct coster *c, bool has_path, const struct cel_type *place, char step,
                      str field, bool *ret_has, const struct cel_type **ret)
{
    *ret_has = true;
    if (!has_path) {
        *ret = c->env->root;
        return;
    }
    *ret = NULL;
    if (!place)
        return;
    if (step == 'k')
        *ret = place->kind == CEL_MAP ? place->of[0] : NULL;
    else if (step == 'e')
        *ret = place->kind == CEL_MAP    ? place->of[1]
               : place->kind == CEL_LIST ? place->of[0]
                                         : NULL;
    for (uint32_t i = 0; step == 'f' && place->kind == CEL_OBJECT && i < place->n_fields; i++)
        if (str_eq(place->fields[i].name, field))
            *ret = place->fields[i].type;
}

static bool is_scalar(const struct cel_type *t)
{
    switch (t->kind) {
    case CEL_BOOL:
    case CEL_DOUBLE:
    case CEL_DURATION:
    case CEL_INT:
    case CEL_TIMESTAMP:
    case CEL_UINT:
        return true;
    case CEL_OPTIONAL:
        return is_scalar(t->of[0]);
    default:
        return false;
    }
}

static bool get_literal_size(const struct cel_node *node, const struct cel_type *root,
                             struct cel_range *ret)
{
    if (node->kind == CEL_N_LIST || node->kind == CEL_N_MAP) {
        *ret = cel_range_exactly(node->list.n);
        return true;
    }
    if (node->kind != CEL_N_CONST)
        return false;
    if (node->constant.kind == CEL_TYPE) { /* a name: its path is taken for the root */
        *ret = (struct cel_range){ 0, root ? (uint64_t)root->max_elements : NO_LIMIT };
        return true;
    }
    *ret = cel_range_exactly(cel_size(node->constant));
    return true;
}

/* The size of a value, by all that is known; false if nothing is. */
static bool find_size(struct coster *c, struct cel_node *node, struct cel_range *ret)
{
    if (node->size && node->size->known) {
        *ret = node->size->size;
        return true;
    }
    if (get_literal_size(node, c->env->root, ret))
        return true;
    const struct local *l = find_local(c, node);
    bool has_path = l ? l->has_path : node->has_path;
    const struct cel_type *place = l ? l->place : node->place;
    if (has_path && place && c->env->root) {
        *ret = (struct cel_range){ 0, (uint64_t)place->max_elements };
        set_size(c, node, *ret);
        return true;
    }
    if (is_scalar(node->type)) {
        *ret = cel_range_exactly(1);
        return true;
    }
    if (l && l->size.known) {
        *ret = l->size.size;
        return true;
    }
    return false;
}

struct cel_range cel_size_or_unknown(struct coster *c, struct cel_node *node)
{
    struct cel_range size;
    return find_size(c, node, &size) ? size : (struct cel_range){ 0, NO_LIMIT };
}

struct cel_range cel_item_size(struct coster *c, struct cel_node *list)
{
    bool has;
    const struct cel_type *place;
    const struct local *l = find_local(c, list);
    if (l ? !l->has_path : !list->has_path)
        return (struct cel_range){ 0, NO_LIMIT };
    set_place(c, true, l ? l->place : list->place, 'e', S(""), &has, &place);
    return place && c->env->root ? (struct cel_range){ 0, (uint64_t)place->max_elements }
                                 : (struct cel_range){ 0, NO_LIMIT };
}

/* ---- calls */

static void set_result(struct cost_call *call, struct cel_range cost, struct cel_range size)
{
    call->cost = cost;
    call->size = size;
    call->has_size = true;
}

/* && and || may stop after the first operand; a condition takes one of two ways. */
static bool cost_branches(struct coster *c, struct cost_call *call, const struct cel_range *args)
{
    enum cel_fn fn = cel_overloads[call->node->call.candidates[0]].fn;
    if (fn == CEL_F_AND || fn == CEL_F_OR) {
        call->cost = (struct cel_range){ args[0].min, cel_cost_add(args[0].max, args[1].max) };
        return true;
    }
    if (fn != CEL_F_COND)
        return false;
    const struct cel_size *a = cel_find_entries(c, call->args[1]),
                          *b = cel_find_entries(c, call->args[2]);
    if (a && b)
        cel_set_entries(c, call->node, a->is_map, cel_range_join(a->key, b->key),
                        cel_range_join(a->value, b->value));
    set_result(call, cel_range_add(args[0], cel_range_join(args[1], args[2])),
               cel_range_join(cel_size_or_unknown(c, call->args[1]),
                              cel_size_or_unknown(c, call->args[2])));
    return true;
}

/* An index is one more step of the path. */
static void place_index(struct coster *c, struct cel_node *node, enum cel_fn fn,
                        struct cost_call *call)
{
    if (fn != CEL_F_INDEX_LIST && fn != CEL_F_INDEX_MAP)
        return;
    const struct cel_size *entries = cel_find_entries(c, call->args[0]);
    call->has_size = entries != NULL;
    if (entries)
        call->size = entries->value;
    const struct local *l = find_local(c, call->args[0]);
    set_place(c, l ? l->has_path : call->args[0]->has_path, l ? l->place : call->args[0]->place,
              'e', S(""), &node->has_path, &node->place);
}

/* Arguments plus the most expensive overload that may apply. */
static struct cel_range cost_call(struct coster *c, struct cel_node *node)
{
    struct cel_range args = { 0, 0 },
                     *each = arena_array(c->arena, node->call.n + 1u, sizeof(*each));
    for (uint32_t i = 0; i < node->call.n; i++) {
        each[i] = cost_node(c, node->call.args[i]);
        args = cel_range_add(args, each[i]);
    }
    if (str_eqc(node->call.name, "dyn") && node->call.n == 1) {
        struct cel_range size;
        if (find_size(c, node->call.args[0], &size))
            set_size(c, node, size);
        return cel_range_add(args, cel_range_exactly(1));
    }
    struct cel_range target =
        node->call.target ? cost_node(c, node->call.target) : cel_range_exactly(0);
    struct cost_call call = { node, node->call.target, node->call.args, node->call.n };
    if (!node->call.n_candidates)
        return cel_range_exactly(0);
    struct cel_range cost = { NO_LIMIT, 0 }, size = { 0, 0 };
    bool has_size = false;
    if (cost_branches(c, &call, each)) {
        cost = call.cost, size = call.size, has_size = call.has_size;
    } else {
        for (uint16_t i = 0; i < node->call.n_candidates; i++) {
            const struct cel_overload *o = &cel_overloads[node->call.candidates[i]];
            cel_cost_overload(c, &call, o);
            place_index(c, node, o->fn, &call);
            cost = cel_range_join(cost, cel_range_add(call.cost, args));
            if (call.has_size)
                size = has_size ? cel_range_join(size, call.size) : call.size, has_size = true;
            if (!has_size)
                has_size = find_size(c, node, &size);
        }
    }
    if (has_size)
        set_size(c, node, size);
    return cel_range_add(target, cost);
}

/* ---- the other nodes */

static struct cel_range cost_select(struct coster *c, struct cel_node *node)
{
    struct cel_range cost = cost_node(c, node->select.from);
    if (node->select.test)
        return cost;
    const struct cel_type *from = node->select.from->type;
    if (node->select.optional || from->kind == CEL_MAP || from->kind == CEL_OBJECT)
        cost = cel_range_add(cost, cel_range_exactly(1));
    const struct local *l = find_local(c, node->select.from);
    set_place(c, l ? l->has_path : node->select.from->has_path,
              l ? l->place : node->select.from->place, 'f', node->select.field, &node->has_path,
              &node->place);
    if (node->select.optional)
        node->has_path = false, node->place = NULL;
    return cost;
}

/* The fixed costs of a literal are cel-go's: 10 for a list, 30 for a map, 40 for an object. */
static struct cel_range cost_items(struct coster *c, struct cel_node *node)
{
    struct cel_range cost = { 0, 0 }, none = { node->list.n ? NO_LIMIT : 0, 0 };
    struct cel_range key = none, value = none;
    bool map = node->kind != CEL_N_LIST;
    for (uint32_t i = 0; i < node->list.n; i++) {
        struct cel_node *item = node->list.items[map ? 2 * i + 1 : i];
        if (map) {
            cost = cel_range_add(cost, cost_node(c, node->list.items[2 * i]));
            key = cel_range_join(key, cel_size_or_unknown(c, node->list.items[2 * i]));
        }
        cost = cel_range_add(cost, cost_node(c, item));
        value = cel_range_join(value, cel_size_or_unknown(c, item));
    }
    cel_set_entries(c, node, map, map ? key : cel_range_exactly(1), value);
    return cel_range_add(cost, cel_range_exactly(node->kind == CEL_N_LIST  ? 10
                                                 : node->kind == CEL_N_MAP ? 30
                                                                           : 40));
}

static void push_local(struct coster *c, struct local *l)
{
    l->next = c->locals;
    c->locals = l;
}

/* A variable of a loop: the items ('e') or keys ('k') of the range. */
static void push_iterator(struct coster *c, struct cel_node *range, uint32_t slot, bool key,
                          struct local *l)
{
    const struct cel_size *entries = cel_find_entries(c, range);
    const struct local *from = find_local(c, range);
    *l = (struct local){ .slot = slot };
    if (entries) {
        l->size.known = true;
        l->size.size = key ? entries->key : entries->value;
    }
    bool index = key && range->type->kind == CEL_LIST;
    set_place(c, from ? from->has_path : range->has_path, from ? from->place : range->place,
              index ? '-'
              : key ? 'k'
                    : 'e',
              S(""), &l->has_path, &l->place);
    push_local(c, l);
}

/* A loop over nothing that only gives a value a name (cel_macro.c). */
static bool is_binding(const struct cel_node *node)
{
    return node->loop.range->kind == CEL_N_LIST && !node->loop.range->list.n &&
           node->loop.cond->kind == CEL_N_CONST && !str_eqc(node->loop.accu, "@result");
}

/* Turns times the cost of one turn. The size of the result follows from how the macro builds it: as many items
 * as the range has for map() and filter(), or the size of the initial value. */
static struct cel_range cost_loop(struct coster *c, struct cel_node *node)
{
    struct local *before = c->locals, accu = { .slot = node->loop.accu_slot }, var, var2;
    struct cel_node *range = node->loop.range, *init = node->loop.init;
    struct cel_range cost = cel_range_add(cost_node(c, range), cost_node(c, init));
    const struct local *of_init = find_local(c, init);
    accu.has_path = of_init ? of_init->has_path : init->has_path;
    accu.place = of_init ? of_init->place : init->place;
    accu.size.known = find_size(c, init, &accu.size.size);
    const struct cel_size *entries = cel_find_entries(c, init);
    if (entries)
        accu.size.entries_known = true, accu.size.is_map = entries->is_map,
        accu.size.key = entries->key, accu.size.value = entries->value;
    push_local(c, &accu);
    if (is_binding(node)) {
        struct cel_range size;
        cost = cel_range_add(cost, cost_node(c, node->loop.result));
        if (find_size(c, node->loop.result, &size))
            set_size(c, node, size);
        c->locals = before;
        return cost;
    }
    const struct cel_size *of_range = cel_find_entries(c, range);
    bool map = of_range ? of_range->is_map : range->type->kind != CEL_LIST;
    bool two = node->loop.var2.n > 0;
    push_iterator(c, range, node->loop.var_slot, two || map, &var);
    if (two)
        push_iterator(c, range, node->loop.var2_slot, false, &var2);
    struct cel_range turn =
        cel_range_add(cost_node(c, node->loop.cond), cost_node(c, node->loop.step));
    c->locals = &accu;
    cost = cel_range_add(cost, cost_node(c, node->loop.result));
    c->locals = before;
    struct cel_range count = cel_size_or_unknown(c, range), size;
    cost = cel_range_add(cost, cel_range_multiply(count, turn));
    if (init->kind == CEL_N_CONST && find_size(c, init, &size))
        set_size(c, node, size);
    if (init->kind == CEL_N_LIST || init->kind == CEL_N_MAP) {
        set_size(c, node, count);
        if (node->loop.step->size && node->loop.step->size->entries_known)
            cel_set_entries(c, node, node->loop.step->size->is_map, node->loop.step->size->key,
                            node->loop.step->size->value);
    }
    return cost;
}

static struct cel_range cost_ident(struct coster *c, struct cel_node *node)
{
    const struct local *l = find_local(c, node);
    node->has_path = l ? l->has_path : true;
    node->place = l ? l->place : c->env->root;
    return cel_range_exactly(1);
}

static struct cel_range cost_node(struct coster *c, struct cel_node *node)
{
    switch (node->kind) {
    case CEL_N_CONST:
        return cel_range_exactly(node->constant.kind == CEL_TYPE ? 1 : 0);
    case CEL_N_IDENT:
        return cost_ident(c, node);
    case CEL_N_SELECT:
        return cost_select(c, node);
    case CEL_N_CALL:
        return cost_call(c, node);
    case CEL_N_LOOP:
        return cost_loop(c, node);
    default:
        return cost_items(c, node);
    }
}

struct cel_range cel_estimate(struct arena *a, const struct cel_env *env, struct cel_node *root)
{
    return cost_node(&(struct coster){ .arena = a, .env = env }, root);
}
