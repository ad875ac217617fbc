/* See saturation_world.h. */
#include "saturation_world.h"

void models_serve(void *context, struct exchange *x)
{
    struct models_pod *pod = context;
    auto_buf struct buf text = { 0 };
    pod->scrapes++;
    if (pod->page)
        buf_put(&text, str_c(pod->page));
    else if (!pod->mute)
        buf_printf(&text,
                   "vllm:kv_cache_usage_perc{model_name=\"llama\"} %g\n"
                   "vllm:num_requests_waiting{model_name=\"llama\"} %g\n",
                   pod->kv, pod->queue);
    if (!pod->page && !pod->mute && !pod->countless)
        buf_printf(&text, "vllm:request_success_total{model_name=\"llama\"} %g\n", pod->requests);
    exchange_answer(x, pod->silent ? 500 : 200,
                    HTTP_HEADERS({ S("content-type"), S("text/plain") }), buf_str(&text));
}

struct json *models_read(struct models *w, const char *text)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&w->c.arena, str_c(text), &tree, &e), &e);
    return tree;
}

void models_create(struct models *w, const struct resource *resource, const char *ns, str text)
{
    cluster_create(&w->c, resource, ns, models_read(w, text.p));
}

void models_define(struct models *w, const struct resource *r)
{
    models_create(
        w, &resource_crds, NULL,
        arena_printf(
            &w->c.arena,
            "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, "
            "metadata: {name: %s.%s, annotations: {api-approved.kubernetes.io: unapproved}}, "
            "spec: {group: %s, scope: Namespaced, names: "
            "{kind: %s, plural: %s}, versions: [{name: %s, served: true, storage: "
            "true, schema: {openAPIV3Schema: {type: object, "
            "x-kubernetes-preserve-unknown-fields: true}}}]}}",
            r->plural, r->group, r->group, r->kind, r->plural, r->version));
}

struct cluster_answer models_patch(struct models *w, const struct resource *resource,
                                   const char *name, const char *subresource, str body)
{
    struct cluster_answer a = cluster_ask(&w->c, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                                        .resource = resource,
                                                                        .ns = S(MODELS_NS),
                                                                        .name = str_c(name),
                                                                        .subresource = subresource,
                                                                        .body = body });
    if (a.code != 200)
        fprintf(stderr, "patch %s %s: %d %s\n", resource->plural, name, a.code,
                json_to_str(&w->c.arena, a.object).p);
    return a;
}

str models_uid(struct models *w, const struct resource *resource, const char *name)
{
    return json_text(
        json_at(cluster_get(&w->c, resource, MODELS_NS, name), "metadata", "uid", NULL));
}

void models_config(struct models *w, const char *ns, const char *name, const char *data)
{
    models_create(w, &resource_configmaps, ns,
                  arena_printf(&w->c.arena,
                               "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: %s}",
                               name, data));
}

void models_edit(struct models *w, const char *name, const char *data)
{
    struct cluster_answer a =
        cluster_do(&w->c, KUBE_MERGE_PATCH, &resource_configmaps, MODELS_HOME, name,
                   json_to_str(&w->c.arena,
                               models_read(w, arena_printf(&w->c.arena, "{data: %s}", data).p)));
    EQ_INT(a.code, 200);
}

void models_ready(struct models *w, const char *pod, bool ready)
{
    models_patch(
        w, &resource_pods, pod, "status",
        arena_printf(&w->c.arena,
                     "{\"status\":{\"phase\":\"Running\",\"podIP\":\"127.0.0.1\",\"podIPs\":"
                     "[{\"ip\":\"127.0.0.1\"}],\"conditions\":[{\"type\":\"Ready\",\"status\":"
                     "\"%s\"}]}}",
                     ready ? "True" : "False"));
}

