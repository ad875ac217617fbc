/* Models on a virtual cluster (cluster.h): workloads with pods that serve /metrics as a vLLM server does,
 * and the ConfigMaps and variants around them. Time costs nothing.
 *
 *     struct models w;
 *     models_start(&w);
 *     models_workload(&w, "web", 2);
 *     models_variant(&w, "web", "A100", "10", "");
 *     models_load(&w, "web", 0.9, 7);          every pod of web: KV cache, queue
 *     models_pass(&w, 60);
 */
#ifndef FLYBALL_SATURATION_WORLD_H
#define FLYBALL_SATURATION_WORLD_H

#include "base/log.h"
#include "cluster.h"
#include "saturation/saturation_controller.h"
#include "saturation/saturation_records.h"
#include "tap.h"

#define MODELS_NS "llm"
#define MODELS_HOME "workload-variant-autoscaler-system"
#define MODELS_THRESHOLDS                                                                          \
    "kvCacheThreshold: 0.80\\nqueueLengthThreshold: 5\\nkvSpareTrigger: 0.10\\nqueueSpareTrigger: 3\\n"

enum { MODELS_PODS = 64 };

struct models_pod {
    char name[64], workload[64];
    struct http_server *server;
    double kv, queue, requests;
    size_t scrapes;
    const char *page; /* served instead; NULL: what the numbers say */
    bool silent;      /* answers 500 */
    bool mute;        /* serves no series of the model */
    bool countless;   /* nor how many requests it had */
    bool gone;
};

struct models {
    struct cluster c;
    struct models_pod pods[MODELS_PODS];
    size_t pod_n;
    struct buf log;
};

static UNUSED void models_serve(void *context, struct exchange *x)
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

/* ---- objects */

static UNUSED struct json *models_read(struct models *w, const char *text)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&w->c.arena, str_c(text), &tree, &e), &e);
    return tree;
}

static UNUSED void models_create(struct models *w, const struct resource *resource, const char *ns,
                                 str text)
{
    cluster_create(&w->c, resource, ns, models_read(w, text.p));
}

static UNUSED struct cluster_answer models_patch(struct models *w, const struct resource *resource,
                                                 const char *name, const char *subresource,
                                                 str body)
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

static UNUSED str models_uid(struct models *w, const struct resource *resource, const char *name)
{
    return json_text(
        json_at(cluster_get(&w->c, resource, MODELS_NS, name), "metadata", "uid", NULL));
}

static UNUSED void models_config(struct models *w, const char *ns, const char *name,
                                 const char *data)
{
    models_create(w, &resource_configmaps, ns,
                  arena_printf(&w->c.arena,
                               "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: %s}",
                               name, data));
}

static UNUSED void models_edit(struct models *w, const char *name, const char *data)
{
    struct cluster_answer a =
        cluster_do(&w->c, KUBE_MERGE_PATCH, &resource_configmaps, MODELS_HOME, name,
                   json_to_str(&w->c.arena,
                               models_read(w, arena_printf(&w->c.arena, "{data: %s}", data).p)));
    EQ_INT(a.code, 200);
}

/* ---- workloads and pods */

static UNUSED void models_ready(struct models *w, const char *pod, bool ready)
{
    models_patch(
        w, &resource_pods, pod, "status",
        arena_printf(&w->c.arena,
                     "{\"status\":{\"phase\":\"Running\",\"podIP\":\"127.0.0.1\",\"podIPs\":"
                     "[{\"ip\":\"127.0.0.1\"}],\"conditions\":[{\"type\":\"Ready\",\"status\":"
                     "\"%s\"}]}}",
                     ready ? "True" : "False"));
}

/* Owned by a ReplicaSet, or by a StatefulSet of the workload's name. */
static UNUSED void models_pod(struct models *w, const char *workload, bool stateful)
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

static UNUSED size_t models_count(const struct models *w, const char *workload)
{
    size_t n = 0;
    for (size_t i = 0; i < w->pod_n; i++)
        n += !w->pods[i].gone && !strcmp(w->pods[i].workload, workload);
    return n;
}

/* What a Deployment's controller and kubelets would do: as many ready pods as its spec says. */
static UNUSED void models_follow(struct models *w, const char *workload)
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

static UNUSED void models_scale(struct models *w, const char *workload, int replicas)
{
    models_patch(w, &resource_deployments, workload, NULL,
                 arena_printf(&w->c.arena, "{\"spec\":{\"replicas\":%d}}", replicas));
    models_follow(w, workload);
}

static UNUSED void models_workload(struct models *w, const char *name, int replicas)
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

/* The variant has the workload's name. `more` is added to its spec: "minReplicas: 2, ". */
static UNUSED void models_variant(struct models *w, const char *name, const char *accelerator,
                                  const char *cost, const char *more)
{
    models_create(
        w, &variant_resource, MODELS_NS,
        arena_printf(&w->c.arena,
                     "{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: "
                     "{name: %s, labels: {inference.optimization/acceleratorName: %s}}, "
                     "spec: {%s modelID: llama, variantCost: '%s', scaleTargetRef: {kind: "
                     "Deployment, name: %s}}}",
                     name, accelerator, more, cost, name));
}

