/* A link: bytes to and from one peer over a non-blocking socket, plain or TLS. Not for other
 * folders.
 *
 * The owner (a server or client connection) is told what arrives and asked for what should leave:
 * output is pulled at the end of the turn (LOOP_FLUSH) and whenever the socket takes more, so that
 * nothing is produced for a peer that does not read. What a link holds while idle is this block and
 * OpenSSL's session.
 *
 * link_free() may be called from any callback; no callback comes after it. */
#ifndef FLYBALL_LINK_H
#define FLYBALL_LINK_H

#include "../base/buf.h"
#include "../base/list.h"
#include "loop.h"
#include "tls.h"

#include <sys/socket.h>

struct link;

struct link_events {
    /* The peer was reached; a handshake may follow. May be NULL. */
    void (*connected)(void *owner);
    /* The connection stands and its handshake is over. */
    void (*opened)(void *owner);
    void (*received)(void *owner, str bytes);
    /* Append up to about `room` bytes; nothing appended: nothing to send now. */
    void (*fill)(void *owner, struct buf *out, size_t room);
    /* Over: NULL when the peer ended in good order or link_finish() is done, else why. The owner
     * calls link_free() now or later. */
    void (*closed)(void *owner, const err_t *why);
};

struct link_options {
    struct tls *tls;  /* NULL: plain */
    const char *name; /* of the peer, for sentences; copied */
    str host;         /* client: for the certificate */
    const struct link_events *events;
    void *owner;
};

/* Takes the descriptor in every case. */
int link_accept(struct loop *loop, int fd, const struct link_options *options,
                struct link **ret_link, err_t *e);
int link_connect(struct loop *loop, const struct sockaddr *address, socklen_t address_n,
                 const struct link_options *options, struct link **ret_link, err_t *e);
void link_free(struct link *l);

void link_want_fill(struct link *l);                 /* there is something to send */
void link_set_reading(struct link *l, bool reading); /* false: leave what arrives in the kernel */
/* After a turn in which little came, leave what arrives in the kernel for so long: waking up costs
 * more than an event of a watch. The first bytes after a quiet while are never late. 0: do not. */
void link_set_read_delay(struct link *l, int64_t read_delay_ns);
/* Sends what `fill` still gives, says goodbye, waits a moment for the peer's (else it may lose what
 * was sent last), then `closed`. Nothing is received any more. */
void link_finish(struct link *l);

bool link_is_http2(const struct link *l);            /* by ALPN; after `opened` */
struct tls_peer *link_peer_identity(struct link *l); /* a block to free(), or NULL */
bool link_reached_peer(const struct link *l); /* connected; the handshake may still be under way */
/* Output waits; since when without the peer taking a byte (0: it was not refused one yet). */
bool link_has_output(const struct link *l);
int64_t link_stalled_since(const struct link *l);

/* --- listeners of this process, for loops in virtual time --- */

struct link_listener {
    struct list_item item; /* of loop->listeners */
    uint16_t port;
    void (*accept)(void *owner, int fd);
    void *owner;
};

void link_listener_add(struct loop *loop, struct link_listener *listener);
void link_listener_remove(struct link_listener *listener);

#endif
