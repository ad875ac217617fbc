/* Discovery: see template_discovery.h; the Job, its answer and the backoff are in discovery_core.h.
 *
 *     sources in the status, of this spec? -- yes --> done; the Job is deleted
 *        | no
 *     Job? -- none --> backoff over and fewer than 10 of the cluster run? --> create it
 *        |-- running --> wait for it; its pod may be unable to pull the image
 *        |-- failed ---> counted once; deleted when the next try is due
 *        +-- complete -> read the log of its pod --> sources, profile; unreadable counts as a failure
 *
 * All of it follows from the status and the caches, so that a restart at any point continues. status.discovery has the
 * attempts, the hash of the spec that they were made for (another spec starts again) and the uid of the Job that was
 * counted last. The Job of a cluster template runs in the operator's namespace. Jobs have an owner: they go with their
 * template. */
#include "template_discovery.h"

#include "../base/rfc3339.h"
#include "aim.h"
#include "discovery_core.h"
#include "names_core.h"
#include "service_children_core.h"
#include "service_status_core.h"
#include "service_watch.h"
#include "service_world.h"

#define LIMIT_WAIT_NS (5 * NS_PER_S)
#define POD_WAIT_S 60 /* for the pod of a complete Job to appear */

enum step { STEP_NONE, STEP_CREATE, STEP_READ, STEP_DELETE };

struct aim_discovery {
    struct aim_template_facts *facts;
    struct aim_discovery_question question;
    str hash;
    str job_name;
    const struct json *job; /* NULL: none */
    str job_uid;
    str pod; /* whose log is read */
    enum step step;
    bool counted;       /* the failure of this Job is in the status */
    str failure;        /* to be counted now; empty: none */
    const char *reason; /* of that failure */
    struct aim_discovery_result result;
    bool found; /* `result` is of this turn */
};

static str text_at(const struct json *o, const char *key)
{
    return json_text(json_get(o, key));
}

static const struct json *old_discovery(const struct aim_turn *t)
{
    return json_get(t->status.old, "discovery");
}

/* ---- the question */

static str first_text(str x, str y, str z)
{
    return x.n ? x : y.n ? y : z;
}

/* Credentials of the template, its model and its configuration. */
static void set_question(struct aim_turn *t, struct aim_discovery *d, const struct json *model)
{
    struct arena *a = t->r->arena;
    const struct json *spec = json_get(t->object, "spec"), *of = json_get(model, "spec");
    bool cluster = t->of->kind == AIM_CLUSTER_TEMPLATE;
    struct json *secrets = aim_service_merge_named(a, json_get(spec, "imagePullSecrets"),
                                                   json_get(of, "imagePullSecrets"));
    d->question = (struct aim_discovery_question){
        .group = aim_kinds_of(t->aim)->group,
        .ns = cluster ? aim_operator_namespace(t->aim) : t->ns,
        .template = t->name,
        .cluster = cluster,
        .spec = aim_template_normal_spec(a, spec),
        .model = text_at(spec, "modelName"),
        .image = text_at(of, "image"),
        .service_account =
            first_text(text_at(spec, "serviceAccountName"), text_at(of, "serviceAccountName"),
                       t->settings.service_account),
        .pull_secrets = aim_service_merge_named(a, secrets, t->settings.pull_secrets),
    };
    d->hash = aim_discovery_hash(a, &d->question);
}

/* ---- what is there */

static void set_facts(struct aim_discovery *d, enum aim_template_discovery state,
                      const char *reason, str message)
{
    d->facts->discovery = state;
    d->facts->discovery_reason = reason;
    d->facts->discovery_message = message;
}

static void set_found(struct aim_discovery *d, const struct json *sources,
                      const struct json *profile)
{
    set_facts(d, TEMPLATE_DISCOVERED, "Discovered", S("Model sources discovered"));
    d->facts->discovered_sources = sources;
    d->facts->discovered_profile = profile;
}

