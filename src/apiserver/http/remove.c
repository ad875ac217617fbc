/* Deletion; see remove.h. Three cases, decided by remove_object():
 *
 *     nothing holds it      a tombstone is staged: REMOVAL_GONE
 *     something holds it    deletionTimestamp is set: REMOVAL_MARKED; the write that ends the last hold
 *                           deletes it (write_can_delete)
 *     marked already        a pod's grace period may become shorter, finalizers of the garbage collector may
 *                           change; otherwise nothing is written: REMOVAL_UNCHANGED
 *
 * A hold is a finalizer, a pod's grace period, or the kind itself: namespaces and definitions are emptied by
 * their controllers first. */
#include "remove.h"

#include "../../base/rfc3339.h"
#include "read.h"

bool remove_list_contains(const struct json *strings, str wanted)
{
    for (size_t i = 0; i < json_len(strings); i++)
        if (str_eq(json_text(json_item(strings, i)), wanted))
            return true;
    return false;
}

bool remove_from_list(struct json *strings, str unwanted)
{
    for (size_t i = 0; i < json_len(strings); i++) {
        if (str_eq(json_text(json_item(strings, i)), unwanted)) {
            json_remove(strings, i);
            return true;
        }
    }
    return false;
}

static bool is_pod(const struct kind *k)
{
    return remove_is_kind(k, S(""), S("pods"));
}

/* Namespaces and definitions are deleted by their controllers, once they are empty. */
static bool is_held_by_controller(const struct kind *k)
{
    return remove_is_kind(k, S(""), S("namespaces")) || remove_is_kind(k, CRD_GROUP, CRD_PLURAL);
}

/* Sets the finalizers of the garbage collector as the propagation policy demands; without one, those that
 * the object has are kept. True: they changed. */
static bool set_gc_finalizers(struct arena *a, struct json *metadata, enum propagation p)
{
    struct json *old = json_get(metadata, "finalizers");
    bool had_orphan = remove_list_contains(old, FINALIZER_ORPHAN),
         had_fore = remove_list_contains(old, FINALIZER_FOREGROUND);
    bool orphan = p == PROPAGATE_ORPHAN || (p == PROPAGATE_DEFAULT && had_orphan);
    bool fore = p == PROPAGATE_FOREGROUND || (p == PROPAGATE_DEFAULT && had_fore && !had_orphan);
    if (orphan == had_orphan && fore == had_fore)
        return false;
    struct json *now = json_new_arr(a);
    for (size_t i = 0; i < json_len(old); i++) {
        str each = json_text(json_item(old, i));
        if (!str_eq(each, FINALIZER_ORPHAN) && !str_eq(each, FINALIZER_FOREGROUND))
            json_push(a, now, json_new_str(a, each));
    }
    if (orphan)
        json_push(a, now, json_new_str(a, FINALIZER_ORPHAN));
    if (fore)
        json_push(a, now, json_new_str(a, FINALIZER_FOREGROUND));
    if (json_len(now))
        json_set(a, metadata, S("finalizers"), now);
    else
        json_del(metadata, S("finalizers"));
    return true;
}

static void set_deadline(struct server *s, struct arena *a, struct json *metadata, int64_t grace_s)
{
    char text[RFC3339_TEXT_MAX];
    int64_t at = server_now_ns(s) / NS_PER_S + grace_s;
    json_set_str(a, metadata, "deletionTimestamp", rfc3339_text(at, text));
    json_set_int(a, metadata, "deletionGracePeriodSeconds", grace_s);
}

static void mark_deleting(struct server *s, struct arena *a, const struct kind *k,
                          struct json *tree, int64_t grace_s)
{
    struct json *metadata = json_make(a, tree, "metadata", NULL);
    set_deadline(s, a, metadata, grace_s);
    if (is_held_by_controller(k))
        json_del(metadata, S("deletionGracePeriodSeconds"));
    kind_mark_deleting(k, a, tree);
}

/* A second DELETE of a pod can make its grace period shorter, never longer. True: it did. */
static bool shorten_grace_period(struct server *s, struct arena *a, const struct kind *k,
                                 struct json *tree, const struct remove_options *o)
{
    struct json *metadata = json_make(a, tree, "metadata", NULL);
    int64_t left = json_int(json_get(metadata, "deletionGracePeriodSeconds"), 0);
    if (!is_pod(k) || o->grace_s < 0 || o->grace_s >= left)
        return false;
    set_deadline(s, a, metadata, o->grace_s);
    return true;
}

/* Stages the marked object, or its tombstone if nothing holds it. A pod that is deleted at once is marked
 * first, so that watches see it terminate. */
static struct removed stage_removal(struct server *s, struct arena *a, const struct kind *k,
                                    str key, struct json *tree, const struct remove_options *o)
{
    struct removed r = { .tree = tree };
    bool goes = write_can_delete(k, tree);
    r.how = goes ? REMOVAL_GONE : REMOVAL_MARKED;
    if (o->dry_run)
        return r;
    if (!goes || is_pod(k))
        r.stored = write_stage(s, a, k, key, tree, &r.error);
    if (goes && (!is_pod(k) || r.stored))
        r.stored = write_remove(s, a, k, key, tree, &r.error);
    if (!r.stored)
        r.how = REMOVAL_FAILED;
    return r;
}

struct removed remove_object(struct server *s, struct arena *a, const struct kind *k,
                             const struct object *old, const struct remove_options *o)
{
    str key = arena_str(a, object_key(old));
    struct json *tree = read_tree(a, k, old), *metadata = json_make(a, tree, "metadata", NULL);
    bool finalizers_changed = set_gc_finalizers(a, metadata, o->propagation);
    if (old->deleting) {
        bool sooner = shorten_grace_period(s, a, k, tree, o);
        if (!sooner && !finalizers_changed && !write_can_delete(k, tree))
            return (struct removed){ .how = REMOVAL_UNCHANGED, .tree = tree };
        return stage_removal(s, a, k, key, tree, o);
    }
    int64_t grace_s = kind_grace_seconds(k, tree, o->grace_s);
    bool held =
        grace_s > 0 || json_len(json_get(metadata, "finalizers")) || is_held_by_controller(k);
    if (held || is_pod(k)) {
        mark_deleting(s, a, k, tree, grace_s);
        return stage_removal(s, a, k, key, tree, o);
    }
    struct removed r = { .how = REMOVAL_GONE, .tree = tree };
    if (!o->dry_run && !(r.stored = write_remove(s, a, k, key, tree, &r.error)))
        r.how = REMOVAL_FAILED;
    return r;
}
