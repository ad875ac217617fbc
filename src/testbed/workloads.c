/* Deployments and ReplicaSets: the counts that users and autoscalers set become pods.
 *
 *     Deployment --hash of the template--> ReplicaSet NAME-HASH --generateName--> pods
 *          ^                                    |                                   |
 *          +------------ status ----------------+------------- status --------------+
 *
 * The hash of a template names its ReplicaSet, so the same template always finds the same set again, also
 * after a restart between creating the set and seeing it in the cache: the second create is a conflict, not
 * a second set. Sets of older templates scale to zero once the new one is ready and are kept as history.
 *
 * Each turn compares counts in the cache with the spec and sends what is missing. A turn ends only when its writes
 * were answered (kube/controller.h); a cache that lags behind them can still create a pod too many, which the next
 * turn deletes again.
 *
 * Left out: maxSurge and maxUnavailable, paused rollouts, revisionHistoryLimit, and StatefulSets. */
#include "cluster.h"

#include "../base/sha256.h"
#include "../json/json.h"

static const char *const api_apps = "apps/v1";

/* Raw JSON of a cached field; an empty object if it cannot be parsed. */
static struct json *parse_object(struct arena *a, str text)
{
    struct json *v = NULL;
    return json_parse(a, text, &v, NULL) ? json_new_obj(a) : v;
}

static void set_owner(struct arena *a, struct json *object, const char *kind,
                      const struct record *owner)
{
    struct json *ref = json_new_obj(a), *refs = json_new_arr(a);
    json_set_str(a, ref, "apiVersion", str_c(api_apps));
    json_set_str(a, ref, "kind", str_c(kind));
    json_set_str(a, ref, "name", owner->name);
    json_set_str(a, ref, "uid", owner->uid);
    json_set_bool(a, ref, "controller", true);
    json_set_bool(a, ref, "blockOwnerDeletion", true);
    json_push(a, refs, ref);
    json_set(a, json_make(a, object, "metadata", NULL), S("ownerReferences"), refs);
}

static void send_create(struct reconcile *r, const struct resource *resource, struct json *object)
{
    reconcile_send(r, &(struct kube_request){ .verb = KUBE_CREATE,
                                              .resource = resource,
                                              .ns = r->ns,
                                              .body = json_to_str(r->arena, object) });
}

/* ---- Deployment */

/* Of the canonical JSON, so that the order of keys does not matter. */
static str hash_template(struct arena *a, str pod_template)
{
    struct buf canonical = { 0 };
    json_write_canonical(&canonical, parse_object(a, pod_template));
    char hex[SHA256_HEX + 1];
    sha256_hex(buf_str(&canonical), hex);
    buf_done(&canonical);
    return arena_printf(a, "%.10s", hex);
}

/* A ReplicaSet with the Deployment's template, selected by the template's hash as well. */
static void create_set(struct reconcile *r, const struct workload *d, str name, str hash)
{
    struct json *set = json_new_obj(r->arena), *spec = json_make(r->arena, set, "spec", NULL);
    struct json *pod_template = parse_object(r->arena, d->pod_template),
                *selector = parse_object(r->arena, d->selector);
    json_set_str(r->arena, json_make(r->arena, set, "metadata", NULL), "name", name);
    json_set_str(r->arena, json_make(r->arena, pod_template, "metadata", "labels", NULL),
                 "pod-template-hash", hash);
    json_set_str(r->arena, json_make(r->arena, selector, "matchLabels", NULL), "pod-template-hash",
                 hash);
    json_set(r->arena, json_make(r->arena, set, "metadata", NULL), S("labels"),
             json_copy(r->arena, json_at(pod_template, "metadata", "labels", NULL)));
    json_set_int(r->arena, spec, "replicas", d->replicas);
    json_set(r->arena, spec, S("selector"), selector);
    json_set(r->arena, spec, S("template"), pod_template);
    json_set_str(r->arena, set, "apiVersion", str_c(api_apps));
    json_set_str(r->arena, set, "kind", S("ReplicaSet"));
    set_owner(r->arena, set, "Deployment", &d->meta);
    send_create(r, &resource_replicasets, set);
}

