/* Sets of fields of an object, as in managedFields (fieldsV1):
 *
 *     {"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}},"f:tags":{"v:\"a\"":{}}}}
 *
 * f: a member by name, k: an element of a map list by its keys, v: an element of a set by its
 * value, i: an element by index; "." means that a field with fields below it is itself in the set.
 *
 * A set is a tree of nodes sorted by element. It lives in an arena; operations return new sets that
 * may share parts of the old ones, so a set must not change once it has been used. */
#ifndef FLYBALL_FIELDSET_H
#define FLYBALL_FIELDSET_H

#include "shape.h"

enum fieldset_kind { FIELD_NAME, FIELD_KEY, FIELD_VALUE, FIELD_INDEX };

struct fieldset_key {
    str name;
    const struct json *value;
};

struct fieldset_element {
    enum fieldset_kind kind;
    uint32_t n_keys;
    union {
        str name;                        /* FIELD_NAME */
        const struct fieldset_key *keys; /* FIELD_KEY: n_keys, sorted by name */
        const struct json *value;        /* FIELD_VALUE */
        int64_t index;                   /* FIELD_INDEX */
    };
};

struct fieldset {
    struct fieldset_node *nodes; /* sorted; n of them; NULL: empty */
    uint32_t n, cap;
};

struct fieldset_node {
    struct fieldset_element element;
    bool member;           /* the field itself is in the set */
    struct fieldset below; /* fields inside it */
};

/* ---- building */

/* Finds or creates the node of an element. Valid until the next one is created in the same set. */
struct fieldset_node *fieldset_at(struct arena *a, struct fieldset *s,
                                  const struct fieldset_element *element);

/* Adds many nodes: append them in any order, then sort once, which also merges nodes of the same
 * element. Cheaper than inserting each in its place. A node without members is omitted. */
void fieldset_append(struct arena *a, struct fieldset *s, struct fieldset_node node);
void fieldset_sort(struct arena *a, struct fieldset *s);

static inline struct fieldset_element fieldset_name(str name)
{
    return (struct fieldset_element){ .kind = FIELD_NAME, .name = name };
}

/* ---- reading */

bool fieldset_empty(const struct fieldset *s);
const struct fieldset_node *fieldset_find(const struct fieldset *s,
                                          const struct fieldset_element *element);
int fieldset_element_cmp(const struct fieldset_element *a, const struct fieldset_element *b);
bool fieldset_eq(const struct fieldset *a, const struct fieldset *b);

/* ---- algebra */

struct fieldset fieldset_union(struct arena *a, const struct fieldset *x, const struct fieldset *y);
struct fieldset fieldset_intersection(struct arena *a, const struct fieldset *x,
                                      const struct fieldset *y);
/* The fields that are in x and not in y; a field and the fields below it are independent. */
struct fieldset fieldset_difference(struct arena *a, const struct fieldset *x,
                                    const struct fieldset *y);
/* The same, but a field of y also removes everything below it. */
struct fieldset fieldset_without(struct arena *a, const struct fieldset *x,
                                 const struct fieldset *y);
/* Adds every declared field that has fields of the set below it. */
struct fieldset fieldset_with_parents(struct arena *a, const struct fieldset *x,
                                      const struct shape *shape);

/* Adapts a set to a shape that has changed since: fields below what is now atomic become one
 * field. */
struct fieldset fieldset_reconcile(struct arena *a, const struct fieldset *x,
                                   const struct shape *shape);

/* ---- fieldsV1 */

int fieldset_parse(struct arena *a, const struct json *fields, struct fieldset *ret, err_t *e);
struct json *fieldset_print(struct arena *a, const struct fieldset *s);

/* Appends the element as in error messages: .name  [port=80,protocol="TCP"]  [="a"]  [3] */
void fieldset_put_element(struct buf *out, const struct fieldset_element *element);

/* Calls `each` with the path of every member; the members of a level come before those below
 * them. */
void fieldset_each(const struct fieldset *s, void (*each)(void *context, str path), void *context);

#endif
