/* The server against clients that pipeline, are slow, break the protocol or exceed limits. */
#include "raw.h"

#include "net/http_client.h"

static struct loop *loop;
static struct http_server *server;
static int requests_seen, closed_streams;
static struct exchange *waiting[8];
static size_t waiting_count;

static enum stream_more flood(void *context, struct buf *out, size_t room)
{
    size_t *total = context;
    memset(buf_reserve(out, room), 'f', room);
    out->n += room;
    *total += room;
    return STREAM_MORE;
}

static void flood_closed(void *context UNUSED, bool complete UNUSED)
{
    closed_streams++;
}

static size_t flooded;

static void on_request(void *context UNUSED, struct exchange *x)
{
    requests_seen++;
    if (str_eq(exchange_path(x), S("/wait")))
        waiting[waiting_count++ % countof(waiting)] = x;
    else if (str_eq(exchange_path(x), S("/flood")))
        exchange_stream(x, 200, (struct http_headers){ 0 },
                        &(struct stream_source){ flood, flood_closed, &flooded, false, -1 });
    else if (str_eq(exchange_path(x), S("/evil")))
        exchange_answer(x, 200,
                        HTTP_HEADERS({ S("x-split"), S("a\r\nset-cookie: b") },
                                     { S("content-length"), S("999") }),
                        S("fine"));
    else
        exchange_answer(x, 200, (struct http_headers){ 0 },
                        exchange_body(x).n ? exchange_body(x) : exchange_path(x));
}

static void open_server(struct http_server_options o)
{
    err_t e;
    requests_seen = closed_streams = 0;
    waiting_count = flooded = 0;
    o.on_request = on_request;
    OK_CALL(loop_new(&(struct loop_options){ 0 }, &loop, &e), &e);
    OK_CALL(http_server_new(loop, &o, &server, &e), &e);
}

static void close_server(void)
{
    http_server_free(server);
    loop_free(loop);
}

static void dial(struct raw *r)
{
    raw_connect(r, loop, http_server_port(server));
}

