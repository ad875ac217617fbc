/* Watches: how a client follows a list, and what it costs the server when the client is slow.
 *
 * The problem. A watch is a response that never ends. One write may concern many watches, and any of
 * their clients may stop reading at any time. A queue of copied events per watch would let one stopped client
 * grow without limit, and would copy each event once per watch.
 *
 * The design. Events are stored once, in the history (store/history.h), a ring of pairs of the object before
 * and after a write. A watch stores only a cursor, the sequence number of the next event to read, and
 * produces bytes when the connection asks for them (watch_pull):
 *
 *     store commits a batch
 *            |
 *            |  watch_on_event(): for each watch of the resource that is not behind,
 *            |  cursor = sequence of this event; wake its exchange
 *            v
 *     history  ... [e7] [e8] [e9] [e10]          one ring for all watches
 *                        ^          ^
 *                   cursor of A     cursor of B (behind by one)
 *                        |
 *            exchange has room: watch_pull(A, room)
 *                        |  select, encode; stop after `room` bytes
 *                        v
 *                    socket of A
 *
 * Invariants:
 *
 *   - A watch that has sent everything (`behind` is false) has no cursor, so it cannot fall out of the
 *     history however long it is idle. The event that wakes it sets its cursor.
 *   - A watch that is behind and whose cursor has left the history has lost events. It sends an ERROR event
 *     with code 410 and ends; the client lists again, as the Kubernetes API demands. So a slow or dead client
 *     costs one struct watch and the buffers of its connection, never a queue.
 *   - A watch never keeps an object alive by itself. It has references to what it is sending: the rest of the
 *     initial state, and the large object that is half sent (part.h). If one of them is replaced, the watch is
 *     behind, and until its cursor leaves the history, the history keeps the object anyway. At that moment
 *     (watch_lose) the watch drops the initial state, which the 410 makes worthless, and may only complete the
 *     object that it is in the middle of. All such objects together have LOST_BYTES; beyond that, the streams
 *     that lost their place first are cut.
 *   - Events with a version up to `from_rev` are never sent; `sent_rev` is the highest version that the client
 *     has seen and never decreases. Bookmarks carry it.
 *
 * A watch goes through three phases. The initial state, if the client asked for it, is an array of references
 * taken when the watch opened: objects are immutable, so it stays consistent while later writes happen. Then
 * comes the bookmark that ends the initial state (k8s.io/initial-events-end), then events from the history.
 *
 * Selectors are evaluated on both sides of an event. An object that enters the selection is ADDED, one that
 * leaves it is DELETED with its old data under the new version, and one that is in it before and after is
 * MODIFIED:
 *
 *     before   after    sent
 *     no       no       nothing
 *     no       yes      ADDED     (data after)
 *     yes      yes      MODIFIED  (data after)
 *     yes      no       DELETED   (data before, version of the event)
 *
 * Encoding. Objects are stored as the JSON that clients receive, so an event in the default form is a copy of
 * those bytes with the resourceVersion replaced (object_put_as). Only tables, metadata and converted versions
 * are parsed.
 *
 * Memory. The exchange owns the watch through its stream_source and frees it with watch_closed. The server's
 * map has the first watch per resource; the others are linked from it. */
#include "watch.h"

#include "convert.h"
#include "part.h"
#include "read.h"
#include "verbs.h"

enum {
    BOOKMARK_S = 60,
    LAST_BOOKMARK_S = 2, /* before the watch ends */
    TIMEOUT_LEAST_S = 1800,
    LOST_BYTES = 8 << 20, /* of half-sent objects that only lost watches keep alive */
};

struct watch {
    struct stream_source source;
    struct server *server;
    struct exchange *exchange;  /* borrowed; NULL until watch_attach() */
    struct watch *next, **link; /* watches of the same resource; link NULL: the first */
    const struct kind *kind;
    struct catalog_set *set;
    struct arena arena; /* owns the selectors and `include` */
    struct list_options options;
    char *prefix; /* owned: "group/resource/[namespace/]" */
    char *name;   /* owned; watch only this object; NULL: all */

