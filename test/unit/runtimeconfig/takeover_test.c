/* Taking over from the newer operator (aim-engine): the objects of a running service, in the form and under the names in which it
 * writes them. Nothing is created a second time, its finalizers do not keep objects for ever, its conditions go. */
#include "aim_world.h"
#include "runtimeconfig/service_world.h"

#define ENGINE "app.kubernetes.io/managed-by: aim-engine, aim.silogen.ai/service: chat"
#define OWNER(kind)                                                                                \
    "ownerReferences: [{apiVersion: aim.silogen.ai/v1alpha1, kind: " kind                          \
    ", name: %s, uid: %s, controller: true, blockOwnerDeletion: true}]"
#define CONDITION(type, reason)                                                                    \
    "{type: " type ", status: 'True', reason: " reason                                             \
    ", message: m, lastTransitionTime: '2026-01-01T00:00:00Z'}"

static const char ns[] = "ml-team";
static const char isvc[] = "chat-050bd8bf", route[] = "chat-050bd8bf", cache[] = "fast-050bd8bf",
                  artifact[] = "hf-acme-tiny-0123456789";

/* Creates an object whose text has the name and uid of its owner as two %s; NULL: it has none. */
static void create_owned(struct cluster *c, const struct resource *resource, const char *text,
                         enum aim_kind owner, const char *owner_name)
{
    str uid = json_text(
        json_at(cluster_get(c, aim_test_kind(owner), ns, owner_name), "metadata", "uid", NULL));
    auto_buf struct buf b = { 0 };
    for (const char *p = text; *p; p++) {
        bool slot = p[0] == '%' && p[1] == 's';
        if (!slot)
            buf_putc(&b, *p);
        else if (str_ends(buf_str(&b), S("uid: ")))
            buf_put(&b, uid);
        else
            buf_put(&b, str_c(owner_name));
        p += slot;
    }
    aim_test_create(c, resource, ns, arena_str(&c->arena, buf_str(&b)).p);
}

static str uid_hash_name(struct cluster *c, const char *role)
{
    /* what the operator derives from the uid is derived by flyball as well: read it from a throwaway artifact of ours */
    struct cluster_answer a = cluster_do(c, KUBE_LIST, &aim_resource_claims, ns, NULL, S(""));
    const struct json *items = json_get(a.object, "items");
    for (size_t i = 0; i < json_len(items); i++) {
        str name = json_text(json_at(json_item(items, i), "metadata", "name", NULL));
        if (str_find(name, str_c(role)) != SIZE_MAX)
            return arena_str(&c->arena, name);
    }
    return S("");
}

/* What the original leaves behind for one running service with routing and a shared cache. */
static void create_left_behind(struct cluster *c)
{
    aim_test_create(
        c, aim_test_kind(AIM_CONFIG), ns,
        "{metadata: {name: default}, spec: {routing: {enabled: true, gatewayRef: {name: "
        "inference-gateway, namespace: gateways}}}}");
    aim_test_create(c, aim_test_kind(AIM_MODEL), ns,
                    "{metadata: {name: tiny}, spec: {image: 'example.org/tiny:1'}}");
    aim_test_create(c, aim_test_kind(AIM_TEMPLATE), ns,
                    "{metadata: {name: fast}, spec: {modelName: tiny, metric: latency, precision: "
                    "fp16, modelSources: [{modelId: acme/tiny, sourceUri: 'hf://acme/tiny', size: "
                    "2Gi}]}}");
    aim_test_create(c, aim_test_kind(AIM_SERVICE), ns,
                    "{metadata: {name: chat, finalizers: [aim.silogen.ai/template-cache-cleanup]}, "
                    "spec: {model: {name: tiny}, template: {name: fast}, caching: {mode: "
                    "Shared}}}");
    aim_test_create(
        c, aim_test_kind(AIM_TEMPLATE_CACHE), ns,
        "{metadata: {name: fast-050bd8bf, finalizers: [aim.silogen.ai/artifactcleanup], "
        "labels: {aim.silogen.ai/service: chat}}, spec: {templateName: fast, "
        "templateScope: Namespace, mode: Shared}}");
    aim_test_create(c, aim_test_kind(AIM_ARTIFACT), ns,
                    "{metadata: {name: hf-acme-tiny-0123456789, labels: {template-created: 'true', "
                    "aim.silogen.ai/template-cache.name: fast-050bd8bf}}, spec: {sourceUri: "
                    "'hf://acme/tiny', modelId: acme/tiny, size: 2Gi}}");
    create_owned(c, &aim_resource_inference_services,
                 "{metadata: {name: chat-050bd8bf, labels: {" ENGINE "}, " OWNER(
                     "AIMService") "}, spec: {predictor: {containers: [{name: kserve-container, "
                                   "image: 'example.org/tiny:1'}]}}}",
                 AIM_SERVICE, "chat");
    create_owned(
        c, &aim_resource_httproutes,
        "{metadata: {name: chat-050bd8bf, labels: {" ENGINE
        "}, " OWNER("AIMService") "}, spec: {parentRefs: [{name: inference-gateway, namespace: "
                                  "gateways}], rules: [{matches: [{path: {type: PathPrefix, value: "
                                  "/old}}], backendRefs: [{kind: Service, name: "
                                  "chat-050bd8bf-predictor, namespace: ml-team, port: 80}]}]}}",
        AIM_SERVICE, "chat");
}

