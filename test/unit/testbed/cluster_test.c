/* The simulated cluster over the embedded server, in virtual time. */
#include "cluster.h"
#include "tap.h"

#include "testbed/testbed.h"

#include "net/http_client.h"

static const int64_t start_s = 1800000000;

static const struct resource *resource_of(str kind)
{
    static const struct resource *const all[] = { &resource_namespaces,  &resource_nodes,
                                                  &resource_deployments, &resource_hpas,
                                                  &resource_configmaps,  &resource_pods };
    for (size_t i = 0; i < countof(all); i++)
        if (str_eqc(kind, all[i]->kind))
            return all[i];
    return NULL;
}

static void create_all(struct cluster *c, const char *yaml)
{
    struct json *documents = NULL;
    err_t e;
    if (!OK_CALL(yaml_parse_all(&c->arena, str_c(yaml), NULL, &documents, &e), &e))
        return;
    for (size_t i = 0; i < json_len(documents); i++) {
        struct json *o = json_item(documents, i);
        const struct resource *resource = resource_of(json_text(json_get(o, "kind")));
        cluster_create(c, resource, resource->namespaced ? "shop" : "", o);
    }
}

static const char *const settings[] = { "testbed-start-delay", "2s", NULL };

static const char nodes[] =
    "kind: Namespace\napiVersion: v1\nmetadata: {name: shop}\n---\n"
    "kind: Node\napiVersion: v1\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '4'}, capacity: {cpu: '4'}}\n";

static int64_t replicas_of(struct cluster *c, const char *name)
{
    return json_int(json_at(cluster_get(c, &resource_deployments, "shop", name), "spec", "replicas",
                            NULL),
                    -1);
}

/* The beginning of a Deployment; annotations and the spec of its pods follow. */
#define WEB_DEPLOYMENT                                                                             \
    "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\n"                               \
    "spec:\n"                                                                                      \
    "  selector: {matchLabels: {app: web}}\n"                                                      \
    "  template:\n"                                                                                \
    "    metadata:\n"                                                                              \
    "      labels: {app: web}\n"
/* The beginning of its HPA; bounds and metrics follow. */
#define WEB_HPA                                                                                    \
    "kind: HorizontalPodAutoscaler\napiVersion: autoscaling/v2\nmetadata: {name: web}\n"           \
    "spec:\n"                                                                                      \
    "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"

/* Four cores of work, half a core requested each at 50 %: that is 16 pods' worth, cut to what fits the bound. */
static void an_autoscaler_follows_cpu(void)
{
    struct cluster c;
    cluster_start(&c, start_s);
    create_all(&c, nodes);
    create_all(
        &c, WEB_DEPLOYMENT
        "      annotations: {testbed.flyball.dev/cpu-shared: 0s=1 599s=1 600s=100m 1200s=100m}\n"
        "    spec: {containers: [{name: web, image: x, resources: {requests: {cpu: 500m}}}]}\n"
        "---\n" WEB_HPA "  maxReplicas: 10\n"
        "  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, "
        "averageUtilization: 50}}}]\n");
    cluster_operator(&c, &testbed_feature, settings);
    cluster_until(&c, start_s + 300);
    EQ_INT(replicas_of(&c, "web"), 4); /* one core over 4 pods is 50 % of half a core */
    struct json *hpa = cluster_get(&c, &resource_hpas, "shop", "web");
    const struct json *metric = json_item(json_at(hpa, "status", "currentMetrics", NULL), 0);
    EQ_INT(json_int(json_at(metric, "resource", "current", "averageUtilization", NULL), 0), 50);
    cluster_until(&c, start_s + 1150);
    EQ_INT(replicas_of(&c, "web"), 1);
    cluster_stop(&c);
}

static struct json *pod_of(struct cluster *c, const char *name)
{
    return cluster_get(c, &resource_pods, "shop", name);
}

static void resize(struct cluster *c, const char *name, const char *cpu)
{
    str body = arena_printf(
        &c->arena,
        "{\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"requests\":{\"cpu\":"
        "\"%s\"}}}]}}",
        cpu);
    EQ_INT(cluster_ask(c, (struct kube_request){ .verb = KUBE_STRATEGIC_PATCH,
                                                 .resource = &resource_pods,
                                                 .ns = S("shop"),
                                                 .name = str_c(name),
                                                 .subresource = "resize",
                                                 .body = body })
               .code,
           200);
}