    struct object **initial; /* the initial state: owned references, those from `sent` on */
    size_t n_initial, sent;
    bool bookmark_initial_end;
    struct part part;       /* the event that is being sent, if it is large */
    struct list_item holds; /* of server->holding while it has references, or of server->lost */

    bool behind;      /* there are events to read, from `cursor` on */
    uint64_t cursor;  /* sequence number of the next event; valid while behind */
    int64_t from_rev; /* events up to this version are not sent */
    int64_t sent_rev; /* the highest version that the client has seen */
    bool bookmark_due;
    bool ending;                  /* end the stream once everything is sent */
    bool expired;                 /* end the stream with 410 (or 504) */
    const struct object *stalled; /* the object that is being converted; NULL: none */
    char *failure;                /* owned: the Status of a conversion that failed */
    bool columns_sent;            /* the column definitions of a table were sent */
    enum answer_form form;
    bool form_v1beta1;
    str include; /* "includeObject=...", in the arena; "": unset */
    struct timer timer;
    int64_t end_ns; /* monotonic time of the loop */
};

/* ---- the watches of a resource */

static str resource_prefix(const struct watch *w)
{
    return store_key_prefix(str_c(w->prefix));
}

/* Adds the watch in front of the others of its resource. The map's key points into the first watch's
 * prefix, so the slot is written again each time the first watch changes. */
static void watch_link(struct server *s, struct watch *w)
{
    struct watch *first = map_get(&s->watches, resource_prefix(w));
    w->next = first;
    if (first)
        first->link = &w->next;
    w->link = NULL;
    map_put(&s->watches, resource_prefix(w), w);
    s->n_watches++;
}

static void watch_unlink(struct watch *w)
{
    struct server *s = w->server;
    if (w->next)
        w->next->link = w->link;
    if (w->link)
        *w->link = w->next;
    else if (w->next)
        map_put(&s->watches, resource_prefix(w->next), w->next);
    else
        map_del(&s->watches, resource_prefix(w));
    s->n_watches--;
}

/* ---- references to objects */

static void watch_drop_initial(struct watch *w)
{
    for (size_t i = w->sent; i < w->n_initial; i++)
        object_unref(w->initial[i]);
    free(w->initial);
    w->initial = NULL;
    w->n_initial = w->sent = 0;
}

/* Puts the watch into the list of those that have references, or takes it out. Must follow every change. A lost
 * watch stays in server->lost until its object is sent. */
static void watch_update_holds(struct watch *w)
{
    struct server *s = w->server;
    bool has = w->n_initial || w->part.object, listed = w->holds.in;
    if (has && !listed)
        list_append(&s->holding, &w->holds);
    else if (!has && listed)
        list_remove(&w->holds);
}

/* Ends the stream in the middle of its object. */
static void watch_cut(struct watch *w)
{
    w->server->lost_bytes -= object_bytes(w->part.object);
    part_done(&w->part);
    list_remove(&w->holds);
    if (w->exchange)
        exchange_end_stream(w->exchange, true);
}

/* The next event of the watch has left the history: see the invariants above. */
static void watch_lose(struct watch *w)
{
    struct server *s = w->server;
    list_remove(&w->holds);
    watch_drop_initial(w);
    w->expired = true;
    if (!w->part.object)
        return;
    list_append(&s->lost, &w->holds);
    s->lost_bytes += object_bytes(w->part.object);
    for (struct watch *first;
         s->lost_bytes > LOST_BYTES && (first = list_first(&s->lost, struct watch, holds));)
        watch_cut(first);
}

/* Appends more of the object that is being sent. */
static void watch_continue_part(struct watch *w, struct buf *out, size_t room)
{
    size_t bytes = object_bytes(w->part.object);
    if (!part_continue(&w->part, out, room))
        return;
    buf_put(out, S("}\n"));
    if (w->expired)
        w->server->lost_bytes -= bytes;
    watch_update_holds(w);
}

