/* The libraries of lists and sets: indexOf, slice, flatten, sort, sum, min, max, range, distinct, sets.contains
 * and so on.
 *
 * Lists never change; each function that returns a list builds a new one in the arena of the run. Items are
 * read through cel_item(), since a list of the object is still JSON.
 *
 * Work is bounded in two ways. The cost is charged before the call, from the sizes of the arguments, which
 * bounds the length of what is built. The quadratic functions (distinct, the sets library) compare through
 * cel_equal(), which counts steps and sets `exceeded`; their loops check it.
 *
 * Sorting is a merge sort of indexes: stable, as the original is, and never more than n log n comparisons.
 * qsort() was rejected because it is neither. Errors have the text of cel-go, because clients see them. */
#include "cel_node.h"

static struct cel_value copy_items(struct cel_machine *m, struct cel_value list, uint32_t from,
                                   uint32_t to)
{
    struct cel_value copy = cel_new_list(m->arena, to - from);
    for (uint32_t i = from; i < to; i++)
        copy = cel_append(m->arena, copy, cel_item(m, list, i));
    return copy;
}

/* list.slice(start, end): end is exclusive, and out of bounds is an error instead of a shorter list. */
static struct cel_value slice(struct cel_machine *m, struct cel_value list, int64_t start,
                              int64_t end)
{
    long long from = start, to = end;
    if (start < 0 || end < 0)
        return cel_fail(m->arena, "cannot slice(%lld, %lld), negative indexes not supported", from,
                        to);
    if (start > end)
        return cel_fail(m->arena,
                        "cannot slice(%lld, %lld), start index must be less than or equal to end "
                        "index",
                        from, to);
    if (end > list.n)
        return cel_fail(m->arena, "cannot slice(%lld, %lld), list is length %u", from, to, list.n);
    return copy_items(m, list, (uint32_t)start, (uint32_t)end);
}

/* Recursion is bounded by the depth of the value, which is bounded by that of the JSON or of the expression. */
static void flatten_into(struct cel_machine *m, struct cel_value *out, struct cel_value list,
                         int64_t depth)
{
    for (uint32_t i = 0; i < list.n; i++) {
        struct cel_value item = cel_item(m, list, i);
        if (item.kind == CEL_LIST && depth > 0)
            flatten_into(m, out, item, depth - 1);
        else
            *out = cel_append(m->arena, *out, item);
    }
}

static struct cel_value flatten(struct cel_machine *m, struct cel_value list, int64_t depth)
{
    if (depth < 0)
        return cel_fail(m->arena, "level must be non-negative");
    struct cel_value out = cel_new_list(m->arena, list.n);
    flatten_into(m, &out, list, depth);
    return out;
}

/* ---- sorting */

/* Merges two sorted halves of `order`, by the keys. */
static void merge_halves(const struct cel_value *keys, uint32_t *order, uint32_t *scratch,
                         uint32_t middle, uint32_t n)
{
    uint32_t i = 0, j = middle, k = 0;
    while (i < middle || j < n) {
        bool right = i == middle || (j < n && cel_compare(keys[order[i]], keys[order[j]]) == 1);
        scratch[k++] = right ? order[j++] : order[i++];
    }
    memcpy(order, scratch, n * sizeof(*order));
}

/* Sorts `order[0..n)`; `scratch` has room for n. */
static void sort_indexes(const struct cel_value *keys, uint32_t *order, uint32_t *scratch,
                         uint32_t n)
{
    if (n < 2)
        return;
    uint32_t middle = n / 2;
    sort_indexes(keys, order, scratch, middle);
    sort_indexes(keys, order + middle, scratch, n - middle);
    merge_halves(keys, order, scratch, middle, n);
}

/* The list in the order of `by`, which has one key per item (the list itself for sort()). All keys must be of
 * one comparable kind; mixed numbers are refused although they could be compared, as in the original. */
static struct cel_value sort_list(struct cel_machine *m, struct cel_value list, struct cel_value by)
{
    if (list.n != by.n)
        return cel_no_overload();
    struct cel_value *keys = arena_array(m->arena, by.n + 1u, sizeof(*keys));
    uint32_t *order = arena_array(m->arena, by.n + 1u, sizeof(*order));
    uint32_t *scratch = arena_array(m->arena, by.n + 1u, sizeof(*scratch));
    for (uint32_t i = 0; i < by.n; i++) {
        keys[i] = cel_item(m, by, i);
        order[i] = i;
        if (cel_is_error(keys[i]))
            return keys[i];
        if (keys[i].kind != keys[0].kind)
            return cel_fail(m->arena, "list elements must have the same type");
        if (cel_compare(keys[i], keys[i]) == -2)
            return cel_fail(m->arena, "list elements must be comparable");
    }
    sort_indexes(keys, order, scratch, by.n);
    struct cel_value sorted = cel_new_list(m->arena, list.n);
    for (uint32_t i = 0; i < list.n; i++)
        sorted = cel_append(m->arena, sorted, cel_item(m, list, order[i]));
    return sorted;
}

/* ---- searching */

/* min() or max(). Of equal items the first one wins. */
static struct cel_value find_extreme(struct cel_machine *m, struct cel_value list, bool max)
{
    if (!list.n)
        return cel_fail(m->arena, "%s called on empty list", max ? "max" : "min");
    struct cel_value best = cel_item(m, list, 0);
    for (uint32_t i = 1; i < list.n; i++) {
        struct cel_value item = cel_item(m, list, i);
        int order = cel_compare(best, item);
        if (order == -2)
            return cel_no_overload();
        if (order == (max ? -1 : 1))
            best = item;
    }
    return best;
}

