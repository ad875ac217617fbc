/* Writes Events to the API server, one at a time and in order, so that a repetition cannot overtake the Event
 * it repeats. correlate.c decides whether an event is new, a repetition, combined or dropped.
 *
 *     events_emit --> correlate --> queue (1,000 at most) --> POST, or PATCH of the count for a repetition
 *
 * A failed write is retried every 10 s, up to 12 times, and blocks the queue meanwhile; a client error
 * (4xx) is permanent and drops the event. The queue owns its entries; each has its own arena. */
#include "events.h"

#include "../base/rfc3339.h"
#include "correlate.h"

#include <stdio.h>

enum { WAITING_MAX = 1000, TRIES_MAX = 12, MESSAGE_MAX = 1024 };

static const int64_t retry_ns = 10 * NS_PER_S;

struct outgoing {
    struct outgoing *next;
    struct arena arena;
    str ns, name; /* of the Event object */
    str body;     /* for a POST */
    str patch;    /* for a repetition; empty: create it */
    int tries;
};

struct events {
    struct kube *kube;
    struct loop *loop;
    str component;
    struct correlate correlate;
    int64_t stamp_ns; /* of the last name: time does not advance within a turn, names must differ */
    struct outgoing *first, **last;
    size_t waiting;
    struct kube_call *call;
    struct timer retry;
};

struct events *events_new(struct kube *k, const char *component)
{
    struct events *ev = mem_zero(1, sizeof(*ev));
    ev->kube = k;
    ev->loop = kube_loop(k);
    ev->component = str_c(component);
    ev->last = &ev->first;
    return ev;
}

static void remove_first(struct events *ev)
{
    struct outgoing *out = ev->first;
    if (!(ev->first = out->next))
        ev->last = &ev->first;
    ev->waiting--;
    arena_done(&out->arena);
    free(out);
}

void events_free(struct events *ev)
{
    if (!ev)
        return;
    kube_call_cancel(ev->call);
    timer_stop(&ev->retry);
    while (ev->first)
        remove_first(ev);
    correlate_done(&ev->correlate);
    free(ev);
}

/* ---- writing */

static void send_first(struct events *ev);

static void retry_fired(struct timer *timer)
{
    send_first(container_of(timer, struct events, retry));
}

/* The server will never accept this event; 401 and 429 are about us, not about the event. */
static bool is_permanent_failure(const struct kube_reply *reply)
{
    return reply->code >= 400 && reply->code < 500 && reply->reason != KUBE_TOO_MANY_REQUESTS &&
           reply->reason != KUBE_UNAUTHORIZED;
}

static void on_event_written(void *context, const struct kube_reply *reply)
{
    struct events *ev = context;
    struct outgoing *out = ev->first;
    ev->call = NULL;
    if (reply->reason == KUBE_NOT_FOUND && out->patch.n) {
        out->patch = S(""); /* the Event has expired on the server: create it again */
    } else if (!reply->failure || is_permanent_failure(reply) || ++out->tries >= TRIES_MAX) {
        remove_first(ev);
    } else {
        timer_set(ev->loop, &ev->retry, loop_mono_ns(ev->loop) + retry_ns, retry_fired);
        return;
    }
    send_first(ev);
}

static void send_first(struct events *ev)
{
    struct outgoing *out = ev->first;
    if (!out || ev->call || timer_is_set(&ev->retry))
        return;
    bool repeat = out->patch.n > 0;
    ev->call = kube_send(ev->kube, &(struct kube_request){ .verb = repeat ? KUBE_STRATEGIC_PATCH
                                                                          : KUBE_CREATE,
                                                           .resource = &resource_events,
                                                           .ns = out->ns,
                                                           .name = out->name,
                                                           .body = repeat ? out->patch : out->body,
                                                           .done = on_event_written,
                                                           .context = ev });
}

/* ---- making */

static void put_object(struct arena *a, struct json *body, const struct event *e)
{
    auto_buf struct buf version = { 0 };
    resource_api_version(e->resource, &version);
    struct json *object = json_make(a, body, "involvedObject", NULL);
    json_set_str(a, object, "apiVersion", buf_str(&version));
    json_set_str(a, object, "kind", str_c(e->resource->kind));
    json_set_str(a, object, "name", e->name);
    const struct {
        const char *key;
        str value;
    } rest[] = { { "namespace", e->ns }, { "uid", e->uid }, { "resourceVersion", e->rv } };
    for (size_t i = 0; i < countof(rest); i++)
        if (rest[i].value.n)
            json_set_str(a, object, rest[i].key, rest[i].value);
}

