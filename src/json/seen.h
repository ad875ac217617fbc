/* Which keys were there before: a set of values, or of tuples of values, as the lists of an object hold
 * them. For checks that look for duplicates: linear up to 32 keys, hashed beyond, so that a long list
 * costs its length and not its square.
 *
 *     struct seen names = seen_new(arena, 1);
 *     ... const struct seen_key *first = seen_put(&names, &name, i);
 *     if (first) the element `first->place` has the same name
 *
 * Keys are equal as json_eq() says; NULL (an absent value) equals NULL. The set and what it holds live
 * in the arena; the values are borrowed. */
#ifndef FLYBALL_SEEN_H
#define FLYBALL_SEEN_H

#include "json.h"

struct seen_key {
    const struct json *const *parts; /* `width` of them */
    uint64_t hash;                   /* once hashed */
    uint32_t place;                  /* the caller's */
};

struct seen {
    struct arena *arena;
    uint32_t width; /* values per key */
    struct seen_key *keys;
    uint32_t n, cap;
    uint32_t *slots; /* 1 + index of a key, 0: free; NULL: few */
    uint32_t n_slots;
};

struct seen seen_new(struct arena *a, uint32_t width);
/* The key that equals these `width` values, or NULL. */
const struct seen_key *seen_find(const struct seen *s, const struct json *const *parts);
/* The same; where there is none, the key is added and NULL returned. */
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

/* The elements of a list, by a member of each, or (NULL) as they are. */
struct seen seen_list(struct arena *a, const struct json *list, const char *member);

#endif