static void watch_free(struct watch *w)
{
    watch_unlink(w);
    timer_stop(&w->timer);
    if (w->expired && w->part.object)
        w->server->lost_bytes -= object_bytes(w->part.object);
    part_done(&w->part);
    watch_drop_initial(w);
    watch_update_holds(w);
    free(w->prefix);
    free(w->name);
    free(w->failure);
    catalog_set_unref(w->set);
    arena_done(&w->arena);
    free(w);
}

/* ---- writing events */

static void put_open(struct buf *out, const char *type)
{
    buf_printf(out, "{\"type\":\"%s\",\"object\":", type);
}

/* Writes a tree in the form that the client asked for: the object, a table, or its metadata. A table sends
 * its column definitions with the first event only. */
static void put_tree(struct watch *w, struct buf *out, struct arena *a, struct json *tree,
                     int64_t rev)
{
    json_set_str(a, json_make(a, tree, "metadata", NULL), "resourceVersion",
                 arena_printf(a, "%lld", (long long)rev));
    struct request query = { .query = w->include };
    struct call c = { .server = w->server,
                      .arena = a,
                      .request = &query,
                      .form = w->form,
                      .form_v1beta1 = w->form_v1beta1 };
    json_write(out, answer_shape_object(&c, w->kind, tree, w->columns_sent));
    w->columns_sent = true;
}

static void put_converted(struct watch *w, struct buf *out, const struct object *o, int64_t rev)
{
    auto_arena struct arena scratch = { 0 };
    put_tree(w, out, &scratch, read_tree(&scratch, w->kind, o), rev);
}

/* A large object may be left half sent, in w->part. */
static void put_event(struct watch *w, struct buf *out, size_t room, const char *type,
                      struct object *o, int64_t rev)
{
    w->sent_rev = MAX(w->sent_rev, rev);
    put_open(out, type);
    struct object *verbatim =
        w->form == FORM_OBJECT ? read_find_verbatim(w->kind, w->set, o) : NULL;
    if (!verbatim)
        put_converted(w, out, o, rev);
    else if (!part_begin_as(&w->part, out, room, verbatim, rev))
        return;
    buf_put(out, S("}\n"));
}

/* A bookmark has kind, apiVersion, resourceVersion, and the fields that the type always writes (spec: {}). */
static void put_bookmark(struct watch *w, struct buf *out, bool initial_end)
{
    auto_arena struct arena scratch = { 0 };
    struct json *nothing = kind_empty_object(w->kind, &scratch), *tree = json_new_obj(&scratch);
    json_set_str(&scratch, tree, "kind", w->kind->kind);
    json_set_str(&scratch, tree, "apiVersion", kind_api_version(&scratch, w->kind));
    json_each(m, nothing)
        json_set(&scratch, tree, m->key, m->value);
    struct json *metadata = json_make(&scratch, tree, "metadata", NULL);
    json_set_str(&scratch, metadata, "resourceVersion", S(""));
    if (initial_end)
        json_set_str(&scratch, json_make(&scratch, metadata, "annotations", NULL),
                     "k8s.io/initial-events-end", S("true"));
    put_open(out, "BOOKMARK");
    put_tree(w, out, &scratch, tree, w->sent_rev);
    buf_put(out, S("}\n"));
}

/* The last event of a watch that cannot continue: 410 for events that are gone, 504 for a version that does
 * not exist yet, 500 for a conversion that failed. */
