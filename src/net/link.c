/* Links: bytes between one peer and one protocol session, over a plain or TLS socket.
 *
 * The problem: a server with thousands of watches must not hold output for clients that do not
 * read, must not let one fast peer starve the others, and must cost little per idle connection.
 * Pushing output into a queue per connection fails the first requirement, so a link pulls instead.
 *
 *      kernel socket                 link                       owner (server.c, pool.c)
 *
 *      readable    -->  read_input()    --> shared_buffer   -->  received(bytes)
 *      writable    -->  write_output()  <-- out (<= 64 KiB) <--  fill(out, room)
 *      error, EOF  -->  close_link()                        -->  closed(why)
 *
 * fill() runs in the LOOP_FLUSH phase, after everything else in the turn, and again each time the
 * kernel has taken all of `out`. So all output of a turn shares one write, and at most one fill
 * (FILL_BYTES) waits in user space for a peer that does not read.
 *
 * A link moves through its states in this order; any state can skip to CLOSED:
 *
 *      CONNECTING -> HANDSHAKE -> OPEN -> FINISHING -> LINGERING -> CLOSED
 *      (client)      (TLS only    (data)  (last fill)  (wait for
 *                    takes time)                       peer's EOF)
 *
 * Invariants:
 *   - closed() is called at most once, after the socket is released, and never after link_free().
 *   - Every callback may call link_free(). Memory is therefore freed at the end of the turn
 *     (loop_free_later), and code that runs after a callback looks at `state` or `dead` first.
 *   - What the descriptor waits for is computed in one place, update_watch(), from the state.
 *   - A link reads or writes at most TURN_BYTES per turn, then lets the others go first.
 *
 * Reading: all links of the process share one buffer, because received() is never entered twice. An
 * idle link owns no buffer at all. Bytes that OpenSSL has already taken from the kernel do not make
 * the descriptor readable again, so read_input() asks OpenSSL and comes back through `resume`.
 *
 * Delayed reads: a watch that receives one event at a time wakes the process for each. The owner
 * may allow a delay (link_set_read_delay): after a turn that brought few bytes, the link stops
 * reading for that time, so the next wakeup finds several events. The first bytes after a quiet
 * period are never delayed, and a dense flow (TURN_BYTES in one turn) suspends the delay for
 * BUSY_NS, because waiting would only fill the kernel's buffers.
 *
 * Closing: after the last byte the link sends its end of stream (TLS close_notify, FIN) and then
 * reads and discards what the peer still sends, for at most LINGER_NS. Closing a socket with unread
 * input makes the kernel send RST, and the peer may lose the response it has not read yet (RFC
 * 9112, 9.6).
 *
 * Rejected: TLS through memory BIOs, as most event loops use it. It costs one more copy of every
 * byte and keeps buffers; on the descriptor itself OpenSSL releases its buffers when they are
 * empty. */
#include "link.h"

#include "link_io.h"
#include "loop_internal.h"
#include "tls_internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define LINK_MAGIC 0x11c0ffeeu

enum {
    READ_BYTES = 64 * 1024,  /* size of the shared buffer */
    TURN_BYTES = 256 * 1024, /* at most, read or written by one link in one turn */
    FILL_BYTES = 64 * 1024,  /* requested from the owner per fill() */
    KEEPALIVE_S = 30,
    /* In the kernel's buffer beyond what the peer's window admits. Without it the kernel takes megabytes
     * for a peer that does not read, and a container pays for them. */
    UNSENT_BYTES = 128 * 1024,
};
#define LINGER_NS (2 * NS_PER_S)
#define BUSY_NS (100 * NS_PER_MS) /* reads are not delayed for this long after a full turn */

enum link_state {
    LINK_CONNECTING,
    LINK_HANDSHAKE,
    LINK_OPEN,
    LINK_FINISHING, /* link_finish() was called: sending what fill() still gives */
    LINK_LINGERING, /* our end of stream is sent: waiting for the peer's */
    LINK_CLOSED,
};

struct link {
    unsigned magic;
    struct loop *loop;
    struct link_io io; /* .name is owned */
    struct fd_watch *watch;
    const struct link_events *events;
    void *owner;
    enum link_state state;
    bool reading, dead, finish_asked;
    bool
        more_output; /* the turn was over before the owner had no more; outlives events that only bring input */
    struct loop_garbage garbage;
    struct buf out;         /* from fill(), not yet taken by the kernel */
    size_t out_at;          /* bytes of `out` that the kernel has taken */
    int64_t stalled_since;  /* mono ns; the kernel has taken nothing since; 0: not stalled */
    struct deferred flush;  /* LOOP_FLUSH: pull and write */
    struct deferred resume; /* LOOP_SOON: act as if the descriptor were readable */
    struct timer linger;
    int64_t linger_ns;
    int64_t read_delay_ns;   /* see link_set_read_delay() */
    int64_t busy_until_ns;   /* mono ns; no read delay before: the flow is dense */
    struct timer read_delay; /* while set, the link does not read */
};

