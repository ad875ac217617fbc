/* Exact integer water-filling in linear time.
 *
 * A bid is full when the level reaches its ratio cap/weight (cap: max − min). With everybody's weight
 * under the water the level is too low, never too high: whoever is full at that level is full for good
 * and is taken out, which raises it, until nobody is. Each pass shrinks what the last one raised the level by
 * (times the weight above it) at least as much as it shrinks the weight, so passes are few, about five, and
 * in the worst case bounded by the number of bits; they run over fewer bids each time and in order, which
 * is what makes them fast. All comparisons are products of integers in 128 bits: no rounding decides
 * who gets what.
 *
 * The last few millicores, which integers cannot divide, go by largest remainder, found by
 * buckets and selection. Zero weights are served after everyone else is full, equally. When the minimums
 * alone exceed capacity the same kernel runs with base 0, cap = min and weight = w·min: nobody is
 * above its minimum while others starve, and the sum still equals capacity. */
#include "clear_core.h"

#include "../base/random.h"

#include <math.h>

__extension__ typedef unsigned __int128 wide;

struct clear_item {
    uint64_t cap;    /* millicores above the base that this bid can take */
    uint64_t weight; /* thousandths (overload: times min) */
    uint32_t index;  /* of the bid */
};
/* Once the level is known both numbers make room for the remainder of the share. */

enum { BUCKETS = 1024 };

struct pool {
    struct clear_item *items;
    size_t n;
    uint64_t supply; /* millicores to hand out */
    int64_t *out;
    int passes; /* so far */
};

struct level {
    uint64_t supply;
    wide weight;     /* left for the bids that are not full: the level is supply/weight */
    size_t unfilled; /* how many those are: items[0 .. unfilled) */
};

void clear_scratch_done(struct clear_scratch *scratch)
{
    free(scratch->items);
    *scratch = (struct clear_scratch){ 0 };
}

static wide rest_of(const struct clear_item *item)
{
    return (wide)item->cap << 64 | item->weight;
}

static void set_rest(struct clear_item *item, wide rest)
{
    item->cap = (uint64_t)(rest >> 64);
    item->weight = (uint64_t)rest;
}

static void swap(struct clear_item *a, struct clear_item *b)
{
    struct clear_item kept = *a;
    *a = *b;
    *b = kept;
}

/* Takes out who is full at the present level and gives it its cap; the others stay in their order. */
static void take_full(struct pool *p, struct level *level)
{
    size_t kept = 0;
    uint64_t caps = 0;
    wide weights = 0;
    for (size_t i = 0; i < level->unfilled; i++) {
        struct clear_item item = p->items[i];
        bool full = item.cap * level->weight <= (wide)level->supply * item.weight;
        uint64_t mask = full ? UINT64_MAX : 0; /* no branch: it could not be foreseen */
        p->out[item.index] += (int64_t)(item.cap & mask);
        caps += item.cap & mask;
        weights += item.weight & mask;
        p->items[kept] = item;
        kept += !full;
    }
    level->supply -= caps;
    level->weight -= weights;
    level->unfilled = kept;
}

/* Gives their caps to those that are full; the others are items[0 .. unfilled) afterwards. */
static struct level find_level(struct pool *p)
{
    struct level level = { .supply = p->supply, .unfilled = p->n };
    for (size_t i = 0; i < p->n; i++)
        level.weight += p->items[i].weight;
    for (size_t before = SIZE_MAX; level.unfilled && level.unfilled < before;) {
        before = level.unfilled;
        take_full(p, &level);
        p->passes++;
    }
    return level;
}

static bool rest_before(const struct clear_item *a, const struct clear_item *b)
{
    wide x = rest_of(a), y = rest_of(b);
    return x != y ? x > y : a->index < b->index;
}

/* Gives one more millicore to the `count` items with the largest remainders (quickselect). */
static void give_largest(struct clear_item *items, size_t n, size_t count, int64_t *out)
{
    struct random r;
    random_init(&r, n, 2);
    while (count) {
        swap(&items[0], &items[random_below(&r, (uint32_t)n)]); /* the pivot */
        size_t before = 0;
        for (size_t i = 1; i < n; i++)
            if (rest_before(&items[i], &items[0]))
                swap(&items[++before], &items[i]);
        swap(&items[0], &items[before]);
        if (count <= before) {
            n = before;
            continue;
        }
        for (size_t i = 0; i <= before; i++)
            out[items[i].index]++;
        items += before + 1;
        n -= before + 1;
        count -= before + 1;
    }
}

