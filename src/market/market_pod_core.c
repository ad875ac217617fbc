/* One pod between its counters and its limit: see market_pod_core.h.
 *
 *      market_pod_sample()          reading -> estimate_need() -> highest need of the window
 *         |                |
 *         | every 2 s      | every 15 s
 *         v                v
 *      fast_step()      close_window()      need goes to a ring of 20 peaks; the agent learns
 *      boost, held         |
 *      for 30 s            v
 *                       bid()               min = floor, max = need and forecast plus headroom
 *                          |
 *                          v
 *                       next_limit()        keep, grow at once, or shrink after the peak has passed
 *
 * (Each with the prefix market_pod_; intervals are the defaults.)
 *
 * The hard part is need while the pod is throttled. Throttling shows that the pod wanted more,
 * but hardly how much: a thread that lacks 1 % of its time is throttled as visibly as one that
 * lacks all of it. So the first estimate is at most 20 % above the limit and grows with each
 * boost that was not enough, up to what the throttled threads could have used. Usage above the
 * old limit without throttling then replaces the estimate (resolve_estimates).
 *
 * The invariant: a limit in force is lowered only if the pod has not needed it for the whole
 * window of peaks, or if another pod needs the CPU (round_core.c). State is owned by the
 * caller's struct market_pod; only the agent's rows are on the heap. */
#include "market_pod_core.h"

#include "limit_core.h"
#include "milli.h"
#include "resize_core.h"

#include "../base/clock.h"
#include "../base/quantity.h"

#include <math.h>

/* Slow windows to observe a pod before changes that are not urgent. */
enum { PEAKS_BEFORE_CHANGE = 8 };

/* Shares of the limit: need above the first makes it grow at once; an allocation below the
 * second makes it shrink. A smaller cut can wait until another pod needs the CPU. */
static const double grow_above = 0.97, shrink_below = 0.85;

struct market_pod_rules market_pod_rules_from(const struct market_config *c)
{
    int64_t baseline = 0;
    if (quantity_parse_milli(c->baseline_cpu, &baseline, NULL))
        baseline = 100; /* the default, for a value that is not a quantity */
    return (struct market_pod_rules){
        .agent = { .learning_rate = c->learning_rate,
                   .discount = c->discount,
                   .absolute_min_milli =
                       milli32(c->absolute_min_milli), /* sums must not overflow */
                   .baseline_milli = milli32(baseline),
                   .need_headroom = c->need_headroom,
                   .want_headroom = c->want_headroom,
                   .cost_efficiency = c->cost_efficiency,
                   .alpha_down = c->alpha_down,
                   .alpha_up = c->alpha_up,
                   .idle_decay = c->idle_decay,
                   .target_throttling = c->target_throttling },
        .min_change_percent = c->min_change_percent,
        .throttling_threshold = c->throttling_threshold,
        .target_throttling = c->target_throttling,
        .fast_step_min = c->fast_step_min,
        .fast_step_max = c->fast_step_max,
        .slow_ns = c->slow_ns,
        .grace_ns = c->grace_ns,
        .hold_ns = MAX(30 * NS_PER_S, 2 * c->slow_ns),
        .slo_fast = c->p99_multiplier,
        .kalman = c->kalman,
        .price_response = c->price_response,
    };
}

void market_pod_init(struct market_pod *pod, const struct market_config *config, int64_t now_ns,
                     uint64_t seed)
{
    *pod = (struct market_pod){ .started_ns = now_ns, .slo_weight = 1 };
    agent_init(&pod->agent, config->exploration_rate, seed);
}

void market_pod_done(struct market_pod *pod)
{
    agent_done(&pod->agent);
}

/* ---- need */

/* Estimates the millicores that the pod would have used in the window without a quota. The steps
 * are shares of the limit, for the first, second, ... consecutive boost. */
