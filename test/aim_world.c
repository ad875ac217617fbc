/* See aim_world.h. */
#include "aim_world.h"

#include "base/log.h"

const struct resource *aim_test_kind(enum aim_kind k)
{
    return &aim_kinds(AIM_GROUP)->at[k];
}

struct json *aim_test_yaml(struct cluster *c, const char *text)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena, str_c(text), &tree, &e), &e);
    return tree;
}

void aim_test_create(struct cluster *c, const struct resource *resource, const char *ns,
                     const char *text)
{
    struct json *o = aim_test_yaml(c, text);
    auto_buf struct buf version = { 0 };
    resource_api_version(resource, &version);
    json_set_str(&c->arena, o, "apiVersion", buf_str(&version));
    json_set_str(&c->arena, o, "kind", str_c(resource->kind));
    cluster_create(c, resource, ns, o);
}

void aim_test_patch(struct cluster *c, const struct resource *resource, const char *ns,
                    const char *name, const char *text)
{
    struct cluster_answer a = cluster_do(c, KUBE_MERGE_PATCH, resource, ns, name,
                                         json_to_str(&c->arena, aim_test_yaml(c, text)));
    EQ_INT(a.code, 200);
}

void aim_test_wait(struct cluster *c)
{
    cluster_until(c, cluster_now(c) + 3);
}

void aim_test_set_status(struct cluster *c, const struct resource *resource, const char *ns,
                         const char *name, const char *status)
{
    struct cluster_answer a =
        cluster_ask(c, (struct kube_request){
                           .verb = KUBE_MERGE_PATCH,
                           .resource = resource,
                           .ns = str_c(ns),
                           .name = str_c(name),
                           .subresource = "status",
                           .body = kube_status_body(&c->arena, aim_test_yaml(c, status)) });
    EQ_INT(a.code, 200);
    aim_test_wait(c);
}

void aim_test_delete(struct cluster *c, const struct resource *resource, const char *ns,
                     const char *name)
{
    EQ_INT(cluster_do(c, KUBE_DELETE, resource, ns, name, S("")).code, 200);
}

void aim_test_create_model(struct cluster *c)
{
    aim_test_create(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, WORLD_MODEL);
}

void aim_test_delete_model(struct cluster *c)
{
    aim_test_delete(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, "meta-llama-3-8b");
}

void aim_test_create_template(struct cluster *c)
{
    aim_test_create(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, WORLD_TEMPLATE);
}

void aim_test_delete_template(struct cluster *c)
{
    aim_test_delete(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, "llama-latency");
}

void aim_test_start(struct cluster *c)
{
    static const char *const namespaces[] = { "ml-team", "gateways", "kaiwo-system", "other" };
    log_setup(LOG_ERROR, LOG_TEXT);
    cluster_start(c, WORLD_START);
    cluster_install(c, manifests_shapes);
    for (size_t i = 0; i < countof(namespaces); i++)
        aim_test_create(c, &resource_namespaces, NULL,
                        arena_printf(&c->arena, "{metadata: {name: %s}}", namespaces[i]).p);
    aim_test_create(c, &aim_resource_gateways, "gateways", WORLD_GATEWAY);
    aim_test_create(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, WORLD_MODEL);
    aim_test_create(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, WORLD_TEMPLATE);
}

void aim_test_start_operator(struct cluster *c)
{
    static const char *const settings[] = { "aim-operator-namespace", "kaiwo-system",
                                            "inspect-images", "false", NULL };
    cluster_operator(c, &runtimeconfig_feature, settings);
    aim_test_wait(c);
}

struct json *aim_test_status(struct cluster *c, enum aim_kind k, const char *ns, const char *name)
{
    return json_get(cluster_get(c, aim_test_kind(k), ns, name), "status");
}

str aim_test_reason(const struct json *status, const char *type)
{
    return json_text(json_get(aim_status_find(status, type), "reason"));
}

str aim_test_path(const struct json *status)
{
    return json_text(json_at(status, "routing", "path", NULL));
}

str aim_test_route_path(struct cluster *c, const char *ns, const char *name)
{
    const struct json *route = cluster_get(c, &aim_resource_httproutes, ns, name);
    const struct json *rule = json_item(json_at(route, "spec", "rules", NULL), 0);
    const struct json *match = json_item(json_get(rule, "matches"), 0);
    return json_text(json_at(match, "path", "value", NULL));
}

size_t aim_test_count_events(struct cluster *c, const char *ns, const char *about,
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
