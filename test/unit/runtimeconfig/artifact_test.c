/* Artifacts end to end on the embedded API server: size, volume, download, failures, quotas, and the template caches that use
 * them. The test plays the volume binder, the controller of Jobs and the kubelet. */
#include "aim_world.h"
#include "runtimeconfig/artifact_core.h"
#include "runtimeconfig/service_world.h"

#define DONE                                                                                       \
    "{succeeded: 1, startTime: '2026-05-28T20:00:00Z', completionTime: '2026-05-28T20:01:00Z', "   \
    "conditions: [{type: SuccessCriteriaMet, status: 'True'}, {type: Complete, status: 'True'}]}"
#define BROKEN                                                                                     \
    "{failed: 3, startTime: '2026-05-28T20:00:00Z', conditions: [{type: FailureTarget, status: "   \
    "'True'}, {type: Failed, status: 'True', reason: BackoffLimitExceeded, message: no luck}]}"

static const char ns[] = "ml-team";

static void create(struct cluster *c, const char *name, const char *spec)
{
    aim_test_create(c, aim_test_kind(AIM_ARTIFACT), ns,
                    arena_printf(&c->arena,
                                 "{metadata: {name: %s}, spec: {sourceUri: 'hf://acme/%s'%s}}",
                                 name, name, spec)
                        .p);
    aim_test_wait(c);
}

/* The only object of a kind whose name starts with the text; NULL: none. */
static const struct json *find(struct cluster *c, const struct resource *resource,
                               const char *start)
{
    struct cluster_answer a = cluster_do(c, KUBE_LIST, resource, ns, NULL, S(""));
    const struct json *items = json_get(a.object, "items"), *found = NULL;
    for (size_t i = 0; i < json_len(items); i++) {
        str name = json_text(json_at(json_item(items, i), "metadata", "name", NULL));
        if (!str_starts(name, str_c(start)))
            continue;
        OK(!found);
        found = json_item(items, i);
    }
    return found;
}

static const char *name_of(struct cluster *c, const struct json *object)
{
    return arena_str(&c->arena, json_text(json_at(object, "metadata", "name", NULL))).p;
}

static void bind(struct cluster *c, const char *start)
{
    const struct json *claim = find(c, &aim_resource_claims, start);
    OK(claim != NULL);
    aim_test_set_status(c, &aim_resource_claims, ns, name_of(c, claim), "{phase: Bound}");
}

/* A pod of the Job that ended with this log. */
static void end_pod(struct cluster *c, const struct json *job, const char *container,
                    const char *log, bool good)
{
    const char *name = name_of(c, job);
    str uid = json_text(json_at(job, "metadata", "uid", NULL));
    const char *pod_name = arena_printf(&c->arena, "%s-x", name).p;
    struct json *pod = aim_test_yaml(
        c, arena_printf(&c->arena,
                        "{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {job-name: %s, "
                        "aim.silogen.ai/cache.name: x}, ownerReferences: [{apiVersion: batch/v1, "
                        "kind: Job, controller: true, name: %s, uid: " STR_FMT "}]}, spec: "
                        "{restartPolicy: Never, containers: [{name: %s, image: i}]}}",
                        pod_name, name, name, STR_ARG(uid), container)
               .p);
    json_set_str(&c->arena, json_make(&c->arena, pod, "metadata", "annotations", NULL),
                 "testbed.flyball.dev/log", str_c(log));
    cluster_create(c, &resource_pods, ns, pod);
    aim_test_set_status(c, &resource_pods, ns, pod_name,
                        good ? "{phase: Succeeded}"
                             : arena_printf(&c->arena,
                                            "{phase: Failed, containerStatuses: [{name: %s, image: "
                                            "i, imageID: '', ready: false, restartCount: 0, state: "
                                            "{terminated: {exitCode: 1, reason: Error}}}]}",
                                            container)
                                   .p);
    aim_test_set_status(c, &aim_resource_jobs, ns, name, good ? DONE : BROKEN);
}

static const struct json *check(struct cluster *c, const char *name, const char *word)
{
    const struct json *status = aim_test_status(c, AIM_ARTIFACT, ns, name);
    EQ_STR(json_text(json_get(status, "status")), str_c(word));
    return status;
}

/* Volume and download of an artifact, up to Ready. */
static void download(struct cluster *c, const char *name)
{
    bind(c, arena_printf(&c->arena, "%s-cache-", name).p);
    const struct json *job =
        find(c, &aim_resource_jobs, arena_printf(&c->arena, "%s-download-", name).p);
    OK(job != NULL);
    if (job)
        end_pod(c, job, "model-download", "done\n", true);
}

