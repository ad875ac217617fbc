/* PersistentVolumeClaims and Jobs, reduced to the status they get: a claim is bound at once with the
 * capacity it requests, and a Job completes after the start delay of pods, without a pod of its own.
 * Controllers that create either wait for that status; no storage is provisioned and nothing runs. The Job of a discovery
 * (discovery.c) has a pod, because its log is read, and completes when the kubelet has ended that. */
#include "cluster.h"

#include "../base/clock.h"
#include "../base/rfc3339.h"
#include "../json/json.h"

static const struct resource claim_resource = { "", "v1", "persistentvolumeclaims",
                                                "PersistentVolumeClaim", true };
static const struct resource job_resource = { "batch", "v1", "jobs", "Job", true };

struct claim {
    struct record meta;
    str phase, modes; /* `modes` raw: spec.accessModes */
    str storage;      /* what is asked for */
    bool deleting;
};

static const struct field claim_fields[] = {
    { "status.phase", F_WORD, offsetof(struct claim, phase) },
    { "spec.accessModes", F_RAW, offsetof(struct claim, modes) },
    { "spec.resources.requests.storage", F_STR, offsetof(struct claim, storage) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct claim, deleting) },
};

struct job {
    struct record meta;
    int64_t created_ns, completions;
    bool done, suspended, deleting;
    str pod_template; /* raw JSON */
};

static const struct field job_fields[] = {
    { "metadata.creationTimestamp", F_TIME, offsetof(struct job, created_ns) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct job, deleting) },
    { "spec.completions", F_INT, offsetof(struct job, completions), .otherwise = 1 },
    { "spec.suspend", F_BOOL, offsetof(struct job, suspended) },
    { "status.completionTime", F_HAS, offsetof(struct job, done) },
    { "spec.template", F_RAW, offsetof(struct job, pod_template) },
};

static const struct cache_spec claim_cache = { .resource = &claim_resource,
                                               .keep = FIELDS(struct claim, claim_fields) };
static const struct cache_spec job_cache = { .resource = &job_resource,
                                             .keep = FIELDS(struct job, job_fields) };

static struct reconciled reconcile_claim(struct reconcile *r)
{
    struct cluster *c = r->context;
    const struct claim *claim = cache_get(c->claims, r->ns, r->name);
    struct json *modes = NULL;
    if (!claim || claim->deleting || str_eqc(claim->phase, "Bound") ||
        json_parse(r->arena, claim->modes, &modes, NULL) < 0)
        return reconciled();
    struct json *status = json_new_obj(r->arena);
    json_set_str(r->arena, status, "phase", S("Bound"));
    json_set(r->arena, status, S("accessModes"), modes);
    json_set_str(r->arena, json_make(r->arena, status, "capacity", NULL), "storage",
                 claim->storage);
    reconcile_status(r, &claim_resource, status);
    return reconciled();
}

/* The status of a completed Job, with both conditions that Kubernetes sets. */
static struct json *job_status(struct reconcile *r, const struct job *job)
{
    static const char *const types[] = { "SuccessCriteriaMet", "Complete" };
    struct json *status = json_new_obj(r->arena), *conditions = json_new_arr(r->arena);
    char start[RFC3339_TEXT_MAX], end[RFC3339_TEXT_MAX];
    str ended = rfc3339_text(r->now_ns / NS_PER_S, end);
    json_set_str(r->arena, status, "startTime", rfc3339_text(job->created_ns / NS_PER_S, start));
    json_set_str(r->arena, status, "completionTime", ended);
    json_set_int(r->arena, status, "succeeded", job->completions);
    for (size_t i = 0; i < countof(types); i++) {
        struct json *one = json_new_obj(r->arena);
        json_set_str(r->arena, one, "type", str_c(types[i]));
        json_set_str(r->arena, one, "status", S("True"));
        json_set_str(r->arena, one, "reason", S("CompletionsReached"));
        json_set_str(r->arena, one, "lastTransitionTime", ended);
        json_push(r->arena, conditions, one);
    }
    json_set(r->arena, status, S("conditions"), conditions);
    return status;
}

/* The object that discovery.c reads. */
static struct json *job_object(struct reconcile *r, const struct job *job)
{
    struct json *o = json_new_obj(r->arena), *template = NULL;
    if (json_parse(r->arena, job->pod_template, &template, NULL) < 0)
        return NULL;
    json_set_str(r->arena, json_make(r->arena, o, "metadata", NULL), "name", job->meta.name);
    json_set(r->arena, json_make(r->arena, o, "spec", NULL), S("template"), template);
    return o;
}

/* Creates the pod of a Job that has one; true: the Job waits for it. */
static bool awaits_pod(struct reconcile *r, const struct job *job)
{
    struct cluster *c = r->context;
    struct json *pod = cluster_discovery_pod(r->arena, job_object(r, job));
    if (!pod)
        return false;
    const struct pod *live =
        cache_get(c->pods, r->ns, json_text(json_at(pod, "metadata", "name", NULL)));
    if (live)
        return !str_eqc(live->phase, "Succeeded");
    json_set(r->arena, json_get(pod, "metadata"), S("ownerReferences"),
             kube_owners(r->arena, &(struct kube_owner){ .resource = &job_resource,
                                                         .name = job->meta.name,
                                                         .uid = job->meta.uid,
                                                         .is_controller = true }));
    reconcile_apply(r, &resource_pods, pod);
    return true;
}

static struct reconciled reconcile_job(struct reconcile *r)
{
    struct cluster *c = r->context;
    const struct job *job = cache_get(c->jobs, r->ns, r->name);
    if (!job || job->deleting || job->suspended || job->done)
        return reconciled();
    int64_t left = job->created_ns + c->start_delay_ns - r->now_ns;
    if (left > 0 && left <= c->start_delay_ns)
        return reconciled_after(left);
    if (awaits_pod(r, job))
        return reconciled();
    reconcile_status(r, &job_resource, job_status(r, job));
    return reconciled();
}

int cluster_start_storage(struct cluster *c, err_t *e)
{
    int failed = manager_cache(c->manager, &claim_cache, &c->claims, e);
    failed = failed ? failed : manager_cache(c->manager, &job_cache, &c->jobs, e);
    if (failed)
        return failed;
    const struct controller_spec claims = { .name = "testbed-claims",
                                            .reconcile = reconcile_claim,
                                            .context = c },
                                 jobs = { .name = "testbed-jobs",
                                          .reconcile = reconcile_job,
                                          .context = c };
    controller_watch(manager_controller(c->manager, &claims), c->claims, NULL);
    struct controller *of_jobs = manager_controller(c->manager, &jobs);
    controller_watch(of_jobs, c->jobs, NULL);
    controller_watch_by(of_jobs, c->pods, offsetof(struct pod, owner));
    return 0;
}
