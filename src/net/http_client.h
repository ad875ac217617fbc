/* HTTP client: one object an endpoint (scheme, host, port), which owns its pool of connections.
 *
 *     struct http_client *c;
 *     struct http_client_options o = { .url = S("https://10.0.0.1:6443"), .tls = tls };
 *     http_client_new(loop, &o, &c, &e);
 *     struct http_call *call = http_client_send(c, &(struct http_request){
 *         .method = S("GET"), .target = S("/api/v1/pods?watch=1"),
 *         .on_head = head, .on_data = data, .on_done = done, .context = watch });
 *
 * Connections: HTTP/2 where TLS offers it; one is filled to the peer's MAX_CONCURRENT_STREAMS
 * before another is opened. Else HTTP/1.1, one call at a time on each, reused. Name lookups run on
 * threads; all addresses of a name are tried in turn. TCP_NODELAY and keep-alive are on.
 * HTTP/2 links are pinged after 30 s without a frame and closed after 15 s without an answer. After
 * GOAWAY the calls that were accepted go on and new ones open elsewhere.
 *
 * Retries, without the caller's knowledge and only before any byte of an answer was seen: a call
 * the server refused unprocessed (REFUSED_STREAM, GOAWAY), any method; a call on a reused
 * connection that turns out dead, if nothing of it was written or its method is GET, HEAD or
 * OPTIONS. All other failures are the caller's to judge.
 *
 * Bodies compressed with gzip are decoded. Redirects are not followed; proxies are not supported
 * (the proxy variables of the environment are ignored); nor are unix-domain sockets. */
#ifndef FLYBALL_HTTP_CLIENT_H
#define FLYBALL_HTTP_CLIENT_H

#include "http.h"
#include "loop.h"
#include "tls.h"

struct http_client;
struct http_call;

/* Collects headers for one call: see `authorize`. */
struct http_header_list;
void http_header_list_add(struct http_header_list *list, str name, str value); /* copied */

struct http_client_options {
    str url;         /* http://… or https://…; a path in it goes before every target */
    struct tls *tls; /* for https; a reference is taken; NULL: the system's authorities */
    str user_agent;  /* empty: "flyball/VERSION" */

    /* Asked for every attempt of every call, so that tokens rotate; it adds headers such as
     * Authorization. NULL: none. */
    void (*authorize)(void *context, struct http_header_list *list);
    void *context;

    bool http2_plain; /* speak HTTP/2 at once on http:// (the server must know it) */
    bool no_gzip;     /* do not offer it */

    /* Limits; 0 means the value in brackets. */
    size_t max_connections;       /* [256] calls beyond wait for a free one */
    size_t max_header_bytes;      /* [64 KiB] of an answer */
    int64_t dial_timeout_ns;      /* [30 s] lookup and connect */
    int64_t handshake_timeout_ns; /* [10 s] */
    int64_t idle_timeout_ns;      /* [90 s] an unused connection is closed */
    int64_t ping_after_ns;        /* [30 s] */
    int64_t ping_timeout_ns;      /* [15 s] */

    /* A connection that carries only delayable calls rests so long after little came, so that the next
     * waking finds more than one event. 0: never. */
    int64_t read_delay_ns;
};

int http_client_new(struct loop *loop, const struct http_client_options *options,
                    struct http_client **ret_client, err_t *e);
/* Calls still under way get on_done with ECANCELED. */
void http_client_free(struct http_client *c);
/* Closes idle connections and lets the others finish their calls; new calls dial anew. For when
 * credentials or the endpoint changed. */
void http_client_reconnect(struct http_client *c);
size_t http_client_connections(const struct http_client *c);

struct http_head {
    int status;                  /* 200..599; 1xx are swallowed */
    struct http_headers headers; /* lower-case names */
    bool http2;
};

/* Everything is copied. A call without a deadline may last for ever (watches). */
struct http_request {
    str method;
    str target; /* path and query, already encoded, beginning with '/' */
    struct http_headers headers;
    str body;            /* Content-Length is added; a body for GET is allowed */
    int64_t deadline_ns; /* loop's mono clock, for the whole call; 0: none. ETIMEDOUT */

    /* In this order: on_head at most once, on_data any number of times, on_done exactly once unless
     * the call is cancelled. None is called from inside http_client_send(). on_head and on_data may
     * be NULL. on_done gets NULL for an answer that came whole (whatever its status), else why not:
     * a sentence that names the server; what was asked is the caller's to say. */
    void (*on_head)(void *context, const struct http_head *head);
    void (*on_data)(void *context, str bytes);
    void (*on_done)(void *context, const err_t *failure);
    void *context;
};

/* The call is valid until on_done returns or it is cancelled. A request that cannot be sent as it
 * is (a line break in a header) fails in on_done like everything else. */
struct http_call *http_client_send(struct http_client *c, const struct http_request *request);
/* Nothing is called any more, also when called from inside a callback. The HTTP/2 stream is reset;
 * an HTTP/1.1 connection that was waiting for the answer is closed. */
void http_call_cancel(struct http_call *call);
/* From now on nobody waits for the bytes of this call: see `read_delay_ns`. For watches. */
void http_call_allow_delay(struct http_call *call);
/* Back-pressure: after pause no on_data comes (nor on_done) until resume; the peer is stopped by
 * the flow control of the stream or connection, so at most one window (1 MiB) waits in memory.
 * Deadlines run on. Data that waited is delivered in a later turn, never from inside resume. */
void http_call_pause(struct http_call *call);
void http_call_resume(struct http_call *call);

/* --- whole answers --- */

struct http_response {
    int status;
    struct http_headers headers;
    str body; /* followed by a NUL */
};

struct http_fetch {
    str method, target;
    struct http_headers headers;
    str body;
    int64_t deadline_ns;
    size_t max_body_bytes; /* 0: 16 MiB; EMSGSIZE beyond */
    /* Exactly once unless cancelled: `response` or `failure`, the other is NULL. */
    void (*on_done)(void *context, const struct http_response *response, const err_t *failure);
    void *context;
};

/* http_call_cancel() works on it as well. */
struct http_call *http_client_fetch(struct http_client *c, const struct http_fetch *request);

#endif
