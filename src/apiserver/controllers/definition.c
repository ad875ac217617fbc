/* CustomResourceDefinitions: accepted, established, served; and, when deleted, their objects first.
 *
 * A definition is looked at after each commit that touched it. Its names are settled against all others
 * (apitypes); once it is established its kinds are registered, anew whenever its spec changes, which also
 * ends the watches that were opened under the old one. */
#include "controllers.h"

#include "../http/remove.h"

#include "../http/managed.h"
#include "../http/read.h"
#include "../http/watch.h"

static const struct kind *definitions(void)
{
    return kinds_find(CRD_GROUP, S("v1"), CRD_PLURAL);
}

static bool is_true(const struct json *crd, str type)
{
    const struct json *conditions = json_at(crd, "status", "conditions", NULL);
    for (size_t i = 0; i < json_len(conditions); i++) {
        const struct json *c = json_item(conditions, i);
        if (str_eq(json_text(json_get(c, "type")), type))
            return str_eq(json_text(json_get(c, "status")), S("True"));
    }
    return false;
}

static str objects_prefix(struct arena *a, const struct json *crd)
{
    return arena_printf(a, STR_FMT "/" STR_FMT "/",
                        STR_ARG(json_text(json_at(crd, "spec", "group", NULL))),
                        STR_ARG(json_text(json_at(crd, "spec", "names", "plural", NULL))));
}

/* ---- registering */

static void unregister(struct server *s, struct kind_set *set)
{
    for (size_t i = 0; i < set->kinds.n; i++) {
        auto_arena struct arena a = { 0 };
        watch_end_all(s, kind_prefix(&a, set->kinds.at[i], S("")));
    }
    registry_drop(&s->registry, set->name);
    s->discovery_generation++;
}

static void serve_definition(struct server *s, const struct object *o, const struct json *crd)
{
    struct kind_set *set =
        registry_set(&s->registry, json_text(json_at(crd, "metadata", "name", NULL)));
    int64_t generation = json_int(json_at(crd, "metadata", "generation", NULL), 0);
    if (!set || set->generation != generation) {
        struct kind_set *fresh = kind_set_new(crd);
        fresh->rev = o->rev;
        if (set)
            unregister(s, set);
        registry_put(&s->registry, fresh);
        s->discovery_generation++;
        set = fresh;
    }
    set->terminating = o->deleting;
}

/* ---- looking after one definition */

static void terminate(struct server *s, struct arena *a, str key, struct json *crd,
                      const struct kind *k)
{
    str prefix = objects_prefix(a, crd);
    struct kind_set *set;
    const struct kind *stored = registry_of_key(&s->registry, prefix, &set);
    VEC(struct object *) all = { 0 };
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));)
        vec_push(&all, object_ref(o));
    for (size_t i = 0; i < all.n; i++) {
        auto_arena struct arena scratch = { 0 };
        const struct object *o = store_latest(s->store, object_key(all.at[i]));
        if (o && !o->deleting && stored)
            remove_object(s, &scratch, stored, o, &(struct remove_options){ .grace_s = -1 });
        object_unref(all.at[i]);
    }
    vec_done(&all);
    if (!store_any_latest(s->store, prefix) &&
        list_drop(json_at(crd, "metadata", "finalizers", NULL), FINALIZER_CRD))
        edit_end(s, a, k, key, crd);
}

static void settle(struct server *s, struct arena *a, str key, struct json *crd,
                   const struct kind *k)
{
    VEC(const struct json *) all = { 0 };
    str prefix = kind_prefix(a, definitions(), S(""));
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));) {
        const struct object *latest = store_latest(s->store, object_key(o));
        bool itself = str_eq(object_key(o), key);
        if (latest)
            vec_push(&all, itself ? crd : read_tree(a, definitions(), latest));
    }
    struct json *was = json_copy(a, crd);
    if (kinds_accept_crd_names(a, crd, all.at, all.n, server_now_ns(s))) {
        managed_by(s, a, k, &(struct managed_change){ S("kube-apiserver"), KIND_STATUS, was, crd });
        edit_end(s, a, k, key, crd);
    }
    vec_done(&all);
}

static void look_at(struct server *s, str name)
{
    auto_arena struct arena a = { 0 };
    str key = kind_key(&a, definitions(), S(""), name);
    const struct kind *k;
    const struct object *o = store_latest(s->store, key);
    struct json *crd = o ? edit_begin(s, &a, key, &k) : NULL;
    if (!crd) {
        struct kind_set *set = registry_set(&s->registry, name);
        if (set)
            unregister(s, set);
        return;
    }
    if (is_true(crd, S("Established")))
        serve_definition(s, o, crd);
    if (o->deleting)
        terminate(s, &a, key, crd, k);
    else
        settle(s, &a, key, crd, k);
}

static void enqueue(struct server *s, str name)
{
    for (size_t i = 0; i < s->crds.n; i++)
        if (str_eqc(name, s->crds.at[i]))
            return;
    char *kept = mem_dup(name.p, name.n);
    vec_push(&s->crds, kept);
    server_reconcile_soon(s);
}

static void definition_on_event(struct server *s, const struct event *e)
{
    struct key_parts parts = key_split(object_key(e->now));
    if (str_eq(parts.group, CRD_GROUP) && str_eq(parts.resource, CRD_PLURAL)) {
        enqueue(s, parts.name);
        s->crds_all |= e->now->deleted; /* names became free */
        return;
    }
    if (!e->now->deleted || !s->registry.sets.n)
        return;
    auto_arena struct arena a = { 0 };
    str name = arena_printf(&a, STR_FMT "." STR_FMT, STR_ARG(parts.resource), STR_ARG(parts.group));
    struct kind_set *set = registry_set(&s->registry, name);
    if (set && set->terminating)
        enqueue(s, name);
}

static void enqueue_all(struct server *s)
{
    auto_arena struct arena a = { 0 };
    str prefix = kind_prefix(&a, definitions(), S(""));
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));)
        enqueue(s, key_split(object_key(o)).name);
}

static bool definition_reconcile(struct server *s)
{
    if (s->crds_all)
        enqueue_all(s);
    s->crds_all = false;
    size_t n = s->crds.n;
    for (size_t i = 0; i < n; i++) {
        look_at(s, str_c(s->crds.at[i]));
        free(s->crds.at[i]);
    }
    if (n) /* looking at one may have brought others in */
        memmove(s->crds.at, s->crds.at + n, (s->crds.n - n) * sizeof(*s->crds.at));
    s->crds.n -= n;
    return n > 0;
}

const struct controller definition_controller = { .on_load = definition_on_event,
                                                  .on_event = definition_on_event,
                                                  .reconcile = definition_reconcile };
