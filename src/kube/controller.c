/* Controllers: from cache changes to keys, from keys to turns, from turns to writes. How a feature uses
 * one is in controller.h.
 *
 * The problem. Changes come in bursts and out of order, writes take a round trip each, and everything runs
 * on one thread. A controller must look at every object that changed, never work on one object twice at
 * the same time, never overtake its own writes, and not let one failing object delay the others.
 *
 *     cache handler --> map or field --> key --+
 *                                              v
 *     backlog (start, resync) ----------->  workqueue  --take-->  turn: reconcile()
 *                                              ^                    |  calls in flight
 *                                              |                    v
 *                                              +-- retry, after --  last call answered
 *
 * A turn is one call of reconcile() plus the API calls it asked for. It ends when reconcile() has returned
 * and the last call was answered; only then can its key be taken from the queue again. At most
 * `spec.workers` turns run at once.
 *
 * Invariants:
 *   - one turn per key at a time (workqueue.c: a key that is added while it is worked on is remembered and
 *     given out once after the turn);
 *   - a turn ends exactly once, in turn_end(), and never while reconcile() or one of its callbacks is on
 *     the stack (`running`), because a callback may ask for more calls;
 *   - before controller_start() changes are ignored: the start looks at every record anyway, exactly as
 *     after a restart.
 *
 * The backlog. A start or a resync concerns every record of a cache. Adding 100,000 keys to the queue at
 * once would take 15 MB, so the records (8 bytes each, one reference) go into a backlog and are fed to the
 * queue 256 at a time, whenever it has no ready key and a worker is free. Changes that arrive meanwhile
 * are added directly and are therefore served before the rest of the backlog.
 *
 * Failures. A failed turn goes back to the queue with its own backoff (workqueue.c) and is logged through
 * complaints.c, which keeps an outage from flooding the log. When the API server answers again after an
 * outage, all keys that wait because of a failure become ready at once; reconcile_fail_call() sees to it that the
 * client notices soon.
 *
 * Ownership: the controller owns its turns, sources and queue. Finished turns are kept on a free list
 * together with their arenas, so a steady state allocates nothing. What reconcile() allocates in its arena
 * lives until the turn ends. */
#include "controller.h"

#include "../base/vec.h"
#include "complaints.h"
#include "controller_metrics.h"

enum {
    FEED_KEYS = 256,
    WORKERS = 32,
    TURNS_AT_ONCE = 16, /* then answers are read, or they would seem to have taken longer */
    CROWD = 32,         /* keys */
};
static const int64_t overload_most_ns = 15 * NS_PER_S; /* between retries */

struct turn {
    struct reconcile r;    /* must be first: features hold a pointer to it */
    struct list_item item; /* of running or of spare turns */
    struct work_key *key;
    struct arena arena;
    struct list calls;   /* struct turn_call: not answered yet */
    bool running;        /* reconcile() or a callback is on the stack */
    bool abandoned;      /* no more callbacks */
    int64_t after_ns;    /* requeue after this long; 0: not requested */
    bool is_later;       /* another turn when nothing else is to be done */
    const char *failure; /* in the arena; NULL: success so far */
    bool is_overloaded;  /* the failure is the server's, which is not away */
    bool is_superseded;  /* a call was not sent because the key was added again: not a failure */
};

struct turn_call {
    struct turn *turn;
    struct list_item item;
    struct kube_call *call;
    struct tracer_span span;
    enum kube_verb verb;
    str resource, subresource; /* of the request; empty if it is not traced */
    void (*then)(struct reconcile *r, const struct kube_reply *reply);
};

struct source { /* a cache whose changes become keys */
    struct controller *c;
    struct cache *cache;
    controller_map_fn *map; /* NULL: use `offset` */
    size_t offset;          /* of the str field with the name; SIZE_MAX: the object's own key */
    VEC(struct record *) backlog; /* records to add as keys; one reference each */
    struct source *next;
};

struct controller {
    struct controller_spec spec;
    struct kube *kube;
    struct loop *loop;
    struct workqueue queue;
    struct source *sources;   /* newest first: the last one is the primary cache */
    struct list turns, spare; /* struct turn: running, and to be used again */
    bool started;
    void (*drained)(void *context); /* controller_drain(); NULL: not called */
    void *drained_context;
    struct deferred pump;
    struct timer wake, resync;
    struct controller_metrics *metrics;
    struct complaints complaints;
    struct kube_recovery recovery;
};

