/* The rules of fleet.h, and that policies keep within them. */
#include "tap.h"

#include "base/random.h"
#include "testbed/fleet_query.h"
#include "testbed/fleet_search.h"
#include "testbed/policies.h"

static const int64_t second = 1000000000;

static struct fleet_variant variants[] = {
    { .name = STR_INIT("fast"),
      .cost = 40,
      .max = 30,
      .profile = { 11, 0.04, 0.095, 0.00008, 0.03, 25700, 16, 256, 512 } },
    { .name = STR_INIT("cheap"),
      .cost = 15,
      .max = 30,
      .profile = { 21, 0.05, 0.13, 0.00018, 0.03, 11900, 16, 256, 512 } },
};

static struct fleet_config config = { .variants = variants,
                                      .variant_n = 2,
                                      .ttft_s = 2,
                                      .itl_s = 0.06,
                                      .goal = 0.99,
                                      .start_mean_s = 120,
                                      .start_sd_s = 15,
                                      .scrape_s = 15,
                                      .has_gateway = true,
                                      .mean_prompt = 1000,
                                      .mean_output = 200,
                                      .seed = 1 };

static struct replica_request requests[20000];

/* `rate` requests a second for `seconds`, doubled in the middle third. */
static struct fleet_trace make_trace(double rate, double seconds)
{
    struct random r;
    size_t n = 0;
    random_init(&r, 9, 9);
    for (double at = 0; at < seconds && n < countof(requests);) {
        bool middle = at > seconds / 3 && at < seconds * 2 / 3;
        requests[n++] =
            (struct replica_request){ (int64_t)(at * 1e9), 100 + (int32_t)random_below(&r, 1800),
                                      10 + (int32_t)random_below(&r, 380), 0 };
        at += -log(1 - random_unit(&r)) / (middle ? 2 * rate : rate);
    }
    return (struct fleet_trace){ requests, n };
}

static struct fleet_score run_static(struct fleet_trace trace, int fast, int cheap)
{
    int initial[FLEET_VARIANTS_MAX] = { fast, cheap };
    return fleet_simulate(
        &(struct fleet_run){ .config = &config, .trace = trace, .initial = initial }, NULL);
}

static void more_replicas_attain_more(void)
{
    struct fleet_trace trace = make_trace(10, 600);
    double last = -1;
    for (int n = 2; n <= 14; n += 3) {
        struct fleet_score s = run_static(trace, 0, n);
        EQ_INT(s.served, trace.n);
        OK(s.attained >= last - 0.002);
        /* cost is replicas * hours, to the second in which the last request arrives */
        double hours = ((double)(trace.at[trace.n - 1].arrived_ns / second) + 1) / 3600;
        EQ_REAL(s.cost, n * 15 * hours);
        last = s.attained;
    }
    OK(last > 0.99);
}

/* Without a replica everything waits in the gateway and nothing attains. */
static void an_empty_fleet_serves_nothing(void)
{
    struct fleet_trace trace = make_trace(1, 60);
    struct fleet_score s = run_static(trace, 0, 0);
    EQ_INT(s.served, 0);
    EQ_REAL(s.attained, 0);
    EQ_REAL(s.cost, 0);
    OK(isinf(s.p99_ttft_s));
}

/* ---- a policy under control of the test */

struct script {
    struct fleet_policy policy;
    int at[64]; /* replicas of the cheap variant at each step */
    int step;
    struct query_model seen[64];
};

static void step_script(struct fleet_policy *p, const struct fleet *f, struct fleet_answer *a)
{
    struct script *s = container_of(p, struct script, policy);
    fleet_query_model(f, &s->seen[s->step]);
    a->targets[1] = s->at[MIN(s->step, 63)];
    s->step = MIN(s->step + 1, 63);
}

static struct fleet_score run_script(struct script *s, struct fleet_trace trace, int initial)
{
    int at_start[FLEET_VARIANTS_MAX] = { 0, initial };
    s->policy = (struct fleet_policy){ "script", 15, step_script, NULL };
    return fleet_simulate(&(struct fleet_run){ .config = &config,
                                               .trace = trace,
                                               .initial = at_start,
                                               .policy = &s->policy },
                          NULL);
}

