/* AIMModelCache: a volume and a job that fills it; see cache_controller.h and cache_core.h. Both children are owned by the
 * cache and created once: neither a bound claim nor a job can be changed afterwards. */
#include "cache_controller.h"

#include "cache_core.h"
#include "names_core.h"
#include "service_watch.h"
#include "service_world.h"

struct cache_model_view {
    struct aim_cache_state state;
    str claim_name;
    const struct json *job;
    struct aim_filling filling;
    enum aim_cache_volume_phase volume;
};

/* Reads the claim and the job from the caches and decides the state. */
static void model_cache_observe_turn(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    struct aim_world *w = aim_world(t->aim);
    struct cache_model_view *v = arena_new(a, struct cache_model_view);
    t->view = v;
    v->claim_name = aim_names_model_cache_volume(a, t->name);
    const struct json *claim = aim_find_child(t, w->claims, v->claim_name);
    str job_name = arena_printf(a, STR_FMT "-cache-download", STR_ARG(t->name));
    v->job = aim_find_child(t, w->jobs, job_name);
    v->filling = aim_filling(a, aim_kinds_of(t->aim)->group, t->status.old, claim, v->job);
    str class = json_text(json_at(claim, "spec", "storageClassName", NULL));
    struct aim_cache_model_facts f = {
        .config_missing = t->config.outcome == RESOLVE_MISSING,
        .config_message = S("The runtime configuration does not exist"),
        .was_available = aim_cache_is_available(json_text(json_get(t->status.old, "status"))),
        .size_known = aim_cache_bytes(t->object) > 0,
        .volume = aim_cache_volume_phase(claim, aim_world_binds_late(w, class)),
        .filling = v->filling,
        .job_leaving = !v->job && cache_get(w->jobs, t->ns, job_name),
    };
    v->volume = f.volume;
    f.job = aim_cache_job_phase(v->job, &f.job_message);
    v->state = aim_cache_model_state(a, &f);
}

/* Children that exist are not applied again; the state wants only what is missing. */
static void model_cache_reconcile(struct aim_turn *t)
{
    const struct cache_model_view *v = t->view;
    const char *group = aim_kinds_of(t->aim)->group;
    if (t->deleting)
        return;
    if (v->state.wants_volume)
        aim_apply_owned(t, &aim_resource_claims, NULL,
                        aim_cache_claim(t->r->arena, group, t->object, &t->settings));
    if (v->state.drops_job)
        aim_delete_job(t, t->ns, json_text(json_at(v->job, "metadata", "name", NULL)),
                       json_text(json_at(v->job, "metadata", "uid", NULL)));
    if (v->state.wants_job) {
        struct json *job = aim_cache_job(t->r->arena, group, t->object, &t->settings);
        aim_filling_mark(t->r->arena, group, job, v->filling.uid);
        aim_apply_owned(t, &aim_resource_jobs, NULL, job);
    }
}

/* Reasons and texts of the original. */
static void put_storage(struct aim_turn *t, enum aim_cache_volume_phase volume)
{
    static const struct {
        const char *reason, *message;
    } texts[] = { [AIM_CACHE_VOLUME_ABSENT] = { "PVCPending", "PVC not created yet" },
                  [AIM_CACHE_VOLUME_PENDING] = { "PVCProvisioning", "PVC is provisioning" },
                  [AIM_CACHE_VOLUME_LAZY] = { "PVCProvisioning", "PVC is provisioning" },
                  [AIM_CACHE_VOLUME_BOUND] = { "PVCBound", "PVC is bound" },
                  [AIM_CACHE_VOLUME_LOST] = { "PVCLost", "PVC lost" } };
    aim_status_set(&t->status, "StorageReady", volume == AIM_CACHE_VOLUME_BOUND,
                   texts[volume].reason, str_c(texts[volume].message));
}

static void model_cache_set_status(struct aim_turn *t)
{
    const struct cache_model_view *v = t->view;
    const struct aim_cache_state *state = &v->state;
    bool done = aim_cache_is_available(str_c(state->status)),
         failed = !strcmp(state->status, "Failed");
    aim_status_text(&t->status, "status", str_c(state->status));
    aim_status_text(&t->status, "persistentVolumeClaim", v->claim_name);
    if (done && v->filling.uid.n)
        aim_status_text(&t->status, AIM_FILLING_FIELD, v->filling.uid);
    put_storage(t, v->volume);
    aim_status_set(&t->status, "Ready", done, state->reason, state->message);
    aim_status_set(&t->status, "Progressing", !done && !failed, state->reason, state->message);
    aim_status_set(&t->status, "Failure", failed, failed ? state->reason : "NoFailure",
                   failed ? state->message : S("No active failures"));
}

static int model_cache_start(struct aim_consumers *of, err_t *e)
{
    (void)e;
    controller_watch(of->controller, aim_world(of->aim)->claims, aim_watch_on_child_change);
    controller_watch(of->controller, aim_world(of->aim)->jobs, aim_watch_on_child_change);
    return 0;
}

const struct aim_hooks aim_model_cache_hooks = {
    .start = model_cache_start,
    .observe = model_cache_observe_turn,
    .reconcile = model_cache_reconcile,
    .set_status = model_cache_set_status,
};
