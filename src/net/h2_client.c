/* HTTP/2 for the client, on nghttp2: many calls on one connection.
 *
 * The problem: watches that last for hours, large lists and short calls share one TCP connection. A
 * call whose owner has paused must stop the server from sending more of that response, without
 * stopping any other call; a call that ends early (reset, GOAWAY, canceled) must not leak
 * flow-control credit; and it must be certain whether the server may have acted on a request,
 * because only requests that it did not process are retried.
 *
 *      link bytes --h2_feed()--> nghttp2 --on_header()--> headers --on_frame()--> receive_head()
 *                                   |----on_data()-----------------------------> call
 *                                   |----on_frame(END_STREAM)------------------> receive_end()
 *                                   '----on_stream_close(error)----------------> http_call_fail()
 *
 *      call --h2_start_call()--> nghttp2 queue --h2_fill()--> link
 *               body read by read_body() as the server's window allows
 *
 * Flow control has two windows, and they are returned at different times:
 *
 *      connection (16 MiB)   as soon as bytes arrive, whether or not a call takes them
 *      stream (1 MiB)        when the owner of the call has taken them
 *
 * So a paused call stops its own stream after at most 1 MiB and no other stream. Returning both
 * windows when the owner takes the bytes was rejected: a few paused streams would use up the
 * connection window and stop all of them. Returning neither for streams that are already closed
 * would lose those bytes from the connection window for good; nghttp2's automatic updates are off,
 * so on_data() does it for every byte.
 *
 * Invariants:
 *   - A call is in `calls` from attach_call() to detach_call(), and base.carried counts them.
 *     nghttp2's user data for the stream points to the call in that time only. A call that a
 *     callback ended is therefore not found again, and late frames of its stream are ignored.
 *   - nghttp2 creates the stream when the HEADERS frame leaves. Before that only `calls` knows the
 *     call, so on_frame_not_sent() searches the list.
 *   - detach_call() comes before http_call_complete() and http_call_fail(), which run the owner's
 *     code.
 *   - One header block at a time: HTTP/2 does not interleave blocks, so one list in the session is
 *     enough.
 *
 * Retries: a request is "unprocessed" if the server reset it with REFUSED_STREAM, or if GOAWAY came
 * before it could leave. (nghttp2 closes streams above GOAWAY's last stream id with
 * REFUSED_STREAM.) call.c decides with that whether to send it again.
 *
 * Stream limit: until the server's SETTINGS arrive, STREAMS_BEFORE_SETTINGS calls are allowed and
 * `awaiting_settings` keeps the pool from dialing another connection. */
#include "client_internal.h"
#include "loop_internal.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>

enum {
    STREAM_WINDOW = 1024 * 1024,          /* bytes */
    CONNECTION_WINDOW = 16 * 1024 * 1024, /* bytes */
    STREAMS_BEFORE_SETTINGS = 100,        /* a limit that servers commonly allow */
    STREAMS_MAX = 10000,                  /* whatever the server allows */
};

struct h2_client {
    struct client_session base;
    nghttp2_session *ng;
    size_t limit;      /* of concurrent streams, set by the server */
    struct list calls; /* those carried, by http_call.carried */
    /* The header block being read. */
    struct http_header_list headers;
    size_t header_bytes;
    int status;
};

static struct h2_client *h2_of(struct client_session *s)
{
    return container_of(s, struct h2_client, base);
}

/* Recomputes how many calls fit, and lets the pool act on it. */
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

static void attach_call(struct h2_client *h, struct http_call *call)
{
    list_prepend(&h->calls, &call->carried);
    h->base.carried++;
    h->base.delayable += call->delayable;
}

/* Separates the call from its stream: later frames of the stream are ignored. */
static void detach_call(struct h2_client *h, struct http_call *call)
{
    list_remove(&call->carried);
    h->base.carried--;
    h->base.delayable -= call->delayable;
    if (call->stream_id > 0)
        nghttp2_session_set_stream_user_data(h->ng, call->stream_id, NULL);
}

