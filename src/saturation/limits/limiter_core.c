/* See limiter_core.h. A replica needs all its accelerators, so grants are whole replicas; the rest
 * of a grant that is not enough for one more replica is not offered to other variants in the same
 * cycle. The reasons are quoted: WVA. */
#include "limiter_core.h"

#include "../objects/text_core.h"

#include <inttypes.h>

struct pool {
    str type;
    int64_t limit, used;
};

struct pools {
    struct pool *at;
    size_t n;
};

static struct pool *find_pool(struct pools *pools, str type)
{
    for (size_t i = 0; i < pools->n; i++)
        if (str_eq(pools->at[i].type, type))
            return &pools->at[i];
    return NULL;
}

static struct pool *find_or_add_pool(struct pools *pools, str type)
{
    struct pool *p = find_pool(pools, type);
    if (!p) {
        p = &pools->at[pools->n++];
        *p = (struct pool){ .type = type };
    }
    return p;
}

static struct pools count_stock(struct arena *a, const struct limiter_stock *stock, size_t stock_n,
                                const struct limiter_demand *demands, size_t n)
{
    struct pools pools = { arena_array(a, stock_n + n, sizeof(struct pool)), 0 };
    for (size_t i = 0; i < stock_n; i++)
        find_or_add_pool(&pools, sat_accelerator_name(stock[i].product))->limit += stock[i].count;
    for (size_t i = 0; i < n; i++)
        find_or_add_pool(&pools, demands[i].accelerator)->used +=
            demands[i].current * demands[i].gpus_per_replica;
    return pools;
}

/* Most saturated first, then cheapest, then in input order. */
static int by_need(const void *a, const void *b)
{
    const struct limiter_demand *x = *(const struct limiter_demand *const *)a,
                                *y = *(const struct limiter_demand *const *)b;
    if (x->spare != y->spare)
        return x->spare < y->spare ? -1 : 1;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void grant_gpus(struct pools *pools, const struct limiter_demand *d, struct limiter_grant *g)
{
    int64_t each = MAX(d->gpus_per_replica, (int64_t)1), wanted = d->target - d->current;
    struct pool *pool = find_or_add_pool(pools, d->accelerator);
    int64_t available = MAX(pool->limit - pool->used, (int64_t)0);
    int64_t taken = MIN(wanted * each, available), replicas = taken / each;
    pool->used += taken;
    g->gpus = replicas * each;
    g->target = d->current + replicas;
    g->limited = replicas < wanted;
}

static str describe_grant(struct arena *a, const struct limiter_demand *d,
                          const struct limiter_grant *g)
{
    if (g->target <= d->current)
        return arena_printf(a, "no scale-up (target=%" PRId64 ", current=%" PRId64 ")", g->target,
                            d->current);
    return arena_printf(a, "%sallocated %" PRId64 " GPUs for +%" PRId64 " replicas",
                        g->limited ? "limited: " : "", g->gpus, g->target - d->current);
}

struct limiter_grant *sat_limiter_apply(struct arena *a, const struct limiter_stock *stock,
                                        size_t stock_n, const struct limiter_demand *demands,
                                        size_t n)
{
    struct pools pools = count_stock(a, stock, stock_n, demands, n);
    struct limiter_grant *grants = arena_array(a, n, sizeof(*grants));
    const struct limiter_demand **growing = arena_array(a, n, sizeof(*growing));
    size_t growing_n = 0;
    for (size_t i = 0; i < n; i++) {
        grants[i].target = demands[i].target;
        if (demands[i].target > demands[i].current)
            growing[growing_n++] = &demands[i];
    }
    qsort(growing, growing_n, sizeof(*growing), by_need);
    for (size_t i = 0; i < growing_n; i++)
        grant_gpus(&pools, growing[i], &grants[growing[i] - demands]);
    for (size_t i = 0; i < n; i++)
        grants[i].reason = describe_grant(a, &demands[i], &grants[i]);
    return grants;
}
