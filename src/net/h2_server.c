/* HTTP/2 for the server, on nghttp2: see session.h.
 *
 *      feed() --> nghttp2 --on_begin_headers()--> exchange (RECEIVING)
 *                    |-----on_header(), on_data()--> its request
 *                    '-----on_frame(END_STREAM)----> parked, or delivered to the handler
 *      fill() <-- nghttp2 <--h2_answer.c-- exchange_read()
 *
 * nghttp2 does the framing, header compression and windows; each stream is an exchange. An idle
 * watch is a deferred data source: it costs a stream of nghttp2 and the exchange. Priorities are
 * declined and closed streams are not kept, because both only cost memory.
 *
 * What a client can cost is bounded:
 *   - Answers that it does not read: beyond max_unread_connection, complete requests are parked and
 *     delivered, oldest first, when the client has read.
 *   - Streams whose window stays closed are reset after write_timeout_ns. Only streams that the
 *     client itself blocks count, not those that wait behind others.
 *   - Header blocks above the limit are decoded to their end and answered with 431, because the
 *     state of the header compression must be kept; a block of BOMB_FACTOR times the limit, or
 *     OVERSIZED_MAX such requests, ends the connection.
 *   - Frames that cause work but carry none use up a budget (CHEAP_*) that refills with time and
 *     with the data that the client is sent. Running out ends the connection.
 *   - Bodies of refused requests are ignored up to IGNORED_BYTES. An immediate reset would be
 *     allowed, but makes clients lose the answer with the reason.
 *
 * Invariant: nghttp2's user data of a stream is its exchange until on_stream_close(). `receiving`
 * counts exchanges in RECEIVING (parked ones included), `alive` those with a stream. */
#include "h2_answer.h"
#include "http.h"
#include "loop_internal.h"

enum {
    STREAM_WINDOW = 256 * 1024, /* bytes, for request bodies */
    CONNECTION_WINDOW = 1024 * 1024,
    IGNORED_BYTES = 16 * 1024 * 1024, /* of a refused request; then its stream is reset */
    BOMB_FACTOR = 8,                  /* times max_header_bytes: not a mistake any more */
    OVERSIZED_MAX = 32,               /* requests with too large headers per connection */
    /* Cheap frames are empty DATA, PING, SETTINGS, PRIORITY, WINDOW_UPDATE and unknown ones. A
     * client may save up CHEAP_FRAMES, and the budget grows by CHEAP_PER_SECOND. What it is sent earns it others beside
     * that, without a bound: Go's client replies to every 4 KiB that it reads with two WINDOW_UPDATEs. */
    CHEAP_FRAMES = 2000,
    CHEAP_PER_SECOND = 200,
    BYTES_PER_EARNED = 1024,
    STALL_CHECKS = 4, /* per write_timeout_ns */
};

struct h2_server {
    struct session base;
    nghttp2_session *ng;
    size_t receiving;   /* exchanges whose request is not delivered yet */
    size_t alive;       /* exchanges with a stream */
    size_t parked;      /* complete requests that wait until the client reads answers */
    int64_t since_ns;   /* start of the idle time; while receiving: last check for slow requests */
    int64_t stall_ns;   /* last check for stalled streams; 0: nothing is being sent */
    int64_t cheap_ns;   /* when `cheap` was last refilled */
    int64_t cheap;      /* cheap frames that the client may still send */
    int64_t earned;     /* and in reply to DATA that it was sent */
    unsigned oversized; /* requests with too large headers so far */
    bool draining, abusive; /* abusive: the connection was ended for it */
};

static struct h2_server *h2_of(struct session *s)
{
    return container_of(s, struct h2_server, base);
}

static int64_t now_of(const struct h2_server *h)
{
    return h->base.host.loop->mono_ns;
}

/* The session is over when nghttp2 is done, or when it drains and no stream is left. */
static void check_over(struct h2_server *h)
{
    bool done = !nghttp2_session_want_read(h->ng) && !nghttp2_session_want_write(h->ng);
    bool drained = h->draining && !h->alive && !nghttp2_session_want_write(h->ng);
    if (done || drained)
        h->base.over = true;
}

