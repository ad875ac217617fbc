/* A variant among others: its workload and pods as they come and go, the bounds that HPAs and KEDA set, other
 * controllers, namespaces, and kinds that come late. */
#include "saturation_world.h"

/* Neither gets requests: were they counted, the model would have room. */
static void pods_that_get_no_requests_are_no_capacity(void)
{
    for (int leaving = 0; leaving < 2; leaving++) {
        struct models w;
        models_web(&w, 2, 0.6, 1, "");
        EQ_INT(models_desired(&w, "web"), 2);
        if (leaving) { /* a finalizer holds it back */
            models_patch(&w, &resource_pods, w.pods[1].name, NULL,
                         S("{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}"));
            cluster_do(&w.c, KUBE_DELETE, &resource_pods, MODELS_NS, w.pods[1].name,
                       S("{\"gracePeriodSeconds\":0}"));
        } else {
            models_ready(&w, w.pods[1].name, false);
        }
        w.pods[0].kv = 0.9;
        w.pods[0].queue = 9;
        w.pods[1].kv = w.pods[1].queue = 0;
        models_pass(&w, 61);
        EQ_INT(models_desired(&w, "web"), 3);
        models_stop(&w);
    }
}

/* A ReplicaSet of another namespace that claims to be owned here, held by a finalizer against the garbage collector:
 * were its pod counted, its numbers would decide about this model. */
static void a_pod_of_another_namespace_is_not_ours(void)
{
    struct models w;
    struct arena *a = &w.c.arena;
    models_web(&w, 2, 0.6, 1, "");
    EQ_INT(models_desired(&w, "web"), 2);
    models_create(&w, &resource_namespaces, NULL, S("{metadata: {name: mallory}}"));
    models_create(
        &w, &resource_replicasets, "mallory",
        arena_printf(a,
                     "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: evil, "
                     "finalizers: [example.com/hold], ownerReferences: [{apiVersion: apps/v1, "
                     "kind: Deployment, name: web, uid: " STR_FMT
                     ", controller: true}]}, spec: {replicas: 1, selector: {matchLabels: {a: "
                     "b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: "
                     "x, image: x}]}}}}",
                     STR_ARG(models_uid(&w, &resource_deployments, "web"))));
    str set = json_text(json_at(cluster_get(&w.c, &resource_replicasets, "mallory", "evil"),
                                "metadata", "uid", NULL));
    models_create(
        &w, &resource_pods, "mallory",
        arena_printf(a,
                     "{apiVersion: v1, kind: Pod, metadata: {name: evil, ownerReferences: "
                     "[{apiVersion: apps/v1, kind: ReplicaSet, name: evil, uid: " STR_FMT
                     ", controller: true}]}, spec: {containers: [{name: vllm, image: vllm, "
                     "ports: [{name: metrics, containerPort: %u}]}]}}",
                     STR_ARG(set), http_server_port(w.pods[0].server)));
    struct kube_request ready = {
        .verb = KUBE_MERGE_PATCH,
        .resource = &resource_pods,
        .ns = S("mallory"),
        .name = S("evil"),
        .subresource = "status",
        .body = S("{\"status\":{\"phase\":\"Running\",\"podIP\":\"127.0.0.1\",\"podIPs\":[{\"ip\":"
                  "\"127.0.0.1\"}],\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}")
    };
    EQ_INT(cluster_ask(&w.c, ready).code, 200);
    models_load(&w, "web", 0.9, 9);
    size_t scrapes = w.pods[0].scrapes, others = w.pods[1].scrapes;
    models_pass(&w, 61);
    OK(cluster_get(&w.c, &resource_pods, "mallory", "evil"));
    EQ_INT(models_desired(&w, "web"), 4); /* twice what is really there */
    EQ_INT(w.pods[0].scrapes - scrapes, w.pods[1].scrapes - others); /* not scraped for it */
    models_stop(&w);
}

/* Two of the cheap replicas find no room: after the transition timeout the expensive ones grow instead; and they keep
 * the model from shrinking no longer than that either. */
