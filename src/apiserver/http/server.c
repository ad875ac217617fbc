/* The server: opening it, the path of a call, commits, and controllers.
 *
 * One turn of the loop:
 *
 *     calls run           authenticate, route, authorize, verb; writes are staged in the gathering batch
 *     end of the turn     run_commit(): the batch goes to the writer thread, which waits for the disk
 *     ... other turns     more calls run and stage into the next batch
 *     batch is written    its events are published: watches wake, controllers note what to check;
 *                         the calls that waited are answered; the controllers reconcile, which stages
 *                         the next batch
 *
 * So any number of concurrent writers share one fsync, and no client gets an answer to a write that is not on
 * disk. Reads are answered at once, from the committed state.
 *
 * A single client that writes one object after the other gains nothing from the thread: handing the batch over
 * and back costs as much as the commit itself. can_commit_inline() detects this case and commits on the loop.
 *
 * At most one batch is in flight (`in_flight`). While there is one, the loop does not touch the database.
 * Work that takes longer than a commit (store_tidy) runs when the server has been idle for IDLE_MS.
 *
 * Controllers run after requests, on the same thread; server_run_until_idle() runs both without a loop, for the
 * initial objects at startup and for tests. */
#include "server.h"

#include "../../base/log.h"
#include "access.h"
#include "read.h"
#include "verbs.h"
#include "watch.h"
#include "webhook.h"
#include "write.h"

enum {
    TICK_S = 60,
    EVENT_LIFE_S = 3600,
    EVENTS_MAX = 10000, /* about 10 MB; an hour of a fast clock would have millions */
    RECONCILE_DELAY_MS = 250,
    IDLE_MS = 100,
    RECONCILE_ROUNDS = 100,          /* without a loop: more would be a livelock */
    QUICK_COMMIT_NS = 2 * NS_PER_MS, /* the longest that a commit may block the loop */
};
#define FULL_LOG_PAUSE_NS (60 * NS_PER_S)

/* ---- time and random names */

int64_t server_now_ns(const struct server *s)
{
    if (s->run_now_ns)
        return s->run_now_ns;
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

/* A random UUID (version 4). */
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

/* Runs the slow maintenance of the database while no client writes. */
static void on_idle(struct timer *t)
{
    struct server *s = container_of(t, struct server, idle_timer);
    struct store_batch *b = store_tidy(s->store, true);
    if (!b)
        return; /* nothing to do, or a batch is in flight */
    s->in_flight = b;
    worker_submit(s->writer, &s->writing);
}

static void run_write(struct work *work)
{
    store_batch_write(container_of(work, struct server, writing)->in_flight);
}

/* Once: a store that has failed stays so until a restart. */
static void report_failure(struct server *s)
{
    const err_t *failure = store_failure(s->store);
    if (!failure || s->failure_logged)
        return;
    s->failure_logged = true;
    log_error("store failed: reads continue, writes are refused until a restart",
              KV_C("error", failure->text));
}

/* Once when the disk becomes full and once when it has room again, and at most once a minute: a disk with little room
 * changes often between the two. */
static void report_store(struct server *s)
{
    report_failure(s);
    bool full = store_is_full(s->store);
    int64_t now = clock_mono_ns();
    if (full == s->full_logged ||
        (full && s->full_logged_ns && now - s->full_logged_ns < FULL_LOG_PAUSE_NS))
        return;
    s->full_logged = full;
    if (!full) {
        log_info("disk has room again: all writes are accepted");
        return;
    }
    s->full_logged_ns = now;
    log_warn("disk is full: only deletions and updates that do not grow an object are accepted; "
             "delete objects or make room on the disk");
}

/* Back on the loop after a commit: publishes the batch, answers its calls, and commits what was staged
 * meanwhile. */
static void on_batch_written(struct work *work)
{
    struct server *s = container_of(work, struct server, writing);
    struct store_batch *b = take(s->in_flight);
    if (store_batch_size(b))
        s->commit_ns += (store_batch_took_ns(b) - s->commit_ns) / 4;
    store_finish(s->store, b);
    report_store(s);
    server_commit_soon(s); /* what was staged meanwhile */
    set_idle_timer(s);
}

/* Whether to commit on the loop instead of the writer thread: only if this batch and the one before had a
 * single call each, and commits have been faster than QUICK_COMMIT_NS. Otherwise the loop must stay free to
 * accept calls while the disk works. */
static bool can_commit_inline(struct server *s, const struct store_batch *b)
{
    bool was_crowded = s->had_concurrent_calls;
    s->had_concurrent_calls = s->calls > 1 || store_batch_size(b) > 1;
    s->calls = 0;
    return !store_is_durable(s->store) ||
           (!s->had_concurrent_calls && !was_crowded && s->commit_ns < QUICK_COMMIT_NS);
}

/* Starts a commit at the end of the turn, unless a batch is in flight. Maintenance that cannot wait goes
 * first. */
static void run_commit(struct deferred *d)
{
    struct server *s = container_of(d, struct server, commit);
    struct store_batch *tidying = store_tidy(s->store, false);
    struct store_batch *b = tidying ? tidying : store_flush(s->store);
    if (!b)
        return;
    s->in_flight = b;
    if (!tidying && can_commit_inline(s, b)) {
        run_write(&s->writing);
        on_batch_written(&s->writing);
    } else {
        worker_submit(s->writer, &s->writing);
    }
}

void server_commit_soon(struct server *s)
{
    if (s->loop)
        loop_defer(s->loop, LOOP_COMMIT, &s->commit, run_commit);
}

bool server_is_idle(const struct server *s)
{
    return !s->in_flight;
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

void server_run_until_idle(struct server *s)
{
    assert(!s->loop || !s->in_flight);
    for (int i = 0; i < RECONCILE_ROUNDS; i++) {
        int64_t before = store_next_rev(s->store);
        store_commit(s->store);
        bool changed = reconcile_once(s);
        if (!changed && store_next_rev(s->store) == before)
            return;
    }
}

static void on_published(void *context, const struct event *e, uint64_t sequence)
{
    struct server *s = context;
    watch_on_event(s, e, sequence);
    verb_list_on_event(s, e);
    for (size_t i = 0; s->controllers[i]; i++)
        s->controllers[i]->on_event(s, e);
}

/* Unless it was replaced in the meantime, or is being replaced. */
static void expire_event(struct server *s, struct object *o)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k = kinds_find(S(""), S("v1"), S("events"));
    err_t e;
    if (store_latest(s->store, object_key(o)) == o)
        write_remove(s, &a, k, object_key(o), read_tree(&a, k, o), &e);
}

static int compare_age(const void *a, const void *b)
{
    const struct object *x = *(struct object *const *)a, *y = *(struct object *const *)b;
    return (x->rev > y->rev) - (x->rev < y->rev);
}

/* Events live for an hour of real time: they are read by people, and an hour of a clock at 600 times the speed is
 * six seconds to them. Because such a clock makes many, only the newest EVENTS_MAX are kept. */
void server_expire_events(struct server *s)
{
    str prefix = S("/events/");
    int64_t before = clock_wall_ns() / NS_PER_S - EVENT_LIFE_S; /* the clock of written_s */
    VEC(struct object *) all = { 0 };
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));)
        vec_push(&all, object_ref(o));
    size_t surplus = all.n > EVENTS_MAX ? all.n - EVENTS_MAX : 0;
    if (surplus)
        qsort(all.at, all.n, sizeof(all.at[0]), compare_age);
    for (size_t i = 0; i < all.n; i++) {
        if (i < surplus || all.at[i]->written_s < before)
            expire_event(s, all.at[i]);
        object_unref(all.at[i]);
    }
    vec_done(&all);
}

