/* Variants, workloads, pods, bounds and ConfigMaps of any shape, through the whole reconcile path: see reconcile.h. */
#include "fuzz.h"
#include "reconcile.h"
#include "saturation/saturation_controller.h"

#define HOME "workload-variant-autoscaler-system"
#define MAP(name, ns, data)                                                                        \
    { "/api/v1", "configmaps",                                                                     \
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: " name ", namespace: " ns ", uid: " name \
      "}, data: " data "}" }

static const struct fuzz_object objects[] = {
    { "/apis/llmd.ai/v1alpha1", "variantautoscalings",
      "{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: web, namespace: llm, uid: v1, "
      "generation: 1, labels: {inference.optimization/acceleratorName: A100}}, spec: {modelID: llama, "
      "variantCost: '10', scaleTargetRef: {kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 9, "
      "actuation: Scale, behavior: {scaleUp: {policies: [{type: Pods, value: 4, periodSeconds: 15}]}}, "
      "modelProfile: {accelerators: [{acc: A100, accCount: 1, maxBatchSize: 4, perfParms: {decodeParms: "
      "{alpha: '20', beta: '0.4'}, prefillParms: {gamma: '5', delta: '0.1'}}}]}}, status: "
      "{desiredOptimizedAlloc: {numReplicas: 2, accelerator: A100, lastRunTime: '2026-06-01T00:00:00Z'}, "
      "actuation: {applied: true}, conditions: [{type: OptimizationReady, status: 'True', reason: a, "
      "message: b, lastTransitionTime: '2026-06-01T00:00:00Z'}], currentAlloc: {accelerator: A100, "
      "numReplicas: 2, load: {arrivalRate: '1.00'}}}}" },
    { "/apis/llmd.ai/v1alpha1", "variantautoscalings",
      "{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: slow, namespace: llm, uid: v2, "
      "generation: 1, labels: {inference.optimization/acceleratorName: L40S}}, spec: {modelID: llama, "
      "variantCost: '5.5', scaleTargetRef: {kind: StatefulSet, name: slow}}}" },
    { "/apis/apps/v1", "deployments",
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: llm, uid: d1}, spec: "
      "{replicas: 2}, status: {replicas: 2, readyReplicas: 2}}" },
    { "/apis/apps/v1", "statefulsets",
      "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: slow, namespace: llm, uid: s1}, spec: "
      "{replicas: 1}, status: {replicas: 1, readyReplicas: 1}}" },
    { "/apis/apps/v1", "replicasets",
      "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: llm, uid: r1, "
      "ownerReferences: [{kind: Deployment, name: web, uid: d1, controller: true}]}, spec: {replicas: 2}}" },
    { "/api/v1", "pods",
      "{apiVersion: v1, kind: Pod, metadata: {name: web-1-a, namespace: llm, uid: p1, annotations: "
      "{prometheus.io/port: '8000'}, ownerReferences: [{kind: ReplicaSet, name: web-1, uid: r1, controller: "
      "true}]}, spec: {containers: [{name: vllm, ports: [{name: metrics, containerPort: 8000}]}]}, status: "
      "{phase: Running, podIP: 10.0.0.1, conditions: [{type: Ready, status: 'True'}]}}" },
    { "/api/v1", "pods",
      "{apiVersion: v1, kind: Pod, metadata: {name: slow-0, namespace: llm, uid: p2, ownerReferences: [{kind: "
      "StatefulSet, name: slow, uid: s1, controller: true}]}, spec: {containers: [{name: vllm}]}, status: "
      "{phase: Running, podIP: 10.0.0.2, conditions: [{type: Ready, status: 'True'}]}}" },
    { "/apis/autoscaling/v2", "horizontalpodautoscalers",
      "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: slow, namespace: llm, uid: "
      "h1}, spec: {minReplicas: 1, maxReplicas: 4, scaleTargetRef: {kind: StatefulSet, name: slow}, behavior: "
      "{scaleUp: {tolerance: '0.2'}}}}" },
    { "/apis/keda.sh/v1alpha1", "scaledobjects",
      "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: x, namespace: llm, uid: k1}, spec: "
      "{minReplicaCount: 0, maxReplicaCount: 5, scaleTargetRef: {name: other}}}" },
    { "/api/v1", "namespaces",
      "{apiVersion: v1, kind: Namespace, metadata: {name: llm, uid: n1, annotations: {a: b}}}" },
    { "/apis/monitoring.coreos.com/v1", "servicemonitors",
      "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: "
      "workload-variant-autoscaler-controller-manager-metrics-monitor, namespace: " HOME
      ", uid: m1}}" },
    MAP("saturation-scaling-config", HOME,
        "{default: \"kvCacheThreshold: 0.8\\nqueueLengthThreshold: 5\\nkvSpareTrigger: "
        "0.1\\nqueueSpareTrigger: 3\\n\", web: \"model_id: llama\\nkvCacheThreshold: 0.7\\n\"}"),
    MAP("saturation-scaling-config", "llm", "{default: \"kvCacheThreshold: 0.6\\n\"}"),
    MAP("workload-variant-autoscaler-variantautoscaling-config", HOME,
        "{GLOBAL_OPT_INTERVAL: 30s, PROMETHEUS_METRICS_CACHE_TTL: 10s}"),
    MAP("wva-model-scale-to-zero-config", HOME,
        "{default: \"enable_scale_to_zero: true\\nretention_period: 5m\\n\"}"),
    MAP("accelerator-unit-costs", HOME, "{A100: '{\"device\":\"A100\",\"cost\":\"40.00\"}'}"),
    MAP("service-classes-config", HOME,
        "{premium.yaml: \"name: Premium\\npriority: 1\\ndata:\\n- model: llama\\n  slo-tpot: 24\\n  "
        "slo-ttft: 500\\n\"}"),
};

static const char *const words[] = { "modelID",
                                     "scaleTargetRef",
                                     "Deployment",
                                     "StatefulSet",
                                     "web",
                                     "slow",
                                     "llama",
                                     "minReplicas",
                                     "maxReplicas",
                                     "default",
                                     "kvCacheThreshold: [",
                                     "kvCacheThreshold: 7",
                                     "GLOBAL_OPT_INTERVAL",
                                     "1ns",
                                     "0s",
                                     "wva.llmd.ai/exclude",
                                     "deletionTimestamp",
                                     "desiredOptimizedAlloc",
                                     "numReplicas",
                                     "conditions",
                                     "http://127.0.0.1:2",
                                     "PROMETHEUS_BASE_URL",
                                     "PROMETHEUS_ALLOW_HTTP",
                                     "True",
                                     "true",
                                     NULL };

static const char *const settings[] = { "wva-optimizer", "on", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_feature f = { &saturation_feature, settings, objects, countof(objects),
                                           words };
    fuzz_reconcile(&f, data, size);
    return 0;
}
