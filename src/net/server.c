/* The HTTP server: listens, joins links with protocol sessions, and enforces time and memory
 * limits.
 *
 *      listener --accept_connection()--> server_conn
 *                                          |- link     (bytes, TLS)      link.c
 *                                          |- session  (HTTP/1.1 or /2)  h1_server.c, h2_server.c
 *                                          '- peer     (address, client certificate)
 *
 * TLS negotiates the protocol by ALPN. On a plain connection the first bytes decide: they are
 * buffered while they may still be the beginning of HTTP/2's preface.
 *
 * Time: one timer per connection serves all its deadlines. It is set for the earliest that could
 * matter and, when it fires, checks what the session and the link are really waiting for. A timer
 * per deadline would have to be moved for every read and write.
 *
 * Memory: `pending_bytes` counts request bodies, `unread_bytes` the answers that clients have not
 * read, across all connections. If unread_bytes exceeds its limit, connections are closed, those
 * first whose clients have read nothing for the longest time, until a quarter of the limit is free.
 * A client that reads, however slowly, is closed last; one that reads nothing is not protected by
 * others that do. Afterwards the freed memory is returned to the system (malloc_trim): it lies
 * scattered between live blocks, and the next peak may never come. The same is done when many
 * connections have gone.
 *
 * Invariant: the server owns its connections, a connection its link and session. An exchange that
 * a handler still has survives both (exchange.h). link_finish() may call on_closed() at once and
 * free the connection, so nothing may touch it after conn_update(). */
#include "http_server.h"

#include "link.h"
#include "loop_internal.h"
#include "session.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#define SERVER_MAGIC 0x5e47e410u

static const char h2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum {
    ACCEPTS_PER_TURN = 256, /* then the existing connections get their turn */
    BACKLOG = 1024,         /* of listen() */
};
#define ACCEPT_PAUSE_NS (100 * NS_PER_MS)    /* when descriptors or memory have run out */
#define TRIM_FROM ((size_t)16 * 1024 * 1024) /* bytes; smaller peaks are not worth a trim */
#define CONN_BYTES ((size_t)128 * 1024)      /* of a connection, about */
#define TRIM_PAUSE_NS (5 * NS_PER_S)         /* at least; a trim walks the whole heap */
#define DRAIN_LINGER_NS (200 * NS_PER_MS)    /* for a client that has just got its last answer */

struct server_conn {
    struct http_server *server;
    struct link *link;
    struct session *session; /* NULL: in the handshake, or the protocol is not known yet */
    struct http_peer *peer;
    struct timer timer;
    struct buf start;      /* first bytes of a plain connection that may be HTTP/2's preface */
    struct list_item item; /* of server->conns */
};

struct http_server {
    unsigned magic;
    struct loop *loop;
    struct http_server_options options;
    int fd; /* listening; -1: not any more */
    struct fd_watch *watch;
    uint16_t port;
    struct link_listener local;
    struct timer accept_pause;
    struct list conns;
    size_t pending_bytes;    /* of request bodies being read, all connections */
    size_t unread_bytes;     /* of answers that clients have not read, all connections */
    size_t peak_bytes;       /* maximum of both and the connections since the last trim */
    struct deferred reclaim; /* closes connections: max_unread_bytes is exceeded */
    int64_t trimmed_ns;      /* last trim, mono ns; 0: never */
    bool draining;
    struct timer drain_limit;
    void (*drained)(void *context);
    void *drained_context;
};

/* --- connections --- */

static void arm_timer(struct server_conn *c, int64_t deadline);

static void report_drained(struct http_server *s)
{
    if (!s->draining || s->conns.n)
        return;
    timer_stop(&s->drain_limit);
    void (*drained)(void *) = s->drained;
    s->drained = NULL;
    if (drained)
        drained(s->drained_context);
}

static void conn_free(struct server_conn *c)
{
    list_remove(&c->item);
    timer_stop(&c->timer);
    link_free(c->link);
    if (c->session)
        c->session->ops->free(c->session);
    http_peer_unref(c->peer);
    buf_done(&c->start);
    free(c);
}

/* Returns memory to the system once the use has fallen to a quarter of its peak. A connection is
 * estimated: its output buffer, TLS and the objects that describe it. */
static void trim_memory(struct http_server *s)
{
    size_t now = s->pending_bytes + s->unread_bytes + s->conns.n * CONN_BYTES;
    s->peak_bytes = MAX(s->peak_bytes, now);
    if (s->peak_bytes < TRIM_FROM || now > s->peak_bytes / 4 ||
        (s->trimmed_ns && s->loop->mono_ns - s->trimmed_ns < TRIM_PAUSE_NS))
        return;
    malloc_trim(0);
    s->trimmed_ns = s->loop->mono_ns;
    s->peak_bytes = now;
}