/* The request is complete, refused or lost: it is not read any further. */
static void end_receiving(struct h2_server *h, struct exchange *x)
{
    *h->base.host.pending_bytes -= x->request->body.n;
    h->receiving--;
}

/* --- floods --- */

/* Ends the connection, once, and reports why. */
static void close_abusive(struct h2_server *h, const char *why)
{
    if (h->abusive)
        return;
    h->abusive = true;
    session_report_limit(&h->base, "connection closed: %s", why);
    nghttp2_session_terminate_session(h->ng, NGHTTP2_ENHANCE_YOUR_CALM);
    h->base.host.want_fill(h->base.host.owner);
}

/* Charges cheap frames to the client's budget. */
static int on_begin_frame(nghttp2_session *ng UNUSED, const nghttp2_frame_hd *hd, void *data)
{
    struct h2_server *h = data;
    bool works =
        hd->type == NGHTTP2_HEADERS || hd->type == NGHTTP2_CONTINUATION ||
        (hd->type == NGHTTP2_DATA && (hd->length || (hd->flags & NGHTTP2_FLAG_END_STREAM)));
    if (works)
        return 0;
    if (h->earned > 0) {
        h->earned--;
        return 0;
    }
    int64_t elapsed_ms = (now_of(h) - h->cheap_ns) / NS_PER_MS;
    if (elapsed_ms > 0) {
        h->cheap = MIN(h->cheap + MIN(elapsed_ms, 3600000) * CHEAP_PER_SECOND / 1000, CHEAP_FRAMES);
        h->cheap_ns = now_of(h);
    }
    if (h->cheap-- <= 0)
        close_abusive(h, "too many control frames without a request");
    return 0;
}

static int on_frame_sent(nghttp2_session *ng UNUSED, const nghttp2_frame *frame, void *data)
{
    struct h2_server *h = data;
    if (frame->hd.type == NGHTTP2_DATA)
        h->earned += 1 + (int64_t)frame->hd.length / BYTES_PER_EARNED;
    return 0;
}

/* --- requests --- */

/* Answers without the handler. The rest of the request is ignored. */
static void send_refusal(struct h2_server *h, struct exchange *x, int status)
{
    end_receiving(h, x);
    struct buf body = { 0 };
    const char *type = session_put_refusal(&h->base, status, &body);
    x->state = EXCHANGE_HANDLED;
    if (!x->request->method.p)
        x->request->method = S("GET");
    exchange_answer_buf(x, status, HTTP_HEADERS({ S("content-type"), str_c(type) }), &body);
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    struct h2_server *h = data;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct exchange *x = exchange_new(&h->base, h->base.host.loop, h->base.host.peer);
    x->stream_id = frame->hd.stream_id;
    x->started_ns = now_of(h);
    if (h->receiving++ == 0)
        h->since_ns = now_of(h);
    h->alive++;
    nghttp2_session_set_stream_user_data(ng, x->stream_id, x);
    return 0;
}

