/* A server that speaks bytes, not HTTP: whatever it sends in place of one answer, the cache is right
 * in the end. Time runs a hundred times faster, so that pauses are short. */
#include "base/vec.h"
#include "kube/listwatch.h"
#include "tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum after { CLOSE, RESET, HOLD, FLOOD, DRIP };

struct answer {
    const char *name;
    const char *bytes;
    enum after after;
};

static const char list_body[] =
    "{\"kind\":\"ThingList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":["
    "{\"metadata\":{\"name\":\"t1\",\"resourceVersion\":\"1\"}},"
    "{\"metadata\":{\"name\":\"t2\",\"resourceVersion\":\"2\"}}]}";

#define CHUNKED                                                                                    \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
#define EVENT                                                                                      \
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"t3\",\"resourceVersion\":\"6\"}}}\n"

static const struct answer faults[] = {
    { "closed at once", "", CLOSE },
    { "reset at once", "", RESET },
    { "garbage", "\x16\x03\x01 what is this?\r\n\r\n", CLOSE },
    { "half a status line", "HTTP/1.1 2", CLOSE },
    { "half a header", "HTTP/1.1 200 OK\r\nContent-Ty", CLOSE },
    { "an endless header", "HTTP/1.1 200 OK\r\nX-Long: ", FLOOD },
    { "a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}", CLOSE },
    { "two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
      CLOSE },
    { "a length too large", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"items\":[]}", CLOSE },
    { "a length too small",
      "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}",
      CLOSE },
    { "half a chunk", CHUNKED "4e\r\n{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na", CLOSE },
    { "half a chunk and a reset", CHUNKED "4e\r\n{\"type\":\"ADD", RESET },
    { "a chunk of no size", CHUNKED "zz\r\n{}\r\n", CLOSE },
    { "an object cut in two", CHUNKED "20\r\n{\"type\":\"ADDED\",\"object\":{\"meta\"\r\n0\r\n\r\n",
      CLOSE },
    { "an answer that never ends", CHUNKED "5\r\n{\"it\"", DRIP },
    { "a 500 without words", "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n", CLOSE },
    { "a page of HTML", "HTTP/1.1 502 Bad\r\nContent-Length: 6\r\n\r\n<html>", CLOSE },
    { "a 200 of HTML", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n<html>\n", CLOSE },
    { "410", "HTTP/1.1 410 Gone\r\nContent-Length: 20\r\n\r\n{\"reason\":\"Expired\"}", CLOSE },
    { "a redirect", "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", CLOSE },
};

struct connection {
    struct server *s;
    int fd;
    struct fd_watch *watch;
    struct buf in;
    const struct answer *answering; /* FLOOD and DRIP: for ever */
    struct timer drip;
};

struct server {
    struct loop *loop;
    int fd;
    uint16_t port;
    struct fd_watch *watch;
    VEC(struct connection *) connections;
    const struct answer *fault;
    bool at_watch, used; /* the fault comes in place of the first watch, else of the first list */
    int lists, watches;
};

static void connection_close(struct connection *c)
{
    timer_stop(&c->drip);
    fd_watch_free(c->watch);
    close(c->fd);
    c->watch = NULL;
    c->fd = -1;
}

static void send_bytes(struct connection *c, const char *bytes, size_t n)
{
    if (c->fd >= 0 && send(c->fd, bytes, n, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
        connection_close(c);
}

static void drip(struct timer *timer)
{
    struct connection *c = container_of(timer, struct connection, drip);
    char flood[4096];
    memset(flood, 'x', sizeof(flood));
    send_bytes(c, flood, c->answering->after == FLOOD ? sizeof(flood) : 1);
    if (c->fd >= 0)
        timer_set(c->s->loop, &c->drip, loop_mono_ns(c->s->loop) + NS_PER_S / 10, drip);
}

static void answer(struct connection *c, const struct answer *a)
{
    send_bytes(c, a->bytes, strlen(a->bytes));
    if (c->fd < 0)
        return;
    if (a->after == RESET)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
    if (a->after == RESET || a->after == CLOSE)
        connection_close(c);
    if (a->after == FLOOD || a->after == DRIP) {
        c->answering = a;
        drip(&c->drip);
    }
}

static void on_request(struct connection *c, bool is_watch)
{
    struct server *s = c->s;
    *(is_watch ? &s->watches : &s->lists) += 1;
    if (!s->used && is_watch == s->at_watch) {
        s->used = true;
        answer(c, s->fault);
        return;
    }
    char text[600];
    if (is_watch)
        snprintf(text, sizeof(text), CHUNKED "%zx\r\n%s\r\n", strlen(EVENT), EVENT);
    else
        snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                 strlen(list_body), list_body);
    answer(c, &(struct answer){ "", text, HOLD });
}

static void on_readable(void *context, unsigned events)
{
    struct connection *c = context;
    (void)events;
    ssize_t n = recv(c->fd, buf_reserve(&c->in, 4096), 4096, 0);
    if (n <= 0) {
        connection_close(c);
        return;
    }
    c->in.n += (size_t)n;
    size_t end = str_find(buf_str(&c->in), S("\r\n\r\n"));
    if (end == SIZE_MAX)
        return;
    bool is_watch = str_find(str_upto(buf_str(&c->in), end), S("watch=true")) != SIZE_MAX;
    buf_consume(&c->in, end + 4);
    on_request(c, is_watch);
}

static void on_connection(void *context, unsigned events)
{
    struct server *s = context;
    (void)events;
    int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct connection *c = mem_zero(1, sizeof(*c));
    c->s = s;
    c->fd = fd;
    vec_push(&s->connections, c);
    OK(fd_watch_new(s->loop, fd, on_readable, c, &c->watch) == 0);
    fd_watch_set(c->watch, FD_READ);
}

static void server_start(struct server *s, struct loop *loop)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(address);
    s->loop = loop;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    OK(bind(s->fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(s->fd, 50) == 0);
    OK(getsockname(s->fd, (struct sockaddr *)&address, &n) == 0);
    s->port = ntohs(address.sin_port);
    OK(fd_watch_new(loop, s->fd, on_connection, s, &s->watch) == 0);
    fd_watch_set(s->watch, FD_READ);
}

static void server_stop(struct server *s)
{
    for (size_t i = 0; i < s->connections.n; i++) {
        if (s->connections.at[i]->fd >= 0)
            connection_close(s->connections.at[i]);
        buf_done(&s->connections.at[i]->in);
        free(s->connections.at[i]);
    }
    vec_done(&s->connections);
    fd_watch_free(s->watch);
    close(s->fd);
}

/* ---- */

struct thing {
    struct record meta;
    bool has_spec;
};

static const struct field thing_fields[] = { { "spec", F_HAS, offsetof(struct thing, has_spec) } };
static const struct resource things = { "test", "v1", "things", "Thing", false };
static const struct cache_spec spec = { .resource = &things,
                                        .keep = FIELDS(struct thing, thing_fields) };

static bool is_right(const struct cache *c)
{
    return cache_synced(c) && cache_count(c) == 3 && cache_get(c, S(""), S("t1")) &&
           cache_get(c, S(""), S("t2")) && cache_get(c, S(""), S("t3"));
}

static void run(const struct answer *fault, bool at_watch)
{
    struct loop *loop;
    struct server s = { .fault = fault, .at_watch = at_watch };
    struct kube *kube;
    struct cache *cache;
    err_t e;
    struct projector *projector = projector_new();
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_SCALED, .speed = 100 }, &loop, &e), &e);
    server_start(&s, loop);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", s.port);
    struct kube_config config = { .where = S("a test"), .server = str_c(url), .ns = S("default") };
    OK_CALL(kube_new(&(struct kube_options){ .loop = loop, .config = &config, .rate = -1 }, &kube,
                     &e),
            &e);
    OK_CALL(cache_new(projector, &spec, &cache, &e), &e);
    struct listwatch *watch = listwatch_start(
        &(struct listwatch_options){ .kube = kube, .cache = cache, .no_streaming = true });
    int64_t limit = clock_mono_ns() + 5 * NS_PER_S;
    while (!is_right(cache) && clock_mono_ns() < limit)
        loop_turn(loop);
    if (!OK(is_right(cache) && s.used))
        printf("# %s, in place of a %s: %d lists, %d watches, %zu things\n", fault->name,
               at_watch ? "watch" : "list", s.lists, s.watches, cache_count(cache));
    listwatch_stop(watch);
    kube_free(kube);
    cache_free(cache);
    projector_free(projector);
    server_stop(&s);
    loop_free(loop);
}

static void in_place_of_a_list(void)
{
    for (size_t i = 0; i < countof(faults); i++)
        run(&faults[i], false);
}

static void in_place_of_a_watch(void)
{
    for (size_t i = 0; i < countof(faults); i++)
        run(&faults[i], true);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(in_place_of_a_list), TAP(in_place_of_a_watch), { 0 } });
}
