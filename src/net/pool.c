/* The client's connection pool: dials, keeps alive and retires connections, and assigns queued
 * calls to them.
 *
 * The problem: a controller sends bursts of short calls next to watches that last for hours, to one
 * endpoint whose protocol (HTTP/1.1 or HTTP/2) and stream limit are known only after the handshake.
 * Connections break silently, credentials rotate, and any callback of a call may cancel other calls
 * or free the client. The pool must reuse what is there, dial no more than needed, and never leave
 * a call waiting for something that will not happen.
 *
 * How a call moves (client->queue is FIFO; a retried call goes to the front):
 *
 *      http_client_send() -> queue --run_pump()--> session->start_call() -> response
 *                              ^        |                  |
 *                              |        | no room          | refused, or the reused
 *                              |        v                  | connection was dead
 *                              |   start_dial()            |
 *                              +---------------------------+
 *
 * How a connection moves:
 *
 *      start_dial() -> lookup -> try_address() ... -> handshake -> session -> retired -> freed
 *                                next address on
 *                                failure or timeout
 *
 * Invariants:
 *   - `session` is NULL exactly while dialing; client->dialing counts those connections.
 *   - While calls are queued, either a pump is scheduled, a dial is in progress, a session is
 *     waiting for SETTINGS, or max_connections is reached and some session will report free room.
 *     Everything that may free room ends in conn_update() or pool_pump().
 *   - A connection that ended leaves the list at once and is freed at the end of the turn, because
 *     its own callbacks may still be on the stack. `dead` marks the time between.
 *   - Calls are taken out of a list before their owner's code runs. That code may end any other
 *     call, so loops take the first element again instead of remembering a next one.
 *
 * Which connection: the one with the most calls that still has room, so that a burst does not
 * leave many connections with one call each, and the emptier ones can become idle and close. With
 * HTTP/2 a second connection is dialed only when the first one's stream limit is known and reached;
 * until SETTINGS arrive, a burst would otherwise open one connection per call. With HTTP/1.1 each
 * queued call needs its own connection, up to DIALS_MAX handshakes at a time: more at once only
 * make each of them slower.
 *
 * One timer per connection serves all its deadlines (dial, handshake, idle, ping). It is set for
 * the earliest that could matter; on_timer() checks what is really due and sets it again. Rejected:
 * one timer per deadline. They would have to be moved with every received byte; this one is not touched.
 *
 * Ownership: the client owns its connections, a connection owns its link, session and addresses.
 * Calls belong to the client (call.c); a session only refers to them. */
#include "client_internal.h"
#include "loop_internal.h"
#include "tls_internal.h"

#include <netinet/in.h>
#include <stdio.h>

enum { DIALS_MAX = 64 }; /* concurrent handshakes per client */

struct pool_conn {
    struct http_client *client;
    struct list_item item;
    struct dial_lookup *lookup;     /* NULL: not in progress */
    struct dial_address *addresses; /* owned */
    size_t address_count;
    size_t address_at; /* the next one to try */
    struct link *link;
    struct client_session *session; /* NULL: dialing */
    struct timer timer;
    int64_t dial_end_ns;   /* for all addresses together */
    int64_t received_ns;   /* last time that any byte arrived */
    int64_t idle_since_ns; /* 0: it carries a call */
    int64_t pinged_ns;     /* ping sent and nothing received since; 0: none */
    unsigned generation;   /* of the TLS files that it was dialed with */
    bool retired;          /* gets no new calls; closed when the last one has ended */
    bool dead;             /* out of the pool; freed at the end of the turn */
    struct loop_garbage garbage;
};

static void on_timer(struct timer *timer);
static void run_pump(struct deferred *d);
static void try_address(struct pool_conn *conn);

/* --- life --- */

static void free_conn(struct loop_garbage *garbage)
{
    struct pool_conn *conn = container_of(garbage, struct pool_conn, garbage);
    if (conn->session)
        conn->session->ops->free(conn->session);
    free(conn->addresses);
    free(conn);
}

