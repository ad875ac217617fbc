/* The engine: one decision per model and cycle, from what the caches and feeds hold.
 *
 * The problem. A cluster has up to a thousand models, each with a few variants, and every decision
 * needs configuration, workloads, pods, bounds and metrics. A Prometheus query that hangs or an API
 * server that restarts must not delay the decisions about other models, and the whole cycle has a
 * budget of 20 ms of CPU for 1,000 models with 4 variants of 8 replicas each
 * (bench/saturation_bench.c).
 *
 * The invariant. Nothing in this file waits. A decision is a function of memory: watch caches, the
 * feed of the model, the configuration snapshot and what the model remembers from its last
 * decision. Whatever is missing or stale is unknown, and unknown is never treated as idle: without
 * metrics the last target holds, within its bounds.
 *
 *      watch caches ──┐                                         saturation_show.c
 *      feed (collect) ┼─► saturation_gather ─► decide_model ─► ..._answer ─┬─► metrics (HPA and KEDA read them)
 *      snapshot ──────┘        │        slo_step ──┘                       ├─► event ScaleUp or ScaleDown
 *                              └─► ..._skipped (with a reason)             └─► ..._view ─► queue of variants
 *                                                                                              │
 *                                                           status and scale (saturation_turn) ◄┘
 *
 * How it is driven. The engine is a controller with one worker and two kinds of key: "cycle" (no
 * namespace) decides about every model and schedules itself again; "namespace/model" decides about
 * one model that cannot wait for the next cycle, because its first metrics arrived or its workload
 * was created. Keys are deduplicated by the queue, so a burst of events leads to one decision, and
 * the queue cannot grow beyond the number of models.
 *
 * The interval is GLOBAL_OPT_INTERVAL, or the shorter cycle of the slo policy once it has traffic
 * of any model.
 *
 * Which rule decides: slo (latency targets) where it is configured or, by default, where the
 * servers count tokens; otherwise need (KV cache and queue) or, with --wva-rules, one of WVA's own
 * rules. See saturation_slo.c and decide_core.c. The optimizer, if enabled, is consulted first and
 * passed to the decision as an opinion.
 *
 * What is written. saturation_show_view() compares the new view of a variant with the one that was last shown;
 * only a difference that a reader would care about (status_core.c) puts the variant on the queue
 * that writes statuses. In a steady state a cycle therefore sends nothing to the API server.
 *
 * Ownership. All intermediate results are in the arena of the reconcile call, which is reset after
 * each model. What survives is copied: the texts of a view into the variant's own arena, the target
 * into struct variant.
 *
 * Rejected: handing decisions to the writer through a bounded channel, as WVA does. Its channel has
 * 1,000 entries, and an engine that finds it full blocks. Rejected too: formatting conditions and
 * setting gauges in every cycle; both are skipped while the decision and its reason stay the same.
 */
#include "../base/log.h"
#include "saturation_advice.h"
#include "saturation_gauges.h"
#include "saturation_limits.h"
#include "saturation_share.h"
#include "saturation_show.h"
#include "saturation_slo.h"
#include "saturation_tokens.h"
#include "saturation_victims.h"
#include "saturation_wake.h"

#include <math.h>

#define CHECKLIST                                                                                  \
    "No vLLM metrics for model '" STR_FMT "' in namespace '" STR_FMT                               \
    "'. Check that (1) a ServiceMonitor exists for its pods, (2) its selector matches the "        \
    "Service's labels, (3) the pods serve /metrics, (4) Prometheus scrapes the namespace"

/* ---- the optimizer */

/* Whether replicas arrived so recently that the samples still show the load from before. Prometheus
 * reports the maximum of the last minute; scraped pods report the last 30 s. */
static bool has_just_grown(const struct gathering *g)
{
    int64_t memory_ns = (g->s->collector.prometheus ? 60 : 30) * NS_PER_S;
    int64_t grown_ns = 0;
    for (size_t i = 0; i < g->n; i++)
        grown_ns = MAX(grown_ns, g->variants[i]->grown_ns);
    return grown_ns && g->now_ns - grown_ns < memory_ns + g->s->snapshot->ages.fetch_ns;
}

/* Is any replica known to be busy, or not known to be idle? */
static bool is_at_work(const struct gathering *g)
{
    for (size_t i = 0; i < g->replica_n; i++)
        if (!(g->replicas[i].kv_usage <= 0 && g->replicas[i].queue <= 0))
            return true;
    return false;
}

/* Returns the replicas that the optimizer wants, by variant. NULL: it is off, or has no answer
 * (logged). */