static void put_expired(struct watch *w, struct buf *out)
{
    auto_arena struct arena scratch = { 0 };
    struct status s = { .code = 410, .reason = "Expired" };
    s.message =
        arena_printf(&scratch, "too old resource version: %lld (%lld)", (long long)w->from_rev,
                     (long long)store_history(w->server->store)->compacted);
    int64_t now = store_rev(w->server->store);
    if (w->from_rev > now)
        s = verb_future_status(&scratch, w->from_rev, now);
    put_open(out, "ERROR");
    if (w->failure)
        buf_put(out, str_c(w->failure));
    else
        json_write(out, status_tree(&scratch, &s));
    buf_put(out, S("}\n"));
}

/* ---- reading the history */

static bool watch_covers_key(const struct watch *w, str key)
{
    return str_starts(key, str_c(w->prefix)) &&
           (!w->name || str_eqc(store_key_split(key).name, w->name));
}

/* Sends the event if it concerns the watch; see the table above. False: its object is being converted by a webhook. */
static bool watch_pull_event(struct watch *w, struct buf *out, size_t room, const struct event *e)
{
    struct object *now = e->now, *was = e->was;
    if (now->rev <= w->from_rev || !watch_covers_key(w, object_key(now)))
        return true;
    bool in_before = was && read_is_selected(w->kind, &w->options, was);
    bool in_now = !now->deleted && read_is_selected(w->kind, &w->options, now);
    struct object *sent = in_now || now->deleted ? now : was;
    if (!in_now && !in_before)
        return true;
    if (!convert_find(w->kind, sent)) {
        w->stalled = sent;
        convert_in_background(w->server, w->set, w->kind, sent);
        return !w->stalled;
    }
    put_event(w, out, room, !in_now ? "DELETED" : in_before ? "MODIFIED" : "ADDED", sent, now->rev);
    return true;
}

/* Sends as much of the initial state as fits into `room`. The array is freed after the last object. */
static void watch_pull_initial(struct watch *w, struct buf *out, size_t room)
{
    size_t before = out->n;
    while (w->sent < w->n_initial && !w->part.object && out->n - before < room) {
        struct object *o = w->initial[w->sent++];
        put_event(w, out, room - (out->n - before), "ADDED", o, o->rev);
        object_unref(o);
    }
    if (w->sent < w->n_initial || w->part.object)
        return;
    watch_drop_initial(w);
    w->sent_rev = MAX(w->sent_rev, w->from_rev);
    if (w->bookmark_initial_end)
        put_bookmark(w, out, true);
    w->bookmark_initial_end = false;
}

/* Sends events from the history until `room` bytes are written or one is left half sent. False: the next event is
 * gone. */
static bool watch_pull_events(struct watch *w, struct buf *out, size_t room)
{
    const struct history *h = store_history(w->server->store);
    size_t before = out->n;
    while (w->behind && !w->stalled && !w->failure && !w->part.object && out->n - before < room) {
        if (w->cursor < h->first)
            return false;
        const struct event *e = history_at(h, w->cursor);
        if (e && !watch_pull_event(w, out, room - (out->n - before), e))
            return true;
        w->cursor++;
        w->behind = w->cursor < h->next;
    }
    return true;
}

/* One step of watch_pull(): appends about `room` bytes at most. */
static enum stream_more watch_pull_some(struct watch *w, struct buf *out, size_t room)
{
    size_t before = out->n;
    if (w->part.object)
        watch_continue_part(w, out, room);
    if (w->part.object || out->n - before >= room)
        return STREAM_MORE;
    room -= out->n - before;
    if (!w->expired && (w->n_initial || w->bookmark_initial_end)) {
        watch_pull_initial(w, out, room);
        return STREAM_MORE;
    }
    if (w->expired || !watch_pull_events(w, out, room) || w->failure) {
        w->expired = true;
        put_expired(w, out);
        return STREAM_END;
    }
    if (w->stalled)
        return w->ending ? STREAM_END : STREAM_WAIT;
    if (w->behind || w->part.object)
        return STREAM_MORE;
    int64_t rev = store_rev(w->server->store);
    if (w->bookmark_due && rev > w->sent_rev) {
        w->sent_rev = rev;
        put_bookmark(w, out, false);
    }
    w->bookmark_due = false;
    return w->ending ? STREAM_END : STREAM_WAIT;
}

