/* The whole feature on the embedded API server, on a clock of its own, with pods that serve /metrics. */
#include "saturation_world.h"

static void load_rises_and_falls(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "cheap", 2);
    models_workload(&w, "costly", 2);
    models_variant(&w, "cheap", "L40S", "5", "");
    models_variant(&w, "costly", "H100", "40", "");
    models_load(&w, "cheap", 0.4, 0);
    models_load(&w, "costly", 0.4, 0);
    models_operate(&w, NULL);
    models_pass(&w, 2);
    EQ_INT(models_desired(&w, "cheap"), 2);
    EQ_INT(models_desired(&w, "costly"), 1); /* 1.6 of load needs 3 replicas of at most 0.7 */
    MODELS_SAYS(&w, "costly", "MetricsAvailable", "reason", "MetricsFound");
    MODELS_SAYS(&w, "costly", "OptimizationReady", "reason", "SaturationOnlyMode");
    MODELS_SAYS(&w, "costly", "TargetResolved", "status", "True");
    OK(json_bool(json_at(models_status(&w, "costly"), "actuation", "applied", NULL), false));
    EQ_STR(json_to_str(&w.c.arena, json_get(models_status(&w, "costly"), "currentAlloc")),
           S("{\"accelerator\":\"H100\",\"numReplicas\":2,\"maxBatch\":256,\"variantCost\":"
             "\"80.00\",\"itlAverage\":\"0.00\",\"ttftAverage\":\"0.00\",\"load\":{"
             "\"arrivalRate\":\"0.00\",\"avgInputTokens\":\"0.00\",\"avgOutputTokens\":"
             "\"0.00\"}}"));
    models_scale(&w, "costly", 1);
    models_load(&w, "cheap", 0.78, 4);
    models_load(&w, "costly", 0.78, 4);
    models_pass(&w, 90);
    OK(models_desired(&w, "cheap") >= 4);
    EQ_INT(models_desired(&w, "costly"), 1);
    OK(models_events(&w, "ScaleUp") >= 1);
    OK(models_events(&w, "ScaleDown") >= 1);
    models_stop(&w);
}

static void nothing_new_writes_nothing_and_reads_nothing(void)
{
    struct models w;
    models_web(&w, 2, 0.5, 1, "");
    models_pass(&w, 100);
    size_t writes = 0;
    for (int i = 0; i < 40; i++) { /* requests that come nearly as often all the time */
        w.pods[0].requests += 60 + i % 3;
        models_pass(&w, 30);
        writes = i < 10 ? w.c.operator_writes : writes;
    }
    EQ_INT((int64_t)(w.c.operator_writes - writes), 0);
    OK(str_starts(json_text(json_at(models_status(&w, "web"), "currentAlloc", "load", "arrivalRate",
                                    NULL)),
                  S("12")));
    models_pass(&w, 120); /* none comes any more */
    writes = w.c.operator_writes;
    buf_clear(&w.c.reads);
    double decided = MODELS_GAUGE(&w, "saturation_decisions_total", "decided");
    models_load(&w, "web", 0.51, 1); /* another number in the same words */
    models_pass(&w, 3600);
    EQ_INT((int64_t)(w.c.operator_writes - writes), 0);
    models_load(&w, "web", 0.79, 1); /* nor is anything read where something is decided */
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 3);
    EQ_REAL(MODELS_GAUGE(&w, "saturation_decisions_total", "decided"), decided + 121);
    for (str line, rest = buf_str(&w.c.reads); str_cut(&rest, '\n', &line);)
        OK(!line.n || str_starts(line, S("/apis/keda.sh/")) || /* is there such a kind by now? */
           str_starts(line, S("/apis/monitoring.coreos.com/")) ||
           str_starts(line, S("/apis/inference.networking.")));
    models_stop(&w);
}

