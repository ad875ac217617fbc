/* HTTP/1.1 for the server, on llhttp: see session.h.
 *
 *      feed() --> llhttp --> exchange (RECEIVING) --deliver--> handler
 *                   | paused while an exchange is in progress;
 *                   '-> later bytes (pipelining) wait in `in`
 *      fill() <-- out (heads, refusals) <-- exchange_read() in chunks of 16 KiB
 *
 * One request at a time: the parser pauses at the end of each, and later bytes wait until its
 * answer is sent. When WAITING_BYTES of them wait, reading stops, so pipelining costs bounded
 * memory.
 *
 * The parser is strict. A request that it rejects or that exceeds a limit gets one answer and ends
 * the connection, because it is uncertain where the next request would begin. For the same reason,
 * requests that an intermediary might read differently are rejected: more than one Host, and
 * Transfer-Encoding with HTTP/1.0 (request smuggling).
 *
 * Time: `since_ns` is the start of what the client owes: the idle time, the head or the body of a
 * request. Nothing is owed while an exchange is handled or answered; then link.c notices a client
 * that does not read.
 *
 * Invariant: `x` is the only exchange. It is cleared before exchange_finish(), which may run a
 * handler. */
#include "http.h"
#include "loop_internal.h"
#include "session.h"

#include <llhttp.h>
#include <stdio.h>

enum {
    WAITING_BYTES = 64 * 1024, /* of pipelined requests; then reading stops */
    CHUNK_BYTES = 16 * 1024,   /* payload of a chunk; fits in four hex digits */
    CHUNK_HEAD = 6,            /* four hex digits, CR, LF */
};

struct h1_server {
    struct session base;
    llhttp_t parser;
    struct exchange *x;             /* the current one, in any state; NULL: idle */
    struct buf in;                  /* bytes after the current request */
    struct buf out;                 /* heads and refusals, until fill() takes them */
    struct buf target, name, value; /* being parsed, possibly over several feeds */
    bool in_head, keep_alive, http10, chunked, draining;
    int refuse_status; /* set by the parser callback that stopped the parser */
    int64_t since_ns;  /* mono ns; see "Time" above */
    size_t counted;    /* bytes of this body in *host.pending_bytes */
};

static struct h1_server *h1_of(llhttp_t *parser)
{
    return container_of(parser, struct h1_server, parser);
}

static int64_t now_of(const struct h1_server *h)
{
    return h->base.host.loop->mono_ns;
}

static void uncount_body(struct h1_server *h)
{
    *h->base.host.pending_bytes -= h->counted;
    h->counted = 0;
}

/* --- parsing --- */

/* Stops the parser; parse_bytes() sends the refusal. */
static int refuse_with(struct h1_server *h, int status)
{
    h->refuse_status = status;
    return HPE_USER;
}

static int on_begin(llhttp_t *parser)
{
    struct h1_server *h = h1_of(parser);
    h->x = exchange_new(&h->base, h->base.host.loop, h->base.host.peer);
    h->in_head = true;
    h->since_ns = now_of(h);
    return 0;
}

/* Counts unfinished names and values too: an endless header must not grow. */
static bool head_fits(const struct h1_server *h, size_t more)
{
    size_t open = h->target.n + h->name.n + h->value.n + more;
    size_t limit = h->base.host.options->max_header_bytes;
    return open <= limit && h->x->request->header_bytes <= limit - open;
}

static int on_target(llhttp_t *parser, const char *at, size_t n)
{
    struct h1_server *h = h1_of(parser);
    if (!head_fits(h, n))
        return refuse_with(h, 414);
    buf_put(&h->target, (str){ at, n });
    return 0;
}

static int end_header(struct h1_server *h)
{
    bool fits = !h->in_head || exchange_put_header(h->x, buf_str(&h->name), buf_str(&h->value),
                                                   h->base.host.options->max_header_bytes);
    buf_clear(&h->name);
    buf_clear(&h->value);
    return fits ? 0 : refuse_with(h, 431);
}

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
    struct h1_server *h = h1_of(parser);
    if (!head_fits(h, n))
        return refuse_with(h, 431);
    buf_put(&h->name, (str){ at, n });
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
    struct h1_server *h = h1_of(parser);
    if (!head_fits(h, n))
        return refuse_with(h, 431);
    buf_put(&h->value, (str){ at, n });
    return 0;
}

