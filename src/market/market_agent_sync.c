/* Brings the sampler up to date with the caches: which pods take part, what is in force for
 * each, how much CPU there is for all of them, and the configuration. Called at each tick; does
 * its work only if a cache reported a change (`dirty`, `reload`). Nothing happens before all
 * caches are synced and the Q-tables are loaded, because a pod without its table would start to
 * learn from nothing.
 *
 * Pods are identified by uid: a pod that was recreated under the same name is another pod.
 * `by_uid` owns them; each holds a reference to its record. */
#include "market_agent_internal.h"

#include "../base/log.h"
#include "../base/map.h"
#include "../base/sum.h"
#include "milli.h"

/* ---- one pod */

static bool has_uid(const struct set_node *member, const void *uid)
{
    const struct agent_pod *pod = container_of(member, const struct agent_pod, by_uid);
    return str_eq(pod->record->meta.uid, *(const str *)uid);
}

static struct agent_pod *find_by_uid(const struct market_agent *a, str uid)
{
    struct set_node *node = set_find(&a->by_uid, set_hash(map_hash(uid)), has_uid, &uid);
    return node ? container_of(node, struct agent_pod, by_uid) : NULL;
}

static struct agent_pod *next_pod(const struct market_agent *a, size_t *at)
{
    struct set_node *node = set_next(&a->by_uid, at);
    return node ? container_of(node, struct agent_pod, by_uid) : NULL;
}

/* Continues from the PodAllocation that an earlier process wrote. */
static void adopt_allocation(struct market_agent *a, struct agent_pod *pod)
{
    const struct agent_allocation_record *allocation =
        market_agent_find_allocation(a, pod->record->meta.ns, pod->record->meta.name);
    if (!allocation || allocation->owner_uid_sum != sum64(pod->record->meta.uid, 0) ||
        allocation->limit_milli <= 0)
        return;
    pod->sampled.wanted_milli = pod->written_milli = milli32(allocation->limit_milli);
    pod->sampled.wanted_request_milli = milli32(allocation->request_milli);
    pod->desired_request_milli = milli32(allocation->request_milli);
    market_agent_read_status(pod, allocation);
}

static void restore_qtable(struct market_agent *a, struct agent_pod *pod)
{
    auto_buf struct buf key = { 0 };
    market_agent_pod_workload_key(pod->record, &key);
    qtable_store_get(a->qtables, buf_str(&key), pod->record->meta.uid, &pod->sampled.market.agent);
}

static struct agent_pod *add_pod(struct market_agent *a, const struct agent_pod_record *record)
{
    struct agent_pod *pod = mem_zero(1, sizeof(*pod));
    record_ref(&record->meta);
    pod->record = record;
    pod->price = -1;
    sampler_add(a->sampler, &pod->sampled, sum64(record->meta.uid, a->seed));
    pod->by_uid.hash = set_hash(map_hash(record->meta.uid));
    set_add(&a->by_uid, &pod->by_uid);
    restore_qtable(a, pod);
    adopt_allocation(a, pod);
    return pod;
}

static void free_pod(struct market_agent *a, struct agent_pod *pod)
{
    sampler_remove(a->sampler, &pod->sampled);
    record_unref(&pod->record->meta);
    free(pod->objective);
    free(pod->changes);
    free(pod->memory);
    free(pod);
}

static void remove_pod(struct market_agent *a, struct agent_pod *pod)
{
    auto_buf struct buf key = { 0 };
    market_agent_pod_workload_key(pod->record, &key);
    qtable_store_put(a->qtables, buf_str(&key), &pod->sampled.market.agent);
    free_pod(a, pod);
}

static void note_in_force(struct market_agent *a, struct agent_pod *pod,
                          const struct agent_pod_view *view)
{
    sampler_set_limit(&pod->sampled, view->limit_milli, view->request_milli);
    struct agent_changes *c = pod->changes;
    if (c && c->asked_ns && view->limit_milli == pod->sampled.wanted_milli) {
        double seconds = (double)(loop_mono_ns(a->loop) - c->asked_ns) / 1e9;
        market_pod_note_resize_time(&pod->sampled.market, seconds);
        market_agent_metrics_add_latency(c, seconds);
    }
}

