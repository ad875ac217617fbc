/* The parts of the slo policy that work alone: settings, latency histograms, and the fit of a variant's speed. */
#include "tap.h"

#include "saturation/slo/slo_core.h"
#include "saturation/slo/slo_saved_core.h"
#include "saturation/slo/slo_settings_core.h"
#include "saturation/slo/traffic_core.h"
#include "json/yaml.h"

/* ---- settings */

static void settings_are_read_in_their_units(void)
{
    auto_arena struct arena a = { 0 };
    struct json *tree = NULL;
    struct slo_settings s;
    err_t e;
    OK_CALL(yaml_parse(&a, S("{ttft: 2s, itl: 60ms, goal: 99, reserve: 20%, caution: 2}"), &tree,
                       &e),
            &e);
    OK_CALL(slo_settings_read(tree, &s, &e), &e);
    EQ_REAL(s.ttft, 2);
    EQ_REAL(s.itl, 0.06);
    EQ_REAL(s.goal, 0.99);
    EQ_REAL(s.reserve, 0.2);
    EQ_REAL(s.reserve_replicas, 0);
    EQ_REAL(s.caution, 2);
    struct slo_settings over = slo_settings_none;
    over.ttft = 1;
    slo_settings_merge(&s, &over);
    EQ_REAL(s.ttft, 1);
    EQ_REAL(s.itl, 0.06);
    OK_CALL(slo_settings_read(NULL, &s, &e), &e);
    OK(isnan(s.ttft) && isnan(s.itl) && isnan(s.goal) && isnan(s.reserve) && isnan(s.caution));
}

static void settings_that_cannot_be_are_refused(void)
{
    static const char *const bad[] = { "{ttft: 0}",    "{ttft: -1s}",   "{itl: 1h}",
                                       "{goal: 100}",  "{goal: 0.2}",   "{reserve: -1}",
                                       "{caution: 9}", "{latency: 2s}", "[2s]",
                                       "{itl: fast}",  "{goal: .nan}",  "{reserve: lots}" };
    for (size_t i = 0; i < countof(bad); i++) {
        auto_arena struct arena a = { 0 };
        struct json *tree = NULL;
        struct slo_settings s;
        err_t e;
        if (yaml_parse(&a, str_c(bad[i]), &tree, &e) < 0)
            continue;
        if (!OK(slo_settings_read(tree, &s, &e) < 0))
            printf("# %s\n", bad[i]);
    }
}

/* ---- histograms */

static void a_share_is_interpolated_geometrically(void)
{
    struct sat_traffic_histogram h = { 0 };
    sat_traffic_add_bucket(&h, INFINITY, 100); /* in any order, of two pods */
    sat_traffic_add_bucket(&h, 1, 90);
    sat_traffic_add_bucket(&h, 3, 99);
    sat_traffic_add_bucket(&h, 1, 90);
    sat_traffic_add_bucket(&h, 3, 99);
    sat_traffic_add_bucket(&h, INFINITY, 100);
    EQ_REAL(sat_traffic_count(&h), 200);
    EQ_REAL(sat_traffic_share_within(&h, 1), 0.9);
    EQ_REAL(sat_traffic_share_within(&h, 3), 0.99);
    EQ_REAL(sat_traffic_share_within(&h, 2), 1 - 20 * sqrt(2.0 / 20) / 200);
    EQ_REAL(sat_traffic_share_within(&h, 9), 0.99); /* beyond the last bound nothing is known */
    struct sat_traffic t = sat_traffic_unknown;
    OK(isnan(sat_traffic_share_ok(&t, 2, 0.06)));
    t.ttft = h;
    EQ_REAL(sat_traffic_share_ok(&t, 3, 0.06), 0.99);
    sat_traffic_add_bucket(&t.itl, 0.06, 60);
    sat_traffic_add_bucket(&t.itl, INFINITY, 100);
    EQ_REAL(sat_traffic_share_ok(&t, 3, 0.06), 0.59);
    EQ_REAL(sat_traffic_share_ok(&t, 1, 0.01),
            0.9 - (1 - sat_traffic_share_within(&t.itl, 0.01)) < 0
                ? 0
                : 0.9 - (1 - sat_traffic_share_within(&t.itl, 0.01)));
    sat_traffic_add_bucket(&h, NAN, 5);
    sat_traffic_add_bucket(&h, 2, -1);
    EQ_INT((int64_t)h.n, 3);
}

/* ---- the fit */

static const struct slo_config config = { .ttft = 2, .itl = 0.06, .goal = 0.99, .cycle = 15 };

/* One sample of replicas that take `base` s per iteration and follow the law of the model exactly. */
static void observe(struct slo_state *s, struct slo_output *out, int step, double base, double rate)
{
    double in = 1000, out_tokens = 200, context = in + out_tokens / 2;
    double busy = fmin(rate * (in * 1.3e-4 + out_tokens * (context + 300) * 1.8e-7), 0.95);
    double itl = base / (1 - busy),
           served = busy / (in * 1.3e-4 + out_tokens * (context + 300) * 1.8e-7);
    struct slo_input i = { .now = 15 * step,
                           .arrival = rate,
                           .arrival_now = NAN,
                           .in_tokens = in,
                           .out_tokens = out_tokens,
                           .in_tail = NAN,
                           .waiting = NAN,
                           .queued = NAN,
                           .ok = NAN,
                           .finished = NAN,
                           .season = NAN,
                           .variant_n = 1 };
    double running = served * out_tokens * itl;
    i.variants[0] = (struct slo_variant){ .id = 1,
                                          .current = 1,
                                          .ready = 1,
                                          .reporting = 1,
                                          .max = 99,
                                          .cost = 1,
                                          .itl = itl,
                                          .prompt_rate = served * in,
                                          .gen_rate = served * out_tokens,
                                          .running = running,
                                          .running_low = running,
                                          .running_high = running,
                                          .kv = NAN,
                                          .kv_tokens = NAN,
                                          .max_seqs = NAN,
                                          .start_delay = NAN };
    slo_step(s, &config, &i, out);
}