static double estimate_need(const struct market_pod *pod, const struct market_pod_rules *rules,
                            struct demand_cpu_stat from, struct demand_cpu_stat to,
                            int64_t elapsed_ns)
{
    static const double steps[] = { 0.2, 0.4, 0.8, 1.0 };
    struct demand_window w = demand_measure(from, to, elapsed_ns);
    double used = (double)w.usage_milli;
    if (w.throttled <= rules->target_throttling)
        return used;
    double throttled_milli =
        (double)(to.throttled_usec - from.throttled_usec) / (double)elapsed_ns * 1e6;
    double step = steps[MIN(pod->boosts, countof(steps) - 1)];
    double least = MAX((double)pod->limit_milli, used), more = least * step * w.throttled;
    return least + MIN(MAX(throttled_milli, 0.1 * more), more);
}

void market_pod_sample(struct market_pod *pod, const struct market_pod_rules *rules,
                       struct demand_cpu_stat stat, int64_t now_ns)
{
    if (!pod->last_ns ||
        stat.usage_usec <
            pod->last.usage_usec) { /* the first reading, or the container restarted */
        pod->fast_anchor = pod->slow_anchor = stat;
        pod->fast_ns = pod->slow_ns = now_ns;
    } else if (now_ns > pod->last_ns) {
        double need = estimate_need(pod, rules, pod->last, stat, now_ns - pod->last_ns);
        struct demand_window w = demand_measure(pod->last, stat, now_ns - pod->last_ns);
        pod->slow_need_milli = MAX(pod->slow_need_milli, (float)need);
        pod->slow_max_milli = MAX(pod->slow_max_milli, milli32(w.usage_milli));
        forecast_update(&pod->forecast, (float)w.usage_milli / 1000, (float)w.throttled,
                        (float)(now_ns - pod->last_ns) / 1e9F);
    }
    pod->last = stat;
    pod->last_ns = now_ns;
}

static int64_t unpack_milli(uint16_t packed)
{
    return (int64_t)(packed & 0xfff) << (packed >> 12);
}

static uint16_t pack_milli(int64_t milli)
{
    int shift = 0;
    for (milli = MAX(MIN(milli, unpack_milli(UINT16_MAX)), INT64_C(0)); milli > 0xfff; shift++)
        milli = (milli + 1) / 2; /* round up: need must not become smaller */
    return (uint16_t)(shift << 12 | milli);
}

int64_t market_pod_need(const struct market_pod *pod)
{
    int64_t peak = milli_round((double)pod->slow_need_milli);
    for (uint8_t i = 0; i < pod->peak_n; i++)
        peak = MAX(peak, unpack_milli(pod->peaks[i].need));
    return peak;
}

/* The peak of the last two windows only: a limit that was cut below an old peak, because other
 * pods needed the CPU, is not raised again before the peak returns. */
static int64_t recent_need(const struct market_pod *pod)
{
    int64_t peak = 0;
    for (int i = 1; i <= MIN(2, (int)pod->peak_n); i++)
        peak =
            MAX(peak, unpack_milli(
                          pod->peaks[(pod->peak + MARKET_POD_PEAKS - i) % MARKET_POD_PEAKS].need));
    return peak;
}

/* Usage above an old limit, without throttling, replaces the estimates that were made at that
 * limit. */
static void resolve_estimates(struct market_pod *pod)
{
    for (uint8_t i = 0; i < pod->peak_n; i++) {
        struct market_pod_peak *p = &pod->peaks[i];
        int64_t bound = unpack_milli(p->bound);
        if (bound > 0 && pod->slow_max_milli >= bound) {
            p->need = p->bound;
            p->bound = 0;
        }
    }
}

static void record_peak(struct market_pod *pod)
{
    bool throttled = pod->slow_throttled > 0;
    if (!throttled)
        resolve_estimates(pod);
    pod->peaks[pod->peak] =
        (struct market_pod_peak){ .need = pack_milli(milli_round((double)pod->slow_need_milli)),
                                  .bound = throttled ? pack_milli(pod->limit_milli) : 0 };
    pod->peak = (uint8_t)((pod->peak + 1) % MARKET_POD_PEAKS);
    pod->peak_n = (uint8_t)MIN(pod->peak_n + 1, MARKET_POD_PEAKS);
}

