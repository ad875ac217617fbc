/* HTTP/2 for the client, over nghttp2: many calls on one connection. See client_internal.h.
 *
 * Flow control: bytes are given back to the connection's window as they arrive and to the stream's
 * when the owner of the call has taken them. So a paused call stops its own stream and no other
 * (giving back both at the end let a few paused streams stop all, a mistake others have made), and
 * bytes of streams that are already closed do not leak out of the connection's window. */
#include "client_internal.h"
#include "loop_internal.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>

enum {
    STREAM_WINDOW = 1024 * 1024,
    CONNECTION_WINDOW = 16 * 1024 * 1024,
    STREAMS_BEFORE_SETTINGS = 100, /* what peers commonly allow */
    STREAMS_MAX = 10000,
};

struct h2_client {
    struct client_session base;
    nghttp2_session *ng;
    size_t limit;      /* of streams, by the peer */
    struct list calls; /* those carried; a stream may not exist before its first frame left */
    /* The header block being read; nghttp2 never interleaves two. */
    struct http_header_list headers;
    size_t header_bytes;
    int status;
};

static struct h2_client *h2_of(struct client_session *s)
{
    return container_of(s, struct h2_client, base);
}

static void update_room(struct h2_client *h)
{
    struct client_session *s = &h->base;
    if (!nghttp2_session_check_request_allowed(h->ng))
        s->over = true;
    s->room = !s->over && h->limit > s->carried ? h->limit - s->carried : 0;
    s->host.changed(s->host.owner);
}

static struct http_call *call_of(struct h2_client *h, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(h->ng, stream_id);
}

static void join(struct h2_client *h, struct http_call *call)
{
    list_prepend(&h->calls, &call->carried);
    h->base.carried++;
    h->base.patient += call->patient;
}

/* The stream and the call know each other no more. */
static void part(struct h2_client *h, struct http_call *call)
{
    list_remove(&call->carried);
    h->base.carried--;
    h->base.patient -= call->patient;
    if (call->stream_id > 0)
        nghttp2_session_set_stream_user_data(h->ng, call->stream_id, NULL);
}

static void forget_head(struct h2_client *h)
{
    http_header_list_done(&h->headers);
    h->headers = (struct http_header_list){ 0 };
    h->header_bytes = 0;
    h->status = 0;
}

/* --- what arrives --- */

/* NOLINTNEXTLINE(readability-function-size): nghttp2 decides the parameters */
static int on_header(nghttp2_session *ng UNUSED, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags UNUSED,
                     void *data)
{
    struct h2_client *h = data;
    str n = { (const char *)name, name_n }, v = { (const char *)value, value_n };
    struct http_call *call = call_of(h, frame->hd.stream_id);
    if (!call)
        return 0;
    h->header_bytes += n.n + v.n + sizeof(struct http_header);
    if (h->header_bytes > h->base.host.max_header_bytes) {
        err_t e;
        err_set(&e, EPROTO, "the headers of the answer are too large");
        call->answer_begun = true;
        part(h, call);
        call_fail(call, &e, false);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
    }
    int64_t status;
    if (str_eq(n, S(":status")))
        h->status = str_to_i64(v, &status) == 0 ? (int)status : 0;
    else
        http_header_list_add(&h->headers, n, v);
    return 0;
}

static void take_head(struct h2_client *h, struct http_call *call)
{
    struct http_head head = { .status = h->status,
                              .headers = { h->headers.headers.at, h->headers.headers.n },
                              .http2 = true };
    if (h->status >= 200 && !call->head_seen) { /* later ones are trailers: not used */
        call->head_seen = call->answer_begun = true;
        h->base.served++;
        call_head(call, &head);
    }
}

