/* What Prometheus knows of one simulated server: its last scrapes, and the PromQL functions that the
 * product's queries use, computed as Prometheus computes them (left-open range, extrapolation at both ends of
 * a range as in extrapolatedRate(), linear interpolation in histogram_quantile()).
 *
 * A series answers NaN where Prometheus would have no sample for it. */
#ifndef FLYBALL_SERIES_H
#define FLYBALL_SERIES_H

#include "replica_model.h"

enum { SERIES_SCRAPES = 48, SERIES_BUCKETS = REPLICA_BOUNDS_MAX }; /* 12 minutes at 15 s */

enum series_field {                           /* of one scrape, vLLM's names without "vllm:" */
                    SERIES_RUNNING,           /* num_requests_running */
                    SERIES_WAITING,           /* num_requests_waiting */
                    SERIES_KV,                /* kv_cache_usage_perc */
                    SERIES_SUCCESS,           /* request_success_total */
                    SERIES_PROMPT_TOKENS,     /* prompt_tokens_total */
                    SERIES_GENERATION_TOKENS, /* generation_tokens_total */
                    SERIES_TTFT_SUM,          /* time_to_first_token_seconds */
                    SERIES_TTFT_COUNT,
                    SERIES_ITL_SUM, /* inter_token_latency_seconds */
                    SERIES_ITL_COUNT,
                    SERIES_TPOT_COUNT, /* request_time_per_output_token_seconds */
                    SERIES_INPUT_SUM,  /* request_prompt_tokens */
                    SERIES_INPUT_COUNT,
                    SERIES_OUTPUT_SUM, /* request_generation_tokens */
                    SERIES_OUTPUT_COUNT,
                    SERIES_FIELD_N
};

enum series_histogram { SERIES_TTFT, SERIES_TPOT, SERIES_INPUT, SERIES_HISTOGRAM_N };

struct series_scrape {
    double at_s;
    double field[SERIES_FIELD_N];
    uint32_t bucket[SERIES_HISTOGRAM_N][SERIES_BUCKETS]; /* not cumulative */
};

struct series {
    struct series_scrape ring[SERIES_SCRAPES];
    size_t n; /* scrapes so far */
};

void series_scrape(struct series *s, const struct replica *r, double at_s);

struct series_range { /* (now - span, now] */
    double now_s, span_s;
};

const struct series_scrape *series_last(const struct series *s); /* NULL: never scraped */
double series_rate(const struct series *s, enum series_field field, struct series_range range);
double series_increase(const struct series *s, enum series_field field, struct series_range range);
double series_deriv(const struct series *s, enum series_field field, struct series_range range);
double series_avg(const struct series *s, enum series_field field, struct series_range range);
double series_min(const struct series *s, enum series_field field, struct series_range range);
double series_max(const struct series *s, enum series_field field, struct series_range range);

/* Adds rate(bucket[range]) of every bucket, and of the count as the last, to `sums` [bounds + 1]. */
void series_add_bucket_rates(const struct series *s, enum series_histogram histogram,
                             struct series_range range, double *sums);

/* histogram_quantile() of such sums (not cumulative); NaN when nothing was observed. */
double series_quantile(double q, const struct replica_bounds *bounds, const double *sums);

/* The share of observations above `x`, with an exponential tail inside the bucket: F of the rule slo. `above`
 * are not cumulative counts; the last is beyond all bounds. */
double series_share_above(double x, const struct replica_bounds *bounds, const double *counts);

#endif
