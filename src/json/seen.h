/* A set of values, or of tuples of values, to find duplicates in lists. Linear up to 32 keys,
 * hashed above, so that a long list takes linear instead of quadratic time.
 *
 *     struct seen names = seen_new(arena, 1);
 *     ... const struct seen_key *first = seen_put(&names, &name, i);
 *     if (first) the element `first->place` has the same name
 *
 * Keys are compared with json_eq(); NULL (an absent value) equals NULL. The set lives in the arena
 * and borrows the values. */
#ifndef FLYBALL_SEEN_H
#define FLYBALL_SEEN_H

#include "json.h"

struct seen_key {
    const struct json *const *parts; /* `width` of them */
    uint64_t hash;                   /* valid if the set is hashed */
    uint32_t place;                  /* set by the caller */
};

struct seen {
    struct arena *arena;
    uint32_t width; /* values per key */
    struct seen_key *keys;
    uint32_t n, cap;
    uint32_t *slots; /* 1 + index of a key, 0: free; NULL: not hashed */
    uint32_t n_slots;
};

struct seen seen_new(struct arena *a, uint32_t width);
/* The key that equals these `width` values, or NULL. */
const struct seen_key *seen_find(const struct seen *s, const struct json *const *parts);
/* The same, but adds the key and returns NULL if there is none. */
const struct seen_key *seen_put(struct seen *s, const struct json *const *parts, uint32_t place);

/* One value per key. */
static inline const struct seen_key *seen_value(struct seen *s, const struct json *v,
                                                uint32_t place)
{
    return seen_put(s, &v, place);
}

static inline const struct seen_key *seen_lookup(const struct seen *s, const struct json *v)
{
    return seen_find(s, &v);
}

/* The elements of a list, or the given member of each. */
struct seen seen_list(struct arena *a, const struct json *list, const char *member);

#endif