static void a_variant_may_come_before_its_workload(void)
{
    struct models w;
    models_begin(&w);
    models_operate(&w, NULL);
    models_variant(&w, "web", "A100", "10", "");
    models_pass(&w, 22);
    MODELS_SAYS(&w, "web", "TargetResolved", "reason", "TargetNotFound");
    OK(models_logged(&w, "Scale target Deployment not found, waiting for deployment watch"));
    models_workload(&w, "web", 1);
    models_pass(&w, 1);
    OK(models_logged(&w, "Deployment created, triggering VA reconciliation"));
    MODELS_SAYS(&w, "web", "TargetResolved", "reason", "TargetFound");
    models_stop(&w);
}

static void silent_pods_hold_the_last_decision(void)
{
    struct models w;
    models_web(&w, 3, 0.6, 1, "");
    models_pass(&w, 5);
    EQ_INT(models_desired(&w, "web"), 3);
    models_load(&w, "web", 0, 0);
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = true;
    models_pass(&w, 600);
    EQ_INT(models_desired(&w, "web"), 3);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "status", "False");
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "MetricsUnavailable");
    OK(models_logged(&w, "Safety net activated"));
    buf_clear(&w.log); /* it was logged when it began */
    models_pass(&w, 120);
    OK(!models_logged(&w, "Safety net activated"));
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = i > 0; /* one of three speaks again, and is idle */
    models_pass(&w, 600);
    EQ_INT(models_desired(&w, "web"), 3);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "status", "True");
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = false;
    models_pass(&w, 100);
    EQ_INT(models_desired(&w, "web"), 1);
    models_stop(&w);
}

/* Events about the global ConfigMaps. */
static size_t count_home_events(struct models *w, const char *reason)
{
    const struct json *list =
        json_get(cluster_do(&w->c, KUBE_LIST, &resource_events, MODELS_HOME, NULL, S("")).object,
                 "items");
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++)
        n += str_eqc(json_text(json_get(json_item(list, i), "reason")), reason);
    return n;
}

static void configuration_is_live(void)
{
    struct models w;
    models_web(&w, 2, 0.6, 0, "");
    EQ_INT(models_desired(&w, "web"), 2);
    models_edit(&w, "saturation-scaling-config", "{default: 'kvCacheThreshold: 7'}");
    models_pass(&w, 60);
    OK(models_logged(&w, "Invalid saturation scaling config entry key=default"));
    EQ_INT(models_desired(&w, "web"), 2);
    models_edit(&w, "saturation-scaling-config", "{default: 'kvCacheThreshold: 0.5'}");
    models_pass(&w, 35);
    OK(models_logged(&w, "Updated global saturation config from ConfigMap entries=1"));
    EQ_INT(models_desired(&w, "web"), 3);
    models_edit(&w, "saturation-scaling-config", "{default: null}"); /* emptied: nothing changes */
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), 3);
    OK(models_logged(&w, "ConfigMap has no entries; keeping the last good ones"));
    OK(!models_logged(&w, "not loaded yet"));
    models_edit(&w, "saturation-scaling-config", "{web: 'kvCacheThreshold: ['}");
    models_pass(&w, 1);
    OK(models_logged(&w, "Failed to parse saturation scaling config entry key=web"));
    models_pass(&w, 60);
    OK(count_home_events(&w, "ConfigInvalid") > 0);
    models_stop(&w);
}

/* An analyzer that does not exist here has no vote, and that is logged. */
static void unsupported_settings_are_logged(void)
{
    struct models w;
    models_web(&w, 1, 0.5, 0, "");
    OK(!models_logged(&w, "AnalyzerUnknown"));
    models_edit(&w, "saturation-scaling-config",
                "{default: \"analyzers: [{name: throughput}]\\n\"}");
    models_pass(&w, 1);
    OK(models_logged(&w, "AnalyzerUnknown"));
    models_config(&w, MODELS_HOME, "wva-queueing-model-config", "{default: \"a: 1\\n\"}");
    models_pass(&w, 60);
    OK(count_home_events(&w, "AnalyzerUnknown") > 0);
    OK(count_home_events(&w, "ConfigIgnored") > 0);
    MODELS_SAYS(&w, "web", "OptimizationReady", "status", "False");
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "NoAnalyzer");
    EQ_INT(models_desired(&w, "web"), 1);
    models_stop(&w);
}

