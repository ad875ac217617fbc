/* A round of one node's market: from windows that closed to limits that are worth writing.
 *
 * The problem. market_clear() divides a node exactly, but its allocations change a little in
 * every round. Each change of a limit costs a write to the API server, a resize by the kubelet
 * and a reaction of the application. So limits may differ from allocations as long as that costs
 * no other pod anything it needs, and this file decides when it does.
 *
 *      counters                     market_pod_sample(), once a second
 *         |
 *         v
 *      market_pod_close_window()    need of the window, reward for the agent
 *         |
 *         v
 *      node_core.c                  guarantees, kappa, shares, the price of honest demand
 *         |
 *         v
 *      choose_supply()              do the minimums of all pods fit? with or without grace?
 *         |
 *         v
 *      clear_bids()                 bids at that price -> market_clear() -> x[i]
 *         |
 *         v
 *      market_pod_next_limit()      keep the limit, or follow x[i]: decided for each pod alone
 *         |
 *         v
 *      forgo_headroom()    \
 *      reclaim_slack()      >       make the sum fit, at the least cost: in this order
 *      reduce_growth()     /
 *         |
 *         v
 *      skip_small_growth()          growth below minChangePercent is not written
 *         |
 *         v
 *      keep_shares()                with overcommit: no limit below the pod's share
 *
 * The invariant. The limits returned add up to at most `limits_capacity` (the capacity, with
 * overcommit kappa times the capacity), except for limits that are in force already and whose
 * reduction is not worth a change, and for pods below their share. Decided one by one, they do not: a
 * pod whose limit is above its allocation keeps the difference (its slack) while another grows.
 * Three steps restore the sum, each only as far as needed:
 *
 *   1. Growing pods do without headroom. This disturbs no other pod.
 *   2. Pods with slack shrink to their allocation, largest slack first, so that few pods are
 *      changed. A pod that keeps all it needs is cut for minChangePercent; a pod
 *      that lacks something only for twice as much, because on a node where every pod lacks
 *      something small corrections would never end. A pod that was raised while it was throttled
 *      is not cut for a minute: it was, and the same CPU went back and forth.
 *   3. What is still missing is taken from the growth itself.
 *
 * No step goes below a pod's guarantee or its share: it is entitled to them even if others must
 * shrink.
 *
 * What was rejected. Following every allocation: MBCAS' arithmetic changes a pod 274 times per
 * hour on the node of `./dev bench market`, this one 10.6 times, and serves 99.5 % of the wanted
 * CPU instead of 80 %. Grace for starting pods without regard to others: an idle pod with a
 * large limit kept it while others starved, and limits exceeded the node, which is why
 * choose_supply() checks first whether the grace fits.
 *
 * Everything here is pure. Scratch memory comes from the caller's arena; pods are borrowed and
 * change only in their own state (windows, agents, last bid). */
#include "round_core.h"

#include "limit_core.h"

struct settlement { /* of the limits */
    const struct round *r;
    const struct market_pod_rules *rules;
    int64_t capacity; /* of all limits together */
    int64_t *x;       /* allocations */
    int64_t *limits;
};

/* What all pods must have together, at this degree of supply. */
static int64_t sum_of_floors(const struct settlement *s, enum market_supply supply)
{
    int64_t sum = 0;
    for (size_t i = 0; i < s->r->n; i++)
        sum += market_pod_floor(s->r->pods[i], s->rules, supply, s->r->now_ns);
    return sum;
}

/* Grace for pods that start or were just boosted is granted only if every other pod still gets
 * what it needs. */
static enum market_supply choose_supply(const struct settlement *s)
{
    if (sum_of_floors(s, MARKET_SUPPLY_AMPLE) <= s->capacity)
        return MARKET_SUPPLY_AMPLE;
    return sum_of_floors(s, MARKET_SUPPLY_TIGHT) <= s->capacity ? MARKET_SUPPLY_TIGHT
                                                                : MARKET_SUPPLY_SCARCE;
}