static void take_end(struct h2_client *h, int32_t stream_id)
{
    struct http_call *call = call_of(h, stream_id);
    if (!call)
        return;
    part(h, call);
    if (nghttp2_session_get_stream_local_close(h->ng, stream_id) == 0)
        nghttp2_submit_rst_stream(h->ng, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_CANCEL);
    call_end(call);
    update_room(h);
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    struct h2_client *h = data;
    struct http_call *call = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (call)
            take_head(h, call);
        forget_head(h);
        break;
    case NGHTTP2_SETTINGS:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK)
            break;
        h->limit =
            MIN(nghttp2_session_get_remote_settings(ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
                STREAMS_MAX);
        h->base.settling = false;
        update_room(h);
        break;
    case NGHTTP2_PING:
        h->base.ponged = h->base.ponged || (frame->hd.flags & NGHTTP2_FLAG_ACK);
        break;
    case NGHTTP2_GOAWAY:
        h->base.over = true;
        update_room(h);
        break;
    default:
        break;
    }
    bool ends = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
                (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
    if (ends)
        take_end(h, frame->hd.stream_id);
    return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags UNUSED, int32_t stream_id,
                   const uint8_t *bytes, size_t n, void *data UNUSED)
{
    nghttp2_session_consume_connection(ng, n);
    struct http_call *call = nghttp2_session_get_stream_user_data(ng, stream_id);
    size_t passed = call ? call_data(call, (str){ (const char *)bytes, n }) : n;
    if (passed)
        nghttp2_session_consume_stream(ng, stream_id, passed);
    return 0;
}

static int on_stream_close(nghttp2_session *ng UNUSED, int32_t stream_id, uint32_t code, void *data)
{
    struct h2_client *h = data;
    struct http_call *call = call_of(h, stream_id);
    if (!call)
        return 0;
    part(h, call);
    err_t e;
    err_set(&e, ECONNRESET, "the server reset the stream (%s)", nghttp2_http2_strerror(code));
    call_fail(call, &e, code == NGHTTP2_REFUSED_STREAM);
    update_room(h);
    return 0;
}

/* A request that could not leave: the peer said GOAWAY first. */
static int on_frame_not_sent(nghttp2_session *ng UNUSED, const nghttp2_frame *frame, int code,
                             void *data)
{
    struct h2_client *h = data;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    struct http_call *call = NULL;
    list_each(struct http_call, c, &h->calls, carried)
        if (c->stream_id == frame->hd.stream_id)
            call = c;
    if (!call)
        return 0;
    part(h, call);
    err_t e;
    err_set(&e, ECONNRESET, "the request could not be sent: %s", nghttp2_strerror(code));
    call_fail(call, &e, true);
    update_room(h);
    return 0;
}

/* --- what leaves --- */

/* NOLINTNEXTLINE(readability-function-size): nghttp2 decides the parameters */
static ssize_t read_body(nghttp2_session *ng, int32_t stream_id, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source UNUSED, void *data UNUSED)
{
    struct http_call *call = nghttp2_session_get_stream_user_data(ng, stream_id);
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    str part_of = str_upto(str_from(call->request.body, call->body_at), room);
    memcpy(to, part_of.p, part_of.n);
    call->body_at += part_of.n;
    if (call->body_at == call->request.body.n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)part_of.n;
}

static int on_frame_sent(nghttp2_session *ng, const nghttp2_frame *frame, void *data UNUSED)
{
    struct http_call *call = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    if (call && frame->hd.type == NGHTTP2_HEADERS)
        call->written = true;
    return 0;
}

