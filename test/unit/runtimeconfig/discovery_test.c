/* Discovery of a template without sources: the Job, its log, failures, the backoff, the limit, and the end of the Job. The test
 * plays the controller of Jobs and the kubelet. */
#include "aim_world.h"
#include "runtimeconfig/service_world.h"

#define LOG                                                                                         \
    "loading\n[{\"profile\":{\"metadata\":{\"engine\":\"vllm\",\"gpu\":\"MI300X\",\"gpu_count\":2," \
    "\"metric\":\"latency\",\"precision\":\"fp8\"}},\"models\":[{\"name\":\"acme/tiny\","           \
    "\"source\":\"hf://acme/tiny\",\"size_gb\":2}]}]\n"

static const char ns[] = "ml-team";

static const struct json *jobs_of(struct cluster *c, const char *where)
{
    struct cluster_answer a = cluster_do(c, KUBE_LIST, &aim_resource_jobs, where, NULL, S(""));
    return json_get(a.object, "items");
}

static const char *name_of(struct cluster *c, const struct json *object)
{
    return arena_str(&c->arena, json_text(json_at(object, "metadata", "name", NULL))).p;
}

static void create_template(struct cluster *c, const char *name)
{
    aim_test_create(
        c, aim_test_kind(AIM_TEMPLATE), ns,
        arena_printf(&c->arena,
                     "{metadata: {name: %s}, spec: {modelName: meta-llama-3-8b, metric: "
                     "latency, precision: fp8}}",
                     name)
            .p);
    aim_test_wait(c);
}

/* Ends the Job with a pod that printed `log`; NULL: it failed. */
static void end_job(struct cluster *c, const char *where, const struct json *job, const char *log)
{
    const char *name = name_of(c, job);
    str uid = json_text(json_at(job, "metadata", "uid", NULL));
    if (log) {
        struct json *pod = aim_test_yaml(
            c, arena_printf(&c->arena,
                            "{apiVersion: v1, kind: Pod, metadata: {name: %s-x, labels: {job-name: "
                            "%s, aim.silogen.ai/template: x}, ownerReferences: [{apiVersion: "
                            "batch/v1, kind: Job, name: %s, uid: " STR_FMT "}]}, spec: "
                            "{restartPolicy: Never, containers: [{name: discovery, image: i}]}}",
                            name, name, name, STR_ARG(uid))
                   .p);
        json_set_str(&c->arena, json_make(&c->arena, pod, "metadata", "annotations", NULL),
                     "testbed.flyball.dev/log", str_c(log));
        cluster_create(c, &resource_pods, where, pod);
        aim_test_set_status(c, &resource_pods, where, arena_printf(&c->arena, "%s-x", name).p,
                            "{phase: Succeeded}");
    }
    aim_test_set_status(
        c, &aim_resource_jobs, where, name,
        log ? "{startTime: '2026-05-28T20:00:00Z', completionTime: '2026-05-28T20:00:05Z', "
              "succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: 'True'}, {type: "
              "Complete, status: 'True'}]}"
            : "{startTime: '2026-05-28T20:00:00Z', failed: 1, conditions: [{type: FailureTarget, "
              "status: 'True', reason: BackoffLimitExceeded}, {type: Failed, status: 'True', "
              "reason: BackoffLimitExceeded, message: it crashed}]}");
}

static const struct json *check(struct cluster *c, const char *name, const char *word,
                                const char *reason)
{
    const struct json *status = aim_test_status(c, AIM_TEMPLATE, ns, name);
    EQ_STR(json_text(json_get(status, "status")), str_c(word));
    EQ_STR(aim_test_reason(status, !strcmp(word, "Ready")    ? "Discovered"
                                   : !strcmp(word, "Failed") ? "Failure"
                                                             : "Progressing"),
           str_c(reason));
    return status;
}

static void a_job_finds_the_sources(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    create_template(&c, "fast");
    check(&c, "fast", "Progressing", "DiscoveryRunning");
    const struct json *job = json_item(jobs_of(&c, ns), 0);
    OK(str_starts(json_text(json_at(job, "metadata", "name", NULL)), S("discover-fast-")));
    EQ_INT((int64_t)json_len(json_at(job, "metadata", "ownerReferences", NULL)), 1);
    end_job(&c, ns, job, LOG);
    aim_test_wait(&c);
    const struct json *status = check(&c, "fast", "Ready", "Discovered");
    const struct json *source = json_item(json_get(status, "modelSources"), 0);
    EQ_STR(json_text(json_get(source, "sourceUri")), S("hf://acme/tiny"));
    EQ_STR(json_text(json_get(status, "hardwareSummary")), S("2 x MI300X"));
    EQ_INT((int64_t)json_len(jobs_of(&c, ns)), 0); /* its work is done */
    OK(cluster_get(&c, &aim_resource_serving_runtimes, ns, "fast"));
    buf_clear(&c.log);
    cluster_operator_down(&c);
    aim_test_start_operator(&c);
    cluster_until(&c, cluster_now(&c) + 600);
    EQ_STR(buf_str(&c.log), S("")); /* nothing to do again */
    aim_test_patch(&c, aim_test_kind(AIM_CLUSTER_MODEL), NULL, "meta-llama-3-8b",
                   "{spec: {image: 'example.org/llama:2'}}");
    aim_test_wait(&c);
    EQ_INT((int64_t)json_len(jobs_of(&c, ns)), 1); /* another spec is another question */
    cluster_stop(&c);
}

