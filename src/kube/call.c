/* One API call: builds the HTTP request, makes the attempts, delivers the reply. send.c decides when a
 * call is sent; reply.c interprets the response.
 *
 *     kube_call_new --> kube_call_wait (send.c: credentials, order, limits) -------> kube_call_run
 *                             ^                                                         |
 *                             |  pause                                                  v
 *                             +---- retry_if_allowed() <------------------------ on_done()
 *                                                                                       |
 *                                                          finish_call(): callback, free
 *
 * Invariant: `done` is called exactly once, unless the call is cancelled; it may do anything, including
 * freeing the client. So a call leaves all lists before the callback and is freed after it.
 *
 * Retries: a response with Retry-After (429, 5xx) is retried for any verb, because the server did not
 * process the request. A broken connection is retried for reads only, because a write may have been
 * applied. Nothing is retried once the caller has received bytes of a stream.
 *
 * Ownership: the call's arena holds the request's texts and the reply's JSON tree until `done` returns. */
#include "client_internal.h"

#include <stdio.h>

enum {
    ATTEMPTS_MAX = 10,     /* responses with Retry-After */
    READ_ATTEMPTS_MAX = 3, /* connections that broke during a read */
    RETRY_AFTER_MAX_S = 120,
    /* An object is at most 3 MiB. Only commands use unstreamed lists, and they have no memory limit. */
    ANSWER_MAX_BYTES = 4 << 20,
    LIST_MAX_BYTES = 32 << 20,
};

/* Between attempts if Retry-After is not a positive number of seconds (0, a date, garbage): without a
 * minimum this would be a busy loop. */
static const int64_t retry_least_ns = 500 * NS_PER_MS, retry_most_ns = 30 * NS_PER_S;

static const int64_t broken_pause_ns = 200 * NS_PER_MS;

static const struct verb {
    const char *name, *method, *content_type;
    bool writes;
} verbs[KUBE_VERB_N] = {
    [KUBE_GET] = { "get", "GET", NULL, false },
    [KUBE_LIST] = { "list", "GET", NULL, false },
    [KUBE_WATCH] = { "watch", "GET", NULL, false },
    [KUBE_CREATE] = { "create", "POST", "application/json", true },
    [KUBE_UPDATE] = { "update", "PUT", "application/json", true },
    [KUBE_JSON_PATCH] = { "patch", "PATCH", "application/json-patch+json", true },
    [KUBE_MERGE_PATCH] = { "patch", "PATCH", "application/merge-patch+json", true },
    [KUBE_STRATEGIC_PATCH] = { "patch", "PATCH", "application/strategic-merge-patch+json", true },
    [KUBE_APPLY] = { "apply", "PATCH", "application/apply-patch+yaml", true },
    [KUBE_DELETE] = { "delete", "DELETE", "application/json", true },
};

/* ---- the request */

static void put_parameter(struct buf *out, char *separator, const char *name, str value)
{
    if (!value.n)
        return;
    buf_printf(out, "%c%s=", *separator, name);
    uri_encode(out, value);
    *separator = '&';
}

/* The path and query of the request, in the arena. */
static str make_target(struct arena *a, const struct kube_request *r)
{
    auto_buf struct buf out = { 0 };
    char separator = '?';
    bool to_list =
        r->verb == KUBE_CREATE && !r->subresource; /* a Binding is posted to the pod itself */
    if (r->resource)
        resource_path(r->resource, r->ns, to_list ? S("") : r->name, str_c(r->subresource), &out);
    else
        buf_put(&out, r->path);
    put_parameter(&out, &separator, "labelSelector", r->label_selector);
    put_parameter(&out, &separator, "fieldSelector", r->field_selector);
    if (r->verb == KUBE_APPLY)
        put_parameter(&out, &separator, "force", S("true"));
    if (verbs[r->verb].writes && r->verb != KUBE_DELETE)
        put_parameter(&out, &separator, "fieldManager",
                      r->field_manager.n ? r->field_manager : S("flyball"));
    if (r->dry_run)
        put_parameter(&out, &separator, "dryRun", S("All"));
    if (r->query.n) {
        buf_putc(&out, separator);
        buf_put(&out, r->query);
    }
    return arena_str(a, buf_str(&out));
}

/* "patch deployments default/web (scale)": the beginning of error messages. */
static str make_subject(struct arena *a, const struct kube_request *r)
{
    if (!r->resource)
        return arena_printf(a, "%s " STR_FMT, verbs[r->verb].name, STR_ARG(r->path));
    return arena_printf(a, "%s %s%s" STR_FMT "%s" STR_FMT "%s%s%s", verbs[r->verb].name,
                        r->resource->plural, r->ns.n || r->name.n ? " " : "", STR_ARG(r->ns),
                        r->ns.n && r->name.n ? "/" : "", STR_ARG(r->name),
                        r->subresource ? " (" : "", r->subresource ? r->subresource : "",
                        r->subresource ? ")" : "");
}

