/* Field sets: order and set operations. Parsing and printing are in fieldset_text.c.
 *
 * The fields of one level are one sorted array of nodes. A node records whether its field is a
 * member, and has the set of the level below:
 *
 *     {.spec, .spec.ports, .spec.ports[port=80].name}
 *
 *     spec *  ->  ports *  ->  [port=80]  ->  name *          (* is a member)
 *
 * So every operation is one merge of two sorted runs per level; see combine(). Kubernetes keeps
 * members and children in two structures, which doubles the work. Invariants: nodes are sorted and
 * unique, and a node that is neither a member nor has members below does not exist, so that an
 * empty set is n == 0.
 *
 * Results share unchanged subtrees with their operands: everything is in the arena of the request,
 * and a set does not change once it has been used. */
#include "fieldset.h"

/* ---- order: names, then keys, then values, then indices */

static int number_cmp(double a, double b)
{
    return a < b ? -1 : a > b;
}

static int integer_cmp(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int rank(const struct json *v)
{
    static const int ranks[] = { [JSON_INT] = 0, [JSON_REAL] = 0, [JSON_STR] = 1, [JSON_BOOL] = 2,
                                 [JSON_ARR] = 3, [JSON_OBJ] = 4,  [JSON_NULL] = 5 };
    return ranks[v->type];
}

/* A total order of values; numbers are compared by value, not by type. */
static int value_cmp(const struct json *a, const struct json *b)
{
    if (rank(a) != rank(b))
        return rank(a) < rank(b) ? -1 : 1;
    switch (a->type) {
    case JSON_INT:
    case JSON_REAL:
        return a->type == JSON_INT && b->type == JSON_INT
                   ? integer_cmp(a->integer, b->integer)
                   : number_cmp(json_real(a, 0), json_real(b, 0));
    case JSON_STR:
        return str_cmp(json_text(a), json_text(b));
    case JSON_BOOL:
        return (int)a->boolean - (int)b->boolean;
    case JSON_ARR:
        for (uint32_t i = 0; i < a->n && i < b->n; i++) {
            int order = value_cmp(a->items[i], b->items[i]);
            if (order)
                return order;
        }
        return integer_cmp(a->n, b->n);
    default: /* maps are neither elements of sets nor keys; any order will do */
        return json_eq(a, b) ? 0 : a < b ? -1 : 1;
    }
}

static int keys_cmp(const struct fieldset_element *a, const struct fieldset_element *b)
{
    for (uint32_t i = 0; i < a->n_keys && i < b->n_keys; i++) {
        int order = str_cmp(a->keys[i].name, b->keys[i].name);
        if (!order)
            order = value_cmp(a->keys[i].value, b->keys[i].value);
        if (order)
            return order;
    }
    return integer_cmp(a->n_keys, b->n_keys);
}

int fieldset_element_cmp(const struct fieldset_element *a, const struct fieldset_element *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    switch (a->kind) {
    case FIELD_NAME:
        return str_cmp(a->name, b->name);
    case FIELD_KEY:
        return keys_cmp(a, b);
    case FIELD_VALUE:
        return value_cmp(a->value, b->value);
    default:
        return integer_cmp(a->index, b->index);
    }
}

/* ---- building and reading */

/* The index of the first node that is not before the element. */
static uint32_t find_position(const struct fieldset *s, const struct fieldset_element *element)
{
    uint32_t low = 0, high = s->n;
    if (high && fieldset_element_cmp(&s->nodes[high - 1].element, element) < 0)
        return high; /* most elements are added in order */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fieldset_element_cmp(&s->nodes[middle].element, element) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void reserve_node(struct arena *a, struct fieldset *s)
{
    if (s->n < s->cap)
        return;
    assert(s->cap < UINT32_MAX / 2);
    s->cap = s->cap ? s->cap * 2 : 4;
    struct fieldset_node *larger = arena_array(a, s->cap, sizeof(*larger));
    if (s->n)
        memcpy(larger, s->nodes, s->n * sizeof(*larger));
    s->nodes = larger;
}

struct fieldset_node *fieldset_at(struct arena *a, struct fieldset *s,
                                  const struct fieldset_element *element)
{
    uint32_t at = find_position(s, element);
    if (at < s->n && fieldset_element_cmp(&s->nodes[at].element, element) == 0)
        return &s->nodes[at];
    reserve_node(a, s);
    memmove(s->nodes + at + 1, s->nodes + at, (s->n - at) * sizeof(*s->nodes));
    s->nodes[at] = (struct fieldset_node){ .element = *element };
    s->n++;
    return &s->nodes[at];
}

void fieldset_append(struct arena *a, struct fieldset *s, struct fieldset_node node)
{
    if (!node.member && !node.below.n)
        return;
    reserve_node(a, s);
    s->nodes[s->n++] = node;
}

static int by_element(const void *a, const void *b)
{
    return fieldset_element_cmp(&((const struct fieldset_node *)a)->element,
                                &((const struct fieldset_node *)b)->element);
}

/* Sorts only if necessary, because most sets are built in order; then merges equal neighbors. */
void fieldset_sort(struct arena *a, struct fieldset *s)
{
    bool sorted = true;
    for (uint32_t i = 1; i < s->n && sorted; i++)
        sorted = by_element(&s->nodes[i - 1], &s->nodes[i]) < 0;
    if (sorted)
        return;
    qsort(s->nodes, s->n, sizeof(*s->nodes), by_element);
    uint32_t kept = 0;
    for (uint32_t i = 1; i < s->n; i++) {
        struct fieldset_node *last = &s->nodes[kept], *next = &s->nodes[i];
        if (by_element(last, next) == 0) {
            last->member = last->member || next->member;
            last->below = fieldset_union(a, &last->below, &next->below);
        } else {
            s->nodes[++kept] = *next;
        }
    }
    s->n = kept + 1;
}

const struct fieldset_node *fieldset_find(const struct fieldset *s,
                                          const struct fieldset_element *element)
{
    uint32_t at = find_position(s, element);
    bool found = at < s->n && fieldset_element_cmp(&s->nodes[at].element, element) == 0;
    return found ? &s->nodes[at] : NULL;
}

bool fieldset_empty(const struct fieldset *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->nodes[i].member || !fieldset_empty(&s->nodes[i].below))
            return false;
    return true;
}

bool fieldset_eq(const struct fieldset *a, const struct fieldset *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->nodes[i].member != b->nodes[i].member ||
            fieldset_element_cmp(&a->nodes[i].element, &b->nodes[i].element) != 0 ||
            !fieldset_eq(&a->nodes[i].below, &b->nodes[i].below))
            return false;
    return true;
}

