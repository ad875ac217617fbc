/* A server and a client of src/net on one loop: see harness.h. */
#include "harness.h"

struct certificates *certificates(void)
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

void certificates_free(void)
{
    cert_pair_done(&certificates()->ca);
    cert_pair_done(&certificates()->server);
    cert_pair_done(&certificates()->client);
}

struct tls *server_tls(bool http1_only)
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

struct tls *client_tls(bool with_certificate)
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

void net_open(struct net *n, struct mode mode, struct http_server_options server,
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

/* Virtual time only jumps when nothing can run, so there the timer alone is enough. */
struct pause_timer {
    struct timer timer;
    bool over;
};

static void pause_over(struct timer *timer)
{
    container_of(timer, struct pause_timer, timer)->over = true;
}

void net_settle(struct net *n)
{
    struct pause_timer p = { 0 };
    timer_set(n->loop, &p.timer, loop_mono_ns(n->loop) + 30 * NS_PER_MS, pause_over);
    while (!p.over)
        loop_turn(n->loop);
}

void net_close(struct net *n)
{
    http_client_free(n->client);
    http_server_free(n->server);
    net_settle(n);
    loop_free(n->loop);
}

static void outcome_head(void *context, const struct http_head *head)
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

static void outcome_data(void *context, str bytes)
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

static void outcome_done(void *context, const err_t *failure)
{
    struct outcome *o = context;
    o->dones++;
    o->call = NULL;
    if (failure) {
        o->code = failure->code;
        snprintf(o->text, sizeof(o->text), "%s", failure->text);
    }
}

void outcome_send(struct outcome *o, struct net *n, struct http_request r)
{
    o->net = n;
    r.method = r.method.n ? r.method : S("GET");
    r.on_head = outcome_head;
    r.on_data = outcome_data;
    r.on_done = outcome_done;
    r.context = o;
    o->call = http_client_send(n->client, &r);
}

void outcome_wait(struct outcome *o)
{
    while (!o->dones)
        loop_turn(o->net->loop);
}
