/* Template caches and model caches end to end on the embedded API server; the test plays the volume binder and the job
 * runner. */
#include "aim_world.h"
#include "runtimeconfig/service_world.h"

static const char ns[] = "ml-team";
static const char model_cache[] = "meta-llama-llama-3-8b";
static const char claim[] = "meta-llama-llama-3-8b-cache";
static const char job[] = "meta-llama-llama-3-8b-cache-download";

#define CACHE "{metadata: {name: warm}, spec: {templateRef: llama-latency}}"
#define DONE                                                                                       \
    "{succeeded: 1, startTime: '2026-05-28T20:00:00Z', completionTime: '2026-05-28T20:01:00Z', "   \
    "conditions: [{type: SuccessCriteriaMet, status: 'True'}, {type: Complete, status: 'True'}]}"
#define BROKEN                                                                                     \
    "{failed: 3, startTime: '2026-05-28T20:00:00Z', conditions: [{type: FailureTarget, status: "   \
    "'True'}, {type: Failed, status: 'True', reason: BackoffLimitExceeded, message: no token}]}"

static void delete(struct cluster *c, const struct resource *resource, const char *name)
{
    struct cluster_answer a = cluster_do(c, KUBE_DELETE, resource, ns, name, S(""));
    EQ_INT(a.code, 200);
    cluster_until(c, cluster_now(c) + 5);
}

static struct json *get(struct cluster *c, const struct resource *resource, const char *name)
{
    return cluster_get(c, resource, ns, name);
}

#define WORD(k, name, want)                                                                        \
    EQ_STR(json_text(json_get(aim_test_status(&c, k, ns, name), "status")), S(want))

static void start_world(struct cluster *c)
{
    aim_test_start(c);
    aim_test_start_operator(c);
}

/* A cache of the template with its volume bound. */
static void begin_cache(struct cluster *c)
{
    start_world(c);
    aim_test_create(c, aim_test_kind(AIM_TEMPLATE_CACHE), ns, CACHE);
    aim_test_wait(c);
    aim_test_set_status(c, &aim_resource_claims, ns, claim, "{phase: Bound}");
}

static void a_failed_download_is_reported_and_retried(void)
{
    struct cluster c;
    begin_cache(&c);
    WORD(AIM_TEMPLATE_CACHE, "warm", "Progressing");
    aim_test_set_status(&c, &aim_resource_jobs, ns, job, BROKEN);
    WORD(AIM_MODEL_CACHE, model_cache, "Failed");
    WORD(AIM_TEMPLATE_CACHE, "warm", "Failed");
    const struct json *status = aim_test_status(&c, AIM_MODEL_CACHE, ns, model_cache);
    const struct json *failure = aim_status_find(status, "Failure");
    EQ_STR(json_text(json_get(failure, "message")), S("The download failed: no token"));
    delete (&c, &aim_resource_jobs, job); /* as its time to live would */
    OK(get(&c, &aim_resource_jobs, job));
    WORD(AIM_MODEL_CACHE, model_cache, "Progressing");
    aim_test_set_status(&c, &aim_resource_jobs, ns, job, DONE);
    WORD(AIM_TEMPLATE_CACHE, "warm", "Available");
    delete (&c, &aim_resource_jobs, job); /* and its work is remembered */
    OK(!get(&c, &aim_resource_jobs, job));
    WORD(AIM_TEMPLATE_CACHE, "warm", "Available");
    cluster_stop(&c);
}

static void a_volume_lost_by_hand_is_made_and_filled_anew(void)
{
    struct cluster c;
    begin_cache(&c);
    aim_test_set_status(&c, &aim_resource_jobs, ns, job, DONE);
    WORD(AIM_MODEL_CACHE, model_cache, "Available");
    delete (&c, &aim_resource_jobs, job);
    delete (&c, &aim_resource_claims, claim);
    OK(get(&c, &aim_resource_claims, claim));
    OK(get(&c, &aim_resource_jobs, job)); /* an unknown class may bind late */
    WORD(AIM_TEMPLATE_CACHE, "warm", "Progressing");
    cluster_stop(&c);
}

