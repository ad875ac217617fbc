/* Calls of the HTTP client, from http_client_send() to on_done: copying the request, delivering the
 * response, pausing, retrying.
 *
 * A call is in one of four places:
 *
 *      queued  ->  carried by a session  ->  ended, undelivered  ->  dead
 *                       |          ^          (owner paused)
 *                       +- retry --+
 *
 * The session reports what arrives (http_call_receive_head, _receive_data, _complete, _fail). Bytes
 * go through gzip to the owner's on_data. While the owner has paused, raw bytes collect in
 * `waiting` and are not returned to the flow-control window, so at most one window waits in memory.
 * The end of the response is reported only after `waiting` is empty.
 *
 * Invariants: on_done runs exactly once unless the call is canceled, and nothing runs after it.
 * Every callback may cancel this call or any other and may free the client, so functions check
 * `dead` after each callback. A dead call is freed at the end of the turn.
 *
 * Retries happen only before the first byte of a response: always if the server promised not to
 * have processed the request; on a reused connection that turned out dead if nothing was written or
 * the method is idempotent. The limit is ATTEMPTS_MAX.
 *
 * Ownership: the call's arena holds copies of all texts of the request; the client owns the call.
 */
#include "client_internal.h"
#include "loop_internal.h"

#include <stdio.h>

enum {
    ATTEMPTS_MAX = 4,         /* per call, the first one included */
    DECODE_BYTES = 64 * 1024, /* decompressed per on_data */
};

static void run_deliver(struct deferred *d);

/* --- header lists --- */

void http_header_list_add(struct http_header_list *list, str name, str value)
{
    struct http_header header = { arena_lower(&list->arena, name), arena_str(&list->arena, value) };
    vec_push(&list->headers, header);
}

void http_header_list_done(struct http_header_list *list)
{
    arena_done(&list->arena);
    vec_done(&list->headers);
}

/* Framing headers are the protocol's. */
static void add_header(struct http_header_list *list, struct http_header header)
{
    if (!http_header_is_framing(header.name) && !str_eq_nocase(header.name, S("host")))
        http_header_list_add(list, header.name, header.value);
}

static bool has_header(const struct http_call *call, str name)
{
    return http_header_get(call->request.headers, name).p != NULL;
}

void http_call_build_headers(struct http_call *call, struct http_header_list *list)
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
    for (size_t i = 0; i < given.headers.n; i++) /* a token file may contain a line break */
        if (http_header_is_valid(given.headers.at[i]))
            add_header(list, given.headers.at[i]);
    http_header_list_done(&given);
}

/* --- life --- */

static void free_call(struct loop_garbage *garbage)
{
    struct http_call *call = container_of(garbage, struct http_call, garbage);
    arena_done(&call->arena);
    buf_done(&call->waiting);
    gzip_free(call->gzip);
    free(call->failure);
    if (call->release)
        call->release(call->request.context);
    call->magic = 0;
    free(call);
}

/* Takes the call out of every list. Only callbacks on the stack may still refer to it afterwards.
 */
static void detach_call(struct http_call *call)
{
    struct http_client *c = call->client;
    list_remove(&call->queued);
    if (call->session)
        call->session->ops->drop_call(call->session, call);
    call->session = NULL;
    list_remove(&call->item);
    loop_cancel_deferred(&call->deliver);
    timer_stop(&call->deadline);
    call->dead = true;
    loop_free_later(c->loop, &call->garbage, free_call);
}

void http_call_cancel(struct http_call *call)
{
    if (!call)
        return;
    CHECK(call, CALL_MAGIC);
    if (call->dead)
        return;
    detach_call(call);
}

void http_call_finish(struct http_call *call, const err_t *why)
{
    if (call->dead)
        return;
    detach_call(call);
    if (call->request.on_done)
        call->request.on_done(call->request.context, why);
}

static void on_deadline(struct timer *timer)
{
    struct http_call *call = container_of(timer, struct http_call, deadline);
    err_t e;
    err_set(&e, ETIMEDOUT, "%s: deadline exceeded before the response was complete",
            call->client->name);
    http_call_finish(call, &e);
}

/* -EINVAL for a request that would not survive on the wire: line breaks, spaces, control bytes. */
static int check_request(const struct http_request *r, err_t *e)
{
    if (!http_header_is_valid((struct http_header){ r->method, S("") }))
        return err_set(e, EINVAL, "method \"" STR_FMT "\" is not a valid HTTP token",
                       STR_ARG(r->method));
    if (r->target.n == 0 || r->target.p[0] != '/')
        return err_set(e, EINVAL, "target \"" STR_FMT "\" must begin with /", STR_ARG(r->target));
    for (size_t i = 0; i < r->target.n; i++)
        if ((unsigned char)r->target.p[i] <= ' ' || (unsigned char)r->target.p[i] >= 0x7f)
            return err_set(e, EINVAL, "target \"" STR_FMT "\": byte %zu must be percent-encoded",
                           STR_ARG(r->target), i + 1);
    for (size_t i = 0; i < r->headers.n; i++)
        if (!http_header_is_valid(r->headers.at[i]))
            return err_set(e, EINVAL, "header " STR_FMT " has an invalid name or value",
                           STR_ARG(r->headers.at[i].name));
    return 0;
}

