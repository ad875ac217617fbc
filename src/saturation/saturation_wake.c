/* To and from zero: see saturation_wake.h.
 *
 *     queue of the gateway ─► saturation_wake_take ─► wake_choose ─► struct sat_start of one variant
 *                                                                      │
 *       engine: the variant takes part with at least `to` replicas ◄───┤
 *       gauges, external metrics, KEDA's stream: the same number  ◄────┤
 *       saturation_wake_write: 0 -> 1, unless KEDA does it        ◄────┘
 *
 * The invariant: a start is latched. Until a replica was ready for a retention period, no rule takes
 * it away: not the scale to zero, which has seen no request yet, and not demand that vanished between
 * two looks. It ends early only if another client scales the workload back to 0.
 *
 * The writer. An HPA ignores a workload with 0 replicas, so flyball starts the first replica itself.
 * KEDA starts it when it reads the metric, at once with its push trigger or else at its next poll, so
 * flyball waits for KEDA and writes only if it does not act. The write names the version of the workload it is based on,
 * so of two writers one fails and reads again, and one turn per variant is in progress at a time.
 *
 * Rejected: starting all variants of the model, as WVA does. The cheapest that can start is enough
 * for the first requests, and the engine adds others when they are needed. */
#include "saturation_wake.h"

#include "../base/log.h"
#include "../base/rfc3339.h"
#include "../base/sum.h"
#include "saturation_limits.h"

#include <math.h>

static const int64_t failure_memory_ns = 600 * NS_PER_S;
static const int64_t keda_delay_ns = 2 * NS_PER_S, push_delay_ns = 30 * NS_PER_S;
static const int64_t conflict_delay_ns = 250 * NS_PER_MS;

static int64_t mono_ns(const struct saturation *s)
{
    return loop_mono_ns(manager_loop(s->manager));
}

bool saturation_wake_is_allowed(const struct saturation *s, const struct sat_model *m,
                                const struct zero_table *zero)
{
    auto_arena struct arena a = { 0 };
    str(*names)[2] = arena_array(&a, m->variants.n, sizeof(*names));
    size_t n = 0;
    list_each(const struct variant, v, &m->variants, of_model) {
        names[n][0] = v->name;
        names[n++][1] = v->spec.target_name;
    }
    struct sat_lookup q = { m->id, m->ns, (const str(*)[2])names, n };
    struct sat_resolved r = sat_snapshot_resolve(s->snapshot, &q);
    return r.policy.has_zero ? r.policy.zero : zero_enabled(zero, m->id, s->o.zero_by_default);
}

/* ---- choosing */

/* How long the one that follows the target gets to write the first replica itself. Negative: no client
 * may write, because KEDA is paused. */
static int64_t writing_delay(const struct saturation *s, const struct variant *v)
{
    const struct bounds_record *r;
    if (s->scaled_objects)
        cache_each_in(r, s->scaled_objects, 0, v->spec.target_name) {
            if (!saturation_is_bound(r, v))
                continue;
            if (r->is_held || (r->paused.n && !str_eqc(r->paused, "false")))
                return -1;
            return r->pushed ? push_delay_ns : keda_delay_ns;
        }
    cache_each_in(r, s->hpas, 0, v->spec.target_name)
        if (saturation_is_bound(r, v))
            return 0;
    return v->spec.writes_scale ? 0 : keda_delay_ns; /* another follower may be unknown to us */
}

/* Whether a pod of the variant is in a state that waiting does not end. */
static void note_failing_pod(void *context, const struct replica_record *pod)
{
    static const char *const reasons[] = { "ImagePullBackOff", "ErrImagePull", "InvalidImageName",
                                           "CreateContainerConfigError" };
    bool *failing = context;
    for (size_t i = 0; i < countof(reasons); i++)
        *failing |= str_eqc(pod->waits_for, reasons[i]);
}

static bool is_blocked(struct saturation *s, struct variant *v)
{
    bool blocked = writing_delay(s, v) < 0;
    if (blocked && !v->start.blocked)
        saturation_emit(s, v, true, "WakeBlocked",
                        S("requests wait for the model, but the ScaledObject is paused"));
    v->start.blocked = blocked;
    return blocked;
}

