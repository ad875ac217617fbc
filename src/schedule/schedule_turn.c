/* One turn: see schedule_turn.h.
 *
 *     schedule_reconcile -> begin_turn -> schedule_turn_step --------------------> finish_turn
 *                                           |          ^                             |
 *                                           v          | result into the pass        v
 *                                         one write -> on_*_written          events, status, wake-up
 *
 * The plan (schedule_plan_core) decides; this file only gathers its input from the caches and carries it out.
 * A turn lives in the arena of its reconcile, which exists until all its writes are answered.
 *
 * The caches may lag behind our own writes, to the schedule and to the HPA: see kube/own_write.h. Without it, our own
 * write would be treated as drift.
 */
#include "schedule_turn.h"

#include "../base/log.h"
#include "../base/rfc3339.h"
#include "../prom/promql.h"

enum { SPREAD_MAX_MS = 2000 };

/* ---- gathering */

/* The ScaledObject that is the target, or that owns the HPA that is: KEDA would revert changes of its HPA. */
static const struct schedule_scaled_record *find_scaled_object(
    const struct schedule_turn *turn, const struct schedule_hpa_record *hpa)
{
    const struct scheduler *s = turn->state;
    return turn->target.kind == SCHEDULE_TARGET_SCALED_OBJECT
               ? cache_get(s->scaled, turn->target.ns, turn->target.name)
               : schedule_owner_of(s, hpa);
}

/* Nothing is written behind the back of an owner that is not known: KEDA would revert it, and may be paused. */
static void refuse_unknown_owner(struct arena *a, struct schedule_turn *turn,
                                 const struct schedule_hpa_record *hpa)
{
    turn->pass.hpa = (struct schedule_hpa){ .replicas = -1 };
    turn->pass.refused_reason = "OwnerNotFound";
    turn->pass.refused = arena_printf(a,
                                      "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT
                                      " belongs to ScaledObject " STR_FMT
                                      ", which does not exist or which the operator may not read",
                                      STR_ARG(turn->target.ns), STR_ARG(turn->target.name),
                                      STR_ARG(hpa->scaled_object));
}

static void set_workload(struct schedule_turn *turn, str api_version, str kind, str name)
{
    turn->workload_api_version = api_version;
    turn->workload_kind = kind;
    turn->workload_name = name;
}

/* Fills in the target from the cache, or from our own write while the cache is stale. */
static void gather_hpa(struct arena *a, struct schedule_turn *turn)
{
    struct scheduler *s = turn->state;
    struct schedule_pass *pass = &turn->pass;
    const struct schedule_target *target = &turn->target;
    if (target->kind == SCHEDULE_TARGET_WORKLOAD) {
        pass->hpa = (struct schedule_hpa){ .kind = target->kind,
                                           .found = true,
                                           .has_target = true,
                                           .may_be_zero = true,
                                           .replicas = -1 };
        set_workload(turn, target->api_version, target->kind_name, target->name);
        return;
    }
    const struct schedule_hpa_record *hpa =
        target->kind == SCHEDULE_TARGET_HPA ? cache_get(s->hpas, target->ns, target->name) : NULL;
    const struct schedule_scaled_record *scaled = find_scaled_object(turn, hpa);
    if (scaled || target->kind == SCHEDULE_TARGET_SCALED_OBJECT) {
        pass->hpa = schedule_record_scaled(scaled);
        turn->patch_resource = &schedule_scaled_resource;
        turn->patch_name = scaled ? scaled->meta.name : S("");
        if (scaled)
            set_workload(turn,
                         scaled->target_api_version.n ? scaled->target_api_version : S("apps/v1"),
                         scaled->target_kind.n ? scaled->target_kind : S("Deployment"),
                         scaled->target_name);
    } else if (schedule_is_of_keda(hpa, pass->object.uid)) {
        refuse_unknown_owner(a, turn, hpa);
    } else {
        pass->hpa = schedule_record_hpa(hpa, pass->object.uid);
        turn->patch_resource = &resource_hpas;
        turn->patch_name = target->name;
        if (hpa)
            set_workload(turn, hpa->target_api_version, hpa->target_kind, hpa->target_name);
    }
    if (!pass->hpa.found)
        return;
    turn->hpa_rv = scaled ? scaled->meta.rv : hpa->meta.rv;
    if (own_write_is_pending(&turn->tracked->hpa, turn->hpa_rv, 0)) {
        pass->hpa.bounds = turn->tracked->hpa_bounds;
        pass->hpa.baseline = str_c(turn->tracked->hpa.text);
    }
}

