/* The world of the controller's tests: see market_world.h. */
#include "market_world.h"

#include "base/rfc3339.h"

struct json *world_parse_yaml(struct cluster *c, const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena, str_c(yaml), &tree, &e), &e);
    return tree;
}

struct cluster_answer world_patch(struct cluster *c, const struct resource *resource,
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

struct json *world_make_statuses(struct cluster *c, const struct json *containers)
{
    struct json *list = json_new_arr(&c->arena);
    for (size_t i = json_len(containers);
         i-- > 0;) { /* the order of statuses differs from that of the spec */
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

void world_enact(struct cluster *c, const char *pod)
{
    const struct json *o = cluster_get(c, &resource_pods, WORLD_NS, pod);
    struct json *body = json_new_obj(&c->arena),
                *status = json_make(&c->arena, body, "status", NULL);
    json_set_str(&c->arena, status, "phase", S("Running"));
    json_set(&c->arena, status, S("conditions"), json_new_arr(&c->arena));
    json_set(&c->arena, status, S("containerStatuses"),
             world_make_statuses(c, json_at(o, "spec", "containers", NULL)));
    if (json_at(o, "spec", "initContainers", NULL))
        json_set(&c->arena, status, S("initContainerStatuses"),
                 world_make_statuses(c, json_at(o, "spec", "initContainers", NULL)));
    world_patch(c, &resource_pods, pod, "status", json_to_str(&c->arena, body));
}

void world_set_resize_condition(struct cluster *c, const char *pod, const char *type,
                                const char *reason)
{
    const struct json *o = cluster_get(c, &resource_pods, WORLD_NS, pod);
    char text[RFC3339_TEXT_MAX];
    rfc3339_text(cluster_now(c), text);
    world_patch(
        c, &resource_pods, pod, "status",
        arena_printf(&c->arena,
                     "{\"status\":{\"conditions\":[{\"type\":\"%s\",\"status\":\"True\",\"reason\":"
                     "\"%s\",\"message\":\"Node didn't have enough capacity: cpu\","
                     "\"observedGeneration\":%lld,\"lastTransitionTime\":\"%s\"}]}}",
                     type, reason,
                     (long long)json_int(json_at(o, "metadata", "generation", NULL), 0), text));
}

/* ---- pods and allocations */

void world_add_pod(struct cluster *c, const char *yaml)
{
    struct json *pod = world_parse_yaml(c, yaml);
    cluster_create(c, &resource_pods, WORLD_NS, pod);
    world_enact(c, json_text(json_at(pod, "metadata", "name", NULL)).p);
}

void world_set_desired(struct cluster *c, const char *pod, const char *request, const char *limit)
{
    const struct json *o = cluster_get(c, &resource_pods, WORLD_NS, pod);
    str name = arena_printf(&c->arena, "default-%s", pod);
    struct json *tree = world_parse_yaml(
        c, arena_printf(&c->arena,
                        "{apiVersion: allocation.mbcas.io/v1alpha1, kind: PodAllocation, metadata: "
                        "{name: %s, ownerReferences: [{apiVersion: v1, kind: Pod, name: %s, uid: "
                        "%s}]}, spec: {namespace: default, podName: %s, desiredCPURequest: '%s', "
                        "desiredCPULimit: '%s'}}",
                        name.p, pod, json_text(json_at(o, "metadata", "uid", NULL)).p, pod, request,
                        limit)
               .p);
    if (!cluster_get(c, &market_allocation_resource, WORLD_NS, name.p))
        cluster_create(c, &market_allocation_resource, WORLD_NS, tree);
    else
        world_patch(
            c, &market_allocation_resource, name.p, NULL,
            arena_printf(&c->arena,
                         "{\"spec\":{\"desiredCPURequest\":\"%s\",\"desiredCPULimit\":\"%s\"}}",
                         request, limit));
}

void world_pass_time(struct cluster *c, int64_t seconds)
{
    cluster_until(c, cluster_now(c) + seconds);
}

str world_status(struct cluster *c, const char *pod, const char *field)
{
    str name = arena_printf(&c->arena, "default-%s", pod);
    const struct json *o = cluster_get(c, &market_allocation_resource, WORLD_NS, name.p);
    return json_text(json_at(o, "status", field, NULL));
}

str world_container_cpu(struct cluster *c, const char *pod, const char *container)
{
    const struct json *o = cluster_get(c, &resource_pods, WORLD_NS, pod);
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

void world_expect_status(struct cluster *c, const char *pod, const char *phase, const char *reason)
{
    EQ_STR(world_status(c, pod, "phase"), str_c(phase));
    EQ_STR(world_status(c, pod, "reason"), str_c(reason));
}

size_t world_count_events(struct cluster *c, const char *reason)
{
    struct cluster_answer a = cluster_do(c, KUBE_LIST, &resource_events, WORLD_NS, NULL, S(""));
    const struct json *list = json_get(a.object, "items");
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++)
        n += str_eqc(json_text(json_get(json_item(list, i), "reason")), reason);
    return n;
}

size_t world_count_requests(const struct cluster *c, const char *path)
{
    size_t n = 0, found;
    for (str rest = buf_str(&c->log); (found = str_find(rest, str_c(path))) != SIZE_MAX; n++)
        rest = str_from(rest, found + 1);
    return n;
}

void world_start(struct cluster *c, const char *const *settings)
{
    log_setup(LOG_ERROR, LOG_TEXT);
    cluster_start(c, NOON);
    cluster_create(c, &resource_nodes, NULL,
                   world_parse_yaml(c, "{apiVersion: v1, kind: Node, metadata: {name: n1}}"));
    cluster_operator(c, &market_feature, settings);
    world_pass_time(c, 1);
}

void world_start_with_pod(struct cluster *c, const char *pod)
{
    world_start(c, NULL);
    world_add_pod(c, pod);
}

void world_enact_and_verify(struct cluster *c, const char *pod)
{
    world_enact(c, pod);
    world_pass_time(c, 1);
    world_expect_status(c, pod, "Applied", "Applied");
}

void world_apply_desired(struct cluster *c, const char *pod, const char *request, const char *limit)
{
    world_set_desired(c, pod, request, limit);
    world_pass_time(c, 1);
    world_enact_and_verify(c, pod);
    world_pass_time(c, 9);
}

void world_restart(struct cluster *c, const char *const *settings)
{
    cluster_operator_down(c);
    cluster_operator(c, &market_feature, settings);
}
