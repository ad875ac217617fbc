/* The aggregated API server of the group external.metrics.k8s.io.
 *
 * The server is opened again whenever the CA of the front proxy changes, because it verifies client
 * certificates by that CA; connections are then closed, and the API server's proxy reconnects.
 *
 * A selector that matches a variant without a recent decision fails as a whole: an HPA adds up what
 * it gets, and a partial sum would make it shrink. One that matches nothing returns an empty list,
 * which an HPA treats as an error. */
#include "emetrics.h"

#include "../base/log.h"
#include "door_access.h"
#include "emetrics_core.h"
#include "listen.h"

struct emetrics {
    struct loop *loop;
    struct door_source source;
    struct door_access *access;
    struct http_server *server;
    char *listen, *cert_dir; /* owned */
    uint16_t port;           /* kept when the server is opened again */
    struct metric_family *requests;
};

/* Every answer is counted, by metric and status; `metric` is "" for anything but values. */
static void send_json(struct emetrics *m, struct exchange *x, int status, const struct json *doc,
                      str metric)
{
    char code[STR_I64_ROOM];
    str text = json_to_str(exchange_arena(x), doc);
    metric_add(METRIC(m->requests, metric, str_of_i64(status, code)), 1);
    exchange_answer(x, status, HTTP_HEADERS({ S("content-type"), S("application/json") }), text);
}

static const char *reason_of(int status)
{
    return status == 400   ? "BadRequest"
           : status == 401 ? "Unauthorized"
           : status == 403 ? "Forbidden"
           : status == 404 ? "NotFound"
           : status == 405 ? "MethodNotAllowed"
           : status == 429 ? "TooManyRequests"
                           : "ServiceUnavailable";
}

static void send_failure(struct emetrics *m, struct exchange *x, int status, const char *message)
{
    struct arena *a = exchange_arena(x);
    send_json(m, x, status, emetrics_status(a, status, reason_of(status), str_c(message)), S(""));
}

/* ---- values */

struct collecting {
    struct arena *arena;
    struct json *list;
    struct labels_selector selector;
    enum emetrics_metric metric;
    str stale; /* a variant that matches without a recent decision; "": none */
};

/* Adds a variant that the selector matches, or remembers that one of them is stale. */
static void add_value(void *context, const struct door_value *v)
{
    struct collecting *c = context;
    struct emetrics_item item = { v->ns,          v->variant, v->target,  v->model,
                                  v->accelerator, v->desired, v->current, v->decided_ns };
    if (!labels_match(&c->selector, emetrics_get_label, &item))
        return;
    if (v->state != DOOR_FRESH)
        c->stale = arena_str(c->arena, v->variant);
    else
        emetrics_add(c->arena, c->list, c->metric, &item);
}

/* The order of checks is that of a real API server: unknown resource, bad request, unavailable. */
static void answer_values(struct emetrics *m, struct exchange *x,
                          const struct emetrics_request *request)
{
    struct arena *a = exchange_arena(x);
    struct collecting c = { .arena = a, .metric = request->metric, .stale = S("") };
    str selector;
    err_t e;
    if (request->metric == EMETRICS_METRIC_N) {
        send_failure(m, x, 404, "the metric is not served by flyball");
    } else if (emetrics_parse_selector(a, exchange_query(x), &selector, &e) < 0 ||
               labels_parse(a, selector, &c.selector, &e) < 0) {
        send_failure(m, x, 400, e.text);
    } else if (!m->source.leads(m->source.context)) {
        send_failure(m, x, 503, "this replica of flyball is not the leader");
    } else {
        c.list = emetrics_list(a);
        m->source.each(m->source.context, request->ns, add_value, &c);
        if (c.stale.n)
            send_failure(m, x, 503,
                         arena_printf(a, "there is no recent decision about variant " STR_FMT,
                                      STR_ARG(c.stale))
                             .p);
        else
            send_json(m, x, 200, c.list, request->metric_name);
    }
}

/* The request is allowed. */
static void serve_request(void *context, struct exchange *x)
{
    struct emetrics *m = context;
    struct emetrics_request request = emetrics_parse_path(exchange_path(x));
    if (request.kind == EMETRICS_VALUES)
        answer_values(m, x, &request);
    else if (request.kind == EMETRICS_NOT_FOUND)
        send_failure(m, x, 404, "the server could not find the requested resource");
    else
        send_json(m, x, 200, emetrics_discovery(exchange_arena(x), request.kind), S(""));
}

