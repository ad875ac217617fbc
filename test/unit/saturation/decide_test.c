/* Laws of a decision, over random models: bounds, order, rest on a constant load, and no replica taken
 * away that the load needs. The load is spread evenly over what is there, as a gateway would. */
#include "base/random.h"
#include "saturation/config/config_core.h"
#include "saturation/wva/decide_core.h"
#include "tap.h"

enum { ROUNDS = 3000, VARIANTS = 4, REPLICAS = 120, STEPS = 40 };

static const str names[VARIANTS] = { STR_INIT("a"), STR_INIT("b"), STR_INIT("c"), STR_INIT("d") };
static const str pods[] = { STR_INIT("pod") };

struct trial {
    struct random random;
    struct sat_config config;
    struct sat_state states[VARIANTS];
    int model[VARIANTS]; /* what an optimizer wants */
    bool hybrid;
    struct sat_replica replicas[REPLICAS];
    size_t n, replica_n;
    double load_kv, load_queue; /* of the whole model */
};

static double unit(struct trial *t)
{
    return random_below(&t->random, 1000) / 1000.0;
}

/* Every second one has an optimizer, whose wishes are any. */
static void make(struct trial *t, uint64_t seed)
{
    *t = (struct trial){ .hybrid = seed % 2 };
    random_init(&t->random, seed, 7);
    t->n = 1 + random_below(&t->random, VARIANTS);
    t->config = (struct sat_config){ 0.5 + unit(t) / 2, 2 + 8 * unit(t), 0.3 * unit(t), unit(t) };
    for (size_t i = 0; i < t->n; i++) {
        int min = 1 + (int)random_below(&t->random, 2);
        t->states[i] = (struct sat_state){
            .variant = names[i],
            .current = min + (int)random_below(&t->random, 6),
            .min = min,
            .max = random_below(&t->random, 2) ? min + 8 : 0,
            .cost = 1 + random_below(&t->random, 50),
            .tolerance_up = random_below(&t->random, 2) ? 0.1 : 0,
            .tolerance_down = random_below(&t->random, 2) ? 0.2 : 0,
        };
    }
    for (size_t i = 0; i < t->n; i++)
        t->model[i] = (int)random_below(&t->random, 10);
    t->load_kv = 8 * unit(t);
    t->load_queue = 10 * unit(t);
}

static int total(const struct trial *t)
{
    int n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->states[i].current;
    return n;
}

static void spread(struct trial *t)
{
    double all = total(t);
    t->replica_n = 0;
    for (size_t i = 0; i < t->n; i++)
        for (int k = 0; k < t->states[i].current && t->replica_n < REPLICAS; k++)
            t->replicas[t->replica_n++] =
                (struct sat_replica){ .pod = pods[0],
                                      .variant = t->states[i].variant,
                                      .cost = t->states[i].cost,
                                      .kv_usage = fmin(1, t->load_kv / all),
                                      .queue = t->load_queue / all };
}

static struct decide_answers decide(struct arena *a, const struct trial *t)
{
    return decide_model(a,
                        &(struct decide_input){ .config = t->config,
                                                .replicas = t->replicas,
                                                .replica_n = t->replica_n,
                                                .states = t->states,
                                                .state_n = t->n,
                                                .mode = t->hybrid ? DECIDE_HYBRID : DECIDE_CAPACITY,
                                                .model_targets = t->hybrid ? t->model : NULL });
}

static struct sat_state *state_of(struct trial *t, str variant)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->states[i].variant, variant))
            return &t->states[i];
    return NULL;
}

static bool within_bounds(struct trial *t, const struct decide_answers *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct sat_state *s = state_of(t, d->at[i].variant);
        if (d->at[i].target < s->min || (s->max && d->at[i].target > s->max) || !d->at[i].reason.n)
            return false;
    }
    return true;
}

/* What there is at once: what grows is not there yet. */
static int left_by(const struct decide_answers *d)
{
    int n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += MIN(d->at[i].target, d->at[i].current);
    return n;
}

static int sum(const struct decide_answers *d)
{
    int n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->at[i].target;
    return n;
}

static void bounds_hold_and_every_answer_has_a_reason(void)
{
    struct trial t;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct arena a = { 0 };
        make(&t, seed);
        spread(&t);
        struct decide_answers d = decide(&a, &t);
        if (!OK(within_bounds(&t, &d)))
            printf("# seed %llu\n", (unsigned long long)seed);
        arena_done(&a);
    }
}