static nghttp2_nv pair(str name, str value)
{
    return (nghttp2_nv){ (uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
                         value.n, 0 };
}

static void h2_start(struct client_session *s, struct http_call *call)
{
    struct h2_client *h = h2_of(s);
    const struct http_request *r = &call->request;
    struct http_header_list list = { 0 };
    VEC(nghttp2_nv) block = { 0 };
    char length[24];
    call_headers(call, &list);
    vec_push(&block, pair(S(":method"), r->method));
    vec_push(&block, pair(S(":scheme"), s->host.tls ? S("https") : S("http")));
    vec_push(&block, pair(S(":authority"), s->host.authority));
    vec_push(&block, pair(S(":path"), r->target));
    for (size_t i = 0; i < list.headers.n; i++)
        vec_push(&block, pair(list.headers.at[i].name, list.headers.at[i].value));
    if (r->body.n) {
        snprintf(length, sizeof(length), "%zu", r->body.n);
        vec_push(&block, pair(S("content-length"), str_c(length)));
    }
    nghttp2_data_provider body = { .read_callback = read_body };
    int32_t id =
        nghttp2_submit_request(h->ng, NULL, block.at, block.n, r->body.n ? &body : NULL, call);
    vec_done(&block);
    http_header_list_done(&list);
    call->stream_id = id;
    if (id > 0) {
        join(h, call);
    } else {
        err_t e;
        err_set(&e, EPROTO, "cannot open a stream: %s", nghttp2_strerror(id));
        s->over = true;
        call_fail(call, &e, true);
    }
    update_room(h);
    s->host.want_fill(s->host.owner);
}

static void h2_drop(struct client_session *s, struct http_call *call)
{
    struct h2_client *h = h2_of(s);
    part(h, call);
    nghttp2_submit_rst_stream(h->ng, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_CANCEL);
    update_room(h);
    s->host.want_fill(s->host.owner);
}

static void h2_consumed(struct client_session *s, struct http_call *call, size_t n)
{
    nghttp2_session_consume_stream(h2_of(s)->ng, call->stream_id, n);
    s->host.want_fill(s->host.owner);
}

static void h2_ping(struct client_session *s)
{
    s->ponged = false;
    nghttp2_submit_ping(h2_of(s)->ng, NGHTTP2_FLAG_NONE, NULL);
    s->host.want_fill(s->host.owner);
}

/* --- the session --- */

static bool h2_feed(struct client_session *s, str bytes, err_t *e)
{
    struct h2_client *h = h2_of(s);
    ssize_t used = nghttp2_session_mem_recv(h->ng, (const uint8_t *)bytes.p, bytes.n);
    if (used < 0) {
        err_set(e, EPROTO, "the peer breaks HTTP/2: %s", nghttp2_strerror((int)used));
        return false;
    }
    if (nghttp2_session_want_write(h->ng))
        s->host.want_fill(s->host.owner);
    bool done = !nghttp2_session_want_read(h->ng) && !nghttp2_session_want_write(h->ng);
    if (done && !s->over) {
        s->over = true;
        s->host.changed(s->host.owner);
    }
    return true;
}

static void h2_fill(struct client_session *s, struct buf *out, size_t room)
{
    struct h2_client *h = h2_of(s);
    while (out->n < room) {
        const uint8_t *bytes;
        ssize_t n = nghttp2_session_mem_send(h->ng, &bytes);
        if (n <= 0)
            break;
        buf_put(out, (str){ (const char *)bytes, (size_t)n });
    }
}

static void h2_closed(struct client_session *s, const err_t *why)
{
    struct h2_client *h = h2_of(s);
    err_t e;
    err_set(&e, ECONNRESET, "the connection was closed before the answer was whole");
    s->over = true;
    s->room = 0;
    struct http_call *call; /* the owner's code, in call_fail(), may end others: look afresh */
    while ((call = list_first(&h->calls, struct http_call, carried))) {
        part(h, call);
        call_fail(call, why ? why : &e, false);
    }
}

static void h2_free(struct client_session *s)
{
    struct h2_client *h = h2_of(s);
    forget_head(h);
    nghttp2_session_del(h->ng);
    free(h);
}

static const struct client_session_ops h2_ops = {
    .feed = h2_feed,
    .closed = h2_closed,
    .fill = h2_fill,
    .start = h2_start,
    .drop = h2_drop,
    .consumed = h2_consumed,
    .ping = h2_ping,
    .free = h2_free,
};

static void open_session(struct h2_client *h)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option))
        abort(); /* only without memory, here and below */
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_no_auto_window_update(option, 1);
    if (nghttp2_session_client_new2(&h->ng, callbacks, h, option))
        abort();
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
}

struct client_session *h2_client_new(const struct client_host *host)
{
    struct h2_client *h = mem_zero(1, sizeof(*h));
    h->base = (struct client_session){ .ops = &h2_ops, .host = *host };
    h->base.room = h->limit = STREAMS_BEFORE_SETTINGS;
    h->base.settling = true;
    open_session(h);
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)host->max_header_bytes },
    };
    nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, settings, countof(settings));
    nghttp2_session_set_local_window_size(h->ng, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
    host->want_fill(host->owner);
    return &h->base;
}
