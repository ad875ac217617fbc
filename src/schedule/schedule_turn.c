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
 * The caches may lag behind our own writes. The server's answer to the last write is kept as an echo and used
 * while the cache still has the version before it; otherwise a pass in between would emit every event
 * twice and treat our own write as drift.
 *
 * While the API server is unreachable, one probe per second replaces the retries of all waiting keys; the first
 * answer enqueues them. */
#include "schedule_turn.h"

#include "../base/log.h"
#include "../base/rfc3339.h"
#include "../prom/promql.h"

static const int64_t probe_ns = NS_PER_S, fallback_ns = 60 * NS_PER_S;
enum { SPREAD_MAX_MS = 2000 };

/* ---- consent */

struct grant_reference schedule_grant_reference(str from_ns, str hpa_ns, str hpa_name)
{
    return (struct grant_reference){ .from_group = str_c(schedule_resource.group),
                                     .from_kind = str_c(schedule_resource.kind),
                                     .from_ns = from_ns,
                                     .to_group = str_c(resource_hpas.group),
                                     .to_kind = str_c(resource_hpas.kind),
                                     .to_ns = hpa_ns,
                                     .to_name = hpa_name };
}

bool schedule_can_govern(const struct scheduler *s, str from_ns, str hpa_ns, str hpa_name)
{
    if (str_eq(from_ns, hpa_ns))
        return true;
    if (s->own_namespace_only)
        return false;
    struct grant_reference ref = schedule_grant_reference(from_ns, hpa_ns, hpa_name);
    const struct schedule_hpa_record *hpa = cache_get(s->hpas, hpa_ns, hpa_name);
    return grants_permit(&s->grants, &ref, hpa ? hpa->allow : S(""));
}

/* The result is cached per schedule and reevaluated when namespaces or grants change (their epoch). */
bool schedule_has_consent(const struct scheduler *s, struct schedule_tracked *tracked)
{
    if (!schedule_is_cross_namespace(tracked))
        return true;
    const struct schedule_hpa_record *hpa =
        cache_get(s->hpas, tracked->target_ns, tracked->target_name);
    if (s->own_namespace_only || !s->grants.homes)
        return false;
    if (hpa && grant_list_has(hpa->allow, tracked->ns))
        return true;
    uint64_t epoch = grants_epoch(&s->grants);
    if (tracked->consent_epoch != epoch) {
        struct grant_reference ref =
            schedule_grant_reference(tracked->ns, tracked->target_ns, tracked->target_name);
        tracked->consent = grants_permit(&s->grants, &ref, S(""));
        tracked->consent_epoch = epoch;
    }
    return tracked->consent;
}

static bool can_govern_target(void *context, str from_ns)
{
    const struct schedule_turn *turn = context;
    return schedule_can_govern(turn->state, from_ns, turn->target.ns, turn->target.name);
}

/* The target may have changed since the turn began; what matters is the one that this turn writes to. */
static bool turn_has_consent(const struct schedule_turn *turn)
{
    struct schedule_tracked *one = turn->tracked;
    const struct schedule_target *target = &turn->target;
    return str_eq(target->ns, one->target_ns) && str_eq(target->name, one->target_name)
               ? schedule_has_consent(turn->state, one)
               : schedule_can_govern(turn->state, one->ns, target->ns, target->name);
}

/* Hides the target from a schedule that may not manage it. Checked before every step, because consent may be
 * withdrawn while a turn waits for an answer. */
static void check_consent(struct arena *a, struct schedule_turn *turn)
{
    const struct scheduler *s = turn->state;
    struct schedule_pass *pass = &turn->pass;
    str from_ns = pass->object.ns;
    if (!turn->target.name.n || turn_has_consent(turn))
        return;
    struct grant_reference ref =
        schedule_grant_reference(from_ns, turn->target.ns, turn->target.name);
    pass->hpa = (struct schedule_hpa){ .replicas = -1 };
    pass->recommendation = NULL;
    pass->refused_reason = GRANT_REFUSED;
    pass->refused =
        s->own_namespace_only ? arena_printf(a,
                                             "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT
                                             " is in another namespace, which "
                                             "--restrict-cross-namespace forbids",
                                             STR_ARG(ref.to_ns), STR_ARG(ref.to_name))
        : !s->grants.homes    ? arena_printf(a,
                                             "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT
                                             " is not in the namespace that the operator watches",
                                             STR_ARG(ref.to_ns), STR_ARG(ref.to_name))
                              : grant_refusal(a, &ref);
}

/* ---- gathering */

