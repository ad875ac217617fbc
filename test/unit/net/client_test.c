/* Client against server in every mode: answers, streams, cancelling, pausing, limits, drain.
 * */
#include "harness.h"

#define TEXT HTTP_HEADERS({ S("Content-Type"), S("text/plain") })

/* --- the server's side --- */

static struct loop *handler_loop;
static int requests_seen, streams_open, streams_closed, streams_complete;
static struct exchange *held;     /* by /hold */
static struct exchange *watching; /* by /watch */
static char events[64];           /* for /watch to send, one per pull */
static bool watch_ends;

static enum stream_more watch_pull(void *context UNUSED, struct buf *out, size_t room UNUSED)
{
    if (events[0]) {
        buf_printf(out, "%s\n", events);
        events[0] = '\0';
    }
    return watch_ends ? STREAM_END : STREAM_WAIT;
}

/* /big: `context` bytes, as fast as they are taken. */
static size_t pulled;

static enum stream_more big_pull(void *context, struct buf *out, size_t room)
{
    int64_t *left = context;
    size_t n = MIN(room, (size_t)*left);
    memset(buf_reserve(out, n), 'x', n);
    out->n += n;
    pulled += n;
    *left -= (int64_t)n;
    return *left ? STREAM_MORE : STREAM_END;
}

static enum stream_more cut_pull(void *context UNUSED, struct buf *out, size_t room UNUSED)
{
    static int part;
    if (part++ % 2 == 0) {
        buf_put(out, S("half"));
        return STREAM_MORE;
    }
    return STREAM_CUT;
}

static void stream_closed(void *context, bool complete)
{
    streams_open--;
    streams_closed++;
    streams_complete += complete;
    if (context == &watching)
        watching = NULL;
    else
        free(context);
}

static void open_stream(struct exchange *x, struct stream_source source)
{
    streams_open++;
    source.closed = stream_closed;
    exchange_stream(x, 200, TEXT, &source);
}

static void answer_identity(struct exchange *x)
{
    const struct tls_peer *peer = exchange_peer(x);
    auto_buf struct buf b = { 0 };
    buf_put(&b, peer ? peer->user : S("anonymous"));
    for (size_t i = 0; peer && i < peer->group_count; i++)
        buf_printf(&b, "," STR_FMT, STR_ARG(peer->groups[i]));
    exchange_answer_buf(x, 200, TEXT, &b);
}

static void on_request(void *context UNUSED, struct exchange *x)
{
    str path = exchange_path(x);
    requests_seen++;
    if (str_eq(path, S("/hello"))) {
        exchange_add_header(x, S("Warning"), S("299 - \"mind the gap\""));
        exchange_answer(x, 200, TEXT, S("hello"));
    } else if (str_eq(path, S("/echo"))) {
        exchange_answer(x, 201, TEXT, exchange_body(x));
    } else if (str_eq(path, S("/query"))) {
        exchange_answer(x, 200, TEXT, exchange_query(x));
    } else if (str_eq(path, S("/header"))) {
        exchange_answer(x, 200, TEXT, exchange_header(x, S("Authorization")));
    } else if (str_eq(path, S("/identity"))) {
        answer_identity(x);
    } else if (str_eq(path, S("/hold"))) {
        held = x;
    } else if (str_eq(path, S("/none"))) {
        exchange_answer(x, 204, (struct http_headers){ 0 }, S(""));
    } else if (str_eq(path, S("/abort"))) {
        exchange_abort(x);
    } else if (str_eq(path, S("/watch"))) {
        watching = x;
        open_stream(x, (struct stream_source){ watch_pull, .context = &watching, .length = -1 });
    } else if (str_eq(path, S("/big"))) {
        int64_t *left = mem_zero(1, sizeof(*left));
        str size;
        uri_query_get(exchange_arena(x), exchange_query(x), S("n"), &size);
        str_to_i64(size, left);
        bool zip = str_find(exchange_query(x), S("zip")) != SIZE_MAX;
        open_stream(x, (struct stream_source){ big_pull, .context = left, .length = -1,
                                               .compress = zip });
    } else if (str_eq(path, S("/cut"))) {
        open_stream(x, (struct stream_source){ cut_pull, .length = -1 });
    } else if (str_eq(path, S("/short"))) { /* announces 10 bytes, sends 4 */
        open_stream(x, (struct stream_source){ cut_pull, .length = 10 });
    } else {
        exchange_answer(x, 404, TEXT, S("no such page"));
    }
}

