/* The current state: objects ordered by key, eight bytes each beside the object itself.
 *
 * A sorted array cut into chunks of at most a few hundred references: an insertion moves bytes within one
 * chunk, and a scan reads memory in order. (A balanced tree would cost 24 more bytes per object and miss the
 * cache at every step of a list.) `{0}` is an empty tree. The tree owns a reference to each of its objects. A
 * cursor is valid until the next change. */
#ifndef FLYBALL_TREE_H
#define FLYBALL_TREE_H

#include "object.h"

struct tree_chunk;

struct tree {
    struct tree_chunk **chunks; /* owned, none empty */
    size_t n_chunks, cap;
    size_t n; /* objects */
};

struct tree_cursor {
    const struct tree *tree;
    size_t chunk, at;
};

void tree_done(struct tree *t);
struct object *tree_get(const struct tree *t, str key); /* borrowed */
/* Takes the reference; returns the object that had the key before, now owned by the caller, or NULL. */
struct object *tree_put(struct tree *t, struct object *o);
struct object *tree_del(struct tree *t, str key); /* the same */

struct tree_cursor tree_seek(const struct tree *t, str key); /* first object with a key >= key */
struct object *tree_next(struct tree_cursor *c);             /* borrowed; NULL at the end */

/* for (each object o whose key starts with prefix, from `from` on) */
struct object *tree_next_in(struct tree_cursor *c, str prefix);
size_t tree_count(const struct tree *t, str from, str prefix); /* from `from` on */

#endif
