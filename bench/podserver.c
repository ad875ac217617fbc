/* Pods without a cluster behind them: an API server's list and watch of pods, made up as they are sent, over
 * TLS and HTTP/2. It knows pages and streaming lists, and prints the path of a kubeconfig once it
 * listens.
 *
 *   podserver PODS [EVENTS_A_SECOND SECONDS [WIDGETS]]
 *
 * A watch is in protobuf if the client accepts that; a list in pages is always JSON.
 *
 * With a rate, every watch gets so many MODIFIED events a second after the list, each with the time it was made
 * (CLOCK_MONOTONIC, in an annotation), for so many seconds. They are about 500 pods, all with a declared field that changed.
 *
 * With widgets, a custom resource of 2 KB, both kinds churn as in a large cluster: nine of ten events are about pods, all
 * pods in turn; of twenty events one deletes an object and one creates it again, and half of the others change nothing
 * but the version. */
#include "../test/protobuf_write.h"
#include "base/base64.h"
#include "net/net.h"
#include "pods.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    struct loop *loop;
    size_t pods, widgets;
    int64_t rate, seconds;
    uint64_t rv;
} server;

struct stream {
    struct exchange *x;
    bool is_watch, has_list, begun, protobuf, is_widgets;
    size_t at, end; /* objects */
    int64_t started_ns, sent;
    struct timer tick;
};

/* Events are about this many pods in turn. Their texts are made once, so that it is not the server that limits
 * the rate, and places the moving parts go to are remembered. */
enum { EVENT_PODS = 500 };

static struct body {
    struct buf text;
    size_t rv, annotations;    /* where these begin */
    struct buf metadata, rest; /* in protobuf */
} bodies[EVENT_PODS];

/* In a watch every object has kind and apiVersion. */
static void put_typed_pod(struct buf *out, size_t index, uint64_t rv)
{
    size_t start = out->n + 1;
    buf_put(out, S("{\"kind\":\"Pod\",\"apiVersion\":\"v1\""));
    pods_write(out, index, rv);
    size_t brace = start + str_find(str_from(buf_str(out), start), S("{"));
    out->p[brace] = ',';
}

static const struct body *body_of(size_t index)
{
    struct body *b = &bodies[index];
    if (b->text.n)
        return b;
    put_typed_pod(&b->text, index, 0);
    b->rv = str_find(buf_str(&b->text), S("\"resourceVersion\":\"0\"")) + 19;
    b->annotations = str_find(buf_str(&b->text), S("\"annotations\":{")) + 15;
    return b;
}

/* ---- protobuf */

static void put_annotation(struct buf *metadata, str key, str value)
{
    auto_buf struct buf entry = { 0 };
    wire_put_bytes(&entry, 1, key);
    wire_put_bytes(&entry, 2, value);
    wire_put_bytes(metadata, 12, buf_str(&entry));
}

static void put_number_annotation(struct buf *metadata, str key, int64_t value)
{
    char room[STR_I64_ROOM];
    put_annotation(metadata, key, str_of_i64(value, room));
}

/* Ends the metadata, adds the rest of the pod and wraps all of it. */
static void put_frame(struct buf *out, str type, struct buf *metadata, str rest, uint64_t rv)
{
    auto_buf struct buf message = { 0 }, object = { 0 };
    char room[STR_I64_ROOM];
    wire_put_bytes(metadata, 6, str_of_i64((int64_t)rv, room));
    wire_put_bytes(&message, 1, buf_str(metadata));
    buf_put(&message, rest);
    wire_put_object(&object, S("v1"), S("Pod"), buf_str(&message));
    wire_put_event(out, type, buf_str(&object));
}

/* `serial` 0: the object of the list; otherwise one that was changed by this event. */
static void put_pod_frame(struct buf *out, str type, size_t index, uint64_t rv, int64_t serial)
{
    auto_buf struct buf metadata = { 0 }, rest = { 0 };
    pods_write_protobuf(&metadata, &rest, index);
    put_annotation(&metadata, S("prometheus.io/scrape"), S("true"));
    if (serial) {
        put_number_annotation(&metadata, S("sent"), clock_mono_ns());
        put_number_annotation(&metadata, S("serial"), serial);
    }
    put_frame(out, type, &metadata, buf_str(&rest), rv);
}

