/* The clairvoyant plan: replicas of one variant in every step of a 30 s grid, the cheapest that was found to attain
 * the goal with the trace and the start delay known.
 *
 *   1. Table. For each step and each number of replicas: how many requests that arrive in the step miss their
 *      targets, by a run of a fleet of that size over the step and the WARM_S before it.
 *   2. Plan. For a price per missed request, dynamic programming over (step, replicas) finds the plan with the least
 *      replica time + start time of replicas added + price of the misses.
 *   3. Price. The lowest price whose plan attains the goal in a full run, by bisection: misses are bought where
 *      they save most.
 *
 * What it leaves out: more than one variant at a time, and what a step leaves behind for the next beyond the
 * warm-up. It is therefore an upper bound of the true optimum; no policy without knowledge of the future
 * comes near it. */
#include "fleet_search.h"
#include "policies.h"

#include "../base/clock.h"

#include <math.h>

enum { WARM_S = 60, REPLICAS_MAX = 1024, PRICES = 14 };

struct oracle {
    const struct fleet_config *config;
    struct fleet_trace trace;
    const struct fleet_hooks *hooks;
    size_t variant;
    size_t steps;
    int most;       /* replicas considered */
    uint32_t *miss; /* [steps][most + 1] */
    int lead;       /* steps from asking for a replica to its being ready */
};

/* ---- the table */