static enum send_class classify_request(const struct kube_request *r)
{
    if (r->no_gate || r->verb == KUBE_LIST || r->verb == KUBE_WATCH)
        return SEND_URGENT;
    if (r->resource && !strcmp(r->resource->plural, resource_events.plural))
        return SEND_EVENT;
    return r->subresource && !strcmp(r->subresource, "status") ? SEND_STATUS : SEND_WORKLOAD;
}

#define PROTOBUF "application/vnd.kubernetes.protobuf"
#define PARTIAL "application/json;as=PartialObjectMetadata"
#define PARTIAL_OF "g=meta.k8s.io;v=v1,application/json"

struct kube_call *kube_call_new(struct kube *k, const struct kube_request *r)
{
    assert((unsigned)r->verb < KUBE_VERB_N);
    struct kube_call *call = mem_zero(1, sizeof(*call));
    call->k = k;
    call->text = r->text;
    call->verb = r->verb;
    call->method = str_c(verbs[r->verb].method);
    call->target = make_target(&call->arena, r);
    call->subject = make_subject(&call->arena, r);
    call->content_type = str_c(verbs[r->verb].content_type);
    call->accept = r->protobuf            ? S(PROTOBUF ",application/json")
                   : !r->metadata_only    ? S("application/json")
                   : r->verb == KUBE_LIST ? S(PARTIAL "List;" PARTIAL_OF)
                                          : S(PARTIAL ";" PARTIAL_OF);
    call->body = r->body.n ? arena_str(&call->arena, r->body) : S("");
    call->gated = verbs[r->verb].writes && !r->no_gate;
    call->paid = r->no_gate;
    call->class = classify_request(r);
    call->owner = r->owner;
    call->flow = map_hash(r->ns);
    call->is_stale = r->is_stale;
    call->waiting.replaces = r->replaces;
    call->done = r->done;
    call->context = r->context;
    int64_t timeout_ns = r->timeout_ns ? r->timeout_ns : k->timeout_ns;
    call->deadline_ns = loop_mono_ns(k->loop) + loop_scale_timeout(k->loop, timeout_ns);
    list_prepend(&k->calls, &call->item);
    return call;
}

static void end_attempt(struct kube_call *call)
{
    kube_flight_ended(call);
    if (call->http)
        http_call_cancel(call->http);
    call->http = NULL;
    if (call->link) {
        call->link->calls--;
        kube_link_release(call->link);
    }
    call->link = NULL;
}

/* Takes the call off the client's lists; afterwards only its owner refers to it. */
static void detach_call(struct kube_call *call)
{
    end_attempt(call);
    timer_stop(&call->pause);
    sendqueue_remove(&call->k->waiting, &call->waiting);
    list_remove(&call->waiting.flow); /* of calls that fail together */
    list_remove(&call->rider);
    list_remove(&call->item);
}

static void destroy_call(struct kube_call *call)
{
    buf_done(&call->answer);
    arena_done(&call->arena);
    free(call);
}

void kube_call_free(struct kube_call *call)
{
    detach_call(call);
    kube_join_dissolve(call);
    destroy_call(call);
}

/* A callback may do anything, including freeing the client; the call is freed only after it returns. The same answer is for all
 * that were sent as one. */
static void finish_call(struct kube_call *call, const struct kube_reply *reply)
{
    if (call->riders.n && kube_join_refused(call, reply))
        return;
    detach_call(call);
    if (call->done)
        call->done(call->context, reply);
    for (struct kube_call *rider; (rider = list_first(&call->riders, struct kube_call, rider));)
        finish_call(rider, reply);
    destroy_call(call);
}

void kube_call_fail(struct kube_call *call, const char *why)
{
    struct kube_reply reply;
    kube_reply_none(call, why, &reply);
    finish_call(call, &reply);
}

void kube_call_supersede(struct kube_call *call)
{
    struct kube_reply reply;
    kube_reply_none(call, "not sent: a newer change replaces it", &reply);
    reply.reason = KUBE_SUPERSEDED;
    finish_call(call, &reply);
}

/* ---- attempts */

static void on_pause_end(struct timer *timer)
{
    kube_call_wait(container_of(timer, struct kube_call, pause));
}

static void start_pause(struct kube_call *call, int64_t ns)
{
    end_attempt(call);
    timer_set(call->k->loop, &call->pause, loop_mono_ns(call->k->loop) + ns, on_pause_end);
}

void kube_call_restart(struct kube_call *call)
{
    end_attempt(call);
    call->attempts = 0;
    kube_call_wait(call);
}

/* Schedules another attempt and returns true, or returns false if the result is final. Never retries
 * once the caller has received bytes of a stream. */
static bool retry_if_allowed(struct kube_call *call, const err_t *failure)
{
    int64_t now = loop_mono_ns(call->k->loop), pause_ns;
    if (call->streamed)
        return false;
    if (failure) {
        if (call->is_stream || verbs[call->verb].writes || call->attempts >= READ_ATTEMPTS_MAX)
            return false;
        pause_ns = broken_pause_ns << (call->attempts - 1);
    } else {
        bool asks = call->status == 429 || call->status >= 500;
        if (!asks || call->retry_after_s < 0 || call->attempts >= ATTEMPTS_MAX)
            return false;
        pause_ns = call->retry_after_s > 0
                       ? call->retry_after_s * NS_PER_S
                       : MIN(retry_least_ns << MIN(call->attempts - 1, 10), retry_most_ns);
        pause_ns += (int64_t)(0.1 * random_unit(&call->k->random) * (double)pause_ns);
    }
    if (call->deadline_ns && now + pause_ns >= call->deadline_ns)
        return false;
    start_pause(call, pause_ns);
    return true;
}