static void the_interval_is_live(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_load(&w, "web", 0.6, 0);
    models_config(&w, MODELS_HOME, "workload-variant-autoscaler-variantautoscaling-config",
                  "{GLOBAL_OPT_INTERVAL: 1h}");
    models_operate(&w, NULL);
    models_pass(&w, 2);
    models_edit(&w, "workload-variant-autoscaler-variantautoscaling-config",
                "{GLOBAL_OPT_INTERVAL: 5s}");
    models_pass(&w, 12);
    OK(models_logged(&w, "Updated global optimization config from ConfigMap interval=5s"));
    models_load(&w, "web", 0.79, 0);
    models_pass(&w, 12);
    EQ_INT(models_desired(&w, "web"), 3);
    models_edit(&w, "workload-variant-autoscaler-variantautoscaling-config",
                "{GLOBAL_OPT_INTERVAL: abc}");
    models_pass(&w, 1);
    models_scale(&w, "web", 3);
    models_load(&w, "web", 0.1, 0);
    models_pass(&w, 60);
    EQ_INT(models_desired(&w, "web"), 3); /* what was added stays for a start delay */
    MODELS_SAYS(&w, "web", "OptimizationReady", "message",
                "saturation-only decision: no scale-down: replicas were added less than a start "
                "delay ago (target: 3 replicas)");
    models_pass(&w, 60);
    EQ_INT(models_desired(&w, "web"), 1);
    models_stop(&w);
}

static void missing_configuration_is_reported(void)
{
    struct models w;
    models_start(&w);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_operate(&w, NULL);
    models_pass(&w, 31);
    OK(models_logged(&w, "Saturation scaling config not loaded yet, skipping optimization"));
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "InvalidConfiguration");
    models_config(&w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "\"}");
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "OptimizationReady", "status", "True");
    cluster_do(&w.c, KUBE_DELETE, &resource_configmaps, MODELS_HOME, "saturation-scaling-config",
               S(""));
    models_load(&w, "web", 0.79, 0);
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), 3); /* the last good values stay */
    models_stop(&w);
}

static void replicas_are_written_when_asked_for(void)
{
    struct models w;
    models_web(&w, 2, 0.79, 4, "actuation: Scale, maxReplicas: 6,");
    models_pass(&w, 3);
    int64_t grown = models_replicas(&w, "web");
    OK(grown > 2);
    OK(json_bool(json_at(models_status(&w, "web"), "actuation", "applied", NULL), false));
    for (int i = 0; i < 10; i++) {
        models_follow(&w, "web");
        models_load(&w, "web", 0.9, 9);
        models_pass(&w, 30);
    }
    EQ_INT(models_replicas(&w, "web"), 6);
    models_follow(&w, "web");
    models_load(&w, "web", 0.01, 0);
    models_pass(&w, 120);
    EQ_INT(models_replicas(&w, "web"), 6); /* within the window for going down */
    EQ_INT(models_desired(&w, "web"), 1);
    models_pass(&w, 300);
    EQ_INT(models_replicas(&w, "web"), 1);
    OK(models_events(&w, "Scaled") >= 2);
    models_stop(&w);
}

static void bounds_of_an_hpa_do_not_freeze_the_model(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_create(&w, &resource_hpas, MODELS_NS,
                  S("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: "
                    "web}, spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: "
                    "apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, resource: "
                    "{name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}"));
    models_load(&w, "web", 0.9, 9);
    models_operate(&w, NULL);
    models_pass(&w, 2);
    EQ_INT(models_desired(&w, "web"), 3);
    models_scale(&w, "web", 3);
    models_load(&w, "web", 0.9, 9);
    models_pass(&w, 300);
    EQ_INT(models_desired(&w, "web"), 3);
    models_load(&w, "web", 0.1, 0);
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), 1);
    models_stop(&w);
}