static void conn_close(struct server_conn *c)
{
    struct http_server *s = c->server;
    conn_free(c);
    trim_memory(s);
    report_drained(s);
}

/* The connection whose client has read nothing for the longest time, although answers wait for it;
 * among equals, the one with the most memory. */
static struct server_conn *find_stalest_conn(const struct http_server *s)
{
    struct server_conn *found = NULL;
    list_each(struct server_conn, c, &s->conns, item) {
        if (!c->session || !c->session->held)
            continue;
        int64_t at = c->session->taken_ns;
        if (!found || at < found->session->taken_ns ||
            (at == found->session->taken_ns && c->session->held > found->session->held))
            found = c;
    }
    return found;
}

/* Closes connections until three quarters of max_unread_bytes are in use. The last one stays: its single
 * answer may be larger than the limit, and is sent to a client that reads. */
static void run_reclaim(struct deferred *d)
{
    struct http_server *s = container_of(d, struct http_server, reclaim);
    size_t enough = s->options.max_unread_bytes / 4 * 3;
    for (struct server_conn *c; s->unread_bytes > enough && (c = find_stalest_conn(s));) {
        if (c->session->held == s->unread_bytes)
            break;
        session_report_limit(
            c->session,
            "connection closed: %zu bytes of responses are unread, %zu of them on this connection",
            s->unread_bytes, c->session->held);
        conn_close(c);
    }
    malloc_trim(0); /* a quarter of the limit was just freed */
}

static void on_unread_full(void *owner)
{
    struct http_server *s = ((struct server_conn *)owner)->server;
    loop_defer(s->loop, LOOP_SOON, &s->reclaim, run_reclaim);
}

static void on_want_fill(void *owner)
{
    struct server_conn *c = owner;
    link_want_fill(c->link);
}

static void on_deliver(void *owner, struct exchange *x)
{
    struct server_conn *c = owner;
    c->server->options.on_request(c->server->options.context, x);
}

/* Runs after every event of a connection: adjusts reading, the timer and the end. May free `c`. */
static void conn_update(struct server_conn *c)
{
    struct http_server *server = c->server;
    struct session *session = c->session;
    link_set_reading(c->link, !session->full);
    int64_t deadline = session->ops->deadline(session);
    if (deadline != INT64_MAX)
        arm_timer(c, deadline);
    if (session->over)
        link_finish(c->link); /* may free `c` */
    trim_memory(server);
}

/* The protocol is known. */
static void begin_session(struct server_conn *c, bool http2)
{
    struct session_host host = { .loop = c->server->loop,
                                 .options = &c->server->options,
                                 .peer = c->peer,
                                 .pending_bytes = &c->server->pending_bytes,
                                 .unread_bytes = &c->server->unread_bytes,
                                 .unread_full = on_unread_full,
                                 .want_fill = on_want_fill,
                                 .deliver = on_deliver,
                                 .owner = c };
    c->session = http2 ? h2_server_new(&host) : h1_server_new(&host);
    if (c->server->draining)
        c->session->ops->drain(c->session);
    conn_update(c);
}

static void on_opened(void *owner)
{
    struct server_conn *c = owner;
    c->peer->identity = link_peer_identity(c->link);
    if (c->server->options.tls)
        begin_session(c, link_is_http2(c->link));
}

/* A plain connection: HTTP/2 if it begins with the preface, otherwise HTTP/1.1. */
static void detect_protocol(struct server_conn *c, str bytes)
{
    buf_put(&c->start, bytes);
    size_t n = MIN(c->start.n, sizeof(h2_preface) - 1);
    bool same = memcmp(c->start.p, h2_preface, n) == 0;
    if (same && n < sizeof(h2_preface) - 1)
        return;
    begin_session(c, same);
    struct buf start = c->start;
    c->start = (struct buf){ 0 };
    if (!c->session->over)
        c->session->ops->feed(c->session, buf_str(&start));
    buf_done(&start);
    conn_update(c);
}

static void on_received(void *owner, str bytes)
{
    struct server_conn *c = owner;
    if (!c->session) {
        detect_protocol(c, bytes);
        return;
    }
    if (!c->session->over)
        c->session->ops->feed(c->session, bytes);
    conn_update(c);
}

static void on_fill(void *owner, struct buf *out, size_t room)
{
    struct server_conn *c = owner;
    if (!c->session)
        return;
    c->session->ops->fill(c->session, out, room);
    if (out->n)
        arm_timer(c, c->server->loop->mono_ns +
                         loop_scale_timeout(c->server->loop, c->server->options.write_timeout_ns));
    conn_update(c);
}

static void on_closed(void *owner, const err_t *why UNUSED)
{
    conn_close(owner);
}

static const struct link_events conn_events = {
    .opened = on_opened,
    .received = on_received,
    .fill = on_fill,
    .closed = on_closed,
};

