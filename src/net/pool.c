/* The client's connections: dialled when calls wait, filled before another is opened, kept alive,
 * given up when idle or silent. See client_internal.h.
 *
 * A connection looks up and tries addresses, becomes a link, then a session. One timer serves all
 * its deadlines. It is freed where it ends, or, if its own callbacks are under way, when they
 * return. */
#include "client_internal.h"
#include "loop_internal.h"
#include "tls_internal.h"

#include <stdio.h>

enum { DIALS_MAX = 64 }; /* at a time: more handshakes at once only make each of them late */

struct pool_conn {
    struct http_client *client;
    struct list_item item;
    struct lookup *lookup;
    struct address *addresses; /* owned */
    size_t address_count, address_at;
    struct link *link;
    struct client_session *session; /* NULL: dialling */
    struct timer timer;
    int64_t dial_end_ns;   /* of all addresses */
    int64_t received_ns;   /* when the peer was last heard */
    int64_t idle_since_ns; /* no call since */
    int64_t pinged_ns;     /* not answered yet; 0: none */
    unsigned generation;   /* of the TLS context it was made with */
    bool retired;          /* no new calls; closed when the last has ended */
    bool dead;
    struct grave grave;
};

static void on_timer(struct timer *timer);
static void run_pump(struct deferred *d);
static void try_address(struct pool_conn *conn);

/* --- life --- */

static void destroy(struct grave *grave)
{
    struct pool_conn *conn = container_of(grave, struct pool_conn, grave);
    if (conn->session)
        conn->session->ops->free(conn->session);
    free(conn->addresses);
    free(conn);
}

/* Takes the connection out of the pool. Its calls must have been told before, or are cancelled by
 * their owner. */
static void conn_free(struct pool_conn *conn)
{
    struct http_client *c = conn->client;
    if (conn->dead)
        return;
    conn->dead = true;
    list_remove(&conn->item);
    if (!conn->session)
        c->dialling--;
    lookup_cancel(conn->lookup);
    link_free(conn->link);
    conn->link = NULL;
    timer_stop(&conn->timer);
    loop_bury(c->loop, &conn->grave, destroy);
}

static void arm(struct pool_conn *conn, int64_t deadline)
{
    if (!timer_is_set(&conn->timer) || deadline < conn->timer.node.key)
        timer_set(conn->client->loop, &conn->timer, deadline, on_timer);
}

/* Ends a connection that stood; its calls fail or are tried elsewhere. */
static void conn_lost(struct pool_conn *conn, const err_t *why)
{
    struct http_client *c = conn->client;
    struct client_session *session = conn->session;
    conn_free(conn);
    session->ops->closed(session, why);
    if (!c->closing)
        pool_pump(c);
}

/* What must be looked at after anything happened on a standing connection. */
static void settle(struct pool_conn *conn)
{
    struct client_session *s = conn->session;
    if (conn->dead || !s || !conn->link)
        return;
    link_read(conn->link, !s->full);
    link_rest(conn->link, s->carried && s->patient == s->carried
                              ? loop_io_span(conn->client->loop, conn->client->options.rest_ns)
                              : 0);
    if (s->carried)
        conn->idle_since_ns = 0;
    else if (!conn->idle_since_ns)
        conn->idle_since_ns = conn->client->loop->mono_ns;
    if (!s->carried && (s->over || conn->retired))
        link_finish(conn->link);
    else if (conn->idle_since_ns)
        arm(conn, conn->idle_since_ns +
                      loop_io_span(conn->client->loop, conn->client->options.idle_timeout_ns));
    if (s->room && conn->client->queue.n)
        pool_pump(conn->client);
}

/* --- what the session asks --- */

static void on_want_fill(void *owner)
{
    struct pool_conn *conn = owner;
    if (conn->link)
        link_want_fill(conn->link);
}

static void on_changed(void *owner)
{
    struct pool_conn *conn = owner;
    if (conn->dead)
        return;
    settle(conn);
}

/* --- what the link tells --- */

static void on_connected(void *owner)
{
    struct pool_conn *conn = owner;
    struct loop *loop = conn->client->loop;
    timer_set(loop, &conn->timer,
              loop->mono_ns + loop_io_span(loop, conn->client->options.handshake_timeout_ns),
              on_timer);
}