void models_pod(struct models *w, const char *workload, bool stateful)
{
    struct models_pod *pod = &w->pods[w->pod_n];
    struct arena *a = &w->c.arena;
    err_t e;
    snprintf(pod->name, sizeof(pod->name), "%s-1-%zu", workload, w->pod_n++);
    snprintf(pod->workload, sizeof(pod->workload), "%s", workload);
    cluster_check(http_server_new(w->c.loop,
                                  &(struct http_server_options){ .on_request = models_serve,
                                                                 .context = pod },
                                  &pod->server, &e),
                  &e);
    str set = arena_printf(a, stateful ? "%s" : "%s-1", workload);
    str uid = models_uid(w, stateful ? &resource_statefulsets : &resource_replicasets, set.p);
    models_create(
        w, &resource_pods, MODELS_NS,
        arena_printf(a,
                     "{apiVersion: v1, kind: Pod, metadata: {name: %s, ownerReferences: "
                     "[{apiVersion: apps/v1, kind: %s, name: %s, uid: " STR_FMT
                     ", controller: true}]}, spec: {containers: [{name: vllm, image: vllm, "
                     "ports: [{name: metrics, containerPort: %u}]}]}}",
                     pod->name, stateful ? "StatefulSet" : "ReplicaSet", set.p, STR_ARG(uid),
                     http_server_port(pod->server)));
    models_ready(w, pod->name, true);
}

size_t models_count(const struct models *w, const char *workload)
{
    size_t n = 0;
    for (size_t i = 0; i < w->pod_n; i++)
        n += !w->pods[i].gone && !strcmp(w->pods[i].workload, workload);
    return n;
}

void models_follow(struct models *w, const char *workload)
{
    const struct json *o = cluster_get(&w->c, &resource_deployments, MODELS_NS, workload);
    size_t wanted = (size_t)json_int(json_at(o, "spec", "replicas", NULL), 0);
    while (models_count(w, workload) < wanted)
        models_pod(w, workload, false);
    for (size_t i = w->pod_n; i-- && models_count(w, workload) > wanted;)
        if (!w->pods[i].gone && !strcmp(w->pods[i].workload, workload)) {
            w->pods[i].gone = true;
            cluster_do(&w->c, KUBE_DELETE, &resource_pods, MODELS_NS, w->pods[i].name,
                       S("{\"gracePeriodSeconds\":0}"));
        }
    models_patch(
        w, &resource_deployments, workload, "status",
        arena_printf(&w->c.arena,
                     "{\"status\":{\"replicas\":%zu,\"readyReplicas\":%zu,\"observedGeneration\""
                     ":%lld}}",
                     wanted, wanted,
                     (long long)json_int(json_at(o, "metadata", "generation", NULL), 1)));
}

void models_scale(struct models *w, const char *workload, int replicas)
{
    models_patch(w, &resource_deployments, workload, NULL,
                 arena_printf(&w->c.arena, "{\"spec\":{\"replicas\":%d}}", replicas));
    models_follow(w, workload);
}

void models_workload(struct models *w, const char *name, int replicas)
{
    struct arena *a = &w->c.arena;
    models_create(
        w, &resource_deployments, MODELS_NS,
        arena_printf(a,
                     "{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: "
                     "{replicas: %d, selector: {matchLabels: {app: %s}}, template: "
                     "{metadata: {labels: {app: %s}}, spec: {containers: [{name: vllm, "
                     "image: vllm}]}}}}",
                     name, replicas, name, name));
    models_create(
        w, &resource_replicasets, MODELS_NS,
        arena_printf(a,
                     "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: %s-1, "
                     "ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: %s, "
                     "uid: " STR_FMT ", controller: true}]}, spec: {replicas: %d, selector: "
                     "{matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, "
                     "spec: {containers: [{name: vllm, image: vllm}]}}}}",
                     name, name, STR_ARG(models_uid(w, &resource_deployments, name)), replicas,
                     name, name));
    models_follow(w, name);
}

void models_variant(struct models *w, const char *name, const char *accelerator, const char *cost,
                    const char *more)
{
    models_create(
        w, &saturation_variant_resource, MODELS_NS,
        arena_printf(&w->c.arena,
                     "{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: "
                     "{name: %s, labels: {inference.optimization/acceleratorName: %s}}, "
                     "spec: {%s modelID: llama, variantCost: '%s', scaleTargetRef: {kind: "
                     "Deployment, name: %s}}}",
                     name, accelerator, more, cost, name));
}

