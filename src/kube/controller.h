/* A controller: caches -> keys -> reconcile() -> writes.
 *
 * A whole one:
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
 * reconcile() is called with all watched caches synced, one turn at a time for each key. It reads
 * caches, decides, asks for writes and returns; it does not wait. The turn is over when every write it
 * asked for was answered: only then can the same key come again, so a controller never overtakes its
 * own writes. If one failed, the key is retried with backoff (a 404 of something we patch is often
 * fine: use reconcile_call() to see the answer and decide). */
#ifndef FLYBALL_KUBE_CONTROLLER_H
#define FLYBALL_KUBE_CONTROLLER_H

#include "cache.h"
#include "client.h"
#include "workqueue.h"

struct controller;
struct manager;

/* One turn on one key. */
struct reconcile {
    str ns, name;
    int64_t now_ns;      /* wall clock; the same through the turn */
    struct arena *arena; /* scratch; lives until the turn is over */
    void *context;       /* of the controller */
    struct controller *controller;
};

struct reconciled {
    int64_t after_ns;    /* again after this long at the latest; 0: when something changes */
    const char *failure; /* retry with backoff; lives in the arena */
};

static inline struct reconciled reconciled(void) /* all is as it should be */
{
    return (struct reconciled){ 0 };
}

static inline struct reconciled reconciled_after(int64_t ns) /* look again then */
{
    return (struct reconciled){ .after_ns = ns };
}

struct reconciled reconciled_failed(struct reconcile *r, const char *format, ...) PRINTF_LIKE(2, 3);

struct controller_spec {
    const char *name; /* of metrics and logs */
    struct reconciled (*reconcile)(struct reconcile *r);
    void *context;
    int64_t resync_ns; /* every key of the first watched cache again this often; 0: 10 h */
    int workers;       /* turns under way at once; 0: 4 */
};

/* ---- what leads to a key */

/* Which keys a change concerns: calls controller_add() for each. `old` NULL: added; `now` NULL:
 * deleted. */
typedef void controller_map_fn(struct controller *c, const struct record *old,
                               const struct record *now);

void controller_watch(struct controller *c, struct cache *cache, controller_map_fn *map);
/* The key is the object's namespace and the text of one of its fields (an owner's name, a target's
 * name): `offset` of a str field. An empty text is no key. */
void controller_watch_by(struct controller *c, struct cache *cache, size_t offset);
void *controller_context(const struct controller *c);

void controller_add(struct controller *c, str ns, str name);
void controller_add_after(struct controller *c, str ns, str name, int64_t after_ns);

/* The path of the name (or uid) of the controlling owner, for struct field. */
#define OWNER_NAME "metadata.ownerReferences[controller=true].name"
#define OWNER_KIND "metadata.ownerReferences[controller=true].kind"
#define OWNER_UID "metadata.ownerReferences[controller=true].uid"

/* ---- writes of a turn. `done` and `context` of the request are not used. */

void reconcile_send(struct reconcile *r, const struct kube_request *request);
/* `then` sees the answer, may ask for more and may fail the turn with reconcile_fail(). An answer
 * that is no success does not fail the turn by itself. Reads work as well. */
void reconcile_call(struct reconcile *r, const struct kube_request *request,
                    void (*then)(struct reconcile *r, const struct kube_reply *reply));
void reconcile_fail(struct reconcile *r, const char *failure); /* copied; the first one counts */
/* A line of the log that names the key; see complaints.h for when there are many. */
void reconcile_warn(struct reconcile *r, const char *message, const char *error);
void reconcile_again(struct reconcile *r, int64_t after_ns); /* the earliest wish counts */

/* Merge patch of the key's own status, conditional on nothing; the key's object must exist. */
void reconcile_status(struct reconcile *r, const struct resource *resource, struct json *status);
/* Server-side apply of a child: `object` has metadata.name, and metadata.namespace unless it is the
 * key's; apiVersion and kind are added. */
void reconcile_apply(struct reconcile *r, const struct resource *resource, struct json *object);

/* ---- life, for the manager and for tests */

struct controller *controller_new(struct kube *k, const struct controller_spec *spec);
void controller_start(struct controller *c);         /* looks at all that the watched caches hold */
void controller_stop(struct controller *c);          /* no new turns */
size_t controller_turns(const struct controller *c); /* under way */
void controller_free(struct controller *c);          /* turns under way are cut off */

const char *controller_name(const struct controller *c);
const struct workqueue *controller_queue(const struct controller *c);
int64_t controller_now_ns(const struct controller *c); /* of the queue's clock */

#endif
