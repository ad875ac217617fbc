/* Regressions of the engine, each on the whole feature: reasons and events that contradicted the decision, messages that
 * lagged behind the spec, and workloads with no owner or several. */
#include "saturation_world.h"

#define MESSAGE(w, variant) models_condition(w, variant, "OptimizationReady", "message")

static bool says(struct models *w, const char *variant, const char *text)
{
    str message = MESSAGE(w, variant);
    return str_find(message, str_c(text)) != SIZE_MAX ||
           tap_note(__FILE__, __LINE__, "\"" STR_FMT "\" does not contain \"%s\"", STR_ARG(message),
                    text);
}

/* The HPA waits five minutes before it removes anything; meanwhile the load is back. */
static void a_scale_down_is_withdrawn_when_the_load_returns(void)
{
    struct models w;
    models_web(&w, 4, 0.3, 0, "");
    EQ_INT(models_desired(&w, "web"), 2);
    models_load(&w, "web", 0.5, 0); /* 2.0 in all: three replicas of at most 0.7 */
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 3);
    says(&w, "web", "scale-down withdrawn: the load needs 3 replicas of the model again");
    models_stop(&w);
}

static str event_message(struct models *w, const char *reason, size_t *ret_n)
{
    struct cluster_answer a =
        cluster_do(&w->c, KUBE_LIST, &resource_events, MODELS_NS, NULL, S(""));
    const struct json *list = json_get(a.object, "items");
    str found = S("");
    *ret_n = 0;
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "reason")), reason)) {
            found = json_text(json_get(json_item(list, i), "message"));
            (*ret_n)++;
        }
    return found;
}

/* From 4 to 3 is down, also while only two replicas are there. */
static void events_name_the_change_of_the_target(void)
{
    struct models w;
    size_t n;
    models_web(&w, 2, 0.5, 0, "minReplicas: 4,");
    EQ_INT(models_desired(&w, "web"), 4);
    says(&w, "web", "its minimum is 4 (target: 4 replicas)");
    OK(str_starts(event_message(&w, "ScaleUp", &n), S("2 -> 4 replicas: its minimum is 4")));
    EQ_REAL(MODELS_GAUGE(&w, "wva_replica_scaling_total", "web", "llm", "up", "bounds"), 1);
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"minReplicas\":1,\"maxReplicas\":3}}"));
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 3);
    OK(str_starts(event_message(&w, "ScaleDown", &n), S("4 -> 3 replicas (2 now): ")));
    event_message(&w, "ScaleUp", &n);
    EQ_INT((int64_t)n, 1);
    models_stop(&w);
}

static void a_text_follows_the_spec(void)
{
    struct models w;
    models_web(&w, 2, 0.79, 0, "maxReplicas: 2,");
    says(&w, "web", "at its maximum of 2");
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"minReplicas\":2}}"));
    models_load(&w, "web", 0.785, 0);
    models_pass(&w, 31);
    EQ_STR(json_to_str(&w.c.arena,
                       json_get(json_item(json_get(models_status(&w, "web"), "conditions"), 0),
                                "observedGeneration")),
           S("2"));
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"maxReplicas\":1,\"minReplicas\":1}}"));
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 1);
    says(&w, "web", "(target: 1 replicas)");
    models_stop(&w);
}

/* A Deployment of the same name is there, and is not touched. */
static void another_kind_of_target_is_not_a_deployment(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 2);
    models_create(
        &w, &saturation_variant_resource, MODELS_NS,
        S("{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: web, "
          "labels: {inference.optimization/acceleratorName: A100}}, spec: {modelID: llama, "
          "actuation: Scale, scaleTargetRef: {kind: LeaderWorkerSet, name: web}}}"));
    models_load(&w, "web", 0.9, 9);
    models_operate(&w, NULL);
    models_pass(&w, 61);
    EQ_INT(models_replicas(&w, "web"), 2);
    EQ_INT(models_desired(&w, "web"), -1);
    MODELS_SAYS(&w, "web", "TargetResolved", "status", "False");
    MODELS_SAYS(&w, "web", "TargetResolved", "reason", "UnknownKind");
    MODELS_SAYS(&w, "web", "TargetResolved", "message",
                "Scale target LeaderWorkerSet web cannot be scaled: the server has no kind "
                "LeaderWorkerSet in leaderworkerset.x-k8s.io/v1");
    models_stop(&w);
}