/* With costEfficiencyMode, need is the smoothed demand of the last windows, fast down and slow
 * up, and decays for an idle pod; a throttled pod gets its full estimate. */
static void record_smoothed(struct market_pod *pod, const struct agent_rules *r,
                            const struct agent_outcome *o)
{
    double raw = (double)pod->slow_need_milli, saved = (double)pod->saved_milli;
    if (!(saved > 0))
        saved = MAX((double)pod->limit_milli, raw);
    double alpha = raw < saved ? r->alpha_down : r->alpha_up;
    bool calm = o->throttling < r->target_throttling;
    saved = alpha * raw + (1 - alpha) * saved;
    if (calm && o->usage_milli < r->absolute_min_milli)
        saved *= 1 - r->idle_decay;
    pod->saved_milli = (float)saved;
    pod->peaks[0] = (struct market_pod_peak){ .need = pack_milli(milli_round(calm ? saved : raw)) };
    pod->peak = pod->peak_n = 1;
}

/* 0: attained; 1: latency is e times its target, or more. */
static double slo_miss(double ratio)
{
    return ratio > 1 ? fmin(log(ratio), 1) : 0;
}

void market_pod_close_window(struct market_pod *pod, const struct market_pod_rules *rules,
                             int64_t now_ns)
{
    if (!pod->last_ns || pod->last_ns <= pod->slow_ns)
        return;
    struct demand_window w =
        demand_measure(pod->slow_anchor, pod->last, pod->last_ns - pod->slow_ns);
    struct agent_outcome outcome = { .usage_milli = w.usage_milli,
                                     .allocation_milli = pod->limit_milli,
                                     .throttling = w.throttled,
                                     .slo_miss = slo_miss((double)pod->slo_ratio) };
    pod->slow_throttled = (float)w.throttled;
    pod->reward = (float)agent_learn(&pod->agent, &rules->agent, outcome);
    if (rules->agent.cost_efficiency)
        record_smoothed(pod, &rules->agent, &outcome);
    else
        record_peak(pod);
    pod->slow_need_milli = 0;
    pod->slow_max_milli = 0;
    pod->slow_anchor = pod->last;
    pod->slow_ns = now_ns;
}

/* ---- the fast loop */

int64_t market_pod_fast_step(struct market_pod *pod, const struct market_pod_rules *rules,
                             int64_t room_milli, int64_t now_ns)
{
    if (!pod->last_ns || pod->last_ns <= pod->fast_ns || pod->limit_milli <= 0)
        return pod->limit_milli;
    int64_t elapsed = pod->last_ns - pod->fast_ns;
    struct demand_window w = demand_measure(pod->fast_anchor, pod->last, elapsed);
    double need = estimate_need(pod, rules, pod->fast_anchor, pod->last, elapsed);
    pod->fast_anchor = pod->last;
    pod->fast_ns = pod->last_ns;
    if (!(w.throttled > rules->throttling_threshold) && !pod->slo_burns) {
        pod->boosts = 0;
        return pod->limit_milli;
    }
    struct limit_boost_rules fast = { -1, rules->fast_step_min, rules->fast_step_max };
    int64_t wanted = limit_boost(pod->limit_milli, w.throttled, &fast);
    wanted = MAX(wanted, milli_round(need * (1 + rules->agent.want_headroom)));
    wanted = MAX(wanted, milli_round((double)pod->slo_milli));
    if (pod->max_milli)
        wanted = MIN(wanted, (int64_t)pod->max_milli);
    wanted = MIN(wanted, resize_step_max(pod->limit_milli));
    wanted = MIN(wanted, pod->limit_milli + MAX(room_milli, (int64_t)0));
    if (pod->allocation_milli <
        pod->bid_max_milli) /* rationed in the last round: free CPU belongs to other pods */
        wanted = MIN(wanted, (int64_t)pod->allocation_milli);
    if (!limit_differs(pod->limit_milli, wanted, rules->min_change_percent) ||
        wanted <= pod->limit_milli)
        return pod->limit_milli;
    pod->boost_until_ns = now_ns + rules->hold_ns;
    pod->boosts = (uint8_t)MIN(pod->boosts + 1, 100);
    pod->smoothed_milli = (float)wanted;
    return wanted;
}

