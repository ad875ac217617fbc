/* What clients may cost: answers they do not read, headers that decompress to more, frames without work, and
 * requests that two servers would read differently. HTTP/2 is written by hand, byte for byte. */
#include "raw.h"

enum {
    DATA = 0,
    HEADERS = 1,
    RST_STREAM = 3,
    SETTINGS = 4,
    PING = 6,
    GOAWAY = 7,
    WINDOW_UPDATE = 8,
    CONTINUATION = 9
};
enum { END_STREAM = 1, END_HEADERS = 4, CANCEL = 8, ENHANCE_YOUR_CALM = 11 };
enum { BIG = 1024 * 1024, BLOCK = 64 * 1024 };

static struct loop *loop;
static struct http_server *server;
static int requests_seen, limits_reported;
static char last_limit[256];

/* A stream that never gives a byte and declares that it keeps a megabyte for its client. */
static enum stream_more pull_nothing(void *context UNUSED, struct buf *out UNUSED,
                                     size_t room UNUSED)
{
    return STREAM_WAIT;
}

static void closed(void *context UNUSED, bool complete UNUSED)
{
}

static void on_request(void *context UNUSED, struct exchange *x)
{
    requests_seen++;
    if (str_eq(exchange_path(x), S("/keeper"))) {
        struct stream_source source = { .pull = pull_nothing, .closed = closed, .length = -1 };
        exchange_stream(x, 200, (struct http_headers){ 0 }, &source);
        exchange_count_source(x, BIG);
        return;
    }
    struct buf body = { 0 };
    size_t n = str_eq(exchange_path(x), S("/big"))     ? BIG
               : str_eq(exchange_path(x), S("/block")) ? BLOCK
                                                       : 2;
    memset(buf_reserve(&body, n), 'b', n);
    body.n += n;
    exchange_answer_buf(x, 200, (struct http_headers){ 0 }, &body);
}

static void on_limited(void *context UNUSED, const char *peer, const char *what)
{
    OK(strstr(peer, "127.0.0.1:") == peer);
    limits_reported++;
    snprintf(last_limit, sizeof(last_limit), "%s", what);
}

static void open_server(struct http_server_options o)
{
    err_t e;
    requests_seen = limits_reported = 0;
    o.on_request = on_request;
    o.on_limit = on_limited;
    OK_CALL(loop_new(&(struct loop_options){ 0 }, &loop, &e), &e);
    OK_CALL(http_server_new(loop, &o, &server, &e), &e);
}

static void close_server(void)
{
    http_server_free(server);
    loop_free(loop);
}

/* ---- frames */

static void put_frame(struct buf *out, uint8_t type, uint8_t flags, uint32_t stream, str payload)
{
    char head[9] = { (char)(payload.n >> 16),
                     (char)(payload.n >> 8),
                     (char)payload.n,
                     (char)type,
                     (char)flags,
                     (char)(stream >> 24),
                     (char)(stream >> 16),
                     (char)(stream >> 8),
                     (char)stream };
    buf_put(out, (str){ head, sizeof(head) });
    buf_put(out, payload);
}

static void send_frame(struct raw *r, uint8_t type, uint8_t flags, uint32_t stream, str payload)
{
    auto_buf struct buf out = { 0 };
    put_frame(&out, type, flags, stream, payload);
    raw_send(r, buf_str(&out));
}

