/* Cached fields as tables: path in the object, type, place in the record. See kube/cache.h.
 *
 * One row per field, and one cache_spec per resource. A record has only what decisions read, so that a cluster
 * with many pods fits in little memory; adding a field here is all it takes to use it.
 *
 * The GPU resources have one row each, in the order of stock_resources (stock_core.h); rows of a list
 * (`[]`) add up over all containers. Nodes are cached only if the operator may list them: without them, limits
 * by inventory are off. HPAs and ScaledObjects share one record, since both mean bounds for a workload. */
#include "saturation_records.h"

#include "../kube/controller.h"
#include "objects/saturation_spec.h"

const struct resource saturation_variant_resource = { "llmd.ai", "v1alpha1", "variantautoscalings",
                                                      "VariantAutoscaling", true };
const struct resource saturation_service_monitor_resource = { "monitoring.coreos.com", "v1",
                                                              "servicemonitors", "ServiceMonitor",
                                                              true };
const struct resource saturation_scaled_object_resource = { "keda.sh", "v1alpha1", "scaledobjects",
                                                            "ScaledObject", true };

#define AT(type, member) offsetof(struct type, member)

static const struct field variant_fields[] = {
    { "spec", F_RAW, AT(variant_record, spec) },
    { "status", F_RAW, AT(variant_record, status) },
    { "metadata.labels[\"" SAT_ACCELERATOR_LABEL "\"]", F_STR, AT(variant_record, accelerator) },
    { "metadata.labels[\"" SAT_INSTANCE_LABEL "\"]", F_STR, AT(variant_record, instance) },
    { "metadata.generation", F_INT, AT(variant_record, generation) },
    { "metadata.annotations[\"" SAT_WAKE_ANNOTATION "\"]", F_STR, AT(variant_record, wake) },
    { "metadata.deletionTimestamp", F_HAS, AT(variant_record, deleting) },
};

static const struct field container_fields[] = {
    { "image", F_WORD, AT(container_record, image) },
    { "command", F_RAW, AT(container_record, command) },
    { "args", F_RAW, AT(container_record, args) },
    { "env[name=VLLM_USE_V1].value", F_WORD, AT(container_record, engine) },
};
const struct fields saturation_container_fields = { sizeof(struct container_record),
                                                    container_fields, countof(container_fields) };

static const struct field workload_fields[] = {
    { OWNER_UID, F_WORD, AT(workload_record, owner_uid) },
    { "spec.replicas", F_INT, AT(workload_record, wanted), .otherwise = 1 },
    { "status.replicas", F_INT, AT(workload_record, replicas) },
    { "status.readyReplicas", F_INT, AT(workload_record, ready) },
    { "metadata.deletionTimestamp", F_HAS, AT(workload_record, deleting) },
    { "spec.template.spec.containers[].resources.requests[\"nvidia.com/gpu\"]", F_MILLI,
      AT(workload_record, gpu_milli[0]) },
    { "spec.template.spec.containers[].resources.requests[\"amd.com/gpu\"]", F_MILLI,
      AT(workload_record, gpu_milli[1]) },
    { "spec.template.spec.containers[].resources.requests[\"habana.ai/gaudi\"]", F_MILLI,
      AT(workload_record, gpu_milli[2]) },
    { "spec.template.spec.containers[].resources.requests[\"gpu.intel.com/i915\"]", F_MILLI,
      AT(workload_record, gpu_milli[3]) },
    { "spec.template.spec.containers[].resources.requests[\"gpu.intel.com/xe\"]", F_MILLI,
      AT(workload_record, gpu_milli[4]) },
    { "spec.template.spec.containers[].resources.requests[\"intel.com/gpu\"]", F_MILLI,
      AT(workload_record, gpu_milli[5]) },
    { "spec.template.spec.affinity.nodeAffinity", F_RAW, AT(workload_record, affinity) },
    { "spec.template.spec.terminationGracePeriodSeconds", F_INT, AT(workload_record, grace),
      .otherwise = 30 },
    { "spec.template.spec.resourceClaims", F_RAW, AT(workload_record, claims) },
    { "spec.template.spec.nodeSelector", F_MAP, AT(workload_record, node_selector) },
    { "spec.template.spec.tolerations", F_RAW, AT(workload_record, tolerations) },
    { "spec.template.metadata.labels[\"llm-d.ai/role\"]", F_WORD, AT(workload_record, role) },
    { "spec.template.metadata.labels", F_MAP, AT(workload_record, pod_labels) },
    { "spec.template.spec.containers", F_LIST, AT(workload_record, containers),
      .of = &saturation_container_fields },
};

static const struct field set_fields[] = {
    { OWNER_UID, F_WORD, AT(set_record, owner_uid) },
};

