/* The feature: opens caches, connects events to the engine and to the controller of variants, and
 * owns struct saturation.
 *
 *     VariantAutoscaling ─┬─► on_variant_record (state, also on standbys)
 *                         ├─► on_variant_change ──────► queue of variants (saturation_turn.c)
 *                         └─► on_variant_for_engine ──► queue of the engine (saturation_engine.c)
 *     Deployment, StatefulSet ─► on_workload_change ──► both queues
 *     feed ─► on_fetched (first metrics) ─────────────► queue of the engine
 *
 * What an event triggers is decided by dispatch_core.c. Kinds that a cluster may not have
 * (ServiceMonitor, ScaledObject) are discovered every five minutes and watched once they exist. */
#include "saturation_controller.h"

#include "../base/file.h"
#include "../base/log.h"
#include "../doors/doors.h"
#include "saturation_advice.h"
#include "saturation_doors.h"
#include "saturation_dra.h"
#include "saturation_gauges.h"
#include "saturation_scalers.h"
#include "saturation_slo.h"
#include "saturation_targets.h"
#include "saturation_wake.h"

static const int64_t resync_ns = 60 * NS_PER_S, discovery_ns = 300 * NS_PER_S;
enum { WORKERS = 16 };

/* A list may contain a new object under an old name; its deletion and creation then had no events
 * of their own. */
static enum sat_event_type event_type(const struct record *old, const struct record *now)
{
    return !now ? SAT_DELETED : old && str_eq(old->uid, now->uid) ? SAT_UPDATED : SAT_CREATED;
}

/* ---- variants */

static bool is_spec_changed(const struct variant_record *old, const struct variant_record *now)
{
    return !old || old->generation != now->generation || old->deleting != now->deleting ||
           !str_eq(old->accelerator, now->accelerator) || !str_eq(old->instance, now->instance) ||
           !str_eq(old->meta.uid, now->meta.uid) || !str_eq(old->spec, now->spec);
}

/* Runs on standbys too, so that the state is complete when they become the leader. */
static void on_variant_record(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    const struct variant_record *r = record_as(struct variant_record, now);
    if (!now) {
        saturation_remove(s, old->ns, old->name);
        saturation_scalers_refresh(s, old->ns);
        const struct variant *next = saturation_take_ignored(s);
        if (next)
            controller_add(s->variants, next->ns, next->name);
    } else if (is_spec_changed(record_as(struct variant_record, old), r)) {
        struct variant *same = saturation_find(s, now->ns, now->name);
        if (same && same->scaler) /* it wins over annotations */
            saturation_remove(s, now->ns, now->name);
        saturation_put(s, r);
        saturation_scalers_refresh(s, now->ns);
    }
    if (now)
        saturation_wake_ask(s, now->ns, now->name, r->wake);
}

static void on_variant_change(struct controller *c, const struct record *old,
                              const struct record *now)
{
    struct sat_event event = { .source = SAT_FROM_VARIANT, .type = event_type(old, now) };
    if (sat_dispatch(&event).action == SAT_RECONCILE)
        controller_add(c, now->ns, now->name);
}

/* A new variant gets a decision at once. */
static void on_variant_for_engine(struct controller *c, const struct record *old,
                                  const struct record *now)
{
    struct saturation *s = controller_context(c);
    bool is_new = event_type(old, now) == SAT_CREATED;
    const struct variant *v = is_new ? saturation_find(s, now->ns, now->name) : NULL;
    if (v && v->spec.model.n)
        controller_add(c, v->ns, v->spec.model);
}

/* ---- workloads */

/* A new workload: reconcile the variants that target it and decide about their models. */
static void on_workload_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    struct saturation *s = controller_context(c);
    struct sat_event event = { .source = SAT_FROM_WORKLOAD, .type = event_type(old, now) };
    if (!now || sat_dispatch(&event).action != SAT_RECONCILE_TARGETING)
        return;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        if (!str_eq(v->ns, now->ns) || !str_eq(v->spec.target_name, now->name))
            continue;
        log_debug("Deployment created, triggering VA reconciliation", KV("namespace", v->ns),
                  KV("variant", v->name), KV("workload", now->name));
        controller_add(c, v->ns, v->name);
        if (v->spec.model.n)
            controller_add(s->engine, v->ns, v->spec.model);
    }
}

/* ---- metrics */

static void scrape_pod(void *context, const struct replica_record *pod)
{
    struct sat_feed *feed = context;
    int64_t port = pod->port;
    if (pod->deleting || !str_eqc(pod->ready, "True") || !pod->ip.n)
        return;
    if (!port && str_to_i64(pod->port_note, &port) < 0)
        port = 0;
    collect_add_pod(feed, pod->meta.name, pod->ip, port);
}