static char shared_buffer[READ_BYTES];

static void run_flush(struct deferred *d);
static void run_resume(struct deferred *d);
static void on_events(void *context, unsigned events);

/* --- life --- */

static struct link *link_new(struct loop *loop, const struct link_options *o)
{
    struct link *l = mem_zero(1, sizeof(*l));
    *l = (struct link){ .magic = LINK_MAGIC,
                        .loop = loop,
                        .linger_ns = LINGER_NS,
                        .io.fd = -1,
                        .events = o->events,
                        .owner = o->owner,
                        .reading = true };
    l->io.name = mem_dup(o->name ? o->name : "peer", strlen(o->name ? o->name : "peer"));
    return l;
}

static void release_socket(struct link *l)
{
    fd_watch_free(l->watch);
    l->watch = NULL;
    if (l->io.session)
        SSL_free(l->io.session);
    l->io.session = NULL;
    if (l->io.fd >= 0)
        close(l->io.fd);
    l->io.fd = -1;
    buf_done(&l->out);
    l->out_at = 0;
    loop_cancel_deferred(&l->flush);
    loop_cancel_deferred(&l->resume);
    timer_stop(&l->linger);
    timer_stop(&l->read_delay);
}

static void free_link(struct loop_garbage *garbage)
{
    struct link *l = container_of(garbage, struct link, garbage);
    buf_done(&l->out); /* a fill() that called link_free() may have appended more */
    free(l->io.name);
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
    loop_free_later(l->loop, &l->garbage, free_link);
}

/* Releases the socket, then reports the end to the owner. */
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
    err_set(&e, code, "%s: %s: %s", l->io.name, doing, strerror(code));
    close_link(l, &e);
}

