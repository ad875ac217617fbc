/* Who is governed by which configuration, on the embedded API server: the seed's examples, all six
 * kinds, and what happens as configurations come, change and go. */
#include "aim_world.h"

#define CONFIG                                                                                     \
    "{metadata: {name: default}, spec: {routing: {enabled: true, gatewayRef: {name: "              \
    "inference-gateway, namespace: gateways}, pathTemplate: \"/ml/{.metadata.namespace}/"          \
    "{.metadata.labels['project']}\"}}}"
#define SERVICE(name, more)                                                                        \
    "{metadata: {name: " name ", labels: {project: conversational-ai}}, spec: {model: {ref: "      \
    "meta-llama-3-8b}, templateRef: llama-latency" more "}}"

static void is_governed(const struct json *status, const char *ref, const char *other,
                        const char *name)
{
    const struct json *effective = json_get(status, "effectiveRuntimeConfig");
    EQ_STR(json_text(json_at(effective, ref, "name", NULL)), str_c(name));
    OK(!json_get(effective, other));
    EQ_INT(json_text(json_get(effective, "hash")).n, 64);
    EQ_STR(aim_test_reason(status, "ConfigResolved"), S("RuntimeConfigResolved"));
}

static void the_examples_of_the_seed(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL,
                    "{metadata: {name: default}, spec: {defaultStorageClassName: fast-nvme}}");
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "ml-team", CONFIG);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team", SERVICE("llama-chat", ""));
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team",
                    SERVICE("custom", ", routing: {pathTemplate: '/custom/{.metadata.name}'}"));
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "other", SERVICE("fallback", ""));
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team",
                    SERVICE("lost", ", runtimeConfigName: non-existent"));
    aim_test_start_operator(&c);

    const struct json *status = aim_test_status(&c, AIM_SERVICE, "ml-team", "llama-chat");
    is_governed(status, "namespaceRef", "clusterRef", "default");
    const struct json *ref = json_at(status, "effectiveRuntimeConfig", "namespaceRef", NULL);
    EQ_STR(json_text(json_get(ref, "kind")), S("AIMRuntimeConfig"));
    EQ_STR(json_text(json_get(ref, "namespace")), S("ml-team"));
    EQ_STR(json_text(json_get(ref, "scope")), S("Namespace"));
    EQ_STR(aim_test_path(status), S("/ml/ml-team/conversational-ai"));
    EQ_STR(aim_test_route_path(&c, "ml-team", "llama-chat"), S("/ml/ml-team/conversational-ai"));
    EQ_INT(json_int(json_get(status, "observedGeneration"), 0), 1);
    EQ_STR(aim_test_path(aim_test_status(&c, AIM_SERVICE, "ml-team", "custom")),
           S("/custom/custom"));

    status = aim_test_status(&c, AIM_SERVICE, "other", "fallback");
    is_governed(status, "clusterRef", "namespaceRef", "default");
    OK(!json_get(status, "routing"));

    status = aim_test_status(&c, AIM_SERVICE, "ml-team", "lost");
    OK(!json_get(status, "effectiveRuntimeConfig"));
    EQ_STR(aim_test_reason(status, "ConfigResolved"), S("RuntimeConfigMissing"));
    EQ_STR(json_text(json_get(aim_status_find(status, "ConfigResolved"), "status")), S("False"));
    EQ_STR(json_text(json_get(status, "status")), S("Degraded"));
    EQ_INT(aim_test_count_events(&c, "ml-team", "lost", "RuntimeConfigMissing"), 1);
    EQ_INT(aim_test_count_events(&c, "ml-team", "llama-chat", "RuntimeConfigResolved"), 1);
    cluster_stop(&c);
}

