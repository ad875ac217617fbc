/* HTTP client: one object per endpoint (scheme, host, port), with its own connection pool.
 *
 *     struct http_client *c;
 *     struct http_client_options o = { .url = S("https://10.0.0.1:6443"), .tls = tls };
 *     http_client_new(loop, &o, &c, &e);
 *     struct http_call *call = http_client_send(c, &(struct http_request){
 *         .method = S("GET"), .target = S("/api/v1/pods?watch=1"),
 *         .on_head = head, .on_data = data, .on_done = done, .context = watch });
 *
 * Connections: HTTP/2 if TLS negotiates it; a connection is filled to the server's
 * MAX_CONCURRENT_STREAMS before another one is opened. Otherwise HTTP/1.1, one call at a time on
 * each connection, with reuse. Name lookups run on threads; all addresses of a name are tried in
 * turn. TCP_NODELAY and keep-alive are on. HTTP/2 connections are pinged after 30 s without a frame
 * and closed 15 s later if nothing arrives. After GOAWAY, accepted calls continue and new ones use
 * another connection.
 *
 * Retries are automatic and happen only before the first byte of a response: a call that the server
 * did not process (REFUSED_STREAM, GOAWAY), with any method; a call on a reused connection that
 * turns out to be dead, if nothing of it was written or its method is GET, HEAD or OPTIONS. All
 * other failures are reported to the caller.
 *
 * gzip bodies are decompressed. Redirects are not followed. Proxies (including the environment's
 * proxy variables) and Unix sockets are not supported. */
#ifndef FLYBALL_HTTP_CLIENT_H
#define FLYBALL_HTTP_CLIENT_H

#include "http.h"
#include "loop.h"
#include "tls.h"

struct http_client;
struct http_call;

/* Collects headers for one call: see `authorize`. */
struct http_header_list;
/* Copied; the name in lower case, as HTTP/2 requires. */
void http_header_list_add(struct http_header_list *list, str name, str value);

struct http_client_options {
    str url;         /* http://… or https://…; its path is prepended to every target */
    struct tls *tls; /* for https; a reference is taken; NULL: the system's CAs */
    str user_agent;  /* empty: "flyball/VERSION" */

    /* Called for every attempt of every call, so that tokens can rotate; adds headers such as
     * Authorization. May be NULL. */
    void (*authorize)(void *context, struct http_header_list *list);
    /* May this address (4 or 16 bytes, network order) be connected to? Asked for every address that a
     * name resolves to, right before connecting to that same address. NULL: all may. If none may, the
     * call fails with EACCES. */
    bool (*allow_address)(void *context, const uint8_t *bytes, size_t n);
    void *context;

    bool http2_plain; /* HTTP/2 with prior knowledge on http:// */
    bool no_gzip;     /* do not send Accept-Encoding: gzip */

    /* Limits; 0 selects the default in brackets. */
    size_t max_connections;       /* [256] further calls wait */
    size_t max_header_bytes;      /* [64 KiB] of a response */
    int64_t dial_timeout_ns;      /* [30 s] lookup and connect */
    int64_t handshake_timeout_ns; /* [10 s] */
    int64_t idle_timeout_ns;      /* [90 s] then an unused connection is closed */
    int64_t ping_after_ns;        /* [30 s] */
    int64_t ping_timeout_ns;      /* [15 s] */

    /* A connection that carries only calls that allow a delay stops reading for this time after it
     * received few bytes, so that the next wakeup finds several events. 0: never. */
    int64_t read_delay_ns;
};

int http_client_new(struct loop *loop, const struct http_client_options *options,
                    struct http_client **ret_client, err_t *e);
/* Calls in progress get on_done with ECANCELED. */
void http_client_free(struct http_client *c);
size_t http_client_connections(const struct http_client *c);

struct http_head {
    int status;                  /* 200..599; 1xx are skipped */
    struct http_headers headers; /* lower-case names */
    bool http2;
};

/* Everything is copied. A call without a deadline may last forever (watches). */
struct http_request {
    str method;
    str target; /* path and query, already encoded, beginning with '/' */
    struct http_headers headers;
    str body;            /* Content-Length is added; a body for GET is allowed */
    int64_t deadline_ns; /* loop's mono clock, for the whole call; 0: none. ETIMEDOUT */

    /* Called in this order: on_head at most once, on_data any number of times, on_done exactly once
     * unless the call is canceled. None is called from inside http_client_send(). on_head and
     * on_data may be NULL. on_done receives NULL for a complete response (with any status),
     * otherwise an error that names the server but not the request, which the caller knows. */
    void (*on_head)(void *context, const struct http_head *head);
    void (*on_data)(void *context, str bytes);
    void (*on_done)(void *context, const err_t *failure);
    void *context;
};

/* The call is valid until on_done returns or it is canceled. An invalid request (a line break in a
 * header) fails in on_done like everything else. */
struct http_call *http_client_send(struct http_client *c, const struct http_request *request);
/* No callback runs afterwards, even if called from inside one. The HTTP/2 stream is reset; an
 * HTTP/1.1 connection that was waiting for the response is closed. */
void http_call_cancel(struct http_call *call);
/* From now on the bytes of this call may arrive late: see `read_delay_ns`. For watches. */
void http_call_allow_delay(struct http_call *call);
/* Backpressure: after pause, neither on_data nor on_done is called until resume. Flow control of
 * the stream or connection stops the peer, so at most one window (1 MiB) waits in memory. Deadlines
 * still apply. Data that waited is delivered later, never from inside resume. */
void http_call_pause(struct http_call *call);
void http_call_resume(struct http_call *call);

/* --- whole responses --- */

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
    /* Exactly once unless canceled; either `response` or `failure` is NULL. */
    void (*on_done)(void *context, const struct http_response *response, const err_t *failure);
    void *context;
};

/* http_call_cancel() works on it as well. */
struct http_call *http_client_fetch(struct http_client *c, const struct http_fetch *request);

#endif
