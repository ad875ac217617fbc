/* Bounds of HPAs and ScaledObjects, other workloads than Deployments, and how far down a target goes. */
#include "saturation_world.h"

static void hpa(struct models *w, const char *ns, const char *kind, int min, int max)
{
    models_create(
        w, &resource_hpas, ns,
        arena_printf(&w->c.arena,
                     "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: "
                     "web-%s}, spec: {minReplicas: %d, maxReplicas: %d, scaleTargetRef: "
                     "{apiVersion: apps/v1, kind: %s, name: web}, metrics: [{type: Resource, "
                     "resource: {name: cpu, target: {type: Utilization, averageUtilization: "
                     "50}}}]}}",
                     *kind == 'D' ? "deployment" : "statefulset", min, max, kind));
}

/* A step of 21 would be noise to it; its least number does not lower the variant's own. */
static void an_hpa_is_given_what_it_will_follow(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 20);
    models_variant(&w, "web", "A100", "10", "minReplicas: 3,");
    hpa(&w, MODELS_NS, "Deployment", 1, 50);
    models_load(&w, "web", 0.72, 0);
    models_operate(&w, NULL);
    models_pass(&w, 2);
    EQ_INT(models_desired(&w, "web"), 23);
    models_patch(&w, &resource_hpas, "web-deployment", NULL,
                 S("{\"spec\":{\"behavior\":{\"scaleUp\":{\"tolerance\":\"300m\"}}}}"));
    models_pass(&w, 400); /* it has not followed, and would take 26 for noise */
    EQ_INT(models_desired(&w, "web"), 27);
    models_patch(&w, &resource_hpas, "web-deployment", NULL,
                 S("{\"spec\":{\"behavior\":{\"scaleUp\":{\"tolerance\":\"5\"}}}}"));
    models_pass(&w, 400); /* not 121 */
    EQ_INT(models_desired(&w, "web"), 21);
    models_scale(&w, "web", 21);
    models_load(&w, "web", 0.01, 0);
    models_pass(&w, 100);
    EQ_INT(models_desired(&w, "web"), 3);
    models_stop(&w);
}

/* Of the same name, but in another namespace, or for a workload of another kind. */
static void bounds_of_others_do_not_count(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    hpa(&w, MODELS_HOME, "Deployment", 1, 2);
    hpa(&w, MODELS_NS, "StatefulSet", 1, 2);
    models_load(&w, "web", 0.9, 9);
    models_operate(&w, NULL);
    models_pass(&w, 2);
    EQ_INT(models_desired(&w, "web"), 4);
    models_stop(&w);
}

static void a_statefulset_is_scaled_too(void)
{
    struct models w;
    models_begin(&w);
    models_create(
        &w, &resource_statefulsets, MODELS_NS,
        S("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, spec: "
          "{replicas: 2, serviceName: web, selector: {matchLabels: {app: web}}, template: "
          "{metadata: {labels: {app: web}}, spec: {containers: [{name: vllm, image: "
          "vllm}]}}}}"));
    for (int i = 0; i < 2; i++)
        models_pod(&w, "web", true);
    models_patch(&w, &resource_statefulsets, "web", "status",
                 S("{\"status\":{\"replicas\":2,\"readyReplicas\":2}}"));
    models_create(
        &w, &saturation_variant_resource, MODELS_NS,
        S("{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: web, labels: "
          "{inference.optimization/acceleratorName: A100}}, spec: {modelID: llama, actuation: "
          "Scale, scaleTargetRef: {kind: StatefulSet, name: web}}}"));
    models_load(&w, "web", 0.9, 9);
    models_operate(&w, NULL);
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "TargetResolved", "message", "Scale target StatefulSet web found");
    EQ_INT(json_int(json_at(cluster_get(&w.c, &resource_statefulsets, MODELS_NS, "web"), "spec",
                            "replicas", NULL),
                    0),
           4);
    models_stop(&w);
}

