/* AIMServices end to end on the embedded API server, on a clock of its own; the test plays KServe, the volume binder and
 * the job runner. */
#include "aim_world.h"
#include "runtimeconfig/service_world.h"

#define CHAT "{metadata: {name: chat, labels: {team: a}}, spec: {model: {ref: meta-llama-3-8b}}}"
#define READY "{conditions: [{type: Ready, status: 'True'}]}"

static const char ns[] = "ml-team";

static void start_world(struct cluster *c)
{
    aim_test_start(c);
    aim_test_start_operator(c);
}

static void delete(struct cluster *c, const struct resource *resource, const char *where,
                   const char *name)
{
    struct cluster_answer a = cluster_do(c, KUBE_DELETE, resource, where, name, S(""));
    EQ_INT(a.code, 200);
    aim_test_wait(c);
}

static struct json *get(struct cluster *c, const struct resource *resource, const char *name)
{
    return cluster_get(c, resource, ns, name);
}

static struct json *runtime(struct cluster *c, const char *name)
{
    return get(c, &aim_resource_inference_services, name);
}

#define IS(name, word, type, reason) is(__FILE__, __LINE__, &c, name, word, type, reason)
static void is(const char *file, int line, struct cluster *c, const char *name, const char *word,
               const char *type, const char *reason)
{
    const struct json *status = aim_test_status(c, AIM_SERVICE, ns, name);
    tap_eq_str(file, line, "status", json_text(json_get(status, "status")), str_c(word));
    if (!tap_eq_str(file, line, type, aim_test_reason(status, type), str_c(reason)))
        printf("# %s\n", status ? json_to_str(&c->arena, status).p : "no status");
}

static size_t writes_to(const struct cluster *c, const char *part)
{
    size_t n = 0, found;
    for (str rest = buf_str(&c->log); (found = str_find(rest, str_c(part))) != SIZE_MAX; n++)
        rest = str_from(rest, found + 1);
    return n;
}

