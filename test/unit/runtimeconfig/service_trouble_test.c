/* Never degrade what runs, end to end on the embedded API server: a service that runs, then a trouble, a restart in the
 * middle of it, and its end. In all of that not one request is sent for the InferenceService, and its spec stays as it was,
 * byte for byte. A service that is new in a trouble gets neither an InferenceService nor a route; its first
 * InferenceService is complete and is not written again. */
#include "aim_world.h"
#include "base/random.h"
#include "runtimeconfig/service_world.h"

#define READY "{conditions: [{type: Ready, status: 'True'}]}"
#define PAUSE "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: 'true'}}}"
#define RESUME "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: null}}}"
#define GOLD                                                                                       \
    "{metadata: {name: gold}, spec: {routing: {enabled: true, gatewayRef: {name: "                 \
    "inference-gateway, namespace: gateways}}}}"
#define CHAT                                                                                       \
    "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}, runtimeConfigName: gold}}"

static const char ns[] = "ml-team", model[] = "meta-llama-3-8b", template[] = "llama-latency";

static struct json *runtime(struct cluster *c)
{
    return cluster_get(c, &aim_resource_inference_services, ns, "chat");
}

static str word(struct cluster *c)
{
    return json_text(json_get(aim_test_status(c, AIM_SERVICE, ns, "chat"), "status"));
}

static size_t count(const struct cluster *c, const char *part)
{
    size_t n = 0, found;
    for (str rest = buf_str(&c->log); (found = str_find(rest, str_c(part))) != SIZE_MAX; n++)
        rest = str_from(rest, found + 1);
    return n;
}

/* ---- troubles */

static void break_model_config(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, model,
                   "{spec: {runtimeConfigName: gone}}");
}

static void mend_model_config(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, model,
                   "{spec: {runtimeConfigName: default}}");
}

static void set_word(struct cluster *c, enum aim_kind kind, const char *name, const char *status)
{
    aim_test_patch(c, aim_test_kind(kind), NULL, name, PAUSE);
    aim_test_wait(c);
    aim_test_set_status(c, aim_test_kind(kind), NULL, name, status);
}

static void fail_model(struct cluster *c)
{
    set_word(c, AIM_CLUSTER_MODEL, model, "{status: Failed}");
}

static void degrade_model(struct cluster *c)
{
    set_word(c, AIM_CLUSTER_MODEL, model, "{status: Degraded}");
}

static void resume_model(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, model, RESUME);
}

static void fail_template(struct cluster *c)
{
    set_word(c, AIM_CLUSTER_TEMPLATE, template, "{status: Failed}");
}

static void lose_gpu(struct cluster *c)
{
    set_word(c, AIM_CLUSTER_TEMPLATE, template, "{status: NotAvailable}");
}

static void resume_template(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, template, RESUME);
}

static void empty_template(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, template,
                   "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: 'true'}}, "
                   "spec: {modelSources: []}}");
    aim_test_set_status(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, template,
                        "{status: Ready, modelSources: []}");
}

static void fill_template(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL, template,
                   "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: null}}, spec: "
                   "{modelSources: [{name: meta-llama/Llama-3-8B, sourceUri: "
                   "'hf://meta-llama/Llama-3-8B', size: 16Gi}]}}");
}

static void delete_config(struct cluster *c)
{
    aim_test_delete(c, aim_test_kind(AIM_CONFIG), ns, "gold");
}

static void create_config(struct cluster *c)
{
    aim_test_create(c, aim_test_kind(AIM_CONFIG), ns, GOLD);
}

static void break_path(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CONFIG), ns, "gold",
                   "{spec: {routing: {pathTemplate: '/{.metadata.labels[\"none\"]}'}}}");
}

static void mend_path(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CONFIG), ns, "gold",
                   "{spec: {routing: {pathTemplate: null}}}");
}

static void remove_gateway(struct cluster *c)
{
    aim_test_patch(c, aim_test_kind(AIM_CONFIG), ns, "gold",
                   "{spec: {routing: {gatewayRef: null}}}");
}

static void restore_gateway(struct cluster *c)
{
    aim_test_patch(
        c, aim_test_kind(AIM_CONFIG), ns, "gold",
        "{spec: {routing: {gatewayRef: {name: inference-gateway, namespace: gateways}}}}");
}