static void replicas_that_never_come_are_not_waited_for(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "cheap", 3);
    models_workload(&w, "costly", 1);
    models_variant(&w, "cheap", "L40S", "1", "");
    models_variant(&w, "costly", "H100", "10", "");
    for (int i = 0; i < 2; i++)
        models_ready(&w, w.pods[i].name, false);
    models_patch(&w, &resource_deployments, "cheap", "status",
                 S("{\"status\":{\"replicas\":3,\"readyReplicas\":1}}"));
    models_load(&w, "cheap", 0.9, 9);
    models_load(&w, "costly", 0.9, 9);
    models_operate(&w, NULL);
    models_pass(&w, 240);
    EQ_INT(models_desired(&w, "cheap"), 3);
    EQ_INT(models_desired(&w, "costly"), 1); /* four are enough, if they come */
    models_pass(&w, 120);
    EQ_INT(models_desired(&w, "costly"), 3);
    EQ_INT(models_desired(&w, "cheap"), 3);
    MODELS_SAYS(&w, "cheap", "OptimizationReady", "message",
                "saturation-only decision: no scale-up: 2 of its replicas do not become ready "
                "(target: 3 replicas)");
    models_scale(&w, "costly", 3);
    models_load(&w, "costly", 0.1, 0);
    models_load(&w, "cheap", 0.1, 0);
    models_pass(&w, 151);
    EQ_INT(models_desired(&w, "costly"), 1);
    models_stop(&w);
}

/* Servers of something else: they answer, but not about this model. */
static void servers_of_another_model_do_not_count(void)
{
    struct models w;
    models_web(&w, 2, 0.6, 1, "");
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].mute = true;
    models_pass(&w, 100);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "MetricsMissing");
    OK(str_find(models_condition(&w, "web", "MetricsAvailable", "message"),
                S("a ServiceMonitor exists")) != SIZE_MAX);
    EQ_INT(models_desired(&w, "web"), 2);
    models_stop(&w);
}

static void forget_workload(struct models *w, const char *name)
{
    cluster_do(&w->c, KUBE_DELETE, &resource_deployments, MODELS_NS, name, S(""));
    cluster_do(&w->c, KUBE_DELETE, &resource_replicasets, MODELS_NS,
               arena_printf(&w->c.arena, "%s-1", name).p, S(""));
    for (size_t i = 0; i < w->pod_n; i++)
        if (!w->pods[i].gone && !strcmp(w->pods[i].workload, name)) {
            w->pods[i].gone = true;
            cluster_do(&w->c, KUBE_DELETE, &resource_pods, MODELS_NS, w->pods[i].name,
                       S("{\"gracePeriodSeconds\":0}"));
        }
}

/* Another workload under the name of one that is gone: neither the old target nor the changes that were made
 * count for it. With a list in between, there was no event for the deletion and the creation. */
static void a_new_workload_starts_from_its_own_state(void)
{
    for (int relist = 0; relist < 2; relist++) {
        struct models w;
        models_web(&w, 3, 0.1, 0,
                   "actuation: Scale, behavior: {scaleDown: {stabilizationWindowSeconds: 0, "
                   "policies: [{type: Pods, value: 1, periodSeconds: 1800}]}},");
        models_pass(&w, 61);
        EQ_INT(models_desired(&w, "web"), 1);
        EQ_INT(models_replicas(&w, "web"), 2); /* the next one may go in half an hour */
        if (relist) {
            w.c.watch_code = 500;
            models_pass(&w, 700); /* no watch lasts so long */
        }
        EQ_INT(models_replicas(&w, "web"), 2);
        forget_workload(&w, "web");
        models_workload(&w, "web", 3);
        models_load(&w, "web", 0.4, 0); /* for which two are enough */
        if (relist) {
            w.c.watch_code = 410;
            models_pass(&w, 90);
            w.c.watch_code = 0;
        }
        models_pass(&w, relist ? 200 : 45); /* who was refused waits before it asks again */
        EQ_INT(models_desired(&w, "web"), 2);
        EQ_INT(models_replicas(&w, "web"), 2);
        models_stop(&w);
    }
}

