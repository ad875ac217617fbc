/* AIMService: see service_controller.h. Observes (service_observe.c), creates what is missing, and sets the status
 * (service_status_core.c).
 *
 *     template ready and model known
 *         -> storage: warm cache | volumes of the live InferenceService | a volume of its own
 *         -> InferenceService
 *
 * Storage is sticky: an InferenceService keeps the kind of storage that it was created with, because changing its
 * volumes restarts all pods. A service that asks for a cache waits until it is warm, except if it already runs. */
#include "service_controller.h"

#include "../base/log.h"
#include "../base/rfc3339.h"
#include "cache_core.h"
#include "names_core.h"
#include "runtimeconfig_metrics.h"
#include "service_finalizer.h"
#include "service_view.h"
#include "service_world.h"

#define FINALIZER "service-cache-cleanup"
#define FINALIZER_NEWER "template-cache-cleanup" /* of the newer operator: the same purpose */

static str meta_text(const struct json *object, const char *key)
{
    return json_text(json_at(object, "metadata", key, NULL));
}

static const struct resource *kind_of(const struct aim_turn *t, enum aim_kind kind)
{
    return &aim_kinds_of(t->aim)->at[kind];
}

/* ---- storage */

/* The volumes of a warm cache, from its status; false if there are none. A cache of either generation lists them: model caches by
 * source, artifacts by name. */
static bool mounts_of_cache(struct aim_turn *t, const struct json *cache,
                            struct aim_service_storage *ret)
{
    const struct json *caches = json_at(cache, "status", "artifacts", NULL);
    caches = caches ? caches : json_at(cache, "status", "modelCaches", NULL);
    struct aim_service_mount *at = arena_array(t->r->arena, json_len(caches) + 1, sizeof(*at));
    size_t n = 0;
    json_each(m, caches) {
        str claim = json_text(json_get(m->value, "persistentVolumeClaim"));
        str model = json_text(json_get(m->value, "model"));
        if (claim.n)
            at[n++] =
                (struct aim_service_mount){ claim, aim_cache_mount_path(t->r->arena,
                                                                        model.n ? model : m->key) };
    }
    *ret = (struct aim_service_storage){ "template", at, n };
    return n > 0;
}

static enum aim_service_cache_state cache_state(const struct json *cache)
{
    str word = json_text(json_at(cache, "status", "status", NULL));
    return !cache                         ? SERVICE_CACHE_WAITING
           : aim_cache_is_available(word) ? SERVICE_CACHE_WARM
           : str_eqc(word, "Failed")      ? SERVICE_CACHE_FAILED
                                          : SERVICE_CACHE_WARMING;
}

/* A dedicated cache is owned by the service. Otherwise one of the older generation is owned by its template if that is in the
 * namespace; a shared one of the newer generation has no owner. */
static void make_cache(struct aim_turn *t, struct aim_service_view *v)
{
    struct json *cache = aim_service_template_cache(t->r->arena, &v->basis);
    const struct json *template = v->basis.template;
    struct kube_owner owner = { .resource = kind_of(t, AIM_TEMPLATE),
                                .name = meta_text(template, "name"),
                                .uid = meta_text(template, "uid") };
    bool newer = !json_at(cache, "spec", "templateRef", NULL);
    if (aim_service_is_dedicated(t->object))
        json_set(t->r->arena, json_get(cache, "metadata"), S("ownerReferences"), aim_owner(t));
    else if (meta_text(template, "namespace").n && !newer)
        json_set(t->r->arena, json_get(cache, "metadata"), S("ownerReferences"),
                 kube_owners(t->r->arena, &owner));
    aim_apply(t, kind_of(t, AIM_TEMPLATE_CACHE), NULL, cache);
}

/* Storage from the cache; false: wait for it. A running service keeps its volumes. */
static bool storage_of_cache(struct aim_turn *t, struct aim_service_view *v)
{
    v->facts.cache = cache_state(v->cache);
    v->make_cache = !v->cache;
    if (v->facts.cache == SERVICE_CACHE_WARM && mounts_of_cache(t, v->cache, &v->storage))
        return true;
    return aim_service_read_storage(t->r->arena, v->basis.group, v->runtime, "template",
                                    &v->storage);
}

