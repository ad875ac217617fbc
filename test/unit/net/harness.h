/* A server and a client of src/net on one loop, in every combination of protocol, TLS and time. A test
 * iterates over `modes`, calls net_open(), sends calls, turns the loop and calls net_close(). */
#ifndef FLYBALL_TEST_HARNESS_H
#define FLYBALL_TEST_HARNESS_H

#include "net/net.h"
#include "tap.h"

struct mode {
    const char *name;
    enum loop_time time;
    bool tls, http2;
};

static const struct mode modes[] = {
    { "HTTP/1.1 plain", LOOP_REAL, false, false },
    { "HTTP/1.1 TLS", LOOP_REAL, true, false },
    { "HTTP/2 plain", LOOP_REAL, false, true },
    { "HTTP/2 TLS", LOOP_REAL, true, true },
    { "HTTP/1.1 plain, virtual time", LOOP_VIRTUAL, false, false },
    { "HTTP/2 TLS, virtual time", LOOP_VIRTUAL, true, true },
};

/* Created once: generating keys is slow under the sanitizers. */
struct certificates {
    struct cert_pair ca, server, client;
};

static UNUSED struct certificates *certificates(void)
{
    static struct certificates c;
    if (c.ca.cert.n)
        return &c;
    err_t e;
    int64_t now = clock_wall_ns();
    OK_CALL(cert_make(&(struct cert_request){ .use = CERT_CA,
                                              .common_name = S("test-ca"),
                                              .now_ns = now,
                                              .days = 2 },
                      &c.ca, &e),
            &e);
    OK_CALL(cert_make(&(struct cert_request){ .use = CERT_SERVER,
                                              .common_name = S("server"),
                                              .issuer = &c.ca,
                                              .names = (str[]){ S("127.0.0.1"), S("localhost") },
                                              .name_count = 2,
                                              .now_ns = now,
                                              .days = 2 },
                      &c.server, &e),
            &e);
    OK_CALL(cert_make(&(struct cert_request){ .use = CERT_CLIENT,
                                              .common_name = S("alice"),
                                              .issuer = &c.ca,
                                              .organizations = (str[]){ S("dev"), S("ops") },
                                              .organization_count = 2,
                                              .now_ns = now,
                                              .days = 2 },
                      &c.client, &e),
            &e);
    return &c;
}

static UNUSED void certificates_free(void)
{
    cert_pair_done(&certificates()->ca);
    cert_pair_done(&certificates()->server);
    cert_pair_done(&certificates()->client);
}

struct net {
    struct mode mode;
    struct loop *loop;
    struct http_server *server;
    struct http_client *client;
    char url[64];
};

static UNUSED struct tls *server_tls(bool http1_only)
{
    struct certificates *c = certificates();
    struct tls *tls = NULL;
    err_t e;
    OK_CALL(tls_server_new(&(struct tls_server_options){ .cert_pem = buf_str(&c->server.cert),
                                                         .key_pem = buf_str(&c->server.key),
                                                         .client_ca_pem = buf_str(&c->ca.cert),
                                                         .http1_only = http1_only },
                           &tls, &e),
            &e);
    return tls;
}

static UNUSED struct tls *client_tls(bool with_certificate)
{
    struct certificates *c = certificates();
    struct tls *tls = NULL;
    err_t e;
    struct tls_client_options o = { .ca_pem = buf_str(&c->ca.cert) };
    if (with_certificate) {
        o.cert_pem = buf_str(&c->client.cert);
        o.key_pem = buf_str(&c->client.key);
    }
    OK_CALL(tls_client_new(&o, &tls, &e), &e);
    return tls;
}

