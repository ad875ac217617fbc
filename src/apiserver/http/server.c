/* The life of the server: opening, the path of a call, commits, and controllers.
 *
 * A turn of the loop: calls run and stage writes; at its end (LOOP_COMMIT) the batch goes to a thread,
 * which waits for the disk. When it comes back its events are published (watches wake, controllers are
 * told), the calls that waited are answered, and controllers do what the events asked for, which stages
 * the next batch. */
#include "server.h"

#include "../../base/log.h"
#include "access.h"
#include "read.h"
#include "verbs.h"
#include "watch.h"
#include "write.h"

enum {
    TICK_S = 60,
    EVENT_LIFE_S = 3600,
    RECONCILE_DELAY_MS = 250,
    IDLE_MS = 100,
    RECONCILE_ROUNDS = 100,          /* without a loop: more is a livelock */
    QUICK_COMMIT_NS = 2 * NS_PER_MS, /* the loop may stand still for so long */
};

/* ---- small services */

int64_t server_now_ns(const struct server *s)
{
    return s->loop ? loop_wall_ns(s->loop) : clock_wall_ns();
}

str server_time(struct server *s, struct arena *a)
{
    int64_t now_s = server_now_ns(s) / NS_PER_S;
    if (!s->time.n || s->time_s != now_s) {
        s->time = rfc3339_text(now_s, s->time_text);
        s->time_s = now_s;
    }
    return arena_str(a, s->time);
}

str server_uid(struct server *s, struct arena *a)
{
    unsigned char b[16];
    for (size_t i = 0; i < sizeof(b); i += 4) {
        uint32_t word = random_u32(&s->random);
        memcpy(b + i, &word, 4);
    }
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    char text[36], *out = text;
    for (size_t i = 0; i < sizeof(b); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = "0123456789abcdef"[b[i] >> 4];
        *out++ = "0123456789abcdef"[b[i] & 15];
    }
    return arena_str(a, (str){ text, sizeof(text) });
}

str server_name_suffix(struct server *s, struct arena *a)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* no words, no 0/O or 1/l */
    char suffix[6] = { 0 };
    for (size_t i = 0; i < 5; i++)
        suffix[i] = letters[random_below(&s->random, sizeof(letters) - 1)];
    return arena_str(a, (str){ suffix, 5 });
}

/* ---- commits */

static void on_idle(struct timer *t);

static void set_idle_timer(struct server *s)
{
    if (s->writer && !s->stopping)
        timer_set(s->loop, &s->idle_timer, loop_mono_ns(s->loop) + IDLE_MS * NS_PER_MS, on_idle);
}

/* When nobody writes, nobody waits for what takes longer than a commit. */
static void on_idle(struct timer *t)
{
    struct server *s = container_of(t, struct server, idle_timer);
    struct batch *b = store_tidy(s->store, true);
    if (!b)
        return; /* there is nothing to move, or another batch is out */
    s->out = b;
    worker_submit(s->writer, &s->writing);
}

static void run_write(struct work *work)
{
    batch_write(container_of(work, struct server, writing)->out);
}

static void wrote(struct work *work)
{
    struct server *s = container_of(work, struct server, writing);
    struct batch *b = take(s->out);
    if (batch_size(b))
        s->commit_ns += (batch_took_ns(b) - s->commit_ns) / 4;
    store_finish(s->store, b);
    server_commit_soon(s); /* what gathered meanwhile */
    set_idle_timer(s);
}

/* A single write is committed in the turn when nobody else has called since the commit before the last:
 * handing it to a thread and back costs as much as the commit itself. When somebody has, or the disk is slow,
 * it goes to the thread, so that the loop takes calls meanwhile and never stands still for long. */
static bool commits_here(struct server *s, const struct batch *b)
{
    bool was_crowded = s->crowded;
    s->crowded = s->calls > 1 || batch_size(b) > 1;
    s->calls = 0;
    return !store_is_durable(s->store) ||
           (!s->crowded && !was_crowded && s->commit_ns < QUICK_COMMIT_NS);
}

static void commit_soon(struct deferred *d)
{
    struct server *s = container_of(d, struct server, commit);
    struct batch *tidying = store_tidy(s->store, false);
    struct batch *b = tidying ? tidying : store_flush(s->store);
    if (!b)
        return;
    s->out = b;
    if (!tidying && commits_here(s, b)) {
        run_write(&s->writing);
        wrote(&s->writing);
    } else {
        worker_submit(s->writer, &s->writing);
    }
}