static void run_ready_keys(struct controller *c);

static void on_run_deferred(struct deferred *deferred)
{
    run_ready_keys(container_of(deferred, struct controller, pump));
}

static void schedule_run(struct controller *c)
{
    if (c->started)
        loop_defer(c->loop, LOOP_SOON, &c->pump, on_run_deferred);
}

/* ---- keys */

void controller_add(struct controller *c, str ns, str name)
{
    workqueue_add(&c->queue, ns, name, loop_mono_ns(c->loop));
    schedule_run(c);
}

void controller_add_after(struct controller *c, str ns, str name, int64_t after_ns)
{
    int64_t now = loop_mono_ns(c->loop);
    workqueue_add_at(&c->queue, ns, name, now + after_ns, now);
    schedule_run(c);
}

/* The key is the object itself, or the object in the same namespace that one of its fields names. */
static void add_by_field(struct source *w, const struct record *r)
{
    if (!r)
        return;
    if (w->offset == SIZE_MAX) {
        controller_add(w->c, r->ns, r->name);
        return;
    }
    str name = record_text(r, w->offset);
    if (name.n)
        controller_add(w->c, r->ns, name);
}

/* Old and new state are both mapped: a change of owner concerns the old owner as well. */
static void on_cache_change(void *context, const struct record *old, const struct record *now)
{
    struct source *w = context;
    if (!w->c->started)
        return;
    if (w->map) {
        w->map(w->c, old, now);
        return;
    }
    add_by_field(w, old);
    add_by_field(w, now);
}

static void backlog_fill(struct source *w)
{
    const struct record *r;
    cache_each(r, w->cache)
        vec_push(&w->backlog, record_ref(r));
}

static void backlog_clear(struct source *w)
{
    for (size_t i = 0; i < w->backlog.n; i++)
        record_unref(w->backlog.at[i]);
    vec_done(&w->backlog);
}

static bool has_backlog(const struct controller *c)
{
    const struct source *w = c->sources;
    while (w && !w->backlog.n)
        w = w->next;
    return w != NULL;
}

/* Adds the next FEED_KEYS records of the backlog to the queue. False: the backlog is empty. */
static bool backlog_feed(struct controller *c)
{
    struct source *w = c->sources;
    while (w && !w->backlog.n)
        w = w->next;
    if (!w)
        return false;
    for (size_t i = 0; i < FEED_KEYS && w->backlog.n; i++) {
        struct record *r = w->backlog.at[--w->backlog.n];
        on_cache_change(w, NULL, r);
        record_unref(r);
    }
    if (!w->backlog.n)
        backlog_clear(w);
    return true;
}

static void add_source(struct controller *c, const struct source *wanted)
{
    struct source *w = mem_zero(1, sizeof(*w));
    *w = *wanted;
    w->c = c;
    w->next = c->sources;
    c->sources = w;
    cache_handle(w->cache, on_cache_change, w);
    if (c->started)
        backlog_fill(w);
}

void controller_watch(struct controller *c, struct cache *cache, controller_map_fn *map)
{
    add_source(c, &(struct source){ .cache = cache, .map = map, .offset = SIZE_MAX });
}

void controller_watch_by(struct controller *c, struct cache *cache, size_t offset)
{
    add_source(c, &(struct source){ .cache = cache, .offset = offset });
}

void *controller_context(const struct controller *c)
{
    return c->spec.context;
}

static void resync_set(struct controller *c);

static void resync_fired(struct timer *timer)
{
    struct controller *c = container_of(timer, struct controller, resync);
    struct source *first = c->sources;
    while (first->next)
        first = first->next;
    backlog_fill(first);
    resync_set(c);
    schedule_run(c);
}

static void resync_set(struct controller *c)
{
    if (c->sources)
        timer_set(c->loop, &c->resync, loop_mono_ns(c->loop) + c->spec.resync_ns, resync_fired);
}

/* ---- turns */

