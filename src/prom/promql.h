/* Confines a PromQL query to what its author may see: every selector gets one more matcher, such as
 * namespace="shop". The matchers of a selector are ANDed, so the query cannot undo ours.
 *
 *     rate(http_requests_total[5m]) / {"http.limit"}
 *     rate(http_requests_total{namespace="shop"}[5m]) / {"http.limit",namespace="shop"}
 *
 * The whole query is parsed, and anything that cannot be parsed is rejected with its position: a
 * selector that we overlooked would not be confined. The grammar is that of Prometheus 2 and 3,
 * without experimental features, without info(), which selects series by itself, and without
 * metrics named like a keyword (write {__name__="sum"}). Comments are removed. Pure. */
#ifndef FLYBALL_PROMQL_H
#define FLYBALL_PROMQL_H

#include "../base/arena.h"

enum { PROMQL_BYTES_MAX = 16 * 1024, PROMQL_DEPTH_MAX = 100 };

struct promql_matcher {
    str label; /* [A-Za-z0-9_] */
    str value; /* [A-Za-z0-9.-], like the names of objects */
};

/* The confined query, in the arena. Confining it again changes nothing. */
int promql_confine(struct arena *a, str query, const struct promql_matcher *matcher, str *ret,
                   err_t *e);

#endif
