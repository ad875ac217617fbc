/* One pod between its counters and its limit: bids, boosts, and how a limit follows allocations. */
#include "base/clock.h"
#include "market/market.h"
#include "tap.h"

struct scene {
    struct market_config config;
    struct market_pod_rules rules;
    struct market_pod pod;
    struct demand_cpu_stat stat;
    int64_t now_ns;
};

static void scene_rules(struct scene *s)
{
    s->rules = market_pod_rules_from(&s->config);
}

static void scene_start(struct scene *s, int64_t limit_milli)
{
    *s = (struct scene){ .config = market_config_default(MARKET_DEFAULTS), .now_ns = NS_PER_S };
    s->config.exploration_rate = 0;
    s->config.limit_overcommit = 1;
    scene_rules(s);
    market_pod_init(&s->pod, &s->config, s->now_ns - s->rules.grace_ns, 1); /* its start is over */
    market_pod_set_limit(&s->pod, limit_milli, limit_request(limit_milli));
    market_pod_sample(&s->pod, &s->rules, s->stat, s->now_ns);
}

static void scene_end(struct scene *s)
{
    market_pod_done(&s->pod);
}

/* Lets the pod use this much for some seconds, throttled in so many of its ten periods per
 * second. */
static void run(struct scene *s, int seconds, int64_t usage_milli, uint32_t hits)
{
    for (int i = 0; i < seconds; i++) {
        s->now_ns += NS_PER_S;
        s->stat.usage_usec += usage_milli * 1000;
        s->stat.nr_periods += 10;
        s->stat.nr_throttled += hits;
        s->stat.throttled_usec += hits * 50000;
        market_pod_sample(&s->pod, &s->rules, s->stat, s->now_ns);
    }
}

static void learn(struct scene *s, int64_t usage_milli, uint32_t hits)
{
    run(s, 15, usage_milli, hits);
    market_pod_close_window(&s->pod, &s->rules, s->now_ns);
}

/* A slow window of that, and what becomes of the limit when the pod is given all it bids for. */
static int64_t window(struct scene *s, int64_t usage_milli, uint32_t hits)
{
    learn(s, usage_milli, hits);
    struct bid bid = market_pod_bid(&s->pod, &s->rules, 0, MARKET_SUPPLY_AMPLE, s->now_ns);
    int64_t limit = market_pod_next_limit(&s->pod, &s->rules, bid.max_milli, s->now_ns);
    market_pod_set_limit(&s->pod, limit, limit_request(limit));
    return limit;
}

static int windows_until_below(struct scene *s, int64_t usage_milli, int64_t limit_milli)
{
    for (int n = 1; n < 100; n++)
        if (window(s, usage_milli, 0) < limit_milli)
            return n;
    return 100;
}

/* ---- how a limit follows */

static void what_is_too_small_to_be_written_adds_up(void)
{
    struct scene s;
    scene_start(&s, 1000);
    for (int i = 0; i < 8; i++) { /* two minutes are watched first */
        learn(&s, 500, 0);
        EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 1090, s.now_ns), 1000);
    }
    market_pod_set_limit(&s.pod, 999, 900);
    market_pod_set_limit(&s.pod, 1000, 900);
    for (int i = 0; i < 9; i++)
        EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 1080, s.now_ns), 1000);
    EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 1080, s.now_ns),
           1080); /* 1080 - 80 * 0.9^10 is enough */

    market_pod_set_limit(&s.pod, 1040, 900); /* smoothing restarts from there */
    for (int i = 0; i < 100; i++)
        EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 1080, s.now_ns), 1040);
    scene_end(&s);
}

static void needed_growth_comes_at_once(void)
{
    struct scene s;
    scene_start(&s, 1000);
    learn(&s, 990, 0);
    EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 1200, s.now_ns), 1200);
    EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 1040, s.now_ns),
           1000); /* less than minChangePercent */
    scene_end(&s);
}

