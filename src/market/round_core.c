/* A market round: see round_core.h. */
#include "round_core.h"

#include "limit_core.h"

static int64_t sum_of_floors(const struct round *r, const struct market_pod_rules *rules,
                             enum market_supply ease)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->n; i++)
        sum += market_pod_floor(r->pods[i], rules, ease, r->now_ns);
    return sum;
}

/* Those who start are spared where that costs nobody what he needs. */
static enum market_supply ease_of(const struct round *r, const struct market_pod_rules *rules)
{
    if (sum_of_floors(r, rules, MARKET_SUPPLY_AMPLE) <= r->capacity_milli)
        return MARKET_SUPPLY_AMPLE;
    return sum_of_floors(r, rules, MARKET_SUPPLY_TIGHT) <= r->capacity_milli ? MARKET_SUPPLY_TIGHT
                                                                             : MARKET_SUPPLY_SCARCE;
}

/* Two passes: the first finds the price of what everybody wants, the second bids knowing it. */
static struct clearing clear_twice(const struct round *r, const struct market_pod_rules *rules,
                                   enum market_supply ease, int64_t *x)
{
    struct bid *bids = arena_array(r->arena, r->n, sizeof(*bids));
    for (size_t i = 0; i < r->n; i++)
        bids[i] = market_pod_bid(r->pods[i], rules, 0, MARKET_SUPPLY_AMPLE, r->now_ns);
    double price = market_price(r->capacity_milli, bids, r->n);
    for (size_t i = 0; i < r->n; i++)
        bids[i] = market_pod_bid(r->pods[i], rules, price, ease, r->now_ns);
    return market_clear(r->capacity_milli, bids, r->n, r->scratch, x);
}

struct slack {
    size_t pod;
    int64_t milli;
};

static int most_first(const void *a, const void *b)
{
    const struct slack *x = a, *y = b;
    return (x->milli < y->milli) - (x->milli > y->milli);
}

/* Limits above their allocation are tolerated while nobody needs the room. Here somebody does: the
 * largest slack goes first; what is not worth a change stays. From who keeps all he needs little is worth taking;
 * where everybody lacks something, small corrections would never end. Returns what that saved. */
static int64_t take_back_slack(const struct round *r, double min_change_percent, const int64_t *x,
                               int64_t *limits, int64_t excess)
{
    struct slack *slack = arena_array(r->arena, r->n, sizeof(*slack));
    int64_t saved = 0;
    for (size_t i = 0; i < r->n; i++)
        slack[i] = (struct slack){ i, limits[i] - x[i] };
    qsort(slack, r->n, sizeof(*slack), most_first);
    for (size_t k = 0; k < r->n && saved < excess; k++) {
        size_t i = slack[k].pod;
        double worth = x[i] >= market_pod_need(r->pods[i]) ? 0.5 : 2;
        if (slack[k].milli <= 0 || !limit_differs(limits[i], x[i], worth * min_change_percent))
            continue;
        limits[i] = x[i];
        saved += slack[k].milli;
    }
    return saved;
}

/* What is still too much is not given to those who grow. */
static void grow_less(const struct round *r, int64_t *limits, int64_t excess)
{
    for (size_t i = 0; i < r->n && excess > 0; i++) {
        int64_t growth = limits[i] - r->pods[i]->limit_milli, cut = MIN(growth, excess);
        if (growth <= 0)
            continue;
        limits[i] -= cut;
        excess -= cut;
    }
}

/* Who grows does without headroom before anybody else is disturbed. Returns what that saved. */
static int64_t forgo_headroom(const struct round *r, int64_t *limits, int64_t excess)
{
    int64_t saved = 0;
    for (size_t i = 0; i < r->n && saved < excess; i++) {
        int64_t asked = MAX(r->pods[i]->limit_milli, r->pods[i]->min_milli);
        int64_t least = MAX(asked, market_pod_need(r->pods[i]));
        if (limits[i] <= least)
            continue;
        int64_t cut = MIN(limits[i] - least, excess - saved);
        limits[i] -= cut;
        saved += cut;
    }
    return saved;
}

struct clearing market_slow_round(const struct round *r, const struct market_pod_rules *rules,
                                  int64_t *ret_limits)
{
    int64_t *x = arena_array(r->arena, r->n, sizeof(*x)), total = 0;
    for (size_t i = 0; i < r->n; i++)
        market_pod_close_window(r->pods[i], rules, r->now_ns);
    enum market_supply ease = ease_of(r, rules);
    struct clearing clearing = clear_twice(r, rules, ease, x);
    for (size_t i = 0; i < r->n; i++) {
        ret_limits[i] = market_pod_next_limit(r->pods[i], rules, x[i], r->now_ns);
        total += ret_limits[i];
    }
    total -= forgo_headroom(r, ret_limits, total - r->capacity_milli);
    total -=
        take_back_slack(r, rules->min_change_percent, x, ret_limits, total - r->capacity_milli);
    grow_less(r, ret_limits, total - r->capacity_milli);
    /* a crumb of growth is worth a resize only for who lacks it */
    for (size_t i = 0; i < r->n; i++) {
        const struct market_pod *pod = r->pods[i];
        bool lacks = (double)pod->slow_throttled > rules->target_throttling ||
                     pod->limit_milli < pod->min_milli;
        if (ret_limits[i] > pod->limit_milli && !lacks &&
            !limit_differs(pod->limit_milli, ret_limits[i], rules->min_change_percent))
            ret_limits[i] = pod->limit_milli;
    }
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
