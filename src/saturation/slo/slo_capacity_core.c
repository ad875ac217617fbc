/* The weight of a request, and how much load a replica carries within the latency targets.
 *
 * By the model of slo_learn_core.c a request keeps a replica busy for
 *
 *     w/th0 seconds, with w = th1*CP*in + th2*CG*out*(context + C0)
 *
 * of which the part wp/th0 is its prompt. The load of the model, rate * w/th0, is therefore a
 * number of replicas that would be busy all the time, and all planning is done in this unit, for
 * one variant that serves as reference. A replica cannot be busy all the time: its capacity is the
 * lowest of five limits, each the highest rate (requests/s) at which one promise still holds. `m`
 * is the margin, the share of a target that is planned with.
 *
 *   ITL     the speed th0 - rate*w is to stay at 1/m of the target's or better.
 *   TTFT    prompts queue for prefill: an M/M/c-like tail (Sakasegawa's exponent sqrt(2(pool+1)) for the
 *           chance to wait at all, an exponential for how long): P(wait > room) = r^sqrt(2(pool+1)) *
 *           e^(-(1-r) room/s) <= 1 - goal at utilization r, where s is the time of a mean prompt and room
 *           what is left of the target after the prompt itself (1.5 of them: prompts vary) and one token.
 *   KV      requests that fit the cache on average, less kvZ standard deviations: n + z*sqrt(n) = fit.
 *           By Little's law n requests run at once at rate n*th0/(ITL* out + n w).
 *   seats   the same with 90 % of max-num-seqs.
 *   trust   1.5 times what was seen, at least 35 %: the model is not extrapolated far beyond experience.
 *
 * Misses around that capacity: on the replica model a quarter of the goal's share misses at any load
 * (answers of a few tokens behind a long prompt), the rest grows e times per 11 % of load. */
#include "slo_parts_core.h"

static const double kv_usable = 0.95, kv_deviations = 1, seats_usable = 0.9;
static const double trust_factor = 1.5, trust_at_first = 0.35;
static const double miss_avoidable = 0.75, miss_steepness = 9;
static const double weight_min = 1e-9; /* a request without tokens still has a weight */

struct request_weight {
    double prompt, all; /* before the division by th0 */
    double context;
};

static struct request_weight weigh_request(const struct slo_state *s, const struct slo_speed *x,
                                           double in, double out)
{
    double context = s->context_factor * (in + out / 2);
    double prompt = x->th[1] * SLO_PROMPT_UNIT * in;
    double answer = x->th[2] * SLO_ATTEND_UNIT * out * (context + SLO_FIXED_CONTEXT);
    return (struct request_weight){ prompt, prompt + answer, context };
}

double slo_weigh_load(const struct slo_state *s, struct slo_load load)
{
    const struct slo_speed *x = &s->speeds[s->reference];
    return load.rate * MAX(weigh_request(s, x, load.in, load.out).all / x->th[0], weight_min);
}

/* The utilization r at which a ln r - (1-r) b = ln(miss): the left side rises with r and is
 * concave, so Newton's steps from the left of the solution stay left of it and converge. */
static double solve_wait(double a, double b, double miss)
{
    double want = log(miss) + b, r = pow(miss, 1 / a), step = 1; /* left: b r <= b */
    for (int i = 0; i < 40 && fabs(step) > 1e-12; i++) {
        step = (want - a * log(r) - b * r) / (a / r + b);
        r += step;
    }
    return slo_clamp(r, 0, 1);
}

static double limit_by_ttft(const struct slo_turn *t, const struct slo_speed *x, double prompt,
                            double margin)
{
    double service = prompt / x->th[0];
    double room = t->c->ttft * margin - 1.5 * service - t->c->itl / x->th[0];
    room = MAX(room, 0.05 * t->c->ttft);
    double r = solve_wait(sqrt(2.0 * (t->pool + 1)), room / MAX(service, 1e-6), 1 - t->c->goal);
    return r * x->th[0] / MAX(prompt, weight_min);
}

/* The rate at which `n` requests run at once: each stays for its answer's tokens at the speed of
 * that load. */
static double rate_of_running(const struct slo_turn *t, const struct slo_speed *x, double w,
                              double n)
{
    return n * x->th[0] / (t->c->itl * t->s->out_tokens + n * w);
}

/* The lowest of the limits above, in requests/s. */
double slo_get_capacity(struct slo_turn *t, size_t v, double margin)
{
    const struct slo_speed *x = t->speed[v];
    const struct slo_variant *in = &t->in.variants[v];
    struct request_weight request = weigh_request(t->s, x, t->s->in_tokens, t->s->out_tokens);
    double w = MAX(request.all, weight_min), by_itl = (x->th[0] - 1 / margin) / w;
    t->queueing[v] = false;
    if (by_itl <= 0)
        return 0;
    double rate = MIN(by_itl, limit_by_ttft(t, x, request.prompt, margin));
    if (in->kv_tokens > 0) {
        double fit = kv_usable * in->kv_tokens / request.context;
        double root = (sqrt(kv_deviations * kv_deviations + 4 * fit) - kv_deviations) / 2;
        rate = MIN(rate, rate_of_running(t, x, w, root * root));
    }
    if (in->max_seqs > 0)
        rate = MIN(rate, rate_of_running(t, x, w, seats_usable * in->max_seqs));
    t->queueing[v] = rate < by_itl;
    double trusted = MAX(trust_factor * x->seen, trust_at_first);
    return MIN(rate, trusted * x->th[0] / w);
}

double slo_expect_misses(double goal, double load)
{
    return MIN(1, miss_avoidable * (1 - goal) * exp(miss_steepness * (load - 1)));
}