static int *run_optimizer(struct gathering *g)
{
    const struct saturation *s = g->s;
    if (s->o.mode == DECIDE_CAPACITY)
        return NULL;
    struct optimize_variant *variants = arena_array(g->a, g->n, sizeof(*variants));
    int *targets = arena_array(g->a, g->n, sizeof(*targets));
    int most;
    for (size_t i = 0; i < g->n; i++)
        variants[i] = (struct optimize_variant){ g->variants[i]->name,
                                                 g->variants[i]->accelerator,
                                                 &g->variants[i]->spec,
                                                 g->states[i].current,
                                                 saturation_limits_most(g, g->variants[i], &most),
                                                 most };
    bool fresh = g->now_ns - g->m->feed.load_ns <= s->snapshot->ages.fresh_ns;
    struct optimize_input in = { .catalog = &s->snapshot->catalog,
                                 .model = g->m->id,
                                 .variants = variants,
                                 .n = g->n,
                                 .load = g->m->feed.load,
                                 .at_work = is_at_work(g),
                                 .incomplete = g->unknown_n || has_just_grown(g),
                                 .may_be_zero = s->o.zero_by_default,
                                 .compat = decide_is_compat(s->o.rules) };
    err_t e;
    if (!g->m->feed.load_ns || !fresh)
        in.load.arrival_per_min = NAN;
    if (optimize_model(g->a, &in, targets, &e) == 0)
        return targets;
    log_debug("optimizer has no answer; using capacity only", KV("namespace", g->m->ns),
              KV("model", g->m->id), KV_C("error", e.text));
    return NULL;
}

/* ---- without metrics */

/* Keeps the last target of every variant; an optimizer that knows the load may raise it. */
static void hold_variants(struct gathering *g, struct sat_condition metrics)
{
    const int *model = run_optimizer(g);
    for (size_t i = 0; i < g->n; i++) {
        const struct sat_state *state = &g->states[i];
        log_debug("Could not collect metrics for VA, skipping", KV("namespace", g->m->ns),
                  KV("va", state->variant));
        int target =
            sat_clamp_to_bounds(state, state->desired > 0 ? state->desired : state->current);
        struct decide_answer x = { .variant = state->variant,
                                   .current = state->current,
                                   .target = target,
                                   .reason = S("without metrics the last decision holds") };
        if (g->variants[i]->start.to) {
            x.source = DECIDE_FROM_ZERO;
            x.reason = saturation_wake_reason(g->a, g->variants[i]);
        }
        int more = model ? sat_clamp_to_bounds(state, model[i]) : 0;
        if (more >= target) {
            x.target = more;
            x.source = DECIDE_FROM_MODEL;
            x.reason = S("model-based only (capacity unavailable)");
        }
        saturation_show_answer(g, i, &x, metrics);
    }
}

/* Publishes the targets of the previous leader, so that the metrics have no gap while the first
 * fetch is under way. */
static void show_last_targets(const struct gathering *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct variant *v = g->variants[i];
        struct variant_labels labels = saturation_show_labels(g->s, v);
        if (v->desired > 0)
            saturation_metrics_show(&g->s->metrics, &v->series, &labels, g->present[i], v->desired);
    }
}

/* Replicas that exist or are wanted. */
static int count_pods(const struct gathering *g)
{
    int n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += MAX(g->states[i].current, g->present[i]);
    return n;
}

/* Returns the condition that explains why nothing can be decided; `known` is false if it can. */
static struct sat_condition find_metrics_problem(const struct gathering *g)
{
    const struct saturation *s = g->s;
    const struct sat_feed *feed = &g->m->feed;
    const struct sat_ages *ages = &s->snapshot->ages;
    int64_t age = g->now_ns - feed->fetched_ns;
    const char *other = feed->other_model;
    if (s->no_metrics)
        return saturation_show_condition(false, "PrometheusError", str_c(s->no_metrics));
    if (feed->failure)
        return saturation_show_condition(
            false, s->collector.prometheus ? "PrometheusError" : "MetricsMissing",
            arena_printf(g->a, "Failed to query %s: %s",
                         s->collector.prometheus ? "Prometheus" : "the pods", feed->failure));
    if (feed->fetched_ns && age > ages->unavailable_ns)
        return saturation_show_condition(false, "MetricsStale",
                                         arena_printf(g->a,
                                                      "vLLM metrics for model '" STR_FMT
                                                      "' are stale (last update: %llds ago)",
                                                      STR_ARG(g->m->id),
                                                      (long long)(age / NS_PER_S)));
    if (!g->reporting && !count_pods(g))
        return saturation_show_condition(false, "NoReplicas",
                                         arena_printf(g->a,
                                                      "Model '" STR_FMT
                                                      "' has no replicas that could report metrics",
                                                      STR_ARG(g->m->id)));
    if (!g->reporting)
        return saturation_show_condition(false, "MetricsMissing",
                                         arena_printf(g->a, CHECKLIST "%s%s%s", STR_ARG(g->m->id),
                                                      STR_ARG(g->m->ns),
                                                      other ? ". Pods report model '" : "",
                                                      other ? other : "",
                                                      other ? "' instead" : ""));
    return (struct sat_condition){ 0 };
}