static str pending(struct cluster *c, const char *name)
{
    const struct json *conditions = json_at(pod_of(c, name), "status", "conditions", NULL);
    for (size_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(json_item(conditions, i), "type")), "PodResizePending"))
            return json_text(json_get(json_item(conditions, i), "reason"));
    return S("");
}

static str enacted(struct cluster *c, const char *name)
{
    const struct json *status =
        json_item(json_at(pod_of(c, name), "status", "containerStatuses", NULL), 0);
    return json_text(json_at(status, "resources", "requests", "cpu", NULL));
}

static void a_full_node_defers_resizes(void)
{
    struct cluster c;
    cluster_start(&c, start_s);
    create_all(&c, nodes);
    for (int i = 0; i < 2; i++) {
        str pod = arena_printf(
            &c.arena,
            "kind: Pod\napiVersion: v1\nmetadata: {name: p%d}\nspec: {nodeName: n1, containers: "
            "[{name: main, image: x, resources: {requests: {cpu: '1'}}}]}\n",
            i);
        create_all(&c, pod.p);
    }
    cluster_operator(&c, &testbed_feature, settings);
    cluster_until(&c, start_s + 5);
    EQ_STR(json_text(json_at(pod_of(&c, "p0"), "status", "phase", NULL)), S("Running"));
    resize(&c, "p0", "3500m"); /* there are 3 left beside p1 */
    cluster_until(&c, start_s + 6);
    EQ_STR(pending(&c, "p0"), S("Deferred"));
    EQ_STR(enacted(&c, "p0"), S("1"));
    resize(&c, "p1", "500m"); /* which makes room */
    cluster_until(&c, start_s + 7);
    EQ_STR(pending(&c, "p0"), S(""));
    EQ_STR(enacted(&c, "p0"), S("3500m"));
    EQ_STR(enacted(&c, "p1"), S("500m"));
    cluster_stop(&c);
}

/* An init container has ended, a sidecar runs and is counted, and who exceeds its memory starts again. */
static void sidecars_run_and_memory_kills(void)
{
    struct cluster c;
    cluster_start(&c, start_s);
    create_all(&c, nodes);
    create_all(
        &c, "kind: Pod\napiVersion: v1\nmetadata: {name: p0, annotations: "
            "{testbed.flyball.dev/memory: 0s=100Mi 60s=160Mi 600s=160Mi}}\n"
            "spec: {nodeName: n1, initContainers: [{name: setup, image: x, resources: {requests: "
            "{cpu: '3'}}}, {name: proxy, image: x, restartPolicy: Always, resources: {requests: "
            "{cpu: '1'}}}], containers: [{name: main, image: x, resources: {requests: {cpu: '2'}, "
            "limits: {memory: 128Mi}}}]}\n");
    cluster_operator(&c, &testbed_feature, settings);
    cluster_until(&c, start_s + 5);
    const struct json *init = json_at(pod_of(&c, "p0"), "status", "initContainerStatuses", NULL);
    EQ_STR(json_text(json_at(json_item(init, 0), "state", "terminated", "reason", NULL)),
           S("Completed"));
    OK(json_at(json_item(init, 1), "state", "running", NULL));
    EQ_STR(json_text(json_at(json_item(init, 1), "allocatedResources", "cpu", NULL)), S("1"));
    resize(&c, "p0", "3500m"); /* with the sidecar more than the node has */
    cluster_until(&c, start_s + 6);
    EQ_STR(pending(&c, "p0"), S("Infeasible"));
    resize(&c, "p0", "3");
    cluster_until(&c, start_s + 7);
    EQ_STR(enacted(&c, "p0"), S("3"));
    cluster_until(&c, start_s + 50);
    const struct json *main =
        json_item(json_at(pod_of(&c, "p0"), "status", "containerStatuses", NULL), 0);
    EQ_INT(json_int(json_get(main, "restartCount"), 0), 1);
    EQ_STR(json_text(json_at(main, "lastState", "terminated", "reason", NULL)), S("OOMKilled"));
    cluster_stop(&c);
}

