/* Reads and writes of one link's socket, the same for plain and TLS. For link.c only. */
#ifndef FLYBALL_LINK_IO_H
#define FLYBALL_LINK_IO_H

#include "tls_internal.h"

#include <sys/types.h>

struct link_io {
    int fd;           /* nonblocking; -1: closed */
    SSL *session;     /* NULL: plain */
    char *name;       /* of the peer, for errors */
    bool wants_write; /* wait for writability without output: TLS wants it */
};

/* What a call returns instead of a number of bytes. `e` is set for FAILED only. */
enum { LINK_IO_AGAIN = -1, LINK_IO_END = -2, LINK_IO_FAILED = -3 };

ssize_t link_io_read(struct link_io *io, char *p, size_t n, err_t *e);
ssize_t link_io_write(struct link_io *io, const char *p, size_t n, err_t *e);
/* One step of the TLS handshake: 0 (complete), AGAIN, or FAILED. */
int link_io_handshake(struct link_io *io, err_t *e);
/* Sends the end of stream: close_notify for TLS, then FIN. */
void link_io_shutdown(struct link_io *io);

#endif
