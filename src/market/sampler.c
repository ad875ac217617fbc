/* The loop of a node's market: see sampler.h.
 *
 *      tick, once a second
 *        sync()                    the owner adds and removes pods
 *        sample_all()              cgroup_read() -> market_pod_sample()
 *        fast_round(), every 2 s   raises limits into CPU that no pod holds
 *        slow_round(), every 15 s  clears the market; shrinks are requested before growth
 *        on_tick()
 *
 * A requested limit takes effect later. Until then the pod is evaluated with the limit it has,
 * but the growth is reserved: it is subtracted from what a fast round may give. A slow round
 * decides about all pods again; only pending boosts are kept.
 *
 * A fast round cannot take CPU from a pod. If a pod is throttled and no CPU is free, the next
 * slow round comes early, a third of its interval after the last one.
 *
 * The invariant: limits in force plus pending growth never exceed sampler_limits_capacity(), unless
 * the limits in force already do, or a pod would be below its share. A pod that cannot be read keeps its limit, and
 * the others share the rest. */
#include "sampler.h"

#include "../base/log.h"
#include "milli.h"

enum { RETRIES = 2, WALKS_A_TICK = 4, EAGER_TRIES = 5, EARLY_PART = 3 };

static const int64_t first_retry_ns = 100 * NS_PER_MS;

struct sampler {
    struct sampler_options o;
    struct market_config config;
    struct market_pod_rules rules;
    VEC(struct sampled *) pods; /* borrowed */
    struct clear_scratch scratch;
    struct market_node node;
    struct timer timer, retry;
    int64_t due_ns, fast_due_ns, slow_due_ns; /* monotonic; 0: not running */
    int64_t slow_ran_ns, sampled_ns;
    int64_t search_due_ns; /* monotonic; next search for pods that were not found for long */
    int retries;           /* of failed reads in this tick */
    uint64_t read_errors;
};

static bool takes_part(const struct sampled *pod)
{
    return pod->cgroup && pod->market.last_ns && !pod->excluded;
}

/* What a pod without a part in the market holds: all of its limit if it is not known what it uses. */
static int64_t reserve_of(const struct sampled *pod)
{
    const struct market_pod *m = &pod->market;
    if (!pod->excluded || !m->peak_n)
        return MAX(m->limit_milli, pod->wanted_milli);
    return MAX((int64_t)m->request_milli, MIN((int64_t)m->limit_milli, market_pod_need(m)));
}

/* ---- reading */

static void note_failure(struct sampler *s, struct sampled *pod, const err_t *e)
{
    s->read_errors++;
    pod->failures = MIN(pod->failures + 1u, 100u) & 0xff;
    if (e->code == ENODEV || e->code == ENOENT)
        cgroup_close(take(pod->cgroup));
    if (pod->failures == EAGER_TRIES)
        log_warn("cannot read CPU counters; retrying", KV_C("error", e->text));
}

/* A pod that is not found is searched for at each tick at first, then only once per
 * slow interval (`search_all`). That has its own timer, because slow rounds may come early. */
static bool find_cgroup(struct sampler *s, struct sampled *pod, bool search_all)
{
    auto_buf struct buf path = { 0 };
    err_t e;
    if (pod->cgroup || (pod->failures >= EAGER_TRIES && !search_all))
        return pod->cgroup;
    if (s->o.locate(s->o.context, pod, &path, &e) < 0 ||
        cgroup_open(s->o.tree, buf_str(&path), &pod->cgroup, &e) < 0) {
        note_failure(s, pod, &e);
        return false;
    }
    return true;
}

/* Without overcommit, pressure decides nothing and is read once per slow round. An idle pod does
 * not wait, so its file is not read either. */
static void sample_pressure(const struct sampler *s, struct sampled *pod)
{
    int64_t usec = -1;
    if (!(s->rules.overcommit > 1) || (!pod->market.second_milli && pod->market.waited_usec >= 0))
        return;
    if (cgroup_read_pressure(pod->cgroup, &usec) < 0)
        usec = -1;
    market_pod_sample_pressure(&pod->market, usec);
}

static bool sample_pod(struct sampler *s, struct sampled *pod, bool search_all)
{
    struct demand_cpu_stat stat = pod->market.last;
    err_t e;
    if (!find_cgroup(s, pod, search_all))
        return false;
    if (cgroup_read(pod->cgroup, &stat, &e) < 0) {
        note_failure(s, pod, &e);
        return false;
    }
    market_pod_sample(&pod->market, &s->rules, stat, loop_exact_ns(s->o.loop));
    sample_pressure(s, pod);
    pod->failures = 0;
    return true;
}