static str node_of(struct cluster *c, const char *pod)
{
    return json_text(json_at(pod_of(c, pod), "spec", "nodeName", NULL));
}

/* Pods without a ReplicaSet are placed as well, each where there is room for what it requests. */
static void bare_pods_are_bound_as_far_as_there_is_room(void)
{
    static const char *const more[] = { "", "nodeSelector: {pool: none}, ",
                                        "schedulerName: other, ",
                                        "schedulingGates: [{name: g}], " };
    struct cluster c;
    cluster_start(&c, start_s);
    create_all(&c, nodes); /* one of 4 CPUs */
    create_all(&c, "kind: Node\napiVersion: v1\nmetadata: {name: cordoned}\n"
                   "spec: {unschedulable: true}\n"
                   "status: {allocatable: {cpu: '64'}, capacity: {cpu: '64'}}\n");
    for (int i = 0; i < 7; i++) {
        str pod = arena_printf(&c.arena,
                               "kind: Pod\napiVersion: v1\nmetadata: {name: p%d}\nspec: {%s"
                               "containers: [{name: main, image: x, "
                               "resources: {requests: {cpu: 1500m}}}]}\n",
                               i, more[i < 4 ? 0 : i - 3]);
        create_all(&c, pod.p);
    }
    cluster_operator(&c, &testbed_feature, settings);
    cluster_until(&c, start_s + 20);
    int placed = 0;
    for (int i = 0; i < 4; i++) {
        str name = arena_printf(&c.arena, "p%d", i), phase;
        phase = json_text(json_at(pod_of(&c, name.p), "status", "phase", NULL));
        EQ_STR(phase, node_of(&c, name.p).n ? S("Running") : S("Pending"));
        placed += str_eqc(node_of(&c, name.p), "n1");
    }
    EQ_INT(placed, 2); /* 3 of 4 CPUs; a third one would be too many */
    EQ_STR(node_of(&c, "p4"), S(""));
    EQ_STR(node_of(&c, "p5"), S(""));
    EQ_STR(node_of(&c, "p6"), S(""));
    cluster_stop(&c);
}

/* A pod that fits nowhere waits, and runs when a node comes that it asks for. */
static void pods_wait_for_a_node(void)
{
    struct cluster c;
    cluster_start(&c, start_s);
    create_all(&c, nodes);
    create_all(&c, "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: gpu}\n"
                   "spec:\n"
                   "  selector: {matchLabels: {app: gpu}}\n"
                   "  template:\n"
                   "    metadata: {labels: {app: gpu}}\n"
                   "    spec: {nodeSelector: {pool: gpu}, containers: [{name: main, image: x}]}\n");
    cluster_operator(&c, &testbed_feature, settings);
    cluster_until(&c, start_s + 20);
    struct json *d = cluster_get(&c, &resource_deployments, "shop", "gpu");
    EQ_INT(json_int(json_at(d, "status", "readyReplicas", NULL), 0), 0);
    struct cluster_answer pods = cluster_do(&c, KUBE_LIST, &resource_pods, "shop", NULL, S(""));
    const struct json *pod = json_item(json_get(pods.object, "items"), 0);
    const struct json *condition = json_item(json_at(pod, "status", "conditions", NULL), 0);
    EQ_STR(json_text(json_get(condition, "reason")), S("Unschedulable"));
    create_all(&c, "kind: Node\napiVersion: v1\nmetadata: {name: g1, labels: {pool: gpu}}\n"
                   "status: {allocatable: {cpu: '8'}, capacity: {cpu: '8'}}\n");
    cluster_until(&c, start_s + 40);
    d = cluster_get(&c, &resource_deployments, "shop", "gpu");
    EQ_INT(json_int(json_at(d, "status", "readyReplicas", NULL), 0), 1);
    pods = cluster_do(&c, KUBE_LIST, &resource_pods, "shop", NULL, S(""));
    EQ_INT(json_len(json_get(pods.object, "items")), 1);
    pod = json_item(json_get(pods.object, "items"), 0);
    EQ_STR(json_text(json_at(pod, "spec", "nodeName", NULL)), S("g1"));
    cluster_stop(&c);
}