static void open_net(struct net *n, struct mode mode)
{
    requests_seen = streams_open = streams_closed = streams_complete = 0;
    held = watching = NULL;
    pulled = 0;
    watch_ends = false;
    net_open(n, mode, (struct http_server_options){ .on_request = on_request },
             (struct http_client_options){ .read_delay_ns = 3600 * NS_PER_S });
    handler_loop = n->loop;
}

/* --- cases; each runs in every mode --- */

static void plain_answers(struct net *n)
{
    struct outcome a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/hello") });
    EQ_INT(a.dones, 0); /* nothing happens inside send */
    outcome_wait(&a);
    EQ_OUTCOME(&a, 200, S("hello"));
    EQ_INT(a.heads, 1);
    EQ_INT(a.http2, n->mode.http2);
    EQ_STR(str_c(a.type), S("text/plain"));
    outcome_send(&b, n,
                 (struct http_request){
                     .method = S("POST"), .target = S("/echo"), .body = S("twice") });
    outcome_wait(&b);
    EQ_OUTCOME(&b, 201, S("twice"));
    outcome_send(&c, n, (struct http_request){ .target = S("/nowhere") });
    outcome_wait(&c);
    EQ_OUTCOME(&c, 404, S("no such page"));
    outcome_send(&d, n, (struct http_request){ .target = S("/none") });
    outcome_wait(&d);
    EQ_OUTCOME(&d, 204, S(""));
    EQ_INT(http_client_connections(n->client), 1);
    EQ_INT(http_server_connections(n->server), 1);
    buf_done(&a.body), buf_done(&b.body), buf_done(&c.body), buf_done(&d.body);
}

static void heads_and_queries(struct net *n)
{
    struct outcome a = { 0 }, b = { 0 };
    outcome_send(&a, n, (struct http_request){ .method = S("HEAD"), .target = S("/hello") });
    outcome_wait(&a);
    EQ_OUTCOME(&a, 200, S(""));
    outcome_send(&b, n, (struct http_request){ .target = S("/query?a=1&b=%20") });
    outcome_wait(&b);
    EQ_OUTCOME(&b, 200, S("a=1&b=%20"));
    buf_done(&a.body), buf_done(&b.body);
}

static void identity(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/identity") });
    outcome_wait(&a);
    EQ_OUTCOME(&a, 200, n->mode.tls ? S("alice,dev,ops") : S("anonymous"));
    buf_done(&a.body);
}

static void large_bodies(struct net *n)
{
    enum { SIZE = 3 * 1024 * 1024 };
    struct outcome a = { 0 }, b = { 0 };
    struct buf body = { 0 };
    for (size_t i = 0; i < SIZE; i++) /* differs from one frame or record to the next */
        buf_reserve(&body, SIZE)[i] = (char)('a' + (i / 1000 + i % 7) % 26);
    body.n = SIZE;
    outcome_send(&a, n,
                 (struct http_request){
                     .method = S("PUT"), .target = S("/echo"), .body = buf_str(&body) });
    outcome_wait(&a);
    EQ_INT(a.code, 0);
    OK(str_eq(buf_str(&a.body), buf_str(&body)));
    buf_putc(&body, 'x'); /* one too many */
    outcome_send(&b, n,
                 (struct http_request){
                     .method = S("PUT"), .target = S("/echo"), .body = buf_str(&body) });
    outcome_wait(&b);
    EQ_OUTCOME(&b, 413, S("413 Request Entity Too Large\n"));
    buf_done(&body), buf_done(&a.body), buf_done(&b.body);
}

static void streamed_lists(struct net *n)
{
    struct outcome a = { 0 }, b = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/big?n=5000000") });
    outcome_send(&b, n, (struct http_request){ .target = S("/big?n=5000000&zip") });
    outcome_wait(&a);
    outcome_wait(&b);
    EQ_INT(a.code, 0);
    EQ_INT(a.body.n, 5000000);
    EQ_INT(b.code, 0);
    EQ_INT(b.body.n, 5000000);
    net_settle(n);
    EQ_INT(streams_closed, 2);
    EQ_INT(streams_complete, 2);
    buf_done(&a.body), buf_done(&b.body);
}