static void who_gives_up_something_does_so_once(void)
{
    struct scene s;
    scene_start(&s, 1000);
    int changes = 0;
    int64_t limit = 1000;
    for (int i = 0; i < 40; i++) {
        int64_t next = window(&s, 300, 0);
        OK(i >= 7 || next == 1000); /* two minutes are watched first */
        changes += next != limit;
        limit = next;
    }
    EQ_INT(changes, 1);
    OK(limit > 330 && limit < 400);
    scene_end(&s);
}

static void a_drop_is_smoothed_before_it_is_followed(void)
{
    struct scene s;
    scene_start(&s, 1000);
    for (int i = 0; i < 8; i++)
        learn(&s, 900, 0);
    EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 100, s.now_ns), 1000);
    EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 100, s.now_ns), 1000);
    EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 100, s.now_ns),
           100); /* 100 + 900 * 0.3^3 is near enough */
    scene_end(&s);
}

static void an_owners_bounds_hold_at_once(void)
{
    struct scene s;
    scene_start(&s, 500);
    s.pod.guaranteed_milli = 520; /* less than minChangePercent away, and the pod is idle */
    EQ_INT(window(&s, 0, 0), 520);
    s.pod.guaranteed_milli = 100;
    s.pod.max_milli = 510;
    EQ_INT(window(&s, 505, 10), 510);
    s.pod.max_milli = 0;
    s.pod.guaranteed_milli = 900;
    learn(&s, 100, 0);
    EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 520, s.now_ns),
           510); /* the node has no more: no haste */
    EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 900, s.now_ns), 900);
    scene_end(&s);
}

/* A node of two pods and two cores; what a slow round makes of their limits. */
static void round_of_two(struct scene *a, struct scene *b, int64_t limits[static 2])
{
    auto_arena struct arena arena = { 0 };
    struct clear_scratch scratch = { 0 };
    struct market_pod *pods[] = { &a->pod, &b->pod };
    struct market_node node = { 0 };
    struct round round = { 2000, pods, countof(pods), a->now_ns, &scratch, &arena, &node, 0 };
    int64_t requests[countof(pods)];
    market_slow_round(&round, &a->rules, limits, requests);
    OK(limits[0] + limits[1] <= 2000);
    clear_scratch_done(&scratch);
}

/* Another pod holds the CPU and does not use it. */
static void an_owners_minimum_is_taken_from_who_has_too_much(void)
{
    for (int32_t min = 510; min <= 1500; min += 90) {
        struct scene a, b;
        int64_t limits[2];
        scene_start(&a, 500);
        scene_start(&b, 1500);
        a.pod.min_milli = min;
        run(&a, 15, 20, 0);
        run(&b, 15, 20, 0);
        round_of_two(&a, &b, limits);
        OK(limits[0] >= MIN(min, 1000)); /* maxMinCPUShare of the node */
        scene_end(&a);
        scene_end(&b);
    }
}

/* Together they have all there is. What one lacks, though little, the other has left over. */
static void who_lacks_little_gets_it_on_a_full_node(void)
{
    struct scene a, b;
    int64_t limits[2];
    scene_start(&a, 980);
    scene_start(&b, 1020);
    run(&a, 15, 980, 10);
    run(&b, 15, 1000, 0);
    round_of_two(&a, &b, limits); /* less than minChangePercent: not worth two resizes */
    EQ_INT(limits[0], 980);
    EQ_INT(limits[1], 1020);
    market_pod_set_limit(&a.pod, 930, 800);
    market_pod_set_limit(&b.pod, 1070, 900);
    run(&a, 15, 930, 10);
    run(&b, 15, 1000, 0);
    round_of_two(&a, &b, limits);
    EQ_INT(limits[0], 1000);
    EQ_INT(limits[1], 1000);
    market_pod_set_limit(&a.pod, 1000, 900);
    market_pod_set_limit(&b.pod, 1000, 900);
    run(&a, 15, 1000, 10); /* both lack CPU now, which no allocation can change */
    run(&b, 15, 1000, 10);
    round_of_two(&a, &b, limits);
    EQ_INT(limits[0], 1000);
    EQ_INT(limits[1], 1000);
    scene_end(&a);
    scene_end(&b);
}