/* Seconds of the Retry-After header; -1: there is none; 0: a date or garbage, so use our own backoff. */
static int parse_retry_after(str header)
{
    int64_t seconds = 0;
    if (!str_trim(header).n)
        return -1;
    bool digits = true;
    for (size_t i = 0; i < header.n; i++)
        digits = digits && header.p[i] >= '0' && header.p[i] <= '9';
    if (!digits)
        return 0;
    return str_to_i64(header, &seconds) == 0 ? (int)MIN(seconds, RETRY_AFTER_MAX_S)
                                             : RETRY_AFTER_MAX_S;
}

static void on_head(void *context, const struct http_head *head)
{
    struct kube_call *call = context;
    call->status = head->status;
    call->latency_ns = MAX(loop_mono_ns(call->k->loop) - call->flight_ns, (int64_t)0);
    kube_note_status(call->k, head->status);
    call->retry_after_s = parse_retry_after(http_header_get(head->headers, S("retry-after")));
    call->protobuf = str_starts(http_header_get(head->headers, S("content-type")), S(PROTOBUF));
}

bool kube_call_is_protobuf(const struct kube_call *call)
{
    return call->protobuf;
}

static void on_data(void *context, str bytes)
{
    struct kube_call *call = context;
    if (call->is_stream && call->status == 200) {
        call->streamed = true;
        call->on_data(call->context, bytes);
        return;
    }
    size_t most = call->verb == KUBE_LIST ? LIST_MAX_BYTES : ANSWER_MAX_BYTES;
    if (call->answer.n + bytes.n > most)
        kube_call_fail(call, call->verb == KUBE_LIST ? "response is larger than 32 MiB"
                                                     : "response is larger than 4 MiB");
    else
        buf_put(&call->answer, bytes);
}

/* Watches are counted but not timed: their duration is their timeout. */
static void count_request(const struct kube_call *call, int status)
{
    struct kube *k = call->k;
    char code[16];
    snprintf(code, sizeof(code), "%d", status);
    metric_add(METRIC(k->requests, status ? str_c(code) : S("<error>"), k->host, call->method), 1);
    if (call->verb != KUBE_WATCH)
        metric_observe(METRIC(k->durations, k->host, str_c(verbs[call->verb].name)),
                       (double)(loop_mono_ns(k->loop) - call->sent_ns) / NS_PER_S);
}

/* The end of an attempt: retries it or delivers the reply. After a 401 the next request uses fresh credentials;
 * this one is not repeated. */
static void on_done(void *context, const err_t *failure)
{
    struct kube_call *call = context;
    struct kube *k = call->k;
    call->http = NULL; /* already over: nothing to cancel */
    count_request(call, failure ? 0 : call->status);
    if (failure)
        kube_note_status(k, 0);
    if (!failure && call->status == 401)
        credentials_refused(k->credentials);
    if (retry_if_allowed(call, failure))
        return;
    struct kube_reply reply;
    if (failure)
        kube_reply_none(call, failure->text, &reply);
    else
        kube_reply_read(call, &reply);
    finish_call(call, &reply);
}

void kube_call_run(struct kube_call *call)
{
    struct kube *k = call->k;
    call->attempts++;
    call->status = 0;
    call->retry_after_s = -1;
    call->sent_ns = loop_mono_ns(k->loop);
    kube_flight_started(call);
    buf_clear(&call->answer);
    call->link = k->link;
    call->link->calls++;
    struct http_header headers[] = { { S("accept"), call->accept },
                                     { S("content-type"), call->content_type } };
    int64_t deadline = call->deadline_ns;
    if (call->gated && k->gate_ns != INT64_MAX)
        deadline = MIN(deadline, k->gate_ns);
    call->http =
        http_client_send(k->link->http,
                         &(struct http_request){ .method = call->method,
                                                 .target = call->target,
                                                 .headers = { headers, call->body.n ? 2 : 1 },
                                                 .body = call->joined.n ? call->joined : call->body,
                                                 .deadline_ns = deadline,
                                                 .on_head = on_head,
                                                 .on_data = on_data,
                                                 .on_done = on_done,
                                                 .context = call });
    if (call->allow_delay)
        http_call_allow_delay(call->http);
}

/* Servers without streaming lists refuse them with various errors; the ones below mean something else. */
bool kube_reply_refuses_streaming(const struct kube_reply *reply)
{
    switch (reply->reason) {
    case KUBE_NO_ANSWER:
    case KUBE_UNAUTHORIZED:
    case KUBE_FORBIDDEN:
    case KUBE_NOT_FOUND:
    case KUBE_TOO_MANY_REQUESTS:
    case KUBE_GONE:
    case KUBE_OK:
        return false;
    default:
        return reply->code != 403;
    }
}
