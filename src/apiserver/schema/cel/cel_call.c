/* Calls at run time: which library a function belongs to, the operators on containers and optionals, and what a
 * call really costs.
 *
 * The checker has already reduced a call to the overloads that can apply; cel_eval.c picks one by the kinds of
 * the values, charges its cost and comes here. cel_call() only has to find the library: functions of one
 * library are neighbors in enum cel_fn, so a few range comparisons replace a table of pointers with one entry
 * per function.
 *
 * Cost is charged before the work, from the sizes of the arguments, except for functions whose result can be
 * much larger or smaller than that (join, slice, flatten). The factors are those of cel-go and of the
 * Kubernetes libraries, and the same ones appear as ranges in cel_cost_call.c, which estimates the same calls
 * from a schema. Both are part of the API: a rule that kube-apiserver accepts or cancels must be accepted or
 * cancelled here too.
 *
 * Containers of the object stay JSON; a result that must be built is a list or map of the arena. Nothing here
 * changes an argument: older values may still be in use. */
#include "cel_node.h"

#include <math.h>

static uint64_t scale(uint64_t size, double factor)
{
    return (uint64_t)ceil((double)size * factor);
}

/* Matching costs text times pattern. The 1 makes matching an empty text cost something. */
static uint64_t pattern_cost(uint64_t text, uint64_t pattern)
{
    return scale(text + 1, 0.1) * scale(pattern, 0.25);
}

/* The cost of reading a whole value, item by item. */
static uint64_t traversal_cost(struct cel_value v)
{
    struct cel_machine m = { 0 };
    if (v.kind == CEL_STRING || v.kind == CEL_BYTES)
        return (uint64_t)((double)v.n * 0.1);
    if (v.kind != CEL_LIST)
        return 1;
    uint64_t cost = 0;
    for (uint32_t i = 0; i < v.n; i++) {
        bool text = v.is_json && v.json->items[i]->type == JSON_STR;
        cost += text        ? (uint64_t)(v.json->items[i]->n * 0.1)
                : v.is_json ? 1
                            : traversal_cost(cel_item(&m, v, i));
    }
    return cost;
}

/* The functions whose cost is that of comparing or combining sizes. */
static uint64_t sized_cost(enum cel_fn fn, const struct cel_value *a, uint32_t n)
{
    uint64_t first = cel_size(a[0]), second = n > 1 ? cel_size(a[1]) : 0;
    switch (fn) {
    case CEL_F_EQ:
    case CEL_F_NE:
    case CEL_F_LT_TEXT:
    case CEL_F_LE_TEXT:
    case CEL_F_GT_TEXT:
    case CEL_F_GE_TEXT:
        return scale(MIN(first, second), 0.1);
    case CEL_F_ADD_TEXT:
        return scale(first + second, 0.1);
    case CEL_F_MATCHES:
    case CEL_F_FIND:
    case CEL_F_FIND_ALL:
        return pattern_cost(first, second);
    case CEL_F_CONTAINS:
        return scale(first, 0.1) * scale(second, 0.1);
    case CEL_F_VALIDATE:
        return pattern_cost(second, cel_format_regex_size(a[0]));
    case CEL_F_SETS_CONTAINS:
    case CEL_F_SETS_INTERSECTS:
        return first * second + 1;
    case CEL_F_SETS_EQUIVALENT:
        return first * second * 2 + 1;
    case CEL_F_DISTINCT:
    case CEL_F_SORT:
    case CEL_F_SORT_BY: {
        uint64_t keys = fn == CEL_F_SORT_BY ? second : first;
        return keys * keys * 2 + 11;
    }
    case CEL_F_CIDR_HAS_IP:
        return scale(first * 2, 0.1);
    case CEL_F_CIDR_HAS_IP_TEXT:
        return scale(first * 2, 0.1) + scale(second, 0.1);
    case CEL_F_CIDR_HAS_CIDR:
        return scale(first * 2, 0.1) + scale(first, 0.1) + 1;
    default:
        return scale(first * 2, 0.1) + scale(first, 0.1) + 1 + scale(second, 0.1);
    }
}