static int on_value_end(llhttp_t *parser)
{
    return end_header(h1_of(parser));
}

/* Accepts the absolute form for proxies: "http://host/path" means "/path". False: invalid target.
 */
static bool set_target(struct h1_server *h)
{
    struct exchange_request *r = h->x->request;
    str target = buf_str(&h->target);
    if (str_starts(target, S("http://")) || str_starts(target, S("https://"))) {
        target = str_from(target, str_find(target, S("://")) + 3);
        size_t slash = str_find_char(target, '/');
        target = slash == SIZE_MAX ? S("/") : str_from(target, slash);
    }
    bool star = str_eq(target, S("*")) && str_eq(r->method, S("OPTIONS"));
    if (!star && (target.n == 0 || target.p[0] != '/'))
        return false;
    r->target = arena_str(&r->arena, target);
    return true;
}

static int check_expect(struct h1_server *h)
{
    str expect = http_header_get(exchange_headers(h->x), S("expect"));
    if (!expect.p)
        return 0;
    if (!str_eq_nocase(expect, S("100-continue")))
        return refuse_with(h, 417);
    bool body_follows = (h->parser.flags & F_CHUNKED) || h->parser.content_length > 0;
    if (body_follows && !h->http10) {
        buf_put(&h->out, S("HTTP/1.1 100 Continue\r\n\r\n"));
        h->base.host.want_fill(h->base.host.owner);
    }
    return 0;
}

/* Exactly one Host (RFC 9112, 3.2): an intermediary may have acted on the other one. */
static bool has_one_host(const struct h1_server *h)
{
    struct http_headers all = exchange_headers(h->x);
    size_t hosts = 0;
    for (size_t i = 0; i < all.n; i++)
        hosts += str_eq(all.at[i].name, S("host"));
    return hosts == 1 || (hosts == 0 && h->http10);
}

/* The head is complete: decides whether the request can be accepted. */
static int on_head_end(llhttp_t *parser)
{
    struct h1_server *h = h1_of(parser);
    h->in_head = false;
    h->since_ns = now_of(h);
    h->http10 = parser->http_major == 1 && parser->http_minor == 0;
    if (parser->http_major != 1)
        return refuse_with(h, 505);
    if (parser->method == HTTP_CONNECT)
        return refuse_with(h, 405);
    parser->upgrade = 0; /* offers to upgrade are ignored */
    h->x->request->method = str_c(llhttp_method_name((llhttp_method_t)parser->method));
    if (!set_target(h) || !has_one_host(h))
        return refuse_with(h, 400);
    /* Faulty framing (RFC 9112, 6.1): an intermediary may see two requests. */
    if (h->http10 && (parser->flags & F_TRANSFER_ENCODING))
        return refuse_with(h, 400);
    if ((parser->flags & F_CONTENT_LENGTH) &&
        parser->content_length > h->base.host.options->max_body_bytes)
        return refuse_with(h, 413);
    return check_expect(h);
}

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
    struct h1_server *h = h1_of(parser);
    const struct http_server_options *o = h->base.host.options;
    if (!exchange_put_body(h->x, (str){ at, n }, o->max_body_bytes))
        return refuse_with(h, 413);
    if (*h->base.host.pending_bytes + n > o->max_pending_bytes)
        return refuse_with(h, 503);
    *h->base.host.pending_bytes += n;
    h->counted += n;
    return 0;
}

static int on_end(llhttp_t *parser)
{
    struct h1_server *h = h1_of(parser);
    h->keep_alive = llhttp_should_keep_alive(parser);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_url = on_target,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_end,
    .on_headers_complete = on_head_end,
    .on_body = on_body,
    .on_message_complete = on_end,
};

/* --- answers --- */

static void put_date(struct h1_server *h)
{
    buf_put(&h->out, S("date: "));
    buf_put(&h->out, loop_http_date(h->base.host.loop));
    buf_put(&h->out, S("\r\n"));
}

