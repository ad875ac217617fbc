/* The client against a scripted server that misbehaves: cut, garbage, half chunks, endless headers,
 * wrong lengths, slow drips, resets, GOAWAY at the wrong time. */
#include "raw.h"

struct bad {
    struct loop *loop;
    int listener;
    uint16_t port;
    struct fd_watch *watch;
    struct raw conns[16];
    size_t accepted;
    struct http_client *client;
};

static void on_acceptable(void *context, unsigned events UNUSED)
{
    struct bad *b = context;
    int fd = accept(b->listener, NULL, NULL);
    if (fd >= 0 && OK(b->accepted < countof(b->conns)))
        raw_adopt(&b->conns[b->accepted++], b->loop, fd);
}

static void open_bad(struct bad *b, struct http_client_options o)
{
    err_t e;
    char url[64];
    *b = (struct bad){ 0 };
    OK_CALL(loop_new(&(struct loop_options){ 0 }, &b->loop, &e), &e);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(address);
    b->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    OK(b->listener >= 0 && bind(b->listener, (struct sockaddr *)&address, n) == 0 &&
       listen(b->listener, 64) == 0);
    OK(b->listener >= 0 && getsockname(b->listener, (struct sockaddr *)&address, &n) == 0);
    b->port = ntohs(address.sin_port);
    OK(fd_watch_new(b->loop, b->listener, on_acceptable, b, &b->watch) == 0);
    fd_watch_set(b->watch, FD_READ);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/base", b->port);
    o.url = str_c(url);
    OK_CALL(http_client_new(b->loop, &o, &b->client, &e), &e);
}

static void close_bad(struct bad *b)
{
    http_client_free(b->client);
    for (size_t i = 0; i < b->accepted; i++)
        if (b->conns[i].loop)
            raw_close(&b->conns[i]);
    fd_watch_free(b->watch);
    close(b->listener);
    loop_free(b->loop);
}

struct result {
    int status, code, dones;
    struct buf body;
    char text[500];
};

static void on_head(void *context, const struct http_head *head)
{
    ((struct result *)context)->status = head->status;
}

static void on_data(void *context, str bytes)
{
    buf_put(&((struct result *)context)->body, bytes);
}

static void on_done(void *context, const err_t *failure)
{
    struct result *r = context;
    r->dones++;
    if (failure) {
        r->code = failure->code;
        snprintf(r->text, sizeof(r->text), "%s", failure->text);
    }
}

static struct http_call *send_call(struct bad *b, struct result *r, const char *method)
{
    *r = (struct result){ 0 };
    return http_client_send(b->client, &(struct http_request){ .method = str_c(method),
                                                               .target = S("/x"),
                                                               .on_head = on_head,
                                                               .on_data = on_data,
                                                               .on_done = on_done,
                                                               .context = r });
}

/* The next connection after `i` others, once its request has arrived. */
static struct raw *wait_request(struct bad *b, size_t i)
{
    while (b->accepted <= i)
        loop_turn(b->loop);
    OK(raw_wait(&b->conns[i], S("\r\n\r\n")));
    return &b->conns[i];
}

static void wait_result(struct bad *b, struct result *r)
{
    while (!r->dones)
        loop_turn(b->loop);
}

static void http1_answers(void)
{
    static const struct {
        const char *answer;
        int status, code; /* code 0: whole */
        const char *body;
    } table[] = {
        { "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine", 200, 0, "fine" },
        { "HTTP/1.1 500 Oops\r\ncontent-length: 3\r\n\r\nbad", 500, 0, "bad" },
        { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n"
          "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
          200, 0, "ok" },
        { "HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, 0, "until the end" },
        { "HTTP/1.0 200 OK\r\n\r\nold", 200, 0, "old" },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n", 200,
          0, "abc" },
        { "", 0, ECONNRESET, "" },
        { "HTT", 0, ECONNRESET, "" },
        { "complete garbage\r\n\r\n", 0, EPROTO, "" },
        { "\x16\x03\x01\x02\x00", 0, EPROTO, "" }, /* TLS where none was expected */
        { "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort", 200, ECONNRESET, "short" },
        { "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nlong", 200, 0, "lo" },
        { "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc", 0, EPROTO, "" },
        { "HTTP/1.1 200 OK\r\ncontent-length: nonsense\r\n\r\n", 0, EPROTO, "" },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", 200, ECONNRESET, "ab" },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n", 200, ECONNRESET,
          "ab" },
        { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", 200, EPROTO, "" },
        { "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope", 200,
          EBADMSG, "" },
        { "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n", 200, EBADMSG,
          "" },
        { "HTTP/1.1 200 OK\r\nbad header\r\n\r\n", 0, EPROTO, "" },
        { "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", 0, EPROTO, "" },
        { "HTTP/9.9 200 OK\r\n\r\n", 0, EPROTO, "" },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct bad b;
        struct result r;
        open_bad(&b, (struct http_client_options){ 0 });
        send_call(&b, &r, "POST");
        struct raw *conn = wait_request(&b, 0);
        OK(str_starts(buf_str(&conn->in), S("POST /base/x HTTP/1.1\r\n")));
        raw_send(conn, str_c(table[i].answer));
        shutdown(conn->fd, SHUT_WR);
        wait_result(&b, &r);
        bool right = EQ_INT(r.status, table[i].status);
        right = EQ_INT(r.code, table[i].code) && right;
        right = EQ_STR(buf_str(&r.body), str_c(table[i].body)) && right;
        if (!right)
            printf("# answer %zu: %s\n", i, r.text);
        EQ_INT(r.dones, 1);
        buf_done(&r.body);
        close_bad(&b);
    }
}

