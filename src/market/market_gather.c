/* From cached records to the input of actuate_decide(), and how much a node's limits may grow: see
 * market_turn.h.
 *
 * Strings are copied into the caller's arena, because records may be replaced during a turn. What the
 * node does not report is -1, never 0: an amount of 0 can be in force. */
#include "market_turn.h"

#include "../base/quantity.h"

static const int64_t stuck_ns = 30 * NS_PER_S;

static const struct market_container_status *find_status(const struct market_container_status *at,
                                                         size_t n, str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(at[i].name, name))
            return &at[i];
    return NULL;
}

static bool is_sidecar(const struct market_container *c)
{
    return str_eqc(c->restart_policy, "Always");
}

/* Appends a container with its spec, what is in force, and whether a resize may touch it. */
static void gather_container(struct arena *a, struct actuate_pod *pod,
                             const struct market_pod_record *record,
                             const struct market_container *c, bool sidecar)
{
    const struct market_container_status *status =
        sidecar ? find_status(record->init_statuses.at, record->init_statuses.n, c->name)
                : find_status(record->statuses.at, record->statuses.n, c->name);
    pod->containers[pod->n++] = (struct actuate_container){
        .name = arena_str(a, c->name),
        .sidecar = sidecar,
        .fixed =
            str_eqc(c->cpu_policy, "RestartContainer") && !str_eqc(record->allow_restart, "true"),
        .request_milli = c->request_milli,
        .limit_milli = c->limit_milli,
        .now_request = status ? status->request_milli : -1,
        .now_limit = status ? status->limit_milli : -1,
        .allocated_milli = status ? status->allocated_milli : -1,
        .original_request = -1,
        .original_limit = -1,
        .memory = { c->memory_request, c->memory_limit },
        .memory_now = { status ? status->memory_allocated : -1,
                        status ? status->memory_limit : -1 },
        .memory_original = { -1, -1 },
        .memory_fixed = str_eqc(c->memory_policy, "RestartContainer") &&
                        !str_eqc(record->allow_restart, "true"),
    };
}

static enum qos parse_qos(str name)
{
    for (int qos = 0; qos < QOS_N; qos++)
        if (str_eqc(name, resize_qos_name((enum qos)qos)))
            return (enum qos)qos;
    return QOS_BURSTABLE;
}

static void gather_conditions(struct arena *a, struct actuate_pod *pod,
                              const struct market_pod_record *record)
{
    bool current = !record->pending_generation || record->pending_generation >= record->generation;
    pod->pending = arena_str(a, current ? record->pending_reason : S(""));
    pod->pending_message = arena_str(a, record->pending_message);
    pod->pending_since_ns = record->pending_since_ns;
    pod->progressing = record->progressing;
    pod->progress = arena_str(a, record->progress_reason);
    pod->progress_message = arena_str(a, record->progress_message);
}

struct actuate_pod market_gather_pod(struct arena *a, const struct market_pod_record *record)
{
    if (!record)
        return (struct actuate_pod){ 0 };
    struct actuate_pod pod = {
        .found = true,
        .ending = record->deleting || str_eqc(record->phase, "Succeeded") ||
                  str_eqc(record->phase, "Failed"),
        .running = str_eqc(record->phase, "Running"),
        .opted_out =
            str_eqc(record->managed_label, "false") || str_eqc(record->managed_annotation, "false"),
        .mirror = record->mirror,
        .windows = str_eqc(record->os, "windows"),
        .guaranteed_too = str_eqc(record->skip_guaranteed, "false"),
        .qos = parse_qos(record->qos),
        .containers = arena_array(a, record->containers.n + record->init_containers.n,
                                  sizeof(struct actuate_container)),
    };
    for (size_t i = 0; i < record->init_containers.n; i++)
        if (is_sidecar(&record->init_containers.at[i]))
            gather_container(a, &pod, record, &record->init_containers.at[i], true);
    for (size_t i = 0; i < record->containers.n; i++)
        gather_container(a, &pod, record, &record->containers.at[i], false);
    gather_conditions(a, &pod, record);
    return pod;
}

void market_gather_memory(struct actuate_pod *pod, const struct allocation_record *allocation)
{
    for (size_t i = 0; i < pod->n; i++)
        for (size_t k = 0; k < allocation->desired_memory.n; k++) {
            const struct market_desired_memory *m = &allocation->desired_memory.at[k];
            struct actuate_container *c = &pod->containers[i];
            if (!str_eq(m->container, c->name))
                continue;
            c->memory_desired = (struct actuate_bytes){ m->request_milli, m->limit_milli };
            c->memory_shrink = m->shrink;
        }
}

bool market_allocation_can_govern(const struct allocation_record *allocation,
                                  const struct market_pod_record *pod)
{
    return str_eq(allocation->meta.ns, pod->meta.ns) && str_eq(allocation->pod_ns, pod->meta.ns) &&
           (!allocation->node.n || str_eq(allocation->node, pod->node));
}

/* If several match, the first by name governs, so that all turns agree. */
const struct allocation_record *market_gather_allocation(const struct market_controller *m,
                                                         const struct market_pod_record *pod)
{
    const struct allocation_record *one, *first = NULL;
    cache_each_in(one, m->allocations, ALLOCATIONS_BY_POD, pod->meta.name)
        if (market_allocation_can_govern(one, pod) &&
            (!first || str_cmp(one->meta.name, first->meta.name) < 0))
            first = one;
    return first;
}

/* Was a reduction sent long ago, without the node enacting it? */
static bool is_stuck(const struct market_track *track, const struct actuate_pod *pod,
                     int64_t desired, int64_t now_ns)
{
    int64_t since = MAX(track->patched_ns, track->spec_ns);
    return actuate_spec_limit(pod) <= desired && now_ns - since >= stuck_ns;
}

int64_t market_gather_room(struct market_controller *m, str node, int64_t now_ns)
{
    auto_arena struct arena a = { 0 };
    const struct market_pod_record *pod;
    int64_t claimed = 0, desired_sum = 0;
    bool shrinks = false;
    cache_each_in(pod, m->pods, MARKET_PODS_BY_NODE, node) {
        const struct allocation_record *allocation = market_gather_allocation(m, pod);
        int64_t desired = 0;
        if (!allocation || quantity_parse_milli(allocation->desired_limit, &desired, NULL) < 0)
            continue;
        struct market_track *track =
            market_track_find(&m->tracks, allocation->meta.ns, allocation->meta.name);
        struct actuate_pod gathered = market_gather_pod(&a, pod);
        int64_t claim = actuate_claimed_limit(&gathered);
        desired =
            MAX(desired,
                actuate_least_limit(&gathered)); /* no pod waits for an impossible reduction */
        if (track && own_write_is_pending(&track->resize, pod->meta.rv, 0))
            claim = MAX(claim, track->sent_milli);
        if (!track || (!track->unmovable &&
                       (desired >= claim || !is_stuck(track, &gathered, desired, now_ns)))) {
            claimed += claim;
            desired_sum += desired;
            shrinks |= desired < claim;
        }
        arena_reset(&a, (struct arena_mark){ 0 });
    }
    return shrinks ? MAX(desired_sum - claimed, (int64_t)0) : INT64_MAX;
}