static const struct field replica_fields[] = {
    { OWNER_UID, F_WORD, AT(replica_record, owner_uid) },
    { "status.conditions[type=Ready].status", F_WORD, AT(replica_record, ready) },
    { "status.conditions[type=Ready].lastTransitionTime", F_TIME, AT(replica_record, ready_ns) },
    { "metadata.creationTimestamp", F_TIME, AT(replica_record, created_ns) },
    { "status.podIP", F_STR, AT(replica_record, ip) },
    { "metadata.annotations[\"prometheus.io/port\"]", F_WORD, AT(replica_record, port_note) },
    { "spec.containers[].ports[name=metrics].containerPort", F_INT, AT(replica_record, port) },
    { "metadata.deletionTimestamp", F_HAS, AT(replica_record, deleting) },
    { "spec.nodeName", F_WORD, AT(replica_record, node) },
    { "status.phase", F_WORD, AT(replica_record, phase) },
    { "metadata.labels", F_MAP, AT(replica_record, labels) },
    { "metadata.annotations[\"controller.kubernetes.io/pod-deletion-cost\"]", F_WORD,
      AT(replica_record, deletion_cost) },
    { "metadata.annotations[\"flyball.dev/deletion-cost-at\"]", F_HAS,
      AT(replica_record, cost_is_ours) },
    { "metadata.annotations[\"flyball.dev/do-not-remove\"]", F_WORD,
      AT(replica_record, do_not_remove) },
    { "status.containerStatuses[].state.waiting.reason", F_WORD, AT(replica_record, waits_for) },
    { "spec.containers[].resources.requests[\"nvidia.com/gpu\"]", F_MILLI,
      AT(replica_record, gpu_milli[0]) },
    { "spec.containers[].resources.requests[\"amd.com/gpu\"]", F_MILLI,
      AT(replica_record, gpu_milli[1]) },
    { "spec.containers[].resources.requests[\"habana.ai/gaudi\"]", F_MILLI,
      AT(replica_record, gpu_milli[2]) },
    { "spec.containers[].resources.requests[\"gpu.intel.com/i915\"]", F_MILLI,
      AT(replica_record, gpu_milli[3]) },
    { "spec.containers[].resources.requests[\"gpu.intel.com/xe\"]", F_MILLI,
      AT(replica_record, gpu_milli[4]) },
    { "spec.containers[].resources.requests[\"intel.com/gpu\"]", F_MILLI,
      AT(replica_record, gpu_milli[5]) },
};

static const struct field node_fields[] = {
    { "metadata.labels", F_MAP, AT(node_record, labels) },
    { "status.allocatable", F_MAP, AT(node_record, allocatable) },
    { "spec.unschedulable", F_BOOL, AT(node_record, unschedulable) },
    { "status.conditions[type=Ready].status", F_WORD, AT(node_record, ready) },
    { "status.conditions[type=Ready].lastTransitionTime", F_TIME, AT(node_record, ready_ns) },
    { "spec.taints", F_RAW, AT(node_record, taints) },
};

static const struct field configmap_fields[] = {
    { "data", F_RAW, AT(configmap_record, data) },
};

#define DESCRIPTION_FIELDS /* of a variant, by annotations: annotation_core.h */                   \
    { "metadata.annotations[\"llm-d.ai/managed\"]", F_WORD, AT(bounds_record, managed) },          \
        { "metadata.labels[\"llm-d.ai/managed\"]", F_WORD, AT(bounds_record, managed_label) },     \
        { "metadata.annotations[\"llm-d.ai/model-id\"]", F_WORD, AT(bounds_record, model) },       \
        { "metadata.annotations[\"llm-d.ai/variant-cost\"]", F_WORD, AT(bounds_record, cost) },    \
        { "metadata.labels[\"" SAT_ACCELERATOR_LABEL "\"]", F_WORD,                                \
          AT(bounds_record, accelerator) },                                                        \
        { "metadata.labels[\"" SAT_INSTANCE_LABEL "\"]", F_WORD, AT(bounds_record, instance) },    \
        { "metadata.ownerReferences[controller=true].kind", F_WORD,                                \
          AT(bounds_record, owner_kind) },                                                         \
        { "metadata.annotations[\"" SAT_WAKE_ANNOTATION "\"]", F_STR, AT(bounds_record, wake) },   \
        { "metadata.deletionTimestamp", F_HAS, AT(bounds_record, deleting) },                      \
    {                                                                                              \
        "spec.scaleTargetRef.apiVersion", F_WORD, AT(bounds_record, target_api)                    \
    }

