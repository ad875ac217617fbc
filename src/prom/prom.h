/* prom: everything that talks to Prometheus or speaks its formats.
 *
 *   scrape       parses the text format: the /metrics of a pod as samples
 *   exposition   writes the text format: our own metrics (base/metrics.h) as /metrics
 *   result       parses query results into a packed form
 *   query        the HTTP client: instant and range queries with retries
 *   promql       confines the query of a tenant to its own namespace
 *
 * Memory: samples of a scrape and results of a query are valid during the callback;
 * prom_result_read allocates from the caller's arena. Only the client keeps state between calls:
 * its connections and its token.
 *
 * Read first: prom_client_query, scrape_read, exposition_write. */
#ifndef FLYBALL_PROM_H
#define FLYBALL_PROM_H

#include "../base/str.h"

struct prom_label {
    str name, value;
};

/* The value of a label; "" if it is missing, which Prometheus treats as the same. */
str prom_label_get(const struct prom_label *labels, size_t n, str name);

/* A number in Prometheus notation, including NaN and +Inf; -EINVAL or -ERANGE, without an error
 * text. */
int prom_number(str text, double *ret);

#endif