/* The workload does not follow, as with an exhausted quota: decisions resume after the timeout. */
static void a_target_out_of_reach_is_given_up(void)
{
    struct models w;
    models_web(&w, 2, 0.9, 9, "");
    EQ_INT(models_desired(&w, "web"), 4);
    models_load(&w, "web", 0.1, 0);
    models_pass(&w, 240);
    EQ_INT(models_desired(&w, "web"), 4);
    models_scale(&w, "web", 3); /* it moves: the timeout starts again */
    models_load(&w, "web", 0.1, 0);
    models_pass(&w, 240);
    EQ_INT(models_desired(&w, "web"), 4);
    models_pass(&w, 120);
    EQ_INT(models_desired(&w, "web"), 1);
    models_stop(&w);
}

/* A bound that is set while nothing is known of the load, and one under the original's rules. */
static void bounds_hold_always(void)
{
    struct models w;
    models_web(&w, 3, 0.6, 1, "");
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = true;
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), 3);
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"maxReplicas\":2}}"));
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 2);
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"minReplicas\":4,\"maxReplicas\":5}}"));
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 4);
    models_stop(&w);

    models_begin(&w);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "maxReplicas: 2,");
    models_load(&w, "web", 0.9, 9);
    models_operate(&w, (const char *const[]){ "wva-rules", "seed", NULL });
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), 2);
    models_stop(&w);
}

static void series_go_with_their_labels(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 2);
    models_workload(&w, "other", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_load(&w, "web", 0.5, 0);
    models_operate(&w, (const char *const[]){ "wva-inferno-metrics", "true", NULL });
    models_pass(&w, 2);
    EQ_REAL(MODELS_GAUGE(&w, "workload_optimized_replicas", "llama", "web", "llm"), 2);
    EQ_REAL(MODELS_GAUGE(&w, "inferno_desired_replicas", "web", "llm", "A100"), 2);
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"modelID\":\"qwen\",\"scaleTargetRef\":{\"name\":\"other\"}}}"));
    models_pass(&w, 31);
    EQ_REAL(MODELS_GAUGE(&w, "workload_optimized_replicas", "llama", "web", "llm"), -1);
    EQ_REAL(MODELS_GAUGE(&w, "inferno_desired_replicas", "web", "llm", "A100"), -1);
    EQ_REAL(MODELS_GAUGE(&w, "workload_optimized_replicas", "qwen", "web", "llm"), 2);
    EQ_REAL(MODELS_GAUGE(&w, "inferno_desired_replicas", "other", "llm", "A100"), 2);
    cluster_do(&w.c, KUBE_DELETE, &resource_deployments, MODELS_NS, "other", S(""));
    models_pass(&w, 31); /* there is nothing to scale: an HPA must not go on reading a number */
    EQ_REAL(MODELS_GAUGE(&w, "workload_optimized_replicas", "qwen", "web", "llm"), -1);
    MODELS_SAYS(&w, "web", "TargetResolved", "status", "False");
    models_stop(&w);
}

static void series_go_with_their_variant(void)
{
    struct models w;
    models_web(&w, 2, 0.5, 0, "");
    EQ_REAL(MODELS_GAUGE(&w, "workload_optimized_replicas", "llama", "web", "llm"), 2);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "web", "llm", "A100"), 2);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_ratio", "web", "llm", "A100"), 1);
    models_patch(
        &w, &saturation_variant_resource, "web", NULL,
        S("{\"metadata\":{\"labels\":{\"inference.optimization/acceleratorName\":\"H100\"}}}"));
    models_pass(&w, 61);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "web", "llm", "H100"), 2);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "web", "llm", "A100"), -1);
    models_load(&w, "web", 0.79, 4);
    models_pass(&w, 61);
    EQ_REAL(MODELS_GAUGE(&w, "wva_replica_scaling_total", "web", "llm", "up", "saturation"), 1);
    cluster_do(&w.c, KUBE_DELETE, &saturation_variant_resource, MODELS_NS, "web", S(""));
    models_pass(&w, 1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_replica_scaling_total", "web", "llm", "up", "saturation"), -1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "web", "llm", "H100"), -1);
    EQ_REAL(MODELS_GAUGE(&w, "workload_optimized_replicas", "llama", "web", "llm"), -1);
    models_stop(&w);
}