static void on_retry_timer(struct timer *timer)
{
    struct sampler *s = container_of(timer, struct sampler, retry);
    bool failed = false;
    for (size_t i = 0; i < s->pods.n; i++) {
        struct sampled *pod = s->pods.at[i];
        if (pod->failures && pod->failures < EAGER_TRIES)
            failed |= !sample_pod(s, pod, false);
    }
    if (failed && ++s->retries < RETRIES)
        timer_set(s->o.loop, &s->retry, loop_mono_ns(s->o.loop) + (first_retry_ns << s->retries),
                  on_retry_timer);
}

/* Usage of the whole node, of which the rounds need only sums. */
static void sample_node(struct sampler *s)
{
    auto_arena struct arena a = { 0 };
    struct market_pod **pods = arena_array(&a, s->pods.n, sizeof(struct market_pod *));
    int64_t now = loop_mono_ns(s->o.loop);
    size_t n = 0;
    for (size_t i = 0; i < s->pods.n; i++)
        if (takes_part(s->pods.at[i]))
            pods[n++] = &s->pods.at[i]->market;
    int64_t cores = (s->o.cores ? s->o.cores : s->o.capacity)(s->o.context);
    double seconds = s->sampled_ns ? (double)(now - s->sampled_ns) / 1e9 : 1;
    market_node_sample(&s->node, pods, n, cores, seconds);
    s->sampled_ns = now;
}

static void sample_all(struct sampler *s, bool search_all)
{
    bool failed = false;
    s->o.tree->walks = WALKS_A_TICK;
    for (size_t i = 0; i < s->pods.n; i++)
        failed |= !sample_pod(s, s->pods.at[i], search_all);
    sample_node(s);
    s->retries = 0;
    if (failed)
        timer_set(s->o.loop, &s->retry, loop_mono_ns(s->o.loop) + first_retry_ns, on_retry_timer);
    else
        timer_stop(&s->retry);
}

/* ---- rounds */

static int64_t pending_growth(const struct sampled *pod)
{
    return MAX(pod->wanted_milli - pod->market.limit_milli, (int64_t)0);
}

/* Pods that cannot be read keep their limit, which is subtracted from the capacity. */
static struct round make_round(struct sampler *s, struct arena *a, bool slow)
{
    struct round r = { .capacity_milli = s->o.capacity(s->o.context),
                       .pods = arena_array(a, s->pods.n, sizeof(struct market_pod *)),
                       .now_ns = loop_mono_ns(s->o.loop),
                       .scratch = &s->scratch,
                       .arena = a,
                       .node = &s->node };
    for (size_t i = 0; i < s->pods.n; i++) {
        struct sampled *pod = s->pods.at[i];
        if (takes_part(pod))
            r.pods[r.n++] = &pod->market;
        else
            r.capacity_milli -= reserve_of(pod);
        if (takes_part(pod) && (!slow || r.now_ns < pod->market.boost_until_ns))
            r.reserved_milli += pending_growth(pod);
    }
    r.capacity_milli = MAX(r.capacity_milli, (int64_t)0);
    if (s->o.allocatable)
        r.allocatable_milli = MAX(s->o.allocatable(s->o.context), (int64_t)1);
    return r;
}

static void request_limit(struct sampler *s, struct sampled *pod, int64_t limit_milli,
                          int64_t request_milli)
{
    pod->wanted_milli = milli32(limit_milli);
    pod->wanted_request_milli = milli32(request_milli);
    s->o.resize(s->o.context, pod, limit_milli);
}

/* Is a pod still throttled because no CPU is free? */
static bool is_starving(const struct sampler *s, const struct round *r, const int64_t *limits)
{
    int64_t room = sampler_limits_capacity(s) - r->reserved_milli;
    bool throttled = false;
    for (size_t i = 0; i < r->n; i++) {
        const struct sampled *pod = container_of(r->pods[i], struct sampled, market);
        room -= limits[i];
        throttled |= pod->throttled > (float)s->rules.throttling_threshold;
    }
    return throttled && room < s->rules.agent.baseline_milli;
}

static void note_fast_windows(const struct sampler *s)
{
    for (size_t i = 0; i < s->pods.n; i++) {
        struct sampled *pod = s->pods.at[i];
        struct market_pod *m = &pod->market;
        struct demand_window w = demand_measure(m->fast_anchor, m->last, m->last_ns - m->fast_ns);
        pod->usage_milli = (float)w.usage_milli;
        pod->throttled = (float)w.throttled;
    }
}

