/* /healthz, /readyz and /metrics. */
#include "../base/log.h"
#include "../prom/exposition.h"
#include "runtime_internal.h"

static void answer(struct exchange *x, int status, const char *type, str body)
{
    exchange_answer(x, status, HTTP_HEADERS({ S("content-type"), str_c(type) }), body);
}

static void answer_ready(struct runtime *rt, struct exchange *x)
{
    auto_buf struct buf why = { 0 };
    if (rt->stopping)
        answer(x, 503, "text/plain", S("stopping\n"));
    else if (manager_ready(rt->manager, &why))
        answer(x, 200, "text/plain", S("ok\n"));
    else {
        buf_putc(&why, '\n');
        answer(x, 503, "text/plain", buf_str(&why));
    }
}

static void on_request(void *context, struct exchange *x)
{
    struct runtime *rt = context;
    str path = exchange_path(x), method = exchange_method(x);
    if (!str_eq(method, S("GET")) && !str_eq(method, S("HEAD"))) {
        answer(x, 405, "text/plain", S("only GET is served here\n"));
    } else if (str_eq(path, S("/healthz")) || str_eq(path, S("/livez"))) {
        answer(x, 200, "text/plain", S("ok\n"));
    } else if (str_eq(path, S("/readyz"))) {
        answer_ready(rt, x);
    } else if (str_eq(path, S("/metrics"))) {
        auto_buf struct buf text = { 0 };
        exposition_write(&text, rt->metrics);
        answer(x, 200, EXPOSITION_CONTENT_TYPE, buf_str(&text));
    } else {
        answer(x, 404, "text/plain", S("there is /healthz, /readyz and /metrics\n"));
    }
}

int runtime_serve(struct runtime *rt, err_t *e)
{
    if (!*rt->listen || !strcmp(rt->listen, "none"))
        return 0;
    auto_free char *text = mem_dup(rt->listen, strlen(rt->listen));
    const char *address;
    uint16_t port;
    int r = listen_split(text, &address, &port, e);
    if (r < 0)
        return r;
    if (!address)
        address = "0.0.0.0"; /* probes and scrapes come from elsewhere */
    struct http_server_options o = { .address = address,
                                     .port = port,
                                     .on_request = on_request,
                                     .context = rt,
                                     .max_connections = 256,
                                     .max_body_bytes = 4096 };
    r = http_server_new(rt->loop, &o, &rt->server, e);
    if (r < 0)
        return err_wrap(e, "--listen %s", rt->listen);
    log_info("serving /healthz, /readyz and /metrics", KV_C("address", address),
             KV_INT("port", http_server_port(rt->server)));
    return 0;
}