static struct cel_value is_sorted(struct cel_machine *m, struct cel_value list)
{
    for (uint32_t i = 1; i < list.n; i++) {
        int order = cel_compare(cel_item(m, list, i - 1), cel_item(m, list, i));
        if (order == -2)
            return cel_no_overload();
        if (order == 1)
            return cel_of_bool(false);
    }
    return cel_of_bool(true);
}

/* The result kind comes from the overload, so that the sum of an empty list has a type: 0, 0u, 0.0 or 0s. */
static struct cel_value sum(struct cel_machine *m, const struct cel_overload *o,
                            struct cel_value list)
{
    uint8_t kind = o->signature[0] == 'i'   ? CEL_INT
                   : o->signature[0] == 'u' ? CEL_UINT
                   : o->signature[0] == 'd' ? CEL_DOUBLE
                                            : CEL_DURATION;
    struct cel_value total = { .kind = kind };
    for (uint32_t i = 0; i < list.n && !cel_is_error(total); i++) {
        struct cel_value item = cel_item(m, list, i);
        if (item.kind != kind)
            return cel_is_error(item) ? item : cel_no_overload();
        total = cel_call_number(m, CEL_F_ADD, (struct cel_value[]){ total, item }, 2);
    }
    return total;
}

static int64_t index_of(struct cel_machine *m, struct cel_value list, struct cel_value item,
                        bool last)
{
    for (uint32_t i = 0; i < list.n; i++) {
        uint32_t at = last ? list.n - 1 - i : i;
        if (cel_equal(m, cel_item(m, list, at), item))
            return at;
    }
    return -1;
}

static struct cel_value distinct(struct cel_machine *m, struct cel_value list)
{
    struct cel_value unique = cel_new_list(m->arena, list.n);
    for (uint32_t i = 0; i < list.n && !m->exceeded; i++) {
        struct cel_value item = cel_item(m, list, i);
        if (index_of(m, unique, item, false) < 0)
            unique = cel_append(m->arena, unique, item);
    }
    return unique;
}

/* Whether all (or any) items of `b` are in `a`. */
static bool contains(struct cel_machine *m, struct cel_value a, struct cel_value b, bool any)
{
    for (uint32_t i = 0; i < b.n && !m->exceeded; i++)
        if ((index_of(m, a, cel_item(m, b, i), false) >= 0) == any)
            return any;
    return !any;
}

static struct cel_value range(struct cel_machine *m, int64_t n)
{
    struct cel_value list = cel_new_list(m->arena, n > 0 ? (uint32_t)n : 0); /* the cost bounds n */
    for (int64_t i = 0; i < n; i++)
        list = cel_append(m->arena, list, cel_of_int(i));
    return list;
}

static struct cel_value at_end(struct cel_machine *m, struct cel_value list, bool last)
{
    if (!list.n)
        return (struct cel_value){ .kind = CEL_OPTIONAL };
    return cel_optional_of(m->arena, cel_item(m, list, last ? list.n - 1 : 0));
}

static struct cel_value reverse(struct cel_machine *m, struct cel_value list)
{
    struct cel_value out = cel_new_list(m->arena, list.n);
    for (uint32_t i = list.n; i-- > 0;)
        out = cel_append(m->arena, out, cel_item(m, list, i));
    return out;
}

/* Everything that lists and sets can do; the overload matters only to sum(). */
struct cel_value cel_call_list(struct cel_machine *m, enum cel_fn fn, const struct cel_overload *o,
                               const struct cel_value *a, uint32_t n)
{
    switch (fn) {
    case CEL_F_INDEX_OF:
    case CEL_F_LAST_INDEX_OF:
        return cel_of_int(index_of(m, a[0], a[1], fn == CEL_F_LAST_INDEX_OF));
    case CEL_F_IS_SORTED:
        return is_sorted(m, a[0]);
    case CEL_F_SUM:
        return sum(m, o, a[0]);
    case CEL_F_MIN:
    case CEL_F_MAX:
        return find_extreme(m, a[0], fn == CEL_F_MAX);
    case CEL_F_SLICE:
        return slice(m, a[0], a[1].integer, a[2].integer);
    case CEL_F_FLATTEN:
        return flatten(m, a[0], n > 1 ? a[1].integer : 1);
    case CEL_F_SORT:
        return sort_list(m, a[0], a[0]);
    case CEL_F_SORT_BY:
        return sort_list(m, a[0], a[1]);
    case CEL_F_RANGE:
        return range(m, a[0].integer);
    case CEL_F_REVERSE:
        return reverse(m, a[0]);
    case CEL_F_DISTINCT:
        return distinct(m, a[0]);
    case CEL_F_FIRST:
    case CEL_F_LAST:
        return at_end(m, a[0], fn == CEL_F_LAST);
    case CEL_F_SETS_CONTAINS:
        return cel_of_bool(contains(m, a[0], a[1], false));
    case CEL_F_SETS_INTERSECTS:
        return cel_of_bool(contains(m, a[0], a[1], true));
    default:
        return cel_of_bool(contains(m, a[0], a[1], false) && contains(m, a[1], a[0], false));
    }
}
