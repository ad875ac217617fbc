/* See dra_core.h.
 *
 * A driver replaces the slices of its pool one by one, under a new generation. A generation of which slices are
 * missing does not list all devices, so the newest complete one counts: slices are sorted
 * by pool and falling generation, and the first run that is complete is taken. A device is in use if any claim has
 * it. Maps instead of searches, because a cluster has a slice per node and a claim per pod. */
#include "dra_core.h"

#include "../../base/map.h"

static const char driver[] = "gpu.nvidia.com";

/* ---- pools */

static int by_pool(const void *a, const void *b)
{
    const struct dra_slice *x = a, *y = b;
    int order = str_cmp(x->pool, y->pool);
    if (order)
        return order;
    return (x->generation < y->generation) - (x->generation > y->generation);
}

/* ---- devices */

/* "NVIDIA H100 80GB HBM3", spelled as in the label of a node, with dashes. Attributes of the driver's own domain may
 * be written with or without it. */
static str product_of(struct arena *a, const struct json *device)
{
    const struct json *attributes = json_get(device, "attributes");
    const struct json *found = json_get(attributes, "productName");
    found = found ? found : json_get(attributes, "gpu.nvidia.com/productName");
    str name = json_text(json_get(found, "string"));
    char *p = arena_alloc(a, name.n + 1);
    for (size_t i = 0; i < name.n; i++)
        p[i] = name.p[i] == ' ' ? '-' : name.p[i];
    p[name.n] = '\0';
    return (str){ p, name.n };
}

static str key_of(struct arena *a, str x, str y)
{
    return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(x), STR_ARG(y));
}

static void read_allocations(struct arena *a, const struct json *const *allocations, size_t n,
                             struct map *ret)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < json_len(allocations[i]); k++) {
            const struct json *x = json_item(allocations[i], k);
            if (str_eqc(json_text(json_get(x, "driver")), driver))
                map_put(ret,
                        key_of(a, json_text(json_get(x, "pool")), json_text(json_get(x, "device"))),
                        (void *)x);
        }
}

struct counting {
    struct arena *a;
    struct map allocated, by_key; /* of struct dra_item, by node and product */
    struct dra_item *items;
    size_t n;
};

static void count_slice(struct counting *c, const struct dra_slice *slice)
{
    for (size_t i = 0; i < json_len(slice->devices); i++) {
        const struct json *device = json_item(slice->devices, i);
        str product = product_of(c->a, device), name = json_text(json_get(device, "name"));
        str key = key_of(c->a, slice->node, product);
        struct dra_item *item = map_get(&c->by_key, key);
        if (!product.n || !slice->node.n)
            continue;
        if (!item) {
            item = &c->items[c->n++];
            *item = (struct dra_item){ .node = slice->node, .product = product };
            map_put(&c->by_key, key, item);
        }
        item->count++;
        item->used += map_get(&c->allocated, key_of(c->a, slice->pool, name)) != NULL;
    }
}

size_t dra_count(struct arena *a, struct dra_slice *slices, size_t slice_n,
                 const struct json *const *allocations, size_t allocation_n, struct dra_item **ret)
{
    struct counting c = { .a = a };
    size_t n = 0, devices = 0;
    for (size_t i = 0; i < slice_n; i++)
        if (str_eqc(slices[i].driver, driver)) {
            devices += json_len(slices[i].devices);
            slices[n++] = slices[i];
        }
    if (n)
        qsort(slices, n, sizeof(*slices), by_pool);
    c.items = *ret = arena_array(a, devices, sizeof(**ret));
    read_allocations(a, allocations, allocation_n, &c.allocated);
    const str *done = NULL; /* the pool of which a generation was counted */
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && by_pool(&slices[end], &slices[i]) == 0;)
            end++;
        if ((done && str_eq(*done, slices[i].pool)) || (int64_t)(end - i) < slices[i].slices)
            continue;
        done = &slices[i].pool;
        for (size_t k = i; k < end; k++)
            count_slice(&c, &slices[k]);
    }
    map_done(&c.allocated);
    map_done(&c.by_key);
    return c.n;
}

struct stock dra_merge(struct arena *a, struct stock stock, const struct stock_node *nodes,
                       size_t node_n, const struct dra_item *items, size_t n)
{
    struct stock all = { arena_array(a, stock.n + n, sizeof(*all.items)), stock.n };
    auto_map struct map by_node = { 0 }, first = { 0 };
    if (!n)
        return stock;
    if (stock.n)
        memcpy(all.items, stock.items, stock.n * sizeof(*all.items));
    for (size_t i = 0; i < node_n; i++)
        map_put(&by_node, nodes[i].name, (void *)&nodes[i]);
    for (size_t i = stock.n; i-- > 0;) /* a node's items follow each other */
        map_put(&first, all.items[i].node, &all.items[i]);
    for (size_t i = 0; i < n; i++) {
        const struct stock_node *at = map_get(&by_node, items[i].node);
        str type = sat_accelerator_name(items[i].product);
        struct stock_item *same = map_get(&first, items[i].node);
        while (same && same < &all.items[stock.n] && str_eq(same->node, items[i].node) &&
               !str_eq_nocase(same->type, type))
            same++;
        if (!at)
            continue; /* gone, or not to be used */
        if (same && same < &all.items[stock.n] && str_eq(same->node, items[i].node)) {
            same->count = MAX(same->count, items[i].count);
            same->used += items[i].used;
            continue;
        }
        all.items[all.n++] = (struct stock_item){ .node = at->name,
                                                  .product = items[i].product,
                                                  .type = type,
                                                  .vendor = "NVIDIA",
                                                  .count = items[i].count,
                                                  .used = items[i].used,
                                                  .at = at };
    }
    return all;
}

int64_t dra_count_requests(const struct json *requests)
{
    enum { REQUEST_MAX = 1024 };
    int64_t sum = 0;
    for (size_t i = 0; i < json_len(requests); i++) {
        const struct json *r = json_item(requests, i), *one = json_get(r, "exactly");
        one = one ? one : json_item(json_get(r, "firstAvailable"), 0);
        int64_t count = json_int(json_get(one, "count"), 1);
        sum += MAX((int64_t)1, MIN(count, (int64_t)REQUEST_MAX));
    }
    return sum;
}
