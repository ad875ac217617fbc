/* The load to expect: at the time when a replica that is started now serves, and the highest until
 * then.
 *
 * Two questions, because starting takes minutes and stopping does not. A replica is added if the
 * load will exceed the capacity at the horizon; one may go if the load will not exceed what is left
 * at any time up to the horizon, since only then could it be back. The second answer is never lower
 * than the first, and the distance between them is what keeps the policy from adding and removing
 * the same replica; it comes from the load itself.
 *
 * Both answers are quantiles of past errors. Four simple forecasters look at the load of the last
 * minutes: the last minute, the mean of two, the mean of six, and a damped trend. Each is replayed
 * over the last hour, its ratio to the actual load is taken at the quantile tau, and the one whose
 * answers would have been best (the lowest pinball loss, which is the loss that a quantile
 * minimizes) answers now. Nothing is fitted to a kind of traffic: a steady noisy load is averaged,
 * a ramp is followed. A small service errs in requests rather than in percent: the same quantile as
 * an amount is used instead where it would have been better by a tenth. While there are few
 * forecasts to learn from, a prior of e^0.2 is blended in.
 *
 * The whole hour is weighed again in each cycle (slo_core.c), so the forecasts of the past are
 * those that would be made with what is known about the weight of a request now.
 *
 * The trend is a line through 20 cycles. Its slope is shrunk by max(0, 1 - 4/t^2), the James-Stein
 * factor of its t-statistic, so that noise alone asks for nothing; the error variance is taken four
 * times, because consecutive rates are means over the same minute. Half of the slope is used, at
 * most +30 % and -15 %.
 *
 * Two alarms go beyond quantiles, which know only what was seen before:
 * - jump: arrivals of the last seconds three sigma above the minute's mean count at once. Sigma is
 *   that of the model's own traffic (its dispersion is learned), so bursty traffic causes no false
 *   alarms;
 * - mix: a request's weight follows from its tokens, which are means over many requests and far
 *   less noisy than arrivals. Its trend over six cycles is used sooner and in full, up to +60 %.
 *
 * Rejected: the maximum of the need over a fixed window of 300 s as the bound for removals. It
 * counted the same uncertainty twice and cost 8 % on a conversation trace; a shorter window lost
 * requests to intermittent load. */
#include "slo_parts_core.h"

enum {
    PAIRS_MAX =
        120, /* every second cycle of an hour: neighbors share three quarters of their minute */
    PAIRS_MIN = 4,
    PAIRS_ENOUGH = 20,
    TREND_CYCLES = 20,
    TREND_CYCLES_MIN = 8,
    MIX_CYCLES = 6,
};

static const double damping = 0.5, shrink = 4, overlap = 4, trend_max = 0.3, trend_min = -0.15;
static const double log_prior = 0.20, log_max = 1.0, additive_advantage = 0.9;
static const double ratio_floor =
    0.05; /* busy replicas: the ratio of two idle minutes means nothing */
static const double jump_sigmas = 3, dispersion_gain = 0.02, dispersion_outlier = 9;
static const double mix_shrink = 8, mix_max = 0.6, mix_margin = 1.05, mix_least = 0.05;

/* ---- the history: demands from the oldest to now, with sums over any stretch at once */

struct history {
    int n;                 /* demands; the last is now */
    bool odd;              /* whether the first one's cycle is odd */
    double cycle, horizon; /* s */
    int lead;              /* the horizon in cycles */
    double y[SLO_RING];    /* demand */
    double sum[SLO_RING + 1], moment[SLO_RING + 1],
        square[SLO_RING + 1]; /* of y, i*y, y*y before i */
};

static void read_history(const struct slo_turn *t, struct history *h)
{
    uint32_t cycles = t->s->n + 1;
    h->n = (int)MIN(cycles, (uint32_t)SLO_RING);
    h->odd = (cycles - (uint32_t)h->n) & 1;
    h->cycle = t->c->cycle;
    h->horizon = t->out->horizon;
    h->lead = MAX((int)(h->horizon / h->cycle + 0.5), 1);
    h->sum[0] = h->moment[0] = h->square[0] = 0;
    for (int i = 0; i < h->n; i++) {
        double y = t->weighed[(t->at + SLO_RING - (uint32_t)(h->n - 1 - i)) % SLO_RING];
        h->y[i] = y;
        h->sum[i + 1] = h->sum[i] + y;
        h->moment[i + 1] = h->moment[i] + i * y;
        h->square[i + 1] = h->square[i] + y * y;
    }
}

