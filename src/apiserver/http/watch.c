/* See watch.h. A watch goes through: the initial state (an array of references taken when it opened), the
 * bookmark that ends it, then events. Selectors see both sides of an event: what enters the selection is
 * ADDED, what leaves it is DELETED with its old data under the new version. */
#include "watch.h"

#include "read.h"
#include "verbs.h"

enum {
    BOOKMARK_S = 60,
    LAST_BOOKMARK_S = 2, /* before the end */
    TIMEOUT_LEAST_S = 1800,
};

struct watch {
    struct stream_source source;
    struct server *server;
    struct exchange *exchange;  /* NULL until attached */
    struct watch *next, **link; /* of those with the same resource */
    const struct kind *kind;
    struct kind_set *set;
    struct arena arena; /* of the selectors, if there are any */
    struct list_options options;
    char *prefix; /* owned: "group/resource/[namespace/]" */
    char *name;   /* owned; one object only, or NULL */

    struct object **initial; /* owned references, sent up to `sent` */
    size_t n_initial, sent;
    bool mark_initial_end;

    bool behind;      /* `cursor` counts */
    uint64_t cursor;  /* next event to read */
    int64_t from_rev; /* events up to here are not for us */
    int64_t told_rev; /* the highest version the client knows of */
    bool bookmark_due, ending, gone;
    bool columns_sent; /* of a table */
    enum answer_form form;
    bool form_v1beta1;
    str include; /* includeObject, in arena */
    struct timer timer;
    int64_t end_ns;
};

/* ---- the list of watches of a resource; the map's key is borrowed from its first watch */

static str resource_prefix(const struct watch *w)
{
    return key_prefix(str_c(w->prefix));
}

static void enlist(struct server *s, struct watch *w)
{
    struct watch *first = map_get(&s->watches, resource_prefix(w));
    w->next = first;
    if (first)
        first->link = &w->next;
    w->link = NULL;
    map_put(&s->watches, resource_prefix(w), w);
    s->n_watches++;
}

static void delist(struct watch *w)
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
    delist(w);
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

/* In the form that was asked for: itself, a table, metadata only. */
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
    json_write(out, call_form_object(&c, w->kind, tree, w->columns_sent));
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
    if (w->form == FORM_OBJECT && read_verbatim(w->kind, w->set, o))
        object_put_as(out, o, rev);
    else
        put_converted(w, out, o, rev);
    buf_put(out, S("}\n"));
    w->told_rev = MAX(w->told_rev, rev);
}

/* Kind, version, resourceVersion, and what a type always writes (spec: {}). */
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
    put_tree(w, out, &scratch, tree, w->told_rev);
    buf_put(out, S("}\n"));
}

static void put_gone(struct watch *w, struct buf *out)
{
    auto_arena struct arena scratch = { 0 };
    struct status s = { .code = 410, .reason = "Expired" };
    s.message =
        arena_printf(&scratch, "too old resource version: %lld (%lld)", (long long)w->from_rev,
                     (long long)store_history(w->server->store)->compacted);
    int64_t now = store_rev(w->server->store);
    if (w->from_rev > now)
        s = status_of_future(&scratch, w->from_rev, now);
    put_open(out, "ERROR");
    json_write(out, status_tree(&scratch, &s));
    buf_put(out, S("}\n"));
}

/* ---- reading the history */

static bool concerns(const struct watch *w, str key)
{
    return str_starts(key, str_c(w->prefix)) && (!w->name || str_eqc(key_split(key).name, w->name));
}

static void pull_event(struct watch *w, struct buf *out, const struct event *e)
{
    const struct object *now = e->now, *was = e->was;
    if (now->rev <= w->from_rev || !concerns(w, object_key(now)))
        return;
    bool in_before = was && read_selected(w->kind, &w->options, was);
    bool in_now = !now->deleted && read_selected(w->kind, &w->options, now);
    if (in_now)
        put_event(w, out, in_before ? "MODIFIED" : "ADDED", now, now->rev);
    else if (in_before)
        put_event(w, out, "DELETED", now->deleted ? now : was, now->rev);
}

static void pull_initial(struct watch *w, struct buf *out, size_t room)
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
    w->told_rev = MAX(w->told_rev, w->from_rev);
    if (w->mark_initial_end)
        put_bookmark(w, out, true);
    w->mark_initial_end = false;
}

