/* The API server on its socket: HTTP exchanges become calls, answers become responses.
 *
 *     net/server.c -> on_request() -> server_handle() -> on_call_finished() -> exchange_answer_buf()
 *                                                                                or exchange_stream()
 *
 * Opening order: lock the data directory, load or create credentials, open the store, listen, write the
 * kubeconfig. A failure at any step undoes the others (apiserver_free). The lock comes first, because two
 * servers on one directory would overwrite each other's state.
 *
 * Memory: a call and its request live in the arena of the exchange, which frees them. */
#include "apiserver.h"

#include "../base/file.h"
#include "../base/log.h"
#include "controllers/controllers.h"
#include "http/auth.h"
#include "http/credentials.h"
#include "http/server.h"
#include "http/watch.h"
#include "http/webhook.h"
#include "store/data_dir.h"

#include <stdio.h>
#include <unistd.h>

enum { PEM_MAX = 1 << 20 };

struct apiserver {
    struct loop *loop;
    struct server *server;
    struct http_server *http;
    struct server_credentials credentials;
    int data_fd; /* holds the lock on the data directory */
    char url[80];
    bool log_requests, tls;
    bool (*intercept)(void *context, struct exchange *x);
    void *intercept_context;
};

/* ---- requests */

struct served_call {
    struct call call;
    struct request request;
    struct exchange *exchange;
    struct apiserver *owner;
};

static void log_request(const struct served_call *v)
{
    const struct call *c = &v->call;
    if (!v->owner->log_requests && !log_enabled(LOG_DEBUG))
        return;
    struct log_kv kvs[] = { KV("method", v->request.method),
                            KV("path", v->request.path),
                            KV("query", v->request.query),
                            KV_INT("status", c->answer.status),
                            KV("user", c->user.name),
                            KV("agent", call_header(c, "user-agent")),
                            KV_INT("us", (clock_mono_ns() - c->started_ns) / 1000),
                            { 0 } };
    log_write(v->owner->log_requests ? LOG_INFO : LOG_DEBUG, "request", kvs);
}

/* Sends the answer. The call is freed with the exchange's arena once the answer begins, so the answer is
 * copied first. */
static void on_call_finished(struct call *c)
{
    struct served_call *v = container_of(c, struct served_call, call);
    struct exchange *x = v->exchange;
    log_request(v);
    struct answer answer = c->answer;
    struct http_header fixed[] = { { S("content-type"), str_c(answer.content_type) },
                                   { S("cache-control"), S("no-cache, private") } };
    bool cached = false;
    for (size_t i = 0; i < answer.headers.n; i++) {
        exchange_add_header(x, answer.headers.at[i].name, answer.headers.at[i].value);
        cached |= str_eq(answer.headers.at[i].name, S("Cache-Control"));
    }
    vec_done(&answer.headers);
    struct http_headers headers = { fixed, cached ? 1 : 2 };
    if (answer.stream) {
        buf_done(&answer.body);
        if (answer.attach)
            answer.attach(answer.stream, x);
        exchange_stream(x, answer.status, headers, answer.stream);
    } else {
        exchange_answer_buf(x, answer.status, headers, &answer.body);
    }
}

/* A write that still waits for a webhook must not happen after its client has gone, and keeps no memory. What waits for
 * its commit cannot be stopped any more. */
static void on_gone(void *context)
{
    struct served_call *v = context;
    if (!webhook_cancel(&v->call))
        return;
    call_discard_answer(&v->call);
    exchange_abort(v->exchange);
}

/* Creates the call in the exchange's arena and runs it, unless a test intercepts the request. */
static void on_request(void *context, struct exchange *x)
{
    struct apiserver *s = context;
    if (s->intercept && s->intercept(s->intercept_context, x))
        return;
    struct served_call *v = arena_new(exchange_arena(x), struct served_call);
    v->owner = s;
    v->exchange = x;
    v->request = (struct request){ .method = exchange_method(x),
                                   .path = exchange_path(x),
                                   .query = exchange_query(x),
                                   .body = exchange_body(x),
                                   .headers = exchange_headers(x),
                                   .peer = exchange_peer(x) };
    v->call = (struct call){ .arena = exchange_arena(x),
                             .request = &v->request,
                             .finished = on_call_finished,
                             .context = v,
                             .started_ns = clock_mono_ns() };
    exchange_on_gone(x, on_gone, v);
    server_handle(s->server, &v->call);
}

/* ---- opening and closing */

static bool is_loopback(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1") || !strcmp(address, "localhost");
}

static void on_limited(void *context UNUSED, const char *peer, const char *what)
{
    log_warn("client exceeds a limit", KV_C("client", peer), KV_C("what", what));
}

/* The socket, with TLS unless insecure_http is set. "localhost" means 127.0.0.1. */
static int listen_on(struct apiserver *s, const struct apiserver_options *o, const char *address,
                     err_t *e)
{
    struct tls *tls = NULL;
    auto_buf struct buf client_ca = { 0 };
    if (s->tls) {
        if (o->client_ca_file && file_read(o->client_ca_file, PEM_MAX, &client_ca, e) < 0)
            return -e->code;
        buf_put(&client_ca, buf_str(&s->credentials.ca.cert));
        bool given = o->cert_file != NULL;
        struct tls_server_options t = {
            .cert_pem = given ? S("") : buf_str(&s->credentials.server.cert),
            .key_pem = given ? S("") : buf_str(&s->credentials.server.key),
            .cert_file = o->cert_file,
            .key_file = o->key_file,
            .client_ca_pem = buf_str(&client_ca),
        };
        int result = tls_server_new(&t, &tls, e);
        if (result < 0)
            return result;
    }
    struct http_server_options h = { .address =
                                         strcmp(address, "localhost") ? address : "127.0.0.1",
                                     .port = o->port,
                                     .tls = tls,
                                     .on_request = on_request,
                                     .on_limit = on_limited,
                                     .context = s };
    int result = http_server_new(s->loop, &h, &s->http, e);
    tls_unref(tls);
    return result;
}