/* ---- algebra */

enum operation { UNION, INTERSECTION, DIFFERENCE, WITHOUT };

static struct fieldset combine(struct arena *a, enum operation operation, const struct fieldset *x,
                               const struct fieldset *y);

/* The result for a node that both sets have. */
static struct fieldset_node combine_nodes(struct arena *a, enum operation operation,
                                          const struct fieldset_node *x,
                                          const struct fieldset_node *y)
{
    struct fieldset_node node = { .element = x->element };
    switch (operation) {
    case UNION:
        node.member = x->member || y->member;
        break;
    case INTERSECTION:
        node.member = x->member && y->member;
        break;
    case WITHOUT:
        if (y->member)
            return node;
        __attribute__((fallthrough));
    case DIFFERENCE:
        node.member = x->member && !y->member;
        break;
    }
    node.below = combine(a, operation, &x->below, &y->below);
    return node;
}

/* Combines a small set with a large one by lookup, without visiting the rest of the large one: a
 * thousand managers with a few fields each must not cost a thousand times all changed fields. */
static struct fieldset combine_few(struct arena *a, enum operation operation,
                                   const struct fieldset *x, const struct fieldset *y)
{
    struct fieldset out = { 0 };
    const struct fieldset *few = x->n <= y->n ? x : y, *many = few == x ? y : x;
    for (uint32_t i = 0; i < few->n; i++) {
        const struct fieldset_node *other = fieldset_find(many, &few->nodes[i].element);
        const struct fieldset_node *mine = &few->nodes[i];
        if (other)
            fieldset_append(a, &out,
                            few == x ? combine_nodes(a, operation, mine, other)
                                     : combine_nodes(a, operation, other, mine));
        else if (operation != INTERSECTION) /* a difference, and few is x */
            fieldset_append(a, &out, *mine);
    }
    return out;
}

