/* MBCAS' arithmetic, bit for bit: see compat_core.h.
 *
 * Every truncation, every constant and the order of every operation is that of the original and
 * is pinned by test/golden/vectors/mbcas-*. Do not simplify. Known faults that are reproduced:
 * truncated shares lose capacity, the overload branch hands out at least 10m to each pod and so
 * exceeds the node, a bid's maximum can be below its minimum, and a container's share is raised
 * to 100m after the split. */
#include "compat_core.h"

#include <math.h>

static const double throttling_threshold = 0.05;

static void clear_overloaded(int64_t capacity, const struct bid *bids, size_t n, int64_t *x)
{
    double weighted = 0;
    for (size_t i = 0; i < n; i++)
        weighted += (double)bids[i].min_milli * bids[i].weight;
    double scale = (double)capacity / weighted;
    for (size_t i = 0; i < n; i++)
        x[i] = weighted == 0 ? capacity / (int64_t)n
                             : MAX((int64_t)10,
                                   (int64_t)((double)bids[i].min_milli * bids[i].weight * scale));
}

/* One round: every active bid gets its truncated share, and capped bids are removed. Returns the
 * sum. */
static int64_t hand_out(int64_t rest, const struct bid *bids, size_t *active, size_t *n, int64_t *x)
{
    double weight = 0;
    for (size_t k = 0; k < *n; k++)
        weight += bids[active[k]].weight;
    if (weight == 0)
        return 0;
    int64_t given = 0;
    size_t kept = 0;
    for (size_t k = 0; k < *n; k++) {
        size_t i = active[k];
        int64_t share = (int64_t)((double)rest * (bids[i].weight / weight));
        if (x[i] + share >= bids[i].max_milli) {
            given += bids[i].max_milli - x[i];
            x[i] = bids[i].max_milli;
        } else {
            x[i] += share;
            given += share;
            active[kept++] = i;
        }
    }
    *n = kept;
    return given;
}

void market_compat_clear(int64_t capacity_milli, const struct bid *bids, size_t n,
                         int64_t *ret_milli)
{
    int64_t base = 0;
    for (size_t i = 0; i < n; i++)
        base += bids[i].min_milli;
    if (base > capacity_milli) {
        clear_overloaded(capacity_milli, bids, n, ret_milli);
        return;
    }
    auto_free size_t *active = mem_zero(n, sizeof(*active));
    size_t active_n = n;
    for (size_t i = 0; i < n; i++) {
        ret_milli[i] = bids[i].min_milli;
        active[i] = i;
    }
    for (int64_t rest = capacity_milli - base, given; rest > 0 && active_n; rest -= given)
        if ((given = hand_out(rest, bids, active, &active_n, ret_milli)) == 0)
            break;
}

/* ---- bids */

static int64_t truncate_scaled(int64_t milli, double factor)
{
    return (int64_t)((double)milli * factor);
}

void market_compat_agent_init(struct compat_agent *c, double epsilon, uint64_t seed)
{
    *c = (struct compat_agent){ .smoothed_milli = 100 };
    agent_init(&c->agent, epsilon, seed);
}

double market_compat_learn(struct compat_agent *c, const struct agent_rules *rules,
                           struct agent_outcome o)
{
    if (c->history_n == COMPAT_HISTORY)
        memmove(c->history, c->history + 1, (COMPAT_HISTORY - 1) * sizeof(double));
    else
        c->history_n++;
    c->history[c->history_n - 1] = o.throttling;
    return agent_learn(&c->agent, rules, o);
}

static double recent_throttling(const struct compat_agent *c)
{
    if (c->history_n < COMPAT_HISTORY)
        return c->agent.throttling;
    const double *h = c->history;
    double mean = (h[0] + h[1] + h[2]) / 3.0;
    return h[2] - h[0] < 0 ? mean * 0.7 : mean; /* throttling is falling: less urgent */
}

/* The demand of a bid with this action at this price, before bounds. */
static int64_t raw_demand(const struct compat_agent *c, const struct agent_rules *rules,
                          enum agent_action action, double price)
{
    static const double multipliers[AGENT_ACTION_N] = { 1.5, 1.2, 1.0 };
    int64_t base = MAX((int64_t)c->agent.usage_milli, rules->absolute_min_milli);
    int64_t wanted = agent_price_response(truncate_scaled(base, multipliers[action]), price);
    double throttling = recent_throttling(c);
    if (throttling > throttling_threshold)
        wanted = MIN(10 * base, truncate_scaled(wanted, fmin(3.0, 1 + throttling * 2)));
    return wanted;
}

