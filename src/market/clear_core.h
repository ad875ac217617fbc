/* Clearing the market: who gets how much of a node's CPU.
 *
 * Weighted Nash bargaining: maximise the sum of w·ln(x − min) with min ≤ x ≤ max and the sum of x
 * within capacity. Its solution is water-filling: every bid gets min + w·t, capped at max, with one
 * level t for all. Here it is computed in integers, to the millicore: the sum is exactly
 * min(capacity, Σ max), the same on every machine, independent of the order of the bids but for
 * millicores that cannot be divided (they go to the largest remainder, then to the lower index). */
#ifndef FLYBALL_CLEAR_CORE_H
#define FLYBALL_CLEAR_CORE_H

#include "../base/base.h"

struct bid {
    int64_t demand_milli; /* what the pod would like: sets the congestion price only */
    int64_t min_milli;    /* what it must have: its disagreement point, >= 0 */
    int64_t max_milli;    /* what it can use; below min counts as min */
    double weight;        /* bargaining power, read in thousandths; 0: served last */
};

enum market_mode { MARKET_UNCONGESTED, MARKET_CONGESTED, MARKET_OVERLOADED, MARKET_MODE_N };

struct clearing {
    int64_t total_milli;  /* handed out */
    int64_t demand_milli; /* asked for */
    double price;  /* congestion: relative excess demand times mean weight; 0 when all fits */
    double lambda; /* the true shadow price, utility per millicore; INFINITY when nothing is left */
    enum market_mode mode;
    bool capped; /* the minimums alone exceed capacity: nobody gets more than its minimum */
    int passes;  /* over the bids that were not full, until the level was found */
};

/* The room `market_clear` works in; `{0}` is empty, kept between calls so that a steady state
 * allocates nothing. */
struct clear_scratch {
    struct clear_item *items; /* owned */
    size_t cap;
};

void clear_scratch_done(struct clear_scratch *scratch);

/* Fills ret_milli[i] for bids[i]. O(n). Larger amounts and weights count as these; together the
 * bounds keep every product within 128 bits. */
#define CLEAR_MILLI_MAX (INT64_C(1) << 41) /* two thousand million cores */
#define CLEAR_WEIGHT_MAX 100.0
#define CLEAR_BIDS_MAX 1000000
struct clearing market_clear(int64_t capacity_milli, const struct bid *bids, size_t n,
                             struct clear_scratch *scratch, int64_t *ret_milli);

/* The seed's congestion price of any set of bids. */
double market_price(int64_t capacity_milli, const struct bid *bids, size_t n);
enum market_mode market_mode(int64_t capacity_milli, const struct bid *bids, size_t n);
const char *market_mode_name(enum market_mode mode);

#endif
