/* Hash map from text to pointer. `{0}` is an empty map.
 *
 * Open addressing with linear probing and backward-shift deletion (no tombstones), XXH3 seeded
 * once a process, because keys come from users. The map borrows its keys: let the value own them.
 * Removing while iterating is not allowed. Iteration order differs between runs: sort before
 * anything that a user or a test can see. */
#ifndef FLYBALL_MAP_H
#define FLYBALL_MAP_H

#include "str.h"

struct map_slot {
    uint64_t hash; /* 0: empty */
    str key;       /* borrowed */
    void *value;
};

struct map {
    struct map_slot *slots; /* owned */
    size_t n, cap;          /* cap is 0 or a power of two */
};

void map_done(struct map *m); /* frees the table, not keys or values */
#define auto_map __attribute__((cleanup(map_done)))

void *map_get(const struct map *m, str key);
/* Sets key to value and returns the value that was there, or NULL. An existing slot takes the new
 * key pointer too, as the old one may die with the old value. */
void *map_put(struct map *m, str key, void *value);
void *map_del(struct map *m, str key); /* the value that was there, or NULL */

uint64_t map_hash(str key); /* the seeded hash, never 0 */

/* for (struct map_slot *s = NULL; (s = map_next(&m, s));) */
struct map_slot *map_next(const struct map *m, struct map_slot *previous);

#endif
