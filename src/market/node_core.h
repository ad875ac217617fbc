/* What a node's market knows between rounds, and the parts of a slow round that concern the node as
 * a whole: guarantees, overcommit, lent baselines, shares, prices and requests. round_core.h turns
 * them into limits.
 *
 * Two ways to use CPU that its owner leaves idle. With limitOvercommit above 1, limits may add up
 * to kappa times the capacity, while requests carry the shares and stay within it. With
 * limitOvercommit 1, limits never exceed the capacity, except for baselines of pods that sleep:
 * what the sleepers together have not used at their worst moment of the last rounds is lent. */
#ifndef FLYBALL_NODE_CORE_H
#define FLYBALL_NODE_CORE_H

#include "floor_core.h"
#include "market_pod_core.h"
#include "overcommit_core.h"
#include "price_core.h"

enum { MARKET_NODE_WINDOWS = 20 }; /* slow windows for which the sleepers' peak is kept */

struct market_node { /* `{0}`: just started */
    int64_t round;   /* number of slow rounds */

    /* overcommit */
    struct overcommit_pressure pressure;
    struct overcommit_kappa kappa; /* of the last round */
    int64_t fell_ns;               /* monotonic: the last fall of kappa; 0: never */
    double utilization;            /* of the node's cores, over a minute */
    int64_t wanted_milli;          /* sum of the bids' maximums in the last round */
    bool sees_pressure;            /* a pod reported pressure since the last round */
    size_t worst;                  /* the pod that waited most in the last window; n: none */

    /* lent baselines */
    int64_t asleep_milli; /* highest usage of the sleepers in this window */
    int64_t asleep_peaks[MARKET_NODE_WINDOWS];
    uint8_t asleep_at, asleep_n;
    int64_t lent_milli;

    /* the last round */
    struct floor_result floor;
    struct price price;
    struct price_published published;
    bool published_now; /* the last round replaced it */
    int64_t capacity_milli, guaranteed_milli, limits_milli, requests_milli;
};

struct round {
    int64_t capacity_milli;
    struct market_pod **pods; /* borrowed, in any order */
    size_t n;
    int64_t now_ns;
    struct clear_scratch *scratch;
    struct arena *arena;       /* scratch for the duration of the call */
    struct market_node *node;  /* changed by the round */
    int64_t allocatable_milli; /* for the requests of these pods; 0: the capacity */
    int64_t reserved_milli;    /* of what limits may add up to: growth that is under way */
};

/* Called once a second, after the pods were sampled: usage of the node and of its sleepers. */
void market_node_sample(struct market_node *node, struct market_pod *const *pods, size_t n,
                        int64_t cores_milli, double seconds);

/* Sets guaranteed_milli and problems of the pods. */
void market_node_guarantee(const struct round *r, const struct market_pod_rules *rules);

/* Returns what the limits of all pods may be together: kappa times the capacity, or the capacity
 * and what is lent. */
int64_t market_node_limits_capacity(const struct round *r, const struct market_pod_rules *rules);

/* Sets share_milli of the pods; 0 without overcommit. */
void market_node_share(const struct round *r, const struct market_pod_rules *rules);

/* The prices of honest demand, at the capacity; publishes them if they are news. */
struct clearing market_node_price(const struct round *r, const struct market_pod_rules *rules);

/* The requests that go with these limits. `raised_only`: all others stay (the fast round). */
void market_node_requests(const struct round *r, const struct market_pod_rules *rules,
                          const int64_t *limits, bool raised_only, int64_t *ret_requests);

#endif
