/* Sets of values: see seen.h. Keys are stored in the order in which they came; the slots are an
 * index (open addressing, linear probing) that is created when the 33rd key arrives. Most lists
 * never need it. */
#include "seen.h"

enum { FEW = 32 }; /* up to this many keys, comparing is faster than hashing */

struct seen seen_new(struct arena *a, uint32_t width)
{
    return (struct seen){ .arena = a, .width = width };
}

static bool same_parts(const struct seen *s, const struct json *const *x,
                       const struct json *const *y)
{
    for (uint32_t i = 0; i < s->width; i++)
        if (!json_eq(x[i], y[i]))
            return false;
    return true;
}

static uint64_t hash_parts(const struct seen *s, const struct json *const *parts)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < s->width; i++)
        hash = hash * 0x9e3779b97f4a7c15u + json_hash(parts[i]);
    return hash ^ hash >> 32;
}

static const struct seen_key *find_hashed(const struct seen *s, uint64_t hash,
                                          const struct json *const *parts)
{
    uint32_t mask = s->n_slots - 1;
    for (uint32_t i = (uint32_t)hash & mask; s->slots[i]; i = (i + 1) & mask) {
        const struct seen_key *key = &s->keys[s->slots[i] - 1];
        if (key->hash == hash && same_parts(s, key->parts, parts))
            return key;
    }
    return NULL;
}

const struct seen_key *seen_find(const struct seen *s, const struct json *const *parts)
{
    if (s->slots)
        return find_hashed(s, hash_parts(s, parts), parts);
    for (uint32_t i = 0; i < s->n; i++)
        if (same_parts(s, s->keys[i].parts, parts))
            return &s->keys[i];
    return NULL;
}

static void put_slot(struct seen *s, uint32_t key)
{
    uint32_t mask = s->n_slots - 1, i = (uint32_t)s->keys[key].hash & mask;
    while (s->slots[i])
        i = (i + 1) & mask;
    s->slots[i] = key + 1;
}

/* Makes room for one more key. There are twice as many slots as keys, so a probe ends soon. */
static void grow_keys(struct seen *s)
{
    bool hashed = s->slots;
    s->cap = s->cap ? s->cap * 2 : FEW;
    struct seen_key *larger = arena_array(s->arena, s->cap, sizeof(*larger));
    if (s->n)
        memcpy(larger, s->keys, s->n * sizeof(*larger));
    s->keys = larger;
    if (s->cap == FEW)
        return;
    s->n_slots = s->cap * 2;
    s->slots = arena_array(s->arena, s->n_slots, sizeof(*s->slots));
    for (uint32_t i = 0; i < s->n; i++) {
        if (!hashed)
            s->keys[i].hash = hash_parts(s, s->keys[i].parts);
        put_slot(s, i);
    }
}

const struct seen_key *seen_put(struct seen *s, const struct json *const *parts, uint32_t place)
{
    uint64_t hash = s->slots ? hash_parts(s, parts) : 0;
    const struct seen_key *before = s->slots ? find_hashed(s, hash, parts) : seen_find(s, parts);
    if (before)
        return before;
    if (s->n == s->cap) {
        grow_keys(s);
        hash = s->slots ? hash_parts(s, parts) : 0;
    }
    const struct json **own = arena_array(s->arena, s->width, sizeof(*own));
    memcpy(own, parts, s->width * sizeof(*own));
    s->keys[s->n++] = (struct seen_key){ own, hash, place };
    if (s->slots)
        put_slot(s, s->n - 1);
    return NULL;
}

struct seen seen_list(struct arena *a, const struct json *list, const char *member)
{
    struct seen s = seen_new(a, 1);
    for (uint32_t i = 0; i < json_len(list); i++)
        seen_value(&s, member ? json_get(list->items[i], member) : list->items[i], i);
    return s;
}
