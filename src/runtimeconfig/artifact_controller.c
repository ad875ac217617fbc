/* AIMArtifact: see artifact_controller.h; the children and the state are in artifact_core.h, quotas in artifact_quota.h.
 *
 *     size unknown  -> Job that asks for it -> its log -> status.discoveredSizeBytes
 *     size known    -> volume, if the quotas allow it -> Job that downloads -> Ready
 *
 * Children are created once and never changed: neither a bound claim nor a Job can be. Their names follow from the uid of the
 * artifact, as in the operator that this replaces, so that a volume that it filled is found and not filled again. The log of a pod
 * is read when its answer is needed: after the Job that asks for the size, and for the cause of a failure. */
#include "artifact_controller.h"

#include "../base/rfc3339.h"
#include "aim.h"
#include "artifact_core.h"
#include "artifact_quota.h"
#include "engine_children_core.h"
#include "engine_status.h"
#include "names_core.h"
#include "service_watch.h"
#include "service_world.h"

enum { LOG_BYTES = 64 << 10, POD_WAIT_S = 60 };

struct artifact_view {
    struct aim_artifact_facts facts;
    struct aim_artifact_state state;
    struct aim_engine_condition quota; /* type empty: none */
    str log_pod;                       /* whose log is read in this turn; empty: none */
    const char *log_container;
    bool wants_size;             /* the log is that of the finished size job... */
    const struct json *size_job; /* ...which counts as running until its log is read */
};

static str name_of(const struct json *object)
{
    return json_text(json_at(object, "metadata", "name", NULL));
}

/* The pods of a Job as a list; NULL: none. `uid` excludes those of a Job that had the name before; empty: any. */
static const struct json *pods_of(struct aim_turn *t, str job, str uid)
{
    struct arena *a = t->r->arena;
    struct json *list = json_new_obj(a), *items = json_new_arr(a);
    const struct aim_child_record *r;
    cache_each_in(r, aim_world(t->aim)->artifact_pods, AIM_CHILD_INDEX_OWNER, job)
        if (str_eq(r->meta.ns, t->ns) && str_eqc(r->owner_kind, "Job") &&
            str_find(r->owners, uid) != SIZE_MAX)
            json_push(a, items, aim_child_object(a, r));
    json_set(a, list, S("items"), items);
    return items->n ? list : NULL;
}

/* ---- logs */

static str pod_in_phase(const struct json *pods, const char *phase)
{
    const struct json *items = json_get(pods, "items");
    for (size_t i = 0; i < json_len(items); i++)
        if (str_eqc(json_text(json_at(json_item(items, i), "status", "phase", NULL)), phase))
            return name_of(json_item(items, i));
    return S("");
}

/* Which log the state depends on: the answer of the size job, or the end of a failed pod. */
static void choose_log(struct arena *a, struct artifact_view *v)
{
    const struct aim_artifact_facts *f = &v->facts;
    struct aim_engine_component job = aim_engine_job(f->size_job);
    if (!f->volume && aim_artifact_invalid_size(a, f->q.artifact).n)
        return; /* refused, whatever a job found */
    bool sized = aim_artifact_bytes(f->q.artifact) > 0;
    bool ready =
        str_eqc(json_text(json_at(f->q.artifact, "status", "status", NULL)), "Ready") && f->volume;
    v->wants_size = !sized && f->size_job && aim_engine_component_state(&job) == ENGINE_READY;
    v->log_container = sized ? "model-download" : "check-size";
    if (v->wants_size)
        v->log_pod = pod_in_phase(f->size_pods, "Succeeded");
    else if (!ready)
        v->log_pod = pod_in_phase(sized ? f->pods : f->size_pods, "Failed");
}

/* The log is text from an image: untrusted, and bounded. One that cannot be read is empty. */
static void on_log(struct reconcile *r, const struct kube_reply *reply)
{
    struct aim_turn *t = r->turn;
    struct artifact_view *v = t->view;
    bool gone = reply->reason == KUBE_NOT_FOUND || reply->reason == KUBE_BAD_REQUEST;
    str log = reply->failure ? S("") : arena_str(r->arena, str_upto(reply->body, LOG_BYTES));
    if (!v->wants_size)
        v->facts.pod_log = log;
    else if (!reply->failure || gone) {
        v->facts.size_log = log;
        v->facts.size_job = v->size_job;
    }
    v->state = aim_artifact_state(r->arena, &v->facts);
    if (json_get(v->state.fields, "discoveredSizeBytes"))
        reconcile_again(r, NS_PER_MS); /* the volume, after the status is written */
    aim_turn_answered(t, gone ? &(struct kube_reply){ .reason = KUBE_OK } : reply);
}

