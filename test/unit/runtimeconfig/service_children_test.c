/* The objects that a service, a template and a model bring into being. */
#include "runtimeconfig/model_core.h"
#include "runtimeconfig/names_core.h"
#include "runtimeconfig/service_children_core.h"
#include "runtimeconfig/template_children_core.h"
#include "tap.h"
#include "json/yaml.h"

static struct json *parse(struct arena *a, const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(a, str_c(yaml), &tree, &e), &e);
    return tree;
}

#define SERVICE(fields)                                                                             \
    "{metadata: {name: chat, namespace: ml, uid: u1, labels: {team: a, app: x}, annotations: "      \
    "{note: hi, kubectl.kubernetes.io/last-applied-configuration: '{}'}}, spec: {model: {ref: m}, " \
    "runtimeConfigName: fast, " fields "}}"
#define TEMPLATE                                                                                    \
    "{metadata: {name: t}, spec: {modelName: m, metric: latency, precision: fp8, gpuSelector: "     \
    "{count: 2, model: MI300X}, serviceAccountName: of-template, imagePullSecrets: [{name: p2}], "  \
    "modelSources: [{name: org/x, sourceUri: 'hf://org/x', size: 16Gi}]}, status: {status: Ready, " \
    "profile: {metadata: {metric: latency, precision: fp8, gpu_count: 2}}, modelSources: [{name: "  \
    "org/x, sourceUri: 'hf://org/x', size: 16Gi}]}}"

struct stage {
    struct arena arena;
    struct runtimeconfig_spec config, own;
    struct aim_service_basis basis;
};

static struct aim_service_basis *set(struct stage *s, const char *service, const char *config)
{
    struct arena *a = &s->arena;
    const struct json *object = parse(a, service);
    s->config = runtimeconfig_spec_read(parse(a, config), false);
    s->own = runtimeconfig_spec_read(json_get(object, "spec"), false);
    s->basis = (struct aim_service_basis){ "aim.silogen.ai",
                                           object,
                                           parse(a, TEMPLATE),
                                           parse(a, "{metadata: {name: m}, spec: {image: 'r/m:1', "
                                                    "imagePullSecrets: [{name: p3}, {name: p1}]}}"),
                                           &s->config,
                                           &s->own };
    return &s->basis;
}

static str text(const struct json *tree) /* for comparisons */
{
    static struct arena a;
    arena_reset(&a, (struct arena_mark){ 0 });
    return tree ? json_to_str(&a, tree) : S("null");
}

static const struct json *predictor(const struct json *isvc)
{
    return json_at(isvc, "spec", "predictor", NULL);
}

static void runtime_carries_the_wishes_of_its_service(void)
{
    struct stage s = { 0 };
    const struct aim_service_basis *b = set(
        &s, SERVICE("replicas: 3, env: [{name: A, value: mine}], imagePullSecrets: [{name: p1}]"),
        "{env: [{name: A, value: theirs}, {name: B, value: b}], imagePullSecrets: [{name: p4}]}");
    const struct json *isvc =
        aim_service_inference_service(&s.arena, b, &(struct aim_service_storage){ 0 });
    const struct json *p = predictor(isvc), *model = json_get(p, "model");
    EQ_STR(json_text(json_at(isvc, "metadata", "name", NULL)), S("chat"));
    EQ_STR(text(json_at(isvc, "metadata", "annotations", NULL)), S("{\"note\":\"hi\"}"));
    EQ_STR(json_text(json_at(isvc, "metadata", "labels", "team", NULL)), S("a"));
    EQ_STR(json_text(json_at(isvc, "metadata", "labels", "aim.silogen.ai/model-id", NULL)),
           S("org_x"));
    EQ_STR(json_text(json_at(isvc, "metadata", "labels", "aim.silogen.ai/template.metric", NULL)),
           S("latency"));
    EQ_STR(json_text(json_get(model, "runtime")), S("t"));
    EQ_STR(text(json_get(model, "env")),
           S("[{\"name\":\"A\",\"value\":\"mine\"},{\"name\":\"B\",\"value\":\"b\"}]"));
    EQ_STR(text(json_get(p, "imagePullSecrets")),
           S("[{\"name\":\"p1\"},{\"name\":\"p2\"},{\"name\":\"p3\"},{\"name\":\"p4\"}]"));
    EQ_STR(json_text(json_get(p, "serviceAccountName")), S("of-template"));
    EQ_INT(json_int(json_get(p, "minReplicas"), 0), 3);
    EQ_INT(json_int(json_get(p, "maxReplicas"), 0), 3);
    OK(!json_get(p, "volumes"));
    arena_done(&s.arena);
}