static void break_server(struct cluster *c)
{
    c->failures = INT32_MAX;
    c->fail_code = 500;
    c->fail_path = "aimclusterservicetemplates";
}

static void mend_server(struct cluster *c)
{
    c->failures = 0;
}

static const struct trouble {
    const char *name;
    void (*begin)(struct cluster *c), (*end)(struct cluster *c);
    const char *word; /* of the service meanwhile; NULL: as before */
} troubles[] = {
    /* clang-format off: one a line */
    { "template deleted", aim_test_delete_template, aim_test_create_template, "Pending" },
    { "template failed", fail_template, resume_template, "Failed" },
    { "template not available", lose_gpu, resume_template, "Degraded" },
    { "template without sources", empty_template, fill_template, "Degraded" },
    { "model deleted", aim_test_delete_model, aim_test_create_model, "Pending" },
    { "model failed", fail_model, resume_model, "Failed" },
    { "model degraded", degrade_model, resume_model, "Degraded" },
    { "model's configuration missing", break_model_config, mend_model_config, "Degraded" },
    { "configuration deleted", delete_config, create_config, "Degraded" },
    { "path invalid", break_path, mend_path, "Degraded" },
    { "gateway removed", remove_gateway, restore_gateway, "Failed" },
    { "server error", break_server, mend_server, NULL },
    /* clang-format on */
};

/* ---- a service that runs */