static void an_artifact_is_downloaded_once(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    create(&c, "tiny", "");
    check(&c, "tiny", "Progressing");
    OK(!find(&c, &aim_resource_claims, "tiny-"));
    const struct json *job = find(&c, &aim_resource_jobs, "tiny-check-size-");
    end_pod(&c, job, "check-size", "asking\n{\"url\":\"x\",\"sizeBytes\":2147483648}\n", true);
    EQ_INT(json_int(json_get(check(&c, "tiny", "Progressing"), "discoveredSizeBytes"), 0),
           2147483648);
    const struct json *claim = find(&c, &aim_resource_claims, "tiny-cache-");
    EQ_STR(json_text(json_at(claim, "spec", "resources", "requests", "storage", NULL)), S("3Gi"));
    OK(cluster_get(&c, &aim_resource_role_bindings, ns, ARTIFACT_ROLE));
    download(&c, "tiny");
    const struct json *status = check(&c, "tiny", "Ready");
    EQ_STR(aim_test_reason(status, "Ready"), S("AllComponentsReady"));
    EQ_STR(aim_test_reason(status, "DownloadComplete"), S("Verified"));
    EQ_STR(json_text(json_get(status, "displaySize")), S("2 GiB"));
    EQ_STR(json_text(json_get(status, "persistentVolumeClaim")), str_c(name_of(&c, claim)));
    cluster_do(&c, KUBE_DELETE, &aim_resource_jobs, ns, /* as its time to live would */
               name_of(&c, find(&c, &aim_resource_jobs, "tiny-download-")), S(""));
    cluster_until(&c, cluster_now(&c) + 10);
    buf_clear(&c.log);
    cluster_operator_down(&c);
    aim_test_start_operator(&c);
    cluster_until(&c, cluster_now(&c) + 3600);
    check(&c, "tiny", "Ready");
    OK(!find(&c, &aim_resource_jobs, "tiny-download-"));
    EQ_STR(buf_str(&c.log), S("")); /* nothing to do again */
    cluster_stop(&c);
}

static str uid_of(const struct json *object)
{
    return json_text(json_at(object, "metadata", "uid", NULL));
}

static int64_t percentage(const struct json *status)
{
    return json_int(json_at(status, "progress", "percentage", NULL), -1);
}

static void delete(struct cluster *c, const struct resource *resource, const struct json *object)
{
    EQ_INT(cluster_do(c, KUBE_DELETE, resource, ns, name_of(c, object), S("")).code, 200);
}

/* A volume that was created again is empty: the finished Job of the old one does not count for it. */
static void a_new_volume_is_filled_again(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    create(&c, "tiny", ", size: 1Gi");
    download(&c, "tiny");
    const struct json *status = check(&c, "tiny", "Ready");
    const struct json *claim = find(&c, &aim_resource_claims, "tiny-cache-");
    const struct json *job = find(&c, &aim_resource_jobs, "tiny-download-");
    EQ_STR(json_text(json_get(status, "volumeUid")), uid_of(claim));
    EQ_INT(percentage(status), 100);
    delete (&c, &aim_resource_claims, claim);
    cluster_until(&c, cluster_now(&c) + 30);
    status = check(&c, "tiny", "Progressing");
    EQ_STR(aim_test_reason(status, "DownloadComplete"), S("Downloading"));
    EQ_INT(percentage(status), 0);
    const struct json *next_claim = find(&c, &aim_resource_claims, "tiny-cache-");
    const struct json *next_job = find(&c, &aim_resource_jobs, "tiny-download-");
    OK(next_claim && !str_eq(uid_of(next_claim), uid_of(claim)));
    OK(next_job && !str_eq(uid_of(next_job), uid_of(job)));
    bind(&c, "tiny-cache-");
    if (next_job)
        aim_test_set_status(&c, &aim_resource_jobs, ns, name_of(&c, next_job), DONE);
    status = check(&c, "tiny", "Ready");
    EQ_STR(json_text(json_get(status, "volumeUid")), uid_of(next_claim));
    EQ_INT(percentage(status), 100);
    buf_clear(&c.log);
    cluster_until(&c, cluster_now(&c) + 3600);
    EQ_STR(buf_str(&c.log), S("")); /* and not once more */
    cluster_stop(&c);
}

