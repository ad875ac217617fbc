/* Invariants of clearing on random markets, compared with a slow reference that sorts. */
#include "tap.h"

#include "market/clear_core.h"

#include "base/random.h"

__extension__ typedef unsigned __int128 wide;

enum { BIDS_MAX = 12, CROWD = 300 };

struct reference_item {
    uint64_t cap, weight, rest;
    size_t index;
};

static int by_ratio(const void *a, const void *b)
{
    const struct reference_item *x = a, *y = b;
    wide left = (wide)x->cap * y->weight, right = (wide)y->cap * x->weight;
    return (left > right) - (left < right);
}

static int by_rest(const void *a, const void *b)
{
    const struct reference_item *x = a, *y = b;
    if (x->rest != y->rest)
        return x->rest < y->rest ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

/* Sort by ratio and fill from the smallest: the textbook way. Weights are all positive here. */
static void fill(struct reference_item *items, size_t n, uint64_t supply, int64_t *out)
{
    uint64_t weight = 0;
    for (size_t i = 0; i < n; i++)
        weight += items[i].weight;
    qsort(items, n, sizeof(*items), by_ratio);
    size_t i = 0;
    for (; i < n && (wide)items[i].cap * weight <= (wide)supply * items[i].weight; i++) {
        out[items[i].index] += (int64_t)items[i].cap;
        supply -= items[i].cap;
        weight -= items[i].weight;
    }
    uint64_t given = 0;
    for (size_t k = i; k < n; k++) {
        wide share = (wide)supply * items[k].weight;
        out[items[k].index] += (int64_t)(uint64_t)(share / weight);
        given += (uint64_t)(share / weight);
        items[k].rest = (uint64_t)(share % weight);
    }
    qsort(items + i, n - i, sizeof(*items), by_rest);
    for (size_t k = i; given < supply && k < n; k++, given++)
        out[items[k].index]++;
}

static void reference(int64_t capacity, const struct bid *bids, size_t n, int64_t *out)
{
    struct reference_item items[CROWD];
    int64_t base = 0;
    for (size_t i = 0; i < n; i++)
        base += bids[i].min_milli;
    bool capped = base > capacity;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t weight = (uint64_t)llround(bids[i].weight * 1000),
                 min = (uint64_t)bids[i].min_milli;
        uint64_t max = (uint64_t)MAX(bids[i].max_milli, bids[i].min_milli);
        out[i] = capped ? 0 : bids[i].min_milli;
        struct reference_item item = { capped ? min : max - min, capped ? weight * min : weight, 0,
                                       i };
        if (item.cap)
            items[used++] = item;
    }
    fill(items, used, (uint64_t)(capped ? capacity : capacity - base), out);
}

static size_t random_market(struct random *r, struct bid *bids, int64_t *capacity)
{
    size_t n = 1 + random_below(r, BIDS_MAX);
    int64_t scale = random_below(r, 2) ? 20 : 5000;
    for (size_t i = 0; i < n; i++) {
        int64_t min = random_below(r, (uint32_t)scale);
        bids[i] = (struct bid){ .demand_milli = random_below(r, (uint32_t)scale),
                                .min_milli = min,
                                .max_milli = min + random_below(r, (uint32_t)scale) - scale / 8,
                                .weight = (1 + random_below(r, 3000)) / 1000.0 };
    }
    *capacity = random_below(r, (uint32_t)scale * (uint32_t)n * 3 / 2);
    return n;
}

static void equals_the_reference(void)
{
    struct random r;
    random_init(&r, 11, 1);
    struct clear_scratch scratch = { 0 };
    for (int round = 0; round < 1000000; round++) {
        struct bid bids[BIDS_MAX];
        int64_t capacity, got[BIDS_MAX], want[BIDS_MAX];
        size_t n = random_market(&r, bids, &capacity);
        market_clear(capacity, bids, n, &scratch, got);
        reference(capacity, bids, n, want);
        bool same = memcmp(got, want, n * sizeof(*got)) == 0;
        if (!same) {
            tap_note(__FILE__, __LINE__, "round %d: differs from the reference", round);
            break;
        }
    }
    clear_scratch_done(&scratch);
}

