/* Objects seen through their shapes: what server-side apply is made of. Used by apply.c only.
 *
 * A value is what the shape says, or null; typed_check() makes sure of that, the others take it for
 * granted and treat anything else as null. NULL is "absent", which is not the same as null. */
#ifndef FLYBALL_TYPED_H
#define FLYBALL_TYPED_H

#include "fieldset.h"

struct typed_changes {
    struct fieldset added, modified, removed;
};

/* -EBADMSG with the path and what is wrong there: unknown field, wrong type, an element of a map
 * list without keys, and, unless they are allowed, elements that are there twice. */
int typed_check(const struct shape *shape, const struct json *v, bool duplicates, err_t *e);

/* Every field an object names: leaves, elements of lists, members of maps. */
struct fieldset typed_fields(struct arena *a, const struct shape *shape, const struct json *v);

/* What differs from `old` to `new`. Both are objects. */
struct typed_changes typed_compare(struct arena *a, const struct shape *shape,
                                   const struct json *old, const struct json *new);

/* A new tree: `base` with the fields of `over` put over it. Elements of merged lists keep their
 * order, of `over` where the two disagree. */
struct json *typed_merge(struct arena *a, const struct shape *shape, const struct json *base,
                         const struct json *over);

/* A new tree: the object without the fields of the set. */
struct json *typed_remove(struct arena *a, const struct shape *shape, const struct json *v,
                          const struct fieldset *set);

/* ---- elements of lists, for typed_*.c */

/* The path element of a list's element; false when it has none, with the reason. */
bool typed_element(struct arena *a, const struct shape *list, const struct json *item,
                   struct fieldset_element *ret, const char **ret_why);

/* Elements of a list with their places, sorted by element and then place. */
struct typed_entry {
    struct fieldset_element element;
    uint32_t at;
};

struct typed_index {
    struct typed_entry *entries;
    uint32_t n;
};

struct typed_index typed_index(struct arena *a, const struct shape *list, const struct json *v);
/* How many entries have the element; the first of them in `*ret`. */
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
    if (s->kind == SHAPE_LIST) /* two empty ones are compared as values: [] is not null */
        return s->list == SHAPE_ATOMIC_LIST ||
               (!(typed_is_list(x) && x->n) && !(typed_is_list(y) && y->n));
    return s->atomic || (!(json_is(x, JSON_OBJ) && x->n) && !(json_is(y, JSON_OBJ) && y->n));
}

#endif