/* A volume of its own, created once and never changed. */
static void storage_of_volume(struct aim_turn *t, struct aim_service_view *v)
{
    struct json *claim = aim_service_volume(t->r->arena, &v->basis);
    if (!claim)
        return; /* the size of a source is unknown: the pod uses its own disk */
    str name = meta_text(claim, "name");
    struct aim_service_mount *at = arena_new(t->r->arena, struct aim_service_mount);
    *at = (struct aim_service_mount){ name, S(SERVICE_CACHE_ROOT) };
    v->storage = (struct aim_service_storage){ "volume", at, 1 };
    if (!cache_get(aim_world(t->aim)->claims, t->ns, name))
        v->claim = claim;
}

/* Chooses the storage without writing anything; false: the InferenceService must wait. */
static bool choose_storage(struct aim_turn *t, struct aim_service_view *v)
{
    struct arena *a = t->r->arena;
    /* caching.mode was ignored by earlier versions: a service that runs on a volume of its own is not moved by an upgrade */
    bool kept = json_at(t->object, "spec", "caching", "mode", NULL) &&
                aim_service_read_storage(a, v->basis.group, v->runtime, "volume", &v->storage);
    if (kept)
        v->facts.cache = SERVICE_CACHE_OFF;
    else if (aim_service_wants_cache(t->object))
        return storage_of_cache(t, v);
    if (aim_service_read_storage(a, v->basis.group, v->runtime, "template", &v->storage))
        return true;
    if (!aim_service_read_storage(a, v->basis.group, v->runtime, "volume", &v->storage) &&
        cache_state(v->cache) == SERVICE_CACHE_WARM && mounts_of_cache(t, v->cache, &v->storage))
        return true;
    storage_of_volume(t, v);
    return true;
}

/* A claim whose volume is gone: its pods cannot be started again, so that any change would end what still runs. */
static void check_volumes(struct aim_turn *t, struct aim_service_view *v)
{
    struct aim_service_storage of = v->storage;
    if (v->runtime &&
        !aim_service_read_storage(t->r->arena, v->basis.group, v->runtime, "volume", &of))
        aim_service_read_storage(t->r->arena, v->basis.group, v->runtime, "template", &of);
    for (size_t i = 0; i < of.n; i++) {
        const struct aim_world *w = aim_world(t->aim);
        const struct aim_child_record *claim = cache_get(w->claims, t->ns, of.mounts[i].claim);
        claim = claim ? claim : cache_get(w->artifact_claims, t->ns, of.mounts[i].claim);
        struct json *status = NULL;
        if (claim && json_parse(t->r->arena, claim->status, &status, NULL) == 0 &&
            str_eqc(json_text(json_get(status, "phase")), "Lost"))
            v->facts.volume_lost =
                arena_printf(t->r->arena, "PersistentVolumeClaim " STR_FMT " lost its volume",
                             STR_ARG(aim_names_quote(t->r->arena, of.mounts[i].claim)));
    }
}

/* Is everything that an InferenceService is made of, except for its storage, known and good? */
static bool has_ingredients(const struct aim_service_view *v)
{
    return v->facts.config == SERVICE_CONFIG_FOUND && v->facts.model.state == SERVICE_MODEL_READY &&
           v->facts.template.state == SERVICE_TEMPLATE_READY;
}

/* What may be written in this turn. The route is planned by route_controller.c, from `ready` and `exists`. An
 * InferenceService of the newer operator has another form; it is kept as it is, never mixed with ours. */