static struct sat_condition describe_metrics(const struct gathering *g)
{
    if (!g->unknown_n)
        return saturation_show_condition(
            true, "MetricsFound", S("Saturation metrics data is available for scaling decisions"));
    return saturation_show_condition(
        true, "MetricsFound",
        arena_printf(g->a,
                     "Saturation metrics are complete for %zu of %zu ready replicas; "
                     "until all report nothing is scaled down",
                     g->replica_n - g->unknown_n, g->replica_n));
}

/* A problem is logged once when it begins, not in every cycle. */
static bool is_new_problem(const struct gathering *g, const struct sat_condition *problem)
{
    const struct variant *v = g->variants[0];
    const struct sat_condition *shown = &v->shown.view.conditions[SAT_METRICS_AVAILABLE];
    return !v->decided || !shown->known || shown->holds ||
           strcmp(shown->reason, problem->reason) != 0;
}

static void report_problem(struct gathering *g, const struct sat_condition *problem)
{
    log_warn("Safety net activated: emitted fallback metrics", KV("namespace", g->m->ns),
             KV("model", g->m->id), KV_C("reason", problem->reason),
             KV("message", problem->message));
    for (size_t i = 0; i < g->n && saturation_gauges_wanted(g->s); i++) /* quoted: WVA 0.9 */
        saturation_emit(g->s, g->variants[i], true, "MetricsUnavailable", problem->message);
}

static bool is_replica(const struct gathering *g, str pod)
{
    for (size_t i = 0; i < g->replica_n; i++)
        if (str_eq(g->replicas[i].pod, pod))
            return true;
    return false;
}

/* Ready pods that serve the model and belong to none of its variants take requests that are not counted. Reported when
 * the first one appears. */
static void report_strays(struct gathering *g)
{
    struct saturation *s = g->s;
    struct sat_model *m = g->model;
    size_t n = 0;
    str name = S("");
    if (g->skipped_n || m->feed.samples.n <= g->reporting) /* the usual case */
        m->strays = 0;
    if (g->skipped_n || m->feed.samples.n <= g->reporting)
        return;
    for (struct map_slot *slot = NULL; (slot = map_next(&m->feed.samples, slot));) {
        const struct replica_record *pod = cache_get(s->pods, m->ns, slot->key);
        if (!pod || pod->deleting || !str_eqc(pod->ready, "True") || is_replica(g, slot->key))
            continue;
        name = n++ && str_cmp(name, slot->key) < 0 ? name : slot->key;
    }
    saturation_gauges_count_strays(s, m->ns, n);
    if (n && !m->strays)
        saturation_emit(s, g->variants[0], true, "UnattributedReadyPods",
                        arena_printf(g->a,
                                     "%zu ready pods report model " STR_FMT
                                     ", but belong to no variant of it, for example " STR_FMT,
                                     n, STR_ARG(m->id), STR_ARG(name)));
    m->strays = n;
}

/* ---- one model */

static struct sat_config resolve_config(struct gathering *g)
{
    str(*variants)[2] = arena_array(g->a, g->n, sizeof(*variants));
    for (size_t i = 0; i < g->n; i++) {
        variants[i][0] = g->variants[i]->name;
        variants[i][1] = g->variants[i]->spec.target_name;
    }
    struct sat_lookup q = { g->m->id, g->m->ns, (const str(*)[2])variants, g->n };
    struct sat_resolved r = sat_snapshot_resolve(g->s->snapshot, &q);
    if (r.matching > 1)
        log_debug("several saturation entries match the model; using the first",
                  KV("namespace", q.ns), KV("model", q.model), KV_INT("entries", r.matching),
                  KV("key", r.override ? r.override->key : S("")));
    g->slo = r.slo;
    return r.config;
}

/* Notes when the replicas of the last scale-up are ready and report metrics. */
static void note_growth(const struct gathering *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct variant *v = g->variants[i];
        const struct sat_state *s = &g->states[i];
        if (!v->growing || s->current < s->desired || s->pending > 0)
            continue;
        v->growing = false;
        v->grown_ns = g->now_ns;
    }
}

