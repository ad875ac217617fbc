/* What a replica can do, learned from its token speed.
 *
 * Continuous batching makes a replica a server of iterations: each gives every running request one token
 * and takes
 *
 *     base + c * (prompt tokens processed in it) + d * (tokens attended to in it)
 *
 * seconds. Summed over one second, in which 1/ITL iterations fit,
 *
 *     1 = base/ITL + c * (prompt tokens/s) + d * (attended tokens/s)
 *
 * which is exact whatever the mix of requests. Multiplied by ITL*\/base (the target over the unloaded value)
 * it says that the speed y = ITL*\/ITL of a stream is linear in two rates that vLLM exports:
 *
 *     y = th0 - th1 * (prompt tokens/s) - th2 * (generated tokens/s * (context + C0))
 *
 * th0 is how many times faster than its target an idle replica is; y = 1 is the target; the share
 * (th1*x1 + th2*x2)/th0 is the busy time. So the slope of the ITL far below the target tells where the target
 * will be reached, without ever going there. That is what a threshold on the KV cache or on the queue cannot do.
 *
 * Three coefficients are fitted by recursive least squares (a Kalman filter without dynamics):
 * - the prior (3, 3, 3) with variances 2.25, 9, 9 is a replica three times faster than needed that costs
 *   what the units say; it is wide, so that ten samples outweigh it;
 * - measurement noise R = 0.02: a minute's ITL is repeatable to about 14 % of the target;
 * - one sample moves the speed by at most 1, so that a stalled scrape or a paused GPU is not learned;
 * - old samples are forgotten (0.995 per cycle, an hour's memory) only while the replica is at least 15 %
 *   busy: an idle replica says nothing about th1 and th2, and forgetting without learning lets the
 *   covariance blow up;
 * - th1 and th2 stay within [0.1, 100] th0: they are costs and cannot be negative.
 *
 * Samples are taken only from a load that holds still: rates are means of a minute while the ITL follows
 * the moment, so a load that more than doubles within the minute pairs the one with the other's past. */
#include "slo_parts_core.h"

static const double noise = 0.02, innovation_max = 1, forgetting = 0.995, busy_to_forget = 0.15;
static const double default_start = 120; /* s: image there, weights loaded from a local disk */

void slo_speed_init(struct slo_speed *x, uint64_t id)
{
    *x = (struct slo_speed){ .id = id,
                             .th = { 3, 3, 3 },
                             .p = { { 2.25, 0, 0 }, { 0, 9, 0 }, { 0, 0, 9 } },
                             .context = NAN,
                             .start = default_start };
}

static bool is_learnable(const struct slo_variant *v)
{
    return v->itl > 0 && v->prompt_rate >= 0 && v->gen_rate >= 0 && v->running >= 1 &&
           v->reporting >= 1 && !(v->running_high > 2 * v->running_low + 4);
}

/* Tokens that a running request attends to: by the KV cache if it is known, else half of its answer on top
 * of its prompt. Shared prefixes make it smaller and recomputation larger; the model-wide ratio between the
 * two (context_factor) carries that over to variants and to times where the cache is not known. */
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

/* One step of recursive least squares towards y = th . z. */
static void fit_speed(struct slo_speed *x, double y, const double z[3])
{
    double pz[3], gain_base = noise, predicted = 0;
    double busy = -(z[1] * x->th[1] + z[2] * x->th[2]) / x->th[0];
    for (int r = 0; r < 3; r++) {
        pz[r] = x->p[r][0] * z[0] + x->p[r][1] * z[1] + x->p[r][2] * z[2];
        predicted += x->th[r] * z[r];
    }
    for (int r = 0; r < 3; r++)
        gain_base += z[r] * pz[r];
    double innovation = slo_clamp(y - predicted, -innovation_max, innovation_max);
    double keep = busy >= busy_to_forget ? forgetting : 1;
    for (int r = 0; r < 3; r++) {
        x->th[r] += pz[r] / gain_base * innovation;
        for (int k = 0; k < 3; k++)
            x->p[r][k] = (x->p[r][k] - pz[r] * pz[k] / gain_base) / keep;
    }
    x->th[0] = slo_clamp(x->th[0], 0.5, 100);
    for (int r = 1; r < 3; r++)
        x->th[r] = slo_clamp(x->th[r], 0.1 * x->th[0], 100 * x->th[0]);
}

void slo_learn(struct slo_turn *t, size_t i)
{
    struct slo_speed *x = t->speed[i];
    const struct slo_variant *v = &t->in.variants[i];
    if (!is_learnable(v))
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