static void resources_are_the_usual_ones_overlaid_once(void)
{
    struct stage s = { 0 };
    const struct aim_service_basis *b =
        set(&s, SERVICE("resources: {limits: {memory: 1Gi}}"), "{}");
    const struct json *isvc =
        aim_service_inference_service(&s.arena, b, &(struct aim_service_storage){ 0 });
    EQ_STR(text(json_at(predictor(isvc), "model", "resources", NULL)),
           S("{\"requests\":{\"cpu\":\"8\",\"memory\":\"64Gi\",\"amd.com/gpu\":\"2\"},\"limits\":{"
             "\"memory\":\"1Gi\",\"amd.com/gpu\":\"2\"}}"));
    b = set(&s, SERVICE("replicas: 1"), "{}");
    s.basis.template =
        parse(&s.arena, "{metadata: {name: t}, spec: {resources: {requests: {cpu: 1}}}}");
    isvc = aim_service_inference_service(&s.arena, b, &(struct aim_service_storage){ 0 });
    EQ_STR(text(json_at(predictor(isvc), "model", "resources", NULL)),
           S("{\"requests\":{\"cpu\":1}}")); /* no GPU, nothing usual */
    arena_done(&s.arena);
}

static void storage_of_a_live_runtime_is_read_back(void)
{
    struct stage s = { 0 };
    const struct aim_service_basis *b = set(&s, SERVICE("replicas: 1"), "{}");
    struct aim_service_mount mounts[] = { { S("x-cache"), S("/workspace/model-cache/org/x") } };
    struct aim_service_storage made = { "template", mounts, 1 }, read;
    const struct json *isvc = aim_service_inference_service(&s.arena, b, &made);
    OK(aim_service_read_storage(&s.arena, "aim.silogen.ai", isvc, "template", &read));
    EQ_INT(read.n, 1);
    EQ_STR(read.mounts[0].claim, S("x-cache"));
    EQ_STR(read.mounts[0].path, S("/workspace/model-cache/org/x"));
    OK(!aim_service_read_storage(&s.arena, "aim.silogen.ai", isvc, "volume", &read));
    OK(!aim_service_read_storage(&s.arena, "aim.silogen.ai", NULL, "volume", &read));
    EQ_STR(text(json_at(predictor(isvc), "model", "env", NULL)),
           S("[{\"name\":\"AIM_CACHE_PATH\",\"value\":\"/workspace/model-cache\"}]"));
    arena_done(&s.arena);
}