static void on_tick(struct timer *t)
{
    struct server *s = container_of(t, struct server, ticker);
    server_expire_events(s);
    timer_set(s->loop, &s->ticker, loop_mono_ns(s->loop) + TICK_S * NS_PER_S, on_tick);
}

/* ---- calls */

/* Negotiation of a patch needs the type of the patch first, so verb_patch() does it. */
static void run_verb(struct call *c)
{
    static void (*const verbs[VERB_N])(struct call *) = {
        [VERB_NONE] = pages_serve,
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
    if (c->kind && c->verb != VERB_PATCH && !call_negotiate(c))
        return;
    if (c->kind && c->kind->deprecated)
        call_warn(c, c->kind->deprecation_warning);
    verbs[c->verb](c);
}

static bool is_write(enum verb v)
{
    return v == VERB_CREATE || v == VERB_UPDATE || v == VERB_PATCH || v == VERB_DELETE ||
           v == VERB_DELETECOLLECTION;
}

/* The disk turned out to be full, and a batch fails as a whole. Now that this is known, each call of the batch runs
 * once more: those that need no room, such as deletions, succeed, and the others are refused before they are staged. */
static void on_committed(struct store_waiter *w, int result, const err_t *e)
{
    struct call *c = container_of(w, struct call, waiter);
    if (result == -ENOSPC && !c->ran_again) {
        c->ran_again = true;
        server_resume(c);
        return;
    }
    if (result < 0)
        write_stage_error(c, e);
    server_finish(c);
}

void server_finish(struct call *c)
{
    webhook_release(c);
    c->finished(c);
}

static void run_call(struct call *c)
{
    struct random others;
    if (!is_write(c->verb) && !(c->kind && c->kind->conversion)) {
        run_verb(c);
        return;
    }
    webhook_begin_run(c, &others);
    run_verb(c);
    webhook_end_run(c, &others);
}

/* Answers, unless the call waits for a webhook: then server_resume() comes back here. */
static void finish_call(struct call *c)
{
    if (webhook_is_waiting(c))
        return;
    if (!is_write(c->verb)) {
        server_finish(c);
        return;
    }
    c->waiter.done = on_committed;
    store_wait(c->server->store, &c->waiter);
}

/* The definition of a custom resource may be gone or changed by now, so the path is looked up again. */
void server_resume(struct call *c)
{
    call_discard_answer(c);
    c->managed_by_apply = false;
    c->kind = NULL;
    c->set = NULL;
    if (call_route(c))
        run_call(c);
    finish_call(c);
}

/* Routing comes before authorization, which needs the resource; but its result is only used after it, so
 * that an unauthorized client cannot find out what exists. */
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
        bool found = call_route(c);
        if (call_authorize(c) && found)
            run_call(c);
    }
    finish_call(c);
}

