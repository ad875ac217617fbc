/* A plain TCP peer: see raw.h. */
#include "raw.h"

#include <fcntl.h>

static void raw_ready(void *context, unsigned events UNUSED)
{
    struct raw *r = context;
    char bytes[65536];
    ssize_t n = recv(r->fd, bytes, sizeof(bytes), 0);
    if (n > 0) {
        buf_put(&r->in, (str){ bytes, (size_t)n });
    } else if (n == 0 || errno != EAGAIN) {
        r->closed = true;
        fd_watch_set(r->watch, 0);
    }
}

void raw_adopt(struct raw *r, struct loop *loop, int fd)
{
    *r = (struct raw){ .loop = loop, .fd = fd };
    OK(fd >= 0);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    OK(fd_watch_new(loop, fd, raw_ready, r, &r->watch) == 0);
    fd_watch_set(r->watch, FD_READ);
}

void raw_connect(struct raw *r, struct loop *loop, uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    OK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    raw_adopt(r, loop, fd);
}

void raw_send(struct raw *r, str bytes)
{
    while (bytes.n) {
        ssize_t n = send(r->fd, bytes.p, bytes.n, MSG_NOSIGNAL);
        if (n > 0)
            bytes = str_from(bytes, (size_t)n);
        else if (errno != EAGAIN)
            return; /* the other side may close while this one still writes */
        else
            loop_turn(r->loop);
    }
}

bool raw_has(const struct raw *r, str text)
{
    return str_find(buf_str(&r->in), text) != SIZE_MAX;
}

bool raw_wait(struct raw *r, str text)
{
    while (!raw_has(r, text) && !r->closed)
        loop_turn(r->loop);
    return raw_has(r, text);
}

void raw_wait_closed(struct raw *r)
{
    while (!r->closed)
        loop_turn(r->loop);
}

void raw_close(struct raw *r)
{
    fd_watch_free(r->watch);
    if (r->fd >= 0)
        close(r->fd);
    buf_done(&r->in);
    *r = (struct raw){ .fd = -1 };
}
