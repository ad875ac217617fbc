/* The embedded API server: how fast it is ready, how little it holds, how many durable writes it takes. The
 * same requests can be put to another server, to see both side by side:
 *
 *     apiserver_bench                                   the flyball beside this program
 *     apiserver_bench NAME URL TOKEN [PID]              any Kubernetes API server
 *
 * bench/apiserver.sh does both where the machine has a kube-apiserver and etcd. Every connection is a client
 * of its own that sends its next request when the last was answered. */
#include "base/buf.h"
#include "base/file.h"
#include "base/vec.h"
#include "budget.h"
#include "net/net.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LATENCY_CALLS = 2000,
    CREATES = 4000,
    LISTED = 5000,
    FANOUT = 1000,
    IDLE_WATCHES = 5000,
    DISK_WRITES = 1000
};

#define SPACE "/api/v1/namespaces/default/configmaps"

static struct loop *loop;
static struct tls *tls;
static char url[200], token[200];
static pid_t pid; /* of the server, for its memory; 0: unknown */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "apiserver_bench: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

/* ---- the server under test */

static char dir[] = "/tmp/flyball-bench-XXXXXX";

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void start_server(const char *program)
{
    int out[2];
    if (!mkdtemp(dir) || pipe(out) < 0)
        die("start", strerror(errno));
    int64_t begin = clock_mono_ns();
    pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execl(program, program, "apiserver", "--data", dir, "--listen", "127.0.0.1:0",
              (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    char line[400] = { 0 }, kubeconfig[300] = { 0 }, path[100];
    if (read(out[0], line, sizeof(line) - 1) <= 0 ||
        sscanf(line, "serving %199s kubeconfig %299s", url, kubeconfig) != 2)
        die(program, "did not start");
    budget("embedded server, start to ready", (double)(clock_mono_ns() - begin) / 1e6, 50, "ms");
    err_t e;
    auto_buf struct buf text = { 0 };
    snprintf(path, sizeof(path), "%s/admin.token", dir);
    if (file_read(path, sizeof(token) - 1, &text, &e) < 0)
        die(path, e.text);
    memcpy(token, text.p, text.n);
}

static long resident_kb(void)
{
    char path[40], line[200];
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *f = pid ? fopen(path, "r") : NULL;
    long kb = -1;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

/* Processor time of the server so far: what a busy machine does not change. */
static double server_cpu_us(void)
{
    char path[40], text[600] = { 0 };
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *f = pid ? fopen(path, "r") : NULL;
    if (f && fgets(text, sizeof(text), f) && strrchr(text, ')'))
        sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &system);
    if (f)
        fclose(f);
    return (double)(user + system) * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

static void print_cpu(double before, int calls)
{
    if (pid)
        printf("  server cpu %.0f us each", (server_cpu_us() - before) / calls);
    printf("\n");
}

static void print_memory(const char *what)
{
    if (pid)
        printf("%-44s %10.1f MB\n", what, (double)resident_kb() / 1024);
}

/* ---- clients */

static void authorize(void *context, struct http_header_list *list)
{
    (void)context;
    char bearer[220];
    snprintf(bearer, sizeof(bearer), "Bearer %s", token);
    http_header_list_add(list, S("authorization"), str_c(bearer));
}

static struct http_client *connect_one(void)
{
    struct http_client *c;
    err_t e;
    struct http_client_options o = { .url = str_c(url), .tls = tls, .authorize = authorize };
    o.max_connections = 1;
    if (http_client_new(loop, &o, &c, &e) < 0)
        die(url, e.text);
    return c;
}

struct shot { /* one request of a run */
    const char *method, *content_type;
    char target[160], body[400];
};

/* A run: `total` requests over some connections, each made by `make`. */
struct run {
    void (*make)(struct shot *shot, int number);
    int total, begun, done, want_status;
    int64_t *took_ns;
    int64_t start_ns, end_ns;
};

struct lane {
    struct run *run;
    struct http_client *client;
    struct shot shot;
    int number;
    int64_t begun_ns;
};

static void lane_next(struct lane *l);

static void lane_answered(void *context, const struct http_response *response, const err_t *failure)
{
    struct lane *l = context;
    if (failure)
        die(l->shot.target, failure->text);
    if (response->status != l->run->want_status)
        die(l->shot.target, response->body.p);
    l->run->took_ns[l->number] = clock_mono_ns() - l->begun_ns;
    l->run->done++;
    l->run->end_ns = clock_mono_ns();
    lane_next(l);
}

static void lane_next(struct lane *l)
{
    struct run *r = l->run;
    if (r->begun == r->total)
        return;
    l->number = r->begun++;
    r->make(&l->shot, l->number);
    l->begun_ns = clock_mono_ns();
    struct http_header type = { S("content-type"), str_c(l->shot.content_type) };
    struct http_fetch f = { .method = str_c(l->shot.method),
                            .target = str_c(l->shot.target),
                            .body = str_c(l->shot.body),
                            .max_body_bytes = 64 << 20,
                            .on_done = lane_answered,
                            .context = l };
    if (l->shot.content_type)
        f.headers = (struct http_headers){ &type, 1 };
    http_client_fetch(l->client, &f);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void run_lanes(struct run *r, int lanes)
{
    struct lane *all = mem_zero((size_t)lanes, sizeof(*all));
    r->took_ns = mem_zero((size_t)r->total, sizeof(int64_t));
    r->start_ns = clock_mono_ns();
    for (int i = 0; i < lanes; i++) {
        all[i] = (struct lane){ .run = r, .client = connect_one() };
        lane_next(&all[i]);
    }
    while (r->done < r->total)
        loop_turn(loop);
    for (int i = 0; i < lanes; i++)
        http_client_free(all[i].client);
    free(all);
    qsort(r->took_ns, (size_t)r->total, sizeof(int64_t), by_value);
}

static void measure_latency(const char *what, void (*make)(struct shot *, int), int status,
                            int calls)
{
    if (calls > 1) {
        struct run warm = { .make = make, .total = 1, .want_status = status };
        run_lanes(&warm, 1);
        free(warm.took_ns);
    }
    double cpu = server_cpu_us();
    struct run r = { .make = make, .total = calls, .want_status = status };
    run_lanes(&r, 1);
    printf("%-44s %10.3f ms  p99 %.3f ms", what, (double)r.took_ns[calls / 2] / 1e6,
           (double)r.took_ns[calls * 99 / 100] / 1e6);
    print_cpu(cpu, calls);
    free(r.took_ns);
}

static void measure_rate(const char *what, void (*make)(struct shot *, int), int total, int lanes)
{
    double cpu = server_cpu_us();
    struct run r = { .make = make, .total = total, .want_status = 201 };
    run_lanes(&r, lanes);
    printf("%-44s %10.0f /s  p50 %.3f ms", what, total / ((double)(r.end_ns - r.start_ns) / 1e9),
           (double)r.took_ns[total / 2] / 1e6);
    print_cpu(cpu, total);
    free(r.took_ns);
}

/* What no durable server on this disk can pass with one connection: a page over bytes that are there, and the
 * wait for the disk, without clients and without computation. */
static void measure_disk(void)
{
    static char page[4096];
    auto_close int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int64_t took_ns[DISK_WRITES];
    for (int i = 0; fd >= 0 && i < DISK_WRITES; i++)
        if (pwrite(fd, page, sizeof(page), i * (off_t)sizeof(page)) < 0)
            die("disk", strerror(errno));
    if (fd < 0 || fsync(fd) < 0)
        die("disk", strerror(errno));
    int64_t begin = clock_mono_ns();
    for (int i = 0; i < DISK_WRITES; i++) {
        int64_t from = clock_mono_ns();
        if (pwrite(fd, page, sizeof(page), i * (off_t)sizeof(page)) < 0 || fdatasync(fd) < 0)
            die("disk", strerror(errno));
        took_ns[i] = clock_mono_ns() - from;
    }
    double seconds = (double)(clock_mono_ns() - begin) / 1e9;
    qsort(took_ns, DISK_WRITES, sizeof(int64_t), by_value);
    printf("%-44s %10.0f /s  p50 %.3f ms\n", "the disk alone, one write at a time",
           DISK_WRITES / seconds, (double)took_ns[DISK_WRITES / 2] / 1e6);
}

/* ---- requests */

static int serial; /* names that no run before used */

static void make_create(struct shot *s, int number)
{
    s->method = "POST";
    s->content_type = "application/json";
    snprintf(s->target, sizeof(s->target), SPACE);
    snprintf(
        s->body, sizeof(s->body),
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b%d-%d\",\"labels\":{"
        "\"bench\":\"yes\"}},\"data\":{\"a\":\"some text\",\"b\":\"%d\"}}",
        serial, number, number);
}

static void make_get(struct shot *s, int number)
{
    (void)number;
    *s = (struct shot){ .method = "GET" };
    snprintf(s->target, sizeof(s->target), SPACE "/b0-0");
}

static void make_put(struct shot *s, int number)
{
    s->method = "PUT";
    s->content_type = "application/json";
    snprintf(s->target, sizeof(s->target), SPACE "/b0-0");
    snprintf(
        s->body, sizeof(s->body),
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b0-0\"},\"data\":{"
        "\"put\":\"%d\"}}",
        number);
}

static void make_merge(struct shot *s, int number)
{
    s->method = "PATCH";
    s->content_type = "application/merge-patch+json";
    snprintf(s->target, sizeof(s->target), SPACE "/b0-0");
    snprintf(s->body, sizeof(s->body), "{\"data\":{\"merge\":\"%d\"}}", number);
}

static void make_apply(struct shot *s, int number)
{
    s->method = "PATCH";
    s->content_type = "application/apply-patch+yaml";
    snprintf(s->target, sizeof(s->target), SPACE "/b0-0?fieldManager=bench&force=true");
    snprintf(
        s->body, sizeof(s->body),
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b0-0\"},\"data\":{"
        "\"applied\":\"%d\"}}",
        number);
}

static void make_list(struct shot *s, int number)
{
    (void)number;
    *s = (struct shot){ .method = "GET" };
    snprintf(s->target, sizeof(s->target), SPACE "?labelSelector=bench");
}

static void make_purge(struct shot *s, int number)
{
    (void)number;
    *s = (struct shot){ .method = "DELETE" };
    snprintf(s->target, sizeof(s->target), SPACE "?labelSelector=bench");
}

/* ---- watches */

static int heads, events, expected;

static void watch_head(void *context, const struct http_head *head)
{
    (void)context;
    if (head->status != 200)
        die("watch", "was refused");
    heads++;
}

static void watch_data(void *context, str bytes)
{
    (void)context;
    for (size_t i = 0; i < bytes.n; i++)
        events += bytes.p[i] == '\n';
}

static void watch_done(void *context, const err_t *failure)
{
    (void)context;
    (void)failure;
}

/* `n` watches over HTTP/2, 100 on each connection. */
static struct http_client **open_watches(int n, const char *target)
{
    int clients = (n + 99) / 100;
    struct http_client **all = mem_zero((size_t)clients, sizeof(*all));
    heads = events = 0;
    for (int i = 0; i < n; i++) {
        if (i % 100 == 0)
            all[i / 100] = connect_one();
        http_client_send(all[i / 100], &(struct http_request){ .method = S("GET"),
                                                               .target = str_c(target),
                                                               .on_head = watch_head,
                                                               .on_data = watch_data,
                                                               .on_done = watch_done });
    }
    while (heads < n)
        loop_turn(loop);
    return all;
}

static void close_watches(struct http_client **all, int n)
{
    for (int i = 0; i < (n + 99) / 100; i++)
        http_client_free(all[i]);
    free(all);
}

static void measure_fanout(void)
{
    struct http_client **all = open_watches(
        FANOUT,
        "/api/v1/namespaces/default/secrets?watch=true&resourceVersion=0&timeoutSeconds=300");
    enum { ROUNDS = 10 };
    struct run r = { .total = 1, .want_status = 201 };
    int64_t took = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct lane l = { .run = &r, .client = connect_one() };
        char body[200];
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"s%d-%d\"}}", (int)getpid(), i);
        expected = events + FANOUT;
        int64_t begin = clock_mono_ns();
        struct http_header type = { S("content-type"), S("application/json") };
        r.took_ns = mem_zero(1, sizeof(int64_t));
        http_client_fetch(l.client,
                          &(struct http_fetch){ .method = S("POST"),
                                                .target = S("/api/v1/namespaces/default/secrets"),
                                                .headers = { &type, 1 },
                                                .body = str_c(body),
                                                .on_done = lane_answered,
                                                .context = &l });
        r.begun = r.total; /* just this one */
        while (events < expected)
            loop_turn(loop);
        took += clock_mono_ns() - begin;
        while (r.done <= i)
            loop_turn(loop);
        http_client_free(l.client);
        free(r.took_ns);
    }
    printf("%-44s %10.1f ms\n", "an event to 1,000 watches", (double)took / 1e6 / ROUNDS);
    close_watches(all, FANOUT);
}

static void measure_idle_watches(void)
{
    if (!pid)
        return;
    struct http_client **all = open_watches(
        IDLE_WATCHES,
        "/api/v1/namespaces/default/pods?watch=true&resourceVersion=0&timeoutSeconds=300");
    budget("embedded server, 5,000 idle watches", (double)resident_kb() / 1024, 24, "MB");
    close_watches(all, IDLE_WATCHES);
}

static void measure_all(void)
{
    if (pid)
        budget("embedded server, idle", (double)resident_kb() / 1024, 12, "MB");
    measure_idle_watches();
    if (pid)
        measure_disk();
    measure_rate("creates, 1 connection", make_create, CREATES / 4, 1);
    measure_latency("GET", make_get, 200, LATENCY_CALLS);
    measure_latency("PUT that changes", make_put, 200, LATENCY_CALLS);
    measure_latency("PATCH, merge", make_merge, 200, LATENCY_CALLS);
    measure_latency("PATCH, apply", make_apply, 200, LATENCY_CALLS);
    serial++;
    measure_rate("creates, 16 connections", make_create, CREATES, 16);
    measure_latency("list of 5,000", make_list, 200, 10);
    print_memory("resident with 5,000 objects");
    measure_latency("deletecollection of 5,000", make_purge, 200, 1);
    measure_fanout();
}

int main(int argc, char **argv)
{
    err_t e;
    if (loop_new(&(struct loop_options){ 0 }, &loop, &e) < 0 ||
        tls_client_new(&(struct tls_client_options){ .skip_verify = true }, &tls, &e) < 0)
        die("setup", e.text);
    auto_buf struct buf program = { 0 };
    const char *slash = strrchr(argv[0], '/');
    buf_put(&program, (str){ argv[0], slash ? (size_t)(slash - argv[0]) : 0 });
    buf_put(&program, slash ? S("/../flyball") : S("./build/flyball"));
    bool own = argc < 4;
    printf("-- %s\n", own ? "flyball" : argv[1]);
    if (own) {
        start_server(program.p);
    } else {
        snprintf(url, sizeof(url), "%s", argv[2]);
        snprintf(token, sizeof(token), "%s", argv[3]);
        pid = argc > 4 ? atoi(argv[4]) : 0;
    }
    measure_all();
    if (own) {
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
        nftw(dir, remove_entry, 4, FTW_DEPTH | FTW_PHYS);
    }
    tls_unref(tls);
    loop_free(loop);
    return EXIT_SUCCESS;
}
