/* The exporter of traces: see tracer.h.
 *
 *      tracer_end() ─► pending (encoded spans) ─── 1 s ───► POST /v1/traces ─► 2xx: forgotten
 *                        │ full: dropped, counted             │ else: once more, with backoff up to a minute
 *                        └────────────── waits while one ◄────┘
 *
 * Spans are encoded when they end, so that no attribute outlives its owner, and a batch is the header of the resource plus
 * the bytes of its spans. One request is in flight at a time. A collector that is away costs PENDING_MAX bytes and nothing
 * else: the batch that failed is kept, what does not fit beside it is dropped.
 *
 * Names and numbers of fields are those of opentelemetry.proto.collector.trace.v1; test/integration/observability.py reads a
 * batch with the package opentelemetry-proto where it is installed. */
#include "tracer.h"

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/log.h"
#include "../base/random.h"
#include "../json/protowire.h"
#include "../net/http_client.h"

#include <stdlib.h>

enum {
    PENDING_MAX = 512 << 10, /* bytes of spans; about 2,500 */
    BATCH_MAX = 256 << 10,
    TEXT_MAX = 1024, /* of an attribute */
    KIND_INTERNAL = 1,
    STATUS_ERROR = 2,
};
static const int64_t batch_ns = NS_PER_S, backoff_max_ns = 60 * NS_PER_S,
                     timeout_ns = 10 * NS_PER_S;

struct tracer {
    struct loop *loop;
    struct http_client *client;
    struct http_call *call; /* NULL: none in flight */
    struct random random;
    double ratio;       /* of traces that are recorded */
    struct arena arena; /* texts of the headers, which may be secrets */
    struct http_header headers[16];
    size_t header_n;
    str target;
    struct buf resource;       /* encoded; the beginning of every batch */
    struct buf pending, batch; /* spans; of the batch that is being sent */
    size_t pending_n, batch_n; /* how many */
    struct timer timer;
    int64_t backoff_ns;
    struct metric *sent, *dropped;
};

/* ---- encoding */

static void put_attribute(struct buf *out, uint32_t number, const struct tracer_attribute *at)
{
    auto_buf struct buf value = { 0 }, pair = { 0 };
    if (at->text.n)
        protowire_put_bytes(&value, 1, str_upto(at->text, TEXT_MAX));
    else
        protowire_put_varint(&value, 3, (uint64_t)at->number);
    protowire_put_bytes(&pair, 1, str_c(at->key));
    protowire_put_bytes(&pair, 2, buf_str(&value));
    protowire_put_bytes(out, number, buf_str(&pair));
}

/* Ids are opaque bytes; the order of their bytes does not matter. */
static void put_span(struct buf *out, const struct tracer_span *s,
                     const struct tracer_result *result, int64_t end_ns)
{
    auto_buf struct buf span = { 0 }, status = { 0 };
    protowire_put_bytes(&span, 1, (str){ (const char *)s->trace, sizeof(s->trace) });
    protowire_put_bytes(&span, 2, (str){ (const char *)&s->id, sizeof(s->id) });
    if (s->parent)
        protowire_put_bytes(&span, 4, (str){ (const char *)&s->parent, sizeof(s->parent) });
    protowire_put_bytes(&span, 5, str_c(result->name));
    protowire_put_varint(&span, 6, KIND_INTERNAL);
    protowire_put_fixed64(&span, 7, (uint64_t)s->start_ns);
    protowire_put_fixed64(&span, 8, (uint64_t)end_ns);
    for (size_t i = 0; i < result->n; i++)
        if (result->at[i].text.n || result->at[i].number)
            put_attribute(&span, 9, &result->at[i]);
    if (result->error.n) {
        protowire_put_bytes(&status, 2, str_upto(result->error, TEXT_MAX));
        protowire_put_varint(&status, 3, STATUS_ERROR);
        protowire_put_bytes(&span, 15, buf_str(&status));
    }
    protowire_put_bytes(out, 2, buf_str(&span));
}

