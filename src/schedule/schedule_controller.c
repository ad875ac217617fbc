/* Watches and settings of the feature: see schedule_controller.h.
 *
 *     schedule changed        -> itself; if its target or its claim changed, all with that target
 *     HPA changed             -> the schedules that manage it (one lookup); a ScaledObject likewise
 *     Namespace, grant        -> schedules that refer to HPAs across namespaces and are affected
 *     calendar changed        -> schedules of its namespace that name calendars; a shared one: all
 *     wall clock set          -> all schedules
 *
 * Most HPA events are status updates. The cache drops those that change no field we keep, and a changed number of
 * replicas matters only where a workload is kept at zero. */
#include "schedule_controller.h"

#include "../base/log.h"
#include "../prom/query.h"
#include "schedule_turn.h"

enum { WORKERS = 128 };

static void enqueue_list(struct scheduler *s, const struct list *schedules)
{
    list_each(const struct schedule_tracked, one, schedules, of_target)
        controller_add(s->controller, one->ns, one->name);
}

/* Does an older schedule manage the target? Then this one has no influence on the others. The list is sorted by age,
 * so that usually the first entry answers. */
static bool has_older(const struct scheduler *s, const struct schedule_tracked *one)
{
    list_each(struct schedule_tracked, other, &one->target->schedules, of_target) {
        if (other == one)
            break;
        if (!other->deleting && schedule_targets_conflict(one, other) &&
            schedule_has_consent(s, other))
            return true;
    }
    return false;
}

/* Enqueues all schedules with the same target, but only if this one determines their state: if each of n schedules of
 * one target enqueued all others, adding them would cost n^2. */
static void enqueue_same_target(struct scheduler *s, struct schedule_tracked *one)
{
    if (!one->target || !schedule_has_consent(s, one) || has_older(s, one))
        return;
    enqueue_list(s, &one->target->schedules);
    const struct list *others = schedule_counterparts(s, one);
    if (others)
        enqueue_list(s, others);
}

/* Updates the index, then enqueues the schedule and those that its change may affect. */
static void on_schedule_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    struct scheduler *s = controller_context(c);
    const struct record *any = now ? now : old;
    if (!schedule_record_has_changed(record_as(struct schedule_record, old),
                                     record_as(struct schedule_record, now)))
        return;
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, any->ns, any->name);
    if (tracked)
        enqueue_same_target(s, tracked); /* another schedule may take over the old target */
    if (now) {
        tracked = schedule_targets_put(&s->targets, record_as(struct schedule_record, now));
        enqueue_same_target(s, tracked);
        controller_add(c, now->ns, now->name);
    } else if (tracked) {
        schedule_metrics_drop(&s->metrics, old->ns, old->name, &tracked->active);
        schedule_targets_drop(&s->targets, old->ns, old->name);
        controller_abandon(c, old->ns, old->name);
    }
}

/* Is the number of replicas the only change? */
static bool is_replica_change(const struct schedule_hpa_record *old,
                              const struct schedule_hpa_record *now)
{
    return old && now && old->min == now->min && old->max == now->max &&
           old->has_object_metric == now->has_object_metric &&
           old->has_external_metric == now->has_external_metric &&
           str_eq(old->baseline, now->baseline) && str_eq(old->allow, now->allow) &&
           str_eq(old->owner_uid, now->owner_uid) && str_eq(old->target_name, now->target_name) &&
           str_eq(old->target_kind, now->target_kind);
}

/* The bounds that we wrote, and whose report is still to come: another turn before it has nothing to add. */
static bool is_own_write(const struct schedule_tracked *one, const struct schedule_hpa_record *hpa)
{
    return hpa && one->has_unreported_write && hpa->min == one->hpa_bounds.min &&
           hpa->max == one->hpa_bounds.max;
}

static void on_hpa_change(struct controller *c, const struct record *old, const struct record *now)
{
    struct scheduler *s = controller_context(c);
    const struct record *any = now ? now : old;
    bool quiet = is_replica_change(record_as(struct schedule_hpa_record, old),
                                   record_as(struct schedule_hpa_record, now));
    if (quiet && !s->targets.zero_keepers)
        return;
    const struct list *schedules = schedule_targets_of(&s->targets, any->ns, any->name);
    const struct schedule_hpa_record *hpa = record_as(struct schedule_hpa_record, any);
    if ((!old || !now) && hpa->scaled_object.n) /* schedules of its ScaledObject have rivals now */
        enqueue_list(s, schedule_targets_of(&s->targets, any->ns, hpa->scaled_object));
    list_each(const struct schedule_tracked, one, schedules, of_target)
        if (quiet ? one->keeps_zero
                  : !is_own_write(one, record_as(struct schedule_hpa_record, now)))
            controller_add(c, one->ns, one->name);
}

