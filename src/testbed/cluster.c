/* The simulated cluster as a feature of a manager: the caches its parts share, its settings, its start and
 * stop.
 *
 * Each part is one file that declares a controller on these caches:
 *
 *     Deployment -> ReplicaSet -> Pod         workloads.c
 *     Pod without a node -> spec.nodeName     scheduler.c
 *     Pod with a node -> running, gone        kubelet.c
 *     ConfigMap -> requests -> servers        load.c, traffic.c, serving.c
 *     annotations of pods -> CPU counters     demand.c, cpu.c
 *     HorizontalPodAutoscaler -> scale        autoscaler.c
 *
 * The parts do not hand objects to each other: each one writes to the API, and the next one sees the change
 * in its watch, as in a real cluster, with the races that a real cluster has.
 *
 * `struct cluster` owns everything that is not in the API: simulated CPUs, servers and traffic, reservations
 * of the scheduler and histories of autoscalers. All of it can be rebuilt, so the testbed may stop at any
 * moment. */
#include "cluster.h"

#include "../base/duration.h"
#include "../base/quantity.h"
#include "../json/json.h"

static const struct field node_fields[] = {
    { "status.allocatable.cpu", F_MILLI, offsetof(struct node, cpu_milli) },
    { "metadata.labels", F_MAP, offsetof(struct node, labels) },
    { "spec.unschedulable", F_BOOL, offsetof(struct node, unschedulable) },
    { "metadata.annotations[\"" TESTBED_CPU_MANAGER "\"]", F_WORD,
      offsetof(struct node, cpu_manager) },
};

static const struct field workload_fields[] = {
    { "metadata.generation", F_INT, offsetof(struct workload, generation) },
    { "metadata.creationTimestamp", F_TIME, offsetof(struct workload, created_ns) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct workload, deleting) },
    { OWNER_NAME, F_STR, offsetof(struct workload, owner) },
    { OWNER_UID, F_STR, offsetof(struct workload, owner_uid) },
    { "spec.replicas", F_INT, offsetof(struct workload, replicas), .otherwise = 1 },
    { "spec.selector", F_RAW, offsetof(struct workload, selector) },
    { "spec.template", F_RAW, offsetof(struct workload, pod_template) },
    { "status.observedGeneration", F_INT, offsetof(struct workload, observed) },
    { "status.replicas", F_INT, offsetof(struct workload, shown_replicas) },
    { "status.readyReplicas", F_INT, offsetof(struct workload, shown_ready) },
    { "status.updatedReplicas", F_INT, offsetof(struct workload, shown_updated) },
};

static const struct field pod_fields[] = {
    { "metadata.generation", F_INT, offsetof(struct pod, generation) },
    { "metadata.creationTimestamp", F_TIME, offsetof(struct pod, created_ns) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct pod, deleting) },
    { "metadata.labels", F_MAP, offsetof(struct pod, labels) },
    { "metadata.annotations", F_MAP, offsetof(struct pod, annotations) },
    { OWNER_NAME, F_STR, offsetof(struct pod, owner) },
    { OWNER_UID, F_STR, offsetof(struct pod, owner_uid) },
    { "spec.nodeName", F_WORD, offsetof(struct pod, node) },
    { "spec.nodeSelector", F_RAW, offsetof(struct pod, selector) },
    { "spec.schedulerName", F_WORD, offsetof(struct pod, scheduler) },
    { "spec.schedulingGates", F_HAS, offsetof(struct pod, gated) },
    { "spec.containers", F_RAW, offsetof(struct pod, containers) },
    { "spec.initContainers", F_RAW, offsetof(struct pod, init_containers) },
    { "status.initContainerStatuses", F_RAW, offsetof(struct pod, init_statuses) },
    { "status.conditions[type=PodScheduled].reason", F_WORD, offsetof(struct pod, unscheduled) },
    { "status.phase", F_WORD, offsetof(struct pod, phase) },
    { "status.qosClass", F_WORD, offsetof(struct pod, qos) },
    { "status.podIP", F_STR, offsetof(struct pod, ip) },
    { "status.conditions[type=Ready].status", F_WORD, offsetof(struct pod, ready) },
    { "status.conditions[type=PodResizePending].reason", F_WORD,
      offsetof(struct pod, resize_pending) },
    { "status.conditions[type=PodResizePending].observedGeneration", F_INT,
      offsetof(struct pod, resize_generation) },
    { "status.containerStatuses", F_RAW, offsetof(struct pod, statuses) },
};

static const struct cache_spec node_cache = { .resource = &resource_nodes,
                                              .keep = FIELDS(struct node, node_fields) };
static const struct cache_spec deployment_cache = { .resource = &resource_deployments,
                                                    .keep =
                                                        FIELDS(struct workload, workload_fields) };
static const struct cache_spec set_cache = { .resource = &resource_replicasets,
                                             .keep = FIELDS(struct workload, workload_fields),
                                             .indexes = { offsetof(struct workload, owner_uid) } };
static const struct cache_spec pod_cache = { .resource = &resource_pods,
                                             .keep = FIELDS(struct pod, pod_fields),
                                             .indexes = { offsetof(struct pod, owner_uid),
                                                          offsetof(struct pod, node) } };

/* ---- nodes */