/* The exchange is noticed from the uid alone: it happened while the operator was down, and the Job has expired. */
static void a_volume_that_was_exchanged_unseen_is_filled_again(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    create(&c, "tiny", ", size: 1Gi");
    download(&c, "tiny");
    check(&c, "tiny", "Ready");
    cluster_operator_down(&c);
    const struct json *claim = find(&c, &aim_resource_claims, "tiny-cache-");
    delete (&c, &aim_resource_claims, claim);
    delete (&c, &aim_resource_jobs, find(&c, &aim_resource_jobs, "tiny-download-"));
    struct json *again = json_copy(&c.arena, claim), *metadata = json_get(again, "metadata");
    json_del(again, S("status"));
    json_del(metadata, S("uid"));
    json_del(metadata, S("resourceVersion"));
    cluster_create(&c, &aim_resource_claims, ns, again);
    bind(&c, "tiny-cache-");
    aim_test_start_operator(&c);
    cluster_until(&c, cluster_now(&c) + 5);
    const struct json *status = check(&c, "tiny", "Progressing");
    EQ_INT(percentage(status), 0);
    OK(find(&c, &aim_resource_jobs, "tiny-download-"));
    cluster_stop(&c);
}

/* The schema refuses what it can; what passes it, or an older schema, is refused by the controller. */
static void an_invalid_size_is_refused_at_once(void)
{
    static const struct {
        const char *size;
        bool stored, good;
    } t[] = { { "-5Gi", false, false }, { "0", false, false },
              { "abc", false, false },  { "'0Gi'", false, false },
              { "1e400", true, false }, { "9999999999999E", true, false },
              { "1Gi", true, true },    { "4096", true, true } };
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    for (size_t i = 0; i < countof(t); i++) {
        const char *name = arena_printf(&c.arena, "s%zu", i).p;
        struct json *o = aim_test_yaml(
            &c, arena_printf(&c.arena,
                             "{apiVersion: aim.silogen.ai/v1alpha1, kind: AIMArtifact, metadata: "
                             "{name: %s, uid: u}, spec: {sourceUri: 'hf://a/b', size: %s}}",
                             name, t[i].size)
                    .p);
        struct aim_artifact_state s =
            aim_artifact_state(&c.arena, &(struct aim_artifact_facts){
                                             .q = { .group = "g", .artifact = o } });
        EQ_INT(s.make_volume, t[i].good);
        OK(!s.make_size_job);
        json_del(json_get(o, "metadata"), S("uid"));
        struct cluster_answer a = cluster_do(&c, KUBE_CREATE, aim_test_kind(AIM_ARTIFACT), ns, NULL,
                                             json_to_str(&c.arena, o));
        EQ_INT(a.code, t[i].stored ? 201 : 422);
        if (!t[i].stored || t[i].good)
            continue;
        aim_test_wait(&c);
        const struct json *condition = aim_status_find(check(&c, name, "Failed"), "SizeReady");
        EQ_STR(json_text(json_get(condition, "reason")), S("InvalidSize"));
        OK(str_find(json_text(json_get(condition, "message")), str_c(t[i].size)) != SIZE_MAX);
        OK(!find(&c, &aim_resource_jobs, arena_printf(&c.arena, "%s-", name).p));
    }
    cluster_stop(&c);
}

static void a_failure_names_its_cause(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    create(&c, "gated", ", size: 1Gi");
    bind(&c, "gated-cache-");
    end_pod(&c, find(&c, &aim_resource_jobs, "gated-download-"), "model-download",
            "fetching\nCannot access gated repo for url x\n", false);
    const struct json *status = check(&c, "gated", "Failed");
    EQ_STR(aim_test_reason(status, "DownloadJobPodsReady"), S("AuthError"));
    EQ_STR(aim_test_reason(status, "AuthValid"), S("AuthError"));
    EQ_STR(aim_test_reason(status, "DownloadComplete"), S("Downloading"));
    create(&c, "early", ""); /* complete, but its pod is not seen yet: no verdict */
    const struct json *job = find(&c, &aim_resource_jobs, "early-check-size-");
    aim_test_set_status(&c, &aim_resource_jobs, ns, name_of(&c, job),
                        arena_printf(&c.arena,
                                     "{succeeded: 1, startTime: '%s', completionTime: '%s', "
                                     "conditions: [{type: SuccessCriteriaMet, status: 'True'}, "
                                     "{type: Complete, status: 'True'}]}",
                                     "2026-05-28T20:26:40Z", "2026-05-28T20:27:10Z")
                            .p);
    check(&c, "early", "Progressing");
    cluster_until(&c, cluster_now(&c) + 120);
    EQ_STR(aim_test_reason(check(&c, "early", "Failed"), "CheckSizeOutputReady"),
           S("InvalidSizeOutput"));
    create(&c, "silent", "");
    end_pod(&c, find(&c, &aim_resource_jobs, "silent-check-size-"), "check-size", "no idea\n",
            true);
    EQ_STR(aim_test_reason(check(&c, "silent", "Failed"), "CheckSizeOutputReady"),
           S("InvalidSizeOutput"));
    aim_test_create(&c, aim_test_kind(AIM_ARTIFACT), ns,
                    "{metadata: {name: lost}, spec: {sourceUri: 'hf://a/b', runtimeConfigName: "
                    "gold, size: 1Gi}}");
    aim_test_wait(&c);
    EQ_STR(aim_test_reason(check(&c, "lost", "Failed"), "Ready"), S("ReferenceNotFound"));
    OK(!find(&c, &aim_resource_claims, "lost-"));
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), ns,
                    "{metadata: {name: gold}, spec: {defaultStorageClassName: fast}}");
    aim_test_wait(&c);
    check(&c, "lost", "Progressing");
    const struct json *claim = find(&c, &aim_resource_claims, "lost-cache-");
    EQ_STR(json_text(json_at(claim, "spec", "storageClassName", NULL)), S("fast"));
    cluster_stop(&c);
}