/* Sources of an earlier turn, of another operator (no hash), but not of another spec. */
static bool is_known(struct aim_turn *t, struct aim_discovery *d)
{
    const struct json *sources = json_get(t->status.old, "modelSources");
    str hash = text_at(old_discovery(t), "specHash");
    bool inline_before = str_eqc(text_at(aim_status_find(t->status.old, "Discovered"), "reason"),
                                 "InlineModelSources");
    if (!json_len(sources) || inline_before || (hash.n && !str_eq(hash, d->hash)))
        return false;
    set_found(d, sources, json_get(t->status.old, "profile"));
    return true;
}

static uint64_t hash_job(struct arena *a, str ns, str name)
{
    return map_hash(arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name)));
}

/* Forgets a Job that the cache shows, or that is overdue. */
static void forget_recent(struct aim_turn *t, uint64_t key)
{
    struct aim_recent_job *at = t->aim->recent_jobs;
    int64_t now = loop_mono_ns(manager_loop(aim_manager(t->aim)));
    for (size_t i = 0; i < DISCOVERY_JOBS_MAX; i++)
        if (at[i].key == key || at[i].until_ns <= now)
            at[i].key = 0;
}

static void remember_recent(struct aim_turn *t, uint64_t key)
{
    struct aim_recent_job *at = t->aim->recent_jobs;
    int64_t now = loop_mono_ns(manager_loop(aim_manager(t->aim)));
    forget_recent(t, key); /* one that could not be created is tried again, and counts once */
    for (size_t i = 0; i < DISCOVERY_JOBS_MAX; i++)
        if (!at[i].key) {
            at[i] = (struct aim_recent_job){ key, now + 10 * NS_PER_S };
            return;
        }
}

/* Unfinished discovery Jobs of all templates, also those that the cache does not show yet. */
static size_t count_unfinished(struct aim_turn *t)
{
    const struct aim_child_record *r;
    size_t n = 0;
    cache_each(r, aim_world(t->aim)->jobs) {
        bool good;
        str why;
        if (str_find(r->labels, S("\"aim-discovery\"")) == SIZE_MAX || r->deleting)
            continue;
        forget_recent(t, hash_job(t->r->arena, r->meta.ns, r->meta.name));
        n += !aim_discovery_is_complete(aim_child_object(t->r->arena, r), &good, &why);
    }
    for (size_t i = 0; i < DISCOVERY_JOBS_MAX; i++)
        n += t->aim->recent_jobs[i].key != 0;
    return n;
}

static struct aim_discovery_attempts read_attempts(struct aim_turn *t)
{
    const struct json *old = old_discovery(t);
    int64_t last = 0;
    rfc3339_parse(text_at(old, "lastAttemptTime"), &last, NULL);
    return (struct aim_discovery_attempts){ .attempts = json_int(json_get(old, "attempts"), 0),
                                            .spec_hash = text_at(old, "specHash"),
                                            .last_ago_s = (double)(t->status.now - last) };
}

/* Time until the next try; 0: now. */
static int64_t left_ns(const struct aim_discovery_attempts *at, str hash)
{
    if (!str_eq(at->spec_hash, hash))
        return 0;
    double left = (double)aim_discovery_backoff_s(at->attempts) - at->last_ago_s;
    return left > 0 ? (int64_t)(left * (double)NS_PER_S) + NS_PER_S : 0;
}

