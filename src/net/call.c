/* Calls of the client: their texts, what their owner is told, and whether they are tried again. See
 * http_client.h and client_internal.h. */
#include "client_internal.h"
#include "loop_internal.h"

#include <stdio.h>

enum { ATTEMPTS_MAX = 4, DECODE_BYTES = 64 * 1024 };

static void run_deliver(struct deferred *d);

/* --- header lists --- */

void http_header_list_add(struct http_header_list *list, str name, str value)
{
    struct http_header header = { arena_str(&list->arena, name), arena_str(&list->arena, value) };
    vec_push(&list->headers, header);
}

void http_header_list_done(struct http_header_list *list)
{
    arena_done(&list->arena);
    vec_done(&list->headers);
}

/* Lower-cased, because HTTP/2 wants that; framing is the protocol's. */
static void add_header(struct http_header_list *list, struct http_header header)
{
    static const char *const framing[] = { "connection",      "content-length",    "host",
                                           "keep-alive",      "transfer-encoding", "upgrade",
                                           "proxy-connection" };
    for (size_t i = 0; i < countof(framing); i++)
        if (str_eq_nocase(header.name, str_c(framing[i])))
            return;
    http_header_list_add(list, header.name, header.value);
    str name = list->headers.at[list->headers.n - 1].name;
    char *p = (char *)(uintptr_t)name.p; /* the arena's copy is ours */
    for (size_t i = 0; i < name.n; i++)
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] = (char)(p[i] + ('a' - 'A'));
}

static bool has_header(const struct http_call *call, str name)
{
    return http_header_get(call->request.headers, name).p != NULL;
}

void call_headers(struct http_call *call, struct http_header_list *list)
{
    const struct http_client_options *o = &call->client->options;
    struct http_header_list given = { 0 };
    if (!has_header(call, S("user-agent")))
        add_header(list, (struct http_header){ S("user-agent"), o->user_agent });
    if (!o->no_gzip && !has_header(call, S("accept-encoding")))
        add_header(list, (struct http_header){ S("accept-encoding"), S("gzip") });
    for (size_t i = 0; i < call->request.headers.n; i++)
        add_header(list, call->request.headers.at[i]);
    if (o->authorize)
        o->authorize(o->context, &given);
    for (size_t i = 0; i < given.headers.n; i++) /* e.g. a token file with a line break in it */
        if (http_header_valid(given.headers.at[i]))
            add_header(list, given.headers.at[i]);
    http_header_list_done(&given);
}

/* --- life --- */

static void free_call(struct grave *grave)
{
    struct http_call *call = container_of(grave, struct http_call, grave);
    arena_done(&call->arena);
    buf_done(&call->waiting);
    gzip_free(call->gzip);
    free(call->failure);
    if (call->release)
        call->release(call->request.context);
    call->magic = 0;
    free(call);
}

/* Takes the call out of every list; afterwards only a callback under way may still hold it. */
static void detach(struct http_call *call)
{
    struct http_client *c = call->client;
    list_remove(&call->queued);
    if (call->session)
        call->session->ops->drop(call->session, call);
    call->session = NULL;
    list_remove(&call->item);
    deferred_cancel(&call->deliver);
    timer_stop(&call->deadline);
    call->dead = true;
    loop_bury(c->loop, &call->grave, free_call);
}

void http_call_cancel(struct http_call *call)
{
    if (!call)
        return;
    CHECK(call, CALL_MAGIC);
    if (call->dead)
        return;
    detach(call);
}

void call_finish(struct http_call *call, const err_t *why)
{
    if (call->dead)
        return;
    detach(call);
    if (call->request.on_done)
        call->request.on_done(call->request.context, why);
}

static void on_deadline(struct timer *timer)
{
    struct http_call *call = container_of(timer, struct http_call, deadline);
    err_t e;
    err_set(&e, ETIMEDOUT, "%s: no complete answer in time", call->client->name);
    call_finish(call, &e);
}

static int fault(const struct http_request *r, err_t *e)
{
    if (!http_header_valid((struct http_header){ r->method, S("") }))
        return err_set(e, EINVAL, "method \"" STR_FMT "\" is not a token", STR_ARG(r->method));
    if (r->target.n == 0 || r->target.p[0] != '/')
        return err_set(e, EINVAL, "target \"" STR_FMT "\" must begin with /", STR_ARG(r->target));
    for (size_t i = 0; i < r->target.n; i++)
        if ((unsigned char)r->target.p[i] <= ' ' || (unsigned char)r->target.p[i] >= 0x7f)
            return err_set(e, EINVAL, "target \"" STR_FMT "\": byte %zu must be percent-encoded",
                           STR_ARG(r->target), i + 1);
    for (size_t i = 0; i < r->headers.n; i++)
        if (!http_header_valid(r->headers.at[i]))
            return err_set(e, EINVAL, "header " STR_FMT " has bytes that may not stand in it",
                           STR_ARG(r->headers.at[i].name));
    return 0;
}

static void copy_request(struct http_call *call, const struct http_request *r)
{
    struct arena *a = &call->arena;
    call->request = *r;
    call->request.method = arena_str(a, r->method);
    call->request.target =
        arena_printf(a, STR_FMT STR_FMT, STR_ARG(call->client->uri.prefix), STR_ARG(r->target));
    call->request.body = arena_str(a, r->body);
    struct http_header *headers = arena_array(a, r->headers.n + 1, sizeof(*headers));
    for (size_t i = 0; i < r->headers.n; i++)
        headers[i] = (struct http_header){ arena_str(a, r->headers.at[i].name),
                                           arena_str(a, r->headers.at[i].value) };
    call->request.headers.at = headers;
    call->idempotent = str_eq(r->method, S("GET")) || str_eq(r->method, S("HEAD")) ||
                       str_eq(r->method, S("OPTIONS"));
}