static struct wake_candidate make_candidate(struct gathering *g, struct variant *v)
{
    struct saturation *s = g->s;
    const struct workload_record *w = saturation_get_workload(s, v);
    struct variant_bounds b = saturation_get_bounds(s, v);
    struct limit_check limits = saturation_limits_check(g, v);
    struct wake_candidate c = {
        .variant = v->name,
        .role = w ? workload_role(w) : S(""),
        .cost = v->spec.cost,
        .min = b.min,
        .max = b.max,
        .resolved = w && v->accelerator.n >= 2 && !saturation_find_rival(s, v) && !is_blocked(s, v),
        .has_room = limits.has_room,
        .forbidden = limits.forbidden,
        .failing = v->start.failed_ns && g->now_ns - v->start.failed_ns < failure_memory_ns,
        .start_time_ns = v->start.last_took_ns,
    };
    if (v->start.to)
        c.waiting_ns = MAX(g->now_ns - v->start.at_ns, (int64_t)1);
    else if (w && w->wanted > 0) /* another client started it */
        c.waiting_ns = MAX(g->now_ns - v->waiting_ns, (int64_t)1);
    return c;
}

static void start_variant(struct gathering *g, struct variant *v, const struct wake_candidate *c,
                          const char *source)
{
    struct saturation *s = g->s;
    struct metric_family *count =
        metrics_family(manager_metrics(s->manager),
                       &(struct metric_spec){ .name = "flyball_wake_total",
                                              .help = "Starts from zero replicas",
                                              .kind = METRIC_COUNTER,
                                              .labels = { "namespace", "source" } });
    v->start.to = (int)MIN(wake_replicas(c), (int64_t)SAT_REPLICAS_MAX);
    v->start.at_ns = g->now_ns;
    v->start.ready_ns = 0;
    v->start.seen_up = v->start.written = false;
    v->start.source = source;
    metric_add(METRIC(count, v->ns, str_c(source)), 1);
    log_info("starting a variant from zero: requests are waiting", KV("namespace", v->ns),
             KV("variant", v->name), KV("model", v->spec.model), KV_C("source", source),
             KV_INT("replicas", v->start.to));
    controller_add(s->engine, v->ns, v->spec.model);
    controller_add(s->variants, v->ns, v->name);
}

/* Requests wait: starts the variants that should serve them, unless they are on their way. */
static void start_model(struct saturation *s, struct sat_model *m, const char *source)
{
    auto_arena struct arena a = { 0 };
    struct gathering g = { .s = s, .m = m, .model = m, .a = &a, .now_ns = mono_ns(s) };
    struct wake_candidate *candidates = arena_array(&a, m->variants.n, sizeof(*candidates));
    struct variant **variants = arena_array(&a, m->variants.n, sizeof(struct variant *));
    size_t n = 0;
    str why;
    if (!s->o.wake_ns || !manager_leads(s->manager))
        return;
    list_each(struct variant, v, &m->variants, of_model)
        if (saturation_is_managed(s, v, &why)) {
            variants[n] = v;
            candidates[n++] = make_candidate(&g, v);
        }
    struct wake_choice choice = wake_choose(candidates, n);
    for (size_t i = 0; i < choice.n; i++)
        start_variant(&g, variants[choice.at[i]], &candidates[choice.at[i]], source);
    for (size_t i = 0; i < n && choice.n && choice.slow; i++)
        if (candidates[i].waiting_ns && variants[i]->start.at_ns != g.now_ns)
            saturation_emit(s, variants[i], true, "WakeSlow",
                            arena_printf(&a,
                                         "not ready %lld s after its start; variant " STR_FMT
                                         " is started too",
                                         (long long)(candidates[i].waiting_ns / NS_PER_S),
                                         STR_ARG(candidates[choice.at[0]].variant)));
}

void saturation_wake_take(struct saturation *s, struct sat_model *m, enum wake_demand demand,
                          const char *source)
{
    m->sleep.polled_ns = mono_ns(s);
    if (demand != WAKE_PENDING)
        return;
    m->sleep.queued_ns = m->sleep.polled_ns;
    bool starting = false;
    list_each(const struct variant, v, &m->variants, of_model)
        starting |= v->start.to && !v->start.ready_ns;
    if (m->sleep.asleep || starting)
        start_model(s, m, source);
}

/* A time that cannot be read is reported once per text. */
static int64_t read_wake_time(const struct saturation *s, struct variant *v, str text)
{
    auto_arena struct arena a = { 0 };
    int64_t wall_ns = 0;
    uint64_t sum = sum64(text, 0);
    if (!text.n || rfc3339_parse_ns(text, &wall_ns, NULL) == 0) {
        v->start.refused = 0;
        return wall_ns;
    }
    if (v->start.refused != sum && manager_leads(s->manager))
        saturation_emit(s, v, true, "InvalidWake",
                        arena_printf(&a,
                                     "annotation " SAT_WAKE_ANNOTATION " is \"" STR_FMT
                                     "\"; set it to the current time, such as 2026-01-31T08:00:00Z",
                                     STR_ARG(str_upto(text, 64))));
    v->start.refused = sum;
    return 0;
}