/* A service that runs. */
static void run_chat(struct cluster *c)
{
    aim_test_create(c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(c);
    aim_test_set_status(c, &aim_resource_inference_services, ns, "chat", READY);
}

static void a_service_comes_up(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(&c);
    IS("chat", "Starting", "Ready", "CreatingRuntime");
    const struct json *isvc = runtime(&c, "chat");
    EQ_STR(json_text(json_at(isvc, "spec", "predictor", "model", "runtime", NULL)),
           S("llama-latency"));
    EQ_STR(json_text(json_at(isvc, "metadata", "labels", "team", NULL)), S("a"));
    const struct json *claim = get(&c, &aim_resource_claims, "chat-temp-cache");
    EQ_STR(json_text(json_at(claim, "spec", "resources", "requests", "storage", NULL)), S("18Gi"));
    OK(cluster_get(&c, &aim_resource_cluster_serving_runtimes, NULL, "llama-latency"));
    aim_test_set_status(&c, &aim_resource_inference_services, ns, "chat", READY);
    IS("chat", "Running", "Ready", "RuntimeReady");
    const struct json *status = aim_test_status(&c, AIM_SERVICE, ns, "chat");
    EQ_STR(json_text(json_at(status, "resolvedTemplate", "kind", NULL)),
           S("AIMClusterServiceTemplate"));
    EQ_STR(json_text(json_at(status, "resolvedImage", "name", NULL)), S("meta-llama-3-8b"));
    size_t before = c.operator_writes;
    cluster_until(&c, cluster_now(&c) + 3600);
    EQ_INT(c.operator_writes, before); /* nothing changes, nothing is written */
    cluster_stop(&c);
}

static void add_turns(void *context, const struct metric_view *view)
{
    double *turns = context;
    if (!strcmp(view->spec->name, "controller_runtime_reconcile_total") &&
        str_eqc(view->values[0], "aimservices"))
        *turns += view->value;
}

static int64_t turns(const struct cluster *c)
{
    double n = 0;
    metrics_read(kube_metrics(c->operator_kube),
                 &(struct metrics_reader){ .series = add_turns, .context = &n });
    return (int64_t)n;
}

/* As a write of our own does that comes to light late: it was carried out and its answer lost. Those that we know to be
 * our own need no turn. */
static void a_status_that_is_not_so_is_put_right(void)
{
    static const char status[] = "/aimservices/chat/status";
    struct cluster c;
    start_world(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(&c);
    int64_t before = turns(&c);
    size_t writes = writes_to(&c, status);
    aim_test_set_status(&c, &aim_resource_inference_services, ns, "chat", READY);
    IS("chat", "Running", "Ready", "RuntimeReady");
    EQ_INT(turns(&c), before + 1);
    EQ_INT((int64_t)writes_to(&c, status), (int64_t)writes + 1);
    aim_test_set_status(&c, aim_test_kind(AIM_SERVICE), ns, "chat", "{status: Starting}");
    aim_test_wait(&c);
    IS("chat", "Running", "Ready", "RuntimeReady");
    cluster_until(&c, cluster_now(&c) + 600);
    EQ_INT(turns(&c), before + 2);
    EQ_INT((int64_t)writes_to(&c, status), (int64_t)writes + 2);
    cluster_stop(&c);
}

static void a_change_of_the_service_reaches_its_runtime(void)
{
    struct cluster c;
    start_world(&c);
    run_chat(&c);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat",
                   "{spec: {replicas: 4, env: [{name: A, value: x}]}}");
    aim_test_wait(&c);
    const struct json *p = json_at(runtime(&c, "chat"), "spec", "predictor", NULL);
    EQ_INT(json_int(json_get(p, "maxReplicas"), 0), 4);
    EQ_INT(json_len(json_at(p, "model", "env", NULL)), 2);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat", "{spec: {env: null}}");
    aim_test_wait(&c);
    p = json_at(runtime(&c, "chat"), "spec", "predictor", NULL);
    EQ_INT(json_len(json_at(p, "model", "env", NULL)), 1); /* what is no longer wanted goes */
    cluster_stop(&c);
}

static void children_deleted_by_hand_come_back(void)
{
    struct cluster c;
    start_world(&c);
    run_chat(&c);
    delete (&c, &aim_resource_inference_services, ns, "chat");
    OK(runtime(&c, "chat"));
    IS("chat", "Starting", "RuntimeReady", "CreatingRuntime");
    aim_test_set_status(&c, &aim_resource_inference_services, ns, "chat", READY);
    IS("chat", "Running", "Ready", "RuntimeReady");
    delete (&c, &aim_resource_claims, ns, "chat-temp-cache");
    OK(get(&c, &aim_resource_claims, "chat-temp-cache"));
    delete (&c, &aim_resource_cluster_serving_runtimes, NULL, "llama-latency");
    OK(cluster_get(&c, &aim_resource_cluster_serving_runtimes, NULL, "llama-latency"));
    cluster_stop(&c);
}

static void conflicts_are_retried_and_not_reported(void)
{
    struct cluster c;
    start_world(&c);
    c.failures = 3;
    c.fail_path = "inferenceservices";
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(&c);
    EQ_INT(c.failures, 0);
    OK(runtime(&c, "chat"));
    IS("chat", "Starting", "Failure", "Resolved");
    EQ_INT(writes_to(&c, "Apply failed"), 0);
    cluster_stop(&c);
}

static void an_outage_is_bridged(void)
{
    struct cluster c;
    start_world(&c);
    run_chat(&c);
    c.operator_cut = true;
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat", "{spec: {replicas: 2}}");
    cluster_until(&c, cluster_now(&c) + 60);
    IS("chat", "Running", "Ready", "RuntimeReady"); /* the status could not be written */
    c.operator_cut = false;
    cluster_until(&c, cluster_now(&c) + 1200);
    EQ_INT(json_int(json_at(runtime(&c, "chat"), "spec", "predictor", "maxReplicas", NULL), 0), 2);
    IS("chat", "Running", "Ready", "RuntimeReady");
    cluster_stop(&c);
}

/* A server that breaks is no failure of the service at first, and one after ten seconds; then it is over. */
static void a_broken_server_has_ten_seconds(void)
{
    struct cluster c;
    start_world(&c);
    run_chat(&c);
    c.failures = INT32_MAX;
    c.fail_code = 500;
    c.fail_path = "inferenceservices";
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat", "{spec: {replicas: 2}}");
    aim_test_wait(&c);
    IS("chat", "Running", "Ready", "ServerUnavailable");
    cluster_until(&c, cluster_now(&c) + 30);
    IS("chat", "Failed", "Failure", "RuntimeFailed");
    c.failures = 0;
    cluster_until(&c, cluster_now(&c) + 120);
    IS("chat", "Running", "Failure", "Resolved");
    EQ_INT(json_int(json_at(runtime(&c, "chat"), "spec", "predictor", "maxReplicas", NULL), 0), 2);
    cluster_stop(&c);
}

static void a_refusal_is_reported_at_once(void)
{
    struct cluster c;
    start_world(&c);
    c.failures = INT32_MAX;
    c.fail_code = 403;
    c.fail_path = "inferenceservices";
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(&c);
    IS("chat", "Failed", "Ready", "RuntimeFailed");
    c.failures = 0;
    cluster_until(&c, cluster_now(&c) + 60);
    IS("chat", "Starting", "Failure", "Resolved");
    cluster_stop(&c);
}

static void a_template_removed_while_used_leaves_the_runtime(void)
{
    struct cluster c;
    start_world(&c);
    run_chat(&c);
    delete (&c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, "llama-latency");
    IS("chat", "Pending", "Resolved", "ModelPending"); /* a model without a template is not ready */
    OK(runtime(&c, "chat"));
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, WORLD_TEMPLATE);
    aim_test_wait(&c);
    IS("chat", "Running", "Ready", "RuntimeReady");

    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns,
                    "{metadata: {name: named}, spec: {model: {ref: meta-llama-3-8b}, templateRef: "
                    "llama-latency}}");
    aim_test_wait(&c);
    aim_test_set_status(&c, &aim_resource_inference_services, ns, "named", READY);
    IS("named", "Running", "Ready", "RuntimeReady");
    delete (&c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, "llama-latency");
    IS("named", "Degraded", "Failure", "TemplateNotFound");
    OK(runtime(&c, "named"));
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, WORLD_TEMPLATE);
    aim_test_wait(&c);
    IS("named", "Running", "Failure", "Resolved");
    cluster_stop(&c);
}

