/* One pod between its counters and its limit: see market_pod_core.h.
 *
 *      market_pod_sample()          reading -> estimate_need() -> highest need of the window
 *         |                |
 *         | every 2 s      | every 15 s
 *         v                v
 *      ..._fast_step()  ..._close_window()  need goes to a ring of 20 peaks; the agent learns
 *      boost, held         |
 *      for 30 s            v
 *                       ..._bid()           min = floor, max = need and forecast plus headroom
 *                          |
 *                          v
 *                       ..._next_limit()    keep, grow at once, or shrink after the peak has passed
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
#include "overcommit_core.h"
#include "resize_core.h"

#include "../base/clock.h"
#include "../base/quantity.h"

#include <math.h>

/* Slow windows to observe a pod before changes that are not urgent. */
enum { PEAKS_BEFORE_CHANGE = 8 };

/* Need above this share of the limit makes it grow at once. */
static const double grow_above = 0.97;

/* An allocation below this share of the limit makes it shrink. A smaller cut can wait until another
 * pod needs the CPU. With overcommit a limit holds back nothing, so it shrinks later and grows in
 * larger steps: on 40 random nodes 10 instead of 13 changes per pod and hour, at the same service. */
static const double shrink_below = 0.85, shrink_below_overcommitted = 0.25;
static const double min_growth_percent_overcommitted = 20;

/* A pod that was raised while it was throttled is not cut again for this long: on a full node, the
 * same CPU went back and forth between two pods. */
static const int64_t keep_ns = 60 * NS_PER_S;

/* Work that can wait is worth a tenth, and its limit grows at most once a minute. */
static const double elastic_weight = 0.1;
static const int64_t elastic_growth_ns = 60 * NS_PER_S;

struct market_pod_rules market_pod_rules_from(const struct market_config *c)
{
    int64_t baseline = 0;
    if (quantity_parse_milli(c->baseline_cpu, &baseline, NULL))
        baseline = 100; /* the default, for a value that is not a quantity */
    struct market_pod_rules rules = {
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
        .seed_bids = str_eq(c->bids, S("seed")),
        .lend_baseline = c->lend_baseline,
        .max_min_share = c->max_min_share,
        .limit_ceiling = c->limit_ceiling,
    };
    market_pod_rules_set_overcommit(&rules, c->limit_overcommit);
    return rules;
}

void market_pod_rules_set_overcommit(struct market_pod_rules *rules, double limit_overcommit)
{
    rules->overcommit = limit_overcommit;
    bool on = limit_overcommit > 1;
    rules->shrink_below = on ? shrink_below_overcommitted : shrink_below;
    rules->min_growth_percent =
        on ? MAX(min_growth_percent_overcommitted, rules->min_change_percent)
           : rules->min_change_percent;
}

void market_pod_init(struct market_pod *pod, const struct market_config *config, int64_t now_ns,
                     uint64_t seed)
{
    *pod = (struct market_pod){ .started_ns = now_ns, .slo_weight = 1, .waited_usec = -1 };
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
        pod->second_milli = milli32(w.usage_milli);
        pod->second_throttled = stat.nr_throttled != pod->last.nr_throttled;
        if (!pod->ignore_readings) {
            pod->slow_need_milli = MAX(pod->slow_need_milli, (float)need);
            pod->slow_max_milli = MAX(pod->slow_max_milli, milli32(w.usage_milli));
            if (w.throttled > rules->target_throttling)
                pod->slow_hit_milli = MAX(pod->slow_hit_milli, pod->limit_milli);
            forecast_update(&pod->forecast, (float)w.usage_milli / 1000, (float)w.throttled,
                            (float)(now_ns - pod->last_ns) / 1e9F);
        }
    }
    pod->last = stat;
    pod->last_ns = now_ns;
}

