/* gRPC on our HTTP/2 server; see grpc.h.
 *
 *   unary call     HEADERS, DATA with one frame, trailer grpc-status: 0
 *   stream         HEADERS, DATA per message, trailer with the status when it ends
 *   error          HEADERS alone, which carry the status themselves ("trailers-only")
 *
 * Every answer is an HTTP stream, also that of a unary call, because only a stream can have trailers. A stream
 * is freed by on_stream_closed(), which the server calls exactly once, whether the call completed or the client
 * is gone; until then frames wait in `out` and the server pulls them when the connection has room.
 *
 * What an external scaler does not need is missing on purpose: compression, metadata, client streams. */
#include "grpc.h"

#include "wire_core.h"

#include <stdarg.h>
#include <stdio.h>

#define GRPC_CONTENT_TYPE "application/grpc"

/* Accepts application/grpc and application/grpc+proto, as clients of all languages send them. */
bool grpc_accept(struct exchange *x)
{
    str type = exchange_header(x, S("content-type")),
        rest = str_from(type, strlen(GRPC_CONTENT_TYPE));
    bool grpc = str_starts(type, S(GRPC_CONTENT_TYPE)) &&
                (!rest.n || rest.p[0] == ';' || str_starts(rest, S("+proto")));
    bool post = str_eq(exchange_method(x), S("POST"));
    if (grpc && post)
        return true;
    exchange_answer(x, post ? 415 : 405, HTTP_HEADERS({ S("content-type"), S("text/plain") }),
                    S("this port serves gRPC\n"));
    return false;
}

/* A message for the header grpc-message: bytes that a header cannot carry are percent-encoded. */
static str encode_message(struct arena *a, const char *text)
{
    auto_buf struct buf out = { 0 };
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= ' ' && c < 0x7f && c != '%')
            buf_putc(&out, (char)c);
        else
            buf_printf(&out, "%%%02X", c);
    }
    return arena_str(a, buf_str(&out));
}

void grpc_fail(struct exchange *x, enum grpc_status status, const char *format, ...)
{
    char text[400], code[STR_I64_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    str message = encode_message(exchange_arena(x), text);
    exchange_answer(x, 200,
                    HTTP_HEADERS({ S("content-type"), S(GRPC_CONTENT_TYPE) },
                                 { S("grpc-status"), str_of_i64(status, code) },
                                 { S("grpc-message"), message }),
                    S(""));
}

bool grpc_message(struct exchange *x, str *ret)
{
    err_t e;
    int r = wire_get_frame(exchange_body(x), ret, &e);
    if (r < 0)
        grpc_fail(x,
                  r == -ENOTSUP    ? GRPC_UNIMPLEMENTED
                  : r == -EMSGSIZE ? GRPC_RESOURCE_EXHAUSTED
                                   : GRPC_INVALID_ARGUMENT,
                  "%s", e.text);
    return r == 0;
}

/* ---- streams */

struct grpc_stream {
    struct exchange *x; /* NULL: not any more */
    struct buf out;     /* frames that were not pulled yet */
    bool ended;
    struct timer deadline;
    void (*closed)(void *context);
    void *context;
};

/* Hands over all frames at once. They are a few bytes each, and flow control stops the client's connection, not
 * us. */
static enum stream_more pull_frames(void *context, struct buf *out, size_t room)
{
    struct grpc_stream *s = context;
    (void)room; /* answers are tiny */
    buf_put(out, buf_str(&s->out));
    buf_clear(&s->out);
    return s->ended ? STREAM_END : STREAM_WAIT;
}

/* The only place that frees a stream. */
static void on_stream_closed(void *context, bool complete)
{
    struct grpc_stream *s = context;
    (void)complete;
    timer_stop(&s->deadline);
    s->x = NULL;
    if (s->closed)
        s->closed(s->context);
    buf_done(&s->out);
    free(s);
}

/* The client has given up by now; the status is for its log. */
static void on_deadline(struct timer *timer)
{
    struct grpc_stream *s = container_of(timer, struct grpc_stream, deadline);
    grpc_stream_end(s, GRPC_DEADLINE_EXCEEDED, "the deadline of the call has passed");
}

static struct grpc_stream *start_stream(struct exchange *x)
{
    struct grpc_stream *s = mem_zero(1, sizeof(*s));
    s->x = x;
    return s;
}

/* Without a length: HTTP/2 ends the body with the trailers. */
static void open_stream(struct grpc_stream *s)
{
    exchange_stream(s->x, 200, HTTP_HEADERS({ S("content-type"), S(GRPC_CONTENT_TYPE) }),
                    &(struct stream_source){ .pull = pull_frames,
                                             .closed = on_stream_closed,
                                             .context = s,
                                             .length = -1 });
}

/* A stream that ends with its first pull. */
void grpc_answer(struct exchange *x, str message)
{
    struct grpc_stream *s = start_stream(x);
    wire_put_frame(&s->out, message);
    exchange_add_trailer(x, S("grpc-status"), S("0"));
    s->ended = true;
    open_stream(s);
}

/* At most eight digits and a unit. Anything else counts as no timeout, which is what the protocol prescribes
 * for clients that send none; the stream then ends with the connection. */
static int64_t grpc_timeout_ns(str text)
{
    static const struct {
        char unit;
        int64_t ns;
    } units[] = { { 'H', 3600 * NS_PER_S }, { 'M', 60 * NS_PER_S }, { 'S', NS_PER_S },
                  { 'm', NS_PER_MS },       { 'u', 1000 },          { 'n', 1 } };
    enum { DIGITS_MAX = 8 };
    int64_t value;
    if (!text.p || text.n < 2 || text.n > DIGITS_MAX + 1 ||
        str_to_i64(str_upto(text, text.n - 1), &value) < 0 || value < 0)
        return INT64_MAX;
    for (size_t i = 0; i < countof(units); i++)
        if (units[i].unit == text.p[text.n - 1])
            return value > INT64_MAX / 4 / units[i].ns ? INT64_MAX : value * units[i].ns;
    return INT64_MAX;
}

struct grpc_stream *grpc_stream_start(struct loop *loop, struct exchange *x,
                                      void (*closed)(void *context), void *context)
{
    struct grpc_stream *s = start_stream(x);
    int64_t timeout = grpc_timeout_ns(exchange_header(x, S("grpc-timeout")));
    s->closed = closed;
    s->context = context;
    if (timeout != INT64_MAX)
        timer_set(loop, &s->deadline, loop_mono_ns(loop) + timeout, on_deadline);
    open_stream(s);
    return s;
}

void grpc_stream_send(struct grpc_stream *s, str message)
{
    if (!s->x || s->ended)
        return;
    wire_put_frame(&s->out, message);
    exchange_wake_stream(s->x);
}

/* Trailers can be added until the stream ends, so the status is decided here. */
void grpc_stream_end(struct grpc_stream *s, enum grpc_status status, const char *why)
{
    char code[STR_I64_ROOM];
    auto_arena struct arena a = { 0 };
    if (!s->x || s->ended)
        return;
    exchange_add_trailer(s->x, S("grpc-status"), str_of_i64(status, code));
    if (why && *why)
        exchange_add_trailer(s->x, S("grpc-message"), encode_message(&a, why));
    s->ended = true;
    exchange_wake_stream(s->x);
}
