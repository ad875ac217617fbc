/* Routes beyond a path: by model name in a header, for host names, to InferencePools, and shared by the versions of one service
 * with weights. A shift of weights never leaves a gateway without a backend that can answer. */
#include "aim_world.h"
#include "runtimeconfig/service_world.h"

#define GATEWAY "enabled: true, gatewayRef: {name: inference-gateway, namespace: gateways}"

static const char ns[] = "ml-team";

static void service(struct cluster *c, const char *name, const char *routing)
{
    aim_test_create(c, aim_test_kind(AIM_SERVICE), ns,
                    arena_printf(&c->arena,
                                 "{metadata: {name: %s}, spec: {model: {ref: meta-llama-3-8b}, "
                                 "templateRef: llama-latency, routing: {" GATEWAY ", %s}}}",
                                 name, routing)
                        .p);
    cluster_until(c, cluster_now(c) + 2); /* so that no two are of the same age */
}

static void make_ready(struct cluster *c, const char *name, const char *truth)
{
    aim_test_set_status(
        c, &aim_resource_inference_services, ns, name,
        arena_printf(&c->arena, "{conditions: [{type: Ready, status: '%s'}]}", truth).p);
}

static void weigh(struct cluster *c, const char *name, int weight)
{
    aim_test_patch(c, aim_test_kind(AIM_SERVICE), ns, name,
                   arena_printf(&c->arena, "{spec: {routing: {weight: %d}}}", weight).p);
    aim_test_wait(c);
}

static const struct json *route(struct cluster *c, const char *name)
{
    return cluster_get(c, &aim_resource_httproutes, ns, name);
}

/* "name=weight name=weight" of a rule. */
static str backends(struct cluster *c, const char *name, size_t rule)
{
    const struct json *rules = json_at(route(c, name), "spec", "rules", NULL);
    const struct json *refs = json_get(json_item(rules, rule), "backendRefs");
    auto_buf struct buf b = { 0 };
    for (size_t i = 0; i < json_len(refs); i++) {
        const struct json *ref = json_item(refs, i);
        str to = json_text(json_get(ref, "name"));
        buf_printf(&b, "%s" STR_FMT "=%d", i ? " " : "", STR_ARG(to),
                   (int)json_int(json_get(ref, "weight"), -1));
    }
    return arena_str(&c->arena, buf_str(&b));
}

static void check(struct cluster *c, const char *name, const char *word, const char *reason)
{
    const struct json *status = aim_test_status(c, AIM_SERVICE, ns, name);
    EQ_STR(aim_test_reason(status, "RoutingReady"), str_c(reason));
    if (word)
        EQ_STR(json_text(json_get(status, "status")), str_c(word));
}

/* The older service has the model name; the other keeps its path. */
static void a_model_name_belongs_to_one_service(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    service(&c, "first", "modelHeader: {enabled: true}");
    const struct json *rules = json_at(route(&c, "first"), "spec", "rules", NULL);
    EQ_INT((int64_t)json_len(rules), 2);
    const struct json *match = json_item(json_get(json_item(rules, 1), "matches"), 0);
    const struct json *header = json_item(json_get(match, "headers"), 0);
    EQ_STR(json_text(json_get(header, "name")), S("X-Gateway-Model-Name"));
    EQ_STR(json_text(json_get(header, "value")), S("meta-llama/Llama-3-8B"));
    EQ_STR(backends(&c, "first", 1), S("first-predictor=1"));
    service(&c, "second", "modelHeader: {enabled: true, name: x-gateway-model-name}");
    check(&c, "second", NULL, "RouteConflict");
    str message = json_text(
        json_get(aim_status_find(aim_test_status(&c, AIM_SERVICE, ns, "second"), "RoutingReady"),
                 "message"));
    OK(str_find(message, S("ml-team/first")) != SIZE_MAX);
    EQ_INT((int64_t)json_len(json_at(route(&c, "second"), "spec", "rules", NULL)), 1);
    service(&c, "third",
            "modelHeader: {enabled: true, value: mine}, pathTemplate: "
            "'/{.metadata.namespace}/x'");
    check(&c, "third", NULL, "ConfiguringRoute");
    service(&c, "fourth",
            "modelHeader: {enabled: true, value: other}, pathTemplate: "
            "'/{.metadata.namespace}/x'"); /* loses the path, keeps the name */
    check(&c, "fourth", NULL, "RouteConflict");
    rules = json_at(route(&c, "fourth"), "spec", "rules", NULL);
    EQ_INT((int64_t)json_len(rules), 1);
    OK(json_get(json_item(json_get(json_item(rules, 0), "matches"), 0), "headers") != NULL);
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_SERVICE), ns, "first", S(""));
    aim_test_wait(&c);
    EQ_INT((int64_t)json_len(json_at(route(&c, "second"), "spec", "rules", NULL)), 2);
    size_t writes = c.operator_writes;
    cluster_until(&c, cluster_now(&c) + 600);
    EQ_INT((int64_t)c.operator_writes, (int64_t)writes);
    cluster_stop(&c);
}

