/* From zero in the running feature: a gateway whose queue is read from its endpoint picker or from
 * Prometheus, and models that sleep. */
#include "saturation_world.h"

static const struct resource new_pools = { "inference.networking.k8s.io", "v1", "inferencepools",
                                           "InferencePool", true };
static const struct resource old_pools = { "inference.networking.x-k8s.io", "v1alpha2",
                                           "inferencepools", "InferencePool", true };
#define NEW_QUEUE "llm_d_epp_flow_control_queue_size"
#define OLD_QUEUE "inference_extension_flow_control_queue_size"

struct gateway {
    struct http_server *server;
    const char *page;
    int status; /* 0: 200 */
    size_t reads;
};

static void serve_page(void *context, struct exchange *x)
{
    struct gateway *g = context;
    g->reads++;
    exchange_answer(x, g->status ? g->status : 200,
                    HTTP_HEADERS({ S("content-type"), S("text/plain") }), str_c(g->page));
}

/* As Prometheus: the page is the answer's list of series. */
static void serve_query(void *context, struct exchange *x)
{
    struct gateway *g = context;
    auto_buf struct buf out = { 0 };
    str query = S("");
    uri_query_get(exchange_arena(x), exchange_body(x), S("query"), &query);
    bool ours = str_find(query, S("max_over_time(llm_d_epp_flow_control_queue_size")) != SIZE_MAX;
    g->reads += ours;
    buf_printf(&out,
               "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[%s]}}",
               ours ? g->page : "");
    exchange_answer(x, g->status ? g->status : 200,
                    HTTP_HEADERS({ S("content-type"), S("application/json") }), buf_str(&out));
}

static void gateway_start(struct gateway *g, struct models *w,
                          void (*serve)(void *, struct exchange *))
{
    err_t e;
    g->page = g->page ? g->page : "";
    cluster_check(http_server_new(w->c.loop,
                                  &(struct http_server_options){ .on_request = serve,
                                                                 .context = g },
                                  &g->server, &e),
                  &e);
}

/* The Service of a picker, and its pod. */
static void add_picker(struct models *w, const struct gateway *g)
{
    models_create(w, &resource_services, MODELS_NS,
                  arena_printf(&w->c.arena,
                               "{apiVersion: v1, kind: Service, metadata: {name: epp}, spec: "
                               "{selector: {app: epp}, ports: [{name: grpc, port: 9002}, {name: "
                               "http-metrics, port: 9090, targetPort: %u}]}}",
                               http_server_port(g->server)));
    models_create(w, &resource_pods, MODELS_NS,
                  S("{apiVersion: v1, kind: Pod, metadata: {name: epp-0, labels: {app: epp, "
                    "more: labels}}, spec: {containers: [{name: epp, image: epp}]}}"));
    models_ready(w, "epp-0", true);
}

/* A pool for the pods of `web`, and its picker. */
static void add_pool(struct models *w, struct gateway *g)
{
    gateway_start(g, w, serve_page);
    models_define(w, &new_pools);
    add_picker(w, g);
    models_create(w, &new_pools, MODELS_NS,
                  S("{apiVersion: inference.networking.k8s.io/v1, kind: InferencePool, metadata: "
                    "{name: pool}, spec: {selector: {matchLabels: {app: web}}, endpointPickerRef: "
                    "{name: epp}}}"));
}

static void stop(struct models *w, struct gateway *g)
{
    http_server_free(g->server);
    models_stop(w);
}

/* A model with a workload at zero, and a gateway. */
static void begin_asleep(struct models *w, struct gateway *g, const char *more)
{
    models_begin(w);
    add_pool(w, g);
    models_workload(w, "web", 0);
    models_variant(w, "web", "A100", "10", more);
    models_operate(w, NULL);
    models_pass(w, 10);
}