void server_commit_soon(struct server *s)
{
    if (s->loop)
        loop_defer(s->loop, LOOP_COMMIT, &s->commit, commit_soon);
}

bool server_idle(const struct server *s)
{
    return !s->out;
}

/* ---- controllers */

static bool reconcile_once(struct server *s)
{
    bool changed = false;
    for (size_t i = 0; s->controllers[i]; i++)
        changed |= s->controllers[i]->reconcile(s);
    return changed;
}

static void run_reconcile(struct deferred *d)
{
    reconcile_once(container_of(d, struct server, reconcile));
}

void server_reconcile_soon(struct server *s)
{
    if (s->loop)
        loop_defer(s->loop, LOOP_SOON, &s->reconcile, run_reconcile);
}

static void on_reconcile_timer(struct timer *t)
{
    server_reconcile_soon(container_of(t, struct server, reconcile_timer));
}

void server_reconcile_later(struct server *s)
{
    if (s->loop && !timer_is_set(&s->reconcile_timer))
        timer_set(s->loop, &s->reconcile_timer,
                  loop_mono_ns(s->loop) + RECONCILE_DELAY_MS * NS_PER_MS, on_reconcile_timer);
}

void server_settle(struct server *s)
{
    assert(!s->loop || !s->out);
    for (int i = 0; i < RECONCILE_ROUNDS; i++) {
        int64_t before = store_next_rev(s->store);
        store_commit(s->store);
        bool changed = reconcile_once(s);
        if (!changed && store_next_rev(s->store) == before)
            return;
    }
}

static void published(void *context, const struct event *e, uint64_t sequence)
{
    struct server *s = context;
    watch_on_event(s, e, sequence);
    for (size_t i = 0; s->controllers[i]; i++)
        s->controllers[i]->on_event(s, e);
}

void server_expire_events(struct server *s)
{
    str prefix = S("/events/");
    int64_t before = server_now_ns(s) / NS_PER_S - EVENT_LIFE_S;
    const struct kind *k = kinds_find(S(""), S("v1"), S("events"));
    VEC(struct object *) old = { 0 };
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));)
        if (o->written_s < before)
            vec_push(&old, object_ref(o));
    for (size_t i = 0; i < old.n; i++) {
        auto_arena struct arena a = { 0 };
        err_t e;
        if (store_latest(s->store, object_key(old.at[i])) == old.at[i])
            write_remove(s, &a, k, object_key(old.at[i]), read_tree(&a, k, old.at[i]), &e);
        object_unref(old.at[i]);
    }
    vec_done(&old);
}

static void tick(struct timer *t)
{
    struct server *s = container_of(t, struct server, ticker);
    server_expire_events(s);
    timer_set(s->loop, &s->ticker, loop_mono_ns(s->loop) + TICK_S * NS_PER_S, tick);
}

/* ---- calls */

static void run_verb(struct call *c)
{
    static void (*const verbs[VERB_N])(struct call *) = {
        [VERB_NONE] = serve_page,
        [VERB_GET] = verb_get,
        [VERB_LIST] = verb_list,
        [VERB_WATCH] = verb_watch,
        [VERB_CREATE] = verb_create,
        [VERB_UPDATE] = verb_update,
        [VERB_PATCH] = verb_patch,
        [VERB_DELETE] = verb_delete,
        [VERB_DELETECOLLECTION] = verb_delete_collection,
    };
    c->pretty = call_query_true(c, "pretty");
    if (c->kind && c->verb != VERB_PATCH &&
        !call_negotiate(c)) /* a patch: once its language is known */
        return;
    if (c->kind && c->kind->deprecated)
        call_warn(c, c->kind->deprecation_warning);
    verbs[c->verb](c);
}

static void committed(struct store_waiter *w, int result, const err_t *e)
{
    struct call *c = container_of(w, struct call, waiter);
    if (result < 0)
        call_stage_failed(c, e);
    c->finished(c);
}

static bool is_write(enum verb v)
{
    return v == VERB_CREATE || v == VERB_UPDATE || v == VERB_PATCH || v == VERB_DELETE ||
           v == VERB_DELETECOLLECTION;
}

