/* The service externalscaler.ExternalScaler.
 *
 *     GetMetricSpec    flyball-desired-replicas with a target of 1; also without a recent decision,
 *                      because KEDA creates its HPA from it
 *     GetMetrics       the desired replicas, so that an HPA with AverageValue follows them exactly
 *     IsActive         whether there should be a replica
 *     StreamIsActive   the same at once, on every change, and again every ten seconds while the
 *                      workload has no replica: KEDA acts on each answer that is true
 *
 * Without a recent decision all but the first fail with UNAVAILABLE: KEDA then keeps the replicas. */
#include "scaler.h"

#include "../base/file.h"
#include "../base/list.h"
#include "grpc.h"
#include "listen.h"
#include "wire_core.h"

static const char metric_name[] = "flyball-desired-replicas";
static const int64_t repeat_ns = 10 * NS_PER_S;
enum { TOKEN_MAX = 16 << 10, STREAMS_MAX = 10000 };

struct watcher { /* one StreamIsActive */
    struct scaler *scaler;
    struct list_item item;
    struct grpc_stream *stream;
    char *ns, *name, *variant; /* owned; variant "": that of the ScaledObject */
    bool sent, active;
};

struct scaler {
    struct loop *loop;
    struct door_source source;
    struct http_server *server;
    bool wants_certificate;
    char *token_file; /* owned; NULL: none */
    struct list watchers;
    size_t watcher_n;
    struct timer repeat;
    struct metric_family *requests;
};

/* ---- requests */

/* Counts a call by method and status. Unknown methods share one label, since clients choose the path. */
static void count_request(struct scaler *s, str path, enum grpc_status status)
{
    char code[STR_I64_ROOM];
    size_t slash = str_find_char(str_from(path, 1), '/');
    str method = slash == SIZE_MAX ? S("unknown") : str_from(path, slash + 2);
    static const char *const known[] = { "IsActive", "StreamIsActive", "GetMetricSpec",
                                         "GetMetrics", "Check" };
    bool is_known = false;
    for (size_t i = 0; i < countof(known); i++)
        is_known |= str_eqc(method, known[i]);
    metric_add(METRIC(s->requests, is_known ? method : S("unknown"), str_of_i64(status, code)), 1);
}

static void fail_call(struct scaler *s, struct exchange *x, enum grpc_status status,
                      const char *why)
{
    count_request(s, exchange_path(x), status);
    grpc_fail(x, status, "%s", why);
}

static void answer_call(struct scaler *s, struct exchange *x, str message)
{
    count_request(s, exchange_path(x), GRPC_OK);
    grpc_answer(x, message);
}

/* By the name of the variant if the trigger gives one, otherwise by the ScaledObject. */
static bool find_value(struct scaler *s, str ns, str name, str variant, struct door_value *ret)
{
    return variant.n ? s->source.find(s->source.context, ns, variant, ret)
                     : s->source.find_scaled(s->source.context, ns, name, ret);
}

/* The decision for a call, or the status to fail with. */
static enum grpc_status look_up(struct scaler *s, str ns, str name, str variant,
                                struct door_value *ret, const char **ret_why)
{
    *ret_why = "this replica of flyball is not the leader";
    if (!s->source.leads(s->source.context))
        return GRPC_UNAVAILABLE;
    *ret_why = "no variant of that name, and none for that ScaledObject; set the trigger metadata "
               "\"variant\"";
    if (!find_value(s, ns, name, variant, ret))
        return GRPC_NOT_FOUND;
    *ret_why = "there is no recent decision about the variant";
    return ret->state == DOOR_FRESH ? GRPC_OK : GRPC_UNAVAILABLE;
}

/* Requests that wait make a variant active although no replica is desired yet. */
static bool is_active(const struct door_value *v)
{
    return v->desired > 0 || v->waiting;
}

/* ---- unary calls */

/* False: the call was answered with an error. */
static bool read_ref(struct scaler *s, struct exchange *x, struct wire_ref *ret)
{
    str message;
    err_t e;
    if (!grpc_message(x, &message))
        return false;
    if (wire_get_ref(exchange_arena(x), message, ret, &e) < 0) {
        fail_call(s, x, GRPC_INVALID_ARGUMENT, e.text);
        return false;
    }
    return true;
}

/* A target of 1 per replica: with the desired number as the metric, the HPA's quotient is that number. */
static void answer_spec(struct scaler *s, struct exchange *x)
{
    struct wire_ref ref;
    struct door_value value;
    if (!read_ref(s, x, &ref))
        return;
    str variant = wire_metadata(&ref, "variant");
    if (!s->source.leads(s->source.context))
        fail_call(s, x, GRPC_UNAVAILABLE, "this replica of flyball is not the leader");
    else if (!find_value(s, ref.ns, ref.name, variant, &value))
        fail_call(s, x, GRPC_NOT_FOUND, "no such variant");
    else {
        auto_buf struct buf out = { 0 };
        wire_put_metrics(&out, &(struct wire_metric){ str_c(metric_name), 1, 1 }, 1);
        answer_call(s, x, buf_str(&out));
    }
}