/* Something that is going away is treated as gone, though it can still be seen. */
static void what_is_being_deleted_does_not_count(void)
{
    struct models w;
    static const char hold[] = "{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}";
    models_web(&w, 2, 0.6, 1, "");
    models_patch(&w, &resource_deployments, "web", NULL, str_c(hold));
    cluster_do(&w.c, KUBE_DELETE, &resource_deployments, MODELS_NS, "web", S(""));
    models_pass(&w, 31);
    MODELS_SAYS(&w, "web", "TargetResolved", "status", "False");
    models_stop(&w);

    models_web(&w, 2, 0.6, 1, "");
    models_patch(&w, &saturation_variant_resource, "web", NULL, str_c(hold));
    cluster_do(&w.c, KUBE_DELETE, &saturation_variant_resource, MODELS_NS, "web", S(""));
    models_pass(&w, 31);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "web", "llm", "A100"), -1);
    size_t writes = w.c.operator_writes;
    models_load(&w, "web", 0.9, 9);
    models_pass(&w, 100);
    EQ_INT((int64_t)(w.c.operator_writes - writes), 0);
    models_stop(&w);
}

static const struct resource monitors = { "monitoring.coreos.com", "v1", "servicemonitors",
                                          "ServiceMonitor", true };

static void deletion_of_our_service_monitor_is_reported(void)
{
    struct models w;
    models_begin(&w);
    models_operate(&w, NULL); /* no such kind yet */
    models_define(&w, &monitors);
    static const char *const names[] = {
        "workload-variant-autoscaler-controller-manager-metrics-monitor", "another"
    };
    for (size_t i = 0; i < countof(names); i++)
        models_create(&w, &monitors, MODELS_HOME,
                      arena_printf(&w.c.arena,
                                   "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, "
                                   "metadata: {name: %s}, spec: {}}",
                                   names[i]));
    models_pass(&w, 400);
    for (size_t i = 0; i < countof(names); i++)
        cluster_do(&w.c, KUBE_DELETE, &monitors, MODELS_HOME, names[i], S(""));
    models_pass(&w, 2);
    struct cluster_answer a =
        cluster_do(&w.c, KUBE_LIST, &resource_events, MODELS_HOME, NULL, S(""));
    const struct json *list = json_get(a.object, "items");
    EQ_INT((int64_t)json_len(list), 1);
    EQ_STR(json_text(json_get(json_item(list, 0), "reason")), S("ServiceMonitorDeleted"));
    EQ_STR(json_text(json_get(json_item(list, 0), "type")), S("Warning"));
    OK(models_logged(&w, "error ServiceMonitor being deleted"));

    /* The one that `flyball install` creates is ours by its label. */
    buf_clear(&w.log);
    models_create(&w, &monitors, MODELS_HOME,
                  S("{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: "
                    "flyball, labels: {app.kubernetes.io/part-of: flyball}}, spec: {}}"));
    models_pass(&w, 2);
    cluster_do(&w.c, KUBE_DELETE, &monitors, MODELS_HOME, "flyball", S(""));
    models_pass(&w, 2);
    OK(models_logged(&w, "error ServiceMonitor being deleted"));

    /* One with a finalizer: reported once, when its deletion begins. */
    static const char last[] = "{\"metadata\":{\"finalizers\":null}}";
    models_create(&w, &monitors, MODELS_HOME,
                  arena_printf(&w.c.arena,
                               "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, "
                               "metadata: {name: %s, finalizers: [example.com/hold]}, spec: {}}",
                               names[0]));
    models_pass(&w, 2);
    for (int i = 0; i < 2; i++) {
        buf_clear(&w.log);
        cluster_do(&w.c, i ? KUBE_MERGE_PATCH : KUBE_DELETE, &monitors, MODELS_HOME, names[0],
                   i ? str_c(last) : S(""));
        models_pass(&w, 2);
        EQ_INT(models_logged(&w, "error ServiceMonitor being deleted"), i == 0);
    }
    models_stop(&w);
}