static void replicas_start_drain_and_cost(void)
{
    struct fleet_trace trace = make_trace(3, 600);
    struct script s = { 0 };
    for (int i = 0; i < 64; i++)
        s.at[i] = i < 4 ? 4 : i < 24 ? 8 : 3;
    struct fleet_score score = run_script(&s, trace, 4);
    EQ_INT(score.served, trace.n); /* what drains finishes, what waits moves on */
    EQ_INT(s.seen[3].variants[1].ready, 4);
    EQ_INT(s.seen[5].variants[1].current, 8); /* asked for at step 4 */
    EQ_INT(s.seen[5].variants[1].ready, 4);
    EQ_INT(s.seen[4 + 16].variants[1].ready, 8); /* 240 s later */
    EQ_INT(s.seen[26].variants[1].current, 3);
    EQ_INT(s.seen[26].variants[1].ready, 3);
    double asked = (4 * 90 + 8 * 300 + 3 * 210) * 15 / 3600.0;
    OK(score.cost > asked && score.cost < asked * 1.08); /* more, because they drain */
    OK(score.changes_per_hour > 0);
    bool delay_seen = false;
    for (int i = 0; i < 64; i++)
        delay_seen |= s.seen[i].variants[1].start_delay >= 60;
    OK(delay_seen);
}

/* A replica that has not started yet costs nothing more once it is not wanted. */
static void a_start_can_be_withdrawn(void)
{
    struct fleet_trace trace = make_trace(1, 300);
    struct script s = { 0 };
    for (int i = 0; i < 64; i++)
        s.at[i] = i == 0 ? 20 : 2;
    struct fleet_score score = run_script(&s, trace, 2);
    EQ_INT(s.seen[2].variants[1].current, 2);
    EQ_INT(s.seen[2].variants[1].ready, 2);
    double hours = ((double)(trace.at[trace.n - 1].arrived_ns / second) + 1) / 3600;
    EQ_REAL(score.cost, 15 * (2 * hours + 18 * 15 / 3600.0));
}

static void queries_show_the_load(void)
{
    struct fleet_trace trace = make_trace(10, 600);
    struct script s = { 0 };
    for (int i = 0; i < 64; i++)
        s.at[i] = 12;
    run_script(&s, trace, 12);
    const struct query_model *early = &s.seen[8], *late = &s.seen[22]; /* 150 s, 360 s */
    OK(fabs(early->arrival - 10) < 2.5);
    OK(fabs(late->arrival - 20) < 4);
    OK(fabs(early->in_tokens - 1000) < 150);
    OK(fabs(early->out_tokens - 200) < 40);
    OK(late->in_tail > 1500 && late->in_tail <= 2000);
    OK(late->ok > 0.9 && late->ok <= 1);
    OK(late->finished > 150 && late->finished < 450);
    EQ_REAL(late->queued, 0);
    const struct query_variant *v = &late->variants[1];
    EQ_INT(v->reporting, 12);
    OK(v->itl > 0.021 && v->itl < 0.06);
    OK(fabs(v->prompt_rate * 12 - 20 * 1000) < 4500);
    OK(fabs(v->gen_rate * 12 - 20 * 200) < 900);
    OK(v->running_low <= v->running && v->running <= v->running_high);
    EQ_REAL(v->kv_tokens, 11900 * 16);
    OK(isnan(late->variants[0].itl));

    config.has_gateway = false; /* the same from the servers' own counters */
    struct script t = { 0 };
    memcpy(t.at, s.at, sizeof(t.at));
    run_script(&t, trace, 12);
    config.has_gateway = true;
    OK(fabs(t.seen[22].arrival - 20) < 4);
    OK(isnan(t.seen[22].queued));
}

/* ---- policies */

static const char *const names[] = { "slo",       "need",        "2026",        "seed",
                                     "v2",        "need-direct", "queue-model", "hpa-kv",
                                     "v2-taught", "hpa-queue",   "hpa-running", "keda" };

static void check_bounds(void *context, const struct fleet *f, const int *before,
                         const struct fleet_answer *answer)
{
    (void)before;
    for (size_t v = 0; v < f->config->variant_n; v++) {
        const struct fleet_variant *x = &f->config->variants[v];
        OK(answer->targets[v] >= x->min && answer->targets[v] <= x->max);
        OK(f->current[v] == answer->targets[v]);
    }
    ++*(int *)context;
}