/* The last lines are enough: the answer is the last one, and the cause of a failure is near it. */
static void read_log(struct aim_turn *t, const struct artifact_view *v)
{
    aim_turn_call(t,
                  &(struct kube_request){
                      .verb = KUBE_GET,
                      .resource = &resource_pods,
                      .ns = t->ns,
                      .name = v->log_pod,
                      .subresource = "log",
                      .text = true,
                      .query = arena_printf(t->r->arena, "container=%s&tailLines=50&limitBytes=%d",
                                            v->log_container, LOG_BYTES) },
                  on_log);
}

/* ---- turns */

/* The Job is finished, but its answer is not known in this turn: its log is read first, or its pod is not in the cache yet, because
 * the watch of pods may be behind that of Jobs. A pod that does not appear within a minute is gone. */
static void await_size(struct aim_turn *t, struct artifact_view *v)
{
    int64_t ended = t->status.now;
    if (!v->wants_size)
        return;
    struct json *running = json_copy(t->r->arena, v->facts.size_job);
    v->size_job = v->facts.size_job;
    rfc3339_parse(json_text(json_at(v->size_job, "status", "completionTime", NULL)), &ended, NULL);
    if (!v->log_pod.n && t->status.now - ended >= POD_WAIT_S)
        return;
    if (!v->log_pod.n)
        reconcile_again(t->r, 5 * NS_PER_S);
    json_del(running, S("status"));
    v->facts.size_job = running;
}

/* The object with the status that this turn starts from. */
static const struct json *current_object(struct aim_turn *t)
{
    struct json *o = json_copy(t->r->arena, t->object);
    if (t->status.old)
        json_set(t->r->arena, o, S("status"), json_copy(t->r->arena, t->status.old));
    return o;
}

/* Reads all children from the caches; their names follow from the objects that would be created. */
static void artifact_observe_turn(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    struct aim_world *w = aim_world(t->aim);
    struct artifact_view *v = arena_new(a, struct artifact_view);
    struct aim_artifact_facts *f = &v->facts;
    t->view = v;
    f->q = (struct aim_artifact_question){ .group = aim_kinds_of(t->aim)->group,
                                           .artifact = current_object(t),
                                           .config = t->config.spec,
                                           .config_default_missing =
                                               t->config.outcome == RESOLVE_NONE };
    str size_job = name_of(aim_artifact_size_job(a, &f->q));
    str job = name_of(aim_artifact_download_job(a, &f->q));
    f->size_job = aim_find_child(t, w->artifact_jobs, size_job);
    f->size_pods = pods_of(t, size_job, S(""));
    f->volume = aim_find_child(t, w->artifact_claims, name_of(aim_artifact_volume(a, &f->q)));
    f->job = aim_find_child(t, w->artifact_jobs, job);
    f->job_leaving = !f->job && cache_get(w->artifact_jobs, t->ns, job);
    f->filling = aim_filling(a, f->q.group, t->status.old, f->volume, f->job);
    f->pods = f->job && !f->filling.stale
                  ? pods_of(t, job, json_text(json_at(f->job, "metadata", "uid", NULL)))
                  : NULL;
    /* without the right to read role bindings there are none, and pods do not report their progress */
    f->role_binding = cache_absent(w->role_bindings) ||
                      cache_get(w->role_bindings, t->ns, S(ARTIFACT_ROLE)) != NULL;
    choose_log(a, v);
    await_size(t, v);
    v->state = aim_artifact_state(a, f);
    v->state.components[0] = aim_engine_config(t);
}

/* The Job notes which volume it fills. */
static void create_job(struct aim_turn *t, struct artifact_view *v)
{
    const struct aim_artifact_question *q = &v->facts.q;
    struct json *job = aim_artifact_download_job(t->r->arena, q);
    aim_filling_mark(t->r->arena, q->group, job, v->facts.filling.uid);
    aim_apply_owned(t, &aim_resource_jobs, NULL, job);
}

/* The volume is created only if the quotas allow it. */
static void create_volume(struct aim_turn *t, struct artifact_view *v)
{
    int64_t bytes = aim_names_volume_bytes(aim_artifact_bytes(v->facts.q.artifact),
                                           aim_artifact_headroom_percent(v->facts.q.config));
    if (aim_artifact_quota_turn(t, bytes, &v->quota))
        aim_apply_owned(t, &aim_resource_claims, NULL,
                        aim_artifact_volume(t->r->arena, &v->facts.q));
}

