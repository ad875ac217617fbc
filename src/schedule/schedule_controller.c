/* The feature: see schedule_controller.h.
 *
 * Two caches lead to keys. A schedule's event leads to itself and, when its target or its claim on it
 * changed, to the others with that target. An HPA's event leads to the schedules that govern it,
 * by one lookup; most of its events are status updates that change nothing we keep and never get
 * here, and a changed number of replicas matters only where a workload is kept at zero. Consent of another
 * namespace that comes or goes leads to the schedules that refer to its HPAs. */
#include "schedule_controller.h"

#include "../base/log.h"
#include "../prom/query.h"
#include "schedule_turn.h"

enum { WORKERS = 16 };

static void add_all_of(struct scheduler *s, struct schedule_tracked *first)
{
    for (struct schedule_tracked *one = first; one; one = one->next)
        controller_add(s->controller, one->ns, one->name);
}

/* Those with the same target; who may not govern it is none of their concern. */
static void add_target(struct scheduler *s, struct schedule_tracked *one)
{
    if (one->target_key && schedule_has_consent(s, one))
        add_all_of(s, map_get(&s->targets.by_target, str_c(one->target_key)));
}

static void schedule_changed(struct controller *c, const struct record *old,
                             const struct record *now)
{
    struct scheduler *s = controller_context(c);
    const struct record *any = now ? now : old;
    if (!schedule_record_matters((const struct schedule_record *)(const void *)old,
                                 (const struct schedule_record *)(const void *)now))
        return;
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, any->ns, any->name);
    if (tracked)
        add_target(s, tracked); /* who shared its old target may govern now */
    if (now) {
        tracked =
            schedule_targets_put(&s->targets, (const struct schedule_record *)(const void *)now);
        add_target(s, tracked);
        controller_add(c, now->ns, now->name);
    } else if (tracked) {
        schedule_metrics_forget(&s->metrics, old->ns, old->name, &tracked->active);
        schedule_targets_drop(&s->targets, old->ns, old->name);
    }
}

/* Is the number of replicas all that changed? */
static bool only_replicas(const struct schedule_hpa_record *old,
                          const struct schedule_hpa_record *now)
{
    return old && now && old->min == now->min && old->max == now->max &&
           old->has_object_metric == now->has_object_metric &&
           old->has_external_metric == now->has_external_metric &&
           str_eq(old->baseline, now->baseline) && str_eq(old->allow, now->allow) &&
           str_eq(old->owner_uid, now->owner_uid) && str_eq(old->target_name, now->target_name) &&
           str_eq(old->target_kind, now->target_kind);
}

static void hpa_changed(struct controller *c, const struct record *old, const struct record *now)
{
    struct scheduler *s = controller_context(c);
    const struct record *any = now ? now : old;
    bool quiet = only_replicas((const struct schedule_hpa_record *)(const void *)old,
                               (const struct schedule_hpa_record *)(const void *)now);
    if (quiet && !s->targets.zero_keepers)
        return;
    for (struct schedule_tracked *one = schedule_targets_of(&s->targets, any->ns, any->name); one;
         one = one->next)
        if (!quiet || one->keeps_zero)
            controller_add(c, one->ns, one->name);
}

/* ---- consent */

typedef bool concerns_fn(const struct record *old, const struct record *now,
                         const struct grant_reference *ref);

/* All that share a target look again when one of them is concerned: who may govern it now may come first. */
static void consent_changed(struct controller *c, const struct record *old,
                            const struct record *now, concerns_fn *concerns)
{
    struct scheduler *s = controller_context(c);
    for (struct map_slot *slot = NULL;
         s->targets.abroad && (slot = map_next(&s->targets.by_target, slot));) {
        for (struct schedule_tracked *one = slot->value; one; one = one->next) {
            struct grant_reference ref =
                schedule_reference(one->ns, one->target_ns, one->target_name);
            if (schedule_is_abroad(one) && concerns(old, now, &ref)) {
                add_all_of(s, slot->value);
                break;
            }
        }
    }
}

static bool home_concerns(const struct record *old, const struct record *now,
                          const struct grant_reference *ref)
{
    return grant_home_concerns((const struct grant_home_record *)(const void *)old,
                               (const struct grant_home_record *)(const void *)now, ref);
}

static bool grant_record_concerns(const struct record *old, const struct record *now,
                                  const struct grant_reference *ref)
{
    return grant_concerns((const struct grant_record *)(const void *)old,
                          (const struct grant_record *)(const void *)now, ref);
}

static void home_changed(struct controller *c, const struct record *old, const struct record *now)
{
    consent_changed(c, old, now, home_concerns);
}

static void grant_changed(struct controller *c, const struct record *old, const struct record *now)
{
    consent_changed(c, old, now, grant_record_concerns);
}

static void wallclock_set(void *context)
{
    struct scheduler *s = context;
    log_info("the wall clock was set: every schedule is looked at again");
    for (struct map_slot *slot = NULL; (slot = map_next(&s->targets.by_key, slot));) {
        const struct schedule_tracked *one = slot->value;
        controller_add(s->controller, one->ns, one->name);
    }
}

static const struct feature_setting settings[] = {
    { "smarthpa-overnight-day", "calendar",
      "which day decides about the hours after midnight of a window: calendar or start" },
    { "restrict-cross-namespace", "false",
      "Let schedules govern HPAs in their own namespace only, whatever other namespaces permit" },
    { "smarthpa-prometheus-url", NULL, "Prometheus with the history for smartRecommendation" },
    { "smarthpa-prometheus-token-file", NULL, "bearer token for it" },
    { "smarthpa-allow-free-queries", "false",
      "Send smartRecommendation.query as it is, instead of confined to the schedule's namespace" },
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
        return err_set(e, EINVAL, "--%s is \"%s\", want true or false", name, value);
    *ret = !strcmp(value, "true");
    return 0;
}

static int read_settings(struct scheduler *s, err_t *e)
{
    const char *day = manager_setting(s->manager, "smarthpa-overnight-day");
    if (strcmp(day, "calendar") && strcmp(day, "start"))
        return err_set(e, EINVAL, "--smarthpa-overnight-day is \"%s\", want calendar or start",
                       day);
    s->defaults.overnight = strcmp(day, "start") ? SCHEDULE_CALENDAR : SCHEDULE_START;
    int r = read_switch(s, "restrict-cross-namespace", &s->stay_home, e);
    return r < 0 ? r : read_switch(s, "smarthpa-allow-free-queries", &s->free_queries, e);
}

static int start(struct manager *m, void **ret_state, err_t *e)
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
    controller_watch(s->controller, s->schedules, schedule_changed);
    controller_watch(s->controller, s->hpas, hpa_changed);
    grants_watch(&s->grants, s->controller, home_changed, grant_changed);
    s->wallclock = wall_watch_new(manager_loop(m), wallclock_set, s);
    return 0;
}

static void stop(void *state)
{
    struct scheduler *s = state;
    timer_stop(&s->probe);
    kube_call_cancel(s->probe_call);
    wall_watch_free(s->wallclock);
    schedule_questions_free(s);
    schedule_inquiries_free(s);
    prom_client_free(s->prometheus);
    schedule_targets_done(&s->targets);
    free(s);
}

const struct feature schedule_feature = {
    .name = "schedule",
    .summary = "replica bounds by time of day (SmartHorizontalPodAutoscaler)",
    .settings = settings,
    .start = start,
    .stop = stop,
};
