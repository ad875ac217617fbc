/* What a policy cannot do better than without some knowledge: plans of one variant that know the true weight of a
 * request, by its profile, and use the constant headroom that is best in hindsight.
 *
 *   known-mean    each moment's mean load over the three minutes around it is known in advance, what moves
 *                 within them is not. Ordered ahead, never late: what noise and whole replicas cost.
 *   last-minute   only the load of the last minute is known, and followed with a band: replicas go when a fifth
 *                 is free. What is lost by not knowing the future, with everything else known.
 *
 * The headroom is the least with which the plan attains the goal, by bisection over full runs. Neither is
 * a bound by proof. They show what is left to gain by better forecasts and by better capacities. */
#include "fleet_search.h"
#include "policies.h"

#include "../base/clock.h"

#include <math.h>

enum {
    STEP_S = 15,
    MINUTE_STEPS = 4,
    AROUND_STEPS = 6,
    WARM_STEPS = 20,
    TRIES = 10,
    REPLICAS_MAX = 1024
};

static const double factor_least = 1, factor_most = 8, band = 0.2;

struct bound {
    const struct fleet_config *config;
    struct fleet_trace trace;
    enum fleet_bound kind;
    size_t steps, lead;
    double *load; /* [steps], replicas busy, as far as the plan knows it */
};

/* Seconds of a replica's time that the requests of each step take. */
static void weigh_steps(const struct bound *b, size_t variant, double *ret)
{
    const struct replica_profile *p = &b->config->variants[variant].profile;
    for (size_t i = 0; i < b->trace.n; i++) {
        double in = b->trace.at[i].prompt_tokens, out = b->trace.at[i].output_tokens;
        ret[b->trace.at[i].arrived_ns / (STEP_S * NS_PER_S)] +=
            (p->per_prompt_token_ms * in + p->per_seq_ms * out +
             p->per_cached_token_ms * out * (in + out / 2)) /
            1e3;
    }
}

static void know_load(struct bound *b, size_t variant)
{
    double *busy = mem_zero(b->steps, sizeof(*busy));
    weigh_steps(b, variant, busy);
    for (size_t i = 0; i < b->steps; i++) {
        bool mean = b->kind == FLEET_KNOWN_MEAN;
        size_t back = mean ? AROUND_STEPS : MINUTE_STEPS, from = i > back ? i - back : 0;
        size_t to = MIN(mean ? i + AROUND_STEPS : MAX(i, MINUTE_STEPS), b->steps);
        double sum = 0;
        for (size_t k = from; k < to; k++)
            sum += busy[k];
        b->load[i] = sum / (double)(to - from) / STEP_S;
    }
    free(busy);
}

static void make_plan(const struct bound *b, double factor, int max, int *ret)
{
    for (size_t i = 0; i < b->steps; i++) {
        double most = b->load[i];
        size_t from = i < WARM_STEPS ? 0 : i, until = i;
        if (i <
            WARM_STEPS) /* as every policy, with what the fullest of the first five minutes needs */
            until = WARM_STEPS;
        else if (b->kind == FLEET_KNOWN_MEAN)
            until = i + b->lead;
        for (size_t k = from; k <= until && k < b->steps; k++)
            most = MAX(most, b->load[k]);
        ret[i] = (int)fmin(ceil(MAX(factor * most, 1)), MIN(max, REPLICAS_MAX));
        if (b->kind == FLEET_LAST_MINUTE && i && ret[i] < ret[i - 1] &&
            ret[i] > (1 - band) * ret[i - 1])
            ret[i] = ret[i - 1];
    }
}

/* The cheapest plan of one variant; no replicas: none attains the goal. */
static struct fleet_plan search_factor(struct bound *b, size_t variant, double *ret_cost)
{
    struct fleet_plan best = { variant, NULL, b->steps, STEP_S }, plan = best;
    double low = factor_least, high = factor_most;
    *ret_cost = INFINITY;
    know_load(b, variant);
    plan.replicas = mem_zero(b->steps, sizeof(int));
    for (int i = 0; i < TRIES; i++) {
        double factor = sqrt(low * high);
        make_plan(b, factor, b->config->variants[variant].max, plan.replicas);
        struct fleet_score score = fleet_run_plan(b->config, b->trace, &plan, NULL, NULL);
        if (score.attained < b->config->goal) {
            low = factor;
            continue;
        }
        high = factor;
        *ret_cost = score.cost;
        best.replicas = best.replicas ? best.replicas : mem_zero(b->steps, sizeof(int));
        memcpy(best.replicas, plan.replicas, b->steps * sizeof(int));
    }
    free(plan.replicas);
    return best;
}

struct fleet_plan fleet_find_bound(const struct fleet_config *config, struct fleet_trace trace,
                                   enum fleet_bound kind)
{
    struct bound b = { .config = config, .trace = trace, .kind = kind };
    struct fleet_plan best = { 0 };
    double least = INFINITY, cost;
    b.steps = (size_t)(trace.at[trace.n - 1].arrived_ns / (STEP_S * NS_PER_S)) + 1;
    b.lead = (size_t)ceil((config->start_mean_s + config->start_sd_s) / STEP_S);
    b.load = mem_zero(b.steps, sizeof(*b.load));
    for (size_t v = 0; v < config->variant_n; v++) {
        struct fleet_plan plan = search_factor(&b, v, &cost), worse = plan;
        if (cost < least) {
            worse = best;
            best = plan;
            least = cost;
        }
        fleet_plan_done(&worse);
    }
    free(b.load);
    return best;
}