/* ---- bids */

static void the_least_is_what_is_used_and_a_little(void)
{
    struct scene s;
    scene_start(&s, 2000);
    window(&s, 1000, 0);
    EQ_INT(market_pod_floor(&s.pod, &s.rules, MARKET_SUPPLY_AMPLE, s.now_ns), 1150);
    EQ_INT(market_pod_floor(&s.pod, &s.rules, MARKET_SUPPLY_TIGHT, s.now_ns), 1000);
    EQ_INT(market_pod_floor(&s.pod, &s.rules, MARKET_SUPPLY_SCARCE, s.now_ns),
           100); /* the baseline */
    s.config.need_headroom = 0.5;
    scene_rules(&s);
    EQ_INT(market_pod_floor(&s.pod, &s.rules, MARKET_SUPPLY_AMPLE, s.now_ns), 1500);
    s.config.need_headroom = 0;
    scene_rules(&s);
    EQ_INT(market_pod_floor(&s.pod, &s.rules, MARKET_SUPPLY_AMPLE, s.now_ns), 1000);
    s.pod.guaranteed_milli = 1700;
    EQ_INT(market_pod_floor(&s.pod, &s.rules, MARKET_SUPPLY_SCARCE, s.now_ns), 1700);
    s.pod.guaranteed_milli = 200;
    s.pod.elastic = true; /* its work can wait */
    EQ_INT(market_pod_floor(&s.pod, &s.rules, MARKET_SUPPLY_AMPLE, s.now_ns), 200);
    scene_end(&s);
}

/* Absurd settings must not make sums overflow. */
static void absurd_settings_stay_numbers(void)
{
    struct scene s;
    scene_start(&s, 1000);
    s.config.need_headroom = s.config.want_headroom = 1e300;
    s.config.absolute_min_milli = INT64_MAX;
    scene_rules(&s);
    window(&s, 900, 10);
    struct bid bid = market_pod_bid(&s.pod, &s.rules, 0, MARKET_SUPPLY_AMPLE, s.now_ns);
    OK(bid.min_milli <= INT32_MAX && bid.max_milli <= INT32_MAX && bid.demand_milli <= INT32_MAX);
    scene_end(&s);
}

static void who_starts_keeps_what_it_has(void)
{
    struct scene s;
    scene_start(&s, 2000);
    s.pod.started_ns = s.now_ns;
    EQ_INT(market_pod_floor(&s.pod, &s.rules, MARKET_SUPPLY_AMPLE, s.now_ns), 2000);
    EQ_INT(market_pod_floor(&s.pod, &s.rules, MARKET_SUPPLY_AMPLE, s.now_ns + s.rules.grace_ns),
           100);
    scene_end(&s);
}

static void the_most_is_never_less_than_the_least(void)
{
    struct scene s;
    struct random r;
    scene_start(&s, 500);
    random_init(&r, 3, 1);
    for (int i = 0; i < 3000 && !tap_failures; i++) {
        s.config.need_headroom = random_below(&r, 3) ? 0.15 : 3;
        s.config.cost_efficiency = random_below(&r, 2);
        scene_rules(&s);
        s.pod.min_milli = (int32_t)random_below(&r, 1000);
        s.pod.max_milli = random_below(&r, 2) ? (int32_t)random_below(&r, 1000) : 0;
        s.pod.started_ns = random_below(&r, 5) ? 0 : s.now_ns;
        window(&s, random_below(&r, 600), random_below(&r, 11));
        double price = (double)random_below(&r, 20) / 10;
        enum market_supply ease = (enum market_supply)random_below(&r, 3);
        struct bid bid = market_pod_bid(&s.pod, &s.rules, price, ease, s.now_ns);
        OK(bid.min_milli <= bid.max_milli && bid.min_milli >= 0 && bid.weight > 0);
    }
    scene_end(&s);
}