static void what_a_deleted_service_brought_goes_with_it(void)
{
    struct cluster c;
    start_world(&c);
    run_chat(&c);
    delete (&c, aim_test_kind(AIM_SERVICE), ns, "chat");
    OK(!get(&c, aim_test_kind(AIM_SERVICE), "chat"));
    OK(!runtime(&c, "chat"));
    OK(!get(&c, &aim_resource_claims, "chat-temp-cache"));
    cluster_stop(&c);
}

static void a_restart_in_the_middle_goes_on(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(&c);
    cluster_operator_down(&c);
    aim_test_set_status(&c, &aim_resource_inference_services, ns, "chat", READY);
    IS("chat", "Starting", "Ready", "CreatingRuntime"); /* no pass yet */
    buf_clear(&c.log);
    aim_test_start_operator(&c);
    IS("chat", "Running", "Ready", "RuntimeReady");
    EQ_INT(writes_to(&c, "PATCH /apis/serving.kserve.io"), 0);
    EQ_INT(writes_to(&c, "PATCH /api/v1"), 0);

    cluster_operator_down(&c);
    delete (&c, &aim_resource_inference_services, ns, "chat");
    delete (&c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, "meta-llama-3-8b");
    aim_test_start_operator(&c);
    IS("chat", "Pending", "Resolved", "ModelNotFound");
    OK(!runtime(&c, "chat"));
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, WORLD_MODEL);
    aim_test_wait(&c);
    OK(runtime(&c, "chat"));
    cluster_stop(&c);
}

