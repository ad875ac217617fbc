/* A protocol of the server, without its socket: bytes in, exchanges out, bytes out. HTTP/1.1
 * (h1_server.c) and HTTP/2 (h2_server.c) are the two; a connection (server.c) or a fuzzer feeds
 * them. Not for other folders. */
#ifndef FLYBALL_SESSION_H
#define FLYBALL_SESSION_H

#include "exchange.h"

/* What a session may ask of what carries it. */
struct session_host {
    struct loop *loop;
    const struct http_server_options *options; /* with the defaults filled in */
    struct http_peer *peer;
    size_t *pending_bytes; /* of all bodies being read, against options->max_pending_bytes */
    size_t *unread_bytes;  /* of all answers being written, against options->max_unread_bytes */
    void (*unread_full)(
        void *owner); /* … which is reached: cut somebody off, but not from in here */
    void (*want_fill)(void *owner);
    void (*deliver)(void *owner, struct exchange *x); /* a whole request: to the handler */
    void *owner;
};

struct answer_head {
    int status;
    struct http_headers headers, added;
    int64_t length; /* of the body; -1: unknown */
    bool gzip;
};

struct session_ops {
    /* Returns false when the connection must end (after what fill() still has to say). */
    bool (*feed)(struct session *s, str bytes);
    void (*fill)(struct session *s, struct buf *out, size_t room);
    void (*begin_answer)(struct session *s, struct exchange *x, const struct answer_head *head);
    void (*wake)(struct session *s, struct exchange *x);
    void (*abort)(struct session *s, struct exchange *x); /* no (more) answer: cut it off */
    void (*drain)(struct session *s);                     /* no new requests after those begun */
    /* The moment at which the peer has been too slow; INT64_MAX: it owes us nothing. */
    int64_t (*deadline)(const struct session *s);
    void (*expire)(struct session *s); /* it was */
    void (*free)(struct session *s);   /* exchanges are lost */
};

struct session {
    const struct session_ops *ops;
    struct session_host host;
    struct list exchanges; /* all that live on this connection */
    size_t held;           /* memory of answers that wait for the peer */
    int64_t taken_ns;      /* when the peer last took some of it */
    bool over;             /* nothing follows what fill() still gives: close */
    bool full;             /* holds as many unread bytes as it should: stop reading */
};

struct session *h1_server_new(const struct session_host *host);
struct session *h2_server_new(const struct session_host *host);

void session_add(struct session *s, struct exchange *x);
void session_remove(struct session *s, struct exchange *x);
/* Says to whoever runs the server that a limit was reached. */
void session_report_limit(const struct session *s, const char *format, ...) PRINTF_LIKE(2, 3);
void session_disconnect_all(struct session *s);

#endif
