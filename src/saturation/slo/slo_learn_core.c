/* Learns the speed of a variant from its inter-token latency.
 *
 * Continuous batching makes a replica a server of iterations: each gives every running request one
 * token and takes
 *
 *     base + c * (prompt tokens processed in it) + d * (tokens attended to in it)
 *
 * seconds. Summed over one second, in which 1/ITL iterations fit,
 *
 *     1 = base/ITL + c * (prompt tokens/s) + d * (attended tokens/s)
 *
 * which is exact whatever the mix of requests. Multiplied by ITL*\/base (the target over the
 * unloaded value) it shows that the speed y = ITL*\/ITL of a stream is linear in two rates that
 * vLLM exports:
 *
 *     y = th0 - th1 * (prompt tokens/s) - th2 * (generated tokens/s * (context + C0))
 *
 * th0 is how many times faster than its target an idle replica is; y = 1 is the target; the share
 * (th1*x1 + th2*x2)/th0 is the busy time. So the slope of the ITL far below the target shows where
 * the target will be reached, without ever going there. That is what a threshold on the KV cache or
 * on the queue cannot do.
 *
 * Three coefficients are fitted by least squares with forgetting. Kept are the normal equations (a,
 * b); each cycle solves them under the bounds, so that neither rounding nor a bound can turn the
 * fit against the samples. (Recursive least squares with coefficients clamped after each step did:
 * after a start under overload its gain had the wrong sign, th0 fell to its bound while the
 * replicas got faster, and the variant counted as useless.)
 * - the prior (3, 3, 3) with variances 2.25, 9, 9 is a replica three times faster than needed that
 *   costs what the units imply; it is wide, so that ten samples outweigh it;
 * - measurement noise 0.02: a minute's ITL is repeatable to about 14 % of the target;
 * - one sample moves the speed by at most 1, so that a stalled scrape or a paused GPU is not
 *   learned;
 * - old samples are forgotten (0.995 per cycle, an hour's memory) only while the replica is at
 *   least 15 % busy: an idle replica has no information about th1 and th2;
 * - bounds: th1 and th2 are at least a tenth of th0, they are costs; th0 is at least the best speed
 *   that was seen, since load cannot make a replica faster. Under overload all samples lie on one
 *   point, which the line can pass through with any th0: the first seconds of a fresh replica, when
 *   it is idle, decide.
 *
 * Samples are taken only from a load that holds still: rates are means of a minute while the ITL
 * follows the moment, so a load that more than doubles within the minute pairs the one with the
 * other's past. For the same reason nothing is learned for a minute after a replica was added: the
 * rates of the new one cover part of a minute, its ITL does not. (Three such samples in the first
 * minute of a state made the weight of a request half of what it was, for a quarter of an hour.)
 * Nor is anything learned from a replica whose ITL is beyond 1.25 of its target: the line is needed
 * below, and one that passes through an overload is 20 % too low there, since in an overload every
 * iteration is full and below it they differ. */
#include "slo_parts_core.h"

static const double noise = 0.02, innovation_max = 1, forgetting = 0.995, busy_to_forget = 0.15;
static const double default_start = 120; /* s: image there, weights loaded from a local disk */
static const double prior[3] = { 3, 3, 3 }, prior_variance[3] = { 2.25, 9, 9 };
static const double overload_speed = 0.8;
static const double idle_min = 0.5, idle_max = 100, cost_min = 0.1, cost_max = 100;
enum {
    SAMPLES_TO_DOUBT = 4, /* before that, a sample is not limited */
    SETTLED_CYCLES = 4,   /* a minute, the window of the rates */
};

void slo_speed_init(struct slo_speed *x, uint64_t id)
{
    *x = (struct slo_speed){
        .id = id, .th = { prior[0], prior[1], prior[2] }, .context = NAN, .start = default_start
    };
}