static void put_pseudo(struct exchange_request *r, str name, str value)
{
    if (str_eq(name, S(":method")))
        r->method = arena_str(&r->arena, value);
    else if (str_eq(name, S(":path")))
        r->target = arena_str(&r->arena, value);
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2 decides the parameters */
static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags UNUSED,
                     void *data)
{
    struct h2_server *h = data;
    struct exchange *x = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    if (!x || x->state != EXCHANGE_RECEIVING || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0; /* trailers are ignored */
    struct exchange_request *r = x->request;
    str n = { (const char *)name, name_n }, v = { (const char *)value, value_n };
    size_t limit = h->base.host.options->max_header_bytes;
    if (r->header_bytes > limit) { /* refused at the end of the block; nothing is kept until then */
        r->header_bytes += n.n + v.n + 32;
        if (r->header_bytes <= limit * BOMB_FACTOR)
            return 0;
        close_abusive(h, "request headers decompress to many times the limit");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (n.n && n.p[0] == ':' && !str_eq(n, S(":authority"))) {
        r->header_bytes += n.n + v.n + 32;
        if (r->header_bytes <= limit)
            put_pseudo(r, n, v);
    } else {
        exchange_put_header(x, n.p[0] == ':' ? S("host") : n, v, limit);
    }
    return 0;
}

/* Part of a request's body. */
static int on_data(nghttp2_session *ng, uint8_t flags UNUSED, int32_t stream_id,
                   const uint8_t *bytes, size_t n, void *data)
{
    struct h2_server *h = data;
    const struct http_server_options *o = h->base.host.options;
    struct exchange *x = nghttp2_session_get_stream_user_data(ng, stream_id);
    if (!x)
        return 0;
    if (x->state != EXCHANGE_RECEIVING) {
        x->ignored += n;
        if (x->ignored > IGNORED_BYTES)
            nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_NO_ERROR);
        return 0;
    }
    if (*h->base.host.pending_bytes + n > o->max_pending_bytes) {
        send_refusal(h, x, 503);
    } else if (!exchange_put_body(x, (str){ (const char *)bytes, n }, o->max_body_bytes)) {
        send_refusal(h, x, 413);
    } else {
        *h->base.host.pending_bytes += n;
    }
    return 0;
}

/* :authority is stored as Host. A Host header next to it must be equal: an intermediary may have
 * acted on the other one. */
static bool has_two_hosts(const struct exchange *x)
{
    struct http_headers all = exchange_headers(x);
    str host = http_header_get(all, S("host"));
    for (size_t i = 0; i < all.n; i++)
        if (str_eq(all.at[i].name, S("host")) && !str_eq_nocase(all.at[i].value, host))
            return true;
    return false;
}

/* The status to refuse the request with, or 0. nghttp2 has validated the pseudo-headers. */
static int refusal_status(struct h2_server *h, const struct exchange *x)
{
    const struct exchange_request *r = x->request;
    int64_t length;
    str stated = exchange_header(x, S("content-length"));
    if (r->header_bytes > h->base.host.options->max_header_bytes)
        return 431;
    if (has_two_hosts(x))
        return 400;
    if (str_eq(r->method, S("CONNECT")))
        return 405;
    bool star = str_eq(r->target, S("*")) && str_eq(r->method, S("OPTIONS"));
    if (!star && (r->target.n == 0 || r->target.p[0] != '/'))
        return 400;
    if (stated.p && str_to_i64(stated, &length) == 0 &&
        length > (int64_t)h->base.host.options->max_body_bytes)
        return 413;
    return 0;
}

static void deliver_request(struct h2_server *h, struct exchange *x)
{
    end_receiving(h, x);
    x->state = EXCHANGE_HANDLED;
    h->base.host.deliver(h->base.host.owner, x);
}

/* Delivers parked requests, oldest first, while the client's unread answers are below the limit. */
static void deliver_parked(struct h2_server *h)
{
    while (h->parked && !h->base.over &&
           h->base.held <= h->base.host.options->max_unread_connection) {
        struct exchange *first = NULL;
        list_each(struct exchange, x, &h->base.exchanges, item)
            if (x->parked && (!first || x->stream_id < first->stream_id))
                first = x;
        assert(first); /* h->parked counts them */
        first->parked = false;
        h->parked--;
        deliver_request(h, first);
    }
}

/* Refuses, parks or delivers a request when its head or body is complete. */
static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    struct h2_server *h = data;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct exchange *x = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    if (!x || x->state != EXCHANGE_RECEIVING)
        return 0;
    int fault = frame->hd.type == NGHTTP2_HEADERS ? refusal_status(h, x) : 0;
    if (fault) {
        if (fault == 431 && ++h->oversized > OVERSIZED_MAX)
            close_abusive(h, "too many requests with too large headers");
        send_refusal(h, x, fault);
    } else if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
               h->base.held > h->base.host.options->max_unread_connection) {
        x->parked = true;
        h->parked++;
    } else if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        deliver_request(h, x);
    } else if (str_eq_nocase(exchange_header(x, S("expect")), S("100-continue")) &&
               frame->hd.type == NGHTTP2_HEADERS) {
        nghttp2_nv status = { (uint8_t[]){ ":status" }, (uint8_t[]){ "100" }, 7, 3, 0 };
        nghttp2_submit_headers(ng, NGHTTP2_FLAG_NONE, x->stream_id, NULL, &status, 1, NULL);
    }
    return 0;
}

