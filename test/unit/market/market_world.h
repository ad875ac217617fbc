/* What the tests of the market's controller share: pods on the embedded server and a kubelet that does as
 * it is told. */
#ifndef FLYBALL_MARKET_WORLD_H
#define FLYBALL_MARKET_WORLD_H

#include "base/log.h"
#include "base/rfc3339.h"
#include "cluster.h"
#include "market/market_controller.h"
#include "market/market_records.h"
#include "tap.h"

static const char ns[] = "default";
#define NOON 1780488000 /* 2026-06-03T12:00:00Z */

static UNUSED struct json *from_yaml(struct cluster *c, const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena, str_c(yaml), &tree, &e), &e);
    return tree;
}

static UNUSED struct cluster_answer patch(struct cluster *c, const struct resource *resource,
                                          const char *name, const char *subresource, str body)
{
    struct cluster_answer a = cluster_ask(c, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                                    .resource = resource,
                                                                    .ns = S("default"),
                                                                    .name = str_c(name),
                                                                    .subresource = subresource,
                                                                    .body = body });
    if (a.code != 200)
        fprintf(stderr, "# patch %s %s: %d " STR_FMT "\n", resource->plural, name, a.code,
                STR_ARG(json_to_str(&c->arena, a.object)));
    return a;
}

/* ---- the kubelet */

static UNUSED struct json *statuses_of(struct cluster *c, const struct json *containers)
{
    struct json *list = json_new_arr(&c->arena);
    for (size_t i = json_len(containers); i-- > 0;) { /* the order of statuses is another one */
        const struct json *one = json_item(containers, i);
        struct json *status = json_new_obj(&c->arena), *resources = json_get(one, "resources");
        json_set(&c->arena, status, S("name"), json_get(one, "name"));
        json_set(&c->arena, status, S("image"), json_get(one, "image"));
        json_set_str(&c->arena, status, "imageID", S(""));
        json_set_bool(&c->arena, status, "ready", true);
        json_set_int(&c->arena, status, "restartCount", 0);
        json_make(&c->arena, status, "state", "running", NULL);
        json_set(&c->arena, status, S("resources"),
                 resources ? resources : json_new_obj(&c->arena));
        if (json_get(resources, "requests"))
            json_set(&c->arena, status, S("allocatedResources"), json_get(resources, "requests"));
        json_push(&c->arena, list, status);
    }
    return list;
}

/* The node follows the spec, whatever it says. */
static UNUSED void enact(struct cluster *c, const char *pod)
{
    const struct json *o = cluster_get(c, &resource_pods, ns, pod);
    struct json *body = json_new_obj(&c->arena),
                *status = json_make(&c->arena, body, "status", NULL);
    json_set_str(&c->arena, status, "phase", S("Running"));
    json_set(&c->arena, status, S("conditions"), json_new_arr(&c->arena));
    json_set(&c->arena, status, S("containerStatuses"),
             statuses_of(c, json_at(o, "spec", "containers", NULL)));
    if (json_at(o, "spec", "initContainers", NULL))
        json_set(&c->arena, status, S("initContainerStatuses"),
                 statuses_of(c, json_at(o, "spec", "initContainers", NULL)));
    patch(c, &resource_pods, pod, "status", json_to_str(&c->arena, body));
}

/* The node says something about the resize instead. */
static UNUSED void object(struct cluster *c, const char *pod, const char *type, const char *reason)
{
    const struct json *o = cluster_get(c, &resource_pods, ns, pod);
    char text[RFC3339_TEXT_MAX];
    rfc3339_text(cluster_now(c), text);
    patch(
        c, &resource_pods, pod, "status",
        arena_printf(&c->arena,
                     "{\"status\":{\"conditions\":[{\"type\":\"%s\",\"status\":\"True\",\"reason\":"
                     "\"%s\",\"message\":\"Node didn't have enough capacity: cpu\","
                     "\"observedGeneration\":%lld,\"lastTransitionTime\":\"%s\"}]}}",
                     type, reason,
                     (long long)json_int(json_at(o, "metadata", "generation", NULL), 0), text));
}

/* ---- pods and allocations */

static UNUSED void add_pod(struct cluster *c, const char *yaml)
{
    struct json *pod = from_yaml(c, yaml);
    cluster_create(c, &resource_pods, ns, pod);
    enact(c, json_text(json_at(pod, "metadata", "name", NULL)).p);
}

