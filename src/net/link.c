/* Links: see link.h.
 *
 * TLS works on the descriptor itself rather than through memory buffers: one copy less, and OpenSSL
 * releases its buffers when they are empty. A link reads into one buffer that all links of the
 * process share, as received() is never entered twice.
 *
 * Closing: after the last byte, our goodbye (TLS alert, end of stream), then what the peer still
 * sends is read and thrown away for a moment. Closing at once with unread bytes would make the
 * kernel reset the connection and the peer lose the answer (RFC 9112, 9.6). */
#include "link.h"

#include "loop_internal.h"
#include "tls_internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <unistd.h>

#define LINK_MAGIC 0x11c0ffeeu

enum {
    READ_BYTES = 64 * 1024,  /* of the shared buffer */
    TURN_BYTES = 256 * 1024, /* read or written by one link in one turn, for fairness */
    FILL_BYTES = 64 * 1024,  /* asked for at a time */
    KEEPALIVE_S = 30,
};
#define LINGER_NS (2 * NS_PER_S)
#define BUSY_NS                                                                                    \
    (100 * NS_PER_MS) /* no rest so long after a turn in which there was no end of bytes */

enum link_state {
    LINK_CONNECTING,
    LINK_HANDSHAKE,
    LINK_OPEN,
    LINK_FINISHING, /* sending the rest */
    LINK_LINGERING, /* said goodbye, waiting for the peer's */
    LINK_CLOSED,
};

struct link {
    unsigned magic;
    struct loop *loop;
    int fd;
    struct fd_watch *watch;
    SSL *session; /* NULL: plain */
    char *name;
    const struct link_events *events;
    void *owner;
    enum link_state state;
    bool reading, dead, finish_asked;
    struct grave grave;
    bool wants_write; /* besides the output: TLS asked for it, or the turn was over */
    struct buf out;   /* taken from the owner, not yet by the kernel */
    size_t out_at;
    uint64_t written;
    int64_t stalled_since;
    struct deferred flush, again;
    struct timer linger;
    int64_t rest_ns;       /* see link_rest() */
    int64_t busy_until_ns; /* the flow is dense: resting would only fill the kernel's buffers */
    struct timer rest;     /* set: not reading until it fires */
};

static char shared_buffer[READ_BYTES];

static void run_flush(struct deferred *d);
static void run_again(struct deferred *d);
static void on_events(void *context, unsigned events);

/* --- life --- */

static struct link *link_new(struct loop *loop, const struct link_options *o)
{
    struct link *l = mem_zero(1, sizeof(*l));
    *l = (struct link){ .magic = LINK_MAGIC,
                        .loop = loop,
                        .fd = -1,
                        .events = o->events,
                        .owner = o->owner,
                        .reading = true };
    l->name = mem_dup(o->name ? o->name : "peer", strlen(o->name ? o->name : "peer"));
    return l;
}

static void release_socket(struct link *l)
{
    fd_watch_free(l->watch);
    l->watch = NULL;
    if (l->session)
        SSL_free(l->session);
    l->session = NULL;
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    buf_done(&l->out);
    l->out_at = 0;
    deferred_cancel(&l->flush);
    deferred_cancel(&l->again);
    timer_stop(&l->linger);
    timer_stop(&l->rest);
}

static void destroy(struct grave *grave)
{
    struct link *l = container_of(grave, struct link, grave);
    buf_done(&l->out); /* a fill() under way may have put more */
    free(l->name);
    l->magic = 0;
    free(l);
}

void link_free(struct link *l)
{
    if (!l)
        return;
    CHECK(l, LINK_MAGIC);
    if (l->dead)
        return;
    l->dead = true;
    l->state = LINK_CLOSED;
    release_socket(l);
    loop_bury(l->loop, &l->grave, destroy);
}

/* Tells the owner that it is over; the socket is gone by then. */
static void close_link(struct link *l, const err_t *why)
{
    if (l->state == LINK_CLOSED)
        return;
    l->state = LINK_CLOSED;
    release_socket(l);
    l->events->closed(l->owner, why);
}

static void close_errno(struct link *l, int code, const char *doing)
{
    err_t e;
    err_set(&e, code, "%s: %s: %s", l->name, doing, strerror(code));
    close_link(l, &e);
}

static void set_socket_options(int fd)
{
    int on = 1, seconds = KEEPALIVE_S; /* a unix socket pair refuses these, which is fine */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
}