/* The stream is gone, normally or by a reset of either side. */
static int on_stream_close(nghttp2_session *ng, int32_t stream_id, uint32_t code, void *data)
{
    struct h2_server *h = data;
    struct exchange *x = nghttp2_session_get_stream_user_data(ng, stream_id);
    if (!x)
        return 0;
    nghttp2_session_set_stream_user_data(ng, stream_id, NULL);
    if (--h->alive == 0)
        h->since_ns = now_of(h);
    h->parked -= x->parked;
    x->parked = false;
    if (x->state == EXCHANGE_RECEIVING)
        end_receiving(h, x);
    if (x->state == EXCHANGE_ANSWERING)
        exchange_finish(x, code == NGHTTP2_NO_ERROR && x->ended && !x->cut && !x->pending.n);
    else
        exchange_disconnect(x);
    return 0;
}

/* --- answers --- */

static void h2_begin_answer(struct session *s, struct exchange *x, const struct answer_head *head)
{
    struct h2_server *h = h2_of(s);
    h2_answer_submit(h->ng, x, head, loop_http_date(h->base.host.loop));
    if (!h->stall_ns)
        h->stall_ns = now_of(h);
    s->host.want_fill(s->host.owner);
}

static void h2_wake(struct session *s, struct exchange *x)
{
    struct h2_server *h = h2_of(s);
    nghttp2_session_resume_data(h->ng, x->stream_id);
    if (!h->stall_ns)
        h->stall_ns = now_of(h);
    s->host.want_fill(s->host.owner);
}

static void h2_abort(struct session *s, struct exchange *x)
{
    nghttp2_submit_rst_stream(h2_of(s)->ng, NGHTTP2_FLAG_NONE, x->stream_id,
                              NGHTTP2_INTERNAL_ERROR);
    s->host.want_fill(s->host.owner);
}

/* --- the session --- */

static bool h2_feed(struct session *s, str bytes)
{
    struct h2_server *h = h2_of(s);
    if (s->over)
        return false;
    ssize_t used = nghttp2_session_mem_recv(h->ng, (const uint8_t *)bytes.p, bytes.n);
    if (used < 0 || (size_t)used != bytes.n)
        s->over = true;
    if (nghttp2_session_want_write(h->ng))
        s->host.want_fill(s->host.owner);
    check_over(h);
    return !s->over;
}

/* Parked requests are delivered when the output has been taken and there is still room. */
static void h2_fill(struct session *s, struct buf *out, size_t room)
{
    struct h2_server *h = h2_of(s);
    while (out->n < room) {
        const uint8_t *bytes;
        ssize_t n = nghttp2_session_mem_send(h->ng, &bytes);
        if (n < 0)
            s->over = true;
        if (n <= 0)
            break;
        buf_put(out, (str){ (const char *)bytes, (size_t)n });
    }
    if (h->parked && out->n < room) {
        deliver_parked(h);
        if (nghttp2_session_want_write(h->ng))
            s->host.want_fill(s->host.owner);
    }
    check_over(h);
}

static void h2_drain(struct session *s)
{
    struct h2_server *h = h2_of(s);
    h->draining = true;
    nghttp2_submit_goaway(h->ng, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->ng),
                          NGHTTP2_NO_ERROR, NULL, 0);
    s->host.want_fill(s->host.owner);
}

static int64_t stall_limit(const struct session *s)
{
    return loop_scale_timeout(s->host.loop, s->host.options->write_timeout_ns);
}

/* While receiving, the next check for slow requests; otherwise the end of the idle time. */
static int64_t receive_deadline(const struct session *s)
{
    const struct h2_server *h = (const struct h2_server *)s;
    const struct http_server_options *o = s->host.options;
    if (h->alive && !h->receiving)
        return INT64_MAX;
    int64_t limit = h->receiving ? o->header_timeout_ns : o->idle_timeout_ns;
    return h->since_ns + loop_scale_timeout(s->host.loop, limit);
}

static int64_t stall_deadline(const struct session *s)
{
    const struct h2_server *h = (const struct h2_server *)s;
    return h->stall_ns ? h->stall_ns + stall_limit(s) / STALL_CHECKS : INT64_MAX;
}