static void put_bookmark_frame(struct buf *out)
{
    auto_buf struct buf metadata = { 0 };
    put_annotation(&metadata, S("k8s.io/initial-events-end"), S("true"));
    put_frame(out, S("BOOKMARK"), &metadata, S(""), server.rv);
}

static void put_event_frame(struct buf *out, struct stream *s)
{
    struct body *b = &bodies[(size_t)s->sent % MIN(server.pods, (size_t)EVENT_PODS)];
    auto_buf struct buf metadata = { 0 };
    if (!b->rest.n)
        pods_write_protobuf(&b->metadata, &b->rest,
                            (size_t)s->sent % MIN(server.pods, (size_t)EVENT_PODS));
    buf_put(&metadata, buf_str(&b->metadata));
    put_annotation(&metadata, S("prometheus.io/scrape"), S("true"));
    put_number_annotation(&metadata, S("sent"), clock_mono_ns());
    put_number_annotation(&metadata, S("serial"), s->sent + 1);
    put_frame(out, S("MODIFIED"), &metadata, buf_str(&b->rest), ++server.rv);
    s->sent++;
}

/* ---- JSON */

static void put_event(struct buf *out, struct stream *s)
{
    const struct body *b = body_of((size_t)s->sent % MIN(server.pods, (size_t)EVENT_PODS));
    str text = buf_str(&b->text);
    buf_put(out, S("{\"type\":\"MODIFIED\",\"object\":"));
    buf_put(out, str_upto(text, b->rv));
    buf_printf(out, "%llu", (unsigned long long)++server.rv);
    buf_put(out, (str){ text.p + b->rv + 1, b->annotations - b->rv - 1 });
    buf_printf(out, "\"sent\":\"%lld\",\"serial\":\"%lld\",", (long long)clock_mono_ns(),
               (long long)s->sent + 1);
    buf_put(out, str_from(text, b->annotations));
    buf_put(out, S("}\n"));
    s->sent++;
}

/* ---- churn */

static void put_widget(struct buf *out, size_t index, uint64_t rv, int64_t serial)
{
    buf_printf(
        out,
        "{\"apiVersion\":\"bench.example.org/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"widget-%05zu\","
        "\"namespace\":\"team-%zu\",\"uid\":\"%08zx-4321-4abc-8def-0123456789ab\",\"resourceVersion\":\"%llu\","
        "\"generation\":2,\"creationTimestamp\":\"2026-11-01T10:00:00Z\",\"labels\":{\"app\":\"application-%zu\"}},"
        "\"spec\":{\"size\":%lld,\"notes\":[",
        index, index % 10, index, (unsigned long long)rv, index % 50, (long long)serial);
    for (int i = 0; i < 20; i++)
        buf_printf(
            out,
            "%s{\"name\":\"note-%02d\",\"text\":\"what its author had to say about this part\"}",
            i ? "," : "", i);
    buf_printf(
        out,
        "]},\"status\":{\"sentNs\":%lld,\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
        "\"lastTransitionTime\":\"2026-11-01T10:00:09Z\",\"reason\":\"Made\",\"message\":\"\"}]}}",
        serial ? (long long)clock_mono_ns() : 0);
}

static void put_object(struct buf *out, const struct stream *s, str type, size_t index, uint64_t rv,
                       int64_t serial)
{
    if (s->protobuf) {
        put_pod_frame(out, type, index, rv, serial);
        return;
    }
    buf_printf(out, "{\"type\":\"" STR_FMT "\",\"object\":", STR_ARG(type));
    if (s->is_widgets)
        put_widget(out, index, rv, serial);
    else
        put_typed_pod(out, index, rv);
    buf_put(out, S("}\n"));
}

/* All objects in turn, far from each other, because neighbours have the same owner and node. */
static size_t churned(const struct stream *s, int64_t event)
{
    size_t n = s->is_widgets ? server.widgets : server.pods;
    return (size_t)event * 7919 % n;
}