/* The Event object for a POST; also used if a PATCH finds that the Event has expired. */
static str make_body(struct events *ev, struct outgoing *out, const struct event *e,
                     const struct correlated *fate, str message)
{
    struct arena *a = &out->arena;
    char first[RFC3339_TEXT_MAX], last[RFC3339_TEXT_MAX];
    struct json *body = json_new_obj(a), *meta = json_make(a, body, "metadata", NULL);
    json_set_str(a, meta, "name", out->name);
    json_set_str(a, meta, "namespace", out->ns);
    put_object(a, body, e);
    json_set_str(a, body, "reason", str_c(e->reason));
    json_set_str(a, body, "message", message);
    json_set_str(a, body, "type", e->warning ? S("Warning") : S("Normal"));
    json_set_str(a, json_make(a, body, "source", NULL), "component", ev->component);
    json_set_str(a, body, "reportingComponent", ev->component);
    json_set_str(a, body, "reportingInstance", S(""));
    json_set_int(a, body, "count", fate->count);
    json_set_str(a, body, "firstTimestamp", rfc3339_text(fate->first_ns / NS_PER_S, first));
    json_set_str(a, body, "lastTimestamp", rfc3339_text(loop_wall_ns(ev->loop) / NS_PER_S, last));
    return json_to_str(a, body);
}

static str make_patch(struct events *ev, struct outgoing *out, const struct correlated *fate,
                      str message)
{
    struct arena *a = &out->arena;
    char last[RFC3339_TEXT_MAX];
    struct json *patch = json_new_obj(a);
    json_set_int(a, patch, "count", fate->count);
    json_set_str(a, patch, "message", message);
    json_set_str(a, patch, "lastTimestamp", rfc3339_text(loop_wall_ns(ev->loop) / NS_PER_S, last));
    return json_to_str(a, patch);
}

/* Names are at most 253 bytes, and the object's name comes first. */
static void make_name(char name[static CORRELATE_NAME_MAX], str object, int64_t now_ns)
{
    snprintf(name, CORRELATE_NAME_MAX, STR_FMT ".%llx", STR_ARG(str_upto(object, 230)),
             (unsigned long long)now_ns);
}

static str cut_message(str message)
{
    size_t n = MIN(message.n, (size_t)MESSAGE_MAX);
    while (n < message.n && n && ((unsigned char)message.p[n] & 0xc0) == 0x80)
        n--; /* do not split a UTF-8 character */
    return str_upto(message, n);
}

void events_emit(struct events *ev, const struct event *e)
{
    int64_t now = loop_wall_ns(ev->loop);
    auto_arena struct arena scratch = { 0 };
    str object = arena_printf(&scratch, "%s/" STR_FMT "/" STR_FMT "/" STR_FMT, e->resource->kind,
                              STR_ARG(e->ns), STR_ARG(e->name), STR_ARG(e->uid));
    str alike = arena_printf(&scratch, STR_FMT "/%s/%d", STR_ARG(object), e->reason, e->warning);
    str message = cut_message(e->message);
    struct correlated fate =
        correlate(&ev->correlate, &(struct correlate_in){ object, alike, message }, now);
    if (fate.drop || ev->waiting >= WAITING_MAX)
        return;
    if (fate.combined)
        message = cut_message(
            arena_printf(&scratch, "(combined from similar events): " STR_FMT, STR_ARG(message)));
    if (!fate.name[0]) {
        ev->stamp_ns = MAX(now, ev->stamp_ns + 1);
        make_name(fate.name, e->name, ev->stamp_ns);
    }
    struct outgoing *out = mem_zero(1, sizeof(*out));
    out->ns = arena_str(&out->arena, e->ns.n ? e->ns : S("default"));
    out->name = arena_str(&out->arena, str_c(fate.name));
    out->body = make_body(ev, out, e, &fate, message);
    out->patch = fate.count > 1 ? make_patch(ev, out, &fate, message) : S("");
    *ev->last = out;
    ev->last = &out->next;
    ev->waiting++;
    send_first(ev);
}
