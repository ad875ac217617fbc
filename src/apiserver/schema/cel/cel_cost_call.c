/* The estimated cost of calls: what a function can cost, and how large its result can be, by the sizes of its
 * arguments. The other half of cel_cost.c, which walks the tree.
 *
 * A size is a range, because a schema gives only limits: `min` is what the smallest argument costs, `max`
 * decides whether a definition is refused. Some functions cost by the size of their result (replace, join,
 * sort), so both are computed together; set_result() stores them.
 *
 * The factors are those of cel-go and of the libraries of Kubernetes (0.1 per character of text, 0.25 per
 * character of a pattern), including estimates that look wrong: a definition that kube-apiserver accepts must
 * be accepted here, and one that it refuses must be refused. The costs charged at run time are in cel_call.c. */
#include "cel_cost.h"

static void set_result(struct cost_call *call, struct cel_range cost, struct cel_range size)
{
    call->cost = cost;
    call->size = size;
    call->has_size = true;
}

/* replace(): the longest and the shortest text that can come out. */
static void cost_replace(struct coster *c, struct cost_call *call)
{
    struct cel_range from = cel_size_or_unknown(c, call->target);
    struct cel_range old = cel_size_or_unknown(c, call->args[0]);
    struct cel_range with = cel_size_or_unknown(c, call->args[1]);
    struct cel_range count = { 0, 0 }, kept = { 0, 0 };
    if (old.min == 0)
        count.max = cel_cost_add(from.max, 1), kept.max = from.max;
    else if (with.max <= old.min)
        kept.max = from.max;
    else
        count.max = (uint64_t)ceil((double)from.max / (double)old.min);
    if (old.max == 0)
        count.min = cel_cost_add(from.min, 1), kept.min = from.min;
    else if (old.max <= with.min)
        kept.min = from.min;
    else
        count.min = (uint64_t)ceil((double)from.min / (double)old.max);
    set_result(call, cel_range_scale(from, 2 * TEXT_FACTOR),
               cel_range_add(cel_range_multiply(count, with), kept));
}

/* join(): all items, and the separator between them. */
static void cost_join(struct coster *c, struct cost_call *call)
{
    struct cel_range list = cel_size_or_unknown(c, call->target);
    struct cel_range size = cel_range_multiply(list, cel_item_size(c, call->target));
    if (call->n) {
        struct cel_range between = { list.min ? list.min - 1 : 0, list.max ? list.max - 1 : 0 };
        size =
            cel_range_add(size, cel_range_multiply(cel_size_or_unknown(c, call->args[0]), between));
    }
    set_result(call, cel_range_scale(size, TEXT_FACTOR), size);
}

/* isSorted, sum, min, max, indexOf: one traversal. */
static void cost_traversal(struct coster *c, struct cost_call *call)
{
    struct cel_range size = cel_size_or_unknown(c, call->target), item = cel_range_exactly(1);
    const struct cel_type *list = call->target->type;
    if (list->kind != CEL_LIST && list->kind != CEL_MAP && list->kind != CEL_OPTIONAL) {
        call->cost = cel_range_scale(size, TEXT_FACTOR);
        return;
    }
    if (list->of[0]->kind == CEL_STRING || list->of[0]->kind == CEL_BYTES)
        item = cel_range_add(item, cel_range_scale(cel_item_size(c, call->target), TEXT_FACTOR));
    call->cost = cel_range_multiply(size, item);
}

/* A constant integer argument; anything else is `otherwise`. */
static uint64_t constant_or(const struct cel_node *node, uint64_t otherwise)
{
    bool is_int = node->kind == CEL_N_CONST && node->constant.kind == CEL_INT;
    return is_int && node->constant.integer >= 0 ? (uint64_t)node->constant.integer : otherwise;
}

/* The functions that make a new list. */
static void cost_new_list(struct coster *c, struct cost_call *call, enum cel_fn fn)
{
    struct cel_node *from = fn == CEL_F_SORT_BY ? call->args[0] : call->target;
    struct cel_range size = from ? cel_size_or_unknown(c, from) : cel_range_exactly(0);
    double factor = 1;
    if (fn == CEL_F_SLICE) {
        uint64_t start = constant_or(call->args[0], 0), end = constant_or(call->args[1], size.max);
        size = cel_range_exactly(end - start);
    } else if (fn == CEL_F_RANGE) {
        size = cel_range_exactly(constant_or(call->args[0], NO_LIMIT));
    } else if (fn == CEL_F_FLATTEN && call->n) {
        factor = (double)constant_or(call->args[0], NO_LIMIT);
    } else if (fn == CEL_F_DISTINCT || fn == CEL_F_SORT || fn == CEL_F_SORT_BY) {
        const struct cel_type *item = from->type->kind == CEL_LIST ? from->type->of[0] : &cel_dyn;
        bool text = item->kind == CEL_STRING || item->kind == CEL_BYTES;
        factor = fn != CEL_F_DISTINCT && text ? 2 + TEXT_FACTOR : 2;
        size = cel_range_multiply(size, size);
    }
    set_result(call, cel_range_add(cel_range_scale(size, factor), cel_range_exactly(11)), size);
}

