/* Queries to Prometheus over HTTP, on the loop.
 *
 *     prom_client_new(loop, &(struct prom_client_options){ .url = S("https://prometheus:9090"), .tls = tls,
 *                     .token_file = "/var/run/secrets/…/token" }, &client, e);
 *     prom_client_query(client, &(struct prom_query){ .promql = S("up"), .on_done = got_up, .context = me });
 *
 * A query that fails is tried again with growing pauses until it succeeds, its attempts are used up
 * or its time is over; the last failure is reported. A query that Prometheus calls wrong (400,
 * 422) stays wrong and is not repeated. The token file is read anew for every attempt, because bound
 * tokens expire; one that cannot be read leaves the last token in use. */
#ifndef FLYBALL_QUERY_H
#define FLYBALL_QUERY_H

#include "../net/http_client.h"
#include "result.h"

struct prom_client;
struct prom_call;

struct prom_retry {
    int attempts;     /* 0: all of this is 5 attempts, 500 ms, doubling, 0.1 */
    int64_t first_ns; /* pause after the first failure */
    double factor;    /* each later pause is that much longer */
    double jitter;    /* and up to this part of itself longer, at random */
};

struct prom_client_options {
    str url;                /* of the server; a path in it goes before /api/v1 */
    struct tls *tls;        /* for https; a reference is taken; NULL: the system's authorities */
    str token;              /* bearer token; wins over the file */
    const char *token_file; /* must be readable at the start */
    bool insecure_token;    /* send it without TLS to other machines too */
    int64_t timeout_ns;     /* of a query with all its attempts; 0: 10 s */
    struct prom_retry retry;
    size_t max_body_bytes; /* of an answer; 0: 64 MiB */
    uint64_t seed;         /* of the jitter */
};

int prom_client_new(struct loop *loop, const struct prom_client_options *options,
                    struct prom_client **ret, err_t *e);
/* Queries under way get on_done with ECANCELED. */
void prom_client_free(struct prom_client *c);

struct prom_query {
    str promql;
    int64_t time_ms;                   /* instant query: since 1970; 0: the server's now */
    int64_t start_ms, end_ms, step_ms; /* range query where step_ms > 0 */
    int64_t
        deadline_ns; /* of what this is a part of, loop's mono clock; the query ends 100 ms before; 0: none */
    struct prom_retry retry; /* {0}: the client's */
    bool doubted;            /* the last like it was not answered in time: others go before it */
    /* Exactly once unless cancelled, never from inside prom_client_query(): `result`, which is valid
     * during the call, or `failure`; the other is NULL. ETIMEDOUT: it hung; EBUSY: it was not even asked. */
    void (*on_done)(void *context, const struct prom_result *result, const err_t *failure);
    void *context;
};

struct prom_call *prom_client_query(struct prom_client *c, const struct prom_query *query);
void prom_call_cancel(struct prom_call *call);

/* A value for a matcher, without the quotes: name="…". Backslash and quote are escaped, as the original
 * does; a line break is not, and PromQL takes none inside quotes: use prom_query_matcher(). */
void prom_query_escape(struct buf *out, str value);
/* A whole matcher, label="value", for any value. */
void prom_query_matcher(struct buf *out, const char *label, str value);

#endif