static void reset_head(struct h2_client *h)
{
    http_header_list_done(&h->headers);
    h->headers = (struct http_header_list){ 0 };
    h->header_bytes = 0;
    h->status = 0;
}

/* --- receiving --- */

/* Collects one header of a response. A response whose headers exceed the limit fails its call and
 * resets the stream; the connection stays. */
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
        err_set(&e, EPROTO, "response headers are too large");
        call->answer_begun = true;
        detach_call(h, call);
        http_call_fail(call, &e, false);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
    }
    int64_t status;
    if (str_eq(n, S(":status")))
        h->status = str_to_i64(v, &status) == 0 ? (int)status : 0;
    else
        http_header_list_add(&h->headers, n, v);
    return 0;
}

/* A header block is complete: the response's head, a 1xx, or trailers. */
static void receive_head(struct h2_client *h, struct http_call *call)
{
    struct http_head head = { .status = h->status,
                              .headers = { h->headers.headers.at, h->headers.headers.n },
                              .http2 = true };
    if (h->status >= 200 && !call->head_seen) { /* a later block is trailers: ignored */
        call->head_seen = call->answer_begun = true;
        h->base.served++;
        http_call_receive_head(call, &head);
    }
}

/* The response is complete. If the server answered before it read the whole request body, the rest
 * of the body is canceled. */
static void receive_end(struct h2_client *h, int32_t stream_id)
{
    struct http_call *call = call_of(h, stream_id);
    if (!call)
        return;
    detach_call(h, call);
    if (nghttp2_session_get_stream_local_close(h->ng, stream_id) == 0)
        nghttp2_submit_rst_stream(h->ng, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_CANCEL);
    http_call_complete(call);
    update_room(h);
}

/* A whole frame has arrived; DATA payload has already gone through on_data(). */
static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    struct h2_client *h = data;
    struct http_call *call = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (call)
            receive_head(h, call);
        reset_head(h);
        break;
    case NGHTTP2_SETTINGS:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK)
            break;
        h->limit =
            MIN(nghttp2_session_get_remote_settings(ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
                STREAMS_MAX);
        h->base.awaiting_settings = false;
        update_room(h);
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
        receive_end(h, frame->hd.stream_id);
    return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags UNUSED, int32_t stream_id,
                   const uint8_t *bytes, size_t n, void *data UNUSED)
{
    nghttp2_session_consume_connection(ng, n);
    struct http_call *call = nghttp2_session_get_stream_user_data(ng, stream_id);
    size_t passed = call ? http_call_receive_data(call, (str){ (const char *)bytes, n }) : n;
    if (passed)
        nghttp2_session_consume_stream(ng, stream_id, passed);
    return 0;
}

/* A stream closed while its call was still attached: the response is incomplete. */
static int on_stream_close(nghttp2_session *ng UNUSED, int32_t stream_id, uint32_t code, void *data)
{
    struct h2_client *h = data;
    struct http_call *call = call_of(h, stream_id);
    if (!call)
        return 0;
    detach_call(h, call);
    err_t e;
    err_set(&e, ECONNRESET, "stream reset by server: %s", nghttp2_http2_strerror(code));
    http_call_fail(call, &e, code == NGHTTP2_REFUSED_STREAM);
    update_room(h);
    return 0;
}

/* A request that could not leave, because the server sent GOAWAY first: certainly unprocessed. */
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
    detach_call(h, call);
    err_t e;
    err_set(&e, ECONNRESET, "cannot send the request: %s", nghttp2_strerror(code));
    http_call_fail(call, &e, true);
    update_room(h);
    return 0;
}

/* --- sending --- */

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

