/* The kubelets of all simulated nodes, as one controller over pods:
 *
 *     bound to a node --start delay--> running --spec changes--> resized in place --deleted--> drained --> gone
 *
 * A pod that names a model gets a server (serving.h) before it is reported ready, and a running pod consumes
 * CPU (demand.c). Both live in memory; after a restart of the testbed, the first reconciliation of a running
 * pod creates them again.
 *
 * Resizing follows the kubelet's admission: the new requests are admitted if they fit on the node together
 * with those of the other pods. Then they appear in containerStatuses, and a container whose resizePolicy
 * demands it restarts. Otherwise the pod gets the condition PodResizePending with one of two reasons:
 *
 *     Infeasible    it would not fit on an empty node, or the pod is Guaranteed and its node has the static CPU
 *                   manager policy (annotation testbed.flyball.dev/cpu-manager: static)
 *     Deferred      it does not fit now; checked again when any pod of the node changes, and every 30 s
 *
 * Admission reads the cache: two resizes on one node that are decided within one round trip to the API server may
 * together exceed it. A real kubelet has no such gap; closing it here would need reservations as in scheduler.c.
 *
 * Init containers have ended when the pod starts, except for sidecars (restartPolicy Always), which run, consume CPU
 * and are resized like containers. A container whose working set (demand.c) exceeds its memory limit is killed and
 * restarted.
 *
 * Left out: probes, images, volumes, admission of memory, and containers that fail. */
#include "cluster.h"

#include "../base/clock.h"
#include "../base/rfc3339.h"
#include "../json/json.h"

static struct json *add_condition(struct reconcile *r, struct json *list, const char *type,
                                  const char *status)
{
    struct json *c = json_new_obj(r->arena);
    char text[RFC3339_TEXT_MAX];
    json_set_str(r->arena, c, "type", str_c(type));
    json_set_str(r->arena, c, "status", str_c(status));
    json_set_str(r->arena, c, "lastTransitionTime", rfc3339_text(r->now_ns / NS_PER_S, text));
    json_push(r->arena, list, c);
    return c;
}

/* True for a pod with exclusive CPUs, which the kubelet never resizes. */
static bool has_own_cpus(const struct cluster *c, const struct pod *pod)
{
    const struct node *node = cache_get(c->nodes, S(""), pod->node);
    return node && str_eqc(node->cpu_manager, "static") && str_eqc(pod->qos, "Guaranteed");
}

/* The conditions of a running pod, and PodResizePending with the kubelet's own message if a reason is given. */
static struct json *build_conditions(struct reconcile *r, const struct pod *pod,
                                     const char *resize_pending)
{
    struct json *list = json_new_arr(r->arena);
    add_condition(r, list, "PodScheduled", "True");
    add_condition(r, list, "Initialized", "True");
    add_condition(r, list, "ContainersReady", "True");
    add_condition(r, list, "Ready", "True");
    if (*resize_pending) {
        struct json *c = add_condition(r, list, "PodResizePending", "True");
        json_set_str(r->arena, c, "reason", str_c(resize_pending));
        json_set_str(r->arena, c, "message",
                     str_c(strcmp(resize_pending, "Deferred") == 0
                               ? "Node didn't have enough resource: cpu"
                           : has_own_cpus(r->context, pod)
                               ? "Resize is infeasible for Guaranteed Pods alongside CPU Manager "
                                 "static policy"
                               : "Node didn't have enough capacity: cpu"));
        json_set_int(r->arena, c, "observedGeneration", pod->generation);
    }
    return list;
}

/* restartCount after the resources in the spec have been applied: one more if the limit changes and resizePolicy
 * requires a restart. */
static int64_t count_restarts(const struct json *container, const struct json *was, int kills)
{
    const struct json *policies = json_get(container, "resizePolicy");
    const struct json *want = json_at(container, "resources", "limits", "cpu", NULL);
    bool restart = was && !json_eq(want, json_at(was, "resources", "limits", "cpu", NULL));
    int64_t n = json_int(json_get(was, "restartCount"), 0) + kills;
    for (size_t i = 0; restart && i < json_len(policies); i++)
        if (str_eqc(json_text(json_get(json_item(policies, i), "resourceName")), "cpu") &&
            str_eqc(json_text(json_get(json_item(policies, i), "restartPolicy")),
                    "RestartContainer"))
            n++;
    return n;
}