struct http_call *http_client_send(struct http_client *c, const struct http_request *request)
{
    CHECK(c, CLIENT_MAGIC);
    struct http_call *call = mem_zero(1, sizeof(*call));
    call->magic = CALL_MAGIC;
    call->client = c;
    copy_request(call, request);
    list_prepend(&c->calls, &call->item);
    err_t e;
    if (fault(request, &e) < 0) {
        call->ended = true;
        call->failure = mem_alloc(sizeof(e));
        *call->failure = e;
        loop_defer(c->loop, LOOP_SOON, &call->deliver, run_deliver);
        return call;
    }
    if (request->deadline_ns)
        timer_set(c->loop, &call->deadline, request->deadline_ns, on_deadline);
    client_enqueue(c, call, false);
    pool_pump(c);
    return call;
}

/* --- the answer --- */

void call_head(struct http_call *call, const struct http_head *head)
{
    if (call->dead)
        return;
    str encoding = http_header_get(head->headers, S("content-encoding"));
    bool no_body = str_eq(call->request.method, S("HEAD"));
    if (!call->client->options.no_gzip && !no_body && str_eq_nocase(encoding, S("gzip")))
        call->gzip = gzip_reader();
    if (call->request.on_head)
        call->request.on_head(call->request.context, head);
}

static void tell_bad_gzip(struct http_call *call)
{
    err_t e;
    err_set(&e, EBADMSG, "%s: the answer says gzip but is not", call->client->name);
    call_finish(call, &e);
}

/* Gives bytes to the owner, decoded; stops when it pauses or cancels. Returns how many were taken.
 * */
static size_t pass_on(struct http_call *call, str bytes)
{
    str rest = bytes;
    auto_buf struct buf plain = { 0 };
    while ((rest.n || gzip_pending(call->gzip)) && !call->paused && !call->dead) {
        str part = rest;
        if (call->gzip) {
            buf_clear(&plain);
            if (gzip_read(call->gzip, &rest, &plain, DECODE_BYTES) < 0) {
                tell_bad_gzip(call);
                break;
            }
            part = buf_str(&plain);
        } else {
            rest = str_from(rest, rest.n);
        }
        if (part.n && call->request.on_data)
            call->request.on_data(call->request.context, part);
    }
    return bytes.n - rest.n;
}

size_t call_data(struct http_call *call, str bytes)
{
    if (call->dead)
        return bytes.n;
    bool behind = call->waiting.n || (call->paused && gzip_pending(call->gzip));
    size_t passed = behind ? 0 : pass_on(call, bytes);
    if (passed < bytes.n && !call->dead)
        buf_put(&call->waiting, str_from(bytes, passed));
    else
        passed = bytes.n;
    return passed;
}

static void end_if_delivered(struct http_call *call)
{
    if (!call->ended || call->paused || call->waiting.n || gzip_pending(call->gzip) || call->dead)
        return;
    if (!call->failure && call->gzip && !gzip_complete(call->gzip))
        tell_bad_gzip(call);
    else
        call_finish(call, call->failure);
}

static void run_deliver(struct deferred *d)
{
    struct http_call *call = container_of(d, struct http_call, deliver);
    if (!call->paused && (call->waiting.n || gzip_pending(call->gzip))) {
        struct buf waiting = call->waiting;
        call->waiting = (struct buf){ 0 };
        size_t passed = pass_on(call, buf_str(&waiting));
        if (!call->dead) {
            buf_consume(&waiting, passed);
            call->waiting = waiting;
            if (call->session)
                call->session->ops->consumed(call->session, call, passed);
        } else {
            buf_done(&waiting);
        }
    }
    end_if_delivered(call);
}

static void loosen(struct http_call *call)
{
    call->session = NULL;
    call->ended = true;
}

void call_end(struct http_call *call)
{
    if (call->dead)
        return;
    loosen(call);
    end_if_delivered(call);
}

static bool may_retry(const struct http_call *call, bool unprocessed)
{
    if (call->answer_begun || call->attempts >= ATTEMPTS_MAX || call->client->closing)
        return false;
    return unprocessed || (call->reused && (!call->written || call->idempotent));
}

void call_fail(struct http_call *call, const err_t *why, bool unprocessed)
{
    if (call->dead)
        return;
    if (may_retry(call, unprocessed)) {
        call->session = NULL;
        call->body_at = 0;
        call->written = call->reused = false;
        client_enqueue(call->client, call, true);
        pool_pump(call->client);
        return;
    }
    loosen(call);
    call->failure = mem_alloc(sizeof(*why));
    *call->failure = *why;
    if (!str_starts(str_c(why->text), str_c(call->client->name)))
        err_wrap(call->failure, "%s", call->client->name);
    end_if_delivered(call);
}

/* --- pace --- */

void http_call_patient(struct http_call *call)
{
    CHECK(call, CALL_MAGIC);
    if (call->patient || call->dead)
        return;
    call->patient = true;
    if (!call->session)
        return;
    call->session->patient++;
    call->session->host.changed(call->session->host.owner);
}

void http_call_pause(struct http_call *call)
{
    CHECK(call, CALL_MAGIC);
    call->paused = true;
}

void http_call_resume(struct http_call *call)
{
    CHECK(call, CALL_MAGIC);
    if (!call->paused || call->dead)
        return;
    call->paused = false;
    if (call->waiting.n || gzip_pending(call->gzip) || call->ended)
        loop_defer(call->client->loop, LOOP_SOON, &call->deliver, run_deliver);
}