/* Nothing runs: a Job is created, unless it is too early or too many run. */
static void plan_job(struct aim_turn *t, struct aim_discovery *d)
{
    struct aim_discovery_attempts at = read_attempts(t);
    str wait;
    if (!aim_discovery_may_create(t->r->arena, at.attempts ? &at : NULL, d->hash, &wait)) {
        str why = text_at(old_discovery(t), "lastFailureReason");
        bool unread = str_starts(why, S("Failed to parse"));
        set_facts(d, TEMPLATE_DISCOVERY_FAILED, unread ? "DiscoveryParseFailed" : "JobFailed",
                  arena_printf(t->r->arena, STR_FMT ". " STR_FMT, STR_ARG(why), STR_ARG(wait)));
        reconcile_again(t->r, left_ns(&at, d->hash));
        return;
    }
    set_facts(d, TEMPLATE_DISCOVERING, "Reconciling", S("Initiating discovery"));
    if (d->job) { /* of the last try; the next one has the same name */
        d->step = STEP_DELETE;
        return;
    }
    if (count_unfinished(t) < DISCOVERY_JOBS_MAX) {
        d->step = STEP_CREATE;
        return;
    }
    set_facts(d, TEMPLATE_DISCOVERING, "Reconciling",
              S("Waiting for other discovery jobs to finish"));
    reconcile_again(t->r, LIMIT_WAIT_NS);
}

/* A pod that cannot pull the image; false: none. */
static bool find_stuck_pod(struct aim_turn *t, struct aim_discovery *d)
{
    const struct aim_predictor_record *pod;
    struct aim_service_runtime_fact fact = { 0 };
    cache_each_in(pod, aim_world(t->aim)->discovery_pods, 0, d->job_name) {
        for (size_t i = 0; str_eq(pod->meta.ns, d->question.ns) && i < pod->containers.n; i++) {
            const struct aim_pod_container *c = &pod->containers.at[i];
            if (!str_eqc(c->waiting, "ImagePullBackOff") && !str_eqc(c->waiting, "ErrImagePull"))
                continue;
            aim_service_set_pull_error(t->r->arena, &fact,
                                       &(struct aim_service_pull_error){
                                           .kind = aim_service_pull_cause(c->message),
                                           .container = c->name,
                                           .reason = c->waiting,
                                           .message = c->message });
            set_facts(d, TEMPLATE_DISCOVERY_STUCK, arena_str(t->r->arena, fact.pull_reason).p,
                      arena_printf(t->r->arena,
                                   "Discovery job pod stuck pulling image: Container " STR_FMT
                                   " is stuck in " STR_FMT ": " STR_FMT,
                                   STR_ARG(aim_names_quote(t->r->arena, c->name)),
                                   STR_ARG(c->waiting), STR_ARG(c->message)));
            return true;
        }
    }
    return false;
}

/* The pod whose log has the answer; empty: it is not in the cache. */
static str find_answering_pod(struct aim_turn *t, const struct aim_discovery *d)
{
    const struct aim_predictor_record *pod;
    cache_each_in(pod, aim_world(t->aim)->discovery_pods, 0, d->job_name)
        if (str_eq(pod->meta.ns, d->question.ns) && str_eqc(pod->phase, "Succeeded"))
            return arena_str(t->r->arena, pod->meta.name);
    return S("");
}

static void count_failure(struct aim_discovery *d, const char *reason, str message)
{
    d->reason = reason;
    d->failure = message.n ? message : S("unknown");
    set_facts(d, TEMPLATE_DISCOVERY_FAILED, reason, message);
}

static void plan_reading(struct aim_turn *t, struct aim_discovery *d)
{
    int64_t ended = t->status.now;
    set_facts(d, TEMPLATE_DISCOVERING, "DiscoveryRunning", S("Discovery job is running"));
    d->pod = find_answering_pod(t, d);
    if (d->pod.n) {
        d->step = STEP_READ;
        return;
    }
    rfc3339_parse(json_text(json_at(d->job, "status", "completionTime", NULL)), &ended, NULL);
    if (t->status.now - ended < POD_WAIT_S)
        reconcile_again(t->r, 5 * NS_PER_S); /* the watch of pods may be behind that of Jobs */
    else
        count_failure(d, "JobFailed", S("Discovery job failed: its pod is gone"));
}

