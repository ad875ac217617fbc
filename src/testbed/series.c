/* PromQL functions over the last scrapes of one simulated server: see series.h.
 *
 * Scrapes are numbered from 0 and kept in a ring of SERIES_SCRAPES; a range is a span of numbers
 * (find_span), left-open as in Prometheus 3. All functions work on spans, so none of them sees the ring.
 *
 * The arithmetic follows Prometheus step by step, because policies are compared with thresholds that were
 * tuned on real Prometheus answers: rate() extrapolates to the ends of the range (by half an interval where
 * the series starts or ends inside it, and never below zero), histogram_quantile() interpolates within a
 * bucket. Plain growth divided by time would ignore the parts of the range before the first and after the
 * last sample. */
#include "series.h"

#include <math.h>

static void copy_buckets(uint32_t *to, const struct replica_histogram *h)
{
    for (size_t i = 0; i < SERIES_BUCKETS; i++)
        to[i] = h->bucket[i];
}

/* Counters are copied as they are at this moment; the ring overwrites the oldest scrape. */
void series_scrape(struct series *s, const struct replica *r, double at_s)
{
    const struct replica_counters *c = &r->counters;
    struct series_scrape *x = &s->ring[s->n++ % SERIES_SCRAPES];
    *x = (struct series_scrape){
        .at_s = at_s,
        .field = { [SERIES_RUNNING] = replica_running(r),
                   [SERIES_WAITING] = (double)r->waiting_n,
                   [SERIES_KV] = replica_kv_usage(r),
                   [SERIES_SUCCESS] = (double)c->succeeded,
                   [SERIES_PROMPT_TOKENS] = (double)c->prompt_tokens,
                   [SERIES_GENERATION_TOKENS] = (double)c->generation_tokens,
                   [SERIES_TTFT_SUM] = c->ttft.sum,
                   [SERIES_TTFT_COUNT] = (double)c->ttft.count,
                   [SERIES_ITL_SUM] = c->itl.sum,
                   [SERIES_ITL_COUNT] = (double)c->itl.count,
                   [SERIES_TPOT_COUNT] = (double)c->tpot.count,
                   [SERIES_INPUT_SUM] = c->prompt.sum,
                   [SERIES_INPUT_COUNT] = (double)c->prompt.count,
                   [SERIES_OUTPUT_SUM] = c->generation.sum,
                   [SERIES_OUTPUT_COUNT] = (double)c->generation.count },
    };
    copy_buckets(x->bucket[SERIES_TTFT], &c->ttft);
    copy_buckets(x->bucket[SERIES_TPOT], &c->tpot);
    copy_buckets(x->bucket[SERIES_INPUT], &c->prompt);
}

/* ---- which scrapes a range holds */

struct span {
    size_t first, n; /* scrapes, by number */
};

static const struct series_scrape *scrape_at(const struct series *s, size_t number)
{
    return &s->ring[number % SERIES_SCRAPES];
}

/* The scrapes in (now - span, now] that the ring still holds. */
static struct span find_span(const struct series *s, struct series_range range)
{
    size_t oldest = s->n > SERIES_SCRAPES ? s->n - SERIES_SCRAPES : 0, end = s->n;
    while (end > oldest && scrape_at(s, end - 1)->at_s > range.now_s)
        end--;
    size_t first = end;
    while (first > oldest && scrape_at(s, first - 1)->at_s > range.now_s - range.span_s)
        first--;
    return (struct span){ first, end - first };
}

const struct series_scrape *series_last(const struct series *s)
{
    return s->n ? scrape_at(s, s->n - 1) : NULL;
}

/* ---- counters */

/* By how much Prometheus stretches the growth seen between the first and the last sample of a range, as if the
 * series reached to the range's ends. Simulated counters never reset within a series. */
static double extrapolation(const struct series *s, struct span span, struct series_range range,
                            double first_value, double growth)
{
    double first = scrape_at(s, span.first)->at_s;
    double last = scrape_at(s, span.first + span.n - 1)->at_s;
    double seen = last - first, mean = seen / (double)(span.n - 1), threshold = mean * 1.1;
    double before = first - (range.now_s - range.span_s), after = range.now_s - last;
    if (before >= threshold)
        before = mean / 2;
    if (growth > 0 && first_value >= 0)
        before = fmin(before, seen * (first_value / growth)); /* a counter was never below 0 */
    if (after >= threshold)
        after = mean / 2;
    return (seen + before + after) / seen;
}