static double mean_until(const struct history *h, int at, int cycles)
{
    int from = MAX(at + 1 - cycles, 0);
    return (h->sum[at + 1] - h->sum[from]) / (at + 1 - from);
}

/* Growth of the demand per second, shrunk by its uncertainty: a least-squares line from the sums. */
static double slope_until(const struct history *h, int at)
{
    int n = MIN(at + 1, TREND_CYCLES), from = at + 1 - n;
    if (n < TREND_CYCLES_MIN)
        return 0;
    double sy = h->sum[at + 1] - h->sum[from], syy = h->square[at + 1] - h->square[from];
    double sxy = h->moment[at + 1] - h->moment[from] - from * sy; /* x = 0 .. n-1 */
    double sx = n * (n - 1) / 2.0, sxx = (n - 1) * n * (2 * n - 1) / 6.0,
           spread = sxx - sx * sx / n;
    double slope = (sxy - sx * sy / n) / spread;
    double errors = MAX(syy - sy * sy / n - slope * slope * spread, 0);
    double t2 = slope * slope / (overlap * errors / (n - 2) / spread + 1e-12);
    return slope / h->cycle * MAX(0, 1 - shrink / (t2 + 1e-12));
}

/* ---- forecasters */

enum { FORECASTER_N = 4 };

static double forecast_at(const struct history *h, int forecaster, int at)
{
    double now = h->y[at];
    switch (forecaster) {
    case 0:
        return now;
    case 1:
        return mean_until(h, at, 4);
    case 2:
        return mean_until(h, at, 20);
    default:
        return now + slo_clamp(damping * slope_until(h, at) * h->horizon, trend_min * now,
                               trend_max * now);
    }
}

/* The value at index `at` if `v` were sorted (quickselect: sorting the errors of 1,000 models would
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
            if (i <= j) {
                double x = v[i];
                v[i++] = v[j];
                v[j--] = x;
            }
        }
        if (at > j && at < i)
            break;
        if (at <= j)
            high = j;
        else
            low = i;
    }
    return v[at];
}

static double pinball_loss(double error, double tau)
{
    return error > 0 ? tau * error : (tau - 1) * error;
}

/* Past forecasts and the loads that followed. */
struct pairs {
    int n, at[PAIRS_MAX];
    double actual[PAIRS_MAX], forecast[PAIRS_MAX];
};

/* `peak`: the highest load up to the horizon instead of the load at the horizon. The load of this
 * cycle is no part of any pair: whatever it is, the same forecaster and quantile are used, so that
 * more load never asks for less. */
static void collect_pairs(const struct history *h, bool peak, struct pairs *p)
{
    int last = h->n - 2 - h->lead, first = MAX(last - 2 * PAIRS_MAX + 2, 0);
    first +=
        ((first & 1) != 0) != h->odd; /* the same cycles each time: no jitter from the choice */
    p->n = 0;
    for (int i = first; i <= last && p->n < PAIRS_MAX; i += 2) {
        double actual = h->y[i + h->lead];
        for (int j = i + 1; peak && j < i + h->lead; j++)
            actual = MAX(actual, h->y[j]);
        p->at[p->n] = i;
        p->actual[p->n++] = actual;
    }
}

struct answer {
    double forecast, bound, loss;
    bool additive;
};

/* The forecast of one forecaster, raised by the quantile of its errors. */
static struct answer ask_forecaster(const struct history *h, struct pairs *p, int forecaster,
                                    double tau)
{
    double scratch[PAIRS_MAX];
    int at = MIN((int)ceil(tau * (p->n + 1)) - 1, p->n - 1);
    struct answer a = { .forecast = forecast_at(h, forecaster, h->n - 1) };
    for (int i = 0; i < p->n; i++) {
        p->forecast[i] = forecast_at(h, forecaster, p->at[i]);
        scratch[i] = (p->actual[i] + ratio_floor) / (p->forecast[i] + ratio_floor);
    }
    double ratio = slo_clamp(select_nth(scratch, p->n, at), 1, exp(log_max));
    for (int i = 0; i < p->n; i++)
        a.loss +=
            pinball_loss(p->actual[i] - (p->forecast[i] + ratio_floor) * ratio + ratio_floor, tau);
    if (p->n < PAIRS_ENOUGH)
        ratio = exp(log_prior + (log(ratio) - log_prior) * p->n / (int)PAIRS_ENOUGH);
    a.bound = a.forecast * ratio;
    if (p->n < PAIRS_ENOUGH)
        return a;
    for (int i = 0; i < p->n; i++)
        scratch[i] = p->actual[i] - p->forecast[i];
    double amount = MAX(select_nth(scratch, p->n, at), 0), loss = 0;
    for (int i = 0; i < p->n; i++)
        loss += pinball_loss(p->actual[i] - p->forecast[i] - amount, tau);
    if (loss < additive_advantage * a.loss)
        a = (struct answer){ a.forecast, a.forecast + amount, loss, true };
    return a;
}

