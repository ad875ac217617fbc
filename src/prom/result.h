/* The answer of a query, packed: series with their labels and samples, out of the JSON that Prometheus
 * sends. 32,000 series take some 35 ms, most of it the JSON parser's. */
#ifndef FLYBALL_RESULT_H
#define FLYBALL_RESULT_H

#include "../base/arena.h"
#include "prom.h"

struct prom_sample {
    int64_t time_ms; /* since 1970 */
    double value;    /* may be NaN or infinite */
};

struct prom_series {
    const struct prom_label *labels;   /* __name__ is one of them where the query kept it */
    const struct prom_sample *samples; /* at least one, by time; exactly one of an instant query */
    uint32_t label_n, sample_n;
};

struct prom_result {
    const struct prom_series *series;
    size_t n;
    const str *warnings;
    size_t warning_n;
};

/* Reads an answer (vector, matrix or scalar; a scalar is one series without labels). All of it lives in
 * the arena. An answer that says it failed is an error with Prometheus' own words. Series of native
 * histograms have no plain samples and are left out. */
int prom_result_read(struct arena *a, str body, struct prom_result *ret, err_t *e);

static inline str prom_series_label(const struct prom_series *s, str name)
{
    return prom_label_get(s->labels, s->label_n, name);
}

#endif
