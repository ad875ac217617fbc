/* Intrusive binary min-heap with a 64-bit key, for timers and delayed work. A node is embedded in
 * its owner, knows its index, and can be moved or removed in O(log n). `{0}` is an empty heap. */
#ifndef FLYBALL_HEAP_H
#define FLYBALL_HEAP_H

#include "base.h"

struct heap_node {
    int64_t key;
    uint64_t order; /* breaks ties first in, first out: virtual time must be deterministic */
    size_t place;   /* 1-based index; 0: not in a heap */
};

struct heap {
    struct heap_node **nodes; /* owned array of borrowed nodes */
    size_t n, cap;
    uint64_t counter;
};

void heap_done(struct heap *h);
void heap_put(struct heap *h, struct heap_node *node, int64_t key); /* inserts or moves */
void heap_del(struct heap *h, struct heap_node *node); /* no effect if not in the heap */

static inline struct heap_node *heap_min(const struct heap *h)
{
    return h->n ? h->nodes[0] : NULL;
}

#endif
