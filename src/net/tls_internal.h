/* TLS sessions for link.c and the pool. For the files of net only. */
#ifndef FLYBALL_TLS_INTERNAL_H
#define FLYBALL_TLS_INTERNAL_H

#include "tls.h"

#include <openssl/ssl.h>

/* A session for one connection. `host` is the host that a client dialed. */
int tls_session_new(struct tls *tls, str host, SSL **ret_session, err_t *e);

int tls_session_attach(SSL *session, int fd); /* 0 or -ENOMEM */

/* Bytes taken from the kernel but not read yet: the descriptor will not become readable for them.
 */
bool tls_session_has_buffered(SSL *session);

/* Reloads changed files, at most every reload_ns. Returns a number that changes with every reload.
 */
unsigned tls_reload_if_changed(struct tls *tls);

/* The identity in the peer's certificate as one block to free(); NULL: it sent none. */
struct tls_peer *tls_session_peer(SSL *session);

/* Sets the error for a failed operation of this session; `what` names the peer. */
int tls_session_set_error(SSL *session, const char *what, err_t *e);

#endif