static void observe_job(struct aim_turn *t, struct aim_discovery *d)
{
    bool good;
    str why;
    if (!aim_discovery_is_complete(d->job, &good, &why)) {
        if (!find_stuck_pod(t, d))
            set_facts(d, TEMPLATE_DISCOVERING, "DiscoveryRunning", S("Discovery job is running"));
        return;
    }
    d->counted = str_eq(text_at(old_discovery(t), "lastJob"), d->job_uid);
    if (d->counted)
        plan_job(t, d); /* when the backoff is over */
    else if (good)
        plan_reading(t, d);
    else
        count_failure(d, "JobFailed",
                      arena_printf(t->r->arena, "Discovery job failed: " STR_FMT, STR_ARG(why)));
}

void aim_discovery_observe(struct aim_turn *t, const struct json *model,
                           struct aim_template_facts *f)
{
    struct arena *a = t->r->arena;
    struct aim_discovery *d = arena_new(a, struct aim_discovery);
    d->facts = f;
    t->discovery = d;
    set_question(t, d, model);
    d->job_name = json_text(json_at(aim_discovery_job(a, &d->question), "metadata", "name", NULL));
    const struct aim_child_record *job =
        cache_get(aim_world(t->aim)->jobs, d->question.ns, d->job_name);
    d->job = job && !job->deleting ? aim_child_object(a, job) : NULL;
    d->job_uid = job ? arena_str(a, job->meta.uid) : S("");
    if (is_known(t, d))
        d->step = d->job ? STEP_DELETE : STEP_NONE;
    else if (job && job->deleting)
        set_facts(d, TEMPLATE_DISCOVERING, "Reconciling", S("Initiating discovery"));
    else if (d->job)
        observe_job(t, d);
    else
        plan_job(t, d);
}

/* ---- what is next */

/* The log is text from the image: untrusted, and bounded. */
static void on_log(struct reconcile *r, const struct kube_reply *reply)
{
    struct aim_turn *t = r->turn;
    struct aim_discovery *d = t->discovery;
    err_t e;
    if (reply->reason == KUBE_NOT_FOUND || reply->reason == KUBE_BAD_REQUEST)
        count_failure(d, "JobFailed", S("Discovery job failed: its log cannot be read"));
    else if (!reply->failure) {
        str log = arena_str(r->arena, str_upto(reply->body, DISCOVERY_LOG_BYTES));
        if (aim_discovery_parse(r->arena, log, d->question.spec, false, &d->result, &e) < 0)
            count_failure(d, "DiscoveryParseFailed",
                          arena_printf(r->arena, "Failed to parse discovery output: %s", e.text));
        else if (!json_len(d->result.sources))
            count_failure(d, "DiscoveryParseFailed",
                          S("Failed to parse discovery output: it names no model"));
        else
            d->found = true;
    }
    if (d->found || d->failure.n) {
        reconcile_again(r, NS_PER_MS); /* what follows from it, after the status is written */
        aim_turn_answered(t, &(struct kube_reply){ .reason = KUBE_OK });
    } else
        aim_turn_answered(t, reply);
}

static void create_job(struct aim_turn *t, struct aim_discovery *d)
{
    struct json *job = aim_discovery_job(t->r->arena, &d->question);
    aim_apply_owned(t, &aim_resource_jobs, NULL, job);
    remember_recent(t, hash_job(t->r->arena, d->question.ns, d->job_name));
}

void aim_discovery_advance(struct aim_turn *t)
{
    struct aim_discovery *d = t->discovery;
    if (!d)
        return;
    if (d->step == STEP_CREATE)
        create_job(t, d);
    else if (d->step == STEP_DELETE)
        aim_delete_job(t, d->question.ns, d->job_name, d->job_uid);
    else if (d->step == STEP_READ)
        aim_turn_call(t,
                      &(struct kube_request){ .verb = KUBE_GET,
                                              .resource = &resource_pods,
                                              .ns = d->question.ns,
                                              .name = d->pod,
                                              .subresource = "log",
                                              .text = true,
                                              .query =
                                                  S("container=discovery&limitBytes=1048576") },
                      on_log);
}