static bool has_own_variant(const struct saturation *s, const struct sat_model *m)
{
    str why;
    list_each(const struct variant, v, &m->variants, of_model)
        if (saturation_is_managed(s, v, &why))
            return true;
    return false;
}

/* Starts, adjusts or stops the collection of metrics for the model. */
static void update_feed(struct saturation *s, struct sat_model *m, const struct zero_table *zero)
{
    if (!has_own_variant(s, m)) {
        collect_stop(&m->feed);
        m->fed = false;
        return;
    }
    bool to_zero = saturation_wake_is_allowed(s, m, zero);
    int64_t fetch_ns = s->snapshot->ages.fetch_ns;
    if (saturation_slo_has_traffic(s, m))
        fetch_ns = MIN(fetch_ns, saturation_slo_cycle_ns(s));
    collect_set_interval(&m->feed, fetch_ns);
    m->feed.sglang = false;
    list_each(const struct variant, v, &m->variants, of_model)
        m->feed.sglang |= v->sglang;
    m->feed.retention_ns = to_zero ? zero_retention_ns(zero, m->id) : 0;
    if (!m->fed && !s->no_metrics)
        collect_start(&m->feed, &s->collector);
    m->fed = !s->no_metrics;
}

static void count_outcome(const struct saturation *s, const char *outcome)
{
    metric_add(METRIC(s->metrics.cycles, str_c(outcome)), 1);
}

/* Ends a step of the decision about a model: `analyze` or `decide`, with what was decided. */
static void trace_step(const struct gathering *g, const struct tracer_span *step, const char *name,
                       const struct decide_answers *answers)
{
    if (!step->id)
        return;
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; answers && i < answers->n; i++)
        buf_printf(&text, "%s" STR_FMT " %d -> %d", i ? ", " : "", STR_ARG(answers->at[i].variant),
                   answers->at[i].current, answers->at[i].target);
    const struct tracer_attribute at[] = { { "k8s.namespace.name", g->m->ns, 0 },
                                           { "model", g->m->id, 0 },
                                           { "replicas", buf_str(&text), 0 },
                                           { "variants", S(""), (int64_t)g->n } };
    reconcile_traced(g->s->cycle, step, &(struct tracer_result){ name, at, countof(at), S("") });
}

/* One decision: gather, skip what cannot take part, hold if metrics are missing, else decide and
 * publish. */
static void saturation_decide_model(struct saturation *s, struct sat_model *m, struct arena *a)
{
    const struct zero_table *zero = sat_snapshot_zero(s->snapshot, m->ns);
    struct gathering g = {
        .s = s, .m = m, .model = m, .a = a, .now_ns = loop_mono_ns(manager_loop(s->manager))
    };
    update_feed(s, m, zero);
    g.fresh = g.now_ns - m->feed.fetched_ns <= s->snapshot->ages.fresh_ns;
    struct tracer_span step = reconcile_trace(s->cycle);
    saturation_gather(&g);
    trace_step(&g, &step, "analyze", NULL);
    m->looked_ns = loop_wall_ns(manager_loop(s->manager));
    saturation_wake_note(&g);
    for (size_t i = 0; i < g.skipped_n; i++)
        saturation_show_skipped(s, a, &g.skipped[i]);
    note_growth(&g);
    if (!m->feed.asked && !s->no_metrics)
        show_last_targets(&g); /* the first fetch will trigger another decision */
    if (!g.n || (!m->feed.asked && !s->no_metrics))
        return;
    report_strays(&g);
    struct sat_condition problem = find_metrics_problem(&g);
    if (problem.known) {
        if (is_new_problem(&g, &problem) && strcmp(problem.reason, "NoReplicas") != 0)
            report_problem(&g, &problem);
        count_outcome(s, "held");
        saturation_gauges_note_held(&g, problem.reason);
        hold_variants(&g, problem);
        return;
    }
    step = reconcile_trace(s->cycle);
    struct decide_input in = {
        .rules = s->o.rules,
        .mode = s->o.mode,
        .config = resolve_config(&g),
        .replicas = g.replicas,
        .replica_n = g.replica_n,
        .states = g.states,
        .state_n = g.n,
        .memory = &m->memory,
        .now = (double)g.now_ns / (double)NS_PER_S,
        .start_delay = saturation_gather_start_delay(&g),
        .latency = saturation_slo_latency(&g),
        .just_grown = has_just_grown(&g),
        .model_targets = run_optimizer(&g),
        .scale_to_zero = m->feed.retention_ns > 0,
        .requests_known = m->feed.requests_known && saturation_wake_allows_sleep(&g),
        .requests = m->feed.requests,
        .keeps_min = g.keeps_min,
    };
    struct sat_targets targets;
    bool by_tokens = saturation_tokens_decide(&g, &targets);
    if (by_tokens || saturation_slo_applies(&g)) {
        targets = by_tokens ? targets : saturation_slo_decide(&g);
        in.rules = by_tokens ? DECIDE_TOKENS : DECIDE_SLO;
        in.slo = &targets;
    }
    struct decide_answers answers = decide_model(a, &in);
    saturation_limits_apply(&g, &answers);
    saturation_gauges_note(&g, &answers, &in.config);
    saturation_victims_apply(&g, &answers);
    trace_step(&g, &step, "decide", &answers);
    if (answers.in_transition)
        log_info("Model in transition, blocking scaling decisions", KV("namespace", m->ns),
                 KV("model", m->id));
    for (size_t i = 0; i < answers.n; i++) /* both are sorted by name */
        saturation_show_answer(&g, i, &answers.at[i], describe_metrics(&g));
    count_outcome(s, "decided");
}