static void others_variants_are_left_alone(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "mine", 1);
    models_workload(&w, "theirs", 1);
    models_variant(&w, "mine", "A100", "10", "");
    models_variant(&w, "theirs", "A100", "10", "");
    models_patch(&w, &saturation_variant_resource, "mine", NULL,
                 S("{\"metadata\":{\"labels\":{\"wva.llmd.ai/controller-instance\":\"blue\"}}}"));
    models_operate(&w, (const char *const[]){ "wva-instance", "blue", NULL });
    models_pass(&w, 40);
    MODELS_SAYS(&w, "mine", "TargetResolved", "status", "True");
    MODELS_SAYS(&w, "theirs", "TargetResolved", "status", "");
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "mine", "llm", "A100", "blue"), 1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "theirs", "llm", "A100", "blue"), -1);
    models_patch(&w, &saturation_variant_resource, "mine", NULL,
                 S("{\"metadata\":{\"labels\":{\"wva.llmd.ai/controller-instance\":\"green\"}}}"));
    models_pass(&w, 40); /* another has it now: nothing of it is left here */
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "mine", "llm", "A100", "blue"), -1);
    models_stop(&w);
}

static void a_namespace_may_have_thresholds_or_be_left_out(void)
{
    struct models w;
    models_web(&w, 2, 0.6, 0, "");
    EQ_INT(models_desired(&w, "web"), 2);
    models_config(&w, MODELS_NS, "saturation-scaling-config", "{default: 'kvCacheThreshold: 0.5'}");
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 3);
    cluster_do(&w.c, KUBE_MERGE_PATCH, &resource_configmaps, MODELS_NS, "saturation-scaling-config",
               S("{\"data\":{\"default\":\"kvCacheThreshold: 5\"}}"));
    models_pass(&w, 31);
    OK(models_logged(&w, "Invalid saturation scaling config entry key=default namespace=llm"));
    EQ_INT(models_desired(&w, "web"), 3); /* the last good value stays */
    cluster_do(&w.c, KUBE_MERGE_PATCH, &resource_namespaces, NULL, MODELS_NS,
               S("{\"metadata\":{\"annotations\":{\"wva.llmd.ai/exclude\":\"true\"}}}"));
    models_pass(&w, 31);
    size_t writes = w.c.operator_writes, scrapes = w.pods[0].scrapes;
    models_load(&w, "web", 0.01, 0);
    models_pass(&w, 600);
    EQ_INT(models_desired(&w, "web"), 3);
    EQ_INT((int64_t)(w.c.operator_writes - writes), 0);
    EQ_INT((int64_t)(w.pods[0].scrapes - scrapes), 0); /* nor are its servers bothered */
    cluster_do(&w.c, KUBE_MERGE_PATCH, &resource_namespaces, NULL, MODELS_NS,
               S("{\"metadata\":{\"annotations\":{\"wva.llmd.ai/exclude\":null}}}"));
    models_pass(&w, 100);
    EQ_INT(models_desired(&w, "web"), 1); /* it takes part again */
    models_stop(&w);
}

static void a_namespace_needs_no_global_thresholds(void)
{
    struct models w;
    models_start(&w);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_load(&w, "web", 0.6, 0);
    models_operate(&w, NULL);
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "InvalidConfiguration");
    models_config(&w, MODELS_NS, "saturation-scaling-config", "{default: 'kvCacheThreshold: 0.5'}");
    models_pass(&w, 61);
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "SaturationOnlyMode");
    EQ_INT(models_desired(&w, "web"), 3);
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(pods_that_get_no_requests_are_no_capacity),
        TAP(a_pod_of_another_namespace_is_not_ours),
        TAP(replicas_that_never_come_are_not_waited_for),
        TAP(servers_of_another_model_do_not_count),
        TAP(a_new_workload_starts_from_its_own_state),
        TAP(what_is_being_deleted_does_not_count),
        TAP(deletion_of_our_service_monitor_is_reported),
        TAP(others_variants_are_left_alone),
        TAP(a_namespace_may_have_thresholds_or_be_left_out),
        TAP(a_namespace_needs_no_global_thresholds),
        { 0 },
    });
}
