/* The rest of the table of troubles, as in service_trouble_test.c: what is wrong with models, templates, routes, caches, volumes
 * and pods while a service runs. For each row: the word of the service, the reason, what RuntimeReady reports, and not one
 * request for the InferenceService; the same after a restart in the middle of it; and Running again when it is over. */
#include "aim_world.h"
#include "runtimeconfig/service_world.h"

#define GATEWAY "gatewayRef: {name: inference-gateway, namespace: gateways}"
#define GOLD "{metadata: {name: gold}, spec: {routing: {enabled: true, " GATEWAY "}}}"
#define SPEC(more)                                                                                 \
    "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}, runtimeConfigName: gold" more  \
    "}}"
#define AUTO SPEC("")
#define NAMED SPEC(", templateRef: llama-latency")
#define CACHED SPEC(", cacheModel: true")
#define BY_IMAGE                                                                                   \
    "{metadata: {name: chat}, spec: {model: {image: 'example.org/llama:1'}, runtimeConfigName: "   \
    "gold}}"
#define ACCEPTED "type: Accepted, status: 'True', reason: Accepted"
#define REFUSED "type: Accepted, status: 'False', reason: NotAllowedByListeners"
#define UNRESOLVED ACCEPTED "}, {type: ResolvedRefs, status: 'False', reason: RefNotPermitted"
#define READY "{conditions: [{type: Ready, status: 'True'}]}"
#define PAUSE "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: 'true'}}}"
#define RESUME "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: null}}}"

static const char ns[] = "ml-team", model[] = "meta-llama-3-8b", template[] = "llama-latency";
static const char claim[] = "chat-temp-cache", cached[] = "meta-llama-llama-3-8b-cache";

static struct json *runtime(struct cluster *c)
{
    return cluster_get(c, &aim_resource_inference_services, ns, "chat");
}

static const struct json *status(struct cluster *c)
{
    return aim_test_status(c, AIM_SERVICE, ns, "chat");
}

static bool has_written(const struct cluster *c, const char *part)
{
    return str_find(buf_str(&c->log), str_c(part)) != SIZE_MAX;
}

static void answer_route(struct cluster *c, const char *name, const char *conditions)
{
    str text = arena_printf(
        &c->arena,
        "{parents: [{parentRef: {name: inference-gateway, namespace: gateways}, controllerName: "
        "test.example/gateway, conditions: [{%s}]}]}",
        conditions);
    struct json *parsed = aim_test_yaml(c, text.p);
    struct json *list = json_get(json_item(json_get(parsed, "parents"), 0), "conditions");
    for (size_t i = 0; i < json_len(list); i++) {
        json_set_str(&c->arena, json_item(list, i), "message", S("said the gateway"));
        json_set_str(&c->arena, json_item(list, i), "lastTransitionTime",
                     S("2026-01-01T00:00:00Z"));
    }
    aim_test_set_status(c, &aim_resource_httproutes, ns, name, json_to_str(&c->arena, parsed).p);
}

/* ---- troubles */

/* The namespace has none of this image, so that the cluster's two are compared. */
static void double_model(struct cluster *c)
{
    aim_test_create(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL,
                    "{metadata: {name: twin}, spec: {image: 'example.org/llama:1'}}");
}

static void single_model(struct cluster *c)
{
    aim_test_delete(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, "twin");
}

/* The model is paused as well: it would report its template's trouble as its own, which comes first. */
static void set_template_word(struct cluster *c, const char *word)
{
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, model, PAUSE);
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, template, PAUSE);
    aim_test_wait(c);
    aim_test_set_status(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, template, word);
}

static void template_progresses(struct cluster *c)
{
    set_template_word(c, "{status: Progressing}");
}

static void template_degrades(struct cluster *c)
{
    set_template_word(c, "{status: Degraded, conditions: [{type: Failure, status: 'True', reason: "
                         "ImageNotFound, message: none, lastTransitionTime: "
                         "'2026-01-01T00:00:00Z'}]}");
}

static void resume_template(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, template, RESUME);
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, model, RESUME);
}

/* Two that are equally good take the place of the one in use. */
static void make_ambiguous(struct cluster *c)
{
    static const char *const names[] = { "one", "two" };
    for (size_t i = 0; i < countof(names); i++)
        aim_test_create(c, aim_test_kind(AIM_TEMPLATE), ns,
                        arena_printf(&c->arena,
                                     "{metadata: {name: %s}, spec: {modelName: meta-llama-3-8b, "
                                     "metric: latency, precision: fp16, modelSources: [{name: a/b, "
                                     "sourceUri: 'hf://a/b', size: 1Gi}]}}",
                                     names[i])
                            .p);
    aim_test_wait(c);
    aim_test_delete_template(c);
}