/* Ratios far apart, so that few bids fill at a time; few weights, so that remainders are equal. */
static size_t random_crowd(struct random *r, struct bid *bids, int64_t *capacity)
{
    size_t n = 20 + random_below(r, CROWD - 20);
    bool apart = random_below(r, 2), alike = random_below(r, 2), poor = random_below(r, 4) == 0;
    int64_t most = 0, base = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t cap = apart ? INT64_C(1) << (1 + i % 38) : 1 + random_below(r, 4000);
        int64_t min = random_below(r, 500);
        bids[i] = (struct bid){ .min_milli = min,
                                .max_milli = min + cap,
                                .weight = alike ? 0.8 + 0.2 * random_below(r, 3)
                                                : (1 + random_below(r, 100000)) / 1000.0 };
        most += bids[i].max_milli;
        base += min;
    }
    *capacity = poor ? base / 2 : base + (int64_t)(random_unit(r) * (double)(most - base));
    return n;
}

static void crowds_equal_the_reference(void)
{
    struct random r;
    random_init(&r, 14, 1);
    struct clear_scratch scratch = { 0 };
    for (int round = 0; round < 3000 && !tap_failures; round++) {
        struct bid bids[CROWD];
        int64_t capacity, got[CROWD], want[CROWD];
        size_t n = random_crowd(&r, bids, &capacity);
        market_clear(capacity, bids, n, &scratch, got);
        reference(capacity, bids, n, want);
        OK(memcmp(got, want, n * sizeof(*got)) == 0);
    }
    clear_scratch_done(&scratch);
}

/* The conditions of the optimum, up to the last millicore: no unfilled bid has a lower level
 * than another bid that got something. */
static void nobody_would_trade(void)
{
    struct random r;
    random_init(&r, 15, 1);
    struct clear_scratch scratch = { 0 };
    for (int round = 0; round < 100000 && !tap_failures; round++) {
        struct bid bids[BIDS_MAX];
        int64_t capacity, got[BIDS_MAX];
        size_t n = random_market(&r, bids, &capacity);
        if (market_clear(capacity, bids, n, &scratch, got).capped)
            continue;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                if (got[i] < bids[i].max_milli && got[j] > bids[j].min_milli)
                    OK((double)(got[j] - bids[j].min_milli - 1) * bids[i].weight <=
                       (double)(got[i] - bids[i].min_milli + 1) * bids[j].weight + 1e-6);
    }
    clear_scratch_done(&scratch);
}

/* The order of the bids moves no more than the millicores that cannot be divided. */
static void the_order_does_not_matter(void)
{
    struct random r;
    random_init(&r, 16, 1);
    struct clear_scratch scratch = { 0 };
    for (int round = 0; round < 50000 && !tap_failures; round++) {
        struct bid bids[BIDS_MAX], turned[BIDS_MAX];
        int64_t capacity, got[BIDS_MAX], other[BIDS_MAX];
        size_t n = random_market(&r, bids, &capacity), by = random_below(&r, (uint32_t)n);
        for (size_t i = 0; i < n; i++)
            turned[(i + by) % n] = bids[i];
        market_clear(capacity, bids, n, &scratch, got);
        market_clear(capacity, turned, n, &scratch, other);
        for (size_t i = 0; i < n; i++)
            OK(llabs(got[i] - other[(i + by) % n]) <= 1);
    }
    clear_scratch_done(&scratch);
}

