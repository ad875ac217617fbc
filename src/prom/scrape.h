/* Parser of the Prometheus text format (0.0.4, and the quoted names of 1.0.0).
 *
 * Histograms and summaries are reported as their plain series (x_bucket with le, x_sum, x_count).
 * Comments are skipped: no caller needs HELP and TYPE. An invalid line is an error that names the
 * line; the samples before it have been reported by then, so collect them first if half a scrape
 * would do harm. */
#ifndef FLYBALL_SCRAPE_H
#define FLYBALL_SCRAPE_H

#include "prom.h"

#define SCRAPE_ACCEPT "text/plain;version=0.0.4;q=0.9,text/plain;q=0.5"

enum { SCRAPE_LABELS_MAX = 128, SCRAPE_LINE_MAX = 64 * 1024 };

struct scrape_sample {
    str name; /* valid during the callback, like all texts here */
    const struct prom_label *labels;
    size_t label_n;
    double value; /* may be NaN or infinite */
    bool has_time;
    int64_t time_ms; /* since 1970 */
};

/* Calls `each` for every sample. A negative result of `each` stops the parser and is returned. */
typedef int scrape_fn(void *context, const struct scrape_sample *sample, err_t *e);
int scrape_read(str text, scrape_fn *each, void *context, err_t *e);

static inline str scrape_label(const struct scrape_sample *s, str name)
{
    return prom_label_get(s->labels, s->label_n, name);
}

#endif