static void requests_at_the_gateway_wake_a_model(void)
{
    struct models w;
    struct gateway g = { .page =
                             NEW_QUEUE "{model_name=\"llama\",target_model_name=\"llama\"} 0\n" };
    begin_asleep(&w, &g, "actuation: Scale,");
    EQ_INT(models_replicas(&w, "web"), 0);
    OK(g.reads >= 8); /* one a second */
    MODELS_SAYS(&w, "web", "Active", "status", "False");
    size_t writes = w.c.operator_writes;
    buf_clear(&w.c.reads);
    models_pass(&w, 20);
    EQ_INT(w.c.operator_writes, writes); /* a poll asks the API server for nothing */
    EQ_STR(buf_str(&w.c.reads), S(""));
    g.page = NEW_QUEUE "{model_name=\"x\",target_model_name=\"llama\"} 1\n";
    models_pass(&w, 2);
    EQ_INT(models_replicas(&w, "web"), 1);
    g.page = NEW_QUEUE "{model_name=\"x\",target_model_name=\"llama\"} 0\n"; /* it gave up */
    models_pass(&w, 60);
    EQ_INT(models_replicas(&w, "web"), 1);
    EQ_INT(models_desired(&w, "web"), 1);
    EQ_REAL(MODELS_GAUGE(&w, "flyball_wake_total", "llm", "gateway"), 1);
    models_follow(&w, "web");
    models_pass(&w, 60);
    EQ_INT(models_events(&w, "ScaledFromZero"), 1);
    MODELS_SAYS(&w, "web", "Active", "reason", "ScaledFromZero");
    size_t reads = g.reads;
    models_pass(&w, 60);
    EQ_INT(g.reads, reads); /* no model sleeps: no reads */
    EQ_INT(models_replicas(&w, "web"), 1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_replica_scaling_total", "web", "llm", "up", "scale-from-zero"),
            1);
    stop(&w, &g);
}

/* The older names of the metric and of the pool; a request without a target model. */
static void older_names_wake_too(void)
{
    struct models w;
    struct gateway g = { .page = OLD_QUEUE "{model_name=\"llama\",target_model_name=\"\"} 2\n" };
    models_begin(&w);
    gateway_start(&g, &w, serve_page);
    models_define(&w, &old_pools);
    add_picker(&w, &g);
    models_create(&w, &old_pools, MODELS_NS,
                  S("{apiVersion: inference.networking.x-k8s.io/v1alpha2, kind: InferencePool, "
                    "metadata: {name: pool}, spec: {selector: {app: web}, extensionRef: {name: "
                    "epp}}}"));
    models_workload(&w, "web", 0);
    models_variant(&w, "web", "A100", "10", "actuation: Scale,");
    models_operate(&w, NULL);
    models_pass(&w, 5);
    EQ_INT(models_replicas(&w, "web"), 1);
    stop(&w, &g);
}

static void what_cannot_be_read_wakes_no_model(void)
{
    static const struct {
        const char *page;
        int status;
    } pages[] = {
        { NEW_QUEUE "{model_name=\"llama\"} 5\n", 500 },
        { NEW_QUEUE "{model_name=\"llama\"} +Inf\n", 0 },
        { NEW_QUEUE "{model_name=\"llama\"} NaN\n", 0 },
        { NEW_QUEUE "{model_name=\"other\"} 5\n", 0 },
        { NEW_QUEUE "{model_name=\"llama\"} 5\nthis is no metric\n", 0 },
        { "", 0 },
    };
    struct models w;
    struct gateway g = { .page = "" };
    begin_asleep(&w, &g, "actuation: Scale,");
    for (size_t i = 0; i < countof(pages); i++) {
        g.page = pages[i].page;
        g.status = pages[i].status;
        models_pass(&w, 15);
        EQ_INT(models_replicas(&w, "web"), 0);
    }
    g.page = NEW_QUEUE "{model_name=\"llama\"} 5\n";
    models_pass(&w, 12); /* after the longest backoff */
    EQ_INT(models_replicas(&w, "web"), 1);
    stop(&w, &g);
}