static void all_six_kinds(void)
{
    static const struct {
        enum aim_kind kind;
        const char *ns, *text;
        const char *where; /* the namespace of the configuration that governs */
    } table[] = {
        { AIM_SERVICE, "ml-team",
          "{metadata: {name: x}, spec: {model: {ref: m}, runtimeConfigName: gpu}}", "ml-team" },
        { AIM_MODEL, "ml-team", "{metadata: {name: x}, spec: {image: i, runtimeConfigName: gpu}}",
          "ml-team" },
        { AIM_CLUSTER_MODEL, NULL,
          "{metadata: {name: x}, spec: {image: i, runtimeConfigName: gpu}}", "kaiwo-system" },
        { AIM_TEMPLATE, "ml-team",
          "{metadata: {name: x}, spec: {modelName: m, runtimeConfigName: gpu}}", "ml-team" },
        { AIM_CLUSTER_TEMPLATE, NULL,
          "{metadata: {name: x}, spec: {modelName: m, runtimeConfigName: gpu}}", "kaiwo-system" },
        { AIM_TEMPLATE_CACHE, "ml-team",
          "{metadata: {name: x}, spec: {templateRef: t, runtimeConfigName: gpu}}", "ml-team" },
    };
    struct cluster c;
    aim_test_start(&c);
    for (size_t i = 0; i < countof(table); i++)
        aim_test_create(&c, aim_test_kind(table[i].kind), table[i].ns, table[i].text);
    aim_test_start_operator(&c);
    for (size_t i = 0; i < countof(table); i++) {
        const struct json *status = aim_test_status(&c, table[i].kind, table[i].ns, "x");
        bool cache = table[i].kind == AIM_TEMPLATE_CACHE;
        EQ_STR(aim_test_reason(status, "ConfigResolved"), S("RuntimeConfigMissing"));
        EQ_STR(json_text(json_get(status, "status")), cache ? S("Failed") : S("Degraded"));
    }
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL,
                    "{metadata: {name: gpu}, spec: {}}");
    aim_test_wait(&c);
    for (size_t i = 0; i < countof(table); i++)
        is_governed(aim_test_status(&c, table[i].kind, table[i].ns, "x"), "clusterRef",
                    "namespaceRef", "gpu");
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "ml-team", "{metadata: {name: gpu}, spec: {}}");
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "kaiwo-system",
                    "{metadata: {name: gpu}, spec: {}}");
    aim_test_wait(&c);
    for (size_t i = 0; i < countof(table); i++) {
        const struct json *status = aim_test_status(&c, table[i].kind, table[i].ns, "x");
        is_governed(status, "namespaceRef", "clusterRef", "gpu");
        EQ_STR(json_text(
                   json_at(status, "effectiveRuntimeConfig", "namespaceRef", "namespace", NULL)),
               str_c(table[i].where));
        OK(!str_eqc(json_text(json_get(status, "status")), "Failed") ||
           table[i].kind != AIM_TEMPLATE_CACHE);
    }
    cluster_stop(&c);
}

static void a_missing_default_is_reported_once(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team", SERVICE("plain", ""));
    aim_test_start_operator(&c);
    const struct json *status = aim_test_status(&c, AIM_SERVICE, "ml-team", "plain");
    EQ_STR(aim_test_reason(status, "ConfigResolved"), S("DefaultRuntimeConfigNotFound"));
    OK(!json_get(status, "effectiveRuntimeConfig"));
    EQ_INT(aim_test_count_events(&c, "ml-team", "plain", "DefaultRuntimeConfigNotFound"), 1);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), "ml-team", "plain",
                   "{metadata: {labels: {a: b}}}");
    cluster_until(&c, cluster_now(&c) + 3600);
    EQ_INT(aim_test_count_events(&c, "ml-team", "plain", "DefaultRuntimeConfigNotFound"), 1);
    cluster_stop(&c);
}

static void configurations_come_and_go(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team",
                    SERVICE("late", ", runtimeConfigName: gpu-fast"));
    aim_test_start_operator(&c);
    EQ_STR(aim_test_reason(aim_test_status(&c, AIM_SERVICE, "ml-team", "late"), "ConfigResolved"),
           S("RuntimeConfigMissing"));
    aim_test_create(
        &c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL,
        "{metadata: {name: gpu-fast}, spec: {routing: {enabled: true, gatewayRef: {name: "
        "inference-gateway, namespace: gateways}, pathTemplate: '/fast/{.metadata.name}'}}}");
    aim_test_wait(&c);
    is_governed(aim_test_status(&c, AIM_SERVICE, "ml-team", "late"), "clusterRef", "namespaceRef",
                "gpu-fast");
    EQ_STR(aim_test_route_path(&c, "ml-team", "late"), S("/fast/late"));
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "ml-team",
                    "{metadata: {name: gpu-fast}, spec: {}}");
    aim_test_wait(&c);
    is_governed(aim_test_status(&c, AIM_SERVICE, "ml-team", "late"), "namespaceRef", "clusterRef",
                "gpu-fast");
    OK(!cluster_get(&c, &aim_resource_httproutes, "ml-team",
                    "late")); /* exclusive, even when empty */
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_CONFIG), "ml-team", "gpu-fast", S(""));
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "late"), S("/fast/late"));
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_CLUSTER_CONFIG), NULL, "gpu-fast", S(""));
    aim_test_wait(&c);
    const struct json *status = aim_test_status(&c, AIM_SERVICE, "ml-team", "late");
    EQ_STR(aim_test_reason(status, "ConfigResolved"), S("RuntimeConfigMissing"));
    EQ_STR(aim_test_route_path(&c, "ml-team", "late"),
           S("/fast/late")); /* what runs is left alone */
    EQ_STR(aim_test_path(status), S("/fast/late"));
    EQ_INT(aim_test_count_events(&c, "ml-team", "late", "RuntimeConfigMissing"), 2);
    EQ_INT(aim_test_count_events(&c, "ml-team", "gpu-fast", "RuntimeConfigInUse"), 1);
    cluster_stop(&c);
}