double series_increase(const struct series *s, enum series_field field, struct series_range range)
{
    struct span span = find_span(s, range);
    if (span.n < 2)
        return NAN;
    double from = scrape_at(s, span.first)->field[field];
    double growth = scrape_at(s, span.first + span.n - 1)->field[field] - from;
    return growth * extrapolation(s, span, range, from, growth);
}

double series_rate(const struct series *s, enum series_field field, struct series_range range)
{
    return series_increase(s, field, range) / range.span_s;
}

void series_add_bucket_rates(const struct series *s, enum series_histogram histogram,
                             struct series_range range, double *sums)
{
    static const enum series_field counts[SERIES_HISTOGRAM_N] = {
        [SERIES_TTFT] = SERIES_TTFT_COUNT,
        [SERIES_TPOT] = SERIES_TPOT_COUNT,
        [SERIES_INPUT] = SERIES_INPUT_COUNT,
    };
    static const struct replica_bounds *const bounds[SERIES_HISTOGRAM_N] = {
        [SERIES_TTFT] = &replica_ttft_bounds,
        [SERIES_TPOT] = &replica_tpot_bounds,
        [SERIES_INPUT] = &replica_token_bounds,
    };
    struct span span = find_span(s, range);
    if (span.n < 2)
        return;
    const struct series_scrape *from = scrape_at(s, span.first),
                               *to = scrape_at(s, span.first + span.n - 1);
    enum series_field count = counts[histogram];
    double growth = to->field[count] - from->field[count], below = 0;
    double factor = extrapolation(s, span, range, from->field[count], growth) / range.span_s;
    size_t n = bounds[histogram]->n;
    for (size_t i = 0; i < n; i++) {
        double more = (double)(to->bucket[histogram][i] - from->bucket[histogram][i]);
        sums[i] += more * factor;
        below += more;
    }
    sums[n] += (growth - below) * factor;
}

/* ---- gauges */

double series_deriv(const struct series *s, enum series_field field, struct series_range range)
{
    struct span span = find_span(s, range);
    double n = (double)span.n, sx = 0, sy = 0, sxx = 0, sxy = 0;
    if (span.n < 2)
        return NAN;
    for (size_t i = 0; i < span.n; i++) {
        const struct series_scrape *x = scrape_at(s, span.first + i);
        double at = x->at_s - range.now_s, y = x->field[field];
        sx += at;
        sy += y;
        sxx += at * at;
        sxy += at * y;
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

double series_avg(const struct series *s, enum series_field field, struct series_range range)
{
    struct span span = find_span(s, range);
    double sum = 0;
    for (size_t i = 0; i < span.n; i++)
        sum += scrape_at(s, span.first + i)->field[field];
    return span.n ? sum / (double)span.n : NAN;
}

double series_min(const struct series *s, enum series_field field, struct series_range range)
{
    struct span span = find_span(s, range);
    double least = NAN;
    for (size_t i = 0; i < span.n; i++)
        least = fmin(least, scrape_at(s, span.first + i)->field[field]);
    return least;
}

double series_max(const struct series *s, enum series_field field, struct series_range range)
{
    struct span span = find_span(s, range);
    double most = NAN;
    for (size_t i = 0; i < span.n; i++)
        most = fmax(most, scrape_at(s, span.first + i)->field[field]);
    return most;
}

/* ---- histograms */

double series_quantile(double q, const struct replica_bounds *bounds, const double *sums)
{
    double all = 0, below = 0;
    for (size_t i = 0; i <= bounds->n; i++)
        all += sums[i];
    if (!(all > 0))
        return NAN;
    for (size_t i = 0; i < bounds->n; i++) {
        if (below + sums[i] >= q * all) {
            double low = i ? bounds->at[i - 1] : 0;
            return low + (bounds->at[i] - low) * (q * all - below) / sums[i];
        }
        below += sums[i];
    }
    return bounds->at[bounds->n - 1];
}

double series_share_above(double x, const struct replica_bounds *bounds, const double *counts)
{
    double all = 0, above;
    for (size_t i = 0; i <= bounds->n; i++)
        all += counts[i];
    if (!(all > 0))
        return NAN;
    above = all;
    for (size_t i = 0; i < bounds->n; i++) {
        double low = i ? bounds->at[i - 1] : 0, high = bounds->at[i], rest = above - counts[i];
        if (x <= high) {
            double from = fmax(above, 0.5), to = fmax(rest, 0.5);
            return fmin(1, from * pow(to / from, (x - low) / (high - low)) / all);
        }
        above = rest;
    }
    return above / all;
}