static void overrides_derive_a_template(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_SERVICE), ns,
        "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}, overrides: {metric: "
        "throughput, precision: fp16}}}");
    aim_test_wait(&c);
    static const char name[] = "llama-latency-ovr-6c75f1d2";
    const struct json *derived = get(&c, aim_test_kind(AIM_TEMPLATE), name);
    EQ_STR(json_text(json_at(derived, "spec", "metric", NULL)), S("throughput"));
    EQ_STR(json_text(json_at(derived, "status", "status", NULL)), S("Ready"));
    EQ_STR(json_text(json_at(runtime(&c, "chat"), "spec", "predictor", "model", "runtime", NULL)),
           str_c(name));
    OK(get(&c, &aim_resource_serving_runtimes, name));
    IS("chat", "Starting", "Resolved", "Resolved");
    size_t before = c.operator_writes;
    cluster_until(&c, cluster_now(&c) + 600);
    EQ_INT(c.operator_writes, before);
    cluster_stop(&c);
}

static void an_image_gets_a_model_of_its_own(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_SERVICE), ns,
        "{metadata: {name: web}, spec: {model: {image: 'nginx:1.25'}, templateRef: ''}}");
    aim_test_wait(&c);
    const struct json *model = get(&c, aim_test_kind(AIM_MODEL), "nginx-1-25-251ad317");
    EQ_STR(json_text(json_at(model, "metadata", "labels", "aim.silogen.ai/auto-created", NULL)),
           S("true"));
    IS("web", "Pending", "Resolved", "ModelPending");
    aim_test_create(
        &c, aim_test_kind(AIM_TEMPLATE), ns,
        "{metadata: {name: web}, spec: {modelName: nginx-1-25-251ad317, modelSources: [{name: a, "
        "sourceUri: 'hf://a'}]}}");
    aim_test_wait(&c);
    IS("web", "Starting", "Ready", "CreatingRuntime");
    OK(!get(&c, &aim_resource_claims, "web-temp-cache")); /* its size is unknown */
    aim_test_create(&c, aim_test_kind(AIM_MODEL), ns,
                    "{metadata: {name: twin}, spec: {image: 'nginx:1.25'}}");
    aim_test_wait(&c);
    IS("web", "Failed", "Failure", "MultipleModelsFound");
    delete (&c, aim_test_kind(AIM_MODEL), ns, "twin");
    IS("web", "Starting", "Failure", "Resolved");
    cluster_stop(&c);
}

static void a_tie_of_templates_is_reported_and_resolved(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL,
        "{metadata: {name: other}, spec: {modelName: meta-llama-3-8b, metric: latency, precision: "
        "fp16, modelSources: [{name: a, sourceUri: 'hf://a'}]}}");
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(&c);
    IS("chat", "Failed", "Failure", "TemplateSelectionAmbiguous");
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat", "{spec: {templateRef: other}}");
    aim_test_wait(&c);
    IS("chat", "Starting", "Failure", "Resolved");
    cluster_stop(&c);
}

/* A template of the same name in the namespace is of another model, and none of ours. */
static void names_may_be_used_twice(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_TEMPLATE), ns,
        "{metadata: {name: llama-latency}, spec: {modelName: another, modelSources: [{name: a, "
        "sourceUri: 'hf://a'}]}}");
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(&c);
    IS("chat", "Starting", "Resolved", "Resolved");
    const struct json *status = aim_test_status(&c, AIM_SERVICE, ns, "chat");
    EQ_STR(json_text(json_at(status, "resolvedTemplate", "scope", NULL)), S("Cluster"));
    EQ_STR(json_text(json_at(status, "resolvedImage", "name", NULL)), S("meta-llama-3-8b"));
    cluster_stop(&c);
}

