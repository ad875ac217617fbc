/* The laws of the slo policy, on random sequences of steps: the vectors define its answers, these tests what it may
 * never do. */
#include "tap.h"

#include "saturation/slo/slo_core.h"

#include "base/random.h"

#include <math.h>

enum { SEQUENCES = 10000, STEPS_SHORT = 14, STEPS_LONG = 110 };

static const struct slo_config config = { .ttft = 2, .itl = 0.06, .goal = 0.99, .cycle = 15 };

/* ---- a random model that behaves: what its replicas report follows from the load */

struct world {
    struct random random;
    double rate, trend, in, out;
    size_t variant_n;
    struct slo_variant variants[SLO_VARIANTS_MAX];
    double base[SLO_VARIANTS_MAX]; /* s of an idle iteration */
};

static double random_between(struct random *r, double low, double high)
{
    return low + (high - low) * random_unit(r);
}

static struct world make_world(uint64_t seed)
{
    struct world w = { 0 };
    random_init(&w.random, seed, 1);
    struct random *r = &w.random;
    w.rate = random_between(r, 0, 60);
    w.trend = random_between(r, -0.5, 1);
    w.in = random_between(r, 50, 3000);
    w.out = random_between(r, 20, 500);
    w.variant_n = 1 + random_below(r, 4);
    for (size_t i = 0; i < w.variant_n; i++) {
        int min = (int)random_below(r, 3);
        w.variants[i] = (struct slo_variant){ .id = 100 + 7 * i,
                                              .min = min,
                                              .max = min + 1 + (int)random_below(r, 60),
                                              .cost = random_between(r, 5, 60),
                                              .kv_tokens = random_between(r, 2e4, 5e5),
                                              .max_seqs = random_below(r, 2) ? 256 : NAN,
                                              .start_delay = NAN };
        w.variants[i].current = w.variants[i].min + (int)random_below(r, 4);
        w.base[i] = random_between(r, 0.008, 0.04);
    }
    return w;
}

static void report(struct world *w, size_t i, double per_replica)
{
    struct slo_variant *v = &w->variants[i];
    double speed = fmax(1 - per_replica * (w->in * 1e-4 + w->out * 2e-3) / 3, 0.05);
    v->ready = v->reporting = v->current;
    v->itl = w->base[i] / speed;
    v->prompt_rate = per_replica * w->in;
    v->gen_rate = per_replica * w->out;
    v->running = v->running_low = v->running_high = per_replica * w->out * v->itl;
    v->kv = fmin(1, v->running * (w->in + w->out / 2) / v->kv_tokens);
}

static struct slo_input observe(struct world *w, int step)
{
    struct random *r = &w->random;
    int total = 0;
    for (size_t i = 0; i < w->variant_n; i++)
        total += w->variants[i].current;
    for (size_t i = 0; i < w->variant_n; i++)
        report(w, i, w->rate / MAX(total, 1));
    struct slo_input in = { .now = 60 + 15 * step,
                            .arrival = w->rate * random_between(r, 0.9, 1.1),
                            .in_tokens = w->in * random_between(r, 0.9, 1.1),
                            .out_tokens = w->out * random_between(r, 0.9, 1.1),
                            .in_tail = w->in * 4,
                            .ok = NAN,
                            .finished = w->rate * 15,
                            .season = NAN,
                            .variant_n = w->variant_n };
    memcpy(in.variants, w->variants, sizeof(in.variants));
    w->rate = fmax(w->rate + w->trend, 0);
    return in;
}

static void follow(struct world *w, const struct slo_output *out)
{
    for (size_t i = 0; i < w->variant_n; i++)
        w->variants[i].current = out->targets[i];
}

/* One in forty lasts until there are forecasts enough to choose from. */
static int steps_of(struct world *w)
{
    bool is_long = random_below(&w->random, 40) == 0;
    return 1 + (int)random_below(&w->random, is_long ? STEPS_LONG : STEPS_SHORT);
}

static int total_of(const struct slo_output *out, size_t n)
{
    int total = 0;
    for (size_t i = 0; i < n; i++)
        total += out->targets[i];
    return total;
}

/* ---- laws */

