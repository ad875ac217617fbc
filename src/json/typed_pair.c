/* Two objects of the same shape: their differences, and one merged over the other. See typed.h.
 *
 * Both operations are recursions over the shape and the two values side by side; one of them may be
 * NULL (absent). They end at leaves: scalars, atomic lists and objects, and empty containers, which
 * are compared and replaced as a whole.
 *
 * Comparing sorts fields into added, modified and removed. Equal subtrees are recognized first,
 * because most of an object does not change. Lists with keys are compared by element, not by
 * position, so that inserting an element does not modify all elements after it.
 *
 * Merging keeps the order of both lists as far as possible:
 *
 *     base  [a, b, c, d]     over  [d, x, b]     result  [a, c, d, x, b]
 *
 * Elements that only `base` has stay before the shared element they preceded; for shared elements
 * the order of `over` wins. The exact interleaving (weave_lists) is that of structured-merge-diff,
 * because the order of containers and ports is visible to users.
 *
 * Large objects and lists are indexed first: they are untrusted, and quadratic time would be an
 * attack. */
#include "typed.h"

/* ---- members of two objects, side by side */

enum { FEW_MEMBERS = 24 };

static int compare_member_keys(const void *a, const void *b)
{
    return str_cmp((*(const struct json_member *const *)a)->key,
                   (*(const struct json_member *const *)b)->key);
}

/* Finds members of one object; large objects are sorted first. */
struct finder {
    const struct json *obj;
    const struct json_member **sorted; /* NULL: few members, searched linearly */
};

static struct finder finder_init(struct arena *a, const struct json *obj)
{
    struct finder f = { .obj = obj };
    if (json_len(obj) > FEW_MEMBERS) {
        f.sorted = arena_array(a, obj->n, sizeof(*f.sorted));
        for (uint32_t i = 0; i < obj->n; i++)
            f.sorted[i] = &obj->members[i];
        qsort(f.sorted, obj->n, sizeof(*f.sorted), compare_member_keys);
    }
    return f;
}

static const struct json *find_member(const struct finder *f, str key)
{
    if (!f->sorted)
        return json_get_str(f->obj, key);
    struct json_member wanted = { .key = key };
    const struct json_member *at = &wanted, **found;
    found = bsearch(&at, f->sorted, f->obj->n, sizeof(*f->sorted), compare_member_keys);
    return found ? (*found)->value : NULL;
}

static const struct json *if_type(const struct json *v, enum json_type type)
{
    return json_is(v, type) ? v : NULL;
}

/* ---- compare: each function returns flags for the value itself and adds what is below it */

enum { ADDED = 1, MODIFIED = 2, REMOVED = 4 };

static unsigned compare(struct arena *a, const struct shape *shape, const struct json *old,
                        const struct json *new, struct typed_changes *below);

static void record_change(struct arena *a, struct typed_changes *to,
                          const struct fieldset_element *at, unsigned flags,
                          const struct typed_changes *below)
{
    if ((flags & ADDED) || below->added.n)
        fieldset_append(a, &to->added,
                        (struct fieldset_node){ *at, (flags & ADDED) != 0, below->added });
    if ((flags & MODIFIED) || below->modified.n)
        fieldset_append(a, &to->modified,
                        (struct fieldset_node){ *at, (flags & MODIFIED) != 0, below->modified });
    if ((flags & REMOVED) || below->removed.n)
        fieldset_append(a, &to->removed,
                        (struct fieldset_node){ *at, (flags & REMOVED) != 0, below->removed });
}

static void sort_changes(struct arena *a, struct typed_changes *c)
{
    fieldset_sort(a, &c->added);
    fieldset_sort(a, &c->modified);
    fieldset_sort(a, &c->removed);
}

/* The value of an unset field that is always present in the Go type: {} or null. */
static const struct json *or_always(const struct shape_field *f, const struct json *v,
                                    const struct json *holder)
{
    static const struct json nothing = { .type = JSON_NULL }, empty = { .type = JSON_OBJ };
    if (v || !holder || !f || !f->always)
        return v;
    return f->shape->kind == SHAPE_OBJ ? &empty : f->shape->kind == SHAPE_LIST ? &nothing : NULL;
}

static void compare_member(struct arena *a, const struct shape *s, str key,
                           const struct json *pair[2], struct typed_changes *to)
{
    if (pair[0] && pair[1] && json_eq(pair[0], pair[1]))
        return; /* the common case: most of an object does not change */
    const struct shape *member = shape_member(s, key);
    struct typed_changes below = { 0 };
    struct fieldset_element element = fieldset_name(key);
    unsigned flags = compare(a, member ? member : &shape_any, pair[0], pair[1], &below);
    record_change(a, to, &element, flags, &below);
}

