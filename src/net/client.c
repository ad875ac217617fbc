/* The client object: options and their defaults, names, creation and freeing. Calls are in call.c,
 * connections in pool.c. */
#include "client_internal.h"

#include <stdio.h>

static void set_defaults(struct http_client_options *o)
{
#define DEFAULT(field, value) o->field = o->field ? o->field : (value)
    DEFAULT(max_connections, 256);
    DEFAULT(max_header_bytes, 64 * 1024);
    DEFAULT(dial_timeout_ns, 30 * NS_PER_S);
    DEFAULT(handshake_timeout_ns, 10 * NS_PER_S);
    DEFAULT(idle_timeout_ns, 90 * NS_PER_S);
    DEFAULT(ping_after_ns, 30 * NS_PER_S);
    DEFAULT(ping_timeout_ns, 15 * NS_PER_S);
#undef DEFAULT
}

/* Sets `authority` ("host", "host:8080", "[::1]:6443") for the Host header, and `name`, the same
 * with the scheme, for errors. */
static void set_names(struct http_client *c)
{
    const struct uri *u = &c->uri;
    auto_buf struct buf b = { 0 };
    bool brackets = str_find_char(u->host, ':') != SIZE_MAX;
    buf_printf(&b, brackets ? "[" STR_FMT "]" : STR_FMT, STR_ARG(u->host));
    if (u->port != (u->tls ? 443 : 80))
        buf_printf(&b, ":%d", u->port);
    c->authority = mem_dup(b.p, b.n);
    buf_clear(&b);
    buf_printf(&b, "%s://%s", u->tls ? "https" : "http", c->authority);
    c->name = mem_dup(b.p, b.n);
}

/* Without a context from the caller, the system's certificate authorities are trusted. */
static int set_tls(struct http_client *c, struct tls *tls, err_t *e)
{
    if (!c->uri.tls)
        return 0;
    if (!tls)
        return tls_client_new(&(struct tls_client_options){ 0 }, &c->tls, e);
    c->tls = tls_ref(tls);
    return 0;
}

static void free_client(struct http_client *c)
{
    tls_unref(c->tls);
    free(c->url);
    free(c->user_agent);
    free(c->authority);
    free(c->name);
    c->magic = 0;
    free(c);
}

int http_client_new(struct loop *loop, const struct http_client_options *options,
                    struct http_client **ret_client, err_t *e)
{
    struct http_client *c = mem_zero(1, sizeof(*c));
    c->magic = CLIENT_MAGIC;
    c->loop = loop;
    c->options = *options;
    set_defaults(&c->options);
    c->url = mem_dup(options->url.p, options->url.n);
    str agent = options->user_agent.n ? options->user_agent : S("flyball/" FLYBALL_VERSION);
    c->user_agent = mem_dup(agent.p, agent.n);
    c->options.user_agent = str_c(c->user_agent);
    int r = uri_parse(str_c(c->url), &c->uri, e);
    if (r == 0 && !http_header_is_valid((struct http_header){ S("user-agent"), agent }))
        r = err_set(e, EINVAL, "user agent \"" STR_FMT "\" is not a valid header value",
                    STR_ARG(agent));
    if (r == 0)
        r = set_tls(c, options->tls, e);
    if (r < 0) {
        free_client(c);
        return r;
    }
    set_names(c);
    c->http1 = !c->uri.tls && !options->http2_plain;
    *ret_client = c;
    return 0;
}

static void free_client_later(struct loop_garbage *garbage)
{
    free_client(container_of(garbage, struct http_client, garbage));
}

void http_client_free(struct http_client *c)
{
    if (!c)
        return;
    CHECK(c, CLIENT_MAGIC);
    assert(!c->closing);
    c->closing = true;
    err_t e;
    err_set(&e, ECANCELED, "%s: request canceled: the client is being closed", c->name);
    for (struct http_call *call; (call = list_first(&c->calls, struct http_call, item));)
        http_call_finish(call, &e);
    pool_close(c);
    loop_cancel_deferred(&c->pump);
    loop_free_later(c->loop, &c->garbage, free_client_later);
}

size_t http_client_connections(const struct http_client *c)
{
    CHECK(c, CLIENT_MAGIC);
    return c->conns.n;
}

void http_client_enqueue(struct http_client *c, struct http_call *call, bool first)
{
    (first ? list_prepend : list_append)(&c->queue, &call->queued);
}
