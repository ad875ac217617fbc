/* The fields that the watch caches keep of each kind. */
#ifndef FLYBALL_SATURATION_RECORDS_H
#define FLYBALL_SATURATION_RECORDS_H

#include "../kube/cache.h"
#include "objects/stock_core.h"

extern const struct resource saturation_variant_resource; /* variantautoscalings.llmd.ai */
extern const struct resource saturation_service_monitor_resource, saturation_scaled_object_resource;

struct variant_record {
    struct record meta;
    str spec, status;          /* JSON */
    str accelerator, instance; /* labels */
    int64_t generation;
    str wake; /* the annotation flyball.dev/wake */
    bool deleting;
};

struct container_record { /* of a pod template: what the capacity of a model server depends on */
    str image;
    str command, args; /* JSON */
    str engine;        /* the variable VLLM_USE_V1 */
};
struct container_list {
    const struct container_record *at;
    size_t n;
};

/* What pods request: stock_resources, and intel.com/gpu, which no label of a node goes with. */
enum { GPU_RESOURCE_N = STOCK_RESOURCE_N + 1 };

struct workload_record { /* a Deployment, StatefulSet or another kind: saturation_targets.h */
    struct record meta;
    str owner_uid;                   /* StatefulSets: index 0 */
    int64_t wanted, replicas, ready; /* spec.replicas, status.replicas, status.readyReplicas */
    bool deleting;
    /* Of the pod template: */
    int64_t gpu_milli[GPU_RESOURCE_N]; /* requests, in the order of stock_resources */
    const struct labels *node_selector;
    str tolerations, affinity, claims; /* JSON; affinity to nodes, claims of devices */
    int64_t grace;                     /* terminationGracePeriodSeconds */
    str role;                          /* label llm-d.ai/role */
    const struct labels *pod_labels;
    struct container_list containers;
    /* Of a LeaderWorkerSet, whose fields above are of its workers: */
    int64_t group_size; /* pods of one replica; 0: of another kind */
    bool has_leader;    /* its leaders have a template of their own */
    int64_t leader_milli[GPU_RESOURCE_N];
    const struct labels *leader_labels, *leader_selector;
    str leader_affinity;
    str leader_role;
    struct container_list leader_containers;
};

static inline str workload_role(const struct workload_record *w)
{
    return w->has_leader ? w->leader_role : w->role;
}

struct set_record { /* a ReplicaSet */
    struct record meta;
    str owner_uid; /* index 0 */
};

struct replica_record { /* a pod */
    struct record meta;
    str owner_uid; /* index 0 */
    str ready;     /* status of the condition: "True" */
    str ip, port_note;
    int64_t port;
    int64_t created_ns, ready_ns; /* wall clock; ready_ns: when Ready last changed; 0: unknown */
    bool deleting;
    str node, phase;
    const struct labels *labels;
    str deletion_cost, do_not_remove; /* annotations */
    bool cost_is_ours;
    str waits_for;                     /* why a container is waiting: "ImagePullBackOff" */
    int64_t gpu_milli[GPU_RESOURCE_N]; /* requests, in the order of stock_resources */
};

struct node_record {
    struct record meta;
    const struct labels *labels, *allocatable;
    bool unschedulable;
    str ready;        /* status of the condition: "True" */
    int64_t ready_ns; /* wall clock: since when; 0: unknown */
    str taints;       /* JSON */
};

struct configmap_record {
    struct record meta;
    str data; /* JSON */
};

struct bounds_record { /* an HPA or ScaledObject */
    struct record meta;
    int64_t min, max;
    int64_t up_milli, down_milli; /* tolerance: smaller relative changes are ignored */
    bool idles; /* KEDA: idleReplicaCount is set (only 0 is valid): idle goes to zero */
    str target_kind, target_name; /* the name is index 0 */
    /* The variant that it describes, if it is managed: */
    str readings;      /* JSON: spec.metrics of an HPA, spec.triggers of a ScaledObject */
    bool has_fallback; /* KEDA */
    int64_t fallback;
    bool pushed;  /* KEDA: a trigger is of type external-push */
    str paused;   /* KEDA: the annotation autoscaling.keda.sh/paused */
    bool is_held; /* KEDA: paused at a number of replicas */
    str wake;     /* the annotation flyball.dev/wake */
    str managed, managed_label, model, cost, accelerator, instance, owner_kind, target_api;
    bool deleting;
};

struct namespace_record {
    struct record meta;
    str exclude; /* the annotation */
};

struct monitor_record {
    struct record meta;
    str part_of; /* the label that `flyball install` sets */
    bool deleting;
};

extern const struct fields saturation_container_fields; /* of struct container_record */

extern const struct cache_spec saturation_variant_cache, saturation_deployment_cache,
    saturation_statefulset_cache, saturation_set_cache, saturation_replica_cache,
    saturation_configmap_cache, saturation_hpa_bounds_cache, saturation_scaled_object_cache,
    saturation_namespace_cache, saturation_monitor_cache, saturation_node_cache;

#endif