/* Takes the connection out of the pool. Does not fail its calls: the caller has done that, or does
 * it next (conn_fail), or they are canceled. */
static void conn_close(struct pool_conn *conn)
{
    struct http_client *c = conn->client;
    if (conn->dead)
        return;
    conn->dead = true;
    list_remove(&conn->item);
    if (!conn->session)
        c->dialing--;
    dial_lookup_cancel(conn->lookup);
    link_free(conn->link);
    conn->link = NULL;
    timer_stop(&conn->timer);
    loop_free_later(c->loop, &conn->garbage, free_conn);
}

/* Moves the timer to `deadline` if that is earlier: see "One timer" above. */
static void arm_timer(struct pool_conn *conn, int64_t deadline)
{
    if (!timer_is_set(&conn->timer) || deadline < conn->timer.node.key)
        timer_set(conn->client->loop, &conn->timer, deadline, on_timer);
}

/* Ends an established connection; its calls fail or are retried on another one. */
static void conn_fail(struct pool_conn *conn, const err_t *why)
{
    struct http_client *c = conn->client;
    struct client_session *session = conn->session;
    conn_close(conn);
    session->ops->closed(session, why);
    if (!c->closing)
        pool_pump(c);
}

/* Runs after every event on an established connection: adjusts reading, idle time and the end, and
 * assigns queued calls if there is room. */
static void conn_update(struct pool_conn *conn)
{
    struct client_session *s = conn->session;
    if (conn->dead || !s || !conn->link)
        return;
    link_set_reading(conn->link, !s->full);
    link_set_read_delay(conn->link, s->carried && s->delayable == s->carried
                                        ? loop_scale_timeout(conn->client->loop,
                                                             conn->client->options.read_delay_ns)
                                        : 0);
    if (s->carried)
        conn->idle_since_ns = 0;
    else if (!conn->idle_since_ns)
        conn->idle_since_ns = conn->client->loop->mono_ns;
    if (!s->carried && (s->over || conn->retired))
        link_finish(conn->link);
    else if (conn->idle_since_ns)
        arm_timer(conn,
                  conn->idle_since_ns + loop_scale_timeout(conn->client->loop,
                                                           conn->client->options.idle_timeout_ns));
    if (s->room && conn->client->queue.n)
        pool_pump(conn->client);
}

/* --- callbacks of the session --- */

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
    conn_update(conn);
}

/* --- callbacks of the link --- */

static void on_connected(void *owner)
{
    struct pool_conn *conn = owner;
    struct loop *loop = conn->client->loop;
    timer_set(loop, &conn->timer,
              loop->mono_ns + loop_scale_timeout(loop, conn->client->options.handshake_timeout_ns),
              on_timer);
}

/* The handshake is over: the protocol is known and the session begins. */
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
    c->dialing--;
    c->http1 = !http2;
    conn->received_ns = c->loop->mono_ns;
    conn->session = http2 ? h2_client_new(&host) : h1_client_new(&host);
    if (conn->session->ops->ping)
        arm_timer(conn, c->loop->mono_ns + loop_scale_timeout(c->loop, c->options.ping_after_ns));
    conn_update(conn);
    pool_pump(c);
}

/* Bytes that break the protocol end the connection. On an idle one no call is affected: no error.
 */
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
            conn_fail(conn, idle ? NULL : &e);
    } else {
        conn_update(conn);
    }
}

static void on_fill(void *owner, struct buf *out, size_t room)
{
    struct pool_conn *conn = owner;
    if (!conn->session)
        return;
    conn->session->ops->fill(conn->session, out, room);
    conn_update(conn);
}

/* Fails the calls that waited for this dial: all queued ones, or just one with HTTP/1.1, where each
 * call has its own dial. */