/* The finished job of the old volume is still there. */
static void a_new_volume_is_filled_again(void)
{
    struct cluster c;
    begin_cache(&c);
    aim_test_set_status(&c, &aim_resource_jobs, ns, job, DONE);
    WORD(AIM_MODEL_CACHE, model_cache, "Available");
    str old = json_text(json_at(get(&c, &aim_resource_jobs, job), "metadata", "uid", NULL));
    delete (&c, &aim_resource_claims, claim);
    aim_test_set_status(&c, &aim_resource_claims, ns, claim, "{phase: Bound}");
    cluster_until(&c, cluster_now(&c) + 30);
    WORD(AIM_MODEL_CACHE, model_cache, "Progressing");
    WORD(AIM_TEMPLATE_CACHE, "warm", "Progressing");
    const struct json *next = get(&c, &aim_resource_jobs, job);
    OK(next && !str_eq(json_text(json_at(next, "metadata", "uid", NULL)), old));
    aim_test_set_status(&c, &aim_resource_jobs, ns, job, DONE);
    WORD(AIM_TEMPLATE_CACHE, "warm", "Available");
    cluster_stop(&c);
}

static void caches_are_shared_and_not_made_twice(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_MODEL_CACHE), ns,
        "{metadata: {name: mine}, spec: {sourceUri: 'hf://meta-llama/Llama-3-8B', size: 16Gi}}");
    aim_test_wait(&c);
    OK(get(&c, &aim_resource_claims, "mine-cache"));
    aim_test_create(&c, aim_test_kind(AIM_TEMPLATE_CACHE), ns, CACHE);
    aim_test_wait(&c);
    OK(!get(&c, aim_test_kind(AIM_MODEL_CACHE), model_cache));
    const struct json *status = aim_test_status(&c, AIM_TEMPLATE_CACHE, ns, "warm");
    const struct json *entry = json_get(json_get(status, "modelCaches"), "meta-llama/Llama-3-8B");
    EQ_STR(json_text(json_get(entry, "name")), S("mine"));
    EQ_STR(json_text(json_get(entry, "persistentVolumeClaim")), S("mine-cache"));
    delete (&c, aim_test_kind(AIM_TEMPLATE_CACHE), "warm");
    OK(!get(&c, aim_test_kind(AIM_TEMPLATE_CACHE), "warm"));
    OK(get(&c, aim_test_kind(AIM_MODEL_CACHE), "mine")); /* not ours to delete */
    cluster_stop(&c);
}

static void a_name_that_is_taken_is_left_alone(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_MODEL_CACHE), ns,
        "{metadata: {name: meta-llama-llama-3-8b}, spec: {sourceUri: 's3://elsewhere', size: "
        "1Gi}}");
    aim_test_wait(&c);
    aim_test_create(&c, aim_test_kind(AIM_TEMPLATE_CACHE), ns, CACHE);
    aim_test_wait(&c);
    const struct json *other = get(&c, aim_test_kind(AIM_MODEL_CACHE), model_cache);
    EQ_STR(json_text(json_at(other, "spec", "sourceUri", NULL)), S("s3://elsewhere"));
    struct cluster_answer a =
        cluster_do(&c, KUBE_LIST, aim_test_kind(AIM_MODEL_CACHE), ns, NULL, S(""));
    EQ_INT(json_len(json_get(a.object, "items")), 2);
    cluster_stop(&c);
}

/* The service's own wish, then the configuration's; and what is made stays as it was made. */
static void storage_follows_its_precedence_and_stays(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_CONFIG), ns,
        "{metadata: {name: default}, spec: {defaultStorageClassName: team-ssd, pvcHeadroomPercent: "
        "50}}");
    aim_test_create(
        &c, aim_test_kind(AIM_SERVICE), ns,
        "{metadata: {name: own}, spec: {model: {ref: meta-llama-3-8b}, cacheModel: true, "
        "defaultStorageClassName: mine}}");
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns,
                    "{metadata: {name: plain}, spec: {model: {ref: meta-llama-3-8b}}}");
    aim_test_wait(&c);
    const struct json *own = json_get(get(&c, &aim_resource_claims, claim), "spec");
    const struct json *plain = json_get(get(&c, &aim_resource_claims, "plain-temp-cache"), "spec");
    EQ_STR(json_text(json_get(own, "storageClassName")), S("mine"));
    EQ_STR(json_text(json_at(own, "resources", "requests", "storage", NULL)), S("24Gi"));
    EQ_STR(json_text(json_get(plain, "storageClassName")), S("team-ssd"));
    aim_test_patch(&c, aim_test_kind(AIM_CONFIG), ns, "default",
                   "{spec: {defaultStorageClassName: other}}");
    aim_test_wait(&c);
    plain = json_get(get(&c, &aim_resource_claims, "plain-temp-cache"), "spec");
    EQ_STR(json_text(json_get(plain, "storageClassName")), S("team-ssd"));
    cluster_stop(&c);
}