/* Twenty samples of an overloaded replica lie on one point of the line; then the load falls and it shows its speed.
 * The fit follows: it never takes a fast replica for a useless one. */
static void a_start_under_overload_is_learned_right(void)
{
    struct slo_state s;
    struct slo_output out;
    slo_state_init(&s);
    for (int step = 1; step <= 20; step++)
        observe(&s, &out, step, 0.011, 40);
    for (int step = 21; step <= 60; step++)
        observe(&s, &out, step, 0.011, 0.5 + (step % 5));
    EQ_INT(out.fit[0], SLO_FITS);
    OK(out.capacity[0] > 0.3);
    OK(fabs(s.speeds[0].th[0] - 0.06 / 0.011) < 0.5);
    OK(s.speeds[0].th[0] >= s.speeds[0].best - 1e-9);
}

static void another_target_is_another_unit(void)
{
    struct slo_state s;
    struct slo_output out;
    slo_state_init(&s);
    for (int step = 1; step <= 40; step++)
        observe(&s, &out, step, 0.02, 0.5 + (step % 4));
    double idle = s.itl / s.speeds[0].th[0];
    struct slo_config other = config;
    other.itl = 0.12;
    struct slo_input nothing = { .now = 900, .arrival = NAN, .in_tokens = NAN, .out_tokens = NAN };
    slo_step(&s, &other, &nothing, &out);
    OK(fabs(s.itl / s.speeds[0].th[0] - idle) < 1e-9);
}

/* ---- saved */

static struct slo_state learned_state(void)
{
    struct slo_state s;
    slo_state_init(&s);
    s.itl = 0.06;
    s.in_tokens = 1150;
    s.out_tokens = 210;
    s.all_seen = 5000;
    s.all_miss = 40;
    s.speeds[0] = (struct slo_speed){ .id = 0x123456789abcdef1,
                                      .th = { 2.86, 3.7, 2.5 },
                                      .a = { { 9, 1, 2 }, { 1, 8, 3 }, { 2, 3, 7 } },
                                      .b = { 4, 5, 6 },
                                      .best = 2.2,
                                      .context = 1260,
                                      .seen = 0.6,
                                      .start = 95,
                                      .samples = 200,
                                      .settled = true };
    return s;
}

static void what_was_learned_survives(void)
{
    auto_arena struct arena a = { 0 };
    struct slo_state before = learned_state(), after;
    struct json *tree = json_new_obj(&a), *again = NULL;
    slo_saved_write(&a, &before, tree);
    str text = json_to_str(&a, tree);
    OK(text.n < 1024);
    OK(json_parse(&a, text, &again, NULL) == 0);
    slo_state_init(&after);
    EQ_INT(slo_saved_read(&after, again), 1);
    EQ_INT(after.speeds[0].id, before.speeds[0].id);
    EQ_REAL(after.speeds[0].th[1], 3.7);
    EQ_REAL(after.speeds[0].a[2][1], 3);
    EQ_REAL(after.speeds[0].start, 95);
    OK(after.speeds[0].settled && after.speeds[0].samples == 200);
    EQ_REAL(after.all_miss, 40);
    EQ_REAL(after.itl, 0.06);
}

static void saved_numbers_that_cannot_be_are_ignored(void)
{
    static const char *const bad[] = {
        "{}",
        "{\"itl\": -1, \"variants\": [{}]}",
        "{\"itl\": 0.06, \"variants\": [{\"id\": \"x\"}]}",
        "{\"itl\": 0.06, \"variants\": [{\"id\": \"123456789abcdef1\", \"th\": [1, 2], \"a\": [], \"b\": []}]}",
        "{\"itl\": 0.06, \"variants\": [{\"id\": \"123456789abcdef1\", \"th\": [0, 1, 1], \"a\": "
        "[1,0,0,0,1,0,0,0,1], \"b\": [1,1,1]}]}",
        "{\"itl\": 0.06, \"variants\": [{\"id\": \"123456789abcdef1\", \"th\": [1, 1, 1], \"a\": "
        "[-1,0,0,0,1,0,0,0,1], \"b\": [1,1,1e99]}]}",
        "{\"itl\": 0.06, \"variants\": 7, \"allMiss\": 5, \"allSeen\": 1}",
    };
    for (size_t i = 0; i < countof(bad); i++) {
        auto_arena struct arena a = { 0 };
        struct json *tree = NULL;
        struct slo_state s;
        slo_state_init(&s);
        OK(json_parse(&a, str_c(bad[i]), &tree, NULL) == 0);
        EQ_INT(slo_saved_read(&s, tree), 0);
        OK(s.speeds[0].id == 0 && s.all_miss <= s.all_seen);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(settings_are_read_in_their_units),
        TAP(settings_that_cannot_be_are_refused),
        TAP(a_share_is_interpolated_geometrically),
        TAP(a_start_under_overload_is_learned_right),
        TAP(another_target_is_another_unit),
        TAP(what_was_learned_survives),
        TAP(saved_numbers_that_cannot_be_are_ignored),
        { 0 },
    });
}