static void host_names_separate_services(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    service(&c, "a", "hostnames: [a.example.org], pathTemplate: /same");
    service(&c, "b", "hostnames: [b.example.org], pathTemplate: /same");
    service(&c, "c", "hostnames: [x.example.org, b.example.org], pathTemplate: /same");
    check(&c, "b", NULL, "ConfiguringRoute");
    check(&c, "c", NULL, "RouteConflict");
    EQ_STR(json_text(json_item(json_at(route(&c, "b"), "spec", "hostnames", NULL), 0)),
           S("b.example.org"));
    aim_test_create(&c, &aim_resource_gateways, "gateways",
                    "{metadata: {name: wide}, spec: {gatewayClassName: t, listeners: [{name: a, "
                    "port: 80, protocol: HTTP}, {name: b, port: 81, protocol: HTTP}]}}");
    service(&c, "d", "gatewayRef: {name: wide, namespace: gateways}");
    check(&c, "d", "Failed", "RouteHostnameRequired");
    OK(!route(&c, "d"));
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "d",
                   "{spec: {routing: {hostnames: [d.example.org]}}}");
    aim_test_wait(&c);
    OK(route(&c, "d") != NULL);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "d", "{spec: {routing: {hostnames: null}}}");
    aim_test_wait(&c);
    OK(route(&c, "d") != NULL); /* an existing route is kept */
    cluster_stop(&c);
}

static void weights_shift_when_the_new_version_is_ready(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    service(&c, "v1", "group: chat, weight: 100, pathTemplate: /chat");
    make_ready(&c, "v1", "True");
    EQ_STR(backends(&c, "v1", 0), S("v1-predictor=100"));
    service(&c, "v2", "group: chat, weight: 0, pathTemplate: /chat");
    OK(!route(&c, "v2"));
    EQ_STR(backends(&c, "v1", 0), S("v1-predictor=100"));
    weigh(&c, "v2", 100);
    weigh(&c, "v1", 0); /* too early: v2 cannot answer yet */
    EQ_STR(backends(&c, "v1", 0), S("v1-predictor=100"));
    make_ready(&c, "v2", "True");
    EQ_STR(backends(&c, "v1", 0), S("v1-predictor=0 v2-predictor=100"));
    make_ready(&c, "v2", "False");
    EQ_STR(backends(&c, "v1", 0), S("v1-predictor=0 v2-predictor=100")); /* nothing better */
    weigh(&c, "v1", 10);
    EQ_STR(backends(&c, "v1", 0), S("v1-predictor=10")); /* what can answer does */
    make_ready(&c, "v2", "True");
    EQ_STR(backends(&c, "v1", 0), S("v1-predictor=10 v2-predictor=100"));
    weigh(&c, "v1", 0);
    weigh(&c, "v2", 0);
    check(&c, "v1", "Degraded", "RouteWeightsZero");
    EQ_STR(backends(&c, "v1", 0), S("v1-predictor=0 v2-predictor=100"));
    weigh(&c, "v2", 100);
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_SERVICE), ns, "v1", S(""));
    aim_test_wait(&c);
    EQ_STR(backends(&c, "v2", 0), S("v2-predictor=100")); /* the next one has the route */
    EQ_STR(aim_test_route_path(&c, ns, "v2"), S("/chat"));
    size_t writes = c.operator_writes;
    cluster_until(&c, cluster_now(&c) + 600);
    EQ_INT((int64_t)c.operator_writes, (int64_t)writes);
    cluster_stop(&c);
}

#define POOLS                                                                                                                                         \
    "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "                                                         \
    "inferencepools.inference.networking.k8s.io, annotations: {api-approved.kubernetes.io: unapproved}}, spec: {group: inference.networking.k8s.io, " \
    "names: {kind: InferencePool, listKind: InferencePoolList, plural: inferencepools, singular: "                                                    \
    "inferencepool}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, "                                                          \
    "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}"

static void a_pool_is_made_and_used(void)
{
    static const struct resource definitions = { "apiextensions.k8s.io", "v1",
                                                 "customresourcedefinitions",
                                                 "CustomResourceDefinition", false };
    for (int installed = 0; installed < 2; installed++) {
        struct cluster c;
        aim_test_start(&c);
        if (installed)
            cluster_create(&c, &definitions, NULL, aim_test_yaml(&c, POOLS));
        aim_test_start_operator(&c);
        service(&c, "chat", "backend: InferencePool, inferencePool: {endpointPicker: {name: epp}}");
        if (!installed) {
            check(&c, "chat", "Degraded", "RouteFailed");
            OK(!route(&c, "chat"));
            OK(cluster_get(&c, &aim_resource_inference_services, ns, "chat") != NULL);
            cluster_stop(&c);
            continue;
        }
        const struct json *pool = cluster_get(&c, &aim_resource_pools, ns, "chat-pool");
        EQ_STR(json_text(json_at(pool, "spec", "selector", "matchLabels",
                                 "serving.kserve.io/inferenceservice", NULL)),
               S("chat"));
        EQ_STR(json_text(json_at(pool, "spec", "endpointPickerRef", "name", NULL)), S("epp"));
        EQ_STR(backends(&c, "chat", 0), S("chat-pool=1"));
        const struct json *rule = json_item(json_at(route(&c, "chat"), "spec", "rules", NULL), 0);
        OK(!json_get(json_item(json_get(rule, "backendRefs"), 0), "port"));
        cluster_stop(&c);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_model_name_belongs_to_one_service),
                                        TAP(host_names_separate_services),
                                        TAP(weights_shift_when_the_new_version_is_ready),
                                        TAP(a_pool_is_made_and_used),
                                        { 0 } });
}
