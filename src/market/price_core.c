/* Prices: see price_core.h. */
#include "price_core.h"

#include <math.h>

enum { PUBLISH_INTERVAL_S = 60 };

/* Relative excess of demand times the mean weight, as MBCAS computes it. */
static double shadow_price(int64_t capacity, int64_t demand, double weights, size_t n)
{
    if (demand <= capacity || n == 0)
        return 0;
    double mean = weights / (double)n;
    if (!(mean > 0))
        return 0;
    return capacity > 0 ? MIN((double)(demand - capacity) / (double)capacity * mean, PRICE_MAX)
                        : PRICE_MAX;
}

struct price price_of(int64_t capacity_milli, const struct bid *bids, size_t n,
                      const struct clearing *clearing, const int64_t *allocations)
{
    struct price p = { .lambda_per_core = clearing->lambda * 1000 };
    int64_t minimums = 0;
    double weights = 0;
    capacity_milli = MAX(capacity_milli, INT64_C(0));
    for (size_t i = 0; i < n; i++) {
        p.demand_milli += MAX(bids[i].demand_milli, bids[i].min_milli);
        p.rationed += allocations[i] < MAX(bids[i].max_milli, bids[i].min_milli);
        minimums += bids[i].min_milli;
        weights += bids[i].weight;
    }
    p.mode = minimums > capacity_milli         ? MARKET_OVERLOADED
             : p.demand_milli > capacity_milli ? MARKET_CONGESTED
                                               : MARKET_UNCONGESTED;
    if (p.mode == MARKET_OVERLOADED)
        p.lambda_per_core = INFINITY;
    p.shadow_price = shadow_price(capacity_milli, p.demand_milli, weights, n);
    return p;
}

bool price_should_publish(const struct price_published *published, const struct price *now,
                          int64_t now_s)
{
    double old = published->price, price = now->shadow_price;
    if (!published->is_set || published->mode != now->mode)
        return true;
    if (now_s - published->at_s < PUBLISH_INTERVAL_S)
        return false;
    return (old == 0) != (price == 0) || fabs(price - old) > 0.05 + 0.1 * old;
}
