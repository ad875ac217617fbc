/* Operations on objects with a known shape: the building blocks of server-side apply. Used by
 * apply.c, and by admission policies, which merge without ownership.
 *
 * A value has the type of its shape or is null; typed_check() verifies that, the others rely on it
 * and treat anything else as null. NULL means "absent", which differs from null. */
#ifndef FLYBALL_TYPED_H
#define FLYBALL_TYPED_H

#include "fieldset.h"

struct typed_changes {
    struct fieldset added, modified, removed;
};

/* -EBADMSG with the path and the problem: an unknown field, a wrong type, an element of a map list
 * without keys, or a duplicate element unless `duplicates` are allowed. */
int typed_check(const struct shape *shape, const struct json *v, bool duplicates, err_t *e);

/* All fields of an object: leaves, list elements, map members. */
struct fieldset typed_fields(struct arena *a, const struct shape *shape, const struct json *v);

/* The differences from `old` to `new`. Both are objects. */
struct typed_changes typed_compare(struct arena *a, const struct shape *shape,
                                   const struct json *old, const struct json *new);

/* A new tree: `base`, overridden by the fields of `over`. Elements of merged lists keep their
 * order; if the two lists disagree, that of `over`. */
struct json *typed_merge(struct arena *a, const struct shape *shape, const struct json *base,
                         const struct json *over);

/* A new tree: the object without the fields of the set. */
struct json *typed_remove(struct arena *a, const struct shape *shape, const struct json *v,
                          const struct fieldset *set);

/* ---- elements of lists, for typed_*.c */

/* The path element of a list element; false if it has none, with the reason. */
bool typed_element(struct arena *a, const struct shape *list, const struct json *item,
                   struct fieldset_element *ret, const char **ret_why);

/* The elements of a list with their indexes, sorted by element and then index. */
struct typed_entry {
    struct fieldset_element element;
    uint32_t at;
};

struct typed_index {
    struct typed_entry *entries;
    uint32_t n;
};

struct typed_index typed_index(struct arena *a, const struct shape *list, const struct json *v);
/* The number of entries with this element; the first one in `*ret`. */
uint32_t typed_lookup(const struct typed_index *index, const struct fieldset_element *element,
                      const struct typed_entry **ret);

static inline bool typed_is_list(const struct json *v)
{
    return v && v->type == JSON_ARR;
}

static inline bool typed_is_leaf(const struct shape *s, const struct json *x, const struct json *y)
{
    if (s->kind == SHAPE_SCALAR)
        return true;
    if (s->kind == SHAPE_LIST) /* empty lists are compared as values: [] is not null */
        return s->list == SHAPE_ATOMIC_LIST ||
               (!(typed_is_list(x) && x->n) && !(typed_is_list(y) && y->n));
    return s->atomic || (!(json_is(x, JSON_OBJ) && x->n) && !(json_is(y, JSON_OBJ) && y->n));
}

#endif
