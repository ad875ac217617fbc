/* Exchanges: one request and its answer, the same for HTTP/1.1 and HTTP/2. http_server.h is the
 * handler's view, exchange.h the protocols'.
 *
 *      protocol --exchange_put_*()--> request --deliver--> handler
 *                                                             |
 *      protocol <----begin_answer(head)---- exchange_answer(), exchange_stream()
 *      protocol --exchange_read()--> pending <--pull()-- source
 *                                       '-- gzip, if the client accepts it
 *
 * The head of an answer goes to the protocol at once. The body is read from here when the client
 * has room, and a stream's source is pulled only then. So an idle watch costs this struct and
 * nghttp2's stream, and a slow client holds at most one pull (PULL_BYTES) of a stream.
 *
 * Invariants:
 *   - An exchange belongs to the protocol while RECEIVING and ANSWERING, and to the handler while
 *     HANDLED.
 *   - `session` is NULL once the client has disconnected. Answering such an exchange just frees it.
 *   - The memory held for the client is counted in the session and in the server after every change
 *     (count_held), and uncounted by session_remove().
 *   - A source's closed() runs exactly once and last.
 *
 * Requests are freed when the answer begins, not when it ends, because a watch lives for hours. The
 * loop keeps KEPT_REQUESTS of them with their memory, so that a busy server rarely calls malloc. */
#include "exchange.h"

#include "loop_internal.h"
#include "session.h"

enum {
    PULL_BYTES = 64 * 1024, /* requested from a source that is compressed */
    KEPT_REQUESTS = 8,      /* per loop */
    KEPT_BYTES = 32 * 1024, /* larger requests are freed instead of kept */
};

static struct http_peer *http_peer_ref(struct http_peer *p)
{
    p->references++;
    return p;
}

void http_peer_unref(struct http_peer *p)
{
    if (!p || --p->references)
        return;
    free(p->identity);
    free(p);
}

/* --- requests, kept for their memory --- */

static void request_free(struct exchange_request *r)
{
    arena_done(&r->arena);
    vec_done(&r->headers);
    vec_done(&r->added);
    buf_done(&r->body);
    free(r);
}

void exchange_free_requests(struct loop *loop)
{
    for (struct exchange_request *r = loop->kept_requests, *next; r; r = next) {
        next = r->next;
        request_free(r);
    }
    loop->kept_requests = NULL;
    loop->n_kept_requests = 0;
}

static struct exchange_request *request_take(struct loop *loop)
{
    struct exchange_request *r = loop->kept_requests;
    if (!r)
        return mem_zero(1, sizeof(*r));
    loop->kept_requests = r->next;
    loop->n_kept_requests--;
    return r;
}

/* Keeps the request for the next exchange, unless it is large or enough are kept. */
static void request_release(struct loop *loop, struct exchange_request *r)
{
    if (!r)
        return;
    http_peer_unref(r->peer);
    if (loop->n_kept_requests == KEPT_REQUESTS ||
        arena_bytes(&r->arena) + r->body.cap + r->headers.cap * sizeof(struct http_header) >
            KEPT_BYTES) {
        request_free(r);
        return;
    }
    arena_reset(&r->arena, (struct arena_mark){ 0 });
    r->headers.n = r->added.n = 0;
    buf_clear(&r->body);
    *r = (struct exchange_request){ .next = loop->kept_requests,
                                    .arena = r->arena,
                                    .headers = r->headers,
                                    .added = r->added,
                                    .body = r->body };
    loop->kept_requests = r;
    loop->n_kept_requests++;
}

/* --- memory of answers --- */

/* Updates the counters of memory held for the client. Must follow every change of `pending`. */
static void count_held(struct exchange *x)
{
    struct session *s = x->session;
    if (!s)
        return;
    size_t now = x->pending.cap + x->source_bytes;
    if (!s->held)
        s->taken_ns = x->loop->mono_ns; /* nothing was waiting until now */
    s->held += now - x->held;
    *s->host.unread_bytes += now - x->held;
    bool more = now > x->held;
    x->held = now;
    if (more && *s->host.unread_bytes > s->host.options->max_unread_bytes)
        s->host.unread_full(s->host.owner);
}

