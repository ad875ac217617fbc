/* Socket operations of a link: see link_io.h. OpenSSL reports failures through errno and a queue of
 * its own; both are cleared before each call, because a stale entry would be read as this call's
 * failure. */
#include "link_io.h"

#include <openssl/err.h>
#include <sys/socket.h>

/* Turns a failed OpenSSL call into AGAIN, END or FAILED. Must run right after that call. */
static ssize_t tls_result(struct link_io *io, int result, err_t *e)
{
    int code = errno;
    switch (SSL_get_error(io->session, result)) {
    case SSL_ERROR_WANT_READ:
        return LINK_IO_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        io->wants_write = true;
        return LINK_IO_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return LINK_IO_END;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        err_set(e, code ? code : ECONNRESET, "%s: %s", io->name,
                code ? strerror(code) : "connection reset by peer");
        return LINK_IO_FAILED;
    default:
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
            ERR_clear_error();
            err_set(e, ECONNRESET, "%s: connection closed without a TLS close_notify", io->name);
        } else {
            tls_session_set_error(io->session, io->name, e);
        }
        return LINK_IO_FAILED;
    }
}

static ssize_t socket_result(const struct link_io *io, err_t *e)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return LINK_IO_AGAIN;
    err_set(e, errno, "%s: %s", io->name, strerror(errno));
    return LINK_IO_FAILED;
}

ssize_t link_io_read(struct link_io *io, char *p, size_t n, err_t *e)
{
    if (io->session) {
        errno = 0;
        ERR_clear_error();
        int r = SSL_read(io->session, p, (int)n);
        return r > 0 ? r : tls_result(io, r, e);
    }
    ssize_t r = recv(io->fd, p, n, 0);
    if (r == 0)
        return LINK_IO_END;
    return r > 0 ? r : socket_result(io, e);
}

ssize_t link_io_write(struct link_io *io, const char *p, size_t n, err_t *e)
{
    if (io->session) {
        errno = 0;
        ERR_clear_error();
        int r = SSL_write(io->session, p, (int)MIN(n, (size_t)INT32_MAX));
        return r > 0 ? r : tls_result(io, r, e);
    }
    ssize_t r = send(io->fd, p, n, MSG_NOSIGNAL);
    return r >= 0 ? r : socket_result(io, e);
}

int link_io_handshake(struct link_io *io, err_t *e)
{
    errno = 0;
    ERR_clear_error();
    int r = SSL_do_handshake(io->session);
    if (r == 1)
        return 0;
    ssize_t result = tls_result(io, r, e);
    if (result != LINK_IO_END)
        return (int)result;
    err_set(e, ECONNRESET, "%s: connection closed during the TLS handshake", io->name);
    return LINK_IO_FAILED;
}

void link_io_shutdown(struct link_io *io)
{
    if (io->session) {
        SSL_shutdown(io->session);
        ERR_clear_error();
    }
    shutdown(io->fd, SHUT_WR);
}
