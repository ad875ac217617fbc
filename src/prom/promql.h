/* A PromQL query of somebody who may not see everything, confined to what he may see: every selector in it gets
 * one more matcher, such as namespace="shop". Matchers of one selector are ANDed, so ours cannot be undone.
 *
 *     rate(http_requests_total[5m]) / {"http.limit"}
 *     rate(http_requests_total{namespace="shop"}[5m]) / {"http.limit",namespace="shop"}
 *
 * The query is parsed as a whole, and what cannot be parsed is refused with its position: a selector that we
 * overlook would be one that is not confined. The grammar is that of Prometheus 2 and 3, without what is experimental,
 * without info(), which selects series by itself, and without metrics named like a keyword (write {__name__="sum"}).
 * Comments are dropped. Pure. */
#ifndef FLYBALL_PROMQL_H
#define FLYBALL_PROMQL_H

#include "../base/arena.h"

enum { PROMQL_BYTES_MAX = 16 * 1024, PROMQL_DEPTH_MAX = 100 };

struct promql_matcher {
    str label; /* a name of [A-Za-z0-9_] */
    str value; /* of [A-Za-z0-9.-], as names of objects are */
};

/* The confined query, in the arena. Confining it once more changes nothing. */
int promql_confine(struct arena *a, str query, const struct promql_matcher *matcher, str *ret,
                   err_t *e);

#endif
