/* Objects under a name that we would use but that have another owner are kept, and the status explains it. A serving
 * runtime stays as long as an InferenceService names it, with or without its template. */
#include "aim_world.h"
#include "runtimeconfig/service_world.h"

#define TEMPLATE                                                                                   \
    "{metadata: {name: fast}, spec: {modelName: meta-llama-3-8b, metric: latency, precision: "     \
    "fp16, modelSources: [{name: a/b, sourceUri: 'hf://a/b', size: 2Gi}]}}"
#define CHAT "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}, templateRef: fast}}"
#define FOREIGN "spec: {containers: [{name: theirs, image: 'their/image:1'}]}}"

static const char ns[] = "ml-team";

static void remove_object(struct cluster *c, const struct resource *resource, const char *where,
                          const char *name)
{
    aim_test_delete(c, resource, where, name);
    cluster_until(c, cluster_now(c) + 60);
}

static str image_of(const struct json *runtime)
{
    return json_text(json_get(json_item(json_at(runtime, "spec", "containers", NULL), 0), "image"));
}

static void check_word(struct cluster *c, enum aim_kind kind, const char *where, const char *name,
                       const char *word, const char *reason)
{
    const struct json *status = aim_test_status(c, kind, where, name);
    EQ_STR(json_text(json_get(status, "status")), str_c(word));
    EQ_STR(aim_test_reason(status, "Ready"), str_c(reason));
}

/* One without an owner, and one that another operator owns although it has our label. */
static void a_serving_runtime_of_others_is_kept(void)
{
    for (int owned = 0; owned < 2; owned++) {
        struct cluster c;
        aim_test_start(&c);
        str uid = json_text(
            json_at(cluster_get(&c, &resource_namespaces, NULL, ns), "metadata", "uid", NULL));
        str owner = arena_printf(&c.arena,
                                 ", labels: {app.kubernetes.io/managed-by: aim-controller}, "
                                 "ownerReferences: [{apiVersion: v1, kind: Namespace, name: "
                                 "ml-team, uid: " STR_FMT ", controller: true}]",
                                 STR_ARG(uid));
        aim_test_create(
            &c, &aim_resource_serving_runtimes, ns,
            arena_printf(&c.arena, "{metadata: {name: fast%s}, " FOREIGN, owned ? owner.p : "").p);
        aim_test_start_operator(&c);
        aim_test_create(&c, aim_test_kind(AIM_TEMPLATE), ns, TEMPLATE);
        aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
        aim_test_wait(&c);
        const struct json *kept = cluster_get(&c, &aim_resource_serving_runtimes, ns, "fast");
        EQ_STR(image_of(kept), S("their/image:1"));
        EQ_INT(json_int(json_at(kept, "metadata", "generation", NULL), 0), 1);
        check_word(&c, AIM_TEMPLATE, ns, "fast", "Degraded", "ServingRuntimeConflict");
        check_word(&c, AIM_SERVICE, ns, "chat", "Degraded", "ServingRuntimeConflict");
        OK(!cluster_get(&c, &aim_resource_inference_services, ns, "chat"));
        remove_object(&c, &aim_resource_serving_runtimes, ns, "fast");
        const struct json *ours = cluster_get(&c, &aim_resource_serving_runtimes, ns, "fast");
        EQ_STR(image_of(ours), S("example.org/llama:1"));
        check_word(&c, AIM_TEMPLATE, ns, "fast", "Ready", "Available");
        OK(cluster_get(&c, &aim_resource_inference_services, ns, "chat"));
        cluster_stop(&c);
    }
}

/* Both kinds; with an owner reference as the original and earlier versions set it, and without. */
static void a_serving_runtime_stays_while_it_is_named(void)
{
    for (int i = 0; i < 4; i++) {
        struct cluster c;
        enum aim_kind kind = i & 1 ? AIM_CLUSTER_TEMPLATE : AIM_TEMPLATE;
        const struct resource *runtimes =
            i & 1 ? &aim_resource_cluster_serving_runtimes : &aim_resource_serving_runtimes;
        const char *where = i & 1 ? NULL : ns;
        aim_test_start(&c);
        aim_test_create(&c, aim_test_kind(kind), where, TEMPLATE);
        str uid = json_text(
            json_at(cluster_get(&c, aim_test_kind(kind), where, "fast"), "metadata", "uid", NULL));
        if (i & 2)
            aim_test_create(
                &c, runtimes, where,
                arena_printf(&c.arena,
                             "{metadata: {name: fast, ownerReferences: [{apiVersion: "
                             "aim.silogen.ai/v1alpha1, kind: %s, name: fast, uid: " STR_FMT
                             ", controller: true}]}, spec: {containers: []}}",
                             aim_test_kind(kind)->kind, STR_ARG(uid))
                    .p);
        aim_test_start_operator(&c);
        aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
        aim_test_wait(&c);
        OK(cluster_get(&c, &aim_resource_inference_services, ns, "chat"));
        remove_object(&c, aim_test_kind(kind), where, "fast");
        EQ_STR(image_of(cluster_get(&c, runtimes, where, "fast")), S("example.org/llama:1"));
        cluster_operator_down(&c);
        aim_test_start_operator(&c);
        OK(cluster_get(&c, runtimes, where, "fast"));
        remove_object(&c, aim_test_kind(AIM_SERVICE), ns, "chat");
        OK(!cluster_get(&c, &aim_resource_inference_services, ns, "chat"));
        OK(!cluster_get(&c, runtimes, where, "fast")); /* no InferenceService names it */
        cluster_stop(&c);
    }
}

