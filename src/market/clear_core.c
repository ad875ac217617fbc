/* Exact integer water-filling in linear time.
 *
 * The problem. A node has `capacity` millicores and n bids (min, max, weight). Weighted Nash
 * bargaining gives every bid its minimum plus a share of the rest in proportion to its weight,
 * but no more than its maximum. Picture one vessel per bid. Its width is the weight, its height
 * is cap/weight with cap = max − min, and all vessels are connected, so the water has the same
 * level t in all of them:
 *
 *               |     |          |           |
 *      t - - - -|~~~~~|- - - - - |~~~~~~~~~~~|- -
 *               |~~~~~|  +---+   |~~~~~~~~~~~|       B is full and gets its cap
 *               |~ A ~|  |~B~|   |~~~~ C ~~~~|       A and C are not and get weight · t
 *               +-----+--+---+---+-----------+
 *
 * The task is to find t, so that the shares add up to the supply, capacity − Σ min.
 *
 * The invariant. The sum of all allocations is exactly min(capacity, Σ max) in every case, and
 * no rounding decides which bid gets what: all comparisons are products of integers in 128 bits.
 *
 * How it is found. Assume that no bid is full. Then t = supply/weights is too low or right,
 * never too high, because a full bid would leave its surplus to the others. A bid that is full
 * at this level stays full at every higher one, so it gets its cap and is removed, which raises
 * t. Repeat until a pass removes nothing:
 *
 *      gather_weighted   items with room above their minimum and a weight > 0
 *        |
 *        v
 *      find_level        remove full items, raise t, repeat        --> full items get their cap
 *        |
 *        v
 *      share_of          each remaining item gets floor(weight · t) and keeps its remainder
 *        |
 *        v
 *      give_rest         the millicores lost to floor() go to the largest remainders
 *
 * There are usually about five passes, and in the worst case as many as the numbers have bits,
 * because a pass that raises t only a little removes a large part of the remaining weight.
 * `passes` is exported as a metric (mbcas_nash_iterations).
 *
 * Two special cases use the same kernel. Bids of weight 0 share what is left when all others are
 * full. If the minimums alone exceed capacity, clearing runs with base 0, cap = min and weight =
 * w·min: no bid is above its minimum while another starves, and the sum still equals capacity.
 *
 * What was rejected. Sorting by cap/weight is O(n log n). Finding the level by quickselect over
 * these ratios is linear, but took 56 ns per bid; passes over the remaining items in their
 * order, without a branch that depends on the data, take 24. Rounds of truncated floating-point
 * shares, as in MBCAS (market_compat_clear), leave capacity unused and exceed it under overload. A
 * 128-bit division per item would cost more than everything else, so share_of() estimates the
 * quotient with a double and corrects it.
 *
 * Memory: the items belong to the caller's `struct clear_scratch`, which grows as needed. */
#include "clear_core.h"

#include "../base/random.h"

#include <math.h>

__extension__ typedef unsigned __int128 wide;

struct clear_item {
    uint64_t cap;    /* millicores above the base that this bid can take */
    uint64_t weight; /* thousandths (overload: times min) */
    uint32_t index;  /* of the bid */
};
/* Once the level is known, cap and weight are no longer needed, and together they store the 128-bit
 * remainder of the share: see set_rest(). */

enum { BUCKETS = 1024 };

struct pool {
    struct clear_item *items;
    size_t n;
    uint64_t supply; /* millicores to allocate */
    int64_t *out;    /* by index of the bid; borrowed from the caller */
    int passes;      /* so far */
};

struct level {
    uint64_t supply;
    wide weight;     /* sum of the unfilled bids; the level is supply/weight */
    size_t unfilled; /* these are items[0 .. unfilled) */
};

void clear_scratch_done(struct clear_scratch *scratch)
{
    free(scratch->items);
    *scratch = (struct clear_scratch){ 0 };
}

static wide get_rest(const struct clear_item *item)
{
    return (wide)item->cap << 64 | item->weight;
}

static void set_rest(struct clear_item *item, wide rest)
{
    item->cap = (uint64_t)(rest >> 64);
    item->weight = (uint64_t)rest;
}

static void swap_items(struct clear_item *a, struct clear_item *b)
{
    struct clear_item kept = *a;
    *a = *b;
    *b = kept;
}