static void skipped_variants_have_a_reason(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 1);
    models_workload(&w, "idle", 0);
    models_variant(&w, "web", "X", "10", "");
    models_variant(&w, "idle", "A100", "10", "");
    models_operate(&w, NULL);
    models_pass(&w, 2);
    MODELS_SAYS(
        &w, "web", "OptimizationReady", "message",
        "label inference.optimization/acceleratorName is \"X\"; set it to the accelerator's "
        "name, at least two characters");
    MODELS_SAYS(&w, "idle", "OptimizationReady", "message",
                "scale target idle has 0 replicas: inactive");
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "idle", "llm", "A100"), 0); /* as it is */
    models_stop(&w);
}

/* Pods that do not exist yet are wanted, and not shown as if they were there. */
static void what_is_shown_as_current_is_there(void)
{
    struct models w;
    models_web(&w, 2, 0.5, 0, "");
    EQ_REAL(MODELS_GAUGE(&w, "wva_current_replicas", "web", "llm", "A100"), 2);
    models_patch(&w, &resource_deployments, "web", "status",
                 S("{\"status\":{\"replicas\":0,\"readyReplicas\":0}}"));
    models_pass(&w, 61);
    EQ_REAL(MODELS_GAUGE(&w, "wva_current_replicas", "web", "llm", "A100"), 0);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "web", "llm", "A100"), 2);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_ratio", "web", "llm", "A100"), 2);
    models_stop(&w);
}

/* A spec with invalid values is used as far as possible, and the condition reports it. */
static void invalid_specs_are_reported(void)
{
    struct models w;
    models_begin(&w);
    /* The API server refuses it by a rule of the definition, which others may lack. */
    struct cluster_answer a =
        cluster_do(&w.c, KUBE_JSON_PATCH, &resource_crds, NULL, "variantautoscalings.llmd.ai",
                   S("[{\"op\":\"remove\",\"path\":\"/spec/versions/0/schema/openAPIV3Schema/"
                     "properties/spec/x-kubernetes-validations\"}]"));
    EQ_INT(a.code, 200);
    models_pass(&w, 2);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "minReplicas: 5, maxReplicas: 3,");
    models_load(&w, "web", 0.5, 0);
    models_operate(&w, NULL);
    models_pass(&w, 2);
    EQ_INT(models_desired(&w, "web"), 3);
    static const char problem[] =
        "spec.minReplicas 5 is greater than spec.maxReplicas 3; using 3 for both";
    OK(models_logged(&w, problem));
    OK(str_find(models_condition(&w, "web", "OptimizationReady", "message"), str_c(problem)) !=
       SIZE_MAX);
    models_scale(&w, "web", 3);
    models_pass(&w, 61);
    OK(str_find(models_condition(&w, "web", "OptimizationReady", "message"), str_c(problem)) !=
       SIZE_MAX);
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = true;
    models_pass(&w, 61);
    MODELS_SAYS(&w, "web", "OptimizationReady", "message",
                "without metrics the last decision holds; spec.minReplicas 5 is greater than "
                "spec.maxReplicas 3; using 3 for both");
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = false;
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"minReplicas\":3}}"));
    models_pass(&w, 61);
    MODELS_SAYS(&w, "web", "OptimizationReady", "message",
                "saturation-only decision: no change needed (target: 3 replicas)");
    const struct json *conditions = json_get(models_status(&w, "web"), "conditions");
    EQ_INT((int64_t)json_len(conditions), 3);
    for (size_t i = 0; i < json_len(conditions); i++)
        EQ_INT(json_int(json_get(json_item(conditions, i), "observedGeneration"), 0), 2);
    models_stop(&w);
}