static void make_unambiguous(struct cluster *c)
{
    cluster_operator_down(c); /* one that is left alone would be the choice */
    aim_test_create_template(c);
    aim_test_delete(c, aim_test_kind(AIM_TEMPLATE), ns, "one");
    aim_test_delete(c, aim_test_kind(AIM_TEMPLATE), ns, "two");
    aim_test_start_operator(c);
}

static void route_refused(struct cluster *c)
{
    answer_route(c, "chat", REFUSED);
}

static void route_unresolved(struct cluster *c)
{
    answer_route(c, "chat", UNRESOLVED);
}

static void route_accepted(struct cluster *c)
{
    answer_route(c, "chat", ACCEPTED);
}

/* The configuration moves all services of the namespace to one path, which an older route has. */
static void route_conflicts(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CONFIG), ns, "gold",
                   "{spec: {routing: {pathTemplate: /taken}}}");
}

static void route_free(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CONFIG), ns, "gold",
                   "{spec: {routing: {pathTemplate: null}}}");
    aim_test_wait(c);
    answer_route(c, "chat", ACCEPTED);
}

static void lose_volume(struct cluster *c)
{
    aim_test_set_status(c, &aim_resource_claims, ns, claim, "{phase: Lost}");
}

static void regain_volume(struct cluster *c)
{
    aim_test_set_status(c, &aim_resource_claims, ns, claim, "{phase: Bound}");
}

static void lose_cached_volume(struct cluster *c)
{
    aim_test_set_status(c, &aim_resource_claims, ns, cached, "{phase: Lost}");
}

static void regain_cached_volume(struct cluster *c)
{
    aim_test_set_status(c, &aim_resource_claims, ns, cached, "{phase: Bound}");
}

static void set_cache_word(struct cluster *c, const char *word)
{
    aim_test_patch(c, aim_test_kind(AIM_TEMPLATE_CACHE), ns, template, PAUSE);
    aim_test_wait(c);
    aim_test_set_status(c, aim_test_kind(AIM_TEMPLATE_CACHE), ns, template, word);
}

static void cache_progresses(struct cluster *c)
{
    set_cache_word(c, "{status: Progressing}");
}

static void cache_fails(struct cluster *c)
{
    set_cache_word(c, "{status: Failed}");
}

static void resume_cache(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_TEMPLATE_CACHE), ns, template, RESUME);
}

static void pod_cannot_pull(struct cluster *c)
{
    aim_test_set_status(c, &aim_resource_inference_services, ns, "chat",
                        "{conditions: [{type: Ready, status: 'False'}]}");
    aim_test_create(c, &resource_pods, ns,
                    "{metadata: {name: p, labels: {serving.kserve.io/inferenceservice: chat}}, "
                    "spec: {containers: [{name: kserve-container, image: x}]}}");
    aim_test_set_status(
        c, &resource_pods, ns, "p",
        "{phase: Pending, containerStatuses: [{name: kserve-container, image: x, imageID: '', "
        "ready: false, restartCount: 0, state: {waiting: {reason: ErrImagePull, message: "
        "'manifest unknown'}}}]}");
}

static void pod_pulls(struct cluster *c)
{
    aim_test_delete(c, &resource_pods, ns, "p");
    aim_test_set_status(c, &aim_resource_inference_services, ns, "chat", READY);
}

