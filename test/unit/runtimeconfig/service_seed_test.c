/* A walk through the documented behaviour, example by example, with everything around it at work: the test plays KServe
 * and the gateway. */
#include "aim_world.h"
#include "runtimeconfig/service_world.h"

static const char ns[] = "ml-team", chat[] = "llama-chat";

#define CLUSTER_CONFIG "{metadata: {name: default}, spec: {defaultStorageClassName: fast-nvme}}"
#define TEAM_CONFIG                                                                                \
    "{metadata: {name: default}, spec: {defaultStorageClassName: team-ssd, routing: {enabled: "    \
    "true, gatewayRef: {name: inference-gateway, namespace: gateways}, pathTemplate: "             \
    "\"/ml/{.metadata.namespace}/{.metadata.labels['project']}\"}}}"
#define LLAMA_CHAT                                                                                 \
    "{metadata: {name: llama-chat, labels: {project: conversational-ai}}, spec: {model: {ref: "    \
    "meta-llama-3-8b}}}"

static void accept(struct cluster *c, const char *status, const char *reason)
{
    const struct json *route = cluster_get(c, &aim_resource_httproutes, ns, chat);
    int64_t generation = json_int(json_at(route, "metadata", "generation", NULL), 0);
    str text = arena_printf(
        &c->arena,
        "{parents: [{parentRef: {name: inference-gateway}, controllerName: example.org/test, "
        "conditions: [{type: Accepted, status: '%s', reason: %s, message: from the gateway, "
        "observedGeneration: %lld, lastTransitionTime: '2026-05-28T20:00:00Z'}]}]}",
        status, reason, (long long)generation);
    aim_test_set_status(c, &aim_resource_httproutes, ns, chat, text.p);
}

static const struct json *status(struct cluster *c)
{
    return aim_test_status(c, AIM_SERVICE, ns, chat);
}

#define IS(word, type, reason)                                                                     \
    do {                                                                                           \
        EQ_STR(json_text(json_get(status(&c), "status")), S(word));                                \
        EQ_STR(aim_test_reason(status(&c), type), S(reason));                                      \
    } while (0)

/* A service that runs behind its route, governed by the namespace's configuration. */
static void run_chat(struct cluster *c)
{
    aim_test_start(c);
    aim_test_start_operator(c);
    aim_test_create(c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL, CLUSTER_CONFIG);
    aim_test_create(c, aim_test_kind(AIM_CONFIG), ns, TEAM_CONFIG);
    aim_test_create(c, aim_test_kind(AIM_SERVICE), ns, LLAMA_CHAT);
    aim_test_wait(c);
    aim_test_set_status(c, &aim_resource_inference_services, ns, chat,
                        "{conditions: [{type: Ready, status: 'True'}]}");
    accept(c, "True", "Accepted");
}

static void the_namespace_governs_alone_and_the_service_runs(void)
{
    struct cluster c;
    run_chat(&c);
    IS("Running", "Ready", "RuntimeReady");
    const struct json *effective = json_get(status(&c), "effectiveRuntimeConfig");
    EQ_STR(json_text(json_at(effective, "namespaceRef", "namespace", NULL)), S("ml-team"));
    OK(!json_get(effective, "clusterRef"));
    EQ_INT(json_text(json_get(effective, "hash")).n, 64);
    EQ_STR(aim_test_path(status(&c)), S("/ml/ml-team/conversational-ai"));
    EQ_STR(aim_test_route_path(&c, ns, chat), S("/ml/ml-team/conversational-ai"));
    const struct json *claim = cluster_get(&c, &aim_resource_claims, ns, "llama-chat-temp-cache");
    EQ_STR(json_text(json_at(claim, "spec", "storageClassName", NULL)), S("team-ssd"));
    /* all that makes a service publishes what governs it */
    const struct json *model = aim_test_status(&c, AIM_CLUSTER_MODEL, NULL, "meta-llama-3-8b");
    EQ_STR(json_text(json_at(model, "effectiveRuntimeConfig", "clusterRef", "name", NULL)),
           S("default"));
    cluster_stop(&c);
}

static void the_service_overrides_the_path(void)
{
    struct cluster c;
    run_chat(&c);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, chat,
                   "{spec: {routing: {pathTemplate: '/custom/{.metadata.name}'}}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, ns, chat), S("/custom/llama-chat"));
    IS("Starting", "RoutingReady", "ConfiguringRoute"); /* the gateway has not accepted it yet */
    accept(&c, "True", "Accepted");
    IS("Running", "RoutingReady", "RouteReady");
    cluster_stop(&c);
}

/* "...degrades the AIMService with reason PathTemplateInvalid and skips HTTPRoute creation. The InferenceService remains
 * intact." */
