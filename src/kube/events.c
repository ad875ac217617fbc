/* Writes Events to the API server, one at a time and in order, so that a repetition cannot overtake the Event
 * it repeats. correlate.c decides whether an event is new, a repetition, combined or dropped.
 *
 *     events_emit --> correlate --> queue (1,000 at most) --> POST, or PATCH of the count for a repetition
 *
 * While more important requests wait, at most 50 normal events do, and none is added in a storm (see kube_crowd()): when many objects
 * change in the same second, an event for each would cost the server as much as the changes. A repetition of an event that is
 * not sent yet is merged into it.
 *
 * A failed write is retried every 10 s, up to 12 times, and blocks the queue meanwhile; a client error
 * (4xx) is permanent and drops the event. The queue owns its entries; each has its own arena. */
#include "events.h"

#include "../base/rfc3339.h"
#include "correlate.h"

#include <stdio.h>

enum {
    WAITING_MAX = 1000,
    CROWDED_MAX =
        50, /* normal events that wait while more important requests do, unless there is a storm: then none */
    TRIES_MAX = 12,
    MESSAGE_MAX = 1024
};

static const int64_t retry_ns = 10 * NS_PER_S;

struct outgoing {
    struct list_item item;
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
    struct list queue; /* struct outgoing */
    struct kube_call *call;
    struct timer retry;
    void (*observer)(void *context, const struct kube_event *event); /* NULL: none */
    void *observer_context;
};

struct events *events_new(struct kube *k, const char *component)
{
    struct events *ev = mem_zero(1, sizeof(*ev));
    ev->kube = k;
    ev->loop = kube_loop(k);
    ev->component = str_c(component);
    return ev;
}

void events_observe(struct events *ev, void (*fn)(void *context, const struct kube_event *event),
                    void *context)
{
    ev->observer = fn;
    ev->observer_context = context;
}

static void remove_first(struct events *ev)
{
    struct outgoing *out = list_first(&ev->queue, struct outgoing, item);
    list_remove(&out->item);
    arena_done(&out->arena);
    free(out);
}

void events_free(struct events *ev)
{
    if (!ev)
        return;
    kube_call_cancel(ev->call);
    timer_stop(&ev->retry);
    while (ev->queue.n)
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
    struct outgoing *out = list_first(&ev->queue, struct outgoing, item);
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
    struct outgoing *out = list_first(&ev->queue, struct outgoing, item);
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

static void put_object(struct arena *a, struct json *body, const struct kube_event *e)
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
static str make_body(struct events *ev, struct outgoing *out, const struct kube_event *e,
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

/* The event of this name that waits, and of which nothing was sent. */
static struct outgoing *find_unsent(struct events *ev, str name)
{
    list_each(struct outgoing, out, &ev->queue, item)
        if (str_eq(out->name, name) && !out->tries && !(ev->call && ev->queue.first == &out->item))
            return out;
    return NULL;
}

static size_t most_waiting(const struct events *ev, const struct kube_event *e)
{
    size_t crowd = e->warning ? 0 : kube_crowd(ev->kube);
    return crowd >= KUBE_STORM ? 0 : crowd ? CROWDED_MAX : WAITING_MAX;
}

/* Similar events are combined, and too many are dropped (correlate.c), as client-go's recorder does. The event
 * is copied: nothing of `e` is used after the call. */
void events_emit(struct events *ev, const struct kube_event *e)
{
    int64_t now = loop_wall_ns(ev->loop);
    if (ev->observer)
        ev->observer(ev->observer_context, e);
    auto_arena struct arena scratch = { 0 };
    str object = arena_printf(&scratch, "%s/" STR_FMT "/" STR_FMT "/" STR_FMT, e->resource->kind,
                              STR_ARG(e->ns), STR_ARG(e->name), STR_ARG(e->uid));
    str alike = arena_printf(&scratch, STR_FMT "/%s/%d", STR_ARG(object), e->reason, e->warning);
    str message = cut_message(e->message);
    struct correlated fate =
        correlate(&ev->correlate, &(struct correlate_in){ object, alike, message }, now);
    if (fate.drop || ev->queue.n >= most_waiting(ev, e))
        return;
    if (fate.combined)
        message = cut_message(
            arena_printf(&scratch, "(combined from similar events): " STR_FMT, STR_ARG(message)));
    if (!fate.name[0]) {
        ev->stamp_ns = MAX(now, ev->stamp_ns + 1);
        make_name(fate.name, e->name, ev->stamp_ns);
    }
    struct outgoing *out = fate.count > 1 ? find_unsent(ev, str_c(fate.name)) : NULL;
    bool is_merged = out != NULL;
    if (!out)
        out = mem_zero(1, sizeof(*out));
    out->ns = arena_str(&out->arena, e->ns.n ? e->ns : S("default"));
    out->name = arena_str(&out->arena, str_c(fate.name));
    out->body = make_body(ev, out, e, &fate, message);
    if (fate.count > 1 && (!is_merged || out->patch.n))
        out->patch = make_patch(ev, out, &fate, message);
    if (!is_merged)
        list_append(&ev->queue, &out->item);
    send_first(ev);
}