static int64_t h2_deadline(const struct session *s)
{
    return s->over ? INT64_MAX : MIN(receive_deadline(s), stall_deadline(s));
}

/* Whether a window that the client keeps closed stops this stream. */
static bool is_blocked(struct h2_server *h, const struct exchange *x)
{
    return nghttp2_session_get_remote_window_size(h->ng) <= 0 ||
           nghttp2_session_get_stream_remote_window_size(h->ng, x->stream_id) <= 0;
}

/* Resets streams whose window stayed closed for write_timeout_ns while data waited. */
static void reset_stalled(struct h2_server *h)
{
    int64_t now = now_of(h);
    bool more = false;
    size_t resets = 0;
    list_each(struct exchange, x, &h->base.exchanges, item) {
        if (x->state != EXCHANGE_ANSWERING || x->waiting || x->cut)
            continue;
        more = true;
        if (!is_blocked(h, x)) {
            x->blocked_ns = 0;
        } else if (!x->blocked_ns) {
            x->blocked_ns = now;
        } else if (now - x->blocked_ns >= stall_limit(&h->base)) {
            resets++;
            exchange_discard_body(x);
            nghttp2_submit_rst_stream(h->ng, NGHTTP2_FLAG_NONE, x->stream_id, NGHTTP2_CANCEL);
        }
    }
    h->stall_ns = more ? now : 0;
    if (resets)
        session_report_limit(&h->base, "%zu streams reset: the client does not read them", resets);
    h->base.host.want_fill(h->base.host.owner);
}

/* Ends an idle connection. While receiving: refuses requests that exceeded body_timeout_ns. */
static void expire_requests(struct h2_server *h)
{
    struct session *s = &h->base;
    if (!h->receiving) {
        nghttp2_session_terminate_session(h->ng, NGHTTP2_NO_ERROR);
        s->host.want_fill(s->host.owner);
        h->since_ns = now_of(h); /* until GOAWAY is sent */
        return;
    }
    int64_t limit = loop_scale_timeout(s->host.loop, s->host.options->body_timeout_ns);
    for (struct list_item *item = s->exchanges.first, *next; item; item = next) {
        struct exchange *x = container_of(item, struct exchange, item);
        next = item->next;
        if (x->state == EXCHANGE_RECEIVING && !x->parked && x->started_ns + limit <= now_of(h))
            send_refusal(h, x, 408);
    }
    h->since_ns = now_of(h);
}

static void h2_expire(struct session *s)
{
    if (stall_deadline(s) < receive_deadline(s))
        reset_stalled(h2_of(s));
    else
        expire_requests(h2_of(s));
}

static void h2_free(struct session *s)
{
    struct h2_server *h = h2_of(s);
    list_each(struct exchange, x, &s->exchanges, item)
        if (x->state == EXCHANGE_RECEIVING)
            end_receiving(h, x);
    session_disconnect_all(s);
    nghttp2_session_del(h->ng);
    free(h);
}

static const struct session_ops h2_ops = {
    .feed = h2_feed,
    .fill = h2_fill,
    .begin_answer = h2_begin_answer,
    .wake = h2_wake,
    .abort = h2_abort,
    .drain = h2_drain,
    .deadline = h2_deadline,
    .expire = h2_expire,
    .free = h2_free,
};

/* no_closed_streams: nghttp2 would otherwise keep closed streams for priorities. */
static void open_session(struct h2_server *h)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option))
        abort(); /* out of memory is the only cause, here and below */
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_no_closed_streams(option, 1);
    if (nghttp2_session_server_new2(&h->ng, callbacks, h, option))
        abort();
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
}

struct session *h2_server_new(const struct session_host *host)
{
    struct h2_server *h = mem_zero(1, sizeof(*h));
    h->base = (struct session){ .ops = &h2_ops, .host = *host };
    h->since_ns = h->cheap_ns = now_of(h);
    h->cheap = CHEAP_FRAMES;
    open_session(h);
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)host->options->max_streams },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)host->options->max_header_bytes },
        { NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
    };
    nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, settings, countof(settings));
    nghttp2_session_set_local_window_size(h->ng, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
    host->want_fill(host->owner);
    return &h->base;
}
