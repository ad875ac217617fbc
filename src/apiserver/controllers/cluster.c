/* What every cluster has: the two priority classes of the system, the priority levels and flow schemas that exempt and
 * catch everything, and an APIService for each group and version that this server serves.
 *
 * APIServices of other servers become Available when their service has an address (--service-address); without one the
 * condition is ServiceNotFound, and requests are answered with 503. */
#include "controllers.h"

#include "../http/managed.h"
#include "../http/write.h"

#define REGISTRATION "apiregistration.k8s.io"
#define OWN_SERVICE "/services/default/kubernetes"
#define FLOW "/apis/flowcontrol.apiserver.k8s.io/v1/"
#define CATCH_ALL_RULES                                                                               \
    "\"rules\":[{\"subjects\":[{\"kind\":\"Group\",\"group\":{\"name\":\"system:unauthenticated\"}}," \
    "{\"kind\":\"Group\",\"group\":{\"name\":\"system:authenticated\"}}],\"resourceRules\":[{"        \
    "\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"clusterScope\":true,"            \
    "\"namespaces\":[\"*\"]}],\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]"
#define EXEMPT_RULES                                                                               \
    "\"rules\":[{\"subjects\":[{\"kind\":\"Group\",\"group\":{\"name\":\"system:masters\"}}],"     \
    "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"           \
    "\"clusterScope\":true,\"namespaces\":[\"*\"]}],\"nonResourceRules\":[{\"verbs\":[\"*\"],"     \
    "\"nonResourceURLs\":[\"*\"]}]}]"

static const struct {
    const char *path, *key, *body;
} objects[] = {
    { "/apis/scheduling.k8s.io/v1/priorityclasses",
      "scheduling.k8s.io/priorityclasses//system-cluster-critical",
      "{\"metadata\":{\"name\":\"system-cluster-critical\"},\"value\":2000000000,\"description\":"
      "\"Used for system critical pods that must run in the cluster, but can be moved to another "
      "node if necessary.\"}" }, /* quoted: kube-apiserver */
    { "/apis/scheduling.k8s.io/v1/priorityclasses",
      "scheduling.k8s.io/priorityclasses//system-node-critical",
      "{\"metadata\":{\"name\":\"system-node-critical\"},\"value\":2000001000,\"description\":"
      "\"Used for system critical pods that must not be moved from their current node.\"}" },
    { FLOW "prioritylevelconfigurations",
      "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations//exempt",
      "{\"metadata\":{\"name\":\"exempt\"},\"spec\":{\"type\":\"Exempt\",\"exempt\":{}}}" },
    { FLOW "prioritylevelconfigurations",
      "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations//catch-all",
      "{\"metadata\":{\"name\":\"catch-all\"},\"spec\":{\"type\":\"Limited\",\"limited\":{"
      "\"nominalConcurrencyShares\":5,\"limitResponse\":{\"type\":\"Reject\"}}}}" },
    { FLOW "flowschemas", "flowcontrol.apiserver.k8s.io/flowschemas//exempt",
      "{\"metadata\":{\"name\":\"exempt\"},\"spec\":{\"matchingPrecedence\":1,"
      "\"priorityLevelConfiguration\":{\"name\":\"exempt\"}," EXEMPT_RULES "}}" },
    { FLOW "flowschemas", "flowcontrol.apiserver.k8s.io/flowschemas//catch-all",
      "{\"metadata\":{\"name\":\"catch-all\"},\"spec\":{\"matchingPrecedence\":10000,"
      "\"distinguisherMethod\":{\"type\":\"ByUser\"},"
      "\"priorityLevelConfiguration\":{\"name\":\"catch-all\"}," CATCH_ALL_RULES "}}" },
};

/* groupPriorityMinimum and versionPriority of the groups that kube-apiserver orders explicitly; others have 17500 and
 * fewer. */
static int64_t group_priority(str group)
{
    static const char *const order[] = { "",
                                         "extensions",
                                         "apps",
                                         "events.k8s.io",
                                         "authentication.k8s.io",
                                         "authorization.k8s.io",
                                         "autoscaling",
                                         "batch",
                                         "certificates.k8s.io",
                                         "networking.k8s.io",
                                         "policy",
                                         "rbac.authorization.k8s.io",
                                         "storage.k8s.io",
                                         "apiextensions.k8s.io",
                                         "admissionregistration.k8s.io",
                                         "scheduling.k8s.io",
                                         "coordination.k8s.io",
                                         "node.k8s.io",
                                         "discovery.k8s.io",
                                         "flowcontrol.apiserver.k8s.io" };
    static const int64_t priorities[] = { 18000, 17900, 17800, 17750, 17700, 17600, 17500,
                                          17400, 17300, 17200, 17100, 17000, 16800, 16700,
                                          16700, 16600, 16500, 16300, 16200, 16100 };
    for (size_t i = 0; i < countof(order); i++)
        if (str_eqc(group, order[i]))
            return priorities[i];
    return 16000;
}

/* The key of the APIService of a group and version. */
static str service_key(struct arena *a, const struct kind *k)
{
    str name = arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(k->version), STR_ARG(k->group));
    return store_key_make(a, (struct store_key_parts){ S(REGISTRATION), S("apiservices"), S(""),
                                                       name });
}

