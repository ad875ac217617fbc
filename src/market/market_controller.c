/* The feature: see market_controller.h.
 *
 * An allocation's event leads to itself; a pod's event to the allocations that name it, by one lookup. An
 * allocation that is deleted while its pod lives on gives the pod back what it had: that is how
 * uninstalling works, and why agents must not delete one when a pod opts out. */
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

static void allocation_deleted(struct market_controller *m, const struct allocation_record *old)
{
    struct market_track *track = market_track_find(&m->tracks, old->meta.ns, old->meta.name);
    if (cache_get(m->pods, old->pod_ns, old->pod_name) && has_originals(old)) {
        track = market_track_make(&m->tracks, old->meta.ns, old->meta.name);
        market_track_set_gone(&m->tracks, track, old);
        controller_add(m->controller, old->meta.ns, old->meta.name);
    } else if (track) {
        market_track_drop(&m->tracks, track);
    }
}

/* A change of the status, too: it may be a write of ours whose answer was lost, and about which a turn was wrong that
 * did not know of it yet. */
static void allocation_changed(struct controller *c, const struct record *old,
                               const struct record *now)
{
    if (now)
        controller_add(c, now->ns, now->name);
    else
        allocation_deleted(controller_context(c), (const void *)old);
}

/* Those that were deleted are few and short-lived: they are found by looking at all. */
static void add_gone(struct market_controller *m, const struct record *pod)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&m->tracks.by_key, slot));) {
        const struct market_track *track = slot->value;
        if (track->gone && str_eq(track->gone->pod_name, pod->name) &&
            str_eq(track->gone->pod_ns, pod->ns))
            controller_add(m->controller, track->ns, track->name);
    }
}

static void pod_changed(struct controller *c, const struct record *old, const struct record *now)
{
    struct market_controller *m = controller_context(c);
    const struct record *any = now ? now : old;
    const struct allocation_record *allocation;
    cache_each_in(allocation, m->allocations, ALLOCATIONS_BY_POD, any->name)
        if (str_eq(allocation->pod_ns, any->ns))
            controller_add(c, allocation->meta.ns, allocation->meta.name);
    if (m->tracks.gone_n)
        add_gone(m, any);
}

static const struct feature_setting settings[] = {
    { "market-dry-run", "false", "true: resizes are checked by the API server but not made" },
    { "market-restore", "false", "true: pods get back the CPU they had before the market" },
    { 0 },
};

static int read_flag(struct manager *m, const char *name, bool *ret, err_t *e)
{
    const char *value = manager_setting(m, name);
    if (strcmp(value, "true") && strcmp(value, "false"))
        return err_set(e, EINVAL, "--%s is \"%s\", want true or false", name, value);
    *ret = !strcmp(value, "true");
    return 0;
}

static int start(struct manager *manager, void **ret_state, err_t *e)
{
    struct market_controller *m = mem_zero(1, sizeof(*m));
    *ret_state = m;
    m->manager = manager;
    market_metrics_init(&m->metrics, manager_metrics(manager));
    if (read_flag(manager, "market-dry-run", &m->dry_run, e) < 0 ||
        read_flag(manager, "market-restore", &m->restore, e) < 0 ||
        manager_cache(manager, &allocation_cache, &m->allocations, e) < 0 ||
        manager_cache(manager, &market_pod_cache, &m->pods, e) < 0)
        return -e->code;
    m->controller =
        manager_controller(manager, &(struct controller_spec){ .name = "market",
                                                               .reconcile = market_reconcile,
                                                               .context = m,
                                                               .workers = WORKERS });
    controller_watch(m->controller, m->allocations, allocation_changed);
    controller_watch(m->controller, m->pods, pod_changed);
    return 0;
}

static void stop(void *state)
{
    struct market_controller *m = state;
    market_tracks_done(&m->tracks);
    free(m);
}

const struct feature market_feature = {
    .name = "market",
    .summary = "CPU of running pods, resized in place (PodAllocation)",
    .settings = settings,
    .start = start,
    .stop = stop,
};
