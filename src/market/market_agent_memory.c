/* The memory of the node's pods: every ten seconds their containers are read, and memory_round()
 * decides which requests move and which limits grow (memory_track_core.h). Off unless
 * memoryManagement is "requests" or "full"; nothing is read or kept then.
 *
 *      cgroup_memory_each()    working set, kills, pressure of each container
 *         |
 *         v
 *      memory_track_sample()   peaks of hours and days, slope of the last minute
 *         |
 *         v
 *      memory_round()          all containers of the node at once, urgent ones first
 *         |
 *         v
 *      spec.desiredMemory      the controller resizes, apart from CPU
 *
 * A decision counts as under way until the node reports it, for at most a minute; after a refusal
 * (status.memoryRefusedUntil) the container keeps what it has. Pods that take no part in the market
 * are counted with their requests. */
#include "market_agent_internal.h"

#include "../base/sum.h"
#include "cgroup_memory.h"

static const int64_t mib = 1 << 20, phantom_s = 60;

/* Which of a container's facts are in the pod's record. */
struct facts {
    const struct agent_container *container;
    int64_t limit, request; /* in force, bytes; limit 0: none */
    uint64_t id_sum;
    int64_t oom_ns; /* wall clock of the last end, if it was killed for lack of memory; else 0 */
};

static struct facts find_facts(const struct agent_pod_record *r, bool init, size_t i)
{
    const struct agent_container *c = init ? &r->init_containers.at[i] : &r->containers.at[i];
    const struct agent_container_status *at = init ? r->init_statuses.at : r->statuses.at;
    struct facts f = { .container = c,
                       .limit = MAX(c->memory_limit, (int64_t)0) / 1000,
                       .request = MAX(c->memory_request, (int64_t)0) / 1000 };
    for (size_t k = 0; k < (init ? r->init_statuses.n : r->statuses.n); k++) {
        if (at[k].name_sum != c->name_sum)
            continue;
        f.id_sum = at[k].id_sum;
        f.oom_ns = at[k].oom_killed ? at[k].ended_ns : 0;
        f.limit = at[k].memory_limit >= 0 ? at[k].memory_limit / 1000 : f.limit;
        f.request = at[k].memory_admitted >= 0 ? at[k].memory_admitted / 1000 : f.request;
    }
    return f;
}

/* The i-th container that runs for as long as the pod; false: there is none. */
static bool get_facts(const struct agent_pod_record *r, size_t i, struct facts *ret)
{
    if (i < r->containers.n) {
        *ret = find_facts(r, false, i);
        return true;
    }
    i -= r->containers.n;
    for (size_t k = 0; k < r->init_containers.n; k++)
        if (r->init_containers.at[k].sidecar && i-- == 0) {
            *ret = find_facts(r, true, k);
            return true;
        }
    return false;
}

/* Makes room for the tracks of the pod's containers, which never change while it runs. */
static struct agent_memory *make_memory(struct agent_pod *pod)
{
    struct facts f;
    size_t n = 0;
    while (get_facts(pod->record, n, &f))
        n++;
    if (!pod->memory) {
        pod->memory = mem_zero(1, sizeof(*pod->memory) + n * sizeof(pod->memory->at[0]));
        pod->memory->n = n;
    }
    return pod->memory;
}

/* ---- reading */

struct reading {
    struct agent_pod *pod;
    int64_t now_s, now_usec;
    double kills; /* since the last reading */
};

/* The record keeps only a sum of "runtime://id", so every runtime is tried. */
static bool has_id(str id, uint64_t sum)
{
    static const char *const runtimes[] = { "containerd", "cri-o", "docker" };
    for (size_t i = 0; i < countof(runtimes); i++) {
        auto_buf struct buf text = { 0 };
        buf_printf(&text, "%s://" STR_FMT, runtimes[i], STR_ARG(id));
        if (sum64(buf_str(&text), 0) == sum)
            return true;
    }
    return false;
}

/* Counters start again with the container: a smaller one is no difference. */
static void note_reading(struct reading *r, struct agent_memory_container *c, int64_t limit,
                         const struct cgroup_memory *m)
{
    int64_t took = r->now_usec - c->read_usec;
    bool again = c->read_usec && took > 0;
    double psi = again && m->stalled_usec >= c->stalled_usec && c->stalled_usec >= 0
                     ? (double)(m->stalled_usec - c->stalled_usec) / (double)took
                     : 0;
    if (again && m->oom_kills > c->oom_kills) {
        memory_track_oom(&c->track, r->now_s, limit);
        r->kills += (double)(m->oom_kills - c->oom_kills);
    }
    c->oom_kills = m->oom_kills;
    c->stalled_usec = m->stalled_usec;
    c->read_usec = r->now_usec;
    c->swap = m->swap;
    memory_track_sample(&c->track, r->now_s, m->working_set, MIN(psi, 1.0));
}

