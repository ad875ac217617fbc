/* Turns on consumers: see consumer.h for their order, and aim.h.
 *
 *     aim_consumer_reconcile                                       (t->pending = 1)
 *       begin_turn -> resolve -> observe -> route -> reconcile     (each write: pending + 1)
 *       turn_release ----+
 *     answers -----------+--> pending == 0 --> finish_turn: set_status hooks, one status write
 *
 * The status is therefore written once per turn, after all writes are answered, and can report their failures. A
 * turn lives in the arena of its reconcile; `tracked->turn` is how an answer finds it. */
#include "aim.h"

#include "../base/log.h"

/* ---- tracked objects */

struct aim_tracked *aim_consumer_find(const struct aim_consumers *of, str ns, str name)
{
    char key[AIM_KEY_MAX];
    return map_get(&of->tracked, aim_key(key, ns, name));
}

/* The entry of an object, created on first use. Texts are parts of its key, which it owns. */
struct aim_tracked *aim_consumer_put(struct aim_consumers *of, const struct aim_record *r)
{
    struct aim_tracked *one = aim_consumer_find(of, r->meta.ns, r->meta.name);
    if (!one) {
        char text[AIM_KEY_MAX];
        str key = aim_key(text, r->meta.ns, r->meta.name);
        one = mem_zero(1, sizeof(*one));
        one->of = of;
        one->key = mem_dup(key.p, key.n);
        one->ns = (str){ one->key, r->meta.ns.n };
        one->name = (str){ one->key + r->meta.ns.n + 1, r->meta.name.n };
        one->link = (struct aim_config_link){ .kind = of->kind, .ns = one->ns, .name = one->name };
        one->claim = (struct aim_claim_holder){ .ns = one->ns, .name = one->name };
        map_put(&of->tracked, str_c(one->key), one);
    }
    one->claim.created_ns = r->created_ns;
    return one;
}

static void echo_clear(struct aim_echo *e)
{
    free(e->rv);
    free(e->status);
    *e = (struct aim_echo){ 0 };
}

/* Releases the path and the link first: both may enqueue other objects. */
static void free_tracked(struct aim *aim, struct aim_tracked *one)
{
    aim_route_drop_claim(aim, one);
    struct aim_config *config = one->link.config;
    if (aim_config_link_to(&one->link, NULL, false) && config)
        aim_config_enqueue(aim, config);
    aim_apply_forget(one);
    echo_clear(&one->echo);
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
}

void aim_consumers_done(struct aim_consumers *of)
{
    for (struct map_slot *s = NULL; (s = map_next(&of->tracked, s));)
        free_tracked(of->aim, s->value);
    map_done(&of->tracked);
}

/* ---- end of a turn */

struct aim_turn *aim_turn_get(struct reconcile *r)
{
    struct aim_tracked *tracked = aim_consumer_find(r->context, r->ns, r->name);
    return tracked ? tracked->turn : NULL;
}

/* Events are emitted only together with a status that changed, so that a repeated pass repeats none. */
static void emit_events(const struct aim_turn *t)
{
    for (const struct aim_event *e = t->status.events; e; e = e->next)
        events_emit(manager_events(t->aim->manager),
                    &(struct event){ .resource = &t->aim->kinds->at[t->of->kind],
                                     .ns = t->ns,
                                     .name = t->name,
                                     .uid = t->uid,
                                     .warning = e->warning,
                                     .reason = e->reason,
                                     .message = e->message });
}

/* Keeps the answer as an echo, so that the next pass sees our own status even if the cache does not have it yet. */
static void on_status_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct aim_turn *t = aim_turn_get(r);
    if (t && aim_own_write_end(&t->tracked->status, reply))
        reconcile_again(r, AIM_ECHO_NS);
    if (!t || reply->reason == KUBE_NOT_FOUND)
        return;
    if (reply->failure) {
        reconcile_fail(r, reply->failure);
        return;
    }
    struct aim_echo *echo = &t->tracked->echo;
    str status = json_to_str(r->arena, json_get(reply->object, "status"));
    str rv = json_text(json_at(reply->object, "metadata", "resourceVersion", NULL));
    echo_clear(echo);
    *echo = (struct aim_echo){ mem_dup(rv.p, rv.n), mem_dup(status.p, status.n),
                               loop_mono_ns(manager_loop(t->aim->manager)) + AIM_ECHO_NS };
}

/* A merge patch of the difference; nothing is sent if there is none. */
static void write_status(struct aim_turn *t)
{
    struct json *patch = aim_status_patch(&t->status);
    if (!patch)
        return;
    emit_events(t);
    aim_own_write_begin(&t->tracked->status);
    reconcile_call(t->r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = &t->aim->kinds->at[t->of->kind],
                                           .ns = t->ns,
                                           .name = t->name,
                                           .subresource = "status",
                                           .body = kube_status_body(t->r->arena, patch) },
                   on_status_written);
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
        reconcile_fail(t->r, t->write_failure);
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
    struct aim_turn *t = aim_turn_get(r);
    if (t)
        aim_turn_answered(t, reply);
}

static void on_child_deleted(struct reconcile *r, const struct kube_reply *reply)
{
    struct aim_turn *t = aim_turn_get(r);
    if (t && reply->reason == KUBE_NOT_FOUND)
        turn_release(t);
    else if (t)
        aim_turn_answered(t, reply);
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

struct json *aim_owner(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    const struct resource *resource = &t->aim->kinds->at[t->of->kind];
    struct json *owner = json_new_obj(a), *owners = json_new_arr(a);
    json_set_str(a, owner, "apiVersion",
                 arena_printf(a, "%s/%s", resource->group, resource->version));
    json_set_str(a, owner, "kind", str_c(resource->kind));
    json_set_str(a, owner, "name", t->name);
    json_set_str(a, owner, "uid", t->uid);
    json_set_bool(a, owner, "controller", true);
    json_set_bool(a, owner, "blockOwnerDeletion", true);
    json_push(a, owners, owner);
    return owners;
}

/* ---- start of a turn */

/* The status to start from: the echo of our own write while it is valid, otherwise the cached one. */
static const struct json *last_status(struct aim_turn *t)
{
    struct aim_echo *echo = &t->tracked->echo;
    bool holds = echo->rv && !str_eqc(t->rv, echo->rv) &&
                 loop_mono_ns(manager_loop(t->aim->manager)) < echo->until_ns;
    struct json *status = NULL;
    if (holds && json_parse(t->r->arena, str_c(echo->status), &status, NULL) == 0)
        return status;
    echo_clear(echo);
    return json_get(t->object, "status");
}

/* Creates the turn in the arena of the reconcile. */
static struct aim_turn *begin_turn(struct reconcile *r, struct aim_consumers *of,
                                   const struct aim_record *record)
{
    struct aim_turn *t = arena_new(r->arena, struct aim_turn);
    const struct resource *resource = &of->aim->kinds->at[of->kind];
    t->r = r;
    t->aim = of->aim;
    t->of = of;
    t->tracked = aim_consumer_put(of, record);
    t->tracked->turn = t;
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
