/* What the definitions refuse, and with which sentence; and the condition for what was stored before a rule existed. */
#include "aim_world.h"

static const char ns[] = "ml-team";

#define SOURCE "{modelId: acme/tiny, sourceUri: 'hf://acme/tiny'}"
#define CREDENTIALS                                                                                \
    "credentials belong in an AIMRuntimeConfig: a cluster configuration holds no secrets"

static const struct rule {
    enum aim_kind kind;
    const char *spec, *patch; /* patch: of the stored object; NULL: the creation is checked */
    const char *message;      /* a part of the refusal; NULL: accepted */
} rules[] = {
    /* clang-format off: one a line */
    { AIM_CLUSTER_CONFIG, "{serviceAccountName: x}", NULL, CREDENTIALS },
    { AIM_CLUSTER_CONFIG, "{imagePullSecrets: [{name: x}]}", NULL, CREDENTIALS },
    { AIM_CONFIG, "{serviceAccountName: x, imagePullSecrets: [{name: x}]}", NULL, NULL },
    { AIM_CLUSTER_CONFIG, "{defaultStorageClassName: x}", "{serviceAccountName: x}", CREDENTIALS },
    { AIM_SERVICE, "{model: {ref: a, name: a}}", NULL, "exactly one of" },
    { AIM_SERVICE, "{model: {ref: a}}", "{model: {ref: b}}",
      "model selection is immutable after creation" },
    { AIM_SERVICE, "{model: {ref: a}}", "{replicas: 2, templateRef: b}", NULL },
    { AIM_SERVICE, "{model: {ref: a}, template: {name: a}}", "{template: {name: b}}",
      "template selection is immutable" },
    { AIM_SERVICE, "{model: {ref: a}, caching: {mode: Shared}}", "{caching: {mode: Dedicated}}",
      "caching mode is immutable" },
    { AIM_SERVICE, "{model: {ref: a}, overrides: {hardware: {}}}", NULL, "set gpu or cpu" },
    { AIM_SERVICE, "{model: {ref: a}, overrides: {hardware: {gpu: {requests: 1}}}}",
      "{overrides: {hardware: {gpu: {requests: 2}}}}", "hardware is immutable" },
    { AIM_SERVICE, "{model: {custom: {baseImage: 'a:1', modelSources: [" SOURCE "]}}}", NULL,
      "hardware: Required" },
    { AIM_SERVICE,
      "{model: {custom: {hardware: {cpu: {requests: 1}}, modelSources: [" SOURCE "]}}}", NULL,
      "baseImage: Required" },
    { AIM_SERVICE,
      "{model: {custom: {baseImage: 'a:1', hardware: {cpu: {requests: 1}}, modelSources: []}}}",
      NULL, "at least 1 items" },
    { AIM_SERVICE,
      "{model: {custom: {baseImage: 'a:1', hardware: {cpu: {requests: 1}}, modelSources: [{sourceUri: 'hf://a b', name: x}]}}}",
      NULL, "should match" },
    { AIM_SERVICE,
      "{model: {custom: {baseImage: 'a:1', hardware: {cpu: {requests: 1}}, modelSources: [" SOURCE
      "]}}}",
      NULL, NULL },
    { AIM_SERVICE, "{model: {ref: a}, routing: {weight: 1000001}}", NULL,
      "less than or equal to 1000000" },
    { AIM_SERVICE, "{model: {ref: a}, routing: {hostnames: [A_b]}}", NULL, "should match" },
    { AIM_SERVICE, "{model: {ref: a}, routing: {hostnames: ['*.example.org']}}", NULL, NULL },
    { AIM_SERVICE, "{profile: {name: a, selector: {}}}", NULL, "set either name or selector" },
    { AIM_SERVICE, "{model: {ref: a}, profileOverrides: {x: 1}}", NULL,
      "profileOverrides needs profile" },
    { AIM_SERVICE, "{profile: {name: a}, template: {name: b}}", NULL,
      "set either profile or template" },
    { AIM_MODEL, "{image: 'a:1', profiles: {}}", NULL, "set either image or profiles" },
    { AIM_MODEL, "{profiles: {derivedFrom: {selector: {role: base}}}}", NULL,
      "need overrides.aimId and overrides.modelId" },
    { AIM_MODEL,
      "{profiles: {derivedFrom: {selector: {role: base}}, overrides: {aimId: a, modelId: b}}}",
      NULL, NULL },
    { AIM_MODEL, "{image: 'a:1', modelSources: [" SOURCE "]}", NULL,
      "a custom model needs custom.hardware" },
    { AIM_MODEL,
      "{image: 'a:1', custom: {hardware: {gpu: {model: '', minVram: 4Gi}}}, modelSources: [" SOURCE
      "]}",
      NULL, NULL },
    { AIM_MODEL, "{image: 'a:1', custom: {hardware: {gpu: {model: X, minVram: 4Gi}}}}", NULL,
      "set either model or minVram" },
    { AIM_TEMPLATE, "{modelName: a, modelSources: [{sourceUri: 'hf://a/b'}]}", NULL,
      "set modelId, or name, which is its older form" },
    { AIM_TEMPLATE, "{modelName: a}", "{modelName: b}", "model name is immutable" },
    { AIM_CLUSTER_TEMPLATE, "{modelName: a, hardware: {gpu: {requests: 1}}}",
      "{hardware: {gpu: {requests: 2}}}", "hardware is immutable" },
    { AIM_CLUSTER_TEMPLATE, "{modelName: a, metric: latency, precision: fp8}",
      "{metric: throughput}", "metric is immutable" },
    { AIM_ARTIFACT, "{sourceUri: 'hf://a/b'}", "{sourceUri: 'hf://a/c'}",
      "sourceUri is immutable" },
    /* clang-format on */
};

