/* Which fields the caches keep: see market_records.h. */
#include "market_records.h"

#include "../kube/controller.h"

const struct resource market_allocation_resource = { "allocation.mbcas.io", "v1alpha1",
                                                     "podallocations", "PodAllocation", true };

static const struct field memory_fields[] = {
    { "container", F_WORD, offsetof(struct market_desired_memory, container) },
    { "request", F_MILLI, offsetof(struct market_desired_memory, request_milli) },
    { "limit", F_MILLI, offsetof(struct market_desired_memory, limit_milli) },
    { "shrink", F_BOOL, offsetof(struct market_desired_memory, shrink) },
};
static const struct fields memory_kept = { sizeof(struct market_desired_memory), memory_fields,
                                           countof(memory_fields) };

static const struct field allocation_fields[] = {
    { "spec.namespace", F_WORD, offsetof(struct allocation_record, pod_ns) },
    { "spec.podName", F_STR, offsetof(struct allocation_record, pod_name) },
    { "spec.nodeName", F_WORD, offsetof(struct allocation_record, node) },
    { "spec.desiredCPURequest", F_STR, offsetof(struct allocation_record, desired_request) },
    { "spec.desiredCPULimit", F_STR, offsetof(struct allocation_record, desired_limit) },
    { "spec.desiredMemory", F_LIST, offsetof(struct allocation_record, desired_memory),
      .of = &memory_kept },
    { "metadata.generation", F_INT, offsetof(struct allocation_record, generation) },
    { "metadata.ownerReferences[kind=Pod].uid", F_STR,
      offsetof(struct allocation_record, owner_uid) },
    { "status", F_RAW, offsetof(struct allocation_record, status) },
};

static const struct field container_fields[] = {
    { "name", F_WORD, offsetof(struct market_container, name) },
    { "resources.requests.cpu", F_MILLI, offsetof(struct market_container, request_milli),
      .otherwise = -1 },
    { "resources.limits.cpu", F_MILLI, offsetof(struct market_container, limit_milli),
      .otherwise = -1 },
    { "resources.requests.memory", F_MILLI, offsetof(struct market_container, memory_request),
      .otherwise = -1 },
    { "resources.limits.memory", F_MILLI, offsetof(struct market_container, memory_limit),
      .otherwise = -1 },
    { "restartPolicy", F_WORD, offsetof(struct market_container, restart_policy) },
    { "resizePolicy[resourceName=cpu].restartPolicy", F_WORD,
      offsetof(struct market_container, cpu_policy) },
    { "resizePolicy[resourceName=memory].restartPolicy", F_WORD,
      offsetof(struct market_container, memory_policy) },
};

static const struct field container_status_fields[] = {
    { "name", F_WORD, offsetof(struct market_container_status, name) },
    { "resources.requests.cpu", F_MILLI, offsetof(struct market_container_status, request_milli),
      .otherwise = -1 },
    { "resources.limits.cpu", F_MILLI, offsetof(struct market_container_status, limit_milli),
      .otherwise = -1 },
    { "allocatedResources.cpu", F_MILLI, offsetof(struct market_container_status, allocated_milli),
      .otherwise = -1 },
    { "resources.limits.memory", F_MILLI, offsetof(struct market_container_status, memory_limit),
      .otherwise = -1 },
    { "allocatedResources.memory", F_MILLI,
      offsetof(struct market_container_status, memory_allocated), .otherwise = -1 },
};

static const struct fields container_kept = { sizeof(struct market_container), container_fields,
                                              countof(container_fields) };
static const struct fields container_status_kept = { sizeof(struct market_container_status),
                                                     container_status_fields,
                                                     countof(container_status_fields) };

#define POD(member) offsetof(struct market_pod_record, member)
static const struct field pod_fields[] = {
    { "metadata.generation", F_INT, POD(generation) },
    { "metadata.deletionTimestamp", F_HAS, POD(deleting) },
    { "metadata.labels[\"" MARKET_MANAGED "\"]", F_WORD, POD(managed_label) },
    { "metadata.annotations[\"" MARKET_MANAGED "\"]", F_WORD, POD(managed_annotation) },
    { "metadata.annotations[\"" MARKET_SKIP_GUARANTEED "\"]", F_WORD, POD(skip_guaranteed) },
    { "metadata.annotations[\"" MARKET_ALLOW_RESTART "\"]", F_WORD, POD(allow_restart) },
    { "metadata.annotations[\"" MARKET_MIRROR "\"]", F_HAS, POD(mirror) },
    { "metadata.annotations[\"" MARKET_MOVE "\"]", F_IS, POD(unmovable), .text = "false" },
    { OWNER_KIND, F_WORD, POD(owner_kind) },
    { OWNER_NAME, F_WORD, POD(owner_name) },
    { "spec.nodeSelector", F_MAP, POD(node_selector) },
    { "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", F_HAS,
      POD(node_affinity) },
    { "spec.nodeName", F_WORD, POD(node) },
    { "spec.os.name", F_WORD, POD(os) },
    { "spec.containers", F_LIST, POD(containers), .of = &container_kept },
    { "spec.initContainers", F_LIST, POD(init_containers), .of = &container_kept },
    { "status.phase", F_WORD, POD(phase) },
    { "status.qosClass", F_WORD, POD(qos) },
    { "status.containerStatuses", F_LIST, POD(statuses), .of = &container_status_kept },
    { "status.initContainerStatuses", F_LIST, POD(init_statuses), .of = &container_status_kept },
    { "status.conditions[type=PodResizePending].reason", F_WORD, POD(pending_reason) },
    { "status.conditions[type=PodResizePending].message", F_STR, POD(pending_message) },
    { "status.conditions[type=PodResizePending].observedGeneration", F_INT,
      POD(pending_generation) },
    { "status.conditions[type=PodResizePending].lastTransitionTime", F_TIME,
      POD(pending_since_ns) },
    { "status.conditions[type=PodResizeInProgress].type", F_HAS, POD(progressing) },
    { "status.conditions[type=PodResizeInProgress].reason", F_WORD, POD(progress_reason) },
    { "status.conditions[type=PodResizeInProgress].message", F_STR, POD(progress_message) },
};
#undef POD

static const struct fields allocation_kept = { sizeof(struct allocation_record), allocation_fields,
                                               countof(allocation_fields) };
static const struct fields pod_kept = { sizeof(struct market_pod_record), pod_fields,
                                        countof(pod_fields) };

const struct cache_spec market_allocation_cache = {
    .resource = &market_allocation_resource,
    .keep = &allocation_kept,
    .indexes = { offsetof(struct allocation_record, pod_name) },
};
const struct cache_spec market_pod_cache = {
    .resource = &resource_pods,
    .keep = &pod_kept,
    .indexes = { offsetof(struct market_pod_record, node) },
};