static void put_churn(struct buf *out, struct stream *s)
{
    enum { ROUND = 20, GONE_FOR = 10 };
    int64_t event = s->sent++, at = event % ROUND;
    uint64_t rv = ++server.rv;
    if (at == 0)
        put_object(out, s, S("DELETED"), churned(s, event), rv, 0);
    else if (at == GONE_FOR)
        put_object(out, s, S("ADDED"), churned(s, event - GONE_FOR), rv, event + 1);
    else
        put_object(out, s, S("MODIFIED"), churned(s, event), rv, at % 2 ? event + 1 : 0);
}

/* ---- streams */

static int64_t rate_of(const struct stream *s)
{
    if (!server.widgets)
        return server.rate;
    return s->is_widgets ? server.rate / 10 : server.rate - server.rate / 10;
}

static int64_t due(const struct stream *s)
{
    int64_t passed = clock_mono_ns() - s->started_ns, rate = rate_of(s);
    return MIN(passed * rate / NS_PER_S, rate * server.seconds) - s->sent;
}

static void tick(struct timer *timer)
{
    struct stream *s = container_of(timer, struct stream, tick);
    exchange_wake_stream(s->x);
    timer_set(server.loop, timer, loop_mono_ns(server.loop) + NS_PER_MS, tick);
}

static enum stream_more pull_list(struct stream *s, struct buf *out, size_t room)
{
    if (!s->begun)
        pods_list_begin(out);
    s->begun = true;
    while (out->n < room && s->at < s->end) {
        pods_write(out, s->at, 1000 + s->at);
        if (++s->at < s->end)
            buf_putc(out, ',');
    }
    if (s->at < s->end)
        return STREAM_MORE;
    buf_printf(out, "],\"metadata\":{\"resourceVersion\":\"%llu\"", (unsigned long long)server.rv);
    if (s->end < server.pods)
        buf_printf(out, ",\"continue\":\"%zu\"", s->end);
    buf_put(out, S("}}"));
    return STREAM_END;
}

/* Ends the initial events. */
static void put_bookmark(struct buf *out, const struct stream *s)
{
    if (s->protobuf) {
        put_bookmark_frame(out);
        return;
    }
    buf_printf(
        out,
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{"
        "\"resourceVersion\":\"%llu\",\"creationTimestamp\":null,\"annotations\":{\"k8s.io/initial-events-end\":"
        "\"true\"}},\"spec\":{\"containers\":null},\"status\":{}}}\n",
        s->is_widgets ? "Widget" : "Pod", s->is_widgets ? "bench.example.org/v1" : "v1",
        (unsigned long long)server.rv);
}

static enum stream_more pull_watch(struct stream *s, struct buf *out, size_t room)
{
    for (; s->has_list && out->n < room && s->at < s->end; s->at++)
        put_object(out, s, S("ADDED"), s->at, 1000 + s->at, 0);
    if (s->has_list && s->at < s->end)
        return STREAM_MORE;
    if (s->has_list)
        put_bookmark(out, s);
    s->has_list = false;
    if (!server.rate)
        return STREAM_WAIT;
    if (!s->started_ns) {
        s->started_ns = clock_mono_ns() + NS_PER_S; /* the client may settle first */
        tick(&s->tick);
    }
    for (int64_t n = due(s); n > 0 && out->n < room; n--)
        (server.widgets ? put_churn : s->protobuf ? put_event_frame : put_event)(out, s);
    return due(s) > 0 ? STREAM_MORE : STREAM_WAIT;
}

static enum stream_more pull(void *context, struct buf *out, size_t room)
{
    struct stream *s = context;
    return s->is_watch ? pull_watch(s, out, room) : pull_list(s, out, room);
}

static void closed(void *context, bool complete)
{
    struct stream *s = context;
    (void)complete;
    timer_stop(&s->tick);
    free(s);
}

static void on_request(void *context, struct exchange *x)
{
    (void)context;
    struct arena *a = exchange_arena(x);
    str query = exchange_query(x), value;
    int64_t limit = 0, from = 0;
    struct http_headers json = HTTP_HEADERS({ S("content-type"), S("application/json") });
    bool is_widgets = str_eq(exchange_path(x), S("/apis/bench.example.org/v1/widgets"));
    if (!is_widgets && !str_eq(exchange_path(x), S("/api/v1/pods"))) {
        exchange_answer(x, 404, json,
                        S("{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404}"));
        return;
    }
    struct stream *s = mem_zero(1, sizeof(*s));
    s->x = x;
    s->is_watch = uri_query_get(a, query, S("watch"), &value) == 1;
    s->has_list = uri_query_get(a, query, S("sendInitialEvents"), &value) == 1;
    if (uri_query_get(a, query, S("limit"), &value) == 1)
        str_to_i64(value, &limit);
    if (uri_query_get(a, query, S("continue"), &value) == 1)
        str_to_i64(value, &from);
    size_t objects = is_widgets ? server.widgets : server.pods;
    s->is_widgets = is_widgets;
    s->at = MIN((size_t)from, objects);
    s->end = limit ? MIN(s->at + (size_t)limit, objects) : objects;
    s->protobuf =
        s->is_watch && !is_widgets &&
        str_starts(exchange_header(x, S("accept")), S("application/vnd.kubernetes.protobuf"));
    struct http_headers protobuf =
        HTTP_HEADERS({ S("content-type"), S("application/vnd.kubernetes.protobuf;stream=watch") });
    struct stream_source source = { .pull = pull, .closed = closed, .context = s, .length = -1 };
    exchange_stream(x, 200, s->protobuf ? protobuf : json, &source);
}

static void put_config(const struct cert_pair *ca, uint16_t port)
{
    char path[] = "/tmp/flyball-pods-XXXXXX";
    auto_buf struct buf text = { 0 }, encoded = { 0 };
    base64_encode(&encoded, buf_str(&ca->cert));
    buf_printf(
        &text,
        "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\","
        "\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}],\"users\":[{\"name\":\"u\",\"user\":{}}],"
        "\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"https://127.0.0.1:%d\","
        "\"certificate-authority-data\":\"%s\"}}]}\n",
        port, encoded.p);
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text.p, text.n) < 0)
        abort();
    close(fd);
    puts(path);
    fflush(stdout);
}

