/* Watches and settings of the feature: see schedule_controller.h.
 *
 *     schedule changed        -> itself; if its target or its claim changed, all with that target
 *     HPA changed             -> the schedules that manage it (one lookup)
 *     Namespace, grant        -> schedules that refer to HPAs across namespaces and are affected
 *     wall clock set          -> all schedules
 *
 * Most HPA events are status updates. The cache drops those that change no field we keep, and a changed number of
 * replicas matters only where a workload is kept at zero. */
#include "schedule_controller.h"

#include "../base/log.h"
#include "../prom/query.h"
#include "schedule_turn.h"

enum { WORKERS = 16 };

static void enqueue_list(struct scheduler *s, struct schedule_tracked *first)
{
    for (struct schedule_tracked *one = first; one; one = one->next)
        controller_add(s->controller, one->ns, one->name);
}

/* Enqueues all schedules with the same target, unless this one has no consent and thus no influence on them. */
static void enqueue_same_target(struct scheduler *s, struct schedule_tracked *one)
{
    if (one->target_key && schedule_has_consent(s, one))
        enqueue_list(s, map_get(&s->targets.by_target, str_c(one->target_key)));
}

/* Updates the index, then enqueues the schedule and those that its change may affect. */
static void on_schedule_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    struct scheduler *s = controller_context(c);
    const struct record *any = now ? now : old;
    if (!schedule_record_has_changed((const struct schedule_record *)(const void *)old,
                                     (const struct schedule_record *)(const void *)now))
        return;
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, any->ns, any->name);
    if (tracked)
        enqueue_same_target(s, tracked); /* another schedule may take over the old target */
    if (now) {
        tracked =
            schedule_targets_put(&s->targets, (const struct schedule_record *)(const void *)now);
        enqueue_same_target(s, tracked);
        controller_add(c, now->ns, now->name);
    } else if (tracked) {
        schedule_metrics_drop(&s->metrics, old->ns, old->name, &tracked->active);
        schedule_targets_drop(&s->targets, old->ns, old->name);
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

static void on_hpa_change(struct controller *c, const struct record *old, const struct record *now)
{
    struct scheduler *s = controller_context(c);
    const struct record *any = now ? now : old;
    bool quiet = is_replica_change((const struct schedule_hpa_record *)(const void *)old,
                                   (const struct schedule_hpa_record *)(const void *)now);
    if (quiet && !s->targets.zero_keepers)
        return;
    for (struct schedule_tracked *one = schedule_targets_of(&s->targets, any->ns, any->name); one;
         one = one->next)
        if (!quiet || one->keeps_zero)
            controller_add(c, one->ns, one->name);
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
        for (struct schedule_tracked *one = slot->value; one; one = one->next) {
            struct grant_reference ref =
                schedule_grant_reference(one->ns, one->target_ns, one->target_name);
            if (schedule_is_cross_namespace(one) && affects(old, now, &ref)) {
                enqueue_list(s, slot->value);
                break;
            }
        }
    }
}

static bool namespace_affects(const struct record *old, const struct record *now,
                              const struct grant_reference *ref)
{
    return grant_home_concerns((const struct grant_home_record *)(const void *)old,
                               (const struct grant_home_record *)(const void *)now, ref);
}

static bool grant_affects(const struct record *old, const struct record *now,
                          const struct grant_reference *ref)
{
    return grant_concerns((const struct grant_record *)(const void *)old,
                          (const struct grant_record *)(const void *)now, ref);
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
    return prom_client_new(manager_loop(s->manager), &options, &s->prometheus, e);
}

static int read_switch(const struct scheduler *s, const char *name, bool *ret, err_t *e)
{
    const char *value = manager_setting(s->manager, name);
    if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return err_set(e, EINVAL, "--%s: invalid value \"%s\"; want true or false", name, value);
    *ret = !strcmp(value, "true");
    return 0;
}

static int read_settings(struct scheduler *s, err_t *e)
{
    const char *day = manager_setting(s->manager, "smarthpa-overnight-day");
    if (strcmp(day, "calendar") && strcmp(day, "start"))
        return err_set(e, EINVAL,
                       "--smarthpa-overnight-day: invalid value \"%s\"; want calendar or start",
                       day);
    s->defaults.find_zone = tz_get;
    s->defaults.overnight = strcmp(day, "start") ? SCHEDULE_CALENDAR : SCHEDULE_START;
    int r = read_switch(s, "restrict-cross-namespace", &s->own_namespace_only, e);
    return r < 0 ? r : read_switch(s, "smarthpa-allow-free-queries", &s->free_queries, e);
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
        grants_start(&s->grants, m, e) < 0)
        return -e->code;
    s->controller =
        manager_controller(m, &(struct controller_spec){ .name = "schedule",
                                                         .reconcile = schedule_reconcile,
                                                         .context = s,
                                                         .workers = WORKERS });
    controller_watch(s->controller, s->schedules, on_schedule_change);
    controller_watch(s->controller, s->hpas, on_hpa_change);
    grants_watch(&s->grants, s->controller, on_namespace_change, on_grant_change);
    s->wallclock = wall_watch_new(manager_loop(m), on_clock_step, s);
    return 0;
}

static void schedule_stop(void *state)
{
    struct scheduler *s = state;
    timer_stop(&s->probe);
    kube_call_cancel(s->probe_call);
    wall_watch_free(s->wallclock);
    schedule_discoveries_free(s);
    schedule_queries_free(s);
    prom_client_free(s->prometheus);
    schedule_targets_done(&s->targets);
    free(s);
}

const struct feature schedule_feature = {
    .name = "schedule",
    .summary = "replica bounds by time of day (SmartHorizontalPodAutoscaler)",
    .settings = settings,
    .start = schedule_start,
    .stop = schedule_stop,
};