/* Every byte of a request may arrive by itself. */
static void byte_by_byte(void)
{
    open_server((struct http_server_options){ 0 });
    struct raw r;
    dial(&r);
    str text = S("POST /a%20b?c HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
    for (size_t i = 0; i < text.n; i++) {
        raw_send(&r, (str){ text.p + i, 1 });
        loop_turn(loop);
    }
    OK(raw_wait(&r, S("\r\n\r\nbody")));
    raw_close(&r);
    close_server();
}

static void pipelined(void)
{
    open_server((struct http_server_options){ 0 });
    struct raw r;
    dial(&r);
    raw_send(&r, S("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
                   "POST /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET /4 HTTP/1.1\r\nHost: x\r\n"
                   "Connection: close\r\n\r\nGET /5 HTTP/1.1\r\nHost: x\r\n\r\n"));
    while (waiting_count < 1)
        loop_turn(loop);
    EQ_INT(requests_seen, 2); /* the third waits for the second */
    exchange_answer(waiting[0], 200, (struct http_headers){ 0 }, S("/2"));
    raw_wait_closed(&r);
    size_t one = str_find(buf_str(&r.in), S("\r\n\r\n/1")), two = str_find(buf_str(&r.in), S("/2"));
    size_t three = str_find(buf_str(&r.in), S("abcde")), four = str_find(buf_str(&r.in), S("/4"));
    OK(one < two && two < three && three < four && four != SIZE_MAX);
    OK(raw_has(&r, S("connection: close")));
    EQ_INT(requests_seen, 4); /* bytes after "close" are ignored */
    raw_close(&r);
    close_server();
}

static void refusals(void)
{
    static const struct {
        const char *request, *status;
    } table[] = {
        { "GARBAGE\r\n\r\n", "400" },
        { "GET / HTTP/1.1\r\n\r\n", "400" }, /* no Host */
        { "GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n", "400" },
        { "GET / HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n", "400" },
        { "GET / HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n\r\n", "400" }, /* a bare line feed */
        { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
          "400" },
        { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n", "400" },
        { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400" },
        { "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400" },
        { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", "413" },
        { "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n"
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
          "aaaaaaaaaaaaaaaaaaaa\r\n0\r\n\r\n",
          "413" },
        { "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "405" },
        { "GET / HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n", "417" },
    };
    open_server((struct http_server_options){ .max_body_bytes = 100 });
    for (size_t i = 0; i < countof(table); i++) {
        struct raw r;
        char want[32];
        snprintf(want, sizeof(want), "HTTP/1.1 %s ", table[i].status);
        dial(&r);
        raw_send(&r, str_c(table[i].request));
        raw_wait_closed(&r);
        if (!OK(str_starts(buf_str(&r.in), str_c(want))))
            printf("# case %zu: " STR_FMT "\n", i, STR_ARG(buf_str(&r.in)));
        raw_close(&r);
    }
    EQ_INT(requests_seen, 0);
    close_server();
}

static void endless_heads(void)
{
    static const struct {
        const char *start, *status;
    } table[] = {
        { "GET /", "414" },
        { "GET / HTTP/1.1\r\nHost: x\r\nA: ", "431" },
        { "GET / HTTP/1.1\r\nHost: x\r\n", "431" }, /* and then a long name */
    };
    open_server((struct http_server_options){ .max_header_bytes = 10000 });
    for (size_t i = 0; i < countof(table); i++) {
        struct raw r;
        char want[32], filler[1000];
        snprintf(want, sizeof(want), "HTTP/1.1 %s ", table[i].status);
        memset(filler, 'a', sizeof(filler));
        dial(&r);
        raw_send(&r, str_c(table[i].start));
        for (int k = 0; k < 50; k++)
            raw_send(&r, (str){ filler, sizeof(filler) });
        OK(raw_wait(&r, str_c(want)));
        raw_close(&r);
    }
    struct raw r; /* many small ones */
    dial(&r);
    raw_send(&r, S("GET / HTTP/1.1\r\nHost: x\r\n"));
    for (int k = 0; k < 2000; k++)
        raw_send(&r, S("a: b\r\n"));
    OK(raw_wait(&r, S("HTTP/1.1 431 ")));
    raw_close(&r);
    EQ_INT(requests_seen, 0);
    close_server();
}

static void expectation(void)
{
    open_server((struct http_server_options){ .max_body_bytes = 100 });
    struct raw r;
    dial(&r);
    raw_send(&r,
             S("PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    OK(raw_wait(&r, S("HTTP/1.1 100 Continue\r\n\r\n")));
    EQ_INT(requests_seen, 0);
    raw_send(&r, S("hi"));
    OK(raw_wait(&r, S("\r\n\r\nhi")));
    raw_send(&r,
             S("PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 999\r\n\r\n"));
    OK(raw_wait(&r, S("HTTP/1.1 413 ")));
    raw_wait_closed(&r);
    raw_close(&r);
    close_server();
}

static void old_clients(void)
{
    open_server((struct http_server_options){ 0 });
    struct raw r;
    dial(&r);
    raw_send(&r, S("GET /old HTTP/1.0\r\n\r\n"));
    raw_wait_closed(&r);
    OK(raw_has(&r, S("content-length: 4")));
    OK(raw_has(&r, S("\r\n\r\n/old")));
    raw_close(&r);
    dial(&r);
    raw_send(&r, S("GET http://elsewhere/abs?q HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                   "Connection: upgrade\r\n\r\n"));
    OK(raw_wait(&r, S("\r\n\r\n/abs")));
    raw_close(&r);
    close_server();
}

static void handlers_cannot_split_answers(void)
{
    open_server((struct http_server_options){ 0 });
    struct raw r;
    dial(&r);
    raw_send(&r, S("GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"));
    OK(raw_wait(&r, S("fine")));
    OK(!raw_has(&r, S("set-cookie")));
    OK(!raw_has(&r, S("999")));
    raw_close(&r);
    close_server();
}

static void dawdlers(void)
{
    open_server((struct http_server_options){ .header_timeout_ns = 30 * NS_PER_MS,
                                              .body_timeout_ns = 30 * NS_PER_MS,
                                              .idle_timeout_ns = 60 * NS_PER_MS });
    struct raw head, body, idle, half_preface;
    dial(&head);
    raw_send(&head, S("GET / HTTP/1.1\r\nHo"));
    dial(&body);
    raw_send(&body, S("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"));
    dial(&idle);
    raw_send(&idle, S("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    dial(&half_preface);
    raw_send(&half_preface, S("PRI * HTTP/2"));
    OK(raw_wait(&head, S("HTTP/1.1 408 ")));
    OK(raw_wait(&body, S("HTTP/1.1 408 ")));
    raw_wait_closed(&idle);
    OK(raw_has(&idle, S("HTTP/1.1 200 ")));
    raw_close(&head), raw_close(&body), raw_close(&idle), raw_close(&half_preface);
    close_server();
}

/* A client that requests more than it reads is disconnected, and uses bounded memory until then. */
static void non_readers(void)
{
    open_server((struct http_server_options){ .write_timeout_ns = 50 * NS_PER_MS });
    struct raw r;
    dial(&r);
    fd_watch_set(r.watch, 0);
    raw_send(&r, S("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n"));
    while (!closed_streams)
        loop_turn(loop);
    OK(flooded > 0 && flooded < 16 * 1024 * 1024); /* the kernel's buffers */
    EQ_INT(http_server_connections(server), 0);
    raw_close(&r);
    close_server();
}

static void peers_that_leave(void)
{
    open_server((struct http_server_options){ 0 });
    struct raw a, b;
    dial(&a);
    raw_send(&a, S("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n"));
    raw_wait(&a, S("ffff"));
    raw_close(&a);
    while (!closed_streams)
        loop_turn(loop);
    dial(&b);
    raw_send(&b, S("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
    while (!waiting_count)
        loop_turn(loop);
    OK(!exchange_is_gone(waiting[0]));
    raw_close(&b);
    while (!exchange_is_gone(waiting[0]))
        loop_turn(loop);
    EQ_STR(exchange_path(waiting[0]), S("/wait")); /* still owned by the handler */
    exchange_answer(waiting[0], 200, (struct http_headers){ 0 }, S("x"));
    close_server();
}

/* Exchanges outlive the server until they are answered. */
static void server_leaves_first(void)
{
    open_server((struct http_server_options){ 0 });
    struct raw r;
    dial(&r);
    raw_send(&r, S("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
    while (!waiting_count)
        loop_turn(loop);
    http_server_free(server);
    OK(exchange_is_gone(waiting[0]));
    EQ_STR(exchange_method(waiting[0]), S("GET"));
    exchange_abort(waiting[0]);
    raw_wait_closed(&r);
    raw_close(&r);
    loop_free(loop);
}

static void connection_limit(void)
{
    open_server((struct http_server_options){ .max_connections = 2 });
    struct raw r[3];
    for (size_t i = 0; i < 3; i++) {
        dial(&r[i]);
        raw_send(&r[i], S("GET /x HTTP/1.1\r\nHost: x\r\n\r\n"));
        EQ_INT(raw_wait(&r[i], S("/x")), i < 2);
    }
    for (size_t i = 0; i < 3; i++)
        raw_close(&r[i]);
    close_server();
}

static const char *say_json(void *context UNUSED, int status, struct buf *body)
{
    buf_printf(body, "{\"code\":%d}", status);
    return "application/json";
}

static void refusals_in_own_words(void)
{
    open_server((struct http_server_options){ .refusal = say_json });
    struct raw r;
    dial(&r);
    raw_send(&r, S("nonsense\r\n\r\n"));
    raw_wait_closed(&r);
    OK(raw_has(&r, S("application/json")));
    OK(raw_has(&r, S("{\"code\":400}")));
    raw_close(&r);
    close_server();
}

static void unusable_addresses(void)
{
    err_t e;
    OK_CALL(loop_new(&(struct loop_options){ 0 }, &loop, &e), &e);
    struct http_server_options o = { .on_request = on_request, .address = "not-an-address" };
    EQ_INT(http_server_new(loop, &o, &server, &e), -EINVAL);
    OK(strstr(e.text, "not-an-address"));
    o.address = NULL;
    OK_CALL(http_server_new(loop, &o, &server, &e), &e);
    struct http_server *second;
    o.port = http_server_port(server);
    EQ_INT(http_server_new(loop, &o, &second, &e), -EADDRINUSE);
    OK(strstr(e.text, "cannot listen on 127.0.0.1 port"));
    close_server();
}

static void on_own_address(void *context, struct exchange *x)
{
    exchange_answer(x, 200, (struct http_headers){ 0 }, str_c(context));
}

static void on_page(void *context, const struct http_response *response, const err_t *failure)
{
    char *text = context;
    snprintf(text, 16, STR_FMT, STR_ARG(failure ? S("failed") : response->body));
}

/* In virtual time no connection leaves the process, and still each address has its own server. */
static void servers_of_one_port_in_virtual_time(void)
{
    static char addresses[2][16] = { "127.0.0.1", "127.77.0.2" };
    struct http_server *servers[2];
    uint16_t port = 0;
    err_t e;
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL }, &loop, &e), &e);
    for (size_t i = 0; i < 2; i++) {
        struct http_server_options o = { .on_request = on_own_address,
                                         .context = addresses[i],
                                         .address = addresses[i],
                                         .port = port };
        OK_CALL(http_server_new(loop, &o, &servers[i], &e), &e);
        port = http_server_port(servers[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        struct http_client *client;
        char url[64], text[16] = "";
        snprintf(url, sizeof(url), "http://%s:%u", addresses[i], port);
        OK_CALL(http_client_new(loop, &(struct http_client_options){ .url = str_c(url) }, &client,
                                &e),
                &e);
        http_client_fetch(client, &(struct http_fetch){ .method = S("GET"),
                                                        .target = S("/"),
                                                        .on_done = on_page,
                                                        .context = text });
        while (!*text)
            loop_turn(loop);
        EQ_STR(str_c(text), str_c(addresses[i]));
        http_client_free(client);
    }
    http_server_free(servers[0]);
    http_server_free(servers[1]);
    loop_free(loop);
}

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* HTTP/2: garbage after the preface gets GOAWAY, and the connection ends. */
static void http2_garbage(void)
{
    open_server((struct http_server_options){ 0 });
    struct raw r;
    dial(&r);
    raw_send(&r, str_c(preface));
    raw_send(&r, S("this is not a settings frame, it is text without meaning"));
    raw_wait_closed(&r);
    OK(r.in.n > 9);
    raw_close(&r);
    close_server();
}

/* HTTP/2: a request that never ends is refused after the timeout. */
static void http2_slow_body(void)
{
    open_server((struct http_server_options){ .header_timeout_ns = 20 * NS_PER_MS,
                                              .body_timeout_ns = 20 * NS_PER_MS,
                                              .idle_timeout_ns = 80 * NS_PER_MS });
    struct raw r;
    dial(&r);
    raw_send(&r, str_c(preface));
    raw_send(&r, (str){ "\0\0\0\4\0\0\0\0\0", 9 }); /* SETTINGS */
    /* HEADERS of stream 1 without END_STREAM: POST, http, / ; the body never comes */
    raw_send(&r, (str){ "\0\0\3\1\4\0\0\0\1\x83\x86\x84", 12 });
    raw_wait_closed(&r);
    EQ_INT(requests_seen, 0);
    raw_close(&r);
    close_server();
}

static bool drained;

static void on_drained(void *context UNUSED)
{
    drained = true;
}

/* None of the clients closes its end: a server that waited for them took two seconds to stop, or ten for one that had
 * not sent a byte. */
static void draining_closes_idle_connections_at_once(void)
{
    struct raw silent, kept, http2, busy;
    open_server((struct http_server_options){ 0 });
    dial(&silent);
    dial(&kept);
    raw_send(&kept, S("GET /kept HTTP/1.1\r\nHost: x\r\n\r\n"));
    OK(raw_wait(&kept, S("/kept")));
    dial(&http2);
    raw_send(&http2, str_c(preface));
    raw_send(&http2, (str){ "\0\0\0\4\0\0\0\0\0", 9 }); /* SETTINGS */
    OK(raw_wait(&http2, (str){ "\0\0\0\4\1", 5 }));     /* its acknowledgement */
    dial(&busy);
    raw_send(&busy, S("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
    while (!waiting_count)
        loop_turn(loop);
    drained = false;
    int64_t begun = loop_mono_ns(loop);
    http_server_drain(server, 60 * NS_PER_S, on_drained, NULL);
    while (http_server_connections(server) > 1)
        loop_turn(loop);
    OK(loop_mono_ns(loop) - begun < NS_PER_S);
    raw_wait_closed(&silent);
    raw_wait_closed(&kept);
    raw_wait_closed(&http2);
    OK(raw_has(&http2, (str){ "\0\0\10\7\0", 5 })); /* GOAWAY */
    OK(!drained && !busy.closed);
    exchange_answer(waiting[0], 200, (struct http_headers){ 0 }, S("in time"));
    OK(raw_wait(&busy, S("in time")));
    raw_close(&busy);
    while (!drained)
        loop_turn(loop);
    raw_close(&silent);
    raw_close(&kept);
    raw_close(&http2);
    close_server();
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(byte_by_byte),
                                        TAP(pipelined),
                                        TAP(refusals),
                                        TAP(endless_heads),
                                        TAP(expectation),
                                        TAP(old_clients),
                                        TAP(handlers_cannot_split_answers),
                                        TAP(dawdlers),
                                        TAP(non_readers),
                                        TAP(peers_that_leave),
                                        TAP(server_leaves_first),
                                        TAP(connection_limit),
                                        TAP(refusals_in_own_words),
                                        TAP(unusable_addresses),
                                        TAP(servers_of_one_port_in_virtual_time),
                                        TAP(http2_garbage),
                                        TAP(http2_slow_body),
                                        TAP(draining_closes_idle_connections_at_once),
                                        { 0 } });
}
