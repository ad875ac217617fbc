/* Hash map from text to pointer. `{0}` is an empty map.
 *
 * Open addressing with linear probing and backward-shift deletion (no tombstones). Hashes are XXH3
 * with a random seed per process, because keys come from users. The map borrows its keys: let the
 * value own them. Do not remove entries while iterating. The iteration order differs between runs:
 * sort before anything that a user or a test can see. */
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
/* Sets the value of a key and returns the previous value or NULL. An existing slot also takes the
 * new key pointer, because the old one may be freed with the old value. */
void *map_put(struct map *m, str key, void *value);
void *map_del(struct map *m, str key); /* returns the removed value or NULL */

uint64_t map_hash(str key); /* the seeded hash, never 0 */

/* for (struct map_slot *s = NULL; (s = map_next(&m, s));) */
struct map_slot *map_next(const struct map *m, struct map_slot *previous);

#endif