/* After going down each of the rest carries at most what leaves the spare that is asked for. */
static void nothing_shrinks_below_the_load(void)
{
    struct trial t;
    int shrunk = 0;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct arena a = { 0 };
        make(&t, seed);
        spread(&t);
        struct decide_answers d = decide(&a, &t);
        int left = left_by(&d);
        if (left < total(&t)) {
            shrunk++;
            double all = total(&t), kv = fmin(1, t.load_kv / all) * all;
            bool fits = kv / left <= t.config.kv_threshold - t.config.kv_spare_trigger + 1e-6 &&
                        t.load_queue / left <=
                            t.config.queue_threshold - t.config.queue_spare_trigger + 1e-6;
            if (!OK(fits))
                printf("# seed %llu\n", (unsigned long long)seed);
        }
        arena_done(&a);
    }
    OK(shrunk > ROUNDS / 20);
}

static void order_does_not_matter(void)
{
    struct trial t, other;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct arena a = { 0 };
        make(&t, seed);
        spread(&t);
        other = t;
        for (size_t i = other.replica_n; i > 1; i--) {
            size_t k = random_below(&other.random, (uint32_t)i);
            struct sat_replica r = other.replicas[i - 1];
            other.replicas[i - 1] = other.replicas[k];
            other.replicas[k] = r;
        }
        for (size_t i = other.n; i > 1; i--) {
            size_t k = random_below(&other.random, (uint32_t)i);
            struct sat_state s = other.states[i - 1];
            other.states[i - 1] = other.states[k];
            other.states[k] = s;
            int model = other.model[i - 1];
            other.model[i - 1] = other.model[k];
            other.model[k] = model;
        }
        struct decide_answers x = decide(&a, &t), y = decide(&a, &other);
        for (size_t i = 0; i < x.n; i++)
            OK(str_eq(x.at[i].variant, y.at[i].variant) && x.at[i].target == y.at[i].target);
        arena_done(&a);
    }
}

/* A constant load, followed at once, comes to rest. It may turn back once: full caches hide how much is
 * needed, and growth may pass it. */
static void a_constant_load_comes_to_rest(void)
{
    struct trial t;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        int direction = 0, turns = 0, moved_at = 0;
        make(&t, seed);
        t.hybrid = false; /* an optimizer's wishes follow the load, those here do not */
        for (int step = 0; step < STEPS; step++) {
            struct arena a = { 0 };
            spread(&t);
            struct decide_answers d = decide(&a, &t);
            int now = sum(&d) > total(&t) ? 1 : sum(&d) < total(&t) ? -1 : 0;
            turns += now && direction && now != direction;
            direction = now ? now : direction;
            for (size_t i = 0; i < d.n; i++) {
                struct sat_state *s = state_of(&t, d.at[i].variant);
                moved_at = s->current != d.at[i].target ? step : moved_at;
                s->current = s->desired = d.at[i].target;
            }
            arena_done(&a);
        }
        if (!OK(turns <= 1 && moved_at < STEPS - 10))
            printf("# seed %llu: %d turns, moved last at %d\n", (unsigned long long)seed, turns,
                   moved_at);
    }
}

/* An idle model of four replicas, the last of which were added 20 s ago. */
static int shrink_after_growth(double took)
{
    auto_arena struct arena a = { 0 };
    struct sat_state state = {
        .variant = names[0], .current = 4, .desired = 4, .min = 1, .max = 8, .cost = 1
    };
    struct sat_replica replicas[4];
    for (size_t i = 0; i < countof(replicas); i++)
        replicas[i] = (struct sat_replica){
            .pod = pods[0], .variant = names[0], .cost = 1, .kv_usage = 0.01
        };
    struct decide_memory memory = { .grown_at = 100 };
    struct decide_input in = { .rules = DECIDE_BY_NEED,
                               .mode = DECIDE_CAPACITY,
                               .config = sat_config_builtin,
                               .replicas = replicas,
                               .replica_n = countof(replicas),
                               .states = &state,
                               .state_n = 1,
                               .memory = &memory,
                               .now = 120,
                               .start_delay = took };
    return decide_model(&a, &in).at[0].target;
}

static void replicas_are_held_for_their_own_start_delay(void)
{
    OK(shrink_after_growth(0) == 4); /* not known: two minutes */
    OK(shrink_after_growth(60) == 4);
    OK(shrink_after_growth(8) < 4);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(bounds_hold_and_every_answer_has_a_reason),
                                        TAP(replicas_are_held_for_their_own_start_delay),
                                        TAP(nothing_shrinks_below_the_load),
                                        TAP(order_does_not_matter),
                                        TAP(a_constant_load_comes_to_rest),
                                        { 0 } });
}