static int adopt(struct loop *loop, int fd, const struct link_options *o, struct link **ret,
                 err_t *e)
{
    struct link *l = link_new(loop, o);
    l->fd = fd;
    set_socket_options(fd);
    int r = 0;
    if (o->tls)
        r = tls_session_new(o->tls, o->host, &l->session, e);
    if (r == 0 && l->session && tls_session_attach(l->session, fd) < 0)
        r = err_set(e, ENOMEM, "%s: TLS cannot use the socket", l->name);
    if (r == 0 && (r = fd_watch_new(loop, fd, on_events, l, &l->watch)) < 0)
        err_set(e, -r, "%s: %s", l->name, strerror(-r));
    if (r < 0) {
        link_free(l);
        return r;
    }
    *ret = l;
    return 0;
}

int link_accepted(struct loop *loop, int fd, const struct link_options *o, struct link **ret_link,
                  err_t *e)
{
    int r = adopt(loop, fd, o, ret_link, e);
    if (r < 0)
        return r;
    struct link *l = *ret_link;
    l->state = LINK_HANDSHAKE;
    fd_watch_set(l->watch, FD_READ);
    if (!l->session) /* no handshake: the owner hears of it in this turn, not from in here */
        loop_defer(loop, LOOP_SOON, &l->again, run_again);
    return 0;
}

/* --- connecting --- */

static int local_pair(struct loop *loop, const struct sockaddr *address)
{
    const struct sockaddr_in *in = (const void *)address;
    if (loop->time != LOOP_VIRTUAL || address->sa_family != AF_INET)
        return -1;
    struct local_listener *listener = loop->listeners;
    while (listener && listener->port != ntohs(in->sin_port))
        listener = listener->next;
    int pair[2];
    if (!listener || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    listener->accept(listener->owner, pair[1]);
    return pair[0];
}

int link_connect(struct loop *loop, const struct sockaddr *address, socklen_t address_n,
                 const struct link_options *o, struct link **ret_link, err_t *e)
{
    int fd = local_pair(loop, address);
    if (fd < 0) {
        fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return err_set(e, errno, "%s: no socket: %s", o->name, strerror(errno));
        if (connect(fd, address, address_n) < 0 && errno != EINPROGRESS) {
            int code = errno;
            close(fd);
            return err_set(e, code, "%s: cannot connect: %s", o->name, strerror(code));
        }
    }
    int r = adopt(loop, fd, o, ret_link, e);
    if (r < 0)
        return r;
    (*ret_link)->state = LINK_CONNECTING;
    fd_watch_set((*ret_link)->watch, FD_WRITE);
    return 0;
}

void link_listener_add(struct loop *loop, struct local_listener *listener)
{
    listener->next = loop->listeners;
    loop->listeners = listener;
}

void link_listener_del(struct loop *loop, struct local_listener *listener)
{
    for (struct local_listener **at = &loop->listeners; *at; at = &(*at)->next)
        if (*at == listener) {
            *at = listener->next;
            return;
        }
}

/* --- the socket: plain or TLS --- */

/* What an operation came to: bytes, or one of these. */
enum { IO_AGAIN = -1, IO_END = -2, IO_FAILED = -3 };

static ssize_t tls_result(struct link *l, int result, err_t *e)
{
    int code = errno;
    switch (SSL_get_error(l->session, result)) {
    case SSL_ERROR_WANT_READ:
        return IO_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        l->wants_write = true;
        return IO_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return IO_END;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        err_set(e, code ? code : ECONNRESET, "%s: %s", l->name,
                code ? strerror(code) : "the connection was cut");
        return IO_FAILED;
    default:
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
            ERR_clear_error();
            err_set(e, ECONNRESET, "%s: the connection was cut without a TLS goodbye", l->name);
        } else {
            tls_session_failure(l->session, l->name, e);
        }
        return IO_FAILED;
    }
}

static ssize_t socket_result(struct link *l, err_t *e)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return IO_AGAIN;
    err_set(e, errno, "%s: %s", l->name, strerror(errno));
    return IO_FAILED;
}

static ssize_t socket_read(struct link *l, char *p, size_t n, err_t *e)
{
    if (l->session) {
        errno = 0;
        ERR_clear_error();
        int r = SSL_read(l->session, p, (int)n);
        return r > 0 ? r : tls_result(l, r, e);
    }
    ssize_t r = recv(l->fd, p, n, 0);
    if (r == 0)
        return IO_END;
    return r > 0 ? r : socket_result(l, e);
}

