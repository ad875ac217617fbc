/* Routes on the embedded API server: made, moved, kept, removed, refused, accepted, and fought over. */
#include "aim_world.h"
#include "prom/exposition.h"

#define SPEC(more) "spec: {model: {ref: meta-llama-3-8b}, templateRef: llama-latency" more "}"
#define ROUTED(path)                                                                               \
    ", routing: {enabled: true, gatewayRef: {name: inference-gateway, namespace: gateways}, "      \
    "pathTemplate: '" path "'}"

static void service(struct cluster *c, const char *ns, const char *name, const char *spec)
{
    aim_test_create(c, aim_test_kind(AIM_SERVICE), ns,
                    arena_printf(&c->arena, "{metadata: {name: %s}, %s}", name, spec).p);
}

static struct json *status(struct cluster *c, const char *name)
{
    return aim_test_status(c, AIM_SERVICE, "ml-team", name);
}

static void accept(struct cluster *c, const char *name, const char *truth, const char *reason)
{
    str body = arena_printf(
        &c->arena,
        "{\"status\":{\"parents\":[{\"parentRef\":{\"name\":\"inference-gateway\"},"
        "\"controllerName\":\"example.org/gateway\",\"conditions\":[{\"type\":\"Accepted\","
        "\"status\":\"%s\",\"reason\":\"%s\",\"message\":\"from the gateway\",\"observedGeneration\":1,"
        "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}]}}",
        truth, reason);
    struct cluster_answer a =
        cluster_ask(c, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                              .resource = &aim_resource_httproutes,
                                              .ns = S("ml-team"),
                                              .name = str_c(name),
                                              .subresource = "status",
                                              .body = body });
    EQ_INT(a.code, 200);
    aim_test_wait(c);
}

static void the_gateway_is_believed(void)
{
    struct cluster c;
    aim_test_start(&c);
    service(&c, "ml-team", "chat", SPEC(ROUTED("/{.metadata.name}")));
    aim_test_start_operator(&c);
    EQ_STR(aim_test_reason(status(&c, "chat"), "RoutingReady"), S("ConfiguringRoute"));
    EQ_INT(json_int(json_at(status(&c, "chat"), "routing", "observedRouteGeneration", NULL), 0), 1);
    accept(&c, "chat", "True", "Accepted");
    EQ_STR(aim_test_reason(status(&c, "chat"), "RoutingReady"), S("RouteReady"));
    EQ_STR(json_text(json_at(status(&c, "chat"), "routing", "url", NULL)),
           S("http://models.example.org/chat"));
    EQ_STR(json_text(json_at(status(&c, "chat"), "routing", "gateway", NULL)),
           S("gateways/inference-gateway"));
    EQ_STR(json_text(json_at(status(&c, "chat"), "routing", "templateSource", NULL)), S("Service"));
    EQ_INT(aim_test_count_events(&c, "ml-team", "chat", "RouteReady"), 1);
    accept(&c, "chat", "False", "NotAllowedByListeners");
    const struct json *ready = aim_status_find(status(&c, "chat"), "RoutingReady");
    EQ_STR(json_text(json_get(ready, "reason")), S("NotAllowedByListeners"));
    EQ_STR(json_text(json_get(ready, "message")), S("from the gateway"));
    EQ_INT(aim_test_count_events(&c, "ml-team", "chat", "NotAllowedByListeners"), 1);
    OK(!json_at(status(&c, "chat"), "routing", "url", NULL));
    cluster_stop(&c);
}

static void a_bad_template_keeps_the_last_good_path(void)
{
    struct cluster c;
    aim_test_start(&c);
    service(&c, "ml-team", "chat", SPEC(ROUTED("/{.metadata.name}")));
    service(&c, "ml-team", "never", SPEC(ROUTED("/{.metadata.labels.team}")));
    aim_test_start_operator(&c);
    const struct json *ready = aim_status_find(status(&c, "never"), "RoutingReady");
    EQ_STR(json_text(json_get(ready, "reason")), S("PathTemplateInvalid"));
    OK(str_find(json_text(json_get(ready, "message")), S("placeholder 1")) != SIZE_MAX);
    OK(!aim_test_path(status(&c, "never")).n);
    OK(!cluster_get(&c, &aim_resource_httproutes, "ml-team", "never"));
    EQ_INT(aim_test_count_events(&c, "ml-team", "never", "PathTemplateInvalid"), 1);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), "ml-team", "chat",
                   "{spec: {routing: {pathTemplate: \"/{.metadata.labels['team']}\"}}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_reason(status(&c, "chat"), "RoutingReady"), S("PathTemplateInvalid"));
    EQ_STR(aim_test_path(status(&c, "chat")), S("/chat"));
    EQ_STR(aim_test_route_path(&c, "ml-team", "chat"), S("/chat"));
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), "ml-team", "chat",
                   "{metadata: {labels: {team: Blue}}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "chat"), S("/blue"));
    EQ_STR(aim_test_path(status(&c, "chat")), S("/blue"));
    cluster_stop(&c);
}