/* Fills in the HPA from the cache, or from the echo while the cache is stale. */
static void gather_hpa(struct schedule_turn *turn)
{
    struct scheduler *s = turn->state;
    struct schedule_pass *pass = &turn->pass;
    const struct schedule_hpa_record *hpa = cache_get(s->hpas, turn->target.ns, turn->target.name);
    pass->hpa = schedule_record_hpa(hpa, pass->object.uid);
    if (!hpa)
        return;
    turn->hpa_rv = hpa->meta.rv;
    turn->workload_api_version = hpa->target_api_version;
    turn->workload_kind = hpa->target_kind;
    turn->workload_name = hpa->target_name;
    struct schedule_echo *echo = &turn->tracked->hpa;
    if (schedule_echo_is_current(echo, hpa->meta.rv)) {
        pass->hpa.bounds = echo->bounds;
        pass->hpa.baseline = str_c(echo->baseline);
    }
}

/* Moves borrowed texts into the arena: the cached records may be replaced while the turn waits. */
static void copy_texts(struct arena *a, struct schedule_turn *turn)
{
    str *texts[] = { &turn->hpa_rv,        &turn->workload_api_version, &turn->workload_kind,
                     &turn->workload_name, &turn->pass.hpa.baseline,    &turn->rv };
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
    pass->object = schedule_record_object(r->arena, record, s->defaults);
    if (schedule_echo_is_current(&tracked->own, record->meta.rv)) {
        struct json *status = NULL;
        if (json_parse(r->arena, str_c(tracked->own.status), &status, NULL) == 0)
            pass->object.status = status;
    }
    turn->target = schedule_target(r->arena, pass->object.spec, pass->object.ns, pass->object.name);
    gather_hpa(turn);
    pass->template_found = pass->hpa.found;
    if (pass->object.spec->template && !turn->target.from_template)
        pass->template_found =
            cache_get(s->hpas, r->ns,
                      schedule_template_target(r->arena, pass->object.spec, r->ns, r->name).name);
    const struct schedule_tracked *rival =
        turn_has_consent(turn)
            ? schedule_targets_find_older(&s->targets, tracked, can_govern_target, turn)
            : NULL;
    pass->managed_by = rival ? arena_str(r->arena, str_c(rival->key)) : S("");
    gather_query(r->arena, turn);
    struct json *advice = NULL;
    if (tracked->advice && json_parse(r->arena, str_c(tracked->advice), &advice, NULL) == 0)
        pass->recommendation = advice;
    pass->now = r->now_ns / NS_PER_S;
    pass->memory = &tracked->memory;
    rfc3339_parse(json_text(json_get(pass->object.status, "nextTransitionTime")), &turn->boundary,
                  NULL);
    copy_texts(r->arena, turn);
    return turn;
}

struct schedule_turn *schedule_turn_of(struct reconcile *r)
{
    struct scheduler *s = r->context;
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, r->ns, r->name);
    return tracked ? tracked->turn : NULL;
}

/* ---- unreachable API server */

static void send_probe(struct timer *timer);

static void on_probe_answer(void *context, const struct kube_reply *reply)
{
    struct scheduler *s = context;
    s->probe_call = NULL;
    if (reply->code == 0 || reply->code >= 500) {
        timer_set(manager_loop(s->manager), &s->probe,
                  loop_mono_ns(manager_loop(s->manager)) + probe_ns, send_probe);
        return;
    }
    for (struct map_slot *slot = NULL; (slot = map_next(&s->targets.by_key, slot));) {
        struct schedule_tracked *one = slot->value;
        if (one->waiting)
            controller_add(s->controller, one->ns, one->name);
        one->waiting = false;
    }
}

/* One small request per second instead of retries of every waiting key. */
static void send_probe(struct timer *timer)
{
    struct scheduler *s = container_of(timer, struct scheduler, probe);
    s->probe_call =
        kube_send(manager_kube(s->manager), &(struct kube_request){ .verb = KUBE_GET,
                                                                    .path = S("/version"),
                                                                    .timeout_ns = 2 * NS_PER_S,
                                                                    .done = on_probe_answer,
                                                                    .context = s });
}

void schedule_turn_wait_for_server(struct reconcile *r, struct schedule_turn *turn,
                                   const char *failure)
{
    struct scheduler *s = turn->state;
    reconcile_warn(r, "API server unreachable; retrying", failure);
    turn->tracked->waiting = true;
    if (!s->probe_call && !timer_is_set(&s->probe))
        timer_set(manager_loop(s->manager), &s->probe,
                  loop_mono_ns(manager_loop(s->manager)) + probe_ns, send_probe);
    reconcile_again(r, fallback_ns);
}

