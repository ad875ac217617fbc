/* A hash set of pointers to members that store their own hash: 8 bytes per slot, where map.h needs
 * 32. For large sets (cached objects, interned strings) whose members know their key. `{0}` is an
 * empty set.
 *
 * Open addressing with linear probing and backward-shift deletion, as in map.h. The set borrows its
 * members. Do not remove members while iterating; the iteration order is arbitrary. */
#ifndef FLYBALL_SET_H
#define FLYBALL_SET_H

#include "str.h"

struct set_node { /* first field of every member */
    uint32_t hash;
};

struct set {
    struct set_node **slots; /* owned; NULL is an empty slot */
    size_t n, cap;           /* cap is 0 or a power of two */
};

void set_done(struct set *s); /* frees the table, not the members */

/* The member with this hash for which `same(member, key)` holds, or NULL. */
struct set_node *set_find(const struct set *s, uint32_t hash,
                          bool (*same)(const struct set_node *member, const void *key),
                          const void *key);
void set_add(struct set *s, struct set_node *member); /* must not be in the set yet */
bool set_remove(struct set *s,
                const struct set_node *member); /* by address; false: not in the set */
/* Replaces `old`, which must be in the set, with `member`, which must have the same hash. */
void set_swap(struct set *s, const struct set_node *old, struct set_node *member);

/* for (size_t at = 0; (m = set_next(&s, &at));) */
struct set_node *set_next(const struct set *s, size_t *at);

static inline uint32_t set_hash(uint64_t hash) /* of map_hash() */
{
    return (uint32_t)(hash ^ hash >> 32);
}

#endif