static void ignore_answer(struct call *c)
{
    (void)c;
}

bool server_post(struct server *s, str path, str body)
{
    auto_arena struct arena a = { 0 };
    struct http_header agent = { S("user-agent"), S("flyball-apiserver") };
    struct request r = { .method = S("POST"), .path = path, .body = body, .query = S("") };
    r.headers = (struct http_headers){ &agent, 1 };
    struct call c = { .server = s, .arena = &a, .request = &r, .finished = ignore_answer };
    c.user = (struct user){ .name = S("system:apiserver"), .admin = true };
    if (call_route(&c) && c.verb == VERB_CREATE)
        verb_create(&c);
    bool made = c.answer.status == 201;
    buf_done(&c.answer.body);
    vec_done(&c.answer.headers);
    return made;
}

/* ---- opening and closing */

/* Restores the controllers' indexes from the stored objects: served definitions, owners, terminating
 * namespaces. */
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

static void seed_controllers(struct server *s)
{
    for (size_t i = 0; s->controllers[i]; i++)
        if (s->controllers[i]->seed)
            s->controllers[i]->seed(s);
}

/* History is cleared after the first start: the initial objects are not changes that a client could have
 * missed. */
int server_new(struct loop *loop, const struct server_options *options, struct server **ret,
               err_t *e)
{
    struct server *s = mem_zero(1, sizeof(*s));
    s->loop = loop;
    static const struct server_controller *const none[] = { NULL };
    s->controllers = options->controllers ? options->controllers : none;
    s->no_accounts = options->no_accounts;
    s->allow_all = options->allow_all;
    s->no_anonymous = options->no_anonymous;
    s->service_addresses = options->service_addresses;
    s->issuer = options->issuer;
    for (size_t i = 0; s->controllers[i]; i++)
        if (s->controllers[i]->start)
            s->controllers[i]->start(s);
    random_init(&s->random, random_seed(), random_seed());
    catalog_init(&s->catalog);
    struct store_options so = { .path = options->db_path,
                                .history_events = options->history_events,
                                .published = on_published,
                                .context = s };
    s->writing = (struct work){ run_write, on_batch_written };
    int result = store_open(&so, &s->store, e);
    if (result == 0 && loop && options->db_path)
        result = worker_new(loop, &s->writer, e);
    if (result < 0) {
        server_free(s);
        return result;
    }
    load_controllers(s);
    bool fresh = store_rev(s->store) == 0;
    seed_controllers(s);
    server_run_until_idle(s);
    report_store(s);
    if (fresh && s->controllers[0] && store_rev(s->store) == 0) {
        server_free(s);
        return err_set(e, ENOSPC, "no room for a first start: the disk of %s is full",
                       options->db_path);
    }
    if (fresh)
        store_forget(s->store);
    set_idle_timer(s);
    if (loop)
        timer_set(loop, &s->ticker, loop_mono_ns(loop) + TICK_S * NS_PER_S, on_tick);
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
    worker_free(s->writer); /* first: a finished batch may set the timers below */
    timer_stop(&s->ticker);
    timer_stop(&s->reconcile_timer);
    timer_stop(&s->idle_timer);
    loop_cancel_deferred(&s->commit);
    loop_cancel_deferred(&s->reconcile);
    assert(!s->n_watches);
    map_done(&s->watches);
    admission_free(s->admission);
    webhook_free(s);
    set_done(&s->conversions);
    free_names(s->new_namespaces.at, s->new_namespaces.n);
    free_names(s->terminating_namespaces.at, s->terminating_namespaces.n);
    free_names(s->changed_definitions.at, s->changed_definitions.n);
    free_names(s->changed_claims.at, s->changed_claims.n);
    vec_done(&s->new_namespaces);
    vec_done(&s->terminating_namespaces);
    vec_done(&s->changed_definitions);
    vec_done(&s->changed_claims);
    for (size_t i = 0; s->controllers[i]; i++)
        if (s->controllers[i]->stop)
            s->controllers[i]->stop(s);
    store_close(s->store);
    catalog_done(&s->catalog);
    free(s);
}