static void plan_children(struct aim_turn *t, struct aim_service_view *v)
{
    bool settled = has_ingredients(v) && choose_storage(t, v);
    check_volumes(t, v);
    settled = settled && !v->facts.volume_lost.n;
    v->plan = aim_service_plan(&(struct aim_service_plan_question){ .foreign_runtime = v->foreign,
                                                                    .facts = &v->facts,
                                                                    .deleting = t->deleting,
                                                                    .storage_settled = settled });
    if (v->adopted)
        v->plan.runtime = SERVICE_KEEP;
    t->template.ready = v->runtime || v->plan.runtime == SERVICE_CREATE;
}

static void service_observe_turn(struct aim_turn *t)
{
    struct aim_service_view *v = arena_new(t->r->arena, struct aim_service_view);
    t->view = v;
    v->facts.cache = aim_service_wants_cache(t->object) ? SERVICE_CACHE_WAITING : SERVICE_CACHE_OFF;
    aim_service_observe(t, v);
    plan_children(t, v);
}

/* ---- children */

/* The last gate: an InferenceService that could not run is never sent, whatever the plan was. */
static void make_runtime(struct aim_turn *t, struct aim_service_view *v)
{
    const char *lacks;
    struct json *runtime = aim_service_inference_service(t->r->arena, &v->basis, &v->storage);
    if (!aim_service_is_complete(runtime, &lacks)) {
        runtimeconfig_metrics_refused(aim_metrics(t->aim));
        log_error("refused to write an incomplete InferenceService", KV("namespace", t->ns),
                  KV("name", t->name), KV("lacks", str_c(lacks)));
        v->refused = lacks;
        return;
    }
    aim_apply_owned(t, &aim_resource_inference_services, v->runtime, runtime);
}

/* The volume first: the pods of the InferenceService mount it. */
static void make_storage(struct aim_turn *t, struct aim_service_view *v)
{
    if (!v->claim)
        return;
    aim_apply_owned(t, &aim_resource_claims, NULL, v->claim);
}

/* Is this an unfinished cache that was created for this service and that no other service uses? */
static bool is_orphan(struct aim_turn *t, const struct aim_record *cache, str service_label)
{
    const struct json *object =
        aim_record_object(t->r->arena, kind_of(t, AIM_TEMPLATE_CACHE), cache);
    const struct json *labels = json_at(object, "metadata", "labels", NULL);
    const char *group = aim_kinds_of(t->aim)->group;
    str label =
        json_text(json_get_str(labels, aim_names_label_key(t->r->arena, group, "service-name")));
    str newer = json_text(json_get_str(labels, aim_names_label_key(t->r->arena, group, "service")));
    str template = aim_service_cache_template(object);
    const struct aim_record *other;
    label = label.n ? label : newer;
    if (!str_eq(cache->meta.ns, t->ns) || cache->deleting || aim_cache_is_available(cache->word) ||
        !str_eq(label, service_label))
        return false;
    cache_each(other, t->of->cache) {
        if (!str_eq(other->meta.ns, t->ns) || str_eq(other->meta.name, t->name) || other->deleting)
            continue;
        const struct json *o = aim_record_object(t->r->arena, kind_of(t, AIM_SERVICE), other);
        if (aim_service_wants_cache(o) &&
            str_eq(json_text(json_at(o, "status", "resolvedTemplate", "name", NULL)), template))
            return false;
    }
    return true;
}

/* Deletes orphaned caches; removes the finalizer when none is left. */
static void delete_orphan_caches(struct aim_turn *t)
{
    const struct aim_record *cache;
    static const char *const finalizers[] = { FINALIZER, FINALIZER_NEWER };
    str label = aim_names_label_value(t->r->arena, t->name);
    size_t orphans = 0;
    if (!aim_finalizer_has(t, FINALIZER) && !aim_finalizer_has(t, FINALIZER_NEWER))
        return;
    cache_each(cache, aim_cache(t->aim, AIM_TEMPLATE_CACHE))
        if (is_orphan(t, cache, label)) {
            orphans++;
            aim_send(t, &(struct kube_request){ .verb = KUBE_DELETE,
                                                .resource = kind_of(t, AIM_TEMPLATE_CACHE),
                                                .ns = t->ns,
                                                .name = cache->meta.name });
        }
    if (orphans)
        reconcile_again(t->r, NS_PER_S); /* until the watch shows that they are being deleted */
    else
        aim_finalizer_release(t, finalizers, countof(finalizers));
}

