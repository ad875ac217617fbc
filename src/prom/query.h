/* Client for Prometheus queries over HTTP, on the event loop.
 *
 *     prom_client_new(loop, &(struct prom_client_options){ .url = S("https://prometheus:9090"), .tls = tls,
 *                     .token_file = "/var/run/secrets/…/token" }, &client, e);
 *     prom_client_query(client, &(struct prom_query){ .promql = S("up"), .on_done = got_up, .context = me });
 *
 * A failed query is retried with exponential backoff until it succeeds, its attempts are used up or
 * its timeout expires; then the last failure is reported. A query that Prometheus rejects as
 * invalid (400, 422) is not retried. The token file is read again for every attempt, because bound
 * tokens expire; if it is unreadable, the last token stays in use. */
#ifndef FLYBALL_QUERY_H
#define FLYBALL_QUERY_H

#include "../net/http_client.h"
#include "result.h"

struct prom_client;
struct prom_call;

struct prom_retry {
    int attempts;     /* 0: use the defaults: 5 attempts, 500 ms, factor 2, jitter 0.1 */
    int64_t first_ns; /* delay after the first failure */
    double factor;    /* each later delay is longer by this factor */
    double jitter;    /* and randomly longer by up to this fraction */
};

struct prom_client_options {
    str url;                /* of the server; its path is prepended to /api/v1 */
    struct tls *tls;        /* for https; takes a reference; NULL: the system's CA certificates */
    str token;              /* bearer token; takes precedence over the file */
    const char *token_file; /* must be readable when the client is created */
    bool insecure_token;    /* allow sending the token without TLS to other hosts */
    int64_t timeout_ns;     /* of a query with all its attempts; 0: 10 s */
    struct prom_retry retry;
    size_t max_body_bytes; /* of a response; 0: 64 MiB */
    uint64_t seed;         /* of the jitter */
};

int prom_client_new(struct loop *loop, const struct prom_client_options *options,
                    struct prom_client **ret, err_t *e);
/* Pending queries get on_done with ECANCELED. */
void prom_client_free(struct prom_client *c);

struct prom_query {
    str promql;
    int64_t time_ms; /* instant query: since 1970; 0: now, by the server's clock */
    int64_t start_ms, end_ms, step_ms; /* range query if step_ms > 0 */
    int64_t
        deadline_ns; /* of the caller's task, monotonic; the query ends 100 ms earlier; 0: none */
    struct prom_retry retry; /* {0}: the client's */
    bool suspect;            /* the same query timed out before: let others go first */
    /* Called exactly once unless canceled, never from inside prom_client_query(), with `result`,
     * which is valid during the call, or `failure`; the other is NULL. ETIMEDOUT: no response in
     * time; EBUSY: never sent, because too many queries were waiting. */
    void (*on_done)(void *context, const struct prom_result *result, const err_t *failure);
    void *context;
};

struct prom_call *prom_client_query(struct prom_client *c, const struct prom_query *query);
void prom_call_cancel(struct prom_call *call);

/* A value for a matcher, without its quotes: name="…". Escapes backslash and quote, as WVA does,
 * but not a line break, which PromQL does not allow in quotes: use prom_query_matcher() instead. */
void prom_query_escape(struct buf *out, str value);
/* A whole matcher, label="value", for any value. */
void prom_query_matcher(struct buf *out, const char *label, str value);
/* The same for any of `n` values, at least one: label=~"a|b". */
void prom_query_any_of(struct buf *out, const char *label, const str *values, size_t n);

#endif
