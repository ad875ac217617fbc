/* Which pods take part, what they have, what there is for them, and by which rules: looked at anew whenever
 * a cache says that something changed. */
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

static struct agent_pod *find(const struct market_agent *a, str uid)
{
    struct set_node *node = set_find(&a->by_uid, set_hash(map_hash(uid)), has_uid, &uid);
    return node ? container_of(node, struct agent_pod, by_uid) : NULL;
}

static struct agent_pod *next_pod(const struct market_agent *a, size_t *at)
{
    struct set_node *node = set_next(&a->by_uid, at);
    return node ? container_of(node, struct agent_pod, by_uid) : NULL;
}

/* Where an earlier agent was going is where we go on. */
static void adopt_allocation(struct market_agent *a, struct agent_pod *pod)
{
    const struct agent_allocation_record *allocation =
        market_agent_allocation(a, pod->record->meta.ns, pod->record->meta.name);
    if (!allocation || allocation->owner_uid_sum != sum64(pod->record->meta.uid, 0) ||
        allocation->limit_milli <= 0)
        return;
    pod->sampled.wanted_milli = pod->written_milli = milli32(allocation->limit_milli);
    pod->desired_request_milli = milli32(allocation->request_milli);
    market_agent_read_status(pod, allocation);
}

static void recall(struct market_agent *a, struct agent_pod *pod)
{
    auto_buf struct buf key = { 0 };
    agent_workload_key(pod->record, &key);
    qtable_store_get(a->qtables, buf_str(&key), pod->record->meta.uid, &pod->sampled.market.agent);
}

static struct agent_pod *add(struct market_agent *a, const struct agent_pod_record *record)
{
    struct agent_pod *pod = mem_zero(1, sizeof(*pod));
    pod->record = (const void *)record_ref(&record->meta);
    pod->price = -1;
    sampler_add(a->sampler, &pod->sampled, sum64(record->meta.uid, a->seed));
    pod->by_uid.hash = set_hash(map_hash(record->meta.uid));
    set_add(&a->by_uid, &pod->by_uid);
    recall(a, pod);
    adopt_allocation(a, pod);
    return pod;
}

static void forget(struct market_agent *a, struct agent_pod *pod)
{
    sampler_remove(a->sampler, &pod->sampled);
    record_unref(&pod->record->meta);
    free(pod->objective);
    free(pod->changes);
    free(pod);
}

static void drop(struct market_agent *a, struct agent_pod *pod)
{
    auto_buf struct buf key = { 0 };
    agent_workload_key(pod->record, &key);
    qtable_store_put(a->qtables, buf_str(&key), &pod->sampled.market.agent);
    forget(a, pod);
}

static void note_in_force(struct market_agent *a, struct agent_pod *pod,
                          const struct agent_pod_view *view)
{
    sampled_in_force(&pod->sampled, view->limit_milli, view->request_milli);
    struct agent_changes *c = pod->changes;
    if (c && c->asked_ns && view->limit_milli == pod->sampled.wanted_milli) {
        double seconds = (double)(loop_mono_ns(a->loop) - c->asked_ns) / 1e9;
        pod_resize_took(&pod->sampled.market, seconds);
        agent_changes_arrived(c, seconds);
    }
}

static int32_t tighter(int32_t a, int32_t b) /* of two limits, 0: none */
{
    return !a ? b : !b ? a : MIN(a, b);
}

/* The node cannot give that much; half the way there may be possible. If it is no more than the pod has, the
 * node never resizes it. What was asked for in vain is taken back. */