/* A ScaledObject is a target itself, or through the HPA that it owns. */
static void on_scaled_change(struct controller *c, const struct record *old,
                             const struct record *now)
{
    struct scheduler *s = controller_context(c);
    const struct record *any = now ? now : old;
    enqueue_list(s, schedule_targets_of(&s->targets, any->ns, any->name));
    const struct schedule_hpa_record *hpa = schedule_hpa_of(s, any);
    if (hpa)
        enqueue_list(s, schedule_targets_of(&s->targets, any->ns, hpa->meta.name));
}

/* ---- consent */

typedef bool affects_fn(const struct record *old, const struct record *now,
                        const struct grant_reference *ref);

/* Enqueues all schedules of a target if the change affects one of them: the order of precedence may change. */
static void enqueue_affected(struct controller *c, const struct record *old,
                             const struct record *now, affects_fn *affects)
{
    struct scheduler *s = controller_context(c);
    for (struct map_slot *slot = NULL;
         s->targets.cross_namespace && (slot = map_next(&s->targets.by_target, slot));) {
        const struct schedule_shared *shared = slot->value;
        list_each(const struct schedule_tracked, one, &shared->schedules, of_target) {
            struct grant_reference ref =
                schedule_grant_reference(one->ns, shared->ns, shared->name);
            if (schedule_is_cross_namespace(one) && affects(old, now, &ref)) {
                enqueue_list(s, &shared->schedules);
                break;
            }
        }
    }
}

static bool namespace_affects(const struct record *old, const struct record *now,
                              const struct grant_reference *ref)
{
    return grant_home_concerns(record_as(struct grant_home_record, old),
                               record_as(struct grant_home_record, now), ref);
}

static bool grant_affects(const struct record *old, const struct record *now,
                          const struct grant_reference *ref)
{
    return grant_concerns(record_as(struct grant_record, old), record_as(struct grant_record, now),
                          ref);
}

static void on_namespace_change(struct controller *c, const struct record *old,
                                const struct record *now)
{
    enqueue_affected(c, old, now, namespace_affects);
}

static void on_grant_change(struct controller *c, const struct record *old,
                            const struct record *now)
{
    enqueue_affected(c, old, now, grant_affects);
}

/* A calendar of another namespace than the operator's matters only there. */
static void on_calendar_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    struct scheduler *s = controller_context(c);
    const struct record *any = now ? now : old;
    bool shared = str_eq(any->ns, kube_namespace(manager_kube(s->manager)));
    for (struct map_slot *slot = NULL; (slot = map_next(&s->targets.by_key, slot));) {
        const struct schedule_tracked *one = slot->value;
        if (shared || (one->uses_calendars && str_eq(one->ns, any->ns)))
            controller_add(c, one->ns, one->name);
    }
}

static void on_clock_step(void *context)
{
    struct scheduler *s = context;
    log_info("wall clock was set; reevaluating all schedules");
    for (struct map_slot *slot = NULL; (slot = map_next(&s->targets.by_key, slot));) {
        const struct schedule_tracked *one = slot->value;
        controller_add(s->controller, one->ns, one->name);
    }
}

static const struct feature_setting settings[] = {
    { "smarthpa-overnight-day", "calendar",
      "Day that the hours after midnight of a window belong to: calendar or start" },
    { "restrict-cross-namespace", "false",
      "Only manage HPAs in the schedule's own namespace, even if other namespaces permit more" },
    { "smarthpa-calendars", "false",
      "Read calendars from ConfigMaps of all namespaces; needs the ClusterRole of `flyball install "
      "--calendars`" },
    { "smarthpa-prometheus-url", NULL,
      "URL of the Prometheus server with the history for smartRecommendation" },
    { "smarthpa-prometheus-token-file", NULL,
      "File with the bearer token for --smarthpa-prometheus-url" },
    { "smarthpa-allow-free-queries", "false",
      "Send smartRecommendation.query unchanged, not restricted to the schedule's namespace" },
    { 0 },
};