static void on_term(void *context)
{
    (void)context;
    loop_stop(server.loop);
}

int main(int argc, char **argv)
{
    err_t e;
    int64_t pods = 5000, widgets = 0;
    if (argc > 1)
        str_to_i64(str_c(argv[1]), &pods);
    if (argc > 3) {
        str_to_i64(str_c(argv[2]), &server.rate);
        str_to_i64(str_c(argv[3]), &server.seconds);
    }
    if (argc > 4)
        str_to_i64(str_c(argv[4]), &widgets);
    server.pods = (size_t)pods;
    server.widgets = (size_t)widgets;
    server.rv = 1000000;
    auto_cert_pair struct cert_pair ca = { 0 }, own = { 0 };
    str names[] = { S("127.0.0.1"), S("localhost") };
    struct tls *tls;
    struct http_server *http;
    struct signal_watch *term;
    if (loop_new(&(struct loop_options){ 0 }, &server.loop, &e) < 0 ||
        cert_make(&(struct cert_request){ .use = CERT_CA,
                                          .common_name = S("bench"),
                                          .now_ns = clock_wall_ns(),
                                          .days = 1 },
                  &ca, &e) < 0 ||
        cert_make(&(struct cert_request){ .use = CERT_SERVER,
                                          .common_name = S("bench"),
                                          .names = names,
                                          .name_count = 2,
                                          .now_ns = clock_wall_ns(),
                                          .days = 1,
                                          .issuer = &ca },
                  &own, &e) < 0 ||
        tls_server_new(&(struct tls_server_options){ .cert_pem = buf_str(&own.cert),
                                                     .key_pem = buf_str(&own.key) },
                       &tls, &e) < 0 ||
        http_server_new(server.loop,
                        &(struct http_server_options){ .tls = tls, .on_request = on_request },
                        &http, &e) < 0) {
        fprintf(stderr, "podserver: %s\n", e.text);
        return 1;
    }
    signal_watch_new(server.loop, SIGTERM, on_term, NULL, &term);
    put_config(&ca, http_server_port(http));
    loop_run(server.loop);
    signal_watch_free(term);
    http_server_free(http);
    tls_unref(tls);
    loop_free(server.loop);
    for (size_t i = 0; i < EVENT_PODS; i++) {
        buf_done(&bodies[i].text);
        buf_done(&bodies[i].metadata);
        buf_done(&bodies[i].rest);
    }
    return 0;
}
