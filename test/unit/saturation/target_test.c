/* The laws of replica targets, on random models. */
#include "tap.h"

#include "saturation/saturation.h"

#include "base/random.h"

static const struct sat_config config = { 0.8, 5, 0.1, 3 };

enum { VARIANTS = 3, REPLICAS = 60 };
static const char *const names[VARIANTS] = { "a", "b", "c" };

struct model {
    struct sat_state states[VARIANTS];
    struct sat_replica replicas[REPLICAS];
    size_t replica_n;
};

/* Spreads a load evenly over the replicas that of the states. */
static void spread(struct model *m, double load_kv, double load_queue)
{
    m->replica_n = 0;
    int total = 0;
    for (size_t v = 0; v < VARIANTS; v++)
        total += m->states[v].current;
    for (size_t v = 0; v < VARIANTS; v++)
        for (int i = 0; i < m->states[v].current; i++)
            m->replicas[m->replica_n++] = (struct sat_replica){
                .pod = S("p"),
                .variant = m->states[v].variant,
                .accelerator = S("gpu"),
                .cost = m->states[v].cost,
                .kv_usage = fmin(1, load_kv / total),
                .queue = load_queue / total,
            };
}

static struct model random_model(struct random *r)
{
    struct model m = { 0 };
    for (size_t v = 0; v < VARIANTS; v++) {
        int min = (int)random_below(r, 3), max = min + 1 + (int)random_below(r, 12);
        m.states[v] = (struct sat_state){
            .variant = str_c(names[v]),
            .current = min + (int)random_below(r, (uint32_t)(max - min + 1)),
            .min = min,
            .max = max,
            .cost = 1 + random_below(r, 5),
            .tolerance_up = random_below(r, 2) ? 0.1 : 0,
            .tolerance_down = random_below(r, 2) ? 0.1 : 0,
        };
        m.states[v].desired = random_below(r, 3) ? 0 : (int)random_below(r, 20);
        m.states[v].settled = random_below(r, 2);
    }
    spread(&m, random_unit(r) * 20, random_unit(r) * 40);
    return m;
}

static struct sat_targets decide(struct arena *a, const struct model *m)
{
    struct sat_analysis analysis = sat_analyze(a, &config, m->replicas, m->replica_n);
    return sat_decide(a, &config, &analysis, m->states, VARIANTS);
}

static void stays_within_bounds(void)
{
    struct random r;
    random_init(&r, 1, 1);
    auto_arena struct arena a = { 0 };
    for (int round = 0; round < 20000 && !tap_failures; round++) {
        struct model m = random_model(&r);
        struct sat_targets t = decide(&a, &m);
        for (size_t v = 0; v < VARIANTS; v++)
            OK(t.at[v].replicas >= m.states[v].min && t.at[v].replicas <= m.states[v].max);
        arena_reset(&a, (struct arena_mark){ 0 });
    }
}

/* After a scale-down the remaining replicas carry the load below the trigger. */
static void never_shrinks_below_the_load(void)
{
    struct random r;
    random_init(&r, 2, 1);
    auto_arena struct arena a = { 0 };
    int shrunk = 0;
    for (int round = 0; round < 20000 && !tap_failures; round++) {
        struct model m = random_model(&r);
        struct sat_analysis before = sat_analyze(&a, &config, m.replicas, m.replica_n);
        struct sat_targets t = decide(&a, &m);
        int now = 0, then = 0;
        for (size_t v = 0; v < VARIANTS; v++) {
            now += m.states[v].current;
            then += t.at[v].replicas;
        }
        if (then < now && !t.in_transition && before.replicas == now) {
            shrunk++;
            OK(before.load_kv / then <= 0.7 + 1e-9 && before.load_queue / then <= 2 + 1e-9);
        }
        arena_reset(&a, (struct arena_mark){ 0 });
    }
    OK(shrunk > 100);
}

static void order_does_not_matter(void)
{
    struct random r;
    random_init(&r, 3, 1);
    auto_arena struct arena a = { 0 };
    for (int round = 0; round < 5000 && !tap_failures; round++) {
        struct model m = random_model(&r), turned = m;
        for (size_t i = 0; i < m.replica_n; i++)
            turned.replicas[i] = m.replicas[m.replica_n - 1 - i];
        for (size_t v = 0; v < VARIANTS; v++)
            turned.states[v] = m.states[VARIANTS - 1 - v];
        struct sat_targets x = decide(&a, &m), y = decide(&a, &turned);
        for (size_t v = 0; v < VARIANTS; v++)
            EQ_INT(x.at[v].replicas, y.at[v].replicas);
        arena_reset(&a, (struct arena_mark){ 0 });
    }
}

/* On a constant load the targets settle, and stay. */
static void does_not_oscillate(void)
{
    struct random r;
    random_init(&r, 4, 1);
    auto_arena struct arena a = { 0 };
    for (int round = 0; round < 2000 && !tap_failures; round++) {
        struct model m = random_model(&r);
        double kv = random_unit(&r) * 10, queue = random_unit(&r) * 10;
        int changes = 0;
        for (int cycle = 0; cycle < 12; cycle++) {
            spread(&m, kv, queue);
            struct sat_targets t = decide(&a, &m);
            for (size_t v = 0; v < VARIANTS; v++) {
                changes += cycle >= 8 && t.at[v].replicas != m.states[v].current;
                m.states[v].desired = m.states[v].current = t.at[v].replicas;
            }
        }
        EQ_INT(changes, 0);
        arena_reset(&a, (struct arena_mark){ 0 });
    }
}