static void fast_round(struct sampler *s)
{
    auto_arena struct arena a = { 0 };
    note_fast_windows(s);
    struct round r = make_round(s, &a, false);
    int64_t *limits = arena_array(&a, r.n, sizeof(*limits));
    int64_t *requests = arena_array(&a, r.n, sizeof(*requests));
    market_fast_round(&r, &s->rules, limits, requests);
    for (size_t i = 0; i < r.n; i++) {
        struct sampled *pod = container_of(r.pods[i], struct sampled, market);
        if (limits[i] > pod->market.limit_milli && limits[i] > pod->wanted_milli)
            request_limit(s, pod, limits[i], requests[i]);
    }
    if (is_starving(s, &r, limits))
        s->slow_due_ns = MIN(s->slow_due_ns, s->slow_ran_ns + s->config.slow_ns / EARLY_PART);
}

/* What to request for a pod after a slow round; limit 0: no change. */
struct wish {
    int64_t limit_milli, request_milli;
};

/* A request that is already in force, or on its way, is not requested again. */
static struct wish wish_of(const struct sampled *pod, int64_t limit_milli, int64_t request_milli,
                           int64_t now_ns, bool sets_requests)
{
    if (now_ns < pod->market.boost_until_ns && pending_growth(pod))
        limit_milli = MAX(limit_milli, (int64_t)pod->wanted_milli);
    int64_t limit = pod->wanted_milli ? pod->wanted_milli : pod->market.limit_milli;
    int64_t request =
        pod->wanted_request_milli ? pod->wanted_request_milli : pod->market.request_milli;
    bool same = limit_milli == limit && (!sets_requests || request_milli == request ||
                                         request_milli == pod->market.request_milli);
    return same ? (struct wish){ 0 } : (struct wish){ limit_milli, request_milli };
}

/* Called first for pods that give something back, then for those that grow, so that the CPU is free
 * when it is needed. */
static void request_limits(struct sampler *s, const struct round *r, const int64_t *limits,
                           const int64_t *requests, bool growth)
{
    for (size_t i = 0; i < r->n; i++) {
        struct sampled *pod = container_of(r->pods[i], struct sampled, market);
        struct wish wish = wish_of(pod, limits[i], requests[i], r->now_ns, s->o.sets_requests);
        bool grows = wish.limit_milli > pod->market.limit_milli ||
                     (wish.limit_milli == pod->market.limit_milli &&
                      wish.request_milli > pod->market.request_milli);
        if (wish.limit_milli && grows == growth)
            request_limit(s, pod, wish.limit_milli, wish.request_milli);
    }
}

static void note_pressure(struct sampled *pod, int64_t elapsed_ns)
{
    int64_t usec, before = pod->pressure_usec;
    if (cgroup_read_pressure(pod->cgroup, &usec) < 0)
        usec = -1;
    bool known = usec >= before && before >= 0 && elapsed_ns > 0;
    pod->pressure = known ? MIN((float)(usec - before) * 1000 / (float)elapsed_ns, 1.0F) : -1;
    pod->pressure_usec = usec;
}

/* Clears the market, requests limits, and reports the round to the owner. */
static void slow_round(struct sampler *s)
{
    auto_arena struct arena a = { 0 };
    int64_t began = clock_cpu_ns(), now = loop_mono_ns(s->o.loop);
    for (size_t i = 0; i < s->pods.n; i++) {
        if (!s->pods.at[i]->cgroup)
            continue;
        cgroup_rescan(s->pods.at[i]->cgroup);
        note_pressure(s->pods.at[i], now - s->slow_ran_ns);
    }
    s->slow_ran_ns = now;
    struct round r = make_round(s, &a, true);
    int64_t *limits = arena_array(&a, r.n, sizeof(*limits));
    int64_t *requests = arena_array(&a, r.n, sizeof(*requests));
    struct round_report report = { .clearing = market_slow_round(&r, &s->rules, limits, requests),
                                   .capacity_milli = r.capacity_milli,
                                   .pods = r.n,
                                   .node = &s->node };
    request_limits(s, &r, limits, requests, false);
    request_limits(s, &r, limits, requests, true);
    clear_scratch_done(&s->scratch); /* not needed again for 15 s */
    report.took_ns = clock_cpu_ns() - began;
    if (s->o.on_round)
        s->o.on_round(s->o.context, &report);
}