static void on_opened(void *owner)
{
    struct pool_conn *conn = owner;
    struct http_client *c = conn->client;
    bool http2 = c->uri.tls ? link_is_http2(conn->link) : c->options.http2_plain;
    struct client_host host = { .loop = c->loop,
                                .max_header_bytes = c->options.max_header_bytes,
                                .authority = str_c(c->authority),
                                .tls = c->uri.tls,
                                .want_fill = on_want_fill,
                                .changed = on_changed,
                                .owner = conn };
    timer_stop(&conn->timer);
    c->dialling--;
    c->http1 = !http2;
    conn->received_ns = c->loop->mono_ns;
    conn->session = http2 ? h2_client_new(&host) : h1_client_new(&host);
    if (conn->session->ops->ping)
        arm(conn, c->loop->mono_ns + loop_io_span(c->loop, c->options.ping_after_ns));
    settle(conn);
    pool_pump(c);
}

static void on_received(void *owner, str bytes)
{
    struct pool_conn *conn = owner;
    err_t e;
    conn->received_ns = conn->client->loop->mono_ns;
    conn->pinged_ns = 0;
    bool idle = !conn->session->carried;
    if (!conn->session->ops->feed(conn->session, bytes, &e)) {
        err_wrap(&e, "%s", conn->client->name);
        if (!conn->dead)
            conn_lost(conn, idle ? NULL : &e);
    } else {
        settle(conn);
    }
}

static void on_fill(void *owner, struct buf *out, size_t room)
{
    struct pool_conn *conn = owner;
    if (!conn->session)
        return;
    conn->session->ops->fill(conn->session, out, room);
    settle(conn);
}

/* All calls that waited for this dial fail with it; with HTTP/1.1 each call has its own dial. */
static void dial_failed(struct pool_conn *conn, const err_t *why)
{
    struct http_client *c = conn->client;
    struct list doomed = { 0 }; /* an owner's code, in call_fail(), may end others of them */
    for (size_t left = c->http1 ? MIN(c->queue.n, 1u) : c->queue.n; left; left--)
        list_move(&doomed, c->queue.first);
    conn_free(conn);
    for (struct http_call *call; (call = list_first(&doomed, struct http_call, queued));) {
        list_remove(&call->queued);
        call_fail(call, why, false);
    }
    if (!c->closing && c->queue.n)
        pool_pump(c);
}

static void on_closed(void *owner, const err_t *why)
{
    struct pool_conn *conn = owner;
    err_t e;
    if (conn->session) {
        conn_lost(conn, why);
        return;
    }
    bool reached = link_reached_peer(conn->link);
    if (!reached && conn->address_at < conn->address_count) {
        link_free(conn->link);
        conn->link = NULL;
        try_address(conn);
        return;
    }
    if (!why)
        err_set(&e, ECONNRESET, "%s: closed before a request could be sent", conn->client->name);
    dial_failed(conn, why ? why : &e);
}

static const struct link_events conn_events = {
    .connected = on_connected,
    .opened = on_opened,
    .received = on_received,
    .fill = on_fill,
    .closed = on_closed,
};

/* --- dialling --- */

/* Each address gets its share of the time that is left, so that one that swallows packets does not
 * use up the turn of the others. */
static void try_address(struct pool_conn *conn)
{
    struct http_client *c = conn->client;
    struct link_options o = {
        .tls = c->tls, .name = c->name, .host = c->uri.host, .events = &conn_events, .owner = conn
    };
    err_t e;
    int r = -EHOSTUNREACH;
    while (r < 0 && conn->address_at < conn->address_count) {
        int64_t left = conn->dial_end_ns - c->loop->mono_ns;
        int64_t share = left / (int64_t)(conn->address_count - conn->address_at);
        const struct address *a = &conn->addresses[conn->address_at++];
        r = link_connect(c->loop, (const struct sockaddr *)&a->at, a->n, &o, &conn->link, &e);
        timer_set(c->loop, &conn->timer, c->loop->mono_ns + share, on_timer);
    }
    if (r < 0)
        dial_failed(conn, &e);
}

static void on_looked_up(void *owner, const struct address *addresses, size_t n, const err_t *why)
{
    struct pool_conn *conn = owner;
    conn->lookup = NULL;
    if (why) {
        dial_failed(conn, why);
        return;
    }
    conn->addresses = mem_zero(n, sizeof(*addresses));
    memcpy(conn->addresses, addresses, n * sizeof(*addresses));
    conn->address_count = n;
    try_address(conn);
}

static void dial(struct http_client *c)
{
    struct pool_conn *conn = mem_zero(1, sizeof(*conn));
    conn->client = c;
    list_prepend(&c->conns, &conn->item);
    c->dialling++;
    conn->generation = c->tls ? tls_generation(c->tls) : 0;
    conn->dial_end_ns = c->loop->mono_ns + loop_io_span(c->loop, c->options.dial_timeout_ns);
    arm(conn, conn->dial_end_ns);
    conn->lookup = lookup_start(c->loop, c->uri.host, c->uri.port, on_looked_up, conn);
}