static void scrape_pods(void *context, struct sat_feed *feed)
{
    struct saturation *s = context;
    const struct sat_model *m = container_of(feed, struct sat_model, feed);
    list_each(const struct variant, v, &m->variants, of_model)
        saturation_each_pod(s, v, scrape_pod, feed);
}

/* The slo policy decides when there is something new: a cycle of its own would act on numbers that
 * are up to a fetch interval old. */
static void on_fetched(void *context, struct sat_feed *feed, bool first)
{
    struct saturation *s = context;
    if (first || saturation_slo_has_traffic(s, container_of(feed, struct sat_model, feed)))
        controller_add(s->engine, feed->ns, feed->model);
}

/* ---- the ServiceMonitor of the controller */

/* Warns when the ServiceMonitor is deleted: HPAs would no longer see the targets. quoted: WVA */
static void on_monitor_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    const struct monitor_record *before = record_as(struct monitor_record, old),
                                *r = record_as(struct monitor_record, now ? now : old);
    struct sat_event event = { .source = SAT_FROM_SERVICEMONITOR,
                               .type = event_type(old, now),
                               .own = str_eq(r->meta.ns, s->o.ns) &&
                                      (str_eq(r->meta.name, s->o.monitor) ||
                                       str_eqc(r->part_of, "flyball")),
                               .deleting = r->deleting };
    bool already_reported = before && before->deleting; /* deletionTimestamp was already set */
    if (sat_dispatch(&event).action != SAT_ALERT || already_reported || !manager_leads(s->manager))
        return;
    auto_arena struct arena a = { 0 };
    str message = arena_printf(
        &a,
        "ServiceMonitor " STR_FMT "/" STR_FMT
        " is being deleted. Prometheus will not scrape controller metrics. Actuator will not be able "
        "to access optimized replicas metrics. Please recreate the ServiceMonitor.",
        STR_ARG(r->meta.ns), STR_ARG(r->meta.name));
    log_error("ServiceMonitor being deleted", KV("message", message));
    events_emit(manager_events(s->manager),
                &(struct kube_event){ .resource = &saturation_service_monitor_resource,
                                      .ns = r->meta.ns,
                                      .name = r->meta.name,
                                      .uid = r->meta.uid,
                                      .warning = true,
                                      .reason = "ServiceMonitorDeleted",
                                      .message = message });
}

/* ---- kinds that may be absent */

static void discover_kinds(struct timer *timer);

static void schedule_discovery(struct saturation *s)
{
    struct loop *loop = manager_loop(s->manager);
    if (!timer_is_set(&s->discovery))
        timer_set(loop, &s->discovery, loop_mono_ns(loop) + discovery_ns, discover_kinds);
}

static void open_cache(struct saturation *s, const struct cache_spec *spec, struct cache **to)
{
    err_t e;
    if (manager_cache(s->manager, spec, to, &e) < 0)
        log_error("cannot open a cache", KV_C("error", e.text));
}

static void on_monitors_discovered(void *context, const struct resource *resource,
                                   const char *failure)
{
    struct saturation *s = context;
    (void)failure;
    if (!resource) {
        schedule_discovery(s);
        return;
    }
    struct cache_spec spec = saturation_monitor_cache;
    spec.ns = s->o.ns;
    open_cache(s, &spec, &s->monitors);
    if (s->monitors)
        cache_handle(s->monitors, on_monitor_change, s);
}

static void on_scaled_objects_discovered(void *context, const struct resource *resource,
                                         const char *failure)
{
    struct saturation *s = context;
    (void)failure;
    if (resource)
        open_cache(s, &saturation_scaled_object_cache, &s->scaled_objects);
    else
        schedule_discovery(s);
    if (s->scaled_objects)
        cache_handle(s->scaled_objects, saturation_scalers_on_scaled_object, s);
}

static void discover_kinds(struct timer *timer)
{
    struct saturation *s = container_of(timer, struct saturation, discovery);
    struct kube *kube = manager_kube(s->manager);
    if (!s->monitors)
        kube_discover(kube, S("monitoring.coreos.com/v1"), S("ServiceMonitor"),
                      on_monitors_discovered, s);
    if (!s->scaled_objects)
        kube_discover(kube, S("keda.sh/v1alpha1"), S("ScaledObject"), on_scaled_objects_discovered,
                      s);
}

/* ---- lifecycle */