/* Sentences for people; the HPA controller shows them in its conditions. */
static void refuse_request(void *context, struct exchange *x, int status)
{
    if (status == 401)
        exchange_add_header(x, S("www-authenticate"), S("Bearer"));
    send_failure(context, x, status,
                 status == 401   ? "a client certificate of the front proxy or a token is required"
                 : status == 403 ? "the user may not read this"
                 : status == 429 ? "too many reviews; try again later"
                                 : "cannot review the request: API server unreachable");
}

/* Health needs no authorization, because kubelet's probes have no credentials. */
static void on_request(void *context, struct exchange *x)
{
    struct emetrics *m = context;
    str path = exchange_path(x);
    struct emetrics_request request = emetrics_parse_path(path);
    if (!str_eq(exchange_method(x), S("GET"))) {
        send_failure(m, x, 405, "only GET is supported");
        return;
    }
    if (request.kind == EMETRICS_HEALTH) {
        exchange_answer(x, 200, HTTP_HEADERS({ S("content-type"), S("text/plain") }), S("ok"));
        return;
    }
    struct door_access_action action = { .verb = S("get"), .path = path };
    if (request.kind == EMETRICS_VALUES)
        action = (struct door_access_action){ .verb = S("list"),
                                              .group = S(EMETRICS_GROUP),
                                              .resource = request.metric_name,
                                              .ns = request.ns };
    door_access_check(m->access, x, &action,
                      &(struct door_access_handler){ serve_request, refuse_request, m });
}

/* ---- lifecycle */

/* Opens the server with the current CA. The first time the CA is not known yet, so no client certificate is
 * accepted. */
static int open_server(struct emetrics *m, err_t *e)
{
    struct http_server_options server = {
        .on_request = on_request, .context = m, .max_connections = 256, .max_body_bytes = 4096
    };
    auto_free char *listen = mem_dup(m->listen, strlen(m->listen));
    auto_arena struct arena a = { 0 };
    char *colon = strrchr(listen, ':');
    if (m->port && colon) /* a port that the system chose stays the same */
        *colon = '\0';
    struct listen_options options = {
        .flag = "external-metrics-listen",
        .listen = m->port && colon ? arena_printf(&a, "%s:%u", listen, m->port).p : listen,
        .cert_dir = m->cert_dir,
        .client_ca_pem = m->access ? door_access_front_proxy_ca(m->access) : S(""),
        .self_signed = true,
    };
    int r = listen_open(m->loop, &options, &server, &m->server, e);
    if (r == 0)
        m->port = http_server_port(m->server);
    return r;
}

/* Open connections were verified by the old CA and are closed with the old server. */
static void on_ca(void *context)
{
    struct emetrics *m = context;
    err_t e;
    http_server_free(m->server);
    m->server = NULL;
    if (open_server(m, &e) < 0)
        log_error("cannot serve external metrics", KV_C("error", e.text));
}

/* Listens before the CA is known, so that a wrong address fails the start; on_ca() opens the server again. */
int emetrics_new(const struct doors_options *o, struct emetrics **ret, err_t *e)
{
    struct emetrics *m = mem_zero(1, sizeof(*m));
    m->loop = manager_loop(o->manager);
    m->source = o->source;
    m->listen = mem_dup(o->emetrics_listen, strlen(o->emetrics_listen));
    if (o->cert_dir)
        m->cert_dir = mem_dup(o->cert_dir, strlen(o->cert_dir));
    m->requests =
        metrics_family(manager_metrics(o->manager),
                       &(struct metric_spec){ .name = "flyball_external_metrics_requests_total",
                                              .help = "Requests for external metrics",
                                              .kind = METRIC_COUNTER,
                                              .labels = { "metric", "code" } });
    int r = open_server(m, e);
    if (r == 0)
        r = door_access_new(o->manager, on_ca, m, &m->access, e);
    if (r < 0) {
        emetrics_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

static void on_drained(void *context)
{
    (void)context; /* the server is freed later */
}

void emetrics_drain(struct emetrics *m)
{
    if (m->server)
        http_server_drain(m->server, NS_PER_S, on_drained, m);
}

void emetrics_free(struct emetrics *m)
{
    if (!m)
        return;
    door_access_free(m->access);
    http_server_free(m->server);
    free(m->listen);
    free(m->cert_dir);
    free(m);
}

uint16_t emetrics_port(const struct emetrics *m)
{
    return m->port;
}