static void volumes_follow_the_precedence_of_storage_settings(void)
{
    static const struct {
        const char *service, *config, *want;
    } t[] = {
        { "replicas: 1", "{}", "18Gi" },
        { "replicas: 1", "{pvcHeadroomPercent: 25, defaultStorageClassName: slow}", "20Gi slow" },
        { "defaultStorageClassName: fast, pvcHeadroomPercent: 0",
          "{pvcHeadroomPercent: 25, defaultStorageClassName: slow}", "16Gi fast" },
        { "storage: {defaultStorageClassName: new}", "{defaultStorageClassName: slow}",
          "18Gi new" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct stage s = { 0 };
        str service = arena_printf(&s.arena, SERVICE("%s"), t[i].service);
        const struct json *claim = aim_service_volume(&s.arena, set(&s, service.p, t[i].config));
        const struct json *spec = json_get(claim, "spec");
        str class = json_text(json_get(spec, "storageClassName"));
        str got = arena_printf(&s.arena, STR_FMT "%s" STR_FMT,
                               STR_ARG(json_text(
                                   json_at(spec, "resources", "requests", "storage", NULL))),
                               class.n ? " " : "", STR_ARG(class));
        EQ_STR(got, str_c(t[i].want));
        EQ_STR(json_text(json_at(claim, "metadata", "name", NULL)), S("chat-temp-cache"));
        EQ_STR(text(json_get(spec, "accessModes")), S("[\"ReadWriteMany\"]"));
        arena_done(&s.arena);
    }
}

static void a_source_without_a_size_has_no_volume(void)
{
    struct stage s = { 0 };
    struct aim_service_basis *b = set(&s, SERVICE("replicas: 1"), "{}");
    b->template =
        parse(&s.arena, "{metadata: {name: t}, spec: {modelSources: [{name: a, size: 1Gi}, "
                        "{name: b}]}}");
    OK(!aim_service_volume(&s.arena, b));
    EQ_INT(aim_service_sources_bytes(parse(&s.arena, "[{size: 9Ei}, {size: 9Ei}]")), -1);
    EQ_INT(aim_service_sources_bytes(parse(&s.arena, "[{size: lots}]")), -1);
    EQ_INT(aim_service_sources_bytes(parse(&s.arena, "[{size: 5}, {size: 1Ki}]")), 1029);
    arena_done(&s.arena);
}

static void overrides_make_a_template_of_their_own(void)
{
    struct stage s = { 0 };
    struct aim_service_basis *b =
        set(&s,
            SERVICE("overrides: {precision: fp16, metric: throughput}, env: "
                    "[{name: A, value: x}]"),
            "{}");
    const struct json *base = parse(&s.arena, "{metadata: {name: llama-3-8b-latency}, spec: "
                                              "{modelName: m, metric: latency, profile: {metadata: "
                                              "{metric: latency, engine: vllm}}}}");
    const struct json *made = aim_service_derived_template(&s.arena, b, base);
    /* the hash of a golden vector: the order of members is the original's, not the user's */
    EQ_STR(json_text(json_at(made, "metadata", "name", NULL)),
           S("llama-3-8b-latency-ovr-6c75f1d2"));
    EQ_STR(json_text(json_at(made, "metadata", "namespace", NULL)), S("ml"));
    EQ_STR(text(json_get(made, "spec")),
           S("{\"modelName\":\"m\",\"metric\":\"throughput\",\"profile\":{\"metadata\":{\"engine\":"
             "\"vllm\"}},\"precision\":\"fp16\",\"env\":[{\"name\":\"A\",\"value\":\"x\"}],"
             "\"runtimeConfigName\":\"fast\"}"));
    made = aim_service_derived_template(&s.arena, b, parse(&s.arena, "{metadata: {name: x}}"));
    EQ_STR(json_text(json_at(made, "spec", "metric", NULL)), S("throughput"));
    arena_done(&s.arena);
}

/* Each generation of AIM names the GPU of a template differently; a derived template names it once. */
static void overrides_keep_the_form_of_the_base(void)
{
    static const struct {
        const char *overrides, *base, *spec;
    } t[] = {
        { "{hardware: {gpu: {requests: 2, model: MI325X}, cpu: {requests: 8}}}",
          "{hardware: {gpu: {requests: 1, minVram: 100Gi, resourceName: x.io/gpu}}}",
          "{\"hardware\":{\"gpu\":{\"requests\":2,\"resourceName\":\"x.io/gpu\",\"model\":"
          "\"MI325X\"},\"cpu\":{\"requests\":8}},\"runtimeConfigName\":\"fast\"}" },
        { "{gpuSelector: {count: 2}}", "{hardware: {gpu: {requests: 1, model: MI300X}}}",
          "{\"hardware\":{\"gpu\":{\"requests\":2,\"model\":\"MI300X\"}},"
          "\"runtimeConfigName\":\"fast\"}" },
        { "{hardware: {gpu: {requests: 2}}}", "{gpuSelector: {count: 1, model: MI300X}}",
          "{\"gpuSelector\":{\"count\":2,\"model\":\"MI300X\"},\"runtimeConfigName\":"
          "\"fast\"}" },
        { "{gpuSelector: {count: 2, model: A100}}", "{}",
          "{\"gpuSelector\":{\"model\":\"A100\",\"count\":2},\"runtimeConfigName\":"
          "\"fast\"}" },
        { "{hardware: {gpu: {minVram: 80Gi}}}", "{}",
          "{\"hardware\":{\"gpu\":{\"minVram\":\"80Gi\"}},\"runtimeConfigName\":"
          "\"fast\"}" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct stage s = { 0 };
        str service = arena_printf(&s.arena, SERVICE("overrides: %s"), t[i].overrides);
        struct aim_service_basis *b = set(&s, service.p, "{}");
        str base = arena_printf(&s.arena, "{metadata: {name: x}, spec: %s}", t[i].base);
        EQ_STR(text(json_get(aim_service_derived_template(&s.arena, b, parse(&s.arena, base.p)),
                             "spec")),
               str_c(t[i].spec));
        arena_done(&s.arena);
    }
}

static void hardware_of_a_template_reaches_the_runtime(void)
{
    struct stage s = { 0 };
    struct aim_service_basis *b = set(&s, SERVICE("replicas: 1"), "{}");
    struct aim_service_storage storage = { 0 };
    b->template = parse(&s.arena, "{metadata: {name: t}, spec: {modelName: m, hardware: {gpu: "
                                  "{requests: 2, resourceName: nvidia.com/gpu}, cpu: {requests: "
                                  "'3', limits: '6'}}}}");
    const struct json *resources = json_at(aim_service_inference_service(&s.arena, b, &storage),
                                           "spec", "predictor", "model", "resources", NULL);
    EQ_STR(text(resources),
           S("{\"requests\":{\"cpu\":\"3\",\"memory\":\"64Gi\",\"nvidia.com/gpu\":\"2\"},"
             "\"limits\":{\"memory\":\"96Gi\",\"cpu\":\"6\",\"nvidia.com/gpu\":\"2\"}}"));
    struct aim_template_basis of = { .group = "aim.silogen.ai",
                                     .template = b->template,
                                     .profile = parse(&s.arena, "{metadata: {gpu_count: 2}}"),
                                     .config = b->config };
    const struct json *runtime = aim_template_serving_runtime(&s.arena, &of);
    const struct json *container = json_item(json_at(runtime, "spec", "containers", NULL), 0);
    EQ_STR(text(json_get(container, "resources")),
           S("{\"requests\":{\"nvidia.com/gpu\":\"2\"},\"limits\":{\"nvidia.com/gpu\":"
             "\"2\"}}"));
    arena_done(&s.arena);
}

static void a_model_for_an_image_takes_the_services_configuration(void)
{
    struct stage s = { 0 };
    struct aim_service_basis *b = set(
        &s,
        "{metadata: {name: chat, namespace: ml, labels: {team/x: a, y: b}}, spec: {model: {image: "
        "'nginx:1.25'}, runtimeConfigName: fast}}",
        "{labelPropagation: {enabled: true, match: ['team/*']}}");
    const struct json *model = aim_service_model(&s.arena, b);
    EQ_STR(json_text(json_at(model, "metadata", "name", NULL)), S("nginx-1-25-251ad317"));
    EQ_STR(text(json_get(model, "spec")),
           S("{\"image\":\"nginx:1.25\",\"runtimeConfigName\":\"fast\"}"));
    EQ_STR(text(json_at(model, "metadata", "labels", NULL)),
           S("{\"app.kubernetes.io/managed-by\":\"aim-controller\",\"aim.silogen.ai/auto-created\":"
             "\"true\",\"team/x\":\"a\"}"));
    arena_done(&s.arena);
}

static void templates_have_a_serving_runtime(void)
{
    auto_arena struct arena a = { 0 };
    struct runtimeconfig_spec config = { 0 };
    const struct json *template = parse(&a, TEMPLATE);
    struct aim_template_basis b = { "aim.silogen.ai", template,
                                    json_at(template, "status", "profile", NULL),
                                    parse(&a, "{spec: {image: 'r/m:1'}}"), &config };
    const struct json *runtime = aim_template_serving_runtime(&a, &b);
    const struct json *c = json_item(json_at(runtime, "spec", "containers", NULL), 0);
    EQ_STR(json_text(json_get(c, "image")), S("r/m:1"));
    EQ_STR(text(json_at(c, "resources", "limits", NULL)), S("{\"amd.com/gpu\":\"2\"}"));
    OK(!json_at(runtime, "metadata", "namespace", NULL)); /* of the cluster */
    OK(!aim_template_cache(&a, &b));
}

static void models_are_judged_by_what_is_known(void)
{
    auto_arena struct arena a = { 0 };
    static const char recommends[] =
        "{metadata: {name: m}, spec: {image: i, imageMetadata: {model: {recommendedDeployments: "
        "[{gpuModel: MI300X, gpuCount: 1, metric: latency, precision: fp8}, {gpuCount: 2}]}}}}";
    static const struct {
        const char *model;
        struct aim_model_templates made, other;
        const char *want, *generated; /* the word, and the reason of TemplatesAutoGenerated */
    } t[] = {
        { "{spec: {image: i}}", { 0 }, { 0 }, "Pending", "AutoTemplateCreationPending" },
        { "{spec: {image: i}}", { 0 }, { 1 }, "Ready", "AutoTemplateCreationPending" },
        { "{spec: {image: i}}", { 0 }, { 1, 1 }, "Progressing", "AutoTemplateCreationPending" },
        { "{spec: {image: i, discovery: {enabled: false}}}",
          { 0 },
          { 0 },
          "Ready",
          "DiscoveryDisabled" },
        { "{spec: {image: i, imageMetadata: {oci: {}}}}",
          { 0 },
          { 0 },
          "Ready",
          "MetadataMissingRecommendedDeployments" },
        { "{spec: {image: i, imageMetadata: {model: {recommendedDeployments: []}}}}",
          { 0 },
          { 0 },
          "Ready",
          "NoRecommendedTemplates" },
        { recommends, { 0 }, { 1 }, "Progressing", "AutoTemplateCreationPending" },
        { recommends, { 1, 0, 1 }, { 0 }, "Degraded", "AutoTemplatesPresent" },
        { recommends, { 0, 0, 2 }, { 0 }, "Failed", "AutoTemplatesPresent" },
        { recommends, { 2 }, { 0, 0, 1 }, "Ready", "AutoTemplatesPresent" },
    };
    struct runtimeconfig_spec config = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        struct aim_model_facts f = { .object = parse(&a, t[i].model),
                                     .config = &config,
                                     .made = t[i].made,
                                     .other = t[i].other };
        struct aim_model_state s = aim_model_state(&a, &f);
        EQ_STR(str_c(s.status), str_c(t[i].want));
        EQ_STR(str_c(s.generated_reason), str_c(t[i].generated));
        OK(s.message.n > 0);
    }
    const struct json *model = parse(&a, recommends);
    struct aim_model_templates bad = { 0 };
    aim_model_count_template(&a, &bad, S("b"), S("Failed"));
    aim_model_count_template(&a, &bad, S("a"), S("Degraded"));
    struct aim_model_facts f = { .object = model, .config = &config, .made = bad };
    struct aim_model_state s = aim_model_state(&a, &f);
    EQ_STR(s.message, S("All 2 template(s) are degraded or failed: template \"a\" is degraded; "
                        "template \"b\" has failed"));
    EQ_STR(s.degraded_message, s.message);
    EQ_STR(s.progressing_message, S("All templates have completed discovery"));
    EQ_STR(str_c(s.generated_reason), S("AutoTemplatesPresent"));
    const struct json *first = json_item(aim_model_deployments(model, &config), 0);
    const struct json *made = aim_model_template(&a, "aim.silogen.ai", model, first);
    OK(str_starts(json_text(json_at(made, "metadata", "name", NULL)), S("m-1x-mi300x-lat-fp8-")));
    EQ_INT(json_int(json_at(made, "spec", "gpuSelector", "count", NULL), 0), 1);
    config.no_discovery = true;
    OK(!aim_model_deployments(model, &config));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(runtime_carries_the_wishes_of_its_service),
                                        TAP(resources_are_the_usual_ones_overlaid_once),
                                        TAP(storage_of_a_live_runtime_is_read_back),
                                        TAP(volumes_follow_the_precedence_of_storage_settings),
                                        TAP(a_source_without_a_size_has_no_volume),
                                        TAP(overrides_make_a_template_of_their_own),
                                        TAP(overrides_keep_the_form_of_the_base),
                                        TAP(hardware_of_a_template_reaches_the_runtime),
                                        TAP(a_model_for_an_image_takes_the_services_configuration),
                                        TAP(templates_have_a_serving_runtime),
                                        TAP(models_are_judged_by_what_is_known),
                                        { 0 } });
}