static void targets_stay_within_bounds(void)
{
    for (uint64_t seed = 0; seed < SEQUENCES; seed++) {
        struct world w = make_world(seed);
        struct slo_state state;
        struct slo_output out;
        slo_state_init(&state);
        for (int step = 0, n = steps_of(&w); step < n; step++) {
            struct slo_input in = observe(&w, step);
            slo_step(&state, &config, &in, &out);
            int before = 0;
            for (size_t i = 0; i < in.variant_n; i++) {
                const struct slo_variant *v = &in.variants[i];
                before += v->current;
                if (out.targets[i] < MIN(v->min, v->current) ||
                    out.targets[i] > MAX(v->max, v->current)) {
                    tap_note(__FILE__, __LINE__, "seed %llu: %d outside [%d, %d]",
                             (unsigned long long)seed, out.targets[i], v->min, v->max);
                    return;
                }
            }
            if (!OK(total_of(&out, in.variant_n) <= 2 * before + 8) ||
                !OK(before == 0 || total_of(&out, in.variant_n) > 0))
                return;
            follow(&w, &out);
        }
    }
}

static void more_load_never_asks_for_fewer(void)
{
    for (uint64_t seed = 0; seed < SEQUENCES; seed++) {
        struct world w = make_world(seed);
        struct slo_state state;
        struct slo_output out = { 0 }, more;
        slo_state_init(&state);
        for (int step = 0, n = steps_of(&w); step < n; step++) {
            struct slo_input in = observe(&w, step), busier = in;
            struct slo_state twin = state;
            busier.arrival *= random_between(&w.random, 1, 3);
            slo_step(&state, &config, &in, &out);
            slo_step(&twin, &config, &busier, &more);
            if (more.need < out.need * (1 - 1e-12) ||
                (in.variant_n == 1 && more.targets[0] < out.targets[0])) {
                tap_note(__FILE__, __LINE__,
                         "seed %llu step %d: %.4f req/s need %.4f, %.4f need %.4f",
                         (unsigned long long)seed, step, in.arrival, out.need, busier.arrival,
                         more.need);
                return;
            }
            follow(&w, &out);
        }
    }
}

static void the_order_of_variants_changes_nothing(void)
{
    for (uint64_t seed = 0; seed < SEQUENCES; seed++) {
        struct world w = make_world(seed);
        struct slo_state state, twin;
        struct slo_output out, other;
        slo_state_init(&state);
        slo_state_init(&twin);
        for (int step = 0, n = steps_of(&w); step < n; step++) {
            struct slo_input in = observe(&w, step), turned = in;
            size_t shift = random_below(&w.random, (uint32_t)in.variant_n);
            for (size_t i = 0; i < in.variant_n; i++)
                turned.variants[(i + shift) % in.variant_n] = in.variants[i];
            slo_step(&state, &config, &in, &out);
            slo_step(&twin, &config, &turned, &other);
            bool same = strcmp(out.reason, other.reason) == 0;
            for (size_t i = 0; i < in.variant_n; i++)
                same &= out.targets[i] == other.targets[(i + shift) % in.variant_n];
            if (!OK(same))
                return;
            follow(&w, &out);
        }
    }
}

static const double absurd[] = { NAN, -1, INFINITY, -INFINITY, 1e300 };

/* A field that is broken is the same as one that is missing, to the last bit of the state. */
/* Replicas become ready one by one: `ready` follows what was asked for. */
static void lag_behind(struct world *w, struct slo_input *in, int *ready)
{
    for (size_t i = 0; i < in->variant_n; i++) {
        int behind = in->variants[i].current - ready[i];
        ready[i] += behind > 0 ? (int)random_below(&w->random, 2) : behind;
        in->variants[i].ready = in->variants[i].reporting = ready[i];
    }
}

/* Before this law, a replica of one variant went as soon as one of another was ordered that would replace it. */
static void what_serves_is_not_exchanged_for_what_starts(void)
{
    int removals = 0;
    for (uint64_t seed = 0; seed < SEQUENCES / 100; seed++) {
        struct world w = make_world(seed);
        struct slo_state s;
        struct slo_output out;
        int ready[SLO_VARIANTS_MAX] = { 0 };
        slo_state_init(&s);
        for (int step = 0; step < STEPS_LONG; step++) {
            struct slo_input in = observe(&w, step);
            double left = 0, lost = 0;
            lag_behind(&w, &in, ready);
            slo_step(&s, &config, &in, &out);
            for (size_t i = 0; i < in.variant_n; i++)
                if (out.fit[i] != SLO_UNFIT) {
                    left += MIN(ready[i], out.targets[i]) * out.capacity[i];
                    lost += MAX(ready[i] - out.targets[i], 0) * out.capacity[i];
                }
            removals += lost > 0;
            if (lost > 0 && !OK(left >= out.hold))
                return;
            follow(&w, &out);
        }
    }
    OK(removals > 20);
}