/* Moves borrowed texts into the arena: the cached records may be replaced while the turn waits. */
static void copy_texts(struct arena *a, struct schedule_turn *turn)
{
    str *texts[] = { &turn->pass.hpa.template_hash,
                     &turn->patch_name,
                     &turn->hpa_rv,
                     &turn->workload_api_version,
                     &turn->workload_kind,
                     &turn->workload_name,
                     &turn->pass.hpa.baseline,
                     &turn->rv };
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_str(a, *texts[i]);
}

/* A tenant's query is sent with the operator's token, so it is restricted to the tenant's namespace. */
static void gather_query(struct arena *a, struct schedule_turn *turn)
{
    const struct schedule_object *o = &turn->pass.object;
    struct promql_matcher own = { S("namespace"), o->ns };
    err_t e;
    if (!o->spec->advice.enabled || !o->spec->advice.query.n)
        return;
    if (turn->state->free_queries)
        turn->query = o->spec->advice.query;
    else if (promql_confine(a, o->spec->advice.query, &own, &turn->query, &e) < 0)
        turn->pass.query_problem =
            arena_printf(a,
                         "smartRecommendation.query cannot be restricted to namespace " STR_FMT
                         ": %s",
                         STR_ARG(o->ns), e.text);
}

/* Why there is no recommendation, for the condition Forecast. */
static void gather_advice_problem(struct arena *a, struct schedule_turn *turn)
{
    const struct scheduler *s = turn->state;
    struct schedule_pass *pass = &turn->pass;
    pass->advice_reason = turn->tracked->advice_reason;
    if (turn->tracked->advice_problem)
        pass->advice_problem = arena_str(a, str_c(turn->tracked->advice_problem));
    if (s->prometheus)
        return;
    pass->advice_reason = "PrometheusUnavailable";
    pass->advice_problem = schedule_prometheus_problem(s, a);
}

/* Gathers everything that a plan needs. */
static struct schedule_turn *begin_turn(struct reconcile *r, const struct schedule_record *record,
                                        struct schedule_tracked *tracked)
{
    struct scheduler *s = r->context;
    struct schedule_turn *turn = arena_new(r->arena, struct schedule_turn);
    struct schedule_pass *pass = &turn->pass;
    turn->state = s;
    turn->tracked = tracked;
    turn->rv = record->meta.rv;
    struct schedule_calendar_scope scope = { &s->calendars, record->meta.ns };
    struct schedule_defaults defaults = s->defaults;
    schedule_calendars_set(&scope, &defaults);
    schedule_calendars_store(&s->calendars);
    pass->object = schedule_record_object(r->arena, record, defaults);
    const struct json *own = own_write_json(&tracked->status, r->arena, record->meta.rv, 0);
    if (own)
        pass->object.status = own;
    turn->target = schedule_target(r->arena, pass->object.spec, pass->object.ns, pass->object.name);
    gather_hpa(r->arena, turn);
    pass->template_found = pass->hpa.found;
    if (pass->object.spec->template && !turn->target.from_template)
        pass->template_found =
            cache_get(s->hpas, r->ns,
                      schedule_template_target(r->arena, pass->object.spec, r->ns, r->name).name);
    const struct schedule_tracked *rival =
        schedule_turn_has_consent(turn)
            ? schedule_targets_find_older(tracked, schedule_turn_can_govern, turn)
            : NULL;
    if (!rival)
        rival = schedule_find_counterpart(s, tracked);
    pass->managed_by = rival ? arena_str(r->arena, str_c(rival->key)) : S("");
    gather_query(r->arena, turn);
    struct json *advice = NULL;
    if (tracked->advice && json_parse(r->arena, str_c(tracked->advice), &advice, NULL) == 0)
        pass->recommendation = advice;
    gather_advice_problem(r->arena, turn);
    if (tracked->has_unreported_write) {
        pass->changed = true;
        pass->changed_from = tracked->changed_from;
    }
    pass->now = r->now_ns / NS_PER_S;
    pass->memory = &tracked->memory;
    rfc3339_parse(json_text(json_get(pass->object.status, "nextTransitionTime")), &turn->boundary,
                  NULL);
    copy_texts(r->arena, turn);
    return turn;
}

/* ---- the end of a turn */