static void a_route_that_is_off_is_removed(void)
{
    struct cluster c;
    aim_test_start(&c);
    service(&c, "ml-team", "chat", SPEC(ROUTED("/chat")));
    aim_test_create(&c, &aim_resource_httproutes, "ml-team",
                    "{metadata: {name: quiet}, spec: {parentRefs: [{name: g}]}}");
    service(&c, "ml-team", "quiet", SPEC(""));
    aim_test_start_operator(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "chat"), S("/chat"));
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), "ml-team", "chat",
                   "{spec: {routing: {enabled: false}}}");
    aim_test_wait(&c);
    OK(!cluster_get(&c, &aim_resource_httproutes, "ml-team", "chat"));
    OK(!json_get(status(&c, "chat"), "routing"));
    EQ_STR(aim_test_reason(status(&c, "chat"), "RoutingReady"), S("RouteReady"));
    OK(cluster_get(&c, &aim_resource_httproutes, "ml-team", "quiet")); /* not ours */
    aim_test_patch(
        &c, aim_test_kind(AIM_SERVICE), "ml-team", "quiet",
        "{spec: {routing: {enabled: true, gatewayRef: {name: inference-gateway, namespace: "
        "gateways}}}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_reason(status(&c, "quiet"), "RoutingReady"), S("RouteConflict"));
    OK(!aim_test_route_path(&c, "ml-team", "quiet").n);
    cluster_stop(&c);
}

static void timeouts_and_annotations(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_CONFIG), "ml-team",
        "{metadata: {name: default}, spec: {routing: {enabled: true, requestTimeout: 1500ms, "
        "annotations: {a: config, b: config}, gatewayRef: {name: inference-gateway, namespace: "
        "gateways}}}}");
    service(&c, "ml-team", "chat", SPEC(", routing: {annotations: {b: service}}"));
    service(&c, "ml-team", "odd", SPEC(", routing: {requestTimeout: soon}"));
    aim_test_start_operator(&c);
    const struct json *route = cluster_get(&c, &aim_resource_httproutes, "ml-team", "chat");
    const struct json *rule = json_item(json_at(route, "spec", "rules", NULL), 0);
    EQ_STR(json_text(json_at(rule, "timeouts", "request", NULL)), S("1s500ms"));
    EQ_STR(json_text(json_at(route, "metadata", "annotations", "a", NULL)), S("config"));
    EQ_STR(json_text(json_at(route, "metadata", "annotations", "b", NULL)), S("service"));
    EQ_STR(aim_test_reason(status(&c, "odd"), "RoutingReady"), S("RouteFailed"));
    aim_test_patch(&c, aim_test_kind(AIM_CONFIG), "ml-team", "default",
                   "{spec: {routing: {requestTimeout: null, annotations: null}}}");
    aim_test_wait(&c);
    route = cluster_get(&c, &aim_resource_httproutes, "ml-team", "chat");
    rule = json_item(json_at(route, "spec", "rules", NULL), 0);
    OK(!json_get(rule, "timeouts"));
    OK(!json_at(route, "metadata", "annotations", "a", NULL));
    cluster_stop(&c);
}