/* Removes the items that are full at the present level and gives them their cap; the others keep
 * their order. */
static void remove_full(struct pool *p, struct level *level)
{
    size_t kept = 0;
    uint64_t caps = 0;
    wide weights = 0;
    for (size_t i = 0; i < level->unfilled; i++) {
        struct clear_item item = p->items[i];
        bool full = item.cap * level->weight <= (wide)level->supply * item.weight;
        uint64_t mask = full ? UINT64_MAX : 0; /* no branch: it would be mispredicted */
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

/* Returns the final level. Full items have got their cap; the others are items[0 .. unfilled). */
static struct level find_level(struct pool *p)
{
    struct level level = { .supply = p->supply, .unfilled = p->n };
    for (size_t i = 0; i < p->n; i++)
        level.weight += p->items[i].weight;
    for (size_t before = SIZE_MAX; level.unfilled && level.unfilled < before;) {
        before = level.unfilled;
        remove_full(p, &level);
        p->passes++;
    }
    return level;
}

static bool has_larger_rest(const struct clear_item *a, const struct clear_item *b)
{
    wide x = get_rest(a), y = get_rest(b);
    return x != y ? x > y : a->index < b->index;
}

/* Gives one more millicore to each of the `count` items with the largest remainders
 * (quickselect). */
static void give_largest(struct clear_item *items, size_t n, size_t count, int64_t *out)
{
    struct random r;
    random_init(&r, n, 2);
    while (count) {
        swap_items(&items[0], &items[random_below(&r, (uint32_t)n)]); /* the pivot */
        size_t before = 0;
        for (size_t i = 1; i < n; i++)
            if (has_larger_rest(&items[i], &items[0]))
                swap_items(&items[++before], &items[i]);
        swap_items(&items[0], &items[before]);
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

/* Monotonic in spite of rounding: a larger remainder is never in a lower bucket. */
static size_t bucket_of(const struct clear_item *item, double scale)
{
    double rest = (double)item->cap * 0x1p64 + (double)item->weight;
    return MIN((size_t)(rest * scale), (size_t)BUCKETS - 1);
}

/* As give_largest(), for many items: a histogram of the remainders decides for most of them, and
 * only the items of one bucket have to be compared. */
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
        swap_items(&p->items[inside], &p->items[i]);
        alike &= get_rest(&p->items[inside++]) == get_rest(&p->items[0]);
    }
    if (alike) /* equal weights have equal remainders: the lower index wins */
        for (size_t i = 0; i < count; i++)
            p->out[p->items[i].index]++;
    else
        give_largest(p->items, inside, count, p->out);
}

/* Returns floor(supply · weight / all weights) and stores the remainder in the item. A 128-bit
 * division would take longer than the rest of the clearing, so the quotient is estimated with a
 * double and then corrected. */
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

/* Allocates the supply to the items; what they cannot take stays in the pool. Returns the final
 * level (unfilled 0: every item is full). */
static struct level fill_items(struct pool *p)
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

static uint64_t clamp_milli(int64_t milli)
{
    return milli < 0 ? 0 : (uint64_t)MIN(milli, CLEAR_MILLI_MAX);
}

static uint64_t weight_thousandths(double weight)
{
    return weight > 0 ? (uint64_t)(MIN(weight, CLEAR_WEIGHT_MAX) * 1000 + 0.5) : 0;
}

static uint64_t room_above_min(const struct bid *b)
{
    uint64_t min = clamp_milli(b->min_milli), max = clamp_milli(b->max_milli);
    return max > min ? max - min : 0;
}

/* Gives every bid its minimum and collects the bids with a weight that can take more. */
static void gather_weighted(struct pool *p, const struct bid *bids, size_t n)
{
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t weight = weight_thousandths(bids[i].weight), cap = room_above_min(&bids[i]);
        p->out[i] = (int64_t)clamp_milli(bids[i].min_milli);
        p->items[p->n] = (struct clear_item){ .cap = cap, .weight = weight, .index = (uint32_t)i };
        p->n += cap && weight;
    }
}

static void gather_weightless(struct pool *p, const struct bid *bids, size_t n)
{
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t weight = weight_thousandths(bids[i].weight), cap = room_above_min(&bids[i]);
        if (cap && !weight)
            p->items[p->n++] = (struct clear_item){ .cap = cap, .weight = 1, .index = (uint32_t)i };
    }
}