/* A container without a request counts with its limit, which is how Kubernetes defaults it. */
int64_t cluster_containers_milli(const struct json *containers)
{
    int64_t sum = 0, milli;
    for (size_t i = 0; i < json_len(containers); i++) {
        const struct json *resources = json_get(json_item(containers, i), "resources");
        const struct json *cpu = json_at(resources, "requests", "cpu", NULL);
        if (!cpu)
            cpu = json_at(resources, "limits", "cpu", NULL);
        if (cpu && quantity_parse_milli(json_text(cpu), &milli, NULL) == 0)
            sum += milli;
    }
    return sum;
}

/* Of a raw list of containers or container statuses; 0 if it cannot be parsed. */
static int64_t parse_request_milli(str containers)
{
    auto_arena struct arena a = { 0 };
    struct json *list = NULL;
    return json_parse(&a, containers, &list, NULL) ? 0 : cluster_containers_milli(list);
}

int64_t cluster_sidecars_milli(struct arena *a, const struct json *init,
                               const struct json *statuses)
{
    struct json *sidecars = json_new_arr(a);
    for (size_t i = 0; i < json_len(init); i++)
        if (cluster_is_sidecar(json_item(init, i)))
            json_push(a, sidecars, json_item(json_len(statuses) ? statuses : init, i));
    return cluster_containers_milli(sidecars);
}

/* What the sidecars request, or what was admitted for them. */
static int64_t parse_sidecars_milli(const struct pod *pod, bool admitted)
{
    auto_arena struct arena a = { 0 };
    struct json *init = NULL, *statuses = NULL;
    if (!pod->init_containers.n || json_parse(&a, pod->init_containers, &init, NULL))
        return 0;
    if (admitted && pod->init_statuses.n)
        (void)json_parse(&a, pod->init_statuses, &statuses, NULL);
    return cluster_sidecars_milli(&a, init, statuses);
}

int64_t cluster_pod_requested_milli(const struct pod *pod)
{
    return parse_request_milli(pod->containers) + parse_sidecars_milli(pod, false);
}

int64_t cluster_pod_allocated_milli(const struct pod *pod)
{
    return parse_request_milli(pod->statuses.n ? pod->statuses : pod->containers) +
           parse_sidecars_milli(pod, true);
}

int64_t cluster_node_allocated_milli(const struct cluster *c, str node, const struct pod *except)
{
    int64_t sum = 0;
    const struct pod *pod;
    cache_each_in(pod, c->pods, PODS_BY_NODE, node)
        if (pod != except)
            sum += cluster_pod_allocated_milli(pod);
    return sum;
}

void cluster_ignore_not_found(struct reconcile *r, const struct kube_reply *reply)
{
    if (reply->failure && reply->reason != KUBE_NOT_FOUND)
        reconcile_fail(r, reply->failure);
}

/* ---- life */

static const struct feature_setting settings[] = {
    { "testbed-start-delay", "2s", "Time from the creation of a simulated pod until it is ready" },
    { "testbed-cgroup-root", "",
      "Directory for the cgroup files of simulated nodes (default: none)" },
    { "testbed-metrics-url", "",
      "Server whose /metrics page provides external metrics (default: none)" },
    { "testbed-tick", "200ms", "Interval between updates of simulated load" },
    { 0 },
};

/* Declares all caches and controllers. On failure the manager calls stop_testbed() with what was made so
 * far. */
static int start_testbed(struct manager *m, void **ret_state, err_t *e)
{
    struct cluster *c = mem_zero(1, sizeof(*c));
    *ret_state = c;
    c->manager = m;
    random_init(&c->random, 1, 1);
    if (duration_parse(str_c(manager_setting(m, "testbed-start-delay")), &c->start_delay_ns, e) < 0)
        return err_wrap(e, "--testbed-start-delay");
    int failed = manager_cache(m, &node_cache, &c->nodes, e);
    failed = failed ? failed : manager_cache(m, &deployment_cache, &c->deployments, e);
    failed = failed ? failed : manager_cache(m, &set_cache, &c->sets, e);
    failed = failed ? failed : manager_cache(m, &pod_cache, &c->pods, e);
    failed = failed ? failed : cluster_start_workloads(c, e);
    failed = failed ? failed : cluster_start_load(c, e);
    failed = failed ? failed : cluster_start_gateway(c, e);
    failed = failed ? failed : cluster_start_storage(c, e);
    failed = failed ? failed : cluster_start_scheduler(c, e);
    failed = failed ? failed : cluster_start_kubelets(c, e);
    return failed ? failed : cluster_start_autoscaler(c, e);
}

static void stop_testbed(void *state)
{
    struct cluster *c = state;
    if (!c)
        return;
    for (struct map_slot *s = NULL; (s = map_next(&c->histories, s));)
        autoscaler_memory_free(s->value);
    map_done(&c->histories);
    cluster_stop_gateway(c);
    cluster_stop_scheduler(c);
    cluster_stop_load(c);
    adapter_done(&c->adapter);
    free(c);
}

const struct feature testbed_feature = {
    .name = "testbed",
    .summary = "a simulated cluster: nodes, kubelets, deployments, autoscalers",
    .settings = settings,
    .start = start_testbed,
    .stop = stop_testbed,
};