/* The statuses that it wrote last. */
static void set_left_statuses(struct cluster *c, const char *claim)
{
    aim_test_set_status(
        c, aim_test_kind(AIM_SERVICE), ns, "chat",
        "{status: Running, resolvedTemplate: {name: fast, namespace: ml-team, kind: "
        "AIMServiceTemplate, scope: Namespace}, conditions: [" CONDITION("Ready", "AllComponentsReady") ", " CONDITION(
            "ModelReady",
            "ModelResolved") ", "
                             "" CONDITION("HTTPRouteReady", "HTTPRouteAccepted") ", " CONDITION(
                                 "DependenciesReachable", "Reachable") "]}");
    aim_test_set_status(
        c, aim_test_kind(AIM_TEMPLATE), ns, "fast",
        "{status: Ready, modelSources: [{modelId: acme/tiny, sourceUri: "
        "'hf://acme/tiny', size: 2Gi}], conditions: [" CONDITION("GPUReady", "GPUAvailable") "]}");
    aim_test_set_status(
        c, aim_test_kind(AIM_ARTIFACT), ns, artifact,
        arena_printf(&c->arena,
                     "{status: Ready, mode: Shared, allocatedSize: 3Gi, persistentVolumeClaim: %s, "
                     "progress: {percentage: 100, displayPercentage: '100 %%'}, conditions: "
                     "[" CONDITION("DownloadComplete", "Verified") "]}",
                     claim)
            .p);
    aim_test_set_status(c, &aim_resource_inference_services, ns, isvc,
                        "{conditions: [{type: Ready, status: 'True'}]}");
}

static size_t count(struct cluster *c, const struct resource *resource)
{
    struct cluster_answer a = cluster_do(c, KUBE_LIST, resource, ns, NULL, S(""));
    return json_len(json_get(a.object, "items"));
}

/* The cluster as the original left it, with the volume that it filled. */
static void start_left_behind(struct cluster *c)
{
    aim_test_start(c);
    create_left_behind(c);
    aim_test_start_operator(c); /* only to learn the name of the volume, which depends on the uid */
    const char *claim = uid_hash_name(c, "hf-acme-tiny-0123456789-cache-").p;
    OK(claim && *claim);
    aim_test_set_status(c, &aim_resource_claims, ns, claim, "{phase: Bound}");
    cluster_operator_down(c);
    struct cluster_answer jobs = cluster_do(c, KUBE_LIST, &aim_resource_jobs, ns, NULL, S(""));
    const struct json *items = json_get(jobs.object, "items");
    for (size_t i = 0; i < json_len(items); i++)
        cluster_do(c, KUBE_DELETE, &aim_resource_jobs, ns,
                   arena_str(&c->arena,
                             json_text(json_at(json_item(items, i), "metadata", "name", NULL)))
                       .p,
                   S(""));
    set_left_statuses(c, claim);
}