/* ---- ticks */

static int64_t next_due(int64_t due_ns, int64_t interval_ns, int64_t now_ns)
{
    return due_ns + interval_ns > now_ns ? due_ns + interval_ns : now_ns + interval_ns;
}

/* One tick. A round that is late is not repeated: next_due() skips what was missed. */
static void on_timer_tick(struct timer *timer)
{
    struct sampler *s = container_of(timer, struct sampler, timer);
    int64_t now = loop_mono_ns(s->o.loop);
    s->o.sync(s->o.context);
    bool search_all = now >= s->search_due_ns;
    if (search_all)
        s->search_due_ns = now + s->config.slow_ns;
    sample_all(s, search_all);
    if (now >= s->fast_due_ns) {
        s->fast_due_ns = next_due(s->fast_due_ns, s->config.fast_ns, now);
        fast_round(s);
    }
    if (now >= s->slow_due_ns) {
        s->slow_due_ns = next_due(s->slow_due_ns, s->config.slow_ns, now);
        slow_round(s);
    }
    s->due_ns = next_due(s->due_ns, s->config.sampling_ns, now);
    timer_set(s->o.loop, &s->timer, s->due_ns, on_timer_tick);
    if (s->o.on_tick)
        s->o.on_tick(s->o.context);
}

void sampler_configure(struct sampler *s, const struct market_config *config)
{
    int64_t now = loop_mono_ns(s->o.loop);
    bool first = !s->due_ns;
    s->config = *config;
    s->rules = market_pod_rules_from(config);
    if (!s->o.sets_requests)
        market_pod_rules_set_overcommit(&s->rules, 1);
    if (first) {
        s->slow_ran_ns = now;
        timer_set(s->o.loop, &s->timer, s->due_ns = now, on_timer_tick);
    }
    s->fast_due_ns = first ? now + config->fast_ns : MIN(s->fast_due_ns, now + config->fast_ns);
    s->slow_due_ns = first ? now + config->slow_ns : MIN(s->slow_due_ns, now + config->slow_ns);
}

const struct market_pod_rules *sampler_rules(const struct sampler *s)
{
    return &s->rules;
}

const struct market_node *sampler_node(const struct sampler *s)
{
    return &s->node;
}

int64_t sampler_limits_capacity(const struct sampler *s)
{
    int64_t capacity = s->o.capacity(s->o.context);
    bool on = s->rules.overcommit > 1 && s->node.kappa.kappa_milli > 0;
    return on ? capacity * s->node.kappa.kappa_milli / 1000 : capacity + s->node.lent_milli;
}

/* ---- life */

struct sampler *sampler_new(const struct sampler_options *options)
{
    struct sampler *s = mem_zero(1, sizeof(*s));
    s->o = *options;
    return s;
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    timer_stop(&s->timer);
    timer_stop(&s->retry);
    while (s->pods.n)
        sampler_remove(s, s->pods.at[s->pods.n - 1]);
    vec_done(&s->pods);
    clear_scratch_done(&s->scratch);
    free(s);
}

void sampler_add(struct sampler *s, struct sampled *pod, uint64_t seed)
{
    market_pod_init(&pod->market, &s->config, loop_mono_ns(s->o.loop), seed);
    pod->pressure = -1;
    pod->pressure_usec = -1;
    pod->place = s->pods.n & 0xffffff;
    vec_push(&s->pods, pod);
}

void sampler_remove(struct sampler *s, struct sampled *pod)
{
    cgroup_close(take(pod->cgroup));
    market_pod_done(&pod->market);
    struct sampled *last = s->pods.at[--s->pods.n];
    s->pods.at[pod->place] = last;
    last->place = pod->place;
}

void sampler_set_limit(struct sampled *pod, int64_t limit_milli, int64_t request_milli)
{
    struct market_pod *m = &pod->market;
    if (m->limit_milli > 0 && limit_milli > m->limit_milli)
        m->grown_ns = m->last_ns;
    if (m->request_milli > 0 && request_milli != m->request_milli)
        m->request_changed_ns = m->last_ns;
    market_pod_set_limit(m, limit_milli, request_milli);
}

size_t sampler_count(const struct sampler *s)
{
    return s->pods.n;
}

struct sampled *sampler_at(const struct sampler *s, size_t i)
{
    return s->pods.at[i];
}

uint64_t sampler_read_errors(const struct sampler *s)
{
    return s->read_errors;
}