static void a_path_that_cannot_be_rendered_degrades_and_takes_nothing_down(void)
{
    struct cluster c;
    run_chat(&c);
    const struct json *before = cluster_get(&c, &aim_resource_inference_services, ns, chat);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, chat,
                   "{metadata: {labels: {project: null}}}");
    aim_test_wait(&c);
    IS("Degraded", "RoutingReady", "PathTemplateInvalid");
    EQ_STR(aim_test_reason(status(&c), "RuntimeReady"), S("RuntimeReady"));
    EQ_STR(aim_test_route_path(&c, ns, chat),
           S("/ml/ml-team/conversational-ai")); /* the last good one */
    const struct json *after = cluster_get(&c, &aim_resource_inference_services, ns, chat);
    OK(after && json_eq(json_get(before, "spec"), json_get(after, "spec")));
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, chat,
                   "{metadata: {labels: {project: next}}}");
    aim_test_wait(&c);
    accept(&c, "True", "Accepted");
    IS("Running", "Failure", "Resolved");
    EQ_STR(aim_test_path(status(&c)), S("/ml/ml-team/next"));
    cluster_stop(&c);
}

static void a_gateway_that_refuses_degrades(void)
{
    struct cluster c;
    run_chat(&c);
    accept(&c, "False", "NotAllowedByListeners");
    IS("Degraded", "RoutingReady", "NotAllowedByListeners");
    EQ_STR(aim_test_reason(status(&c), "Failure"), S("NotAllowedByListeners"));
    accept(&c, "True", "Accepted");
    IS("Running", "Failure", "Resolved");
    cluster_stop(&c);
}

/* "Reconciliation fails ... retries until the config appears", and what runs stays. */
static void a_named_configuration_must_exist(void)
{
    struct cluster c;
    run_chat(&c);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, chat,
                   "{spec: {runtimeConfigName: non-existent, replicas: 5}}");
    aim_test_wait(&c);
    IS("Degraded", "ConfigResolved", "RuntimeConfigMissing");
    const struct json *isvc = cluster_get(&c, &aim_resource_inference_services, ns, chat);
    EQ_INT(json_int(json_at(isvc, "spec", "predictor", "maxReplicas", NULL), 0), 1);
    OK(cluster_get(&c, &aim_resource_httproutes, ns, chat));
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL,
                    "{metadata: {name: non-existent}, spec: {}}");
    aim_test_wait(&c);
    IS("Running", "ConfigResolved", "RuntimeConfigResolved");
    isvc = cluster_get(&c, &aim_resource_inference_services, ns, chat);
    EQ_INT(json_int(json_at(isvc, "spec", "predictor", "maxReplicas", NULL), 0), 5);
    OK(!cluster_get(&c, &aim_resource_httproutes, ns, chat)); /* that one has no routing */
    cluster_stop(&c);
}

static void without_a_default_the_service_runs_all_the_same(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, LLAMA_CHAT);
    aim_test_wait(&c);
    aim_test_set_status(&c, &aim_resource_inference_services, ns, chat,
                        "{conditions: [{type: Ready, status: 'True'}]}");
    IS("Running", "ConfigResolved", "DefaultRuntimeConfigNotFound");
    OK(!json_get(status(&c), "effectiveRuntimeConfig"));
    EQ_INT(aim_test_count_events(&c, ns, chat, "DefaultRuntimeConfigNotFound"), 1);
    cluster_stop(&c);
}

/* Credentials of the namespace's configuration reach the pods. */
static void credentials_reach_the_runtime(void)
{
    struct cluster c;
    run_chat(&c);
    aim_test_patch(&c, aim_test_kind(AIM_CONFIG), ns, "default",
                   "{spec: {imagePullSecrets: [{name: registry}], serviceAccountName: puller}}");
    aim_test_wait(&c);
    const struct json *isvc = cluster_get(&c, &aim_resource_inference_services, ns, chat);
    const struct json *p = json_at(isvc, "spec", "predictor", NULL);
    const struct json *secret = json_item(json_get(p, "imagePullSecrets"), 0);
    EQ_STR(json_text(json_get(secret, "name")), S("registry"));
    EQ_STR(json_text(json_get(p, "serviceAccountName")), S("puller"));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(the_namespace_governs_alone_and_the_service_runs),
                             TAP(the_service_overrides_the_path),
                             TAP(a_path_that_cannot_be_rendered_degrades_and_takes_nothing_down),
                             TAP(a_gateway_that_refuses_degrades),
                             TAP(a_named_configuration_must_exist),
                             TAP(without_a_default_the_service_runs_all_the_same),
                             TAP(credentials_reach_the_runtime),
                             { 0 } });
}