/* --- time --- */

/* Closes a connection that did not finish its handshake or does not take its output; otherwise lets
 * the session handle its own deadline. */
static void on_timer(struct timer *timer)
{
    struct server_conn *c = container_of(timer, struct server_conn, timer);
    struct loop *loop = c->server->loop;
    int64_t stalled = link_stalled_since(c->link);
    int64_t stall_limit = loop_scale_timeout(loop, c->server->options.write_timeout_ns);
    if (!c->session || (stalled && stalled + stall_limit <= loop->mono_ns)) {
        if (c->session)
            session_report_limit(c->session, "connection closed: the client does not read");
        conn_close(c);
        return;
    }
    if (link_has_output(c->link))
        arm_timer(c, (stalled ? stalled : loop->mono_ns) + stall_limit);
    if (c->session->ops->deadline(c->session) <= loop->mono_ns)
        c->session->ops->expire(c->session);
    conn_update(c);
}

static void arm_timer(struct server_conn *c, int64_t deadline)
{
    if (!timer_is_set(&c->timer) || deadline < c->timer.node.key)
        timer_set(c->server->loop, &c->timer, deadline, on_timer);
}

/* --- listening --- */

/* "10.0.0.1:40312", "[::1]:40312", or "local" for a socket pair. */
static void describe_peer(int fd, char *text, size_t size)
{
    struct sockaddr_storage address = { 0 };
    socklen_t n = sizeof(address);
    char ip[INET6_ADDRSTRLEN] = "";
    snprintf(text, size, "local");
    if (getpeername(fd, (struct sockaddr *)&address, &n) < 0)
        return;
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)&address;
        inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
        snprintf(text, size, "%s:%d", ip, ntohs(in->sin_port));
    } else if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)&address;
        inet_ntop(AF_INET6, &in->sin6_addr, ip, sizeof(ip));
        snprintf(text, size, "[%s]:%d", ip, ntohs(in->sin6_port));
    }
}

/* Owns `fd`. Connections beyond the limit are closed without an answer. */
static void accept_connection(void *owner, int fd)
{
    struct http_server *s = owner;
    if (s->conns.n >= s->options.max_connections || s->draining) {
        close(fd);
        return;
    }
    struct server_conn *c = mem_zero(1, sizeof(*c));
    c->server = s;
    c->peer = mem_zero(1, sizeof(*c->peer));
    c->peer->references = 1;
    describe_peer(fd, c->peer->address, sizeof(c->peer->address));
    struct link_options o = {
        .tls = s->options.tls, .name = c->peer->address, .events = &conn_events, .owner = c
    };
    if (link_accept(s->loop, fd, &o, &c->link, NULL) < 0) {
        http_peer_unref(c->peer);
        free(c);
        return;
    }
    list_prepend(&s->conns, &c->item);
    arm_timer(c, s->loop->mono_ns + loop_scale_timeout(s->loop, s->options.handshake_ns));
}

static void on_accept_again(struct timer *timer)
{
    struct http_server *s = container_of(timer, struct http_server, accept_pause);
    if (s->watch)
        fd_watch_set(s->watch, FD_READ);
}

/* Accepts up to ACCEPTS_PER_TURN connections. */
static void on_listener_readable(void *context, unsigned events UNUSED)
{
    struct http_server *s = context;
    for (int i = 0; i < ACCEPTS_PER_TURN && s->watch; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accept_connection(s, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The connection stays in the backlog and the listener stays readable: pause. */
            fd_watch_set(s->watch, 0);
            timer_set(s->loop, &s->accept_pause,
                      s->loop->mono_ns + loop_scale_timeout(s->loop, ACCEPT_PAUSE_NS),
                      on_accept_again);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* IPv4 or IPv6 in numbers; names are not resolved. */
static int parse_address(const struct http_server_options *o, struct sockaddr_storage *ret,
                         socklen_t *ret_n)
{
    const char *text = o->address ? o->address : "127.0.0.1";
    struct sockaddr_in *in = (void *)ret;
    struct sockaddr_in6 *in6 = (void *)ret;
    *ret = (struct sockaddr_storage){ 0 };
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(o->port);
        *ret_n = sizeof(*in);
        return 0;
    }
    if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(o->port);
        *ret_n = sizeof(*in6);
        return 0;
    }
    return -EINVAL;
}

/* On failure the caller frees the server, which closes the socket. */
static int listen_on(struct http_server *s, err_t *e)
{
    const struct http_server_options *o = &s->options;
    const char *text = o->address ? o->address : "127.0.0.1";
    struct sockaddr_storage address;
    socklen_t n;
    if (parse_address(o, &address, &n) < 0)
        return err_set(e, EINVAL,
                       "listen address %s is not an IP address; use for example 127.0.0.1 or ::",
                       text);
    s->fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    if (s->fd < 0 || setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(s->fd, (struct sockaddr *)&address, n) < 0 || listen(s->fd, BACKLOG) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&address, &n) < 0)
        return err_set(e, errno, "cannot listen on %s port %d: %s", text, o->port, strerror(errno));
    s->port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                                 : ((struct sockaddr_in6 *)&address)->sin6_port);
    int r = fd_watch_new(s->loop, s->fd, on_listener_readable, s, &s->watch);
    if (r < 0)
        return err_set(e, -r, "cannot listen on %s port %d: %s", text, o->port, strerror(-r));
    fd_watch_set(s->watch, FD_READ);
    s->local = (struct link_listener){ .port = s->port, .accept = accept_connection, .owner = s };
    if (address.ss_family == AF_INET)
        s->local.address = ((struct sockaddr_in *)&address)->sin_addr.s_addr;
    link_listener_add(s->loop, &s->local);
    return 0;
}

