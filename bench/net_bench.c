/* The HTTP stack: CPU a request on both sides, memory of idle watches, fan-out of one event.
 *
 * The server runs in a child process, so that its memory and CPU are its own. The client is ours; how
 * the server does against foreign clients is shown by h2load and curl in test/integration. What a user
 * would pick instead for an API server is Go's net/http, which on the machine of the design notes took
 * 26 KB per plain idle watch, 46 KB over TLS and 12 KB over HTTP/2. */
#include "net/net.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WATCHES = 5000, REQUESTS = 40000, IN_FLIGHT = 64, EVENT_BYTES = 1024 };

static struct loop *loop;

/* --- the server, in the child --- */

static struct exchange *watches[WATCHES];
static char served[WATCHES]; /* has had the event */
static size_t watch_count;
static char event[EVENT_BYTES];

static enum stream_more watch_pull(void *context, struct buf *out, size_t room UNUSED)
{
    size_t i = (size_t)(uintptr_t)context;
    if (!served[i]) {
        buf_put(out, (str){ event, sizeof(event) });
        served[i] = 1;
    }
    return STREAM_WAIT;
}

static void watch_closed(void *context, bool complete UNUSED)
{
    watches[(size_t)(uintptr_t)context] = NULL;
}

static void fan_out(struct exchange *x)
{
    memset(served, 0, sizeof(served));
    for (size_t i = 0; i < watch_count; i++)
        if (watches[i])
            exchange_wake_stream(watches[i]);
    exchange_answer(x, 200, (struct http_headers){ 0 }, S("ok"));
}

/* Memory and CPU of the server, asked over its own protocol. */
static void report(struct exchange *x)
{
    char text[200];
    str rest = { text, 0 }, part;
    int64_t pages = 0;
    auto_close int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof(text));
    rest.n = n > 0 ? (size_t)n : 0;
    str_cut(&rest, ' ', &part); /* all of it; then what is resident */
    if (!str_cut(&rest, ' ', &part) || str_to_i64(part, &pages) < 0)
        pages = 0;
    auto_buf struct buf b = { 0 };
    buf_printf(&b, "%lld %lld", (long long)pages * sysconf(_SC_PAGESIZE),
               (long long)clock_cpu_ns());
    exchange_answer_buf(x, 200, (struct http_headers){ 0 }, &b);
}

static void on_request(void *context UNUSED, struct exchange *x)
{
    str path = exchange_path(x);
    if (str_eq(path, S("/watch")) && watch_count < WATCHES) {
        size_t i = watch_count++;
        watches[i] = x;
        served[i] = 1;
        exchange_stream(x, 200, (struct http_headers){ 0 },
                        &(struct stream_source){ .pull = watch_pull,
                                                 .closed = watch_closed,
                                                 .context = (void *)(uintptr_t)i,
                                                 .length = -1 });
    } else if (str_eq(path, S("/fan-out"))) {
        fan_out(x);
    } else if (str_eq(path, S("/report"))) {
        report(x);
    } else {
        exchange_answer(x, 200, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                        (str){ event, sizeof(event) });
    }
}

struct way {
    const char *name;
    bool tls, http2;
};

static void fail(const err_t *e)
{
    fprintf(stderr, "net_bench: %s\n", e->text);
    exit(1);
}

static struct tls *make_tls(bool http1_only)
{
    err_t e;
    auto_cert_pair struct cert_pair pair = { 0 };
    struct cert_request r = {
        .use = CERT_SERVER, .common_name = S("bench"), .now_ns = clock_wall_ns(), .days = 2
    };
    struct tls *tls = NULL;
    if (cert_make(&r, &pair, &e) ||
        tls_server_new(&(struct tls_server_options){ .cert_pem = buf_str(&pair.cert),
                                                     .key_pem = buf_str(&pair.key),
                                                     .http1_only = http1_only },
                       &tls, &e))
        fail(&e);
    return tls;
}

static int serve(struct way way)
{
    err_t e;
    struct http_server *server;
    struct http_server_options o = { .on_request = on_request };
    if (way.tls)
        o.tls = make_tls(!way.http2);
    if (loop_new(&(struct loop_options){ 0 }, &loop, &e) || http_server_new(loop, &o, &server, &e))
        fail(&e);
    printf("%d\n", http_server_port(server));
    fflush(stdout);
    loop_run(loop);
    return 0;
}

/* --- the client, in the parent --- */

static struct http_client *client;
static size_t heads, ended, bytes_in;

static void on_head(void *context UNUSED, const struct http_head *head UNUSED)
{
    heads++;
}

static void on_data(void *context UNUSED, str bytes)
{
    bytes_in += bytes.n;
}

static void send_call(str target, void (*on_done)(void *, const err_t *))
{
    http_client_send(client, &(struct http_request){ .method = S("GET"),
                                                     .target = target,
                                                     .on_head = on_head,
                                                     .on_data = on_data,
                                                     .on_done = on_done });
}

