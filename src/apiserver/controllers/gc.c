/* The garbage collector: deletes objects whose owners are gone.
 *
 * It has one index, from the uid of an owner to the keys of the objects that reference it, and a queue of keys to
 * check. Events update the index and fill the queue; when their batch is published, each key is checked against
 * the state after the next commit (store_latest), and the necessary writes are staged like any other.
 *
 *     event -> index, queue -> gc_reconcile -> gc_check_object -> staged writes
 *       ^                                                              |
 *       +----------------------- next commit -------------------------+
 *
 * The collector is level-triggered: those writes cause new events, which fill the queue until nothing is left to
 * do. A restart in the middle loses nothing, because every object with owners is checked at startup.
 *
 *     background   the owner is deleted; its dependents are checked: no owner is left, so they are deleted
 *     foreground   the owner waits (finalizer) until the dependents that block it are deleted
 *     orphan       the dependents lose their owner reference, then the owner is deleted
 *
 * An owner of a kind that the server does not serve counts as present: missing knowledge is never a reason to
 * delete. Memory: the index and the queue own their keys. */
#include "controllers.h"

#include "../http/remove.h"

#include "../../json/scan.h"
#include "../http/managed.h"

struct owner {
    VEC(char *) dependents; /* owned keys */
    char uid[];
};

struct gc {
    struct map owners; /* uid to struct owner */
    VEC(char *) queue; /* owned keys */
    struct map queued; /* the keys in `queue`, so that each is queued once */
};

static void gc_start(struct server *s)
{
    s->gc = mem_zero(1, sizeof(struct gc));
}

static void owner_free(struct owner *o)
{
    for (size_t i = 0; i < o->dependents.n; i++)
        free(o->dependents.at[i]);
    vec_done(&o->dependents);
    free(o);
}

static void gc_stop(struct server *s)
{
    struct gc *gc = s->gc;
    for (struct map_slot *slot = NULL; (slot = map_next(&gc->owners, slot));)
        owner_free(slot->value);
    map_done(&gc->owners);
    map_done(&gc->queued);
    for (size_t i = 0; i < gc->queue.n; i++)
        free(gc->queue.at[i]);
    vec_done(&gc->queue);
    free(gc);
}

static void gc_enqueue(struct server *s, str key)
{
    struct gc *gc = s->gc;
    if (map_get(&gc->queued, key))
        return;
    char *kept = mem_dup(key.p, key.n);
    vec_push(&gc->queue, kept);
    map_put(&gc->queued, (str){ kept, key.n }, kept);
    server_reconcile_soon(s);
}

/* ---- the index */

static void add_dependent(struct gc *gc, str uid, str key)
{
    struct owner *o = map_get(&gc->owners, uid);
    if (!o) {
        o = mem_alloc(sizeof(*o) + uid.n + 1);
        memset(o, 0, sizeof(*o));
        memcpy(o->uid, uid.p, uid.n);
        o->uid[uid.n] = '\0';
        map_put(&gc->owners, (str){ o->uid, uid.n }, o);
    }
    char *kept = mem_dup(key.p, key.n);
    vec_push(&o->dependents, kept);
}

/* Removes the key; an owner without dependents leaves the index. */
static void remove_dependent(struct gc *gc, str uid, str key)
{
    struct owner *o = map_get(&gc->owners, uid);
    for (size_t i = 0; o && i < o->dependents.n; i++) {
        if (!str_eqc(key, o->dependents.at[i]))
            continue;
        free(o->dependents.at[i]);
        o->dependents.at[i] = o->dependents.at[--o->dependents.n];
        break;
    }
    if (o && !o->dependents.n) {
        map_del(&gc->owners, uid);
        owner_free(o);
    }
}

static str reference_text(str reference, const char *member)
{
    str value = scan_member(reference, str_c(member));
    return value.n >= 2 && value.p[0] == '"' ? (str){ value.p + 1, value.n - 2 } : S("");
}

static void index_owners(struct gc *gc, const struct object *o,
                         void (*each)(struct gc *gc, str uid, str key))
{
    str rest = o->owners.n ? object_span(o, o->owners) : S(""), key, reference;
    while (scan_next(&rest, &key, &reference))
        each(gc, reference_text(reference, "uid"), object_key(o));
}

static void enqueue_dependents(struct server *s, str uid)
{
    const struct owner *o = map_get(&s->gc->owners, uid);
    for (size_t i = 0; o && i < o->dependents.n; i++)
        gc_enqueue(s, str_c(o->dependents.at[i]));
}

/* The key of the owner that a reference names, as seen from a dependent. "": no such kind is served, or a
 * cluster-scoped object names an owner in a namespace. */
