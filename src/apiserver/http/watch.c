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
 *     costs one struct watch and the kernel's socket buffer, never a queue.
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

#include "read.h"
#include "verbs.h"

enum {
    BOOKMARK_S = 60,
    LAST_BOOKMARK_S = 2, /* before the watch ends */
    TIMEOUT_LEAST_S = 1800,
};

struct watch {
    struct stream_source source;
    struct server *server;
    struct exchange *exchange;  /* borrowed; NULL until watch_attach() */
    struct watch *next, **link; /* watches of the same resource; link NULL: the first */
    const struct kind *kind;
    struct kind_set *set;
    struct arena arena; /* owns the selectors and `include` */
    struct list_options options;
    char *prefix; /* owned: "group/resource/[namespace/]" */
    char *name;   /* owned; watch only this object; NULL: all */

    struct object **initial; /* the initial state: owned references, those from `sent` on */
    size_t n_initial, sent;
    bool bookmark_initial_end;

    bool behind;      /* there are events to read, from `cursor` on */
    uint64_t cursor;  /* sequence number of the next event; valid while behind */
    int64_t from_rev; /* events up to this version are not sent */
    int64_t sent_rev; /* the highest version that the client has seen */
    bool bookmark_due;
    bool ending;       /* end the stream once everything is sent */
    bool expired;      /* end the stream with 410 (or 504) */
    bool columns_sent; /* the column definitions of a table were sent */
    enum answer_form form;
    bool form_v1beta1;
    str include; /* "includeObject=...", in the arena; "": unset */
    struct timer timer;
    int64_t end_ns; /* monotonic time of the loop */
};

/* ---- the watches of a resource */

