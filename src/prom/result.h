/* Query results in a packed form: series with their labels and samples, parsed from the JSON that
 * Prometheus sends while it arrives. 32,000 series take about 25 ms, most of it in the JSON parser,
 * and no more memory than the packed form. */
#ifndef FLYBALL_RESULT_H
#define FLYBALL_RESULT_H

#include "../base/arena.h"
#include "../base/vec.h"
#include "../json/frame.h"
#include "prom.h"

struct prom_sample {
    int64_t time_ms; /* since 1970 */
    double value;    /* may be NaN or infinite */
};

struct prom_series {
    const struct prom_label *labels;   /* including __name__ if the query keeps it */
    const struct prom_sample *samples; /* at least one, by time; one for an instant query */
    uint32_t label_n, sample_n;
};

struct prom_result {
    const struct prom_series *series;
    size_t n;
    const str *warnings;
    size_t warning_n;
};

/* Parses a response (vector, matrix or scalar; a scalar is one series without labels) into the
 * arena. A response with status "error" is an error with Prometheus' own message (-EREMOTEIO).
 * Series of native histograms have no plain samples and are omitted. */
int prom_result_read(struct arena *a, str body, struct prom_result *ret, err_t *e);

/* The same in pieces: init, feed for each piece, end. A reader must not move in memory, and always
 * needs prom_reader_done. */
struct prom_reader {
    struct frame frame;
    struct arena *arena;  /* borrowed; holds the result */
    struct arena scratch; /* JSON of the current series */
    VEC(struct prom_series) series;
    size_t seen; /* series so far, including omitted ones */
};

void prom_reader_init(struct prom_reader *r, struct arena *a);
int prom_reader_feed(struct prom_reader *r, str bytes, err_t *e);
int prom_reader_end(struct prom_reader *r, struct prom_result *ret, err_t *e);
void prom_reader_done(struct prom_reader *r);

static inline str prom_series_label(const struct prom_series *s, str name)
{
    return prom_label_get(s->labels, s->label_n, name);
}

#endif