void saturation_wake_ask(struct saturation *s, str ns, str name, str time)
{
    struct variant *v = saturation_find(s, ns, name);
    int64_t wall_ns = v ? read_wake_time(s, v, time) : 0;
    if (!v || v->start.asked_ns == wall_ns)
        return;
    v->start.asked_ns = wall_ns;
    if (v->spec.model.n)
        controller_add(s->engine, v->ns, v->spec.model);
}

/* ---- noting */

/* The retention period, also where the model may not scale to zero by itself. */
static int64_t retention_of(const struct gathering *g)
{
    return zero_retention_ns(sat_snapshot_zero(g->s->snapshot, g->m->ns), g->m->id);
}

static void report_ready(struct gathering *g, struct variant *v)
{
    static const double bounds[] = { 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200 };
    double took = (double)(g->now_ns - v->start.at_ns) / (double)NS_PER_S;
    struct metric_family *seconds =
        metrics_family(manager_metrics(g->s->manager),
                       &(struct metric_spec){ .name = "flyball_wake_seconds",
                                              .help = "From waiting requests to a ready replica",
                                              .kind = METRIC_HISTOGRAM,
                                              .bounds = bounds,
                                              .bound_n = countof(bounds) });
    metric_observe(METRIC_ALONE(seconds), took);
    saturation_emit(g->s, v, false, "ScaledFromZero",
                    arena_printf(g->a, "ready %.0f s after requests were seen waiting", took));
}

/* Follows a start until it has done its work. */
static void note_start(struct gathering *g, size_t i)
{
    struct variant *v = g->variants[i];
    if (!isnan(g->traffic[i].start_delay))
        v->start.last_took_ns = (int64_t)(g->traffic[i].start_delay * (double)NS_PER_S);
    if (g->states[i].pending > 0) {
        bool failing = false;
        saturation_each_pod(g->s, v, note_failing_pod, &failing);
        v->start.failed_ns = failing ? g->now_ns : v->start.failed_ns;
    }
    if (!v->start.to)
        return;
    if (g->traffic[i].ready > 0 && !v->start.ready_ns) {
        v->start.ready_ns = g->now_ns;
        report_ready(g, v);
    }
    const struct workload_record *w = saturation_get_workload(g->s, v);
    v->start.seen_up |= v->start.written && w && sum64(w->meta.rv, 0) != v->start.written_rv;
    bool scaled_back = v->start.seen_up && g->wanted[i] == 0;
    bool served = v->start.ready_ns && g->now_ns - v->start.ready_ns >= retention_of(g);
    v->start.seen_up |= g->wanted[i] > 0;
    if (scaled_back || served)
        v->start.to = 0;
}

/* Whether a user asked for the model since it went to sleep. */
static bool is_asked_for(const struct sat_model *m)
{
    list_each(const struct variant, v, &m->variants, of_model)
        if (v->start.asked_ns > m->sleep.began_wall_ns)
            return true;
    return false;
}

void saturation_wake_note(struct gathering *g)
{
    struct sat_model *m = g->model;
    struct sat_sleep *sleep = &m->sleep;
    bool awake = false, at_zero = false, starting = false, first = !sleep->known_ns;
    sleep->known_ns = first ? g->now_ns : sleep->known_ns;
    for (size_t i = 0; i < g->n; i++) {
        note_start(g, i);
        awake |= g->states[i].current > 0;
        at_zero |= g->states[i].current == 0;
        starting |= g->variants[i]->start.to && !g->variants[i]->start.ready_ns;
    }
    for (size_t i = 0; i < g->skipped_n; i++)
        at_zero |= g->skipped[i].asleep;
    if (awake && sleep->asleep)
        sleep->awake_ns = g->now_ns;
    if (!awake && !sleep->asleep) /* an annotation from shortly before our start counts */
        sleep->began_wall_ns =
            loop_wall_ns(manager_loop(g->s->manager)) - (first ? failure_memory_ns : 0);
    if (!awake && !sleep->asleep && !first && at_zero)
        saturation_emit(g->s, list_first(&m->variants, struct variant, of_model), false,
                        "ScaledToZero", S("the model has no replicas"));
    sleep->asleep = !awake;
    sleep->watched = g->s->o.wake_ns && ((sleep->asleep && at_zero) || starting || sleep->idle_ns);
    if (sleep->asleep && is_asked_for(m) && !starting)
        start_model(g->s, m, "annotation");
    if (sleep->watched)
        saturation_wake_poll(g->s);
}

/* ---- going to sleep */

struct youngest {
    int64_t wall_ns;
};