/* Merges two sorted runs; the operation decides what becomes of nodes in x, in y, or in both. */
static struct fieldset combine(struct arena *a, enum operation operation, const struct fieldset *x,
                               const struct fieldset *y)
{
    struct fieldset out = { 0 };
    bool x_few = x->n < y->n / 16, y_few = y->n < x->n / 16;
    if ((x_few && operation != UNION) || (y_few && operation == INTERSECTION))
        return combine_few(a, operation, x, y);
    uint32_t i = 0, j = 0;
    while (i < x->n || j < y->n) {
        int order = i == x->n   ? 1
                    : j == y->n ? -1
                                : fieldset_element_cmp(&x->nodes[i].element, &y->nodes[j].element);
        if (order < 0) {
            if (operation != INTERSECTION)
                fieldset_append(a, &out, x->nodes[i]);
            i++;
        } else if (order > 0) {
            if (operation == UNION)
                fieldset_append(a, &out, y->nodes[j]);
            j++;
        } else {
            fieldset_append(a, &out, combine_nodes(a, operation, &x->nodes[i++], &y->nodes[j++]));
        }
    }
    return out;
}

struct fieldset fieldset_union(struct arena *a, const struct fieldset *x, const struct fieldset *y)
{
    if (!x->n || !y->n ||
        (x->nodes == y->nodes && x->n == y->n)) { /* one of them is the result, and is shared */
        struct fieldset all = x->n ? *x : *y;
        all.cap = all.n;
        return all;
    }
    return combine(a, UNION, x, y);
}

struct fieldset fieldset_intersection(struct arena *a, const struct fieldset *x,
                                      const struct fieldset *y)
{
    return combine(a, INTERSECTION, x, y);
}

struct fieldset fieldset_difference(struct arena *a, const struct fieldset *x,
                                    const struct fieldset *y)
{
    return combine(a, DIFFERENCE, x, y);
}

struct fieldset fieldset_without(struct arena *a, const struct fieldset *x,
                                 const struct fieldset *y)
{
    return combine(a, WITHOUT, x, y);
}

/* ---- sets and shapes */

/* The shape of the field that an element names; NULL: undeclared. */
static const struct shape *shape_below(const struct shape *s,
                                       const struct fieldset_element *element)
{
    if (!s || s->kind == SHAPE_SCALAR)
        return NULL;
    if (s->kind == SHAPE_ANY)
        return &shape_any;
    if (element->kind == FIELD_NAME)
        return s->kind == SHAPE_OBJ ? shape_member(s, element->name) : NULL;
    return s->kind == SHAPE_LIST ? s->element : NULL;
}

struct fieldset fieldset_with_parents(struct arena *a, const struct fieldset *x,
                                      const struct shape *shape)
{
    struct fieldset out = { 0 };
    for (uint32_t i = 0; i < x->n; i++) {
        struct fieldset_node node = x->nodes[i];
        if (node.below.n && node.element.kind == FIELD_NAME && shape &&
            shape_field(shape, node.element.name))
            node.member = true;
        node.below = fieldset_with_parents(a, &node.below, shape_below(shape, &node.element));
        fieldset_append(a, &out, node);
    }
    return out;
}

static bool is_atomic(const struct shape *s)
{
    return s && ((s->kind == SHAPE_OBJ && s->atomic) ||
                 (s->kind == SHAPE_LIST && s->list == SHAPE_ATOMIC_LIST));
}

struct fieldset fieldset_reconcile(struct arena *a, const struct fieldset *x,
                                   const struct shape *shape)
{
    struct fieldset out = { 0 };
    for (uint32_t i = 0; i < x->n; i++) {
        struct fieldset_node node = x->nodes[i];
        const struct shape *below = shape_below(shape, &node.element);
        if (is_atomic(below) && node.below.n)
            node = (struct fieldset_node){ .element = node.element, .member = true };
        else
            node.below = fieldset_reconcile(a, &node.below, below);
        fieldset_append(a, &out, node);
    }
    return out;
}
