/* The simulated cluster: controllers that stand where Kubernetes' own and its kubelets stand, on any API
 * server. Deployments get ReplicaSets, these get pods, pods get a node, start, resize and end, and
 * HorizontalPodAutoscalers move replica counts. All of it is reached only through the API, and everything
 * it must remember is in the API: it may be stopped and started at any moment.
 *
 * What it leaves out: rolling updates keep no surge or availability bounds; there are no init
 * containers, volumes, probes or images; the scheduler looks at CPU requests, labels and cordons alone. */
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
    str owner, owner_uid;
    int64_t observed, shown_replicas, shown_ready, shown_updated; /* status */
};

struct pod {
    struct record meta;
    int64_t generation, created_ns;
    str owner, owner_uid; /* of the ReplicaSet */
    str node, phase, ready, ip, qos;
    bool deleting, gated;
    str scheduler;
    str selector;              /* raw spec.nodeSelector */
    str unscheduled;           /* reason of the condition; "" */
    str containers;            /* raw spec.containers */
    str statuses;              /* raw status.containerStatuses */
    str resize_pending;        /* reason of the condition; "" */
    int64_t resize_generation; /* that it is about */
    const struct labels *labels, *annotations;
};

struct cluster {
    struct manager *manager;
    struct cache *nodes, *deployments, *sets, *pods, *hpas, *loads, *routes, *inferences;
    struct cache *claims, *jobs;
    struct controller *deployment_controller, *set_controller, *kubelet, *autoscaler,
        *load_controller;
    struct serving serving; /* vLLM servers, by pod */
    struct traffic traffic; /* requests to them */
    struct cpu_sim cpu;     /* of the nodes */
    struct timer tick;
    int64_t tick_ns;
    struct random random;
    int64_t start_delay_ns; /* from creation to ready */
    struct map placements;  /* pods bound that the cache does not show so yet: scheduler.c's */
    struct map histories;   /* of autoscalers, by namespace/name: struct hpa_memory, owned */
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
int cluster_start_storage(struct cluster *c, err_t *e);
int cluster_start_load(struct cluster *c, err_t *e);
void cluster_stop_load(struct cluster *c);

int cluster_start_cpu(struct cluster *c, err_t *e); /* by cluster_start_load() */

/* Reports in an event what is wrong with an object of the scenario. */
void cluster_complain(struct reconcile *r, const struct resource *resource,
                      const struct record *about, const char *why);
/* Lets a pod that runs use CPU, with the resources in `statuses` enacted. */
int cluster_consume(struct reconcile *r, const struct pod *pod, const struct json *statuses,
                    err_t *e);
str cluster_container_id(struct arena *a, const struct pod *pod, str container);
/* Makes a pod that names a model a server on `ip`; nothing for other pods. */
int cluster_serve(struct reconcile *r, const struct pod *pod, str ip, const struct json *containers,
                  err_t *e);

/* For deletions: that it is gone already is what was wanted. */
void cluster_gone_is_fine(struct reconcile *r, const struct kube_reply *reply);

/* One entry of spec.metrics, read; `ret_status` becomes its entry in status.currentMetrics. */
struct hpa_metric cluster_metric(struct reconcile *r, const struct workload *d,
                                 const struct json *spec, struct json *ret_status);

struct hpa_memory;
void hpa_memory_free(struct hpa_memory *memory);

int64_t pod_requested_milli(const struct pod *pod);
/* What the node admitted; of a pod that has not started, what it asks for. */
int64_t pod_allocated_milli(const struct pod *pod);
/* CPU requests admitted on a node, millicores; `except` is left out. */
int64_t node_allocated_milli(const struct cluster *c, str node, const struct pod *except);
int64_t containers_request_milli(const struct json *containers);

#endif
