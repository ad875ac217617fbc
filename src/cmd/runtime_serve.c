/* Serves /healthz, /readyz and /metrics, on --listen or on separate addresses:
 *
 *      --listen                       health, and metrics if loopback or --open-metrics
 *      --health-probe-bind-address    health; then --listen has none
 *      --metrics-bind-address         metrics; then --listen has none
 *
 * An address that has nothing to serve is not opened. By default the operator serves probes on
 * both ports that the manifests of the replaced systems use (8080 and 8081).
 *
 * Access to /metrics: on --metrics-bind-address over HTTPS to clients that RBAC allows to get it
 * (guard.h), unless --metrics-secure=false. On --listen there is neither TLS nor authorization,
 * so it is served there only on loopback or with --open-metrics. */
#include "../base/log.h"
#include "../net/cert.h"
#include "../prom/exposition.h"
#include "runtime_internal.h"

#include <malloc.h>

static void send_answer(struct exchange *x, int status, const char *type, str body)
{
    exchange_answer(x, status, HTTP_HEADERS({ S("content-type"), str_c(type) }), body);
}

/* "ok", and which features could not start. */
static void send_ok(struct exchange *x, str failures)
{
    auto_buf struct buf text = { 0 };
    buf_printf(&text, "ok%s" STR_FMT "\n", failures.n ? "; not started: " : "", STR_ARG(failures));
    send_answer(x, 200, "text/plain", buf_str(&text));
}

/* Not ready while stopping, so that load balancers stop sending requests; otherwise the manager
 * knows. */
static void answer_ready(struct runtime *rt, struct exchange *x)
{
    auto_buf struct buf why = { 0 };
    if (rt->stopping)
        send_answer(x, 503, "text/plain", S("stopping\n"));
    else if (manager_ready(rt->manager, &why))
        send_ok(x, buf_str(&why));
    else {
        buf_putc(&why, '\n');
        send_answer(x, 503, "text/plain", buf_str(&why));
    }
}

enum { SCRAPE_LARGE = 256 << 10 };

struct scrape {
    struct runtime *rt;
    struct metrics_place at;
    size_t bytes; /* so far */
};

/* Writes whole families until the buffer is full; called again when it was sent. */
static enum stream_more scrape_pull(void *context, struct buf *out, size_t room)
{
    struct scrape *s = context;
    size_t before = out->n;
    bool more = true;
    while (more && out->n < room)
        more = exposition_write_next(out, s->rt->metrics, &s->at);
    s->bytes += out->n - before;
    return more ? STREAM_MORE : STREAM_END;
}

/* Returns the memory of a large scrape to the system. */
static void on_trim_timer(struct timer *timer)
{
    (void)timer;
    malloc_trim(0);
}

static void on_scrape_closed(void *context, bool complete)
{
    struct scrape *s = context;
    struct runtime *rt = s->rt;
    (void)complete;
    if (s->bytes > SCRAPE_LARGE)
        timer_set(rt->loop, &rt->trim, loop_mono_ns(rt->loop), on_trim_timer);
    free(s);
}

/* Streams the metrics: with a thousand pods they are several MB. */
static void answer_metrics(void *context, struct exchange *x)
{
    struct scrape *s = mem_zero(1, sizeof(*s));
    s->rt = context;
    exchange_stream(x, 200, HTTP_HEADERS({ S("content-type"), S(EXPOSITION_CONTENT_TYPE) }),
                    &(struct stream_source){ .pull = scrape_pull,
                                             .closed = on_scrape_closed,
                                             .context = s,
                                             .compress = true,
                                             .length = -1 });
}

static void refuse_metrics(struct exchange *x)
{
    send_answer(
        x, 403, "text/plain",
        S("/metrics is not served here without authentication; set --metrics-bind-address to "
          "serve it over HTTPS, or set --open-metrics\n"));
}

/* Answers by path, according to what this address serves. */
static void on_request(void *context, struct exchange *x)
{
    const struct runtime_place *p = context;
    str path = exchange_path(x), method = exchange_method(x);
    if (!str_eq(method, S("GET")) && !str_eq(method, S("HEAD")))
        send_answer(x, 405, "text/plain", S("only GET is supported\n"));
    else if (p->health && (str_eq(path, S("/healthz")) || str_eq(path, S("/livez"))))
        send_answer(x, 200, "text/plain", S("ok\n"));
    else if (p->health && str_eq(path, S("/readyz")))
        answer_ready(p->rt, x);
    else if (p->metrics && p->guard && str_eq(path, S("/metrics")))
        guard_pass(p->guard, x, answer_metrics, p->rt);
    else if (p->metrics && str_eq(path, S("/metrics")))
        answer_metrics(p->rt, x);
    else if (p->closed && str_eq(path, S("/metrics")))
        refuse_metrics(x);
    else
        send_answer(x, 404, "text/plain",
                    !p->metrics  ? S("not found; try /healthz or /readyz\n")
                    : !p->health ? S("not found; try /metrics\n")
                                 : S("not found; try /healthz, /readyz or /metrics\n"));
}

bool runtime_is_none(const char *address)
{
    return !address || !*address || !strcmp(address, "none") || !strcmp(address, "0");
}

