/* The load to expect when a replica that is started now serves, and the capacity to hold for it.
 *
 * Two ways to provide for a load, and the last hour decides between them:
 *
 *   follow  need = forecast * headroom. The forecast is the load of the last minute plus a damped
 *           trend. The headroom is e^0.10, a tenth, which covers the errors of a minute-to-minute
 *           forecast on traffic that varies smoothly. It is moved by the error budget, not by the
 *           errors themselves: e^0.06 while the budget is hardly touched, e^0.20 while it is
 *           overspent twice. Variants that are limited by something that queues (slo_capacity_core.c)
 *           get e^0.06 more, because beyond that limit not some requests miss but all.
 *   stay    need = a level, the same whatever the load is now. For load that comes and goes faster
 *           than replicas start, following is always late.
 *
 * Both are priced on the loads of the last hour: what they would have cost, plus the requests that
 * would have missed. A request that misses is worth 20 times its share of the cost: one percent of
 * the requests justifies a fleet larger by a fifth, not one four times as large, so a single jump
 * does not raise the level for an hour, but a load that jumps every few minutes does. Staying must
 * be cheaper by 30 %: it is paid with certainty, its benefit is an extrapolation. Misses are
 * expected as in slo_expect_misses(): 0.75 % at the capacity, e times as many per 11 % more load
 * (measured on the replica model at 80 to 140 % of the capacity).
 *
 * The trend is a line through 20 cycles. Its slope is shrunk by max(0, 1 - 4/t^2), the James-Stein
 * factor of its t-statistic, so that noise alone asks for nothing; the error variance is taken four
 * times, because consecutive rates are means over the same minute. 0.3 of the slope is used, at
 * most +30 % and -15 %.
 *
 * The whole hour is weighed again in each cycle (slo_core.c). Its first two minutes are no evidence:
 * after a start only short answers have ended and rates cover part of a minute.
 *
 * Two alarms go beyond that:
 * - jump: arrivals of the last seconds three sigma above the minute's mean count at once. Sigma is
 *   that of the model's own traffic (its dispersion is learned), so bursty traffic causes no false
 *   alarms;
 * - mix: a request's weight follows from its tokens, which are means over many requests and far
 *   less noisy than arrivals. Its trend over six cycles is used sooner and in full, up to +20 %
 *   (60 % made a fleet of 17 grow to 30 when prompts became longer once).
 *
 * Rejected, by closed loops over 27 traces (docs/decisions.md has those that are public):
 * - quantiles of past forecast errors as the headroom, with the best of four forecasters: a jump in
 *   the past hour made the headroom two- to threefold, and the forecaster that was best so far was
 *   often the slowest, 4 to 9 points lost when the load then rose;
 * - the smallest headroom with expected misses within the goal: the same, for the same reasons;
 * - calibrating the capacity by the ratio of observed to expected misses: misses of a rising load
 *   are taken for those of a wrong model, 10 % more cost at equal attainment. */
#include "slo_parts_core.h"

#include <limits.h>

enum {
    HOUR_CYCLES = 240,
    PAIRS_MAX = 120, /* every second cycle: neighbors share three quarters of their minute */
    FRESH_CYCLES = 8,
    TREND_CYCLES = 20,
    TREND_CYCLES_MIN = 8,
    MIX_CYCLES = 6,
};

static const double damping = 0.3, shrink = 4, overlap = 4, trend_max = 0.3, trend_min = -0.15;
static const double headroom_log = 0.10, headroom_queueing = 0.06, headroom_gain = 0.10;
static const double spent_least = -0.4, spent_most = 1; /* beyond the budget, that count */
static const double miss_price = 20, stay_advantage = 0.7;
static const double prior_pairs = 16; /* forecasts of the prior: a quarter of an hour's */
static const double ratio_floor =
    0.05; /* busy replicas: the ratio of two idle minutes means nothing */
static const double jump_sigmas = 3, dispersion_gain = 0.02, dispersion_outlier = 9;
static const double mix_shrink = 8, mix_max = 0.2, mix_margin = 1.05, mix_least = 0.05;

/* Ratios of a load to its forecast are counted in bins of 2.5 %; BIN_ONE is a ratio of 1. */
#define BIN_WIDTH 0.025
enum { BIN_N = 96, BIN_ONE = 40, LEVEL_BINS = 48, PRIOR_STEP = 2 };

/* A normal distribution of deviation 0.12 at every second bin from the middle: what is expected of
 * a model whose traffic is not known yet. */
static const double prior_shape[] = {
    0.1665, 0.1527, 0.1177, 0.0762, 0.0415, 0.0190, 0.0073, 0.0024
};

/* ---- the history: demands from the oldest to now, with sums over any stretch at once */

struct history {
    int n;                 /* demands; the last is now */
    bool odd;              /* whether the first one's cycle is odd */
    double cycle, horizon; /* s */
    int lead;              /* the horizon in cycles */
    int fresh;             /* the first minutes of the state, which are no evidence */
    double y[SLO_RING];    /* demand */
    double sum[SLO_RING + 1], moment[SLO_RING + 1],
        square[SLO_RING + 1]; /* of y, i*y, y*y before i */
};