/* ---- the market */

/* The minimum is the need, and in ample supply also the present limit of a pod that starts or
 * was just boosted. If the needs of all pods do not fit, it is at most the baseline: then every
 * pod gets an equal amount above it, up to its need, and a pod that got little before is not
 * tied to the little that it used. */
int64_t market_pod_floor(const struct market_pod *pod, const struct market_pod_rules *rules,
                         enum market_supply supply, int64_t now_ns)
{
    int64_t need = market_pod_need(pod);
    int64_t least = MAX(rules->agent.absolute_min_milli, rules->agent.baseline_milli);
    least = supply == MARKET_SUPPLY_SCARCE ? MIN(least, MAX(need, rules->agent.absolute_min_milli))
                                           : MAX(least, need);
    bool has_grace = now_ns - pod->started_ns < rules->grace_ns || now_ns < pod->boost_until_ns;
    if (supply == MARKET_SUPPLY_AMPLE) {
        double used = (double)pod->agent.usage_milli * (1 + rules->agent.need_headroom);
        least = MAX(least, (int64_t)milli32(milli_round(used)));
    }
    if (supply == MARKET_SUPPLY_AMPLE && has_grace)
        least = MAX(least, (int64_t)pod->limit_milli);
    least = MAX(least, (int64_t)pod->min_milli);
    return pod->max_milli ? MIN(least, (int64_t)pod->max_milli) : least;
}

/* The headroom above need in a bid, by action. */
static double bid_headroom(const struct market_pod_rules *rules, enum agent_action action)
{
    static const double factors[AGENT_ACTION_N] = { 1.5, 1.0, 0.5 };
    return rules->agent.want_headroom * factors[action];
}

/* With costEfficiencyMode, only a throttled pod has a higher weight. */
static double bid_weight(const struct market_pod *pod, const struct market_pod_rules *rules,
                         enum agent_action action)
{
    if (rules->agent.cost_efficiency)
        action = (double)pod->slow_throttled > rules->target_throttling ? AGENT_AGGRESSIVE
                                                                        : AGENT_NORMAL;
    return agent_action_weight(action) * (double)pod->slo_weight;
}

/* Actions change from round to round; the pod's share should not. */
static double smooth_weight(const struct market_pod *pod, double weight)
{
    return pod->weight > 0 ? 0.9 * (double)pod->weight + 0.1 * weight : weight;
}

struct bid market_pod_bid(struct market_pod *pod, const struct market_pod_rules *rules,
                          double price, enum market_supply supply, int64_t now_ns)
{
    bool scarce = supply == MARKET_SUPPLY_SCARCE;
    bool explore = !(pod->slo_ratio > 1) && (double)pod->slow_throttled <= rules->target_throttling;
    double effective = rules->price_response ? price : 0;
    enum agent_action action = agent_choose(&pod->agent, effective, explore);
    double need = MAX((double)market_pod_need(pod), (double)pod->slo_milli);
    float ahead_s =
        (float)rules->slow_ns / 1e9F + pod->resize_s; /* until the next limit is in force */
    bool use_forecast = rules->kalman && !rules->agent.cost_efficiency;
    double forecast = use_forecast ? 1000 * (double)forecast_demand(&pod->forecast, ahead_s) : 0;
    need = MAX(need, forecast);
    /* no headroom for any pod while another lacks what it needs */
    int64_t wanted = scarce
                         ? market_pod_need(pod)
                         : (int64_t)milli32(milli_round(need * (1 + bid_headroom(rules, action))));
    struct bid bid = {
        .demand_milli = agent_price_response(wanted, effective),
        .min_milli = market_pod_floor(pod, rules, supply, now_ns),
        .max_milli = wanted,
        .weight = smooth_weight(pod, bid_weight(pod, rules, action)),
    };
    if (pod->max_milli)
        bid.max_milli = MIN(bid.max_milli, (int64_t)pod->max_milli);
    bid.max_milli = MAX(bid.max_milli, bid.min_milli);
    pod->weight = (float)bid.weight;
    pod->bid_max_milli = milli32(bid.max_milli);
    return bid;
}

