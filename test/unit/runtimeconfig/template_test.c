/* Selection of a template, and the state of one. */
#include "runtimeconfig/template_core.h"
#include "tap.h"
#include "json/yaml.h"

static struct json *parse(struct arena *a, const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(a, str_c(yaml), &tree, &e), &e);
    return tree;
}

#define CLUSTER ""
#define NS "ml"

/* name, namespace, gpu, metric, precision, ready */
#define T(name, ns, gpu, metric, precision, ready)                                                 \
    { S(name), S(ns), S(gpu), S(metric), S(precision), ready, false }

static void expect(const struct aim_template_candidate *list, size_t n, const char *gpus,
                   const char *want)
{
    auto_arena struct arena a = { 0 };
    struct aim_template_selection s = aim_template_select(&a, S("m"), list, n, parse(&a, gpus));
    str got = s.choice == TEMPLATE_CHOSEN ? s.chosen->name : str_c(s.reason);
    EQ_STR(got, str_c(want));
    OK((s.choice == TEMPLATE_CHOSEN) == (s.message.n == 0));
}

#define EXPECT(gpus, want, ...)                                                                    \
    do {                                                                                           \
        const struct aim_template_candidate list_[] = { __VA_ARGS__ };                             \
        expect(list_, countof(list_), gpus, want);                                                 \
    } while (0)

static void the_best_gpu_then_metric_then_precision_wins(void)
{
    EXPECT("[MI300X, MI325X]", "b", T("a", CLUSTER, "MI300X", "latency", "fp8", true),
           T("b", CLUSTER, "MI325X", "throughput", "fp32", true));
    EXPECT("[MI300X]", "b", T("a", CLUSTER, "MI300X", "throughput", "fp8", true),
           T("b", CLUSTER, "MI300X", "latency", "bf16", true));
    EXPECT("[MI300X]", "a", T("a", CLUSTER, "MI300X", "latency", "fp8", true),
           T("b", CLUSTER, "MI300X", "latency", "fp16", true));
    EXPECT("[MI300X]", "a", T("b", CLUSTER, "MI300X", "latency", "int4", true),
           T("a", CLUSTER, "MI300X", "latency", "fp32", true));
}

static void the_namespace_comes_before_the_cluster(void)
{
    EXPECT("[MI300X, MI325X]", "mine", T("best", CLUSTER, "MI325X", "latency", "fp8", true),
           T("mine", NS, "MI300X", "throughput", "fp32", true));
    /* but only with what can be used */
    EXPECT("[MI325X]", "best", T("best", CLUSTER, "MI325X", "latency", "fp8", true),
           T("mine", NS, "MI300X", "throughput", "fp32", true));
    EXPECT("[MI325X]", "best", T("best", CLUSTER, "MI325X", "latency", "fp8", true),
           T("mine", NS, "MI325X", "latency", "fp8", false));
}

static void what_cannot_be_chosen_says_why(void)
{
    EXPECT("[]", "TemplateNotAvailable", T("a", CLUSTER, "", "latency", "fp8", false));
    EXPECT("[A100]", "TemplateNotAvailable", T("a", CLUSTER, "H100", "latency", "fp8", true));
    EXPECT("[]", "TemplateSelectionAmbiguous", T("a", NS, "", "latency", "fp8", true),
           T("b", NS, "", "latency", "fp8", true));
    EXPECT("[]", "c", T("a", NS, "", "latency", "fp16", true),
           T("b", NS, "", "latency", "fp16", true),
           T("c", NS, "", "latency", "fp8", true)); /* a tie of the second best is none */
    auto_arena struct arena a = { 0 };
    EQ_STR(str_c(aim_template_select(&a, S("m"), NULL, 0, NULL).reason), S("TemplateNotFound"));
    struct aim_template_candidate derived = T("d", NS, "", "latency", "fp8", true);
    derived.derived = true;
    EQ_INT(aim_template_select(&a, S("m"), &derived, 1, NULL).choice, TEMPLATE_NONE);
}