/* A container that ended with success; init containers that did are ready. */
static struct json *build_completed(struct reconcile *r, const struct json *container, bool ready)
{
    struct json *one = json_new_obj(r->arena);
    char text[RFC3339_TEXT_MAX];
    json_set(r->arena, one, S("name"), json_get(container, "name"));
    json_set(r->arena, one, S("image"), json_get(container, "image"));
    json_set_str(r->arena, one, "imageID", S(""));
    json_set_bool(r->arena, one, "ready", ready);
    json_set_int(r->arena, one, "restartCount", 0);
    struct json *end = json_make(r->arena, one, "state", "terminated", NULL);
    json_set_int(r->arena, end, "exitCode", 0);
    json_set_str(r->arena, end, "reason", S("Completed"));
    json_set_str(r->arena, end, "finishedAt", rfc3339_text(r->now_ns / NS_PER_S, text));
    return one;
}

/* How the container ended last: kept, or new if it was killed. */
static void set_last_state(struct reconcile *r, struct json *status, const struct json *was,
                           int kills)
{
    char text[RFC3339_TEXT_MAX];
    if (!kills) {
        if (json_get(was, "lastState"))
            json_set(r->arena, status, S("lastState"), json_get(was, "lastState"));
        return;
    }
    struct json *end = json_make(r->arena, status, "lastState", "terminated", NULL);
    json_set_int(r->arena, end, "exitCode", 137);
    json_set_str(r->arena, end, "reason", S("OOMKilled"));
    json_set_str(r->arena, end, "finishedAt", rfc3339_text(r->now_ns / NS_PER_S, text));
}

/* status.containerStatuses with the resources of the spec, which are hereby enacted; of init containers, if `init`. */
static struct json *build_container_statuses(struct reconcile *r, const struct pod *pod,
                                             const struct json *containers, const struct json *were,
                                             bool init)
{
    struct cluster *c = r->context;
    struct json *list = json_new_arr(r->arena);
    char text[RFC3339_TEXT_MAX];
    for (size_t i = 0; i < json_len(containers); i++) {
        const struct json *container = json_item(containers, i);
        if (init && !cluster_is_sidecar(container)) {
            json_push(r->arena, list,
                      json_item(were, i) ? json_copy(r->arena, json_item(were, i))
                                         : build_completed(r, container, true));
            continue;
        }
        int kills = cpu_take_kills(&c->cpu, r->ns, r->name, json_text(json_get(container, "name")));
        struct json *status = json_new_obj(r->arena), *resources = json_get(container, "resources");
        json_set(r->arena, status, S("name"), json_get(container, "name"));
        json_set_bool(r->arena, status, "ready", true);
        json_set_bool(r->arena, status, "started", true);
        json_set_int(r->arena, status, "restartCount",
                     count_restarts(container, json_item(were, i), kills));
        set_last_state(r, status, json_item(were, i), kills);
        json_set(r->arena, status, S("image"), json_get(container, "image"));
        json_set_str(r->arena, status, "imageID", S(""));
        str id = cluster_container_id(r->arena, pod, json_text(json_get(container, "name")));
        json_set_str(r->arena, status, "containerID",
                     arena_printf(r->arena, "containerd://" STR_FMT, STR_ARG(id)));
        json_set_str(r->arena, json_make(r->arena, status, "state", "running", NULL), "startedAt",
                     rfc3339_text(r->now_ns / NS_PER_S, text));
        if (json_len(resources)) {
            json_set(r->arena, status, S("resources"), resources);
            if (json_get(resources, "requests"))
                json_set(r->arena, status, S("allocatedResources"),
                         json_get(resources, "requests"));
        }
        json_push(r->arena, list, status);
    }
    return list;
}

struct lists {                             /* of a pod */
    struct json *containers, *init;        /* spec */
    struct json *statuses, *init_statuses; /* status; NULL: none yet */
};

static void set_statuses(struct reconcile *r, const struct pod *pod, const struct lists *l,
                         struct json *status)
{
    json_set(r->arena, status, S("containerStatuses"),
             build_container_statuses(r, pod, l->containers, l->statuses, false));
    if (json_len(l->init))
        json_set(r->arena, status, S("initContainerStatuses"),
                 build_container_statuses(r, pod, l->init, l->init_statuses, true));
}

/* A loopback address derived from the uid, so that each pod can serve /metrics on the same port. The same pod has
 * the same address after a restart. */