static void compare_maps(struct arena *a, const struct shape *s, const struct json *old,
                         const struct json *new, struct typed_changes *to)
{
    struct finder in_old = finder_init(a, old), in_new = finder_init(a, new);
    json_each(m, old) {
        const struct json *other =
            or_always(shape_field(s, m->key), find_member(&in_new, m->key), new);
        compare_member(a, s, m->key, (const struct json *[]){ m->value, other }, to);
    }
    json_each(m, new) {
        if (find_member(&in_old, m->key))
            continue;
        const struct json *other = or_always(shape_field(s, m->key), NULL, old);
        compare_member(a, s, m->key, (const struct json *[]){ other, m->value }, to);
    }
    sort_changes(a, to);
}

static bool same_run(const struct json *x, const struct typed_entry *from, const struct json *y,
                     const struct typed_entry *to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!json_eq(x->items[from[i].at], y->items[to[i].at]))
            return false;
    return true;
}

/* Elements with the same keys: one on each side is compared; duplicates are compared as a whole. */
static unsigned compare_runs(struct arena *a, const struct shape *s, const struct json *lists[2],
                             const struct typed_entry *runs[2], const uint32_t n[2],
                             struct typed_changes *below)
{
    const struct json *old = n[0] ? lists[0]->items[runs[0]->at] : NULL;
    const struct json *new = n[1] ? lists[1]->items[runs[1]->at] : NULL;
    if (n[0] <= 1 && n[1] <= 1)
        return compare(a, s->element, old, new, below);
    if (n[0] > 1 && n[1] > 1)
        return n[0] == n[1] && same_run(lists[0], runs[0], lists[1], runs[1], n[0]) ? 0 : MODIFIED;
    if (n[0] > 1)
        return REMOVED | (new ? compare(a, s->element, NULL, new, below) : 0);
    return ADDED | (old ? compare(a, s->element, old, NULL, below) : 0);
}

static uint32_t run_length(const struct typed_index *index, uint32_t at)
{
    uint32_t end = at + 1;
    while (end < index->n &&
           fieldset_element_cmp(&index->entries[at].element, &index->entries[end].element) == 0)
        end++;
    return end - at;
}

/* Visits both indexes in order, one run of equal keys at a time. */
static void compare_lists(struct arena *a, const struct shape *s, const struct json *old,
                          const struct json *new, struct typed_changes *to)
{
    struct typed_index x = typed_index(a, s, old), y = typed_index(a, s, new);
    for (uint32_t i = 0, j = 0; i < x.n || j < y.n;) {
        const struct typed_entry *runs[2] = { x.n ? x.entries + i : NULL,
                                              y.n ? y.entries + j : NULL };
        int order = i == x.n   ? 1
                    : j == y.n ? -1
                               : fieldset_element_cmp(&runs[0]->element, &runs[1]->element);
        uint32_t n[2] = { order <= 0 ? run_length(&x, i) : 0, order >= 0 ? run_length(&y, j) : 0 };
        struct typed_changes below = { 0 };
        unsigned flags = compare_runs(a, s, (const struct json *[]){ old, new }, runs, n, &below);
        record_change(a, to, order <= 0 ? &runs[0]->element : &runs[1]->element, flags, &below);
        i += n[0];
        j += n[1];
    }
}

static unsigned compare_as(struct arena *a, const struct shape *s, const struct json *old,
                           const struct json *new, struct typed_changes *below)
{
    if (typed_is_leaf(s, old, new))
        return !old ? ADDED : !new ? REMOVED : json_eq(old, new) ? 0 : MODIFIED;
    if (s->kind == SHAPE_LIST)
        compare_lists(a, s, if_type(old, JSON_ARR), if_type(new, JSON_ARR), below);
    else
        compare_maps(a, s, if_type(old, JSON_OBJ), if_type(new, JSON_OBJ), below);
    return !old ? ADDED : !new ? REMOVED : 0;
}

static unsigned compare(struct arena *a, const struct shape *shape, const struct json *old,
                        const struct json *new, struct typed_changes *below)
{
    const struct shape *s = shape_for(shape, new ? new : old);
    const struct shape *was = shape_for(shape, old ? old : new);
    unsigned flags = compare_as(a, s, old, new, below);
    if (was == s)
        return flags;
    /* a value of unknown type changed its type: everything in it was removed */
    struct typed_changes before = { 0 };
    flags |= compare_as(a, was, old, new, &before);
    below->added = fieldset_union(a, &below->added, &before.added);
    below->modified = fieldset_union(a, &below->modified, &before.modified);
    below->removed = fieldset_union(a, &below->removed, &before.removed);
    return flags;
}

struct typed_changes typed_compare(struct arena *a, const struct shape *shape,
                                   const struct json *old, const struct json *new)
{
    struct typed_changes changes = { 0 };
    compare(a, shape, old, new, &changes);
    return changes;
}

/* ---- merge: one of the two may be NULL */

static struct json *merge(struct arena *a, const struct shape *shape, const struct json *base,
                          const struct json *over);

