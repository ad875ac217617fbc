/* Cached fields as tables: path in the object, type, place in the record. See kube/cache.h. */
#include "saturation_records.h"

#include "../kube/controller.h"
#include "saturation_spec.h"

const struct resource variant_resource = { "llmd.ai", "v1alpha1", "variantautoscalings",
                                           "VariantAutoscaling", true };
const struct resource service_monitor_resource = { "monitoring.coreos.com", "v1", "servicemonitors",
                                                   "ServiceMonitor", true };
const struct resource scaled_object_resource = { "keda.sh", "v1alpha1", "scaledobjects",
                                                 "ScaledObject", true };

#define AT(type, member) offsetof(struct type, member)

static const struct field variant_fields[] = {
    { "spec", F_RAW, AT(variant_record, spec) },
    { "status", F_RAW, AT(variant_record, status) },
    { "metadata.labels[\"" SAT_ACCELERATOR_LABEL "\"]", F_STR, AT(variant_record, accelerator) },
    { "metadata.labels[\"" SAT_INSTANCE_LABEL "\"]", F_STR, AT(variant_record, instance) },
    { "metadata.generation", F_INT, AT(variant_record, generation) },
    { "metadata.deletionTimestamp", F_HAS, AT(variant_record, deleting) },
};

static const struct field workload_fields[] = {
    { "spec.replicas", F_INT, AT(workload_record, wanted), .otherwise = 1 },
    { "status.replicas", F_INT, AT(workload_record, replicas) },
    { "status.readyReplicas", F_INT, AT(workload_record, ready) },
    { "metadata.deletionTimestamp", F_HAS, AT(workload_record, deleting) },
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
};

static const struct field configmap_fields[] = {
    { "data", F_RAW, AT(configmap_record, data) },
};

static const struct field hpa_fields[] = {
    { "spec.minReplicas", F_INT, AT(bounds_record, min), .otherwise = 1 },
    { "spec.maxReplicas", F_INT, AT(bounds_record, max) },
    { "spec.behavior.scaleUp.tolerance", F_MILLI, AT(bounds_record, up_milli), .otherwise = 100 },
    { "spec.behavior.scaleDown.tolerance", F_MILLI, AT(bounds_record, down_milli),
      .otherwise = 100 },
    { "spec.scaleTargetRef.kind", F_WORD, AT(bounds_record, target_kind) },
    { "spec.scaleTargetRef.name", F_STR, AT(bounds_record, target_name) },
};

#define KEDA_HPA "spec.advanced.horizontalPodAutoscalerConfig"

static const struct field scaled_object_fields[] = {
    { "spec.minReplicaCount", F_INT, AT(bounds_record, min) },
    { "spec.maxReplicaCount", F_INT, AT(bounds_record, max), .otherwise = 100 },
    { "spec.idleReplicaCount", F_HAS, AT(bounds_record, idles) },
    { KEDA_HPA ".behavior.scaleUp.tolerance", F_MILLI, AT(bounds_record, up_milli),
      .otherwise = 100 },
    { KEDA_HPA ".behavior.scaleDown.tolerance", F_MILLI, AT(bounds_record, down_milli),
      .otherwise = 100 },
    { "spec.scaleTargetRef.kind", F_WORD, AT(bounds_record, target_kind) },
    { "spec.scaleTargetRef.name", F_STR, AT(bounds_record, target_name) },
};

static const struct field namespace_fields[] = {
    { "metadata.annotations[\"" SAT_EXCLUDE_ANNOTATION "\"]", F_WORD,
      AT(namespace_record, exclude) },
};

static const struct field monitor_fields[] = {
    { "metadata.deletionTimestamp", F_HAS, AT(monitor_record, deleting) },
};

#define KEPT(name, type)                                                                           \
    static const struct fields name##_kept = { sizeof(struct type), name##_fields,                 \
                                               countof(name##_fields) }

KEPT(variant, variant_record);
KEPT(workload, workload_record);
KEPT(set, set_record);
KEPT(replica, replica_record);
KEPT(configmap, configmap_record);
KEPT(hpa, bounds_record);
KEPT(scaled_object, bounds_record);
KEPT(namespace, namespace_record);
KEPT(monitor, monitor_record);

const struct cache_spec variant_cache = { .resource = &variant_resource, .keep = &variant_kept };
const struct cache_spec deployment_cache = { .resource = &resource_deployments,
                                             .keep = &workload_kept };
const struct cache_spec statefulset_cache = { .resource = &resource_statefulsets,
                                              .keep = &workload_kept };
const struct cache_spec set_cache = { .resource = &resource_replicasets,
                                      .keep = &set_kept,
                                      .indexes = { AT(set_record, owner_uid) } };
const struct cache_spec replica_cache = { .resource = &resource_pods,
                                          .keep = &replica_kept,
                                          .indexes = { AT(replica_record, owner_uid) } };
const struct cache_spec configmap_cache = { .resource = &resource_configmaps,
                                            .keep = &configmap_kept };
const struct cache_spec hpa_bounds_cache = { .resource = &resource_hpas,
                                             .keep = &hpa_kept,
                                             .indexes = { AT(bounds_record, target_name) } };
const struct cache_spec scaled_object_cache = { .resource = &scaled_object_resource,
                                                .keep = &scaled_object_kept,
                                                .indexes = { AT(bounds_record, target_name) } };
const struct cache_spec namespace_cache = { .resource = &resource_namespaces,
                                            .keep = &namespace_kept };
const struct cache_spec monitor_cache = { .resource = &service_monitor_resource,
                                          .keep = &monitor_kept };