static int64_t smooth_demand(struct compat_agent *c, const struct agent_rules *r, int64_t raw)
{
    const struct agent *agent = &c->agent;
    double alpha = raw < c->smoothed_milli ? r->alpha_down : r->alpha_up;
    int64_t s = (int64_t)(alpha * (double)raw + (1 - alpha) * (double)c->smoothed_milli);
    if (agent->usage_milli < r->absolute_min_milli && agent->throttling < r->target_throttling)
        s = (int64_t)((double)s * (1 - r->idle_decay));
    c->smoothed_milli = s;
    return agent->throttling < r->target_throttling ? s : raw;
}

struct bid market_compat_bid(struct compat_agent *c, const struct agent_rules *r,
                             enum agent_action action, double price, bool in_grace)
{
    const struct agent *agent = &c->agent;
    static const int64_t most = 10000, uncapped = 1000000;
    bool saving = r->cost_efficiency, throttled = agent->throttling > throttling_threshold;
    struct bid bid = { .weight = agent_action_weight(action) };
    bid.demand_milli = raw_demand(c, r, action, price);
    if (saving) {
        bid.demand_milli = smooth_demand(c, r, bid.demand_milli);
        bid.weight = throttled ? 1.2 : 1.0;
    }
    int64_t usage = agent->usage_milli;
    bid.min_milli = MAX(r->absolute_min_milli, truncate_scaled(usage, 1 + r->need_headroom));
    if (in_grace && bid.min_milli < agent->allocation_milli)
        bid.min_milli = agent->allocation_milli;
    if (throttled) {
        bid.max_milli = saving ? uncapped : MIN(most, truncate_scaled(usage, 10));
        bid.max_milli = MAX(bid.max_milli, bid.min_milli + 100);
    } else if (usage < 2 * r->absolute_min_milli) {
        bid.max_milli = MAX(bid.min_milli + 10, truncate_scaled(usage, 1 + r->want_headroom));
    } else {
        bid.max_milli = truncate_scaled(bid.demand_milli, 1 + r->want_headroom);
        if (!saving)
            bid.max_milli = MIN(bid.max_milli, most);
    }
    return bid;
}

/* ---- limits */

struct compat_write market_compat_smooth(struct compat_pod *pod, struct compat_smoothing in)
{
    if (in.recently_written)
        return (struct compat_write){ 0 };
    int64_t allocation = MIN(in.allocation_milli, (int64_t)10000);
    int64_t last = pod->last_smoothed       ? pod->last_smoothed
                   : in.pod_limit_milli > 0 ? in.pod_limit_milli
                                            : allocation;
    double new_share = allocation < last ? 0.7 : 0.1, old_share = allocation < last ? 0.3 : 0.9;
    int64_t s = (int64_t)(new_share * (double)allocation + old_share * (double)last);
    s = MAX(s, in.absolute_min_milli);
    if (pod->last_allocation > 0) {
        double change =
            fabs((double)(s - pod->last_allocation)) / (double)pod->last_allocation * 100;
        if (change < in.min_change_percent)
            return (struct compat_write){ 0 };
    }
    pod->last_allocation = pod->last_smoothed = s;
    int64_t request = truncate_scaled(s, 0.9);
    if (request >= s)
        request = s - 5;
    return (struct compat_write){ true, s, MAX(request, (int64_t)10) };
}

struct compat_write market_compat_fast_step(struct compat_pod *pod, double demand, double threshold,
                                            double step_min, double step_max)
{
    if (!(demand > threshold))
        return (struct compat_write){ 0 };
    int64_t current = pod->last_allocation ? pod->last_allocation : 100;
    double step = step_min + (step_max - step_min) * demand;
    int64_t boosted = truncate_scaled(current, 1 + step);
    pod->last_allocation = boosted;
    return (struct compat_write){ true, boosted, truncate_scaled(boosted, 0.9) };
}

/* ---- containers */

static int64_t split_weight(const struct compat_container *c)
{
    if (c->limit_milli >= 0)
        return c->limit_milli;
    return c->request_milli >= 0 ? c->request_milli : 100;
}

void market_compat_split(int64_t limit_milli, int64_t request_milli,
                         const struct compat_container *current, size_t n,
                         struct compat_container *ret)
{
    static const int64_t least = 100;
    int64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += split_weight(&current[i]);
    for (size_t i = 0; i < n; i++) {
        double ratio = (double)split_weight(&current[i]) / (double)total;
        int64_t limit = total ? truncate_scaled(limit_milli, ratio) : limit_milli / (int64_t)n;
        int64_t request =
            total ? truncate_scaled(request_milli, ratio) : request_milli / (int64_t)n;
        ret[i] = (struct compat_container){ MAX(limit, least), MAX(request, least) };
    }
}
