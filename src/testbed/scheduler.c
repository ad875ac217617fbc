/* The scheduler: binds each pod without a node to the node with the most free CPU, among those that match
 * the pod's nodeSelector and are not cordoned.
 *
 * The problem is that a binding takes effect twice: at once in the API, later in the cache of pods that free
 * CPU is computed from. In between, the next pod would be given the same room. So:
 *
 *     pick_node --> reserve_room --> POST binding --> cache shows spec.nodeName --> release_room
 *                                        |
 *                                        +-- failure --> release_room
 *
 * Invariant: a pod is bound only to a node where it fits beside admitted requests, pending resizes and reservations.
 * There is one worker, so a choice and its reservation are one step.
 *
 * `cluster.placements` owns the reservations, by namespace/name. They are kept in memory only: after a
 * restart the cache is complete before the first reconciliation.
 *
 * A pod that fits nowhere gets the condition Unschedulable once and is retried every 5 s. Left out:
 * affinity, taints, priorities and preemption, and every resource but CPU. */
#include "cluster.h"

#include "../base/clock.h"
#include "../base/rfc3339.h"
#include "../json/json.h"

#include <stdio.h>

static const int64_t retry_ns = 5 * NS_PER_S;

struct placement { /* room reserved for a pod whose binding the cache does not show yet */
    int64_t milli;
    char *node; /* owned */
    char key[]; /* namespace/name */
};

static void placement_free(struct placement *p)
{
    if (p)
        free(p->node);
    free(p);
}

static void write_key(const struct record *pod, char *ret_key, size_t size)
{
    snprintf(ret_key, size, STR_FMT "/" STR_FMT, STR_ARG(pod->ns), STR_ARG(pod->name));
}

static void release_room(struct cluster *c, const struct record *pod)
{
    char key[600];
    write_key(pod, key, sizeof(key));
    placement_free(map_del(&c->placements, str_c(key)));
}

static void reserve_room(struct cluster *c, const struct pod *pod, str node, int64_t milli)
{
    char key[600];
    write_key(&pod->meta, key, sizeof(key));
    struct placement *p = mem_zero(1, sizeof(*p) + strlen(key) + 1);
    strcpy(p->key, key);
    p->node = mem_dup(node.p, node.n);
    p->milli = milli;
    placement_free(map_put(&c->placements, str_c(p->key), p));
}

void cluster_stop_scheduler(struct cluster *c)
{
    for (struct map_slot *s = NULL; (s = map_next(&c->placements, s));)
        placement_free(s->value);
    map_done(&c->placements);
}

/* ---- nodes */

/* CPU taken on a node: admitted requests or, for a pending resize, the larger new ones, and reservations. */
static int64_t reserved_milli(const struct cluster *c, str node)
{
    int64_t sum = 0;
    const struct pod *pod;
    cache_each_in(pod, c->pods, PODS_BY_NODE, node)
        sum += MAX(cluster_pod_allocated_milli(pod), cluster_pod_requested_milli(pod));
    for (struct map_slot *s = NULL; (s = map_next(&c->placements, s));) {
        const struct placement *p = s->value;
        sum += str_eqc(node, p->node) ? p->milli : 0;
    }
    return sum;
}

static bool is_selected(const struct node *node, const struct json *selector)
{
    json_each(label, selector)
        if (!str_eq(intern_labels_get(node->labels, label->key), json_text(label->value)))
            return false;
    return !node->unschedulable;
}

/* The node with the most free CPU that can take the pod; ties go to the first name. "": none. */
static str pick_node(const struct cluster *c, int64_t wanted, const struct json *selector)
{
    int64_t most = -1;
    str best = S("");
    const struct node *node;
    cache_each(node, c->nodes) {
        int64_t room = node->cpu_milli - reserved_milli(c, node->meta.name);
        bool better = room > most || (room == most && str_cmp(node->meta.name, best) < 0);
        if (room >= wanted && better && is_selected(node, selector)) {
            best = node->meta.name;
            most = room;
        }
    }
    return best;
}

/* ---- pods */

/* A conflict or a missing pod is not an error: the pod was bound or deleted meanwhile, and the cache will
 * show it. */