#define QUOTA                                                                                      \
    "{metadata: {name: default}, spec: {artifactStorageQuota: {defaultNamespaceLimit: 10Gi}, "     \
    "artifact: {}, pvcHeadroomPercent: 0}}"

/* Two that fit one by one: the older is served, the newer waits until there is room. */
static void a_quota_blocks_and_is_lifted(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL, QUOTA);
    aim_test_create(&c, aim_test_kind(AIM_ARTIFACT), ns,
                    "{metadata: {name: a}, spec: {sourceUri: 'hf://acme/a', size: 6Gi}}");
    cluster_until(&c, cluster_now(&c) + 2);
    aim_test_create(&c, aim_test_kind(AIM_ARTIFACT), ns,
                    "{metadata: {name: b}, spec: {sourceUri: 'hf://acme/b', size: 6Gi}}");
    aim_test_start_operator(&c);
    OK(find(&c, &aim_resource_claims, "a-cache-"));
    OK(!find(&c, &aim_resource_claims, "b-cache-"));
    const struct json *status = aim_test_status(&c, AIM_ARTIFACT, ns, "b");
    const struct json *quota = aim_status_find(status, "StorageQuotaExceeded");
    EQ_STR(json_text(json_get(quota, "reason")), S("NamespaceQuotaExceeded"));
    EQ_STR(json_text(json_get(quota, "message")),
           S("Namespace quota exceeded: 6Gi used + 6Gi needed > 10Gi limit"));
    create(&c, "small", ", size: 4Gi"); /* not held up by the one that waits */
    OK(find(&c, &aim_resource_claims, "small-cache-"));
    aim_test_patch(&c, &resource_namespaces, NULL, ns,
                   "{metadata: {annotations: {aim.silogen.ai/artifact-storage-quota: 16Gi}}}");
    cluster_until(&c, cluster_now(&c) + 5);
    OK(find(&c, &aim_resource_claims, "b-cache-"));
    OK(!str_eqc(json_text(json_get(aim_status_find(aim_test_status(&c, AIM_ARTIFACT, ns, "b"),
                                                   "StorageQuotaExceeded"),
                                   "status")),
                "True"));
    cluster_stop(&c);
}

/* The lowest priority goes first; what a cache uses, or has no priority, stays. */
static void a_quota_evicts_what_is_unused(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CLUSTER_CONFIG), NULL, QUOTA);
    aim_test_start_operator(&c);
    create(&c, "kept", ", size: 3Gi");
    download(&c, "kept");
    create(&c, "spare", ", size: 3Gi, retentionPriority: 5");
    download(&c, "spare");
    create(&c, "cheap", ", size: 3Gi, retentionPriority: 1");
    download(&c, "cheap");
    check(&c, "cheap", "Ready");
    create(&c, "next", ", size: 4Gi");
    cluster_until(&c, cluster_now(&c) + 10);
    OK(!cluster_get(&c, aim_test_kind(AIM_ARTIFACT), ns, "cheap"));
    OK(cluster_get(&c, aim_test_kind(AIM_ARTIFACT), ns, "spare"));
    OK(cluster_get(&c, aim_test_kind(AIM_ARTIFACT), ns, "kept"));
    OK(find(&c, &aim_resource_claims, "next-cache-"));
    create(&c, "huge", ", size: 9Gi"); /* evicting the spare one would not be enough */
    cluster_until(&c, cluster_now(&c) + 10);
    OK(cluster_get(&c, aim_test_kind(AIM_ARTIFACT), ns, "spare"));
    OK(!find(&c, &aim_resource_claims, "huge-cache-"));
    cluster_stop(&c);
}