static int32_t stricter_limit(int32_t a, int32_t b) /* of two limits, 0: none */
{
    return !a ? b : !b ? a : MIN(a, b);
}

/* The node rejected a limit as infeasible. Until that expires, the pod may grow at most half the
 * way there, and a request for as much is withdrawn. If the rejected limit is no more than the
 * pod has, the node never resizes this pod, and it keeps what it has. */
static void apply_infeasible(struct market_agent *a, struct agent_pod *pod)
{
    struct sampled *s = &pod->sampled;
    struct market_pod *m = &s->market;
    int32_t limit = m->limit_milli, more = pod->infeasible_milli - limit;
    bool over = pod->infeasible_until_ns && loop_wall_ns(a->loop) >= pod->infeasible_until_ns;
    if (!pod->infeasible_milli || over || limit <= 0)
        return;
    if (more > 0)
        m->max_milli = stricter_limit(m->max_milli, limit + more / 2);
    s->excluded = more <= 0;
    if (s->wanted_milli >= pod->infeasible_milli || (more <= 0 && s->wanted_milli != limit)) {
        s->wanted_milli = limit;
        pod->desired_request_milli =
            milli32(market_agent_pod_request(pod->record, limit, m->request_milli));
        s->wanted_request_milli = pod->desired_request_milli;
        if (pod->changes)
            pod->changes->asked_ns = 0;
        controller_add(a->controller, pod->record->meta.ns, pod->record->meta.name);
    }
}

static void set_objective(struct agent_pod *pod, double target_ms)
{
    struct market_pod *m = &pod->sampled.market;
    if (target_ms > 0 && !pod->objective) {
        pod->objective = mem_zero(1, sizeof(*pod->objective));
    } else if (!(target_ms > 0) && pod->objective) {
        free(take(pod->objective));
        m->slo_weight = 1;
        m->slo_ratio = 0;
        m->slo_milli = 0;
        m->slo_burns = false;
    }
    if (pod->objective)
        pod->objective->target_ms = target_ms;
}

/* Before the first resize, the CPU in force is the original; the controller records it then, and
 * market_agent_read_status() takes it from there. */
static void note_originals(struct agent_pod *pod, const struct agent_pod_view *view)
{
    struct market_pod *m = &pod->sampled.market;
    if (m->original_limit_milli || pod->original_request_milli)
        return;
    m->original_limit_milli = milli32(view->limit_milli);
    pod->original_request_milli = milli32(view->request_milli);
}

static void update_pod(struct market_agent *a, struct agent_pod *pod,
                       const struct agent_pod_record *record, const struct agent_pod_view *view)
{
    if (pod->record != record) {
        record_ref(&record->meta);
        record_unref(&pod->record->meta);
        pod->record = record;
    }
    struct market_pod *m = &pod->sampled.market;
    m->min_milli = milli32(view->min_milli);
    m->max_milli = milli32(view->max_milli);
    m->problems = (uint16_t)(m->problems & ~FLOOR_ANNOTATION_PROBLEMS) | (uint16_t)view->problems;
    pod->least_milli = milli32(view->least_milli);
    m->elastic = record->elastic;
    m->guaranteed_qos = record->guaranteed;
    note_originals(pod, view);
    if (record
            ->started_ns) /* startupGracePeriod counts from the start of the pod, not of the agent */
        m->started_ns = loop_mono_ns(a->loop) - (loop_wall_ns(a->loop) - record->started_ns);
    pod->sampled.excluded = false;
    set_objective(pod, view->target_ms > 0 ? view->target_ms : a->config.market.slo_target_ms);
    note_in_force(a, pod, view);
    market_agent_apply_guarantees(a, pod);
    apply_infeasible(a, pod);
    pod->seen = true;
}

struct agent_pod *market_agent_find_pod(struct market_agent *a, str ns, str name)
{
    const struct agent_pod_record *record = cache_get(a->pods, ns, name);
    return record ? find_by_uid(a, record->meta.uid) : NULL;
}

/* ---- all of them */

static void remove_unseen(struct market_agent *a)
{
    VEC(struct agent_pod *) unseen = { 0 };
    struct agent_pod *pod;
    for (size_t at = 0; (pod = next_pod(a, &at)); pod->seen = false)
        if (!pod->seen)
            vec_push(&unseen, pod);
    for (size_t i = 0; i < unseen.n; i++) {
        set_remove(&a->by_uid, &unseen.at[i]->by_uid);
        remove_pod(a, unseen.at[i]);
    }
    vec_done(&unseen);
}

