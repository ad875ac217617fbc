/* The queueing model: see queue_core.h.
 *
 * A birth-death chain with state-dependent service. State n is the number of requests in the
 * server; those beyond the batch size N wait. solve_chain() computes the steady-state
 * probabilities, from which Little's law gives the mean times:
 *
 *     0 ──λ──► 1 ──λ──► 2 ── ... ──► N ──λ──► N+1 ── ... ──► N+Q (full)
 *       ◄─μ1──   ◄─μ2──                ◄─μN──      (beyond N the service rate stays μN)
 *
 * queue_solve_size() inverts that: latency rises with the rate, so a binary search finds the
 * highest rate within a target. The arrays of a model are owned by it and freed by queue_done(). */
#include "queue_core.h"

#include "../../base/base.h"

#include <math.h>

static const float rate_margin = 0.001f; /* distance of the rates from zero and from saturation */
static const float tolerance = 1e-6f;    /* relative, of the search */
enum { SEARCH_STEPS = 100 };

/* Tokens that a new token attends to on average: the prompt and half of the answer. */
static float attended_tokens(const struct queue_spec *s)
{
    return s->input_tokens + s->output_tokens / 2;
}

/* One iteration over a batch whose requests are in prefill or decode. */
static float iteration_ms(const struct queue_spec *s, float in_service)
{
    float computed = (s->input_tokens + s->output_tokens) / (s->output_tokens + 1);
    return s->alpha + in_service * (s->beta * computed + s->gamma * attended_tokens(s));
}

static float prefill_ms(const struct queue_spec *s, float in_service)
{
    if (s->times == QUEUE_BY_ITERATION && s->input_tokens != 0)
        return iteration_ms(s, in_service) + (s->beta + s->gamma) * s->input_tokens;
    return s->input_tokens == 0 ? 0 : s->gamma + s->delta * s->input_tokens * in_service;
}

static float decode_ms(const struct queue_spec *s, float in_service)
{
    if (s->times == QUEUE_BY_ITERATION)
        return iteration_ms(s, in_service) + s->beta + s->gamma * attended_tokens(s);
    return s->alpha + s->beta * in_service;
}

static float decode_count(const struct queue_spec *s)
{
    if (s->times == QUEUE_BY_ITERATION)
        return s->output_tokens;
    /* prefill produces the first token, if there is a prompt */
    return s->input_tokens == 0 && s->output_tokens == 1 ? 1 : s->output_tokens - 1;
}

int queue_init(struct queue_model *model, const struct queue_spec *spec, err_t *e)
{
    if (spec->batch_max < 1 || spec->queue_max < 0 || spec->batch_max > 100000 ||
        spec->queue_max > 1000000)
        return err_set(e, EINVAL, "queue model: batch size %d or queue length %d is out of range",
                       spec->batch_max, spec->queue_max);
    if (!(spec->input_tokens >= 0) || !(spec->output_tokens >= 1))
        return err_set(e, EINVAL, "queue model: %g input or %g output tokens are out of range",
                       (double)spec->input_tokens, (double)spec->output_tokens);
    size_t n = (size_t)spec->batch_max, states = n + (size_t)spec->queue_max + 1;
    *model = (struct queue_model){ .spec = *spec };
    model->service_rate = mem_zero(n, sizeof(float));
    model->probability = mem_zero(states, sizeof(double));
    for (size_t i = 0; i < n; i++) {
        float busy = (float)(i + 1);
        model->service_rate[i] =
            busy / (prefill_ms(spec, busy) + decode_count(spec) * decode_ms(spec, busy));
    }
    model->rate_min = model->service_rate[0] * rate_margin * 1000;
    model->rate_max = model->service_rate[n - 1] * (1 - rate_margin) * 1000;
    return 0;
}

void queue_done(struct queue_model *model)
{
    free(model->service_rate);
    free(model->probability);
    *model = (struct queue_model){ 0 };
}

/* Steady-state probabilities for an arrival rate in requests/ms; rescaled before they overflow. */
static void solve_chain(struct queue_model *m, double arrival)
{
    static const double huge = 1e300;
    size_t batch = (size_t)m->spec.batch_max, last = batch + (size_t)m->spec.queue_max;
    double *p = m->probability, sum = 1;
    p[0] = 1;
    for (size_t n = 0; n < last; n++) {
        p[n + 1] = p[n] * arrival / (double)m->service_rate[MIN(n, batch - 1)];
        if (p[n + 1] > huge) {
            sum /= huge;
            for (size_t i = 0; i <= n + 1; i++)
                p[i] /= huge;
        }
        sum += p[n + 1];
    }
    for (size_t n = 0; n <= last; n++)
        p[n] /= sum;
}

static float clamp_float(float value, float low, float high)
{
    return value < low ? low : value > high ? high : value;
}

/* The constant batch size that gives the same service time. */
static float effective_concurrency(const struct queue_spec *s, float service_ms)
{
    float tokens = s->output_tokens - 1;
    float base = s->gamma + s->alpha * tokens;
    float slope = s->delta * s->input_tokens + s->beta * tokens;
    return clamp_float((service_ms - base) / slope, 0, (float)s->batch_max);
}