static void finish_binding(struct reconcile *r, const struct kube_reply *reply)
{
    struct cluster *c = r->context;
    if (!reply->failure)
        return;
    release_room(c, &(struct record){ .ns = r->ns, .name = r->name });
    if (reply->reason != KUBE_NOT_FOUND && reply->reason != KUBE_CONFLICT)
        reconcile_fail(r, reply->failure);
}

/* The binding subresource, as kube-scheduler uses it. */
static void bind_pod(struct reconcile *r, str node)
{
    struct json *binding = json_new_obj(r->arena);
    json_set_str(r->arena, binding, "apiVersion", S("v1"));
    json_set_str(r->arena, binding, "kind", S("Binding"));
    json_set_str(r->arena, json_make(r->arena, binding, "metadata", NULL), "name", r->name);
    struct json *target = json_make(r->arena, binding, "target", NULL);
    json_set_str(r->arena, target, "kind", S("Node"));
    json_set_str(r->arena, target, "name", node);
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_CREATE,
                                           .resource = &resource_pods,
                                           .ns = r->ns,
                                           .name = r->name,
                                           .subresource = "binding",
                                           .body = json_to_str(r->arena, binding) },
                   finish_binding);
}

/* kube-scheduler's condition and message, which users and autoscalers look for. */
static void report_unschedulable(struct reconcile *r, size_t nodes)
{
    struct json *status = json_new_obj(r->arena), *list = json_new_arr(r->arena),
                *condition = json_new_obj(r->arena);
    char text[RFC3339_TEXT_MAX];
    json_set_str(r->arena, condition, "type", S("PodScheduled"));
    json_set_str(r->arena, condition, "status", S("False"));
    json_set_str(r->arena, condition, "lastTransitionTime",
                 rfc3339_text(r->now_ns / NS_PER_S, text));
    json_set_str(r->arena, condition, "reason", S("Unschedulable"));
    json_set_str(r->arena, condition, "message",
                 arena_printf(r->arena, "0/%zu nodes are available: Insufficient cpu.", nodes));
    json_push(r->arena, list, condition);
    json_set(r->arena, status, S("conditions"), list);
    reconcile_status(r, &resource_pods, status);
}

static bool needs_node(const struct pod *pod)
{
    return !pod->node.n && !pod->deleting && !pod->gated &&
           (!pod->scheduler.n || str_eqc(pod->scheduler, "default-scheduler"));
}

/* Places one pod, or explains why it stays pending. */
static struct reconciled reconcile_placement(struct reconcile *r)
{
    struct cluster *c = r->context;
    const struct pod *pod = cache_get(c->pods, r->ns, r->name);
    char key[600];
    if (!pod || !needs_node(pod))
        return reconciled();
    write_key(&pod->meta, key, sizeof(key));
    if (map_get(&c->placements, str_c(key)))
        return reconciled(); /* bound; the cache will show it */
    struct json *selector = NULL;
    if (pod->selector.n)
        (void)json_parse(r->arena, pod->selector, &selector, NULL);
    int64_t wanted = cluster_pod_requested_milli(pod);
    str node = pick_node(c, wanted, selector);
    if (node.n) {
        reserve_room(c, pod, node, wanted);
        bind_pod(r, node);
        return reconciled();
    }
    if (!pod->unscheduled.n)
        report_unschedulable(r, cache_count(c->nodes));
    return reconciled_after(retry_ns);
}

/* The cache has caught up with a binding or a deletion: its reservation ends. */
static void on_pod_change(struct controller *controller, const struct record *old,
                          const struct record *now)
{
    const struct pod *pod = record_as(struct pod, now);
    if (!pod || pod->node.n)
        release_room(controller_context(controller), now ? now : old);
    else
        controller_add(controller, now->ns, now->name);
}

int cluster_start_scheduler(struct cluster *c, err_t *e)
{
    (void)e;
    struct controller *scheduler =
        manager_controller(c->manager, &(struct controller_spec){ .name = "testbed-scheduler",
                                                                  .reconcile = reconcile_placement,
                                                                  .context = c,
                                                                  .workers = 1 });
    controller_watch(scheduler, c->pods, on_pod_change);
    return 0;
}
