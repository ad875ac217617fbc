/* What a policy can know of a fleet: the answers that Prometheus and the API server would give to the product's
 * own queries (collect_prometheus.c, and for the slo policy the table in its specification). Model-wide rates
 * count every series with samples in the range, also of pods that are gone; gauges only those of pods that
 * exist; values per variant only ready pods whose last sample is at most 60 s old. */
#ifndef FLYBALL_FLEET_QUERY_H
#define FLYBALL_FLEET_QUERY_H

#include "fleet.h"

struct query_variant {
    int current, ready, reporting; /* asked for, serving, with a fresh sample */
    double itl;                    /* s between tokens */
    double prompt_rate, gen_rate;  /* tokens per second of a replica */
    double running, running_low, running_high;
    double kv, kv_tokens, max_seqs;
    double start_delay; /* s; mean of those that became ready since the last step; NaN: none did */
};

struct query_model { /* NaN: not known */
    double arrival;  /* requests per second */
    double in_tokens, out_tokens, in_tail;
    double waiting, queued;
    double ok,
        finished; /* share within the targets in five minutes; requests per scrape interval */
    struct query_variant variants[FLEET_VARIANTS_MAX];
};

void fleet_query_model(const struct fleet *f, struct query_model *ret);

/* The instant value summed over pods that exist and were scraped in the last five minutes. */
double fleet_query_sum(const struct fleet *f, enum series_field field, size_t variant);
enum { FLEET_ALL_VARIANTS = FLEET_VARIANTS_MAX };

/* sum(increase(a[range])) / sum(increase(b[range])) over all series; NaN without a denominator. */
double fleet_query_ratio(const struct fleet *f, enum series_field a, enum series_field b,
                         double range_s);
/* sum(rate(field[range])). */
double fleet_query_rate(const struct fleet *f, enum series_field field, double range_s);
/* Requests per second of the last scrape interval, as rate(...[30s]) shows it. */
double fleet_query_arrival_now(const struct fleet *f);

#endif
