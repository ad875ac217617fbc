/* Kubelets: pods on a node start, take on new resources in place, and end.
 *
 * A resize is admitted when the node's requests, this pod's new ones included, fit: then the new
 * values appear in containerStatuses. Else the pod gets the condition PodResizePending, Infeasible when
 * it would not fit an empty node, or when the pod is Guaranteed and its node has the static CPU manager (the
 * annotation testbed.flyball.dev/cpu-manager), Deferred otherwise, and is tried again when a pod of the node
 * changes. A resize restarts a container if its resizePolicy requires it. */
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

/* Of a node that never resizes such pods. */
static bool has_own_cpus(const struct cluster *c, const struct pod *pod)
{
    const struct node *node = cache_get(c->nodes, S(""), pod->node);
    return node && str_eqc(node->cpu_manager, "static") && str_eqc(pod->qos, "Guaranteed");
}

static struct json *conditions_of(struct reconcile *r, const struct pod *pod,
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

/* How often the container was started again, once it has these resources. */
static int64_t restarts(const struct json *container, const struct json *was)
{
    const struct json *policies = json_get(container, "resizePolicy");
    const struct json *want = json_at(container, "resources", "limits", "cpu", NULL);
    bool restart = was && !json_eq(want, json_at(was, "resources", "limits", "cpu", NULL));
    int64_t n = json_int(json_get(was, "restartCount"), 0);
    for (size_t i = 0; restart && i < json_len(policies); i++)
        if (str_eqc(json_text(json_get(json_item(policies, i), "resourceName")), "cpu") &&
            str_eqc(json_text(json_get(json_item(policies, i), "restartPolicy")),
                    "RestartContainer"))
            n++;
    return n;
}

/* What the kubelet reports of each container: the resources are those in the spec, enacted. */
static struct json *container_statuses(struct reconcile *r, const struct pod *pod,
                                       const struct json *containers, const struct json *were)
{
    struct json *list = json_new_arr(r->arena);
    char text[RFC3339_TEXT_MAX];
    for (size_t i = 0; i < json_len(containers); i++) {
        const struct json *container = json_item(containers, i);
        struct json *status = json_new_obj(r->arena), *resources = json_get(container, "resources");
        json_set(r->arena, status, S("name"), json_get(container, "name"));
        json_set_bool(r->arena, status, "ready", true);
        json_set_bool(r->arena, status, "started", true);
        json_set_int(r->arena, status, "restartCount", restarts(container, json_item(were, i)));
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

/* An address of its own for every pod, so that a pod can serve its /metrics on this machine. */
static str address_of(struct reconcile *r, const struct pod *pod)
{
    uint32_t h = 2166136261u; /* FNV-1a: the same in every run */
    for (size_t i = 0; i < pod->meta.uid.n; i++)
        h = (h ^ (unsigned char)pod->meta.uid.p[i]) * 16777619u;
    return arena_printf(r->arena, "127.%u.%u.%u", 64 + (h >> 16) % 64, (h >> 8) & 255, 1 + h % 254);
}

/* A server listens before its pod is called ready. */
static struct reconciled start_pod(struct reconcile *r, const struct pod *pod,
                                   const struct json *containers)
{
    str ip = address_of(r, pod);
    err_t e;
    if (cluster_serve(r, pod, ip, containers, &e) < 0)
        return reconciled_failed(r, "%s", e.text);
    struct json *status = json_new_obj(r->arena);
    char text[RFC3339_TEXT_MAX];
    json_set_str(r->arena, status, "phase", S("Running"));
    json_set(r->arena, status, S("conditions"), conditions_of(r, pod, ""));
    json_set(r->arena, status, S("containerStatuses"),
             container_statuses(r, pod, containers, NULL));
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

static bool is_enacted(const struct json *containers, const struct json *statuses)
{
    for (size_t i = 0; i < json_len(containers); i++) {
        const struct json *want = json_get(json_item(containers, i), "resources");
        const struct json *have = json_get(json_item(statuses, i), "resources");
        if (json_len(want) + json_len(have) && !json_eq(want, have))
            return false;
    }
    return true;
}

static const char *resize_verdict(struct cluster *c, const struct pod *pod,
                                  const struct json *containers)
{
    const struct node *node = cache_get(c->nodes, S(""), pod->node);
    int64_t wanted = containers_request_milli(containers);
    if (!node || wanted > node->cpu_milli || has_own_cpus(c, pod))
        return "Infeasible";
    if (wanted <= pod_allocated_milli(pod))
        return ""; /* who asks for no more needs no room */
    return node_allocated_milli(c, pod->node, pod) + wanted > node->cpu_milli ? "Deferred" : "";
}

static struct reconciled resize_pod(struct reconcile *r, const struct pod *pod,
                                    const struct json *containers, const struct json *statuses)
{
    struct cluster *c = r->context;
    const char *verdict = resize_verdict(c, pod, containers);
    struct json *status = json_new_obj(r->arena);
    if (!*verdict) {
        json_set(r->arena, status, S("containerStatuses"),
                 container_statuses(r, pod, containers, statuses));
        json_set(r->arena, status, S("conditions"), conditions_of(r, pod, ""));
        reconcile_status(r, &resource_pods, status);
    } else if (!str_eqc(pod->resize_pending, verdict) ||
               pod->resize_generation != pod->generation) {
        json_set(r->arena, status, S("conditions"), conditions_of(r, pod, verdict));
        reconcile_status(r, &resource_pods, status);
    }
    return *verdict ? reconciled_after(30 * NS_PER_S) : reconciled();
}

/* ---- the pod's life */

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
                   cluster_gone_is_fine);
    return reconciled();
}

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
    struct json *containers = NULL, *statuses = NULL;
    if (json_parse(r->arena, pod->containers, &containers, NULL))
        return reconciled();
    if (!str_eqc(pod->phase, "Running")) {
        int64_t left = pod->created_ns + c->start_delay_ns - r->now_ns;
        if (left > 0 && left <= c->start_delay_ns) /* more: the clock was set back meanwhile */
            return reconciled_after(left);
        return start_pod(r, pod, containers);
    }
    err_t e;
    if (cluster_serve(r, pod, pod->ip, containers, &e) < 0) /* the testbed was restarted */
        return reconciled_failed(r, "%s", e.text);
    (void)json_parse(r->arena, pod->statuses, &statuses, NULL);
    if (cluster_consume(r, pod, statuses, &e) < 0)
        return reconciled_failed(r, "%s", e.text);
    if (!is_enacted(containers, statuses))
        return resize_pod(r, pod, containers, statuses);
    return reconciled();
}

/* A change of one pod may make room for the waiting resizes of its neighbours. */
static void add_with_neighbours(struct controller *controller, const struct record *old,
                                const struct record *now)
{
    struct cluster *c = controller_context(controller);
    const struct pod *changed = (const struct pod *)(const void *)(now ? now : old), *pod;
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
    controller_watch(c->kubelet, c->pods, add_with_neighbours);
    return 0;
}