/* Needed growth is due at once; other growth once enough of it has added up to be worth a
 * change. */
static bool is_growth_due(const struct market_pod *pod, const struct market_pod_rules *rules)
{
    int64_t limit = pod->limit_milli, allocation = pod->allocation_milli;
    int64_t need = MAX(recent_need(pod), milli_round((double)pod->slo_milli));
    bool urgent = (double)MIN(allocation, need) > grow_above * (double)limit;
    int64_t reached = urgent ? allocation : milli_round((double)pod->smoothed_milli);
    return reached > limit && (limit_differs(limit, reached, rules->min_change_percent) ||
                               (double)pod->slow_throttled > rules->target_throttling);
}

/* A limit shrinks in one step, once the smoothed allocation has come down to the present one. */
static bool is_shrink_due(const struct market_pod *pod, const struct market_pod_rules *rules,
                          int64_t now_ns)
{
    double limit = (double)pod->limit_milli, smoothed = (double)pod->smoothed_milli;
    if (now_ns < pod->boost_until_ns)
        return false;
    if (rules->agent.cost_efficiency)
        return limit_differs(pod->limit_milli, milli_round(smoothed), rules->min_change_percent);
    double way = (smoothed - (double)pod->allocation_milli) * 100;
    return way <= rules->min_change_percent * limit && smoothed < shrink_below * limit;
}

/* The owner's min-cpu and max-cpu are enforced whatever the size of the change. */
static bool violates_bounds(const struct market_pod *pod)
{
    return (pod->limit_milli < pod->min_milli && pod->allocation_milli >= pod->min_milli) ||
           (pod->max_milli && pod->limit_milli > pod->max_milli);
}

int64_t market_pod_next_limit(struct market_pod *pod, const struct market_pod_rules *rules,
                              int64_t allocation_milli, int64_t now_ns)
{
    int64_t limit = pod->limit_milli;
    pod->allocation_milli = milli32(allocation_milli);
    if (limit <= 0 || violates_bounds(pod))
        return allocation_milli;
    double last = pod->smoothed_milli > 0 ? (double)pod->smoothed_milli : (double)limit;
    bool known = pod->peak_n >= PEAKS_BEFORE_CHANGE || rules->agent.cost_efficiency;
    pod->smoothed_milli = (float)(known ? limit_smooth((double)allocation_milli, last) : last);
    bool due = allocation_milli > limit   ? is_growth_due(pod, rules)
               : allocation_milli < limit ? is_shrink_due(pod, rules, now_ns)
                                          : false;
    return due ? allocation_milli : limit;
}

void market_pod_set_limit(struct market_pod *pod, int64_t limit_milli, int64_t request_milli)
{
    if (limit_milli != pod->limit_milli)
        pod->smoothed_milli = 0;
    pod->limit_milli = milli32(limit_milli);
    pod->request_milli = milli32(request_milli);
}

void market_pod_note_resize_time(struct market_pod *pod, double seconds)
{
    double old = (double)pod->resize_s;
    pod->resize_s = (float)(old > 0 ? 0.8 * old + 0.2 * seconds : seconds);
}