/* Answers without the handler and ends the connection. */
static void send_refusal(struct h1_server *h, int status)
{
    auto_buf struct buf body = { 0 };
    const char *type = session_put_refusal(&h->base, status, &body);
    buf_printf(&h->out, "HTTP/1.1 %d %s\r\ncontent-type: %s\r\ncontent-length: %zu\r\n", status,
               http_reason(status), type, body.n);
    put_date(h);
    buf_put(&h->out, S("connection: close\r\n\r\n"));
    buf_put(&h->out, buf_str(&body));
    uncount_body(h);
    if (h->x) {
        exchange_finish(h->x, false);
        h->x = NULL;
    }
    h->base.over = true;
    h->base.host.want_fill(h->base.host.owner);
}

static void put_headers(struct buf *out, struct http_headers headers)
{
    for (size_t i = 0; i < headers.n; i++) {
        if (!http_header_is_valid(headers.at[i]) || session_sets_header(headers.at[i].name))
            continue;
        buf_put(out, headers.at[i].name);
        buf_put(out, S(": "));
        buf_put(out, headers.at[i].value);
        buf_put(out, S("\r\n"));
    }
}

/* Writes the head. The length decides between Content-Length, chunks, and (HTTP/1.0) the
 * connection's end. */
static void h1_begin_answer(struct session *s, struct exchange *x, const struct answer_head *head)
{
    struct h1_server *h = container_of(s, struct h1_server, base);
    bool bodyless = head->status < 200 || head->status == 204 || head->status == 304;
    h->chunked = head->length < 0 && !h->http10 && !bodyless;
    if (h->draining || (head->length < 0 && h->http10))
        h->keep_alive = false;
    buf_printf(&h->out, "HTTP/1.1 %d %s\r\n", head->status, http_reason(head->status));
    put_headers(&h->out, head->added);
    put_headers(&h->out, head->headers);
    if (head->gzip)
        buf_put(&h->out, S("content-encoding: gzip\r\nvary: accept-encoding\r\n"));
    put_date(h);
    if (h->chunked)
        buf_put(&h->out, S("transfer-encoding: chunked\r\n"));
    else if (!bodyless && head->length >= 0)
        buf_printf(&h->out, "content-length: %lld\r\n", (long long)head->length);
    if (!h->keep_alive)
        buf_put(&h->out, S("connection: close\r\n"));
    else if (h->http10)
        buf_put(&h->out, S("connection: keep-alive\r\n"));
    buf_put(&h->out, S("\r\n"));
    h->chunked = h->chunked && !x->head_only;
    s->host.want_fill(s->host.owner);
}

/* Appends part of the body and finishes the exchange after the last one. False: nothing more now.
 */
static bool put_body_part(struct h1_server *h, struct buf *out)
{
    enum stream_more more;
    size_t head = h->chunked ? (size_t)CHUNK_HEAD : 0;
    char *to = buf_reserve(out, head + CHUNK_BYTES + 2);
    size_t n = exchange_read(h->x, to + head, CHUNK_BYTES, &more);
    if (n && h->chunked) {
        char text[CHUNK_HEAD + 1];
        snprintf(text, sizeof(text), "%04x\r\n", (unsigned)n);
        memcpy(to, text, CHUNK_HEAD);
        memcpy(to + head + n, "\r\n", 2);
        out->n += head + n + 2;
    } else {
        out->n += n;
    }
    if (more == STREAM_MORE)
        return true;
    if (more == STREAM_WAIT)
        return false;
    if (more == STREAM_END && h->chunked)
        buf_put(out, S("0\r\n\r\n"));
    if (more == STREAM_CUT || !h->keep_alive || h->draining)
        h->base.over = true;
    struct exchange *x = h->x;
    h->x = NULL;
    h->since_ns = now_of(h);
    exchange_finish(x, more == STREAM_END);
    return true;
}

/* --- the session --- */

static bool is_busy(const struct h1_server *h)
{
    return h->x && h->x->state != EXCHANGE_RECEIVING;
}