/* From the wish for a cache to a runtime with its volume. */
static void a_cache_is_filled_before_the_service_starts(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), ns,
                    "{metadata: {name: default}, spec: {defaultStorageClassName: team-ssd}}");
    aim_test_create(
        &c, aim_test_kind(AIM_SERVICE), ns,
        "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}, cacheModel: true}}");
    aim_test_wait(&c);
    static const char cache[] = "meta-llama-llama-3-8b";
    OK(get(&c, aim_test_kind(AIM_TEMPLATE_CACHE), "llama-latency"));
    OK(get(&c, aim_test_kind(AIM_MODEL_CACHE), cache));
    const struct json *claim = get(&c, &aim_resource_claims, "meta-llama-llama-3-8b-cache");
    EQ_STR(json_text(json_at(claim, "spec", "storageClassName", NULL)), S("team-ssd"));
    OK(!runtime(&c, "chat"));
    IS("chat", "Starting", "CacheReady", "CacheWarming");
    aim_test_set_status(&c, &aim_resource_claims, ns, "meta-llama-llama-3-8b-cache",
                        "{phase: Bound}");
    OK(get(&c, &aim_resource_jobs, "meta-llama-llama-3-8b-cache-download"));
    IS("chat", "Starting", "CacheReady", "CacheWarming");
    aim_test_set_status(
        &c, &aim_resource_jobs, ns, "meta-llama-llama-3-8b-cache-download",
        "{succeeded: 1, startTime: '2026-05-28T20:00:00Z', completionTime: "
        "'2026-05-28T20:01:00Z', conditions: [{type: SuccessCriteriaMet, status: 'True'}, "
        "{type: Complete, status: 'True'}]}");
    EQ_STR(json_text(
               json_get(aim_test_status(&c, AIM_TEMPLATE_CACHE, ns, "llama-latency"), "status")),
           S("Available"));
    const struct json *p = json_at(runtime(&c, "chat"), "spec", "predictor", NULL);
    const struct json *volume = json_item(json_get(p, "volumes"), 0);
    EQ_STR(json_text(json_at(volume, "persistentVolumeClaim", "claimName", NULL)),
           S("meta-llama-llama-3-8b-cache"));
    aim_test_set_status(&c, &aim_resource_inference_services, ns, "chat", READY);
    IS("chat", "Running", "CacheReady", "CacheWarm");

    /* a cache that goes away takes no volume from a running service */
    delete (&c, aim_test_kind(AIM_MODEL_CACHE), ns, cache);
    p = json_at(runtime(&c, "chat"), "spec", "predictor", NULL);
    EQ_INT(json_len(json_get(p, "volumes")), 1);
    cluster_stop(&c);
}

static void an_unfinished_cache_goes_with_its_service(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_SERVICE), ns,
        "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}, cacheModel: true}}");
    aim_test_wait(&c);
    const struct json *service = get(&c, aim_test_kind(AIM_SERVICE), "chat");
    EQ_STR(json_text(json_item(json_at(service, "metadata", "finalizers", NULL), 0)),
           S("aim.silogen.ai/service-cache-cleanup"));
    delete (&c, aim_test_kind(AIM_SERVICE), ns, "chat");
    cluster_until(&c, cluster_now(&c) + 10);
    OK(!get(&c, aim_test_kind(AIM_SERVICE), "chat"));
    OK(!get(&c, aim_test_kind(AIM_TEMPLATE_CACHE), "llama-latency"));
    OK(!get(&c, aim_test_kind(AIM_MODEL_CACHE), "meta-llama-llama-3-8b"));
    OK(!get(&c, &aim_resource_claims, "meta-llama-llama-3-8b-cache"));
    cluster_stop(&c);
}