static void on_last(void *context UNUSED, const err_t *failure)
{
    if (failure && failure->code != ECANCELED)
        fail(failure);
    ended++;
}

static size_t to_send;

static void on_next(void *context, const err_t *failure)
{
    on_last(context, failure);
    if (to_send && !failure) {
        to_send--;
        send_call(S("/object"), on_next);
    }
}

struct report {
    int64_t bytes, cpu_ns;
    bool done;
};

static void on_report(void *context, const struct http_response *response, const err_t *failure)
{
    struct report *r = context;
    if (failure)
        fail(failure);
    str rest = response->body, part;
    r->done = str_cut(&rest, ' ', &part) && str_to_i64(part, &r->bytes) == 0 &&
              str_to_i64(rest, &r->cpu_ns) == 0;
}

static struct report ask(void)
{
    struct report r = { 0 };
    http_client_fetch(client, &(struct http_fetch){ .method = S("GET"),
                                                    .target = S("/report"),
                                                    .on_done = on_report,
                                                    .context = &r });
    while (!r.done)
        loop_turn(loop);
    return r;
}

static void measure_requests(struct way way)
{
    struct report before = ask();
    int64_t cpu = clock_cpu_ns(), wall = clock_mono_ns();
    ended = 0;
    to_send = REQUESTS - IN_FLIGHT;
    for (int i = 0; i < IN_FLIGHT; i++)
        send_call(S("/object"), on_next);
    while (ended < REQUESTS)
        loop_turn(loop);
    cpu = clock_cpu_ns() - cpu;
    wall = clock_mono_ns() - wall;
    struct report after = ask();
    printf("%-15s %7.0f requests/s   server %5.1f us CPU a request   client %5.1f us\n", way.name,
           REQUESTS / ((double)wall / 1e9), (double)(after.cpu_ns - before.cpu_ns) / 1e3 / REQUESTS,
           (double)cpu / 1e3 / REQUESTS);
}

static void measure_watches(struct way way)
{
    struct report before = ask();
    heads = 0;
    for (int i = 0; i < WATCHES; i++)
        send_call(S("/watch"), on_last);
    while (heads < WATCHES)
        loop_turn(loop);
    struct report after = ask();
    printf("%-15s %d idle watches: %5.2f KB each, server %.1f MB in all, %zu connections\n",
           way.name, WATCHES, (double)(after.bytes - before.bytes) / 1024 / WATCHES,
           (double)after.bytes / 1e6, http_client_connections(client));
    int64_t wall = clock_mono_ns();
    bytes_in = 0;
    send_call(S("/fan-out"), on_last);
    while (bytes_in < (size_t)WATCHES * EVENT_BYTES)
        loop_turn(loop);
    printf("%-15s event of 1 KB to %d watches: %.0f ms until the last client has it\n", way.name,
           WATCHES, (double)(clock_mono_ns() - wall) / 1e6);
}

/* The server is this program, started again, so that its memory holds nothing of ours. */
static pid_t start_server(const char *number, int64_t *ret_port)
{
    int pipes[2];
    if (pipe(pipes) < 0)
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        execl("/proc/self/exe", "net_bench", "serve", number, (char *)NULL);
        _exit(1);
    }
    close(pipes[1]);
    char line[16];
    ssize_t n = read(pipes[0], line, sizeof(line));
    if (n <= 0 || str_to_i64(str_trim((str){ line, (size_t)n }), ret_port) < 0)
        exit(1);
    close(pipes[0]);
    return child;
}

static void run(struct way way, const char *number)
{
    int64_t port;
    err_t e;
    pid_t child = start_server(number, &port);
    char url[64];
    snprintf(url, sizeof(url), "%s://127.0.0.1:%d", way.tls ? "https" : "http", (int)port);
    struct http_client_options o = { .url = str_c(url),
                                     .max_connections = WATCHES + 10,
                                     .no_gzip = true };
    struct tls_client_options t = { .skip_verify = true };
    if (loop_new(&(struct loop_options){ 0 }, &loop, &e) ||
        (way.tls && tls_client_new(&t, &o.tls, &e)) || http_client_new(loop, &o, &client, &e))
        fail(&e);
    measure_requests(way);
    measure_watches(way);
    http_client_free(client);
    tls_unref(o.tls);
    loop_free(loop);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    static const struct way ways[] = { { "HTTP/1.1", false, false },
                                       { "HTTP/1.1 TLS", true, false },
                                       { "HTTP/2 TLS", true, true } };
    static const char *const numbers[] = { "0", "1", "2" };
    memset(event, 'e', sizeof(event));
    struct rlimit files = { 20000, 20000 };
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        fprintf(stderr, "the limit of open files is low: HTTP/1.1 watches may fail\n");
    if (argc == 3 && strcmp(argv[1], "serve") == 0 && argv[2][0] >= '0' && argv[2][0] <= '2')
        return serve(ways[argv[2][0] - '0']);
    for (size_t i = 0; i < countof(ways); i++)
        run(ways[i], numbers[i]);
    return 0;
}
