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
 * outage, all keys that wait because of a failure become ready at once.
 *
 * Ownership: the controller owns its turns, sources and queue. Finished turns are kept on a free list
 * together with their arenas, so a steady state allocates nothing. What reconcile() allocates in its arena
 * lives until the turn ends. */
#include "controller.h"

#include "../base/vec.h"
#include "complaints.h"
#include "controller_metrics.h"

#include <stdarg.h>
#include <stdio.h>

enum { FEED_KEYS = 256 };

struct turn {
    struct reconcile r; /* must be first: features hold a pointer to it */
    struct turn *next;  /* in the list of running or of spare turns */
    struct work_key *key;
    struct arena arena;
    struct turn_call *calls; /* not on_call_reply yet */
    bool running;            /* reconcile() or a callback is on the stack */
    int64_t after_ns;        /* requeue after this long; 0: not requested */
    const char *failure;     /* in the arena; NULL: success so far */
};

struct turn_call {
    struct turn *turn;
    struct turn_call *next;
    struct kube_call *call;
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
    struct source *sources; /* newest first: the last one is the primary cache */
    struct turn *turns, *spare;
    int turn_count;
    bool started;
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
    str name = *(const str *)(const void *)((const char *)r + w->offset);
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
    struct turn *t = c->spare;
    if (t)
        c->spare = t->next;
    else
        t = mem_zero(1, sizeof(*t));
    *t = (struct turn){ .key = key, .arena = t->arena, .next = c->turns };
    c->turns = t;
    c->turn_count++;
    t->r = (struct reconcile){ .ns = arena_str(&t->arena, key->ns),
                               .name = arena_str(&t->arena, key->name),
                               .now_ns = loop_wall_ns(c->loop),
                               .arena = &t->arena,
                               .context = c->spec.context,
                               .controller = c };
    return t;
}

static void turn_recycle(struct controller *c, struct turn *t)
{
    struct turn **at = &c->turns;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    arena_reset(&t->arena, (struct arena_mark){ 0 });
    t->next = c->spare;
    c->spare = t;
    c->turn_count--;
}

/* Reports the result, hands the key back to the queue (done, retry or requeue) and recycles the turn. */
static void turn_end(struct controller *c, struct turn *t)
{
    int64_t now = loop_mono_ns(c->loop);
    enum turn_result result = t->failure ? TURN_ERROR : t->after_ns ? TURN_AGAIN : TURN_SUCCESS;
    controller_metrics_turn(c->metrics, result, now - t->key->started_ns);
    if (t->failure) {
        int64_t at = workqueue_retry(&c->queue, t->key, now);
        complaints_log(&c->complaints, &(struct complaint){ .message = "reconcile failed",
                                                            .ns = t->r.ns,
                                                            .name = t->r.name,
                                                            .error = t->failure,
                                                            .retry_ms = (at - now) / NS_PER_MS });
    } else {
        workqueue_finish(&c->queue, t->key, now);
    }
    if (t->after_ns && !t->failure)
        workqueue_add_at(&c->queue, t->r.ns, t->r.name, now + t->after_ns, now);
    turn_recycle(c, t);
    schedule_run(c);
}

static void turn_end_if_complete(struct controller *c, struct turn *t)
{
    if (!t->running && !t->calls)
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
    while (c->started && c->turn_count < c->spec.workers) {
        if ((key = workqueue_take(&c->queue, now)))
            turn_start(c, key);
        else if (!backlog_feed(c))
            break;
    }
    int64_t wake = workqueue_wake(&c->queue, now);
    if (c->started && wake > now && wake != INT64_MAX)
        timer_set(c->loop, &c->wake, wake, wake_fired);
    else
        timer_stop(&c->wake);
}

/* ---- the interface for reconcile() */

struct reconciled reconciled_failed(struct reconcile *r, const char *format, ...)
{
    char text[500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return (struct reconciled){ .failure = arena_str(r->arena, str_c(text)).p };
}

void reconcile_fail(struct reconcile *r, const char *failure)
{
    struct turn *t = (struct turn *)r;
    if (!t->failure)
        t->failure = arena_str(&t->arena, str_c(failure)).p;
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

/* One call of a turn was answered. `then` may ask for more calls, so the turn is marked as running. */
static void on_call_reply(void *context, const struct kube_reply *reply)
{
    struct turn_call *call = context;
    struct turn *t = call->turn;
    struct turn_call **at = &t->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    t->running = true;
    if (call->then)
        call->then(&t->r, reply);
    else if (reply->failure)
        reconcile_fail(&t->r, reply->failure);
    t->running = false;
    turn_end_if_complete(t->r.controller, t);
}

void reconcile_call(struct reconcile *r, const struct kube_request *request,
                    void (*then)(struct reconcile *r, const struct kube_reply *reply))
{
    struct turn *t = (struct turn *)r;
    struct turn_call *call = arena_new(&t->arena, struct turn_call);
    *call = (struct turn_call){ .turn = t, .next = t->calls, .then = then };
    t->calls = call;
    struct kube_request copy = *request;
    copy.done = on_call_reply;
    copy.context = call;
    call->call = kube_send(r->controller->kube, &copy);
}

void reconcile_send(struct reconcile *r, const struct kube_request *request)
{
    reconcile_call(r, request, NULL);
}

void reconcile_status(struct reconcile *r, const struct resource *resource, struct json *status)
{
    reconcile_send(r, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                              .resource = resource,
                                              .ns = r->ns,
                                              .name = r->name,
                                              .subresource = "status",
                                              .body = kube_status_body(r->arena, status) });
}

void reconcile_apply(struct reconcile *r, const struct resource *resource, struct json *object)
{
    auto_buf struct buf version = { 0 };
    resource_api_version(resource, &version);
    json_set_str(r->arena, object, "apiVersion", buf_str(&version));
    json_set_str(r->arena, object, "kind", str_c(resource->kind));
    struct json *meta = json_make(r->arena, object, "metadata", NULL);
    if (resource->namespaced && !json_get(meta, "namespace"))
        json_set_str(r->arena, meta, "namespace", r->ns);
    reconcile_send(r, &(struct kube_request){ .verb = KUBE_APPLY,
                                              .resource = resource,
                                              .ns = json_text(json_get(meta, "namespace")),
                                              .name = json_text(json_get(meta, "name")),
                                              .body = json_to_str(r->arena, object) });
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
        c->spec.workers = 4;
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

size_t controller_turns(const struct controller *c)
{
    return (size_t)c->turn_count;
}

static void turns_free(struct turn *t)
{
    for (struct turn *next; t; t = next) {
        next = t->next;
        for (struct turn_call *call = t->calls; call; call = call->next)
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
    turns_free(c->turns);
    turns_free(c->spare);
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