/* Children are created in the order of their dependencies; each waits until the one before is ready. */
static void service_reconcile(struct aim_turn *t)
{
    struct aim_service_view *v = t->view;
    struct arena *a = t->r->arena;
    if (t->deleting) {
        delete_orphan_caches(t);
        return;
    }
    if (aim_service_wants_cache(t->object) && !aim_finalizer_has(t, FINALIZER) &&
        !aim_finalizer_has(t, FINALIZER_NEWER))
        aim_finalizer_send(t, FINALIZER, true);
    if (v->facts.config != SERVICE_CONFIG_FOUND)
        return; /* existing objects stay as they are */
    if (v->make_model)
        aim_apply(t, kind_of(t, AIM_MODEL), NULL, json_copy(a, v->make_model));
    if (v->make_template)
        aim_apply(t, kind_of(t, AIM_TEMPLATE), v->live_template, json_copy(a, v->make_template));
    if (v->make_cache)
        make_cache(t, v);
    if (v->plan.runtime == SERVICE_KEEP)
        return;
    make_storage(t, v);
    make_runtime(t, v);
}

/* ---- status */

/* The verdict on the route, as a fact for the status. */
static struct aim_service_route_fact route_fact(const struct aim_route_plan *plan)
{
    static const enum aim_service_route_state states[ROUTE_VERDICT_N] = {
        [ROUTE_UNKNOWN] = SERVICE_ROUTE_UNKNOWN,      [ROUTE_OFF] = SERVICE_ROUTE_OFF,
        [ROUTE_INVALID] = SERVICE_ROUTE_PATH_INVALID, [ROUTE_NOWHERE] = SERVICE_ROUTE_NO_GATEWAY,
        [ROUTE_WAITING] = SERVICE_ROUTE_WAITING,      [ROUTE_CONFLICT] = SERVICE_ROUTE_REJECTED,
        [ROUTE_REJECTED] = SERVICE_ROUTE_REJECTED,    [ROUTE_NO_BACKEND] = SERVICE_ROUTE_NO_BACKEND,
        [ROUTE_FAILED] = SERVICE_ROUTE_REJECTED,      [ROUTE_READY] = SERVICE_ROUTE_READY,
    };
    return (struct aim_service_route_fact){ .state = states[plan->verdict],
                                            .reason = plan->reason ? str_c(plan->reason) : S(""),
                                            .message = plan->message };
}

/* The failed write of this turn, and for how long writes have failed. A refusal counts as lasting at once; a conflict
 * is retried immediately and not reported. */
static struct aim_service_trouble make_trouble(const struct aim_turn *t)
{
    struct aim_service_trouble trouble = { .phase = SERVICE_APPLYING };
    const struct aim_service_view *v = t->view;
    if (v->refused)
        return (struct aim_service_trouble){ .phase = SERVICE_PLANNING,
                                             .message = S(
                                                 "refused to write an incomplete InferenceService"),
                                             .lasting_s = SERVICE_GRACE_S };
    const struct json *ready = aim_status_find(t->status.old, "Ready");
    const struct json *failure = aim_status_find(t->status.old, "Failure");
    if (!t->write_failure || t->write_reason == KUBE_CONFLICT)
        return trouble;
    trouble.message = str_c(t->write_failure);
    bool refused = t->write_reason == KUBE_INVALID || t->write_reason == KUBE_BAD_REQUEST ||
                   t->write_reason == KUBE_FORBIDDEN || t->write_reason == KUBE_NOT_FOUND;
    bool was_reported = str_starts(json_text(json_get(failure, "message")), S("Apply failed"));
    int64_t since = t->status.now;
    if (str_eqc(json_text(json_get(ready, "reason")), "ServerUnavailable"))
        rfc3339_parse(json_text(json_get(ready, "lastTransitionTime")), &since, NULL);
    trouble.lasting_s = refused || was_reported ? SERVICE_GRACE_S : t->status.now - since;
    return trouble;
}