/* ---- the cycle */

/* Without thresholds nothing is decided; every variant gets a condition that explains it. */
static void report_no_thresholds(struct saturation *s, const struct sat_model *m, struct arena *a)
{
    str why = arena_printf(a, "ConfigMap " STR_FMT "/" STR_FMT " is missing or has no valid entry",
                           STR_ARG(s->o.ns), STR_ARG(s->o.saturation_map));
    struct sat_view view = { 0 };
    view.conditions[SAT_OPTIMIZATION_READY] =
        saturation_show_condition(false, "InvalidConfiguration", why);
    list_each(struct variant, v, &m->variants, of_model)
        saturation_show_view(s, v, &view, why);
}

/* Thresholds of the namespace are enough; global ones are then not needed. */
static void decide_if_configured(struct saturation *s, struct sat_model *m, struct arena *a)
{
    const struct sat_local *local = sat_snapshot_local(s->snapshot, m->ns);
    if (s->snapshot->saturation.n || (local && local->saturation.n))
        saturation_decide_model(s, m, a);
    else
        report_no_thresholds(s, m, a);
}

/* Returns whether the slo policy, which needs a shorter cycle, has traffic of any model. */
static bool decide_all_models(struct saturation *s, struct arena *a)
{
    bool any_watched = false;
    log_debug("Grouped VAs by model", KV_INT("models", s->models.n),
              KV_INT("variants", s->by_key.n));
    struct sat_model **models = saturation_limits_order(s, a);
    size_t n = s->models.n; /* decisions neither add nor remove models */
    saturation_share_begin(s, a, models, n);
    for (size_t i = 0; i < n; i++) {
        struct arena_mark mark = arena_mark(a);
        decide_if_configured(s, models[i], a);
        any_watched |= saturation_slo_has_traffic(s, models[i]);
        arena_reset(a, mark);
    }
    saturation_share_end(models, n);
    log_debug("Optimization completed successfully");
    return any_watched;
}

/* The controller's reconcile function. The snapshot is held by reference: a ConfigMap that changes
 * during the cycle does not change the configuration between two models. */
struct reconciled saturation_run_cycle(struct reconcile *r)
{
    struct saturation *s = r->context;
    struct sat_snapshot *config = sat_snapshot_ref(s->snapshot);
    struct reconciled result = reconciled();
    s->cycle = r;
    if (r->ns.n) { /* one model */
        auto_buf struct buf key = { 0 };
        buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(r->ns), STR_ARG(r->name));
        struct sat_model *m = map_get(&s->models, buf_str(&key));
        if (m)
            decide_if_configured(s, m, r->arena);
    } else {
        int64_t before = clock_cpu_ns();
        bool any_watched = false;
        saturation_keep_update(s);
        saturation_advice_cycle(s);
        saturation_config_emit(s);
        metric_set(METRIC_ALONE(s->metrics.models), (double)s->models.n);
        if (!config->saturation.n)
            log_info("Saturation scaling config not loaded yet, skipping optimization");
        if (!s->models.n)
            log_debug("No active VariantAutoscalings found, skipping optimization");
        else
            any_watched = decide_all_models(s, r->arena);
        double seconds = (double)(clock_cpu_ns() - before) / 1e9;
        metric_observe(METRIC_ALONE(s->metrics.cycle_seconds), seconds);
        saturation_gauges_cycle(s, seconds);
        result = reconciled_after(any_watched ? saturation_slo_cycle_ns(s) : config->interval_ns);
    }
    s->cycle = NULL;
    sat_snapshot_unref(config);
    return result;
}
