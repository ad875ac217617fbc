/* Variants of workloads that are neither Deployments nor StatefulSets. */
#include "saturation_world.h"

static const struct resource groups = { "leaderworkerset.x-k8s.io", "v1", "leaderworkersets",
                                        "LeaderWorkerSet", true };
static const struct resource engines = { "serving.example.com", "v1", "engines", "Engine", true };

/* A kind whose replicas are at `path` of its spec. NULL: without a scale subresource. */
static void define_scaled(struct models *w, const struct resource *r, const char *path)
{
    str scale = path
                    ? arena_printf(&w->c.arena,
                                   "subresources: {status: {}, scale: {specReplicasPath: .spec.%s, "
                                   "statusReplicasPath: .status.replicas, labelSelectorPath: "
                                   ".status.selector}},",
                                   path)
                    : S("subresources: {status: {}},");
    models_create(
        w, &resource_crds, NULL,
        arena_printf(&w->c.arena,
                     "{apiVersion: apiextensions.k8s.io/v1, kind: "
                     "CustomResourceDefinition, metadata: {name: %s.%s}, spec: {group: %s, "
                     "scope: Namespaced, names: {kind: %s, plural: %s}, versions: [{name: "
                     "%s, served: true, storage: true, " STR_FMT
                     " schema: {openAPIV3Schema: {type: object, "
                     "x-kubernetes-preserve-unknown-fields: true}}}]}}",
                     r->plural, r->group, r->group, r->kind, r->plural, r->version,
                     STR_ARG(scale)));
}

static void add_variant(struct models *w, const char *api, const char *kind)
{
    models_create(
        w, &saturation_variant_resource, MODELS_NS,
        arena_printf(&w->c.arena,
                     "{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: "
                     "{name: web, labels: {inference.optimization/acceleratorName: A100}}, "
                     "spec: {modelID: llama, actuation: Scale, scaleTargetRef: "
                     "{%s kind: %s, name: web}}}",
                     api, kind));
}

static int64_t replicas_at(struct models *w, const struct resource *r, const char *field)
{
    return json_int(json_at(cluster_get(&w->c, r, MODELS_NS, "web"), "spec", field, NULL), -1);
}

/* A pod with labels, of an owner if there is one. */
static void add_pod(struct models *w, const char *labels, const char *owner_kind, str owner_uid)
{
    struct models_pod *pod = &w->pods[w->pod_n];
    struct arena *a = &w->c.arena;
    err_t e;
    snprintf(pod->name, sizeof(pod->name), "web-%zu", w->pod_n++);
    snprintf(pod->workload, sizeof(pod->workload), "web");
    cluster_check(http_server_new(w->c.loop,
                                  &(struct http_server_options){ .on_request = models_serve,
                                                                 .context = pod },
                                  &pod->server, &e),
                  &e);
    str owners = owner_uid.n
                     ? arena_printf(a,
                                    "ownerReferences: [{apiVersion: apps/v1, kind: %s, name: "
                                    "web, uid: " STR_FMT ", controller: true}]",
                                    owner_kind, STR_ARG(owner_uid))
                     : S("");
    models_create(
        w, &resource_pods, MODELS_NS,
        arena_printf(a,
                     "{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {%s}, " STR_FMT
                     "}, spec: {containers: [{name: vllm, image: vllm, ports: "
                     "[{name: metrics, containerPort: %u}]}]}}",
                     pod->name, labels, STR_ARG(owners), http_server_port(pod->server)));
    models_ready(w, pod->name, true);
}