static int open_caches(struct saturation *s, err_t *e)
{
    const struct {
        const struct cache_spec *spec;
        struct cache **to;
    } all[] = {
        { &saturation_variant_cache, &s->variant_records },
        { &saturation_deployment_cache, &s->deployments },
        { &saturation_statefulset_cache, &s->statefulsets },
        { &saturation_set_cache, &s->sets },
        { &saturation_replica_cache, &s->pods },
        { &saturation_hpa_bounds_cache, &s->hpas },
    };
    for (size_t i = 0; i < countof(all); i++)
        if (manager_cache(s->manager, all[i].spec, all[i].to, e) < 0)
            return -e->code;
    struct cache_spec namespaces = saturation_namespace_cache;
    str only = manager_watch_namespace(s->manager);
    if (only.n) /* a Role for one namespace is then enough */
        namespaces.field_selector =
            arena_printf(&s->arena, "metadata.name=" STR_FMT, STR_ARG(only));
    return manager_cache(s->manager, &namespaces, &s->namespaces, e);
}

/* One turn of the engine; what it decided is served from then on. */
static struct reconciled run_engine(struct reconcile *r)
{
    saturation_report_problems(r->context);
    struct reconciled result = saturation_run_cycle(r);
    saturation_doors_update(r->context);
    return result;
}

/* On failure the caller calls stop_feature() with the state as far as it was built. */
static int start_feature(struct manager *m, void **ret_state, err_t *e)
{
    struct saturation *s = mem_zero(1, sizeof(*s));
    *ret_state = s;
    s->manager = m;
    file_raise_limit(); /* every pod that is scraped and every query that hangs needs a socket */
    s->collector = (struct sat_collector){ .loop = manager_loop(m),
                                           .pods = scrape_pods,
                                           .fetched = on_fetched,
                                           .observed = saturation_gauges_observe,
                                           .context = s,
                                           .tracer = kube_tracer(manager_kube(m)) };
    if (saturation_options_read(s, e) < 0 || open_caches(s, e) < 0)
        return -e->code;
    s->collector.load_matters = s->o.mode != DECIDE_CAPACITY;
    s->collector.traffic_matters = s->o.rules == DECIDE_SLO || s->o.slo_by_default;
    s->variants =
        manager_controller(m, &(struct controller_spec){ .name = "saturation",
                                                         .reconcile = saturation_reconcile,
                                                         .context = s,
                                                         .resync_ns = resync_ns,
                                                         .workers = WORKERS });
    s->engine = manager_controller(m, &(struct controller_spec){ .name = "saturation-engine",
                                                                 .reconcile = run_engine,
                                                                 .context = s,
                                                                 .workers = 1 });
    if (saturation_config_start(s, e) < 0 || saturation_prometheus_connect(s, NULL, e) < 0 ||
        saturation_doors_start(s, e) < 0)
        return -e->code;
    saturation_wake_start(s);
    cache_handle(s->variant_records, on_variant_record,
                 s); /* before handlers that look variants up */
    cache_handle(s->hpas, saturation_scalers_on_hpa, s);
    controller_watch(s->variants, s->variant_records, on_variant_change);
    controller_watch(s->variants, s->deployments, on_workload_change);
    controller_watch(s->variants, s->statefulsets, on_workload_change);
    controller_watch(s->engine, s->variant_records, on_variant_for_engine);
    controller_add(s->engine, S(""), S("cycle"));
    timer_set(manager_loop(m), &s->discovery, loop_mono_ns(manager_loop(m)), discover_kinds);
    log_info(s->o.mode == DECIDE_CAPACITY
                 ? "Operating in CAPACITY-ONLY mode: reactive capacity-based scaling only"
                 : "Operating in HYBRID mode: capacity analyzer + model-based optimizer with "
                   "arbitration");
    if (s->o.zero_by_default)
        log_info("Scaling to zero is enabled");
    return 0;
}

static bool is_ready(void *state, struct buf *why_not)
{
    return saturation_probe_is_done(state, why_not);
}

static bool flush_state(void *state)
{
    const struct saturation *s = state;
    doors_drain(s->doors);
    return s->keep && keep_flush(s->keep);
}

static void stop_feature(void *state)
{
    struct saturation *s = state;
    timer_stop(&s->discovery);
    doors_free(s->doors); /* its streams read the state */
    saturation_wake_stop(s);
    saturation_gauges_done(s);
    saturation_advice_done(s);
    saturation_state_done(s);
    sat_token_store_done(&s->tokens);
    free(s->only_type);
    saturation_dra_done(s);
    saturation_targets_stop(s);
    saturation_config_done(s);
    arena_done(&s->arena);
    free(s);
}

const struct feature saturation_feature = {
    .name = "saturation",
    .summary = "replicas of the variants of a model, by load and latency (VariantAutoscaling)",
    .settings = saturation_settings,
    .start = start_feature,
    .ready = is_ready,
    .flush = flush_state,
    .stop = stop_feature,
};
