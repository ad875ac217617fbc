/* What the load will be when a replica that is started now serves, and how wrong that forecast may be.
 *
 * The forecast is the demand plus a damped trend. A line through the last 20 cycles (5 minutes: about two
 * start delays) gives the slope; it is shrunk by max(0, 1 - 4/t^2), the James-Stein factor of its t-statistic,
 * so that noise alone asks for nothing. The error variance is taken four times, because consecutive rates are
 * means over the same minute. Half of what the slope promises at the horizon is believed (growth rarely
 * lasts), at most +30 % and -15 %: an error upwards costs money, one downwards costs requests.
 *
 * The headroom is empirical: every forecast is compared with what came when it was due, and the quantile tau
 * of these errors over an hour is added. Where the error budget is spent, tau rises (slo_core.c). Errors are
 * kept as ratios and as amounts, because a large service errs in percent and a small one in requests; the form
 * that would have been the better quantile forecast over the hour (the lower pinball loss) is used, the
 * amount only if it is clearly better (0.9), so that the form does not flip to and fro. While there are few
 * errors, a prior of e^0.2 is blended in. The factor is at least e^0.1 and at most e^1. */
#include "slo_parts_core.h"

enum { TREND_CYCLES = 20, TREND_CYCLES_MIN = 8, ERRORS_MIN = 8, ERRORS_ENOUGH = 40 };

static const double damping = 0.5, shrink = 4, overlap = 4, trend_max = 0.3, trend_min = -0.15;
static const double log_prior = 0.20, log_min = 0.10, log_max = 1.0;
static const double ratio_floor =
    0.05; /* busy replicas: the ratio of two idle minutes says nothing */
static const double additive_advantage = 0.9;

/* ---- errors */

void slo_take_errors(struct slo_turn *t)
{
    struct slo_state *s = t->s;
    for (uint32_t k = 0; k < SLO_RING; k++) {
        if (!(s->due[k] > 0) || s->due[k] > t->in.now)
            continue;
        uint32_t e = s->error_n++ % SLO_ERRORS;
        s->actual[e] = s->load[t->at];
        s->basis[e] = s->load[k];
        s->basis_factor[e] = s->factor[k];
        s->due[k] = 0;
    }
}

static void swap(double *a, double *b)
{
    double x = *a;
    *a = *b;
    *b = x;
}

/* The value that would stand at `at` if `v` were sorted (quickselect: sorting 240 errors of 1,000 models would
 * cost more than all the rest of the cycle). Reorders `v`. */
static double select_nth(double *v, int n, int at)
{
    int low = 0, high = n - 1;
    while (low < high) {
        double pivot = v[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j)
                swap(&v[i++], &v[j--]);
        }
        if (at <= j)
            high = j;
        else if (at >= i)
            low = i;
        else
            break;
    }
    return v[at];
}

static double pinball(double error, double tau)
{
    return error > 0 ? tau * error : (tau - 1) * error;
}

struct error_pairs {
    int n;
    double actual[SLO_ERRORS], forecast[SLO_ERRORS]; /* weighed as of today */
};

static void weigh_errors(const struct slo_state *s, struct error_pairs *pairs)
{
    pairs->n = (int)MIN(s->error_n, (uint32_t)SLO_ERRORS);
    for (int i = 0; i < pairs->n; i++) {
        pairs->actual[i] = slo_weigh(s, s->actual[i]);
        pairs->forecast[i] = s->basis_factor[i] * slo_weigh(s, s->basis[i]);
    }
}

/* What the demand will not exceed in `tau` of all cases, if the forecast is f. */
static double add_headroom(const struct slo_state *s, double f, double tau, bool *ret_additive)
{
    struct error_pairs pairs;
    double scratch[SLO_ERRORS];
    weigh_errors(s, &pairs);
    int n = pairs.n, at = MIN((int)ceil(tau * (n + 1)) - 1, n - 1);
    if (n < ERRORS_MIN)
        return f * exp(log_prior);
    for (int i = 0; i < n; i++)
        scratch[i] = (pairs.actual[i] + ratio_floor) / (pairs.forecast[i] + ratio_floor);
    double ratio = slo_clamp(log(select_nth(scratch, n, at)), log_min, log_max);
    if (n < ERRORS_ENOUGH)
        return f * exp(log_prior + (ratio - log_prior) * n / ERRORS_ENOUGH);
    for (int i = 0; i < n; i++)
        scratch[i] = pairs.actual[i] - pairs.forecast[i];
    double amount = MAX(select_nth(scratch, n, at), 0), loss_ratio = 0, loss_amount = 0;
    double grow = exp(ratio);
    for (int i = 0; i < n; i++) {
        double by_ratio = (pairs.forecast[i] + ratio_floor) * grow - ratio_floor;
        loss_ratio += pinball(pairs.actual[i] - by_ratio, tau);
        loss_amount += pinball(pairs.actual[i] - pairs.forecast[i] - amount, tau);
    }
    *ret_additive = loss_amount < additive_advantage * loss_ratio;
    return *ret_additive ? MAX(f + amount, f * exp(log_min)) : f * grow;
}

/* ---- forecast */

/* Busy replicas per second by which the demand grows, shrunk by its doubt. */
static double measure_slope(const struct slo_turn *t)
{
    int n = (int)MIN(t->s->n + 1, (uint32_t)TREND_CYCLES);
    if (n < TREND_CYCLES_MIN)
        return 0;
    double y[TREND_CYCLES], sx = 0, sy = 0, sxx = 0, sxy = 0, errors = 0;
    for (int j = 0; j < n; j++) {
        double x = -j * t->c->cycle;
        y[j] = t->weighed[(t->at + SLO_RING - (uint32_t)j) % SLO_RING];
        sx += x;
        sy += y[j];
        sxx += x * x;
        sxy += x * y[j];
    }
    double spread = n * sxx - sx * sx, slope = (n * sxy - sx * sy) / spread;
    double level = (sy - slope * sx) / n;
    for (int j = 0; j < n; j++) {
        double r = y[j] - level + slope * j * t->c->cycle;
        errors += r * r;
    }
    double variance = overlap * errors / (n - 2) * n / spread;
    double t2 = slope * slope / (variance + 1e-12);
    return slope * MAX(0, 1 - shrink / (t2 + 1e-12));
}

void slo_forecast(struct slo_turn *t)
{
    struct slo_output *out = t->out;
    double demand = out->demand, trend = damping * measure_slope(t) * out->horizon;
    out->forecast = demand + slo_clamp(trend, trend_min * demand, trend_max * demand);
    if (t->in.season > 0) /* the same hour of yesterday knows better than a line */
        out->forecast = demand * slo_clamp(t->in.season, 0.7, 2);
    t->s->factor[t->at] = demand > 1e-9 ? out->forecast / demand : 1;
    t->s->due[t->at] = t->in.now + out->horizon;
    double need = add_headroom(t->s, out->forecast, out->quantile, &out->additive);
    out->need = MAX(need, demand);
}