static void two_models_do_not_fight_over_a_deployment(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_create(
        &w, &saturation_variant_resource, MODELS_NS,
        S("{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: zebra, "
          "labels: {inference.optimization/acceleratorName: A100}}, spec: {modelID: qwen, "
          "scaleTargetRef: {kind: Deployment, name: web}}}"));
    models_load(&w, "web", 0.6, 0);
    models_operate(&w, NULL);
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), -1);
    EQ_INT(models_desired(&w, "zebra"), -1);
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "TargetConflict");
    MODELS_SAYS(&w, "zebra", "OptimizationReady", "reason", "TargetConflict");
    says(&w, "web", "scale target web is also that of variant zebra of model qwen");
    says(&w, "zebra", "scale target web is also that of variant web of model llama");
    cluster_do(&w.c, KUBE_DELETE, &saturation_variant_resource, MODELS_NS, "web", S(""));
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].page = "vllm:kv_cache_usage_perc{model_name=\"qwen\"} 0.6\n"
                         "vllm:num_requests_waiting{model_name=\"qwen\"} 0\n";
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "zebra"), 2); /* now it is its own */
    models_stop(&w);
}

static void an_excluded_namespace_is_reported(void)
{
    struct models w;
    models_web(&w, 2, 0.6, 0, "");
    cluster_do(&w.c, KUBE_MERGE_PATCH, &resource_namespaces, NULL, MODELS_NS,
               S("{\"metadata\":{\"annotations\":{\"wva.llmd.ai/exclude\":\"true\"}}}"));
    models_pass(&w, 31);
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "NamespaceExcluded");
    says(&w, "web", "its namespace has the annotation wva.llmd.ai/exclude");
    cluster_do(&w.c, KUBE_MERGE_PATCH, &resource_namespaces, NULL, MODELS_NS,
               S("{\"metadata\":{\"annotations\":{\"wva.llmd.ai/exclude\":null}}}"));
    models_pass(&w, 61);
    MODELS_SAYS(&w, "web", "OptimizationReady", "status", "True");
    models_stop(&w);
}

/* ---- the rule `need` */

static void nothing_goes_while_requests_wait(void)
{
    struct models w;
    models_web(&w, 4, 0.05, 1, "");
    models_pass(&w, 600);
    EQ_INT(models_desired(&w, "web"), 4);
    says(&w, "web", "no scale-down: 4 requests are waiting");
    models_load(&w, "web", 0.05, 0);
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 1);
    models_stop(&w);
}

/* Four replicas are asked for and take their time; the queue behind two does not ask for eight. */
static void a_backlog_is_not_asked_for_twice(void)
{
    struct models w;
    models_web(&w, 2, 0.3, 9, "");
    EQ_INT(models_desired(&w, "web"), 4);
    models_patch(&w, &resource_deployments, "web", NULL, S("{\"spec\":{\"replicas\":4}}"));
    models_patch(&w, &resource_deployments, "web", "status",
                 S("{\"status\":{\"replicas\":4,\"readyReplicas\":2}}"));
    models_load(&w, "web", 0.3, 14);
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), 4);
    models_follow(&w, "web"); /* they serve: the backlog falls */
    models_load(&w, "web", 0.3, 6);
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 4);
    models_load(&w, "web", 0.3, 5);
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 4);
    models_stop(&w);
}

/* kube-apiserver leaves the 0 out of its answer. */
static void the_event_of_a_scale_to_zero_names_zero(void)
{
    struct models w;
    size_t n;
    setenv("WVA_SCALE_TO_ZERO", "true", 1);
    models_web(&w, 1, 0, 0, "actuation: Scale,");
    unsetenv("WVA_SCALE_TO_ZERO");
    models_pass(&w, 1200);
    EQ_INT(models_replicas(&w, "web"), 0);
    EQ_STR(event_message(&w, "Scaled", &n), S("Deployment web scaled from 1 to 0 replicas"));
    models_stop(&w);
}