static bool is_unreachable(const struct kube_reply *reply)
{
    return reply->reason == KUBE_NO_ANSWER || reply->reason == KUBE_UNAVAILABLE ||
           reply->reason == KUBE_TIMEOUT || reply->reason == KUBE_TOO_MANY_REQUESTS;
}

/* Ends the turn after a failed write: waits for the server if it is unreachable, otherwise retries with backoff. */
static void fail_turn(struct reconcile *r, struct schedule_turn *turn,
                      const struct kube_reply *reply)
{
    if (is_unreachable(reply))
        schedule_turn_wait_for_server(r, turn, reply->failure);
    else
        reconcile_fail(r, reply->failure);
}

/* ---- the end of a turn */

void schedule_turn_event(struct schedule_turn *turn, const struct schedule_event *event)
{
    const struct schedule_object *o = &turn->pass.object;
    events_emit(manager_events(turn->state->manager),
                &(struct event){ .resource = &schedule_resource,
                                 .ns = o->ns,
                                 .name = o->name,
                                 .uid = o->uid,
                                 .warning = event->warning,
                                 .reason = event->reason,
                                 .message = event->message });
}

/* Keeps the answer as the echo of our own status. */
static void on_status_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn || reply->reason == KUBE_NOT_FOUND)
        return;
    if (reply->failure) {
        fail_turn(r, turn, reply);
        return;
    }
    struct schedule_echo *echo = &turn->tracked->own;
    str status = json_to_str(r->arena, json_get(reply->object, "status"));
    schedule_echo_clear(echo);
    echo->before_rv = mem_dup(turn->rv.p, turn->rv.n);
    echo->status = mem_dup(status.p, status.n);
    if (turn->pass.recommendation)
        free(take(turn->tracked->advice));
}

static void send_status(struct reconcile *r, const struct json *status)
{
    struct json *body = json_new_obj(r->arena);
    json_set(r->arena, body, S("status"), json_copy(r->arena, status));
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = &schedule_resource,
                                           .ns = r->ns,
                                           .name = r->name,
                                           .subresource = "status",
                                           .body = json_to_str(r->arena, body) },
                   on_status_written);
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

/* The plan needs no write: emits events, writes the status, updates metrics, schedules the next pass. */
static void finish_turn(struct reconcile *r, struct schedule_turn *turn)
{
    const struct schedule_plan *plan = &turn->plan;
    for (size_t i = 0; i < plan->events_n; i++)
        schedule_turn_event(turn, &plan->events[i]);
    if (plan->status)
        send_status(r, plan->status);
    schedule_metrics_pass(&turn->state->metrics, &turn->pass.object, plan, &turn->tracked->active);
    schedule_targets_keep_zero(&turn->state->targets, turn->tracked,
                               plan->effective.config.has_desired &&
                                   plan->effective.config.desired == 0);
    wake_at_planned_time(r, turn);
    schedule_turn_recommend(r, turn);
}

/* ---- writes */

/* The list of finalizers with or without ours. */
static struct json *make_finalizers(struct arena *a, str text, bool add)
{
    struct json *old = NULL, *list = json_new_arr(a);
    if (text.n)
        json_parse(a, text, &old, NULL);
    for (size_t i = 0; i < json_len(old); i++)
        if (!str_eqc(json_text(json_item(old, i)), SCHEDULE_FINALIZER))
            json_push(a, list, json_item(old, i));
    if (add)
        json_push(a, list, json_new_str(a, S(SCHEDULE_FINALIZER)));
    return list;
}

static void on_finalizers_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn || reply->reason == KUBE_NOT_FOUND)
        return;
    if (reply->failure) {
        if (!is_unreachable(reply) && reply->reason != KUBE_CONFLICT)
            schedule_turn_event(turn, &(struct schedule_event){ true, "FinalizerFailed",
                                                                str_c(reply->failure) });
        fail_turn(r, turn, reply);
        return;
    }
    turn->finalizer_sent = turn->pass.object.has_finalizer = true;
    if (!turn->pass.object.deleting)
        schedule_turn_step(r, turn);
}

/* A merge patch replaces the whole list, so it carries the resourceVersion of the list it was made from. */
static void send_finalizers(struct reconcile *r, struct schedule_turn *turn, bool add)
{
    struct scheduler *s = turn->state;
    const struct schedule_record *record = cache_get(s->schedules, r->ns, r->name);
    if (!record)
        return;
    struct json *body = json_new_obj(r->arena);
    struct json *metadata = json_make(r->arena, body, "metadata", NULL);
    json_set_str(r->arena, metadata, "resourceVersion", record->meta.rv);
    json_set(r->arena, metadata, S("finalizers"),
             make_finalizers(r->arena, record->finalizers, add));
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = &schedule_resource,
                                           .ns = r->ns,
                                           .name = r->name,
                                           .body = json_to_str(r->arena, body) },
                   on_finalizers_written);
}

