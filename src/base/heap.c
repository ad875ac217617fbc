/* Binary heap: see heap.h.
 *
 * Invariants: no node precedes its parent at index (i - 1) / 2, and nodes[i]->place == i + 1.
 * Sifting moves a hole instead of swapping, so each step writes one slot. */
#include "heap.h"

void heap_done(struct heap *h)
{
    for (size_t i = 0; i < h->n; i++)
        h->nodes[i]->place = 0;
    free(h->nodes);
    *h = (struct heap){ 0 };
}

static bool precedes(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static void set_node(struct heap *h, size_t i, struct heap_node *node)
{
    h->nodes[i] = node;
    node->place = i + 1;
}

static void sift_up(struct heap *h, size_t i, struct heap_node *node)
{
    for (; i > 0 && precedes(node, h->nodes[(i - 1) / 2]); i = (i - 1) / 2)
        set_node(h, i, h->nodes[(i - 1) / 2]);
    set_node(h, i, node);
}

static void sift_down(struct heap *h, size_t i, struct heap_node *node)
{
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && precedes(h->nodes[child + 1], h->nodes[child]))
            child++;
        if (!precedes(h->nodes[child], node))
            break;
        set_node(h, i, h->nodes[child]);
    }
    set_node(h, i, node);
}

/* Puts a node with a new key into the hole at index i, moving it in the one direction that its key
 * requires. */
static void place_node(struct heap *h, size_t i, struct heap_node *node)
{
    if (i > 0 && precedes(node, h->nodes[(i - 1) / 2]))
        sift_up(h, i, node);
    else
        sift_down(h, i, node);
}

void heap_put(struct heap *h, struct heap_node *node, int64_t key)
{
    node->key = key;
    node->order = ++h->counter;
    if (node->place) {
        place_node(h, node->place - 1, node);
        return;
    }
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 16;
        h->nodes = mem_grow(h->nodes, h->cap, sizeof(*h->nodes));
    }
    sift_up(h, h->n++, node);
}

void heap_del(struct heap *h, struct heap_node *node)
{
    if (!node->place)
        return;
    size_t hole = node->place - 1;
    node->place = 0;
    struct heap_node *last = h->nodes[--h->n];
    if (last != node)
        place_node(h, hole, last);
}