/* --- time --- */

static void dial_late(struct pool_conn *conn)
{
    struct http_client *c = conn->client;
    bool reached = conn->link && link_reached_peer(conn->link);
    err_t e;
    if (!reached && conn->link && conn->address_at < conn->address_count) {
        link_free(conn->link);
        conn->link = NULL;
        try_address(conn);
        return;
    }
    err_set(&e, ETIMEDOUT, "%s: %s in time", c->name,
            reached ? "no TLS handshake" : "no connection");
    dial_failed(conn, &e);
}

static void check_silence(struct pool_conn *conn)
{
    struct http_client *c = conn->client;
    int64_t now = c->loop->mono_ns;
    int64_t after = loop_io_span(c->loop, c->options.ping_after_ns);
    int64_t timeout = loop_io_span(c->loop, c->options.ping_timeout_ns);
    if (conn->pinged_ns && now >= conn->pinged_ns + timeout) {
        err_t e;
        err_set(&e, ETIMEDOUT, "%s: the connection is dead, no answer to a ping", c->name);
        conn_lost(conn, &e);
        return;
    }
    if (!conn->pinged_ns && now >= conn->received_ns + after) {
        conn->session->ops->ping(conn->session);
        conn->pinged_ns = now;
    }
    arm(conn, conn->pinged_ns ? conn->pinged_ns + timeout : conn->received_ns + after);
}

static void on_timer(struct timer *timer)
{
    struct pool_conn *conn = container_of(timer, struct pool_conn, timer);
    struct http_client *c = conn->client;
    if (!conn->session) {
        dial_late(conn);
        return;
    }
    int64_t idle = loop_io_span(c->loop, c->options.idle_timeout_ns);
    if (conn->idle_since_ns && c->loop->mono_ns >= conn->idle_since_ns + idle)
        conn->retired = true;
    else if (conn->session->ops->ping)
        check_silence(conn);
    settle(conn);
}

/* --- giving calls to connections --- */

static struct pool_conn *pick(struct http_client *c, unsigned generation)
{
    struct pool_conn *best = NULL;
    list_each(struct pool_conn, conn, &c->conns, item) {
        if (!conn->session || conn->retired || conn->session->over)
            continue;
        if (c->tls && conn->generation != generation) {
            conn->retired = true; /* credentials changed: new calls use the new ones */
            continue;
        }
        if (conn->session->room && (!best || conn->session->carried > best->session->carried))
            best = conn;
    }
    return best;
}

static void start(struct pool_conn *conn, struct http_call *call)
{
    list_remove(&call->queued);
    call->session = conn->session;
    call->attempts++;
    call->reused = conn->session->served > 0;
    conn->session->ops->start(conn->session, call);
    settle(conn);
}

/* HTTP/1.1: a connection for each waiting call. HTTP/2: one more, once it is known that those there
 * are full. */
static void dial_for_queue(struct http_client *c)
{
    size_t wanted = MIN(c->queue.n, c->http1 ? (size_t)DIALS_MAX : 1);
    list_each(struct pool_conn, conn, &c->conns, item) {
        if (c->http1)
            break;
        if (conn->session && conn->session->settling && !conn->session->over && !conn->retired)
            return;
    }
    while (c->dialling < wanted && c->conns.n < c->options.max_connections)
        dial(c);
}

static void run_pump(struct deferred *d)
{
    struct http_client *c = container_of(d, struct http_client, pump);
    unsigned generation = c->tls && c->queue.n ? tls_generation(c->tls) : 0;
    struct pool_conn *conn;
    struct http_call *call;
    while ((call = list_first(&c->queue, struct http_call, queued)) && (conn = pick(c, generation)))
        start(conn, call);
    if (!c->closing)
        dial_for_queue(c);
}

void pool_pump(struct http_client *c)
{
    loop_defer(c->loop, LOOP_SOON, &c->pump, run_pump);
}

void pool_reconnect(struct http_client *c)
{
    for (struct list_item *item = c->conns.first, *next; item; item = next) {
        struct pool_conn *conn = container_of(item, struct pool_conn, item);
        next = item->next;
        conn->retired = true;
        if (conn->session && !conn->session->carried)
            link_finish(conn->link);
    }
}

void pool_close(struct http_client *c)
{
    for (struct pool_conn *conn; (conn = list_first(&c->conns, struct pool_conn, item));)
        conn_free(conn);
}
