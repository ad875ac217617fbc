/* Turns on consumers: see consumer.h for their order, and aim.h.
 *
 *     aim_consumer_reconcile                                       (t->pending = 1)
 *       begin_turn -> resolve -> observe -> route -> reconcile     (each write: pending + 1)
 *       turn_release ----+
 *     answers -----------+--> pending == 0 --> finish_turn: set_status hooks, one status write
 *
 * The status is therefore written once per turn, after all writes are answered, and can report their failures. A
 * turn lives in the arena of its reconcile. */
#include "aim.h"

#include "../base/log.h"
#include "../kube/object_key.h"
#include "model_inspection.h"
#include "modelsource_controller.h"
#include "service_world.h"

/* ---- tracked objects */

struct aim_tracked *aim_consumer_find(const struct aim_consumers *of, str ns, str name)
{
    return object_key_find(&of->tracked, ns, name);
}

/* The entry of an object, created on first use. Texts are parts of its key, which it owns. */
struct aim_tracked *aim_consumer_put(struct aim_consumers *of, const struct aim_record *r)
{
    struct aim_tracked *one = aim_consumer_find(of, r->meta.ns, r->meta.name);
    if (!one) {
        one = mem_zero(1, sizeof(*one));
        one->of = of;
        one->key = object_key_new(r->meta.ns, r->meta.name, &one->ns, &one->name);
        one->link = (struct aim_config_link){ .kind = of->kind, .ns = one->ns, .name = one->name };
        one->claim = (struct aim_claim_holder){ .ns = one->ns, .name = one->name };
        map_put(&of->tracked, str_c(one->key), one);
    }
    one->claim.created_ns = r->created_ns;
    return one;
}

/* Releases the path and the link first: both may enqueue other objects. */
static void free_tracked(struct aim *aim, struct aim_tracked *one)
{
    aim_route_drop_claim(aim, one);
    struct aim_config *config = one->link.config;
    if (aim_config_link_to(&one->link, NULL, false) && config)
        aim_config_enqueue(aim, config);
    aim_apply_forget(one);
    aim_inspection_free(one->inspection);
    aim_sync_free(one->sync);
    own_write_done(&one->status);
    free(one->key);
    free(one);
}

void aim_consumer_drop(struct aim_consumers *of, str ns, str name)
{
    struct aim_tracked *one = aim_consumer_find(of, ns, name);
    if (!one)
        return;
    map_del(&of->tracked, str_c(one->key));
    free_tracked(of->aim, one);
    controller_abandon(of->controller, ns, name);
}

void aim_consumers_done(struct aim_consumers *of)
{
    for (struct map_slot *s = NULL; (s = map_next(&of->tracked, s));)
        free_tracked(of->aim, s->value);
    map_done(&of->tracked);
}

/* ---- end of a turn */

static int64_t mono_ns(const struct aim_turn *t)
{
    return loop_mono_ns(manager_loop(t->aim->manager));
}

/* Events are emitted only together with a status that changed, so that a repeated pass repeats none. */
static void emit_events(const struct aim_turn *t)
{
    for (const struct aim_event *e = t->status.events; e; e = e->next)
        events_emit(manager_events(t->aim->manager),
                    &(struct kube_event){ .resource = &t->aim->kinds->at[t->of->kind],
                                          .ns = t->ns,
                                          .name = t->name,
                                          .uid = t->uid,
                                          .warning = e->warning,
                                          .reason = e->reason,
                                          .message = e->message });
}

/* The status is held, because the turn may also have written finalizers. */
static void on_status_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct aim_turn *t = r->turn;
    struct own_write *own = &t->tracked->status;
    if (own_write_end(own, reply, t->rv, json_to_str(r->arena, json_get(reply->object, "status"))))
        reconcile_again(r, AIM_OWN_WRITE_NS);
    if (!reply->failure)
        own_write_hold(own, mono_ns(t) + AIM_OWN_WRITE_NS);
    else if (reply->reason != KUBE_NOT_FOUND)
        reconcile_fail_call(r, reply);
}

/* A merge patch of the difference; nothing is sent if there is none. */
static void write_status(struct aim_turn *t)
{
    struct json *patch = aim_status_patch(&t->status);
    if (!patch)
        return;
    emit_events(t);
    own_write_begin(&t->tracked->status);
    reconcile_status_then(t->r, &t->aim->kinds->at[t->of->kind], patch, on_status_written);
}

/* All writes are answered: lets each part set its conditions, writes the status, and retries if a write failed. */
static void finish_turn(struct aim_turn *t)
{
    if (t->of->hooks && t->of->hooks->set_status)
        t->of->hooks->set_status(t);
    aim_resolution_status(t);
    if (t->of->kind == AIM_SERVICE)
        aim_route_status(t);
    if (!t->deleting)
        write_status(t);
    if (t->write_failure) {
        aim_apply_forget(t->tracked);
        reconcile_fail_call(t->r, &(struct kube_reply){ .failure = t->write_failure,
                                                        .reason = t->write_reason });
    }
}

static void turn_release(struct aim_turn *t)
{
    if (--t->pending == 0)
        finish_turn(t);
}

/* ---- writes */

void aim_turn_call(struct aim_turn *t, const struct kube_request *request,
                   void (*then)(struct reconcile *r, const struct kube_reply *reply))
{
    t->pending++;
    reconcile_call(t->r, request, then);
}

