/* prom: what is spoken with Prometheus.
 *
 *   scrape       the text format in: somebody's /metrics as samples
 *   exposition   the text format out: our own metrics (base/metrics.h) as /metrics
 *   result       the answer of a query, packed
 *   query        the client: instant and range queries with retries
 *   promql       a query of a tenant, confined to its own namespace
 *
 * Memory: a scrape and a query hand out samples that are valid during the callback; a result owns
 * an arena. Nothing here keeps state between calls except the client's connections and token.
 *
 * Read first: prom_client_query, scrape_read, exposition_write. */
#ifndef FLYBALL_PROM_H
#define FLYBALL_PROM_H

#include "../base/str.h"

struct prom_label {
    str name, value;
};

/* The value of a label, "" when it is not there (which Prometheus takes for the same). */
str prom_label_get(const struct prom_label *labels, size_t n, str name);

/* A number as Prometheus writes them, NaN and +Inf included; -EINVAL or -ERANGE, without words. */
int prom_number(str text, double *ret);

#endif
