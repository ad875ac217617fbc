/* The answer of a query, packed: series with their labels and samples, out of the JSON that Prometheus
 * sends, read as it arrives. 32,000 series take some 25 ms, most of it the JSON parser's, and no more
 * memory than the packed form. */
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
 * the arena. An answer that says it failed is an error with Prometheus' own words (-EREMOTEIO). Series of
 * native histograms have no plain samples and are left out. */
int prom_result_read(struct arena *a, str body, struct prom_result *ret, err_t *e);

/* The same in pieces: init, feed for each, end. A reader must not move; done is always due. */
struct prom_reader {
    struct frame frame;
    struct arena *arena;  /* of the result */
    struct arena scratch; /* of the series at hand */
    VEC(struct prom_series) series;
    size_t seen; /* also those left out */
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