/* What a call costs; `result` counts for functions that are charged afterwards. */
uint64_t cel_call_cost(const struct cel_overload *o, const struct cel_value *a, uint32_t n,
                       struct cel_value result)
{
    if (cel_fn_traverses(o->fn))
        return traversal_cost(a[0]);
    switch (o->fn) {
    case CEL_F_AUTHZ_CHECK:
        return 350000;
    case CEL_F_URL:
    case CEL_F_LOWER:
    case CEL_F_UPPER:
    case CEL_F_SUBSTRING:
    case CEL_F_TRIM:
    case CEL_F_ESCAPE_KEY:
    case CEL_F_CIDR:
    case CEL_F_IS_IP:
    case CEL_F_IP:
    case CEL_F_IS_CIDR:
    case CEL_F_QUANTITY:
    case CEL_F_IS_QUANTITY:
    case CEL_F_SEMVER:
    case CEL_F_IS_SEMVER:
    case CEL_F_STARTS:
    case CEL_F_ENDS:
    case CEL_F_BYTES_TEXT:
    case CEL_F_STRING_BYTES:
    case CEL_F_QUOTE:
    case CEL_F_FORMAT:
        return scale(cel_size(a[0]), 0.1);
    case CEL_F_REPLACE:
    case CEL_F_SPLIT:
    case CEL_F_IP_CANONICAL:
        return scale(cel_size(a[0]), 0.2);
    case CEL_F_JOIN:
        return scale(cel_size(result), 0.2);
    case CEL_F_IN_LIST:
        return cel_size(a[1]);
    case CEL_F_RANGE:
        return a[0].integer > 0 ? (uint64_t)a[0].integer + 11 : 11;
    case CEL_F_SLICE:
    case CEL_F_FLATTEN:
        return cel_size(result) + 11;
    case CEL_F_REVERSE:
        return cel_size(a[0]) + 11;
    case CEL_F_EQ:
        if (a[0].kind >= CEL_QUANTITY)
            return 1;
        return sized_cost(o->fn, a, n);
    case CEL_F_NE:
    case CEL_F_LT_TEXT:
    case CEL_F_LE_TEXT:
    case CEL_F_GT_TEXT:
    case CEL_F_GE_TEXT:
    case CEL_F_ADD_TEXT:
    case CEL_F_MATCHES:
    case CEL_F_FIND:
    case CEL_F_FIND_ALL:
    case CEL_F_CONTAINS:
    case CEL_F_VALIDATE:
    case CEL_F_SETS_CONTAINS:
    case CEL_F_SETS_INTERSECTS:
    case CEL_F_SETS_EQUIVALENT:
    case CEL_F_DISTINCT:
    case CEL_F_SORT:
    case CEL_F_SORT_BY:
    case CEL_F_CIDR_HAS_IP:
    case CEL_F_CIDR_HAS_IP_TEXT:
    case CEL_F_CIDR_HAS_CIDR:
    case CEL_F_CIDR_HAS_CIDR_TEXT:
        return sized_cost(o->fn, a, n);
    default:
        return 1;
    }
}

/* ---- containers */

static struct cel_value fail_key(struct cel_machine *m, struct cel_value key)
{
    auto_buf struct buf text = { 0 };
    if (!cel_put_text(&text, key))
        return cel_no_overload();
    return cel_fail(m->arena, "no such key: " STR_FMT, STR_ARG(buf_str(&text)));
}

/* list[i] or map[k]; `ret_missing`: there is no such item, which is not always an error. */
static struct cel_value get_index(struct cel_machine *m, struct cel_value from,
                                  struct cel_value key, bool *ret_missing)
{
    struct cel_value found;
    *ret_missing = false;
    if (from.kind == CEL_MAP) {
        *ret_missing = !cel_lookup(m, from, key, &found);
        return *ret_missing ? fail_key(m, key) : found;
    }
    if (from.kind != CEL_LIST || key.kind != CEL_INT)
        return cel_no_overload();
    if (key.integer >= 0 && key.integer < from.n)
        return cel_item(m, from, (uint32_t)key.integer);
    *ret_missing = true;
    return cel_fail(m->arena, "index out of bounds: %lld", (long long)key.integer);
}

/* a[?i], and any index of an optional: the result is an optional. */
static struct cel_value get_optional_index(struct cel_machine *m, struct cel_value from,
                                           struct cel_value key)
{
    bool missing;
    if (from.kind == CEL_OPTIONAL) {
        if (!from.value)
            return from;
        from = *from.value;
    }
    struct cel_value found = get_index(m, from, key, &missing);
    if (missing)
        return (struct cel_value){ .kind = CEL_OPTIONAL };
    return cel_is_error(found) ? found : cel_optional_of(m->arena, found);
}

static bool is_in_list(struct cel_machine *m, struct cel_value item, struct cel_value list)
{
    for (uint32_t i = 0; i < list.n; i++)
        if (cel_equal(m, cel_item(m, list, i), item))
            return true;
    return false;
}