static nghttp2_nv make_nv(str name, str value)
{
    return (nghttp2_nv){ (uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
                         value.n, 0 };
}

/* Submits the request; nghttp2 copies the headers, and read_body() supplies the body later. */
static void h2_start_call(struct client_session *s, struct http_call *call)
{
    struct h2_client *h = h2_of(s);
    const struct http_request *r = &call->request;
    struct http_header_list list = { 0 };
    VEC(nghttp2_nv) block = { 0 };
    char length[24];
    http_call_build_headers(call, &list);
    vec_push(&block, make_nv(S(":method"), r->method));
    vec_push(&block, make_nv(S(":scheme"), s->host.tls ? S("https") : S("http")));
    vec_push(&block, make_nv(S(":authority"), s->host.authority));
    vec_push(&block, make_nv(S(":path"), r->target));
    for (size_t i = 0; i < list.headers.n; i++)
        vec_push(&block, make_nv(list.headers.at[i].name, list.headers.at[i].value));
    if (r->body.n) {
        snprintf(length, sizeof(length), "%zu", r->body.n);
        vec_push(&block, make_nv(S("content-length"), str_c(length)));
    }
    nghttp2_data_provider body = { .read_callback = read_body };
    int32_t id =
        nghttp2_submit_request(h->ng, NULL, block.at, block.n, r->body.n ? &body : NULL, call);
    vec_done(&block);
    http_header_list_done(&list);
    call->stream_id = id;
    if (id > 0) {
        attach_call(h, call);
    } else {
        err_t e;
        err_set(&e, EPROTO, "cannot open a stream: %s", nghttp2_strerror(id));
        s->over = true;
        http_call_fail(call, &e, true);
    }
    update_room(h);
    s->host.want_fill(s->host.owner);
}

static void h2_drop_call(struct client_session *s, struct http_call *call)
{
    struct h2_client *h = h2_of(s);
    detach_call(h, call);
    nghttp2_submit_rst_stream(h->ng, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_CANCEL);
    update_room(h);
    s->host.want_fill(s->host.owner);
}

static void h2_consume(struct client_session *s, struct http_call *call, size_t n)
{
    nghttp2_session_consume_stream(h2_of(s)->ng, call->stream_id, n);
    s->host.want_fill(s->host.owner);
}

static void h2_ping(struct client_session *s)
{
    nghttp2_submit_ping(h2_of(s)->ng, NGHTTP2_FLAG_NONE, NULL);
    s->host.want_fill(s->host.owner);
}

/* --- the session --- */

/* Returns false if the server broke the protocol. */
static bool h2_feed(struct client_session *s, str bytes, err_t *e)
{
    struct h2_client *h = h2_of(s);
    ssize_t used = nghttp2_session_mem_recv(h->ng, (const uint8_t *)bytes.p, bytes.n);
    if (used < 0) {
        err_set(e, EPROTO, "HTTP/2 protocol error: %s", nghttp2_strerror((int)used));
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

/* The connection is gone: fails every call that it still carried. */
static void h2_closed(struct client_session *s, const err_t *why)
{
    struct h2_client *h = h2_of(s);
    err_t e;
    err_set(&e, ECONNRESET, "connection closed before the response was complete");
    s->over = true;
    s->room = 0;
    struct http_call *call; /* http_call_fail() runs callbacks that may end others */
    while ((call = list_first(&h->calls, struct http_call, carried))) {
        detach_call(h, call);
        http_call_fail(call, why ? why : &e, false);
    }
}

static void h2_free(struct client_session *s)
{
    struct h2_client *h = h2_of(s);
    reset_head(h);
    nghttp2_session_del(h->ng);
    free(h);
}

static const struct client_session_ops h2_ops = {
    .feed = h2_feed,
    .closed = h2_closed,
    .fill = h2_fill,
    .start_call = h2_start_call,
    .drop_call = h2_drop_call,
    .consume = h2_consume,
    .ping = h2_ping,
    .free = h2_free,
};

/* Window updates are ours (no_auto_window_update): see "Flow control" above. */
static void open_session(struct h2_client *h)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option))
        abort(); /* out of memory is the only cause, here and below */
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
    h->base.awaiting_settings = true;
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
