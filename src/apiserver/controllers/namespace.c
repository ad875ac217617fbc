/* Namespaces: each has a default service account and the certificate of the server, also after a client deleted them; a
 * terminating one is emptied and then deleted.
 *
 * Emptying starts a second after the delete, so that the client can still see the namespace terminate, and gets
 * 403 for creates in it. (kube-controller-manager waits five seconds.)
 *
 *     deleted -> phase Terminating -> wait PAUSE_S -> delete the objects of all namespaced kinds
 *             -> objects are left (finalizers): report them in the conditions, try again when one is deleted
 *             -> none is left: remove the finalizer "kubernetes", which deletes the namespace */
#include "controllers.h"

#include "../http/remove.h"

#include "../../base/rfc3339.h"
#include "../../json/scan.h"
#include "../../net/cert.h"
#include "../http/managed.h"

#include <stdio.h>

#define ROOT_CA "kube-root-ca.crt"

enum { PAUSE_S = 1 };

static const struct kind *namespace_kind(void)
{
    return kinds_find(S(""), S("v1"), S("namespaces"));
}

/* Adds the namespace to the queue once. */
static void enqueue_terminating(struct server *s, str name)
{
    for (size_t i = 0; i < s->terminating_namespaces.n; i++)
        if (str_eqc(name, s->terminating_namespaces.at[i]))
            return;
    char *kept = mem_dup(name.p, name.n);
    vec_push(&s->terminating_namespaces, kept);
}

static bool is_terminating(const struct server *s, str ns)
{
    for (size_t i = 0; ns.n && i < s->terminating_namespaces.n; i++)
        if (str_eqc(ns, s->terminating_namespaces.at[i]))
            return true;
    return false;
}

/* Queues new and terminating namespaces; a deleted object may be the last of its namespace. */
static void namespace_on_event(struct server *s, const struct event *e)
{
    struct store_key_parts parts = store_key_split(object_key(e->now));
    bool is_namespace = !parts.group.n && str_eq(parts.resource, S("namespaces"));
    if (is_namespace && !e->now->deleted && e->now->deleting)
        enqueue_terminating(s, parts.name);
    bool is_content =
        !parts.group.n && e->now->deleted && e->was &&
        ((str_eqc(parts.resource, "serviceaccounts") && str_eqc(parts.name, "default")) ||
         (str_eqc(parts.resource, "configmaps") && str_eqc(parts.name, ROOT_CA)));
    if (!s->no_accounts && !is_terminating(s, parts.ns) &&
        (is_content || (is_namespace && !e->now->deleted && !e->was && !e->now->deleting))) {
        str ns = is_content ? parts.ns : parts.name;
        char *kept = mem_dup(ns.p, ns.n);
        vec_push(&s->new_namespaces, kept);
        server_reconcile_soon(s);
    }
    if ((is_namespace && e->now->deleting) || (e->now->deleted && is_terminating(s, parts.ns)))
        server_reconcile_soon(s);
}

/* Also what is staged counts, so that nothing is created twice. */
static bool has_object(struct server *s, struct arena *a, const char *resource, str ns,
                       const char *name)
{
    return store_latest(s->store, store_key_make(a, (struct store_key_parts){
                                                        S(""), str_c(resource), ns, str_c(name) }));
}

/* What pods need: an account, and the certificate by which they verify the server. */
static void fill_namespace(struct server *s, str ns)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf body = { 0 };
    const struct object *o = store_latest(s->store, catalog_key(&a, namespace_kind(), S(""), ns));
    if (!o || o->deleting)
        return;
    str path = arena_printf(&a, "/api/v1/namespaces/" STR_FMT "/", STR_ARG(ns));
    if (!has_object(s, &a, "serviceaccounts", ns, "default"))
        server_post(s, arena_printf(&a, STR_FMT "serviceaccounts", STR_ARG(path)),
                    S("{\"metadata\":{\"name\":\"default\"}}"));
    if (!s->issuer || has_object(s, &a, "configmaps", ns, ROOT_CA))
        return;
    buf_put(&body, /* quoted: kube-controller-manager */
            S("{\"metadata\":{\"name\":\"" ROOT_CA
              "\",\"annotations\":{\"kubernetes.io/description\":"
              "\"Contains a CA bundle that can be used to verify the kube-apiserver when using "
              "internal endpoints such as the internal service IP or kubernetes.default.svc. No "
              "other usage is guaranteed across distributions of Kubernetes clusters.\"}},"
              "\"data\":{\"ca.crt\":"));
    json_write_text(&body, buf_str(&s->issuer->cert));
    buf_put(&body, S("}}"));
    server_post(s, arena_printf(&a, STR_FMT "configmaps", STR_ARG(path)), buf_str(&body));
}