/* The cheapest one, unless its pods could not start lately; another one if it is late. */
static void the_cheapest_that_can_start_is_started(void)
{
    struct models w;
    struct gateway g = { .page = "" };
    models_begin(&w);
    add_pool(&w, &g);
    static const char *const names[] = { "web", "cheap", "costly" };
    static const char *const costs[] = { "20", "5", "40" };
    for (size_t i = 0; i < countof(names); i++) {
        models_workload(&w, names[i], 0);
        models_variant(&w, names[i], "A100", costs[i], "actuation: Scale,");
    }
    models_patch(&w, &saturation_variant_resource, "cheap", NULL,
                 S("{\"spec\":{\"maxReplicas\":1}}"));
    models_operate(&w, NULL);
    g.page = NEW_QUEUE "{model_name=\"llama\"} 3\n";
    models_pass(&w, 5);
    EQ_INT(models_replicas(&w, "cheap"), 1);
    EQ_INT(models_replicas(&w, "web"), 0);
    models_pass(&w, 500); /* no node for it */
    EQ_INT(models_replicas(&w, "web"), 0);
    models_pass(&w, 150);
    EQ_INT(models_replicas(&w, "cheap"), 1);
    EQ_INT(models_replicas(&w, "web"), 1);
    EQ_INT(models_replicas(&w, "costly"), 0);
    EQ_INT(models_events(&w, "WakeSlow"), 1);
    stop(&w, &g);
}

static void start_with_prometheus(struct models *w, struct gateway *g)
{
    const char **s = arena_array(&w->c.arena, 8, sizeof(*s));
    gateway_start(g, w, serve_query);
    s[0] = "wva-prometheus-url";
    s[1] = arena_printf(&w->c.arena, "http://127.0.0.1:%u", http_server_port(g->server)).p;
    s[2] = "wva-prometheus-allow-http";
    s[3] = "true";
    models_operate(w, s);
}

#define SERIES(ns, value)                                                                          \
    "{\"metric\":{" ns "\"target_model_name\":\"llama\"},\"value\":[0,\"" value "\"]}"

static void prometheus_wakes_with_one_query_for_all(void)
{
    struct models w;
    struct gateway g = { .page = SERIES("\"namespace\":\"other\",", "4") };
    models_begin(&w);
    for (int i = 0; i < 20; i++) {
        const char *name = arena_printf(&w.c.arena, "m%d", i).p;
        models_workload(&w, name, 0);
        models_variant(&w, name, "A100", "10", "");
        models_patch(&w, &saturation_variant_resource, name, NULL,
                     arena_printf(&w.c.arena, "{\"spec\":{\"modelID\":\"m%d\"}}", i));
    }
    models_workload(&w, "web", 0);
    models_variant(&w, "web", "A100", "10", "actuation: Scale,");
    start_with_prometheus(&w, &g);
    models_pass(&w, 60);
    OK(g.reads >= 10 && g.reads <= 13);    /* every 5 s, not per model */
    EQ_INT(models_replicas(&w, "web"), 0); /* that was another namespace */
    g.page = SERIES("\"namespace\":\"llm\",", "4");
    models_pass(&w, 7);
    EQ_INT(models_replicas(&w, "web"), 1);
    EQ_REAL(MODELS_GAUGE(&w, "flyball_wake_total", "llm", "prometheus"), 1);
    stop(&w, &g);
}

/* A series without a namespace counts for a model ID that one namespace has. */
static void a_tenant_cannot_wake_the_models_of_others(void)
{
    struct models w;
    struct gateway g = { .page = SERIES("", "4") };
    models_begin(&w);
    models_create(&w, &resource_namespaces, NULL,
                  S("{apiVersion: v1, kind: Namespace, metadata: {name: twin}}"));
    models_create(
        &w, &saturation_variant_resource, "twin",
        S("{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: web, "
          "labels: {inference.optimization/acceleratorName: A100}}, spec: {modelID: llama, "
          "variantCost: '1', scaleTargetRef: {kind: Deployment, name: web}}}"));
    models_workload(&w, "web", 0);
    models_variant(&w, "web", "A100", "10", "actuation: Scale,");
    start_with_prometheus(&w, &g);
    models_pass(&w, 30);
    EQ_INT(models_replicas(&w, "web"), 0);
    cluster_do(&w.c, KUBE_DELETE, &saturation_variant_resource, "twin", "web", S(""));
    models_pass(&w, 10);
    EQ_INT(models_replicas(&w, "web"), 1);
    stop(&w, &g);
}

/* ---- who writes the first replica */