/* Records the first failure of the turn. A namespace that is being terminated refuses new objects; that is not a
 * failure. */
void aim_turn_answered(struct aim_turn *t, const struct kube_reply *reply)
{
    bool ends = str_find(reply->message, S("is being terminated")) != SIZE_MAX;
    if (reply->failure && !ends && !t->write_failure) {
        t->write_failure = arena_str(t->r->arena, str_c(reply->failure)).p;
        t->write_reason = reply->reason;
    }
    turn_release(t);
}

static void on_child_written(struct reconcile *r, const struct kube_reply *reply)
{
    aim_turn_answered(r->turn, reply);
}

static void on_child_deleted(struct reconcile *r, const struct kube_reply *reply)
{
    if (reply->reason == KUBE_NOT_FOUND)
        turn_release(r->turn);
    else
        aim_turn_answered(r->turn, reply);
}

void aim_apply(struct aim_turn *t, const struct resource *resource, const struct json *live,
               struct json *desired)
{
    aim_apply_then(t, resource, live, desired, on_child_written);
}

void aim_send(struct aim_turn *t, const struct kube_request *request)
{
    aim_turn_call(t, request, request->verb == KUBE_DELETE ? on_child_deleted : on_child_written);
}

/* Without a policy the pods of a Job would be left behind. */
void aim_delete_job(struct aim_turn *t, str ns, str name, str uid)
{
    struct json *body = json_new_obj(t->r->arena);
    json_set_str(t->r->arena, body, "propagationPolicy", S("Background"));
    json_set_str(t->r->arena, json_make(t->r->arena, body, "preconditions", NULL), "uid", uid);
    aim_send(t, &(struct kube_request){ .verb = KUBE_DELETE,
                                        .resource = &aim_resource_jobs,
                                        .ns = ns,
                                        .name = name,
                                        .body = json_to_str(t->r->arena, body) });
}

struct json *aim_owner(struct aim_turn *t)
{
    return kube_owners(t->r->arena,
                       &(struct kube_owner){ .resource = &t->aim->kinds->at[t->of->kind],
                                             .name = t->name,
                                             .uid = t->uid,
                                             .is_controller = true });
}

void aim_apply_owned(struct aim_turn *t, const struct resource *resource, const struct json *live,
                     struct json *desired)
{
    json_set(t->r->arena, json_get(desired, "metadata"), S("ownerReferences"), aim_owner(t));
    aim_apply(t, resource, live, desired);
}

const struct json *aim_find_child(struct aim_turn *t, struct cache *cache, str name)
{
    const struct aim_child_record *r = cache_get(cache, t->ns, name);
    return r && !r->deleting ? aim_child_object(t->r->arena, r) : NULL;
}

/* ---- start of a turn */

/* The status to start from: our own write while it is pending, otherwise the cached one. */
static const struct json *last_status(struct aim_turn *t)
{
    const struct json *own = own_write_json(&t->tracked->status, t->r->arena, t->rv, mono_ns(t));
    return own ? own : json_get(t->object, "status");
}

/* Creates the turn in the arena of the reconcile. */
static struct aim_turn *begin_turn(struct reconcile *r, struct aim_consumers *of,
                                   const struct aim_record *record)
{
    struct aim_turn *t = arena_new(r->arena, struct aim_turn);
    const struct resource *resource = &of->aim->kinds->at[of->kind];
    t->r = r;
    r->turn = t;
    t->aim = of->aim;
    t->of = of;
    t->tracked = aim_consumer_put(of, record);
    t->object = aim_record_object(r->arena, resource, record);
    t->ns = r->ns;
    t->name = r->name;
    t->uid = arena_str(r->arena, record->meta.uid);
    t->rv = arena_str(r->arena, record->meta.rv);
    t->deleting = record->deleting;
    t->pending = 1; /* released by the caller */
    aim_status_begin(&t->status, r->arena, last_status(t), r->now_ns / NS_PER_S,
                     record->generation);
    return t;
}

static bool is_paused(const struct aim_turn *t)
{
    auto_buf struct buf key = { 0 };
    buf_printf(&key, "%s/reconciliation-paused", t->aim->kinds->group);
    const struct json *annotations = json_at(t->object, "metadata", "annotations", NULL);
    return str_eqc(json_text(json_get_str(annotations, buf_str(&key))), "true");
}

/* One turn. A paused object (annotation reconciliation-paused) is not touched at all, not even its status. */
struct reconciled aim_consumer_reconcile(struct reconcile *r)
{
    struct aim_consumers *of = r->context;
    const struct aim_record *record = cache_get(of->cache, r->ns, r->name);
    if (!record)
        return reconciled();
    aim_link_all(of->aim); /* a change of another kind may come first */
    struct aim_turn *t = begin_turn(r, of, record);
    if (is_paused(t))
        return reconciled();
    const struct aim_hooks *hooks = of->hooks;
    aim_resolution_turn(t);
    if (hooks && hooks->observe)
        hooks->observe(t);
    if (of->kind == AIM_SERVICE)
        aim_route_turn(t);
    if (hooks && hooks->reconcile)
        hooks->reconcile(t);
    turn_release(t);
    return reconciled();
}