static str owner_key(struct server *s, struct arena *a, str ns, str version, str kind, str name)
{
    str group = S(""), rest = version;
    if (str_find_char(version, '/') != SIZE_MAX)
        str_cut(&rest, '/', &group);
    for (size_t i = 0; i < s->catalog.all.n; i++) {
        const struct kind *k = s->catalog.all.at[i];
        if (str_eq(k->group, group) && str_eq(k->kind, kind))
            return k->namespaced && !ns.n ? S("") : catalog_key(a, k, ns, name);
    }
    return S("");
}

static void enqueue_owners(struct server *s, const struct object *o)
{
    auto_arena struct arena a = { 0 };
    str rest = o->owners.n ? object_span(o, o->owners) : S(""), key, r;
    str ns = store_key_split(object_key(o)).ns;
    while (scan_next(&rest, &key, &r)) {
        str owner = owner_key(s, &a, ns, reference_text(r, "apiVersion"), reference_text(r, "kind"),
                              reference_text(r, "name"));
        if (owner.n)
            gc_enqueue(s, owner);
    }
}

/* Looks into the stored text without parsing it. */
static bool has_finalizer(const struct object *o, str finalizer)
{
    str rest = o->finalizers.n ? object_span(o, o->finalizers) : S(""), key, value;
    while (scan_next(&rest, &key, &value))
        if (value.n == finalizer.n + 2 && memcmp(value.p + 1, finalizer.p, finalizer.n) == 0)
            return true;
    return false;
}

/* Updates the index if the owners changed, and queues every object whose fate the event can change:
 * dependents of a deleted owner, owners that wait for a dependent, and objects with new owners. */
static void gc_on_event(struct server *s, const struct event *e)
{
    const struct object *now = e->now, *was = e->was;
    bool same = was && !now->deleted &&
                str_eq(object_span(was, was->owners), object_span(now, now->owners));
    if (was && !same)
        index_owners(s->gc, was, remove_dependent);
    if (!now->deleted && !same)
        index_owners(s->gc, now, add_dependent);
    if (now->deleted) {
        enqueue_dependents(s, object_span(now, now->uid));
        enqueue_owners(s, now); /* one of them may wait for this object */
        return;
    }
    bool waits = has_finalizer(now, FINALIZER_FOREGROUND);
    if ((now->owners.n && !same) ||
        (now->deleting && (waits || has_finalizer(now, FINALIZER_ORPHAN))))
        gc_enqueue(s, object_key(now));
    if (now->deleting && waits &&
        !(was && was->deleting && has_finalizer(was, FINALIZER_FOREGROUND)))
        enqueue_dependents(s, object_span(now, now->uid));
    if (was && !same)
        enqueue_owners(s, was); /* an owner that lost this dependent may have waited for it */
}

/* ---- checks */

enum owner_state {
    OWNER_UNKNOWN, /* of a kind that is not served: it cannot be known to be gone */
    OWNER_GONE,
    OWNER_WAITS, /* being deleted in the foreground: waits for its dependents */
    OWNER_HOLDS, /* exists */
};

/* The state of the owner that a reference names, as of the next commit. */
static enum owner_state find_owner_state(struct server *s, struct arena *a, str ns,
                                         const struct json *reference)
{
    str key =
        owner_key(s, a, ns, json_text(json_get(reference, "apiVersion")),
                  json_text(json_get(reference, "kind")), json_text(json_get(reference, "name")));
    if (!key.n)
        return OWNER_UNKNOWN;
    const struct object *o = store_latest(s->store, key);
    if (!o || !str_eq(object_span(o, o->uid), json_text(json_get(reference, "uid"))))
        return OWNER_GONE;
    return o->deleting && has_finalizer(o, FINALIZER_FOREGROUND) ? OWNER_WAITS : OWNER_HOLDS;
}

/* Whether objects still reference the owner, as of the next commit. `blocking`: only those with
 * blockOwnerDeletion. References from another namespace are not valid and do not hold the owner. In
 * kube-controller-manager they do, so a tenant there can hold up what another one deletes. */
static bool has_dependents(struct server *s, struct arena *a, const struct object *o, bool blocking)
{
    str uid = object_span(o, o->uid), ns = store_key_split(object_key(o)).ns;
    const struct owner *owner = map_get(&s->gc->owners, uid);
    for (size_t i = 0; owner && i < owner->dependents.n; i++) {
        const struct kind *k;
        if (ns.n && !str_eq(store_key_split(str_c(owner->dependents.at[i])).ns, ns))
            continue;
        struct json *tree = write_begin_edit(s, a, str_c(owner->dependents.at[i]), &k);
        struct json *references = json_at(tree, "metadata", "ownerReferences", NULL);
        for (size_t j = 0; j < json_len(references); j++) {
            struct json *r = json_item(references, j);
            if (str_eq(json_text(json_get(r, "uid")), uid) &&
                (!blocking || json_bool(json_get(r, "blockOwnerDeletion"), false)))
                return true;
        }
    }
    return false;
}