static struct fleet_score run_policy(const char *name, struct fleet_trace trace, int *steps)
{
    int initial[FLEET_VARIANTS_MAX] = { 1, 5 };
    struct fleet_policy *p = fleet_policy_new(str_c(name), &config);
    struct fleet_hooks hooks = { check_bounds, NULL, steps };
    struct fleet_score s = fleet_simulate(
        &(struct fleet_run){
            .config = &config, .trace = trace, .initial = initial, .policy = p, .hooks = &hooks },
        NULL);
    fleet_policy_free(p);
    return s;
}

static void policies_keep_bounds_and_serve_everyone(void)
{
    struct fleet_trace trace = make_trace(8, 900);
    OK(!fleet_policy_new(S("nothing"), &config));
    for (size_t i = 0; i < countof(names); i++) {
        int steps = 0;
        struct fleet_score a = run_policy(names[i], trace, &steps);
        OK(steps >= 28);
        if (!EQ_INT(a.served, trace.n))
            printf("# %s\n", names[i]);
        struct fleet_score b = run_policy(names[i], trace, &steps);
        OK(memcmp(&a, &b, sizeof(a)) == 0); /* same seed, same result */
    }
}

/* ---- yardsticks */

static void searches_find_the_least(void)
{
    struct fleet_trace trace = make_trace(8, 600);
    struct fleet_static best = fleet_find_static(&config, trace, NULL);
    OK(best.attains);
    EQ_INT(best.variant, 1);
    OK(best.score.attained >= 0.99);
    int n = best.replicas[1];
    OK(n > 1 && run_static(trace, 0, n - 1).attained < 0.99);
    struct fleet_static warm = fleet_find_warm(&config, trace, NULL);
    OK(warm.replicas[1] >= 1 && warm.replicas[1] <= n);

    struct fleet_plan plan = fleet_find_oracle(&config, trace, &best, NULL);
    if (OK(plan.replicas != NULL)) {
        struct fleet_score score = fleet_run_plan(&config, trace, &plan, NULL, NULL);
        OK(score.attained >= 0.99);
        OK(score.cost < best.score.cost);
    }
    fleet_plan_done(&plan);

    variants[0].max = variants[1].max = 1; /* nothing within these bounds is enough */
    best = fleet_find_static(&config, trace, NULL);
    OK(!best.attains);
    variants[0].max = variants[1].max = 30;
}

/* Between 2 and 8 replicas, in turns: each fall removes six. */
static void step_up_and_down(struct fleet_policy *p, const struct fleet *f,
                             struct fleet_answer *answer)
{
    (void)p;
    answer->targets[0] = f->current[0] > 2 ? 2 : 8;
}

static struct fleet_score run_falling(struct fleet_trace trace, double grace_s, bool marks_victims)
{
    struct fleet_policy policy = { .name = "steps", .period_s = 60, .step = step_up_and_down };
    struct fleet_config c = config;
    int initial[FLEET_VARIANTS_MAX] = { 8, 0 };
    c.start_mean_s = 1;
    c.start_sd_s = 0;
    c.grace_s = grace_s;
    c.marks_victims = marks_victims;
    return fleet_simulate(
        &(struct fleet_run){ .config = &c, .trace = trace, .initial = initial, .policy = &policy },
        NULL);
}

/* A replica that is removed finishes what runs; how much of it exceeds the grace period is counted, and nothing else
 * depends on that. The least busy ones have less of it. */
static void requests_that_a_kubelet_would_break_are_counted(void)
{
    struct fleet_trace trace = make_trace(8, 900);
    struct fleet_score never = run_falling(trace, 3600, false), soon = run_falling(trace, 1, false),
                       marked = run_falling(trace, 1, true);
    printf("# %llu broken, %llu with marked victims\n", (unsigned long long)soon.broken,
           (unsigned long long)marked.broken);
    EQ_INT((int64_t)never.broken, 0);
    OK(soon.broken > 0);
    OK(marked.broken < soon.broken);
    EQ_REAL(soon.cost, never.cost);
    EQ_REAL(soon.attained, never.attained);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(more_replicas_attain_more),
                                        TAP(an_empty_fleet_serves_nothing),
                                        TAP(replicas_start_drain_and_cost),
                                        TAP(a_start_can_be_withdrawn),
                                        TAP(queries_show_the_load),
                                        TAP(policies_keep_bounds_and_serve_everyone),
                                        TAP(searches_find_the_least),
                                        TAP(requests_that_a_kubelet_would_break_are_counted),
                                        { 0 } });
}