static void send_window(struct raw *r, uint32_t stream, uint32_t n)
{
    char bytes[4] = { (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n };
    send_frame(r, WINDOW_UPDATE, 0, stream, (str){ bytes, 4 });
}

/* Opens an HTTP/2 connection whose streams may send `window` bytes. */
static void dial_http2(struct raw *r, uint32_t window)
{
    raw_connect(r, loop, http_server_port(server));
    raw_send(r, S("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    char setting[6] = {
        0, 4, (char)(window >> 24), (char)(window >> 16), (char)(window >> 8), (char)window
    };
    send_frame(r, SETTINGS, 0, 0, (str){ setting, 6 });
}

/* :method GET, :scheme http, :path (a literal), :authority x */
static void put_get(struct buf *out, const char *path)
{
    buf_put(out, (str){ "\x82\x86\x04", 3 });
    buf_putc(out, (char)strlen(path));
    buf_put(out, str_c(path));
    buf_put(out, (str){ "\x01\x01x", 3 });
}

static void send_get(struct raw *r, uint32_t stream, const char *path)
{
    auto_buf struct buf block = { 0 };
    put_get(&block, path);
    send_frame(r, HEADERS, END_STREAM | END_HEADERS, stream, buf_str(&block));
}

/* The frames of one type that have come; *ret_last is the payload of the last. */
static size_t count_frames(const struct raw *r, uint8_t type, str *ret_last)
{
    size_t found = 0;
    str rest = buf_str(&r->in);
    while (rest.n >= 9) {
        const unsigned char *p = (const unsigned char *)rest.p;
        size_t n = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        if (rest.n < 9 + n)
            break;
        if (p[3] == type) {
            found++;
            if (ret_last)
                *ret_last = (str){ rest.p + 9, n };
        }
        rest = str_from(rest, 9 + n);
    }
    return found;
}

static size_t data_bytes(const struct raw *r)
{
    size_t total = 0;
    str rest = buf_str(&r->in);
    while (rest.n >= 9) {
        const unsigned char *p = (const unsigned char *)rest.p;
        size_t n = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        if (rest.n < 9 + n)
            break;
        total += p[3] == DATA ? n : 0;
        rest = str_from(rest, 9 + n);
    }
    return total;
}

static unsigned goaway_code(const struct raw *r) /* UINT_MAX: none */
{
    str last;
    if (!count_frames(r, GOAWAY, &last) || last.n < 8)
        return UINT32_MAX;
    return (unsigned char)last.p[7];
}

static void pause_over(struct timer *timer)
{
    timer->node.key = 0;
}

static void turn_for(int64_t ms)
{
    struct timer timer = { 0 };
    int64_t end = loop_mono_ns(loop) + ms * NS_PER_MS;
    timer_set(loop, &timer, end, pause_over);
    while (loop_mono_ns(loop) < end)
        loop_turn(loop);
    timer_stop(&timer);
}

/* ---- answers that clients do not read */

static void streams_that_stall_are_reset(void)
{
    enum { STREAMS = 20 };
    open_server((struct http_server_options){ .write_timeout_ns = 60 * NS_PER_MS });
    struct raw r;
    dial_http2(&r, 0);
    for (uint32_t i = 0; i < STREAMS; i++)
        send_get(&r, 1 + 2 * i, "/big");
    while (count_frames(&r, RST_STREAM, NULL) < STREAMS && !r.closed)
        loop_turn(loop);
    str code = { 0 };
    EQ_INT(count_frames(&r, RST_STREAM, &code), STREAMS);
    OK(code.n == 4 && code.p[3] == CANCEL);
    OK(limits_reported && strstr(last_limit, "does not read them"));
    OK(!r.closed); /* the connection stays open */
    send_get(&r, 1 + 2 * STREAMS, "/small");
    send_window(&r, 1 + 2 * STREAMS, 100);
    while (data_bytes(&r) < 2 && !r.closed)
        loop_turn(loop);
    EQ_INT(data_bytes(&r), 2);
    raw_close(&r);
    close_server();
}

/* Reads more slowly than the timeout in total, but never pauses for that long. */
static void slow_readers_are_served(void)
{
    open_server((struct http_server_options){ .write_timeout_ns = 120 * NS_PER_MS });
    struct raw r;
    dial_http2(&r, 8192);
    send_get(&r, 1, "/block");
    for (size_t got = 0; got < BLOCK && !r.closed && !limits_reported;) {
        turn_for(40);
        got = data_bytes(&r);
        send_window(&r, 1, 8192);
        send_window(&r, 0, 8192);
    }
    EQ_INT(data_bytes(&r), BLOCK);
    EQ_INT(count_frames(&r, RST_STREAM, NULL), 0);
    EQ_INT(limits_reported, 0);
    raw_close(&r);
    close_server();
}

static void requests_wait_for_their_turn(void)
{
    enum { STREAMS = 12 };
    open_server((struct http_server_options){ .max_unread_connection = 3 * BIG });
    struct raw r;
    dial_http2(&r, 0);
    for (uint32_t i = 0; i < STREAMS; i++)
        send_get(&r, 1 + 2 * i, "/big");
    turn_for(50);
    OK(requests_seen >= 3 && requests_seen <= 5);
    send_window(&r, 0, INT32_MAX - 65535);
    for (uint32_t i = 0; i < STREAMS; i++)
        send_window(&r, 1 + 2 * i, BIG);
    while (data_bytes(&r) < (size_t)STREAMS * BIG && !r.closed)
        loop_turn(loop);
    EQ_INT(requests_seen, STREAMS);
    EQ_INT(data_bytes(&r), (int64_t)STREAMS * BIG);
    raw_close(&r);
    close_server();
}

static void stale_clients_are_closed_beyond_the_total(void)
{
    enum { PEERS = 16 };
    open_server((struct http_server_options){ .max_unread_bytes = 8 * BIG });
    struct raw r[PEERS], good;
    for (size_t i = 0; i < PEERS; i++) {
        dial_http2(&r[i], 0);
        send_get(&r[i], 1, "/big");
        turn_for(2);
    }
    while (!limits_reported)
        loop_turn(loop);
    turn_for(20);
    OK(http_server_connections(server) < PEERS);
    OK(http_server_connections(server) <= 9); /* a buffer may be larger than what is in it */
    OK(r[0].closed);                          /* the one that waited longest */
    raw_connect(&good, loop, http_server_port(server));
    raw_send(&good, S("GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    raw_wait_closed(&good);
    OK(good.in.n > BIG);
    raw_close(&good);
    for (size_t i = 0; i < PEERS; i++)
        raw_close(&r[i]);
    close_server();
}

static void memory_of_sources_counts(void)
{
    enum { PEERS = 6 };
    open_server((struct http_server_options){ .max_unread_bytes = 4 * BIG });
    struct raw r[PEERS];
    for (size_t i = 0; i < PEERS; i++) {
        raw_connect(&r[i], loop, http_server_port(server));
        raw_send(&r[i], S("GET /keeper HTTP/1.1\r\nHost: x\r\n\r\n"));
        turn_for(2);
    }
    while (!limits_reported)
        loop_turn(loop);
    turn_for(20);
    OK(r[0].closed && !r[PEERS - 1].closed);
    EQ_INT(http_server_connections(server), 4);
    for (size_t i = 0; i < PEERS; i++)
        raw_close(&r[i]);
    close_server();
}

/* An answer above the limit is no fault of its client. */
static void one_answer_may_exceed_the_total(void)
{
    open_server((struct http_server_options){ .max_unread_bytes = BIG / 4 });
    struct raw r;
    raw_connect(&r, loop, http_server_port(server));
    raw_send(&r, S("GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    raw_wait_closed(&r);
    OK(r.in.n > BIG);
    EQ_INT(limits_reported, 0);
    raw_close(&r);
    close_server();
}

/* ---- headers and frames */

/* A name of 3,000 bytes that goes into the table once and is then named by one byte each time. */
static void send_folded(struct raw *r, uint32_t stream, size_t times)
{
    auto_buf struct buf block = { 0 };
    put_get(&block, "/");
    buf_put(&block, (str){ "\x40\x01"
                           "a\x7f",
                           4 });             /* with indexing; the length is 127 + … */
    buf_put(&block, (str){ "\xb9\x16", 2 }); /* … 2873 */
    for (int i = 0; i < 3000; i++)
        buf_putc(&block, 'v');
    for (size_t i = 0; i < times; i++)
        buf_putc(&block, '\xbe'); /* entry 62: the newest */
    send_frame(r, HEADERS, END_STREAM | END_HEADERS, stream, buf_str(&block));
}

static void headers_that_decompress(void)
{
    open_server((struct http_server_options){ 0 });
    struct raw r;
    dial_http2(&r, 65535);
    send_folded(&r, 1, 5);
    while (!data_bytes(&r) && !r.closed)
        loop_turn(loop);
    EQ_INT(requests_seen, 1);
    send_folded(&r, 3, 30); /* 90 KB of headers: 431, and the connection stays open */
    while (count_frames(&r, HEADERS, NULL) < 2 && !r.closed)
        loop_turn(loop);
    EQ_INT(requests_seen, 1);
    OK(!r.closed);
    send_folded(&r, 5, 5000); /* 15 MB */
    raw_wait_closed(&r);
    EQ_INT(requests_seen, 1);
    OK(limits_reported && strstr(last_limit, "headers"));
    raw_close(&r);
    close_server();
}

static void floods_end_the_connection(void)
{
    static const struct {
        const char *what;
        uint8_t type, flags;
        uint32_t stream;
        const char *payload;
        size_t n;
    } floods[] = {
        { "empty DATA", DATA, 0, 1, "", 0 },
        { "PING", PING, 0, 0, "12345678", 8 },
        { "SETTINGS", SETTINGS, 0, 0, "", 0 },
        { "WINDOW_UPDATE", WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4 },
        { "PRIORITY", 2, 0, 1, "\0\0\0\0\1", 5 },
        { "CONTINUATION", CONTINUATION, 0, 3, "", 0 },
    };
    for (size_t i = 0; i < countof(floods); i++) {
        open_server((struct http_server_options){ 0 });
        struct raw r;
        dial_http2(&r, 65535);
        send_frame(&r, HEADERS, END_HEADERS, 1, S("\x83\x86\x84\x01\x01x")); /* POST, open */
        if (floods[i].type == CONTINUATION)
            send_frame(&r, HEADERS, END_STREAM, 3, S("\x82\x86\x84"));
        auto_buf struct buf many = { 0 };
        for (int j = 0; j < 100; j++)
            put_frame(&many, floods[i].type, floods[i].flags, floods[i].stream,
                      (str){ floods[i].payload, floods[i].n });
        for (int j = 0; j < 100 && !r.closed; j++) {
            raw_send(&r, buf_str(&many));
            loop_turn(loop);
        }
        turn_for(20);
        if (!OK(r.closed || goaway_code(&r) != UINT32_MAX))
            printf("# %s\n", floods[i].what);
        EQ_INT(requests_seen, 0);
        raw_close(&r);
        close_server();
    }
}

static void rapid_resets(void)
{
    open_server((struct http_server_options){ 0 });
    struct raw r;
    dial_http2(&r, 0);
    uint32_t stream = 1;
    for (int i = 0; i < 100 && !r.closed && goaway_code(&r) == UINT32_MAX; i++) {
        auto_buf struct buf out = { 0 }, block = { 0 };
        put_get(&block, "/");
        for (int j = 0; j < 100; j++, stream += 2) {
            put_frame(&out, HEADERS, END_STREAM | END_HEADERS, stream, buf_str(&block));
            put_frame(&out, RST_STREAM, 0, stream, S("\0\0\0\x08"));
        }
        raw_send(&r, buf_str(&out));
        loop_turn(loop);
    }
    OK(r.closed || goaway_code(&r) != UINT32_MAX);
    OK(requests_seen < 3000);
    raw_close(&r);
    close_server();
}

/* ---- ambiguous requests */

static void ambiguous_framing(void)
{
    static const char *const requests[] = {
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4, 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nX : a\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4 \r\nabcd\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x4\r\nabcd\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\nabcd\n0\n\n",
    };
    open_server((struct http_server_options){ 0 });
    for (size_t i = 0; i < countof(requests); i++) {
        struct raw r;
        raw_connect(&r, loop, http_server_port(server));
        raw_send(&r, str_c(requests[i]));
        while (!r.closed && !raw_has(&r, S("\r\n\r\n")))
            loop_turn(loop);
        if (!OK(str_starts(buf_str(&r.in), S("HTTP/1.1 400 "))))
            printf("# case %zu: " STR_FMT "\n", i, STR_ARG(str_upto(buf_str(&r.in), 60)));
        raw_close(&r);
    }
    EQ_INT(requests_seen, 0);
    close_server();
}

/* :authority x beside host: y; the same twice is one. */
static void two_authorities(void)
{
    static const struct {
        char host, status; /* as the table of HPACK has it: 0x88 is 200, 0x8c 400 */
    } t[] = { { 'x', '\x88' }, { 'X', '\x88' }, { 'y', '\x8c' } };
    open_server((struct http_server_options){ 0 });
    for (size_t i = 0; i < countof(t); i++) {
        struct raw r;
        dial_http2(&r, 65535);
        auto_buf struct buf block = { 0 };
        put_get(&block, "/");
        buf_put(&block, (str){ "\x0f\x17\x01", 3 }); /* entry 38: host */
        buf_putc(&block, t[i].host);
        send_frame(&r, HEADERS, END_STREAM | END_HEADERS, 1, buf_str(&block));
        while (!count_frames(&r, HEADERS, NULL) && !r.closed)
            loop_turn(loop);
        str head = { 0 };
        OK(count_frames(&r, HEADERS, &head) == 1 && head.p[0] == t[i].status);
        raw_close(&r);
    }
    EQ_INT(requests_seen, 2);
    close_server();
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(streams_that_stall_are_reset),
                                        TAP(slow_readers_are_served),
                                        TAP(requests_wait_for_their_turn),
                                        TAP(stale_clients_are_closed_beyond_the_total),
                                        TAP(memory_of_sources_counts),
                                        TAP(one_answer_may_exceed_the_total),
                                        TAP(headers_that_decompress),
                                        TAP(floods_end_the_connection),
                                        TAP(rapid_resets),
                                        TAP(ambiguous_framing),
                                        TAP(two_authorities),
                                        { 0 } });
}