/* The shadow price: the marginal utility of a millicore, equal for all unfilled bids. */
static double level_lambda(struct level level)
{
    if (!level.unfilled)
        return 0;
    return level.supply ? (double)level.weight / 1000 / (double)level.supply : INFINITY;
}

/* The usual case: the minimums fit. Returns lambda. */
static double share_above_minimums(struct pool *p, const struct bid *bids, size_t n)
{
    gather_weighted(p, bids, n);
    struct level level = fill_items(p);
    if (!level.unfilled && p->supply) {
        gather_weightless(p, bids, n);
        fill_items(p);
    }
    return level_lambda(level);
}

/* Overload: the minimums do not fit, and each bid gets a part of its minimum. Returns lambda. */
static double share_minimums(struct pool *p, const struct bid *bids, size_t n)
{
    bool all_zero = true;
    for (size_t i = 0; i < n && all_zero; i++)
        all_zero = weight_thousandths(bids[i].weight) == 0;
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t min = clamp_milli(bids[i].min_milli);
        uint64_t weight = (all_zero ? 1 : weight_thousandths(bids[i].weight)) * min;
        p->out[i] = 0;
        if (weight)
            p->items[p->n++] =
                (struct clear_item){ .cap = min, .weight = weight, .index = (uint32_t)i };
    }
    struct level level = fill_items(p);
    if (level.unfilled || all_zero)
        return level_lambda(level);
    p->n = 0; /* bids without weight get what the minimums of the others left */
    for (size_t i = 0; i < n; i++)
        if (!weight_thousandths(bids[i].weight) && bids[i].min_milli > 0)
            p->items[p->n++] = (struct clear_item){ .cap = clamp_milli(bids[i].min_milli),
                                                    .weight = 1,
                                                    .index = (uint32_t)i };
    fill_items(p);
    return 0;
}

struct sums {
    double demand, weight;
    int64_t demand_milli, min_milli;
    uint64_t base; /* of the clamped minimums */
};

static struct sums sum_bids(const struct bid *bids, size_t n)
{
    struct sums sums = { 0 };
    for (size_t i = 0; i < n; i++) {
        sums.demand += (double)bids[i].demand_milli;
        sums.weight += bids[i].weight;
        sums.demand_milli += bids[i].demand_milli;
        sums.min_milli += bids[i].min_milli;
        sums.base += clamp_milli(bids[i].min_milli);
    }
    return sums;
}

static double congestion_price(int64_t capacity_milli, const struct sums *sums, size_t n)
{
    double capacity = (double)capacity_milli;
    return sums->demand > capacity && sums->weight > 0
               ? (sums->demand - capacity) / capacity * (sums->weight / (double)n)
               : 0;
}

static enum market_mode congestion_mode(int64_t capacity_milli, const struct sums *sums)
{
    return sums->demand_milli <= capacity_milli ? MARKET_UNCONGESTED
           : sums->min_milli <= capacity_milli  ? MARKET_CONGESTED
                                                : MARKET_OVERLOADED;
}

double market_price(int64_t capacity_milli, const struct bid *bids, size_t n)
{
    struct sums sums = sum_bids(bids, n);
    return congestion_price(capacity_milli, &sums, n);
}

enum market_mode market_mode(int64_t capacity_milli, const struct bid *bids, size_t n)
{
    struct sums sums = sum_bids(bids, n);
    return congestion_mode(capacity_milli, &sums);
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
    struct sums sums = sum_bids(bids, n);
    bool capped = sums.base > capacity;
    struct pool pool = { .items = scratch->items,
                         .supply = capped ? capacity : capacity - sums.base,
                         .out = ret_milli };
    double lambda = capped ? share_minimums(&pool, bids, n) : share_above_minimums(&pool, bids, n);
    return (struct clearing){
        .total_milli = (int64_t)(capacity - pool.supply),
        .demand_milli = sums.demand_milli,
        .price = congestion_price(capacity_milli, &sums, n),
        .lambda = lambda,
        .mode = congestion_mode(capacity_milli, &sums),
        .capped = capped,
        .passes = pool.passes,
    };
}