/* A pod that is throttled or misses its objective must not explore. */
static void only_who_is_well_explores(void)
{
    struct scene s;
    scene_start(&s, 1000);
    s.config.exploration_rate = 1;
    market_pod_done(&s.pod);
    market_pod_init(&s.pod, &s.config, 0, 1);
    market_pod_set_limit(&s.pod, 1000, 900);
    market_pod_sample(&s.pod, &s.rules, s.stat, s.now_ns);
    learn(&s, 500, 0);
    bool tried[2][AGENT_ACTION_N] = { 0 };
    for (int i = 0; i < 100; i++) {
        s.pod.slo_ratio = i % 2 ? 1.5F : 0.5F;
        market_pod_bid(&s.pod, &s.rules, 0, MARKET_SUPPLY_AMPLE, s.now_ns);
        tried[i % 2][s.pod.agent.action] = true;
    }
    OK(tried[0][0] && tried[0][1] && tried[0][2]);
    OK(tried[1][AGENT_AGGRESSIVE] && !tried[1][1] && !tried[1][2]); /* it knows no better yet */
    s.pod.slo_ratio = 0;
    learn(&s, 1000, 5);
    for (int i = 0; i < 100; i++) {
        market_pod_bid(&s.pod, &s.rules, 0, MARKET_SUPPLY_AMPLE, s.now_ns);
        EQ_INT(s.pod.agent.action, AGENT_AGGRESSIVE);
    }
    scene_end(&s);
}

static void a_high_price_lowers_bids(void)
{
    struct scene s;
    scene_start(&s, 2000);
    s.config.kalman = false;
    s.config.price_response = true;
    scene_rules(&s);
    learn(&s, 1000, 0);
    struct bid bid = market_pod_bid(&s.pod, &s.rules, 0.3, MARKET_SUPPLY_TIGHT, s.now_ns);
    int64_t free = bid.max_milli, honest = bid.demand_milli;
    OK(free > 1000); /* up to 0.3 a price means nothing */
    bid = market_pod_bid(&s.pod, &s.rules, 1.5, MARKET_SUPPLY_TIGHT, s.now_ns);
    EQ_INT(bid.max_milli, 1000); /* never below need */
    EQ_INT(bid.demand_milli, honest);
    EQ_INT(s.pod.agent.action, AGENT_CONSERVATIVE);
    s.config.price_response = false;
    scene_rules(&s);
    OK(market_pod_bid(&s.pod, &s.rules, 1.5, MARKET_SUPPLY_TIGHT, s.now_ns).max_milli >= free);
    s.pod.elastic = true; /* answers whatever the setting */
    bid = market_pod_bid(&s.pod, &s.rules, 1.5, MARKET_SUPPLY_TIGHT, s.now_ns);
    OK(bid.max_milli < 600 && bid.weight < 0.2);
    scene_end(&s);
}

/* Work in bursts shorter than a second: the limit that was hit at 440 is not cut to the mean. */
static void bursts_inside_a_second_are_remembered(void)
{
    struct scene s;
    scene_start(&s, 300);
    learn(&s, 200, 5);
    market_pod_set_limit(&s.pod, 500, 450);
    for (int i = 0; i < MARKET_POD_PEAKS + 1; i++)
        learn(&s, 220, 0);
    OK(market_pod_need(&s.pod) >= 300 && market_pod_need(&s.pod) <= 340);
    scene_end(&s);
    scene_start(&s, 300);
    learn(&s, 300, 10); /* uses its whole limit: no bursts */
    market_pod_set_limit(&s.pod, 500, 450);
    for (int i = 0; i < MARKET_POD_PEAKS + 1; i++)
        learn(&s, 220, 0);
    EQ_INT(market_pod_need(&s.pod), 220);
    scene_end(&s);
}