static void heed_infeasible(struct market_agent *a, struct agent_pod *pod)
{
    struct sampled *s = &pod->sampled;
    struct market_pod *m = &s->market;
    int32_t limit = m->limit_milli, more = pod->infeasible_milli - limit;
    bool over = pod->infeasible_until_ns && loop_wall_ns(a->loop) >= pod->infeasible_until_ns;
    if (!pod->infeasible_milli || over || limit <= 0)
        return;
    if (more > 0)
        m->max_milli = tighter(m->max_milli, limit + more / 2);
    else
        m->min_milli = m->max_milli = limit;
    if (s->wanted_milli >= pod->infeasible_milli || (more <= 0 && s->wanted_milli != limit)) {
        s->wanted_milli = limit;
        pod->desired_request_milli =
            MIN(m->request_milli, milli32(agent_pod_request(pod->record, limit)));
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

static void update(struct market_agent *a, struct agent_pod *pod,
                   const struct agent_pod_record *record, const struct agent_pod_view *view)
{
    if (pod->record != record) {
        const struct agent_pod_record *old = pod->record;
        pod->record = (const void *)record_ref(&record->meta);
        record_unref(&old->meta);
    }
    struct market_pod *m = &pod->sampled.market;
    m->min_milli = milli32(view->min_milli);
    m->max_milli = milli32(view->max_milli);
    set_objective(pod, view->target_ms > 0 ? view->target_ms : a->config.market.slo_target_ms);
    note_in_force(a, pod, view);
    heed_infeasible(a, pod);
    pod->seen = true;
}

struct agent_pod *market_agent_find(struct market_agent *a, str ns, str name)
{
    const struct agent_pod_record *record = cache_get(a->pods, ns, name);
    return record ? find(a, record->meta.uid) : NULL;
}

/* ---- all of them */

static void drop_unseen(struct market_agent *a)
{
    VEC(struct agent_pod *) gone = { 0 };
    struct agent_pod *pod;
    for (size_t at = 0; (pod = next_pod(a, &at)); pod->seen = false)
        if (!pod->seen)
            vec_push(&gone, pod);
    for (size_t i = 0; i < gone.n; i++) {
        set_remove(&a->by_uid, &gone.at[i]->by_uid);
        drop(a, gone.at[i]);
    }
    vec_done(&gone);
}

void market_agent_drop_all(struct market_agent *a)
{
    struct agent_pod *pod;
    for (size_t at = 0; (pod = next_pod(a, &at));)
        forget(a, pod);
    set_done(&a->by_uid);
}

static void look_at_pods(struct market_agent *a)
{
    const struct agent_pod_record *record;
    a->reserved_milli = 0;
    cache_each(record, a->pods) {
        struct agent_pod_view view = agent_pod_view(record, a->excluded);
        a->reserved_milli += view.reserved_milli;
        if (view.exclusion != AGENT_TAKES_PART)
            continue;
        struct agent_pod *pod = find(a, record->meta.uid);
        update(a, pod ? pod : add(a, record), record, &view);
    }
    drop_unseen(a);
    metric_set(a->metrics.managed, (double)sampler_count(a->sampler));
}

int64_t market_agent_capacity(void *context)
{
    const struct market_agent *a = context;
    const struct market_config *c = &a->config.market;
    const struct agent_node_record *node = cache_get(a->nodes, S(""), a->node);
    int64_t whole = !c->capacity_set && node && node->allocatable_milli > 0
                        ? node->allocatable_milli
                        : c->capacity_milli;
    int64_t left = whole - a->reserved_milli;
    left -= (int64_t)((double)left * c->system_reserve_percent / 100);
    return MAX(left, (int64_t)0);
}

/* ---- configuration */

static const char *environment(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

static void complain(void *context, const char *sentence)
{
    (void)context;
    log_warn("a setting is ignored", KV_C("error", sentence));
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
                                          .environment = environment,
                                          .complain = complain };
    int r = agent_config_load(&a->config, &source, e);
    if (r < 0)
        return r;
    sampler_configure(a->sampler, &a->config.market);
    return slo_set_url(a->slo, a->config.market.prometheus_url, e);
}

/* ---- the sampler asks */

static bool is_ready(const struct market_agent *a)
{
    return cache_synced(a->pods) && cache_synced(a->nodes) && cache_synced(a->allocations) &&
           cache_synced(a->configs) && qtable_store_is_loaded(a->qtables);
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
            log_warn("the configuration stays as it was", KV_C("error", e.text));
    }
    if (a->dirty) {
        a->dirty = false;
        look_at_pods(a);
    }
    count_errors(a);
}