static void endless_headers(void)
{
    static const char *const starts[] = { "HTTP/1.1 200 OK\r\na: ", "HTTP/1.1 200 OK\r\n" };
    for (size_t i = 0; i < countof(starts); i++) {
        struct bad b;
        struct result r;
        char filler[5000];
        memset(filler, 'a', sizeof(filler));
        open_bad(&b, (struct http_client_options){ .max_header_bytes = 20000 });
        send_call(&b, &r, "GET");
        struct raw *conn = wait_request(&b, 0);
        raw_send(conn, str_c(starts[i]));
        for (int k = 0; k < 100 && !r.dones; k++)
            raw_send(conn, (str){ filler, sizeof(filler) });
        wait_result(&b, &r);
        EQ_INT(r.code, EPROTO);
        OK(strstr(r.text, "too large"));
        close_bad(&b);
    }
}

struct drip {
    struct timer timer;
    struct raw *conn;
    const char *rest;
};

static void drip_one(struct timer *timer)
{
    struct drip *d = container_of(timer, struct drip, timer);
    raw_send(d->conn, (str){ d->rest++, 1 });
    if (*d->rest)
        timer_set(d->conn->loop, timer, loop_mono_ns(d->conn->loop) + NS_PER_MS, drip_one);
}

static void slow_drip(void)
{
    struct bad b;
    struct result r;
    open_bad(&b, (struct http_client_options){ 0 });
    send_call(&b, &r, "GET");
    struct drip d = { .conn = wait_request(&b, 0),
                      .rest = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "00006\r\ndrip d\r\n3\r\nrop\r\n0\r\n\r\n" };
    timer_set(b.loop, &d.timer, loop_mono_ns(b.loop), drip_one);
    wait_result(&b, &r);
    EQ_INT(r.code, 0);
    EQ_STR(buf_str(&r.body), S("drip drop"));
    buf_done(&r.body);
    close_bad(&b);
}

static void reset_by_peer(void)
{
    struct bad b;
    struct result r;
    open_bad(&b, (struct http_client_options){ 0 });
    send_call(&b, &r, "POST");
    struct raw *conn = wait_request(&b, 0);
    struct linger hard = { 1, 0 };
    setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    raw_close(conn);
    wait_result(&b, &r);
    EQ_INT(r.code, ECONNRESET);
    OK(strstr(r.text, "127.0.0.1"));
    close_bad(&b);
}