/* ExportTraceServiceRequest { ResourceSpans { Resource, ScopeSpans { InstrumentationScope, Span... } } } */
static void put_batch(struct buf *out, const struct tracer *t)
{
    auto_buf struct buf scope = { 0 }, spans = { 0 }, whole = { 0 };
    protowire_put_bytes(&scope, 1, S("flyball"));
    protowire_put_bytes(&spans, 1, buf_str(&scope));
    buf_put(&spans, buf_str(&t->batch));
    buf_put(&whole, buf_str(&t->resource));
    protowire_put_bytes(&whole, 2, buf_str(&spans));
    protowire_put_bytes(out, 1, buf_str(&whole));
}

/* ---- sending */

static void send_batch(struct tracer *t);

static void on_timer(struct timer *timer)
{
    send_batch(container_of(timer, struct tracer, timer));
}

static void schedule_batch(struct tracer *t, int64_t after_ns)
{
    if (!t->call && !timer_is_set(&t->timer) && (t->batch.n || t->pending.n))
        timer_set(t->loop, &t->timer, loop_mono_ns(t->loop) + after_ns, on_timer);
}

/* A collector that refuses a batch as malformed would refuse it again. */
static void on_answer(void *context, const struct http_response *response, const err_t *failure)
{
    struct tracer *t = context;
    bool good = response && response->status / 100 == 2;
    bool again = !response || response->status == 429 || response->status / 100 == 5;
    t->call = NULL;
    if (!good && !t->backoff_ns)
        log_warn("cannot send traces",
                 KV_C("error", failure ? failure->text : "refused by the collector"),
                 KV_INT("status", response ? response->status : 0));
    if (good || !again) {
        metric_add(good ? t->sent : t->dropped, (double)t->batch_n);
        buf_clear(&t->batch);
        t->batch_n = 0;
    }
    t->backoff_ns = good ? 0 : MIN(MAX(2 * t->backoff_ns, batch_ns), backoff_max_ns);
    schedule_batch(t, good ? batch_ns : t->backoff_ns);
}

static void send_batch(struct tracer *t)
{
    auto_buf struct buf body = { 0 };
    if (!t->batch.n) {
        struct buf empty = t->batch;
        t->batch = t->pending, t->batch_n = t->pending_n;
        t->pending = empty, t->pending_n = 0;
    }
    put_batch(&body, t);
    t->call =
        http_client_fetch(t->client,
                          &(struct http_fetch){ .method = S("POST"),
                                                .target = t->target,
                                                .headers = { t->headers, t->header_n },
                                                .body = buf_str(&body),
                                                .deadline_ns = loop_mono_ns(t->loop) + timeout_ns,
                                                .max_body_bytes = 64 << 10,
                                                .on_done = on_answer,
                                                .context = t });
}

/* ---- spans */

static uint64_t random_id(struct tracer *t)
{
    uint64_t id = (uint64_t)random_u32(&t->random) << 32 | random_u32(&t->random);
    return id ? id : 1; /* zero is not a valid id */
}

struct tracer_span tracer_begin(struct tracer *t, const struct tracer_span *parent)
{
    if (!t || (parent ? !parent->id : random_unit(&t->random) >= t->ratio))
        return (struct tracer_span){ 0 };
    struct tracer_span s = { .id = random_id(t), .start_ns = clock_wall_ns() };
    s.trace[0] = parent ? parent->trace[0] : random_id(t);
    s.trace[1] = parent ? parent->trace[1] : random_id(t);
    s.parent = parent ? parent->id : 0;
    return s;
}

void tracer_end(struct tracer *t, const struct tracer_span *span,
                const struct tracer_result *result)
{
    if (!t || !span->id)
        return;
    size_t before = t->pending.n;
    put_span(&t->pending, span, result, MAX(clock_wall_ns(), span->start_ns));
    if (t->pending.n > BATCH_MAX || t->pending.n + t->batch.n > PENDING_MAX) {
        t->pending.n = before;
        metric_add(t->dropped, 1);
        return;
    }
    t->pending_n++;
    schedule_batch(t, batch_ns);
}