static void a_cluster_template_runs_its_job_in_the_operators_namespace(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_TEMPLATE), NULL,
                    "{metadata: {name: wide}, spec: {modelName: meta-llama-3-8b}}");
    aim_test_wait(&c);
    const struct json *job = json_item(jobs_of(&c, "kaiwo-system"), 0);
    end_job(&c, "kaiwo-system", job, LOG);
    aim_test_wait(&c);
    const struct json *status = aim_test_status(&c, AIM_CLUSTER_TEMPLATE, NULL, "wide");
    EQ_STR(json_text(json_get(status, "status")), S("Ready"));
    cluster_stop(&c);
}

/* Counted once each, with pauses that double; a job that succeeds ends it. */
static void failures_back_off(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    create_template(&c, "fast");
    static const int64_t pauses_s[] = { 60, 120, 240 };
    for (size_t i = 0; i < countof(pauses_s); i++) {
        const struct json *job = json_item(jobs_of(&c, ns), 0);
        str uid = json_text(json_at(job, "metadata", "uid", NULL));
        end_job(&c, ns, job, i == 1 ? "[done]" : NULL);
        aim_test_wait(&c);
        const struct json *status =
            check(&c, "fast", "Failed", i == 1 ? "DiscoveryParseFailed" : "JobFailed");
        EQ_INT(json_int(json_at(status, "discovery", "attempts", NULL), 0), (int64_t)i + 1);
        if (i == 0) {
            cluster_operator_down(&c);
            aim_test_start_operator(&c);
        }
        cluster_until(&c, cluster_now(&c) + pauses_s[i] - 15);
        status = aim_test_status(&c, AIM_TEMPLATE, ns, "fast");
        EQ_INT(json_int(json_at(status, "discovery", "attempts", NULL), 0), (int64_t)i + 1);
        EQ_STR(json_text(json_at(json_item(jobs_of(&c, ns), 0), "metadata", "uid", NULL)), uid);
        cluster_until(&c, cluster_now(&c) + 30);
        const struct json *next = json_item(jobs_of(&c, ns), 0);
        if (!OK(next && !str_eq(json_text(json_at(next, "metadata", "uid", NULL)), uid)))
            printf("# after failure %zu: " STR_FMT "\n", i + 1,
                   STR_ARG(json_to_str(&c.arena, aim_test_status(&c, AIM_TEMPLATE, ns, "fast"))));
    }
    end_job(&c, ns, json_item(jobs_of(&c, ns), 0), LOG);
    aim_test_wait(&c);
    const struct json *status = check(&c, "fast", "Ready", "Discovered");
    OK(!json_at(status, "discovery", "attempts", NULL));
    cluster_stop(&c);
}

static void ten_jobs_run_at_once(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    for (int i = 0; i < 14; i++)
        create_template(&c, arena_printf(&c.arena, "t%d", i).p);
    cluster_until(&c, cluster_now(&c) + 20);
    EQ_INT((int64_t)json_len(jobs_of(&c, ns)), 10);
    end_job(&c, ns, json_item(jobs_of(&c, ns), 0), LOG);
    cluster_until(&c, cluster_now(&c) + 20);
    EQ_INT((int64_t)json_len(jobs_of(&c, ns)), 10); /* the next one took its place */
    cluster_stop(&c);
}

static void a_job_goes_with_its_template(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    create_template(&c, "fast");
    EQ_INT((int64_t)json_len(jobs_of(&c, ns)), 1);
    cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_TEMPLATE), ns, "fast", S(""));
    cluster_until(&c, cluster_now(&c) + 30);
    EQ_INT((int64_t)json_len(jobs_of(&c, ns)), 0);
    cluster_stop(&c);
}

/* A service waits for the discovery of its template, and is then created complete. */
static void a_service_starts_after_discovery(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    create_template(&c, "fast");
    aim_test_create(
        &c, aim_test_kind(AIM_SERVICE), ns,
        "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}, templateRef: fast}}");
    aim_test_wait(&c);
    OK(!cluster_get(&c, &aim_resource_inference_services, ns, "chat"));
    end_job(&c, ns, json_item(jobs_of(&c, ns), 0), LOG);
    aim_test_wait(&c);
    const struct json *runtime = cluster_get(&c, &aim_resource_inference_services, ns, "chat");
    EQ_STR(json_text(json_at(runtime, "spec", "predictor", "model", "runtime", NULL)), S("fast"));
    EQ_INT(json_int(json_at(runtime, "metadata", "generation", NULL), 0), 1);
    cluster_stop(&c);
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(a_job_finds_the_sources),
                             TAP(a_cluster_template_runs_its_job_in_the_operators_namespace),
                             TAP(failures_back_off),
                             TAP(ten_jobs_run_at_once),
                             TAP(a_job_goes_with_its_template),
                             TAP(a_service_starts_after_discovery),
                             { 0 } });
}