/* A pod without a share is new: nothing was promised to it yet. */
void market_pod_sample_pressure(struct market_pod *pod, int64_t waited_usec)
{
    int64_t before = pod->waited_usec;
    pod->waited_usec = waited_usec;
    if (before < 0 || waited_usec < before || pod->share_milli <= 0 || pod->seconds_counted == 255)
        return;
    struct overcommit_second second = { pod->second_milli, waited_usec - before,
                                        pod->second_throttled };
    enum overcommit_judgement judgement = overcommit_judge(pod->share_milli, second);
    if (judgement != OVERCOMMIT_IGNORED)
        pod->seconds_counted++;
    if (judgement == OVERCOMMIT_VICTIM)
        pod->seconds_waited++;
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

/* A pod whose work comes in bursts of less than a second is throttled at a limit far above its
 * usage. Once it runs freely, its usage no longer shows that, so the ratio is remembered: without
 * it the limit was cut to the usage and raised again every five minutes. A pod that is throttled
 * all the time uses its limit, and its ratio is 1. */
static void note_bursts(struct market_pod *pod, const struct market_pod_rules *rules)
{
    static const float most = 4, kept = 0.9993F; /* per window: half of it is forgotten in 4 h */
    pod->burst = 1 + (MAX(pod->burst, 1.0F) - 1) * kept;
    if (pod->slow_max_milli <= 0)
        return;
    float seen = (float)pod->slow_hit_milli / (float)pod->slow_max_milli;
    if ((double)pod->slow_throttled > rules->target_throttling)
        pod->burst = MAX(pod->burst, MIN(seen, most));
    else
        pod->slow_need_milli =
            MAX(pod->slow_need_milli,
                MIN((float)pod->limit_milli, (float)pod->slow_max_milli * pod->burst));
}

static void record_peak(struct market_pod *pod, const struct market_pod_rules *rules)
{
    bool throttled = pod->slow_throttled > 0;
    note_bursts(pod, rules);
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
                                     .slo_miss = pod->slo_ratio > 1 ? 1 : 0 };
    pod->slow_throttled = (float)w.throttled;
    pod->reward = (float)agent_learn(&pod->agent, &rules->agent, outcome);
    if (rules->agent.cost_efficiency)
        record_smoothed(pod, &rules->agent, &outcome);
    else
        record_peak(pod, rules);
    pod->slow_need_milli = 0;
    pod->slow_max_milli = 0;
    pod->slow_hit_milli = 0;
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
    if (pod->elastic && pod->grown_ns && now_ns - pod->grown_ns < elastic_growth_ns)
        return pod->limit_milli;
    wanted = MIN(wanted, market_pod_limit_max(pod, rules));
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

/* Before the first clearing, the guarantee is the baseline. */
static int64_t guarantee_of(const struct market_pod *pod, const struct market_pod_rules *rules)
{
    if (pod->guaranteed_milli > 0)
        return pod->guaranteed_milli;
    int64_t baseline = rules->agent.baseline_milli;
    if (pod->max_milli > 0)
        baseline = MIN(baseline, (int64_t)pod->max_milli);
    return MAX(baseline, rules->agent.absolute_min_milli);
}

/* The minimum is the guarantee and the need, and in ample supply also the present limit of a pod
 * that starts or was just boosted. If the needs of all pods do not fit, it is the guarantee: then
 * every pod gets an equal amount above it, up to its need, and a pod that got little before is
 * not tied to the little that it used. Work that can wait has its guarantee only. */
int64_t market_pod_floor(const struct market_pod *pod, const struct market_pod_rules *rules,
                         enum market_supply supply, int64_t now_ns)
{
    int64_t guaranteed = guarantee_of(pod, rules), least = guaranteed;
    if (supply == MARKET_SUPPLY_SCARCE || pod->elastic)
        return guaranteed;
    least = MAX(least, market_pod_need(pod));
    bool has_grace = now_ns - pod->started_ns < rules->grace_ns || now_ns < pod->boost_until_ns;
    if (supply == MARKET_SUPPLY_AMPLE) {
        double used = (double)pod->agent.usage_milli * (1 + rules->agent.need_headroom);
        least = MAX(least, (int64_t)milli32(milli_round(used)));
    }
    if (supply == MARKET_SUPPLY_AMPLE && has_grace)
        least = MAX(least, (int64_t)pod->limit_milli);
    return pod->max_milli ? MAX(guaranteed, MIN(least, (int64_t)pod->max_milli)) : least;
}

int64_t market_pod_limit_max(const struct market_pod *pod, const struct market_pod_rules *rules)
{
    int64_t most = pod->max_milli > 0 ? pod->max_milli : INT64_MAX;
    if (rules->overcommit > 1 && rules->limit_ceiling > 0 && pod->original_limit_milli > 0) {
        int64_t ceiling = (int64_t)(rules->limit_ceiling * pod->original_limit_milli);
        most = MIN(most, MAX(ceiling, (int64_t)pod->share_milli + 1));
    }
    return MAX(most, (int64_t)pod->guaranteed_milli);
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

/* The need that a bid is made for: the peak, the latency objective, and what is to be expected
 * until the next limit is in force. */
static double expected_need(const struct market_pod *pod, const struct market_pod_rules *rules)
{
    double need = MAX((double)market_pod_need(pod), (double)pod->slo_milli);
    float ahead_s = (float)rules->slow_ns / 1e9F + pod->resize_s;
    bool use_forecast = rules->kalman && !rules->agent.cost_efficiency;
    double forecast = use_forecast ? 1000 * (double)forecast_demand(&pod->forecast, ahead_s) : 0;
    return MAX(need, forecast);
}

int64_t market_pod_honest_demand(const struct market_pod *pod, const struct market_pod_rules *rules)
{
    double need = MAX((double)market_pod_need(pod), (double)pod->slo_milli);
    int64_t demand = milli32(milli_round(need * (1 + rules->agent.want_headroom)));
    if (pod->max_milli > 0)
        demand = MIN(demand, (int64_t)pod->max_milli);
    return MAX(demand, guarantee_of(pod, rules));
}

/* The most that the pod can use. An agent that answers the price bids less, but never less than
 * the pod needs, unless its work can wait. */
static int64_t bid_most(const struct market_pod *pod, const struct market_pod_rules *rules,
                        enum agent_action action, double price, bool scarce)
{
    static const double seed_factors[AGENT_ACTION_N] = { 1.5, 1.2, 1.0 };
    double wanted = expected_need(pod, rules) * (1 + bid_headroom(rules, action));
    if (rules->seed_bids)
        wanted = (double)pod->agent.usage_milli * seed_factors[action];
    else if (scarce) /* no headroom for any pod while another lacks what it needs */
        wanted = (double)market_pod_need(pod);
    int64_t most = milli32(milli_round(wanted));
    int64_t answered =
        agent_price_response(most, pod->elastic || rules->price_response ? price : 0);
    return pod->elastic ? answered : MAX(answered, MIN(most, market_pod_need(pod)));
}

struct bid market_pod_bid(struct market_pod *pod, const struct market_pod_rules *rules,
                          double price, enum market_supply supply, int64_t now_ns)
{
    bool explore = !(pod->slo_ratio > 1) && (double)pod->slow_throttled <= rules->target_throttling;
    enum agent_action action =
        agent_choose(&pod->agent, rules->price_response ? price : 0, explore);
    double weight = smooth_weight(pod, bid_weight(pod, rules, action));
    struct bid bid = {
        .demand_milli = market_pod_honest_demand(pod, rules),
        .min_milli = market_pod_floor(pod, rules, supply, now_ns),
        .max_milli = bid_most(pod, rules, action, price, supply == MARKET_SUPPLY_SCARCE),
        .weight = pod->elastic ? weight * elastic_weight : weight,
    };
    bid.max_milli = MIN(bid.max_milli, market_pod_limit_max(pod, rules));
    bid.max_milli = MAX(bid.max_milli, bid.min_milli);
    pod->weight = (float)weight;
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
    return reached > limit && limit_differs(limit, reached, rules->min_change_percent);
}

/* A limit shrinks in one step, once the smoothed allocation has come down to the present one. */
static bool is_shrink_due(const struct market_pod *pod, const struct market_pod_rules *rules,
                          int64_t now_ns)
{
    double limit = (double)pod->limit_milli, smoothed = (double)pod->smoothed_milli;
    if (now_ns < pod->boost_until_ns || now_ns < pod->kept_until_ns)
        return false;
    if (rules->agent.cost_efficiency)
        return limit_differs(pod->limit_milli, milli_round(smoothed), rules->min_change_percent);
    double way = (smoothed - (double)pod->allocation_milli) * 100;
    return way <= rules->min_change_percent * limit && smoothed < rules->shrink_below * limit;
}

/* The guarantee and max-cpu are enforced whatever the size of the change. */
static bool violates_bounds(const struct market_pod *pod, const struct market_pod_rules *rules)
{
    return (pod->limit_milli < pod->guaranteed_milli &&
            pod->allocation_milli >= pod->guaranteed_milli) ||
           pod->limit_milli > market_pod_limit_max(pod, rules);
}

int64_t market_pod_next_limit(struct market_pod *pod, const struct market_pod_rules *rules,
                              int64_t allocation_milli, int64_t now_ns)
{
    int64_t limit = pod->limit_milli;
    pod->allocation_milli = milli32(allocation_milli);
    if (limit <= 0 || violates_bounds(pod, rules))
        return allocation_milli;
    double last = pod->smoothed_milli > 0 ? (double)pod->smoothed_milli : (double)limit;
    bool known = pod->peak_n >= PEAKS_BEFORE_CHANGE || rules->agent.cost_efficiency;
    pod->smoothed_milli = (float)(known ? limit_smooth((double)allocation_milli, last) : last);
    bool waits = pod->elastic && pod->grown_ns && now_ns - pod->grown_ns < elastic_growth_ns;
    bool due = allocation_milli > limit   ? !waits && is_growth_due(pod, rules)
               : allocation_milli < limit ? is_shrink_due(pod, rules, now_ns)
                                          : false;
    if (due && allocation_milli > limit && (double)pod->slow_throttled > rules->target_throttling)
        pod->kept_until_ns = now_ns + keep_ns;
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