/* The store with its controllers, and the users: admin, reader, and those of the token file. */
static int open_server(struct apiserver *s, const struct apiserver_options *o, err_t *e)
{
    auto_buf struct buf path = { 0 };
    auto_free char *real = o->in_memory ? NULL : realpath(o->data, NULL);
    buf_printf(&path, "%s/state.db", real ? real : o->data); /* SQLite follows no symbolic link */
    struct server_options so = { .controllers = controllers_all,
                                 .db_path = o->in_memory ? NULL : path.p,
                                 .history_events = o->history_events,
                                 .issuer = s->tls ? &s->credentials.ca : NULL,
                                 .no_accounts = o->no_accounts,
                                 .allow_all = o->allow_all,
                                 .no_anonymous = o->no_anonymous,
                                 .service_addresses = o->service_addresses };
    int result = webhook_check_services(o->service_addresses, e);
    if (result == 0)
        result = server_new(s->loop, &so, &s->server, e);
    if (result < 0)
        return result;
    struct auth *auth = auth_new();
    s->server->auth = auth;
    const str admins[] = { S(AUTH_ADMINS) }, readers[] = { S(AUTH_READERS) };
    auth_add_token(auth, str_c(s->credentials.admin_token), S("admin"), S("admin"), admins, 1);
    auth_set_key(auth, str_c(s->credentials.account_key));
    auth_add_token(auth, str_c(s->credentials.reader_token), S("reader"), S("reader"), readers, 1);
    return o->token_file ? auth_add_file(auth, o->token_file, e) : 0;
}

/* Refuses addresses beyond loopback unless they are allowed explicitly, and plain HTTP on them always. */
int apiserver_new(struct loop *loop, const struct apiserver_options *o, struct apiserver **ret,
                  err_t *e)
{
    const char *address = o->address ? o->address : "127.0.0.1";
    if (!is_loopback(address) && (!o->allow_remote || o->insecure_http))
        return err_set(e, EPERM,
                       o->insecure_http ? "cannot listen on %s: plain HTTP is limited to loopback "
                                          "addresses; use HTTPS"
                                        : "cannot listen on %s: not a loopback address",
                       address);
    struct apiserver *s = mem_zero(1, sizeof(*s));
    s->loop = loop;
    s->tls = !o->insecure_http;
    s->log_requests = o->log_requests;
    s->intercept = o->intercept;
    s->intercept_context = o->intercept_context;
    s->data_fd = -1;
    int result = data_dir_open(o->data, &s->data_fd, e); /* first: see data_dir.h */
    if (result == 0)
        result = server_credentials_load(&s->credentials, o->data, address, s->tls, clock_wall_ns(),
                                         e); /* clients check it by theirs */
    if (result == 0)
        result = open_server(s, o, e);
    if (result == 0)
        result = listen_on(s, o, address, e);
    if (result == 0) {
        bool six = strchr(address, ':') != NULL;
        bool any = !strcmp(address, "0.0.0.0") || !strcmp(address, "::");
        snprintf(s->url, sizeof(s->url), "%s://%s%s%s:%u", s->tls ? "https" : "http",
                 six && !any ? "[" : "", any ? "127.0.0.1" : address, six && !any ? "]" : "",
                 http_server_port(s->http));
        result = server_credentials_write_kubeconfig(&s->credentials, s->url, e);
        s->server->own_port = http_server_port(s->http);
        s->server->services_changed = true;
        server_reconcile_soon(s->server);
        server_run_until_idle(s->server);
    }
    if (result < 0) {
        apiserver_free(s);
        return result;
    }
    *ret = s;
    return 0;
}

const char *apiserver_url(const struct apiserver *s)
{
    return s->url;
}

const char *apiserver_kubeconfig(const struct apiserver *s)
{
    return s->credentials.kubeconfig_path;
}

const char *apiserver_admin_token(const struct apiserver *s)
{
    return s->credentials.admin_token;
}

void apiserver_drain(struct apiserver *s, int64_t limit_ns, void (*done)(void *context),
                     void *context)
{
    server_stop(s->server);
    webhook_abort_all(s->server); /* a webhook may take longer than the limit */
    http_server_drain(s->http, limit_ns, done, context);
}

/* Waits for a batch in flight, then for the streams of the watches, which are closed one turn after their
 * connection. */
void apiserver_free(struct apiserver *s)
{
    if (!s)
        return;
    if (s->server) {
        server_stop(s->server);
        webhook_abort_all(s->server);
    }
    while (s->server && (!server_is_idle(s->server)))
        loop_turn(s->loop);
    http_server_free(s->http);
    if (s->server) {
        while (s->server->n_watches)
            loop_turn(s->loop);
        auth_free(s->server->auth);
        server_free(s->server);
    }
    server_credentials_done(&s->credentials);
    if (s->data_fd >= 0)
        close(s->data_fd);
    free(s);
}