/* Lets the agents bid at this price and divides what limits may add up to. Returns the sum of the
 * bids' maximums. */
static int64_t clear_bids(const struct settlement *s, double price)
{
    const struct round *r = s->r;
    struct bid *bids = arena_array(r->arena, r->n, sizeof(*bids));
    enum market_supply supply = choose_supply(s);
    int64_t wanted = 0;
    for (size_t i = 0; i < r->n; i++) {
        bids[i] = market_pod_bid(r->pods[i], s->rules, price, supply, r->now_ns);
        wanted += bids[i].max_milli;
    }
    market_clear(s->capacity, bids, r->n, r->scratch, s->x);
    return wanted;
}

/* What no step takes from a pod: its guarantee, and with overcommit its share. The limit is one
 * above the share, because the request is the share and must stay below the limit. */
static int64_t entitlement(const struct market_pod *pod)
{
    int64_t share = pod->share_milli > 0 ? (int64_t)pod->share_milli + 1 : 0;
    return MAX(share, (int64_t)pod->guaranteed_milli);
}

struct slack {
    size_t pod;
    int64_t milli;
};

static int compare_slack(const void *a, const void *b)
{
    const struct slack *x = a, *y = b;
    if (x->milli != y->milli)
        return x->milli < y->milli ? 1 : -1;
    return x->pod < y->pod ? -1 : 1;
}

/* Cuts limits to their allocation until `excess` is gone, largest slack first, and skips cuts
 * that are not worth a change (step 2 above). Returns the millicores saved. */
static int64_t reclaim_slack(const struct settlement *s, int64_t excess)
{
    const struct round *r = s->r;
    struct slack *slack = arena_array(r->arena, r->n, sizeof(*slack));
    int64_t saved = 0;
    if (excess <= 0)
        return 0;
    for (size_t i = 0; i < r->n; i++)
        slack[i] = (struct slack){ i, s->limits[i] - MAX(s->x[i], entitlement(r->pods[i])) };
    qsort(slack, r->n, sizeof(*slack), compare_slack);
    for (size_t k = 0; k < r->n && saved < excess; k++) {
        size_t i = slack[k].pod;
        int64_t cut = s->limits[i] - slack[k].milli;
        double threshold = cut >= market_pod_need(r->pods[i]) ? 1 : 2;
        if (slack[k].milli <= 0 || r->now_ns < r->pods[i]->kept_until_ns ||
            !limit_differs(s->limits[i], cut, threshold * s->rules->min_change_percent))
            continue;
        s->limits[i] = cut;
        saved += slack[k].milli;
    }
    return saved;
}

/* Takes the remaining excess from the growth (step 3). */
static void reduce_growth(const struct settlement *s, int64_t excess)
{
    for (size_t i = 0; i < s->r->n && excess > 0; i++) {
        const struct market_pod *pod = s->r->pods[i];
        int64_t least = MAX((int64_t)pod->limit_milli, entitlement(pod));
        int64_t growth = s->limits[i] - least, cut = MIN(growth, excess);
        if (growth <= 0)
            continue;
        s->limits[i] -= cut;
        excess -= cut;
    }
}

/* Cuts growing pods to what they need or are entitled to (step 1). Returns the millicores saved. */
static int64_t forgo_headroom(const struct settlement *s, int64_t excess)
{
    int64_t saved = 0;
    for (size_t i = 0; i < s->r->n && saved < excess; i++) {
        const struct market_pod *pod = s->r->pods[i];
        int64_t entitled = MAX((int64_t)pod->limit_milli, entitlement(pod));
        int64_t least = MAX(entitled, market_pod_need(pod));
        if (s->limits[i] <= least)
            continue;
        int64_t cut = MIN(s->limits[i] - least, excess - saved);
        s->limits[i] -= cut;
        saved += cut;
    }
    return saved;
}