static const struct row {
    const char *name, *service;
    void (*begin)(struct cluster *c), (*end)(struct cluster *c);
    const char *word, *reason; /* of the service, and of Ready */
    const char *runtime;       /* reason of RuntimeReady */
} rows[] = {
    /* clang-format off: one a line */
    { "several models", BY_IMAGE, double_model, single_model, "Failed", "MultipleModelsFound",
      "MultipleModelsFound" },
    { "model named, absent", AUTO, aim_test_delete_model, aim_test_create_model, "Pending",
      "ModelNotFound", "ModelNotFound" },
    { "template's model absent", NAMED, aim_test_delete_model, aim_test_create_model, "Degraded",
      "ImageNotFound", "ImageNotFound" },
    { "template named, absent", NAMED, aim_test_delete_template, aim_test_create_template,
      "Degraded", "TemplateNotFound", "TemplateNotFound" },
    { "ambiguous", AUTO, make_ambiguous, make_unambiguous, "Failed", "TemplateSelectionAmbiguous",
      "TemplateSelectionAmbiguous" },
    { "template progresses", AUTO, template_progresses, resume_template, "Pending",
      "TemplateNotAvailable", "TemplateNotAvailable" },
    { "named template progresses", NAMED, template_progresses, resume_template, "Pending",
      "TemplateNotAvailable", "TemplateNotAvailable" },
    { "template degraded", NAMED, template_degrades, resume_template, "Degraded", "ImageNotFound",
      "ImageNotFound" },
    { "route conflict", AUTO, route_conflicts, route_free, "Degraded", "RouteConflict",
      "RuntimeReady" },
    { "route refused", AUTO, route_refused, route_accepted, "Degraded", "NotAllowedByListeners",
      "RuntimeReady" },
    { "references unresolved", AUTO, route_unresolved, route_accepted, "Degraded",
      "RefNotPermitted", "RuntimeReady" },
    { "cache progresses", CACHED, cache_progresses, resume_cache, "Starting", "CacheWarming",
      "RuntimeReady" },
    { "cache failed", CACHED, cache_fails, resume_cache, "Degraded", "CacheFailed",
      "RuntimeReady" },
    { "pod cannot pull", AUTO, pod_cannot_pull, pod_pulls, "Degraded", "ImageNotFound",
      "ImageNotFound" },
    { "volume lost", AUTO, lose_volume, regain_volume, "Degraded", "PVCLost", "RuntimeReady" },
    { "volume of the cache lost", CACHED, lose_cached_volume, regain_cached_volume, NULL, NULL,
      "RuntimeReady" },
    /* clang-format on */
};

/* ---- a row */

static void fill_cache(struct cluster *c)
{
    aim_test_set_status(c, &aim_resource_claims, ns, cached, "{phase: Bound}");
    aim_test_set_status(
        c, &aim_resource_jobs, ns, "meta-llama-llama-3-8b-cache-download",
        "{succeeded: 1, startTime: '2026-05-28T20:00:00Z', completionTime: "
        "'2026-05-28T20:01:00Z', conditions: [{type: SuccessCriteriaMet, status: 'True'}, "
        "{type: Complete, status: 'True'}]}");
}

static void start_running(struct cluster *c, const char *service)
{
    aim_test_start(c);
    aim_test_create(c, aim_test_kind(AIM_CONFIG), ns, GOLD);
    aim_test_create(c, &aim_resource_httproutes, ns,
                    "{metadata: {name: first}, spec: {parentRefs: [{name: inference-gateway, "
                    "namespace: gateways}], rules: [{matches: [{path: {type: PathPrefix, value: "
                    "/taken}}]}]}}");
    answer_route(c, "first", ACCEPTED);
    aim_test_start_operator(c);
    aim_test_create(c, aim_test_kind(AIM_SERVICE), ns, service);
    aim_test_wait(c);
    if (!strcmp(service, CACHED))
        fill_cache(c);
    aim_test_set_status(c, &aim_resource_inference_services, ns, "chat", READY);
    answer_route(c, "chat", ACCEPTED);
    EQ_STR(json_text(json_get(status(c), "status")), S("Running"));
    EQ_INT(json_int(json_at(runtime(c), "metadata", "generation", NULL), 0), 1);
}

static void check_status(struct cluster *c, const struct row *row, const char *when)
{
    const struct json *is = status(c);
    bool good = !row->word || (str_eqc(json_text(json_get(is, "status")), row->word) &&
                               str_eqc(aim_test_reason(is, "Ready"), row->reason));
    good = good && str_eqc(aim_test_reason(is, "RuntimeReady"), row->runtime);
    if (!OK(good))
        printf("# %s, %s: " STR_FMT " " STR_FMT " " STR_FMT "\n", row->name, when,
               STR_ARG(json_text(json_get(is, "status"))), STR_ARG(aim_test_reason(is, "Ready")),
               STR_ARG(aim_test_reason(is, "RuntimeReady")));
}

static void check_kept(struct cluster *c, const struct row *row, const char *when,
                       const struct json *before)
{
    bool kept = json_eq(json_get(before, "spec"), json_get(runtime(c), "spec")) &&
                !has_written(c, "/inferenceservices/chat");
    if (!OK(kept && cluster_get(c, &aim_resource_httproutes, ns, "chat")))
        printf("# %s: the InferenceService was written %s\n", row->name, when);
}