static int64_t most_after_growth(bool kalman, double resize_seconds)
{
    struct scene s;
    scene_start(&s, 4000);
    s.config.kalman = kalman;
    scene_rules(&s);
    if (resize_seconds > 0)
        market_pod_note_resize_time(&s.pod, resize_seconds);
    for (int64_t usage = 500; usage < 1500; usage += 10) /* a tenth of a core in 10 s */
        run(&s, 1, usage, 0);
    market_pod_close_window(&s.pod, &s.rules, s.now_ns);
    int64_t most = market_pod_bid(&s.pod, &s.rules, 0, MARKET_SUPPLY_AMPLE, s.now_ns).max_milli;
    scene_end(&s);
    return most;
}

/* Until the next limit is in force: a slow round, and as long as a resize takes. */
static void who_grows_is_served_ahead(void)
{
    OK(most_after_growth(false, 0) < 1750); /* 1490 and 15 % */
    int64_t soon = most_after_growth(true, 0), later = most_after_growth(true, 45);
    OK(soon > 1800 && soon < 2100);
    OK(later > soon + 300);
}

static void how_long_resizes_take_is_averaged(void)
{
    struct market_pod pod = { 0 };
    market_pod_note_resize_time(&pod, 5);
    OK(fabsf(pod.resize_s - 5) < 1e-6F);
    market_pod_note_resize_time(&pod, 10);
    OK(fabsf(pod.resize_s - 6) < 1e-6F);
}

/* ---- boosts */

static int64_t boost(struct scene *s, int64_t room_milli)
{
    return market_pod_fast_step(&s->pod, &s->rules, room_milli, s->now_ns);
}

static void a_boost_only_raises_and_is_bounded(void)
{
    struct scene s;
    scene_start(&s, 800);
    run(&s, 2, 750, 0);
    EQ_INT(boost(&s, 10000), 800);
    run(&s, 2, 800, 1); /* not above the threshold, a tenth */
    EQ_INT(boost(&s, 10000), 800);
    run(&s, 2, 800, 5);
    OK(boost(&s, 10000) >= 1040); /* 0.2 + 0.2 * 0.5 */
    run(&s, 2, 800, 5);
    EQ_INT(boost(&s, 100), 900);
    run(&s, 2, 800, 5);
    EQ_INT(boost(&s, -50), 800);
    s.pod.max_milli = 1000;
    run(&s, 2, 800, 5);
    EQ_INT(boost(&s, 10000), 1000);
    scene_end(&s);
}

/* A latency objective may ask for anything: ten times and twenty cores are the most at once. */
static void a_boost_is_no_larger_than_a_step(void)
{
    struct scene s;
    scene_start(&s, 200);
    s.pod.slo_burns = true;
    s.pod.slo_milli = 90000;
    run(&s, 2, 100, 0);
    EQ_INT(boost(&s, 100000), 2000);
    market_pod_set_limit(&s.pod, 30000, 27000);
    run(&s, 2, 100, 0);
    EQ_INT(boost(&s, 100000), 50000);
    s.pod.slo_milli = 0; /* missed, and the necessary limit is unknown */
    run(&s, 2, 100, 0);
    EQ_INT(boost(&s, 100000), 36000);
    scene_end(&s);
}

static void a_boost_is_held(void)
{
    struct scene s;
    scene_start(&s, 1000);
    for (int i = 0; i < 10; i++)
        learn(&s, 700, 0);
    EQ_INT(boost(&s, 10000), 1000);
    run(&s, 2, 1000, 10);
    int64_t boosted = boost(&s, 10000);
    OK(boosted >= 1400);
    market_pod_set_limit(&s.pod, boosted, 900);
    int64_t until = s.now_ns + 30 * NS_PER_S; /* 2 * slowLoopInterval */
    for (int i = 0; i < 10; i++)
        EQ_INT(market_pod_next_limit(&s.pod, &s.rules, 500, until - 1), boosted);
    OK(market_pod_next_limit(&s.pod, &s.rules, 500, until) < boosted);
    scene_end(&s);
}