/* ---- the gateway */

static const struct resource routes = { "gateway.networking.k8s.io", "v1", "httproutes",
                                        "HTTPRoute", true };

static void install_shapes(struct cluster *c)
{
    for (const struct manifest *m = manifests_shapes; m->name; m++) {
        struct json *documents = NULL;
        err_t e;
        if (!OK_CALL(manifest_read(m, &c->arena, &documents, &e), &e))
            continue;
        struct json *shape = json_item(documents, 0);
        str name = json_text(json_at(shape, "metadata", "name", NULL));
        if (!cluster_get(c, &resource_crds, NULL, name.p))
            cluster_create(c, &resource_crds, NULL, shape);
    }
}

static const struct resource gateways = { "gateway.networking.k8s.io", "v1", "gateways", "Gateway",
                                          true };

static void create_gateway(struct cluster *c, const char *ns, const char *name)
{
    struct json *gateway = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena,
                       arena_printf(&c->arena,
                                    "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n"
                                    "metadata: {name: %s}\nspec: {gatewayClassName: x, listeners: "
                                    "[{name: h, port: 80, protocol: HTTP}]}\n",
                                    name),
                       &gateway, &e),
            &e);
    cluster_create(c, &gateways, ns, gateway);
}

static const struct json *accepted(const struct json *route)
{
    const struct json *parent = json_item(json_at(route, "status", "parents", NULL), 0);
    return json_item(json_get(parent, "conditions"), 0);
}

/* One that does not exist does not answer. */
static void a_gateway_accepts_routes(void)
{
    struct cluster c;
    struct json *route = NULL;
    err_t e;
    cluster_start(&c, start_s);
    create_all(&c, nodes);
    install_shapes(&c);
    OK_CALL(yaml_parse(
                &c.arena,
                S("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\n"
                  "spec: {parentRefs: [{name: gw, namespace: shop}], rules: [{matches: [{path: "
                  "{type: PathPrefix, value: /a}}]}]}\n"),
                &route, &e),
            &e);
    cluster_create(&c, &routes, "shop", route);
    cluster_operator(&c, &testbed_feature, settings);
    cluster_until(&c, start_s + 20);
    OK(!accepted(cluster_get(&c, &routes, "shop", "r")));
    create_gateway(&c, "shop", "gw");
    create_gateway(&c, "shop", "other");
    cluster_until(&c, start_s + 40);
    const struct json *condition = accepted(cluster_get(&c, &routes, "shop", "r"));
    EQ_STR(json_text(json_get(condition, "type")), S("Accepted"));
    EQ_STR(json_text(json_get(condition, "status")), S("True"));
    EQ_INT(json_int(json_get(condition, "observedGeneration"), 0), 1);
    size_t writes = c.operator_writes;
    cluster_until(&c, start_s + 400);
    EQ_INT(c.operator_writes, writes); /* reported once */
    struct cluster_answer a =
        cluster_do(&c, KUBE_MERGE_PATCH, &routes, "shop", "r",
                   S("{\"spec\":{\"parentRefs\":[{\"name\":\"other\",\"namespace\":\"shop\"}]}}"));
    EQ_INT(a.code, 200);
    cluster_until(&c, start_s + 402);
    struct json *changed = cluster_get(&c, &routes, "shop", "r");
    EQ_INT(json_int(json_get(accepted(changed), "observedGeneration"), 0), 2);
    const struct json *parent = json_item(json_at(changed, "status", "parents", NULL), 0);
    EQ_STR(json_text(json_at(parent, "parentRef", "name", NULL)), S("other"));
    cluster_stop(&c);
}

