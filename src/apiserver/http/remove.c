/* See remove.h. */
#include "remove.h"

#include "../../base/rfc3339.h"
#include "read.h"

bool list_has(const struct json *strings, str wanted)
{
    for (size_t i = 0; i < json_len(strings); i++)
        if (str_eq(json_text(json_item(strings, i)), wanted))
            return true;
    return false;
}

bool list_drop(struct json *strings, str unwanted)
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
    return kind_is(k, S(""), S("pods"));
}

/* Namespaces and definitions keep their own books of what holds them. */
static bool has_own_hold(const struct kind *k)
{
    return kind_is(k, S(""), S("namespaces")) || kind_is(k, CRD_GROUP, CRD_PLURAL);
}

/* The finalizers that make dependents wait or stay, as the policy or (if none was named) the object says.
 * True if they changed. */
static bool settle_finalizers(struct arena *a, struct json *metadata, enum propagation p)
{
    struct json *old = json_get(metadata, "finalizers");
    bool had_orphan = list_has(old, FINALIZER_ORPHAN),
         had_fore = list_has(old, FINALIZER_FOREGROUND);
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

static void mark(struct server *s, struct arena *a, const struct kind *k, struct json *tree,
                 int64_t grace_s)
{
    struct json *metadata = json_make(a, tree, "metadata", NULL);
    set_deadline(s, a, metadata, grace_s);
    if (has_own_hold(k))
        json_del(metadata, S("deletionGracePeriodSeconds"));
    kind_mark_deleting(k, a, tree);
}

/* A delete of what is dying already: a pod's grace may become shorter, finalizers may change. */
static bool mark_again(struct server *s, struct arena *a, const struct kind *k, struct json *tree,
                       const struct remove_options *o)
{
    struct json *metadata = json_make(a, tree, "metadata", NULL);
    int64_t left = json_int(json_get(metadata, "deletionGracePeriodSeconds"), 0);
    if (!is_pod(k) || o->grace_s < 0 || o->grace_s >= left)
        return false;
    set_deadline(s, a, metadata, o->grace_s);
    return true;
}

static struct removed commit(struct server *s, struct arena *a, const struct kind *k, str key,
                             struct json *tree, const struct remove_options *o)
{
    struct removed r = { .tree = tree };
    bool goes = write_may_go(k, tree);
    r.how = goes ? REMOVAL_GONE : REMOVAL_MARKED;
    if (o->dry_run)
        return r;
    /* a pod that goes at once is seen dying first */
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
    bool finalizers_changed = settle_finalizers(a, metadata, o->propagation);
    if (old->deleting) {
        bool sooner = mark_again(s, a, k, tree, o);
        if (!sooner && !finalizers_changed && !write_may_go(k, tree))
            return (struct removed){ .how = REMOVAL_UNCHANGED, .tree = tree };
        return commit(s, a, k, key, tree, o);
    }
    int64_t grace_s = kind_grace_seconds(k, tree, o->grace_s);
    bool held = grace_s > 0 || json_len(json_get(metadata, "finalizers")) || has_own_hold(k);
    if (held || is_pod(k)) {
        mark(s, a, k, tree, grace_s);
        return commit(s, a, k, key, tree, o);
    }
    struct removed r = { .how = REMOVAL_GONE, .tree = tree };
    if (!o->dry_run && !(r.stored = write_remove(s, a, k, key, tree, &r.error)))
        r.how = REMOVAL_FAILED;
    return r;
}

struct json *edit_begin(struct server *s, struct arena *a, str key, const struct kind **ret_kind)
{
    struct kind_set *set;
    const struct object *o = store_latest(s->store, key);
    const struct kind *k = o ? registry_of_key(&s->registry, key, &set) : NULL;
    struct json *tree = NULL;
    err_t e;
    if (!k || json_parse(a, object_json(o), &tree, &e) < 0)
        return NULL;
    *ret_kind = k;
    return tree;
}

bool edit_end(struct server *s, struct arena *a, const struct kind *k, str key, struct json *tree)
{
    struct json *metadata = json_make(a, tree, "metadata", NULL);
    if (json_get(metadata, "finalizers") && !json_len(json_get(metadata, "finalizers")))
        json_del(metadata, S("finalizers"));
    if (json_get(metadata, "ownerReferences") && !json_len(json_get(metadata, "ownerReferences")))
        json_del(metadata, S("ownerReferences"));
    err_t e;
    if (!write_may_go(k, tree))
        return write_stage(s, a, k, key, tree, &e) != NULL;
    const struct kind *same; /* what is deleted is what was there */
    struct json *last = edit_begin(s, a, key, &same);
    return last && write_remove(s, a, k, key, last, &e) != NULL;
}