static void watches(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/watch") });
    while (!a.heads)
        loop_turn(n->loop);
    for (int i = 1; i <= 3; i++) {
        snprintf(events, sizeof(events), "event %d", i);
        exchange_wake_stream(watching);
        while (a.chunks < (size_t)i)
            loop_turn(n->loop);
    }
    EQ_STR(buf_str(&a.body), S("event 1\nevent 2\nevent 3\n"));
    watch_ends = true;
    exchange_wake_stream(watching);
    outcome_wait(&a);
    EQ_INT(a.code, 0);
    net_settle(n);
    EQ_INT(streams_complete, 1);
    OK(!watching);
    buf_done(&a.body);
}

static void tell(const char *event)
{
    snprintf(events, sizeof(events), "%s", event);
    exchange_wake_stream(watching);
}

/* The read delay of this client is one hour, so whatever arrives in the test was not delayed. */
static void patience(struct net *n)
{
    struct outcome a = { 0 }, b = { 0 };
    bool rests = n->mode.time == LOOP_REAL;
    outcome_send(&a, n, (struct http_request){ .target = S("/watch") });
    while (!a.heads)
        loop_turn(n->loop);
    http_call_allow_delay(a.call);
    tell("after a quiet while: at once");
    while (a.chunks < 1)
        loop_turn(n->loop);
    tell("then the connection rests");
    net_settle(n);
    EQ_INT(a.chunks, rests ? 1 : 2);
    outcome_send(&b, n, (struct http_request){ .target = S("/hello") });
    outcome_wait(&b); /* never delayed, and with HTTP/2 it also delivers what waited */
    EQ_OUTCOME(&b, 200, S("hello"));
    while (a.chunks < 2 && n->mode.http2)
        loop_turn(n->loop);
    EQ_INT(a.chunks, rests && !n->mode.http2 ? 1 : 2);
    http_call_cancel(a.call);
    buf_done(&a.body), buf_done(&b.body);
}

static void watch_ended_from_outside(struct net *n)
{
    for (int cut = 0; cut < 2; cut++) {
        struct outcome a = { 0 };
        outcome_send(&a, n, (struct http_request){ .target = S("/watch") });
        while (!a.heads)
            loop_turn(n->loop);
        exchange_end_stream(watching, cut);
        outcome_wait(&a);
        EQ_INT(a.code != 0, cut);
        net_settle(n);
        EQ_INT(streams_open, 0);
        EQ_INT(streams_complete, 1);
        buf_done(&a.body);
    }
}

static void cancelled_watch_is_told(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/watch") });
    while (!a.heads)
        loop_turn(n->loop);
    http_call_cancel(a.call);
    while (streams_open)
        loop_turn(n->loop);
    EQ_INT(streams_closed, 1);
    EQ_INT(streams_complete, 0);
    EQ_INT(a.dones, 0);
}

/* Cancel in every callback and before any; the client continues to work. */
static void cancelling(struct net *n)
{
    struct outcome in_head = { .cancel_at = SIZE_MAX }, in_data = { .cancel_at = 1 },
                   at_once = { 0 };
    struct outcome soon = { 0 }, after = { 0 };
    outcome_send(&in_head, n, (struct http_request){ .target = S("/big?n=1000000") });
    outcome_send(&in_data, n, (struct http_request){ .target = S("/big?n=1000000") });
    outcome_send(&at_once, n, (struct http_request){ .target = S("/hello") });
    http_call_cancel(at_once.call);
    outcome_send(&soon, n, (struct http_request){ .target = S("/hello") });
    loop_turn(n->loop);
    http_call_cancel(soon.call);
    while (!in_data.chunks || !in_head.heads)
        loop_turn(n->loop);
    outcome_send(&after, n, (struct http_request){ .target = S("/hello") });
    outcome_wait(&after);
    EQ_OUTCOME(&after, 200, S("hello"));
    while (streams_open)
        loop_turn(n->loop);
    EQ_INT(in_head.dones + in_data.dones + at_once.dones + soon.dones, 0);
    EQ_INT(in_head.chunks, 0);
    EQ_INT(in_data.chunks, 1);
    buf_done(&in_data.body), buf_done(&after.body);
}