static ssize_t socket_write(struct link *l, const char *p, size_t n, err_t *e)
{
    if (l->session) {
        errno = 0;
        ERR_clear_error();
        int r = SSL_write(l->session, p, (int)MIN(n, (size_t)INT32_MAX));
        return r > 0 ? r : tls_result(l, r, e);
    }
    ssize_t r = send(l->fd, p, n, MSG_NOSIGNAL);
    return r >= 0 ? r : socket_result(l, e);
}

static void update_watch(struct link *l)
{
    if (l->state == LINK_CLOSED || !l->watch)
        return;
    bool waits = l->out.n > l->out_at || l->wants_write;
    bool reads =
        l->state == LINK_OPEN ? l->reading && !timer_is_set(&l->rest) : l->state != LINK_FINISHING;
    fd_watch_set(l->watch, (reads ? FD_READ : 0u) | (waits ? FD_WRITE : 0u));
}

/* --- reading --- */

static void on_rest_over(struct timer *timer)
{
    on_events(container_of(timer, struct link, rest), FD_READ);
}

void link_rest(struct link *l, int64_t rest_ns)
{
    l->rest_ns = l->loop->time == LOOP_VIRTUAL ? 0 : rest_ns;
    if (l->rest_ns || !timer_is_set(&l->rest))
        return;
    timer_stop(&l->rest);
    update_watch(l);
}

static void rest_after(struct link *l, size_t bytes)
{
    int64_t now = l->loop->mono_ns;
    if (bytes >= TURN_BYTES)
        l->busy_until_ns = now + BUSY_NS;
    if (l->rest_ns && bytes && now >= l->busy_until_ns && l->state == LINK_OPEN)
        timer_set(l->loop, &l->rest, now + l->rest_ns, on_rest_over);
}

static void read_some(struct link *l)
{
    err_t e;
    size_t total = 0;
    while (l->state == LINK_OPEN && l->reading) {
        ssize_t n = socket_read(l, shared_buffer, sizeof(shared_buffer), &e);
        if (n == IO_AGAIN)
            break;
        if (n < 0) {
            close_link(l, n == IO_END ? NULL : &e);
            return;
        }
        l->events->received(l->owner, (str){ shared_buffer, (size_t)n });
        total += (size_t)n;
        /* the kernel wakes us for what it still has, not for what OpenSSL already took from it */
        bool more =
            l->session ? tls_session_holds_more(l->session) : (size_t)n == sizeof(shared_buffer);
        if (!more)
            break;
        if (total >= TURN_BYTES) { /* bytes inside OpenSSL wake no descriptor: come back by hand */
            if (!l->dead)
                loop_defer(l->loop, LOOP_SOON, &l->again, run_again);
            break;
        }
    }
    rest_after(l, total);
}

/* After our goodbye: whatever comes is thrown away until the peer's. */
static void read_away(struct link *l)
{
    char waste[4096];
    for (int i = 0; i < 16; i++) {
        ssize_t n = recv(l->fd, waste, sizeof(waste), 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_link(l, NULL);
            return;
        }
    }
}

static void on_linger_over(struct timer *timer)
{
    close_link(container_of(timer, struct link, linger), NULL);
}

static void say_goodbye(struct link *l)
{
    l->state = LINK_LINGERING;
    if (l->session) {
        SSL_shutdown(l->session);
        ERR_clear_error();
    }
    shutdown(l->fd, SHUT_WR);
    timer_set(l->loop, &l->linger, l->loop->mono_ns + loop_io_span(l->loop, LINGER_NS),
              on_linger_over);
    fd_watch_set(l->watch, FD_READ);
}

/* --- writing --- */

/* Writes what is there; false: the kernel takes no more, or the link is closed. */
static bool write_out(struct link *l, size_t *total)
{
    err_t e;
    while (l->out_at < l->out.n) {
        ssize_t n = socket_write(l, l->out.p + l->out_at, l->out.n - l->out_at, &e);
        if (n == IO_AGAIN) {
            if (!l->stalled_since)
                l->stalled_since = l->loop->mono_ns;
            return false;
        }
        if (n < 0) {
            close_link(l, n == IO_END ? NULL : &e);
            return false;
        }
        l->stalled_since = 0;
        l->out_at += (size_t)n;
        l->written += (uint64_t)n;
        *total += (size_t)n;
    }
    l->out.n = l->out_at = 0;
    return true;
}