static void note_youngest(void *context, const struct replica_record *pod)
{
    struct youngest *y = context;
    if (!pod->deleting)
        y->wall_ns = MAX(y->wall_ns, MAX(pod->created_ns, pod->ready_ns));
}

/* Whether the pods had time to get a request, and none is being served. */
static bool are_pods_idle(const struct gathering *g)
{
    struct youngest y = { 0 };
    for (size_t i = 0; i < g->n; i++) {
        if (g->traffic[i].sum[GATHER_RUNNING] > 0 || g->variants[i]->start.to)
            return false;
        saturation_each_pod(g->s, g->variants[i], note_youngest, &y);
    }
    for (size_t i = 0; i < g->replica_n; i++)
        if (g->replicas[i].queue > 0)
            return false;
    int64_t age_ns = loop_wall_ns(manager_loop(g->s->manager)) - y.wall_ns;
    return age_ns >= g->m->feed.retention_ns;
}

bool saturation_wake_allows_sleep(struct gathering *g)
{
    struct sat_sleep *sleep = &g->model->sleep;
    const struct sat_feed *feed = &g->m->feed;
    int64_t since_ns = MAX(MAX(sleep->known_ns, sleep->awake_ns), sleep->queued_ns);
    bool idle = feed->retention_ns && feed->requests_known && !(feed->requests > 0) &&
                g->now_ns - since_ns >= feed->retention_ns && are_pods_idle(g);
    if (!idle) {
        sleep->idle_ns = 0;
        return feed->requests > 0; /* a count that keeps it up may be used at once */
    }
    if (!g->s->o.wake_ns || !saturation_wake_has_signal(g->s, g->m))
        return true;
    if (!sleep->idle_ns)
        sleep->idle_ns = g->now_ns;
    sleep->watched = true;
    saturation_wake_poll(g->s);
    return sleep->polled_ns > sleep->idle_ns;
}

/* ---- what is shown */

str saturation_wake_reason(struct arena *a, const struct variant *v)
{
    return arena_printf(a, "started from zero: requests were waiting (source: %s)",
                        v->start.source);
}

struct sat_condition saturation_wake_condition(const struct variant *v)
{
    const struct sat_sleep *sleep = &v->model->sleep;
    bool slept = sleep->asleep || sleep->awake_ns || v->start.has_slept;
    struct sat_condition c = { .known = slept, .holds = !sleep->asleep };
    c.reason = sleep->asleep ? "ScaledToZero" : v->start.to ? "ScaledFromZero" : "Running";
    c.message = sleep->asleep ? S("The model has no replicas; it starts when requests wait for it")
                              : S("The model has replicas");
    return c;
}

/* ---- writing */

static void on_first_replicas(struct reconcile *r, const struct kube_reply *reply)
{
    struct saturation *s = r->context;
    struct variant *v = r->turn;
    if (reply->reason == KUBE_CONFLICT) { /* another writer was faster, or changed something else */
        reconcile_again(r, conflict_delay_ns);
        return;
    }
    if (reply->failure) {
        saturation_fail_scale(r, v, reply);
        return;
    }
    int to = (int)json_int(json_at(reply->object, "spec", "replicas", NULL), v->start.to);
    log_info("workload scaled", KV("namespace", v->ns), KV("workload", v->spec.target_name),
             KV_INT("from", 0), KV_INT("to", to));
    saturation_emit(s, v, false, "Scaled",
                    arena_printf(r->arena, STR_FMT " scaled from 0 to %d replicas",
                                 STR_ARG(v->spec.target_name), to));
    scale_record_change(&v->history, r->now_ns / NS_PER_S, 0, to);
    v->start.written = true;
}

void saturation_wake_write(struct reconcile *r, struct variant *v, const struct workload_record *w)
{
    struct saturation *s = r->context;
    int64_t delay = writing_delay(s, v), elapsed = mono_ns(s) - v->start.at_ns;
    if (w->wanted > 0 || v->start.seen_up || v->start.written || delay < 0)
        return;
    if (elapsed < delay) {
        reconcile_again(r, delay - elapsed);
        return;
    }
    v->start.written_rv = sum64(w->meta.rv, 0);
    reconcile_call(r,
                   &(struct kube_request){
                       .verb = KUBE_MERGE_PATCH,
                       .resource = saturation_get_resource(s, v),
                       .ns = v->ns,
                       .name = v->spec.target_name,
                       .subresource = "scale",
                       .body = arena_printf(r->arena,
                                            "{\"metadata\":{\"resourceVersion\":\"" STR_FMT
                                            "\"},\"spec\":{\"replicas\":%d}}",
                                            STR_ARG(w->meta.rv), v->start.to) },
                   on_first_replicas);
}