void exchange_count_source(struct exchange *x, size_t bytes)
{
    CHECK(x, EXCHANGE_MAGIC);
    x->source_bytes = bytes;
    count_held(x);
}

void exchange_discard_body(struct exchange *x)
{
    x->ended = x->cut = true;
    x->waiting = false;
    buf_done(&x->pending);
    x->pending_at = 0;
    count_held(x);
}

/* --- life --- */

struct exchange *exchange_new(struct session *session, struct loop *loop, struct http_peer *peer)
{
    struct exchange *x = mem_zero(1, sizeof(*x));
    x->magic = EXCHANGE_MAGIC;
    x->loop = loop;
    x->left = -1;
    x->request = request_take(loop);
    x->request->peer = http_peer_ref(peer);
    session_add(session, x);
    return x;
}

static void exchange_free(struct exchange *x)
{
    if (x->session)
        session_remove(x->session, x);
    loop_cancel_deferred(&x->lost);
    request_release(x->loop, x->request);
    for (struct exchange_trailer *t = x->trailers, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    buf_done(&x->pending);
    gzip_free(x->gzip);
    x->magic = 0;
    free(x);
}

void exchange_finish(struct exchange *x, bool complete)
{
    CHECK(x, EXCHANGE_MAGIC);
    if (x->session)
        session_remove(x->session, x);
    void (*closed)(void *, bool) = x->source.closed;
    x->source.closed = NULL;
    if (closed)
        closed(x->source.context, complete);
    exchange_free(x);
}

void exchange_disconnect(struct exchange *x)
{
    if (x->state != EXCHANGE_HANDLED) {
        exchange_finish(x, false);
        return;
    }
    session_remove(x->session, x);
    if (x->gone)
        x->gone(x->gone_context); /* may free `x` */
}

/* --- the request, as the protocol reads it --- */

bool exchange_put_header(struct exchange *x, str name, str value, size_t limit)
{
    struct exchange_request *r = x->request;
    r->header_bytes += name.n + value.n + 32; /* the overhead HTTP/2 counts (RFC 9113, 6.5.2) */
    if (r->header_bytes > limit)
        return false;
    struct http_header header = { arena_lower(&r->arena, name), arena_str(&r->arena, value) };
    vec_push(&r->headers, header);
    return true;
}

bool exchange_put_body(struct exchange *x, str bytes, size_t limit)
{
    if (bytes.n > limit || x->request->body.n > limit - bytes.n)
        return false;
    buf_put(&x->request->body, bytes);
    return true;
}

/* --- the request, as the handler reads it --- */

static const struct exchange_request *request_of(const struct exchange *x)
{
    CHECK(x, EXCHANGE_MAGIC);
    assert(x->request); /* freed once the answer has begun */
    return x->request;
}

str exchange_method(const struct exchange *x)
{
    return request_of(x)->method;
}

str exchange_path(const struct exchange *x)
{
    str target = request_of(x)->target;
    return str_upto(target, str_find_char(target, '?'));
}

str exchange_query(const struct exchange *x)
{
    str target = request_of(x)->target;
    size_t question = str_find_char(target, '?');
    return question == SIZE_MAX ? S("") : str_from(target, question + 1);
}

str exchange_body(const struct exchange *x)
{
    return buf_str(&request_of(x)->body);
}

struct http_headers exchange_headers(const struct exchange *x)
{
    const struct exchange_request *r = request_of(x);
    return (struct http_headers){ r->headers.at, r->headers.n };
}

str exchange_header(const struct exchange *x, str name)
{
    return http_header_get(exchange_headers(x), name);
}

const struct tls_peer *exchange_peer(const struct exchange *x)
{
    return request_of(x)->peer->identity;
}

struct arena *exchange_arena(struct exchange *x)
{
    request_of(x);
    return &x->request->arena;
}

bool exchange_is_gone(const struct exchange *x)
{
    CHECK(x, EXCHANGE_MAGIC);
    return !x->session;
}

void exchange_on_gone(struct exchange *x, void (*gone)(void *context), void *context)
{
    CHECK(x, EXCHANGE_MAGIC);
    x->gone = gone;
    x->gone_context = context;
}

/* --- the answer --- */

void exchange_add_header(struct exchange *x, str name, str value)
{
    request_of(x);
    struct exchange_request *r = x->request;
    struct http_header header = { arena_str(&r->arena, name), arena_str(&r->arena, value) };
    vec_push(&r->added, header);
}

void exchange_add_trailer(struct exchange *x, str name, str value)
{
    struct exchange_trailer *t = mem_zero(1, sizeof(*t) + name.n + value.n);
    memcpy(t->text, name.p, name.n);
    if (value.n)
        memcpy(t->text + name.n, value.p, value.n);
    t->name = (str){ t->text, name.n };
    t->value = (str){ t->text + name.n, value.n };
    struct exchange_trailer **end = &x->trailers;
    while (*end)
        end = &(*end)->next;
    *end = t;
}

static bool has_no_body(const struct exchange *x, int status)
{
    return status < 200 || status == 204 || status == 304 || str_eq(x->request->method, S("HEAD"));
}

/* Passes the head to the protocol and releases the request. */
static void begin_answer(struct exchange *x, int status, struct http_headers headers,
                         int64_t length)
{
    struct answer_head head = { .status = status,
                                .headers = headers,
                                .added = { x->request->added.at, x->request->added.n },
                                .length = length,
                                .gzip = x->gzip != NULL };
    x->state = EXCHANGE_ANSWERING;
    x->head_only = has_no_body(x, status);
    if (x->head_only) {
        buf_done(&x->pending);
        x->ended = true;
        count_held(x);
    }
    x->session->ops->begin_answer(x->session, x, &head);
    request_release(x->loop, x->request);
    x->request = NULL;
}

static bool may_compress(const struct exchange *x, struct http_headers headers)
{
    return http_value_has_token(exchange_header(x, S("accept-encoding")), S("gzip")) &&
           !http_header_get(headers, S("content-encoding")).p;
}

/* A whole body as a stream, so that compressing a large one does not block the loop. */
struct whole {
    struct buf body;
    size_t at;
};

static enum stream_more pull_whole(void *context, struct buf *out, size_t room)
{
    struct whole *w = context;
    str part = str_upto(str_from(buf_str(&w->body), w->at), room);
    buf_put(out, part);
    w->at += part.n;
    return w->at == w->body.n ? STREAM_END : STREAM_MORE;
}

static void close_whole(void *context, bool complete UNUSED)
{
    struct whole *w = context;
    buf_done(&w->body);
    free(w);
}

void exchange_answer_buf(struct exchange *x, int status, struct http_headers headers,
                         struct buf *body)
{
    CHECK(x, EXCHANGE_MAGIC);
    assert(x->state == EXCHANGE_HANDLED);
    struct buf taken = *body;
    *body = (struct buf){ 0 };
    if (!x->session) {
        buf_done(&taken);
        exchange_free(x);
    } else if (taken.n > x->session->host.options->gzip_min_bytes && may_compress(x, headers)) {
        struct whole *w = mem_zero(1, sizeof(*w));
        w->body = taken;
        exchange_count_source(x, taken.cap);
        exchange_stream(x, status, headers,
                        &(struct stream_source){ .pull = pull_whole,
                                                 .closed = close_whole,
                                                 .context = w,
                                                 .compress = true,
                                                 .length = (int64_t)taken.n });
    } else {
        x->pending = taken;
        x->ended = true;
        count_held(x);
        begin_answer(x, status, headers, (int64_t)taken.n);
    }
}

void exchange_answer(struct exchange *x, int status, struct http_headers headers, str body)
{
    struct buf copy = { 0 };
    buf_put(&copy, body);
    exchange_answer_buf(x, status, headers, &copy);
}

void exchange_abort(struct exchange *x)
{
    CHECK(x, EXCHANGE_MAGIC);
    assert(x->state == EXCHANGE_HANDLED);
    if (!x->session) {
        exchange_free(x);
        return;
    }
    x->state = EXCHANGE_ANSWERING;
    request_release(x->loop, x->request);
    x->request = NULL;
    x->ended = x->cut = true;
    x->session->ops->abort(x->session, x);
}

/* --- streams --- */

static void report_lost(struct deferred *d)
{
    exchange_finish(container_of(d, struct exchange, lost), false);
}

void exchange_stream(struct exchange *x, int status, struct http_headers headers,
                     const struct stream_source *source)
{
    CHECK(x, EXCHANGE_MAGIC);
    assert(x->state == EXCHANGE_HANDLED);
    x->source = *source;
    if (!x->session) {
        x->state = EXCHANGE_ANSWERING;
        loop_defer(x->loop, LOOP_FLUSH, &x->lost, report_lost);
        return;
    }
    bool head_only = has_no_body(x, status);
    if (source->compress && !head_only && may_compress(x, headers))
        x->gzip = gzip_writer_new();
    x->left = source->length;
    begin_answer(x, status, headers, x->gzip ? -1 : source->length);
}

void exchange_wake_stream(struct exchange *x)
{
    CHECK(x, EXCHANGE_MAGIC);
    x->woken = true;
    if (!x->waiting || !x->session)
        return;
    x->waiting = false;
    x->session->ops->wake(x->session, x);
}

void exchange_end_stream(struct exchange *x, bool cut)
{
    CHECK(x, EXCHANGE_MAGIC);
    if (x->ended || !x->session)
        return;
    x->ended = true;
    x->cut = cut || x->left > 0;
    if (x->gzip && !cut)
        gzip_write(x->gzip, S(""), true, &x->pending);
    if (cut) {
        x->session->ops->abort(x->session, x);
    } else if (x->waiting) {
        x->waiting = false;
        x->session->ops->wake(x->session, x);
    }
}

/* Pulls the source once into `pending`, compressed if negotiated. A source that does not keep the
 * length it announced is cut: the client must not take a wrong body for a complete one. */
static void pull_source(struct exchange *x, size_t room)
{
    auto_buf struct buf raw = { 0 };
    struct buf *out = x->gzip ? &raw : &x->pending;
    x->woken = false;
    enum stream_more more =
        x->source.pull(x->source.context, out, x->gzip ? (size_t)PULL_BYTES : room);
    if (x->left >= 0 && (uint64_t)out->n > (uint64_t)x->left)
        more = STREAM_CUT;
    if (x->left >= 0 && more != STREAM_CUT)
        x->left -= (int64_t)out->n;
    if (more == STREAM_END && x->left > 0)
        more = STREAM_CUT;
    if (more == STREAM_CUT)
        buf_clear(out);
    else if (x->gzip)
        gzip_write(x->gzip, buf_str(&raw), more == STREAM_END, &x->pending);
    x->ended = more == STREAM_END || more == STREAM_CUT;
    x->cut = more == STREAM_CUT;
    x->waiting = more == STREAM_WAIT && !x->woken;
}

/* Moves up to `room` bytes out of `pending`. */
static size_t take_pending(struct exchange *x, char *to, size_t room)
{
    size_t n = MIN(x->pending.n - x->pending_at, room);
    if (n)
        memcpy(to, x->pending.p + x->pending_at, n);
    x->pending_at += n;
    if (x->pending_at == x->pending.n) {
        buf_clear(&x->pending);
        x->pending_at = 0;
    }
    return n;
}

size_t exchange_read(struct exchange *x, char *to, size_t room, enum stream_more *ret)
{
    CHECK(x, EXCHANGE_MAGIC);
    size_t n = take_pending(x, to, room);
    while (n < room && !x->ended && !x->waiting) {
        pull_source(x, room - n);
        n += take_pending(x, to + n, room - n);
    }
    if (x->pending.n)
        *ret = STREAM_MORE;
    else
        *ret = x->cut ? STREAM_CUT : x->ended ? STREAM_END : x->waiting ? STREAM_WAIT : STREAM_MORE;
    if (!x->pending.n && *ret != STREAM_MORE)
        buf_done(&x->pending); /* an idle stream holds no buffer */
    if (n && x->session)
        x->session->taken_ns = x->loop->mono_ns;
    x->blocked_ns = 0;
    count_held(x);
    return n;
}
