/* Between strategic.c (maps, directives) and strategic_list.c (merging and ordering lists); nobody
 * else includes this. Functions that return a tree return NULL on failure, with the error in w->e. */
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

/* Merges into `object`, which is ours to change. */
struct json *strategic_merge_map(struct strategic *w, const struct shape *shape,
                                 struct json *object, const struct json *patch);

/* A copy without null members and without what carries a directive; NULL: it is one itself. */
struct json *strategic_clean(struct arena *a, const struct json *v);

/* A copy without null members and directives, keeping what carried them: where the patch is taken
 * over unread, this is what is left once the server has dropped what it does not know. */
struct json *strategic_as_is(struct arena *a, const struct json *v);

/* `live` is ours to change. */
struct json *strategic_merge_list(struct strategic *w, const struct strategic_field *field,
                                  struct json *live, const struct json *patch);

/* The list without the scalars in `gone`. */
struct json *strategic_delete(struct strategic *w, struct json *live, const struct json *gone);

/* Elements named in `order` in that order; between them, the others, where `server` has them. */
struct json *strategic_arrange(struct strategic *w, const struct strategic_field *field,
                               const struct json *list, const struct json *order,
                               const struct json *server);

/* The live order that $setElementOrder is weighed against. `live` and `patch` may be NULL. */
struct json *strategic_server_order(struct strategic *w, const struct strategic_field *field,
                                    const struct json *live, const struct json *patch);

/* The elements of the patch must stand in $setElementOrder, in the same order. */
int strategic_check_order(struct strategic *w, const struct strategic_field *field,
                          const struct json *patch, const struct json *order);

#endif