static void nothing_is_made_twice(void)
{
    struct cluster c;
    start_left_behind(&c);
    const struct json *before = cluster_get(&c, &aim_resource_inference_services, ns, isvc);
    buf_clear(&c.log);
    aim_test_start_operator(&c);
    cluster_until(&c, cluster_now(&c) + 120);
    EQ_INT((int64_t)count(&c, &aim_resource_inference_services), 1);
    EQ_INT((int64_t)count(&c, &aim_resource_httproutes), 1);
    EQ_INT((int64_t)count(&c, aim_test_kind(AIM_TEMPLATE_CACHE)), 1);
    EQ_INT((int64_t)count(&c, aim_test_kind(AIM_ARTIFACT)), 1);
    EQ_INT((int64_t)count(&c, aim_test_kind(AIM_MODEL_CACHE)), 0);
    EQ_INT((int64_t)count(&c, &aim_resource_claims), 1);
    EQ_INT((int64_t)count(&c, &aim_resource_jobs), 0);
    const struct json *after = cluster_get(&c, &aim_resource_inference_services, ns, isvc);
    OK(json_eq(json_get(before, "spec"), json_get(after, "spec")));
    const struct json *status = aim_test_status(&c, AIM_SERVICE, ns, "chat");
    static const char *const gone[] = { "ModelReady", "HTTPRouteReady", "DependenciesReachable" };
    for (size_t i = 0; i < countof(gone); i++)
        OK(!aim_status_find(status, gone[i]));
    OK(!aim_status_find(aim_test_status(&c, AIM_TEMPLATE, ns, "fast"), "GPUReady"));
    EQ_STR(aim_test_reason(status, "Serving"), S("RuntimeServing"));
    EQ_STR(aim_test_reason(status, "CacheReady"), S("CacheWarm"));
    const struct json *artifacts =
        json_get(aim_test_status(&c, AIM_TEMPLATE_CACHE, ns, cache), "artifacts");
    OK(json_get_str(artifacts, str_c(artifact)) != NULL);
    size_t writes = c.operator_writes;
    cluster_until(&c, cluster_now(&c) + 3600);
    EQ_INT((int64_t)c.operator_writes, (int64_t)writes);
    cluster_stop(&c);
}

/* Routing that is disabled afterwards removes the route that the original made. */
static void its_route_follows_the_service(void)
{
    struct cluster c;
    start_left_behind(&c);
    create_owned(&c, &aim_resource_httproutes,
                 "{metadata: {name: chat, labels: {app.kubernetes.io/managed-by: aim-controller}, "
                 "" OWNER("AIMService") "}, spec: {parentRefs: [{name: inference-gateway, "
                                        "namespace: gateways}]}}",
                 AIM_SERVICE, "chat");
    aim_test_start_operator(&c);
    cluster_until(&c, cluster_now(&c) + 5);
    OK(!cluster_get(&c, &aim_resource_httproutes, ns, "chat"));
    OK(cluster_get(&c, &aim_resource_httproutes, ns, route) != NULL);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat",
                   "{spec: {routing: {enabled: false}}}");
    cluster_until(&c, cluster_now(&c) + 5);
    EQ_INT((int64_t)count(&c, &aim_resource_httproutes), 0);
    cluster_stop(&c);
}

/* Its finalizers are removed by flyball, because no other operator runs any more. */
static void its_finalizers_are_released(void)
{
    struct cluster c;
    start_left_behind(&c);
    aim_test_start_operator(&c);
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_SERVICE), ns, "chat", S(""));
    cluster_until(&c, cluster_now(&c) + 10);
    OK(!cluster_get(&c, aim_test_kind(AIM_SERVICE), ns, "chat"));
    OK(cluster_get(&c, aim_test_kind(AIM_TEMPLATE_CACHE), ns,
                   cache)); /* complete: kept for others */
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_TEMPLATE_CACHE), ns, cache, S(""));
    cluster_until(&c, cluster_now(&c) + 10);
    OK(!cluster_get(&c, aim_test_kind(AIM_TEMPLATE_CACHE), ns, cache));
    OK(cluster_get(&c, aim_test_kind(AIM_ARTIFACT), ns, artifact));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(nothing_is_made_twice),
                                        TAP(its_route_follows_the_service),
                                        TAP(its_finalizers_are_released),
                                        { 0 } });
}