/* ---- the environment, as the OpenTelemetry specification defines it */

static str read_variable(const char *name)
{
    const char *value = getenv(name);
    return value ? str_trim(str_c(value)) : S("");
}

/* Takes the next of `key1=value1,key2=value2`, whose values may have escapes (`%20`). False: nothing is left. */
static bool next_pair(struct tracer *t, str *list, str *ret_key, str *ret_value)
{
    str pair, key;
    while (str_cut(list, ',', &pair)) {
        pair = str_trim(pair);
        if (!str_cut(&pair, '=', &key) || !key.n || !pair.p)
            continue;
        *ret_key = arena_str(&t->arena, str_trim(key));
        if (uri_decode(&t->arena, str_trim(pair), false, ret_value) < 0)
            *ret_value = arena_str(&t->arena, str_trim(pair));
        return true;
    }
    return false;
}

/* The attributes of this process, which the collector adds to every span. */
static void read_resource(struct tracer *t)
{
    auto_buf struct buf resource = { 0 };
    str list = read_variable("OTEL_RESOURCE_ATTRIBUTES"),
        service = read_variable("OTEL_SERVICE_NAME"), key, value;
    bool named = service.n > 0;
    while (next_pair(t, &list, &key, &value)) {
        bool is_name = str_eqc(key, "service.name");
        if (is_name && named)
            continue;
        named |= is_name;
        put_attribute(&resource, 1, &(struct tracer_attribute){ .key = key.p, .text = value });
    }
    if (service.n || !named)
        put_attribute(&resource, 1,
                      &(struct tracer_attribute){ .key = "service.name",
                                                  .text = service.n ? service : S("flyball") });
    put_attribute(&resource, 1,
                  &(struct tracer_attribute){ .key = "service.version",
                                              .text = S(FLYBALL_VERSION) });
    protowire_put_bytes(&t->resource, 1, buf_str(&resource));
}

/* Headers often carry a token, which must not cross a network in the clear. */
static int read_headers(struct tracer *t, str url, err_t *e)
{
    str list = read_variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS"), key, value;
    list = list.n ? list : read_variable("OTEL_EXPORTER_OTLP_HEADERS");
    t->headers[t->header_n++] =
        (struct http_header){ S("content-type"), S("application/x-protobuf") };
    while (next_pair(t, &list, &key, &value)) {
        struct http_header header = { arena_lower(&t->arena, key), value };
        if (t->header_n == countof(t->headers) || !http_header_is_valid(header))
            return err_set(e, EINVAL,
                           "OTEL_EXPORTER_OTLP_HEADERS: header \"" STR_FMT
                           "\" is not valid, or one of more than %zu",
                           STR_ARG(str_upto(key, 64)), countof(t->headers) - 1);
        t->headers[t->header_n++] = header;
    }
    err_t secret;
    if (t->header_n > 1 && uri_check_secret(url, &secret) < 0)
        return err_set(
            e, EPERM,
            "OTEL_EXPORTER_OTLP_ENDPOINT: headers are sent only over HTTPS or to loopback; use https");
    return 0;
}

/* Variables that would change what is sent, if they were supported. */
static void warn_of_unsupported(void)
{
    static const char *const names[] = { "OTEL_EXPORTER_OTLP_CERTIFICATE",
                                         "OTEL_EXPORTER_OTLP_CLIENT_KEY",
                                         "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
                                         "OTEL_EXPORTER_OTLP_COMPRESSION",
                                         "OTEL_EXPORTER_OTLP_TIMEOUT" };
    for (size_t i = 0; i < countof(names); i++)
        if (read_variable(names[i]).n)
            log_warn("environment variable is not supported; ignored", KV_C("name", names[i]));
    str protocol = read_variable("OTEL_EXPORTER_OTLP_PROTOCOL");
    if (protocol.n && !str_eqc(protocol, "http/protobuf"))
        log_warn("OTEL_EXPORTER_OTLP_PROTOCOL is not supported; using http/protobuf",
                 KV("value", protocol));
}