static void start_running(struct cluster *c)
{
    aim_test_start(c);
    aim_test_create(c, aim_test_kind(AIM_CONFIG), ns, GOLD);
    aim_test_start_operator(c);
    aim_test_create(c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    aim_test_wait(c);
    aim_test_set_status(c, &aim_resource_inference_services, ns, "chat", READY);
    aim_test_set_status(
        c, &aim_resource_httproutes, ns, "chat",
        "{parents: [{parentRef: {name: inference-gateway}, controllerName: "
        "test.example/gateway, conditions: [{type: Accepted, status: 'True', reason: "
        "Accepted, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}]}");
    aim_test_wait(c);
    EQ_STR(word(c), S("Running"));
    EQ_INT(json_int(json_at(runtime(c), "metadata", "generation", NULL), 0), 1); /* written once */
}

static void check_untouched(struct cluster *c, const struct trouble *t, const char *when,
                            const struct json *before)
{
    bool kept = json_eq(json_get(before, "spec"), json_get(runtime(c), "spec")) &&
                json_eq(json_at(before, "metadata", "generation", NULL),
                        json_at(runtime(c), "metadata", "generation", NULL));
    size_t writes = count(c, "PATCH /apis/serving.kserve.io/v1beta1");
    if (!OK(kept && writes == 0))
        printf("# %s, %s: %zu writes\n", t->name, when, writes);
    OK(cluster_get(c, &aim_resource_httproutes, ns, "chat"));
}

static void run_trouble(const struct trouble *t)
{
    struct cluster c;
    start_running(&c);
    const struct json *before = runtime(&c);
    str running = S("Running");
    buf_clear(&c.log);
    t->begin(&c);
    cluster_until(&c, cluster_now(&c) + 30);
    check_untouched(&c, t, "during", before);
    if (!EQ_STR(word(&c), t->word ? str_c(t->word) : running))
        printf("# %s\n", t->name);
    const struct json *serving =
        aim_status_find(aim_test_status(&c, AIM_SERVICE, ns, "chat"), "Serving");
    EQ_STR(json_text(json_get(serving, "status")), S("True")); /* degraded, but not down */
    if (t->begin != break_server) { /* a restart needs a server that lists */
        cluster_operator_down(&c);
        aim_test_start_operator(&c);
        cluster_until(&c, cluster_now(&c) + 30);
        check_untouched(&c, t, "after a restart", before);
    }
    t->end(&c);
    cluster_until(&c, cluster_now(&c) + 120);
    check_untouched(&c, t, "after its end", before);
    if (!EQ_STR(word(&c), running))
        printf("# after %s\n", t->name);
    cluster_stop(&c);
}

static void what_runs_is_never_degraded(void)
{
    for (size_t i = 0; i < countof(troubles); i++)
        run_trouble(&troubles[i]);
}

/* Troubles that begin and end in any order, several at a time, and restarts: an InferenceService that was complete stays
 * complete, and a route never exists without it. */
static void any_order_of_troubles_degrades_nothing(void)
{
    enum { STEPS = 40 };
    struct cluster c;
    struct random r;
    bool on[countof(troubles)] = { false };
    /* of those that share an object, one each: its end would undo the beginning of another */
    static const size_t used[] = { 0, 4, 8, 11 };
    random_init(&r, 17, 3);
    start_running(&c);
    const struct json *before = runtime(&c);
    buf_clear(&c.log);
    for (int i = 0; i < STEPS; i++) {
        size_t which = used[random_below(&r, countof(used))];
        const struct trouble *t = &troubles[which];
        (on[which] ? t->end : t->begin)(&c);
        on[which] = !on[which];
        cluster_until(&c, cluster_now(&c) + (int64_t)random_below(&r, 8));
        if (!on[countof(troubles) - 1] && random_below(&r, 6) == 0) {
            cluster_operator_down(&c);
            aim_test_start_operator(&c);
        }
        check_untouched(&c, t, "in any order", before);
    }
    for (size_t i = 0; i < countof(troubles); i++)
        if (on[i])
            troubles[i].end(&c);
    cluster_until(&c, cluster_now(&c) + 300);
    check_untouched(&c, &troubles[0], "after all", before);
    EQ_STR(word(&c), S("Running"));
    cluster_stop(&c);
}

/* ---- a new service */

static void a_new_service_in_trouble_gets_nothing(void)
{
    static const struct trouble *const some[] = { &troubles[0], &troubles[1], &troubles[3],
                                                  &troubles[4], &troubles[5], &troubles[8] };
    for (size_t i = 0; i < countof(some); i++) {
        struct cluster c;
        aim_test_start(&c);
        aim_test_create(&c, aim_test_kind(AIM_CONFIG), ns, GOLD);
        aim_test_start_operator(&c);
        aim_test_wait(&c);
        some[i]->begin(&c);
        aim_test_wait(&c);
        aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
        cluster_until(&c, cluster_now(&c) + 30);
        if (!OK(!runtime(&c) && !cluster_get(&c, &aim_resource_httproutes, ns, "chat")))
            printf("# %s\n", some[i]->name);
        some[i]->end(&c);
        cluster_until(&c, cluster_now(&c) + 120);
        OK(cluster_get(&c, &aim_resource_httproutes, ns, "chat"));
        EQ_INT(json_int(json_at(runtime(&c), "metadata", "generation", NULL), 0), 1);
        EQ_STR(json_text(json_at(runtime(&c), "spec", "predictor", "model", "runtime", NULL)),
               str_c(template));
        cluster_stop(&c);
    }
}

/* ---- taking over from the original */

static void children_of_the_original_are_adopted(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), ns, GOLD);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    str uid = json_text(
        json_at(cluster_get(&c, aim_test_kind(AIM_SERVICE), ns, "chat"), "metadata", "uid", NULL));
    const char *owner =
        arena_printf(&c.arena,
                     "ownerReferences: [{apiVersion: aim.silogen.ai/v1alpha1, kind: AIMService, "
                     "name: chat, uid: " STR_FMT ", controller: true}]",
                     STR_ARG(uid))
            .p;
    aim_test_create(&c, &aim_resource_inference_services, ns,
                    arena_printf(&c.arena,
                                 "{metadata: {name: chat-050bd8bf, %s}, spec: {predictor: "
                                 "{containers: [{name: kserve-container, image: 'a/b:1'}]}}}",
                                 owner)
                        .p);
    aim_test_create(&c, &aim_resource_httproutes, ns,
                    arena_printf(&c.arena,
                                 "{metadata: {name: chat-050bd8bf, %s}, spec: {parentRefs: [{name: "
                                 "inference-gateway, namespace: gateways}]}}",
                                 owner)
                        .p);
    aim_test_set_status(&c, aim_test_kind(AIM_SERVICE), ns, "chat",
                        "{status: Running, conditions: [{type: InferenceServiceReady, status: "
                        "'True', reason: RuntimeReady, message: x, lastTransitionTime: "
                        "'2026-01-01T00:00:00Z'}]}");
    const struct json *before =
        cluster_get(&c, &aim_resource_inference_services, ns, "chat-050bd8bf");
    aim_test_start_operator(&c);
    cluster_until(&c, cluster_now(&c) + 60);
    OK(!runtime(&c)); /* no second one */
    OK(!cluster_get(&c, &aim_resource_httproutes, ns, "chat"));
    const struct json *after =
        cluster_get(&c, &aim_resource_inference_services, ns, "chat-050bd8bf");
    OK(json_eq(json_get(before, "spec"), json_get(after, "spec")));
    const struct json *route = cluster_get(&c, &aim_resource_httproutes, ns, "chat-050bd8bf");
    const struct json *rule = json_item(json_at(route, "spec", "rules", NULL), 0);
    EQ_STR(json_text(json_get(json_item(json_get(rule, "backendRefs"), 0), "name")),
           S("chat-050bd8bf-predictor"));
    const struct json *status = aim_test_status(&c, AIM_SERVICE, ns, "chat");
    OK(!aim_status_find(status, "InferenceServiceReady"));
    OK(aim_status_find(status, "RuntimeReady"));
    cluster_stop(&c);
}

