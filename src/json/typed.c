/* Objects with a shape, one at a time: the identity of list elements, the fields of an object,
 * removing fields. See typed.h. Comparing and merging two objects is in typed_pair.c, checking in
 * typed_check.c.
 *
 * Every function is a recursion over a value and its shape side by side. What counts as a field:
 *
 *     scalar, atomic list or object       the value as a whole
 *     object                              its members; the object itself only if it is empty
 *     map list                            every element by its keys, and the fields inside
 *     set                                 every element by its value
 *
 * The identity of an element includes the defaults of its keys: a port without a protocol is the
 * same element as one with TCP. Duplicate elements are tolerated in stored objects, because old
 * versions of Kubernetes accepted them; they are owned as a whole. The error texts are quoted:
 * kube-apiserver. */
#include "typed.h"

/* ---- elements */

static int compare_key_names(const void *a, const void *b)
{
    return str_cmp(((const struct fieldset_key *)a)->name, ((const struct fieldset_key *)b)->name);
}

/* The identity of an element of a map list; false, with the reason, if it has no key at all. */
static bool keyed_element(struct arena *a, const struct shape *list, const struct json *item,
                          struct fieldset_element *ret, const char **ret_why)
{
    if (!json_is(item, JSON_OBJ)) {
        *ret_why = json_is(item, JSON_NULL)
                       ? "associative list with keys may not have a null element"
                       : "associative list with keys may not have non-map elements";
        return false;
    }
    struct fieldset_key *keys = arena_array(a, list->n_keys, sizeof(*keys));
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n_keys; i++) {
        const struct json *value = json_get_str(item, list->keys[i]);
        const struct shape_field *field = shape_field(list->element, list->keys[i]);
        if (!value && field)
            value = field->value_if_absent;
        if (value) /* a missing key without a default is not part of the identity */
            keys[n++] = (struct fieldset_key){ list->keys[i], value };
    }
    if (!n) {
        *ret_why = "associative list with keys has an element that omits all key fields (and "
                   "doesn't have default values for any key fields)";
        return false;
    }
    qsort(keys, n, sizeof(*keys), compare_key_names);
    *ret = (struct fieldset_element){ .kind = FIELD_KEY, .n_keys = n, .keys = keys };
    return true;
}

bool typed_element(struct arena *a, const struct shape *list, const struct json *item,
                   struct fieldset_element *ret, const char **ret_why)
{
    if (list->list == SHAPE_MAP_LIST)
        return keyed_element(a, list, item, ret, ret_why);
    if (item->type == JSON_OBJ || item->type == JSON_ARR || item->type == JSON_NULL) {
        *ret_why = "associative list without keys has an element that is not a scalar";
        return false;
    }
    *ret = (struct fieldset_element){ .kind = FIELD_VALUE, .value = item };
    return true;
}

