/* Clearing the market: how a node's CPU is divided among the bids of its pods.
 *
 * Weighted Nash bargaining: maximize the sum of w·ln(x − min) with min ≤ x ≤ max and the sum of x
 * within capacity. The solution is water-filling: every bid gets min + w·t, capped at max, with one
 * level t for all. It is computed in integers, to the millicore. The sum is exactly
 * min(capacity, Σ max) and the same on every machine. The order of the bids matters only for the
 * millicores that cannot be divided: they go to the largest remainder, then to the lower index. */
#ifndef FLYBALL_CLEAR_CORE_H
#define FLYBALL_CLEAR_CORE_H

#include "../base/base.h"

struct bid {
    int64_t demand_milli; /* desired; affects only the congestion price */
    int64_t min_milli;    /* must have (the disagreement point); >= 0 */
    int64_t max_milli;    /* can use; a value below min counts as min */
    double weight;        /* bargaining power, rounded to thousandths; 0: served last */
};

enum market_mode { MARKET_UNCONGESTED, MARKET_CONGESTED, MARKET_OVERLOADED, MARKET_MODE_N };

struct clearing {
    int64_t total_milli;  /* allocated */
    int64_t demand_milli; /* sum of the bids' demand */
    double price;  /* congestion: relative excess demand times mean weight; 0 when all fits */
    double lambda; /* the true shadow price, utility per millicore; INFINITY when nothing is left */
    enum market_mode mode;
    bool capped; /* the minimums alone exceed capacity: no bid gets more than its minimum */
    int passes;  /* over the unfilled bids until the level was found */
};

/* Working memory of `market_clear`; `{0}` is empty. Keep it between calls: in a steady state
 * clearing allocates nothing. */
struct clear_scratch {
    struct clear_item *items; /* owned */
    size_t cap;
};

void clear_scratch_done(struct clear_scratch *scratch);

/* Sets ret_milli[i] for bids[i] in O(n). Amounts and weights above these maximums are clamped;
 * together the bounds keep every product within 128 bits. */
#define CLEAR_MILLI_MAX (INT64_C(1) << 41) /* two billion cores */
#define CLEAR_WEIGHT_MAX 100.0
#define CLEAR_BIDS_MAX 1000000
struct clearing market_clear(int64_t capacity_milli, const struct bid *bids, size_t n,
                             struct clear_scratch *scratch, int64_t *ret_milli);

/* The congestion price of a set of bids, by MBCAS' formula. */
double market_price(int64_t capacity_milli, const struct bid *bids, size_t n);
enum market_mode market_mode(int64_t capacity_milli, const struct bid *bids, size_t n);
const char *market_mode_name(enum market_mode mode);

#endif
