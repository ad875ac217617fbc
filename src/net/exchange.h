/* Inside an exchange: what the server's two protocols share. Not for other folders.
 *
 * Life: RECEIVING (the protocol fills in the request) -> HANDLED (the handler's) -> ANSWERING (the
 * protocol reads the body through exchange_read()) -> freed by exchange_finish(). When the connection
 * goes in between, the protocol calls exchange_disconnect(): a receiving or answering exchange ends there
 * and then, a handled one lives on without connection until its handler answers. */
#ifndef FLYBALL_EXCHANGE_H
#define FLYBALL_EXCHANGE_H

#include "../base/list.h"
#include "../base/vec.h"
#include "gzip.h"
#include "http_server.h"

#define EXCHANGE_MAGIC 0xe8c4a43eu

struct session;

/* The other end of a connection; outlives it while an exchange needs it. */
struct http_peer {
    unsigned references;
    struct tls_peer *identity; /* owned; or NULL */
    char address[56];
};

struct http_peer *http_peer_ref(struct http_peer *p);
void http_peer_unref(struct http_peer *p);

/* The texts of a request; let go when its answer begins. */
struct request {
    struct request *next; /* among those that the loop keeps for the next exchange */
    struct arena arena;
    str method, target;
    VEC(struct http_header) headers;
    size_t header_bytes; /* so far, against the limit */
    struct buf body;
    VEC(struct http_header) added; /* to the answer, by exchange_add_header */
    struct http_peer *peer;
};

enum exchange_state { EXCHANGE_RECEIVING, EXCHANGE_HANDLED, EXCHANGE_ANSWERING };

struct exchange {
    unsigned magic;
    int32_t stream_id;       /* HTTP/2 */
    struct session *session; /* NULL: the peer has gone */
    struct list_item item;   /* of session->exchanges */
    struct request *request; /* owned; NULL once the answer began */
    enum exchange_state state;
    bool head_only;              /* the answer has no body: HEAD, 204, 304 */
    bool ended;                  /* the source gave its last byte */
    bool cut;                    /* … without being complete */
    bool waiting;                /* the source said wait, and was not woken since */
    bool woken;                  /* while the source was being pulled */
    int64_t left;                /* bytes still to come of a known length; -1: unknown */
    int64_t started_ns;          /* when the request began, for timeouts */
    struct stream_source source; /* .pull NULL: the body is all in `pending` */
    struct buf pending;          /* pulled, not yet taken by the protocol */
    size_t pending_at;
    struct gzip *gzip;
    size_t ignored;     /* bytes of a body that came after its refusal */
    size_t held;        /* bytes of memory that wait for the peer, as counted in the session */
    size_t whole_bytes; /* of a whole answer that is compressed as it is taken */
    int64_t blocked_ns; /* HTTP/2: since when its window is known to be closed; 0: it is not */
    bool parked;        /* HTTP/2: whole, but waits until the peer took other answers */
    struct loop *loop;
    struct deferred lost; /* tells a stream that began after its peer went */
};

struct exchange *exchange_new(struct session *session, struct loop *loop, struct http_peer *peer);

/* Request texts, while receiving. exchange_put_header() returns false at the limit. */
bool exchange_put_header(struct exchange *x, str name, str value, size_t limit);
bool exchange_put_body(struct exchange *x, str bytes, size_t limit);

/* Takes up to `room` bytes of the body. *ret: STREAM_MORE (or room was short), _WAIT, _END, _CUT.
 * */
size_t exchange_read(struct exchange *x, char *to, size_t room, enum stream_more *ret);

/* Lets go of what waits for the peer: the answer will not be completed. */
void exchange_discard_body(struct exchange *x);

void exchange_finish(struct exchange *x, bool complete); /* closed() and freed */
void exchange_disconnect(struct exchange *x);            /* the connection has gone */

#endif
