/* What link.c and the connections know of TLS beyond tls.h. Not for other folders. */
#ifndef FLYBALL_TLS_INTERNAL_H
#define FLYBALL_TLS_INTERNAL_H

#include "tls.h"

#include <openssl/ssl.h>

/* A session for one connection, ready for its descriptor. `host` is what a client dialed. */
int tls_session_new(struct tls *tls, str host, SSL **ret_session, err_t *e);

int tls_session_attach(SSL *session, int fd); /* -ENOMEM, without words */

/* Bytes that were taken from the kernel, which will not wake anybody for them again. */
bool tls_session_has_buffered(SSL *session);

/* Looks whether files changed (seldom); the number changes when something new was loaded. */
unsigned tls_reload_if_changed(struct tls *tls);

/* The identity in the peer's certificate as one block to free(); NULL: it showed none. */
struct tls_peer *tls_session_peer(SSL *session);

/* One sentence for a failed operation of this session; `what` names the peer. */
int tls_session_set_error(SSL *session, const char *what, err_t *e);

#endif