/* A larger remainder is never in a lower bucket: every step of this keeps the order. */
static size_t bucket_of(const struct clear_item *item, double scale)
{
    double rest = (double)item->cap * 0x1p64 + (double)item->weight;
    return MIN((size_t)(rest * scale), (size_t)BUCKETS - 1);
}

/* The same for many: buckets tell for most of them, and only one bucket has to be looked into. */
static void give_rest(struct pool *p, const struct level *level, size_t count)
{
    size_t buckets[BUCKETS] = { 0 }, last = BUCKETS, inside = 0;
    double scale = (double)BUCKETS / (double)level->weight;
    if (!count)
        return;
    for (size_t i = 0; i < level->unfilled; i++)
        buckets[bucket_of(&p->items[i], scale)]++;
    for (size_t above = 0; above + buckets[--last] < count;) {
        above += buckets[last];
        buckets[last] = 0;
    }
    bool alike = true;
    for (size_t i = 0; i < level->unfilled; i++) {
        size_t bucket = bucket_of(&p->items[i], scale);
        p->out[p->items[i].index] += bucket > last;
        count -= bucket > last;
        if (bucket != last)
            continue;
        swap(&p->items[inside], &p->items[i]);
        alike &= rest_of(&p->items[inside++]) == rest_of(&p->items[0]);
    }
    if (alike) /* few different weights: the lower index decides */
        for (size_t i = 0; i < count; i++)
            p->out[p->items[i].index]++;
    else
        give_largest(p->items, inside, count, p->out);
}

/* supply * weight / all without a division, which takes longer than all the rest: guessed by the ratio
 * supply / all, then put right. */
static uint64_t share_of(const struct level *level, double ratio, struct clear_item *item)
{
    wide share = (wide)level->supply * item->weight;
    uint64_t whole = (uint64_t)((double)item->weight * ratio);
    wide product = whole * level->weight;
    for (; product > share; product -= level->weight)
        whole--;
    for (; share - product >= level->weight; product += level->weight)
        whole++;
    set_rest(item, share - product);
    return whole;
}

/* Hands supply out to the items; what is left of it stays in the pool. Returns the level at the end
 * (unfilled 0: everyone is full). */
static struct level pour(struct pool *p)
{
    struct level level = find_level(p);
    p->supply = level.unfilled ? 0 : level.supply;
    if (!level.unfilled)
        return level;
    double ratio = (double)level.supply / (double)level.weight;
    uint64_t given = 0;
    for (size_t i = 0; i < level.unfilled; i++) {
        struct clear_item *item = &p->items[i];
        uint64_t whole = share_of(&level, ratio, item);
        p->out[item->index] += (int64_t)whole;
        given += whole;
    }
    give_rest(p, &level, level.supply - given);
    return level;
}

static uint64_t bounded(int64_t milli)
{
    return milli < 0 ? 0 : (uint64_t)MIN(milli, CLEAR_MILLI_MAX);
}

static uint64_t thousandths(double weight)
{
    return weight > 0 ? (uint64_t)(MIN(weight, CLEAR_WEIGHT_MAX) * 1000 + 0.5) : 0;
}

static uint64_t room_above_min(const struct bid *b)
{
    uint64_t min = bounded(b->min_milli), max = bounded(b->max_milli);
    return max > min ? max - min : 0;
}

/* Everybody gets the minimum; those with weight that can take more are gathered. */
static void gather(struct pool *p, const struct bid *bids, size_t n)
{
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t weight = thousandths(bids[i].weight), cap = room_above_min(&bids[i]);
        p->out[i] = (int64_t)bounded(bids[i].min_milli);
        p->items[p->n] = (struct clear_item){ .cap = cap, .weight = weight, .index = (uint32_t)i };
        p->n += cap && weight;
    }
}

static void gather_weightless(struct pool *p, const struct bid *bids, size_t n)
{
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t weight = thousandths(bids[i].weight), cap = room_above_min(&bids[i]);
        if (cap && !weight)
            p->items[p->n++] = (struct clear_item){ .cap = cap, .weight = 1, .index = (uint32_t)i };
    }
}