static int compare_entries(const void *a, const void *b)
{
    const struct typed_entry *x = a, *y = b;
    int order = fieldset_element_cmp(&x->element, &y->element);
    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

struct typed_index typed_index(struct arena *a, const struct shape *list, const struct json *v)
{
    static struct typed_entry none; /* an empty index must have a valid array, too */
    struct typed_index index = { .entries = &none };
    if (!typed_is_list(v))
        return index;
    index.entries = arena_array(a, v->n, sizeof(*index.entries));
    for (uint32_t i = 0; i < v->n; i++) {
        const char *why;
        if (typed_element(a, list, v->items[i], &index.entries[index.n].element, &why))
            index.entries[index.n++].at = i;
    }
    if (index.n)
        qsort(index.entries, index.n, sizeof(*index.entries), compare_entries);
    return index;
}

uint32_t typed_lookup(const struct typed_index *index, const struct fieldset_element *element,
                      const struct typed_entry **ret)
{
    uint32_t low = 0, high = index->n, count = 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fieldset_element_cmp(&index->entries[middle].element, element) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = index->entries + low;
    while (low + count < index->n &&
           fieldset_element_cmp(&index->entries[low + count].element, element) == 0)
        count++;
    return count;
}

/* ---- the fields of an object: each function returns whether the value itself is a field */

static bool collect_fields(struct arena *a, const struct shape *shape, const struct json *v,
                           struct fieldset *below);

static void collect_list_fields(struct arena *a, const struct shape *s, const struct json *v,
                                struct fieldset *below)
{
    struct typed_index index = typed_index(a, s, v);
    for (uint32_t i = 0, next; i < index.n; i = next) {
        struct fieldset_node node = { .element = index.entries[i].element, .member = true };
        for (next = i + 1; next < index.n &&
                           fieldset_element_cmp(&index.entries[next].element, &node.element) == 0;)
            next++;
        if (next == i + 1) /* duplicate elements are owned as a whole */
            collect_fields(a, s->element, v->items[index.entries[i].at], &node.below);
        fieldset_append(a, below, node);
    }
}

/* Adds the fields inside a value to `below`. */
static bool collect_fields(struct arena *a, const struct shape *shape, const struct json *v,
                           struct fieldset *below)
{
    const struct shape *s = shape_for(shape, v);
    if (s->kind == SHAPE_SCALAR)
        return true;
    if (s->kind == SHAPE_LIST) {
        if (s->list != SHAPE_ATOMIC_LIST)
            collect_list_fields(a, s, v, below);
        return s->list == SHAPE_ATOMIC_LIST;
    }
    if (s->atomic)
        return true;
    json_each(m, v) {
        const struct shape *member = shape_member(s, m->key);
        struct fieldset_node node = { .element = fieldset_name(m->key) };
        node.member = collect_fields(a, member ? member : &shape_any, m->value, &node.below) ||
                      m->value->type == JSON_NULL || (m->value->type == JSON_OBJ && !m->value->n) ||
                      !shape_field(s, m->key);
        fieldset_append(a, below, node);
    }
    fieldset_sort(a, below);
    return false;
}

struct fieldset typed_fields(struct arena *a, const struct shape *shape, const struct json *v)
{
    struct fieldset set = { 0 };
    collect_fields(a, shape, v, &set);
    return set;
}

/* ---- removing */

static struct json *remove_fields(struct arena *a, const struct shape *shape, const struct json *v,
                                  const struct fieldset *set); /* NULL: nothing is left */

static struct json *or_null(struct arena *a, struct json *v)
{
    return v ? v : json_new_null(a);
}

/* What is left of a member or element; NULL: it is removed. */
static struct json *remove_from(struct arena *a, const struct shape *shape, const struct json *v,
                                const struct fieldset_node *node)
{
    if (node && node->member)
        return NULL;
    return node && node->below.n ? or_null(a, remove_fields(a, shape, v, &node->below))
                                 : json_copy(a, v);
}

/* A copy without the fields of the set. A container that becomes empty is removed too, unless it
 * was empty before: Kubernetes does the same. */
static struct json *remove_fields(struct arena *a, const struct shape *shape, const struct json *v,
                                  const struct fieldset *set)
{
    const struct shape *s = shape_for(shape, v);
    if (s->kind == SHAPE_SCALAR)
        return json_copy(a, v);
    if (typed_is_leaf(s, v, NULL))
        return NULL;
    struct json *out = v->type == JSON_OBJ ? json_new_obj(a) : json_new_arr(a), *kept;
    for (uint32_t i = 0; s->kind == SHAPE_LIST && i < v->n; i++) {
        struct fieldset_element element;
        const char *why;
        bool known = typed_element(a, s, v->items[i], &element, &why);
        if ((kept = remove_from(a, s->element, v->items[i],
                                known ? fieldset_find(set, &element) : NULL)))
            json_push(a, out, kept);
    }
    if (s->kind == SHAPE_OBJ)
        json_each(m, v) {
            const struct shape *member = shape_member(s, m->key);
            struct fieldset_element element = fieldset_name(m->key);
            if ((kept = remove_from(a, member ? member : &shape_any, m->value,
                                    fieldset_find(set, &element))))
                json_append(a, out, m->key, kept);
        }
    return out->n ? out : NULL;
}

struct json *typed_remove(struct arena *a, const struct shape *shape, const struct json *v,
                          const struct fieldset *set)
{
    struct json *left = remove_fields(a, shape, v, set);
    return left ? left : json_new_obj(a);
}