static bool is_learnable(const struct slo_variant *v)
{
    return v->itl > 0 && v->prompt_rate >= 0 && v->gen_rate >= 0 && v->running >= 1 &&
           v->reporting >= 1 && !(v->running_high > 2 * v->running_low + 4);
}

/* Tokens that a running request attends to: by the KV cache if it is known, else half of its answer
 * on top of its prompt. Shared prefixes make it smaller and recomputation larger; the model-wide
 * ratio between the two (context_factor) carries that over to variants and to times where the cache
 * is not known. */
static double observe_context(struct slo_state *s, struct slo_speed *x, const struct slo_variant *v)
{
    double plain = s->in_tokens + s->out_tokens / 2;
    if (!(v->kv >= 0) || !(v->kv_tokens > 0))
        return plain;
    double now = v->kv * v->kv_tokens / v->running;
    x->context = isnan(x->context) ? now : 0.8 * x->context + 0.2 * now;
    if (s->in_tokens > 0 && s->out_tokens > 0)
        s->context_factor = slo_clamp(0.9 * s->context_factor + 0.1 * x->context / plain, 0.5, 3);
    return x->context;
}

/* Solves the n equations m x = v by elimination; false: they are singular. Changes m and v. */
static bool solve_equations(double m[3][3], double v[3], int n, double *x)
{
    for (int c = 0; c < n; c++) { /* symmetric and positive: no pivoting needed */
        if (!(m[c][c] > 1e-12))
            return false;
        for (int r = c + 1; r < n; r++) {
            double f = m[r][c] / m[c][c];
            for (int k = c; k < n; k++)
                m[r][k] -= f * m[c][k];
            v[r] -= f * v[c];
        }
    }
    for (int r = n - 1; r >= 0; r--) {
        x[r] = v[r];
        for (int k = r + 1; k < n; k++)
            x[r] -= m[r][k] * x[k];
        x[r] /= m[r][r];
    }
    return true;
}

/* The fit with some coefficients at their bounds (bits of `bound`): th = fixed + basis . free. */
struct bounded_fit {
    int n;              /* free parameters */
    double basis[3][3]; /* of each */
    double fixed[3];
};

static struct bounded_fit bind_fit(int bound, double idle_least)
{
    struct bounded_fit f = { 0 };
    double tie[3] = { 1, bound & 2 ? cost_min : 0, bound & 4 ? cost_min : 0 };
    for (int i = 0; i < 3; i++)
        if (bound & 1)
            f.fixed[i] = tie[i] * idle_least;
        else
            f.basis[0][i] = tie[i];
    f.n = bound & 1 ? 0 : 1;
    for (int i = 1; i < 3; i++)
        if (!(bound >> i & 1))
            f.basis[f.n++][i] = 1;
    return f;
}

/* Least squares with one choice of active bounds. Returns the loss; infinite if the result violates
 * another bound. */
static double solve_bound(const double m[3][3], const double v[3], int bound, double idle_least,
                          double th[3])
{
    struct bounded_fit f = bind_fit(bound, idle_least);
    double left[3][3] = { 0 }, right[3] = { 0 }, x[3] = { 0 }, loss = 0;
    for (int i = 0; i < f.n; i++)
        for (int r = 0; r < 3; r++) {
            right[i] += f.basis[i][r] * v[r];
            for (int k = 0; k < 3; k++) {
                right[i] -= f.basis[i][r] * m[r][k] * f.fixed[k];
                for (int j = 0; j < f.n; j++)
                    left[i][j] += f.basis[i][r] * m[r][k] * f.basis[j][k];
            }
        }
    if (!solve_equations(left, right, f.n, x))
        return INFINITY;
    for (int r = 0; r < 3; r++) {
        th[r] = f.fixed[r];
        for (int i = 0; i < f.n; i++)
            th[r] += f.basis[i][r] * x[i];
    }
    double least = cost_min * th[0] - 1e-9;
    if (th[0] < idle_least - 1e-9 || th[0] > idle_max || th[1] < least || th[2] < least)
        return INFINITY;
    for (int r = 0; r < 3; r++) {
        loss -= 2 * v[r] * th[r];
        for (int k = 0; k < 3; k++)
            loss += th[r] * m[r][k] * th[k];
    }
    return loss;
}

