/* The fields that the watch caches keep of each kind. */
#ifndef FLYBALL_SATURATION_RECORDS_H
#define FLYBALL_SATURATION_RECORDS_H

#include "../kube/cache.h"

extern const struct resource variant_resource; /* variantautoscalings.llmd.ai */
extern const struct resource service_monitor_resource, scaled_object_resource;

struct variant_record {
    struct record meta;
    str spec, status;          /* JSON */
    str accelerator, instance; /* labels */
    int64_t generation;
    bool deleting;
};

struct workload_record { /* a Deployment or StatefulSet; wanted is spec.replicas */
    struct record meta;
    int64_t wanted, replicas, ready; /* spec.replicas, status.replicas, status.readyReplicas */
    bool deleting;
};

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
};

struct namespace_record {
    struct record meta;
    str exclude; /* the annotation */
};

struct monitor_record {
    struct record meta;
    bool deleting;
};

extern const struct cache_spec variant_cache, deployment_cache, statefulset_cache, set_cache,
    replica_cache, configmap_cache, hpa_bounds_cache, scaled_object_cache, namespace_cache,
    monitor_cache;

#endif
