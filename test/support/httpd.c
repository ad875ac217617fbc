/* A small server over src/net for tests with foreign clients (curl, h2load, nghttp):
 *
 *     httpd [--tls DIR] [--address IP]    prints its port, serves until standard input ends
 *
 * With --tls it makes a CA, a server certificate and a client certificate and writes ca.pem,
 * client.pem and client.key into DIR. */
#include "net/net.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define TEXT HTTP_HEADERS({ S("Content-Type"), S("text/plain") })

static struct loop *loop;
static struct http_server *server;

struct watch {
    struct exchange *x;
    struct timer timer;
    int events, left;
    bool ready;
};

static enum stream_more watch_pull(void *context, struct buf *out, size_t room UNUSED)
{
    struct watch *w = context;
    if (!w->ready)
        return STREAM_WAIT;
    w->ready = false;
    buf_printf(out, "event %d\n", ++w->events);
    return --w->left ? STREAM_WAIT : STREAM_END;
}

static void watch_closed(void *context, bool complete UNUSED)
{
    struct watch *w = context;
    timer_stop(&w->timer);
    free(w);
}

static void watch_tick(struct timer *timer)
{
    struct watch *w = container_of(timer, struct watch, timer);
    w->ready = true;
    timer_set(loop, &w->timer, loop_mono_ns(loop) + 20 * NS_PER_MS, watch_tick);
    exchange_wake_stream(w->x);
}

/* /list?lines=N: N lines pulled; /idle: a watch without events. */
static enum stream_more list_pull(void *context, struct buf *out, size_t room)
{
    int64_t *left = context;
    size_t start = out->n;
    while (*left > 0 && out->n - start < room)
        buf_printf(out, "line %lld\n", (long long)(*left)--);
    return *left ? STREAM_MORE : STREAM_END;
}

static enum stream_more idle_pull(void *context UNUSED, struct buf *out UNUSED, size_t room UNUSED)
{
    return STREAM_WAIT;
}

static void context_free(void *context, bool complete UNUSED)
{
    free(context);
}

struct later {
    struct timer timer;
    struct exchange *x;
};

static void answer_later(struct timer *timer)
{
    struct later *l = container_of(timer, struct later, timer);
    exchange_answer(l->x, 200, TEXT, S("later\n"));
    free(l);
}

static void start_stream(struct exchange *x, str path)
{
    if (str_eq(path, S("/watch"))) {
        struct watch *w = mem_zero(1, sizeof(*w));
        *w = (struct watch){ .x = x, .left = 5 };
        exchange_stream(x, 200, TEXT,
                        &(struct stream_source){ .pull = watch_pull,
                                                 .closed = watch_closed,
                                                 .context = w,
                                                 .length = -1 });
        timer_set(loop, &w->timer, loop_mono_ns(loop), watch_tick);
    } else if (str_eq(path, S("/idle"))) {
        exchange_stream(x, 200, TEXT,
                        &(struct stream_source){
                            .pull = idle_pull, .closed = context_free, .length = -1 });
    } else {
        str lines = S("1000");
        int64_t *left = mem_zero(1, sizeof(*left));
        uri_query_get(exchange_arena(x), exchange_query(x), S("lines"), &lines);
        str_to_i64(lines, left);
        exchange_stream(x, 200, TEXT,
                        &(struct stream_source){ .pull = list_pull,
                                                 .closed = context_free,
                                                 .context = left,
                                                 .compress = true,
                                                 .length = -1 });
    }
}

static void answer_whoami(struct exchange *x)
{
    const struct tls_peer *peer = exchange_peer(x);
    auto_buf struct buf b = { 0 };
    buf_put(&b, peer ? peer->user : S("anonymous"));
    for (size_t i = 0; peer && i < peer->group_count; i++)
        buf_printf(&b, " " STR_FMT, STR_ARG(peer->groups[i]));
    buf_putc(&b, '\n');
    exchange_answer_buf(x, 200, TEXT, &b);
}

