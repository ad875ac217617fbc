/* Untrusted bytes to the client, without a socket. The first byte chooses the protocol, how the
 * rest is cut into reads, and where calls are cancelled. Laws: at most one head, no data before it
 * or after the end, and exactly one end for every call that was not cancelled. */
#include "fuzz.h"
#include "net/client_internal.h"

enum { HTTP2 = 1, SETTINGS = 2, SMALL_READS = 4, CANCEL_HEAD = 8, CANCEL_DATA = 16, CALLS = 3 };

struct one {
    struct http_call *call;
    int heads, ends;
    bool cancelled;
};

static unsigned choice;

static void cancel(struct one *o)
{
    o->cancelled = true;
    http_call_cancel(o->call);
}

static void on_head(void *context, const struct http_head *head)
{
    struct one *o = context;
    if (o->heads++ || o->ends || o->cancelled || head->status < 200)
        abort();
    if (choice & CANCEL_HEAD)
        cancel(o);
}

static void on_data(void *context, str bytes)
{
    struct one *o = context;
    if (!o->heads || o->ends || o->cancelled || !bytes.n)
        abort();
    if (choice & CANCEL_DATA)
        cancel(o);
}

static void on_done(void *context, const err_t *failure)
{
    struct one *o = context;
    if (o->ends++ || o->cancelled || (!failure && !o->heads))
        abort();
}

static void nothing(void *owner UNUSED)
{
}

/* As the pool does it. */
static void start_call(struct client_session *s, struct http_call *call)
{
    list_remove(&call->queued);
    call->session = s;
    call->attempts++;
    s->ops->start_call(s, call);
}

static void fill(struct client_session *s)
{
    auto_buf struct buf out = { 0 };
    s->ops->fill(s, &out, 65536);
}

static void run(struct client_session *s, struct http_client *c, str bytes)
{
    size_t step = choice & SMALL_READS ? 5 : 4096;
    err_t e;
    bool good = true;
    while (bytes.n && good) {
        while (s->room && !s->over && c->queue.n)
            start_call(s, list_first(&c->queue, struct http_call, queued));
        fill(s);
        str part = str_upto(bytes, step);
        bytes = str_from(bytes, part.n);
        good = s->ops->feed(s, part, &e);
        fill(s);
    }
    s->ops->closed(s, good ? NULL : &e);
    if (s->carried)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct loop *loop;
    struct http_client *c;
    static const char *const methods[CALLS] = { "GET", "HEAD", "POST" };
    if (!loop && loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL }, &loop, NULL) < 0)
        abort();
    struct http_client_options o = { .url = S("http://127.0.0.1:1") };
    if (size == 0 || http_client_new(loop, &o, &c, NULL) < 0)
        return 0;
    choice = data[0];
    struct one calls[CALLS] = { 0 };
    for (size_t i = 0; i < CALLS; i++)
        calls[i].call =
            http_client_send(c, &(struct http_request){ .method = str_c(methods[i]),
                                                        .target = S("/"),
                                                        .body = i == 2 ? S("body") : S(""),
                                                        .on_head = on_head,
                                                        .on_data = on_data,
                                                        .on_done = on_done,
                                                        .context = &calls[i] });
    struct client_host host = { .loop = loop,
                                .max_header_bytes = 4096,
                                .authority = S("x"),
                                .want_fill = nothing,
                                .changed = nothing };
    struct client_session *s = choice & HTTP2 ? h2_client_new(&host) : h1_client_new(&host);
    if ((choice & (HTTP2 | SETTINGS)) == (HTTP2 | SETTINGS)) {
        err_t e;
        s->ops->feed(s, (str){ "\0\0\0\4\0\0\0\0\0", 9 }, &e);
    }
    run(s, c, (str){ (const char *)data + 1, size - 1 });
    s->ops->free(s);
    http_client_free(c);
    struct timer now = { 0 }; /* what has ended is freed at the end of a turn */
    timer_set(loop, &now, loop_mono_ns(loop), timer_stop);
    loop_turn(loop);
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].ends != !calls[i].cancelled)
            abort();
    return 0;
}
