/* Inside the client: calls (call.c), connections (pool.c) and the two protocols (h1_client.c,
 * h2_client.c). Not for other folders.
 *
 * A call is queued, then carried by one session, then loose: its answer is whole but its owner has
 * paused, or the end is about to be told. The protocol tells the call what arrives (http_call_receive_head,
 * http_call_receive_data, http_call_complete, http_call_fail); any of these may run the owner's code, which may cancel this or
 * any other call and send new ones, so a protocol looks again at what it holds afterwards. */
#ifndef FLYBALL_CLIENT_INTERNAL_H
#define FLYBALL_CLIENT_INTERNAL_H

#include "../base/list.h"
#include "../base/vec.h"
#include "gzip.h"
#include "http_client.h"
#include "link.h"
#include "loop_internal.h"

#define CALL_MAGIC 0xca11ab1eu
#define CLIENT_MAGIC 0xc11e4700u

struct client_session;

struct http_header_list {
    struct arena arena;
    VEC(struct http_header) headers;
};

struct http_call {
    unsigned magic;
    struct http_client *client;
    struct list_item item;          /* of all calls of the client */
    struct list_item queued;        /* while it waits for a connection */
    struct client_session *session; /* while carried */
    struct list_item carried;       /* HTTP/2: of the calls that the session has */
    int32_t stream_id;              /* HTTP/2 */

    struct arena arena; /* owns the texts of `request` */
    struct http_request request;
    size_t body_at;    /* of the request, sent so far */
    bool written;      /* something of it has left */
    bool reused;       /* its connection had served before */
    bool answer_begun; /* a byte of the answer came: no retry */
    bool head_seen;    /* HTTP/2: what follows are trailers */
    bool idempotent;
    bool delayable; /* its bytes may be a little late */
    unsigned attempts;

    bool paused, ended;
    struct buf waiting; /* raw bytes that came while paused */
    struct gzip *gzip;
    err_t *failure; /* owned; to be told once `waiting` is empty; NULL: success */
    struct deferred deliver;
    struct timer deadline;
    bool dead; /* ended: nothing is told any more */
    struct loop_garbage garbage;
    void (*release)(void *context); /* with the call: frees what fetch.c keeps; or NULL */
};

/* --- call.c --- */

void http_call_receive_head(struct http_call *call, const struct http_head *head);
/* Returns how many of the bytes were passed on; the rest waits (and counts as not consumed). */
size_t http_call_receive_data(struct http_call *call, str bytes);
void http_call_complete(struct http_call *call);
/* `unprocessed`: the peer promised not to have acted on it. */
void http_call_fail(struct http_call *call, const err_t *why, bool unprocessed);
void http_call_finish(struct http_call *call, const err_t *why); /* on_done and gone; no retry */
/* The head of the message: everything but pseudo-headers and framing, validated. */
void http_call_build_headers(struct http_call *call, struct http_header_list *list);
void http_header_list_done(struct http_header_list *list);

/* --- protocols --- */

struct client_host {
    struct loop *loop;
    size_t max_header_bytes;
    str authority; /* for Host and :authority */
    bool tls;
    void (*want_fill)(void *owner);
    void (*changed)(void *owner); /* room for calls, or the end, may have come */
    void *owner;
};

struct client_session_ops {
    /* false: the connection is of no further use; `e` says why. */
    bool (*feed)(struct client_session *s, str bytes, err_t *e);
    /* The connection ended; why NULL: in good order. Calls still carried are failed. */
    void (*closed)(struct client_session *s, const err_t *why);
    void (*fill)(struct client_session *s, struct buf *out, size_t room);
    void (*start_call)(struct client_session *s, struct http_call *call);
    void (*drop_call)(struct client_session *s, struct http_call *call); /* forgets it */
    void (*consume)(struct client_session *s, struct http_call *call, size_t n);
    void (*ping)(struct client_session *s); /* NULL: the protocol has none */
    void (*free)(struct client_session *s);
};

struct client_session {
    const struct client_session_ops *ops;
    struct client_host host;
    size_t room;            /* calls it can take now */
    size_t carried;         /* calls it has */
    size_t delayable;       /* of those, the ones whose bytes may be a little late */
    size_t served;          /* calls whose answer began here */
    bool over;              /* no new calls, and closed when none is left */
    bool full;              /* stop reading */
    bool awaiting_settings; /* HTTP/2: how many calls fit is not known yet */
};

struct client_session *h1_client_new(const struct client_host *host);
struct client_session *h2_client_new(const struct client_host *host);

/* --- pool.c --- */

struct pool_conn;

struct http_client {
    unsigned magic;
    struct loop *loop;
    struct http_client_options options; /* with defaults; texts owned */
    char *url, *user_agent, *authority, *name;
    struct uri uri; /* borrows url */
    struct tls *tls;
    struct list calls; /* all */
    struct list queue; /* those that wait for a connection */
    struct list conns;
    size_t dialing;
    bool http1; /* the endpoint spoke HTTP/1.1 last time */
    bool closing;
    struct loop_garbage garbage;
    struct deferred pump;
};

void pool_pump(struct http_client *c); /* soon: gives queued calls to connections, dials */
void pool_reconnect(struct http_client *c);
void pool_close(struct http_client *c);

void http_client_enqueue(struct http_client *c, struct http_call *call, bool first);

/* --- dial.c --- */

struct dial_lookup;
struct dial_address {
    struct sockaddr_storage at;
    socklen_t n;
};
/* Exactly once, never from inside: `n` addresses, or why not. */
struct dial_lookup *dial_lookup_start(struct loop *loop, str host, uint16_t port,
                                      void (*done)(void *owner,
                                                   const struct dial_address *addresses, size_t n,
                                                   const err_t *why),
                                      void *owner);
void dial_lookup_cancel(struct dial_lookup *l); /* `done` will not be called */

#endif