static void run_row(const struct row *row)
{
    struct cluster c;
    start_running(&c, row->service);
    const struct json *before = runtime(&c);
    buf_clear(&c.log);
    row->begin(&c);
    cluster_until(&c, cluster_now(&c) + 15);
    check_status(&c, row, "during");
    check_kept(&c, row, "during", before);
    cluster_operator_down(&c);
    aim_test_start_operator(&c);
    cluster_until(&c, cluster_now(&c) + 15);
    check_status(&c, row, "after a restart");
    check_kept(&c, row, "after a restart", before);
    row->end(&c);
    cluster_until(&c, cluster_now(&c) + 90);
    check_kept(&c, row, "after its end", before);
    if (!EQ_STR(json_text(json_get(status(&c), "status")), S("Running")))
        printf("# after %s\n", row->name);
    cluster_stop(&c);
}

static void every_row_keeps_what_runs(void)
{
    for (size_t i = 0; i < countof(rows); i++)
        run_row(&rows[i]);
}

/* ---- rows of another form */

/* Writes fail for a while: the word stays for ten seconds, then it is Failed; what runs is as it was, and the change arrives
 * when the server is back. */
static void a_server_that_refuses_writes(void)
{
    struct cluster c;
    start_running(&c, AUTO);
    const struct json *before = runtime(&c);
    c.failures = INT32_MAX;
    c.fail_code = 500;
    c.fail_path = "/inferenceservices/";
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat", "{spec: {replicas: 3}}");
    cluster_until(&c, cluster_now(&c) + 5);
    EQ_STR(json_text(json_get(status(&c), "status")), S("Running"));
    EQ_STR(aim_test_reason(status(&c), "Ready"), S("ServerUnavailable"));
    EQ_STR(json_text(json_get(aim_status_find(status(&c), "Ready"), "status")), S("Unknown"));
    cluster_until(&c, cluster_now(&c) + 60);
    EQ_STR(json_text(json_get(status(&c), "status")), S("Failed"));
    EQ_STR(aim_test_reason(status(&c), "RuntimeReady"), S("RuntimeFailed"));
    OK(json_eq(json_get(before, "spec"), json_get(runtime(&c), "spec")));
    c.failures = 0;
    cluster_until(&c, cluster_now(&c) + 1100); /* the longest pause between attempts */
    EQ_INT(json_int(json_at(runtime(&c), "spec", "predictor", "minReplicas", NULL), 0), 3);
    EQ_STR(json_text(json_get(status(&c), "status")), S("Running"));
    cluster_stop(&c);
}

/* The service is being deleted, and something of others holds it: no request for its children, and no other status. */
static void a_service_that_is_being_deleted_is_left_alone(void)
{
    struct cluster c;
    start_running(&c, AUTO);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat",
                   "{metadata: {finalizers: [example.org/hold]}}");
    aim_test_wait(&c);
    aim_test_delete(&c, aim_test_kind(AIM_SERVICE), ns, "chat");
    buf_clear(&c.log);
    aim_test_delete_template(&c);
    aim_test_patch(&c, aim_test_kind(AIM_CONFIG), ns, "gold",
                   "{spec: {routing: {enabled: false}}}");
    cluster_until(&c, cluster_now(&c) + 30);
    OK(runtime(&c) && cluster_get(&c, &aim_resource_httproutes, ns, "chat"));
    OK(!has_written(&c, "/inferenceservices/") && !has_written(&c, "/httproutes/"));
    EQ_STR(json_text(json_get(status(&c), "status")), S("Running"));
    cluster_stop(&c);
}

/* Overrides that are added later: another template is derived, and the InferenceService changes to it in one whole write. */
static void overrides_change_the_runtime_in_one_step(void)
{
    struct cluster c;
    start_running(&c, AUTO);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat",
                   "{spec: {overrides: {precision: fp8}}}");
    cluster_until(&c, cluster_now(&c) + 30);
    str name = json_text(json_at(runtime(&c), "spec", "predictor", "model", "runtime", NULL));
    OK(str_starts(name, S("llama-latency-ovr-")));
    EQ_INT(json_int(json_at(runtime(&c), "metadata", "generation", NULL), 0), 2);
    EQ_INT(aim_test_count_events(&c, ns, "chat", "TemplateRebound"), 1);
    /* the base goes: the derived template stays, and what it serves too */
    buf_clear(&c.log);
    aim_test_delete_template(&c);
    cluster_until(&c, cluster_now(&c) + 30);
    OK(!has_written(&c, "/inferenceservices/"));
    OK(cluster_get(&c, aim_test_kind(AIM_TEMPLATE), ns, arena_str(&c.arena, name).p));
    cluster_stop(&c);
}