/* A paused call stops the server after a window or the kernel's buffers, and no other call. */
static void pausing(struct net *n)
{
    struct outcome slow = { .pause_at = 1 }, other = { 0 };
    outcome_send(&slow, n, (struct http_request){ .target = S("/big?n=40000000") });
    while (!slow.paused)
        loop_turn(n->loop);
    net_settle(n);
    OK(pulled < 20000000);
    outcome_send(&other, n, (struct http_request){ .target = S("/hello") });
    outcome_wait(&other);
    EQ_OUTCOME(&other, 200, S("hello"));
    net_settle(n);
    OK(pulled < 20000000);
    slow.paused = false;
    http_call_resume(slow.call);
    EQ_INT(slow.chunks, 1);
    outcome_wait(&slow);
    EQ_INT(slow.code, 0);
    EQ_INT(slow.body.n, 40000000);
    buf_done(&slow.body), buf_done(&other.body);
}

static void pausing_compressed(struct net *n)
{
    struct outcome slow = { .pause_at = 1 };
    outcome_send(&slow, n, (struct http_request){ .target = S("/big?n=3000000&zip") });
    while (!slow.dones) {
        loop_turn(n->loop);
        if (slow.paused) {
            slow.paused = false;
            slow.pause_at++;
            http_call_resume(slow.call);
        }
    }
    EQ_INT(slow.code, 0);
    EQ_INT(slow.body.n, 3000000);
    OK(slow.chunks > 10);
    buf_done(&slow.body);
}

static void broken_answers(struct net *n)
{
    static const char *const targets[] = { "/abort", "/cut", "/short" };
    for (size_t i = 0; i < countof(targets); i++) {
        struct outcome a = { 0 };
        outcome_send(&a, n,
                     (struct http_request){ .method = S("POST"), .target = str_c(targets[i]) });
        outcome_wait(&a);
        if (!OK(a.code != 0))
            tap_note(__FILE__, __LINE__, "%s %s", n->mode.name, targets[i]);
        OK(strlen(a.text) > 0);
        buf_done(&a.body);
    }
}

static void deadlines(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n,
                 (struct http_request){ .target = S("/hold"),
                                        .deadline_ns = loop_mono_ns(n->loop) + 20 * NS_PER_MS });
    outcome_wait(&a);
    EQ_INT(a.code, ETIMEDOUT);
    if (held) {
        while (!exchange_is_gone(held))
            loop_turn(n->loop);
        exchange_answer(held, 200, TEXT, S("unread"));
    }
}

static void late_answers(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/hold") });
    while (!held)
        loop_turn(n->loop);
    exchange_answer(held, 200, TEXT, S("at last"));
    outcome_wait(&a);
    EQ_OUTCOME(&a, 200, S("at last"));
    buf_done(&a.body);
}

static void stream_to_disconnected(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/hold") });
    while (!held)
        loop_turn(n->loop);
    http_call_cancel(a.call);
    while (!exchange_is_gone(held))
        loop_turn(n->loop);
    open_stream(held, (struct stream_source){ watch_pull, .context = &watching, .length = -1 });
    EQ_INT(streams_open, 1); /* closed() is called, but not from inside */
    loop_turn(n->loop);
    EQ_INT(streams_open, 0);
}

static void thousands(struct net *n)
{
    enum { CALLS = 2000 };
    struct outcome *all = mem_zero(CALLS, sizeof(*all));
    for (size_t i = 0; i < CALLS; i++)
        outcome_send(&all[i], n, (struct http_request){ .target = S("/hello") });
    int failed = 0;
    for (size_t i = 0; i < CALLS; i++) {
        outcome_wait(&all[i]);
        failed +=
            all[i].code != 0 || all[i].status != 200 || !str_eq(buf_str(&all[i].body), S("hello"));
        buf_done(&all[i].body);
    }
    EQ_INT(failed, 0);
    EQ_INT(requests_seen, CALLS);
    OK(http_client_connections(n->client) <= (n->mode.http2 ? 2 : 256));
    free(all);
}