static void broken_inputs_count_as_unknown(void)
{
    for (uint64_t seed = 0; seed < SEQUENCES; seed++) {
        struct world w = make_world(seed);
        struct slo_state state, twin;
        struct slo_output out, other;
        slo_state_init(&state);
        slo_state_init(&twin);
        for (int step = 0, n = steps_of(&w); step < n; step++) {
            struct slo_input in = observe(&w, step), broken;
            double bad = absurd[random_below(&w.random, countof(absurd))];
            double *fields[] = { &in.arrival,
                                 &in.in_tokens,
                                 &in.out_tokens,
                                 &in.in_tail,
                                 &in.ok,
                                 &in.season,
                                 &in.waiting,
                                 &in.queued,
                                 &in.variants[0].itl,
                                 &in.variants[0].prompt_rate,
                                 &in.variants[0].gen_rate,
                                 &in.variants[0].running,
                                 &in.variants[0].kv,
                                 &in.variants[0].kv_tokens,
                                 &in.variants[0].max_seqs,
                                 &in.variants[0].start_delay };
            double *field = fields[random_below(&w.random, countof(fields))];
            *field = bad;
            broken = in;
            *field = NAN;
            slo_step(&state, &config, &in, &out);
            slo_step(&twin, &config, &broken, &other);
            if (!OK(memcmp(&state, &twin, sizeof(state)) == 0) ||
                !OK(memcmp(out.targets, other.targets, sizeof(out.targets)) == 0))
                return;
            follow(&w, &out);
        }
    }
}

static void an_unknown_load_holds(void)
{
    for (uint64_t seed = 0; seed < SEQUENCES / 10; seed++) {
        struct world w = make_world(seed);
        struct slo_state state;
        struct slo_output out;
        slo_state_init(&state);
        for (int step = 0, n = steps_of(&w); step < n; step++) {
            struct slo_input in = observe(&w, step), blind = in;
            struct slo_state twin = state;
            blind.arrival = NAN;
            slo_step(&twin, &config, &blind, &out);
            for (size_t i = 0; i < in.variant_n; i++)
                if (in.variants[i].current > 0 && !EQ_INT(out.targets[i], in.variants[i].current))
                    return;
            slo_step(&state, &config, &in, &out);
            follow(&w, &out);
        }
    }
}

/* ---- variants come, go and come back */

static void a_variant_keeps_what_was_learned_about_it(void)
{
    struct world w = make_world(3);
    w.variant_n = 2;
    w.variants[0].id = 11;
    w.variants[1] = w.variants[0];
    w.variants[1].id = 5;
    w.base[1] = w.base[0] = 0.02;
    w.rate = 5;
    w.trend = 0;
    struct slo_state state;
    struct slo_output out;
    slo_state_init(&state);
    for (int step = 0; step < 10; step++) {
        w.variants[0].current = w.variants[1].current = 2;
        struct slo_input in = observe(&w, step);
        slo_step(&state, &config, &in, &out);
    }
    EQ_INT(out.fit[0], SLO_FITS);
    struct slo_input alone = observe(&w, 10);
    alone.variants[0] = alone.variants[1];
    alone.variant_n = 1;
    slo_step(&state, &config, &alone, &out);
    EQ_INT(out.fit[0], SLO_FITS); /* not taken for the one that stood first before */
    for (uint64_t id = 1000; id < 1000 + 3 * SLO_VARIANTS_MAX; id++) { /* others take its place */
        alone.variants[0].id = id;
        slo_step(&state, &config, &alone, &out);
        EQ_INT(out.fit[0], SLO_UNSEEN);
    }
}

static void a_hint_makes_a_variant_usable(void)
{
    struct slo_state state;
    struct slo_output out;
    slo_state_init(&state);
    slo_state_hint(&state, 9, (double[3]){ 6, 4, 5 });
    EQ_REAL(state.speeds[0].th[0], 6);
    struct slo_input in = { .now = 60,
                            .arrival = 10,
                            .in_tokens = 800,
                            .out_tokens = 100,
                            .in_tail = NAN,
                            .waiting = NAN,
                            .queued = NAN,
                            .ok = NAN,
                            .finished = NAN,
                            .season = NAN,
                            .variant_n = 1 };
    in.variants[0] = (struct slo_variant){ .id = 9,
                                           .current = 1,
                                           .max = 9,
                                           .hinted = true,
                                           .cost = 1,
                                           .itl = NAN,
                                           .prompt_rate = NAN,
                                           .gen_rate = NAN,
                                           .running = NAN,
                                           .kv = NAN,
                                           .kv_tokens = NAN,
                                           .max_seqs = NAN,
                                           .start_delay = NAN };
    slo_step(&state, &config, &in, &out);
    EQ_INT(out.fit[0], SLO_FITS);
    EQ_REAL(state.speeds[0].th[0], 6);
}