static void the_report_says_what_stands_against_each(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    const struct aim_template_candidate list[] = {
        T("mine", NS, "", "latency", "fp8", true),
        T("slow", NS, "", "throughput", "", true),
        T("big", CLUSTER, "MI325X", "latency", "fp8", true),
        T("late", NS, "", "", "", false),
        T("other", CLUSTER, "", "latency", "fp8", true),
    };
    const struct json *gpus = parse(&a, "[MI300X]");
    struct aim_template_selection s = aim_template_select(&a, S("m"), list, countof(list), gpus);
    aim_template_report(&out, &s, list, countof(list), gpus);
    EQ_STR(buf_str(&out), S("    * mine, any GPU, latency, fp8: chosen\n"
                            "      slow, any GPU, throughput: ranks lower\n"
                            "      big of the cluster, MI325X, latency, fp8: no node has its GPU\n"
                            "      late, any GPU: not ready\n"
                            "      other of the cluster, any GPU, latency, fp8: templates of the "
                            "namespace take precedence\n"));
}

static void gpus_are_read_from_the_labels_of_nodes(void)
{
    auto_arena struct arena a = { 0 };
    struct json *gpus = json_new_arr(&a);
    aim_template_gpus_of_node(&a, parse(&a, "{amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM}"),
                              gpus);
    aim_template_gpus_of_node(&a, parse(&a, "{beta.amd.com/gpu.device-id: '74a5'}"), gpus);
    aim_template_gpus_of_node(&a, parse(&a, "{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}"),
                              gpus);
    aim_template_gpus_of_node(&a, parse(&a, "{kubernetes.io/hostname: MI210}"), gpus);
    OK(aim_template_has_gpu(gpus, S("MI300X")));
    OK(aim_template_has_gpu(gpus, S("mi325x")));
    OK(aim_template_has_gpu(gpus, S("H100")));
    OK(!aim_template_has_gpu(gpus, S("MI300"))); /* another card */
    OK(!aim_template_has_gpu(gpus, S("MI210")));
    OK(aim_template_has_gpu(gpus, S("")));
}

static struct aim_template_state state(struct arena *a, const char *yaml, const char *gpus)
{
    return aim_template_state(a,
                              &(struct aim_template_facts){ .object = parse(a, yaml),
                                                            .model = parse(a, "{spec: {image: i}}"),
                                                            .gpus = parse(a, gpus) });
}

static void inline_sources_make_a_template_ready(void)
{
    auto_arena struct arena a = { 0 };
    struct aim_template_state s = state(
        &a,
        "{spec: {modelName: m, metric: latency, precision: fp8, gpuSelector: {count: 2, model: "
        "MI300X}, modelSources: [{name: x, sourceUri: 'hf://a/b'}]}}",
        "[]");
    EQ_STR(str_c(s.status), S("Ready"));
    EQ_INT(json_len(s.sources), 1);
    EQ_INT(json_int(json_at(s.profile, "metadata", "gpu_count", NULL), 0), 2);
    EQ_STR(json_text(json_at(s.profile, "metadata", "gpu", NULL)), S("MI300X"));
    EQ_STR(json_text(json_at(s.profile, "metadata", "metric", NULL)), S("latency"));
}

static void a_profile_given_by_hand_stays(void)
{
    auto_arena struct arena a = { 0 };
    const struct json *profile = aim_template_profile(
        &a, parse(&a, "{metric: latency, profile: {engine_args: {x: 1}, metadata: {metric: "
                      "throughput, engine: vllm}}}"));
    EQ_STR(json_text(json_at(profile, "metadata", "metric", NULL)), S("throughput"));
    EQ_STR(json_text(json_at(profile, "metadata", "engine", NULL)), S("vllm"));
    EQ_INT(json_int(json_at(profile, "engine_args", "x", NULL), 0), 1);
}