/* caching.mode makes a template cache of the newer generation; the InferenceService mounts the volumes of its artifacts. */
static void a_service_mounts_its_artifacts(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns,
                    "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}, templateRef: "
                    "llama-latency, caching: {mode: Dedicated}}}");
    aim_test_wait(&c);
    const struct json *cache = find(&c, aim_test_kind(AIM_TEMPLATE_CACHE), "llama-latency-chat-");
    EQ_STR(json_text(json_at(cache, "spec", "mode", NULL)), S("Dedicated"));
    EQ_STR(json_text(
               json_get(json_item(json_at(cache, "metadata", "ownerReferences", NULL), 0), "kind")),
           S("AIMService"));
    const struct json *artifact = find(&c, aim_test_kind(AIM_ARTIFACT), "");
    EQ_INT((int64_t)json_len(json_at(artifact, "metadata", "ownerReferences", NULL)), 1);
    OK(!cluster_get(&c, &aim_resource_inference_services, ns, "chat"));
    download(&c, name_of(&c, artifact));
    cluster_until(&c, cluster_now(&c) + 5);
    EQ_STR(json_text(
               json_get(aim_test_status(&c, AIM_TEMPLATE_CACHE, ns, name_of(&c, cache)), "status")),
           S("Ready"));
    const struct json *runtime = cluster_get(&c, &aim_resource_inference_services, ns, "chat");
    const struct json *volumes = json_at(runtime, "spec", "predictor", "volumes", NULL);
    str claim = json_text(json_get(aim_test_status(&c, AIM_ARTIFACT, ns, name_of(&c, artifact)),
                                   "persistentVolumeClaim"));
    bool mounted = false;
    for (size_t i = 0; i < json_len(volumes); i++)
        mounted |= claim.n && str_eq(json_text(json_at(json_item(volumes, i),
                                                       "persistentVolumeClaim", "claimName", NULL)),
                                     claim);
    OK(mounted);
    EQ_INT(json_int(json_at(runtime, "metadata", "generation", NULL), 0), 1);
    OK(!find(&c, aim_test_kind(AIM_MODEL_CACHE), "")); /* not both generations */
    delete (&c, &aim_resource_claims, find(&c, &aim_resource_claims, ""));
    cluster_until(&c, cluster_now(&c) + 30);
    EQ_STR(json_text(
               json_get(aim_test_status(&c, AIM_TEMPLATE_CACHE, ns, name_of(&c, cache)), "status")),
           S("Progressing")); /* the files are gone; the service reports it and keeps running */
    EQ_STR(json_text(json_get(aim_test_status(&c, AIM_SERVICE, ns, "chat"), "status")),
           S("Starting"));
    runtime = cluster_get(&c, &aim_resource_inference_services, ns, "chat");
    EQ_INT(json_int(json_at(runtime, "metadata", "generation", NULL), 0), 1);
    cluster_stop(&c);
}

/* Volumes of a running service are not exchanged: that would restart its pods. */
static void a_running_service_keeps_its_volume(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_start_operator(&c);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), ns,
                    "{metadata: {name: chat}, spec: {model: {ref: meta-llama-3-8b}, templateRef: "
                    "llama-latency}}");
    aim_test_wait(&c);
    const struct json *before = cluster_get(&c, &aim_resource_inference_services, ns, "chat");
    OK(before != NULL);
    aim_test_patch(&c, aim_test_kind(AIM_SERVICE), ns, "chat", "{spec: {caching: {mode: Auto}}}");
    cluster_until(&c, cluster_now(&c) + 60);
    const struct json *after = cluster_get(&c, &aim_resource_inference_services, ns, "chat");
    EQ_INT(json_int(json_at(after, "metadata", "generation", NULL), 0), 1);
    OK(!find(&c, aim_test_kind(AIM_TEMPLATE_CACHE), ""));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(an_artifact_is_downloaded_once),
                                        TAP(a_new_volume_is_filled_again),
                                        TAP(a_volume_that_was_exchanged_unseen_is_filled_again),
                                        TAP(an_invalid_size_is_refused_at_once),
                                        TAP(a_failure_names_its_cause),
                                        TAP(a_quota_blocks_and_is_lifted),
                                        TAP(a_quota_evicts_what_is_unused),
                                        TAP(a_service_mounts_its_artifacts),
                                        TAP(a_running_service_keeps_its_volume),
                                        { 0 } });
}