/* The answer repeats the name that KEDA asked for, since KEDA compares it. */
static void answer_metrics(struct scaler *s, struct exchange *x)
{
    struct wire_metrics_request request;
    struct door_value value;
    str message;
    const char *why;
    err_t e;
    if (!grpc_message(x, &message))
        return;
    if (wire_get_metrics_request(exchange_arena(x), message, &request, &e) < 0) {
        fail_call(s, x, GRPC_INVALID_ARGUMENT, e.text);
        return;
    }
    enum grpc_status status = look_up(s, request.ref.ns, request.ref.name,
                                      wire_metadata(&request.ref, "variant"), &value, &why);
    if (status != GRPC_OK) {
        fail_call(s, x, status, why);
        return;
    }
    auto_buf struct buf out = { 0 };
    str name = request.metric.n ? request.metric : str_c(metric_name);
    wire_put_metrics(&out, &(struct wire_metric){ name, value.desired, (double)value.desired }, 1);
    answer_call(s, x, buf_str(&out));
}

static void answer_active(struct scaler *s, struct exchange *x)
{
    struct wire_ref ref;
    struct door_value value;
    const char *why;
    if (!read_ref(s, x, &ref))
        return;
    enum grpc_status status =
        look_up(s, ref.ns, ref.name, wire_metadata(&ref, "variant"), &value, &why);
    if (status != GRPC_OK) {
        fail_call(s, x, status, why);
        return;
    }
    auto_buf struct buf out = { 0 };
    wire_put_active(&out, is_active(&value));
    answer_call(s, x, buf_str(&out));
}

static void answer_health(struct scaler *s, struct exchange *x)
{
    str message;
    if (!grpc_message(x, &message))
        return;
    auto_buf struct buf out = { 0 };
    wire_put_health(&out, s->source.leads(s->source.context));
    answer_call(s, x, buf_str(&out));
}

/* ---- streams */

/* The stream has ended for whatever reason, and its memory goes with it. */
static void on_watcher_closed(void *context)
{
    struct watcher *w = context;
    list_remove(&w->item);
    w->scaler->watcher_n--;
    free(w->ns);
    free(w->name);
    free(w->variant);
    free(w);
}

/* Sends what changed, or ends the stream if there is no recent decision. `again`: also what did not
 * change, for a workload without replicas. */
static void update_watcher(struct watcher *w, bool again)
{
    struct door_value value;
    const char *why;
    enum grpc_status status =
        look_up(w->scaler, str_c(w->ns), str_c(w->name), str_c(w->variant), &value, &why);
    if (status != GRPC_OK) {
        grpc_stream_end(w->stream, status, why);
        return;
    }
    bool active = is_active(&value), repeated = again && active && value.current == 0;
    if (w->sent && w->active == active && !repeated)
        return;
    w->sent = true;
    w->active = active;
    auto_buf struct buf out = { 0 };
    wire_put_active(&out, active);
    grpc_stream_send(w->stream, buf_str(&out));
}

static void update_watchers(struct scaler *s, bool again)
{
    list_each(struct watcher, w, &s->watchers, item)
        update_watcher(w, again);
}

/* Repeats while there are streams; start_watcher() starts the timer again. */
static void on_repeat(struct timer *timer)
{
    struct scaler *s = container_of(timer, struct scaler, repeat);
    update_watchers(s, true);
    if (s->watcher_n)
        timer_set(s->loop, &s->repeat, loop_mono_ns(s->loop) + repeat_ns, on_repeat);
}

/* StreamIsActive: the first answer is sent at once, because KEDA waits for it. */
static void start_watcher(struct scaler *s, struct exchange *x)
{
    struct wire_ref ref;
    struct door_value value;
    const char *why;
    if (!read_ref(s, x, &ref))
        return;
    str variant = wire_metadata(&ref, "variant");
    enum grpc_status status = look_up(s, ref.ns, ref.name, variant, &value, &why);
    if (status == GRPC_OK && s->watcher_n >= STREAMS_MAX) {
        status = GRPC_RESOURCE_EXHAUSTED;
        why = "too many streams";
    }
    if (status != GRPC_OK) {
        fail_call(s, x, status, why);
        return;
    }
    count_request(s, exchange_path(x), GRPC_OK);
    struct watcher *w = mem_zero(1, sizeof(*w));
    w->scaler = s;
    w->ns = mem_dup(ref.ns.p, ref.ns.n);
    w->name = mem_dup(ref.name.p, ref.name.n);
    w->variant = mem_dup(variant.p, variant.n);
    list_append(&s->watchers, &w->item);
    s->watcher_n++;
    w->stream = grpc_stream_start(s->loop, x, on_watcher_closed, w);
    update_watcher(w, true);
    if (!timer_is_set(&s->repeat))
        timer_set(s->loop, &s->repeat, loop_mono_ns(s->loop) + repeat_ns, on_repeat);
}

