/* HTTP server: HTTP/1.1 and HTTP/2 on one port (by ALPN over TLS; plain connections may start
 * HTTP/2 with prior knowledge).
 *
 *     static void on_request(void *context, struct exchange *x)
 *     {
 *         if (str_eq(exchange_path(x), S("/healthz")))
 *             exchange_answer(x, 200, HTTP_HEADERS({ S("content-type"), S("text/plain") }),
 *             S("ok"));
 *         else ...
 *     }
 *
 * Each request with its whole body becomes an exchange, which the handler must end in one of these
 * ways, from inside the handler or at any later time:
 *
 *   exchange_answer, exchange_answer_buf    the whole answer
 *   exchange_stream                         an answer in parts that are pulled when there is room
 *   exchange_abort                          no answer: the stream is reset or the connection closed
 *
 * Until then the handler owns the exchange, even if the client disconnects: an answer to a client
 * that is gone is dropped silently, so a handler that waits for a commit needs no bookkeeping. From
 * then on the server owns it, and the texts of the request are freed: copy what must be kept. (A
 * handler that waits for a long time can stop early: exchange_on_gone().)
 *
 * The server itself adds Date and Content-Length or chunking, and handles keep-alive, HEAD, Expect:
 * 100-continue, gzip, and 400/408/413/414/431/503 for requests that never become an exchange. */
#ifndef FLYBALL_HTTP_SERVER_H
#define FLYBALL_HTTP_SERVER_H

#include "http.h"
#include "loop.h"
#include "tls.h"

struct http_server;
struct exchange;

struct http_server_options {
    const char *address; /* IP address to bind; NULL: 127.0.0.1 */
    uint16_t port;       /* 0: any free one, see http_server_port() */
    struct tls *tls;     /* a reference is taken; NULL: plain */
    void (*on_request)(void *context, struct exchange *x);
    /* Appends the body of the answer to a request that never becomes an exchange, and returns its
     * content type. NULL: one line of plain text. */
    const char *(*refusal)(void *context, int status, struct buf *body);
    void *context;

    /* Limits; 0 selects the default in brackets. */
    size_t max_connections;   /* [16384] further ones are closed at once */
    size_t max_streams;       /* [1000] concurrent requests of one HTTP/2 connection */
    size_t max_header_bytes;  /* [64 KiB] request line and headers: 431 */
    size_t max_body_bytes;    /* [3 MiB, as kube-apiserver] 413 */
    size_t max_pending_bytes; /* [64 MiB] bodies of all requests being read: 503 */
    /* Bytes of answers that clients have not read yet. Per HTTP/2 connection: further requests
     * wait. For the whole server: connections whose clients have read nothing for the longest time
     * are closed, but not the only one, whose answer may be larger than the limit. */
    size_t max_unread_connection; /* [16 MiB] */
    size_t max_unread_bytes;      /* [48 MiB] */
    size_t gzip_min_bytes;        /* [128 KiB] whole answers above it are compressed if accepted */
    int64_t handshake_ns;         /* [10 s] */
    int64_t
        header_timeout_ns;   /* [10 s] from the first byte of a request to the end of its headers */
    int64_t body_timeout_ns; /* [60 s] from there to the end of the body */
    int64_t idle_timeout_ns; /* [180 s] a connection without a request */
    int64_t write_timeout_ns; /* [60 s] for a client that reads nothing, on the connection or on
                               * one stream of it */
    /* Called when a limit ended a connection or a stream; for the log. May be NULL. */
    void (*on_limit)(void *context, const char *peer, const char *what);
};

int http_server_new(struct loop *loop, const struct http_server_options *options,
                    struct http_server **ret_server, err_t *e);
uint16_t http_server_port(const struct http_server *s);
size_t http_server_connections(const struct http_server *s);

/* Graceful shutdown: stops listening, closes idle connections, sends GOAWAY to HTTP/2 clients and
 * Connection: close with HTTP/1.1 answers. Exchanges in progress may finish; `done` is called when
 * the last connection is closed, or after `limit_ns`, when the rest are closed. Handlers must end
 * streams that do not end by themselves (exchange_end_stream). */
