/* The simulated cluster: controllers in place of those of Kubernetes and of its kubelets, on any API server.
 * Deployments get ReplicaSets, ReplicaSets get pods, pods get a node, start, resize and end, and
 * HorizontalPodAutoscalers change replica counts. The parts communicate only through the API, and their state is
 * in the API: the testbed may be stopped and started at any moment.
 *
 * What it leaves out: rolling updates keep no surge or availability bounds; there are no
 * volumes, probes or images; the scheduler looks at CPU requests, labels and cordons alone. */
#ifndef FLYBALL_CLUSTER_H
#define FLYBALL_CLUSTER_H

#include "../base/map.h"
#include "../base/random.h"
#include "../kube/manager.h"
#include "adapter.h"
#include "cpu.h"
#include "hpa_model.h"
#include "serving.h"
#include "testbed.h"
#include "traffic.h"

#define TESTBED_DOMAIN "testbed.flyball.dev"
#define TESTBED_CPU_MANAGER TESTBED_DOMAIN "/cpu-manager"

struct node {
    struct record meta;
    int64_t cpu_milli; /* status.allocatable.cpu */
    const struct labels *labels;
    bool unschedulable; /* cordoned */
    str cpu_manager;    /* annotation; "static": Guaranteed pods have CPUs of their own */
};

struct workload { /* a Deployment or ReplicaSet */
    struct record meta;
    int64_t generation, replicas, created_ns;
    str selector, pod_template; /* raw JSON */
    bool deleting;
    str owner, owner_uid; /* of the Deployment; "" for a Deployment */
    int64_t observed, shown_replicas, shown_ready, shown_updated; /* as the status has them */
};

struct pod {
    struct record meta;
    int64_t generation, created_ns;
    str owner, owner_uid; /* of the ReplicaSet */
    str node, phase, ready, ip, qos;
    bool deleting, gated;               /* gated: has scheduling gates */
    str scheduler;                      /* "": default-scheduler */
    str selector;                       /* raw spec.nodeSelector */
    str unscheduled;                    /* reason of the condition; "" */
    str containers;                     /* raw spec.containers */
    str statuses;                       /* raw status.containerStatuses */
    str init_containers, init_statuses; /* the same of the init containers */
    str resize_pending;                 /* reason of the condition; "" */
    int64_t resize_generation;          /* observedGeneration of that condition */
    const struct labels *labels, *annotations;
};

struct cluster {
    struct manager *manager;
    struct cache *nodes, *deployments, *sets, *pods, *hpas, *loads, *routes, *inferences;
    struct cache *claims, *jobs, *gateways;
    struct map deleted_gateways; /* gateway.c's: "namespace/name", owned */
    struct controller *deployment_controller, *set_controller, *kubelet, *autoscaler,
        *load_controller;
    struct serving serving; /* vLLM servers, by pod */
    struct traffic traffic; /* requests to them */
    struct cpu_sim cpu;     /* of the nodes */
    struct timer tick;      /* load.c's */
    int64_t tick_ns;        /* its period */
    struct random random;
    int64_t start_delay_ns; /* from creation to ready */
    struct map placements;  /* scheduler.c's: pods it has bound that the cache shows unbound */
    struct map histories;   /* of autoscalers, by namespace/name: struct autoscaler_memory, owned */
    struct adapter adapter; /* external metrics */
};

enum { PODS_BY_OWNER, PODS_BY_NODE }; /* indexes of the pod cache */
enum { SETS_BY_OWNER };

/* The parts: each declares its controller on the cluster. */
int cluster_start_workloads(struct cluster *c, err_t *e);
int cluster_start_scheduler(struct cluster *c, err_t *e);
void cluster_stop_scheduler(struct cluster *c);
int cluster_start_kubelets(struct cluster *c, err_t *e);
int cluster_start_autoscaler(struct cluster *c, err_t *e);
int cluster_start_gateway(struct cluster *c, err_t *e);
void cluster_stop_gateway(struct cluster *c);
int cluster_start_storage(struct cluster *c, err_t *e);
/* The pod of a discovery Job, as its controller creates it: with the log that it will have printed. NULL: the Job is none. */
struct json *cluster_discovery_pod(struct arena *a, const struct json *job);
int cluster_start_load(struct cluster *c, err_t *e);
void cluster_stop_load(struct cluster *c);

int cluster_start_cpu(struct cluster *c, err_t *e); /* by cluster_start_load() */

/* Emits a warning event LoadInvalid on an object whose annotations or data cannot be used. */
void cluster_report_invalid(struct reconcile *r, const struct resource *resource,
                            const struct record *about, const char *why);
/* Starts the CPU demand of a running pod, or applies the resources in `statuses` to it. Of the init
 * containers only those that run count. */
int cluster_update_cpu(struct reconcile *r, const struct pod *pod, const struct json *statuses,
                       const struct json *init_statuses, err_t *e);
str cluster_container_id(struct arena *a, const struct pod *pod, str container);
/* Starts a model server on `ip` for a pod that names a model; does nothing for other pods. */
int cluster_start_server(struct reconcile *r, const struct pod *pod, str ip,
                         const struct json *containers, err_t *e);

/* Reply handler of deletions: an object that is already gone is a success. */
void cluster_ignore_not_found(struct reconcile *r, const struct kube_reply *reply);

/* Reads the metric of one entry of spec.metrics; fills `ret_status`, its entry in status.currentMetrics. */
struct hpa_metric cluster_read_metric(struct reconcile *r, const struct workload *d,
                                      const struct json *spec, struct json *ret_status);

struct autoscaler_memory;
void autoscaler_memory_free(struct autoscaler_memory *memory);

int64_t cluster_pod_requested_milli(const struct pod *pod);
/* What the node has admitted; before a pod has started, what it requests. */
int64_t cluster_pod_allocated_milli(const struct pod *pod);
/* Sum of CPU requests admitted on a node, without the pod `except` (may be NULL). */
int64_t cluster_node_allocated_milli(const struct cluster *c, str node, const struct pod *except);
int64_t cluster_containers_milli(const struct json *containers);
/* Of the init containers that run for as long as the pod: by their statuses, if there are any. */
int64_t cluster_sidecars_milli(struct arena *a, const struct json *init,
                               const struct json *statuses);
static inline bool cluster_is_sidecar(const struct json *init_container)
{
    return str_eqc(json_text(json_get(init_container, "restartPolicy")), "Always");
}

#endif