static void a_missing_configuration_makes_no_volume(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_MODEL_CACHE), ns,
        "{metadata: {name: mine}, spec: {sourceUri: 'hf://x', size: 1Gi, runtimeConfigName: gone}}");
    aim_test_wait(&c);
    OK(!get(&c, &aim_resource_claims, "mine-cache"));
    const struct json *status = aim_test_status(&c, AIM_MODEL_CACHE, ns, "mine");
    EQ_STR(aim_test_reason(status, "ConfigResolved"), S("RuntimeConfigMissing"));
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), ns, "{metadata: {name: gone}, spec: {}}");
    aim_test_wait(&c);
    OK(get(&c, &aim_resource_claims, "mine-cache"));
    cluster_stop(&c);
}

static void a_cache_waits_for_its_template(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(&c, aim_test_kind(AIM_TEMPLATE_CACHE), ns,
                    "{metadata: {name: early}, spec: {templateRef: later}}");
    aim_test_wait(&c);
    const struct json *status = aim_test_status(&c, AIM_TEMPLATE_CACHE, ns, "early");
    EQ_STR(aim_test_reason(status, "Ready"), S("AwaitingTemplate"));
    aim_test_create(
        &c, aim_test_kind(AIM_TEMPLATE), ns,
        "{metadata: {name: later}, spec: {modelName: m, modelSources: [{name: a, sourceUri: "
        "'hf://a', size: 1Gi}]}}");
    aim_test_wait(&c);
    OK(get(&c, aim_test_kind(AIM_MODEL_CACHE), "a"));
    cluster_stop(&c);
}

/* Two want it; one goes. */
static void who_is_left_keeps_the_cache(void)
{
    struct cluster c;
    start_world(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_SERVICE), ns,
        "{metadata: {name: one}, spec: {model: {ref: meta-llama-3-8b}, cacheModel: true}}");
    aim_test_wait(&c);
    aim_test_create(
        &c, aim_test_kind(AIM_SERVICE), ns,
        "{metadata: {name: two}, spec: {model: {ref: meta-llama-3-8b}, cacheModel: true}}");
    aim_test_wait(&c);
    delete (&c, aim_test_kind(AIM_SERVICE), "one");
    OK(!get(&c, aim_test_kind(AIM_SERVICE), "one"));
    OK(get(&c, aim_test_kind(AIM_TEMPLATE_CACHE), "llama-latency"));
    cluster_stop(&c);
}

static void a_restart_writes_nothing_and_goes_on(void)
{
    struct cluster c;
    begin_cache(&c);
    cluster_operator_down(&c);
    buf_clear(&c.log);
    aim_test_start_operator(&c);
    EQ_STR(buf_str(&c.log), S(""));
    cluster_operator_down(&c);
    aim_test_set_status(&c, &aim_resource_jobs, ns, job, DONE);
    aim_test_start_operator(&c);
    WORD(AIM_TEMPLATE_CACHE, "warm", "Available");
    cluster_stop(&c);
}

static void writes_that_fail_are_tried_again(void)
{
    struct cluster c;
    start_world(&c);
    c.failures = 4;
    c.fail_path = "persistentvolumeclaims";
    aim_test_create(&c, aim_test_kind(AIM_TEMPLATE_CACHE), ns, CACHE);
    aim_test_wait(&c);
    EQ_INT(c.failures, 0);
    OK(get(&c, &aim_resource_claims, claim));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_failed_download_is_reported_and_retried),
                                        TAP(a_volume_lost_by_hand_is_made_and_filled_anew),
                                        TAP(a_new_volume_is_filled_again),
                                        TAP(caches_are_shared_and_not_made_twice),
                                        TAP(a_name_that_is_taken_is_left_alone),
                                        TAP(storage_follows_its_precedence_and_stays),
                                        TAP(a_missing_configuration_makes_no_volume),
                                        TAP(a_cache_waits_for_its_template),
                                        TAP(who_is_left_keeps_the_cache),
                                        TAP(a_restart_writes_nothing_and_goes_on),
                                        TAP(writes_that_fail_are_tried_again),
                                        { 0 } });
}