static void stop_listening(struct http_server *s)
{
    if (s->watch)
        link_listener_remove(&s->local);
    fd_watch_free(s->watch);
    s->watch = NULL;
    timer_stop(&s->accept_pause);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* --- life --- */

static void set_defaults(struct http_server_options *o)
{
#define DEFAULT(field, value) o->field = o->field ? o->field : (value)
    DEFAULT(max_connections, 16384);
    DEFAULT(max_streams, 1000);
    DEFAULT(max_header_bytes, 64 * 1024);
    DEFAULT(max_body_bytes, 3 * 1024 * 1024);
    DEFAULT(max_pending_bytes, 64 * 1024 * 1024);
    DEFAULT(max_unread_connection, 16 * 1024 * 1024);
    DEFAULT(max_unread_bytes, 48 * 1024 * 1024);
    DEFAULT(gzip_min_bytes, 128 * 1024);
    DEFAULT(handshake_ns, 10 * NS_PER_S);
    DEFAULT(header_timeout_ns, 10 * NS_PER_S);
    DEFAULT(body_timeout_ns, 60 * NS_PER_S);
    DEFAULT(idle_timeout_ns, 180 * NS_PER_S);
    DEFAULT(write_timeout_ns, 60 * NS_PER_S);
#undef DEFAULT
}

int http_server_new(struct loop *loop, const struct http_server_options *options,
                    struct http_server **ret_server, err_t *e)
{
    struct http_server *s = mem_zero(1, sizeof(*s));
    s->magic = SERVER_MAGIC;
    s->loop = loop;
    s->fd = -1;
    s->options = *options;
    if (options->tls)
        tls_ref(options->tls);
    set_defaults(&s->options);
    int r = listen_on(s, e);
    if (r < 0) {
        http_server_free(s);
        return r;
    }
    s->options.address = NULL; /* borrowed, and not needed any more */
    *ret_server = s;
    return 0;
}

uint16_t http_server_port(const struct http_server *s)
{
    CHECK(s, SERVER_MAGIC);
    return s->port;
}

size_t http_server_connections(const struct http_server *s)
{
    CHECK(s, SERVER_MAGIC);
    return s->conns.n;
}

static void close_connections(struct http_server *s)
{
    for (struct server_conn *c; (c = list_first(&s->conns, struct server_conn, item));)
        conn_free(c);
}

static void on_drain_limit(struct timer *timer)
{
    struct http_server *s = container_of(timer, struct http_server, drain_limit);
    close_connections(s);
    report_drained(s);
}

void http_server_drain(struct http_server *s, int64_t limit_ns, void (*done)(void *context),
                       void *context)
{
    CHECK(s, SERVER_MAGIC);
    stop_listening(s);
    s->draining = true;
    for (struct list_item *item = s->conns.first, *next; item; item = next) {
        struct server_conn *c = container_of(item, struct server_conn, item);
        next = item->next;
        if (!c->session) { /* not a byte of a request yet */
            conn_free(c);
            continue;
        }
        /* an idle client need not notice that its connection ends */
        link_set_linger(c->link, c->session->exchanges.n ? DRAIN_LINGER_NS : 0);
        c->session->ops->drain(c->session);
        conn_update(c);
    }
    /* `done` never runs from inside this call: without connections the timer fires in the next
     * turn. */
    s->drained = done;
    s->drained_context = context;
    int64_t wait = s->conns.n ? loop_scale_timeout(s->loop, limit_ns) : 0;
    timer_set(s->loop, &s->drain_limit, s->loop->mono_ns + wait, on_drain_limit);
}

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    CHECK(s, SERVER_MAGIC);
    stop_listening(s);
    s->draining = false;
    close_connections(s);
    loop_cancel_deferred(&s->reclaim);
    timer_stop(&s->drain_limit);
    tls_unref(s->options.tls);
    s->magic = 0;
    free(s);
}