static void add_hpa(struct models *w)
{
    models_create(w, &resource_hpas, MODELS_NS,
                  S("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: "
                    "web}, spec: {minReplicas: 2, maxReplicas: 9, scaleTargetRef: {apiVersion: "
                    "apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, resource: "
                    "{name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}"));
}

/* An HPA does nothing at 0 replicas: its minimum is written for it, once. */
static void an_hpa_gets_its_minimum(void)
{
    struct models w;
    struct gateway g = { .page = "" };
    begin_asleep(&w, &g, "");
    add_hpa(&w);
    models_pass(&w, 2);
    g.page = NEW_QUEUE "{model_name=\"llama\"} 1\n";
    models_pass(&w, 2);
    EQ_INT(models_replicas(&w, "web"), 2);
    models_scale(&w, "web", 0); /* by hand, and no request waits */
    g.page = "";
    models_pass(&w, 90);
    EQ_INT(models_replicas(&w, "web"), 0);
    EQ_INT(models_desired(&w, "web"), 0);
    stop(&w, &g);
}

static void add_scaled_object(struct models *w, const char *meta, const char *trigger)
{
    models_define(w, &saturation_scaled_object_resource);
    models_create(
        w, &saturation_scaled_object_resource, MODELS_NS,
        arena_printf(&w->c.arena,
                     "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: "
                     "web%s}, spec: {minReplicaCount: 0, scaleTargetRef: {name: web}, "
                     "triggers: [{type: %s, metadata: {scalerAddress: here}}]}}",
                     meta, trigger));
}

static void keda_writes_first(void)
{
    static const struct {
        const char *meta, *trigger;
        int64_t before, soon, later; /* replicas after 1, 6 and 40 s */
    } cases[] = {
        { "", "prometheus", 0, 1, 1 },
        { "", "external-push", 0, 0, 1 },
        { ", annotations: {autoscaling.keda.sh/paused: 'true'}", "prometheus", 0, 0, 0 },
        { ", annotations: {autoscaling.keda.sh/paused-replicas: '0'}", "prometheus", 0, 0, 0 },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct models w;
        struct gateway g = { .page = "" };
        models_begin(&w);
        add_scaled_object(&w, cases[i].meta, cases[i].trigger);
        add_pool(&w, &g);
        models_workload(&w, "web", 0);
        models_variant(&w, "web", "A100", "10", "");
        models_operate(&w, NULL);
        models_pass(&w, 3);
        g.page = NEW_QUEUE "{model_name=\"llama\"} 1\n";
        models_pass(&w, 1);
        EQ_INT(models_replicas(&w, "web"), cases[i].before);
        EQ_INT(models_desired(&w, "web"), cases[i].later); /* the number that KEDA reads */
        models_pass(&w, 5);
        EQ_INT(models_replicas(&w, "web"), cases[i].soon);
        models_pass(&w, 34);
        EQ_INT(models_replicas(&w, "web"), cases[i].later);
        EQ_INT(models_events(&w, "WakeBlocked"), !cases[i].later);
        stop(&w, &g);
    }
}

/* A conflict, and an API server that fails: the replica is written in the end, and only once. */
static void the_first_replica_is_written_in_the_end(void)
{
    struct models w;
    struct gateway g = { .page = "" };
    begin_asleep(&w, &g, "actuation: Scale,");
    w.c.fail_path = "/scale";
    w.c.failures = 3;
    g.page = NEW_QUEUE "{model_name=\"llama\"} 1\n";
    models_pass(&w, 5);
    EQ_INT(models_replicas(&w, "web"), 1);
    EQ_INT(w.c.failures, 0);
    EQ_INT(models_events(&w, "Scaled"), 1);
    stop(&w, &g);
}

static void an_annotation_wakes(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 1);
    models_variant(&w, "web", "A100", "10", "actuation: Scale,");
    models_operate(&w, NULL);
    models_pass(&w, 31);
    models_scale(&w, "web", 0);
    models_patch(
        &w, &saturation_variant_resource, "web", NULL,
        S("{\"metadata\":{\"annotations\":{\"flyball.dev/wake\":\"2026-06-03T07:00:00Z\"}}}"));
    models_pass(&w, 60);
    EQ_INT(models_replicas(&w, "web"), 0); /* older than the sleep */
    models_patch(
        &w, &saturation_variant_resource, "web", NULL,
        S("{\"metadata\":{\"annotations\":{\"flyball.dev/wake\":\"2026-06-03T08:10:00Z\"}}}"));
    models_pass(&w, 2);
    EQ_INT(models_replicas(&w, "web"), 1);
    models_stop(&w);
}