static struct cluster_answer judge(struct cluster *c, const struct rule *r, const char *name)
{
    const struct resource *resource = aim_test_kind(r->kind);
    const char *where = resource->namespaced ? ns : NULL;
    struct json *object =
        aim_test_yaml(c,
                      arena_printf(&c->arena, "{metadata: {name: %s}, spec: %s}", name, r->spec).p);
    auto_buf struct buf version = { 0 };
    resource_api_version(resource, &version);
    json_set_str(&c->arena, object, "apiVersion", buf_str(&version));
    json_set_str(&c->arena, object, "kind", str_c(resource->kind));
    struct cluster_answer a =
        cluster_do(c, KUBE_CREATE, resource, where, name, json_to_str(&c->arena, object));
    if (!r->patch)
        return a;
    EQ_INT(a.code, 201);
    const struct json *patch = aim_test_yaml(c, arena_printf(&c->arena, "{spec: %s}", r->patch).p);
    return cluster_do(c, KUBE_MERGE_PATCH, resource, where, name, json_to_str(&c->arena, patch));
}

static void definitions_refuse_what_cannot_work(void)
{
    struct cluster c;
    aim_test_start(&c);
    for (size_t i = 0; i < countof(rules); i++) {
        char name[16];
        snprintf(name, sizeof(name), "rule-%zu", i);
        struct cluster_answer a = judge(&c, &rules[i], name);
        str said = json_text(json_get(a.object, "message"));
        bool good = rules[i].message
                        ? a.code == 422 && str_find(said, str_c(rules[i].message)) != SIZE_MAX
                        : a.code == 200 || a.code == 201;
        if (!OK(good))
            printf("# rule %zu: %d " STR_FMT "\n", i, a.code, STR_ARG(said));
    }
    cluster_stop(&c);
}

/* Bytes, not characters, as the path is measured. */
static void a_path_template_is_bounded(void)
{
    struct cluster c;
    aim_test_start(&c);
    for (int n = 1023; n <= 1024; n++) {
        char spec[1100];
        snprintf(spec, sizeof(spec), "{routing: {pathTemplate: '/%0*d'}}", n, 0);
        struct cluster_answer a =
            judge(&c, &(struct rule){ AIM_CONFIG, spec, NULL, NULL }, n == 1023 ? "fits" : "long");
        EQ_INT(a.code, n == 1023 ? 201 : 422);
    }
    cluster_stop(&c);
}