/* The stream's source. Returns STREAM_MORE when `room` ended it, STREAM_WAIT when the client has seen
 * everything, STREAM_END after an ERROR event or when the watch was ended. */
static enum stream_more watch_pull(void *context, struct buf *out, size_t room)
{
    struct watch *w = context;
    enum stream_more more = watch_pull_some(w, out, room);
    watch_update_holds(w);
    return more;
}

static void watch_closed(void *context, bool complete)
{
    (void)complete;
    watch_free(context);
}

/* ---- time: seconds as the client counts them, also when the loop's clock runs faster (simulation) */

static void watch_on_timer(struct timer *t);

static int64_t watch_deadline(const struct watch *w, int64_t at_ns, int64_t seconds)
{
    return at_ns + loop_scale_timeout(w->server->loop, seconds * NS_PER_S);
}

/* The next bookmark, at the latest shortly before the end, so that the client can continue from there. */
static void watch_set_timer(struct watch *w, int64_t now)
{
    int64_t last = watch_deadline(w, w->end_ns, -LAST_BOOKMARK_S);
    int64_t next = now < last ? MIN(watch_deadline(w, now, BOOKMARK_S), last) : w->end_ns;
    timer_set(w->server->loop, &w->timer, next, watch_on_timer);
}

static void watch_on_timer(struct timer *t)
{
    struct watch *w = container_of(t, struct watch, timer);
    int64_t now = loop_mono_ns(w->server->loop);
    w->ending = now >= w->end_ns;
    w->bookmark_due = w->options.bookmarks && !w->ending;
    if (!w->ending)
        watch_set_timer(w, now);
    if (w->exchange)
        exchange_wake_stream(w->exchange);
}

/* The client's timeoutSeconds, or a random time between 30 and 60 minutes, so that watches opened at the
 * same time do not all end at the same time. */
static void watch_start_timer(struct watch *w, struct server *s)
{
    if (!s->loop)
        return;
    int64_t now = loop_mono_ns(s->loop), seconds = w->options.timeout_s;
    if (seconds <= 0 || seconds > 86400)
        seconds = TIMEOUT_LEAST_S + random_below(&s->random, TIMEOUT_LEAST_S);
    w->end_ns = watch_deadline(w, now, seconds);
    watch_set_timer(w, now);
}

/* ---- opening */

static void watch_collect_initial(struct watch *w)
{
    struct store *store = w->server->store;
    VEC(struct object *) found = { 0 };
    struct tree_cursor cursor = tree_seek(store_tree(store), str_c(w->prefix));
    for (struct object *o; (o = tree_next_in(&cursor, str_c(w->prefix)));)
        if (watch_covers_key(w, object_key(o)) && read_is_selected(w->kind, &w->options, o))
            vec_push(&found, object_ref(o));
    w->initial = found.at;
    w->n_initial = found.n;
    watch_update_holds(w);
    w->from_rev = w->sent_rev = store_rev(store);
    w->bookmark_initial_end = w->options.initial_events && w->options.bookmarks;
}

/* Decides where the watch starts: with the state, with the first event after a version, or not at all
 * (`expired`). */
static void watch_set_start(struct watch *w, const struct list_options *o)
{
    const struct history *h = store_history(w->server->store);
    bool from_state = o->rev == 0 || o->initial_events;
    if (from_state && o->rev <= store_rev(w->server->store)) {
        watch_collect_initial(w);
        return;
    }
    w->from_rev = w->sent_rev = o->rev;
    w->expired = from_state || !history_after(h, o->rev, &w->cursor);
    w->behind = !w->expired && w->cursor < h->next;
}

/* The exchange that the watch writes to, so that it can wake it. */
static void watch_attach(const struct stream_source *source, struct exchange *x)
{
    ((struct watch *)source->context)->exchange = x;
}