/* Until it is back. */
static void a_deleted_gateway_refuses_routes(void)
{
    static const struct {
        int64_t at_s;
        bool creates;
        const char *status, *reason;
    } steps[] = { { 40, true, "True", "Accepted" },
                  { 60, false, "False", "NoMatchingParent" },
                  { 80, true, "True", "Accepted" } };
    struct cluster c;
    err_t e;
    cluster_start(&c, start_s);
    create_all(&c, nodes);
    install_shapes(&c);
    struct json *route = NULL;
    OK_CALL(yaml_parse(&c.arena,
                       S("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: "
                         "{name: r}\nspec: {parentRefs: [{name: gw}]}\n"),
                       &route, &e),
            &e);
    cluster_create(&c, &routes, "shop", route);
    cluster_operator(&c, &testbed_feature, settings);
    for (size_t i = 0; i < countof(steps); i++) {
        if (steps[i].creates)
            create_gateway(&c, "shop", "gw");
        else
            cluster_do(&c, KUBE_DELETE, &gateways, "shop", "gw", S(""));
        cluster_until(&c, start_s + steps[i].at_s);
        const struct json *condition = accepted(cluster_get(&c, &routes, "shop", "r"));
        EQ_STR(json_text(json_get(condition, "status")), str_c(steps[i].status));
        EQ_STR(json_text(json_get(condition, "reason")), str_c(steps[i].reason));
    }
    cluster_stop(&c);
}

/* ---- servers under traffic */

static const char serving[] =
    "kind: ConfigMap\napiVersion: v1\nmetadata: {name: chat, labels: {testbed.flyball.dev/load: requests}}\n"
    "data: {model: m, rate: 0s=2 60s=8 120s=2}\n"
    "---\n"
    "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: llm}\n"
    "spec:\n"
    "  replicas: 2\n"
    "  selector: {matchLabels: {app: llm}}\n"
    "  template:\n"
    "    metadata:\n"
    "      labels: {app: llm}\n"
    "      annotations: {testbed.flyball.dev/model: m, testbed.flyball.dev/accelerator: H100}\n"
    "    spec: {containers: [{name: vllm, image: x}]}\n";

struct page {
    bool done;
    struct buf text;
};

static void fetched(void *context, const struct http_response *response, const err_t *failure)
{
    struct page *page = context;
    page->done = true;
    if (!failure)
        buf_put(&page->text, response->body);
}

static void fetch_metrics(struct cluster *c, str ip, struct buf *out)
{
    struct http_client *client = NULL;
    struct page page = { 0 };
    err_t e;
    str url = arena_printf(&c->arena, "http://" STR_FMT ":8000", STR_ARG(ip));
    if (!OK_CALL(http_client_new(c->loop, &(struct http_client_options){ .url = url }, &client, &e),
                 &e))
        return;
    http_client_fetch(client, &(struct http_fetch){ .method = S("GET"),
                                                    .target = S("/metrics"),
                                                    .on_done = fetched,
                                                    .context = &page });
    while (!page.done)
        loop_turn(c->loop);
    buf_put(out, buf_str(&page.text));
    buf_done(&page.text);
    http_client_free(client);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct buf *)a)->p, ((const struct buf *)b)->p);
}

/* The pages of both servers; names and addresses differ from run to run, so by content. */
static void record_servers(struct cluster *c, struct buf *out)
{
    struct buf pages[2] = { 0 };
    struct cluster_answer a = cluster_do(c, KUBE_LIST, &resource_pods, "shop", NULL, S(""));
    const struct json *items = json_get(a.object, "items");
    EQ_INT(json_len(items), 2);
    for (size_t i = 0; i < MIN(json_len(items), countof(pages)); i++)
        fetch_metrics(c, json_text(json_at(json_item(items, i), "status", "podIP", NULL)),
                      &pages[i]);
    if (OK(pages[0].n && pages[1].n))
        qsort(pages, countof(pages), sizeof(*pages), by_text);
    for (size_t i = 0; i < countof(pages); i++) {
        buf_put(out, buf_str(&pages[i]));
        buf_done(&pages[i]);
    }
}

static void servers_answer_the_same_in_every_run(void)
{
    struct buf runs[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        struct cluster c;
        cluster_start(&c, start_s);
        create_all(&c, nodes);
        create_all(&c, serving);
        cluster_operator(&c, &testbed_feature, settings);
        cluster_until(&c, start_s + 300);
        record_servers(&c, &runs[i]);
        cluster_stop(&c);
    }
    OK(str_find(buf_str(&runs[0]), S("vllm:request_success_total{model_name=\"m\"} ")) != SIZE_MAX);
    OK(str_find(buf_str(&runs[0]), S("vllm:request_success_total{model_name=\"m\"} 0\n")) ==
       SIZE_MAX);
    EQ_STR(buf_str(&runs[0]), buf_str(&runs[1]));
    buf_done(&runs[0]);
    buf_done(&runs[1]);
}