/* A refusal goes into the pass, which reports it; success waits for the watch event. */
static void on_hpa_created(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn)
        return;
    if (is_unreachable(reply)) {
        schedule_turn_wait_for_server(r, turn, reply->failure);
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

/* Records written bounds in the metrics, the pass and the echo. */
static void record_patch(struct schedule_turn *turn, const struct kube_reply *reply)
{
    struct schedule_pass *pass = &turn->pass;
    const struct schedule_plan *plan = &turn->plan;
    double late = turn->boundary && turn->boundary <= pass->now && !plan->reverts
                      ? (double)loop_wall_ns(manager_loop(turn->state->manager)) / 1e9 -
                            (double)turn->boundary
                      : -1;
    schedule_metrics_write(&turn->state->metrics, &pass->object, plan, late);
    if (plan->reverts)
        schedule_memory_revert(pass->memory, pass->now);
    pass->memory->forbidden = 0;
    pass->changed = true;
    pass->changed_from = pass->hpa.bounds;
    pass->hpa.bounds = plan->to;
    const struct json *note =
        json_at(reply->object, "metadata", "annotations", SCHEDULE_BASELINE, NULL);
    struct schedule_echo *echo = &turn->tracked->hpa;
    schedule_echo_clear(echo);
    echo->before_rv = mem_dup(turn->hpa_rv.p, turn->hpa_rv.n);
    echo->bounds = plan->to;
    echo->baseline = mem_dup(json_text(note).p, json_text(note).n);
    pass->hpa.baseline = str_c(echo->baseline);
}

static void log_patch(const struct schedule_turn *turn)
{
    const struct schedule_pass *pass = &turn->pass;
    auto_arena struct arena a = { 0 };
    str by = turn->plan.states ? schedule_source_text(&a, pass->object.spec, &turn->plan.effective)
                               : S("deletion");
    log_info("replica bounds changed", KV("namespace", turn->target.ns),
             KV("hpa", turn->target.name), KV_INT("min_was", pass->changed_from.min),
             KV_INT("min", pass->hpa.bounds.min), KV_INT("max_was", pass->changed_from.max),
             KV_INT("max", pass->hpa.bounds.max), KV("by", by),
             KV("schedule", str_c(turn->tracked->key)),
             KV_C("why", turn->plan.reverts ? "drift" : schedule_phase_name(turn->plan.phase)));
}

/* Records the result. A refusal and a missing HPA go into the pass, which reports them; the rest is retried. */
static void on_hpa_patched(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn)
        return;
    struct schedule_pass *pass = &turn->pass;
    if (!reply->failure) {
        record_patch(turn, reply);
        log_patch(turn);
        schedule_turn_step(r, turn);
        return;
    }
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
        fail_turn(r, turn, reply);
    }
}

static void send_patch(struct reconcile *r, struct schedule_turn *turn)
{
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = &resource_hpas,
                                           .ns = turn->target.ns,
                                           .name = turn->target.name,
                                           .body = json_to_str(r->arena, turn->plan.patch) },
                   on_hpa_patched);
}

/* ---- the turn */

/* Plans and carries out the first thing that the plan asks for. */
void schedule_turn_step(struct reconcile *r, struct schedule_turn *turn)
{
    check_consent(r->arena, turn);
    turn->plan = schedule_plan(r->arena, &turn->pass);
    const struct schedule_plan *plan = &turn->plan;
    if (plan->add_finalizer && !turn->finalizer_sent) {
        send_finalizers(r, turn, true);
    } else if (plan->create) {
        reconcile_call(r,
                       &(struct kube_request){ .verb = KUBE_CREATE,
                                               .resource = &resource_hpas,
                                               .ns = r->ns,
                                               .body = json_to_str(r->arena, plan->create) },
                       on_hpa_created);
    } else if (plan->patch) {
        send_patch(r, turn);
    } else if (plan->scale) {
        schedule_turn_scale(r, turn);
    } else if (plan->remove_finalizer) {
        for (size_t i = 0; i < plan->events_n; i++)
            schedule_turn_event(turn, &plan->events[i]);
        send_finalizers(r, turn, false);
    } else if (!turn->pass.object.deleting) {
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
    tracked->turn = begin_turn(r, record, tracked);
    tracked->waiting = false;
    schedule_turn_step(r, tracked->turn);
    return reconciled();
}