/* ---- costEfficiencyMode */

static void to_save_limits_follow_at_once(void)
{
    struct scene s;
    scene_start(&s, 1000);
    OK(windows_until_below(&s, 200, 400) >= 8);
    scene_end(&s);
    scene_start(&s, 1000);
    s.config.cost_efficiency = true;
    scene_rules(&s);
    OK(windows_until_below(&s, 200, 400) <= 3);
    scene_end(&s);
    scene_start(&s, 1000);
    s.config.cost_efficiency = true;
    s.config.alpha_down = 0.05; /* carefully */
    scene_rules(&s);
    OK(windows_until_below(&s, 200, 400) > 10);
    scene_end(&s);
}

static void to_save_demand_is_smoothed(void)
{
    struct scene s;
    scene_start(&s, 1000);
    s.config.cost_efficiency = true;
    scene_rules(&s);
    window(&s, 500, 0);
    EQ_INT(market_pod_need(&s.pod), 600); /* 0.8 * 500 + 0.2 * 1000 */
    window(&s, 700, 0);
    EQ_INT(market_pod_need(&s.pod), 610); /* 0.1 * 700 + 0.9 * 600 */
    window(&s, 5, 0);
    EQ_INT(market_pod_need(&s.pod),
           125); /* 0.8 * 5 + 0.2 * 610, less half a percent for doing nothing */
    s.config.idle_decay = 0.5;
    scene_rules(&s);
    window(&s, 5, 0);
    EQ_INT(market_pod_need(&s.pod), 15);
    scene_end(&s);
}

static void who_is_throttled_is_not_saved_on(void)
{
    struct scene s;
    scene_start(&s, 300);
    s.config.cost_efficiency = true;
    scene_rules(&s);
    window(&s, 200, 0);
    EQ_REAL(market_pod_bid(&s.pod, &s.rules, 0, MARKET_SUPPLY_AMPLE, s.now_ns).weight, 1.0);
    market_pod_set_limit(&s.pod, 300, 270);
    int64_t limit = window(&s, 300, 10);
    OK(limit > 350); /* at once, not by a tenth */
    OK(market_pod_bid(&s.pod, &s.rules, 0, MARKET_SUPPLY_AMPLE, s.now_ns).weight > 1.0);
    scene_end(&s);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(what_is_too_small_to_be_written_adds_up),
        TAP(needed_growth_comes_at_once),
        TAP(who_gives_up_something_does_so_once),
        TAP(a_drop_is_smoothed_before_it_is_followed),
        TAP(an_owners_bounds_hold_at_once),
        TAP(an_owners_minimum_is_taken_from_who_has_too_much),
        TAP(who_lacks_little_gets_it_on_a_full_node),
        TAP(the_least_is_what_is_used_and_a_little),
        TAP(absurd_settings_stay_numbers),
        TAP(who_starts_keeps_what_it_has),
        TAP(the_most_is_never_less_than_the_least),
        TAP(only_who_is_well_explores),
        TAP(a_high_price_lowers_bids),
        TAP(bursts_inside_a_second_are_remembered),
        TAP(who_grows_is_served_ahead),
        TAP(how_long_resizes_take_is_averaged),
        TAP(a_boost_only_raises_and_is_bounded),
        TAP(a_boost_is_no_larger_than_a_step),
        TAP(a_boost_is_held),
        TAP(to_save_limits_follow_at_once),
        TAP(to_save_demand_is_smoothed),
        TAP(who_is_throttled_is_not_saved_on),
        { 0 },
    });
}
