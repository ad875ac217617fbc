/* Services, models, templates, configurations and what is made of them, of any shape, through the whole reconcile
 * path: see reconcile.h. */
#include "fuzz.h"
#include "reconcile.h"
#include "runtimeconfig/runtimeconfig_controller.h"

#define AIM "/apis/aim.silogen.ai/v1alpha1"
#define META(name) "metadata: {name: " name ", namespace: ml, uid: u-" name ", generation: 1}"
#define CLUSTER_META(name) "metadata: {name: " name ", uid: c-" name ", generation: 1}"
#define OWNED(name)                                                                                \
    "metadata: {name: " name ", namespace: ml, uid: o-" name                                       \
    ", labels: {app.kubernetes.io/managed-by: flyball, aim.silogen.ai/service-name: chat}, "       \
    "ownerReferences: [{kind: AIMService, name: chat, uid: u-chat, controller: true}]}"

static const struct fuzz_object objects[] = {
    { AIM, "aimservices",
      "{kind: AIMService, metadata: {name: chat, namespace: ml, uid: u-chat, generation: 1, labels: {team: "
      "a}, annotations: {tenant: b}, finalizers: [x]}, spec: {model: {name: llama}, modelName: llama, "
      "templateRef: latency, runtimeConfigName: default, replicas: 1, cacheModel: true, env: [{name: A, "
      "value: b}], resources: {limits: {cpu: 4}}, overrides: {metric: latency, precision: fp16, gpuSelector: "
      "{model: MI300X, count: 1}}, routing: {enabled: true, pathTemplate: "
      "'/{.metadata.namespace}/{.metadata.name}', gatewayRef: {name: gw, namespace: gateways}, annotations: "
      "{a: b}, requestTimeout: 10s}}, status: {status: Running, conditions: [{type: Ready, status: 'True'}], "
      "routing: {path: /ml/chat}, resolvedTemplate: {name: latency}}}" },
    { AIM, "aimmodels",
      "{kind: AIMModel, " META(
          "llama") ", spec: {image: 'example.org/llama:1', runtimeConfigName: default, "
                   "discovery: {enabled: true}, defaultServiceTemplate: latency, env: [{name: A, value: b}]}, status: "
                   "{status: Ready, imageMetadata: {model: {canonicalName: llama, recommendedDeployments: [{gpuModel: "
                   "MI300X, gpuCount: 1, precision: fp16, metric: latency}]}}}}" },
    { AIM, "aimclustermodels",
      "{kind: AIMClusterModel, " CLUSTER_META("llama") ", spec: {image: 'example.org/llama:1'}}" },
    { AIM, "aimservicetemplates",
      "{kind: AIMServiceTemplate, " META(
          "latency") ", spec: {modelName: llama, metric: latency, precision: "
                     "fp16, gpuSelector: {model: MI300X, count: 1}, caching: {enabled: true}, modelSources: [{name: a/b, "
                     "sourceUri: 'hf://a/b', size: 16Gi}], env: [{name: A, value: b}]}, status: {status: Ready, profile: "
                     "{metadata: {gpu: MI300X}}, modelSources: [{name: a/b, sourceUri: 'hf://a/b', size: 16Gi}]}}" },
    { AIM, "aimclusterservicetemplates",
      "{kind: AIMClusterServiceTemplate, " CLUSTER_META(
          "throughput") ", spec: {modelName: llama, metric: "
                        "throughput, modelSources: [{name: a/b, sourceUri: 'hf://a/b', size: 1Gi}]}}" },
    { AIM, "aimtemplatecaches",
      "{kind: AIMTemplateCache, " META(
          "latency") ", spec: {templateRef: latency, storageClassName: fast, env: "
                     "[]}, status: {status: Available, modelCaches: {a: {name: b, status: Available}}}}" },
    { AIM, "aimmodelcaches",
      "{kind: AIMModelCache, " META(
          "a-b") ", spec: {sourceUri: 'hf://a/b', size: 16Gi, storageClassName: "
                 "fast}, status: {status: Available, persistentVolumeClaim: a-b}}" },
    { AIM, "aimruntimeconfigs",
      "{kind: AIMRuntimeConfig, " META(
          "default") ", spec: {defaultStorageClassName: fast, serviceAccountName: "
                     "x, env: [{name: A, value: c}], routing: {enabled: true, gatewayRef: {name: gw, namespace: gateways}, "
                     "pathTemplate: '/{.metadata.labels.team}'}}}" },
    { AIM, "aimclusterruntimeconfigs",
      "{kind: AIMClusterRuntimeConfig, " CLUSTER_META(
          "default") ", spec: {routing: {pathTemplate: "
                     "\"/{.metadata.annotations['tenant']}\"}, storage: {pvcHeadroomPercent: 10}}}" },
    { "/apis/gateway.networking.k8s.io/v1", "httproutes",
      "{kind: HTTPRoute, " OWNED(
          "chat") ", spec: {parentRefs: [{name: gw, namespace: gateways}], rules: "
                  "[{matches: [{path: {type: PathPrefix, value: /ml/chat}}]}]}, status: {parents: [{parentRef: {name: "
                  "gw}, conditions: [{type: Accepted, status: 'True', observedGeneration: 1}]}]}}" },
    { "/apis/gateway.networking.k8s.io/v1", "gateways",
      "{kind: Gateway, metadata: {name: gw, namespace: gateways, uid: g1}, spec: {listeners: [{name: http, "
      "port: 80, protocol: HTTP, hostname: m.example.org}]}, status: {addresses: [{value: 10.0.0.9}]}}" },
    { "/apis/serving.kserve.io/v1beta1", "inferenceservices",
      "{kind: InferenceService, " OWNED(
          "chat") ", spec: {predictor: {model: {runtime: latency}}}, status: "
                  "{conditions: [{type: Ready, status: 'True'}], url: 'http://x'}}" },
    { "/apis/serving.kserve.io/v1alpha1", "servingruntimes",
      "{kind: ServingRuntime, " OWNED("latency") ", spec: {containers: [{name: k, image: i}]}}" },
    { "/apis/serving.kserve.io/v1alpha1", "clusterservingruntimes",
      "{kind: ClusterServingRuntime, " CLUSTER_META("throughput") ", spec: {containers: []}}" },
    { "/api/v1", "persistentvolumeclaims",
      "{kind: PersistentVolumeClaim, " OWNED(
          "a-b") ", spec: {resources: {requests: {storage: 16Gi}}}, status: "
                 "{phase: Bound}}" },
    { "/apis/batch/v1", "jobs",
      "{kind: Job, " OWNED(
          "a-b") ", spec: {}, status: {succeeded: 1, conditions: [{type: Complete, status: "
                 "'True'}]}}" },
    { "/api/v1", "pods",
      "{kind: Pod, metadata: {name: chat-0, namespace: ml, uid: p1, labels: "
      "{serving.kserve.io/inferenceservice: chat}}, status: {containerStatuses: [{name: k, state: {waiting: "
      "{reason: ImagePullBackOff, message: m}}}]}}" },
    { "/api/v1", "nodes",
      "{kind: Node, metadata: {name: n1, uid: n1, labels: {amd.com/gpu.product-name: MI300X}}, status: "
      "{allocatable: {amd.com/gpu: 8}}}" },
    { "/apis/storage.k8s.io/v1", "storageclasses",
      "{kind: StorageClass, metadata: {name: fast, uid: s1}, volumeBindingMode: WaitForFirstConsumer}" },
};

static const char *const words[] = { "spec",
                                     "status",
                                     "routing",
                                     "pathTemplate",
                                     "/{.metadata.name}/{.spec}",
                                     "{range .a[*]}{end}",
                                     "latency",
                                     "llama",
                                     "default",
                                     "chat",
                                     "gw",
                                     "env",
                                     "name",
                                     "image",
                                     "modelSources",
                                     "hf://a/b",
                                     "s3://x",
                                     "0",
                                     "16Gi",
                                     "Ready",
                                     "Running",
                                     "Failed",
                                     "deletionTimestamp",
                                     "finalizers",
                                     "ownerReferences",
                                     "conditions",
                                     NULL };

static const char *const settings[] = { "aim-operator-namespace", "kaiwo-system", "inspect-images",
                                        "false", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_feature f = { &runtimeconfig_feature, settings, objects,
                                           countof(objects), words };
    fuzz_reconcile(&f, data, size);
    return 0;
}