/* RoutingReady is left out: route_controller.c sets it with a more precise message. */
static void put_conditions(struct aim_turn *t, const struct aim_service_answer *answer)
{
    static const enum aim_truth truths[] = {
        [SERVICE_FALSE] = AIM_FALSE, [SERVICE_TRUE] = AIM_TRUE, [SERVICE_UNKNOWN] = AIM_UNKNOWN
    };
    for (int type = 0; type < SERVICE_CONDITION_N; type++) {
        const struct aim_service_condition *c = &answer->conditions[type];
        if (c->truth == SERVICE_ABSENT ||
            type == SERVICE_ROUTING_READY) /* set by route_controller.c */
            continue;
        aim_status_condition(&t->status,
                             &(struct aim_condition){
                                 aim_service_condition_name((enum aim_service_condition_type)type),
                                 truths[c->truth], arena_str(t->r->arena, c->reason).p,
                                 c->message });
    }
}

/* A running service that changes its template restarts its pods; that deserves an event in the turn that writes it. */
static void report_rebinding(struct aim_turn *t)
{
    const struct aim_service_view *v = t->view;
    str before = aim_service_runtime_template(v->runtime), now = v->facts.template.name;
    if (v->plan.runtime != SERVICE_CHANGE || !before.n || str_eq(before, now) || t->write_failure)
        return;
    const char *why = aim_service_template_ref(t->object).n ? "named in the spec"
                      : aim_service_is_rebinding(t)         ? "force-rebind is set"
                                                            : "the former one cannot be used";
    aim_status_event(&t->status, false, "TemplateRebound",
                     arena_printf(t->r->arena,
                                  "Template binding changed: was \"" STR_FMT "\", now \"" STR_FMT
                                  "\" (reason: %s)",
                                  STR_ARG(before), STR_ARG(now), why));
}

static void report_conflict(struct aim_turn *t)
{
    static const char reason[] = "InferenceServiceConflict";
    const struct json *was = aim_status_find(t->status.old, "Ready"),
                      *is = aim_status_find(t->status.next, "Ready");
    if (str_eqc(json_text(json_get(is, "reason")), reason) &&
        !str_eqc(json_text(json_get(was, "reason")), reason))
        aim_status_event(&t->status, true, reason, json_text(json_get(is, "message")));
}

/* The route was planned before and has set its own condition; here it is one fact among others. */
static void service_set_status(struct aim_turn *t)
{
    struct aim_service_view *v = t->view;
    struct aim_status *s = &t->status;
    if (t->deleting)
        return;
    v->facts.route = route_fact(&t->route);
    v->facts.trouble = make_trouble(t);
    struct aim_service_answer answer = aim_service_status(t->r->arena, &v->facts);
    put_conditions(t, &answer);
    aim_status_drop_newer(&t->status);
    aim_status_text(s, "status", str_c(answer.status));
    report_conflict(t);
    struct json *template = aim_service_resolved_template(s->a, &v->facts.template);
    report_rebinding(t);
    if (template)
        json_set(s->a, s->next, S("resolvedTemplate"), template);
    else
        json_del(s->next, S("resolvedTemplate"));
    aim_status_reference(s, "resolvedImage", v->model);
    aim_status_reference(s, "resolvedModel", v->model);
    aim_status_reference(s, "resolvedTemplateCache", v->cache);
}

static int service_start(struct aim_consumers *of, err_t *e)
{
    int r =
        aim_world_start(aim_world(of->aim), aim_manager(of->aim), aim_kinds_of(of->aim)->group, e);
    if (r == 0)
        aim_service_watch(of->aim);
    return r;
}

const struct aim_hooks aim_service_hooks = {
    .start = service_start,
    .observe = service_observe_turn,
    .reconcile = service_reconcile,
    .set_status = service_set_status,
};