/* The best valid choice of active bounds; the problem is convex, so this is its solution. */
static void solve_speed(struct slo_speed *x)
{
    double m[3][3], v[3], best = INFINITY, idle_least = MAX(x->best, idle_min);
    for (int r = 0; r < 3; r++) {
        v[r] = x->b[r] + prior[r] / prior_variance[r];
        for (int k = 0; k < 3; k++)
            m[r][k] = x->a[r][k] + (r == k ? 1 / prior_variance[r] : 0);
    }
    for (int bound = 0; bound < 8; bound++) {
        double th[3], loss = solve_bound((const double(*)[3])m, v, bound, idle_least, th);
        if (loss < best) {
            best = loss;
            memcpy(x->th, th, sizeof(x->th));
        }
        if (bound == 0 && isfinite(loss))
            break; /* the unbounded solution satisfies them: no other is better */
    }
    for (int r = 1; r < 3; r++)
        x->th[r] = slo_clamp(x->th[r], cost_min * x->th[0], cost_max * x->th[0]);
}

/* Adds one sample y = th . z. */
static void fit_speed(struct slo_speed *x, double y, const double z[3])
{
    double predicted = x->th[0] * z[0] + x->th[1] * z[1] + x->th[2] * z[2];
    double busy = -(z[1] * x->th[1] + z[2] * x->th[2]) / x->th[0];
    double keep = busy >= busy_to_forget ? forgetting : 1;
    x->best = MIN(MAX(0.9995 * x->best, y), idle_max);
    if (x->samples >= SAMPLES_TO_DOUBT)
        y = predicted + slo_clamp(y - predicted, -innovation_max, innovation_max);
    for (int r = 0; r < 3; r++) {
        x->b[r] = keep * x->b[r] + z[r] * y / noise;
        for (int k = 0; k < 3; k++)
            x->a[r][k] = keep * x->a[r][k] + z[r] * z[k] / noise;
    }
    solve_speed(x);
}

/* Whether to learn from this cycle. Before the first good sample others are better than none; they
 * are dropped when it comes. */
static bool take_sample(struct slo_speed *x, const struct slo_variant *v, double speed)
{
    x->steady = v->reporting > x->reporting ? 0 : MIN(x->steady + 1, SETTLED_CYCLES);
    x->reporting = v->reporting;
    if (!is_learnable(v))
        return false;
    bool steady = x->steady == SETTLED_CYCLES;
    if (!steady || speed < overload_speed)
        return !x->settled && (steady || x->samples < SAMPLES_TO_DOUBT);
    if (!x->settled) {
        memset(x->a, 0, sizeof(x->a));
        memset(x->b, 0, sizeof(x->b));
        x->settled = true;
    }
    return true;
}

void slo_learn_speed(struct slo_turn *t, size_t i)
{
    struct slo_speed *x = t->speed[i];
    const struct slo_variant *v = &t->in.variants[i];
    if (!take_sample(x, v, t->c->itl / v->itl))
        return;
    double context = observe_context(t->s, x, v);
    if (!(context > 0))
        return;
    double prompt = v->prompt_rate * SLO_PROMPT_UNIT;
    double attended = v->gen_rate * (context + SLO_FIXED_CONTEXT) * SLO_ATTEND_UNIT;
    fit_speed(x, t->c->itl / v->itl, (double[3]){ 1, -prompt, -attended });
    double busy = (prompt * x->th[1] + attended * x->th[2]) / x->th[0];
    x->seen = MAX(0.9995 * x->seen, busy); /* half is forgotten in six hours */
    x->samples++;
}

double slo_prefill_seconds(const struct slo_speed *x, double tokens)
{
    return x->th[1] / x->th[0] * SLO_PROMPT_UNIT * tokens;
}
