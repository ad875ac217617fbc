/* A plain TCP peer on the loop, for tests that send bytes that no real client or server would send. */
#ifndef FLYBALL_TEST_RAW_H
#define FLYBALL_TEST_RAW_H

#include "net/net.h"
#include "tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

struct raw {
    struct loop *loop;
    int fd;
    struct fd_watch *watch;
    struct buf in;
    bool closed; /* by the other side */
};

static UNUSED void raw_ready(void *context, unsigned events UNUSED)
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

static UNUSED void raw_adopt(struct raw *r, struct loop *loop, int fd)
{
    *r = (struct raw){ .loop = loop, .fd = fd };
    OK(fd >= 0);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    OK(fd_watch_new(loop, fd, raw_ready, r, &r->watch) == 0);
    fd_watch_set(r->watch, FD_READ);
}

static UNUSED void raw_connect(struct raw *r, struct loop *loop, uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    OK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    raw_adopt(r, loop, fd);
}

static UNUSED void raw_send(struct raw *r, str bytes)
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

static UNUSED bool raw_has(const struct raw *r, str text)
{
    return str_find(buf_str(&r->in), text) != SIZE_MAX;
}

/* Turns until `text` has arrived or the other side has closed. */
static UNUSED bool raw_wait(struct raw *r, str text)
{
    while (!raw_has(r, text) && !r->closed)
        loop_turn(r->loop);
    return raw_has(r, text);
}

static UNUSED void raw_wait_closed(struct raw *r)
{
    while (!r->closed)
        loop_turn(r->loop);
}

static UNUSED void raw_close(struct raw *r)
{
    fd_watch_free(r->watch);
    if (r->fd >= 0)
        close(r->fd);
    buf_done(&r->in);
    *r = (struct raw){ .fd = -1 };
}

#endif
