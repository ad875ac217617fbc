/* A controller: caches -> keys -> reconcile() -> writes.
 *
 * A complete one:
 *
 *     struct widget { struct record meta; int64_t size, ready; };
 *     static const struct field widget_fields[] = {
 *         { "spec.size", F_INT, offsetof(struct widget, size), .otherwise = 1 },
 *         { "status.ready", F_INT, offsetof(struct widget, ready) },
 *     };
 *     static const struct cache_spec widgets = { .resource = &widget_resource,
 *                                                .keep = FIELDS(struct widget, widget_fields) };
 *
 *     static struct reconciled reconcile(struct reconcile *r)
 *     {
 *         struct state *state = r->context;
 *         const struct widget *w = cache_get(state->widgets, r->ns, r->name);
 *         if (!w || w->ready == w->size)
 *             return reconciled();
 *         struct json *status = json_new_obj(r->arena);
 *         json_set_int(r->arena, status, "ready", w->size);
 *         reconcile_status(r, &widget_resource, status);
 *         return reconciled();
 *     }
 *
 *     static int start(struct manager *m, void **ret_state, err_t *e)
 *     {
 *         struct state *s = mem_zero(1, sizeof(*s));
 *         *ret_state = s;
 *         if (manager_cache(m, &widgets, &s->widgets, e) < 0)
 *             return -e->code;
 *         struct controller *c = manager_controller(m, &(struct controller_spec){
 *             .name = "widget", .reconcile = reconcile, .context = s });
 *         controller_watch(c, s->widgets, NULL);
 *         return 0;
 *     }
 *
 * reconcile() is called once all watched caches are synced, one turn per key at a time. It reads caches,
 * decides, requests writes and returns; it does not block. The turn ends when every write it requested
 * was answered. Only then can the same key run again, so a controller never overtakes its own writes. If
 * a write fails, the key is retried with backoff (a 404 on a patch is often fine: use reconcile_call() to
 * see the reply and decide). */
#ifndef FLYBALL_KUBE_CONTROLLER_H
#define FLYBALL_KUBE_CONTROLLER_H

#include "cache.h"
#include "client.h"
#include "tracer.h"
#include "workqueue.h"

struct controller;
struct manager;

/* One turn on one key. */
struct reconcile {
    str ns, name;
    int64_t now_ns;      /* wall clock at the start of the turn */
    struct arena *arena; /* scratch; lives until the turn ends */
    void *context;       /* of the controller */
    struct controller *controller;
    struct tracer_span span; /* of the turn; its calls are children of it */
    void *turn; /* what reconcile() leaves for the callbacks of its calls, usually in the arena */
};

struct reconciled {
    int64_t after_ns;    /* requeue after this long at the latest; 0: on the next change */
    const char *failure; /* retry with backoff; in the arena. NULL: success */
};

static inline struct reconciled reconciled(void) /* nothing left to do */
{
    return (struct reconciled){ 0 };
}

static inline struct reconciled reconciled_after(int64_t ns) /* requeue after `ns` */
{
    return (struct reconciled){ .after_ns = ns };
}

struct reconciled reconciled_failed(struct reconcile *r, const char *format, ...) PRINTF_LIKE(2, 3);

struct controller_spec {
    const char *name; /* in metrics and logs */
    struct reconciled (*reconcile)(struct reconcile *r);
    void *context;
    int64_t resync_ns; /* how often every key of the first watched cache is requeued; 0: 10 h */
    int workers;       /* concurrent turns; 0: 32. What they send is limited by the client */
};

/* ---- from changes to keys */

/* Calls controller_add() for each key that a change affects. `old` NULL: added; `now` NULL: deleted. */
typedef void controller_map_fn(struct controller *c, const struct record *old,
                               const struct record *now);

void controller_watch(struct controller *c, struct cache *cache, controller_map_fn *map);
/* The key is the object's namespace and the text of one of its fields (an owner's name, a target's
 * name): `offset` of a str field. An empty text adds no key. */
void controller_watch_by(struct controller *c, struct cache *cache, size_t offset);
void *controller_context(const struct controller *c);

void controller_add(struct controller *c, str ns, str name);
void controller_add_after(struct controller *c, str ns, str name, int64_t after_ns);
/* The object of this key is gone, and with it what `turn` of a turn in progress refers to: callbacks of its calls are
 * not called any more. The turn still ends when they are answered. */
void controller_abandon(struct controller *c, str ns, str name);

/* The path of the name (or uid) of the controlling owner, for struct field. */
#define OWNER_NAME "metadata.ownerReferences[controller=true].name"
#define OWNER_KIND "metadata.ownerReferences[controller=true].kind"
#define OWNER_UID "metadata.ownerReferences[controller=true].uid"

/* ---- API calls of a turn. `done` and `context` of the request are ignored. */

void reconcile_send(struct reconcile *r, const struct kube_request *request);
/* `then` gets the reply, may make more calls and may fail the turn with reconcile_fail(). An error reply
 * does not fail the turn by itself. Works for reads as well. */
void reconcile_call(struct reconcile *r, const struct kube_request *request,
                    void (*then)(struct reconcile *r, const struct kube_reply *reply));
void reconcile_fail(struct reconcile *r, const char *failure); /* copied; the first one wins */
/* The same for a failed call, and the one policy for a server that is away: the key is retried with backoff, at most 15 s
 * apart if the server is overloaded, and at once when a server that was away is back (kube_probe()). */
void reconcile_fail_call(struct reconcile *r, const struct kube_reply *reply);
/* Logs a warning with the key; complaints.h limits how many lines alike are logged. */
void reconcile_warn(struct reconcile *r, const char *message, const char *error);
void reconcile_again(struct reconcile *r, int64_t after_ns); /* the earliest one wins */
/* Are many keys being worked on or ready? Then what users do not notice can wait: reconcile_later(). */
bool reconcile_is_crowded(const struct reconcile *r);
/* Another turn of this key when no other key is ready. A failure of this turn takes precedence. */
void reconcile_later(struct reconcile *r);

/* A step of the turn, such as `decide`, as a span: see tracer.h. */
struct tracer_span reconcile_trace(const struct reconcile *r);
void reconcile_traced(const struct reconcile *r, const struct tracer_span *step,
                      const struct tracer_result *result);

/* Merge patch of the status of the key's object, which must exist; unconditional. */
void reconcile_status(struct reconcile *r, const struct resource *resource, struct json *status);
void reconcile_status_then(struct reconcile *r, const struct resource *resource,
                           struct json *status,
                           void (*then)(struct reconcile *r, const struct kube_reply *reply));
/* Server-side apply of a child: `object` has metadata.name, and metadata.namespace unless it is the
 * key's; apiVersion and kind are added. */
void reconcile_apply(struct reconcile *r, const struct resource *resource, struct json *object);

/* ---- lifecycle, for the manager and for tests */

struct controller *controller_new(struct kube *k, const struct controller_spec *spec);
void controller_start(struct controller *c); /* adds every record of the watched caches */
void controller_stop(struct controller *c);  /* no new turns */
/* The same, and calls `drained` when the last running turn ends; not if none is running. It must not free the
 * controller. */
void controller_drain(struct controller *c, void (*drained)(void *context), void *context);
size_t controller_turns(const struct controller *c); /* running now */
void controller_free(struct controller *c);          /* running turns are cancelled */

const char *controller_name(const struct controller *c);
const struct workqueue *controller_queue(const struct controller *c);
int64_t controller_now_ns(const struct controller *c); /* of the queue's clock */

#endif