/* As a server that does not evaluate rules would store it. */
static void drop_rules(struct cluster *c, const char *name)
{
    static const struct resource crds = { "apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                          "CustomResourceDefinition", false };
    struct json *crd = cluster_get(c, &crds, NULL, name);
    struct json *version = json_item(json_at(crd, "spec", "versions", NULL), 0);
    json_del(json_at(version, "schema", "openAPIV3Schema", "properties", "spec", NULL),
             S("x-kubernetes-validations"));
    struct cluster_answer a =
        cluster_do(c, KUBE_UPDATE, &crds, NULL, name, json_to_str(&c->arena, crd));
    EQ_INT(a.code, 200);
    aim_test_wait(c);
}

static void stored_credentials_are_reported_and_ignored(void)
{
    struct cluster c;
    aim_test_start(&c);
    drop_rules(&c, "aimclusterruntimeconfigs.aim.silogen.ai");
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL,
                    "{metadata: {name: default}, spec: {imagePullSecrets: [{name: leaked}], "
                    "serviceAccountName: robot}}");
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns,
                    "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}}}");
    cluster_until(&c, cluster_now(&c) + 30);
    const struct json *status = aim_test_status(&c, AIM_CLUSTER_CONFIG, NULL, "default");
    const struct json *accepted = aim_status_find(status, "Accepted");
    EQ_STR(json_text(json_get(accepted, "status")), S("False"));
    EQ_STR(json_text(json_get(accepted, "reason")), S("CredentialsNotAllowed"));
    EQ_STR(json_text(json_get(accepted, "message")), S(CREDENTIALS));
    EQ_INT(aim_test_count_events(&c, "default", "default", "CredentialsNotAllowed"), 1);
    EQ_INT(aim_test_count_events(&c, ns, "chat", "CredentialsNotAllowed"), 1);
    const struct json *predictor =
        json_at(cluster_get(&c,
                            &(struct resource){ "serving.kserve.io", "v1beta1", "inferenceservices",
                                                "InferenceService", true },
                            ns, "chat"),
                "spec", "predictor", NULL);
    OK(predictor && !json_get(predictor, "imagePullSecrets") &&
       !json_get(predictor, "serviceAccountName"));
    aim_test_patch(&c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL, "default",
                   "{spec: {imagePullSecrets: null, serviceAccountName: null}}");
    cluster_until(&c, cluster_now(&c) + 10);
    OK(!aim_status_find(aim_test_status(&c, AIM_CLUSTER_CONFIG, NULL, "default"), "Accepted"));
    cluster_stop(&c);
}

/* The edit of a model that its template cannot take does not stop the rest of it. */
static void an_edit_of_a_custom_model_is_not_refused(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_MODEL), ns,
                    "{metadata: {name: own}, spec: {image: 'a/b:1', custom: {hardware: {cpu: "
                    "{requests: '4'}}}, modelSources: [" SOURCE "]}}");
    cluster_until(&c, cluster_now(&c) + 5);
    aim_test_patch(
        &c, aim_test_kind(AIM_MODEL), ns, "own",
        "{spec: {serviceAccountName: robot, custom: {hardware: {cpu: {requests: '8'}}}}}");
    cluster_until(&c, cluster_now(&c) + 20);
    const struct json *list =
        json_get(cluster_do(&c, KUBE_LIST, aim_test_kind(AIM_TEMPLATE), ns, NULL, S("")).object,
                 "items");
    const struct json *spec = json_get(json_item(list, 0), "spec");
    EQ_INT((int64_t)json_len(list), 1);
    EQ_STR(json_text(json_get(spec, "serviceAccountName")), S("robot"));
    EQ_STR(json_text(json_at(spec, "hardware", "cpu", "requests", NULL)), S("4"));
    EQ_STR(json_text(json_get(aim_test_status(&c, AIM_MODEL, ns, "own"), "status")), S("Ready"));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(definitions_refuse_what_cannot_work),
                                        TAP(a_path_template_is_bounded),
                                        TAP(stored_credentials_are_reported_and_ignored),
                                        TAP(an_edit_of_a_custom_model_is_not_refused),
                                        { 0 } });
}