void server_handle(struct server *s, struct call *c)
{
    c->server = s;
    s->calls++;
    if (s->stopping) {
        call_status(c, &(struct status){ .code = 503,
                                         .reason = "ServiceUnavailable",
                                         .message = S("the server is shutting down"),
                                         .retry_after_s = 1 });
    } else if (call_authenticate(c)) {
        bool found = call_route(c); /* who may not look does not learn what is there */
        if (call_authorize(c) && found)
            run_verb(c);
    }
    if (!is_write(c->verb)) {
        c->finished(c);
        return;
    }
    c->waiter.done = committed;
    store_wait(s->store, &c->waiter);
}

static void post_finished(struct call *c)
{
    (void)c;
}

bool server_post(struct server *s, str path, str body)
{
    auto_arena struct arena a = { 0 };
    struct http_header agent = { S("user-agent"), S("flyball-apiserver") };
    struct request r = { .method = S("POST"), .path = path, .body = body, .query = S("") };
    r.headers = (struct http_headers){ &agent, 1 };
    struct call c = { .server = s, .arena = &a, .request = &r, .finished = post_finished };
    c.user = (struct user){ .name = S("system:apiserver"), .admin = true };
    if (call_route(&c) && c.verb == VERB_CREATE)
        verb_create(&c);
    bool made = c.answer.status == 201;
    buf_done(&c.answer.body);
    vec_done(&c.answer.headers);
    return made;
}

/* ---- opening and closing */

/* What a restart must know: served definitions, owners, terminating namespaces. */
static void load_controllers(struct server *s)
{
    struct tree_cursor c = tree_seek(store_tree(s->store), S(""));
    for (struct object *o; (o = tree_next(&c));) {
        struct event e = { .now = o, .was = NULL };
        for (size_t i = 0; s->controllers[i]; i++)
            if (s->controllers[i]->on_load)
                s->controllers[i]->on_load(s, &e);
    }
}

static void seed(struct server *s, bool fresh)
{
    for (size_t i = 0; s->controllers[i]; i++)
        if (s->controllers[i]->seed)
            s->controllers[i]->seed(s, fresh);
}

int server_new(struct loop *loop, const struct server_options *options, struct server **ret,
               err_t *e)
{
    struct server *s = mem_zero(1, sizeof(*s));
    s->loop = loop;
    s->log_requests = options->log_requests;
    static const struct controller *const none[] = { NULL };
    s->controllers = options->controllers ? options->controllers : none;
    for (size_t i = 0; s->controllers[i]; i++)
        if (s->controllers[i]->start)
            s->controllers[i]->start(s);
    random_init(&s->random, random_seed(), random_seed());
    registry_init(&s->registry);
    struct store_options so = { .path = options->db_path,
                                .history_events = options->history_events,
                                .published = published,
                                .context = s };
    s->writing = (struct work){ run_write, wrote };
    int result = store_open(&so, &s->store, e);
    if (result == 0 && loop && options->db_path)
        result = worker_new(loop, &s->writer, e);
    if (result < 0) {
        server_free(s);
        return result;
    }
    load_controllers(s);
    bool fresh = store_rev(s->store) == 0;
    seed(s, fresh);
    server_settle(s);
    if (fresh)
        store_forget(s->store);
    set_idle_timer(s);
    if (loop)
        timer_set(loop, &s->ticker, loop_mono_ns(loop) + TICK_S * NS_PER_S, tick);
    *ret = s;
    return 0;
}

void server_stop(struct server *s)
{
    s->stopping = true;
    timer_stop(&s->ticker);
    timer_stop(&s->reconcile_timer);
    timer_stop(&s->idle_timer);
    watch_end_all(s, S(""));
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
}

void server_free(struct server *s)
{
    if (!s)
        return;
    worker_free(s->writer); /* first: what comes back may set the others */
    timer_stop(&s->ticker);
    timer_stop(&s->reconcile_timer);
    timer_stop(&s->idle_timer);
    loop_cancel_deferred(&s->commit);
    loop_cancel_deferred(&s->reconcile);
    assert(!s->n_watches);
    map_done(&s->watches);
    free_names(s->newborn.at, s->newborn.n);
    free_names(s->draining.at, s->draining.n);
    free_names(s->crds.at, s->crds.n);
    free_names(s->claims.at, s->claims.n);
    vec_done(&s->newborn);
    vec_done(&s->draining);
    vec_done(&s->crds);
    vec_done(&s->claims);
    for (size_t i = 0; s->controllers[i]; i++)
        if (s->controllers[i]->stop)
            s->controllers[i]->stop(s);
    store_close(s->store);
    registry_done(&s->registry);
    free(s);
}