/* Whether two items of a list with x-kubernetes-list-type: map are the same entry. */
static bool has_same_keys(struct cel_machine *m, const struct cel_type *list, struct cel_value a,
                          struct cel_value b)
{
    for (uint32_t i = 0; i < list->n_list_keys; i++) {
        struct cel_value key = cel_of_text(list->list_keys[i]), left, right;
        bool has = cel_lookup(m, a, key, &left);
        if (has != cel_lookup(m, b, key, &right) || (has && !cel_equal(m, left, right)))
            return false;
    }
    return true;
}

/* Sets of a schema are joined, and map lists merged by their keys. */
static struct cel_value add_special_lists(struct cel_machine *m, struct cel_value a,
                                          struct cel_value b)
{
    struct cel_value sum = cel_new_list(m->arena, a.n + b.n);
    for (uint32_t i = 0; i < a.n; i++)
        sum = cel_append(m->arena, sum, cel_item(m, a, i));
    for (uint32_t i = 0; i < b.n && !m->exceeded; i++) {
        struct cel_value item = cel_item(m, b, i);
        uint32_t j = 0;
        bool set = a.type->list == SHAPE_SET_LIST;
        while (j < a.n && !(set ? cel_equal(m, sum.list->items[j], item)
                                : has_same_keys(m, a.type, sum.list->items[j], item)))
            j++;
        if (j == a.n)
            sum = cel_append(m->arena, sum, item);
        else
            sum.list->items[j] = item;
    }
    return sum;
}

/* a + b. A list of the arena is extended (cel_append copies if it must); a list of the object is copied first. */
static struct cel_value add_lists(struct cel_machine *m, struct cel_value a, struct cel_value b)
{
    if (a.is_json && a.type && a.type->list != SHAPE_ATOMIC_LIST)
        return add_special_lists(m, a, b);
    if (a.is_json) {
        struct cel_value copy = cel_new_list(m->arena, a.n + b.n);
        for (uint32_t i = 0; i < a.n; i++)
            copy = cel_append(m->arena, copy, cel_item(m, a, i));
        a = copy;
    }
    for (uint32_t i = 0; i < b.n; i++)
        a = cel_append(m->arena, a, cel_item(m, b, i));
    return a;
}

/* The accumulator of transformMap: a map that only the loop sees. */
static struct cel_value insert_into_map(struct cel_machine *m, struct cel_value map,
                                        struct cel_value key, struct cel_value value)
{
    auto_buf struct buf text = { 0 };
    if (cel_insert(m, &map, key, value))
        return map;
    cel_put_text(&text, key);
    return cel_fail(m->arena, "insert failed: key " STR_FMT " already exists",
                    STR_ARG(buf_str(&text)));
}

static struct cel_value merge_maps(struct cel_machine *m, struct cel_value map,
                                   struct cel_value more)
{
    for (uint32_t i = 0; i < more.n && !cel_is_error(map); i++)
        map = insert_into_map(m, map, cel_key_at(m, more, i), cel_value_at(m, more, i));
    return map;
}

/* ---- optionals */

/* Functions of the optional library that evaluate all their arguments; or() and orValue() are in cel_eval.c. */
static struct cel_value call_optional(struct cel_machine *m, enum cel_fn fn,
                                      const struct cel_value *a)
{
    switch (fn) {
    case CEL_F_OPT_OF:
        return cel_optional_of(m->arena, a[0]);
    case CEL_F_OPT_NON_ZERO:
        return cel_is_zero(a[0]) ? (struct cel_value){ .kind = CEL_OPTIONAL }
                                 : cel_optional_of(m->arena, a[0]);
    case CEL_F_OPT_NONE:
        return (struct cel_value){ .kind = CEL_OPTIONAL };
    case CEL_F_OPT_VALUE:
        return a[0].value ? *a[0].value : cel_fail(m->arena, "optional.none() dereference");
    case CEL_F_OPT_HAS:
        return cel_of_bool(a[0].value != NULL);
    default: { /* optional.unwrap */
        struct cel_value list = cel_new_list(m->arena, a[0].n);
        for (uint32_t i = 0; i < a[0].n; i++) {
            struct cel_value item = cel_item(m, a[0], i);
            if (item.kind == CEL_OPTIONAL && item.value)
                list = cel_append(m->arena, list, *item.value);
        }
        return list;
    }
    }
}

/* ---- comparison */