static void many_watches(struct net *n)
{
    enum { WATCHES = 100 };
    struct outcome all[WATCHES] = { 0 };
    for (size_t i = 0; i < WATCHES; i++) {
        outcome_send(&all[i], n, (struct http_request){ .target = S("/watch") });
        while (!all[i].heads)
            loop_turn(n->loop);
    }
    EQ_INT(streams_open, WATCHES);
    EQ_INT(http_client_connections(n->client), n->mode.http2 ? 1 : WATCHES);
    http_client_free(n->client); /* both sides are notified */
    n->client = NULL;
    for (size_t i = 0; i < WATCHES; i++)
        EQ_INT(all[i].code, ECANCELED);
    while (streams_open)
        loop_turn(n->loop);
}

static void bad_requests(struct net *n)
{
    static const struct http_header split = { { "a", 1 }, { "b\r\nc: d", 7 } };
    static const struct http_request bad[] = {
        { .method = { "GE T", 4 }, .target = { "/", 1 } },
        { .target = { "no-slash", 8 } },
        { .target = { "/a b", 4 } },
        { .target = { "/a\r\nx: y", 8 } },
        { .target = { "/\xc3\xa4", 3 } },
        { .target = { "/", 1 }, .headers = { &split, 1 } },
    };
    for (size_t i = 0; i < countof(bad); i++) {
        struct outcome a = { 0 };
        outcome_send(&a, n, bad[i]);
        EQ_INT(a.dones, 0);
        outcome_wait(&a);
        EQ_INT(a.code, EINVAL);
    }
    EQ_INT(requests_seen, 0);
}

static bool drained;

static void on_drained(void *context UNUSED)
{
    drained = true;
}

static void draining(struct net *n)
{
    struct outcome slow = { 0 }, late = { 0 };
    outcome_send(&slow, n, (struct http_request){ .target = S("/hold") });
    while (!held)
        loop_turn(n->loop);
    drained = false;
    http_server_drain(n->server, 60 * NS_PER_S, on_drained, NULL);
    net_settle(n);
    OK(!drained);
    outcome_send(&late, n, (struct http_request){ .target = S("/hello") });
    outcome_wait(&late); /* the server does not listen any more */
    OK(late.code != 0);
    exchange_answer(held, 200, TEXT, S("finished"));
    outcome_wait(&slow);
    EQ_OUTCOME(&slow, 200, S("finished"));
    while (!drained)
        loop_turn(n->loop);
    EQ_INT(http_server_connections(n->server), 0);
    buf_done(&slow.body);
}

/* The client has not noticed that its idle connection was closed: the call is retried. */
static void server_restarts(struct net *n)
{
    struct outcome a = { 0 }, b = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/hello") });
    outcome_wait(&a);
    uint16_t port = http_server_port(n->server);
    http_server_free(n->server);
    struct http_server_options o = { .on_request = on_request,
                                     .port = port,
                                     .tls = n->mode.tls ? server_tls(!n->mode.http2) : NULL };
    err_t e;
    OK_CALL(http_server_new(n->loop, &o, &n->server, &e), &e);
    tls_unref(o.tls);
    outcome_send(&b, n, (struct http_request){ .target = S("/hello") });
    outcome_wait(&b);
    EQ_OUTCOME(&b, 200, S("hello"));
    buf_done(&a.body), buf_done(&b.body);
}

static void fetched(void *context, const struct http_response *response, const err_t *failure)
{
    int *result = context;
    *result = failure ? -failure->code : response->status * 1000 + (int)response->body.n;
}

static void fetching(struct net *n)
{
    int small = 0, large = 0, cancelled = 0;
    http_client_fetch(n->client, &(struct http_fetch){ .method = S("GET"),
                                                       .target = S("/hello"),
                                                       .on_done = fetched,
                                                       .context = &small });
    http_client_fetch(n->client, &(struct http_fetch){ .method = S("GET"),
                                                       .target = S("/big?n=2000000"),
                                                       .max_body_bytes = 1000000,
                                                       .on_done = fetched,
                                                       .context = &large });
    struct http_call *call =
        http_client_fetch(n->client, &(struct http_fetch){ .method = S("GET"),
                                                           .target = S("/hold"),
                                                           .on_done = fetched,
                                                           .context = &cancelled });
    while (!small || !large || !held)
        loop_turn(n->loop);
    EQ_INT(small, 200005);
    EQ_INT(large, -EMSGSIZE);
    http_call_cancel(call);
    net_settle(n);
    EQ_INT(cancelled, 0);
    exchange_answer(held, 200, TEXT, S(""));
}