/* ---- status */

/* Both names of the number of GPUs: each generation of AIM reads another one. */
static struct json *both_names(struct arena *a, struct json *profile)
{
    struct json *metadata = json_get(profile, "metadata");
    int64_t gpus = json_int(json_get(metadata, "gpuCount"), 0);
    if (gpus > 0)
        json_set_int(a, metadata, "gpu_count", gpus);
    return profile;
}

static void record_failure(struct aim_turn *t, struct aim_discovery *d)
{
    struct aim_status *s = &t->status;
    struct aim_discovery_attempts at = read_attempts(t);
    int64_t before = str_eq(at.spec_hash, d->hash) ? at.attempts : 0;
    char text[RFC3339_TEXT_MAX];
    struct json *next = json_new_obj(s->a);
    json_set_int(s->a, next, "attempts", before + 1);
    json_set_str(s->a, next, "lastAttemptTime", rfc3339_text(s->now, text));
    json_set_str(s->a, next, "lastFailureReason", str_upto(d->failure, 1024));
    json_set_str(s->a, next, "specHash", d->hash);
    json_set_str(s->a, next, "lastJob", d->job_uid);
    json_set(s->a, s->next, S("discovery"), next);
    aim_status_event(s, true, d->reason, d->failure);
    reconcile_again(t->r, NS_PER_MS); /* plans the next try */
}

void aim_discovery_set_status(struct aim_turn *t)
{
    struct aim_status *s = &t->status;
    struct aim_discovery *d = t->discovery;
    if (!d)
        return;
    if (d->step == STEP_CREATE && t->write_failure) {
        forget_recent(t, hash_job(s->a, d->question.ns, d->job_name));
        set_facts(d, TEMPLATE_DISCOVERY_FAILED, "JobFailed",
                  arena_printf(s->a, "The discovery job cannot be created: %s", t->write_failure));
        return;
    }
    if (d->failure.n) {
        record_failure(t, d);
        return;
    }
    if (!d->found)
        return;
    struct json *next = json_new_obj(s->a);
    json_set_str(s->a, next, "specHash", d->hash);
    json_set(s->a, s->next, S("discovery"), next);
    if (d->result.hardware)
        json_set(s->a, s->next, S("resolvedHardware"), d->result.hardware);
    aim_status_text(s, "hardwareSummary", d->result.summary);
    set_found(d, d->result.sources, both_names(s->a, d->result.profile));
}

/* ---- watches */

/* Finds the template by the label of the pod's Job. */
static void on_pod_change(struct controller *c, const struct record *old, const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_predictor_record *pod =
        record_as(struct aim_predictor_record, now ? now : old);
    const struct aim_child_record *job =
        cache_get(aim_world(of->aim)->jobs, pod->meta.ns, pod->inference_service);
    if (!job || !str_eqc(job->owner_kind, aim_kinds_of(of->aim)->at[of->kind].kind))
        return;
    controller_add(c, of->kind == AIM_CLUSTER_TEMPLATE ? S("") : job->meta.ns, job->owner_name);
}

/* The Job of a cluster template is in a namespace, its owner is not. */
static void on_job_change(struct controller *c, const struct record *old, const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_child_record *job = record_as(struct aim_child_record, now ? now : old);
    if (str_eqc(job->owner_kind, aim_kinds_of(of->aim)->at[of->kind].kind) && job->owner_name.n)
        controller_add(c, of->kind == AIM_CLUSTER_TEMPLATE ? S("") : job->meta.ns, job->owner_name);
}

void aim_discovery_watch(struct aim_consumers *of)
{
    controller_watch(of->controller, aim_world(of->aim)->jobs, on_job_change);
    controller_watch(of->controller, aim_world(of->aim)->discovery_pods, on_pod_change);
}