/* A turn that needs a log only reads it: what follows from it is done by the next one, from the status. */
static void artifact_reconcile(struct aim_turn *t)
{
    struct artifact_view *v = t->view;
    struct arena *a = t->r->arena;
    const struct aim_artifact_question *q = &v->facts.q;
    if (t->deleting)
        return;
    if (v->log_pod.n) {
        read_log(t, v);
        return;
    }
    struct aim_engine_answer answer = aim_engine_turn(t, v->state.components, v->state.n, NULL, 0);
    if (!answer.apply)
        return;
    if (v->state.make_role_binding)
        aim_apply(t, &aim_resource_role_bindings, NULL, aim_artifact_role_binding(a, q));
    if (v->state.make_size_job)
        aim_apply_owned(t, &aim_resource_jobs, NULL, aim_artifact_size_job(a, q));
    if (v->state.make_volume)
        create_volume(t, v);
    if (v->state.drop_job)
        aim_delete_job(t, t->ns, name_of(v->facts.job),
                       json_text(json_at(v->facts.job, "metadata", "uid", NULL)));
    if (v->state.make_job)
        create_job(t, v);
}

/* Fields that the state does not have are gone; progress and download are written by the pod. */
static void put_fields(struct aim_turn *t, const struct json *fields)
{
    static const char *const own[] = { "displaySize", "headroomPercent", "persistentVolumeClaim" };
    for (size_t i = 0; i < countof(own); i++)
        if (!json_get(fields, own[i]))
            json_del(t->status.next, str_c(own[i]));
    json_each(m, fields)
        json_set(t->status.a, t->status.next, m->key, json_copy(t->status.a, m->value));
}

/* The verdict of the quotas is a condition of its own and does not influence the word: an artifact that waits for room is
 * Progressing, as it is without a volume. */
static void artifact_set_status(struct aim_turn *t)
{
    struct artifact_view *v = t->view;
    struct aim_artifact_state *s = &v->state;
    struct aim_engine_condition extra[2];
    size_t n = 0;
    s->components[0] = aim_engine_config(t);
    aim_engine_put_write_failure(t, &s->components[s->n - 1]);
    if (s->complete.type.n)
        extra[n++] = s->complete;
    if (v->quota.type.n)
        extra[n++] = v->quota;
    struct aim_engine_answer answer = aim_engine_turn(t, s->components, s->n, extra, n);
    put_fields(t, s->fields);
    aim_engine_set_status(t, &answer);
    if (!s->make_volume && !v->quota.type.n)
        aim_status_drop_condition(&t->status, "StorageQuotaExceeded");
}

/* ---- watches */

static void on_pod_change(struct controller *c, const struct record *old, const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_child_record *pod = record_as(struct aim_child_record, now ? now : old);
    const struct aim_child_record *job =
        cache_get(aim_world(of->aim)->artifact_jobs, pod->meta.ns, pod->owner_name);
    if (job)
        aim_watch_on_child_change(c, NULL, &job->meta);
}

/* Artifacts of the namespace wait for it before they download. */
static void on_role_binding_change(struct controller *c, const struct record *old,
                                   const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct record *any = now ? now : old;
    const struct aim_record *r;
    cache_each(r, of->cache)
        if (str_eq(r->meta.ns, any->ns) && !str_eqc(r->word, "Ready"))
            controller_add(c, r->meta.ns, r->meta.name);
}

/* Room appears when an artifact is deleted, or when a limit changes. */
static void on_artifact_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    const struct aim_record *r = record_as(struct aim_record, now);
    (void)old;
    if (!r || r->deleting)
        aim_artifact_quota_enqueue(controller_context(c));
}

/* The annotation of a namespace, or a cluster configuration. */
static void on_limit_change(struct controller *c, const struct record *old,
                            const struct record *now)
{
    (void)old;
    (void)now;
    aim_artifact_quota_enqueue(controller_context(c));
}

static int artifact_start(struct aim_consumers *of, err_t *e)
{
    struct aim_world *w = aim_world(of->aim);
    (void)e;
    controller_watch(of->controller, w->artifact_claims, aim_watch_on_child_change);
    controller_watch(of->controller, w->artifact_jobs, aim_watch_on_child_change);
    controller_watch(of->controller, w->artifact_pods, on_pod_change);
    controller_watch(of->controller, w->role_bindings, on_role_binding_change);
    controller_watch(of->controller, w->namespaces, on_limit_change);
    controller_watch(of->controller, of->cache, on_artifact_change);
    controller_watch(of->controller, aim_cache(of->aim, AIM_CLUSTER_CONFIG), on_limit_change);
    return 0;
}

const struct aim_hooks aim_artifact_hooks = {
    .start = artifact_start,
    .observe = artifact_observe_turn,
    .reconcile = artifact_reconcile,
    .set_status = artifact_set_status,
};