static UNUSED void models_load(struct models *w, const char *workload, double kv, double queue)
{
    for (size_t i = 0; i < w->pod_n; i++)
        if (!strcmp(w->pods[i].workload, workload)) {
            w->pods[i].kv = kv;
            w->pods[i].queue = queue;
        }
}

/* ---- what is said */

static UNUSED const struct json *models_status(struct models *w, const char *variant)
{
    return json_get(cluster_get(&w->c, &variant_resource, MODELS_NS, variant), "status");
}

static UNUSED int64_t models_desired(struct models *w, const char *variant)
{
    return json_int(json_at(models_status(w, variant), "desiredOptimizedAlloc", "numReplicas",
                            NULL),
                    -1);
}

static UNUSED str models_condition(struct models *w, const char *variant, const char *type,
                                   const char *field)
{
    const struct json *list = json_get(models_status(w, variant), "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return json_text(json_get(json_item(list, i), field));
    return S("");
}

static UNUSED int64_t models_replicas(struct models *w, const char *workload)
{
    const struct json *o = cluster_get(&w->c, &resource_deployments, MODELS_NS, workload);
    return json_int(json_at(o, "spec", "replicas", NULL), -1);
}

static UNUSED size_t models_events(struct models *w, const char *reason)
{
    struct cluster_answer a =
        cluster_do(&w->c, KUBE_LIST, &resource_events, MODELS_NS, NULL, S(""));
    const struct json *list = json_get(a.object, "items");
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++)
        n += str_eqc(json_text(json_get(json_item(list, i), "reason")), reason);
    return n;
}

static UNUSED bool models_logged(const struct models *w, const char *text)
{
    return str_find(buf_str(&w->log), str_c(text)) != SIZE_MAX;
}

/* What a condition says: MODELS_SAYS(&w, "web", "TargetResolved", "reason", "TargetFound"). */
#define MODELS_SAYS(w, variant, type, field, text)                                                 \
    EQ_STR(models_condition(w, variant, type, field), S(text))

struct models_gauge {
    const char *family;
    const char *const *values;
    double found;
};

static UNUSED void models_look(void *context, const struct metric_view *view)
{
    struct models_gauge *g = context;
    if (strcmp(view->spec->name, g->family))
        return;
    for (size_t i = 0; view->spec->labels[i]; i++)
        if (!g->values[i] || !str_eqc(view->values[i], g->values[i]))
            return;
    g->found = view->value;
}

/* The value of a series, by its labels' values in their order; -1: it is not shown. */
#define MODELS_GAUGE(w, family, ...)                                                               \
    models_gauge(w, family, (const char *const[]){ __VA_ARGS__, NULL })
static UNUSED double models_gauge(struct models *w, const char *family, const char *const *values)
{
    struct models_gauge g = { family, values, -1 };
    metrics_read(kube_metrics(w->c.operator_kube),
                 &(struct metrics_reader){ .series = models_look, .context = &g });
    return g.found;
}

/* ---- life */

static UNUSED void models_pass(struct models *w, int64_t seconds)
{
    cluster_until(&w->c, cluster_now(&w->c) + seconds);
}

static UNUSED void models_line(void *context, str line)
{
    struct models *w = context;
    buf_put(&w->log, line);
    buf_putc(&w->log, '\n');
}

static UNUSED void models_operate(struct models *w, const char *const *settings)
{
    cluster_operator(&w->c, &saturation_feature, settings);
    models_pass(w, 1);
}

static UNUSED void models_start(struct models *w)
{
    *w = (struct models){ 0 };
    log_setup(LOG_DEBUG, LOG_TEXT);
    log_redirect(models_line, w);
    cluster_start(&w->c, 1780473600);
    static const char *const spaces[] = { MODELS_NS, MODELS_HOME };
    for (size_t i = 0; i < countof(spaces); i++)
        models_create(w, &resource_namespaces, NULL,
                      arena_printf(&w->c.arena,
                                   "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}",
                                   spaces[i]));
}

/* With thresholds for all. */
static UNUSED void models_begin(struct models *w)
{
    models_start(w);
    models_config(w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "\"}");
}

/* The usual beginning: one variant "web" on A100s, at a load, and a first decision about it. */
static UNUSED void models_web(struct models *w, int replicas, double kv, double queue,
                              const char *more)
{
    models_begin(w);
    models_workload(w, "web", replicas);
    models_variant(w, "web", "A100", "10", more);
    models_load(w, "web", kv, queue);
    models_operate(w, NULL);
    models_pass(w, 2);
}

static UNUSED void models_stop(struct models *w)
{
    if (w->c.manager)
        cluster_operator_down(&w->c);
    for (size_t i = 0; i < w->pod_n; i++)
        http_server_free(w->pods[i].server);
    cluster_stop(&w->c);
    log_redirect(NULL, NULL);
    buf_done(&w->log);
}

#endif
