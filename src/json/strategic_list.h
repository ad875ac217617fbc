/* Internals shared by strategic.c (maps, directives) and strategic_list.c (merging and ordering
 * lists). Functions that return a tree return NULL on failure, with the error in w->e. */
#ifndef FLYBALL_STRATEGIC_LIST_H
#define FLYBALL_STRATEGIC_LIST_H

#include "strategic.h"

struct strategic {
    struct arena *arena;
    err_t *e; /* never NULL */
};

struct strategic_field {
    str name;
    const struct shape *shape, *element;
    str key; /* patchMergeKey; empty: a list of scalars */
    bool merges, replaces;
};

/* Merges into `object`, which is modified. */
struct json *strategic_merge_map(struct strategic *w, const struct shape *shape,
                                 struct json *object, const struct json *patch);

/* A copy without null members and directives, but with the values that carry them: the result of
 * storing the patch as it is and then dropping unknown fields. */
struct json *strategic_as_is(struct arena *a, const struct json *v);

/* Modifies `live`. */
struct json *strategic_merge_list(struct strategic *w, const struct strategic_field *field,
                                  struct json *live, const struct json *patch);

/* Returns the list without the scalars in `gone`. */
struct json *strategic_delete(struct strategic *w, struct json *live, const struct json *gone);

/* The elements in `order`, in that order, and between them the others, at their position in
 * `server`. */
struct json *strategic_arrange(struct strategic *w, const struct strategic_field *field,
                               const struct json *list, const struct json *order,
                               const struct json *server);

/* The live order that $setElementOrder is combined with. `live` and `patch` may be NULL. */
struct json *strategic_server_order(struct strategic *w, const struct strategic_field *field,
                                    const struct json *live, const struct json *patch);

/* The elements of the patch must be in $setElementOrder, in the same order. */
int strategic_check_order(struct strategic *w, const struct strategic_field *field,
                          const struct json *patch, const struct json *order);

#endif