static enum stream_more watch_pull(void *context, struct buf *out, size_t room)
{
    struct watch *w = context;
    const struct history *h = store_history(w->server->store);
    size_t before = out->n;
    if (w->gone) {
        put_gone(w, out);
        return STREAM_END;
    }
    if (w->n_initial || w->mark_initial_end)
        pull_initial(w, out, room);
    if (w->n_initial)
        return STREAM_MORE;
    while (w->behind && out->n - before < room) {
        if (w->cursor < h->first) {
            w->gone = true;
            put_gone(w, out);
            return STREAM_END;
        }
        const struct event *e = history_at(h, w->cursor);
        if (e)
            pull_event(w, out, e);
        w->cursor++;
        w->behind = w->cursor < h->next;
    }
    if (w->behind)
        return STREAM_MORE;
    int64_t rev = store_rev(w->server->store);
    if (w->bookmark_due && rev > w->told_rev) {
        w->told_rev = rev;
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

/* ---- time: seconds of the client, who knows nothing of a faster clock */

static void watch_tick(struct timer *t);

static int64_t after_s(const struct watch *w, int64_t at_ns, int64_t seconds)
{
    return at_ns + loop_scale_timeout(w->server->loop, seconds * NS_PER_S);
}

static void set_timer(struct watch *w, int64_t now)
{
    int64_t last = after_s(w, w->end_ns, -LAST_BOOKMARK_S);
    int64_t next = now < last ? MIN(after_s(w, now, BOOKMARK_S), last) : w->end_ns;
    timer_set(w->server->loop, &w->timer, next, watch_tick);
}

static void watch_tick(struct timer *t)
{
    struct watch *w = container_of(t, struct watch, timer);
    int64_t now = loop_mono_ns(w->server->loop);
    w->ending = now >= w->end_ns;
    w->bookmark_due = w->options.bookmarks && !w->ending;
    if (!w->ending)
        set_timer(w, now);
    if (w->exchange)
        exchange_wake_stream(w->exchange);
}

static void start_clock(struct watch *w, struct server *s)
{
    if (!s->loop)
        return;
    int64_t now = loop_mono_ns(s->loop), seconds = w->options.timeout_s;
    if (seconds <= 0 || seconds > 86400)
        seconds = TIMEOUT_LEAST_S + random_below(&s->random, TIMEOUT_LEAST_S);
    w->end_ns = after_s(w, now, seconds);
    set_timer(w, now);
}

/* ---- opening */

static void gather_initial(struct watch *w)
{
    struct store *store = w->server->store;
    VEC(struct object *) found = { 0 };
    struct tree_cursor cursor = tree_seek(store_tree(store), str_c(w->prefix));
    for (struct object *o; (o = tree_next_in(&cursor, str_c(w->prefix)));)
        if (concerns(w, object_key(o)) && read_selected(w->kind, &w->options, o))
            vec_push(&found, object_ref(o));
    w->initial = found.at;
    w->n_initial = found.n;
    w->from_rev = w->told_rev = store_rev(store);
    w->mark_initial_end = w->options.initial_events && w->options.bookmarks;
}

static void place(struct watch *w, const struct list_options *o)
{
    const struct history *h = store_history(w->server->store);
    bool from_state = o->rev == 0 || o->initial_events;
    if (from_state && o->rev <= store_rev(w->server->store)) {
        gather_initial(w);
        return;
    }
    w->from_rev = w->told_rev = o->rev;
    w->gone = from_state || !history_after(h, o->rev, &w->cursor);
    w->behind = !w->gone && w->cursor < h->next;
}

void verb_watch(struct call *c)
{
    struct list_options o;
    if (!call_list_options(c, &o))
        return;
    if (o.rev == 0 && call_query(c, "sendInitialEvents").p && !o.initial_events)
        o.rev = store_rev(c->server->store); /* only what comes */
    if (c->text == TEXT_YAML) {
        call_status(c, &(struct status){ .code = 406,
                                         .reason = "NotAcceptable",
                                         .message = S("a watch is only written as JSON") });
        return;
    }
    struct watch *w = mem_zero(1, sizeof(*w));
    str prefix = kind_prefix(c->arena, c->kind, c->ns);
    w->server = c->server;
    w->kind = c->kind;
    w->set = kind_set_ref(c->set);
    w->prefix = mem_dup(prefix.p, prefix.n);
    str name = c->name.n ? c->name : field_selector_exact(&o.fields, S("metadata.name"));
    w->name = name.n ? mem_dup(name.p, name.n) : NULL;
    w->options = o;
    w->options.continue_token = S("");
    str labels = call_query(c, "labelSelector"), fields = call_query(c, "fieldSelector");
    err_t e; /* parsed before: cannot fail */
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
    enlist(c->server, w);
    place(w, &o);
    start_clock(w, c->server);
    c->answer.status = 200;
    c->answer.content_type = "application/json";
    c->answer.stream = &w->source;
}

/* ---- from outside */

bool watch_is(const struct stream_source *source)
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
        if (w->behind || !concerns(w, key))
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
