/* flyball simulate: an hour and a day of 33 requests per second under the slo policy. Budgets: 1 s and 30 s of CPU.
 *
 * There is no peer that does the same; a day in real time takes a day. */
#include "base/clock.h"
#include "base/random.h"
#include "budget.h"
#include "testbed/policies.h"

#include <math.h>
#include <stdio.h>

static const struct fleet_variant variants[] = {
    { .name = STR_INIT("l40s"),
      .cost = 15,
      .max = 64,
      .profile = { 21, 0.05, 0.13, 0.00018, 0.03, 11900, 16, 256, 512 } },
};

/* Poisson arrivals with lengths about as in the Azure conversation trace. */
static struct fleet_trace make_trace(double seconds)
{
    static const double rate = 33;
    struct random r;
    size_t most = (size_t)(seconds * rate * 1.2) + 1000, n = 0;
    struct replica_request *at = mem_alloc(most * sizeof(*at));
    random_init(&r, 1, 1);
    for (double now = 0; now < seconds && n < most;) {
        at[n++] =
            (struct replica_request){ (int64_t)(now * 1e9), 100 + (int32_t)random_below(&r, 2100),
                                      10 + (int32_t)random_below(&r, 400), 0 };
        now += -log(1 - random_unit(&r)) / rate;
    }
    return (struct fleet_trace){ at, n };
}

static double simulate_seconds(double seconds)
{
    struct fleet_trace trace = make_trace(seconds);
    struct fleet_config config = { .variants = variants,
                                   .variant_n = 1,
                                   .ttft_s = 2,
                                   .itl_s = 0.06,
                                   .goal = 0.99,
                                   .start_mean_s = 120,
                                   .start_sd_s = 15,
                                   .scrape_s = 15,
                                   .has_gateway = true,
                                   .seed = 1 };
    int initial[FLEET_VARIANTS_MAX] = { 18 };
    struct fleet_policy *policy = fleet_policy_new(S("slo"), &config);
    int64_t before = clock_cpu_ns();
    struct fleet_score score = fleet_simulate(&(struct fleet_run){ .config = &config,
                                                                   .trace = trace,
                                                                   .initial = initial,
                                                                   .policy = policy },
                                              NULL);
    double took = (double)(clock_cpu_ns() - before) / 1e9;
    printf("%zu requests in %.0f s: %.2f s of CPU; %.2f %% attained\n", trace.n, seconds, took,
           score.attained * 100);
    fleet_policy_free(policy);
    free((void *)(uintptr_t)trace.at);
    return took;
}

int main(void)
{
    double hour = simulate_seconds(3600), day = simulate_seconds(86400);
    budget("simulate an hour of 33 requests/s", hour, 1, "s of CPU");
    budget("simulate a day of 33 requests/s", day, 30, "s of CPU");
    return 0;
}
