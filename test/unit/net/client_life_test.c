/* The life of a client in every mode: thousands of calls, bad requests, a server that drains or restarts, fetches, freeing
 * from inside a callback, tokens that rotate. */
#include "harness.h"
#include "pages.h"

#define TEXT HTTP_HEADERS({ S("Content-Type"), S("text/plain") })

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
    EQ_INT(pages.requests, CALLS);
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
    EQ_INT(pages.open, WATCHES);
    EQ_INT(http_client_connections(n->client), n->mode.http2 ? 1 : WATCHES);
    http_client_free(n->client); /* both sides are notified */
    n->client = NULL;
    for (size_t i = 0; i < WATCHES; i++)
        EQ_INT(all[i].code, ECANCELED);
    while (pages.open)
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
    EQ_INT(pages.requests, 0);
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
    while (!pages.held)
        loop_turn(n->loop);
    drained = false;
    http_server_drain(n->server, 60 * NS_PER_S, on_drained, NULL);
    net_settle(n);
    OK(!drained);
    outcome_send(&late, n, (struct http_request){ .target = S("/hello") });
    outcome_wait(&late); /* the server does not listen any more */
    OK(late.code != 0);
    exchange_answer(pages.held, 200, TEXT, S("finished"));
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
    struct http_server_options o = { .on_request = pages_serve,
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
    while (!small || !large || !pages.held)
        loop_turn(n->loop);
    EQ_INT(small, 200005);
    EQ_INT(large, -EMSGSIZE);
    http_call_cancel(call);
    net_settle(n);
    EQ_INT(cancelled, 0);
    exchange_answer(pages.held, 200, TEXT, S(""));
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
    while (pages.open)
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

PAGES_CASE(thousands)
PAGES_CASE(many_watches)
PAGES_CASE(bad_requests)
PAGES_CASE(draining)
PAGES_CASE(server_restarts)
PAGES_CASE(fetching)
PAGES_CASE(freeing_from_inside)
PAGES_CASE(tokens_rotate)

int main(void)
{
    int result = tap_run((struct tap_case[]){
        TAP(test_thousands),
        TAP(test_many_watches),
        TAP(test_bad_requests),
        TAP(test_draining),
        TAP(test_server_restarts),
        TAP(test_fetching),
        TAP(test_freeing_from_inside),
        TAP(test_tokens_rotate),
        { 0 },
    });
    certificates_free();
    return result;
}