/* minReplicas 0: it stays at zero while another serves the model, and is taken up when that is full. */
static void a_variant_may_rest_while_another_serves(void)
{
    for (int written = 0; written < 2; written++) {
        struct models w;
        models_begin(&w);
        models_workload(&w, "cheap", 1);
        models_workload(&w, "costly", 0);
        models_variant(&w, "cheap", "L40S", "5", "maxReplicas: 1,");
        models_variant(&w, "costly", "H100", "40",
                       written ? "minReplicas: 0, actuation: Scale," : "minReplicas: 0,");
        models_load(&w, "cheap", 0.5, 0);
        models_operate(&w, NULL);
        models_pass(&w, 61);
        EQ_INT(models_replicas(&w, "costly"), 0);
        models_load(&w, "cheap", 0.79, 1);
        models_pass(&w, 31);
        EQ_INT(models_desired(&w, "cheap"), 1);
        EQ_INT(models_desired(&w, "costly"), 1);
        EQ_INT(models_replicas(&w, "costly"), written);
        EQ_REAL(MODELS_GAUGE(&w, "wva_desired_ratio", "costly", "llm", "H100"), 1);
        models_stop(&w);
    }
}

/* A user scales it to zero between two decisions: it is not scaled up again. */
static void zero_by_hand_stays_zero(void)
{
    struct models w;
    models_begin(&w);
    models_config(&w, MODELS_HOME, "workload-variant-autoscaler-variantautoscaling-config",
                  "{GLOBAL_OPT_INTERVAL: 1h}");
    models_workload(&w, "web", 1);
    models_variant(&w, "web", "A100", "10", "actuation: Scale,");
    models_load(&w, "web", 0.5, 0);
    models_operate(&w, NULL);
    models_pass(&w, 2);
    EQ_INT(models_desired(&w, "web"), 1);
    models_scale(&w, "web", 0);
    models_pass(&w, 200);
    EQ_INT(models_replicas(&w, "web"), 0);
    models_pass(&w, 3600);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "web", "llm", "A100"), 0);
    models_stop(&w);
}

/* One pod in fifteen seconds, checked as often; a write that fails is reported and retried. */
static void replicas_follow_at_their_rate(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 4);
    models_variant(&w, "web", "A100", "10",
                   "actuation: Scale, behavior: {scaleUp: {policies: [{type: Pods, value: 1, "
                   "periodSeconds: 15}]}},");
    models_load(&w, "web", 0.9, 9);
    w.c.failures = 1;
    w.c.fail_path = "/scale";
    w.c.fail_code = 500;
    models_operate(&w, NULL);
    models_pass(&w, 5);
    EQ_INT((int64_t)models_events(&w, "ScaleFailed"), 1);
    EQ_INT(models_desired(&w, "web"), 8);
    EQ_INT(models_replicas(&w, "web"), 5);
    OK(!json_bool(json_at(models_status(&w, "web"), "actuation", "applied", NULL), true));
    models_pass(&w, 60);
    EQ_INT(models_replicas(&w, "web"), 8);
    OK(json_bool(json_at(models_status(&w, "web"), "actuation", "applied", NULL), false));
    models_stop(&w);
}

/* KEDA's bounds count as an HPA's do, also when KEDA is installed later, and do not freeze the model. */
static void bounds_of_a_scaled_object_count(void)
{
    struct models w;
    models_web(&w, 2, 0.9, 9, "actuation: Scale,");
    EQ_INT(models_desired(&w, "web"), 4);
    EQ_INT(models_replicas(&w, "web"), 4);
    models_follow(&w, "web");
    models_define(&w, &saturation_scaled_object_resource);
    models_create(
        &w, &saturation_scaled_object_resource, MODELS_NS,
        S("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web}, spec: "
          "{minReplicaCount: 2, maxReplicaCount: 5, scaleTargetRef: {name: web}}}"));
    models_load(&w, "web", 0.9, 9);
    models_pass(&w, 400); /* until the kind is found */
    EQ_INT(models_desired(&w, "web"), 5);
    OK(models_replicas(&w, "web") >= 5);
    size_t writes = models_events(&w, "Scaled");
    EQ_INT((int64_t)models_events(&w, "ActuationConflict"), 1); /* KEDA has the workload now */
    size_t all_writes = w.c.operator_writes;
    models_pass(&w, 180); /* which is reported once */
    EQ_INT((int64_t)(w.c.operator_writes - all_writes), 0);
    models_scale(&w, "web", 5);
    models_load(&w, "web", 0.01, 0);
    models_pass(&w, 400);
    EQ_INT(models_desired(&w, "web"), 2);
    EQ_INT(models_replicas(&w, "web"), 5);
    EQ_INT((int64_t)models_events(&w, "Scaled"), (int64_t)writes);
    models_stop(&w);
}

