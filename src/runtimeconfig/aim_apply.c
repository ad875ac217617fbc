/* Children of a consumer, by server-side apply, and only if something would change.
 *
 * A child is left alone if the cached object contains everything that we want and nothing of ours that we no
 * longer want. The first part is compared (aim_apply_covers). The second cannot be seen in the object, so it
 * is derived: it holds if this process applied exactly the same before, or, after a restart, if the status shows that
 * the last pass had the same configuration and generation.
 *
 *     desired -> covered by live? -- yes --> same as applied last? -- yes --> nothing to send
 *                       | no                        | no
 *                       +---------------------------+----> PATCH (apply), remember the hash
 *
 * managedFields would answer the second part directly, but the cache does not keep them. */
#include "aim.h"

struct aim_applied {
    char *key;     /* owned "Kind name" */
    uint64_t hash; /* of the applied JSON; valid in this process only */
};

/* Is every item an object with a name, as in env or volumes? Such lists are compared by name. */
static bool is_named_list(const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++)
        if (!json_is(json_get(json_item(list, i), "name"), JSON_STR))
            return false;
    return json_len(list) > 0;
}

static const struct json *find_named(const struct json *list, str name)
{
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eq(json_text(json_get(json_item(list, i), "name")), name))
            return json_item(list, i);
    return NULL;
}

/* Named lists may have items of other writers; all other lists must match item by item. */
static bool covers_list(const struct json *live, const struct json *desired)
{
    bool named = is_named_list(desired);
    if (!json_is(live, JSON_ARR) || (!named && live->n != desired->n))
        return false;
    for (size_t i = 0; i < desired->n; i++) {
        const struct json *want = json_item(desired, i);
        const struct json *have =
            named ? find_named(live, json_text(json_get(want, "name"))) : json_item(live, i);
        if (!have || !aim_apply_covers(have, want))
            return false;
    }
    return true;
}

/* True if `live` has every field of `desired`; fields of other writers do not matter. */
bool aim_apply_covers(const struct json *live, const struct json *desired)
{
    if (json_is(desired, JSON_ARR))
        return covers_list(live, desired);
    if (!json_is(desired, JSON_OBJ))
        return json_eq(live, desired);
    json_each(m, desired) {
        const struct json *have = json_get_str(live, m->key);
        if (!have || !aim_apply_covers(have, m->value))
            return false;
    }
    return true;
}

/* Did the last pass, also of an earlier process, have the same configuration and spec? */
static bool is_same_input(const struct aim_turn *t)
{
    const struct json *old = t->status.old;
    str hash = json_text(json_at(old, "effectiveRuntimeConfig", "hash", NULL));
    if (!hash.n) /* the configuration was missing: what the children were made from */
        hash = json_text(json_get(old, "lastConfigHash"));
    return json_int(json_get(old, "observedGeneration"), -1) == t->status.generation &&
           str_eqc(hash, t->config.hash);
}

static struct aim_applied *applied_entry(struct aim_tracked *tracked, str key)
{
    struct aim_applied *applied = map_get(&tracked->applied, key);
    if (applied)
        return applied;
    applied = mem_zero(1, sizeof(*applied));
    applied->key = mem_dup(key.p, key.n);
    map_put(&tracked->applied, str_c(applied->key), applied);
    return applied;
}

/* The next turn applies every child again, unless the status shows that nothing changed. */
void aim_apply_forget(struct aim_tracked *tracked)
{
    for (struct map_slot *s = NULL; (s = map_next(&tracked->applied, s));) {
        struct aim_applied *applied = s->value;
        free(applied->key);
        free(applied);
    }
    map_done(&tracked->applied);
    tracked->applied = (struct map){ 0 };
}

/* Completes the object, compares it with the live one, and sends it if needed. */
bool aim_apply_then(struct aim_turn *t, const struct resource *resource, const struct json *live,
                    struct json *desired,
                    void (*then)(struct reconcile *r, const struct kube_reply *reply))
{
    struct arena *a = t->r->arena;
    struct json *metadata = json_make(a, desired, "metadata", NULL);
    str name = json_text(json_get(metadata, "name"));
    if (resource->namespaced && !json_get(metadata, "namespace"))
        json_set_str(a, metadata, "namespace", t->ns);
    bool covered = live && aim_apply_covers(live, desired);
    auto_buf struct buf version = { 0 };
    resource_api_version(resource, &version);
    json_set_str(a, desired, "apiVersion", buf_str(&version));
    json_set_str(a, desired, "kind", str_c(resource->kind));
    str body = json_to_str(a, desired);
    uint64_t hash = map_hash(body);
    str key = arena_printf(a, "%s " STR_FMT, resource->kind, STR_ARG(name));
    struct aim_applied *before = map_get(&t->tracked->applied, key);
    bool sure = before ? before->hash == hash : is_same_input(t);
    applied_entry(t->tracked, key)->hash = hash;
    if (covered && sure)
        return false;
    aim_turn_call(t,
                  &(struct kube_request){ .verb = KUBE_APPLY,
                                          .resource = resource,
                                          .ns = json_text(json_get(metadata, "namespace")),
                                          .name = name,
                                          .field_manager = S("aim-service-controller"),
                                          .body = body },
                  then);
    return true;
}
