/* A server protocol without its socket: bytes in, exchanges out, bytes out. The two are HTTP/1.1
 * (h1_server.c) and HTTP/2 (h2_server.c); a connection (server.c) or a fuzzer feeds them. For the
 * files of net only. */
#ifndef FLYBALL_SESSION_H
#define FLYBALL_SESSION_H

#include "exchange.h"

/* What a session needs from its connection. */
struct session_host {
    struct loop *loop;
    const struct http_server_options *options; /* with the defaults filled in */
    struct http_peer *peer;
    size_t *pending_bytes; /* of all bodies being read; limit: options->max_pending_bytes */
    size_t *unread_bytes;  /* of all unread answers; limit: options->max_unread_bytes */
    void (*unread_full)(void *owner); /* that limit is exceeded; must not free the session */
    void (*want_fill)(void *owner);
    void (*deliver)(void *owner, struct exchange *x); /* a complete request, for the handler */
    void *owner;
};

struct answer_head {
    int status;
    struct http_headers headers, added;
    int64_t length; /* of the body; -1: unknown */
    bool gzip;
};

struct session_ops {
    /* Returns false when the connection must end, after what fill() still gives. */
    bool (*feed)(struct session *s, str bytes);
    void (*fill)(struct session *s, struct buf *out, size_t room);
    void (*begin_answer)(struct session *s, struct exchange *x, const struct answer_head *head);
    void (*wake)(struct session *s, struct exchange *x);
    void (*abort)(struct session *s, struct exchange *x); /* ends the answer visibly incomplete */
    void (*drain)(struct session *s);                     /* accepts no new requests */
    /* When the client is too slow, mono ns; INT64_MAX: nothing is expected from it. */
    int64_t (*deadline)(const struct session *s);
    void (*expire)(struct session *s); /* the deadline has passed */
    void (*free)(struct session *s);   /* disconnects its exchanges */
};

struct session {
    const struct session_ops *ops;
    struct session_host host;
    struct list exchanges; /* all that live on this connection */
    size_t held;           /* bytes of memory of answers that wait for the client */
    int64_t taken_ns;      /* when the client last took some of it, mono ns */
    bool over;             /* close after what fill() still gives */
    bool full;             /* enough input is buffered: stop reading */
};

struct session *h1_server_new(const struct session_host *host);
struct session *h2_server_new(const struct session_host *host);

void session_add(struct session *s, struct exchange *x);
void session_remove(struct session *s, struct exchange *x);
/* Appends the body of an answer that does not come from a handler; returns its content type. */
const char *session_put_refusal(const struct session *s, int status, struct buf *body);
/* Headers of an answer that the protocol sets itself; a handler's are dropped. */
bool session_sets_header(str name);
/* Reports through options->on_limit that a limit ended a connection or stream. */
void session_report_limit(const struct session *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* The connection is gone: disconnects every exchange. */
void session_disconnect_all(struct session *s);

#endif