void models_load(struct models *w, const char *workload, double kv, double queue)
{
    for (size_t i = 0; i < w->pod_n; i++)
        if (!strcmp(w->pods[i].workload, workload)) {
            w->pods[i].kv = kv;
            w->pods[i].queue = queue;
        }
}

const struct json *models_status(struct models *w, const char *variant)
{
    return json_get(cluster_get(&w->c, &saturation_variant_resource, MODELS_NS, variant), "status");
}

int64_t models_desired(struct models *w, const char *variant)
{
    return json_int(json_at(models_status(w, variant), "desiredOptimizedAlloc", "numReplicas",
                            NULL),
                    -1);
}

str models_condition(struct models *w, const char *variant, const char *type, const char *field)
{
    const struct json *list = json_get(models_status(w, variant), "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return json_text(json_get(json_item(list, i), field));
    return S("");
}

int64_t models_replicas(struct models *w, const char *workload)
{
    const struct json *o = cluster_get(&w->c, &resource_deployments, MODELS_NS, workload);
    return json_int(json_at(o, "spec", "replicas", NULL), -1);
}

size_t models_events(struct models *w, const char *reason)
{
    struct cluster_answer a =
        cluster_do(&w->c, KUBE_LIST, &resource_events, MODELS_NS, NULL, S(""));
    const struct json *list = json_get(a.object, "items");
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++)
        n += str_eqc(json_text(json_get(json_item(list, i), "reason")), reason);
    return n;
}

bool models_logged(const struct models *w, const char *text)
{
    return str_find(buf_str(&w->log), str_c(text)) != SIZE_MAX;
}

void models_look(void *context, const struct metric_view *view)
{
    struct models_gauge *g = context;
    if (strcmp(view->spec->name, g->family))
        return;
    for (size_t i = 0; view->spec->labels[i]; i++)
        if (!g->values[i] || !str_eqc(view->values[i], g->values[i]))
            return;
    g->found = view->value;
}

double models_gauge(struct models *w, const char *family, const char *const *values)
{
    struct models_gauge g = { family, values, -1 };
    metrics_read(kube_metrics(w->c.operator_kube),
                 &(struct metrics_reader){ .series = models_look, .context = &g });
    return g.found;
}

void models_pass(struct models *w, int64_t seconds)
{
    cluster_until(&w->c, cluster_now(&w->c) + seconds);
}

void models_line(void *context, str line)
{
    struct models *w = context;
    buf_put(&w->log, line);
    buf_putc(&w->log, '\n');
}

void models_operate(struct models *w, const char *const *settings)
{
    cluster_operator(&w->c, &saturation_feature, settings);
    models_pass(w, 1);
}

void models_prepare(struct models *w)
{
    *w = (struct models){ 0 };
    log_setup(LOG_DEBUG, LOG_TEXT);
    log_redirect(models_line, w);
}

void models_spaces(struct models *w)
{
    static const char *const spaces[] = { MODELS_NS, MODELS_HOME };
    for (size_t i = 0; i < countof(spaces); i++)
        models_create(w, &resource_namespaces, NULL,
                      arena_printf(&w->c.arena,
                                   "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}",
                                   spaces[i]));
}

void models_start(struct models *w)
{
    models_prepare(w);
    cluster_start(&w->c, 1780473600);
    models_spaces(w);
}

void models_begin(struct models *w)
{
    models_start(w);
    models_config(w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "\"}");
}

void models_web(struct models *w, int replicas, double kv, double queue, const char *more)
{
    models_begin(w);
    models_workload(w, "web", replicas);
    models_variant(w, "web", "A100", "10", more);
    models_load(w, "web", kv, queue);
    models_operate(w, NULL);
    models_pass(w, 2);
}

void models_stop(struct models *w)
{
    if (w->c.manager)
        cluster_operator_down(&w->c);
    for (size_t i = 0; i < w->pod_n; i++)
        http_server_free(w->pods[i].server);
    cluster_stop(&w->c);
    log_redirect(NULL, NULL);
    buf_done(&w->log);
}