/* A template without services takes its serving runtime with it; runtimes of others stay. */
static void an_unused_serving_runtime_is_deleted(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_TEMPLATE), ns, TEMPLATE);
    aim_test_create(&c, &aim_resource_serving_runtimes, ns,
                    "{metadata: {name: other, labels: {app.kubernetes.io/managed-by: "
                    "aim-controller}}, " FOREIGN);
    aim_test_start_operator(&c);
    OK(cluster_get(&c, &aim_resource_serving_runtimes, ns, "fast"));
    remove_object(&c, aim_test_kind(AIM_TEMPLATE), ns, "fast");
    OK(!cluster_get(&c, &aim_resource_serving_runtimes, ns, "fast"));
    OK(cluster_get(&c, &aim_resource_serving_runtimes, ns, "other"));
    cluster_stop(&c);
}

static void an_inference_service_of_others_is_reported(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_TEMPLATE), ns, TEMPLATE);
    aim_test_create(&c, &aim_resource_inference_services, ns,
                    "{metadata: {name: chat}, spec: {predictor: {model: {modelFormat: {name: "
                    "sklearn}}}}}");
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    cluster_until(&c, cluster_now(&c) + 60);
    check_word(&c, AIM_SERVICE, ns, "chat", "Degraded", "InferenceServiceConflict");
    const struct json *status = aim_test_status(&c, AIM_SERVICE, ns, "chat");
    EQ_STR(aim_test_reason(status, "RuntimeReady"), S("InferenceServiceConflict"));
    EQ_STR(aim_test_reason(status, "Failure"), S("InferenceServiceConflict"));
    EQ_STR(json_text(json_get(aim_status_find(status, "Ready"), "message")),
           S("InferenceService \"chat\" exists and does not belong to this service; delete it or "
             "rename the service"));
    EQ_INT((int64_t)aim_test_count_events(&c, ns, "chat", "InferenceServiceConflict"), 1);
    EQ_STR(json_text(json_at(cluster_get(&c, &aim_resource_inference_services, ns, "chat"), "spec",
                             "predictor", "model", "modelFormat", "name", NULL)),
           S("sklearn"));
    remove_object(&c, &aim_resource_inference_services, ns, "chat");
    EQ_STR(json_text(json_at(cluster_get(&c, &aim_resource_inference_services, ns, "chat"), "spec",
                             "predictor", "model", "runtime", NULL)),
           S("fast"));
    check_word(&c, AIM_SERVICE, ns, "chat", "Starting", "CreatingRuntime");
    cluster_stop(&c);
}

/* Two operators side by side: a service of the same name in the API group of the newer one has its own InferenceService. */
static void an_inference_service_of_the_other_group_is_kept(void)
{
    struct cluster c;
    aim_test_start(&c);
    str uid = json_text(
        json_at(cluster_get(&c, &resource_namespaces, NULL, ns), "metadata", "uid", NULL));
    static const char *const names[] = { "chat", "chat-050bd8bf" };
    for (size_t i = 0; i < countof(names); i++)
        aim_test_create(
            &c, &aim_resource_inference_services, ns,
            arena_printf(&c.arena,
                         "{metadata: {name: %s, ownerReferences: [{apiVersion: "
                         "aim.eai.amd.com/v1alpha1, kind: AIMService, name: chat, uid: " STR_FMT
                         ", controller: true}]}, spec: {predictor: "
                         "{containers: [{name: kserve-container, image: 'a/b:1'}]}}}",
                         names[i], STR_ARG(uid))
                .p);
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_TEMPLATE), ns, TEMPLATE);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns, CHAT);
    cluster_until(&c, cluster_now(&c) + 20);
    check_word(&c, AIM_SERVICE, ns, "chat", "Degraded", "InferenceServiceConflict");
    for (size_t i = 0; i < countof(names); i++) {
        const struct json *kept = cluster_get(&c, &aim_resource_inference_services, ns, names[i]);
        EQ_INT(json_int(json_at(kept, "metadata", "generation", NULL), 0), 1);
    }
    OK(!cluster_get(&c, &aim_resource_httproutes, ns, "chat"));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_serving_runtime_of_others_is_kept),
                                        TAP(a_serving_runtime_stays_while_it_is_named),
                                        TAP(an_unused_serving_runtime_is_deleted),
                                        TAP(an_inference_service_of_others_is_reported),
                                        TAP(an_inference_service_of_the_other_group_is_kept),
                                        { 0 } });
}