/* Copies the key's names: the key may be freed by the queue before the turn's last log line. */
static struct turn *turn_new(struct controller *c, struct work_key *key)
{
    struct turn *t = list_first(&c->spare, struct turn, item);
    if (t)
        list_remove(&t->item);
    else
        t = mem_zero(1, sizeof(*t));
    *t = (struct turn){ .key = key, .arena = t->arena };
    list_append(&c->turns, &t->item);
    t->r = (struct reconcile){ .ns = arena_str(&t->arena, key->ns),
                               .name = arena_str(&t->arena, key->name),
                               .now_ns = loop_wall_ns(c->loop),
                               .arena = &t->arena,
                               .context = c->spec.context,
                               .controller = c,
                               .span = tracer_begin(kube_tracer(c->kube), NULL) };
    return t;
}

static void turn_recycle(struct controller *c, struct turn *t)
{
    arena_reset(&t->arena, (struct arena_mark){ 0 });
    list_remove(&t->item);
    list_prepend(&c->spare, &t->item); /* the next turn finds its memory in the CPU's caches */
}

static void trace_turn(const struct controller *c, const struct turn *t, enum turn_result result)
{
    static const char *const words[] = { "success", "error", "requeue_after" };
    const struct tracer_attribute at[] = { { "controller", str_c(c->spec.name), 0 },
                                           { "k8s.namespace.name", t->r.ns, 0 },
                                           { "object.name", t->r.name, 0 },
                                           { "result", str_c(words[result]), 0 } };
    reconcile_traced(&t->r, &t->r.span,
                     &(struct tracer_result){ "reconcile", at, countof(at), str_c(t->failure) });
}

/* Reports the result, hands the key back to the queue (done, retry or requeue) and recycles the turn. */
static void turn_end(struct controller *c, struct turn *t)
{
    int64_t now = loop_mono_ns(c->loop);
    enum turn_result result = t->failure ? TURN_ERROR : t->after_ns ? TURN_AGAIN : TURN_SUCCESS;
    controller_metrics_turn(c->metrics, result, now - t->key->started_ns);
    trace_turn(c, t, result);
    if (t->failure) {
        int64_t at = t->is_overloaded
                         ? workqueue_retry_within(&c->queue, t->key, overload_most_ns, now)
                         : workqueue_retry(&c->queue, t->key, now);
        complaints_log(&c->complaints, &(struct complaint){ .message = "reconcile failed",
                                                            .ns = t->r.ns,
                                                            .name = t->r.name,
                                                            .error = t->failure,
                                                            .retry_ms = (at - now) / NS_PER_MS });
    } else if (t->is_later) {
        workqueue_finish_later(&c->queue, t->key, now);
    } else {
        workqueue_finish(&c->queue, t->key, now);
    }
    if (t->after_ns && !t->failure)
        workqueue_add_at(&c->queue, t->r.ns, t->r.name, now + t->after_ns, now);
    turn_recycle(c, t);
    schedule_run(c);
    if (!c->turns.n && c->drained)
        c->drained(c->drained_context);
}

static void turn_end_if_complete(struct controller *c, struct turn *t)
{
    if (!t->running && !t->calls.n)
        turn_end(c, t);
}

static void turn_start(struct controller *c, struct work_key *key)
{
    controller_metrics_wait(c->metrics, key->started_ns - key->ready_ns);
    struct turn *t = turn_new(c, key);
    t->running = true;
    struct reconciled result = c->spec.reconcile(&t->r);
    t->running = false;
    if (result.failure)
        reconcile_fail(&t->r, result.failure);
    if (result.after_ns)
        reconcile_again(&t->r, result.after_ns);
    turn_end_if_complete(c, t);
}

static void wake_fired(struct timer *timer)
{
    run_ready_keys(container_of(timer, struct controller, wake));
}

/* Starts turns until the workers are busy or there is nothing to do, then sets the timer for the next key
 * that becomes ready by itself. */