void schedule_turn_event(struct schedule_turn *turn, const struct schedule_event *event)
{
    const struct schedule_object *o = &turn->pass.object;
    events_emit(manager_events(turn->state->manager),
                &(struct kube_event){ .resource = &schedule_resource,
                                      .ns = o->ns,
                                      .name = o->name,
                                      .uid = o->uid,
                                      .warning = event->warning,
                                      .reason = event->reason,
                                      .message = event->message });
}

static void on_status_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = r->turn;
    if (reply->reason == KUBE_NOT_FOUND)
        return;
    if (reply->failure) {
        reconcile_fail_call(r, reply);
        return;
    }
    own_write_end(&turn->tracked->status, reply, turn->rv,
                  json_to_str(r->arena, json_get(reply->object, "status")));
    turn->tracked->reported_n = 0;
    if (turn->pass.recommendation)
        free(take(turn->tracked->advice));
}

/* If many schedules share a boundary, their writes are spread over up to two seconds after it. The delay of a
 * schedule is always the same. */
static int64_t spread_ns(const struct schedule_turn *turn)
{
    size_t many = turn->state->targets.by_key.n;
    uint64_t width_ms = MIN((uint64_t)many / 10, (uint64_t)SPREAD_MAX_MS);
    return width_ms ? (int64_t)(map_hash(str_c(turn->tracked->key)) % width_ms) * NS_PER_MS : 0;
}

static void wake_at_planned_time(struct reconcile *r, const struct schedule_turn *turn)
{
    int64_t after = turn->plan.wake * NS_PER_S - r->now_ns;
    if (turn->plan.wake == turn->plan.effective.next)
        after += spread_ns(turn);
    reconcile_again(r, MAX(after, NS_PER_MS));
}

/* When many windows open in the same second, the bounds of all are written before the first status: only they change
 * what users get. True: this schedule reports in a turn of its own, when no other one has bounds to write. */
static bool defer_report(struct reconcile *r, struct schedule_turn *turn)
{
    struct schedule_tracked *tracked = turn->tracked;
    if (!turn->has_written || turn->pass.rejected || !reconcile_is_crowded(r)) {
        tracked->has_unreported_write = false;
        return false;
    }
    if (!tracked->has_unreported_write)
        tracked->changed_from = turn->pass.changed_from;
    tracked->has_unreported_write = true;
    reconcile_later(r);
    return true;
}

/* Emits the events of a report. Until its status is written, every retry plans the same ones again; they are emitted once. */
static void emit_report(struct schedule_turn *turn)
{
    struct schedule_tracked *tracked = turn->tracked;
    for (size_t i = 0; i < turn->plan.events_n; i++) {
        const struct schedule_event *event = &turn->plan.events[i];
        uint64_t hash = map_hash(str_c(event->reason)) * 31 + map_hash(event->message);
        bool was_emitted = false;
        for (size_t k = 0; k < tracked->reported_n; k++)
            was_emitted |= tracked->reported[k] == hash;
        if (was_emitted)
            continue;
        schedule_turn_event(turn, event);
        if (turn->plan.status && tracked->reported_n < SCHEDULE_REPORTED_MAX)
            tracked->reported[tracked->reported_n++] = hash;
    }
}

/* The plan needs no write: emits events, writes the status, updates metrics, schedules the next pass. */
static void finish_turn(struct reconcile *r, struct schedule_turn *turn)
{
    const struct schedule_plan *plan = &turn->plan;
    if (defer_report(r, turn))
        return;
    emit_report(turn);
    if (plan->status)
        reconcile_status_then(r, &schedule_resource, json_copy(r->arena, plan->status),
                              on_status_written);
    schedule_metrics_pass(&turn->state->metrics, &turn->pass.object, plan, &turn->tracked->active);
    schedule_targets_keep_zero(&turn->state->targets, turn->tracked,
                               plan->effective.config.has_desired &&
                                   plan->effective.config.desired == 0);
    wake_at_planned_time(r, turn);
    schedule_turn_recommend(r, turn);
}

/* ---- writes */

static void on_finalizers_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = r->turn;
    if (reply->reason == KUBE_NOT_FOUND)
        return;
    if (reply->failure) {
        if (!kube_is_server_failure(reply) && reply->reason != KUBE_CONFLICT)
            schedule_turn_event(turn, &(struct schedule_event){ true, "FinalizerFailed",
                                                                str_c(reply->failure) });
        reconcile_fail_call(r, reply);
        return;
    }
    turn->finalizer_sent = turn->pass.object.has_finalizer = true;
    own_write_end(&turn->tracked->status, reply, turn->rv, /* the status follows in this turn */
                  json_to_str(r->arena, json_get(reply->object, "status")));
    if (!turn->pass.object.deleting)
        schedule_turn_step(r, turn);
}

