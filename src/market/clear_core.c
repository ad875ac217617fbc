/* Exact integer water-filling in linear time.
 *
 * A bid is full when the level reaches its ratio cap/weight (cap: max − min). Finding the level is
 * a selection problem, not a sorting one: pick a pivot ratio, ask whether the water covers it, and
 * throw away the half of the bids that the answer decides. Sums of the decided halves are kept, so
 * the whole costs about three passes. All comparisons are products of integers (128 bits where they
 * need it): no rounding decides who gets what.
 *
 * The last few millicores, which integers cannot divide, go by largest remainder, found by
 * selection too. Zero weights are served after everyone else is full, equally. When the minimums
 * alone exceed capacity the same kernel runs with base 0, cap = min and weight = w·min: nobody is
 * above its minimum while others starve, and the sum still equals capacity. */
#include "clear_core.h"

#include "../base/random.h"

#include <math.h>

__extension__ typedef unsigned __int128 wide;

struct clear_item {
    union {
        struct {
            uint64_t cap;    /* millicores above the base that this bid can take */
            uint64_t weight; /* thousandths (overload: times min) */
        };
        wide rest; /* once the level is known: remainder of its share, for the last millicores */
    };
    uint32_t index; /* of the bid */
};

struct pool {
    struct clear_item *items;
    size_t n;
    uint64_t supply; /* millicores to hand out */
    int64_t *out;
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

static void swap(struct clear_item *a, struct clear_item *b)
{
    struct clear_item kept = *a;
    *a = *b;
    *b = kept;
}

static bool ratio_above(const struct clear_item *a, const struct clear_item *pivot)
{
    return (wide)a->cap * pivot->weight > (wide)pivot->cap * a->weight;
}

/* Puts the items whose ratio is above the pivot's first; returns how many, and the sums of the rest. */
static size_t partition(struct clear_item *items, size_t n, struct clear_item pivot, wide *ret_cap,
                        wide *ret_weight)
{
    size_t above = 0;
    *ret_cap = *ret_weight = 0;
    for (size_t i = 0; i < n; i++) {
        if (ratio_above(&items[i], &pivot)) {
            swap(&items[above++], &items[i]);
        } else {
            *ret_cap += items[i].cap;
            *ret_weight += items[i].weight;
        }
    }
    return above;
}

/* Reorders the items so that the unfilled ones come first. `weight` is the sum over all items.
 * Invariant: items[0 .. low) are unfilled for sure, items[high .. n) are full for sure and already
 * taken out of supply and weight; those between are undecided. */
static struct level find_level(struct clear_item *items, size_t n, uint64_t supply, wide weight)
{
    struct random r;
    random_init(&r, n, 1);
    size_t low = 0, high = n;
    while (low < high) {
        struct clear_item pivot = items[low + random_below(&r, (uint32_t)(high - low))];
        wide cap_below, weight_below;
        size_t above = partition(items + low, high - low, pivot, &cap_below, &weight_below);
        /* Is the pivot's ratio covered?  caps below + ratio * weights above <= supply */
        bool covered = cap_below <= supply && (wide)pivot.cap * (weight - weight_below) <=
                                                  (wide)(supply - cap_below) * pivot.weight;
        if (covered) {
            high = low + above;
            supply -= (uint64_t)cap_below;
            weight -= weight_below;
        } else { /* the pivot and all above it stay unfilled: move the equal ones up as well */
            size_t end = low + above;
            for (size_t i = end; i < high; i++)
                if (!ratio_above(&pivot, &items[i]))
                    swap(&items[end++], &items[i]);
            low = end;
        }
    }
    return (struct level){ supply, weight, low };
}

static bool rest_before(const struct clear_item *a, const struct clear_item *b)
{
    return a->rest != b->rest ? a->rest > b->rest : a->index < b->index;
}

/* Gives one more millicore to the `count` items with the largest remainders (quickselect). */
static void give_rest(struct clear_item *items, size_t n, size_t count, int64_t *out)
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

/* Hands supply out to the items; returns the level that was left (unfilled 0: everyone is full). */
static struct level pour(struct pool *p)
{
    wide weight = 0;
    for (size_t i = 0; i < p->n; i++)
        weight += p->items[i].weight;
    struct level level = find_level(p->items, p->n, p->supply, weight);
    for (size_t i = level.unfilled; i < p->n; i++)
        p->out[p->items[i].index] += (int64_t)p->items[i].cap;
    uint64_t given = 0;
    for (size_t i = 0; i < level.unfilled; i++) {
        struct clear_item *item = &p->items[i];
        wide share = (wide)level.supply * item->weight;
        uint64_t whole;
        if (share <= UINT64_MAX &&
            level.weight <= UINT64_MAX) { /* several times faster, and usual */
            whole = (uint64_t)share / (uint64_t)level.weight;
            item->rest = (uint64_t)share % (uint64_t)level.weight;
        } else {
            whole = (uint64_t)(share / level.weight);
            item->rest = share % level.weight;
        }
        p->out[item->index] += (int64_t)whole;
        given += whole;
    }
    if (level.unfilled)
        give_rest(p->items, level.unfilled, level.supply - given, p->out);
    return level;
}

static uint64_t bounded(int64_t milli)
{
    return milli < 0 ? 0 : (uint64_t)MIN(milli, CLEAR_MILLI_MAX);
}

static uint64_t thousandths(double weight)
{
    return weight > 0 ? (uint64_t)llround(fmin(weight, CLEAR_WEIGHT_MAX) * 1000) : 0;
}

static uint64_t room_above_min(const struct bid *b)
{
    uint64_t min = bounded(b->min_milli), max = bounded(b->max_milli);
    return max > min ? max - min : 0;
}

/* Gathers the bids with (or without) weight that can still take something. */
static void gather(struct pool *p, const struct bid *bids, size_t n, bool weighted)
{
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t weight = thousandths(bids[i].weight), cap = room_above_min(&bids[i]);
        if (cap && (weight > 0) == weighted)
            p->items[p->n++] = (struct clear_item){ .cap = cap,
                                                    .weight = weighted ? weight : 1,
                                                    .index = (uint32_t)i };
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
    for (size_t i = 0; i < n; i++)
        p->out[i] = (int64_t)bounded(bids[i].min_milli);
    gather(p, bids, n, true);
    struct level level = pour(p);
    if (level.unfilled)
        return lambda_of(level);
    p->supply = level.supply;
    gather(p, bids, n, false);
    pour(p);
    return 0;
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
    p->supply = level.supply; /* the weightless ones get what the others' minimums left */
    p->n = 0;
    for (size_t i = 0; i < n; i++)
        if (!thousandths(bids[i].weight) && bids[i].min_milli > 0)
            p->items[p->n++] = (struct clear_item){ .cap = bounded(bids[i].min_milli),
                                                    .weight = 1,
                                                    .index = (uint32_t)i };
    pour(p);
    return 0;
}

double market_price(int64_t capacity_milli, const struct bid *bids, size_t n)
{
    double demand = 0, weight = 0;
    for (size_t i = 0; i < n; i++) {
        demand += (double)bids[i].demand_milli;
        weight += bids[i].weight;
    }
    double capacity = (double)capacity_milli;
    return demand > capacity && weight > 0 ? (demand - capacity) / capacity * (weight / (double)n)
                                           : 0;
}

enum market_mode market_mode(int64_t capacity_milli, const struct bid *bids, size_t n)
{
    int64_t demand = 0, base = 0;
    for (size_t i = 0; i < n; i++) {
        demand += bids[i].demand_milli;
        base += bids[i].min_milli;
    }
    return demand <= capacity_milli ? MARKET_UNCONGESTED
           : base <= capacity_milli ? MARKET_CONGESTED
                                    : MARKET_OVERLOADED;
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
    uint64_t capacity = capacity_milli > 0 ? (uint64_t)capacity_milli : 0, base = 0;
    for (size_t i = 0; i < n; i++)
        base += bounded(bids[i].min_milli);
    struct clearing result = { .capped = base > capacity };
    struct pool pool = { scratch->items, 0, result.capped ? capacity : capacity - base, ret_milli };
    result.lambda = result.capped ? share_minimums(&pool, bids, n) : bargain(&pool, bids, n);
    for (size_t i = 0; i < n; i++) {
        result.total_milli += ret_milli[i];
        result.demand_milli += bids[i].demand_milli;
    }
    result.price = market_price(capacity_milli, bids, n);
    result.mode = market_mode(capacity_milli, bids, n);
    return result;
}
