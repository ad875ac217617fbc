/* The prices of a clearing and the one that is published.
 *
 * Two numbers, because they answer different questions. The shadow price is MBCAS' formula on
 * honest demand: how much is missing, relative to the node. Lambda is the dual of the clearing:
 * what one more core is worth to the pods that are rationed; a pod of weight 1 holds 1/lambda cores
 * above its guarantee. Without elastic bids and bids of weight 0, both are 0 exactly when no pod is
 * short, and the mode agrees with them.
 *
 * Every round has new numbers. PodAllocations carry the published price, which changes only when
 * it is news: writing all pods of a node in every round would cost more API calls than
 * all resizes together. */
#ifndef FLYBALL_PRICE_CORE_H
#define FLYBALL_PRICE_CORE_H

#include "clear_core.h"

#define PRICE_MAX 1e6 /* also written for infinity, which JSON lacks */

struct price {
    enum market_mode mode;
    double lambda_per_core; /* INFINITY: nothing is left to share, or overloaded */
    double shadow_price;    /* 0 .. PRICE_MAX */
    int64_t demand_milli;   /* honest */
    size_t rationed;        /* bids that got less than their maximum */
};

/* The prices of a clearing with these allocations. bid.demand_milli is the pod's honest demand:
 * before any response to the price, without the forecast; less than min counts as min. */
struct price price_of(int64_t capacity_milli, const struct bid *bids, size_t n,
                      const struct clearing *clearing, const int64_t *allocations);

struct price_published {
    double price;
    enum market_mode mode;
    int64_t at_s;  /* when it was published */
    int64_t round; /* in which round */
    bool is_set;   /* false: nothing was published yet */
};

/* Is the published price replaced by this one? */
bool price_should_publish(const struct price_published *published, const struct price *now,
                          int64_t now_s);

#endif
