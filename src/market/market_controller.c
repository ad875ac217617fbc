/* The feature: see market_controller.h. Maps watch events to keys of PodAllocations.
 *
 * An event of a PodAllocation queues its own key; an event of a pod queues those that name the
 * pod, by an index. If a PodAllocation is deleted while its pod is running, the pod gets its
 * original resources back. That is how uninstalling works, and why agents must not delete one
 * when a pod opts out. */
#include "market_controller.h"

#include "../json/json.h"
#include "market_turn.h"

enum { WORKERS = 16 };

static bool has_originals(const struct allocation_record *allocation)
{
    auto_arena struct arena a = { 0 };
    struct json *status = NULL;
    return allocation->status.n && json_parse(&a, allocation->status, &status, NULL) == 0 &&
           json_len(json_get(status, "originalResources"));
}

static void on_allocation_deleted(struct market_controller *m, const struct allocation_record *old)
{
    struct market_track *track = market_track_find(&m->tracks, old->meta.ns, old->meta.name);
    if (cache_get(m->pods, old->pod_ns, old->pod_name) && has_originals(old)) {
        track = market_track_make(&m->tracks, old->meta.ns, old->meta.name);
        market_track_set_deleted(&m->tracks, track, old);
        controller_add(m->controller, old->meta.ns, old->meta.name);
    } else if (track) {
        market_track_drop(&m->tracks, track);
        controller_abandon(m->controller, old->meta.ns, old->meta.name);
    }
}

/* Changes of the status count too: one may be a write of ours whose response was lost, and a
 * turn in between may have decided without it. */
static void on_allocation_changed(struct controller *c, const struct record *old,
                                  const struct record *now)
{
    if (now)
        controller_add(c, now->ns, now->name);
    else
        on_allocation_deleted(controller_context(c), record_as(struct allocation_record, old));
}

/* Deleted allocations are few and short-lived, so a scan is good enough. */
static void queue_deleted(struct market_controller *m, const struct record *pod)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&m->tracks.by_key, slot));) {
        const struct market_track *track = slot->value;
        if (track->deleted && str_eq(track->deleted->pod_name, pod->name) &&
            str_eq(track->deleted->pod_ns, pod->ns))
            controller_add(m->controller, track->ns, track->name);
    }
}

static void on_pod_changed(struct controller *c, const struct record *old, const struct record *now)
{
    struct market_controller *m = controller_context(c);
    const struct record *any = now ? now : old;
    const struct allocation_record *allocation;
    cache_each_in(allocation, m->allocations, ALLOCATIONS_BY_POD, any->name)
        if (str_eq(allocation->pod_ns, any->ns))
            controller_add(c, allocation->meta.ns, allocation->meta.name);
    if (m->tracks.deleted_n)
        queue_deleted(m, any);
}

static const struct feature_setting settings[] = {
    { "market-dry-run", "false",
      "Send resizes as dry runs: the API server validates them, and nothing changes" },
    { "market-restore", "false", "Restore the original CPU of all pods" },
    { 0 },
};

/* Starts the feature. On failure, the manager calls stop_controller() with what exists so far. */
static int start_controller(struct manager *manager, void **ret_state, err_t *e)
{
    struct market_controller *m = mem_zero(1, sizeof(*m));
    *ret_state = m;
    m->manager = manager;
    market_metrics_init(&m->metrics, manager_metrics(manager));
    if (manager_setting_bool(manager, "market-dry-run", &m->dry_run, e) < 0 ||
        manager_setting_bool(manager, "market-restore", &m->restore, e) < 0 ||
        manager_cache(manager, &market_allocation_cache, &m->allocations, e) < 0 ||
        manager_cache(manager, &market_pod_cache, &m->pods, e) < 0)
        return -e->code;
    m->controller =
        manager_controller(manager, &(struct controller_spec){ .name = "market",
                                                               .reconcile = market_reconcile,
                                                               .context = m,
                                                               .workers = WORKERS });
    controller_watch(m->controller, m->allocations, on_allocation_changed);
    controller_watch(m->controller, m->pods, on_pod_changed);
    return market_cluster_start(manager, m->allocations, m->pods, &m->cluster, e);
}

static void stop_controller(void *state)
{
    struct market_controller *m = state;
    market_cluster_stop(m->cluster);
    market_tracks_done(&m->tracks);
    free(m);
}

const struct feature market_feature = {
    .name = "market",
    .summary = "CPU of running pods, resized in place (PodAllocation)",
    .settings = settings,
    .start = start_controller,
    .stop = stop_controller,
};