/* Its replicas are groups; only the pods of leaders, which a StatefulSet of the group owns, serve. */
static void a_group_of_pods_is_one_replica(void)
{
    struct models w;
    models_begin(&w);
    define_scaled(&w, &groups, "replicas");
    models_create(
        &w, &groups, MODELS_NS,
        S("{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: "
          "web}, spec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: "
          "{metadata: {labels: {app: web}}, spec: {containers: [{name: vllm, image: "
          "vllm}]}}}}}"));
    models_patch(&w, &groups, "web", "status",
                 S("{\"status\":{\"replicas\":2,\"readyReplicas\":2}}"));
    models_create(
        &w, &resource_statefulsets, MODELS_NS,
        arena_printf(&w.c.arena,
                     "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, "
                     "ownerReferences: [{apiVersion: leaderworkerset.x-k8s.io/v1, kind: "
                     "LeaderWorkerSet, name: web, uid: " STR_FMT
                     ", controller: true}]}, spec: {replicas: 2, serviceName: web, selector: "
                     "{matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, "
                     "spec: {containers: [{name: vllm, image: vllm}]}}}}",
                     STR_ARG(models_uid(&w, &groups, "web"))));
    for (int i = 0; i < 2; i++)
        add_pod(&w, "app: web", "StatefulSet", models_uid(&w, &resource_statefulsets, "web"));
    add_variant(&w, "", "LeaderWorkerSet");
    models_load(&w, "web", 0.9, 9);
    models_operate(&w, NULL);
    models_pass(&w, 40);
    MODELS_SAYS(&w, "web", "TargetResolved", "message", "Scale target LeaderWorkerSet web found");
    OK(models_desired(&w, "web") > 2);
    OK(replicas_at(&w, &groups, "replicas") > 2);
    models_stop(&w);
}

/* Where the kind has its replicas is the API server's business; its pods are found by selector. */
static void any_kind_with_a_scale_can_be_a_target(void)
{
    struct models w;
    models_begin(&w);
    define_scaled(&w, &engines, "count");
    add_variant(&w, "apiVersion: serving.example.com/v1,", "Engine");
    models_operate(&w, NULL);
    models_pass(&w, 40);
    MODELS_SAYS(&w, "web", "TargetResolved", "reason", "TargetNotFound");
    models_create(
        &w, &engines, MODELS_NS,
        S("{apiVersion: serving.example.com/v1, kind: Engine, metadata: {name: web}, spec: "
          "{count: 2}}"));
    models_patch(&w, &engines, "web", "status",
                 S("{\"status\":{\"replicas\":2,\"selector\":\"app=web,tier in (gpu,cpu)\"}}"));
    add_pod(&w, "app: web, tier: gpu", "", S(""));
    add_pod(&w, "app: web, tier: gpu", "", S(""));
    add_pod(&w, "app: web", "", S("")); /* of something else */
    models_load(&w, "web", 0.9, 9);
    models_pass(&w, 40);
    MODELS_SAYS(&w, "web", "TargetResolved", "status", "True");
    EQ_INT(models_desired(&w, "web"), 4);
    EQ_INT(replicas_at(&w, &engines, "count"), 4);
    buf_clear(&w.c.reads);
    models_pass(&w, 600);
    OK(str_find(buf_str(&w.c.reads), S("/engines")) == SIZE_MAX); /* watched, not polled */
    cluster_do(&w.c, KUBE_DELETE, &engines, MODELS_NS, "web", S(""));
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "TargetResolved", "reason", "TargetNotFound");
    models_stop(&w);
}

static void kinds_that_cannot_be_scaled_are_reported(void)
{
    struct models w;
    models_begin(&w);
    add_variant(&w, "apiVersion: serving.example.com/v1,", "Engine");
    models_operate(&w, NULL);
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "TargetResolved", "reason", "UnknownKind");
    define_scaled(&w, &engines, NULL); /* it is installed later, without a scale subresource */
    models_create(
        &w, &engines, MODELS_NS,
        S("{apiVersion: serving.example.com/v1, kind: Engine, metadata: {name: web}, spec: "
          "{replicas: 2}}"));
    models_pass(&w, 91);
    MODELS_SAYS(&w, "web", "TargetResolved", "reason", "UnknownKind");
    MODELS_SAYS(&w, "web", "TargetResolved", "message",
                "Scale target Engine web cannot be scaled: it has no scale subresource");
    models_stop(&w);
    models_begin(&w);
    add_variant(&w, "", "Engine"); /* of which group? */
    models_operate(&w, NULL);
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "TargetResolved", "reason", "UnknownKind");
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_group_of_pods_is_one_replica),
        TAP(any_kind_with_a_scale_can_be_a_target),
        TAP(kinds_that_cannot_be_scaled_are_reported),
        { 0 },
    });
}