static double lambda_of(struct level level)
{
    if (!level.unfilled)
        return 0;
    return level.supply ? (double)level.weight / 1000 / (double)level.supply : INFINITY;
}

static double bargain(struct pool *p, const struct bid *bids, size_t n)
{
    gather(p, bids, n);
    struct level level = pour(p);
    if (!level.unfilled && p->supply) {
        gather_weightless(p, bids, n);
        pour(p);
    }
    return lambda_of(level);
}

static double share_minimums(struct pool *p, const struct bid *bids, size_t n)
{
    bool all_zero = true;
    for (size_t i = 0; i < n && all_zero; i++)
        all_zero = thousandths(bids[i].weight) == 0;
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t min = bounded(bids[i].min_milli);
        uint64_t weight = (all_zero ? 1 : thousandths(bids[i].weight)) * min;
        p->out[i] = 0;
        if (weight)
            p->items[p->n++] =
                (struct clear_item){ .cap = min, .weight = weight, .index = (uint32_t)i };
    }
    struct level level = pour(p);
    if (level.unfilled || all_zero)
        return lambda_of(level);
    p->n = 0; /* the weightless ones get what the others' minimums left */
    for (size_t i = 0; i < n; i++)
        if (!thousandths(bids[i].weight) && bids[i].min_milli > 0)
            p->items[p->n++] = (struct clear_item){ .cap = bounded(bids[i].min_milli),
                                                    .weight = 1,
                                                    .index = (uint32_t)i };
    pour(p);
    return 0;
}

struct sums {
    double demand, weight;
    int64_t demand_milli, min_milli;
    uint64_t base; /* of the minimums as they count */
};

static struct sums sum_up(const struct bid *bids, size_t n)
{
    struct sums sums = { 0 };
    for (size_t i = 0; i < n; i++) {
        sums.demand += (double)bids[i].demand_milli;
        sums.weight += bids[i].weight;
        sums.demand_milli += bids[i].demand_milli;
        sums.min_milli += bids[i].min_milli;
        sums.base += bounded(bids[i].min_milli);
    }
    return sums;
}

static double price_of(int64_t capacity_milli, const struct sums *sums, size_t n)
{
    double capacity = (double)capacity_milli;
    return sums->demand > capacity && sums->weight > 0
               ? (sums->demand - capacity) / capacity * (sums->weight / (double)n)
               : 0;
}

static enum market_mode mode_of(int64_t capacity_milli, const struct sums *sums)
{
    return sums->demand_milli <= capacity_milli ? MARKET_UNCONGESTED
           : sums->min_milli <= capacity_milli  ? MARKET_CONGESTED
                                                : MARKET_OVERLOADED;
}

double market_price(int64_t capacity_milli, const struct bid *bids, size_t n)
{
    struct sums sums = sum_up(bids, n);
    return price_of(capacity_milli, &sums, n);
}

enum market_mode market_mode(int64_t capacity_milli, const struct bid *bids, size_t n)
{
    struct sums sums = sum_up(bids, n);
    return mode_of(capacity_milli, &sums);
}

const char *market_mode_name(enum market_mode mode)
{
    static const char *const names[MARKET_MODE_N] = { "uncongested", "congested", "overloaded" };
    return names[mode];
}

struct clearing market_clear(int64_t capacity_milli, const struct bid *bids, size_t n,
                             struct clear_scratch *scratch, int64_t *ret_milli)
{
    assert(n <= CLEAR_BIDS_MAX);
    if (scratch->cap < n) {
        scratch->items = mem_grow(scratch->items, n, sizeof(*scratch->items));
        scratch->cap = n;
    }
    uint64_t capacity = capacity_milli > 0 ? (uint64_t)capacity_milli : 0;
    struct sums sums = sum_up(bids, n);
    bool capped = sums.base > capacity;
    struct pool pool = { .items = scratch->items,
                         .supply = capped ? capacity : capacity - sums.base,
                         .out = ret_milli };
    double lambda = capped ? share_minimums(&pool, bids, n) : bargain(&pool, bids, n);
    return (struct clearing){
        .total_milli = (int64_t)(capacity - pool.supply),
        .demand_milli = sums.demand_milli,
        .price = price_of(capacity_milli, &sums, n),
        .lambda = lambda,
        .mode = mode_of(capacity_milli, &sums),
        .capped = capped,
        .passes = pool.passes,
    };
}
