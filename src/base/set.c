/* Hash set: see set.h. The table grows at a load factor of 7/8 instead of the 3/4 of map.c: probe
 * runs stay short because the hash is good, and saving memory is why this type exists. It shrinks
 * below 1/4, because a cache may lose most of its objects. How deletion works is explained in
 * map.c. */
#include "set.h"

void set_done(struct set *s)
{
    free(s->slots);
    *s = (struct set){ 0 };
}

struct set_node *set_find(const struct set *s, uint32_t hash,
                          bool (*same)(const struct set_node *member, const void *key),
                          const void *key)
{
    if (!s->cap)
        return NULL;
    for (size_t at = hash & (s->cap - 1); s->slots[at]; at = (at + 1) & (s->cap - 1))
        if (s->slots[at]->hash == hash && same(s->slots[at], key))
            return s->slots[at];
    return NULL;
}

static void place_member(struct set *s, struct set_node *member)
{
    size_t at = member->hash & (s->cap - 1);
    while (s->slots[at])
        at = (at + 1) & (s->cap - 1);
    s->slots[at] = member;
}

static void resize_table(struct set *s, size_t cap)
{
    struct set old = *s;
    s->slots = mem_zero(cap, sizeof(struct set_node *));
    s->cap = cap;
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i])
            place_member(s, old.slots[i]);
    free(old.slots);
}

void set_add(struct set *s, struct set_node *member)
{
    if ((s->n + 1) * 8 > s->cap * 7)
        resize_table(s, s->cap ? s->cap * 2 : 16);
    place_member(s, member);
    s->n++;
}

static size_t find_slot(const struct set *s, const struct set_node *member)
{
    if (!s->cap)
        return SIZE_MAX;
    for (size_t at = member->hash & (s->cap - 1); s->slots[at]; at = (at + 1) & (s->cap - 1))
        if (s->slots[at] == member)
            return at;
    return SIZE_MAX;
}

/* The same backward shift as in map.c, with the hash read from each member. */
bool set_remove(struct set *s, const struct set_node *member)
{
    size_t hole = find_slot(s, member), mask = s->cap - 1;
    if (hole == SIZE_MAX)
        return false;
    for (size_t at = (hole + 1) & mask; s->slots[at]; at = (at + 1) & mask) {
        size_t home = s->slots[at]->hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            s->slots[hole] = s->slots[at];
            hole = at;
        }
    }
    s->slots[hole] = NULL;
    s->n--;
    if (s->cap > 64 && s->n * 4 < s->cap)
        resize_table(s, s->cap / 2);
    return true;
}

void set_swap(struct set *s, const struct set_node *old, struct set_node *member)
{
    size_t at = find_slot(s, old);
    assert(at != SIZE_MAX && old->hash == member->hash);
    s->slots[at] = member;
}

struct set_node *set_next(const struct set *s, size_t *at)
{
    while (*at < s->cap)
        if (s->slots[(*at)++])
            return s->slots[*at - 1];
    return NULL;
}