static UNUSED void want(struct cluster *c, const char *pod, const char *request, const char *limit)
{
    const struct json *o = cluster_get(c, &resource_pods, ns, pod);
    str name = arena_printf(&c->arena, "default-%s", pod);
    struct json *tree = from_yaml(
        c, arena_printf(&c->arena,
                        "{apiVersion: allocation.mbcas.io/v1alpha1, kind: PodAllocation, metadata: "
                        "{name: %s, ownerReferences: [{apiVersion: v1, kind: Pod, name: %s, uid: "
                        "%s}]}, spec: {namespace: default, podName: %s, desiredCPURequest: '%s', "
                        "desiredCPULimit: '%s'}}",
                        name.p, pod, json_text(json_at(o, "metadata", "uid", NULL)).p, pod, request,
                        limit)
               .p);
    if (!cluster_get(c, &podallocation_resource, ns, name.p))
        cluster_create(c, &podallocation_resource, ns, tree);
    else
        patch(c, &podallocation_resource, name.p, NULL,
              arena_printf(&c->arena,
                           "{\"spec\":{\"desiredCPURequest\":\"%s\",\"desiredCPULimit\":\"%s\"}}",
                           request, limit));
}

static UNUSED void pass(struct cluster *c, int64_t seconds)
{
    cluster_until(c, cluster_now(c) + seconds);
}

static UNUSED str said(struct cluster *c, const char *pod, const char *field)
{
    str name = arena_printf(&c->arena, "default-%s", pod);
    const struct json *o = cluster_get(c, &podallocation_resource, ns, name.p);
    return json_text(json_at(o, "status", field, NULL));
}

/* "limit/request" of a container in the pod's spec. */
static UNUSED str has(struct cluster *c, const char *pod, const char *container)
{
    const struct json *o = cluster_get(c, &resource_pods, ns, pod);
    static const char *const lists[] = { "containers", "initContainers" };
    for (size_t k = 0; k < countof(lists); k++) {
        const struct json *list = json_at(o, "spec", lists[k], NULL);
        for (size_t i = 0; i < json_len(list); i++) {
            const struct json *one = json_item(list, i);
            if (str_eqc(json_text(json_get(one, "name")), container))
                return arena_printf(
                    &c->arena, STR_FMT "/" STR_FMT,
                    STR_ARG(json_text(json_at(one, "resources", "limits", "cpu", NULL))),
                    STR_ARG(json_text(json_at(one, "resources", "requests", "cpu", NULL))));
        }
    }
    return S("no such container");
}

static UNUSED void is_said(struct cluster *c, const char *pod, const char *phase,
                           const char *reason)
{
    EQ_STR(said(c, pod, "phase"), str_c(phase));
    EQ_STR(said(c, pod, "reason"), str_c(reason));
}

static UNUSED size_t events(struct cluster *c, const char *reason)
{
    struct cluster_answer a = cluster_do(c, KUBE_LIST, &resource_events, ns, NULL, S(""));
    const struct json *list = json_get(a.object, "items");
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++)
        n += str_eqc(json_text(json_get(json_item(list, i), "reason")), reason);
    return n;
}

static UNUSED size_t writes_to(const struct cluster *c, const char *path)
{
    size_t n = 0, found;
    for (str rest = buf_str(&c->log); (found = str_find(rest, str_c(path))) != SIZE_MAX; n++)
        rest = str_from(rest, found + 1);
    return n;
}

static UNUSED void start(struct cluster *c, const char *const *settings)
{
    log_setup(LOG_ERROR, LOG_TEXT);
    cluster_start(c, NOON);
    cluster_create(c, &resource_nodes, NULL,
                   from_yaml(c, "{apiVersion: v1, kind: Node, metadata: {name: n1}}"));
    cluster_operator(c, &market_feature, settings);
    pass(c, 1);
}

static UNUSED void start_with(struct cluster *c, const char *pod)
{
    start(c, NULL);
    add_pod(c, pod);
}

/* The node carries out what was sent, and that is said. */
static UNUSED void follows(struct cluster *c, const char *pod)
{
    enact(c, pod);
    pass(c, 1);
    is_said(c, pod, "Applied", "Applied");
}

/* What is wished comes true; then the next wish need not wait. */
static UNUSED void get(struct cluster *c, const char *pod, const char *request, const char *limit)
{
    want(c, pod, request, limit);
    pass(c, 1);
    follows(c, pod);
    pass(c, 9);
}

static UNUSED void restart(struct cluster *c, const char *const *settings)
{
    cluster_operator_down(c);
    cluster_operator(c, &market_feature, settings);
}

#define POD(name, more, resources)                                                                 \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name more "}, spec: {nodeName: n1, "           \
    "containers: [{name: app, image: x, resources: " resources "}]}}"
#define BURSTABLE "{limits: {cpu: 500m, memory: 64Mi}, requests: {cpu: 250m, memory: 64Mi}}"

#endif