static int read_ratio(struct tracer *t, err_t *e)
{
    str sampler = read_variable("OTEL_TRACES_SAMPLER"),
        text = read_variable("OTEL_TRACES_SAMPLER_ARG");
    if (str_starts(sampler, S("parentbased_"))) /* our spans have no parent in another process */
        sampler = str_from(sampler, strlen("parentbased_"));
    t->ratio = str_eqc(sampler, "always_off") ? 0 : 1;
    if (str_eqc(sampler, "traceidratio") && text.n &&
        (str_to_f64(text, &t->ratio) < 0 || !(t->ratio >= 0 && t->ratio <= 1)))
        return err_set(e, EINVAL,
                       "OTEL_TRACES_SAMPLER_ARG is \"" STR_FMT
                       "\", but must be a number from 0 to 1",
                       STR_ARG(str_upto(text, 64)));
    if (sampler.n && !str_eqc(sampler, "always_off") && !str_eqc(sampler, "always_on") &&
        !str_eqc(sampler, "traceidratio"))
        return err_set(e, EINVAL,
                       "OTEL_TRACES_SAMPLER is \"" STR_FMT
                       "\", but must be always_on, always_off or traceidratio",
                       STR_ARG(str_upto(sampler, 64)));
    return 0;
}

/* `whole` is used as it is; the path of traces is appended to `base`. The client prepends the path of its URL. */
static int connect_collector(struct tracer *t, str whole, str base, err_t *e)
{
    struct uri uri;
    str url = whole.n ? whole : base;
    int r = uri_parse(url, &uri, e);
    if (r < 0)
        return r;
    t->target = S("/v1/traces");
    if (whole.n) {
        t->target = uri.prefix.n ? arena_str(&t->arena, uri.prefix) : S("/");
        url = uri.prefix.n ? str_upto(whole, (size_t)(uri.prefix.p - whole.p)) : whole;
    }
    r = http_client_new(t->loop, &(struct http_client_options){ .url = url }, &t->client, e);
    return r < 0 ? r : read_headers(t, url, e);
}

struct tracer *tracer_new(struct loop *loop, struct metrics *metrics)
{
    str whole = read_variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        base = read_variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    err_t e;
    if (!(whole.n || base.n) || str_eqc(read_variable("OTEL_SDK_DISABLED"), "true") ||
        str_eqc(read_variable("OTEL_TRACES_EXPORTER"), "none"))
        return NULL;
    struct tracer *t = mem_zero(1, sizeof(*t));
    t->loop = loop;
    random_init(&t->random, random_seed(), 0);
    struct metric_family *spans =
        metrics_family(metrics, &(struct metric_spec){
                                    .name = "flyball_trace_spans_total",
                                    .help = "Spans sent to the collector of traces, and dropped",
                                    .kind = METRIC_COUNTER,
                                    .labels = { "result" } });
    t->sent = METRIC(spans, S("sent")), t->dropped = METRIC(spans, S("dropped"));
    read_resource(t);
    int r = connect_collector(t, whole, base, &e);
    r = r < 0 ? r : read_ratio(t, &e);
    if (r < 0) {
        log_error("no traces are sent", KV_C("error", e.text));
        tracer_free(t);
        return NULL;
    }
    warn_of_unsupported();
    log_info("sending traces", KV("to", whole.n ? whole : base));
    return t;
}

void tracer_free(struct tracer *t)
{
    if (!t)
        return;
    timer_stop(&t->timer);
    http_client_free(t->client);
    buf_done(&t->resource);
    buf_done(&t->pending);
    buf_done(&t->batch);
    arena_done(&t->arena);
    free(t);
}
