/* Pods without a cluster behind them: an API server's list and watch of pods, made up as they are sent, over
 * TLS and HTTP/2. It knows pages and streaming lists, and prints the path of a kubeconfig once it
 * listens.
 *
 *   podserver PODS [EVENTS_A_SECOND SECONDS]
 *
 * With a rate, every watch gets so many MODIFIED events a second after the list, each with the time it was made
 * (CLOCK_MONOTONIC, in an annotation), for so many seconds. */
#include "base/base64.h"
#include "net/net.h"
#include "pods.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    struct loop *loop;
    size_t pods;
    int64_t rate, seconds;
    uint64_t rv;
} server;

struct stream {
    struct exchange *x;
    bool is_watch, has_list, begun;
    size_t at, end; /* pods */
    int64_t events_left, started_ns, sent;
    struct timer tick;
};

/* Events tell of so many pods in turn. Their texts are made once, so that it is not the server that limits
 * the rate, and places the moving parts go to are remembered. */
enum { EVENT_PODS = 500 };

static struct body {
    struct buf text;
    size_t rv, annotations; /* where these begin */
} bodies[EVENT_PODS];

/* In a watch every object says what it is. */
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
    s->events_left--;
}

static int64_t due(const struct stream *s)
{
    int64_t passed = clock_mono_ns() - s->started_ns;
    return MIN(passed * server.rate / NS_PER_S, server.rate * server.seconds) - s->sent;
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

static enum stream_more pull_watch(struct stream *s, struct buf *out, size_t room)
{
    while (s->has_list && out->n < room && s->at < s->end) {
        buf_put(out, S("{\"type\":\"ADDED\",\"object\":"));
        put_typed_pod(out, s->at, 1000 + s->at);
        buf_put(out, S("}\n"));
        s->at++;
    }
    if (s->has_list && s->at < s->end)
        return STREAM_MORE;
    if (s->has_list) {
        s->has_list = false;
        buf_printf(
            out,
            "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
            "\"resourceVersion\":\"%llu\",\"creationTimestamp\":null,\"annotations\":{\"k8s.io/initial-events-end\":"
            "\"true\"}},\"spec\":{\"containers\":null},\"status\":{}}}\n",
            (unsigned long long)server.rv);
    }
    if (!server.rate)
        return STREAM_WAIT;
    if (!s->started_ns) {
        s->started_ns = clock_mono_ns() + NS_PER_S; /* the client may settle first */
        tick(&s->tick);
    }
    for (int64_t n = due(s); n > 0 && out->n < room; n--)
        put_event(out, s);
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
    if (!str_eq(exchange_path(x), S("/api/v1/pods"))) {
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
    s->at = MIN((size_t)from, server.pods);
    s->end = limit ? MIN(s->at + (size_t)limit, server.pods) : server.pods;
    struct stream_source source = { .pull = pull, .closed = closed, .context = s, .length = -1 };
    exchange_stream(x, 200, json, &source);
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
    int64_t pods = 5000;
    if (argc > 1)
        str_to_i64(str_c(argv[1]), &pods);
    if (argc > 3) {
        str_to_i64(str_c(argv[2]), &server.rate);
        str_to_i64(str_c(argv[3]), &server.seconds);
    }
    server.pods = (size_t)pods;
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
    for (size_t i = 0; i < EVENT_PODS; i++)
        buf_done(&bodies[i].text);
    return 0;
}
