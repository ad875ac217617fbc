/* Who may read the metrics: an API server that knows three tokens, and a page behind the guard. */
#include "cmd/guard.h"
#include "net/http_client.h"
#include "unit/kube/fake.h"

struct page {
    struct fake api;
    struct guard *guard;
    struct http_server *server;
    struct http_client *client;
    int served;
};

static bool api_down, api_silent;
static struct exchange *left_waiting;

static void serve_api(struct fake *f UNUSED, struct exchange *x)
{
    str body = exchange_body(x);
    bool token = str_eq(exchange_path(x), S("/apis/authentication.k8s.io/v1/tokenreviews"));
    bool reader = str_find(body, S("reader")) != SIZE_MAX;
    if (api_silent)
        left_waiting = x;
    else if (api_down)
        fake_answer(x, 403,
                    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\"}");
    else if (token && (reader || str_find(body, S("stranger")) != SIZE_MAX))
        fake_answer(
            x, 201,
            reader ? "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"reader\","
                     "\"uid\":\"7\",\"groups\":[\"a\",\"b\"],\"extra\":{\"k\":[\"v\"]}}}}"
                   : "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"other\"}}}");
    else if (token)
        fake_answer(x, 201, "{\"status\":{\"authenticated\":false}}");
    else
        fake_answer(x, 201, reader ? "{\"status\":{\"allowed\":true}}" : "{\"status\":{}}");
}

static void serve_page(void *context, struct exchange *x)
{
    ((struct page *)context)->served++;
    exchange_answer(x, 200, (struct http_headers){ 0 }, S("metrics"));
}

static void on_request(void *context, struct exchange *x)
{
    guard_pass(((struct page *)context)->guard, x, serve_page, context);
}

static void open_page(struct page *p)
{
    err_t e = { 0 };
    *p = (struct page){ 0 };
    api_down = api_silent = false;
    fake_start(&p->api, serve_api);
    p->guard = guard_new(p->api.kube, "/metrics");
    OK_CALL(http_server_new(p->api.loop,
                            &(struct http_server_options){ .on_request = on_request, .context = p },
                            &p->server, &e),
            &e);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", http_server_port(p->server));
    OK_CALL(http_client_new(p->api.loop, &(struct http_client_options){ .url = str_c(url) },
                            &p->client, &e),
            &e);
}

static void close_page(struct page *p)
{
    guard_free(p->guard);
    http_client_free(p->client);
    http_server_free(p->server);
    fake_stop(&p->api);
}

struct seen {
    bool done;
    int status; /* 0: cut */
};

static void answered(void *context, const struct http_response *response,
                     const err_t *failure UNUSED)
{
    *(struct seen *)context = (struct seen){ true, response ? response->status : 0 };
}

static void ask(struct page *p, const char *authorization, struct seen *seen)
{
    struct http_header header = { S("authorization"), str_c(authorization) };
    http_client_fetch(p->client,
                      &(struct http_fetch){ .method = S("GET"),
                                            .target = S("/metrics"),
                                            .headers = { &header, *authorization ? 1 : 0 },
                                            .on_done = answered,
                                            .context = seen });
}

static int get(struct page *p, const char *authorization)
{
    struct seen seen = { 0 };
    ask(p, authorization, &seen);
    fake_until(&p->api, &seen.done);
    return seen.status;
}

static void tokens_are_shown_to_the_api_server(void)
{
    static const struct {
        const char *authorization;
        int status, questions;
    } t[] = {
        { "", 401, 0 },
        { "Basic cmVhZGVyOg==", 401, 0 },
        { "Bearer", 401, 0 },
        { "Bearer nobody", 401, 1 },
        { "Bearer stranger", 403, 2 },
        { "Bearer reader", 200, 2 },
        { "bearer  reader ", 200, 0 }, /* the same, and remembered */
    };
    struct page p;
    open_page(&p);
    for (size_t i = 0; i < countof(t); i++) {
        int before = p.api.requests;
        EQ_INT(get(&p, t[i].authorization), t[i].status);
        EQ_INT(p.api.requests - before, t[i].questions);
    }
    EQ_INT(p.served, 2);
    OK(str_find(buf_str(&p.api.log),
                S("\"spec\":{\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"},"
                  "\"user\":\"reader\",\"uid\":\"7\",\"groups\":[\"a\",\"b\"],\"extra\":{\"k\":"
                  "[\"v\"]}}")) != SIZE_MAX);
    close_page(&p);
}

static void answers_are_remembered_for_a_while(void)
{
    struct page p;
    open_page(&p);
    EQ_INT(get(&p, "Bearer reader"), 200);
    EQ_INT(get(&p, "Bearer stranger"), 403);
    int before = p.api.requests;
    api_down = true;
    fake_for(&p.api, 9 * NS_PER_S);
    EQ_INT(get(&p, "Bearer reader"), 200);
    EQ_INT(get(&p, "Bearer stranger"), 403);
    EQ_INT(p.api.requests - before, 0);
    fake_for(&p.api, 60 * NS_PER_S);
    EQ_INT(get(&p, "Bearer reader"), 500); /* the answer is unknown */
    api_down = false;
    EQ_INT(get(&p, "Bearer reader"), 200);
    EQ_INT(get(&p, "Bearer stranger"), 403);
    close_page(&p);
}

/* Forty at once: a few are looked at, the others are sent away; who is known is served all the same. */
static void a_flood_of_tokens_costs_little(void)
{
    struct page p;
    struct seen seen[40] = { 0 };
    char word[32];
    open_page(&p);
    EQ_INT(get(&p, "Bearer reader"), 200);
    fake_for(&p.api, 2 * NS_PER_S);
    int before = p.api.requests, busy = 0;
    for (size_t i = 0; i < countof(seen); i++) {
        snprintf(word, sizeof(word), "Bearer guess-%zu", i);
        ask(&p, word, &seen[i]);
    }
    for (size_t i = 0; i < countof(seen); i++) {
        fake_until(&p.api, &seen[i].done);
        busy += seen[i].status == 429;
    }
    OK(p.api.requests - before <= 20); /* at most two seconds' worth */
    OK(busy >= 20);
    EQ_INT(get(&p, "Bearer reader"), 200);
    close_page(&p);
}

static void who_waits_at_the_end_is_cut(void)
{
    struct page p;
    struct seen seen = { 0 };
    open_page(&p);
    api_silent = true;
    left_waiting = NULL;
    ask(&p, "Bearer reader", &seen);
    while (!left_waiting)
        loop_turn(p.api.loop);
    guard_free(take(p.guard));
    fake_until(&p.api, &seen.done);
    EQ_INT(seen.status, 0);
    exchange_abort(left_waiting);
    close_page(&p);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(tokens_are_shown_to_the_api_server),
                                        TAP(answers_are_remembered_for_a_while),
                                        TAP(a_flood_of_tokens_costs_little),
                                        TAP(who_waits_at_the_end_is_cut),
                                        { 0 } });
}