/* Selection is made once: a better template and a model that was away for a while do not move a service that runs. */
static void a_binding_outlives_a_trouble(void)
{
    struct cluster c;
    start_running(&c, AUTO);
    const struct json *before = runtime(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_TEMPLATE), ns,
        "{metadata: {name: better}, spec: {modelName: meta-llama-3-8b, metric: latency, "
        "precision: fp8, modelSources: [{name: a/b, sourceUri: 'hf://a/b', size: "
        "1Gi}]}}");
    aim_test_wait(&c);
    buf_clear(&c.log);
    aim_test_delete_model(&c);
    cluster_until(&c, cluster_now(&c) + 20);
    EQ_STR(aim_test_reason(status(&c), "Ready"), S("ModelNotFound"));
    aim_test_create_model(&c);
    cluster_until(&c, cluster_now(&c) + 60);
    OK(!has_written(&c, "/inferenceservices/"));
    OK(json_eq(json_get(before, "spec"), json_get(runtime(&c), "spec")));
    EQ_STR(json_text(json_at(status(&c), "resolvedTemplate", "name", NULL)), str_c(template));
    EQ_INT(aim_test_count_events(&c, ns, "chat", "TemplateRebound"), 0);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat",
                   "{metadata: {annotations: {aim.silogen.ai/force-rebind: now}}}");
    cluster_until(&c, cluster_now(&c) + 20);
    EQ_STR(json_text(json_at(runtime(&c), "spec", "predictor", "model", "runtime", NULL)),
           S("better"));
    EQ_INT(aim_test_count_events(&c, ns, "chat", "TemplateRebound"), 1);
    cluster_stop(&c);
}

/* A better template appears: a service with overrides keeps its own, although the name of the base was cut. */
static void a_long_name_is_recognized(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), ns, GOLD);
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_MODEL), ns,
                    "{metadata: {name: tiny}, spec: {image: 'a/b:1'}}");
    aim_test_create(
        &c, aim_test_kind(AIM_TEMPLATE), ns,
        "{metadata: {name: a-template-with-a-name-that-is-longer-than-fifty-characters}, "
        "spec: {modelName: tiny, metric: throughput, precision: fp16, modelSources: "
        "[{name: a/b, sourceUri: 'hf://a/b', size: 1Gi}]}}");
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns,
                    "{metadata: {name: chat}, spec: {model: {ref: tiny}, overrides: {precision: "
                    "bf16}}}");
    cluster_until(&c, cluster_now(&c) + 20);
    const struct json *before = runtime(&c);
    OK(before);
    aim_test_create(
        &c, aim_test_kind(AIM_TEMPLATE), ns,
        "{metadata: {name: better}, spec: {modelName: tiny, metric: latency, precision: "
        "fp8, modelSources: [{name: a/b, sourceUri: 'hf://a/b', size: 1Gi}]}}");
    cluster_until(&c, cluster_now(&c) + 20);
    if (!OK(json_eq(json_get(before, "spec"), json_get(runtime(&c), "spec"))))
        printf("# " STR_FMT "\n# " STR_FMT "\n", STR_ARG(json_to_str(&c.arena, before)),
               STR_ARG(json_to_str(&c.arena, runtime(&c))));
    cluster_stop(&c);
}

/* The definitions let an object without a spec be stored, as those of the original do. */
static void a_service_without_a_spec_is_invalid(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    for (enum aim_kind k = 0; k < AIM_KIND_N; k++)
        aim_test_create(&c, aim_test_kind(k), aim_test_kind(k)->namespaced ? ns : NULL,
                        "{metadata: {name: chat}}");
    cluster_until(&c, cluster_now(&c) + 20);
    EQ_STR(json_text(json_get(status(&c), "status")), S("Failed"));
    EQ_STR(aim_test_reason(status(&c), "Ready"), S("InvalidSpec"));
    OK(!runtime(&c));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(every_row_keeps_what_runs),
                                        TAP(a_server_that_refuses_writes),
                                        TAP(a_service_that_is_being_deleted_is_left_alone),
                                        TAP(overrides_change_the_runtime_in_one_step),
                                        TAP(a_binding_outlives_a_trouble),
                                        TAP(a_long_name_is_recognized),
                                        TAP(a_service_without_a_spec_is_invalid),
                                        { 0 } });
}
