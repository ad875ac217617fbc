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
 *   exchange_abort                          no answer: the peer sees the stream or connection cut
 *
 * Until then the exchange is the handler's, whatever the peer does: an answer to a peer that has
 * gone is dropped silently, so a handler that waits for a commit needs no bookkeeping. From then on
 * it is the server's, and the request's texts are gone: copy what must be kept. (A handler that
 * waits long can ask exchange_is_gone().)
 *
 * What the server does by itself: Date and Content-Length or chunking, keep-alive, HEAD, Expect:
 * 100-continue, gzip, 400/408/413/414/431/503 for what never becomes an exchange. */
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
    /* The body of an answer to a request that never becomes an exchange: appends it and returns its
     * content type. NULL: one line of plain text. */
    const char *(*refusal)(void *context, int status, struct buf *body);
    void *context;

    /* Limits; 0 means the value in brackets. */
    size_t max_connections;   /* [16384] beyond it new ones are closed at once */
    size_t max_streams;       /* [1000] concurrent requests of one HTTP/2 connection */
    size_t max_header_bytes;  /* [64 KiB] request line and headers: 431 */
    size_t max_body_bytes;    /* [3 MiB, as kube-apiserver] 413 */
    size_t max_pending_bytes; /* [256 MiB] bodies of all requests being read: 503 */
    /* Answers, or the rest of them, that clients have not taken yet. On one HTTP/2 connection: further
     * requests wait until some were taken. Of all connections: those whose clients have not taken
     * anything for the longest time are closed. */
    size_t max_unread_connection; /* [64 MiB] */
    size_t max_unread_bytes;      /* [192 MiB] */
    size_t gzip_min_bytes;        /* [128 KiB] whole answers above it are compressed if accepted */
    int64_t handshake_ns;         /* [10 s] */
    int64_t
        header_timeout_ns;   /* [10 s] from the first byte of a request to the end of its headers */
    int64_t body_timeout_ns; /* [60 s] from there to the end of the body */
    int64_t idle_timeout_ns; /* [180 s] a connection without a request */
    int64_t write_timeout_ns; /* [60 s] a peer that takes no byte of what waits for it, on the
                               * connection or on one stream of it */
    /* Told when a limit ended a connection or a stream: "10.0.0.1:4711", "stream 5: ...". */
    void (*on_limit)(void *context, const char *peer, const char *what);
};

int http_server_new(struct loop *loop, const struct http_server_options *options,
                    struct http_server **ret_server, err_t *e);
uint16_t http_server_port(const struct http_server *s);
size_t http_server_connections(const struct http_server *s);

/* Stops listening and ends politely: idle connections close, HTTP/2 peers get GOAWAY, HTTP/1.1
 * answers say Connection: close. What is under way may end; `done` is called when the last
 * connection has gone or when `limit_ns` have passed and the rest was cut. Streams that would not
 * end by themselves must be ended by their handlers (exchange_end_stream). */
void http_server_drain(struct http_server *s, int64_t limit_ns, void (*done)(void *context),
                       void *context);
/* Cuts what is left. Streams get their `closed`; unanswered exchanges stay valid until answered.
 * Not from inside a callback of this server. */
void http_server_free(struct http_server *s);

/* --- the request --- */

str exchange_method(const struct exchange *x); /* "GET" */
str exchange_path(const struct exchange *x);   /* raw (percent-encoded), without the query */
str exchange_query(const struct exchange *x);  /* raw, without '?' */
str exchange_body(const struct exchange *x);   /* whole; empty if none. Followed by a NUL */
struct http_headers exchange_headers(const struct exchange *x);
str exchange_header(const struct exchange *x, str name); /* first of that name; .p NULL: none */
const struct tls_peer *exchange_peer(const struct exchange *x); /* NULL: showed no certificate */
str exchange_address(const struct exchange *x);                 /* "127.0.0.1:40312" */
struct arena *exchange_arena(struct exchange *x); /* scratch that dies with the request's texts */
bool exchange_is_gone(const struct exchange *x);  /* the peer will not see an answer */

/* --- the answer --- */

/* Adds a header to the answer to come, before it is begun: warnings, audit ids. Copied. */
void exchange_add_header(struct exchange *x, str name, str value);

void exchange_answer(struct exchange *x, int status, struct http_headers headers, str body);
/* The same without a copy: the bytes are taken out of `*body`, which is empty afterwards. */
void exchange_answer_buf(struct exchange *x, int status, struct http_headers headers,
                         struct buf *body);
void exchange_abort(struct exchange *x);

/* --- streams: pulled, so that a slow peer buffers nothing ---
 *
 * When the peer can take bytes, `pull` is asked to append to `out`; it should stop once it put
 * `room` bytes, and may overshoot by the object it is at (that object waits in memory). It returns
 *
 *   STREAM_MORE   there is more: ask again as soon as there is room
 *   STREAM_WAIT   nothing more now: do not ask until exchange_wake_stream()
 *   STREAM_END    this was all: the answer is complete
 *   STREAM_CUT    the answer cannot be completed: let the peer see that
 *
 * Large answers (a list of 5,000 objects) end by themselves with STREAM_END; watches wait, are
 * woken for each event, and end when their time is over. `closed` is called exactly once for each
 * stream, last of all, whoever ended it (`complete`: all of it was handed to the system for
 * sending); never from inside exchange_stream() or exchange_wake_stream(). After it, the exchange is gone.
 * `pull` may call exchange_wake_stream() but not exchange_end_stream(). */
enum stream_more { STREAM_MORE, STREAM_WAIT, STREAM_END, STREAM_CUT };

struct stream_source {
    enum stream_more (*pull)(void *context, struct buf *out, size_t room);
    void (*closed)(void *context, bool complete);
    void *context;
    bool compress;  /* gzip if the peer accepts it: for large answers, not for watches */
    int64_t length; /* exact number of bytes if known, for Content-Length (not if compressed); -1 */
};

void exchange_stream(struct exchange *x, int status, struct http_headers headers,
                     const struct stream_source *source);
void exchange_wake_stream(struct exchange *x); /* cheap, any number of times */
/* Ends a stream from outside `pull`: what was pulled is still sent, then the answer is complete;
 * `cut`: at once and visibly incomplete. */
void exchange_end_stream(struct exchange *x, bool cut);

#endif