static void send_finalizers(struct reconcile *r, struct schedule_turn *turn, bool add)
{
    struct scheduler *s = turn->state;
    const struct schedule_record *record = cache_get(s->schedules, r->ns, r->name);
    if (!record)
        return;
    struct json *list = NULL;
    if (record->finalizers.n)
        json_parse(r->arena, record->finalizers, &list, NULL);
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = &schedule_resource,
                                           .ns = r->ns,
                                           .name = r->name,
                                           .body =
                                               kube_finalizer_body(r->arena, record->meta.rv, list,
                                                                   S(SCHEDULE_FINALIZER), add) },
                   on_finalizers_written);
}

/* A refusal goes into the pass, which reports it; success waits for the watch event. */
static void on_hpa_created(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = r->turn;
    if (kube_is_server_failure(reply)) {
        reconcile_fail_call(r, reply);
        return;
    }
    if (reply->reason == KUBE_ALREADY_EXISTS) {
        reconcile_again(r, NS_PER_S); /* until the cache has it */
        return;
    }
    if (reply->failure) {
        turn->pass.create_failed = true;
        turn->pass.failure = arena_str(r->arena, str_c(reply->failure));
        schedule_turn_step(r, turn);
        return;
    }
    str name = json_text(json_at(reply->object, "metadata", "name", NULL));
    str message =
        arena_printf(r->arena, "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT " was created",
                     STR_ARG(r->ns), STR_ARG(name));
    schedule_turn_event(turn, &(struct schedule_event){ false, "HPACreated", message });
    log_info("created HPA from template", KV("namespace", r->ns), KV("name", r->name),
             KV("hpa", name));
    reconcile_again(r, NS_PER_S); /* usually the watch event comes first */
}

/* The template takes effect on an HPA that exists. A refusal is reported; the bounds do not depend on it. */
static void on_template_applied(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = r->turn;
    if (kube_is_server_failure(reply) || reply->reason == KUBE_CONFLICT) {
        reconcile_fail_call(r, reply);
        return;
    }
    turn->pass.template_applied = true;
    turn->pass.create_failed = reply->failure != NULL;
    if (reply->failure)
        turn->pass.failure = arena_str(r->arena, str_c(reply->failure));
    else
        schedule_turn_event(turn, &(struct schedule_event){
                                      false, "HPATemplateApplied",
                                      S("HPASpecTemplate was applied to its HPA") });
    schedule_turn_step(r, turn);
}

static void send_template(struct reconcile *r, struct schedule_turn *turn)
{
    const struct json *body = turn->plan.create;
    bool updates = turn->plan.updates_template;
    reconcile_call(r,
                   &(struct kube_request){ .verb = updates ? KUBE_APPLY : KUBE_CREATE,
                                           .resource = &resource_hpas,
                                           .ns = r->ns,
                                           .name = updates ? turn->target.name : S(""),
                                           .field_manager =
                                               updates ? S("smarthpa-template") : S(""),
                                           .body = json_to_str(r->arena, body) },
                   updates ? on_template_applied : on_hpa_created);
}

static void log_patch(const struct schedule_turn *turn, struct schedule_bounds from)
{
    const struct schedule_pass *pass = &turn->pass;
    auto_arena struct arena a = { 0 };
    str by = turn->plan.states ? schedule_source_text(&a, pass->object.spec, &turn->plan.effective)
                               : S("deletion");
    log_info("replica bounds changed", KV("namespace", turn->target.ns),
             KV("hpa", turn->target.name), KV_INT("min_was", from.min),
             KV_INT("min", turn->plan.to.min), KV_INT("max_was", from.max),
             KV_INT("max", turn->plan.to.max), KV("by", by),
             KV("schedule", str_c(turn->tracked->key)),
             KV_C("why", turn->plan.reverts ? "drift" : schedule_phase_name(turn->plan.phase)));
}

/* Counts and logs bounds that changed; a patch may also change only the annotation. */
static void count_patch(struct schedule_turn *turn)
{
    const struct schedule_pass *pass = &turn->pass;
    const struct schedule_plan *plan = &turn->plan;
    double late = turn->boundary && turn->boundary <= pass->now && !plan->reverts
                      ? (double)loop_wall_ns(manager_loop(turn->state->manager)) / 1e9 -
                            (double)turn->boundary
                      : -1;
    schedule_metrics_write(&turn->state->metrics, &pass->object, plan, late);
    log_patch(turn, turn->tracked->has_unreported_write ? pass->changed_from : pass->hpa.bounds);
}