/* The options set what differs from the defaults; address, TLS and URL are set here. */
static UNUSED void net_open(struct net *n, struct mode mode, struct http_server_options server,
                            struct http_client_options client)
{
    err_t e;
    *n = (struct net){ .mode = mode };
    OK_CALL(loop_new(&(struct loop_options){ .time = mode.time }, &n->loop, &e), &e);
    server.tls = mode.tls ? server_tls(!mode.http2) : NULL;
    OK_CALL(http_server_new(n->loop, &server, &n->server, &e), &e);
    snprintf(n->url, sizeof(n->url), "%s://127.0.0.1:%d", mode.tls ? "https" : "http",
             http_server_port(n->server));
    client.url = str_c(n->url);
    client.tls = mode.tls ? client_tls(true) : NULL;
    client.http2_plain = !mode.tls && mode.http2;
    OK_CALL(http_client_new(n->loop, &client, &n->client, &e), &e);
    tls_unref(server.tls);
    tls_unref(client.tls);
}

/* net_settle() turns the loop for a while, to check that something does NOT happen. Virtual time only
 * jumps when nothing can run, so there the timer alone is enough. */
struct pause_timer {
    struct timer timer;
    bool over;
};

static UNUSED void pause_over(struct timer *timer)
{
    container_of(timer, struct pause_timer, timer)->over = true;
}

static UNUSED void net_settle(struct net *n)
{
    struct pause_timer p = { 0 };
    timer_set(n->loop, &p.timer, loop_mono_ns(n->loop) + 30 * NS_PER_MS, pause_over);
    while (!p.over)
        loop_turn(n->loop);
}

static UNUSED void net_close(struct net *n)
{
    http_client_free(n->client);
    http_server_free(n->server);
    net_settle(n);
    loop_free(n->loop);
}

/* What a call has received so far. */
struct outcome {
    struct net *net;
    struct http_call *call;
    size_t chunks;
    size_t cancel_at; /* cancel the call at this chunk (1..), or in on_head (SIZE_MAX) */
    size_t pause_at;  /* pause at this chunk */
    struct buf body;
    int status, heads, dones, code;
    bool http2, paused;
    char text[500], type[64];
};

static UNUSED void outcome_head(void *context, const struct http_head *head)
{
    struct outcome *o = context;
    o->heads++;
    o->status = head->status;
    o->http2 = head->http2;
    str type = http_header_get(head->headers, S("content-type"));
    snprintf(o->type, sizeof(o->type), STR_FMT, STR_ARG(type));
    if (o->cancel_at == SIZE_MAX)
        http_call_cancel(o->call);
}

static UNUSED void outcome_data(void *context, str bytes)
{
    struct outcome *o = context;
    buf_put(&o->body, bytes);
    o->chunks++;
    OK(!o->paused);
    if (o->chunks == o->cancel_at)
        http_call_cancel(o->call);
    if (o->chunks == o->pause_at) {
        o->paused = true;
        http_call_pause(o->call);
    }
}

static UNUSED void outcome_done(void *context, const err_t *failure)
{
    struct outcome *o = context;
    o->dones++;
    o->call = NULL;
    if (failure) {
        o->code = failure->code;
        snprintf(o->text, sizeof(o->text), "%s", failure->text);
    }
}

static UNUSED void outcome_send(struct outcome *o, struct net *n, struct http_request r)
{
    o->net = n;
    r.method = r.method.n ? r.method : S("GET");
    r.on_head = outcome_head;
    r.on_data = outcome_data;
    r.on_done = outcome_done;
    r.context = o;
    o->call = http_client_send(n->client, &r);
}

static UNUSED void outcome_wait(struct outcome *o)
{
    while (!o->dones)
        loop_turn(o->net->loop);
}

#define EQ_OUTCOME(o, want_status, want_body)                                                      \
    do {                                                                                           \
        if (!EQ_INT((o)->code, 0))                                                                 \
            tap_note(__FILE__, __LINE__, "%s: %s", (o)->net->mode.name, (o)->text);                \
        EQ_INT((o)->status, want_status);                                                          \
        EQ_STR(buf_str(&(o)->body), want_body);                                                    \
    } while (0)

#endif