static void deliver_request(struct h1_server *h)
{
    h->x->state = EXCHANGE_HANDLED;
    uncount_body(h);
    buf_done(&h->target);
    buf_done(&h->name);
    buf_done(&h->value);
    h->base.host.deliver(h->base.host.owner, h->x);
}

/* Parses until a request is complete, the bytes end or it is refused. Returns the bytes used. */
static size_t parse_bytes(struct h1_server *h, str bytes)
{
    llhttp_errno_t code = llhttp_execute(&h->parser, bytes.p, bytes.n);
    if (code == HPE_OK)
        return bytes.n;
    size_t used = (size_t)(llhttp_get_error_pos(&h->parser) - bytes.p);
    if (code == HPE_PAUSED) {
        llhttp_resume(&h->parser);
        deliver_request(h);
        return MIN(used, bytes.n);
    }
    send_refusal(h, h->refuse_status ? h->refuse_status : 400);
    return bytes.n;
}

static void parse_waiting(struct h1_server *h)
{
    while (!h->base.over && !is_busy(h) && h->in.n) {
        size_t used = parse_bytes(h, buf_str(&h->in));
        buf_consume(&h->in, used);
    }
    if (!h->in.n)
        buf_done(&h->in);
    h->base.full = h->in.n >= WAITING_BYTES;
}

static bool h1_feed(struct session *s, str bytes)
{
    struct h1_server *h = container_of(s, struct h1_server, base);
    if (s->over)
        return false;
    if (!is_busy(h) && !h->in.n)
        bytes = str_from(bytes, parse_bytes(h, bytes));
    if (bytes.n)
        buf_put(&h->in, bytes);
    parse_waiting(h);
    return !s->over;
}

/* Alternates between output and parsing: the end of an answer lets the next pipelined request
 * begin. */
static void h1_fill(struct session *s, struct buf *out, size_t room)
{
    struct h1_server *h = container_of(s, struct h1_server, base);
    for (;;) {
        buf_put(out, buf_str(&h->out));
        buf_done(&h->out);
        if (!h->x || h->x->state != EXCHANGE_ANSWERING || out->n >= room)
            return;
        if (!put_body_part(h, out))
            return;
        if (!h->x)
            parse_waiting(h);
    }
}

static void h1_wake(struct session *s, struct exchange *x UNUSED)
{
    s->host.want_fill(s->host.owner);
}

static void h1_drain(struct session *s)
{
    struct h1_server *h = container_of(s, struct h1_server, base);
    h->draining = true;
    if (!h->x && !h->in.n)
        s->over = true;
}

static int64_t h1_deadline(const struct session *s)
{
    const struct h1_server *h = (const struct h1_server *)s;
    const struct http_server_options *o = s->host.options;
    if (s->over || is_busy(h))
        return INT64_MAX;
    int64_t limit = !h->x        ? o->idle_timeout_ns
                    : h->in_head ? o->header_timeout_ns
                                 : o->body_timeout_ns;
    return h->since_ns + loop_scale_timeout(s->host.loop, limit);
}

static void h1_expire(struct session *s)
{
    struct h1_server *h = container_of(s, struct h1_server, base);
    if (h->x)
        send_refusal(h, 408);
    s->over = true;
}

static void h1_free(struct session *s)
{
    struct h1_server *h = container_of(s, struct h1_server, base);
    uncount_body(h);
    session_disconnect_all(s);
    buf_done(&h->in);
    buf_done(&h->out);
    buf_done(&h->target);
    buf_done(&h->name);
    buf_done(&h->value);
    free(h);
}

static const struct session_ops h1_ops = {
    .feed = h1_feed,
    .fill = h1_fill,
    .begin_answer = h1_begin_answer,
    .wake = h1_wake,
    .abort = h1_wake, /* fill() sees `cut` */
    .drain = h1_drain,
    .deadline = h1_deadline,
    .expire = h1_expire,
    .free = h1_free,
};

struct session *h1_server_new(const struct session_host *host)
{
    struct h1_server *h = mem_zero(1, sizeof(*h));
    h->base = (struct session){ .ops = &h1_ops, .host = *host };
    llhttp_init(&h->parser, HTTP_REQUEST, &settings);
    h->since_ns = now_of(h);
    return &h->base;
}