static void where_there_is_no_gateway(void)
{
    struct cluster c;
    aim_test_start(&c);
    service(&c, "ml-team", "nowhere", SPEC(", routing: {enabled: true}"));
    service(&c, "ml-team", "absent", SPEC(", routing: {enabled: true, gatewayRef: {name: gone}}"));
    aim_test_start_operator(&c);
    EQ_STR(aim_test_reason(status(&c, "nowhere"), "RoutingReady"), S("RouteFailed"));
    OK(!cluster_get(&c, &aim_resource_httproutes, "ml-team", "nowhere"));
    EQ_STR(aim_test_reason(status(&c, "absent"), "RoutingReady"), S("GatewayNotFound"));
    OK(cluster_get(&c, &aim_resource_httproutes, "ml-team", "absent"));
    aim_test_create(
        &c, &aim_resource_gateways, "ml-team",
        "{metadata: {name: gone}, spec: {gatewayClassName: t, listeners: [{name: a, port: 80, "
        "protocol: HTTP}]}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_reason(status(&c, "absent"), "RoutingReady"), S("ConfiguringRoute"));
    cluster_stop(&c);
}

/* ---- who has a path */

static void the_older_service_has_the_path(void)
{
    struct cluster c;
    aim_test_start(&c);
    service(&c, "ml-team", "older", SPEC(ROUTED("/same")));
    cluster_until(&c, cluster_now(&c) + 10);
    service(&c, "other", "newer", SPEC(ROUTED("/Same/")));
    aim_test_start_operator(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "older"), S("/same"));
    OK(!cluster_get(&c, &aim_resource_httproutes, "other", "newer"));
    const struct json *newer = aim_test_status(&c, AIM_SERVICE, "other", "newer");
    const struct json *ready = aim_status_find(newer, "RoutingReady");
    EQ_STR(json_text(json_get(ready, "reason")), S("RouteConflict"));
    OK(str_find(json_text(json_get(ready, "message")), S("AIMService ml-team/older")) != SIZE_MAX);
    EQ_INT(aim_test_count_events(&c, "other", "newer", "RouteConflict"), 1);
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_SERVICE), "ml-team", "older", S(""));
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, "other", "newer"), S("/same"));
    EQ_STR(aim_test_reason(aim_test_status(&c, AIM_SERVICE, "other", "newer"), "RoutingReady"),
           S("ConfiguringRoute"));
    cluster_stop(&c);
}

static void other_listeners_are_other_places(void)
{
    struct cluster c;
    aim_test_start(&c);
    service(&c, "ml-team", "a",
            SPEC(", routing: {enabled: true, pathTemplate: /p, gatewayRef: {name: "
                 "inference-gateway, namespace: gateways, sectionName: http}}"));
    service(&c, "ml-team", "b",
            SPEC(", routing: {enabled: true, pathTemplate: /p, gatewayRef: {name: "
                 "inference-gateway, namespace: gateways, sectionName: https}}"));
    aim_test_start_operator(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "a"), S("/p"));
    EQ_STR(aim_test_route_path(&c, "ml-team", "b"), S("/p"));
    cluster_stop(&c);
}

#define FOREIGN(name, path)                                                                        \
    "{metadata: {name: " name "}, spec: {parentRefs: [{name: inference-gateway, namespace: "       \
    "gateways}], rules: [{matches: [{path: {type: PathPrefix, value: " path "}}], backendRefs: "   \
    "[{name: x, port: 80}]}]}}"

static void foreign_routes_count(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, &aim_resource_httproutes, "other", FOREIGN("shop", "/shop"));
    cluster_until(&c, cluster_now(&c) + 5);
    service(&c, "ml-team", "chat", SPEC(ROUTED("/shop")));
    service(&c, "ml-team", "deep", SPEC(ROUTED("/shop/deep")));
    service(&c, "ml-team", "shopping", SPEC(ROUTED("/shopping")));
    aim_test_start_operator(&c);
    const struct json *ready = aim_status_find(status(&c, "chat"), "RoutingReady");
    EQ_STR(json_text(json_get(ready, "reason")), S("RouteConflict"));
    OK(str_find(json_text(json_get(ready, "message")), S("HTTPRoute other/shop")) != SIZE_MAX);
    EQ_STR(aim_test_route_path(&c, "ml-team", "deep"), S("/shop/deep"));
    EQ_STR(aim_test_reason(status(&c, "deep"), "RouteOverlap"), S("PathUnderAnother"));
    EQ_INT(aim_test_count_events(&c, "ml-team", "deep", "PathUnderAnother"), 1);
    OK(!aim_status_find(status(&c, "shopping"), "RouteOverlap"));
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), "ml-team", "deep",
                   "{spec: {routing: {pathTemplate: '/{.spec.nothing}'}}}");
    aim_test_wait(&c);
    OK(!aim_status_find(status(&c, "deep"), "RouteOverlap"));
    cluster_do(&c, KUBE_DELETE, &aim_resource_httproutes, "other", "shop", S(""));
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "chat"), S("/shop"));
    aim_test_create(&c, &aim_resource_httproutes, "other", FOREIGN("late", "/shop"));
    aim_test_wait(&c);
    EQ_STR(aim_test_reason(status(&c, "chat"), "RoutingReady"),
           S("ConfiguringRoute")); /* was first */
    cluster_stop(&c);
}

