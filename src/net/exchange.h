/* Exchanges as the two server protocols see them. For the files of net only.
 *
 * Life: RECEIVING (the protocol fills in the request) -> HANDLED (owned by the handler) ->
 * ANSWERING (the protocol reads the body through exchange_read()) -> freed by exchange_finish(). If
 * the connection is lost in between, the protocol calls exchange_disconnect(): a receiving or
 * answering exchange ends at once; a handled one continues without a session until its handler
 * answers. */
#ifndef FLYBALL_EXCHANGE_H
#define FLYBALL_EXCHANGE_H

#include "../base/list.h"
#include "../base/vec.h"
#include "gzip.h"
#include "http_server.h"

#define EXCHANGE_MAGIC 0xe8c4a43eu

struct session;

/* The client of a connection; reference-counted, because exchanges may outlive the connection. */
struct http_peer {
    unsigned references;
    struct tls_peer *identity; /* owned; or NULL */
    char address[56];
};

void http_peer_unref(struct http_peer *p);

/* A request; released when its answer begins. */
struct exchange_request {
    struct exchange_request *next; /* of loop->kept_requests */
    struct arena arena;
    str method, target;
    VEC(struct http_header) headers;
    size_t header_bytes; /* so far, as the limit counts them */
    struct buf body;
    VEC(struct http_header) added; /* to the answer, by exchange_add_header() */
    struct http_peer *peer;
};

enum exchange_state { EXCHANGE_RECEIVING, EXCHANGE_HANDLED, EXCHANGE_ANSWERING };

struct exchange_trailer { /* owned by the exchange */
    struct exchange_trailer *next;
    str name, value; /* in `text` */
    char text[];
};

struct exchange {
    unsigned magic;
    int32_t stream_id;                /* HTTP/2 */
    struct session *session;          /* NULL: the client has disconnected */
    struct list_item item;            /* of session->exchanges */
    struct exchange_request *request; /* owned; NULL once the answer has begun */
    enum exchange_state state;
    bool head_only;              /* the answer has no body: HEAD, 204, 304 */
    bool ended;                  /* the source has given its last byte */
    bool cut;                    /* the answer ended incomplete */
    bool waiting;                /* the source returned STREAM_WAIT and was not woken since */
    bool woken;                  /* exchange_wake_stream() was called since the last pull */
    int64_t left;                /* bytes still to come; -1: the length is unknown */
    int64_t started_ns;          /* when the request began, mono ns */
    struct stream_source source; /* .pull NULL: the whole body is in `pending` */
    struct buf pending;          /* pulled, not yet taken by the protocol */
    size_t pending_at;           /* bytes of `pending` already taken */
    struct gzip *gzip;           /* owned; NULL: not compressed */
    size_t ignored;              /* bytes of the body received after a refusal */
    size_t held;         /* bytes of memory waiting for the client, as counted in the session */
    size_t source_bytes; /* kept by the source for this client; see exchange_count_source() */
    int64_t blocked_ns;  /* HTTP/2: since when its window is closed; 0: it is open */
    bool parked;         /* HTTP/2: complete, but waits until the client reads other answers */
    struct loop *loop;
    struct exchange_trailer *trailers;
    void (*gone)(void *context); /* see exchange_on_gone(); NULL: none */
    void *gone_context;
    struct deferred lost; /* closes a stream whose client had disconnected before it began */
};

struct exchange *exchange_new(struct session *session, struct loop *loop, struct http_peer *peer);

/* While receiving. Both return false if the limit would be exceeded. */
bool exchange_put_header(struct exchange *x, str name, str value, size_t limit);
bool exchange_put_body(struct exchange *x, str bytes, size_t limit);

/* Takes up to `room` bytes of the answer's body. *ret: STREAM_MORE (also if room was short), _WAIT,
 * _END or _CUT. */
size_t exchange_read(struct exchange *x, char *to, size_t room, enum stream_more *ret);

/* Frees what waits for the client: the answer will not be completed. */
void exchange_discard_body(struct exchange *x);

void exchange_finish(struct exchange *x, bool complete); /* calls closed() and frees */
void exchange_disconnect(struct exchange *x);            /* the connection is lost */

#endif