static void scaled_object(struct models *w, const char *spec)
{
    cluster_do(&w->c, KUBE_DELETE, &saturation_scaled_object_resource, MODELS_NS, "web", S(""));
    models_create(w, &saturation_scaled_object_resource, MODELS_NS,
                  arena_printf(&w->c.arena,
                               "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: "
                               "{name: web}, spec: {%s scaleTargetRef: {name: web}}}",
                               spec));
}

/* 100 where a ScaledObject names no maximum. One for something else of the same name does not count. */
static void keda_has_a_maximum_of_its_own(void)
{
    struct models w;
    models_begin(&w);
    models_define(&w, &saturation_scaled_object_resource);
    models_create(&w, &saturation_scaled_object_resource, MODELS_NS,
                  S("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: other}, "
                    "spec: {maxReplicaCount: 2, scaleTargetRef: {kind: Rollout, name: web}}}"));
    scaled_object(&w, "");
    models_workload(&w, "web", 60);
    models_variant(&w, "web", "A100", "10", "");
    models_load(&w, "web", 0.9, 9); /* needs twice as many */
    models_operate(&w, NULL);
    models_pass(&w, 2);
    EQ_INT(models_desired(&w, "web"), 100);
    scaled_object(&w, "maxReplicaCount: 70,");
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 70);
    models_stop(&w);
}

/* An idle model goes as low as the follower of the number can: KEDA to zero, unless a minimum without an idle
 * count forbids it; an HPA, also the one that KEDA makes, never. */
static void zero_is_not_published_where_it_cannot_be_followed(void)
{
    struct models w;
    setenv("WVA_SCALE_TO_ZERO", "true", 1);
    models_begin(&w);
    models_define(&w, &saturation_scaled_object_resource);
    models_create(
        &w, &resource_hpas, MODELS_NS,
        S("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: "
          "keda-hpa-web}, spec: {minReplicas: 1, maxReplicas: 100, scaleTargetRef: "
          "{apiVersion: apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, "
          "resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}"));
    scaled_object(&w, "");
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_operate(&w, NULL);
    models_pass(&w, 700);
    EQ_INT(models_desired(&w, "web"), 0);
    scaled_object(&w, "minReplicaCount: 2,");
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 2);
    scaled_object(&w, "minReplicaCount: 2, idleReplicaCount: 0,");
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 0);
    cluster_do(&w.c, KUBE_DELETE, &saturation_scaled_object_resource, MODELS_NS, "web", S(""));
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 1);
    MODELS_SAYS(&w, "web", "OptimizationReady", "message",
                "saturation-only decision: idle, but its minimum of 1 holds (target: 1 replicas)");
    models_stop(&w);
    unsetenv("WVA_SCALE_TO_ZERO");
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(an_hpa_is_given_what_it_will_follow),
        TAP(bounds_of_others_do_not_count),
        TAP(a_statefulset_is_scaled_too),
        TAP(a_variant_may_rest_while_another_serves),
        TAP(zero_by_hand_stays_zero),
        TAP(replicas_follow_at_their_rate),
        TAP(bounds_of_a_scaled_object_count),
        TAP(keda_has_a_maximum_of_its_own),
        TAP(zero_is_not_published_where_it_cannot_be_followed),
        { 0 },
    });
}
