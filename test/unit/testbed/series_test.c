/* PromQL's arithmetic. Expected values follow from the definitions in Prometheus' functions.go by hand. */
#include "tap.h"

#include "testbed/series.h"

static struct series s;

static void put(double at_s, enum series_field field, double value)
{
    s.ring[s.n % SERIES_SCRAPES].at_s = at_s;
    s.ring[s.n % SERIES_SCRAPES].field[field] = value;
    s.n++;
}

static void reset(void)
{
    memset(&s, 0, sizeof(s));
}

static void increase_extrapolates_to_the_range(void)
{
    reset();
    for (int i = 0; i < 5; i++)
        put(10 + 15 * i, SERIES_SUCCESS, 1000 + 30 * i); /* 2 per second, last at 70 */
    struct series_range minute = { 75, 60 };             /* (15, 75]: samples at 25, 40, 55, 70 */
    EQ_REAL(series_increase(&s, SERIES_SUCCESS, minute), 90 * (45.0 + 10 + 5) / 45);
    EQ_REAL(series_rate(&s, SERIES_SUCCESS, minute), 2);
    /* the range's start is left-open: a sample at exactly now - span is not in it */
    EQ_REAL(series_increase(&s, SERIES_SUCCESS, (struct series_range){ 70, 60 }),
            90 * (45.0 + 15 + 0) / 45);
    /* further than 1.1 intervals from an end: half an interval is assumed */
    EQ_REAL(series_increase(&s, SERIES_SUCCESS, (struct series_range){ 90, 60 }),
            60 * (30.0 + 10 + 7.5) / 30);
}

static void a_counter_is_not_extrapolated_below_zero(void)
{
    reset();
    put(10, SERIES_SUCCESS, 1);
    put(25, SERIES_SUCCESS, 31);
    /* it was zero half a second before the first sample: 15 * 1/30 */
    EQ_REAL(series_increase(&s, SERIES_SUCCESS, (struct series_range){ 30, 30 }),
            30 * (15.0 + 0.5 + 5) / 15);
}

static void one_sample_has_no_rate(void)
{
    reset();
    OK(isnan(series_rate(&s, SERIES_SUCCESS, (struct series_range){ 30, 60 })));
    OK(!series_last(&s));
    put(10, SERIES_SUCCESS, 1);
    OK(isnan(series_rate(&s, SERIES_SUCCESS, (struct series_range){ 30, 60 })));
    EQ_REAL(series_max(&s, SERIES_SUCCESS, (struct series_range){ 30, 60 }), 1);
    OK(isnan(series_max(&s, SERIES_SUCCESS, (struct series_range){ 300, 60 })));
}

static void gauges_have_slope_and_extremes(void)
{
    reset();
    for (int i = 0; i < 100; i++) /* more than the ring holds */
        put(15 * i, SERIES_WAITING, 3 * i);
    struct series_range minute = { 15 * 99, 60 };
    EQ_REAL(series_deriv(&s, SERIES_WAITING, minute), 3.0 / 15);
    EQ_REAL(series_min(&s, SERIES_WAITING, minute), 3 * 96);
    EQ_REAL(series_max(&s, SERIES_WAITING, minute), 3 * 99);
    EQ_REAL(series_avg(&s, SERIES_WAITING, minute), 3 * 97.5);
}

static void quantiles_are_interpolated(void)
{
    static const double bounds[] = { 1, 2, 4 };
    const struct replica_bounds b = { bounds, 3 };
    EQ_REAL(series_quantile(0.5, &b, (double[]){ 2, 4, 2, 0 }), 1.5);
    EQ_REAL(series_quantile(0.25, &b, (double[]){ 2, 4, 2, 0 }), 1);
    EQ_REAL(series_quantile(0.99, &b, (double[]){ 2, 4, 2, 2 }), 4); /* beyond all bounds */
    OK(isnan(series_quantile(0.5, &b, (double[]){ 0, 0, 0, 0 })));
}

static void tails_fall_exponentially_in_a_bucket(void)
{
    static const double bounds[] = { 1, 2, 4 };
    const struct replica_bounds b = { bounds, 3 };
    const double counts[] = { 90, 8, 2, 0 };
    EQ_REAL(series_share_above(1, &b, counts), 0.10);
    EQ_REAL(series_share_above(2, &b, counts), 0.02);
    EQ_REAL(series_share_above(1.5, &b, counts), sqrt(0.10 * 0.02));
    EQ_REAL(series_share_above(3, &b, counts),
            2 * sqrt(0.5 / 2) / 100); /* at least half a request */
    OK(isnan(series_share_above(1, &b, (double[]){ 0, 0, 0, 0 })));
}

/* What a replica counts is what a scrape holds. */
static void a_scrape_copies_the_counters(void)
{
    const struct replica_profile p = { .base_ms = 20,
                                       .per_prompt_token_ms = 0.1,
                                       .kv_blocks = 100,
                                       .block_tokens = 16,
                                       .max_seqs = 8,
                                       .max_batched_tokens = 512 };
    struct replica r;
    reset();
    replica_init(&r, &p, 0, 1);
    replica_submit(&r, (struct replica_request){ 0, 160, 5, 0 });
    replica_submit(&r, (struct replica_request){ 0, 100, 500, 0 });
    replica_advance(&r, 1000000000);
    series_scrape(&s, &r, 1);
    const struct series_scrape *x = series_last(&s);
    EQ_REAL(x->field[SERIES_SUCCESS], 1);
    EQ_REAL(x->field[SERIES_RUNNING], 1);
    EQ_REAL(x->field[SERIES_PROMPT_TOKENS], 260);
    EQ_REAL(x->field[SERIES_OUTPUT_SUM], 5);
    EQ_REAL(x->field[SERIES_TTFT_COUNT], 2);
    OK(x->field[SERIES_KV] > 0.07 && x->field[SERIES_KV] < 0.11);
    uint32_t seen = 0;
    for (size_t i = 0; i < SERIES_BUCKETS; i++)
        seen += x->bucket[SERIES_TTFT][i];
    EQ_INT(seen, 2);
    replica_done(&r);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(increase_extrapolates_to_the_range),
                                        TAP(a_counter_is_not_extrapolated_below_zero),
                                        TAP(one_sample_has_no_rate),
                                        TAP(gauges_have_slope_and_extremes),
                                        TAP(quantiles_are_interpolated),
                                        TAP(tails_fall_exponentially_in_a_bucket),
                                        TAP(a_scrape_copies_the_counters),
                                        { 0 } });
}