static void a_pod_that_cannot_pull_says_why(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(&c);
    aim_test_create(
        &c, &resource_pods, ns,
        "{metadata: {name: p, labels: {serving.kserve.io/inferenceservice: chat}}, spec: "
        "{containers: [{name: kserve-container, image: x}]}}");
    aim_test_set_status(
        &c, &resource_pods, ns, "p",
        "{phase: Pending, containerStatuses: [{name: kserve-container, image: x, imageID: '', "
        "ready: false, restartCount: 0, state: {waiting: {reason: ImagePullBackOff, message: "
        "'401 Unauthorized'}}}]}");
    IS("chat", "Degraded", "Failure", "ImagePullAuthFailure");
    delete (&c, &resource_pods, ns, "p");
    IS("chat", "Starting", "Failure", "Resolved");
    cluster_stop(&c);
}

static void a_model_makes_the_templates_that_it_recommends(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_MODEL), ns,
        "{metadata: {name: m}, spec: {image: 'r/m:1', imageMetadata: {model: {canonicalName: org/m, "
        "recommendedDeployments: [{gpuModel: MI300X, gpuCount: 1, metric: latency, precision: "
        "fp8}]}}}}");
    aim_test_wait(&c);
    struct cluster_answer a =
        cluster_do(&c, KUBE_LIST, aim_test_kind(AIM_TEMPLATE), ns, NULL, S(""));
    const struct json *template = json_item(json_get(a.object, "items"), 0);
    OK(str_starts(json_text(json_at(template, "metadata", "name", NULL)),
                  S("m-1x-mi300x-lat-fp8-")));
    EQ_STR(json_text(json_at(template, "status", "status", NULL)), S("NotAvailable"));
    EQ_STR(json_text(json_get(aim_test_status(&c, AIM_MODEL, ns, "m"), "status")),
           S("Ready")); /* that no node has the GPU is not a fault of the model */
    aim_test_create(
        &c, &resource_nodes, NULL,
        "{metadata: {name: node-1, labels: {amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM}}}");
    aim_test_wait(&c);
    EQ_STR(json_text(json_get(aim_test_status(&c, AIM_MODEL, ns, "m"), "status")),
           S("Progressing"));
    str name = json_text(json_at(template, "metadata", "name", NULL));
    aim_test_patch(&c, aim_test_kind(AIM_TEMPLATE), ns, name.p,
                   "{spec: {modelSources: [{name: org/m, sourceUri: 'hf://org/m', size: 1Gi}]}}");
    aim_test_wait(&c);
    EQ_STR(json_text(json_get(aim_test_status(&c, AIM_MODEL, ns, "m"), "status")), S("Ready"));
    EQ_STR(aim_test_reason(aim_test_status(&c, AIM_MODEL, ns, "m"), "TemplatesAutoGenerated"),
           S("AutoTemplatesPresent"));
    delete (&c, aim_test_kind(AIM_MODEL), ns, "m");
    OK(!get(&c, aim_test_kind(AIM_TEMPLATE), name.p));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_service_comes_up),
                                        TAP(a_status_that_is_not_so_is_put_right),
                                        TAP(a_change_of_the_service_reaches_its_runtime),
                                        TAP(children_deleted_by_hand_come_back),
                                        TAP(conflicts_are_retried_and_not_reported),
                                        TAP(an_outage_is_bridged),
                                        TAP(a_broken_server_has_ten_seconds),
                                        TAP(a_refusal_is_reported_at_once),
                                        TAP(a_template_removed_while_used_leaves_the_runtime),
                                        TAP(what_a_deleted_service_brought_goes_with_it),
                                        TAP(a_restart_in_the_middle_goes_on),
                                        TAP(overrides_derive_a_template),
                                        TAP(an_image_gets_a_model_of_its_own),
                                        TAP(a_tie_of_templates_is_reported_and_resolved),
                                        TAP(names_may_be_used_twice),
                                        TAP(a_cache_is_filled_before_the_service_starts),
                                        TAP(an_unfinished_cache_goes_with_its_service),
                                        TAP(a_pod_that_cannot_pull_says_why),
                                        TAP(a_model_makes_the_templates_that_it_recommends),
                                        { 0 } });
}
