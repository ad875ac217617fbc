/* Client against server in every mode: answers, streams, watches, cancelling, pausing, deadlines. */
#include "harness.h"
#include "pages.h"

#define TEXT HTTP_HEADERS({ S("Content-Type"), S("text/plain") })

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
    EQ_INT(pages.closed, 2);
    EQ_INT(pages.complete, 2);
    buf_done(&a.body), buf_done(&b.body);
}

static void watches(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/watch") });
    while (!a.heads)
        loop_turn(n->loop);
    for (int i = 1; i <= 3; i++) {
        snprintf(pages.event, sizeof(pages.event), "event %d", i);
        exchange_wake_stream(pages.watching);
        while (a.chunks < (size_t)i)
            loop_turn(n->loop);
    }
    EQ_STR(buf_str(&a.body), S("event 1\nevent 2\nevent 3\n"));
    pages.watch_ends = true;
    exchange_wake_stream(pages.watching);
    outcome_wait(&a);
    EQ_INT(a.code, 0);
    net_settle(n);
    EQ_INT(pages.complete, 1);
    OK(!pages.watching);
    buf_done(&a.body);
}

static void send_event(const char *event)
{
    snprintf(pages.event, sizeof(pages.event), "%s", event);
    exchange_wake_stream(pages.watching);
}

/* The read delay of this client is one hour, so whatever arrives in the test was not delayed. */
static void delayed_reads(struct net *n)
{
    struct outcome a = { 0 }, b = { 0 };
    bool rests = n->mode.time == LOOP_REAL;
    outcome_send(&a, n, (struct http_request){ .target = S("/watch") });
    while (!a.heads)
        loop_turn(n->loop);
    http_call_allow_delay(a.call);
    send_event("after a quiet while: at once");
    while (a.chunks < 1)
        loop_turn(n->loop);
    send_event("then the connection rests");
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
        exchange_end_stream(pages.watching, cut);
        outcome_wait(&a);
        EQ_INT(a.code != 0, cut);
        net_settle(n);
        EQ_INT(pages.open, 0);
        EQ_INT(pages.complete, 1);
        buf_done(&a.body);
    }
}

static void cancelled_watch_closes_its_stream(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/watch") });
    while (!a.heads)
        loop_turn(n->loop);
    http_call_cancel(a.call);
    while (pages.open)
        loop_turn(n->loop);
    EQ_INT(pages.closed, 1);
    EQ_INT(pages.complete, 0);
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
    while (pages.open)
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
    OK(pages.pulled < 20000000);
    outcome_send(&other, n, (struct http_request){ .target = S("/hello") });
    outcome_wait(&other);
    EQ_OUTCOME(&other, 200, S("hello"));
    net_settle(n);
    OK(pages.pulled < 20000000);
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
    if (pages.held) {
        while (!exchange_is_gone(pages.held))
            loop_turn(n->loop);
        exchange_answer(pages.held, 200, TEXT, S("unread"));
    }
}

static void late_answers(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/hold") });
    while (!pages.held)
        loop_turn(n->loop);
    exchange_answer(pages.held, 200, TEXT, S("at last"));
    outcome_wait(&a);
    EQ_OUTCOME(&a, 200, S("at last"));
    buf_done(&a.body);
}

static void stream_to_disconnected(struct net *n)
{
    struct outcome a = { 0 };
    outcome_send(&a, n, (struct http_request){ .target = S("/hold") });
    while (!pages.held)
        loop_turn(n->loop);
    http_call_cancel(a.call);
    while (!exchange_is_gone(pages.held))
        loop_turn(n->loop);
    pages_open_stream(pages.held, (struct stream_source){
                                      pages_pull_event, .context = &pages.watching, .length = -1 });
    EQ_INT(pages.open, 1); /* closed() is called, but not from inside */
    loop_turn(n->loop);
    EQ_INT(pages.open, 0);
}

PAGES_CASE(plain_answers)
PAGES_CASE(heads_and_queries)
PAGES_CASE(identity)
PAGES_CASE(large_bodies)
PAGES_CASE(streamed_lists)
PAGES_CASE(watches)
PAGES_CASE(delayed_reads)
PAGES_CASE(watch_ended_from_outside)
PAGES_CASE(cancelled_watch_closes_its_stream)
PAGES_CASE(cancelling)
PAGES_CASE(pausing)
PAGES_CASE(pausing_compressed)
PAGES_CASE(broken_answers)
PAGES_CASE(deadlines)
PAGES_CASE(late_answers)
PAGES_CASE(stream_to_disconnected)

int main(void)
{
    int result = tap_run((struct tap_case[]){
        TAP(test_plain_answers),
        TAP(test_heads_and_queries),
        TAP(test_identity),
        TAP(test_large_bodies),
        TAP(test_streamed_lists),
        TAP(test_watches),
        TAP(test_delayed_reads),
        TAP(test_watch_ended_from_outside),
        TAP(test_cancelled_watch_closes_its_stream),
        TAP(test_cancelling),
        TAP(test_pausing),
        TAP(test_pausing_compressed),
        TAP(test_broken_answers),
        TAP(test_deadlines),
        TAP(test_late_answers),
        TAP(test_stream_to_disconnected),
        { 0 },
    });
    certificates_free();
    return result;
}