/* A reused connection fails during a request: GET is retried on another one, POST is not. */
static void dead_while_idle(void)
{
    for (int post = 0; post < 2; post++) {
        struct bad b;
        struct result r;
        open_bad(&b, (struct http_client_options){ 0 });
        send_call(&b, &r, "GET");
        struct raw *first = wait_request(&b, 0);
        raw_send(first, S("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
        wait_result(&b, &r);
        buf_clear(&first->in);
        send_call(&b, &r, post ? "POST" : "GET");
        OK(raw_wait(first, S("\r\n\r\n")));
        EQ_INT(b.accepted, 1); /* reused */
        raw_close(first);
        if (!post) {
            struct raw *second = wait_request(&b, 1);
            raw_send(second, S("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nagain"));
        }
        wait_result(&b, &r);
        EQ_INT(r.code, post ? ECONNRESET : 0);
        EQ_STR(buf_str(&r.body), post ? S("") : S("again"));
        buf_done(&r.body);
        close_bad(&b);
    }
}

static void unasked_bytes(void)
{
    struct bad b;
    struct result r;
    open_bad(&b, (struct http_client_options){ 0 });
    send_call(&b, &r, "GET");
    struct raw *conn = wait_request(&b, 0);
    raw_send(conn, S("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    wait_result(&b, &r);
    raw_send(conn, S("HTTP/1.1 408 Request Timeout\r\n\r\n"));
    raw_wait_closed(conn);
    send_call(&b, &r, "POST"); /* none of it was sent on the failed connection */
    conn = wait_request(&b, 1);
    raw_send(conn, S("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    wait_result(&b, &r);
    EQ_INT(r.code, 0);
    close_bad(&b);
}

static void nobody_there(void)
{
    struct bad b;
    struct result r, second;
    open_bad(&b, (struct http_client_options){ 0 });
    fd_watch_set(b.watch, 0);
    close(b.listener);
    b.listener = -1;
    fd_watch_free(b.watch);
    b.watch = NULL;
    send_call(&b, &r, "GET");
    send_call(&b, &second, "GET");
    wait_result(&b, &r);
    wait_result(&b, &second);
    EQ_INT(r.code, ECONNREFUSED);
    EQ_INT(second.code, ECONNREFUSED);
    OK(strstr(r.text, "http://127.0.0.1:"));
    EQ_INT(http_client_connections(b.client), 0);
    close_bad(&b);
}

static void unknown_host(void)
{
    struct bad b;
    struct result r;
    err_t e;
    open_bad(&b, (struct http_client_options){ 0 });
    http_client_free(b.client);
    struct http_client_options o = { .url = S("http://no-such-host.invalid:1") };
    OK_CALL(http_client_new(b.loop, &o, &b.client, &e), &e);
    send_call(&b, &r, "GET");
    wait_result(&b, &r);
    EQ_INT(r.code, EHOSTUNREACH);
    OK(strstr(r.text, "no-such-host.invalid"));
    send_call(&b, &r, "GET"); /* the client is freed during the lookup */
    loop_turn(b.loop);
    close_bad(&b);
    EQ_INT(r.code, ECANCELED);
}

/* --- HTTP/2, frame by frame --- */

#define PREFACE_N 24
#define SETTINGS "\0\0\0\4\0\0\0\0\0"
#define SETTINGS_N 9

static void send_bytes(struct raw *r, const char *bytes, size_t n)
{
    raw_send(r, (str){ bytes, n });
}

static struct raw *accept_http2(struct bad *b, size_t i)
{
    while (b->accepted <= i)
        loop_turn(b->loop);
    struct raw *r = &b->conns[i];
    while (r->in.n < PREFACE_N + 60)
        loop_turn(b->loop);
    send_bytes(r, SETTINGS, SETTINGS_N);
    return r;
}

static void answer_http2(struct raw *r, const char *body)
{
    char head[] = "\0\0\1\1\4\0\0\0\1\x88"; /* HEADERS of stream 1: status 200 */
    char data[9] = { 0, 0, (char)strlen(body), 0, 1, 0, 0, 0, 1 };
    send_bytes(r, head, sizeof(head) - 1);
    send_bytes(r, data, sizeof(data));
    raw_send(r, str_c(body));
}

static void http2_refused_stream(void)
{
    struct bad b;
    struct result r;
    open_bad(&b, (struct http_client_options){ .http2_plain = true });
    send_call(&b, &r, "POST"); /* refused unprocessed: any method is retried */
    struct raw *conn = accept_http2(&b, 0);
    send_bytes(conn, "\0\0\4\3\0\0\0\0\1\0\0\0\7", 13); /* RST_STREAM 1 REFUSED_STREAM */
    size_t before = conn->in.n;
    while (conn->in.n < before + 40)
        loop_turn(b.loop);
    char head[] = "\0\0\1\1\5\0\0\0\3\x88"; /* stream 3: 200 and END_STREAM */
    send_bytes(conn, head, sizeof(head) - 1);
    wait_result(&b, &r);
    EQ_INT(r.code, 0);
    EQ_INT(r.status, 200);
    close_bad(&b);
}

static void http2_goaway(void)
{
    struct bad b;
    struct result r, second;
    open_bad(&b, (struct http_client_options){ .http2_plain = true });
    send_call(&b, &r, "POST");
    struct raw *conn = accept_http2(&b, 0);
    /* GOAWAY that accepts stream 1: its response still arrives, the next call uses another connection. */
    send_bytes(conn, "\0\0\10\7\0\0\0\0\0\0\0\0\1\0\0\0\0", 17);
    size_t before = conn->in.n;
    for (int i = 0; i < 5; i++)                                      /* let it arrive */
        send_bytes(conn, "\0\0\10\6\0\0\0\0\0\0\0\0\1\0\0\0\0", 17); /* PING */
    while (conn->in.n < before + 17)
        loop_turn(b.loop);
    send_call(&b, &second, "POST");
    struct raw *other = accept_http2(&b, 1);
    answer_http2(other, "new");
    answer_http2(conn, "old");
    wait_result(&b, &r);
    wait_result(&b, &second);
    EQ_STR(buf_str(&r.body), S("old"));
    EQ_STR(buf_str(&second.body), S("new"));
    raw_wait_closed(conn);
    buf_done(&r.body), buf_done(&second.body);
    close_bad(&b);
}

static void http2_goaway_unprocessed(void)
{
    struct bad b;
    struct result r;
    open_bad(&b, (struct http_client_options){ .http2_plain = true });
    send_call(&b, &r, "POST");
    struct raw *conn = accept_http2(&b, 0);
    send_bytes(conn, "\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\0", 17); /* last stream 0 */
    answer_http2(accept_http2(&b, 1), "elsewhere");
    wait_result(&b, &r);
    EQ_INT(r.code, 0);
    EQ_STR(buf_str(&r.body), S("elsewhere"));
    buf_done(&r.body);
    close_bad(&b);
}

static void http2_cut(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        int code;
    } table[] = {
        { "", 0, ECONNRESET },
        { "\0\0\1\1\4\0\0\0\1\x88", 10, ECONNRESET },     /* head, then the end */
        { "\0\0\4\3\0\0\0\0\1\0\0\0\2", 13, ECONNRESET }, /* INTERNAL_ERROR */
        { "garbage that is no frame at all....", 35, EPROTO },
        { "\0\0\1\1\5\0\0\0\1\xff", 10, EPROTO }, /* header compression broken */
        { "\0\0\3\0\1\0\0\0\1abc", 12, EPROTO },  /* data before the head */
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct bad b;
        struct result r;
        open_bad(&b, (struct http_client_options){ .http2_plain = true });
        send_call(&b, &r, "POST");
        struct raw *conn = accept_http2(&b, 0);
        send_bytes(conn, table[i].bytes, table[i].n);
        shutdown(conn->fd, SHUT_WR);
        wait_result(&b, &r);
        if (!OK(r.code == table[i].code || (r.code && table[i].code == EPROTO)))
            printf("# %zu: %d %s\n", i, r.code, r.text);
        close_bad(&b);
    }
}

/* A connection that has gone silent is detected by an unanswered ping. */
static void http2_silence(void)
{
    struct bad b;
    struct result r;
    open_bad(&b, (struct http_client_options){ .http2_plain = true,
                                               .ping_after_ns = 30 * NS_PER_MS,
                                               .ping_timeout_ns = 30 * NS_PER_MS });
    send_call(&b, &r, "POST");
    accept_http2(&b, 0);
    wait_result(&b, &r);
    EQ_INT(r.code, ETIMEDOUT);
    OK(strstr(r.text, "ping"));
    close_bad(&b);
}

static void no_handshake(void)
{
    struct bad b;
    struct result r;
    err_t e;
    char url[64];
    struct tls *tls;
    open_bad(&b, (struct http_client_options){ 0 });
    http_client_free(b.client);
    snprintf(url, sizeof(url), "https://127.0.0.1:%d", b.port);
    OK_CALL(tls_client_new(&(struct tls_client_options){ .skip_verify = true }, &tls, &e), &e);
    struct http_client_options o = { .url = str_c(url),
                                     .tls = tls,
                                     .handshake_timeout_ns = 30 * NS_PER_MS };
    OK_CALL(http_client_new(b.loop, &o, &b.client, &e), &e);
    tls_unref(tls);
    send_call(&b, &r, "GET");
    wait_result(&b, &r);
    EQ_INT(r.code, ETIMEDOUT);
    OK(strstr(r.text, "TLS handshake"));
    send_call(&b, &r, "GET");
    while (b.accepted < 2)
        loop_turn(b.loop);
    raw_send(&b.conns[1], S("HTTP/1.1 400 Bad Request\r\n\r\n"));
    wait_result(&b, &r);
    EQ_INT(r.code, EPROTO);
    close_bad(&b);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(http1_answers),
                                        TAP(endless_headers),
                                        TAP(slow_drip),
                                        TAP(reset_by_peer),
                                        TAP(dead_while_idle),
                                        TAP(unasked_bytes),
                                        TAP(nobody_there),
                                        TAP(unknown_host),
                                        TAP(http2_refused_stream),
                                        TAP(http2_goaway),
                                        TAP(http2_goaway_unprocessed),
                                        TAP(http2_cut),
                                        TAP(http2_silence),
                                        TAP(no_handshake),
                                        { 0 } });
}