/* A pattern is matched in at most text × pattern steps. An empty text counts as one character. */
static struct cel_range cost_pattern(struct cel_range text, struct cel_range pattern)
{
    return cel_range_multiply(cel_range_scale(cel_range_add(text, cel_range_exactly(1)),
                                              TEXT_FACTOR),
                              cel_range_scale(pattern, REGEX_FACTOR));
}

/* Containment compares the bytes of two addresses (4 or 16 each); text must be parsed first. */
static void cost_contains_address(struct coster *c, struct cost_call *call, enum cel_fn fn)
{
    struct cel_range bytes = { 4, 16 };
    struct cel_range cost = cel_range_scale(cel_range_add(bytes, bytes), TEXT_FACTOR);
    if (fn == CEL_F_CIDR_HAS_CIDR || fn == CEL_F_CIDR_HAS_CIDR_TEXT)
        cost = cel_range_add(cel_range_add(cost, cel_range_scale(bytes, TEXT_FACTOR)),
                             cel_range_exactly(1));
    if (fn == CEL_F_CIDR_HAS_IP_TEXT || fn == CEL_F_CIDR_HAS_CIDR_TEXT)
        cost = cel_range_add(cost,
                             cel_range_scale(cel_size_or_unknown(c, call->args[0]), TEXT_FACTOR));
    call->cost = cost;
}

/* Comparing costs the smaller of the two sizes. */
static void cost_comparison(struct coster *c, struct cost_call *call, enum cel_fn fn)
{
    const struct cel_type *left = call->args[0]->type;
    if (fn == CEL_F_EQ && left->kind >= CEL_QUANTITY && cel_same_type(left, call->args[1]->type)) {
        call->cost = left->kind == CEL_FORMAT ? (struct cel_range){ 1, 7 } : cel_range_exactly(1);
        return;
    }
    struct cel_range a = cel_size_or_unknown(c, call->args[0]),
                     b = cel_size_or_unknown(c, call->args[1]);
    uint64_t most = MIN(a.max, b.max);
    call->cost = cel_range_scale((struct cel_range){ most ? 1 : 0, most }, TEXT_FACTOR);
}

/* a + b: text is copied, lists are not. The items of the sum are as large as the items of either operand. */
static void cost_sum(struct coster *c, struct cost_call *call, enum cel_fn fn)
{
    struct cel_range size =
        cel_range_add(cel_size_or_unknown(c, call->args[0]), cel_size_or_unknown(c, call->args[1]));
    const struct cel_size *a = cel_find_entries(c, call->args[0]),
                          *b = cel_find_entries(c, call->args[1]);
    if (a && b)
        cel_set_entries(c, call->node, a->is_map, cel_range_join(a->key, b->key),
                        cel_range_join(a->value, b->value));
    set_result(call,
               fn == CEL_F_ADD_LIST ? cel_range_exactly(1) : cel_range_scale(size, TEXT_FACTOR),
               size);
}

/* Functions that parse text into a value of a library: addresses, quantities, versions, named formats. False: another one. */
static bool cost_parsing(struct coster *c, struct cost_call *call, enum cel_fn fn)
{
    struct cel_node *first = call->n ? call->args[0] : NULL;
    switch (fn) {
    case CEL_F_CIDR:
    case CEL_F_IS_IP:
    case CEL_F_IP:
    case CEL_F_IS_CIDR:
    case CEL_F_QUANTITY:
    case CEL_F_IS_QUANTITY:
    case CEL_F_SEMVER:
    case CEL_F_IS_SEMVER:
        call->cost = cel_range_scale(cel_size_or_unknown(c, first), TEXT_FACTOR);
        return true;
    case CEL_F_IP_CANONICAL:
        call->cost = cel_range_scale(cel_size_or_unknown(c, first), 2 * TEXT_FACTOR);
        return true;
    case CEL_F_CIDR_HAS_IP:
    case CEL_F_CIDR_HAS_IP_TEXT:
    case CEL_F_CIDR_HAS_CIDR:
    case CEL_F_CIDR_HAS_CIDR_TEXT:
        cost_contains_address(c, call, fn);
        return true;
    case CEL_F_VALIDATE:
        call->cost = cel_range_scale(cel_range_scale(cel_size_or_unknown(c, first), TEXT_FACTOR),
                                     128 * REGEX_FACTOR);
        return true;
    default:
        return false;
    }
}