static size_t first_at(const struct fleet_trace *trace, int64_t at_ns)
{
    size_t low = 0, high = trace->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (trace->at[middle].arrived_ns < at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct window {
    struct replica_request *requests; /* of the step and the time before it, from 0 on */
    size_t n;
    uint32_t counted;   /* requests of the step itself */
    size_t first_point; /* of the step */
};

/* The requests of a step and of the warm-up before it, with times from 0 on. The caller frees `requests`. */
static struct window cut_window(const struct oracle *o, size_t step)
{
    int64_t begin = (int64_t)step * FLEET_GRID_S * NS_PER_S;
    int64_t warm = MIN(begin, WARM_S * NS_PER_S);
    size_t from = first_at(&o->trace, begin - warm), at = first_at(&o->trace, begin);
    size_t to = first_at(&o->trace, begin + FLEET_GRID_S * NS_PER_S);
    struct window w = { mem_alloc((to - from) * sizeof(*w.requests)), to - from, 0, 0 };
    for (size_t i = from; i < to; i++) {
        w.requests[i - from] = o->trace.at[i];
        w.requests[i - from].arrived_ns -= begin - warm;
    }
    w.counted = (uint32_t)(to - at);
    w.first_point = (size_t)(warm / (FLEET_POINT_S * NS_PER_S));
    return w;
}

/* Requests of the step that miss their targets with `n` replicas; all of them with none. */
static uint32_t count_misses(const struct oracle *o, const struct window *w, int n)
{
    int initial[FLEET_VARIANTS_MAX] = { 0 };
    struct fleet_points course;
    uint32_t ok = 0;
    if (!w->counted || !n)
        return w->counted;
    initial[o->variant] = n;
    fleet_simulate(&(struct fleet_run){ .config = o->config,
                                        .trace = { w->requests, w->n },
                                        .initial = initial },
                   &course);
    for (size_t i = w->first_point; i < course.points.n; i++)
        ok += course.points.at[i].ok;
    vec_done(&course.points);
    return w->counted - MIN(ok, w->counted);
}

/* Up from `guess` until nothing is missed, down until most is. Returns the least number that misses nothing. */
static int fill_step(struct oracle *o, size_t step, int guess)
{
    uint32_t *row = &o->miss[step * (size_t)(o->most + 1)];
    struct window w = cut_window(o, step);
    int n = MAX(1, MIN(guess, o->most)), least = o->most;
    for (int i = 0; i <= o->most; i++)
        row[i] = i < n ? w.counted : 0;
    for (int up = n; up <= o->most; up++) {
        row[up] = count_misses(o, &w, up);
        least = up;
        if (!row[up])
            break;
    }
    for (int down = n - 1; down >= 1; down--) {
        row[down] = count_misses(o, &w, down);
        least = row[down] ? least : down;
        if (row[down] * 2 > w.counted)
            break;
    }
    free(w.requests);
    return w.counted ? least : 1;
}

/* False if the caller's progress hook gave up. Neighboring steps need similar fleets, so each begins at the
 * last answer. */
static bool fill_table(struct oracle *o)
{
    int guess = 2;
    for (size_t step = 0; step < o->steps; step++) {
        guess = fill_step(o, step, guess);
        if (o->hooks && o->hooks->progress &&
            !o->hooks->progress(o->hooks->context, (double)step / (double)o->steps))
            return false;
    }
    return true;
}

/* ---- the plan for a price */

/* Cheapest way to each number of replicas, step by step; costs in replica steps. Moving down is free and moving up
 * costs the start of each added replica, so one pass from each side finds the best predecessor of every count:
 * O(steps * replicas) instead of O(steps * replicas^2). */
static void plan_for_price(const struct oracle *o, double price, int *ret)
{
    size_t width = (size_t)o->most + 1;
    double *cost = mem_zero(width, sizeof(*cost)), *next = mem_zero(width, sizeof(*next));
    int16_t *from = mem_zero(o->steps * width, sizeof(*from));
    for (size_t step = 0; step < o->steps; step++) {
        /* down is free, up pays for the start: running minima from both sides */
        double best = INFINITY;
        int at = 0;
        for (int n = o->most; n >= 0; n--) {
            if (cost[n] < best) {
                best = cost[n];
                at = n;
            }
            next[n] = best;
            from[step * width + (size_t)n] = (int16_t)at;
        }
        best = INFINITY;
        for (int n = 0; n <= o->most; n++) {
            double start = step ? (double)o->lead : 0;
            if (cost[n] - start * n < best) {
                best = cost[n] - start * n;
                at = n;
            }
            if (best + start * n < next[n]) {
                next[n] = best + start * n;
                from[step * width + (size_t)n] = (int16_t)at;
            }
        }
        for (int n = 0; n <= o->most; n++)
            cost[n] = next[n] + n + price * o->miss[step * width + (size_t)n];
    }
    int n = 0;
    for (int i = 1; i <= o->most; i++)
        n = cost[i] < cost[n] ? i : n;
    for (size_t step = o->steps; step-- > 0;) {
        ret[step] = n;
        n = from[step * width + (size_t)n];
    }
    free(cost);
    free(next);
    free(from);
}

/* What has to be asked for so that the plan is ready in time. */
static void order_ahead(const struct oracle *o, const int *plan, int *ret)
{
    for (size_t i = 0; i < o->steps; i++) {
        ret[i] = 0;
        for (size_t k = i; k < o->steps && k <= i + (size_t)o->lead; k++)
            ret[i] = MAX(ret[i], plan[k]);
    }
}

struct fleet_score fleet_run_plan(const struct fleet_config *config, struct fleet_trace trace,
                                  const struct fleet_plan *plan, const struct fleet_hooks *hooks,
                                  struct fleet_points *ret_course)
{
    int initial[FLEET_VARIANTS_MAX] = { 0 };
    struct fleet_policy *policy = fleet_policy_plan_new(
        &(struct policy_plan){ plan->variant, plan->step_s, plan->replicas, plan->n });
    initial[plan->variant] = plan->replicas[0];
    struct fleet_score score = fleet_simulate(&(struct fleet_run){ .config = config,
                                                                   .trace = trace,
                                                                   .initial = initial,
                                                                   .policy = policy,
                                                                   .hooks = hooks },
                                              ret_course);
    fleet_policy_free(policy);
    return score;
}

/* ---- the price */

/* Improves the plan in `best`, whose cost is known, by bisection on the logarithm of the price. */
static void search_price(const struct oracle *o, struct fleet_plan *best, double cost)
{
    int *plan = mem_zero(o->steps, sizeof(int)), *order = mem_zero(o->steps, sizeof(int));
    double low = 1e-4, high = 1e3;
    for (int i = 0; i < PRICES; i++) {
        double price = sqrt(low * high);
        struct fleet_plan candidate = { o->variant, order, o->steps, FLEET_GRID_S };
        plan_for_price(o, price, plan);
        order_ahead(o, plan, order);
        struct fleet_score score = fleet_run_plan(o->config, o->trace, &candidate, NULL, NULL);
        bool attains = score.attained >= o->config->goal;
        if (attains && score.cost < cost) {
            cost = score.cost;
            memcpy(best->replicas, order, o->steps * sizeof(int));
        }
        if (attains)
            high = price;
        else
            low = price;
    }
    free(plan);
    free(order);
}

/* The cheapest plan found with one variant, whose best static fleet is known. */
static struct fleet_plan search_variant(const struct oracle *base, const struct fleet_static *fixed)
{
    struct oracle o = *base;
    size_t v = o.variant = fixed->variant;
    struct fleet_plan best = { v, NULL, o.steps, FLEET_GRID_S };
    o.most = MIN(MIN(o.config->variants[v].max, REPLICAS_MAX), 2 * fixed->replicas[v] + 4);
    o.miss = mem_zero(o.steps * (size_t)(o.most + 1), sizeof(*o.miss));
    if (fill_table(&o)) {
        best.replicas = mem_zero(o.steps, sizeof(int));
        for (size_t i = 0; i < o.steps; i++)
            best.replicas[i] = fixed->replicas[v];
        search_price(&o, &best, fixed->score.cost);
    }
    free(o.miss);
    return best;
}

struct fleet_plan fleet_find_oracle(const struct fleet_config *config, struct fleet_trace trace,
                                    const struct fleet_static *best_static,
                                    const struct fleet_hooks *hooks)
{
    /* a variant whose static fleet costs that much more than the best does not win with a plan */
    static const double hopeless = 1.25;
    struct oracle o = { .config = config, .trace = trace, .hooks = hooks };
    struct fleet_plan best = { best_static->variant, NULL, 0 };
    double cost = INFINITY;
    double per_hour = config->variants[best.variant].cost * best_static->replicas[best.variant];
    o.steps = (size_t)(trace.at[trace.n - 1].arrived_ns / (FLEET_GRID_S * NS_PER_S)) + 1;
    o.lead = (int)ceil((config->start_mean_s + config->start_sd_s) / FLEET_GRID_S);
    for (size_t v = 0; v < config->variant_n && best_static->attains; v++) {
        struct fleet_static fixed =
            v == best_static->variant ? *best_static
                                      : fleet_find_static_of(config, trace, v, hopeless * per_hour);
        if (!fixed.attains)
            continue;
        struct fleet_plan plan = search_variant(&o, &fixed);
        double found =
            plan.replicas ? fleet_run_plan(config, trace, &plan, NULL, NULL).cost : INFINITY;
        if (found < cost) {
            struct fleet_plan worse = best;
            best = plan;
            plan = worse;
            cost = found;
        }
        fleet_plan_done(&plan);
    }
    return best;
}

void fleet_plan_done(struct fleet_plan *plan)
{
    free(take(plan->replicas));
}