/* The owner of a call closes everything from inside its callback. */
static void free_from_inside(void *context, str bytes UNUSED)
{
    struct net *n = context;
    http_client_free(n->client);
    n->client = NULL;
}

static void note_cancelled(void *context UNUSED, const err_t *failure)
{
    OK(failure && failure->code == ECANCELED);
}

static void freeing_from_inside(struct net *n)
{
    http_client_send(n->client, &(struct http_request){ .method = S("GET"),
                                                        .target = S("/big?n=1000000"),
                                                        .on_data = free_from_inside,
                                                        .on_done = note_cancelled,
                                                        .context = n });
    while (n->client)
        loop_turn(n->loop);
    while (streams_open)
        loop_turn(n->loop);
}

static int token;

static void authorize(void *context UNUSED, struct http_header_list *list)
{
    char text[32];
    snprintf(text, sizeof(text), "Bearer t%d", ++token);
    http_header_list_add(list, S("Authorization"), str_c(text));
}

static void tokens_rotate(struct net *n)
{
    http_client_free(n->client);
    err_t e;
    struct tls *tls = n->mode.tls ? client_tls(false) : NULL;
    struct http_client_options o = { .url = str_c(n->url),
                                     .tls = tls,
                                     .authorize = authorize,
                                     .http2_plain = !n->mode.tls && n->mode.http2 };
    OK_CALL(http_client_new(n->loop, &o, &n->client, &e), &e);
    tls_unref(tls);
    token = 0;
    for (int i = 1; i <= 2; i++) {
        struct outcome a = { 0 };
        char want[32];
        snprintf(want, sizeof(want), "Bearer t%d", i);
        outcome_send(&a, n, (struct http_request){ .target = S("/header") });
        outcome_wait(&a);
        EQ_OUTCOME(&a, 200, str_c(want));
        buf_done(&a.body);
    }
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/identity") });
    outcome_wait(&a);
    EQ_OUTCOME(&a, 200, S("anonymous"));
    buf_done(&a.body);
}

static void in_every_mode(void (*run)(struct net *))
{
    for (size_t i = 0; i < countof(modes); i++) {
        int before = tap_failures;
        struct net n;
        open_net(&n, modes[i]);
        run(&n);
        net_close(&n);
        if (tap_failures > before)
            printf("# in mode %s\n", modes[i].name);
    }
}

#define CASE(name)                                                                                 \
    static void test_##name(void)                                                                  \
    {                                                                                              \
        in_every_mode(name);                                                                       \
    }
CASE(plain_answers)
CASE(heads_and_queries)
CASE(identity)
CASE(large_bodies)
CASE(streamed_lists)
CASE(watches)
CASE(patience)
CASE(watch_ended_from_outside)
CASE(cancelled_watch_is_told)
CASE(cancelling)
CASE(pausing)
CASE(pausing_compressed)
CASE(broken_answers)
CASE(deadlines)
CASE(late_answers)
CASE(stream_to_disconnected)
CASE(thousands)
CASE(many_watches)
CASE(bad_requests)
CASE(draining)
CASE(server_restarts)
CASE(fetching)
CASE(freeing_from_inside)
CASE(tokens_rotate)

int main(void)
{
    int result = tap_run((struct tap_case[]){ TAP(test_plain_answers),
                                              TAP(test_heads_and_queries),
                                              TAP(test_identity),
                                              TAP(test_large_bodies),
                                              TAP(test_streamed_lists),
                                              TAP(test_watches),
                                              TAP(test_patience),
                                              TAP(test_watch_ended_from_outside),
                                              TAP(test_cancelled_watch_is_told),
                                              TAP(test_cancelling),
                                              TAP(test_pausing),
                                              TAP(test_pausing_compressed),
                                              TAP(test_broken_answers),
                                              TAP(test_deadlines),
                                              TAP(test_late_answers),
                                              TAP(test_stream_to_disconnected),
                                              TAP(test_thousands),
                                              TAP(test_many_watches),
                                              TAP(test_bad_requests),
                                              TAP(test_draining),
                                              TAP(test_server_restarts),
                                              TAP(test_fetching),
                                              TAP(test_freeing_from_inside),
                                              TAP(test_tokens_rotate),
                                              { 0 } });
    certificates_free();
    return result;
}