/* Copies every text into the call's arena and prefixes the target with the path of the client's
 * URL. */
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
    if (check_request(request, &e) < 0) {
        call->ended = true;
        call->failure = mem_alloc(sizeof(e));
        *call->failure = e;
        loop_defer(c->loop, LOOP_SOON, &call->deliver, run_deliver);
        return call;
    }
    if (request->deadline_ns)
        timer_set(c->loop, &call->deadline, request->deadline_ns, on_deadline);
    http_client_enqueue(c, call, false);
    pool_pump(c);
    return call;
}

/* --- the response --- */

void http_call_receive_head(struct http_call *call, const struct http_head *head)
{
    if (call->dead)
        return;
    str encoding = http_header_get(head->headers, S("content-encoding"));
    bool no_body = str_eq(call->request.method, S("HEAD"));
    if (!call->client->options.no_gzip && !no_body && str_eq_nocase(encoding, S("gzip")))
        call->gzip = gzip_reader_new();
    if (call->request.on_head)
        call->request.on_head(call->request.context, head);
}

static void fail_bad_gzip(struct http_call *call)
{
    err_t e;
    err_set(&e, EBADMSG, "%s: response has content-encoding gzip but is not valid gzip",
            call->client->name);
    http_call_finish(call, &e);
}

/* Passes bytes to the owner, decompressed, until it pauses or cancels. Returns how many were
 * consumed. */
static size_t deliver_bytes(struct http_call *call, str bytes)
{
    str rest = bytes;
    auto_buf struct buf plain = { 0 };
    while ((rest.n || gzip_has_pending(call->gzip)) && !call->paused && !call->dead) {
        str part = rest;
        if (call->gzip) {
            buf_clear(&plain);
            if (gzip_read(call->gzip, &rest, &plain, DECODE_BYTES) < 0) {
                fail_bad_gzip(call);
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

size_t http_call_receive_data(struct http_call *call, str bytes)
{
    if (call->dead)
        return bytes.n;
    bool behind = call->waiting.n || (call->paused && gzip_has_pending(call->gzip));
    size_t passed = behind ? 0 : deliver_bytes(call, bytes);
    if (passed < bytes.n && !call->dead)
        buf_put(&call->waiting, str_from(bytes, passed));
    else
        passed = bytes.n;
    return passed;
}

/* Reports the end once nothing waits. Compressed data that stops early is a failure. */
static void finish_if_delivered(struct http_call *call)
{
    if (!call->ended || call->paused || call->waiting.n || gzip_has_pending(call->gzip) ||
        call->dead)
        return;
    if (!call->failure && call->gzip && !gzip_is_complete(call->gzip))
        fail_bad_gzip(call);
    else
        http_call_finish(call, call->failure);
}

/* After resume, or for a request that failed at once: delivers what waits, from the loop. */
static void run_deliver(struct deferred *d)
{
    struct http_call *call = container_of(d, struct http_call, deliver);
    if (!call->paused && (call->waiting.n || gzip_has_pending(call->gzip))) {
        struct buf waiting = call->waiting;
        call->waiting = (struct buf){ 0 };
        size_t passed = deliver_bytes(call, buf_str(&waiting));
        if (!call->dead) {
            buf_consume(&waiting, passed);
            call->waiting = waiting;
            if (call->session)
                call->session->ops->consume(call->session, call, passed);
        } else {
            buf_done(&waiting);
        }
    }
    finish_if_delivered(call);
}

static void mark_ended(struct http_call *call)
{
    call->session = NULL;
    call->ended = true;
}

void http_call_complete(struct http_call *call)
{
    if (call->dead)
        return;
    mark_ended(call);
    finish_if_delivered(call);
}

/* See "Retries" above. */
static bool may_retry(const struct http_call *call, bool unprocessed)
{
    if (call->answer_begun || call->attempts >= ATTEMPTS_MAX || call->client->closing)
        return false;
    return unprocessed || (call->reused && (!call->written || call->idempotent));
}

void http_call_fail(struct http_call *call, const err_t *why, bool unprocessed)
{
    if (call->dead)
        return;
    if (may_retry(call, unprocessed)) {
        call->session = NULL;
        call->body_at = 0;
        call->written = call->reused = false;
        http_client_enqueue(call->client, call, true);
        pool_pump(call->client);
        return;
    }
    mark_ended(call);
    call->failure = mem_alloc(sizeof(*why));
    *call->failure = *why;
    if (!str_starts(str_c(why->text), str_c(call->client->name)))
        err_wrap(call->failure, "%s", call->client->name);
    finish_if_delivered(call);
}

/* --- pausing --- */

void http_call_allow_delay(struct http_call *call)
{
    CHECK(call, CALL_MAGIC);
    if (call->delayable || call->dead)
        return;
    call->delayable = true;
    if (!call->session)
        return;
    call->session->delayable++;
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
    if (call->waiting.n || gzip_has_pending(call->gzip) || call->ended)
        loop_defer(call->client->loop, LOOP_SOON, &call->deliver, run_deliver);
}