static void set_socket_options(int fd)
{
    int on = 1, seconds = KEEPALIVE_S, unsent = UNSENT_BYTES;
    /* A Unix socket pair rejects these; ignored. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
}

/* Makes a link for a connected or connecting socket. Closes `fd` on failure. */
static int adopt_socket(struct loop *loop, int fd, const struct link_options *o, struct link **ret,
                        err_t *e)
{
    struct link *l = link_new(loop, o);
    l->io.fd = fd;
    set_socket_options(fd);
    int r = 0;
    if (o->tls)
        r = tls_session_new(o->tls, o->host, &l->io.session, e);
    if (r == 0 && l->io.session && tls_session_attach(l->io.session, fd) < 0)
        r = err_set(e, ENOMEM, "%s: cannot attach TLS to the socket: out of memory", l->io.name);
    if (r == 0 && (r = fd_watch_new(loop, fd, on_events, l, &l->watch)) < 0)
        err_set(e, -r, "%s: %s", l->io.name, strerror(-r));
    if (r < 0) {
        link_free(l);
        return r;
    }
    *ret = l;
    return 0;
}

int link_accept(struct loop *loop, int fd, const struct link_options *o, struct link **ret_link,
                err_t *e)
{
    int r = adopt_socket(loop, fd, o, ret_link, e);
    if (r < 0)
        return r;
    struct link *l = *ret_link;
    l->state = LINK_HANDSHAKE;
    fd_watch_set(l->watch, FD_READ);
    /* Without a handshake, `opened` is reported in this turn, but not from inside this call. */
    if (!l->io.session)
        loop_defer(loop, LOOP_SOON, &l->resume, run_resume);
    return 0;
}

/* --- connecting --- */

/* In virtual time, joins client and server of this process by a socket pair: the kernel may delay
 * TCP even on loopback, and then a run would depend on more than its inputs. Returns the client's
 * end, or -1 if nothing in this process listens there. */
static int connect_local(struct loop *loop, const struct sockaddr *address)
{
    const struct sockaddr_in *in = (const void *)address;
    if (loop->time != LOOP_VIRTUAL || address->sa_family != AF_INET)
        return -1;
    struct link_listener *listener = NULL;
    list_each(struct link_listener, l, &loop->listeners, item)
        if (!listener && l->port == ntohs(in->sin_port) &&
            (!l->address || l->address == in->sin_addr.s_addr))
            listener = l;
    int pair[2];
    if (!listener || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    listener->accept(listener->owner, pair[1]);
    return pair[0];
}

int link_connect(struct loop *loop, const struct sockaddr *address, socklen_t address_n,
                 const struct link_options *o, struct link **ret_link, err_t *e)
{
    int fd = connect_local(loop, address);
    if (fd < 0) {
        fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return err_set(e, errno, "%s: cannot create a socket: %s", o->name, strerror(errno));
        if (connect(fd, address, address_n) < 0 && errno != EINPROGRESS) {
            int code = errno;
            close(fd);
            return err_set(e, code, "%s: cannot connect: %s", o->name, strerror(code));
        }
    }
    int r = adopt_socket(loop, fd, o, ret_link, e);
    if (r < 0)
        return r;
    (*ret_link)->state = LINK_CONNECTING;
    fd_watch_set((*ret_link)->watch, FD_WRITE);
    return 0;
}

void link_listener_add(struct loop *loop, struct link_listener *listener)
{
    list_prepend(&loop->listeners, &listener->item);
}

void link_listener_remove(struct link_listener *listener)
{
    list_remove(&listener->item);
}

/* --- readiness --- */

/* The only place that decides which events the descriptor waits for. */
static void update_watch(struct link *l)
{
    if (l->state == LINK_CLOSED || !l->watch)
        return;
    bool waits = link_has_output(l);
    bool reads = l->state == LINK_OPEN ? l->reading && !timer_is_set(&l->read_delay)
                                       : l->state != LINK_FINISHING;
    fd_watch_set(l->watch, (reads ? FD_READ : 0u) | (waits ? FD_WRITE : 0u));
}

/* --- reading --- */

static void on_read_delay_over(struct timer *timer)
{
    on_events(container_of(timer, struct link, read_delay), FD_READ);
}

void link_set_read_delay(struct link *l, int64_t read_delay_ns)
{
    l->read_delay_ns = l->loop->time == LOOP_VIRTUAL ? 0 : read_delay_ns;
    if (l->read_delay_ns || !timer_is_set(&l->read_delay))
        return;
    timer_stop(&l->read_delay);
    update_watch(l);
}

/* Starts the read delay after a turn that brought `bytes`: see "Delayed reads" above. */
static void delay_reads(struct link *l, size_t bytes)
{
    int64_t now = l->loop->mono_ns;
    if (bytes >= TURN_BYTES)
        l->busy_until_ns = now + BUSY_NS;
    if (l->read_delay_ns && bytes && now >= l->busy_until_ns && l->state == LINK_OPEN)
        timer_set(l->loop, &l->read_delay, now + l->read_delay_ns, on_read_delay_over);
}

/* Reads until the kernel and OpenSSL have no more, the owner stops reading, or the turn is over. */
static void read_input(struct link *l)
{
    err_t e;
    size_t total = 0;
    while (l->state == LINK_OPEN && l->reading) {
        ssize_t n = link_io_read(&l->io, shared_buffer, sizeof(shared_buffer), &e);
        if (n == LINK_IO_AGAIN)
            break;
        if (n < 0) {
            close_link(l, n == LINK_IO_END ? NULL : &e);
            return;
        }
        l->events->received(l->owner, (str){ shared_buffer, (size_t)n });
        total += (size_t)n;
        /* The descriptor is readable again for what the kernel holds, not for what OpenSSL holds.
         */
        bool more = l->io.session ? tls_session_has_buffered(l->io.session)
                                  : (size_t)n == sizeof(shared_buffer);
        if (!more)
            break;
        if (total >= TURN_BYTES) {
            if (!l->dead)
                loop_defer(l->loop, LOOP_SOON, &l->resume, run_resume);
            break;
        }
    }
    delay_reads(l, total);
}

/* LINGERING: discards input until the peer's end of stream, a few reads per turn. */
static void discard_input(struct link *l)
{
    char waste[4096];
    for (int i = 0; i < 16; i++) {
        ssize_t n = recv(l->io.fd, waste, sizeof(waste), 0);
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

/* Everything is sent: sends the end of stream and waits for the peer's. */
static void begin_linger(struct link *l)
{
    l->state = LINK_LINGERING;
    link_io_shutdown(&l->io);
    timer_set(l->loop, &l->linger, l->loop->mono_ns + loop_scale_timeout(l->loop, l->linger_ns),
              on_linger_over);
    fd_watch_set(l->watch, FD_READ);
}

/* --- writing --- */

/* Writes `out`. False: the kernel takes no more for now, or the link is closed. */
static bool write_pending(struct link *l, size_t *total)
{
    err_t e;
    while (l->out_at < l->out.n) {
        ssize_t n = link_io_write(&l->io, l->out.p + l->out_at, l->out.n - l->out_at, &e);
        if (n == LINK_IO_AGAIN) {
            if (!l->stalled_since)
                l->stalled_since = l->loop->mono_ns;
            return false;
        }
        if (n < 0) {
            close_link(l, n == LINK_IO_END ? NULL : &e);
            return false;
        }
        l->stalled_since = 0;
        l->out_at += (size_t)n;
        *total += (size_t)n;
    }
    l->out.n = l->out_at = 0;
    return true;
}

/* Alternates between writing and asking the owner for more. Frees `out` when nothing is left, so
 * that an idle link holds no buffer. */
static void write_output(struct link *l)
{
    size_t total = 0;
    l->more_output = false;
    while (l->state == LINK_OPEN || l->state == LINK_FINISHING) {
        if (!write_pending(l, &total))
            return;
        if (total >= TURN_BYTES) {
            l->more_output = true; /* continue in the next turn, after the other links */
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
        begin_linger(l);
}

static void run_flush(struct deferred *d)
{
    struct link *l = container_of(d, struct link, flush);
    if (l->state == LINK_OPEN || l->state == LINK_FINISHING)
        write_output(l);
    update_watch(l);
}

void link_want_fill(struct link *l)
{
    CHECK(l, LINK_MAGIC);
    /* If output is waiting for the kernel, writability will trigger the next fill. */
    if (l->out.n == 0 && (l->state == LINK_OPEN || l->state == LINK_FINISHING))
        loop_defer(l->loop, LOOP_FLUSH, &l->flush, run_flush);
}

void link_set_reading(struct link *l, bool reading)
{
    if (l->reading == reading || l->state == LINK_CLOSED)
        return;
    l->reading = reading;
    if (reading && l->io.session) /* OpenSSL may hold bytes that it has taken from the kernel */
        loop_defer(l->loop, LOOP_SOON, &l->resume, run_resume);
    update_watch(l);
}

void link_set_linger(struct link *l, int64_t linger_ns)
{
    l->linger_ns = linger_ns;
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

static void mark_open(struct link *l)
{
    l->state = LINK_OPEN;
    l->events->opened(l->owner);
    link_want_fill(l);
}

/* One step of the TLS handshake; without TLS there is nothing to negotiate. */
static void continue_handshake(struct link *l)
{
    err_t e;
    if (!l->io.session) {
        mark_open(l);
        return;
    }
    int result = link_io_handshake(&l->io, &e);
    if (result == 0)
        mark_open(l);
    else if (result != LINK_IO_AGAIN)
        close_link(l, &e);
}

/* The connect() that was in progress has ended: reads its result. */
static void finish_connect(struct link *l)
{
    int code = 0;
    socklen_t n = sizeof(code);
    if (getsockopt(l->io.fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
        code = errno;
    if (code) {
        close_errno(l, code, "cannot connect");
        return;
    }
    l->state = LINK_HANDSHAKE;
    if (l->events->connected)
        l->events->connected(l->owner);
    if (l->state == LINK_HANDSHAKE)
        continue_handshake(l);
}

/* Every wakeup of a link comes through here. One call may advance the state several times, for
 * example from CONNECTING to OPEN. */
static void on_events(void *context, unsigned events)
{
    struct link *l = context;
    l->io.wants_write = false;
    if (l->state == LINK_CONNECTING)
        finish_connect(l);
    else if (l->state == LINK_HANDSHAKE)
        continue_handshake(l);
    else if (l->state == LINK_LINGERING)
        discard_input(l);
    if (l->state == LINK_OPEN && !timer_is_set(&l->read_delay))
        read_input(l);
    if ((events & FD_WRITE) && (l->state == LINK_OPEN || l->state == LINK_FINISHING))
        write_output(l);
    update_watch(l);
}

static void run_resume(struct deferred *d)
{
    on_events(container_of(d, struct link, resume), FD_READ);
}

/* --- accessors --- */

bool link_is_http2(const struct link *l)
{
    const unsigned char *name;
    unsigned n = 0;
    if (l->io.session)
        SSL_get0_alpn_selected(l->io.session, &name, &n);
    return n == 2 && memcmp(name, "h2", 2) == 0;
}

struct tls_peer *link_peer_identity(struct link *l)
{
    return l->io.session ? tls_session_peer(l->io.session) : NULL;
}

bool link_reached_peer(const struct link *l)
{
    return l->state != LINK_CONNECTING;
}

bool link_has_output(const struct link *l)
{
    return l->out.n > l->out_at || l->more_output || l->io.wants_write;
}

int64_t link_stalled_since(const struct link *l)
{
    return link_has_output(l) ? l->stalled_since : 0;
}
