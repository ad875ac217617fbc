/* The client's internals: calls (call.c), connections (pool.c) and the two protocols (h1_client.c,
 * h2_client.c). For the files of net only.
 *
 * A call is queued, then carried by one session, then ended: its response is complete, but its
 * owner has paused or has not been notified yet. The session passes to the call what arrives
 * (http_call_receive_head, http_call_receive_data, http_call_complete, http_call_fail). Each of
 * these may run the owner's code, which may cancel this or any other call and send new ones, so a
 * session must not rely on what it knew before. */
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
    struct list_item item;          /* of client->calls */
    struct list_item queued;        /* of client->queue, while it waits for a connection */
    struct client_session *session; /* while carried */
    struct list_item carried;       /* HTTP/2: of the session's calls */
    int32_t stream_id;              /* HTTP/2 */

    struct arena arena; /* holds the texts of `request` */
    struct http_request request;
    size_t body_at;    /* bytes of the request's body sent so far */
    bool written;      /* some of it was sent */
    bool reused;       /* its connection has served another call before */
    bool answer_begun; /* a byte of the response arrived: no retry */
    bool head_seen;    /* HTTP/2: a further header block is trailers */
    bool idempotent;
    bool delayable; /* its bytes may arrive late: see read_delay_ns */
    unsigned attempts;

    bool paused;
    bool ended;         /* nothing more will arrive */
    struct buf waiting; /* raw bytes that arrived while paused */
    struct gzip *gzip;
    err_t *failure; /* owned; reported once `waiting` is empty; NULL: success */
    struct deferred deliver;
    struct timer deadline;
    bool dead; /* no callback runs any more */
    struct loop_garbage garbage;
    void (*release)(void *context); /* called when the call is freed (fetch.c); or NULL */
};

/* --- call.c --- */

void http_call_receive_head(struct http_call *call, const struct http_head *head);
/* Returns how many bytes the owner took; the rest waits and stays in the flow-control window. */
size_t http_call_receive_data(struct http_call *call, str bytes);
void http_call_complete(struct http_call *call);
/* `unprocessed`: the server guarantees that it did not act on the request. */
void http_call_fail(struct http_call *call, const err_t *why, bool unprocessed);
void http_call_finish(struct http_call *call, const err_t *why); /* on_done, no retry */
/* All headers of the request, valid and in lower case, except pseudo-headers and framing. */
void http_call_build_headers(struct http_call *call, struct http_header_list *list);
void http_header_list_done(struct http_header_list *list);

/* --- protocols --- */

struct client_host {
    struct loop *loop;
    size_t max_header_bytes;
    str authority; /* for Host and :authority */
    bool tls;
    void (*want_fill)(void *owner);
    void (*changed)(void *owner); /* `room`, `over` or `full` may have changed */
    void *owner;
};

struct client_session_ops {
    /* False: the connection cannot be used any more, for the reason in `e`. */
    bool (*feed)(struct client_session *s, str bytes, err_t *e);
    /* The connection ended (why NULL: normally). Fails the calls that it still carries. */
    void (*closed)(struct client_session *s, const err_t *why);
    void (*fill)(struct client_session *s, struct buf *out, size_t room);
    void (*start_call)(struct client_session *s, struct http_call *call);
    void (*drop_call)(struct client_session *s, struct http_call *call); /* canceled */
    void (*consume)(struct client_session *s, struct http_call *call, size_t n);
    void (*ping)(struct client_session *s); /* NULL: the protocol has none */
    void (*free)(struct client_session *s);
};

struct client_session {
    const struct client_session_ops *ops;
    struct client_host host;
    size_t room;            /* calls that it can accept now */
    size_t carried;         /* calls that it has */
    size_t delayable;       /* of those, the ones that allow a delay */
    size_t served;          /* calls whose response began here */
    bool over;              /* no new calls; closed when none is left */
    bool full;              /* stop reading */
    bool awaiting_settings; /* HTTP/2: the stream limit is not known yet */
};

struct client_session *h1_client_new(const struct client_host *host);
struct client_session *h2_client_new(const struct client_host *host);

/* --- pool.c --- */

struct pool_conn;

struct http_client {
    unsigned magic;
    struct loop *loop;
    struct http_client_options options; /* with defaults; its texts are the owned ones below */
    char *url, *user_agent;             /* owned */
    char *authority;                    /* owned; "host:port" for Host and :authority */
    char *name;                         /* owned; "https://host:port", for errors */
    struct uri uri;                     /* borrows url */
    struct tls *tls;
    struct list calls; /* all */
    struct list queue; /* those that wait for a connection, FIFO */
    struct list conns;
    size_t dialing; /* of conns, those without a session */
    bool http1;     /* the last handshake chose HTTP/1.1 */
    bool closing;
    struct loop_garbage garbage;
    struct deferred pump;
};

void pool_pump(struct http_client *c); /* later in this turn: assigns queued calls, dials */
void pool_close(struct http_client *c);

void http_client_enqueue(struct http_client *c, struct http_call *call, bool first);

/* --- dial.c --- */

struct dial_lookup;
struct dial_address {
    struct sockaddr_storage at;
    socklen_t n;
};
/* Calls `done` exactly once, never from inside: `n` addresses, or an error. */
struct dial_lookup *dial_lookup_start(struct loop *loop, str host, uint16_t port,
                                      void (*done)(void *owner,
                                                   const struct dial_address *addresses, size_t n,
                                                   const err_t *why),
                                      void *owner);
void dial_lookup_cancel(struct dial_lookup *l); /* `done` will not be called */

#endif
