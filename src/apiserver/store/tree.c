/* The ordered set of current objects: a sorted array cut into chunks; see tree.h.
 *
 *     chunks   [ * | * | * ]                 searched by the first key of each chunk
 *                |   |   +-> [ k7 k8 ]
 *                |   +-----> [ k4 k5 k6 ]    up to CHUNK_MAX references, searched by key
 *                +---------> [ k1 k2 k3 ]
 *
 * A full chunk is split in half; an empty one is freed, so each chunk has a first key. Neighbors are not merged,
 * because a namespace that shrank usually grows again. */
#include "tree.h"

enum { CHUNK_MAX = 256 };

struct tree_chunk {
    uint32_t n;
    struct object *at[CHUNK_MAX];
};

void tree_done(struct tree *t)
{
    for (size_t i = 0; i < t->n_chunks; i++) {
        for (uint32_t j = 0; j < t->chunks[i]->n; j++)
            object_unref(t->chunks[i]->at[j]);
        free(t->chunks[i]);
    }
    free(t->chunks);
    *t = (struct tree){ 0 };
}

/* The chunk that holds the key or would: the last one whose first key is not greater. */
static size_t find_chunk(const struct tree *t, str key)
{
    size_t low = 0, high = t->n_chunks;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(object_key(t->chunks[middle]->at[0]), key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The position of the key, or where it would be inserted. */
static size_t find_in_chunk(const struct tree_chunk *c, str key, bool *ret_found)
{
    size_t low = 0, high = c->n;
    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(object_key(c->at[middle]), key);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct object *tree_get(const struct tree *t, str key)
{
    if (!t->n)
        return NULL;
    bool found;
    const struct tree_chunk *c = t->chunks[find_chunk(t, key)];
    size_t at = find_in_chunk(c, key, &found);
    return found ? c->at[at] : NULL;
}

static void add_chunk(struct tree *t, size_t at, struct tree_chunk *c)
{
    if (t->n_chunks == t->cap) {
        t->cap = MAX(t->cap * 2, (size_t)8);
        t->chunks = mem_grow(t->chunks, t->cap, sizeof(*t->chunks));
    }
    memmove(t->chunks + at + 1, t->chunks + at, (t->n_chunks - at) * sizeof(*t->chunks));
    t->chunks[at] = c;
    t->n_chunks++;
}

static void split_chunk(struct tree *t, size_t index)
{
    struct tree_chunk *left = t->chunks[index], *right = mem_alloc(sizeof(*right));
    uint32_t half = left->n / 2;
    right->n = left->n - half;
    left->n = half;
    memcpy(right->at, left->at + half, right->n * sizeof(*right->at));
    add_chunk(t, index + 1, right);
}

/* A full chunk is split before the insertion, so there is always room. */
struct object *tree_put(struct tree *t, struct object *o)
{
    if (!t->n_chunks) {
        struct tree_chunk *first = mem_alloc(sizeof(*first));
        first->n = 0;
        add_chunk(t, 0, first);
    }
    bool found;
    size_t index = t->n ? find_chunk(t, object_key(o)) : 0;
    size_t at = find_in_chunk(t->chunks[index], object_key(o), &found);
    if (found) {
        struct object *old = t->chunks[index]->at[at];
        t->chunks[index]->at[at] = o;
        return old;
    }
    if (t->chunks[index]->n == CHUNK_MAX) {
        split_chunk(t, index);
        if (at > t->chunks[index]->n) {
            at -= t->chunks[index]->n;
            index++;
        }
    }
    struct tree_chunk *c = t->chunks[index];
    memmove(c->at + at + 1, c->at + at, (c->n - at) * sizeof(*c->at));
    c->at[at] = o;
    c->n++;
    t->n++;
    return NULL;
}

struct object *tree_del(struct tree *t, str key)
{
    if (!t->n)
        return NULL;
    bool found;
    size_t index = find_chunk(t, key);
    struct tree_chunk *c = t->chunks[index];
    size_t at = find_in_chunk(c, key, &found);
    if (!found)
        return NULL;
    struct object *old = c->at[at];
    memmove(c->at + at, c->at + at + 1, (c->n - at - 1) * sizeof(*c->at));
    c->n--;
    t->n--;
    if (!c->n) {
        free(c);
        t->n_chunks--;
        memmove(t->chunks + index, t->chunks + index + 1,
                (t->n_chunks - index) * sizeof(*t->chunks));
    }
    return old;
}

struct tree_cursor tree_seek(const struct tree *t, str key)
{
    struct tree_cursor c = { .tree = t };
    if (t->n) {
        bool found;
        c.chunk = find_chunk(t, key);
        c.at = find_in_chunk(t->chunks[c.chunk], key, &found);
    }
    return c;
}

struct object *tree_next(struct tree_cursor *c)
{
    while (c->chunk < c->tree->n_chunks) {
        const struct tree_chunk *chunk = c->tree->chunks[c->chunk];
        if (c->at < chunk->n)
            return chunk->at[c->at++];
        c->chunk++;
        c->at = 0;
    }
    return NULL;
}

struct object *tree_next_in(struct tree_cursor *c, str prefix)
{
    struct object *o = tree_next(c);
    return o && str_starts(object_key(o), prefix) ? o : NULL;
}

size_t tree_count(const struct tree *t, str from, str prefix)
{
    struct tree_cursor c = tree_seek(t, from);
    size_t n = 0;
    while (tree_next_in(&c, prefix))
        n++;
    return n;
}