static void on_request(void *context UNUSED, struct exchange *x)
{
    str path = exchange_path(x);
    if (str_eq(path, S("/hello"))) {
        exchange_answer(x, 200, TEXT, S("hello\n"));
    } else if (str_eq(path, S("/echo"))) {
        exchange_answer(x, 200, TEXT, exchange_body(x));
    } else if (str_eq(path, S("/whoami"))) {
        answer_whoami(x);
    } else if (str_eq(path, S("/later"))) {
        struct later *l = mem_zero(1, sizeof(*l));
        l->x = x;
        timer_set(loop, &l->timer, loop_mono_ns(loop) + 10 * NS_PER_MS, answer_later);
    } else if (str_eq(path, S("/big"))) {
        auto_buf struct buf b = { 0 };
        while (b.n < 1000000)
            buf_put(&b, S("all work and no play makes a dull server\n"));
        exchange_answer_buf(x, 200, TEXT, &b);
    } else if (str_eq(path, S("/abort"))) {
        exchange_abort(x);
    } else if (str_eq(path, S("/watch")) || str_eq(path, S("/list")) || str_eq(path, S("/idle"))) {
        start_stream(x, path);
    } else {
        exchange_answer(x, 404, TEXT, S("no such page\n"));
    }
}

static void write_file(const char *dir, const char *name, str text)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text.p, text.n) != (ssize_t)text.n) {
        perror(path);
        exit(1);
    }
}

static struct tls *make_tls(const char *dir)
{
    err_t e;
    struct tls *tls;
    auto_cert_pair struct cert_pair ca = { 0 }, serving = { 0 }, client = { 0 };
    struct cert_request r = { CERT_CA, .common_name = S("test-ca"), .now_ns = clock_wall_ns(),
                              .days = 10 };
    if (cert_make(&r, &ca, &e))
        goto failed;
    r = (struct cert_request){ CERT_SERVER,
                               .common_name = S("httpd"),
                               .names = (str[]){ S("localhost"), S("127.0.0.1"), S("::1") },
                               .name_count = 3,
                               .now_ns = r.now_ns,
                               .days = 10,
                               .issuer = &ca };
    if (cert_make(&r, &serving, &e))
        goto failed;
    r = (struct cert_request){ CERT_CLIENT,
                               .common_name = S("alice"),
                               .organizations = (str[]){ S("dev"), S("ops") },
                               .organization_count = 2,
                               .now_ns = r.now_ns,
                               .days = 10,
                               .issuer = &ca };
    if (cert_make(&r, &client, &e))
        goto failed;
    write_file(dir, "ca.pem", buf_str(&ca.cert));
    write_file(dir, "client.pem", buf_str(&client.cert));
    write_file(dir, "client.key", buf_str(&client.key));
    struct tls_server_options o = { .cert_pem = buf_str(&serving.cert),
                                    .key_pem = buf_str(&serving.key),
                                    .client_ca_pem = buf_str(&ca.cert) };
    if (tls_server_new(&o, &tls, &e) == 0)
        return tls;
failed:
    fprintf(stderr, "httpd: %s\n", e.text);
    exit(1);
}

static void on_drained(void *context UNUSED)
{
    loop_stop(loop);
}

static void on_input(void *context UNUSED, unsigned events UNUSED)
{
    char waste[256];
    if (read(0, waste, sizeof(waste)) == 0)
        loop_stop(loop);
}

static void on_term(void *context UNUSED)
{
    http_server_drain(server, 5 * NS_PER_S, on_drained, NULL);
}

int main(int argc, char **argv)
{
    err_t e;
    struct fd_watch *input = NULL;
    struct signal_watch *term;
    struct http_server_options o = { .on_request = on_request,
                                     .header_timeout_ns = NS_PER_S,
                                     .body_timeout_ns = NS_PER_S };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--tls") == 0)
            o.tls = make_tls(argv[i + 1]);
        else if (strcmp(argv[i], "--address") == 0)
            o.address = argv[i + 1];
    }
    if (loop_new(&(struct loop_options){ 0 }, &loop, &e) ||
        http_server_new(loop, &o, &server, &e)) {
        fprintf(stderr, "httpd: %s\n", e.text);
        return 1;
    }
    tls_unref(o.tls);
    if (fd_watch_new(loop, 0, on_input, NULL, &input) == 0)
        fd_watch_set(input, FD_READ);
    signal_watch_new(loop, SIGTERM, on_term, NULL, &term);
    printf("%d\n", http_server_port(server));
    fflush(stdout);
    loop_run(loop);
    http_server_free(server);
    fd_watch_free(input);
    signal_watch_free(term);
    loop_free(loop);
    return 0;
}