static void an_outage_during_an_edit(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "ml-team", CONFIG);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team", SERVICE("llama-chat", ""));
    aim_test_start_operator(&c);
    c.operator_cut = true;
    aim_test_patch(&c, aim_test_kind(AIM_CONFIG), "ml-team", "default",
                   "{spec: {routing: {pathTemplate: '/new/{.metadata.name}'}}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "llama-chat"), S("/ml/ml-team/conversational-ai"));
    c.operator_cut = false;
    cluster_until(&c, cluster_now(&c) + 30);
    EQ_STR(aim_test_route_path(&c, "ml-team", "llama-chat"), S("/new/llama-chat"));
    EQ_STR(aim_test_path(aim_test_status(&c, AIM_SERVICE, "ml-team", "llama-chat")),
           S("/new/llama-chat"));
    cluster_stop(&c);
}

static void a_restart_writes_nothing(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "ml-team", CONFIG);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team", SERVICE("llama-chat", ""));
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team",
                    SERVICE("lost", ", runtimeConfigName: nope"));
    aim_test_start_operator(&c);
    cluster_operator_down(&c);
    buf_clear(&c.log);
    size_t before = c.operator_writes;
    aim_test_start_operator(&c);
    if (!EQ_INT(c.operator_writes, before))
        printf("# " STR_FMT "\n", STR_ARG(buf_str(&c.log)));
    cluster_stop(&c);
}

static void the_newer_group(void)
{
    static const char *const settings[] = { "aim-group", AIM_GROUP_NEWER, NULL };
    const struct aim_kinds *newer = aim_kinds(AIM_GROUP_NEWER);
    struct cluster c;
    aim_test_start(&c);
    for (const struct manifest *m = manifests_crds; m->name; m++) {
        auto_buf struct buf text = { 0 }, original = { 0 };
        manifest_text(m, &original);
        str rest = buf_str(&original);
        if (!str_starts(str_c(m->name), S(AIM_GROUP)))
            continue;
        for (size_t at; (at = str_find(rest, S(AIM_GROUP))) != SIZE_MAX;) {
            buf_put(&text, str_upto(rest, at));
            buf_put(&text, S(AIM_GROUP_NEWER));
            rest = str_from(rest, at + strlen(AIM_GROUP));
        }
        buf_put(&text, rest);
        cluster_create(&c, &resource_crds, NULL, aim_test_yaml(&c, text.p));
    }
    aim_test_create(&c, &newer->at[AIM_CONFIG], "ml-team", CONFIG);
    aim_test_create(&c, &newer->at[AIM_CLUSTER_MODEL], NULL, WORLD_MODEL);
    aim_test_create(&c, &newer->at[AIM_CLUSTER_TEMPLATE], NULL, WORLD_TEMPLATE);
    aim_test_create(&c, &newer->at[AIM_SERVICE], "ml-team", SERVICE("llama-chat", ""));
    cluster_operator(&c, &runtimeconfig_feature, settings);
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "llama-chat"), S("/ml/ml-team/conversational-ai"));
    const struct json *route = cluster_get(&c, &aim_resource_httproutes, "ml-team", "llama-chat");
    EQ_STR(json_text(json_at(route, "metadata", "labels", AIM_GROUP_NEWER "/service-name", NULL)),
           S("llama-chat"));
    const struct json *o = cluster_get(&c, &newer->at[AIM_SERVICE], "ml-team", "llama-chat");
    is_governed(json_get(o, "status"), "namespaceRef", "clusterRef", "default");
    cluster_stop(&c);
}

static void a_paused_service_is_left_alone(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "ml-team", CONFIG);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "ml-team", SERVICE("llama-chat", ""));
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), "ml-team", "llama-chat",
                   "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: 'true'}}}");
    aim_test_start_operator(&c);
    OK(!aim_test_status(&c, AIM_SERVICE, "ml-team", "llama-chat"));
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), "ml-team", "llama-chat",
                   "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: null}}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "llama-chat"), S("/ml/ml-team/conversational-ai"));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(the_examples_of_the_seed),
                                        TAP(all_six_kinds),
                                        TAP(a_missing_default_is_reported_once),
                                        TAP(configurations_come_and_go),
                                        TAP(an_outage_during_an_edit),
                                        TAP(a_restart_writes_nothing),
                                        TAP(the_newer_group),
                                        TAP(a_paused_service_is_left_alone),
                                        { 0 } });
}