/* ---- conditions */

struct remaining_content {
    struct arena *arena;
    struct json *left;       /* resource to the number of its objects */
    struct json *finalizers; /* finalizer to the number of objects that have it */
};

static void count_one(struct remaining_content *f, struct json *in, str what)
{
    json_set(f->arena, in, what, json_new_int(f->arena, json_int(json_get_str(in, what), 0) + 1));
}

static int compare_text(const void *x, const void *y)
{
    return str_cmp(*(const str *)x, *(const str *)y);
}

/* quoted: kube-controller-manager, "WORDS: a has 1 resource instances, b has 2 resource instances" */
static str describe_counts(struct arena *a, const char *words, const struct json *counts,
                           const char *verb)
{
    str *parts = arena_array(a, json_len(counts), sizeof(*parts));
    size_t n = 0;
    json_each(m, counts)
        parts[n++] = arena_printf(a, STR_FMT " %s %lld resource instances", STR_ARG(m->key), verb,
                                  (long long)json_int(m->value, 0));
    if (n)
        qsort(parts, n, sizeof(*parts), compare_text);
    auto_buf struct buf out = { 0 };
    buf_printf(&out, "%s: ", words);
    for (size_t i = 0; i < n; i++) {
        buf_put(&out, i ? S(", ") : S(""));
        buf_put(&out, parts[i]);
    }
    return arena_str(a, buf_str(&out));
}

/* lastTransitionTime changes only with the status. */
static void set_condition(struct server *s, struct arena *a, struct json *conditions,
                          const char *type, bool status, const char *reason, str message)
{
    struct json *c = NULL;
    for (size_t i = 0; i < json_len(conditions) && !c; i++)
        if (str_eqc(json_text(json_get(json_item(conditions, i), "type")), type))
            c = json_item(conditions, i);
    if (!c) {
        c = json_new_obj(a);
        json_push(a, conditions, c);
        json_set_str(a, c, "type", str_c(type));
    }
    str word = status ? S("True") : S("False");
    if (!str_eq(json_text(json_get(c, "status")), word))
        json_set_str(a, c, "lastTransitionTime", server_time(s, a));
    json_set_str(a, c, "status", word);
    json_set_str(a, c, "reason", str_c(reason));
    json_set_str(a, c, "message", message);
}

/* quoted: kube-controller-manager, all reasons and messages. Writes only if something changed, or the write
 * would trigger the next reconcile. */
static void update_conditions(struct server *s, struct arena *a, str key, struct json *tree,
                              const struct remaining_content *f)
{
    struct json *before = json_copy(a, tree), *status = json_make(a, tree, "status", NULL);
    struct json *conditions = json_get(status, "conditions");
    if (!json_is(conditions, JSON_ARR)) {
        conditions = json_new_arr(a);
        json_set(a, status, S("conditions"), conditions);
    }
    set_condition(s, a, conditions, "NamespaceDeletionDiscoveryFailure", false,
                  "ResourcesDiscovered", S("All resources successfully discovered"));
    set_condition(s, a, conditions, "NamespaceDeletionGroupVersionParsingFailure", false,
                  "ParsedGroupVersions", S("All legacy kube types successfully parsed"));
    set_condition(s, a, conditions, "NamespaceDeletionContentFailure", false, "ContentDeleted",
                  S("All content successfully deleted, may be waiting on finalization"));
    bool left = json_len(f->left), held = json_len(f->finalizers);
    set_condition(s, a, conditions, "NamespaceContentRemaining", left,
                  left ? "SomeResourcesRemain" : "ContentRemoved",
                  left ? describe_counts(a, "Some resources are remaining", f->left, "has")
                       : S("All content successfully removed"));
    set_condition(s, a, conditions, "NamespaceFinalizersRemaining", held,
                  held ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
                  held
                      ? describe_counts(a, "Some content in the namespace has finalizers remaining",
                                        f->finalizers, "in")
                      : S("All content-preserving finalizers finished"));
    if (json_eq(before, tree))
        return;
    managed_update_as(s, a, namespace_kind(),
                      &(struct managed_change){ S("kube-controller-manager"), KIND_STATUS, before,
                                                tree });
    write_end_edit(s, a, namespace_kind(), key, tree);
}