/* One for each built-in group and version. The core group has version priority 1, as in kube-apiserver. */
static void seed_local_service(struct server *s, struct arena *a, const struct kind *k)
{
    if (store_latest(s->store, service_key(a, k)))
        return;
    str body = arena_printf(
        a,
        "{\"metadata\":{\"name\":\"" STR_FMT "." STR_FMT
        "\",\"labels\":{\"kube-aggregator.kubernetes.io/automanaged\":\"%s\"}},\"spec\":{\"group\":\"" STR_FMT
        "\",\"version\":\"" STR_FMT "\",\"groupPriorityMinimum\":%lld,\"versionPriority\":%d}}",
        STR_ARG(k->version), STR_ARG(k->group), "onstart", STR_ARG(k->group), STR_ARG(k->version),
        (long long)group_priority(k->group), k->group.n ? 15 : 1);
    server_post(s, S("/apis/" REGISTRATION "/v1/apiservices"), body);
}

/* Only what is missing is created, so that changes of a user stay. */
static void cluster_seed(struct server *s)
{
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(objects); i++)
        if (!store_latest(s->store, str_c(objects[i].key)))
            server_post(s, str_c(objects[i].path), str_c(objects[i].body));
    for (size_t i = 0; i < s->catalog.all.n; i++)
        if (!s->catalog.all.at[i]->custom)
            seed_local_service(s, &a, s->catalog.all.at[i]);
    s->services_changed = true;
}

/* ---- APIServices */

/* Any change of an APIService, and the deletion of our own Service. */
static void cluster_on_event(struct server *s, const struct event *e)
{
    struct store_key_parts parts = store_key_split(object_key(e->now));
    bool own = e->now->deleted && str_eqc(object_key(e->now), OWN_SERVICE);
    if (!own && !str_eq(parts.group, S(REGISTRATION)))
        return;
    s->services_changed = true;
    server_reconcile_soon(s);
}

/* Writes the condition Available if it differs. True: written. */
static bool set_available(struct server *s, struct arena *a, str key)
{
    const struct kind *k;
    struct json *tree = write_begin_edit(s, a, key, &k);
    const struct json *service = json_at(tree, "spec", "service", NULL);
    str name = json_text(json_get(service, "name")), ns = json_text(json_get(service, "namespace"));
    bool found = !service || server_service_address(s, ns, name).n;
    struct json *condition = json_item(json_at(tree, "status", "conditions", NULL), 0);
    str status = found ? S("True") : S("False");
    str reason = !service ? S("Local") : found ? S("Passed") : S("ServiceNotFound");
    if (!tree || str_eq(json_text(json_get(condition, "reason")), reason))
        return false;
    struct json *list = json_new_arr(a);
    condition = json_new_obj(a);
    json_set_str(a, condition, "type", S("Available"));
    json_set_str(a, condition, "status", status);
    json_set_str(a, condition, "lastTransitionTime", server_time(s, a));
    json_set_str(a, condition, "reason", reason);
    json_set_str(a, condition, "message", /* quoted: kube-aggregator */
                 !service ? S("Local APIServices are always available")
                 : found  ? S("all checks passed")
                          : arena_printf(a, "service/" STR_FMT " in \"" STR_FMT "\" is not present",
                                         STR_ARG(name), STR_ARG(ns)));
    json_push(a, list, condition);
    json_set(a, json_make(a, tree, "status", NULL), S("conditions"), list);
    return write_end_edit(s, a, k, key, tree);
}

/* Clients look for the Service default/kubernetes. It has no Endpoints: kube-apiserver refuses loopback addresses in
 * them. A full disk is no failure: nothing depends on it here. */
static bool restore_own_service(struct server *s, struct arena *a)
{
    if (!s->own_port || store_latest(s->store, S(OWN_SERVICE)))
        return false;
    return server_post(
        s, S("/api/v1/namespaces/default/services"),
        arena_printf(
            a,
            "{\"metadata\":{\"name\":\"kubernetes\",\"labels\":{\"component\":\"apiserver\","
            "\"provider\":\"kubernetes\"}},\"spec\":{\"clusterIP\":\"10.96.0.1\",\"ports\":["
            "{\"name\":\"https\",\"port\":443,\"protocol\":\"TCP\",\"targetPort\":%u}]}}",
            s->own_port));
}

/* Sets the conditions of all. */
static bool cluster_reconcile(struct server *s)
{
    auto_arena struct arena a = { 0 };
    if (!s->services_changed)
        return false;
    s->services_changed = false;
    bool worked = restore_own_service(s, &a);
    struct controllers_objects all = controllers_collect(s, S(REGISTRATION "/apiservices//"));
    for (size_t i = 0; i < all.all.n; i++) {
        str key = object_key(all.all.at[i]);
        const struct kind *k;
        struct json *tree = store_latest(s->store, key) ? write_begin_edit(s, &a, key, &k) : NULL;
        if (tree)
            worked |= set_available(s, &a, key);
    }
    controllers_release(&all);
    return worked;
}

const struct server_controller cluster_controller = { .seed = cluster_seed,
                                                      .on_event = cluster_on_event,
                                                      .reconcile = cluster_reconcile };
