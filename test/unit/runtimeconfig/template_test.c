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
    return aim_template_state(a, &(struct aim_template_facts){ .object = parse(a, yaml),
                                                               .model_found = true,
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
                                        { 0 } });
}