static void write_some(struct link *l)
{
    size_t total = 0;
    while (l->state == LINK_OPEN || l->state == LINK_FINISHING) {
        if (!write_out(l, &total))
            return;
        if (total >= TURN_BYTES) {
            l->wants_write = true; /* go on in the next turn, after the others */
            l->stalled_since = l->loop->mono_ns;
            return;
        }
        l->events->fill(l->owner, &l->out, FILL_BYTES);
        if (l->dead || l->out.n == 0)
            break;
    }
    if (l->state != LINK_OPEN && l->state != LINK_FINISHING)
        return;
    buf_done(&l->out);
    if (l->state == LINK_FINISHING)
        say_goodbye(l);
}

static void run_flush(struct deferred *d)
{
    struct link *l = container_of(d, struct link, flush);
    if (l->state == LINK_OPEN || l->state == LINK_FINISHING)
        write_some(l);
    update_watch(l);
}

void link_want_fill(struct link *l)
{
    CHECK(l, LINK_MAGIC);
    /* With output waiting for the kernel, the descriptor will ask. */
    if (l->out.n == 0 && (l->state == LINK_OPEN || l->state == LINK_FINISHING))
        loop_defer(l->loop, LOOP_FLUSH, &l->flush, run_flush);
}

void link_read(struct link *l, bool reading)
{
    if (l->reading == reading || l->state == LINK_CLOSED)
        return;
    l->reading = reading;
    if (reading && l->session) /* bytes may wait inside OpenSSL */
        loop_defer(l->loop, LOOP_SOON, &l->again, run_again);
    update_watch(l);
}

void link_finish(struct link *l)
{
    if (l->state == LINK_CLOSED || l->finish_asked)
        return;
    l->finish_asked = true;
    if (l->state != LINK_OPEN) {
        close_link(l, NULL);
        return;
    }
    l->state = LINK_FINISHING;
    link_want_fill(l);
}

/* --- events --- */

static void opened(struct link *l)
{
    l->state = LINK_OPEN;
    l->events->opened(l->owner);
    link_want_fill(l);
}

static void shake_hands(struct link *l)
{
    err_t e;
    if (!l->session) {
        opened(l);
        return;
    }
    errno = 0;
    ERR_clear_error();
    int r = SSL_do_handshake(l->session);
    if (r == 1) {
        opened(l);
        return;
    }
    ssize_t result = tls_result(l, r, &e);
    if (result == IO_END)
        err_set(&e, ECONNRESET, "%s: closed during the TLS handshake", l->name);
    if (result != IO_AGAIN)
        close_link(l, &e);
}

static void connected(struct link *l)
{
    int code = 0;
    socklen_t n = sizeof(code);
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
        code = errno;
    if (code) {
        close_errno(l, code, "cannot connect");
        return;
    }
    l->state = LINK_HANDSHAKE;
    if (l->events->connected)
        l->events->connected(l->owner);
    if (l->state == LINK_HANDSHAKE)
        shake_hands(l);
}

static void on_events(void *context, unsigned events)
{
    struct link *l = context;
    l->wants_write = false;
    if (l->state == LINK_CONNECTING)
        connected(l);
    else if (l->state == LINK_HANDSHAKE)
        shake_hands(l);
    else if (l->state == LINK_LINGERING)
        read_away(l);
    if (l->state == LINK_OPEN && !timer_is_set(&l->rest))
        read_some(l);
    if ((events & FD_WRITE) && (l->state == LINK_OPEN || l->state == LINK_FINISHING))
        write_some(l);
    update_watch(l);
}

static void run_again(struct deferred *d)
{
    on_events(container_of(d, struct link, again), FD_READ);
}

/* --- questions --- */

bool link_is_http2(const struct link *l)
{
    const unsigned char *name;
    unsigned n = 0;
    if (l->session)
        SSL_get0_alpn_selected(l->session, &name, &n);
    return n == 2 && memcmp(name, "h2", 2) == 0;
}

struct tls_peer *link_peer(struct link *l)
{
    return l->session ? tls_session_peer(l->session) : NULL;
}

bool link_is_open(const struct link *l)
{
    return l->state == LINK_OPEN;
}

bool link_reached_peer(const struct link *l)
{
    return l->state != LINK_CONNECTING;
}

uint64_t link_bytes_written(const struct link *l)
{
    return l->written;
}

bool link_has_output(const struct link *l)
{
    return l->out.n > l->out_at || l->wants_write;
}

int64_t link_stalled_since(const struct link *l)
{
    return link_has_output(l) ? l->stalled_since : 0;
}