static struct sat_targets one_variant(struct arena *a, struct sat_state s, int reporting, double kv)
{
    static struct model m;
    m.replica_n = 0;
    for (int i = 0; i < reporting; i++)
        m.replicas[m.replica_n++] =
            (struct sat_replica){ .pod = S("p"), .variant = s.variant, .kv_usage = kv };
    struct sat_analysis analysis = sat_analyze(a, &config, m.replicas, m.replica_n);
    return sat_decide(a, &config, &analysis, &s, 1);
}

static void jumps_to_what_is_needed(void)
{
    auto_arena struct arena a = { 0 };
    struct sat_state s = { .variant = S("a"), .current = 10, .max = 50 };
    EQ_INT(one_variant(&a, s, 10, 0.79).at[0].replicas, 12); /* 7.9 / 0.7 */
    EQ_INT(one_variant(&a, s, 10, 0.30).at[0].replicas, 5);  /* 3.0 / 0.7 */
    EQ_INT(one_variant(&a, s, 10, 0.70).at[0].replicas, 10);
}

/* One replica is full by its queue, and its empty cache hides how full the others are. */
static void grows_though_the_sum_would_do(void)
{
    auto_arena struct arena a = { 0 };
    struct sat_state s = { .variant = S("a"), .current = 4 };
    struct sat_replica replicas[4];
    for (size_t i = 0; i < countof(replicas); i++)
        replicas[i] = (struct sat_replica){
            .pod = S("p"), .variant = S("a"), .kv_usage = i ? 0.72 : 0, .queue = i ? 0 : 5
        };
    struct sat_analysis analysis = sat_analyze(&a, &config, replicas, countof(replicas));
    EQ_INT(sat_decide(&a, &config, &analysis, &s, 1).at[0].replicas, 5);
}

static void clears_the_tolerance_of_an_hpa(void)
{
    auto_arena struct arena a = { 0 };
    struct sat_state s = {
        .variant = S("a"), .current = 20, .max = 50, .tolerance_up = 0.1, .tolerance_down = 0.1
    };
    EQ_INT(one_variant(&a, s, 20, 0.72).at[0].replicas, 23); /* 21 would be ignored for ever */
    EQ_INT(one_variant(&a, s, 20, 0.64).at[0].replicas, 20); /* 19 likewise: hold */
    EQ_INT(one_variant(&a, s, 20, 0.50).at[0].replicas, 15);
    s.tolerance_up = s.tolerance_down = 1e15;
    EQ_INT(one_variant(&a, s, 20, 0.72).at[0].replicas, 50);
    EQ_INT(one_variant(&a, s, 20, 0.50).at[0].replicas, 20);
}

/* 16 carry it exactly: in binary a hair too little is left of them, and a hair too much for 17. */
static void a_load_that_fits_exactly_rests(void)
{
    auto_arena struct arena a = { 0 };
    struct sat_config exact = { 0.616, 9.776, 0.162, 0.034 };
    struct sat_replica replicas[17];
    for (int n = 16; n <= 17; n++) {
        for (int i = 0; i < n; i++)
            replicas[i] = (struct sat_replica){
                .pod = S("p"), .variant = S("a"), .cost = 1, .kv_usage = 7.264 / n
            };
        struct sat_state s = { .variant = S("a"), .current = n, .min = 1 };
        struct sat_analysis analysis = sat_analyze(&a, &exact, replicas, (size_t)n);
        EQ_INT(sat_decide(&a, &exact, &analysis, &s, 1).at[0].replicas, 16);
    }
}

static void a_bound_does_not_freeze(void)
{
    auto_arena struct arena a = { 0 };
    /* it once wanted 8, but its HPA allows 5 */
    struct sat_state s = { .variant = S("a"), .current = 5, .desired = 8, .max = 5 };
    EQ_INT(one_variant(&a, s, 5, 0.2).at[0].replicas, 2);
    /* and an unreachable target (no accelerators left) is given up after a while */
    s.max = 20;
    EQ_INT(one_variant(&a, s, 5, 0.2).at[0].replicas, 8);
    s.settled = true;
    EQ_INT(one_variant(&a, s, 5, 0.2).at[0].replicas, 2);
}

static void silence_is_not_idleness(void)
{
    auto_arena struct arena a = { 0 };
    struct sat_state s = { .variant = S("a"), .current = 4, .max = 9 };
    EQ_INT(one_variant(&a, s, 4, NAN).at[0].replicas, 4);
    EQ_INT(one_variant(&a, s, 3, 0.1).at[0].replicas, 4); /* one pod does not report */
    EQ_INT(one_variant(&a, s, 0, 0).at[0].replicas, 4);
    s.pending = 1;
    EQ_INT(one_variant(&a, s, 4, 0.1).at[0].replicas, 4); /* one pod is not ready */
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(stays_within_bounds),
                                        TAP(never_shrinks_below_the_load),
                                        TAP(order_does_not_matter),
                                        TAP(does_not_oscillate),
                                        TAP(jumps_to_what_is_needed),
                                        TAP(grows_though_the_sum_would_do),
                                        TAP(clears_the_tolerance_of_an_hpa),
                                        TAP(a_load_that_fits_exactly_rests),
                                        TAP(a_bound_does_not_freeze),
                                        TAP(silence_is_not_idleness),
                                        { 0 } });
}