static void on_container(void *context, str id, const struct cgroup_memory *m)
{
    struct reading *r = context;
    struct facts f;
    for (size_t i = 0; i < r->pod->memory->n && get_facts(r->pod->record, i, &f); i++)
        if (f.id_sum && has_id(id, f.id_sum))
            note_reading(r, &r->pod->memory->at[i], f.limit, m);
}

/* The kernel's counter is gone with the cgroup of a container that was killed as a whole; then the
 * status of the pod shows it. */
static void note_kill(struct market_agent *a, struct agent_memory_container *c,
                      const struct facts *f, int64_t now_s)
{
    int64_t age_s = (loop_wall_ns(a->loop) - f->oom_ns) / NS_PER_S;
    if (!f->oom_ns || f->oom_ns == c->oom_ns)
        return;
    c->oom_ns = f->oom_ns;
    if (age_s < 0 || age_s >= now_s)
        return;
    if (!c->track.oom_s || c->track.oom_s < now_s - age_s - MEMORY_READ_S) {
        memory_track_oom(&c->track, now_s - age_s, f->limit);
        metric_add(a->metrics.oom_kills, 1);
    }
}

/* ---- deciding */

/* Is the last decision still on its way to the node? Then another one would count the same growth
 * twice. */
static bool is_under_way(const struct agent_memory_container *c, const struct facts *f,
                         int64_t now_s)
{
    return c->desired_limit && (c->desired_limit != f->limit || c->desired_request != f->request) &&
           now_s - c->track.changed_s < phantom_s;
}

static struct memory_container gather(const struct market_agent *a, struct agent_pod *pod,
                                      struct agent_memory_container *c, const struct facts *f,
                                      int64_t now_s)
{
    const struct agent_pod_record *r = pod->record;
    bool refused = pod->memory->refused_until_ns > loop_wall_ns(a->loop);
    return (struct memory_container){
        .track = &c->track,
        .limit = f->limit,
        .request = f->request,
        .restarts_on_resize = f->container->memory_restarts,
        .allow_restart = r->may_restart,
        .swap = c->swap,
        .shrink = a->config.market.memory_shrink || r->memory_shrink,
        .hpa_memory = market_agent_is_divided(a, r, S("memory")),
        .busy = refused || is_under_way(c, f, now_s) || !c->read_usec,
        .qos = r->guaranteed ? MEMORY_GUARANTEED : MEMORY_BURSTABLE,
    };
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + mib - 1) / mib * mib;
}

static void adopt(struct market_agent *a, struct agent_pod *pod, struct agent_memory_container *c,
                  const struct memory_container *decided)
{
    c->reason = decided->change.reason;
    if (decided->change.action == MEMORY_KEEP)
        return;
    c->desired_limit = round_up(decided->change.limit);
    c->desired_request = pod->record->guaranteed
                             ? c->desired_limit
                             : MIN(round_up(decided->change.request), c->desired_limit - mib);
    c->shrink = decided->change.action == MEMORY_SHRINK;
    pod->memory->changed = true;
    controller_add(a->controller, pod->record->meta.ns, pod->record->meta.name);
}

/* Both resources, cleared with the same weights: what is short, and what one more GiB is worth. */
static void price_node(struct market_agent *a, const struct memory_container *containers)
{
    struct arena *scratch = loop_scratch(a->loop);
    size_t n = sampler_count(a->sampler);
    struct joint_pod *pods = arena_array(scratch, MAX(n, (size_t)1), sizeof(*pods));
    struct clear_scratch room = { 0 };
    for (size_t i = 0; i < n; i++) {
        const struct agent_pod *pod = market_agent_at(a, i);
        const struct market_pod *m = &pod->sampled.market;
        pods[i] = (struct joint_pod){ .weight = (double)m->weight,
                                      .cpu_floor_milli = m->guaranteed_milli,
                                      .cpu_max_milli = m->bid_max_milli,
                                      .cpu_now_milli = -1,
                                      .memory_now_mib = -1 };
        for (size_t j = 0; j < pod->memory->n; j++, containers++) {
            pods[i].memory_safe_mib += containers->bid.safe / mib;
            pods[i].memory_want_mib += containers->bid.want / mib;
        }
    }
    int64_t memory = MAX(a->memory.allocatable - a->memory.others, (int64_t)0) / mib;
    a->joint = joint_clear(market_agent_capacity(a), memory, pods, n, &room, scratch);
    clear_scratch_done(&room);
}

/* Gathers all containers of the node, lets memory_round() decide, and adopts what changed. The
 * room of the node is shared in one go, so no order of pods gets more of it. */
static void run_round(struct market_agent *a, int64_t now_s)
{
    size_t pods = sampler_count(a->sampler), n = 0, k = 0;
    struct facts f;
    for (size_t i = 0; i < pods; i++)
        n += make_memory(market_agent_at(a, i))->n;
    struct memory_container *all =
        arena_array(loop_scratch(a->loop), MAX(n, (size_t)1), sizeof(*all));
    for (size_t i = 0; i < pods; i++) {
        struct agent_pod *pod = market_agent_at(a, i);
        for (size_t j = 0; j < pod->memory->n && get_facts(pod->record, j, &f); j++) {
            note_kill(a, &pod->memory->at[j], &f, now_s);
            all[k++] = gather(a, pod, &pod->memory->at[j], &f, now_s);
        }
    }
    memory_round(&a->memory, all, k);
    price_node(a, all);
    k = 0;
    for (size_t i = 0; i < pods; i++) {
        struct agent_pod *pod = market_agent_at(a, i);
        for (size_t j = 0; j < pod->memory->n && get_facts(pod->record, j, &f); j++)
            adopt(a, pod, &pod->memory->at[j], &all[k++]);
    }
}