static const struct field hpa_fields[] = {
    { "spec.minReplicas", F_INT, AT(bounds_record, min), .otherwise = 1 },
    { "spec.maxReplicas", F_INT, AT(bounds_record, max) },
    { "spec.metrics", F_RAW, AT(bounds_record, readings) },
    { "spec.behavior.scaleUp.tolerance", F_MILLI, AT(bounds_record, up_milli), .otherwise = 100 },
    { "spec.behavior.scaleDown.tolerance", F_MILLI, AT(bounds_record, down_milli),
      .otherwise = 100 },
    { "spec.scaleTargetRef.kind", F_WORD, AT(bounds_record, target_kind) },
    { "spec.scaleTargetRef.name", F_STR, AT(bounds_record, target_name) },
    DESCRIPTION_FIELDS,
};

#define KEDA_HPA "spec.advanced.horizontalPodAutoscalerConfig"

static const struct field scaled_object_fields[] = {
    { "spec.minReplicaCount", F_INT, AT(bounds_record, min) },
    { "spec.maxReplicaCount", F_INT, AT(bounds_record, max), .otherwise = 100 },
    { "spec.triggers", F_RAW, AT(bounds_record, readings) },
    { "spec.fallback", F_HAS, AT(bounds_record, has_fallback) },
    { "spec.fallback.replicas", F_INT, AT(bounds_record, fallback) },
    { "spec.idleReplicaCount", F_HAS, AT(bounds_record, idles) },
    { "spec.triggers[type=external-push].metadata.scalerAddress", F_HAS,
      AT(bounds_record, pushed) },
    { "metadata.annotations[\"autoscaling.keda.sh/paused\"]", F_WORD, AT(bounds_record, paused) },
    { "metadata.annotations[\"autoscaling.keda.sh/paused-replicas\"]", F_HAS,
      AT(bounds_record, is_held) },
    { KEDA_HPA ".behavior.scaleUp.tolerance", F_MILLI, AT(bounds_record, up_milli),
      .otherwise = 100 },
    { KEDA_HPA ".behavior.scaleDown.tolerance", F_MILLI, AT(bounds_record, down_milli),
      .otherwise = 100 },
    { "spec.scaleTargetRef.kind", F_WORD, AT(bounds_record, target_kind) },
    { "spec.scaleTargetRef.name", F_STR, AT(bounds_record, target_name) },
    DESCRIPTION_FIELDS,
};

static const struct field namespace_fields[] = {
    { "metadata.annotations[\"" SAT_EXCLUDE_ANNOTATION "\"]", F_WORD,
      AT(namespace_record, exclude) },
};

static const struct field monitor_fields[] = {
    { "metadata.labels[\"app.kubernetes.io/part-of\"]", F_WORD, AT(monitor_record, part_of) },
    { "metadata.deletionTimestamp", F_HAS, AT(monitor_record, deleting) },
};

#define KEPT(name, type)                                                                           \
    static const struct fields name##_kept = { sizeof(struct type), name##_fields,                 \
                                               countof(name##_fields) }

KEPT(variant, variant_record);
KEPT(workload, workload_record);
KEPT(set, set_record);
KEPT(replica, replica_record);
KEPT(node, node_record);
KEPT(configmap, configmap_record);
KEPT(hpa, bounds_record);
KEPT(scaled_object, bounds_record);
KEPT(namespace, namespace_record);
KEPT(monitor, monitor_record);

const struct cache_spec saturation_variant_cache = { .resource = &saturation_variant_resource,
                                                     .keep = &variant_kept };
const struct cache_spec saturation_deployment_cache = { .resource = &resource_deployments,
                                                        .keep = &workload_kept };
const struct cache_spec saturation_statefulset_cache = { .resource = &resource_statefulsets,
                                                         .keep = &workload_kept,
                                                         .indexes = {
                                                             AT(workload_record, owner_uid) } };
const struct cache_spec saturation_set_cache = { .resource = &resource_replicasets,
                                                 .keep = &set_kept,
                                                 .indexes = { AT(set_record, owner_uid) } };
const struct cache_spec saturation_replica_cache = { .resource = &resource_pods,
                                                     .keep = &replica_kept,
                                                     .indexes = { AT(replica_record, owner_uid) } };
const struct cache_spec saturation_node_cache = { .resource = &resource_nodes,
                                                  .need = CACHE_IF_ALLOWED,
                                                  .keep = &node_kept };
const struct cache_spec saturation_configmap_cache = { .resource = &resource_configmaps,
                                                       .keep = &configmap_kept };
const struct cache_spec saturation_hpa_bounds_cache = {
    .resource = &resource_hpas, .keep = &hpa_kept, .indexes = { AT(bounds_record, target_name) }
};
const struct cache_spec saturation_scaled_object_cache = {
    .resource = &saturation_scaled_object_resource,
    .keep = &scaled_object_kept,
    .indexes = { AT(bounds_record, target_name) }
};
const struct cache_spec saturation_namespace_cache = { .resource = &resource_namespaces,
                                                       .keep = &namespace_kept };
const struct cache_spec saturation_monitor_cache = { .resource =
                                                         &saturation_service_monitor_resource,
                                                     .keep = &monitor_kept };