static const char *refused_by_gateway(struct cluster *c, bool refused)
{
    return arena_printf(&c->arena,
                        "{parents: [{parentRef: {name: inference-gateway, namespace: gateways}, "
                        "controllerName: x, conditions: [{type: Accepted, status: '%s', reason: "
                        "NotAllowedByListeners, message: not here, observedGeneration: 1, "
                        "lastTransitionTime: '2026-06-03T08:00:00Z'}]}]}",
                        refused ? "False" : "True")
        .p;
}

/* A route that the gateway refused does not occupy a path. */
static void what_the_gateway_refuses_is_no_claim(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, &aim_resource_httproutes, "other", FOREIGN("squatter", "/shop"));
    service(&c, "other", "thief", SPEC(ROUTED("/bank")));
    cluster_until(&c, cluster_now(&c) + 5);
    aim_test_start_operator(&c);
    service(&c, "ml-team", "shop", SPEC(ROUTED("/shop")));
    service(&c, "ml-team", "bank", SPEC(ROUTED("/bank")));
    aim_test_wait(&c);
    EQ_STR(aim_test_reason(status(&c, "shop"), "RoutingReady"), S("RouteConflict"));
    EQ_STR(aim_test_reason(status(&c, "bank"), "RoutingReady"), S("RouteConflict"));
    aim_test_set_status(&c, &aim_resource_httproutes, "other", "squatter",
                        refused_by_gateway(&c, true));
    aim_test_set_status(&c, &aim_resource_httproutes, "other", "thief",
                        refused_by_gateway(&c, true));
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "shop"), S("/shop"));
    EQ_STR(aim_test_route_path(&c, "ml-team", "bank"), S("/bank"));
    aim_test_patch(
        &c, &aim_resource_httproutes, "other", "squatter", /* an edit is no new claim */
        "{spec: {rules: [{matches: [{path: {type: PathPrefix, value: /shop}}], backendRefs: "
        "[{name: elsewhere, port: 80}]}]}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_reason(status(&c, "shop"), "RoutingReady"), S("ConfiguringRoute"));
    aim_test_set_status(&c, &aim_resource_httproutes, "other", "thief",
                        refused_by_gateway(&c, false));
    aim_test_wait(&c);
    EQ_STR(aim_test_reason(status(&c, "bank"), "RoutingReady"),
           S("RouteConflict")); /* older, and let in */
    cluster_stop(&c);
}

static void an_administrator_fixes_the_prefix(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL,
                    "{metadata: {name: default}, spec: {routing: {requiredPrefix: "
                    "'/{.metadata.namespace}'}}}");
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "ml-team", "{metadata: {name: mine}, spec: {}}");
    service(&c, "ml-team", "thief", SPEC(", runtimeConfigName: mine" ROUTED("/other/chat")));
    service(&c, "ml-team", "honest", SPEC(", runtimeConfigName: mine" ROUTED("/ml-team/chat")));
    aim_test_start_operator(&c);
    EQ_STR(aim_test_reason(status(&c, "thief"), "RoutingReady"), S("PathTemplateInvalid"));
    OK(!cluster_get(&c, &aim_resource_httproutes, "ml-team", "thief"));
    EQ_STR(aim_test_route_path(&c, "ml-team", "honest"), S("/ml-team/chat"));
    aim_test_patch(&c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL, "default",
                   "{spec: {routing: null}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "thief"), S("/other/chat"));
    cluster_stop(&c);
}

/* ---- what is counted */

static void says(struct cluster *c, const char *line)
{
    auto_buf struct buf text = { 0 };
    exposition_write(&text, kube_metrics(c->operator_kube));
    if (!OK(str_find(buf_str(&text), str_c(line)) != SIZE_MAX))
        printf("# there is no %s\n", line);
}

