/* A cluster with the Gateway API, a model, a template for it and a gateway, for tests of runtime
 * configuration. */
#ifndef FLYBALL_AIM_WORLD_H
#define FLYBALL_AIM_WORLD_H

#include "base/log.h"
#include "cluster.h"
#include "runtimeconfig/aim_kinds.h"
#include "runtimeconfig/runtimeconfig_controller.h"
#include "runtimeconfig/status_core.h"
#include "tap.h"

enum { WORLD_START = 1780000000 };

#define WORLD_GATEWAY                                                                              \
    "{metadata: {name: inference-gateway}, spec: {gatewayClassName: test, listeners: [{name: "     \
    "http, port: 80, protocol: HTTP, hostname: models.example.org}]}}"
#define WORLD_MODEL "{metadata: {name: meta-llama-3-8b}, spec: {image: 'example.org/llama:1'}}"
#define WORLD_TEMPLATE                                                                             \
    "{metadata: {name: llama-latency}, spec: {modelName: meta-llama-3-8b, metric: latency, "       \
    "precision: fp16, modelSources: [{name: meta-llama/Llama-3-8B, sourceUri: 'hf://meta-llama/Ll" \
    "ama-3-8B', size: 16Gi}]}}"

static UNUSED const struct resource *kind(enum aim_kind k)
{
    return &aim_kinds(AIM_GROUP)->at[k];
}

static UNUSED struct json *yaml(struct cluster *c, const char *text)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena, str_c(text), &tree, &e), &e);
    return tree;
}

static UNUSED void create(struct cluster *c, const struct resource *resource, const char *ns,
                          const char *text)
{
    struct json *o = yaml(c, text);
    auto_buf struct buf version = { 0 };
    resource_api_version(resource, &version);
    json_set_str(&c->arena, o, "apiVersion", buf_str(&version));
    json_set_str(&c->arena, o, "kind", str_c(resource->kind));
    cluster_create(c, resource, ns, o);
}

static UNUSED void change(struct cluster *c, const struct resource *resource, const char *ns,
                          const char *name, const char *text)
{
    struct cluster_answer a =
        cluster_do(c, KUBE_MERGE_PATCH, resource, ns, name, json_to_str(&c->arena, yaml(c, text)));
    EQ_INT(a.code, 200);
}

static UNUSED void settle(struct cluster *c)
{
    cluster_until(c, cluster_now(c) + 3);
}

/* What somebody else's controller would write, and time for ours to see it. */
static UNUSED void set_status(struct cluster *c, const struct resource *resource, const char *ns,
                              const char *name, const char *status)
{
    struct cluster_answer a = { .c = c };
    kube_send(c->kube, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                               .resource = resource,
                                               .ns = str_c(ns),
                                               .name = str_c(name),
                                               .subresource = "status",
                                               .body = kube_status_body(&c->arena, yaml(c, status)),
                                               .done = cluster_answered,
                                               .context = &a });
    while (!a.done)
        loop_turn(c->loop);
    EQ_INT(a.code, 200);
    settle(c);
}

/* The world without the operator. */
static UNUSED void world_start(struct cluster *c)
{
    static const char *const namespaces[] = { "ml-team", "gateways", "kaiwo-system", "other" };
    log_setup(LOG_ERROR, LOG_TEXT);
    cluster_start(c, WORLD_START);
    cluster_install(c, manifests_shapes);
    for (size_t i = 0; i < countof(namespaces); i++)
        create(c, &resource_namespaces, NULL,
               arena_printf(&c->arena, "{metadata: {name: %s}}", namespaces[i]).p);
    create(c, &aim_resource_gateways, "gateways", WORLD_GATEWAY);
    create(c, kind(AIM_CLUSTER_MODEL), NULL, WORLD_MODEL);
    create(c, kind(AIM_CLUSTER_TEMPLATE), NULL, WORLD_TEMPLATE);
}

static UNUSED void world_operate(struct cluster *c)
{
    static const char *const settings[] = { "aim-operator-namespace", "kaiwo-system", NULL };
    cluster_operator(c, &runtimeconfig_feature, settings);
    settle(c);
}

static UNUSED struct json *status_of(struct cluster *c, enum aim_kind k, const char *ns,
                                     const char *name)
{
    return json_get(cluster_get(c, kind(k), ns, name), "status");
}

static UNUSED str reason_of(const struct json *status, const char *type)
{
    return json_text(json_get(aim_status_find(status, type), "reason"));
}

static UNUSED str path_of(const struct json *status)
{
    return json_text(json_at(status, "routing", "path", NULL));
}

static UNUSED str route_path(struct cluster *c, const char *ns, const char *name)
{
    const struct json *route = cluster_get(c, &aim_resource_httproutes, ns, name);
    const struct json *rule = json_item(json_at(route, "spec", "rules", NULL), 0);
    const struct json *match = json_item(json_get(rule, "matches"), 0);
    return json_text(json_at(match, "path", "value", NULL));
}

static UNUSED size_t events(struct cluster *c, const char *ns, const char *about,
                            const char *reason)
{
    struct cluster_answer a = cluster_do(c, KUBE_LIST, &resource_events, ns, NULL, S(""));
    const struct json *items = json_get(a.object, "items");
    size_t n = 0;
    for (size_t i = 0; i < json_len(items); i++) {
        const struct json *e = json_item(items, i);
        if (str_eqc(json_text(json_get(e, "reason")), reason) &&
            str_eqc(json_text(json_at(e, "involvedObject", "name", NULL)), about))
            n += (size_t)json_int(json_get(e, "count"), 1);
    }
    return n;
}

#endif