static int connect_prometheus(struct scheduler *s, err_t *e)
{
    const char *url = manager_setting(s->manager, "smarthpa-prometheus-url");
    if (!url || !*url)
        return 0;
    struct prom_client_options options = {
        .url = str_c(url),
        .token_file = manager_setting(s->manager, "smarthpa-prometheus-token-file"),
        .insecure_token = manager_setting(s->manager, "allow-insecure-token") != NULL,
        .timeout_ns = 60 * NS_PER_S,
    };
    int r = prom_client_new(manager_loop(s->manager), &options, &s->prometheus, e);
    if (r < 0) { /* schedules work without it; those that learn report it */
        log_error("Prometheus cannot be used", KV_C("flag", "--smarthpa-prometheus-url"),
                  KV_C("error", e->text));
        s->prometheus_failure = mem_dup(e->text, strlen(e->text));
    }
    return 0;
}

static int read_settings(struct scheduler *s, err_t *e)
{
    const char *day = manager_setting(s->manager, "smarthpa-overnight-day");
    if (strcmp(day, "calendar") && strcmp(day, "start"))
        return err_set(e, EINVAL,
                       "--smarthpa-overnight-day is \"%s\", but must be calendar or start", day);
    s->defaults.find_zone = tz_get;
    s->defaults.overnight = strcmp(day, "start") ? SCHEDULE_CALENDAR : SCHEDULE_START;
    int r = manager_setting_bool(s->manager, "restrict-cross-namespace", &s->own_namespace_only, e);
    if (r >= 0)
        r = manager_setting_bool(s->manager, "smarthpa-calendars", &s->calendars.enabled, e);
    return r < 0 ? r
                 : manager_setting_bool(s->manager, "smarthpa-allow-free-queries", &s->free_queries,
                                        e);
}

/* Creates caches, controller and watches; on failure the manager calls schedule_stop(). */
static int schedule_start(struct manager *m, void **ret_state, err_t *e)
{
    struct scheduler *s = mem_zero(1, sizeof(*s));
    *ret_state = s;
    s->manager = m;
    schedule_metrics_init(&s->metrics, manager_metrics(m));
    if (read_settings(s, e) < 0 || connect_prometheus(s, e) < 0 ||
        manager_cache(m, &schedule_cache, &s->schedules, e) < 0 ||
        manager_cache(m, &schedule_hpa_cache, &s->hpas, e) < 0 ||
        manager_cache(m, &schedule_scaled_cache, &s->scaled, e) < 0 ||
        grants_start(&s->grants, m, e) < 0 || schedule_calendars_start(&s->calendars, m, e) < 0)
        return -e->code;
    s->controller =
        manager_controller(m, &(struct controller_spec){ .name = "schedule",
                                                         .reconcile = schedule_reconcile,
                                                         .context = s,
                                                         .workers = WORKERS });
    controller_watch(s->controller, s->schedules, on_schedule_change);
    controller_watch(s->controller, s->hpas, on_hpa_change);
    controller_watch(s->controller, s->scaled, on_scaled_change);
    if (s->calendars.enabled)
        controller_watch(s->controller, s->calendars.maps, on_calendar_change);
    grants_watch(&s->grants, s->controller, on_namespace_change, on_grant_change);
    s->wallclock = wall_watch_new(manager_loop(m), on_clock_step, s);
    return 0;
}

static void schedule_stop(void *state)
{
    struct scheduler *s = state;
    wall_watch_free(s->wallclock);
    schedule_discoveries_free(s);
    schedule_queries_free(s);
    prom_client_free(s->prometheus);
    free(s->prometheus_failure);
    schedule_targets_done(&s->targets);
    schedule_calendars_done(&s->calendars);
    free(s);
}

static bool schedule_flush(void *state)
{
    return schedule_calendars_flush(&((struct scheduler *)state)->calendars);
}

const struct feature schedule_feature = {
    .name = "schedule",
    .summary = "replica bounds by time of day (SmartHorizontalPodAutoscaler)",
    .settings = settings,
    .start = schedule_start,
    .flush = schedule_flush,
    .stop = schedule_stop,
};