static void everything_is_counted(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "ml-team",
                    "{metadata: {name: default}, spec: {}}");
    service(&c, "ml-team", "a", SPEC(ROUTED("/same")));
    service(&c, "ml-team", "b", SPEC(ROUTED("/same")));
    service(&c, "ml-team", "bad", SPEC(ROUTED("/{.spec.nothing}")));
    service(&c, "other", "lost", SPEC(", runtimeConfigName: nope"));
    aim_test_start_operator(&c);
    says(&c, "aim_route_conflicts 1\n");
    says(&c, "aim_runtimeconfig_consumers{scope=\"Namespace\",namespace=\"ml-team\","
             "name=\"default\"} 3\n");
    says(&c, "aim_runtimeconfig_resolutions_total{kind=\"AIMService\",outcome=\"missing\"}");
    says(&c, "aim_path_render_total{result=\"failure\"}");
    says(&c, "aim_path_render_total{result=\"success\"}");
    says(&c, "aim_service_status{status=\"Degraded\"} 3\n");
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_SERVICE), "ml-team", "a", S(""));
    aim_test_wait(&c);
    says(&c, "aim_route_conflicts 0\n");
    cluster_stop(&c);
}

/* ---- the configuration's own status */

static void a_configuration_knows_its_consumers(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_CONFIG), "ml-team",
        "{metadata: {name: default}, spec: {routing: {enabled: true, gatewayRef: {name: "
        "inference-gateway, namespace: gateways}, pathTemplate: \"/{.metadata.labels['t']}\"}}}");
    service(&c, "ml-team", "bare", SPEC(""));
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team",
                    "{metadata: {name: good, labels: {t: x}}, " SPEC("") "}");
    aim_test_create(&c, aim_test_kind(AIM_MODEL), "ml-team",
                    "{metadata: {name: m}, spec: {image: i}}");
    aim_test_start_operator(&c);
    const struct json *s = aim_test_status(&c, AIM_CONFIG, "ml-team", "default");
    EQ_INT(json_int(json_at(s, "consumers", "total", NULL), 0), 3);
    EQ_INT(json_int(json_at(s, "consumers", "failing", NULL), 0), 1);
    EQ_INT(json_int(json_at(s, "consumers", "byKind", "AIMService", NULL), 0), 2);
    EQ_INT(json_int(json_at(s, "consumers", "byKind", "AIMModel", NULL), 0), 1);
    EQ_STR(json_text(json_item(json_at(s, "consumers", "failingNames", NULL), 0)),
           S("ml-team/bare"));
    EQ_STR(aim_test_reason(s, "TemplateValid"), S("TemplateValid"));
    EQ_STR(json_text(json_get(s, "hash")),
           json_text(json_at(status(&c, "good"), "effectiveRuntimeConfig", "hash", NULL)));
    OK(json_text(json_get(s, "lastAppliedTime")).n > 0);
    aim_test_patch(&c, aim_test_kind(AIM_CONFIG), "ml-team", "default",
                   "{spec: {routing: {pathTemplate: '/{.nothing.here}'}}}");
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_MODEL), "ml-team", "m", S(""));
    aim_test_wait(&c);
    s = aim_test_status(&c, AIM_CONFIG, "ml-team", "default");
    EQ_STR(aim_test_reason(s, "TemplateValid"), S("PathTemplateInvalid"));
    EQ_INT(json_int(json_at(s, "consumers", "total", NULL), 0), 2);
    EQ_INT(json_int(json_at(s, "consumers", "failing", NULL), 0), 2);
    EQ_INT(aim_test_count_events(&c, "ml-team", "default", "PathTemplateInvalid"), 1);
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(the_gateway_is_believed),
                                        TAP(a_bad_template_keeps_the_last_good_path),
                                        TAP(a_route_that_is_off_is_removed),
                                        TAP(timeouts_and_annotations),
                                        TAP(where_there_is_no_gateway),
                                        TAP(the_older_service_has_the_path),
                                        TAP(other_listeners_are_other_places),
                                        TAP(foreign_routes_count),
                                        TAP(what_the_gateway_refuses_is_no_claim),
                                        TAP(an_administrator_fixes_the_prefix),
                                        TAP(everything_is_counted),
                                        TAP(a_configuration_knows_its_consumers),
                                        { 0 } });
}
