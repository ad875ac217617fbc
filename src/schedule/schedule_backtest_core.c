/* Evaluating a recommendation on the past: see schedule_backtest_core.h.
 *
 *     samples:  [ ............ learn ............ | last seven days: evaluate ]
 *
 * A reactive HPA is simulated in steps of five minutes: it sees demand one step late, keeps the largest
 * wish of this and the last two steps (its stabilization window), and a new pod is ready two steps after it was
 * wanted. The model is crude, but equally so on both sides of the comparison. */
#include "schedule_backtest_core.h"

#include "../base/civil.h"

#include <math.h>

enum { STEP_S = 300, HELD_DAYS = 7, STEPS = HELD_DAYS * 86400 / STEP_S };

static const double LEAST_STRENGTH = .3, LEAST_GAIN = .2;

/* Demand of the held-back week on a grid; NAN where there is none. */
static void fill_grid(const struct schedule_sample *samples, size_t n, int64_t start,
                      double grid[STEPS])
{
    for (int i = 0; i < STEPS; i++)
        grid[i] = NAN;
    for (size_t i = 0; i < n; i++) {
        int64_t at = (samples[i].at - start) / STEP_S;
        if (samples[i].at >= start && at < STEPS && isfinite(samples[i].value))
            grid[at] = fmax(grid[at], samples[i].value);
    }
    for (int i = 1; i < STEPS;
         i++) /* a sample is valid until the next one, for at most half an hour */
        for (int back = 1; isnan(grid[i]) && back <= 6 && back <= i; back++)
            grid[i] = isnan(grid[i - back]) ? NAN : grid[i - back];
}

/* The value `back` steps earlier; `otherwise` if there is none. */
static double value_before(const double *values, int at, int back, double otherwise)
{
    return at >= back && !isnan(values[at - back]) ? values[at - back] : otherwise;
}

struct sums {
    double needed, missing, paid;
};

/* Simulates one side of the comparison and returns its sums; without floors: the HPA alone. */
static struct sums simulate_hpa(const double demand[STEPS], const double *floors)
{
    struct sums s = { 0 };
    double wish[STEPS], target[STEPS];
    for (int i = 0; i < STEPS; i++) {
        wish[i] = fmax(1, ceil(value_before(demand, i, 1, 1)));
        double held = fmax(wish[i], fmax(value_before(wish, i, 1, 1), value_before(wish, i, 2, 1)));
        target[i] = floors ? fmax(floors[i], held) : held;
        double ready = fmin(target[i], fmin(value_before(target, i, 1, target[i]),
                                            value_before(target, i, 2, target[i])));
        if (isnan(demand[i]))
            continue;
        s.needed += demand[i];
        s.missing += fmax(0, demand[i] - ready);
        s.paid += ready;
    }
    return s;
}

struct fit {
    double n, sum, squares, error_sum, error_squares, error_abs;
    double open, covered;
};

static void add_fit(struct fit *f, double demand, double profile)
{
    double error = demand - profile;
    f->n++;
    f->sum += demand;
    f->squares += demand * demand;
    f->error_sum += error;
    f->error_squares += error * error;
    f->error_abs += fabs(error);
}

static double variance(double n, double sum, double squares)
{
    return n > 0 ? squares / n - sum / n * (sum / n) : 0;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* Compares the held-back week with the learned profile and fills in the floor of every step. */
static struct fit fit_week(const struct schedule_recommendation *r, const struct tz *zone,
                           int64_t start, const double demand[STEPS], double floors[STEPS])
{
    struct fit f = { 0 };
    for (int i = 0; i < STEPS; i++) {
        int64_t at = start + (int64_t)i * STEP_S, local = at + tz_offset_at(zone, at);
        int64_t day = civil_day_of(local);
        int slot = (int)((local - day * CIVIL_DAY_S) / (SCHEDULE_SLOT_MINUTES * 60));
        bool open;
        floors[i] = schedule_recommended_floor(r, zone, at, &open);
        if (isnan(demand[i]))
            continue;
        add_fit(&f, demand[i], r->profile[civil_weekday(day)][slot]);
        f.open += open;
        f.covered += open && demand[i] <= floors[i];
    }
    return f;
}

/* Learns from everything before the last week, then simulates that week with and without the result. */
bool schedule_backtest(struct arena *a, const struct schedule_sample *samples, size_t n,
                       const struct tz *zone, const struct schedule_learn_params *params,
                       struct schedule_backtest *ret)
{
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < n; i++)
        last = MAX(last, samples[i].at);
    if (!n)
        return false;
    int64_t start = last + STEP_S - (int64_t)STEPS * STEP_S;
    struct schedule_sample *before = arena_array(a, n, sizeof(*before));
    size_t before_n = 0;
    for (size_t i = 0; i < n; i++)
        if (samples[i].at < start)
            before[before_n++] = samples[i];
    struct schedule_recommendation *r = schedule_recommend(a, before, before_n, zone, params);
    if (!r)
        return false;
    double *demand = arena_array(a, STEPS, sizeof(*demand));
    double *floors = arena_array(a, STEPS, sizeof(*floors));
    fill_grid(samples, n, start, demand);
    struct fit f = fit_week(r, zone, start, demand, floors);
    struct sums with = simulate_hpa(demand, floors), without = simulate_hpa(demand, NULL);
    double spread = variance(f.n, f.sum, f.squares);
    *ret = (struct schedule_backtest){
        .under = ratio(with.missing, with.needed),
        .under_without = ratio(without.missing, without.needed),
        .cost = ratio(with.paid, with.needed),
        .cost_without = ratio(without.paid, without.needed),
        .coverage = ratio(f.covered, f.open),
        .wape = ratio(f.error_abs, f.sum),
        .strength = spread > 0 ? 1 - variance(f.n, f.error_sum, f.error_squares) / spread : 0,
    };
    ret->good_enough = ret->strength >= LEAST_STRENGTH &&
                       ret->under <= (1 - LEAST_GAIN) * ret->under_without &&
                       ret->under_without > 0;
    return true;
}