static str derive_address(struct reconcile *r, const struct pod *pod)
{
    uint32_t h = 2166136261u; /* FNV-1a: the same in every run */
    for (size_t i = 0; i < pod->meta.uid.n; i++)
        h = (h ^ (unsigned char)pod->meta.uid.p[i]) * 16777619u;
    return arena_printf(r->arena, "127.%u.%u.%u", 64 + (h >> 16) % 64, (h >> 8) & 255, 1 + h % 254);
}

/* Reports a pod as running and ready. Its server listens before that, so no client finds the port closed. */
static struct reconciled start_pod(struct reconcile *r, const struct pod *pod,
                                   const struct lists *l)
{
    str ip = derive_address(r, pod);
    err_t e;
    if (cluster_start_server(r, pod, ip, l->containers, &e) < 0)
        return reconciled_failed(r, "%s", e.text);
    struct json *status = json_new_obj(r->arena);
    char text[RFC3339_TEXT_MAX];
    json_set_str(r->arena, status, "phase", S("Running"));
    json_set(r->arena, status, S("conditions"), build_conditions(r, pod, ""));
    set_statuses(r, pod, l, status);
    json_set_str(r->arena, status, "startTime", rfc3339_text(r->now_ns / NS_PER_S, text));
    json_set_str(r->arena, status, "hostIP", S("127.0.0.1"));
    json_set_str(r->arena, status, "podIP", ip);
    struct json *ips = json_new_arr(r->arena), *first = json_new_obj(r->arena);
    json_set_str(r->arena, first, "ip", ip);
    json_push(r->arena, ips, first);
    json_set(r->arena, status, S("podIPs"), ips);
    reconcile_status(r, &resource_pods, status);
    return reconciled();
}

/* ---- resize */

/* True if the statuses show the resources of the spec; of init containers only sidecars count. */
static bool is_enacted(const struct json *containers, const struct json *statuses, bool init)
{
    for (size_t i = 0; i < json_len(containers); i++) {
        if (init && !cluster_is_sidecar(json_item(containers, i)))
            continue;
        const struct json *want = json_get(json_item(containers, i), "resources");
        const struct json *have = json_get(json_item(statuses, i), "resources");
        if (json_len(want) + json_len(have) && !json_eq(want, have))
            return false;
    }
    return true;
}

/* The reason that a resize has to wait, or "" if it is admitted. */
static const char *check_resize(struct reconcile *r, const struct pod *pod, const struct lists *l)
{
    struct cluster *c = r->context;
    const struct node *node = cache_get(c->nodes, S(""), pod->node);
    int64_t wanted =
        cluster_containers_milli(l->containers) + cluster_sidecars_milli(r->arena, l->init, NULL);
    if (!node || wanted > node->cpu_milli || has_own_cpus(c, pod))
        return "Infeasible";
    if (wanted <= cluster_pod_allocated_milli(pod))
        return ""; /* a smaller request always fits */
    return cluster_node_allocated_milli(c, pod->node, pod) + wanted > node->cpu_milli ? "Deferred"
                                                                                      : "";
}

/* Enacts a resize or explains why not; writes nothing if the same reason is already shown. */
static struct reconciled resize_pod(struct reconcile *r, const struct pod *pod,
                                    const struct lists *l)
{
    const char *verdict = check_resize(r, pod, l);
    struct json *status = json_new_obj(r->arena);
    if (!*verdict) {
        set_statuses(r, pod, l, status);
        json_set(r->arena, status, S("conditions"), build_conditions(r, pod, ""));
        reconcile_status(r, &resource_pods, status);
    } else if (!str_eqc(pod->resize_pending, verdict) ||
               pod->resize_generation != pod->generation) {
        json_set(r->arena, status, S("conditions"), build_conditions(r, pod, verdict));
        reconcile_status(r, &resource_pods, status);
    }
    return *verdict ? reconciled_after(30 * NS_PER_S) : reconciled();
}

/* ---- the pod's life */

/* Removes the object: a pod that has drained needs no grace period. */
static struct reconciled end_pod(struct reconcile *r, const struct pod *pod)
{
    reconcile_call(r,
                   &(struct kube_request){
                       .verb = KUBE_DELETE,
                       .resource = &resource_pods,
                       .ns = r->ns,
                       .name = pod->meta.name,
                       .body = S("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                                 "\"gracePeriodSeconds\":0}") },
                   cluster_ignore_not_found);
    return reconciled();
}