/* Growth below min_growth_percent is worth a resize only for a pod below its guarantee. */
static void skip_small_growth(const struct settlement *s)
{
    for (size_t i = 0; i < s->r->n; i++) {
        const struct market_pod *pod = s->r->pods[i];
        bool lacks = pod->limit_milli < pod->guaranteed_milli;
        if (s->limits[i] > pod->limit_milli && !lacks &&
            !limit_differs(pod->limit_milli, s->limits[i], s->rules->min_growth_percent))
            s->limits[i] = pod->limit_milli;
    }
}

/* With overcommit, the share holds even if limits then exceed what they may add up to: the request
 * carries the share, and a limit below it would make the request worthless. A limit that is less
 * than a tenth below can wait. A Guaranteed pod has its share as limit and no part in overcommit. */
static void keep_shares(const struct settlement *s)
{
    for (size_t i = 0; i < s->r->n; i++) {
        const struct market_pod *pod = s->r->pods[i];
        int64_t least = (int64_t)pod->share_milli + 1;
        if (pod->share_milli > 0 && s->limits[i] < least &&
            (10 * s->limits[i] < 9 * least || s->limits[i] != pod->limit_milli))
            s->limits[i] = MIN(least, market_pod_limit_max(pod, s->rules));
    }
}

/* Decides the limits of all pods and makes their sum fit. */
static void settle_limits(const struct settlement *s)
{
    int64_t total = 0;
    for (size_t i = 0; i < s->r->n; i++) {
        s->limits[i] = market_pod_next_limit(s->r->pods[i], s->rules, s->x[i], s->r->now_ns);
        total += s->limits[i];
    }
    total -= forgo_headroom(s, total - s->capacity);
    total -= reclaim_slack(s, total - s->capacity);
    reduce_growth(s, total - s->capacity);
    skip_small_growth(s);
    keep_shares(s);
}

struct clearing market_slow_round(const struct round *r, const struct market_pod_rules *rules,
                                  int64_t *ret_limits, int64_t *ret_requests)
{
    struct settlement s = { r, rules, r->capacity_milli, arena_array(r->arena, r->n, sizeof(*s.x)),
                            ret_limits };
    for (size_t i = 0; i < r->n; i++)
        market_pod_close_window(r->pods[i], rules, r->now_ns);
    market_node_guarantee(r, rules);
    s.capacity = market_node_limits_capacity(r, rules) - r->reserved_milli;
    s.capacity = MAX(s.capacity, INT64_C(0));
    market_node_share(r, rules);
    struct clearing clearing = market_node_price(r, rules);
    int64_t wanted = clear_bids(&s, clearing.price), total = 0;
    bool stuck = r->node->floor.below_kernel_minimum; /* no quota can be that low */
    if (stuck)
        for (size_t i = 0; i < r->n; i++)
            ret_limits[i] = r->pods[i]->limit_milli;
    else
        settle_limits(&s);
    market_node_requests(r, rules, ret_limits, false, ret_requests);
    for (size_t i = 0; i < r->n; i++) {
        if (r->pods[i]->guaranteed_qos)
            ret_limits[i] = ret_requests[i]; /* its share; it has no part in overcommit */
        total += ret_limits[i];
    }
    r->node->wanted_milli = wanted;
    r->node->limits_milli = total;
    clearing.total_milli = total;
    return clearing;
}

void market_fast_round(const struct round *r, const struct market_pod_rules *rules,
                       int64_t *ret_limits, int64_t *ret_requests)
{
    bool overcommitted = rules->overcommit > 1 && r->node->kappa.kappa_milli > 0;
    int64_t room = overcommitted ? r->capacity_milli * r->node->kappa.kappa_milli / 1000
                                 : r->capacity_milli + r->node->lent_milli;
    room -= r->reserved_milli;
    for (size_t i = 0; i < r->n; i++)
        room -= r->pods[i]->limit_milli;
    for (size_t i = 0; i < r->n; i++) {
        ret_limits[i] = market_pod_fast_step(r->pods[i], rules, room, r->now_ns);
        room -= ret_limits[i] - r->pods[i]->limit_milli;
    }
    market_node_requests(r, rules, ret_limits, true, ret_requests);
}
