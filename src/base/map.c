/* Hash map: see map.h. The load factor stays at or below 3/4, so a probe always finds an empty
 * slot. The table never shrinks, because maps here stay near their peak size.
 *
 * Deletion keeps every run of slots contiguous (backward shift), so that a lookup can stop at the
 * first empty slot and tombstones never accumulate:
 *
 *     slot      3    4    5    6          delete B          3    4    5    6
 *     key      [A]  [B]  [C]  [ ]        ---------->       [A]  [C]  [ ]  [ ]
 *     home      3    3    4                                 3    4 */
#include "map.h"

#include "random.h"
#include "sum.h"

uint64_t map_hash(str key)
{
    static uint64_t seed;
    if (!seed)
        seed = random_seed() | 1;
    uint64_t hash = sum64(key, seed);
    return hash ? hash : 1;
}

void map_done(struct map *m)
{
    free(m->slots);
    *m = (struct map){ 0 };
}

/* The slot of the key, or the empty slot where it belongs. The table is never full. */
static struct map_slot *find_slot(const struct map *m, uint64_t hash, str key)
{
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct map_slot *s = &m->slots[i];
        if (!s->hash || (s->hash == hash && str_eq(s->key, key)))
            return s;
    }
}

static void grow_table(struct map *m)
{
    struct map bigger = { .cap = m->cap ? m->cap * 2 : 8, .n = m->n };
    bigger.slots = mem_zero(bigger.cap, sizeof(*bigger.slots));
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].hash)
            *find_slot(&bigger, m->slots[i].hash, m->slots[i].key) = m->slots[i];
    free(m->slots);
    *m = bigger;
}

void *map_get(const struct map *m, str key)
{
    return m->n ? find_slot(m, map_hash(key), key)->value : NULL;
}

void *map_put(struct map *m, str key, void *value)
{
    if ((m->n + 1) * 4 > m->cap * 3)
        grow_table(m);
    uint64_t hash = map_hash(key);
    struct map_slot *s = find_slot(m, hash, key);
    void *old = s->hash ? s->value : NULL;
    m->n += !s->hash;
    *s = (struct map_slot){ hash, key, value };
    return old;
}

/* Fills the hole with the next slot of the run whose home is at or before the hole, and repeats
 * with the hole that this leaves, until the run ends. */
static void close_hole(struct map *m, size_t hole)
{
    size_t mask = m->cap - 1;
    for (size_t i = (hole + 1) & mask; m->slots[i].hash; i = (i + 1) & mask) {
        size_t home = m->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct map_slot){ 0 };
}

void *map_del(struct map *m, str key)
{
    if (!m->n)
        return NULL;
    struct map_slot *s = find_slot(m, map_hash(key), key);
    if (!s->hash)
        return NULL;
    void *value = s->value;
    close_hole(m, (size_t)(s - m->slots));
    m->n--;
    return value;
}

struct map_slot *map_next(const struct map *m, struct map_slot *previous)
{
    size_t i = previous ? (size_t)(previous - m->slots) + 1 : 0;
    for (; i < m->cap; i++)
        if (m->slots[i].hash)
            return &m->slots[i];
    return NULL;
}