static void merge_maps(struct arena *a, const struct shape *s, const struct json *base,
                       const struct json *over, struct json *out)
{
    struct finder in_base = finder_init(a, base), in_over = finder_init(a, over);
    json_each(m, base) {
        const struct shape *member = shape_member(s, m->key);
        json_append(a, out, m->key,
                    merge(a, member ? member : &shape_any, m->value,
                          find_member(&in_over, m->key)));
    }
    json_each(m, over) {
        const struct shape *member = shape_member(s, m->key);
        if (!find_member(&in_base, m->key))
            json_append(a, out, m->key, merge(a, member ? member : &shape_any, NULL, m->value));
    }
}

/* Two lists of elements with keys. The pair of an element is its index in the other list, or
 * NONE. */
#define NONE UINT32_MAX

struct weave {
    const struct json *base, *over;
    uint32_t *base_pair, *over_pair;
    bool *twice;          /* base: the element is a duplicate and is not merged */
    bool *merged;         /* over: the element is in the result */
    uint32_t next_shared; /* over: the next element that base has too; over->n: none */
};

/* Finds the pairs of both lists with one index each. */
static void pair_up(struct arena *a, const struct shape *s, struct weave *w)
{
    struct typed_index base = typed_index(a, s, w->base), over = typed_index(a, s, w->over);
    uint32_t n_base = (uint32_t)json_len(w->base), n_over = (uint32_t)json_len(w->over);
    w->base_pair = arena_array(a, n_base, sizeof(uint32_t));
    w->over_pair = arena_array(a, n_over, sizeof(uint32_t));
    w->twice = arena_array(a, n_base, sizeof(bool));
    w->merged = arena_array(a, n_over, sizeof(bool));
    memset(w->base_pair, 0xff, n_base * sizeof(uint32_t));
    memset(w->over_pair, 0xff, n_over * sizeof(uint32_t));
    const struct typed_entry *found;
    for (uint32_t i = 0; i < base.n; i++)
        if (typed_lookup(&over, &base.entries[i].element, &found))
            w->base_pair[base.entries[i].at] = found->at;
    for (uint32_t i = 0; i < over.n; i++) {
        uint32_t count = typed_lookup(&base, &over.entries[i].element, &found);
        if (count)
            w->over_pair[over.entries[i].at] = found->at;
        if (count > 1)
            w->twice[found->at] = true;
    }
}

static void seek_shared(struct weave *w, uint32_t from)
{
    while (from < json_len(w->over) && w->over_pair[from] == NONE)
        from++;
    w->next_shared = from;
}

static void put_over(struct arena *a, const struct shape *s, struct weave *w, uint32_t at,
                     struct json *out)
{
    static const struct json nothing = { .type = JSON_NULL };
    uint32_t pair = w->over_pair[at];
    const struct json *base = pair == NONE     ? NULL
                              : w->twice[pair] ? &nothing
                                               : w->base->items[pair];
    json_push(a, out, merge(a, s->element, base, w->over->items[at]));
    w->merged[at] = true;
    if (w->next_shared == at)
        seek_shared(w, at + 1);
}

/* Advances in both lists: a shared element that is out of order is skipped in `base` and waits for
 * its turn in `over`. */
static void weave_lists(struct arena *a, const struct shape *s, struct weave *w, struct json *out)
{
    uint32_t n_base = (uint32_t)json_len(w->base), n_over = (uint32_t)json_len(w->over);
    for (uint32_t i = 0, j = 0; i < n_base || j < n_over;) {
        uint32_t pair = i < n_base ? w->base_pair[i] : NONE;
        if (i < n_base && j < n_over && pair == j) {
            put_over(a, s, w, j++, out);
            i++;
            continue;
        }
        if (i < n_base && j < n_over && pair != NONE && w->next_shared < n_over &&
            w->next_shared != pair) {
            i++;
            continue;
        }
        if (i < n_base && pair == NONE) {
            json_push(a, out, merge(a, s->element, w->base->items[i++], NULL));
            continue;
        }
        if (i < n_base && w->merged[pair])
            i++;
        if (j < n_over)
            put_over(a, s, w, j++, out);
    }
}

static struct json *merge(struct arena *a, const struct shape *shape, const struct json *base,
                          const struct json *over)
{
    const struct shape *s = shape_for(shape, over ? over : base);
    if (typed_is_leaf(s, base, over))
        return json_copy(a, over ? over : base);
    if (s->kind == SHAPE_OBJ) {
        struct json *map = json_new_obj(a);
        merge_maps(a, s, if_type(base, JSON_OBJ), if_type(over, JSON_OBJ), map);
        return map;
    }
    struct json *list = json_new_arr(a);
    struct weave w = { .base = if_type(base, JSON_ARR), .over = if_type(over, JSON_ARR) };
    pair_up(a, s, &w);
    seek_shared(&w, 0);
    weave_lists(a, s, &w, list);
    return list;
}

struct json *typed_merge(struct arena *a, const struct shape *shape, const struct json *base,
                         const struct json *over)
{
    return merge(a, shape, base, over);
}