/* Opens an address; none if the flag disables it. */
static int open_server(struct runtime_place *p, const char *flag, const char *listen,
                       struct tls *tls, err_t *e)
{
    if (runtime_is_none(listen))
        return 0;
    auto_free char *text = mem_dup(listen, strlen(listen));
    const char *address;
    uint16_t port;
    int r = flags_split_listen(flag, text, &address, &port, e);
    if (r < 0)
        return r;
    if (!address)
        address = "0.0.0.0"; /* probes and scrapes come from other machines */
    struct http_server_options o = { .address = address,
                                     .port = port,
                                     .tls = tls,
                                     .on_request = on_request,
                                     .context = p,
                                     .max_connections = 256,
                                     .max_body_bytes = 4096 };
    r = http_server_new(p->rt->loop, &o, &p->server, e);
    if (r < 0)
        return err_wrap(e, "--%s %s", flag, listen);
    log_info(!p->metrics  ? "serving /healthz and /readyz"
             : !p->health ? "serving /metrics"
                          : "serving /healthz, /readyz and /metrics",
             KV_C("address", address), KV_INT("port", http_server_port(p->server)),
             KV_C("tls", tls ? "yes" : "no"));
    return 0;
}

/* ---- metrics over HTTPS */

/* A self-signed certificate for scrapers that do not verify it, as controller-runtime does by
 * default. */
static int make_certificate(struct cert_pair *ret, int64_t now_ns, err_t *e)
{
    static const str names[] = { STR_INIT("localhost"), STR_INIT("127.0.0.1") };
    return cert_make(&(struct cert_request){ .use = CERT_SERVER,
                                             .common_name = S("flyball"),
                                             .names = names,
                                             .name_count = countof(names),
                                             .now_ns = now_ns,
                                             .days = 3650 },
                     ret, e);
}

/* Loads the certificate of the flags, or creates a self-signed one. */
int runtime_make_tls(const struct runtime *rt, struct tls **ret, err_t *e)
{
    const struct wva_flags *o = &rt->wva;
    auto_cert_pair struct cert_pair pair = { 0 };
    auto_buf struct buf cert = { 0 }, key = { 0 };
    struct tls_server_options t = { .http1_only = !o->http2 };
    if (o->cert_path && *o->cert_path) {
        buf_printf(&cert, "%s/%s", o->cert_path, o->cert_name);
        buf_printf(&key, "%s/%s", o->cert_path, o->cert_key);
        t.cert_file = cert.p;
        t.key_file = key.p;
    } else if (make_certificate(&pair, loop_wall_ns(rt->loop), e) < 0) {
        return -e->code;
    } else {
        t.cert_pem = buf_str(&pair.cert);
        t.key_pem = buf_str(&pair.key);
    }
    return tls_server_new(&t, ret, e);
}

/* Opens --metrics-bind-address with TLS and authorization, unless --metrics-secure=false. */
static int serve_metrics(struct runtime *rt, struct runtime_place *p, err_t *e)
{
    struct tls *tls = NULL;
    bool secure = rt->wva.secure && !runtime_is_none(rt->wva.metrics_listen);
    if (secure && runtime_make_tls(rt, &tls, e) < 0)
        return err_wrap(e, "--metrics-bind-address %s", rt->wva.metrics_listen);
    if (secure)
        p->guard = guard_new(rt->kube, "/metrics");
    int r = open_server(p, "metrics-bind-address", rt->wva.metrics_listen, tls, e);
    tls_unref(tls);
    return r;
}

static bool listens_on_loopback(const char *listen)
{
    auto_free char *text = mem_dup(listen, strlen(listen));
    const char *address = NULL;
    uint16_t port;
    err_t e;
    return !runtime_is_none(listen) &&
           flags_split_listen("listen", text, &address, &port, &e) >= 0 && address &&
           uri_host_is_loopback(str_c(address));
}

int runtime_serve(struct runtime *rt, err_t *e)
{
    const char *probes = rt->wva.health_listen;
    struct runtime_place *all = &rt->places[0], *health = &rt->places[1], *metrics = &rt->places[2];
    *metrics = (struct runtime_place){ .rt = rt, .metrics = rt->wva.metrics_listen };
    *all = (struct runtime_place){ .rt = rt, .health = !probes };
    if (!metrics->metrics)
        all->metrics = rt->open_metrics || listens_on_loopback(rt->listen);
    all->closed = !metrics->metrics && !all->metrics;
    if (all->closed && !runtime_is_none(rt->listen))
        log_info("/metrics is not served; set --metrics-bind-address or --open-metrics",
                 KV_C("listen", rt->listen));
    *health = (struct runtime_place){ .rt = rt, .health = true };
    if (!probes && !strcmp(rt->listen, OPERATOR_LISTEN))
        probes = OPERATOR_PROBES;
    int r = all->health || all->metrics ? open_server(all, "listen", rt->listen, NULL, e) : 0;
    if (r == 0)
        r = open_server(health, "health-probe-bind-address", probes, NULL, e);
    r = r < 0 ? r : serve_metrics(rt, metrics, e);
    return r < 0 ? r : runtime_web(rt, e);
}

/* ---- shutdown */

void runtime_on_drained(void *context)
{
    struct runtime *rt = context;
    if (!--rt->draining)
        loop_stop(rt->loop);
}

void runtime_serve_stop(struct runtime *rt, int64_t limit_ns)
{
    rt->draining = 1;
    for (size_t i = 0; i < countof(rt->places); i++)
        if (rt->places[i].server) {
            rt->draining++;
            http_server_drain(rt->places[i].server, limit_ns, runtime_on_drained, rt);
        }
    runtime_web_stop(rt, limit_ns);
    runtime_on_drained(rt);
}

void runtime_serve_done(struct runtime *rt)
{
    runtime_web_done(rt);
    for (size_t i = 0; i < countof(rt->places); i++) {
        guard_free(rt->places[i].guard);
        http_server_free(rt->places[i].server);
    }
    timer_stop(&rt->trim); /* an aborted scrape may have set it */
}