static void fail_dial(struct pool_conn *conn, const err_t *why)
{
    struct http_client *c = conn->client;
    struct list failed = { 0 }; /* separate: http_call_fail() runs callbacks that may end others */
    for (size_t left = c->http1 ? MIN(c->queue.n, 1u) : c->queue.n; left; left--)
        list_move(&failed, c->queue.first);
    conn_close(conn);
    for (struct http_call *call; (call = list_first(&failed, struct http_call, queued));) {
        list_remove(&call->queued);
        http_call_fail(call, why, false);
    }
    if (!c->closing && c->queue.n)
        pool_pump(c);
}

/* An established connection fails its calls; a dial tries the next address if there is one. */
static void on_closed(void *owner, const err_t *why)
{
    struct pool_conn *conn = owner;
    err_t e;
    if (conn->session) {
        conn_fail(conn, why);
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
        err_set(&e, ECONNRESET, "%s: connection closed before a request could be sent",
                conn->client->name);
    fail_dial(conn, why ? why : &e);
}

static const struct link_events conn_events = {
    .connected = on_connected,
    .opened = on_opened,
    .received = on_received,
    .fill = on_fill,
    .closed = on_closed,
};

/* --- dialing --- */

/* Connects to the next address. Each gets an equal share of the remaining time, so that one that
 * drops packets does not use up the time of the others. */
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
        const struct dial_address *a = &conn->addresses[conn->address_at++];
        r = link_connect(c->loop, (const struct sockaddr *)&a->at, a->n, &o, &conn->link, &e);
        timer_set(c->loop, &conn->timer, c->loop->mono_ns + share, on_timer);
    }
    if (r < 0)
        fail_dial(conn, &e);
}

/* Is the address allowed by the owner of the client? Any other family than IP is not. */
static bool is_allowed(const struct http_client *c, const struct dial_address *a)
{
    const struct sockaddr_in *in = (const void *)&a->at;
    const struct sockaddr_in6 *in6 = (const void *)&a->at;
    if (!c->options.allow_address)
        return true;
    if (a->at.ss_family == AF_INET)
        return c->options.allow_address(c->options.context, (const void *)&in->sin_addr, 4);
    return a->at.ss_family == AF_INET6 &&
           c->options.allow_address(c->options.context, (const void *)&in6->sin6_addr, 16);
}

static void on_looked_up(void *owner, const struct dial_address *addresses, size_t n,
                         const err_t *why)
{
    struct pool_conn *conn = owner;
    conn->lookup = NULL;
    if (why) {
        fail_dial(conn, why);
        return;
    }
    conn->addresses = mem_zero(n, sizeof(*addresses));
    for (size_t i = 0; i < n; i++)
        if (is_allowed(conn->client, &addresses[i]))
            conn->addresses[conn->address_count++] = addresses[i];
    if (conn->address_count == 0) {
        err_t e;
        err_set(&e, EACCES, "%s: connecting to its address is not allowed", conn->client->name);
        fail_dial(conn, &e);
        return;
    }
    try_address(conn);
}

static void start_dial(struct http_client *c)
{
    struct pool_conn *conn = mem_zero(1, sizeof(*conn));
    conn->client = c;
    list_prepend(&c->conns, &conn->item);
    c->dialing++;
    conn->generation = c->tls ? tls_reload_if_changed(c->tls) : 0;
    conn->dial_end_ns = c->loop->mono_ns + loop_scale_timeout(c->loop, c->options.dial_timeout_ns);
    arm_timer(conn, conn->dial_end_ns);
    conn->lookup = dial_lookup_start(c->loop, c->uri.host, c->uri.port, on_looked_up, conn);
}

/* --- time --- */

static void on_dial_timeout(struct pool_conn *conn)
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
    err_set(&e, ETIMEDOUT, "%s: %s timed out", c->name, reached ? "TLS handshake" : "connect");
    fail_dial(conn, &e);
}

/* HTTP/2 only: pings after ping_after_ns without a byte, and gives up ping_timeout_ns later. TCP
 * keep-alive alone would take minutes to notice that the peer is gone. */
