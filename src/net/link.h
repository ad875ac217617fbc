/* A link: bytes to and from one peer over a nonblocking socket, plain or TLS. For the files of net
 * only.
 *
 * The owner (a server or client connection) receives what arrives and is asked for what to send:
 * output is pulled at the end of the turn (LOOP_FLUSH) and whenever the socket accepts more, so
 * that nothing is produced for a peer that does not read. An idle link holds this block and
 * OpenSSL's session.
 *
 * link_free() may be called from any callback; no callback runs after it. */
#ifndef FLYBALL_LINK_H
#define FLYBALL_LINK_H

#include "../base/buf.h"
#include "../base/list.h"
#include "loop.h"
#include "tls.h"

#include <sys/socket.h>

struct link;

struct link_events {
    /* TCP is connected; a handshake may follow. May be NULL. */
    void (*connected)(void *owner);
    /* The connection is established, including its handshake. */
    void (*opened)(void *owner);
    void (*received)(void *owner, str bytes);
    /* Appends up to about `room` bytes; nothing: there is nothing to send now. */
    void (*fill)(void *owner, struct buf *out, size_t room);
    /* The link is closed: NULL after a normal end of the peer or link_finish(), otherwise why. The
     * owner calls link_free() now or later. */
    void (*closed)(void *owner, const err_t *why);
};

struct link_options {
    struct tls *tls;  /* NULL: plain */
    const char *name; /* of the peer, for errors; copied */
    str host;         /* client: the name to verify */
    const struct link_events *events;
    void *owner;
};

/* Owns `fd` from here on, even on failure. */
int link_accept(struct loop *loop, int fd, const struct link_options *options,
                struct link **ret_link, err_t *e);
int link_connect(struct loop *loop, const struct sockaddr *address, socklen_t address_n,
                 const struct link_options *options, struct link **ret_link, err_t *e);
void link_free(struct link *l);

void link_want_fill(struct link *l);                 /* fill() has something to append */
void link_set_reading(struct link *l, bool reading); /* false: input stays in the kernel */
/* After a turn that brought few bytes, leaves input in the kernel for this time, because a wakeup
 * costs more than one watch event. The first bytes after a quiet period are never delayed. 0: no
 * delay. */
void link_set_read_delay(struct link *l, int64_t read_delay_ns);
/* Sends what `fill` still gives and the end of stream, waits briefly for the peer's (which might
 * otherwise lose the last bytes), then calls `closed`. Nothing is received any more. */
void link_finish(struct link *l);
void link_set_linger(struct link *l, int64_t linger_ns); /* how long it waits at most [2 s] */

bool link_is_http2(const struct link *l);            /* negotiated by ALPN; after `opened` */
struct tls_peer *link_peer_identity(struct link *l); /* to free(), or NULL */
bool link_reached_peer(const struct link *l); /* connected; the handshake may still be running */
/* Whether output waits, and since when the peer has taken none of it (0: not stalled). */
bool link_has_output(const struct link *l);
int64_t link_stalled_since(const struct link *l);

/* --- listeners of this process, for loops in virtual time --- */

struct link_listener {
    struct list_item item; /* of loop->listeners */
    uint32_t address;      /* IPv4, network order; 0: all */
    uint16_t port;
    void (*accept)(void *owner, int fd);
    void *owner;
};

void link_listener_add(struct loop *loop, struct link_listener *listener);
void link_listener_remove(struct link_listener *listener);

#endif
