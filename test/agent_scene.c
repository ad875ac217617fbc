/* See agent_scene.h. */
#include "agent_scene.h"

struct cluster_answer patch_sub(struct cluster *c, const struct resource *resource, const char *ns,
                                const char *name, const char *sub, str body)
{
    return cluster_ask(c, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                 .resource = resource,
                                                 .ns = str_c(ns),
                                                 .name = str_c(name),
                                                 .subresource = sub,
                                                 .body = body });
}

str owner_text(struct arena *a, const struct json *owner)
{
    if (!owner)
        return S("");
    return arena_printf(a,
                        "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\","
                        "\"controller\":true,\"name\":\"" STR_FMT "\",\"uid\":\"" STR_FMT "\"}],",
                        STR_ARG(json_text(json_at(owner, "metadata", "name", NULL))),
                        STR_ARG(json_text(json_at(owner, "metadata", "uid", NULL))));
}

void report_limit(struct scene *s, const char *ns, const char *name, int64_t milli)
{
    str body = arena_printf(
        &s->c.arena,
        "{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"a\",\"ready\":true,"
        "\"restartCount\":0,\"image\":\"i\",\"imageID\":\"\",\"state\":{\"running\":{}},\"resources\":"
        "{\"limits\":{\"cpu\":\"%lldm\"}}}]}}",
        (long long)milli);
    EQ_INT(patch_sub(&s->c, &resource_pods, ns, name, "status", body).code, 200);
}

struct world_group *group_named(struct scene *s, const char *path)
{
    for (size_t i = 0; i < s->world.n; i++)
        if (!strcmp(s->world.groups[i].path, path) && !s->world.groups[i].gone)
            return &s->world.groups[i];
    return NULL;
}

const char *pod_path(struct scene *s, const struct json *pod)
{
    str uid = json_text(json_at(pod, "metadata", "uid", NULL));
    return arena_printf(&s->c.arena, "kubepods/burstable/pod" STR_FMT, STR_ARG(uid)).p;
}

void add_pod(struct scene *s, struct pod_spec p)
{
    struct arena *a = &s->c.arena;
    str limits =
        p.limit ? arena_printf(a, "\"limits\":{\"cpu\":\"%lldm\"},", (long long)p.limit) : S("");
    str text = arena_printf(
        a,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" STR_FMT
        "\"name\":\"%s\",\"annotations\":{%s}},"
        "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"a\",\"image\":\"i\",\"resources\":{" STR_FMT
        "\"requests\":{\"cpu\":\"%lldm\"}}}]}}",
        STR_ARG(owner_text(a, p.owner)), p.name, p.annotations ? p.annotations : "",
        STR_ARG(limits), (long long)p.request);
    struct cluster_answer made = cluster_do(&s->c, KUBE_CREATE, &resource_pods, p.ns, p.name, text);
    EQ_INT(made.code, 201);
    report_limit(s, p.ns, p.name, p.limit ? p.limit : 0);
    cgroup_world_add(&s->world, pod_path(s, made.object), p.demand, p.limit);
}

struct world_group *group_of(struct scene *s, const char *ns, const char *name)
{
    return group_named(s, pod_path(s, cluster_get(&s->c, &resource_pods, ns, name)));
}

int64_t milli_of(const struct json *quantity)
{
    str text = json_text(quantity);
    return text.n > 1 ? strtoll(text.p, NULL, 10) : 0;
}

struct json *allocations(struct scene *s)
{
    return json_get(
        cluster_do(&s->c, KUBE_LIST, &market_allocation_resource, NULL, NULL, S("")).object,
        "items");
}

void act(struct scene *s)
{
    struct json *list = allocations(s);
    int64_t promised = 0;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *spec = json_get(json_item(list, i), "spec");
        const char *ns = json_text(json_get(spec, "namespace")).p,
                   *name = json_text(json_get(spec, "podName")).p;
        int64_t limit = milli_of(json_get(spec, "desiredCPULimit"));
        struct json *pod = cluster_get(&s->c, &resource_pods, ns, name);
        struct world_group *g = pod ? group_named(s, pod_path(s, pod)) : NULL;
        promised += g ? MAX(g->cfs.limit_milli, limit) : 0;
        if (!g || g->cfs.limit_milli == limit)
            continue;
        g->cfs.limit_milli = limit;
        report_limit(s, ns, name, limit);
    }
    s->most_promised = MAX(s->most_promised, promised);
}

void pass(struct scene *s, int64_t seconds)
{
    for (int64_t i = 0; i < seconds; i++) {
        cluster_until(&s->c, cluster_now(&s->c) + 1);
        if (s->idle_kubelet || s->c.deaf)
            continue;
        act(s);
        int64_t sum = 0;
        for (size_t k = 0; k < s->world.n; k++)
            sum += s->world.groups[k].gone ? 0 : s->world.groups[k].cfs.limit_milli;
        s->most_milli = MAX(s->most_milli, sum);
    }
}

void agent_up(struct scene *s)
{
    cluster_operator(&s->c, &market_agent_feature, s->settings);
}

void stopped(void *context)
{
    *(bool *)context = true;
}

void agent_down(struct scene *s)
{
    bool done = false;
    manager_stop(s->c.manager, stopped, &done);
    while (!done)
        loop_turn(s->c.loop);
    cluster_operator_down(&s->c);
}

void begin(struct scene *s)
{
    *s = (struct scene){ 0 };
    log_setup(LOG_ERROR, LOG_TEXT);
    cluster_start(&s->c, START_S);
    cgroup_world_init(&s->world, s->c.loop);
    const char *const settings[] = { "node-name", "n1", "cgroup-root", s->world.files.root, NULL };
    memcpy(s->settings, settings, sizeof(settings));
    struct cluster_answer node =
        cluster_do(&s->c, KUBE_CREATE, &resource_nodes, NULL, "n1",
                   S("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}"));
    EQ_INT(node.code, 201);
    EQ_INT(
        patch_sub(&s->c, &resource_nodes, "", "n1", "status",
                  S("{\"status\":{\"capacity\":{\"cpu\":\"2\"},\"allocatable\":{\"cpu\":\"2\"}}}"))
            .code,
        200);
}

void end(struct scene *s)
{
    cgroup_world_done(&s->world);
    cluster_stop(&s->c);
}

struct json *allocation(struct scene *s, const char *name)
{
    return cluster_get(&s->c, &market_allocation_resource, "default", name);
}

double metric(struct scene *s, const char *series)
{
    auto_buf struct buf text = { 0 };
    exposition_write(&text, manager_metrics(s->c.manager));
    str line, rest = buf_str(&text);
    while (str_cut(&rest, '\n', &line))
        if (str_starts(line, str_c(series)))
            return strtod(line.p + strlen(series), NULL);
    return NAN;
}