/* The backlog that asked for more is still there when more has come. */
static void growth_is_not_repeated_before_it_shows(void)
{
    struct models w;
    models_web(&w, 2, 0.9, 9, "");
    EQ_INT(models_desired(&w, "web"), 4);
    models_scale(&w, "web", 4);
    for (size_t i = 2; i < 4; i++)
        w.pods[i].kv = 0.75; /* the new ones: busy, not saturated */
    models_pass(&w, 62);
    EQ_INT(models_desired(&w, "web"), 4);
    models_pass(&w, 90);
    OK(models_desired(&w, "web") > 4);
    models_scale(&w, "web", (int)models_desired(&w, "web"));
    int64_t before = models_desired(&w, "web");
    models_load(&w, "web", 0.9, 9); /* all are full: there is nothing to wait for */
    models_pass(&w, 62);
    OK(models_desired(&w, "web") > before);
    str target = arena_printf(&w.c.arena, "(target: %d replicas)", (int)models_desired(&w, "web"));
    OK(str_find(models_condition(&w, "web", "OptimizationReady", "message"), target) != SIZE_MAX);
    models_stop(&w);
}

/* Both are looked at when the workload comes; only one may count its pods. */
static void a_workload_has_one_variant_of_a_model(void)
{
    struct models w;
    models_begin(&w);
    models_operate(&w, NULL);
    models_variant(&w, "web", "A100", "10", "");
    models_create(
        &w, &saturation_variant_resource, MODELS_NS,
        S("{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: web2, "
          "labels: {inference.optimization/acceleratorName: A100}}, spec: {modelID: llama, "
          "scaleTargetRef: {kind: Deployment, name: web}}}"));
    models_workload(&w, "web", 2);
    models_load(&w, "web", 0.5, 0);
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 2);
    MODELS_SAYS(&w, "web2", "TargetResolved", "status", "True");
    MODELS_SAYS(&w, "web2", "OptimizationReady", "message",
                "scale target web belongs to variant web");
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "web2", "llm", "A100"), -1);
    models_stop(&w);
}

static void a_restart_changes_nothing(void)
{
    struct models w;
    models_web(&w, 2, 0.79, 4, "");
    models_pass(&w, 40);
    int64_t desired = models_desired(&w, "web");
    OK(desired > 2);
    str before = json_to_str(&w.c.arena, models_status(&w, "web"));
    size_t writes = w.c.operator_writes;
    for (int i = 0; i < 3; i++) {
        cluster_operator_down(&w.c);
        models_operate(&w, NULL);
        models_pass(&w, 40);
    }
    EQ_INT(models_desired(&w, "web"), desired);
    EQ_STR(json_to_str(&w.c.arena, models_status(&w, "web")), before);
    EQ_INT((int64_t)(w.c.operator_writes - writes), 0);
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(load_rises_and_falls),
        TAP(nothing_new_writes_nothing_and_reads_nothing),
        TAP(a_variant_may_come_before_its_workload),
        TAP(silent_pods_hold_the_last_decision),
        TAP(configuration_is_live),
        TAP(unsupported_settings_are_logged),
        TAP(the_interval_is_live),
        TAP(missing_configuration_is_reported),
        TAP(replicas_are_written_when_asked_for),
        TAP(bounds_of_an_hpa_do_not_freeze_the_model),
        TAP(a_target_out_of_reach_is_given_up),
        TAP(bounds_hold_always),
        TAP(series_go_with_their_variant),
        TAP(series_go_with_their_labels),
        TAP(skipped_variants_have_a_reason),
        TAP(what_is_shown_as_current_is_there),
        TAP(invalid_specs_are_reported),
        TAP(growth_is_not_repeated_before_it_shows),
        TAP(a_workload_has_one_variant_of_a_model),
        TAP(a_restart_changes_nothing),
        { 0 },
    });
}