static void a_reason_names_the_bound_that_limits_it(void)
{
    struct models w;
    models_web(&w, 4, 0.95, 9, "maxReplicas: 5,");
    EQ_INT(models_desired(&w, "web"), 5);
    says(&w, "web", "scale-up: the load needs ");
    says(&w, "web", "; limited by maxReplicas (target: 5 replicas)");
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"maxReplicas\":50}}"));
    models_pass(&w, 31);
    OK(models_desired(&w, "web") > 5);
    OK(str_find(MESSAGE(&w, "web"), S("limited")) == SIZE_MAX);
    models_stop(&w);
}

/* It has no accelerator, so it would never scale the workload. */
static void a_variant_without_an_accelerator_is_no_rival(void)
{
    struct models w;
    models_web(&w, 2, 0.5, 0, "");
    models_create(
        &w, &saturation_variant_resource, MODELS_NS,
        S("{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: "
          "other}, spec: {modelID: other, scaleTargetRef: {kind: Deployment, name: web}}}"));
    models_load(&w, "web", 0.9, 9);
    models_pass(&w, 61);
    MODELS_SAYS(&w, "other", "OptimizationReady", "reason", "SkippedProcessing");
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "SaturationOnlyMode");
    OK(models_desired(&w, "web") > 2);
    models_patch(
        &w, &saturation_variant_resource, "other", NULL,
        S("{\"metadata\":{\"labels\":{\"inference.optimization/acceleratorName\":\"H100\"}}}"));
    models_pass(&w, 61);
    MODELS_SAYS(&w, "other", "OptimizationReady", "reason", "TargetConflict");
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "TargetConflict");
    models_stop(&w);
}

static void a_workload_that_is_gone_has_no_replicas(void)
{
    struct models w;
    models_web(&w, 2, 0.5, 0, "");
    EQ_INT(json_int(json_at(models_status(&w, "web"), "currentAlloc", "numReplicas", NULL), -1), 2);
    cluster_do(&w.c, KUBE_DELETE, &resource_deployments, MODELS_NS, "web", S(""));
    models_pass(&w, 61);
    MODELS_SAYS(&w, "web", "TargetResolved", "reason", "TargetNotFound");
    OK(!json_get(models_status(&w, "web"), "currentAlloc"));
    models_stop(&w);
}

static void a_wake_annotation_that_is_no_time_is_reported(void)
{
    struct models w;
    size_t n;
    models_begin(&w);
    models_workload(&w, "web", 0);
    models_variant(&w, "web", "A100", "10", "actuation: Scale,");
    models_operate(&w, NULL);
    models_pass(&w, 10);
    for (int i = 0; i < 2; i++) {
        models_patch(&w, &saturation_variant_resource, "web", NULL,
                     S("{\"metadata\":{\"annotations\":{\"flyball.dev/wake\":\"tomorrow\"}}}"));
        models_pass(&w, 31);
    }
    EQ_INT(models_replicas(&w, "web"), 0);
    EQ_STR(event_message(&w, "InvalidWake", &n),
           S("annotation flyball.dev/wake is \"tomorrow\"; set it to the current time, such as "
             "2026-01-31T08:00:00Z"));
    EQ_INT((int64_t)n, 1);
    models_stop(&w);
}

/* Without replicas there is nothing to check about ServiceMonitors. */
static void a_model_without_replicas_misses_no_metrics(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 0);
    models_variant(&w, "web", "A100", "10", "minReplicas: 0,");
    models_operate(&w, NULL);
    models_pass(&w, 61);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "NoReplicas");
    MODELS_SAYS(&w, "web", "MetricsAvailable", "message",
                "Model 'llama' has no replicas that could report metrics");
    OK(!models_logged(&w, "Safety net activated"));
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_scale_down_is_withdrawn_when_the_load_returns),
        TAP(events_name_the_change_of_the_target),
        TAP(the_event_of_a_scale_to_zero_names_zero),
        TAP(a_reason_names_the_bound_that_limits_it),
        TAP(a_variant_without_an_accelerator_is_no_rival),
        TAP(a_workload_that_is_gone_has_no_replicas),
        TAP(a_wake_annotation_that_is_no_time_is_reported),
        TAP(a_model_without_replicas_misses_no_metrics),
        TAP(a_text_follows_the_spec),
        TAP(another_kind_of_target_is_not_a_deployment),
        TAP(two_models_do_not_fight_over_a_deployment),
        TAP(an_excluded_namespace_is_reported),
        TAP(nothing_goes_while_requests_wait),
        TAP(a_backlog_is_not_asked_for_twice),
        { 0 },
    });
}
