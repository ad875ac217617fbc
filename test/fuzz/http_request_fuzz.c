/* Untrusted bytes sent to the server, without a socket. The first byte selects the protocol, how the
 * rest is split into reads, and whether answers come at once or later. Checked: every exchange is
 * complete when it is delivered, every stream is closed exactly once, and nothing counts as pending at
 * the end. */
#include "fuzz.h"
#include "net/session.h"

enum { HTTP2 = 1, PREFACE = 2, LATER = 4, SMALL_READS = 8, DRAIN = 16, HELD_MAX = 64 };

static struct {
    unsigned choice;
    struct exchange *held[HELD_MAX];
    size_t held_count;
    int streams;
    size_t parts;
} now;

static enum stream_more pull(void *context UNUSED, struct buf *out, size_t room)
{
    if (now.parts++ % 3 == 1)
        return STREAM_WAIT;
    size_t n = MIN(room, (size_t)100);
    memset(buf_reserve(out, n), 'x', n);
    out->n += n;
    return now.parts % 5 ? STREAM_MORE : now.parts % 2 ? STREAM_END : STREAM_CUT;
}

static void closed(void *context UNUSED, bool complete UNUSED)
{
    if (now.streams-- <= 0)
        abort();
}

static void answer(struct exchange *x)
{
    str path = exchange_path(x);
    if (str_starts(path, S("/s"))) {
        now.streams++;
        exchange_stream(x, 200, (struct http_headers){ 0 },
                        &(struct stream_source){ .pull = pull,
                                                 .closed = closed,
                                                 .length = -1,
                                                 .compress = str_eq(path, S("/sz")) });
    } else if (str_starts(path, S("/x"))) {
        exchange_abort(x);
    } else {
        exchange_answer(x, 200, HTTP_HEADERS({ S("x"), exchange_header(x, S("x")) }),
                        exchange_body(x));
    }
}

static void deliver(void *owner UNUSED, struct exchange *x)
{
    struct http_headers headers = exchange_headers(x);
    str path = exchange_path(x), query = exchange_query(x), name, value;
    if (!exchange_method(x).n || !path.n)
        abort();
    for (size_t i = 0; i < headers.n; i++)
        if (!headers.at[i].name.n)
            abort();
    while (uri_query_next(&query, &name, &value))
        uri_decode(exchange_arena(x), value, true, &value);
    if ((now.choice & LATER) && now.held_count < HELD_MAX)
        now.held[now.held_count++] = x;
    else
        answer(x);
}

static void want_fill(void *owner UNUSED)
{
}

static void on_unread_full(void *owner UNUSED)
{
}

static void fill(struct session *s)
{
    auto_buf struct buf out = { 0 };
    size_t before;
    do {
        before = out.n;
        s->ops->fill(s, &out, before + 4096);
    } while (out.n != before && out.n < 1024 * 1024);
}

static void answer_held(size_t keep)
{
    while (now.held_count > keep)
        answer(now.held[--now.held_count]);
}

static void run(struct session *s, str bytes)
{
    size_t step = now.choice & SMALL_READS ? 7 : 4096;
    while (bytes.n && !s->over) {
        str part = str_upto(bytes, step);
        s->ops->feed(s, part);
        bytes = str_from(bytes, part.n);
        fill(s);
        answer_held(2);
        list_each(struct exchange, x, &s->exchanges, item)
            if (x->state == EXCHANGE_ANSWERING && x->source.pull)
                exchange_wake_stream(x);
        fill(s);
    }
    if ((now.choice & DRAIN) && !s->over)
        s->ops->drain(s);
    if (s->ops->deadline(s) < INT64_MAX && !s->over)
        s->ops->expire(s);
    fill(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct loop *loop;
    static const struct http_server_options options = {
        .max_streams = 10,
        .max_header_bytes = 4096,
        .max_body_bytes = 2000,
        .max_pending_bytes = 5000,
        .max_unread_connection = 3000,
        .max_unread_bytes = 20000,
        .gzip_min_bytes = 1000,
        .header_timeout_ns = 1,
        .body_timeout_ns = 1,
        .idle_timeout_ns = 1,
        .write_timeout_ns = 1,
    };
    if (!loop && loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL }, &loop, NULL) < 0)
        abort();
    if (size == 0)
        return 0;
    size_t pending = 0, unread = 0;
    struct http_peer *peer = mem_zero(1, sizeof(*peer));
    peer->references = 1;
    memset(&now, 0, sizeof(now));
    now.choice = data[0];
    struct session_host host = { .loop = loop,
                                 .options = &options,
                                 .peer = peer,
                                 .pending_bytes = &pending,
                                 .unread_bytes = &unread,
                                 .unread_full = on_unread_full,
                                 .want_fill = want_fill,
                                 .deliver = deliver };
    struct session *s = now.choice & HTTP2 ? h2_server_new(&host) : h1_server_new(&host);
    if ((now.choice & (HTTP2 | PREFACE)) == (HTTP2 | PREFACE))
        s->ops->feed(s, S("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
    run(s, (str){ (const char *)data + 1, size - 1 });
    s->ops->free(s);
    if (pending || unread)
        abort();
    answer_held(0);
    struct timer wake = {
        0
    }; /* streams that began after their peer left are notified in a later turn */
    timer_set(loop, &wake, loop_mono_ns(loop), timer_stop);
    loop_turn(loop);
    if (now.streams)
        abort();
    http_peer_unref(peer);
    return 0;
}