/* ---- deletion of the content */

/* Counts the object and its finalizers among what is left. */
static void count_object(struct remaining_content *f, const struct kind *k, const struct object *o)
{
    str rest = o->finalizers.n ? object_span(o, o->finalizers) : S(""), key, value;
    count_one(f, f->left,
              arena_printf(f->arena, STR_FMT "." STR_FMT, STR_ARG(k->plural), STR_ARG(k->group)));
    while (scan_next(&rest, &key, &value))
        count_one(f, f->finalizers, scan_text(f->arena, value));
}

/* Deletes all objects of a kind in the namespace and counts those that are left. */
static void empty_kind(struct server *s, const struct kind *k, str ns, struct remaining_content *f)
{
    auto_arena struct arena a = { 0 };
    str prefix = catalog_prefix(&a, k, ns);
    struct controllers_objects found = controllers_collect(s, prefix);
    for (size_t i = 0; i < found.all.n; i++) {
        auto_arena struct arena scratch = { 0 };
        str key = object_key(found.all.at[i]);
        const struct object *o = store_latest(s->store, key);
        if (o && !o->deleting)
            remove_object(s, &scratch, k, o,
                          &(struct remove_options){ .propagation = PROPAGATE_BACKGROUND,
                                                    .grace_s = -1 });
        o = store_latest(s->store, key);
        if (o)
            count_object(f, k, o);
    }
    controllers_release(&found);
}

/* False: the namespace is deleted, or not terminating any more; remove it from the queue. */
static bool empty_namespace(struct server *s, str name)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k;
    str key = catalog_key(&a, namespace_kind(), S(""), name);
    const struct object *o = store_latest(s->store, key);
    struct json *tree = o && o->deleting ? write_begin_edit(s, &a, key, &k) : NULL;
    if (!tree)
        return false;
    int64_t since = 0;
    err_t e;
    (void)rfc3339_parse(json_text(json_at(tree, "metadata", "deletionTimestamp", NULL)), &since,
                        &e);
    /* timestamps have whole seconds: `<=` makes sure that a full second has passed */
    if (s->loop && server_now_ns(s) / NS_PER_S <= since + PAUSE_S) {
        server_reconcile_later(s);
        return true;
    }
    struct remaining_content f = { &a, json_new_obj(&a), json_new_obj(&a) };
    for (size_t i = 0; i < s->catalog.all.n; i++) {
        const struct kind *each = s->catalog.all.at[i];
        if (each->namespaced && each == each->storage && !each->answer_only)
            empty_kind(s, each, name, &f);
    }
    if (json_len(f.left)) {
        update_conditions(s, &a, key, tree, &f);
        return true;
    }
    if (remove_from_list(json_at(tree, "spec", "finalizers", NULL), S("kubernetes")))
        write_end_edit(s, &a, k, key, tree);
    return store_latest(s->store, key) != NULL;
}

static bool namespace_reconcile(struct server *s)
{
    bool worked = s->new_namespaces.n > 0;
    for (size_t i = 0; i < s->new_namespaces.n; i++) {
        fill_namespace(s, str_c(s->new_namespaces.at[i]));
        free(s->new_namespaces.at[i]);
    }
    vec_clear(&s->new_namespaces);
    for (size_t i = s->terminating_namespaces.n; i-- > 0;) {
        if (empty_namespace(s, str_c(s->terminating_namespaces.at[i])))
            continue;
        free(s->terminating_namespaces.at[i]);
        vec_remove(&s->terminating_namespaces, i);
        worked = true;
    }
    return worked;
}

/* Also at later starts: the disk may have been full at the first one. */
static void namespace_seed(struct server *s)
{
    auto_arena struct arena a = { 0 };
    static const char *const names[] = { "default", "kube-system", "kube-public",
                                         "kube-node-lease" };
    for (size_t i = 0; i < countof(names); i++) {
        char body[80];
        if (store_latest(s->store, catalog_key(&a, namespace_kind(), S(""), str_c(names[i]))))
            continue;
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", names[i]);
        server_post(s, S("/api/v1/namespaces"), str_c(body));
    }
}

/* An existing namespace has its account; one that was being emptied still is. */
static void namespace_on_load(struct server *s, const struct event *e)
{
    if (e->now->deleting)
        namespace_on_event(s, e);
}

const struct server_controller namespace_controller = { .on_load = namespace_on_load,
                                                        .seed = namespace_seed,
                                                        .on_event = namespace_on_event,
                                                        .reconcile = namespace_reconcile };