/* ---- the same run twice is the same run */

static void sum_request(void *context, str text)
{
    buf_put(context, text);
    buf_putc(context, '\n');
}

static void record(struct cluster *c, struct buf *out)
{
    for (int at = 0; at <= 600; at += 30) {
        cluster_until(c, start_s + at);
        struct json *d = cluster_get(c, &resource_deployments, "shop", "web");
        struct json *h = cluster_get(c, &resource_hpas, "shop", "web");
        sum_request(out, json_to_str(&c->arena, json_at(d, "status", NULL)));
        sum_request(out, json_to_str(&c->arena, json_at(h, "status", "currentMetrics", NULL)));
    }
}

static void time_is_all_that_matters(void)
{
    struct buf runs[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        struct cluster c;
        cluster_start(&c, start_s);
        create_all(&c, nodes);
        create_all(
            &c, WEB_DEPLOYMENT
            "      annotations: {testbed.flyball.dev/cpu-shared: 0s=100m 200s=2 400s=100m}\n"
            "    spec: {containers: [{name: web, image: x, resources: {requests: {cpu: 250m}, limits: "
            "{cpu: 400m}}}]}\n"
            "---\n" WEB_HPA "  maxReplicas: 12\n"
            "  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, "
            "averageUtilization: 70}}}]\n");
        cluster_operator(&c, &testbed_feature, settings);
        record(&c, &runs[i]);
        cluster_stop(&c);
    }
    OK(runs[0].n > 1000);
    EQ_STR(buf_str(&runs[0]), buf_str(&runs[1]));
    buf_done(&runs[0]);
    buf_done(&runs[1]);
}

/* A claim is bound, a job is done after the delay of pods. */
static void volumes_are_bound_and_jobs_done(void)
{
    static const struct resource claims = { "", "v1", "persistentvolumeclaims",
                                            "PersistentVolumeClaim", true },
                                 jobs = { "batch", "v1", "jobs", "Job", true };
    static const char claim[] =
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {accessModes: "
        "[ReadWriteMany], resources: {requests: {storage: 3Gi}}}}";
    static const char job[] =
        "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: "
        "{restartPolicy: Never, containers: [{name: x, image: x}]}}}}";
    struct cluster c;
    struct json *o = NULL;
    err_t e;
    cluster_start(&c, start_s);
    create_all(&c, nodes);
    OK_CALL(yaml_parse(&c.arena, str_c(claim), &o, &e), &e);
    cluster_create(&c, &claims, "shop", o);
    OK_CALL(yaml_parse(&c.arena, str_c(job), &o, &e), &e);
    cluster_create(&c, &jobs, "shop", o);
    cluster_operator(&c, &testbed_feature, settings);
    cluster_until(&c, start_s + 1);
    const struct json *bound = json_get(cluster_get(&c, &claims, "shop", "c"), "status");
    EQ_STR(json_text(json_get(bound, "phase")), S("Bound"));
    EQ_STR(json_text(json_at(bound, "capacity", "storage", NULL)), S("3Gi"));
    OK(!json_at(cluster_get(&c, &jobs, "shop", "j"), "status", "completionTime", NULL));
    cluster_until(&c, start_s + 4);
    EQ_INT(json_int(json_at(cluster_get(&c, &jobs, "shop", "j"), "status", "succeeded", NULL), 0),
           1);
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(an_autoscaler_follows_cpu),
                                        TAP(a_full_node_defers_resizes),
                                        TAP(sidecars_run_and_memory_kills),
                                        TAP(bare_pods_are_bound_as_far_as_there_is_room),
                                        TAP(pods_wait_for_a_node),
                                        TAP(a_gateway_accepts_routes),
                                        TAP(a_deleted_gateway_refuses_routes),
                                        TAP(time_is_all_that_matters),
                                        TAP(volumes_are_bound_and_jobs_done),
                                        TAP(servers_answer_the_same_in_every_run),
                                        { 0 } });
}