/* ---- the whole way */

/* Down after the retention period, not while the gateway holds requests, and the replica that a
 * request woke is not taken away before it served. */
static void a_model_goes_to_zero_and_comes_back_by_itself(void)
{
    struct models w;
    struct gateway g = { .page = NEW_QUEUE "{model_name=\"llama\"} 1\n" };
    models_begin(&w);
    models_edit(&w, "saturation-scaling-config",
                "{default: \"" MODELS_THRESHOLDS "scaleToZero: {enabled: true}\\n\"}");
    models_config(&w, MODELS_HOME, "wva-model-scale-to-zero-config",
                  "{default: \"enable_scale_to_zero: false\\nretention_period: 5m\\n\"}");
    add_pool(&w, &g);
    models_workload(&w, "web", 1);
    models_variant(&w, "web", "A100", "10",
                   "actuation: Scale, behavior: {scaleDown: {stabilizationWindowSeconds: 0}},");
    models_load(&w, "web", 0, 0);
    models_operate(&w, NULL);
    models_pass(&w, 700);
    EQ_INT(models_replicas(&w, "web"), 1); /* requests wait at the gateway */
    g.page = NEW_QUEUE "{model_name=\"llama\"} 0\n";
    models_pass(&w, 240);
    EQ_INT(models_replicas(&w, "web"), 1);
    models_pass(&w, 150);
    EQ_INT(models_replicas(&w, "web"), 0);
    models_follow(&w, "web");
    models_pass(&w, 100);
    EQ_INT(models_events(&w, "ScaledToZero"), 1);
    g.page = NEW_QUEUE "{model_name=\"llama\"} 1\n";
    models_pass(&w, 2);
    EQ_INT(models_replicas(&w, "web"), 1);
    g.page = NEW_QUEUE "{model_name=\"llama\"} 0\n";
    models_pass(&w, 400); /* slower than the retention period */
    EQ_INT(models_replicas(&w, "web"), 1);
    models_follow(&w, "web");
    models_pass(&w, 240);
    EQ_INT(models_replicas(&w, "web"), 1);
    models_pass(&w, 500); /* still no request */
    EQ_INT(models_replicas(&w, "web"), 0);
    stop(&w, &g);
}

/* A picker that exists and does not answer: requests may be waiting. */
static void a_silent_gateway_keeps_a_model_up(void)
{
    struct models w;
    struct gateway g = { .page = "", .status = 503 };
    setenv("WVA_SCALE_TO_ZERO", "true", 1);
    models_begin(&w);
    add_pool(&w, &g);
    models_workload(&w, "web", 1);
    models_variant(&w, "web", "A100", "10", "");
    models_load(&w, "web", 0, 0);
    models_operate(&w, NULL);
    models_pass(&w, 1500);
    EQ_INT(models_desired(&w, "web"), 1);
    g.status = 0;
    models_pass(&w, 100);
    EQ_INT(models_desired(&w, "web"), 0);
    stop(&w, &g);
    unsetenv("WVA_SCALE_TO_ZERO");
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(requests_at_the_gateway_wake_a_model),
        TAP(older_names_wake_too),
        TAP(what_cannot_be_read_wakes_no_model),
        TAP(the_cheapest_that_can_start_is_started),
        TAP(prometheus_wakes_with_one_query_for_all),
        TAP(a_tenant_cannot_wake_the_models_of_others),
        TAP(an_hpa_gets_its_minimum),
        TAP(keda_writes_first),
        TAP(the_first_replica_is_written_in_the_end),
        TAP(an_annotation_wakes),
        TAP(a_model_goes_to_zero_and_comes_back_by_itself),
        TAP(a_silent_gateway_keeps_a_model_up),
        { 0 },
    });
}
