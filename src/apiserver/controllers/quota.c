/* Counts what the objects of a namespace use of its quotas: when a quota is written, when an object goes away, and when
 * a pod changes, because a finished pod frees what it requested. What a request adds is already in the status. */
#include "../http/admission_quota.h"
#include "controllers.h"

/* Each namespace is in the queue once, however many of its objects a
 * batch deletes. */
static void enqueue_namespace(struct server *s, str ns)
{
    for (size_t i = 0; i < s->counted_namespaces.n; i++)
        if (str_eqc(ns, s->counted_namespaces.at[i]))
            return;
    char *kept = mem_dup(ns.p, ns.n);
    vec_push(&s->counted_namespaces, kept);
    server_reconcile_soon(s);
}

/* A search in the tree, for every deleted object: most namespaces have no quota. */
static bool has_quota(const struct server *s, str ns)
{
    auto_arena struct arena a = { 0 };
    str prefix = arena_printf(&a, "/resourcequotas/" STR_FMT "/", STR_ARG(ns));
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    return tree_next_in(&c, prefix) != NULL;
}

/* A new object needs no recount: its request has charged the quotas. */
static void quota_on_event(struct server *s, const struct event *e)
{
    struct store_key_parts parts = store_key_split(object_key(e->now));
    bool core = !parts.group.n, gone = e->now->deleted;
    bool is_quota = core && str_eq(parts.resource, S("resourcequotas"));
    bool changed = e->was && core && str_eq(parts.resource, S("pods"));
    if (parts.ns.n && ((is_quota && !gone) || ((gone || changed) && has_quota(s, parts.ns))))
        enqueue_namespace(s, parts.ns);
}

/* Counts each queued namespace. */
static bool quota_reconcile(struct server *s)
{
    bool worked = false;
    for (size_t i = 0; i < s->counted_namespaces.n; i++) {
        worked |= admission_quota_count(s, str_c(s->counted_namespaces.at[i]));
        free(s->counted_namespaces.at[i]);
    }
    vec_clear(&s->counted_namespaces);
    return worked;
}

/* The queue owns its names; the server that stops counts nothing any
 * more. */
static void quota_stop(struct server *s)
{
    for (size_t i = 0; i < s->counted_namespaces.n; i++)
        free(s->counted_namespaces.at[i]);
    vec_done(&s->counted_namespaces);
}

const struct server_controller quota_controller = { .stop = quota_stop,
                                                    .on_event = quota_on_event,
                                                    .reconcile = quota_reconcile };