static void a_reserve_is_held_on_top(void)
{
    struct world w = make_world(4);
    w.variant_n = 1;
    w.variants[0].max = 1000;
    w.rate = 20;
    struct slo_input in = observe(&w, 0);
    struct slo_config share = config, replicas = config;
    share.reserve = 0.25;
    replicas.reserve_replicas = 4;
    struct slo_output plain, by_share, by_replicas;
    struct slo_state state, twin;
    slo_state_init(&state);
    twin = state;
    slo_step(&twin, &config, &in, &plain);
    twin = state;
    slo_step(&twin, &share, &in, &by_share);
    twin = state;
    slo_step(&twin, &replicas, &in, &by_replicas);
    EQ_REAL(by_share.need, plain.need * 1.25);
    EQ_REAL(by_replicas.need, plain.need + 4 * plain.capacity[0]);
}

/* One replica for a load of twenty: twice the need until the fleet was once large enough, and never again. */
static void a_cold_start_orders_twice(void)
{
    struct world w = make_world(4);
    w.variant_n = 1;
    w.variants[0].max = 1000;
    w.variants[0].current = w.variants[0].ready = w.variants[0].reporting = 1;
    w.rate = 20;
    struct slo_input in = observe(&w, 0);
    struct slo_output out, warm;
    struct slo_state state;
    slo_state_init(&state);
    slo_step(&state, &config, &in, &out);
    for (int known = 0; known <= 1; known++) { /* the speed of a replica */
        in.now += 15;
        state.speeds[state.reference].settled = known;
        struct slo_state caught_up = state, cold = state;
        caught_up.caught_up = 1;
        slo_step(&caught_up, &config, &in, &warm);
        slo_step(&cold, &config, &in, &out);
        OK(warm.need > 2 * warm.capacity[0]);
        EQ_REAL(out.need, (known ? 2 : 1) * warm.need);
    }
    in.now += 15;
    in.variants[0].current = in.variants[0].ready = 1000;
    slo_step(&state, &config, &in, &out);
    EQ_REAL(state.caught_up, 1);
    in.now += 15;
    in.variants[0].current = in.variants[0].ready = 1;
    slo_step(&state, &config, &in, &out);
    OK(out.need < 1.5 * warm.need);
}

/* ---- history */

/* Loads that a former process saw, or more than the ring holds: the forecast is the same as if the state had seen them. */
static void a_replayed_load_counts_as_seen(void)
{
    enum { LOADS = SLO_RING + 50, OWN = 3 };
    static struct slo_load loads[LOADS];
    for (int known = 12; known <= LOADS; known += 61) {
        struct slo_state seen, replayed;
        struct slo_output a, b;
        struct slo_input in = {
            .in_tokens = 800, .out_tokens = 200, .arrival_now = NAN, .variant_n = 1
        };
        in.variants[0] = (struct slo_variant){
            .id = 1, .current = 3, .ready = 3, .max = 50, .cost = 1, .itl = NAN
        };
        slo_state_init(&seen);
        slo_state_init(&replayed);
        for (int i = 0; i < known; i++) {
            in.now = 15.0 * i;
            in.arrival = (float)(5 + i * 0.02 + 2 * sin(i / 7.0));
            loads[i] = (struct slo_load){ .rate = (float)in.arrival, .in = 800, .out = 200 };
            slo_step(&seen, &config, &in, &a);
            if (i >= known - OWN) /* decisions go on while the answers are on their way */
                slo_step(&replayed, &config, &in, &b);
        }
        slo_state_replay(&replayed, loads, (size_t)(known - OWN));
        in.now += 15;
        slo_step(&seen, &config, &in, &a);
        slo_step(&replayed, &config, &in, &b);
        EQ_REAL(b.demand, a.demand);
        EQ_REAL(b.forecast, a.forecast);
        OK(b.hold > 0 && b.hold <= 1.2 * a.hold);
    }
    struct slo_state state;
    slo_state_init(&state);
    slo_state_replay(&state, loads, 0);
    EQ_INT(state.n, 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(targets_stay_within_bounds),
        TAP(more_load_never_asks_for_fewer),
        TAP(the_order_of_variants_changes_nothing),
        TAP(what_serves_is_not_exchanged_for_what_starts),
        TAP(broken_inputs_count_as_unknown),
        TAP(an_unknown_load_holds),
        TAP(a_variant_keeps_what_was_learned_about_it),
        TAP(a_hint_makes_a_variant_usable),
        TAP(a_reserve_is_held_on_top),
        TAP(a_cold_start_orders_twice),
        TAP(a_replayed_load_counts_as_seen),
        { 0 },
    });
}