void http_server_drain(struct http_server *s, int64_t limit_ns, void (*done)(void *context),
                       void *context);
/* Closes all connections. Streams get `closed`; unanswered exchanges stay valid until answered. Not
 * to be called from inside a callback of this server. */
void http_server_free(struct http_server *s);

/* --- the request --- */

str exchange_method(const struct exchange *x); /* "GET" */
str exchange_path(const struct exchange *x);   /* raw (percent-encoded), without the query */
str exchange_query(const struct exchange *x);  /* raw, without '?' */
str exchange_body(const struct exchange *x);   /* whole; empty if none. Followed by a NUL */
struct http_headers exchange_headers(const struct exchange *x);
str exchange_header(const struct exchange *x, str name); /* first of that name; .p NULL: none */
const struct tls_peer *exchange_peer(const struct exchange *x); /* NULL: no client certificate */
struct arena *exchange_arena(struct exchange *x); /* scratch, freed with the request's texts */
bool exchange_is_gone(const struct exchange *x);  /* the client has disconnected */
/* Calls `gone` if the client disconnects before the exchange is answered. It may answer or abort the
 * exchange. */
void exchange_on_gone(struct exchange *x, void (*gone)(void *context), void *context);

/* --- the answer --- */

/* Adds a header (warnings, audit ids) to the answer, before it begins. Copied. */
void exchange_add_header(struct exchange *x, str name, str value);

/* Adds a header that follows the body, until the last byte of it was pulled. HTTP/2 only, for gRPC;
 * HTTP/1.1 clients do not get it. Copied. */
void exchange_add_trailer(struct exchange *x, str name, str value);

void exchange_answer(struct exchange *x, int status, struct http_headers headers, str body);
/* The same without a copy: the bytes are taken out of `*body`, which is empty afterwards. */
void exchange_answer_buf(struct exchange *x, int status, struct http_headers headers,
                         struct buf *body);
void exchange_abort(struct exchange *x);

/* --- streams: pulled, so that a slow client causes no buffering ---
 *
 * When the client can take bytes, `pull` appends to `out`. It should stop after `room` bytes and
 * may exceed that by the rest of the current object (which waits in memory). It returns
 *
 *   STREAM_MORE   there is more: call again as soon as there is room
 *   STREAM_WAIT   nothing now: do not call until exchange_wake_stream()
 *   STREAM_END    the answer is complete
 *   STREAM_CUT    the answer cannot be completed: make that visible to the client
 *
 * Large answers (a list of 5,000 objects) end with STREAM_END; watches wait, are woken for each
 * event, and end at their timeout. `closed` is the last callback, called exactly once per stream
 * for every kind of end (`complete`: all of it was handed to the system for sending), never from
 * inside exchange_stream() or exchange_wake_stream(). The exchange is freed after it. `pull` may
 * call exchange_wake_stream() but not exchange_end_stream(). */
enum stream_more { STREAM_MORE, STREAM_WAIT, STREAM_END, STREAM_CUT };

struct stream_source {
    enum stream_more (*pull)(void *context, struct buf *out, size_t room);
    void (*closed)(void *context, bool complete);
    void *context;
    bool compress;  /* gzip if the client accepts it: for large answers, not for watches */
    int64_t length; /* bytes, for Content-Length (unless compressed); -1: unknown */
};

void exchange_stream(struct exchange *x, int status, struct http_headers headers,
                     const struct stream_source *source);
void exchange_wake_stream(struct exchange *x); /* cheap, any number of times */
/* Memory that the source keeps only because this client has not read yet; counts towards the limits
 * of unread answers until it is set again. */
void exchange_count_source(struct exchange *x, size_t bytes);
/* Ends a stream from outside `pull`: what was pulled is still sent, then the answer is complete.
 * With `cut`, ends it at once and visibly incomplete. */
void exchange_end_stream(struct exchange *x, bool cut);

#endif