/* Functions that make text, or a list of texts, from text. False: another one. */
static bool cost_new_text(struct coster *c, struct cost_call *call, enum cel_fn fn)
{
    struct cel_node *first = call->n ? call->args[0] : NULL;
    switch (fn) {
    case CEL_F_URL:
    case CEL_F_ESCAPE_KEY: {
        struct cel_range size = cel_size_or_unknown(c, first);
        set_result(call, cel_range_scale(size, TEXT_FACTOR), size);
        break;
    }
    case CEL_F_LOWER:
    case CEL_F_UPPER:
    case CEL_F_SUBSTRING:
    case CEL_F_TRIM: {
        struct cel_range size = cel_size_or_unknown(c, call->target);
        set_result(call, cel_range_scale(size, TEXT_FACTOR), size);
        break;
    }
    case CEL_F_REPLACE:
        cost_replace(c, call);
        break;
    case CEL_F_SPLIT: {
        struct cel_range size = cel_size_or_unknown(c, call->target);
        uint64_t most = call->n > 1 ? constant_or(call->args[1], size.max) : size.max;
        set_result(call, cel_range_scale(size, 2 * TEXT_FACTOR), (struct cel_range){ 0, most });
        break;
    }
    case CEL_F_JOIN:
        cost_join(c, call);
        break;
    case CEL_F_FIND:
    case CEL_F_FIND_ALL: {
        struct cel_range size = cel_size_or_unknown(c, call->target);
        set_result(call, cost_pattern(size, cel_size_or_unknown(c, first)),
                   (struct cel_range){ 0, size.max });
        break;
    }
    case CEL_F_BYTES_TEXT: {
        struct cel_range size = cel_size_or_unknown(c, first);
        set_result(call, cel_range_scale(size, TEXT_FACTOR),
                   (struct cel_range){ size.min, size.max * 4 });
        break;
    }
    case CEL_F_STRING_BYTES: {
        struct cel_range size = cel_size_or_unknown(c, first);
        set_result(call, cel_range_scale(size, TEXT_FACTOR),
                   (struct cel_range){ size.min / 4, size.max });
        break;
    }
    case CEL_F_QUOTE: {
        struct cel_range size = cel_size_or_unknown(c, first);
        set_result(call, cel_range_scale(size, TEXT_FACTOR),
                   (struct cel_range){ size.min + 2, size.max * 2 + 2 });
        break;
    }
    default:
        return false;
    }
    return true;
}

/* What one overload costs, without its arguments. */
void cel_cost_overload(struct coster *c, struct cost_call *call, const struct cel_overload *o)
{
    struct cel_node *first = call->n ? call->args[0] : NULL;
    call->cost = cel_range_exactly(1);
    call->has_size = false;
    if (cost_parsing(c, call, o->fn) || cost_new_text(c, call, o->fn))
        return;
    if (cel_fn_traverses(o->fn)) {
        cost_traversal(c, call);
        return;
    }
    switch (o->fn) {
    case CEL_F_AUTHZ_CHECK:
        call->cost = cel_range_exactly(350000);
        break;
    case CEL_F_SLICE:
    case CEL_F_FLATTEN:
    case CEL_F_RANGE:
    case CEL_F_REVERSE:
    case CEL_F_DISTINCT:
    case CEL_F_SORT:
    case CEL_F_SORT_BY:
        cost_new_list(c, call, o->fn);
        break;
    case CEL_F_SETS_CONTAINS:
    case CEL_F_SETS_EQUIVALENT:
    case CEL_F_SETS_INTERSECTS:
        call->cost =
            cel_range_add(cel_range_scale(cel_range_multiply(cel_size_or_unknown(c, first),
                                                             cel_size_or_unknown(c, call->args[1])),
                                          o->fn == CEL_F_SETS_EQUIVALENT ? 2 : 1),
                          cel_range_exactly(1));
        break;
    case CEL_F_FORMAT:
        call->cost = cel_range_scale(cel_size_or_unknown(c, call->target), TEXT_FACTOR);
        break;
    case CEL_F_STARTS:
    case CEL_F_ENDS:
        call->cost = cel_range_scale(cel_size_or_unknown(c, first), TEXT_FACTOR);
        break;
    case CEL_F_IN_LIST:
        call->cost = cel_size_or_unknown(c, call->args[1]);
        break;
    case CEL_F_MATCHES:
        if (call->target)
            call->cost =
                cost_pattern(cel_size_or_unknown(c, call->target), cel_size_or_unknown(c, first));
        break;
    case CEL_F_CONTAINS:
        call->cost =
            cel_range_multiply(cel_range_scale(cel_size_or_unknown(c, call->target), TEXT_FACTOR),
                               cel_range_scale(cel_size_or_unknown(c, first), TEXT_FACTOR));
        break;
    case CEL_F_ADD_TEXT:
    case CEL_F_ADD_LIST:
        cost_sum(c, call, o->fn);
        break;
    case CEL_F_EQ:
    case CEL_F_NE:
    case CEL_F_LT_TEXT:
    case CEL_F_LE_TEXT:
    case CEL_F_GT_TEXT:
    case CEL_F_GE_TEXT:
        cost_comparison(c, call, o->fn);
        break;
    default:
        break;
    }
}