static str resource_prefix(const struct watch *w)
{
    return key_prefix(str_c(w->prefix));
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

static void watch_free(struct watch *w)
{
    watch_unlink(w);
    timer_stop(&w->timer);
    for (size_t i = w->sent; i < w->n_initial; i++)
        object_unref(w->initial[i]);
    free(w->initial);
    free(w->prefix);
    free(w->name);
    kind_set_unref(w->set);
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
    json_write(out, call_shape_object(&c, w->kind, tree, w->columns_sent));
    w->columns_sent = true;
}

static void put_converted(struct watch *w, struct buf *out, const struct object *o, int64_t rev)
{
    auto_arena struct arena scratch = { 0 };
    put_tree(w, out, &scratch, read_tree(&scratch, w->kind, o), rev);
}

static void put_event(struct watch *w, struct buf *out, const char *type, const struct object *o,
                      int64_t rev)
{
    put_open(out, type);
    if (w->form == FORM_OBJECT && read_is_verbatim(w->kind, w->set, o))
        object_put_as(out, o, rev);
    else
        put_converted(w, out, o, rev);
    buf_put(out, S("}\n"));
    w->sent_rev = MAX(w->sent_rev, rev);
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
 * not exist yet. */
static void put_expired(struct watch *w, struct buf *out)
{
    auto_arena struct arena scratch = { 0 };
    struct status s = { .code = 410, .reason = "Expired" };
    s.message =
        arena_printf(&scratch, "too old resource version: %lld (%lld)", (long long)w->from_rev,
                     (long long)store_history(w->server->store)->compacted);
    int64_t now = store_rev(w->server->store);
    if (w->from_rev > now)
        s = status_future_version(&scratch, w->from_rev, now);
    put_open(out, "ERROR");
    json_write(out, status_tree(&scratch, &s));
    buf_put(out, S("}\n"));
}

/* ---- reading the history */

static bool watch_covers_key(const struct watch *w, str key)
{
    return str_starts(key, str_c(w->prefix)) && (!w->name || str_eqc(key_split(key).name, w->name));
}

/* Sends the event if it concerns the watch; see the table above. */
static void watch_pull_event(struct watch *w, struct buf *out, const struct event *e)
{
    const struct object *now = e->now, *was = e->was;
    if (now->rev <= w->from_rev || !watch_covers_key(w, object_key(now)))
        return;
    bool in_before = was && read_is_selected(w->kind, &w->options, was);
    bool in_now = !now->deleted && read_is_selected(w->kind, &w->options, now);
    if (in_now)
        put_event(w, out, in_before ? "MODIFIED" : "ADDED", now, now->rev);
    else if (in_before)
        put_event(w, out, "DELETED", now->deleted ? now : was, now->rev);
}

/* Sends as much of the initial state as fits into `room`. The array is freed after the last object. */
static void watch_pull_initial(struct watch *w, struct buf *out, size_t room)
{
    size_t before = out->n;
    while (w->sent < w->n_initial && out->n - before < room) {
        struct object *o = w->initial[w->sent++];
        put_event(w, out, "ADDED", o, o->rev);
        object_unref(o);
    }
    if (w->sent < w->n_initial)
        return;
    free(w->initial);
    w->initial = NULL;
    w->n_initial = w->sent = 0;
    w->sent_rev = MAX(w->sent_rev, w->from_rev);
    if (w->bookmark_initial_end)
        put_bookmark(w, out, true);
    w->bookmark_initial_end = false;
}

/* The stream's source. Returns STREAM_MORE when `room` ended it, STREAM_WAIT when the client has seen
 * everything, STREAM_END after an ERROR event or when the watch was ended. */
static enum stream_more watch_pull(void *context, struct buf *out, size_t room)
{
    struct watch *w = context;
    const struct history *h = store_history(w->server->store);
    size_t before = out->n;
    if (w->expired) {
        put_expired(w, out);
        return STREAM_END;
    }
    if (w->n_initial || w->bookmark_initial_end)
        watch_pull_initial(w, out, room);
    if (w->n_initial)
        return STREAM_MORE;
    while (w->behind && out->n - before < room) {
        if (w->cursor < h->first) {
            w->expired = true;
            put_expired(w, out);
            return STREAM_END;
        }
        const struct event *e = history_at(h, w->cursor);
        if (e)
            watch_pull_event(w, out, e);
        w->cursor++;
        w->behind = w->cursor < h->next;
    }
    if (w->behind)
        return STREAM_MORE;
    int64_t rev = store_rev(w->server->store);
    if (w->bookmark_due && rev > w->sent_rev) {
        w->sent_rev = rev;
        put_bookmark(w, out, false);
    }
    w->bookmark_due = false;
    return w->ending ? STREAM_END : STREAM_WAIT;
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
    struct watch *w = mem_zero(1, sizeof(*w));
    str prefix = registry_prefix(c->arena, c->kind, c->ns);
    w->server = c->server;
    w->kind = c->kind;
    w->set = kind_set_ref(c->set);
    w->prefix = mem_dup(prefix.p, prefix.n);
    str name = c->name.n ? c->name : field_selector_exact(&o.fields, S("metadata.name"));
    w->name = name.n ? mem_dup(name.p, name.n) : NULL;
    w->options = o;
    w->options.continue_token = S("");
    str labels = call_query(c, "labelSelector"), fields = call_query(c, "fieldSelector");
    err_t e; /* call_list_options() parsed the same text: cannot fail */
    w->options.labels = (struct label_selector){ 0 };
    w->options.fields = (struct field_selector){ 0 };
    if (labels.n)
        label_selector_parse(&w->arena, labels, &w->options.labels, &e);
    if (fields.n)
        field_selector_parse(&w->arena, fields, &w->options.fields, &e);
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
}

/* ---- called by the server */

bool watch_is_source(const struct stream_source *source)
{
    return source->pull == watch_pull;
}

void watch_attach(const struct stream_source *source, struct exchange *x)
{
    ((struct watch *)source->context)->exchange = x;
}

void watch_on_event(struct server *s, const struct event *e, uint64_t sequence)
{
    str key = object_key(e->now);
    for (struct watch *w = map_get(&s->watches, key_prefix(key)); w; w = w->next) {
        if (w->behind || !watch_covers_key(w, key))
            continue;
        w->behind = true;
        w->cursor = sequence;
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