/* A pod of a Job has done its work as soon as it runs. */
static struct reconciled complete_pod(struct reconcile *r, const struct json *containers)
{
    struct json *status = json_new_obj(r->arena), *list = json_new_arr(r->arena);
    for (size_t i = 0; i < json_len(containers); i++)
        json_push(r->arena, list, build_completed(r, json_item(containers, i), false));
    json_set_str(r->arena, status, "phase", S("Succeeded"));
    json_set(r->arena, status, S("containerStatuses"), list);
    reconcile_status(r, &resource_pods, status);
    return reconciled();
}

/* False if the containers cannot be parsed. */
static bool read_lists(struct arena *a, const struct pod *pod, struct lists *ret)
{
    *ret = (struct lists){ 0 };
    if (pod->init_containers.n)
        (void)json_parse(a, pod->init_containers, &ret->init, NULL);
    if (pod->statuses.n)
        (void)json_parse(a, pod->statuses, &ret->statuses, NULL);
    if (pod->init_statuses.n)
        (void)json_parse(a, pod->init_statuses, &ret->init_statuses, NULL);
    return json_parse(a, pod->containers, &ret->containers, NULL) == 0;
}

/* Reports containers that were killed for lack of memory since the last time. */
static void report_kills(struct reconcile *r, const struct pod *pod, const struct lists *l)
{
    struct cluster *c = r->context;
    if (!cpu_has_kills(&c->cpu, r->ns, r->name))
        return;
    struct json *status = json_new_obj(r->arena);
    set_statuses(r, pod, l, status);
    reconcile_status(r, &resource_pods, status);
}

/* One step of a pod's life. Every step is decided by the API object alone, so it may be repeated. */
static struct reconciled reconcile_pod(struct reconcile *r)
{
    struct cluster *c = r->context;
    const struct pod *pod = cache_get(c->pods, r->ns, r->name);
    if (pod && pod->deleting && serving_drain(&c->serving, r->ns, r->name, r->now_ns))
        return reconciled_after(NS_PER_S);
    if (!pod || pod->deleting) {
        serving_remove(&c->serving, r->ns, r->name);
        cpu_remove(&c->cpu, r->ns, r->name);
    }
    if (!pod)
        return reconciled();
    if (pod->deleting)
        return end_pod(r, pod);
    if (!pod->node.n)
        return reconciled(); /* the scheduler has it */
    struct lists l;
    if (!read_lists(r->arena, pod, &l))
        return reconciled();
    if (str_eqc(pod->phase, "Succeeded"))
        return reconciled();
    if (!str_eqc(pod->phase, "Running")) {
        int64_t left = pod->created_ns + c->start_delay_ns - r->now_ns;
        if (left > 0 && left <= c->start_delay_ns) /* more: the clock was set back */
            return reconciled_after(left);
        if (intern_labels_get(pod->labels, S("job-name")).n)
            return complete_pod(r, l.containers);
        return start_pod(r, pod, &l);
    }
    err_t e;
    if (cluster_start_server(r, pod, pod->ip, l.containers, &e) < 0) /* the testbed was restarted */
        return reconciled_failed(r, "%s", e.text);
    if (cluster_update_cpu(r, pod, l.statuses, l.init_statuses, &e) < 0)
        return reconciled_failed(r, "%s", e.text);
    if (!is_enacted(l.containers, l.statuses, false) || !is_enacted(l.init, l.init_statuses, true))
        return resize_pod(r, pod, &l);
    report_kills(r, pod, &l);
    return reconciled();
}

/* A change of one pod may make room for deferred resizes on the same node. */
static void enqueue_with_neighbors(struct controller *controller, const struct record *old,
                                   const struct record *now)
{
    struct cluster *c = controller_context(controller);
    const struct pod *changed = record_as(struct pod, now ? now : old), *pod;
    controller_add(controller, changed->meta.ns, changed->meta.name);
    if (!changed->node.n)
        return;
    cache_each_in(pod, c->pods, PODS_BY_NODE, changed->node)
        if (str_eqc(pod->resize_pending, "Deferred"))
            controller_add(controller, pod->meta.ns, pod->meta.name);
}

int cluster_start_kubelets(struct cluster *c, err_t *e)
{
    (void)e;
    c->kubelet =
        manager_controller(c->manager, &(struct controller_spec){ .name = "testbed-kubelet",
                                                                  .reconcile = reconcile_pod,
                                                                  .context = c,
                                                                  .workers = 16 });
    controller_watch(c->kubelet, c->pods, enqueue_with_neighbors);
    return 0;
}