static void run_ready_keys(struct controller *c)
{
    struct work_key *key;
    int64_t now = loop_mono_ns(c->loop);
    size_t workers = (size_t)c->spec.workers, turns = 0;
    while (c->started && c->turns.n < workers && turns < TURNS_AT_ONCE) {
        if ((key = workqueue_take(&c->queue, now)) ||
            (c->turns.n <= workers / 2 && !has_backlog(c) &&
             (key = workqueue_take_later(&c->queue, now)))) {
            turn_start(c, key);
            turns++;
        } else if (!backlog_feed(c)) {
            break;
        }
    }
    int64_t wake = workqueue_wake(&c->queue, now);
    if (c->started && turns == TURNS_AT_ONCE)
        timer_set(c->loop, &c->wake, now, wake_fired);
    else if (c->started && wake > now && wake != INT64_MAX)
        timer_set(c->loop, &c->wake, wake, wake_fired);
    else
        timer_stop(&c->wake);
}

/* At most `workers` turns are running, so a search is cheap; deletions are rare. */
void controller_abandon(struct controller *c, str ns, str name)
{
    list_each(struct turn, t, &c->turns, item)
        t->abandoned |= str_eq(t->r.name, name) && str_eq(t->r.ns, ns);
}

/* ---- the interface for reconcile() */

void reconcile_fail(struct reconcile *r, const char *failure)
{
    struct turn *t = (struct turn *)r;
    if (!t->failure && !t->is_superseded)
        t->failure = arena_str(&t->arena, str_c(failure)).p;
}

void reconcile_fail_call(struct reconcile *r, const struct kube_reply *reply)
{
    struct turn *t = (struct turn *)r;
    if (!t->failure && kube_is_server_failure(reply))
        t->is_overloaded = !kube_probe(r->controller->kube);
    reconcile_fail(r, reply->failure);
}

void reconcile_warn(struct reconcile *r, const char *message, const char *error)
{
    complaints_log(&r->controller->complaints, &(struct complaint){ .message = message,
                                                                    .ns = r->ns,
                                                                    .name = r->name,
                                                                    .error = error,
                                                                    .retry_ms = -1 });
}

void reconcile_again(struct reconcile *r, int64_t after_ns)
{
    struct turn *t = (struct turn *)r;
    if (after_ns > 0 && (!t->after_ns || after_ns < t->after_ns))
        t->after_ns = after_ns;
}

bool reconcile_is_crowded(const struct reconcile *r)
{
    return r->controller->queue.ready.n + r->controller->turns.n > CROWD;
}

void reconcile_later(struct reconcile *r)
{
    ((struct turn *)r)->is_later = true;
}

struct tracer_span reconcile_trace(const struct reconcile *r)
{
    return r->span.id ? tracer_begin(kube_tracer(r->controller->kube), &r->span)
                      : (struct tracer_span){ 0 };
}

void reconcile_traced(const struct reconcile *r, const struct tracer_span *step,
                      const struct tracer_result *result)
{
    if (step->id)
        tracer_end(kube_tracer(r->controller->kube), step, result);
}

static void trace_call(const struct turn_call *call, const struct kube_reply *reply)
{
    static const char *const verbs[KUBE_VERB_N] = { "get",   "list",  "watch", "create", "update",
                                                    "patch", "patch", "patch", "apply",  "delete" };
    const struct tracer_attribute at[] = { { "k8s.verb", str_c(verbs[call->verb]), 0 },
                                           { "k8s.resource", call->resource, 0 },
                                           { "k8s.subresource", call->subresource, 0 } };
    reconcile_traced(&call->turn->r, &call->span,
                     &(struct tracer_result){ call->verb <= KUBE_WATCH ? "read" : "actuate", at,
                                              countof(at), str_c(reply->failure) });
}

/* One call of a turn was answered. `then` may ask for more calls, so the turn is marked as running. */
static void on_call_reply(void *context, const struct kube_reply *reply)
{
    struct turn_call *call = context;
    struct turn *t = call->turn;
    list_remove(&call->item);
    trace_call(call, reply);
    t->running = true;
    t->is_superseded = reply->reason == KUBE_SUPERSEDED;
    if (call->then && !t->abandoned)
        call->then(&t->r, reply);
    else if (reply->failure && !t->abandoned)
        reconcile_fail_call(&t->r, reply);
    t->running = t->is_superseded = false;
    turn_end_if_complete(t->r.controller, t);
}