/* A model of one's own files: the template comes from the model, and a service with only the model's name runs it. */
static void a_custom_model_makes_its_template(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_MODEL), ns,
                    "{metadata: {name: own}, spec: {image: 'a/b:1', custom: {hardware: {cpu: "
                    "{requests: '4'}}}, modelSources: [{modelId: acme/tiny, sourceUri: "
                    "'hf://acme/tiny', size: 2Gi}]}}");
    aim_test_create(
        &c, aim_test_kind(AIM_SERVICE), ns,
        "{metadata: {name: chat}, spec: {model: {name: own}, priorityClassName: high}}");
    cluster_until(&c, cluster_now(&c) + 10);
    const struct json *status = aim_test_status(&c, AIM_MODEL, ns, "own");
    EQ_STR(json_text(json_get(status, "status")), S("Ready"));
    EQ_STR(json_text(json_get(status, "sourceType")), S("Custom"));
    const struct json *predictor = json_at(runtime(&c), "spec", "predictor", NULL);
    OK(str_starts(json_text(json_at(predictor, "model", "runtime", NULL)), S("own-custom-")));
    EQ_STR(json_text(json_get(predictor, "priorityClassName")), S("high"));
    cluster_stop(&c);
}

/* The same inside the service: one model for two services that describe the same files. */
static void a_service_describes_its_own_model(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    for (int i = 0; i < 2; i++)
        aim_test_create(
            &c, aim_test_kind(AIM_SERVICE), ns,
            arena_printf(&c.arena,
                         "{metadata: {name: mine%d}, spec: {model: {custom: {baseImage: "
                         "'a/b:1', hardware: {cpu: {requests: '4'}}, modelSources: "
                         "[{modelId: acme/tiny, sourceUri: 'hf://acme/tiny', size: "
                         "2Gi}]}}}}",
                         i)
                .p);
    cluster_until(&c, cluster_now(&c) + 60);
    struct cluster_answer a = cluster_do(&c, KUBE_LIST, aim_test_kind(AIM_MODEL), ns, NULL, S(""));
    const struct json *models = json_get(a.object, "items");
    EQ_INT((int64_t)json_len(models), 1);
    OK(str_starts(json_text(json_at(json_item(models, 0), "metadata", "name", NULL)),
                  S("acme-tiny-")));
    OK(cluster_get(&c, &aim_resource_inference_services, ns, "mine0"));
    OK(cluster_get(&c, &aim_resource_inference_services, ns, "mine1"));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(what_runs_is_never_degraded),
                                        TAP(any_order_of_troubles_degrades_nothing),
                                        TAP(a_new_service_in_trouble_gets_nothing),
                                        TAP(children_of_the_original_are_adopted),
                                        TAP(a_custom_model_makes_its_template),
                                        TAP(a_service_describes_its_own_model),
                                        { 0 } });
}