/* "v1.34.2" -> 34 */
static int kubernetes_minor(str version)
{
    size_t dot = str_find_char(version, '.');
    str minor = dot < version.n ? str_from(version, dot + 1) : S("");
    int64_t value = 0;
    minor = str_upto(minor, str_find_char(minor, '.'));
    return str_to_i64(minor, &value) == 0 && value > 0 && value < 1000 ? (int)value : 0;
}

/* When the setting is turned off, all that was learned is dropped: it would be out of date when it
 * is turned on again. */
void market_agent_read_memory(struct market_agent *a)
{
    const struct market_config *config = &a->config.market;
    bool on = !str_eqc(config->memory, "off");
    int64_t now = loop_mono_ns(a->loop);
    for (size_t i = 0; !on && a->memory_ns && i < sampler_count(a->sampler); i++)
        free(take(market_agent_at(a, i)->memory));
    if (!on)
        a->memory_ns = 0;
    if (!on || !a->running || (a->memory_ns && now - a->memory_ns < MEMORY_READ_S * NS_PER_S))
        return;
    a->memory_ns = now;
    const struct agent_node_record *node = cache_get(a->nodes, S(""), a->node);
    a->memory = (struct memory_node){
        .allocatable = node ? node->allocatable_memory / 1000 : 0,
        .others = a->reserved_bytes,
        .others_requested = a->reserved_bytes,
        .requests_only = str_eqc(config->memory, "requests"),
        .kubernetes_minor = node ? kubernetes_minor(node->kubelet_version) : 0,
        .now_s = now / NS_PER_S + 1,
    };
    struct reading r = { .now_s = a->memory.now_s, .now_usec = now / 1000 };
    for (size_t i = 0; i < sampler_count(a->sampler); i++) {
        r.pod = market_agent_at(a, i);
        make_memory(r.pod);
        if (r.pod->sampled.cgroup)
            cgroup_memory_each(&a->tree, cgroup_path(r.pod->sampled.cgroup), on_container, &r);
    }
    metric_add(a->metrics.oom_kills, r.kills);
    run_round(a, r.now_s);
}

/* ---- what is written */

static str bytes_text(struct arena *a, int64_t bytes)
{
    return arena_printf(a, "%lldMi", (long long)(bytes / mib));
}

struct json *market_agent_desired_memory(struct arena *a, const struct agent_pod *pod)
{
    struct json *list = NULL;
    struct facts f;
    for (size_t i = 0; pod->memory && i < pod->memory->n && get_facts(pod->record, i, &f); i++) {
        const struct agent_memory_container *c = &pod->memory->at[i];
        if (!c->desired_limit)
            continue;
        struct json *one = json_new_obj(a);
        json_set_str(a, one, "container", f.container->name);
        json_set_str(a, one, "request", bytes_text(a, c->desired_request));
        json_set_str(a, one, "limit", bytes_text(a, c->desired_limit));
        if (c->shrink)
            json_set_bool(a, one, "shrink", true);
        list = list ? list : json_new_arr(a);
        json_push(a, list, one);
    }
    return list;
}

struct agent_memory_sum market_agent_sum_memory(const struct agent_pod *pod)
{
    struct agent_memory_sum sum = { .psi = -1, .reason = "" };
    struct facts f;
    for (size_t i = 0; pod->memory && i < pod->memory->n && get_facts(pod->record, i, &f); i++) {
        const struct agent_memory_container *c = &pod->memory->at[i];
        if (!c->read_usec)
            continue;
        sum.is_known = true;
        sum.working_set += c->track.working_set;
        sum.need += memory_track_need(&c->track);
        sum.limit += f.limit;
        sum.request += f.request;
        sum.psi = MAX(sum.psi, c->track.psi);
        if (c->reason && (!*sum.reason || !strcmp(sum.reason, "Enough")))
            sum.reason = c->reason;
    }
    return sum;
}

struct json *market_agent_memory_status(struct arena *a, const struct agent_pod *pod)
{
    struct agent_memory_sum sum = market_agent_sum_memory(pod);
    if (!sum.is_known)
        return NULL;
    struct json *o = json_new_obj(a);
    json_set_str(a, o, "workingSet", bytes_text(a, sum.working_set));
    json_set_str(a, o, "need", bytes_text(a, sum.need));
    json_set_str(a, o, "request", bytes_text(a, sum.request));
    json_set_str(a, o, "limit", bytes_text(a, sum.limit));
    json_set_str(a, o, "reason", str_c(sum.reason));
    return o;
}