static void read_history(const struct slo_turn *t, struct history *h)
{
    uint32_t cycles = t->s->n + 1;
    h->n = (int)MIN(cycles, (uint32_t)SLO_RING);
    h->odd = (cycles - (uint32_t)h->n) & 1;
    h->fresh = cycles <= SLO_RING ? FRESH_CYCLES : 0;
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

enum forecaster { FORECASTER_FOLLOW, FORECASTER_STAY };

static double forecast_at(const struct history *h, enum forecaster forecaster, int at)
{
    double now = h->y[at];
    if (forecaster == FORECASTER_STAY)
        return mean_until(h, at, HOUR_CYCLES);
    return now +
           slo_clamp(damping * slope_until(h, at) * h->horizon, trend_min * now, trend_max * now);
}

/* How a forecaster did: the loads that followed, by their ratio to the forecast. */
struct errors {
    double weight[BIN_N]; /* load by bin */
    double all;           /* sum of the weights */
    double forecast;      /* sum of the forecasts: what providing exactly these costs */
};

static int find_bin(double ratio)
{
    int bin = (int)floor(log(ratio) / BIN_WIDTH + 0.5) + BIN_ONE;
    return bin < 0 ? 0 : bin >= BIN_N ? BIN_N - 1 : bin;
}

/* The load of this cycle is no part of any pair: whatever it is, the same way of providing is
 * chosen, so that more load never asks for less. */
static void collect_errors(const struct history *h, enum forecaster forecaster, struct errors *e)
{
    int last = h->n - 2 - h->lead, first = MAX(last - 2 * PAIRS_MAX + 2, h->fresh), n = 0;
    first +=
        ((first & 1) != 0) != h->odd; /* the same cycles each time: no jitter from the choice */
    *e = (struct errors){ 0 };
    for (int i = first; i <= last; i += 2, n++) {
        double actual = h->y[i + h->lead] + ratio_floor;
        double forecast = forecast_at(h, forecaster, i) + ratio_floor;
        e->weight[find_bin(actual / forecast)] += actual;
        e->all += actual;
        e->forecast += forecast;
    }
    double prior = prior_pairs * (n ? e->all / n : 1);
    for (int d = 1 - (int)countof(prior_shape); d < (int)countof(prior_shape); d++)
        e->weight[BIN_ONE + PRIOR_STEP * d] += prior * prior_shape[abs(d)];
    e->all += prior;
    e->forecast += prior;
}

/* The cost of `bins` of headroom on these forecasts, plus that of the misses; 1 is the cost of the
 * load itself. `miss` are expected misses by bin, from -BIN_N on. */
static double price_headroom(const struct errors *e, const double *miss, int bins)
{
    double misses = 0;
    for (int i = 0; i < BIN_N; i++)
        misses += e->weight[i] * miss[i - BIN_ONE - bins + BIN_N];
    return exp(bins * BIN_WIDTH) * e->forecast / e->all + miss_price * misses / e->all;
}

/* The level to stay at, or 0 if following the load is better. */
static double find_level(const struct slo_turn *t, const struct history *h, double headroom)
{
    struct errors follow, stay;
    double miss[2 * BIN_N + 1];
    for (int d = -BIN_N; d <= BIN_N; d++)
        miss[d + BIN_N] = slo_expect_misses(t->c->goal, exp(d * BIN_WIDTH));
    collect_errors(h, FORECASTER_FOLLOW, &follow);
    collect_errors(h, FORECASTER_STAY, &stay);
    int best_at = -1, bins = (int)(log(headroom) / BIN_WIDTH + 0.5);
    double best = stay_advantage * price_headroom(&follow, miss, bins);
    for (int at = 0; at <= LEVEL_BINS; at++) {
        double price = price_headroom(&stay, miss, at);
        if (price < best) {
            best = price;
            best_at = at;
        }
    }
    return best_at < 0 ? 0 : forecast_at(h, FORECASTER_STAY, h->n - 1) * exp(best_at * BIN_WIDTH);
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

/* The share of the replicas whose capacity is limited by something that queues. */
static double find_queueing_share(const struct slo_turn *t)
{
    double all = 0, queueing = 0;
    for (size_t v = 0; v < t->in.variant_n; v++) {
        all += t->in.variants[v].current;
        queueing += t->queueing[v] ? t->in.variants[v].current : 0;
    }
    return all > 0 ? queueing / all : 0;
}

void slo_forecast_load(struct slo_turn *t)
{
    struct history h;
    struct slo_output *out = t->out;
    read_history(t, &h);
    out->forecast = forecast_at(&h, FORECASTER_FOLLOW, h.n - 1);
    if (t->in.season > 0) /* the same hour of yesterday knows better than a line */
        out->forecast = out->demand * slo_clamp(t->in.season, 0.7, 2);
    double caution = t->c->caution >= 1 ? MIN(t->c->caution, 3) : 1;
    out->headroom =
        exp(headroom_log + headroom_queueing * find_queueing_share(t) +
            headroom_gain * slo_clamp(out->spent - 1, spent_least, spent_most * caution));
    out->level = find_level(t, &h, out->headroom);
    out->need = MAX(MAX(out->forecast * out->headroom, out->demand), out->level);
    raise_for_mix(t);
    raise_for_jump(t);
}