static void other_templates_wait_and_say_for_what(void)
{
    auto_arena struct arena a = { 0 };
    EQ_STR(str_c(state(&a, "{spec: {modelName: m}}", "[]").reason), S("AwaitingDiscovery"));
    EQ_STR(str_c(state(&a, "{spec: {modelName: m, gpuSelector: {model: A100}}}", "[]").status),
           S("NotAvailable"));
    struct aim_template_state s =
        aim_template_state(&a, &(struct aim_template_facts){
                                   .object = parse(&a, "{spec: {modelName: m}}"),
                                   .config_missing = true,
                                   .config_message = S("gone") });
    EQ_STR(str_c(s.status), S("Degraded"));
    EQ_STR(s.message, S("gone"));
}

/* Texts of the original, compared byte for byte. */
static void conditions_are_worded_as_in_the_original(void)
{
    static const struct {
        const char *object;
        enum aim_template_discovery discovery;
        const char *reason, *message; /* of the discovery */
        const char *want;
    } t[] = {
        { "{spec: {modelName: m, modelSources: [{modelId: a/b}]}}", 0, NULL, "",
          "Ready | Discovered True InlineModelSources Model sources provided in-line in spec | "
          "Progressing False Available No discovery needed | Ready True Available Template is "
          "ready | Failure False NoFailure No active failures" },
        { "{spec: {modelName: m, gpuSelector: {model: A100}}}", 0, NULL, "",
          "NotAvailable | Discovered False GPUUnavailable Cannot run discovery without required "
          "GPU resources | Progressing False GPUUnavailable Waiting for required GPU resources | "
          "Ready False GPUUnavailable Required GPU model \"A100\" is not available in the cluster "
          "| Failure False GPUUnavailable Required GPU model \"A100\" is not available in the "
          "cluster" },
        { "{spec: {modelName: m}}", TEMPLATE_DISCOVERY_STUCK, "ImagePullBackOff", "M",
          "Degraded | Discovered False JobPending Discovery job has not completed | Progressing "
          "False ImagePullBackOff Discovery cannot proceed due to image pull failure | Ready False "
          "ImagePullBackOff Template is not ready due to image pull failure | Failure True "
          "ImagePullBackOff M" },
        { "{spec: {modelName: m}}", TEMPLATE_DISCOVERING, "DiscoveryRunning",
          "Discovery job is running",
          "Progressing | Discovered False JobPending Discovery job has not completed | Progressing "
          "True DiscoveryRunning Discovery job is running | Ready False Reconciling Template is "
          "not ready yet | Failure False NoFailure No active failures" },
        { "{spec: {modelName: m}}", TEMPLATE_DISCOVERING, "Reconciling", "Initiating discovery",
          "Progressing | Discovered False JobPending Discovery job has not completed | Progressing "
          "True Reconciling Initiating discovery | Ready False Reconciling Template is not ready | "
          "Failure False NoFailure No active failures" },
        { "{spec: {modelName: m}}", TEMPLATE_DISCOVERY_FAILED, "JobFailed", "why, and when again",
          "Failed | Discovered False DiscoveryFailed Discovery failed | Progressing False JobFailed "
          "why, and when again | Ready False Failed Template is not ready | Failure True JobFailed "
          "Discovery job failed" },
        { "{spec: {modelName: m}}", TEMPLATE_DISCOVERY_FAILED, "DiscoveryParseFailed", "M",
          "Failed | Discovered False DiscoveryFailed Discovery failed | Progressing False "
          "DiscoveryParseFailed M | Ready False Failed Template is not ready | Failure True "
          "DiscoveryParseFailed M" },
        { "{spec: {modelName: m}}", TEMPLATE_DISCOVERED, "Discovered", "Model sources discovered",
          "Ready | Discovered True Discovered Model sources discovered | Progressing False "
          "Available Discovery complete | Ready True Available Template is ready | Failure False "
          "NoFailure No active failures" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        auto_buf struct buf got = { 0 };
        struct aim_template_condition c[TEMPLATE_CONDITIONS];
        struct aim_template_state s =
            aim_template_state(&a, &(struct aim_template_facts){
                                       .object = parse(&a, t[i].object),
                                       .model = parse(&a, "{spec: {image: i}}"),
                                       .gpus = parse(&a, "[]"),
                                       .discovery = t[i].discovery,
                                       .discovery_reason = t[i].reason,
                                       .discovery_message = str_c(t[i].message) });
        aim_template_conditions(&s, c);
        buf_printf(&got, "%s", s.status);
        for (size_t k = 0; k < countof(c); k++)
            buf_printf(&got, " | %s %s %s " STR_FMT, c[k].type, c[k].holds ? "True" : "False",
                       c[k].reason, STR_ARG(c[k].message));
        EQ_STR(buf_str(&got), str_c(t[i].want));
    }
}

static void memory_of_gpus_is_compared(void)
{
    static const struct {
        const char *least, *status, *message;
    } t[] = {
        { "500Gi", "NotAvailable",
          "Required minimum VRAM (500Gi) exceeds available GPUs. Highest available: MI300X "
          "(192Gi)" },
        { "192Gi", "Pending", "" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct json *gpus = json_new_arr(&a);
        aim_template_gpus_of_node(
            &a, parse(&a, "{amd.com/gpu.device-id: 74a1, amd.com/gpu.vram: 192G}"), gpus);
        str object =
            arena_printf(&a, "{spec: {modelName: m, hardware: {gpu: {requests: 1, minVram: %s}}}}",
                         t[i].least);
        const struct json *template = parse(&a, object.p);
        struct aim_template_state s = aim_template_state(
            &a, &(struct aim_template_facts){
                    .object = template, .model = parse(&a, "{spec: {image: i}}"), .gpus = gpus });
        struct aim_template_candidate c = { .ready = true };
        EQ_STR(str_c(s.status), str_c(t[i].status));
        if (*t[i].message)
            EQ_STR(s.message, str_c(t[i].message));
        aim_template_check_memory(&a, &c, template, gpus);
        OK(c.lacks_memory == (*t[i].message != 0)); /* also one with sources, which is ready */
    }
}

static void without_an_image_nothing_is_discovered(void)
{
    static const struct {
        const char *object, *model, *want;
    } t[] = {
        { "{metadata: {namespace: ml}, spec: {modelName: m}}", NULL,
          "AIMModel \"m\" not found in namespace \"ml\"" },
        { "{metadata: {name: x}, spec: {modelName: m}}", NULL, "AIMClusterModel \"m\" not found" },
        { "{metadata: {name: x}, spec: {modelName: m}}", "{spec: {}}",
          "Model does not specify an image" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct aim_template_condition c[TEMPLATE_CONDITIONS];
        struct aim_template_state s =
            aim_template_state(&a, &(struct aim_template_facts){
                                       .object = parse(&a, t[i].object),
                                       .model = t[i].model ? parse(&a, t[i].model) : NULL,
                                       .gpus = parse(&a, "[]") });
        aim_template_conditions(&s, c);
        EQ_STR(str_c(s.status), S("Degraded"));
        EQ_STR(c[2].message, S("Cannot proceed without image"));
        OK(c[3].holds);
        EQ_STR(str_c(c[3].reason), S("ImageNotFound"));
        EQ_STR(c[3].message, str_c(t[i].want));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(the_best_gpu_then_metric_then_precision_wins),
                                        TAP(the_namespace_comes_before_the_cluster),
                                        TAP(what_cannot_be_chosen_says_why),
                                        TAP(the_report_says_what_stands_against_each),
                                        TAP(gpus_are_read_from_the_labels_of_nodes),
                                        TAP(inline_sources_make_a_template_ready),
                                        TAP(a_profile_given_by_hand_stays),
                                        TAP(other_templates_wait_and_say_for_what),
                                        TAP(conditions_are_worded_as_in_the_original),
                                        TAP(memory_of_gpus_is_compared),
                                        TAP(without_an_image_nothing_is_discovered),
                                        { 0 } });
}