/* ---- authentication */

/* A verified certificate, or the token of the file, which is read on every call: it may be rotated. */
static bool is_authenticated(const struct scaler *s, struct exchange *x)
{
    const struct tls_peer *peer = exchange_peer(x);
    if (s->wants_certificate && peer && !peer->rejected)
        return true;
    if (!s->token_file)
        return !s->wants_certificate;
    auto_buf struct buf want = { 0 };
    str given = exchange_header(x, S("authorization"));
    if (!str_starts(given, S("Bearer ")) || file_read(s->token_file, TOKEN_MAX, &want, NULL) < 0)
        return false;
    str token = str_trim(buf_str(&want));
    return token.n && tls_secrets_equal(token, str_trim(str_from(given, strlen("Bearer "))));
}

/* Authentication comes before the method, so that a client without credentials learns nothing. */
static void on_request(void *context, struct exchange *x)
{
    struct scaler *s = context;
    static const struct {
        const char *path;
        void (*answer)(struct scaler *s, struct exchange *x);
    } methods[] = {
        { "/externalscaler.ExternalScaler/IsActive", answer_active },
        { "/externalscaler.ExternalScaler/StreamIsActive", start_watcher },
        { "/externalscaler.ExternalScaler/GetMetricSpec", answer_spec },
        { "/externalscaler.ExternalScaler/GetMetrics", answer_metrics },
        { "/grpc.health.v1.Health/Check", answer_health },
    };
    if (!grpc_accept(x))
        return;
    str path = exchange_path(x);
    if (!is_authenticated(s, x)) {
        fail_call(s, x, GRPC_UNAUTHENTICATED, "a client certificate or token is required");
        return;
    }
    for (size_t i = 0; i < countof(methods); i++)
        if (str_eqc(path, methods[i].path)) {
            methods[i].answer(s, x);
            return;
        }
    fail_call(s, x, GRPC_UNIMPLEMENTED, "unknown method");
}

/* ---- lifecycle */

/* KEDA opens one stream per ScaledObject, so the limit of streams is that of ScaledObjects. */
int scaler_new(const struct doors_options *o, struct scaler **ret, err_t *e)
{
    struct scaler *s = mem_zero(1, sizeof(*s));
    s->loop = manager_loop(o->manager);
    s->source = o->source;
    s->wants_certificate = o->scaler_client_ca;
    if (o->scaler_token_file)
        s->token_file = mem_dup(o->scaler_token_file, strlen(o->scaler_token_file));
    s->requests =
        metrics_family(manager_metrics(o->manager),
                       &(struct metric_spec){
                           .name = "flyball_scaler_requests_total",
                           .help = "Calls of the external scaler, by method and gRPC status",
                           .kind = METRIC_COUNTER,
                           .labels = { "method", "code" } });
    struct http_server_options server = { .on_request = on_request,
                                          .context = s,
                                          .max_connections = 1024,
                                          .max_body_bytes = WIRE_FRAME_HEADER + WIRE_MESSAGE_MAX,
                                          .max_streams = STREAMS_MAX };
    struct listen_options listen = { .flag = "scaler-listen",
                                     .listen = o->scaler_listen,
                                     .cert_dir = o->cert_dir,
                                     .client_ca_file = o->scaler_client_ca };
    int r = listen_open(s->loop, &listen, &server, &s->server, e);
    if (r < 0) {
        scaler_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void scaler_notify(struct scaler *s)
{
    update_watchers(s, false);
}

static void on_drained(void *context)
{
    (void)context; /* the server is freed later */
}

/* Ends the streams with a status that makes KEDA connect to another replica. */
void scaler_drain(struct scaler *s)
{
    list_each(struct watcher, w, &s->watchers, item)
        grpc_stream_end(w->stream, GRPC_UNAVAILABLE, "flyball is stopping");
    http_server_drain(s->server, NS_PER_S, on_drained, s);
}

void scaler_free(struct scaler *s)
{
    if (!s)
        return;
    timer_stop(&s->repeat);
    http_server_free(s->server); /* closes the streams, which frees the watchers */
    free(s->token_file);
    free(s);
}

uint16_t scaler_port(const struct scaler *s)
{
    return http_server_port(s->server);
}