/* cel_compare() returns -2 for kinds that have no order and 2 for NaN, which is neither less nor greater. */
static struct cel_value compare(enum cel_fn fn, struct cel_value a, struct cel_value b)
{
    int order = cel_compare(a, b);
    if (order == -2)
        return cel_no_overload();
    if (order == 2)
        return cel_of_bool(false);
    switch (fn) {
    case CEL_F_LT:
    case CEL_F_LT_TEXT:
        return cel_of_bool(order < 0);
    case CEL_F_LE:
    case CEL_F_LE_TEXT:
        return cel_of_bool(order <= 0);
    case CEL_F_GT:
    case CEL_F_GT_TEXT:
        return cel_of_bool(order > 0);
    default:
        return cel_of_bool(order >= 0);
    }
}

/* Operators and functions of the language itself. */
static struct cel_value call_core(struct cel_machine *m, enum cel_fn fn, const struct cel_value *a)
{
    bool missing;
    switch (fn) {
    case CEL_F_NOT:
        return cel_of_bool(!a[0].boolean);
    case CEL_F_EQ:
        return cel_of_bool(cel_equal(m, a[0], a[1]));
    case CEL_F_NE:
        return cel_of_bool(!cel_equal(m, a[0], a[1]));
    case CEL_F_ADD_LIST:
        return add_lists(m, a[0], a[1]);
    case CEL_F_INDEX_LIST:
    case CEL_F_INDEX_MAP:
        return get_index(m, a[0], a[1], &missing);
    case CEL_F_INDEX_OPT:
    case CEL_F_OPT_INDEX:
        return get_optional_index(m, a[0], a[1]);
    case CEL_F_IN_LIST:
        return cel_of_bool(is_in_list(m, a[0], a[1]));
    case CEL_F_IN_MAP:
        return cel_of_bool(cel_lookup(m, a[1], a[0], NULL));
    case CEL_F_SIZE:
        return cel_of_int((int64_t)cel_size(a[0]));
    case CEL_F_TYPE:
        return (struct cel_value){ .kind = CEL_TYPE, .type = cel_type_of(m->arena, a[0]) };
    case CEL_F_MAP_INSERT:
        return insert_into_map(m, a[0], a[1], a[2]);
    case CEL_F_MAP_MERGE:
        return merge_maps(m, a[0], a[1]);
    default:
        return a[0]; /* dyn() */
    }
}

/* Runs the implementation that an overload names. */
struct cel_value cel_call(struct cel_machine *m, const struct cel_node *node, enum cel_fn fn,
                          const struct cel_overload *o, struct cel_value *a, uint32_t n)
{
    if (fn >= CEL_F_LT && fn <= CEL_F_GE_TEXT)
        return compare(fn, a[0], a[1]);
    if (fn == CEL_F_NEGATE || fn == CEL_F_ADD || (fn >= CEL_F_SUB && fn <= CEL_F_MOD))
        return cel_call_number(m, fn, a, n);
    if (fn >= CEL_F_BOOL && fn <= CEL_F_UINT)
        return cel_convert(m, fn, a[0]);
    if (fn == CEL_F_MATCHES || fn == CEL_F_FIND || fn == CEL_F_FIND_ALL)
        return cel_call_regex(m, node, fn, a, n);
    if (fn == CEL_F_TIME_PART)
        return cel_call_time(m, o->name, a, n);
    if (fn >= CEL_F_OPT_OF && fn <= CEL_F_OPT_UNWRAP)
        return call_optional(m, fn, a);
    if ((fn >= CEL_F_CONTAINS && fn <= CEL_F_ENDS) || (fn >= CEL_F_CHAR_AT && fn <= CEL_F_JOIN) ||
        fn == CEL_F_ADD_TEXT || fn == CEL_F_ESCAPE_KEY)
        return cel_call_text(m, node, fn, a, n);
    if (fn >= CEL_F_INDEX_OF && fn <= CEL_F_SETS_INTERSECTS)
        return cel_call_list(m, fn, o, a, n);
    if (fn >= CEL_F_URL && fn <= CEL_F_URL_QUERY)
        return cel_call_url(m, fn, o, a);
    if (fn >= CEL_F_QUANTITY && fn <= CEL_F_Q_ADD)
        return cel_call_quantity(m, fn, o, a);
    if (fn >= CEL_F_IP && fn <= CEL_F_CIDR_MASKED)
        return cel_call_net(m, fn, o, a);
    if (fn >= CEL_F_NAME_FORMAT && fn <= CEL_F_VALIDATE)
        return cel_call_names(m, fn, o, a);
    if (fn >= CEL_F_SEMVER && fn <= CEL_F_V_PART)
        return cel_call_version(m, fn, o, a, n);
    if (fn >= CEL_F_AUTHZ && fn <= CEL_F_DECISION)
        return cel_call_authorizer(m, fn, o, a, n);
    return call_core(m, fn, a);
}
