/* CustomResourceDefinitions: accepts their names, serves their kinds, and deletes their objects before they are
 * deleted themselves.
 *
 * A definition is checked after each commit that changed it:
 *
 *     created      names are compared with all other definitions -> conditions NamesAccepted, Established
 *     Established  its kinds are registered; when the spec changes they are registered again, which ends the
 *                  watches of the old kinds
 *     deleted      creates are refused, its objects are deleted; when none is left the finalizer is removed
 *     gone         its kinds are unregistered; definitions that waited for its names are checked
 *
 * The deletion of a custom object puts its definition back into the queue if that is terminating. */
#include "controllers.h"

#include "../http/remove.h"

#include "../http/managed.h"
#include "../http/read.h"
#include "../http/watch.h"

static const struct kind *definition_kind(void)
{
    return kinds_find(CRD_GROUP, S("v1"), CRD_PLURAL);
}

/* Whether the condition has the status True. */
static bool is_condition_true(const struct json *crd, str type)
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

/* Ends the watches of the kinds first, because their clients must discover the new ones. */
static void unregister_kinds(struct server *s, struct catalog_set *set)
{
    for (size_t i = 0; i < set->kinds.n; i++) {
        auto_arena struct arena a = { 0 };
        watch_end_all(s, catalog_prefix(&a, set->kinds.at[i], S("")));
    }
    catalog_remove(&s->catalog, set->name);
}

/* Registers the kinds of an established definition unless this generation is registered. */
static void serve_definition(struct server *s, const struct object *o, const struct json *crd)
{
    struct catalog_set *set =
        catalog_find_set(&s->catalog, json_text(json_at(crd, "metadata", "name", NULL)));
    int64_t generation = json_int(json_at(crd, "metadata", "generation", NULL), 0);
    if (!set || set->generation != generation) {
        struct catalog_set *fresh = catalog_set_new(crd);
        fresh->rev = o->rev;
        if (set)
            unregister_kinds(s, set);
        catalog_put(&s->catalog, fresh);
        set = fresh;
    }
    set->terminating = o->deleting;
}

/* ---- one definition */

/* Deletes all objects of a terminating definition, and removes its finalizer when none is left. Objects
 * that finalizers hold are waited for. */
static void delete_custom_objects(struct server *s, struct arena *a, str key, struct json *crd,
                                  const struct kind *k)
{
    str prefix = objects_prefix(a, crd);
    struct catalog_set *set;
    const struct kind *stored = catalog_find_by_key(&s->catalog, prefix, &set);
    struct controllers_objects found = controllers_collect(s, prefix);
    for (size_t i = 0; i < found.all.n; i++) {
        auto_arena struct arena scratch = { 0 };
        const struct object *o = store_latest(s->store, object_key(found.all.at[i]));
        if (o && !o->deleting && stored)
            remove_object(s, &scratch, stored, o, &(struct remove_options){ .grace_s = -1 });
    }
    controllers_release(&found);
    if (!store_any_latest(s->store, prefix, NULL, NULL) &&
        remove_from_list(json_at(crd, "metadata", "finalizers", NULL), FINALIZER_CRD))
        write_end_edit(s, a, k, key, crd);
}

/* Compares the names with those of all definitions, as they will be after the next commit, and writes the
 * conditions. */
static void accept_names(struct server *s, struct arena *a, str key, struct json *crd,
                         const struct kind *k)
{
    VEC(const struct json *) all = { 0 };
    str prefix = catalog_prefix(a, definition_kind(), S(""));
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));) {
        const struct object *latest = store_latest(s->store, object_key(o));
        bool itself = str_eq(object_key(o), key);
        if (latest)
            vec_push(&all, itself ? crd : read_tree(a, definition_kind(), latest));
    }
    struct json *was = json_copy(a, crd);
    if (kinds_accept_crd_names(a, crd, all.at, all.n, server_now_ns(s))) {
        managed_update_as(s, a, k,
                          &(struct managed_change){ S("kube-apiserver"), KIND_STATUS, was, crd });
        write_end_edit(s, a, k, key, crd);
    }
    vec_done(&all);
}

/* Level-triggered: looks only at the current state, so that it does not matter which event was the reason. */
static void reconcile_definition(struct server *s, str name)
{
    auto_arena struct arena a = { 0 };
    str key = catalog_key(&a, definition_kind(), S(""), name);
    const struct kind *k;
    const struct object *o = store_latest(s->store, key);
    struct json *crd = o ? write_begin_edit(s, &a, key, &k) : NULL;
    if (!crd) {
        struct catalog_set *set = catalog_find_set(&s->catalog, name);
        if (set)
            unregister_kinds(s, set);
        return;
    }
    if (is_condition_true(crd, S("Established")))
        serve_definition(s, o, crd);
    if (o->deleting)
        delete_custom_objects(s, &a, key, crd, k);
    else
        accept_names(s, &a, key, crd, k);
}

/* Adds the definition to the queue once. */
static void enqueue_definition(struct server *s, str name)
{
    for (size_t i = 0; i < s->changed_definitions.n; i++)
        if (str_eqc(name, s->changed_definitions.at[i]))
            return;
    char *kept = mem_dup(name.p, name.n);
    vec_push(&s->changed_definitions, kept);
    server_reconcile_soon(s);
}

/* A change of a definition, or the deletion of an object whose definition is terminating. */
static void definition_on_event(struct server *s, const struct event *e)
{
    struct store_key_parts parts = store_key_split(object_key(e->now));
    if (str_eq(parts.group, CRD_GROUP) && str_eq(parts.resource, CRD_PLURAL)) {
        enqueue_definition(s, parts.name);
        s->all_definitions_changed |= e->now->deleted; /* its names are free now */
        return;
    }
    if (!e->now->deleted || !s->catalog.sets.n)
        return;
    auto_arena struct arena a = { 0 };
    str name = arena_printf(&a, STR_FMT "." STR_FMT, STR_ARG(parts.resource), STR_ARG(parts.group));
    struct catalog_set *set = catalog_find_set(&s->catalog, name);
    if (set && set->terminating)
        enqueue_definition(s, name);
}

static void enqueue_all_definitions(struct server *s)
{
    auto_arena struct arena a = { 0 };
    str prefix = catalog_prefix(&a, definition_kind(), S(""));
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));)
        enqueue_definition(s, store_key_split(object_key(o)).name);
}

static bool definition_reconcile(struct server *s)
{
    if (s->all_definitions_changed)
        enqueue_all_definitions(s);
    s->all_definitions_changed = false;
    size_t n = s->changed_definitions.n;
    for (size_t i = 0; i < n; i++) {
        reconcile_definition(s, str_c(s->changed_definitions.at[i]));
        free(s->changed_definitions.at[i]);
    }
    if (n) /* keep what was queued meanwhile */
        memmove(s->changed_definitions.at, s->changed_definitions.at + n,
                (s->changed_definitions.n - n) * sizeof(*s->changed_definitions.at));
    s->changed_definitions.n -= n;
    return n > 0;
}

const struct server_controller definition_controller = { .on_load = definition_on_event,
                                                         .on_event = definition_on_event,
                                                         .reconcile = definition_reconcile };
