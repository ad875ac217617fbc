/* The fields of PodAllocations and pods that the controller caches, and the names that agent and
 * controller share.
 *
 * Who writes what: the node agent creates a PodAllocation for each pod it manages. It writes the
 * spec, with the name of its node, which the admission policy flyball-market-agent compares with
 * the agent's token, and status.shadowPriceCPU. It does not delete the object when a pod opts
 * out; the garbage collector deletes it with the pod. The controller writes the rest of the
 * status. An agent that reads status.infeasibleCPULimit stays below it until
 * status.infeasibleUntil. */
#ifndef FLYBALL_MARKET_RECORDS_H
#define FLYBALL_MARKET_RECORDS_H

#include "../kube/cache.h"

extern const struct resource market_allocation_resource;

#define MARKET_MANAGED "mbcas.io/managed" /* annotation or label; "false": opt out */
#define MARKET_SKIP_GUARANTEED "mbcas.io/skip-guaranteed" /* "false": resize Guaranteed pods too */
#define MARKET_ALLOW_RESTART "mbcas.io/allow-restart"     /* "true": even if containers restart */
#define MARKET_MOVE "mbcas.io/move"                 /* "false": never recommend to move the pod */
#define MARKET_MIRROR "kubernetes.io/config.mirror" /* a static pod: cannot be resized */

struct market_desired_memory { /* of one container; 0: none, or invalid */
    str container;
    int64_t request_milli, limit_milli; /* thousandths of a byte */
    bool shrink;                        /* the limit may be lowered */
};

struct allocation_record {
    struct record meta;
    str pod_ns, pod_name;
    str node;                           /* whose agent wrote it; "": written by hand or by MBCAS */
    str desired_request, desired_limit; /* quantities, not validated */
    LIST(struct market_desired_memory) desired_memory;
    int64_t generation;
    str owner_uid; /* of the pod it was created for; "": unknown */
    str status;    /* JSON */
};

struct market_container { /* of the spec */
    str name;
    int64_t request_milli, limit_milli;   /* -1: none */
    int64_t memory_request, memory_limit; /* thousandths of a byte; -1: none */
    str restart_policy;                   /* "Always" makes an init container a sidecar */
    str cpu_policy, memory_policy;        /* what a resize does to it */
};

struct market_container_status {
    str name;
    int64_t request_milli, limit_milli;     /* in force; -1: not reported */
    int64_t allocated_milli;                /* the request the node admitted; -1: not reported */
    int64_t memory_limit, memory_allocated; /* the same for memory, in thousandths of a byte */
};

struct market_pod_record {
    struct record meta;
    int64_t generation;
    str node, phase, qos, os;
    bool deleting, mirror;
    bool unmovable, node_affinity; /* for recommendations: it stays where it is */
    const struct labels *node_selector;
    str owner_kind, owner_name;
    str managed_label, managed_annotation, skip_guaranteed, allow_restart;
    LIST(struct market_container) containers, init_containers;
    LIST(struct market_container_status) statuses, init_statuses;
    str pending_reason, pending_message; /* PodResizePending */
    int64_t pending_generation, pending_since_ns;
    bool progressing; /* PodResizeInProgress */
    str progress_reason, progress_message;
};

extern const struct cache_spec market_allocation_cache, market_pod_cache;
enum { ALLOCATIONS_BY_POD }; /* index by pod name; also compare the namespace */
enum { MARKET_PODS_BY_NODE };

#endif