static void sums_and_bounds_hold(void)
{
    struct random r;
    random_init(&r, 12, 1);
    struct clear_scratch scratch = { 0 };
    for (int round = 0; round < 50000 && !tap_failures; round++) {
        struct bid bids[BIDS_MAX];
        int64_t capacity, got[BIDS_MAX], most = 0, base = 0, sum = 0;
        size_t n = random_market(&r, bids, &capacity);
        struct clearing c = market_clear(capacity, bids, n, &scratch, got);
        for (size_t i = 0; i < n; i++) {
            int64_t max = MAX(bids[i].min_milli, bids[i].max_milli);
            OK(got[i] <= (c.capped ? bids[i].min_milli : max));
            OK(got[i] >= (c.capped ? 0 : bids[i].min_milli));
            most += max;
            base += bids[i].min_milli;
            sum += got[i];
        }
        EQ_INT(sum, c.total_milli);
        EQ_INT(sum, MIN(capacity, c.capped ? base : most));
    }
    clear_scratch_done(&scratch);
}

/* More weight never gives less. */
static void weight_is_power(void)
{
    struct random r;
    random_init(&r, 13, 1);
    struct clear_scratch scratch = { 0 };
    for (int round = 0; round < 50000 && !tap_failures; round++) {
        struct bid bids[BIDS_MAX];
        int64_t capacity, before[BIDS_MAX], after[BIDS_MAX];
        size_t n = random_market(&r, bids, &capacity);
        size_t who = random_below(&r, (uint32_t)n);
        market_clear(capacity, bids, n, &scratch, before);
        bids[who].weight += 0.5;
        market_clear(capacity, bids, n, &scratch, after);
        OK(after[who] >= before[who]);
    }
    clear_scratch_done(&scratch);
}

static void weightless_bids_are_served_last(void)
{
    struct clear_scratch scratch = { 0 };
    struct bid bids[] = { { 0, 100, 500, 0 }, { 0, 100, 300, 1 }, { 0, 100, 900, 0 } };
    int64_t got[3];
    market_clear(500, bids, 3, &scratch, got);
    OK(got[0] == 100 && got[1] == 300 && got[2] == 100);
    market_clear(1001, bids, 3, &scratch, got);
    OK(got[0] == 351 && got[1] == 300 && got[2] == 350);
    clear_scratch_done(&scratch);
}

/* Each pass removes the bids that are full at the level so far. */
static void passes_are_counted(void)
{
    struct clear_scratch scratch = { 0 };
    struct bid bids[] = { { 0, 0, 100, 1 }, { 0, 0, 400, 1 }, { 0, 0, 1000, 1 } };
    int64_t got[3];
    EQ_INT(market_clear(90, bids, 3, &scratch, got).passes, 1);   /* 30 each */
    EQ_INT(market_clear(600, bids, 3, &scratch, got).passes, 2);  /* 200: one is full at once */
    EQ_INT(market_clear(1000, bids, 3, &scratch, got).passes, 3); /* 333, then 450, then 500 */
    EQ_INT(market_clear(9000, bids, 3, &scratch, got).passes, 1);
    EQ_INT(market_clear(9000, bids, 0, &scratch, got).passes, 0);
    clear_scratch_done(&scratch);
}

static void odd_markets_are_answered(void)
{
    struct clear_scratch scratch = { 0 };
    int64_t got[2];
    struct clearing c = market_clear(1000, NULL, 0, &scratch, got);
    EQ_INT(c.total_milli, 0);
    struct bid bids[] = { { 10, -5, INT64_MAX, 1e300 }, { 10, 0, 0, NAN } };
    c = market_clear(-7, bids, 2, &scratch, got);
    EQ_INT(c.total_milli, 0);
    c = market_clear(INT64_MAX, bids, 2, &scratch, got);
    EQ_INT(got[0], CLEAR_MILLI_MAX);
    clear_scratch_done(&scratch);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(equals_the_reference),
                                        TAP(crowds_equal_the_reference),
                                        TAP(nobody_would_trade),
                                        TAP(the_order_does_not_matter),
                                        TAP(sums_and_bounds_hold),
                                        TAP(weight_is_power),
                                        TAP(weightless_bids_are_served_last),
                                        TAP(passes_are_counted),
                                        TAP(odd_markets_are_answered),
                                        { 0 } });
}