void market_agent_remove_all(struct market_agent *a)
{
    struct agent_pod *pod;
    for (size_t at = 0; (pod = next_pod(a, &at));)
        free_pod(a, pod);
    set_done(&a->by_uid);
}

static void sync_pods(struct market_agent *a)
{
    const struct agent_pod_record *record;
    a->reserved_milli = a->reserved_bytes = a->excluded_n = 0;
    cache_each(record, a->pods) {
        struct agent_pod_view view = market_agent_pod_view(record, a->excluded);
        a->reserved_milli += view.reserved_milli;
        a->reserved_bytes += view.reserved_bytes;
        a->excluded_n += view.exclusion != AGENT_TAKES_PART;
        if (view.exclusion != AGENT_TAKES_PART)
            continue;
        struct agent_pod *pod = find_by_uid(a, record->meta.uid);
        update_pod(a, pod ? pod : add_pod(a, record), record, &view);
    }
    remove_unseen(a);
    metric_set(a->metrics.managed, (double)sampler_count(a->sampler));
}

int64_t market_agent_cores(void *context)
{
    const struct market_agent *a = context;
    const struct market_config *c = &a->config.market;
    const struct agent_node_record *node = cache_get(a->nodes, S(""), a->node);
    return !c->capacity_set && node && node->allocatable_milli > 0 ? node->allocatable_milli
                                                                   : c->capacity_milli;
}

int64_t market_agent_capacity(void *context)
{
    const struct market_agent *a = context;
    int64_t left = market_agent_cores(context) - a->reserved_milli;
    left -= (int64_t)((double)left * a->config.market.system_reserve_percent / 100);
    return MAX(left, (int64_t)0);
}

/* For the requests of the pods that bid. The headroom is for pods that do not run yet: the
 * scheduler counts requests. */
int64_t market_agent_allocatable(void *context)
{
    const struct market_agent *a = context;
    int64_t whole = market_agent_cores(context);
    int64_t headroom = (int64_t)((double)whole * a->config.market.request_headroom_percent / 100);
    return MAX(whole - a->reserved_milli - headroom, (int64_t)0);
}

/* ---- configuration */

static const char *lookup_environment(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

static void note_complaint(void *context, const char *sentence)
{
    market_agent_add_problem(context, sentence);
}

static str config_data(const struct market_agent *a)
{
    if (!a->configs || !cache_synced(a->configs))
        return S("");
    const struct agent_config_record *r =
        cache_get(a->configs, a->config_ns, S("mbcas-agent-config"));
    return r ? r->data : S("");
}

int market_agent_load_config(struct market_agent *a, err_t *e)
{
    struct agent_config_source source = { .data = config_data(a),
                                          .environment = lookup_environment,
                                          .complain = note_complaint,
                                          .complain_context = a };
    market_agent_clear_problems(a);
    int r = market_agent_config_load(&a->config, &source, e);
    if (r < 0)
        return r;
    sampler_configure(a->sampler, &a->config.market);
    return latency_set_url(a->latency, a->config.market.prometheus_url, e);
}

/* ---- sync */

static bool is_ready(const struct market_agent *a)
{
    return cache_synced(a->pods) && cache_synced(a->nodes) && cache_synced(a->allocations) &&
           cache_synced(a->configs) && cache_synced(a->hpas) && qtable_store_is_loaded(a->qtables);
}

static void count_errors(struct market_agent *a)
{
    uint64_t errors = sampler_read_errors(a->sampler);
    metric_add(a->metrics.read_errors, (double)(errors - a->counted_errors));
    a->counted_errors = errors;
}

void market_agent_sync(void *context)
{
    struct market_agent *a = context;
    err_t e;
    a->running = a->running || is_ready(a);
    if (!a->running)
        return;
    if (a->reload) {
        a->reload = false;
        a->dirty = true;
        if (market_agent_load_config(a, &e) < 0)
            market_agent_add_problem(a, e.text); /* the last valid configuration stays */
        market_agent_emit_problems(a);
    }
    if (a->dirty) {
        a->dirty = false;
        sync_pods(a);
    }
    count_errors(a);
}