/* Sets the latencies of one request from its mean times in the system. */
static void set_latencies(const struct queue_spec *s, struct queue_metrics *q)
{
    if (s->times == QUEUE_BY_ITERATION) {
        q->prefill_ms = prefill_ms(s, q->in_service);
        q->token_ms = (q->service_ms - q->prefill_ms) / s->output_tokens;
        q->ttft_ms = q->wait_ms + q->prefill_ms + q->token_ms;
        return;
    }
    float busy = effective_concurrency(s, q->service_ms);
    q->prefill_ms = prefill_ms(s, busy);
    q->token_ms = decode_ms(s, busy);
    q->ttft_ms = q->wait_ms + q->prefill_ms;
}

int queue_analyze(struct queue_model *m, float rate_per_s, struct queue_metrics *ret, err_t *e)
{
    bool one_state = m->spec.compat && m->spec.batch_max == 1 && !m->spec.queue_max;
    if (!(rate_per_s > 0) || rate_per_s > m->rate_max || one_state)
        return err_set(e, ERANGE, "queue model: rate of %g requests/s is outside (0, %g]",
                       (double)rate_per_s, (double)m->rate_max);
    size_t batch = (size_t)m->spec.batch_max, last = batch + (size_t)m->spec.queue_max;
    double arrival = (double)(rate_per_s / 1000), in_system = 0, in_service = 0, up_to_batch = 0;
    solve_chain(m, arrival);
    for (size_t n = 0; n <= last; n++) {
        in_system += (double)n * m->probability[n];
        if (n <= batch) {
            in_service += (double)n * m->probability[n];
            up_to_batch += m->probability[n];
        }
    }
    in_service += (double)batch * (1 - up_to_batch);
    float throughput = rate_per_s / 1000 * (1 - (float)m->probability[last]);
    struct queue_metrics q = { .throughput = throughput * 1000, .in_service = (float)in_service };
    q.response_ms = (float)in_system / throughput;
    q.service_ms = (float)in_service / throughput;
    q.wait_ms = fmaxf(q.response_ms - q.service_ms, 0);
    set_latencies(&m->spec, &q);
    q.max_rate = m->rate_max;
    q.utilization = clamp_float((float)in_service / (float)batch, 0, 1);
    *ret = q;
    return 0;
}

/* ---- the highest rate within a target */

enum latency { LATENCY_TTFT, LATENCY_ITL };

static float latency_at(struct queue_model *m, enum latency which, float rate)
{
    struct queue_metrics q = { 0 };
    if (queue_analyze(m, fminf(rate, m->rate_max), &q, NULL))
        return NAN;
    return which == LATENCY_TTFT ? q.ttft_ms : q.token_ms;
}

static bool is_near(float value, float target)
{
    return value == target || (target != 0 && fabsf((value - target) / target) <= tolerance);
}

/* The highest rate whose latency stays within the target; fails if even the lowest rate exceeds it.
 */
static int find_rate(struct queue_model *m, enum latency which, float target, float *ret, err_t *e)
{
    float low = m->rate_min, high = m->rate_max;
    float at_low = latency_at(m, which, low), at_high = latency_at(m, which, high);
    if (is_near(at_low, target) || is_near(at_high, target)) {
        *ret = is_near(at_low, target) ? low : high;
        return 0;
    }
    bool falling = m->spec.compat && !(at_low < at_high);
    if (falling ? target > at_low : !(target > at_low))
        return err_set(e, ERANGE,
                       "queue model: %s of %g ms cannot be attained; the minimum is %g ms",
                       which == LATENCY_TTFT ? "time to first token" : "time per token",
                       (double)target, (double)at_low);
    if (falling || target > at_high) {
        *ret = high;
        return 0;
    }
    float rate = low;
    for (int step = 0; step < SEARCH_STEPS; step++) {
        rate = 0.5f * (low + high);
        float at = latency_at(m, which, rate);
        if (is_near(at, target))
            break;
        if (at > target)
            high = rate;
        else
            low = rate;
    }
    *ret = rate;
    return 0;
}

int queue_solve_size(struct queue_model *m, struct queue_targets t, struct queue_size *ret,
                     err_t *e)
{
    static const float throughput_margin = 0.1f;
    if (!(t.ttft_ms >= 0) || !(t.itl_ms >= 0) || !(t.tokens_per_s >= 0))
        return err_set(e, EINVAL,
                       "queue model: latency and throughput targets must not be negative");
    struct queue_size size = { m->rate_max, m->rate_max, m->rate_max, { 0 }, { 0 } };
    int failed = t.ttft_ms > 0 ? find_rate(m, LATENCY_TTFT, t.ttft_ms, &size.rate_ttft, e) : 0;
    if (!failed && t.itl_ms > 0)
        failed = find_rate(m, LATENCY_ITL, t.itl_ms, &size.rate_itl, e);
    if (failed)
        return failed;
    if (t.tokens_per_s > 0)
        size.rate_tps = m->rate_max * (1 - throughput_margin);
    float rate = fminf(fminf(size.rate_ttft, size.rate_itl), size.rate_tps);
    failed = queue_analyze(m, rate, &size.metrics, e);
    if (failed)
        return failed;
    size.achieved = (struct queue_targets){ size.metrics.ttft_ms, size.metrics.token_ms,
                                            size.metrics.throughput * m->spec.output_tokens };
    *ret = size;
    return 0;
}