void verb_watch(struct call *c)
{
    struct list_options o;
    if (!call_list_options(c, &o))
        return;
    if (o.rev == 0 && call_query(c, "sendInitialEvents").p && !o.initial_events)
        o.rev = store_rev(c->server->store); /* sendInitialEvents=false: later events only */
    if (c->text == TEXT_YAML) {
        call_status(c, &(struct status){ .code = 406,
                                         .reason = "NotAcceptable",
                                         .message = S("a watch is only written as JSON") });
        return;
    }
    if ((o.rev == 0 || o.initial_events) && !convert_all(c))
        return;
    struct watch *w = mem_zero(1, sizeof(*w));
    str prefix = catalog_prefix(c->arena, c->kind, c->ns);
    w->server = c->server;
    w->kind = c->kind;
    w->set = catalog_set_ref(c->set);
    w->prefix = mem_dup(prefix.p, prefix.n);
    str name = c->name.n ? c->name : selector_exact_field(&o.fields, S("metadata.name"));
    w->name = name.n ? mem_dup(name.p, name.n) : NULL;
    w->options = o;
    w->options.continue_token = S("");
    str labels = call_query(c, "labelSelector"), fields = call_query(c, "fieldSelector");
    err_t e; /* call_list_options() parsed the same text: cannot fail */
    w->options.labels = (struct label_selector){ 0 };
    w->options.fields = (struct field_selector){ 0 };
    if (labels.n)
        selector_parse_labels(&w->arena, labels, &w->options.labels, &e);
    if (fields.n)
        selector_parse_fields(&w->arena, fields, &w->options.fields, &e);
    w->form = c->form;
    w->form_v1beta1 = c->form_v1beta1;
    if (c->form != FORM_OBJECT)
        w->include = arena_printf(&w->arena, "includeObject=" STR_FMT,
                                  STR_ARG(call_query(c, "includeObject")));
    w->source = (struct stream_source){
        .pull = watch_pull, .closed = watch_closed, .context = w, .length = -1
    };
    watch_link(c->server, w);
    watch_set_start(w, &o);
    watch_start_timer(w, c->server);
    c->answer.status = 200;
    c->answer.content_type = "application/json";
    c->answer.stream = &w->source;
    c->answer.attach = watch_attach;
}

/* ---- called by the server */

/* Finds the watches that lost their place when events left the history. */
static void watch_find_lost(struct server *s)
{
    const struct history *h = store_history(s->store);
    for (struct list_item *item = s->holding.first, *next; item; item = next) {
        struct watch *w = container_of(item, struct watch, holds);
        next = item->next;
        if (w->behind && w->cursor < h->first)
            watch_lose(w);
    }
}

void watch_on_event(struct server *s, const struct event *e, uint64_t sequence)
{
    watch_find_lost(s);
    str key = object_key(e->now);
    for (struct watch *w = map_get(&s->watches, store_key_prefix(key)); w; w = w->next) {
        if (w->behind || !watch_covers_key(w, key))
            continue;
        w->behind = true;
        w->cursor = sequence;
        if (w->exchange)
            exchange_wake_stream(w->exchange);
    }
}

void watch_on_converted(struct server *s, const struct kind *k, const struct object *o, str failure)
{
    struct watch *w = map_get(&s->watches, store_key_prefix(object_key(o)));
    for (; w; w = w->next) {
        if (w->stalled != o || w->kind != k)
            continue;
        w->stalled = NULL;
        if (failure.n)
            w->failure = mem_dup(failure.p, failure.n);
        if (w->exchange)
            exchange_wake_stream(w->exchange);
    }
}

void watch_end_all(struct server *s, str prefix)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&s->watches, slot));) {
        if (!str_starts(slot->key, prefix))
            continue;
        for (struct watch *w = slot->value; w; w = w->next) {
            w->ending = true;
            if (w->exchange)
                exchange_wake_stream(w->exchange);
        }
    }
}
