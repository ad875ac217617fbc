/* HTTP/1.1 for the client, on llhttp: one call at a time on a connection that is reused.
 *
 * The parser pauses at the end of each response (HPE_PAUSED), so that bytes after it are noticed: a
 * server that sends more than was requested cannot be trusted to be in step, and the connection is
 * not reused. The same holds if the response ended before the request was sent completely.
 *
 * Flow control is the socket's: while the owner has paused and bytes wait in the call, `full` stops
 * the link from reading. A canceled call ends the connection, because the rest of its response
 * cannot be distinguished from the next one. 1xx responses are skipped; 101 is an error, because no
 * call offers an upgrade; trailers are ignored.
 *
 * Invariant: `call` is set exactly while base.carried is 1. It is cleared before the owner's code
 * runs. */
#include "client_internal.h"

#include <llhttp.h>

struct h1_client {
    struct client_session base;
    llhttp_t parser;
    struct http_call *call; /* NULL: idle, or the call was canceled */
    struct buf out;         /* head of the request, until fill() takes it */
    struct buf name, value; /* of a header being read */
    struct http_header_list headers;
    size_t header_bytes; /* so far, against host.max_header_bytes */
    bool head_done, message_done, too_large;
};

static struct h1_client *h1_of(llhttp_t *parser)
{
    return container_of(parser, struct h1_client, parser);
}

static void reset_head(struct h1_client *h)
{
    http_header_list_done(&h->headers);
    h->headers = (struct http_header_list){ 0 };
    buf_done(&h->name);
    buf_done(&h->value);
    h->header_bytes = 0;
}

/* --- parsing --- */

static int on_begin(llhttp_t *parser)
{
    struct h1_client *h = h1_of(parser);
    h->head_done = h->message_done = false;
    return 0;
}

static int put_text(struct h1_client *h, struct buf *to, const char *at, size_t n)
{
    h->header_bytes += n;
    if (h->header_bytes > h->base.host.max_header_bytes) {
        h->too_large = true;
        return HPE_USER;
    }
    buf_put(to, (str){ at, n });
    return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
    struct h1_client *h = h1_of(parser);
    return put_text(h, &h->name, at, n);
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
    struct h1_client *h = h1_of(parser);
    return put_text(h, &h->value, at, n);
}

static int on_value_end(llhttp_t *parser)
{
    struct h1_client *h = h1_of(parser);
    if (!h->head_done) { /* trailers are ignored */
        http_header_list_add(&h->headers, buf_str(&h->name), buf_str(&h->value));
        h->header_bytes += sizeof(struct http_header);
    }
    buf_clear(&h->name);
    buf_clear(&h->value);
    return 0;
}

/* Returns 1 to make llhttp skip the body (HEAD). */
static int on_head_end(llhttp_t *parser)
{
    struct h1_client *h = h1_of(parser);
    if (parser->status_code < 100 || parser->status_code == 101)
        return HPE_USER; /* no request offers an upgrade */
    if (parser->status_code < 200)
        return 0;
    h->head_done = true;
    parser->upgrade = 0;
    bool no_body = h->call && str_eq(h->call->request.method, S("HEAD"));
    struct http_head head = { .status = parser->status_code,
                              .headers = { h->headers.headers.at, h->headers.headers.n } };
    h->base.served++;
    if (h->call)
        http_call_receive_head(h->call, &head);
    reset_head(h);
    return no_body ? 1 : 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
    struct h1_client *h = h1_of(parser);
    if (!h->head_done)
        return HPE_USER; /* a 1xx response has no body */
    if (h->call)
        http_call_receive_data(h->call, (str){ at, n });
    return 0;
}

static int on_end(llhttp_t *parser)
{
    struct h1_client *h = h1_of(parser);
    if (parser->status_code < 200) {
        reset_head(h);
        return 0;
    }
    h->message_done = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_end,
    .on_headers_complete = on_head_end,
    .on_body = on_body,
    .on_message_complete = on_end,
};

/* --- the session --- */

/* The response is complete. The connection is reused only if the request was sent completely as
 * well. */
static void end_call(struct h1_client *h, bool reusable)
{
    struct http_call *call = h->call;
    bool sent = h->out.n == 0 && (!call || call->body_at == call->request.body.n);
    h->call = NULL;
    h->base.carried = h->base.delayable = 0;
    h->base.full = false;
    if (reusable && sent)
        h->base.room = 1;
    else
        h->base.over = true;
    if (call)
        http_call_complete(call);
    h->base.host.changed(h->base.host.owner);
}

