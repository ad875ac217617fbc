#include "tap.h"

#include "base/heap.h"
#include "base/random.h"

static void leaves_in_order(void)
{
    enum { N = 500 };
    struct heap h = { 0 };
    struct heap_node nodes[N] = { 0 };
    struct random r;
    random_init(&r, 1, 1);
    for (int i = 0; i < N; i++)
        heap_put(&h, &nodes[i], random_below(&r, 100));
    for (int i = 0; i < N; i += 3)
        heap_put(&h, &nodes[i], random_below(&r, 100)); /* moves */
    for (int i = 0; i < N; i += 5)
        heap_del(&h, &nodes[i]);
    heap_del(&h, &nodes[0]); /* twice is harmless */
    EQ_INT(h.n, N - N / 5);
    int64_t last = INT64_MIN;
    uint64_t order = 0;
    for (struct heap_node *n; (n = heap_min(&h)); heap_del(&h, n)) {
        OK(n->key > last || (n->key == last && n->order > order));
        last = n->key;
        order = n->order;
    }
    heap_done(&h);
}

static void done_frees_the_nodes(void)
{
    struct heap h = { 0 };
    struct heap_node n = { 0 };
    heap_put(&h, &n, 5);
    heap_done(&h);
    EQ_INT(n.place, 0);
    OK(heap_min(&h) == NULL);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(leaves_in_order), TAP(done_frees_the_nodes), { 0 } });
}