static bool remove_finalizer(struct server *s, struct arena *a, str key, str finalizer)
{
    const struct kind *k;
    struct json *tree = write_begin_edit(s, a, key, &k);
    return remove_from_list(json_at(tree, "metadata", "finalizers", NULL), finalizer) &&
           write_end_edit(s, a, k, key, tree);
}

/* Stages a dependent from which owner references were removed. */
static void save_dependent(struct server *s, struct arena *a, const struct kind *k, str key,
                           struct json *tree)
{
    const struct kind *same;
    struct json *was = write_begin_edit(s, a, key, &same);
    if (!json_len(json_at(tree, "metadata", "ownerReferences", NULL)))
        json_del(json_get(tree, "metadata"), S("ownerReferences"));
    managed_update_as(s, a, k,
                      &(struct managed_change){ S("kube-controller-manager"), KIND_MAIN, was,
                                                tree });
    write_end_edit(s, a, k, key, tree);
}

/* Orphans one dependent. */
static void remove_owner_reference(struct server *s, struct arena *a, str key, str uid)
{
    const struct kind *k;
    struct json *tree = write_begin_edit(s, a, key, &k);
    struct json *references = json_at(tree, "metadata", "ownerReferences", NULL);
    bool changed = false;
    for (size_t i = json_len(references); i-- > 0;) {
        if (str_eq(json_text(json_at(json_item(references, i), "uid", NULL)), uid)) {
            json_remove(references, i);
            changed = true;
        }
    }
    if (changed)
        save_dependent(s, a, k, key, tree);
}

/* An owner that is being deleted and has one of the two finalizers of the collector. */
static void gc_check_owner(struct server *s, struct arena *a, const struct object *o)
{
    str key = arena_str(a, object_key(o)), uid = arena_str(a, object_span(o, o->uid));
    if (has_finalizer(o, FINALIZER_ORPHAN)) {
        const struct owner *owner = map_get(&s->gc->owners, uid);
        for (size_t i = 0; owner && i < owner->dependents.n; i++)
            remove_owner_reference(s, a, str_c(owner->dependents.at[i]), uid);
        remove_finalizer(s, a, key, FINALIZER_ORPHAN);
    } else if (has_finalizer(o, FINALIZER_FOREGROUND) && !has_dependents(s, a, o, true)) {
        remove_finalizer(s, a, key, FINALIZER_FOREGROUND);
    }
}

/* Deletes an object that has no owner left. If some owners are left, only the references to the others are
 * removed. If an owner waits for it, its own dependents are deleted in the foreground too. */
static void gc_check_dependent(struct server *s, struct arena *a, const struct object *o)
{
    const struct kind *k;
    str key = arena_str(a, object_key(o)), ns = store_key_split(key).ns;
    struct json *tree = write_begin_edit(s, a, key, &k);
    struct json *references = json_at(tree, "metadata", "ownerReferences", NULL);
    size_t solid = 0, waiting = 0, n = json_len(references);
    bool *drop = arena_array(a, n, sizeof(bool));
    for (size_t i = 0; i < n; i++) {
        enum owner_state state = find_owner_state(s, a, ns, json_item(references, i));
        if (state == OWNER_UNKNOWN)
            return;
        drop[i] = state != OWNER_HOLDS;
        solid += state == OWNER_HOLDS;
        waiting += state == OWNER_WAITS;
    }
    if (!n || solid == n)
        return;
    if (solid) { /* an owner is left: only remove the other references */
        for (size_t i = n; i-- > 0;)
            if (drop[i])
                json_remove(references, i);
        save_dependent(s, a, k, key, tree);
        return;
    }
    bool foreground = waiting && has_dependents(s, a, o, false);
    remove_object(s, a, k, o,
                  &(struct remove_options){ .propagation = foreground ? PROPAGATE_FOREGROUND
                                                                      : PROPAGATE_DEFAULT,
                                            .grace_s = -1 });
}

static void gc_check_object(struct server *s, str key)
{
    auto_arena struct arena a = { 0 };
    const struct object *o = store_latest(s->store, key);
    if (!o)
        return;
    if (o->deleting)
        gc_check_owner(s, &a, o);
    else
        gc_check_dependent(s, &a, o);
}

/* Checks the whole queue, including keys that are added meanwhile. */
static bool gc_reconcile(struct server *s)
{
    struct gc *gc = s->gc;
    size_t n = gc->queue.n;
    for (size_t i = 0; i < gc->queue.n; i++) {
        char *key = gc->queue.at[i];
        map_del(&gc->queued, str_c(key));
        gc_check_object(s, str_c(key));
        free(key);
    }
    vec_clear(&gc->queue);
    return n > 0;
}

const struct server_controller gc_controller = { .start = gc_start,
                                                 .stop = gc_stop,
                                                 .on_load = gc_on_event,
                                                 .on_event = gc_on_event,
                                                 .reconcile = gc_reconcile };