/* The answer of the forecaster with the lowest loss. */
static struct answer ask_best(const struct history *h, bool peak, double tau)
{
    struct pairs p;
    collect_pairs(h, peak, &p);
    if (p.n < PAIRS_MIN) { /* nothing to learn from yet: the trend and the prior */
        double f = forecast_at(h, FORECASTER_N - 1, h->n - 1);
        return (struct answer){ .forecast = f, .bound = f * exp(log_prior) };
    }
    struct answer best = ask_forecaster(h, &p, 0, tau);
    for (int i = 1; i < FORECASTER_N; i++) {
        struct answer a = ask_forecaster(h, &p, i, tau);
        if (a.loss < best.loss)
            best = a;
    }
    return best;
}

/* ---- alarms */

static void raise_need(struct slo_turn *t, double forecast, double need)
{
    if (!(need > t->out->need))
        return;
    t->out->need = need;
    t->out->forecast = forecast;
}

/* Arrivals far above the mean of the minute count at once; also learns the dispersion. */
static void raise_for_jump(struct slo_turn *t)
{
    double slow = t->in.arrival, fast = t->in.arrival_now, *dispersion = &t->s->dispersion;
    if (!(slow > 0) || !(fast >= 0))
        return;
    double seconds = t->c->cycle, surprise = (fast - slow) * (fast - slow) * seconds / slow;
    double sigma = sqrt(MAX(*dispersion, 1) * slow / seconds);
    if (t->s->n >= TREND_CYCLES_MIN && fast > slow + jump_sigmas * sigma)
        raise_need(t, t->out->demand * fast / slow, t->out->demand * fast / slow);
    surprise = MIN(surprise, dispersion_outlier * MAX(*dispersion, 1));
    *dispersion += dispersion_gain * (surprise - *dispersion);
}

/* Raises the need if requests are getting heavier. */
static void raise_for_mix(struct slo_turn *t)
{
    const int n = MIX_CYCLES;
    double w[MIX_CYCLES], sy = 0, sxy = 0, errors = 0;
    if (t->s->n + 1 < (uint32_t)n)
        return;
    for (int j = 0; j < n; j++) { /* x = -j */
        struct slo_load load = t->s->load[(t->at + SLO_RING - (uint32_t)j) % SLO_RING];
        load.rate = 1;
        w[j] = slo_weigh_load(t->s, load);
        sy += w[j];
        sxy -= j * w[j];
    }
    double sx = -n * (n - 1) / 2.0, spread = (n - 1) * n * (2 * n - 1) / 6.0 - sx * sx / n;
    double slope = (sxy - sx * sy / n) / spread, level = (sy - slope * sx) / n;
    for (int j = 0; j < n; j++) {
        double r = w[j] - level + slope * j;
        errors += r * r;
    }
    double t2 = slope * slope / (overlap * errors / (n - 2) / spread + 1e-18);
    double growth =
        slope / t->c->cycle / w[0] * t->out->horizon * MAX(0, 1 - mix_shrink / (t2 + 1e-12));
    if (growth > mix_least) {
        double f = t->out->demand * (1 + MIN(growth, mix_max));
        raise_need(t, f, f * mix_margin);
    }
}

void slo_forecast_load(struct slo_turn *t)
{
    struct history h;
    struct slo_output *out = t->out;
    read_history(t, &h);
    struct answer up = ask_best(&h, false, out->quantile);
    struct answer keep = ask_best(&h, true, MIN(out->quantile + SLO_KEEP_EXTRA, 0.99));
    if (t->in.season > 0) { /* the same hour of yesterday knows better than a line */
        double f = out->demand * slo_clamp(t->in.season, 0.7, 2);
        up = (struct answer){ f, f * MAX(up.bound / MAX(up.forecast, 1e-9), 1), 0, up.additive };
    }
    out->forecast = up.forecast;
    out->additive = up.additive;
    out->need = MAX(up.bound, out->demand);
    raise_for_mix(t);
    raise_for_jump(t);
    out->hold = MAX(keep.bound, out->need);
}