static void scale_set(struct reconcile *r, const struct workload *set, int64_t replicas)
{
    if (set->replicas == replicas)
        return;
    str body = arena_printf(r->arena, "{\"spec\":{\"replicas\":%lld}}", (long long)replicas);
    reconcile_send(r, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                              .resource = &resource_replicasets,
                                              .ns = r->ns,
                                              .name = set->meta.name,
                                              .body = body });
}

struct counts { /* over all ReplicaSets of a Deployment; `updated`: of the current one */
    int64_t replicas, ready, updated;
};

static struct json *new_condition(struct reconcile *r, const char *type, bool holds,
                                  const char *reason)
{
    struct json *c = json_new_obj(r->arena);
    json_set_str(r->arena, c, "type", str_c(type));
    json_set_str(r->arena, c, "status", holds ? S("True") : S("False"));
    json_set_str(r->arena, c, "reason", str_c(reason));
    return c;
}

/* Writes counts and the condition Available, unless the status already has them. */
static void write_deployment_status(struct reconcile *r, const struct workload *d, struct counts n)
{
    if (d->observed == d->generation && d->shown_replicas == n.replicas &&
        d->shown_ready == n.ready && d->shown_updated == n.updated)
        return;
    struct json *status = json_new_obj(r->arena), *conditions = json_new_arr(r->arena);
    json_set_int(r->arena, status, "observedGeneration", d->generation);
    json_set_int(r->arena, status, "replicas", n.replicas);
    json_set_int(r->arena, status, "readyReplicas", n.ready);
    json_set_int(r->arena, status, "availableReplicas", n.ready);
    json_set_int(r->arena, status, "updatedReplicas", n.updated);
    json_set_int(r->arena, status, "unavailableReplicas", MAX(d->replicas - n.ready, (int64_t)0));
    bool available = n.ready >= d->replicas;
    json_push(r->arena, conditions,
              new_condition(r, "Available", available,
                            available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable"));
    json_set(r->arena, status, S("conditions"), conditions);
    reconcile_status(r, &resource_deployments, status);
}

/* Scales the current set, retires older ones once it is ready, and sums up the status of all. */
static struct reconciled reconcile_deployment(struct reconcile *r)
{
    struct cluster *c = r->context;
    const struct workload *d = cache_get(c->deployments, r->ns, r->name), *set;
    if (!d || d->deleting)
        return reconciled();
    str hash = hash_template(r->arena, d->pod_template);
    str name = arena_printf(r->arena, STR_FMT "-" STR_FMT, STR_ARG(r->name), STR_ARG(hash));
    const struct workload *current = cache_get(c->sets, r->ns, name);
    if (!current)
        create_set(r, d, name, hash);
    else
        scale_set(r, current, d->replicas);
    struct counts n = { 0 };
    cache_each_in(set, c->sets, SETS_BY_OWNER, d->meta.uid) {
        n.replicas += set->shown_replicas;
        n.ready += set->shown_ready;
        n.updated += set == current ? set->shown_replicas : 0;
        if (set != current && current && current->shown_ready >= d->replicas)
            scale_set(r, set, 0);
    }
    write_deployment_status(r, d, n);
    return reconciled();
}

/* ---- ReplicaSet */

static void create_pod(struct reconcile *r, const struct workload *set)
{
    struct json *pod = parse_object(r->arena, set->pod_template),
                *meta = json_make(r->arena, pod, "metadata", NULL);
    json_set_str(r->arena, pod, "apiVersion", S("v1"));
    json_set_str(r->arena, pod, "kind", S("Pod"));
    json_set(r->arena, meta, S("generateName"),
             json_new_str(r->arena, arena_printf(r->arena, STR_FMT "-", STR_ARG(r->name))));
    set_owner(r->arena, pod, "ReplicaSet", &set->meta);
    send_create(r, &resource_pods, pod);
}

/* The order in which surplus pods are deleted: without a node, then not ready, then the youngest. */
static int compare_deletion_order(const void *a, const void *b)
{
    const struct pod *x = *(const struct pod *const *)a, *y = *(const struct pod *const *)b;
    if ((x->node.n > 0) != (y->node.n > 0))
        return (x->node.n > 0) - (y->node.n > 0);
    bool x_ready = str_eqc(x->ready, "True"), y_ready = str_eqc(y->ready, "True");
    if (x_ready != y_ready)
        return x_ready - y_ready;
    if (x->created_ns != y->created_ns)
        return x->created_ns > y->created_ns ? -1 : 1;
    return str_cmp(x->meta.name, y->meta.name);
}

static void delete_pods(struct reconcile *r, const struct pod **pods, size_t n, size_t surplus)
{
    qsort(pods, n, sizeof(struct pod *), compare_deletion_order);
    for (size_t i = 0; i < surplus; i++)
        reconcile_call(r,
                       &(struct kube_request){ .verb = KUBE_DELETE,
                                               .resource = &resource_pods,
                                               .ns = r->ns,
                                               .name = pods[i]->meta.name },
                       cluster_ignore_not_found);
}

/* Creates missing pods or deletes surplus ones, and writes the status if a count changed. */
static struct reconciled reconcile_set(struct reconcile *r)
{
    struct cluster *c = r->context;
    const struct workload *set = cache_get(c->sets, r->ns, r->name);
    if (!set || set->deleting)
        return reconciled();
    size_t n = 0, cap = 0, ready = 0;
    const struct pod *pod;
    cache_each_in(pod, c->pods, PODS_BY_OWNER, set->meta.uid)
        cap++;
    const struct pod **pods = arena_array(r->arena, cap, sizeof(struct pod *));
    cache_each_in(pod, c->pods, PODS_BY_OWNER, set->meta.uid) {
        if (pod->deleting)
            continue;
        pods[n++] = pod;
        ready += str_eqc(pod->ready, "True");
    }
    size_t wanted = (size_t)MAX(set->replicas, (int64_t)0);
    for (size_t i = n; i < wanted; i++)
        create_pod(r, set);
    if (n > wanted)
        delete_pods(r, pods, n, n - wanted);
    if (set->observed != set->generation || set->shown_replicas != (int64_t)n ||
        set->shown_ready != (int64_t)ready) {
        struct json *status = json_new_obj(r->arena);
        json_set_int(r->arena, status, "observedGeneration", set->generation);
        json_set_int(r->arena, status, "replicas", (int64_t)n);
        json_set_int(r->arena, status, "fullyLabeledReplicas", (int64_t)n);
        json_set_int(r->arena, status, "readyReplicas", (int64_t)ready);
        json_set_int(r->arena, status, "availableReplicas", (int64_t)ready);
        reconcile_status(r, &resource_replicasets, status);
    }
    return reconciled();
}

int cluster_start_workloads(struct cluster *c, err_t *e)
{
    (void)e;
    c->deployment_controller =
        manager_controller(c->manager, &(struct controller_spec){ .name = "testbed-deployment",
                                                                  .reconcile = reconcile_deployment,
                                                                  .context = c });
    controller_watch(c->deployment_controller, c->deployments, NULL);
    controller_watch_by(c->deployment_controller, c->sets, offsetof(struct workload, owner));
    c->set_controller =
        manager_controller(c->manager, &(struct controller_spec){ .name = "testbed-replicaset",
                                                                  .reconcile = reconcile_set,
                                                                  .context = c });
    controller_watch(c->set_controller, c->sets, NULL);
    controller_watch_by(c->set_controller, c->pods, offsetof(struct pod, owner));
    return 0;
}