/* A decision that waits, or its status, is made again by the next turn of its key if one is due already, and takes its
 * place in the queue. A key that is added all the time is still written sometimes. */
static bool is_call_stale(void *context)
{
    enum { SKIPPED_MAX = 3 };
    struct work_key *key = ((struct turn_call *)context)->turn->key;
    if (!key->again || key->skipped >= SKIPPED_MAX) {
        key->skipped = 0;
        return false;
    }
    key->skipped++;
    return true;
}

void reconcile_call(struct reconcile *r, const struct kube_request *request,
                    void (*then)(struct reconcile *r, const struct kube_reply *reply))
{
    struct turn *t = (struct turn *)r;
    struct turn_call *call = arena_new(&t->arena, struct turn_call);
    *call = (struct turn_call){
        .turn = t, .then = then, .span = reconcile_trace(r), .verb = request->verb
    };
    if (call->span.id) {
        call->resource =
            arena_str(r->arena, str_c(request->resource ? request->resource->plural : NULL));
        call->subresource = arena_str(r->arena, str_c(request->subresource));
    }
    list_append(&t->calls, &call->item);
    struct kube_request copy = *request;
    copy.done = on_call_reply, copy.context = call;
    copy.owner = r->controller;
    bool is_status = copy.subresource && !strcmp(copy.subresource, "status");
    copy.is_stale = is_status || copy.is_decision ? is_call_stale : NULL;
    copy.replaces = t->key->skipped > 0;
    call->call = kube_send(r->controller->kube, &copy);
}

/* ---- life */

static void on_server_recovered(struct kube_recovery *recovery)
{
    struct controller *c = container_of(recovery, struct controller, recovery);
    workqueue_retry_now(&c->queue, loop_mono_ns(c->loop));
    schedule_run(c);
}

struct controller *controller_new(struct kube *k, const struct controller_spec *spec)
{
    struct controller *c = mem_zero(1, sizeof(*c));
    c->spec = *spec;
    c->kube = k;
    c->loop = kube_loop(k);
    if (!c->spec.workers)
        c->spec.workers = WORKERS;
    if (!c->spec.resync_ns)
        c->spec.resync_ns = 36000 * NS_PER_S;
    workqueue_init(&c->queue);
    complaints_init(&c->complaints, c->loop, c->spec.name);
    c->recovery.recovered = on_server_recovered;
    kube_on_recovery(k, &c->recovery);
    c->metrics = controller_metrics_new(kube_metrics(k), c, c->spec.workers);
    return c;
}

void controller_start(struct controller *c)
{
    c->started = true;
    for (struct source *w = c->sources; w; w = w->next)
        backlog_fill(w);
    resync_set(c);
    schedule_run(c);
}

void controller_stop(struct controller *c)
{
    c->started = false;
    for (struct source *w = c->sources; w; w = w->next)
        backlog_clear(w);
    timer_stop(&c->wake);
    timer_stop(&c->resync);
    loop_cancel_deferred(&c->pump);
}

void controller_drain(struct controller *c, void (*drained)(void *context), void *context)
{
    controller_stop(c);
    c->drained = drained;
    c->drained_context = context;
}

size_t controller_turns(const struct controller *c)
{
    return c->turns.n;
}

static void turns_free(struct list *turns)
{
    for (struct turn *t; (t = list_first(turns, struct turn, item));) {
        list_remove(&t->item);
        list_each(struct turn_call, call, &t->calls, item)
            kube_call_cancel(call->call);
        arena_done(&t->arena);
        free(t);
    }
}

void controller_free(struct controller *c)
{
    if (!c)
        return;
    controller_stop(c);
    turns_free(&c->turns);
    turns_free(&c->spare);
    for (struct source *w = c->sources, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    kube_off_recovery(&c->recovery);
    complaints_done(&c->complaints);
    controller_metrics_free(c->metrics);
    workqueue_done(&c->queue);
    free(c);
}

const char *controller_name(const struct controller *c)
{
    return c->spec.name;
}

const struct workqueue *controller_queue(const struct controller *c)
{
    return &c->queue;
}

int64_t controller_now_ns(const struct controller *c)
{
    return loop_mono_ns(c->loop);
}
