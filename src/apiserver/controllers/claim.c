/* Protection of persistent volume claims: each claim has a finalizer, which is restored if a client removes it.
 * It is removed only when the claim is being deleted and no pod on a node uses it.
 *
 * A claim that is in use stays in the queue (changed_claims) until a deleted pod frees it. */
#include "controllers.h"

#include "../http/managed.h"
#include "../http/remove.h"

#define MANAGER S("kube-controller-manager")

static bool is_core(struct store_key_parts parts, str resource)
{
    return !parts.group.n && str_eq(parts.resource, resource);
}

static void claim_on_event(struct server *s, const struct event *e)
{
    struct store_key_parts parts = store_key_split(object_key(e->now));
    bool is_claim = is_core(parts, S("persistentvolumeclaims"));
    if (is_claim && !e->now->deleted) {
        char *kept = mem_dup(object_key(e->now).p, object_key(e->now).n);
        vec_push(&s->changed_claims, kept);
    }
    if (s->changed_claims.n && (is_claim || (e->now->deleted && is_core(parts, S("pods")))))
        server_reconcile_soon(s);
}

/* Pods without a node do not count: a claim that is being deleted will not be mounted. */
static bool pod_uses_claim(const struct json *pod, str claim)
{
    const struct json *spec = json_get(pod, "spec"), *volumes = json_get(spec, "volumes");
    if (!json_text(json_get(spec, "nodeName")).n)
        return false;
    for (size_t i = 0; i < json_len(volumes); i++)
        if (str_eq(json_text(
                       json_at(json_item(volumes, i), "persistentVolumeClaim", "claimName", NULL)),
                   claim))
            return true;
    return false;
}

/* Whether any pod in the claim's namespace uses it. Parses all of them, but only for a claim that is being
 * deleted. */
static bool is_claim_in_use(struct server *s, struct store_key_parts claim)
{
    auto_arena struct arena a = { 0 };
    str prefix = arena_printf(&a, "/pods/" STR_FMT "/", STR_ARG(claim.ns));
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));) {
        const struct kind *k;
        if (pod_uses_claim(write_begin_edit(s, &a, object_key(o), &k), claim.name))
            return true;
    }
    return false;
}

/* Adds or removes the finalizer. True: the claim is in use, check it again when a pod is deleted. */
static bool reconcile_claim(struct server *s, str key)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k;
    const struct object *o = store_latest(s->store, key);
    struct json *tree = o ? write_begin_edit(s, &a, key, &k) : NULL;
    if (!tree)
        return false;
    struct json *metadata = json_make(&a, tree, "metadata", NULL), *was = json_copy(&a, tree);
    struct json *finalizers = json_get(metadata, "finalizers");
    if (remove_list_contains(finalizers, FINALIZER_CLAIM) != o->deleting)
        return false;
    if (o->deleting && is_claim_in_use(s, store_key_split(key)))
        return true;
    if (o->deleting) {
        remove_from_list(finalizers, FINALIZER_CLAIM);
    } else {
        if (!finalizers)
            json_set(&a, metadata, S("finalizers"), finalizers = json_new_arr(&a));
        json_push(&a, finalizers, json_new_str(&a, FINALIZER_CLAIM));
        managed_update_as(s, &a, k, &(struct managed_change){ MANAGER, KIND_MAIN, was, tree });
    }
    write_end_edit(s, &a, k, key, tree);
    return false;
}

static bool claim_reconcile(struct server *s)
{
    size_t n = s->changed_claims.n, kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (reconcile_claim(s, str_c(s->changed_claims.at[i])))
            s->changed_claims.at[kept++] = s->changed_claims.at[i];
        else
            free(s->changed_claims.at[i]);
    }
    s->changed_claims.n = kept;
    return kept < n;
}

const struct server_controller claim_controller = { .on_load = claim_on_event,
                                                    .on_event = claim_on_event,
                                                    .reconcile = claim_reconcile };
