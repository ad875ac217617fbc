/* A real Prometheus process, and the thread that serves the page it scrapes: see real_prometheus.h. */
#include "real_prometheus.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int prometheus_listen(uint16_t *ret_port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, n) < 0 || listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) < 0)
        exit(EXIT_FAILURE);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static bool prometheus_write(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

/* One page per connection, until the listener is shut down. */
static void *prometheus_serve(void *context)
{
    struct prometheus *p = context;
    for (int fd; (fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0; close(fd)) {
        char request[4096], head[128];
        if (recv(fd, request, sizeof(request), 0) <= 0)
            continue;
        pthread_mutex_lock(&p->lock);
        int n =
            snprintf(head, sizeof(head),
                     "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n",
                     p->page.n);
        if (prometheus_write(fd, head, (size_t)n))
            prometheus_write(fd, p->page.p, p->page.n);
        pthread_mutex_unlock(&p->lock);
        shutdown(fd, SHUT_WR);
    }
    return NULL;
}

int prometheus_post(const struct prometheus *p, const char *path, str form, struct buf *out)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons(p->port) };
    auto_buf struct buf request = { 0 }, answer = { 0 };
    int code = 0, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char part[65536];
    buf_printf(&request,
               "POST /api/v1/%s HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\n"
               "Content-Length: %zu\r\n\r\n" STR_FMT,
               path, form.n, STR_ARG(form));
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
        prometheus_write(fd, request.p, request.n))
        for (ssize_t n; (n = recv(fd, part, sizeof(part), 0)) > 0;)
            buf_put(&answer, (str){ part, (size_t)n });
    close(fd);
    size_t head = str_find(buf_str(&answer), S("\r\n\r\n"));
    if (head == SIZE_MAX || sscanf(answer.p, "HTTP/%*s %d", &code) != 1)
        return 0;
    buf_put(out, str_from(buf_str(&answer), head + 4));
    return code;
}

static void prometheus_pause(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 },
              NULL); /* another process: no event */
}

/* Asks until the answer has `text`. */
static bool prometheus_await(const struct prometheus *p, str form, const char *text)
{
    for (int64_t end = clock_mono_ns() + 60 * NS_PER_S; clock_mono_ns() < end;) {
        auto_buf struct buf answer = { 0 };
        if (prometheus_post(p, "query", form, &answer) == 200 &&
            str_find(buf_str(&answer), str_c(text)) != SIZE_MAX)
            return true;
        prometheus_pause();
    }
    return false;
}

static void prometheus_exec(const struct prometheus *p)
{
    char config[128], data[128], listen[64];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    snprintf(config, sizeof(config), "--config.file=%s/prometheus.yml", p->dir);
    snprintf(data, sizeof(data), "--storage.tsdb.path=%s/data", p->dir);
    snprintf(listen, sizeof(listen), "--web.listen-address=127.0.0.1:%u", p->port);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execlp("prometheus", "prometheus", config, data, listen, "--storage.tsdb.retention.time=100y",
           (char *)NULL);
    _exit(127);
}

bool prometheus_start(struct prometheus *p)
{
    uint16_t page_port;
    char path[128];
    *p = (struct prometheus){ .lock = PTHREAD_MUTEX_INITIALIZER };
    snprintf(p->dir, sizeof(p->dir), "/tmp/flyball-prometheus-XXXXXX");
    if (!mkdtemp(p->dir))
        exit(EXIT_FAILURE);
    p->listener = prometheus_listen(&page_port);
    close(prometheus_listen(&p->port)); /* free a moment ago */
    snprintf(path, sizeof(path), "%s/prometheus.yml", p->dir);
    FILE *config = fopen(path, "we");
    fprintf(config,
            "global: {scrape_interval: 100ms, scrape_timeout: 100ms}\n"
            "scrape_configs: [{job_name: fleet, honor_labels: true, static_configs: [{targets: "
            "['127.0.0.1:%u']}]}]\n",
            page_port);
    fclose(config);
    pthread_create(&p->server, NULL, prometheus_serve, p);
    p->process = fork();
    if (p->process == 0)
        prometheus_exec(p);
    while (waitpid(p->process, NULL, WNOHANG) == 0) {
        auto_buf struct buf answer = { 0 };
        if (prometheus_post(p, "query", S("query=1"), &answer) == 200)
            return true;
        prometheus_pause();
    }
    p->process = 0;
    return false;
}

bool prometheus_publish(struct prometheus *p, str text, int64_t at_ms)
{
    char form[128], value[64];
    pthread_mutex_lock(&p->lock);
    buf_clear(&p->page);
    buf_put(&p->page, text);
    buf_printf(&p->page, "published %llu %lld\n", (unsigned long long)++p->published,
               (long long)at_ms);
    pthread_mutex_unlock(&p->lock);
    snprintf(form, sizeof(form), "query=published&time=%.3f", (double)at_ms / 1000);
    snprintf(value, sizeof(value), ",\"%llu\"]", (unsigned long long)p->published);
    return prometheus_await(p, str_c(form), value);
}

static int prometheus_remove(const char *path, const struct stat *s UNUSED, int kind UNUSED,
                             struct FTW *at UNUSED)
{
    return remove(path);
}

void prometheus_stop(struct prometheus *p)
{
    if (p->process > 0) {
        kill(p->process, SIGKILL);
        waitpid(p->process, NULL, 0);
    }
    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->server, NULL);
    close(p->listener);
    buf_done(&p->page);
    nftw(p->dir, prometheus_remove, 16, FTW_DEPTH | FTW_PHYS);
}

double prometheus_form_number(str form, const char *name)
{
    size_t at = str_find(form, str_c(name));
    return at == SIZE_MAX ? NAN : strtod(form.p + at + strlen(name), NULL);
}

void prometheus_move_times(struct buf *out, str answer, double by_s)
{
    for (size_t i = 0; i < answer.n; i++) {
        buf_putc(out, answer.p[i]);
        if (answer.p[i] != '[' || i + 1 == answer.n || answer.p[i + 1] < '0' ||
            answer.p[i + 1] > '9')
            continue;
        char *end;
        buf_printf(out, "%.3f", strtod(answer.p + i + 1, &end) + by_s);
        i = (size_t)(end - answer.p) - 1;
    }
}