/* Records written bounds in the metrics, in the pass and for passes before the watch delivers them. */
static void record_patch(struct reconcile *r, struct schedule_turn *turn,
                         const struct kube_reply *reply)
{
    struct schedule_pass *pass = &turn->pass;
    const struct schedule_plan *plan = &turn->plan;
    if (!schedule_bounds_equal(pass->hpa.bounds, plan->to))
        count_patch(turn);
    if (plan->reverts)
        schedule_memory_revert(pass->memory, pass->now);
    pass->memory->forbidden = 0;
    if (!turn->tracked->has_unreported_write)
        pass->changed_from = pass->hpa.bounds;
    pass->changed = turn->has_written = true;
    pass->hpa.bounds = plan->to;
    pass->hpa.baseline =
        arena_str(r->arena, json_text(json_at(reply->object, "metadata", "annotations",
                                              SCHEDULE_BASELINE, NULL)));
    own_write_end(&turn->tracked->hpa, reply, turn->hpa_rv, pass->hpa.baseline);
    turn->tracked->hpa_bounds = plan->to;
}

/* Records the result. A refusal and a missing HPA go into the pass, which reports them; the rest is retried. */
static void on_hpa_patched(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = r->turn;
    struct schedule_pass *pass = &turn->pass;
    if (!reply->failure) {
        record_patch(r, turn, reply);
        schedule_turn_step(r, turn);
        return;
    }
    if (reply->reason == KUBE_SUPERSEDED) /* the next turn of this schedule decides */
        return;
    schedule_metrics_failure(&turn->state->metrics, r->ns, r->name,
                             str_c(kube_reason_name(reply->reason)));
    reconcile_warn(r, "failed to write replica bounds", reply->failure);
    if (reply->reason == KUBE_NOT_FOUND) {
        pass->hpa = (struct schedule_hpa){ .replicas = -1 };
        pass->template_found = pass->template_found && !turn->target.from_template;
        schedule_turn_step(r, turn);
    } else if (reply->reason == KUBE_INVALID || reply->reason == KUBE_BAD_REQUEST ||
               reply->reason == KUBE_FORBIDDEN) {
        pass->memory->forbidden = reply->reason == KUBE_FORBIDDEN ? pass->memory->forbidden + 1 : 0;
        pass->rejected = true;
        pass->failure = arena_str(r->arena, str_c(reply->failure));
        schedule_turn_step(r, turn);
    } else {
        reconcile_fail_call(r, reply);
    }
}

static void send_patch(struct reconcile *r, struct schedule_turn *turn)
{
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = turn->patch_resource,
                                           .ns = turn->target.ns,
                                           .name = turn->patch_name,
                                           .is_decision = true,
                                           .body = json_to_str(r->arena, turn->plan.patch) },
                   on_hpa_patched);
}

/* ---- the turn */

/* Plans and carries out the first thing that the plan asks for. */
void schedule_turn_step(struct reconcile *r, struct schedule_turn *turn)
{
    struct tracer_span step = reconcile_trace(r);
    schedule_turn_check_consent(r->arena, turn);
    turn->plan = schedule_plan(r->arena, &turn->pass);
    reconcile_traced(r, &step, &(struct tracer_result){ .name = "decide" });
    const struct schedule_plan *plan = &turn->plan;
    if (plan->add_finalizer && !turn->finalizer_sent) {
        send_finalizers(r, turn, true);
    } else if (plan->create) {
        send_template(r, turn);
    } else if (plan->patch) {
        send_patch(r, turn);
    } else if (plan->scale) {
        schedule_turn_scale(r, turn);
    } else if (plan->remove_finalizer) {
        for (size_t i = 0; i < plan->events_n; i++)
            schedule_turn_event(turn, &plan->events[i]);
        send_finalizers(r, turn, false);
    } else if (!turn->pass.object.deleting) {
        if (!schedule_turn_delete_renamed(r, turn))
            finish_turn(r, turn);
    } else if (turn->pass.rejected) {
        wake_at_planned_time(r, turn);
    }
}

struct reconciled schedule_reconcile(struct reconcile *r)
{
    struct scheduler *s = r->context;
    const struct schedule_record *record = cache_get(s->schedules, r->ns, r->name);
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, r->ns, r->name);
    if (!record || !tracked)
        return reconciled();
    r->turn = begin_turn(r, record, tracked);
    schedule_turn_step(r, r->turn);
    return reconciled();
}