static void check_keepalive(struct pool_conn *conn)
{
    struct http_client *c = conn->client;
    int64_t now = c->loop->mono_ns;
    int64_t after = loop_scale_timeout(c->loop, c->options.ping_after_ns);
    int64_t timeout = loop_scale_timeout(c->loop, c->options.ping_timeout_ns);
    if (conn->pinged_ns && now >= conn->pinged_ns + timeout) {
        err_t e;
        err_set(&e, ETIMEDOUT, "%s: connection lost: no response to an HTTP/2 ping", c->name);
        conn_fail(conn, &e);
        return;
    }
    if (!conn->pinged_ns && now >= conn->received_ns + after) {
        conn->session->ops->ping(conn->session);
        conn->pinged_ns = now;
    }
    arm_timer(conn, conn->pinged_ns ? conn->pinged_ns + timeout : conn->received_ns + after);
}

static void on_timer(struct timer *timer)
{
    struct pool_conn *conn = container_of(timer, struct pool_conn, timer);
    struct http_client *c = conn->client;
    if (!conn->session) {
        on_dial_timeout(conn);
        return;
    }
    int64_t idle = loop_scale_timeout(c->loop, c->options.idle_timeout_ns);
    if (conn->idle_since_ns && c->loop->mono_ns >= conn->idle_since_ns + idle)
        conn->retired = true;
    else if (conn->session->ops->ping)
        check_keepalive(conn);
    conn_update(conn);
}

/* --- assigning calls --- */

/* The fullest connection that still has room, or NULL: see "Which connection" above. */
static struct pool_conn *pick_conn(struct http_client *c, unsigned generation)
{
    struct pool_conn *best = NULL;
    list_each(struct pool_conn, conn, &c->conns, item) {
        if (!conn->session || conn->retired || conn->session->over)
            continue;
        if (c->tls && conn->generation != generation) {
            conn->retired = true; /* TLS files changed: new calls use the new credentials */
            continue;
        }
        if (conn->session->room && (!best || conn->session->carried > best->session->carried))
            best = conn;
    }
    return best;
}

static void start_call(struct pool_conn *conn, struct http_call *call)
{
    list_remove(&call->queued);
    call->session = conn->session;
    call->attempts++;
    call->reused = conn->session->served > 0;
    conn->session->ops->start_call(conn->session, call);
    conn_update(conn);
}

/* Dials for calls that found no room. HTTP/1.1: one connection per queued call. HTTP/2: one more,
 * once the stream limits of the present ones are known. */
static void dial_for_queue(struct http_client *c)
{
    size_t wanted = MIN(c->queue.n, c->http1 ? (size_t)DIALS_MAX : 1);
    list_each(struct pool_conn, conn, &c->conns, item) {
        if (c->http1)
            break;
        if (conn->session && conn->session->awaiting_settings && !conn->session->over &&
            !conn->retired)
            return;
    }
    while (c->dialing < wanted && c->conns.n < c->options.max_connections)
        start_dial(c);
}

/* Assigns queued calls until no connection has room, then dials for the rest. */
static void run_pump(struct deferred *d)
{
    struct http_client *c = container_of(d, struct http_client, pump);
    unsigned generation = c->tls && c->queue.n ? tls_reload_if_changed(c->tls) : 0;
    struct pool_conn *conn;
    struct http_call *call;
    while ((call = list_first(&c->queue, struct http_call, queued)) &&
           (conn = pick_conn(c, generation)))
        start_call(conn, call);
    if (!c->closing)
        dial_for_queue(c);
}

void pool_pump(struct http_client *c)
{
    loop_defer(c->loop, LOOP_SOON, &c->pump, run_pump);
}

void pool_close(struct http_client *c)
{
    for (struct pool_conn *conn; (conn = list_first(&c->conns, struct pool_conn, item));)
        conn_close(conn);
}
