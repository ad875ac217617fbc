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
 *      choose_supply()              do the minimums of all pods fit? with or without grace?
 *         |
 *         v
 *      clear_at_price()             bid at price 0 -> price -> bid again -> market_clear() -> x[i]
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
 *      skip_small_growth()          growth below minChangePercent only for pods that lack CPU
 *
 * The invariant. The limits returned add up to at most the capacity, except for limits that are
 * in force already and whose reduction is not worth a change. Decided one by one, they do not: a
 * pod whose limit is above its allocation keeps the difference (its slack) while another grows.
 * Three steps restore the sum, each only as far as needed:
 *
 *   1. Growing pods do without headroom. This disturbs no other pod.
 *   2. Pods with slack shrink to their allocation, largest slack first, so that few pods are
 *      changed. A pod that keeps all it needs is cut for half of minChangePercent; a pod
 *      that lacks something only for twice as much, because on a node where every pod lacks
 *      something small corrections would never end.
 *   3. What is still missing is taken from the growth itself.
 *
 * Step 1 does not apply below the owner's min-cpu: the pod is entitled to it even if others must
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

/* What all pods must have together, at this degree of supply. */
static int64_t sum_of_floors(const struct round *r, const struct market_pod_rules *rules,
                             enum market_supply supply)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->n; i++)
        sum += market_pod_floor(r->pods[i], rules, supply, r->now_ns);
    return sum;
}

/* Grace for pods that start or were just boosted is granted only if every other pod still gets
 * what it needs. */
static enum market_supply choose_supply(const struct round *r, const struct market_pod_rules *rules)
{
    if (sum_of_floors(r, rules, MARKET_SUPPLY_AMPLE) <= r->capacity_milli)
        return MARKET_SUPPLY_AMPLE;
    return sum_of_floors(r, rules, MARKET_SUPPLY_TIGHT) <= r->capacity_milli ? MARKET_SUPPLY_TIGHT
                                                                             : MARKET_SUPPLY_SCARCE;
}

/* Agents respond to the price, so they bid twice: the first bids determine the price, the second
 * are cleared. */
static struct clearing clear_at_price(const struct round *r, const struct market_pod_rules *rules,
                                      enum market_supply supply, int64_t *x)
{
    struct bid *bids = arena_array(r->arena, r->n, sizeof(*bids));
    for (size_t i = 0; i < r->n; i++)
        bids[i] = market_pod_bid(r->pods[i], rules, 0, MARKET_SUPPLY_AMPLE, r->now_ns);
    double price = market_price(r->capacity_milli, bids, r->n);
    for (size_t i = 0; i < r->n; i++)
        bids[i] = market_pod_bid(r->pods[i], rules, price, supply, r->now_ns);
    return market_clear(r->capacity_milli, bids, r->n, r->scratch, x);
}

struct slack {
    size_t pod;
    int64_t milli;
};

static int compare_slack(const void *a, const void *b)
{
    const struct slack *x = a, *y = b;
    return (x->milli < y->milli) - (x->milli > y->milli);
}

/* Cuts limits to their allocation until `excess` is gone, largest slack first, and skips cuts
 * that are not worth a change (step 2 above). Returns the millicores saved. */
static int64_t reclaim_slack(const struct round *r, double min_change_percent, const int64_t *x,
                             int64_t *limits, int64_t excess)
{
    struct slack *slack = arena_array(r->arena, r->n, sizeof(*slack));
    int64_t saved = 0;
    for (size_t i = 0; i < r->n; i++)
        slack[i] = (struct slack){ i, limits[i] - x[i] };
    qsort(slack, r->n, sizeof(*slack), compare_slack);
    for (size_t k = 0; k < r->n && saved < excess; k++) {
        size_t i = slack[k].pod;
        double threshold = x[i] >= market_pod_need(r->pods[i]) ? 0.5 : 2;
        if (slack[k].milli <= 0 || !limit_differs(limits[i], x[i], threshold * min_change_percent))
            continue;
        limits[i] = x[i];
        saved += slack[k].milli;
    }
    return saved;
}

/* Takes the remaining excess from the growth (step 3). */
static void reduce_growth(const struct round *r, int64_t *limits, int64_t excess)
{
    for (size_t i = 0; i < r->n && excess > 0; i++) {
        int64_t growth = limits[i] - r->pods[i]->limit_milli, cut = MIN(growth, excess);
        if (growth <= 0)
            continue;
        limits[i] -= cut;
        excess -= cut;
    }
}

/* Cuts growing pods to what they need or are entitled to (step 1). Returns the millicores saved. */
static int64_t forgo_headroom(const struct round *r, int64_t *limits, int64_t excess)
{
    int64_t saved = 0;
    for (size_t i = 0; i < r->n && saved < excess; i++) {
        int64_t entitled = MAX(r->pods[i]->limit_milli, r->pods[i]->min_milli);
        int64_t least = MAX(entitled, market_pod_need(r->pods[i]));
        if (limits[i] <= least)
            continue;
        int64_t cut = MIN(limits[i] - least, excess - saved);
        limits[i] -= cut;
        saved += cut;
    }
    return saved;
}

/* Growth below minChangePercent is worth a resize only for a pod that is throttled or below its
 * min-cpu. */
static void skip_small_growth(const struct round *r, const struct market_pod_rules *rules,
                              int64_t *limits)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct market_pod *pod = r->pods[i];
        bool lacks = (double)pod->slow_throttled > rules->target_throttling ||
                     pod->limit_milli < pod->min_milli;
        if (limits[i] > pod->limit_milli && !lacks &&
            !limit_differs(pod->limit_milli, limits[i], rules->min_change_percent))
            limits[i] = pod->limit_milli;
    }
}

struct clearing market_slow_round(const struct round *r, const struct market_pod_rules *rules,
                                  int64_t *ret_limits)
{
    int64_t *x = arena_array(r->arena, r->n, sizeof(*x)), total = 0;
    for (size_t i = 0; i < r->n; i++)
        market_pod_close_window(r->pods[i], rules, r->now_ns);
    enum market_supply supply = choose_supply(r, rules);
    struct clearing clearing = clear_at_price(r, rules, supply, x);
    for (size_t i = 0; i < r->n; i++) {
        ret_limits[i] = market_pod_next_limit(r->pods[i], rules, x[i], r->now_ns);
        total += ret_limits[i];
    }
    total -= forgo_headroom(r, ret_limits, total - r->capacity_milli);
    total -= reclaim_slack(r, rules->min_change_percent, x, ret_limits, total - r->capacity_milli);
    reduce_growth(r, ret_limits, total - r->capacity_milli);
    skip_small_growth(r, rules, ret_limits);
    return clearing;
}

void market_fast_round(const struct round *r, const struct market_pod_rules *rules,
                       int64_t *ret_limits)
{
    int64_t room = r->capacity_milli;
    for (size_t i = 0; i < r->n; i++)
        room -= r->pods[i]->limit_milli;
    for (size_t i = 0; i < r->n; i++) {
        ret_limits[i] = market_pod_fast_step(r->pods[i], rules, room, r->now_ns);
        room -= ret_limits[i] - r->pods[i]->limit_milli;
    }
}