/* Returns false if the connection is of no further use. */
static bool h1_feed(struct client_session *s, str bytes, err_t *e)
{
    struct h1_client *h = container_of(s, struct h1_client, base);
    if (!h->call) {
        err_set(e, EPROTO, "received bytes without a request");
        return false;
    }
    h->call->answer_begun = true;
    llhttp_errno_t code = llhttp_execute(&h->parser, bytes.p, bytes.n);
    if (code == HPE_PAUSED && h->message_done) {
        bool all_used = llhttp_get_error_pos(&h->parser) == bytes.p + bytes.n;
        bool keep = llhttp_should_keep_alive(&h->parser) && all_used;
        llhttp_resume(&h->parser);
        end_call(h, keep);
        return true;
    }
    if (code != HPE_OK) {
        const char *why = llhttp_get_error_reason(&h->parser);
        if (h->too_large) /* the parser was stopped by us and has no reason */
            err_set(e, EPROTO, "response headers are too large (limit %zu bytes)",
                    s->host.max_header_bytes);
        else
            err_set(e, EPROTO, "response is not valid HTTP/1.1: %s", why ? why : "unknown error");
        return false;
    }
    s->full = h->call && h->call->waiting.n > 0;
    return true;
}

/* The connection is gone: completes a response that ends with it, otherwise fails the call. */
static void h1_closed(struct client_session *s, const err_t *why)
{
    struct h1_client *h = container_of(s, struct h1_client, base);
    s->over = true;
    s->room = 0;
    if (!h->call)
        return;
    if (!why && h->head_done && llhttp_finish(&h->parser) == HPE_PAUSED && h->message_done) {
        end_call(h, false); /* a body without a length ends with the connection */
        return;
    }
    err_t e;
    err_set(&e, ECONNRESET, "connection closed before the response was complete");
    struct http_call *call = h->call;
    h->call = NULL;
    s->carried = s->delayable = 0;
    http_call_fail(call, why ? why : &e, false);
}

static void h1_fill(struct client_session *s, struct buf *out, size_t room)
{
    struct h1_client *h = container_of(s, struct h1_client, base);
    if (!h->call)
        return;
    if (h->out.n) {
        h->call->written = true;
        buf_put(out, buf_str(&h->out));
        buf_done(&h->out);
    }
    if (out->n >= room)
        return;
    str part = str_upto(str_from(h->call->request.body, h->call->body_at), room - out->n);
    buf_put(out, part);
    h->call->body_at += part.n;
}

static void put_header(struct buf *out, str name, str value)
{
    buf_put(out, name);
    buf_put(out, S(": "));
    buf_put(out, value);
    buf_put(out, S("\r\n"));
}

/* Writes the head of the request to `out`; fill() sends it and the body. */
static void h1_start_call(struct client_session *s, struct http_call *call)
{
    struct h1_client *h = container_of(s, struct h1_client, base);
    const struct http_request *r = &call->request;
    h->call = call;
    h->head_done = h->message_done = false;
    s->room = 0;
    s->carried = 1;
    s->delayable = call->delayable;
    struct http_header_list list = { 0 };
    http_call_build_headers(call, &list);
    buf_printf(&h->out, STR_FMT " ", STR_ARG(r->method));
    buf_put(&h->out, r->target);
    buf_put(&h->out, S(" HTTP/1.1\r\n"));
    put_header(&h->out, S("host"), s->host.authority);
    for (size_t i = 0; i < list.headers.n; i++)
        put_header(&h->out, list.headers.at[i].name, list.headers.at[i].value);
    bool states_length = r->body.n || str_eq(r->method, S("POST")) || str_eq(r->method, S("PUT")) ||
                         str_eq(r->method, S("PATCH"));
    if (states_length)
        buf_printf(&h->out, "content-length: %zu\r\n", r->body.n);
    buf_put(&h->out, S("\r\n"));
    http_header_list_done(&list);
    s->host.want_fill(s->host.owner);
}

/* Canceled: the response on its way cannot be skipped, so the connection cannot be reused. */
static void h1_drop_call(struct client_session *s, struct http_call *call)
{
    struct h1_client *h = container_of(s, struct h1_client, base);
    assert(h->call == call);
    h->call = NULL;
    s->carried = s->delayable = 0;
    s->room = 0;
    s->over = true;
    s->host.changed(s->host.owner);
}

static void h1_consume(struct client_session *s, struct http_call *call, size_t n UNUSED)
{
    s->full = call->waiting.n > 0;
    s->host.changed(s->host.owner);
}

static void h1_free(struct client_session *s)
{
    struct h1_client *h = container_of(s, struct h1_client, base);
    reset_head(h);
    buf_done(&h->out);
    free(h);
}

static const struct client_session_ops h1_ops = {
    .feed = h1_feed,
    .closed = h1_closed,
    .fill = h1_fill,
    .start_call = h1_start_call,
    .drop_call = h1_drop_call,
    .consume = h1_consume,
    .free = h1_free,
};

struct client_session *h1_client_new(const struct client_host *host)
{
    struct h1_client *h = mem_zero(1, sizeof(*h));
    h->base = (struct client_session){ .ops = &h1_ops, .host = *host, .room = 1 };
    llhttp_init(&h->parser, HTTP_RESPONSE, &settings);
    return &h->base;
}
