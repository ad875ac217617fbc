/* One turn: see schedule_turn.h.
 *
 * The caches may lag behind our own writes. What the server answered to the last one is kept as an echo
 * and used for as long as the cache shows the version from before it; otherwise a pass that comes
 * in between would tell every event twice and take our own write for somebody else's. */
#include "schedule_turn.h"

#include "../base/log.h"
#include "../base/rfc3339.h"
#include "../prom/promql.h"

static const int64_t probe_ns = NS_PER_S, fallback_ns = 60 * NS_PER_S;
enum { SPREAD_MAX_MS = 2000 };

/* ---- consent */

struct grant_reference schedule_reference(str from_ns, str hpa_ns, str hpa_name)
{
    return (struct grant_reference){ .from_group = str_c(schedule_resource.group),
                                     .from_kind = str_c(schedule_resource.kind),
                                     .from_ns = from_ns,
                                     .to_group = str_c(resource_hpas.group),
                                     .to_kind = str_c(resource_hpas.kind),
                                     .to_ns = hpa_ns,
                                     .to_name = hpa_name };
}

bool schedule_may_govern(const struct scheduler *s, str from_ns, str hpa_ns, str hpa_name)
{
    if (str_eq(from_ns, hpa_ns))
        return true;
    if (s->stay_home)
        return false;
    struct grant_reference ref = schedule_reference(from_ns, hpa_ns, hpa_name);
    const struct schedule_hpa_record *hpa = cache_get(s->hpas, hpa_ns, hpa_name);
    return grants_permit(&s->grants, &ref, hpa ? hpa->allow : S(""));
}

bool schedule_has_consent(const struct scheduler *s, struct schedule_tracked *tracked)
{
    if (!schedule_is_abroad(tracked))
        return true;
    const struct schedule_hpa_record *hpa =
        cache_get(s->hpas, tracked->target_ns, tracked->target_name);
    if (s->stay_home || !s->grants.homes)
        return false;
    if (hpa && grant_list_has(hpa->allow, tracked->ns))
        return true;
    uint64_t epoch = grants_epoch(&s->grants);
    if (tracked->consent_epoch != epoch) {
        struct grant_reference ref =
            schedule_reference(tracked->ns, tracked->target_ns, tracked->target_name);
        tracked->consent = grants_permit(&s->grants, &ref, S(""));
        tracked->consent_epoch = epoch;
    }
    return tracked->consent;
}

static bool target_may_be_governed(void *context, str from_ns)
{
    const struct schedule_turn *turn = context;
    return schedule_may_govern(turn->state, from_ns, turn->target.ns, turn->target.name);
}

/* The schedule may have got another target since the turn began: the turn's own is what it writes to. */
static bool turn_has_consent(const struct schedule_turn *turn)
{
    struct schedule_tracked *one = turn->tracked;
    const struct schedule_target *target = &turn->target;
    return str_eq(target->ns, one->target_ns) && str_eq(target->name, one->target_name)
               ? schedule_has_consent(turn->state, one)
               : schedule_may_govern(turn->state, one->ns, target->ns, target->name);
}

/* Hides the target from a schedule that may not govern it. Every step asks again: a turn waits for answers,
 * and consent may be withdrawn meanwhile. */
static void check_consent(struct arena *a, struct schedule_turn *turn)
{
    const struct scheduler *s = turn->state;
    struct schedule_pass *pass = &turn->pass;
    str from_ns = pass->object.ns;
    if (!turn->target.name.n || turn_has_consent(turn))
        return;
    struct grant_reference ref = schedule_reference(from_ns, turn->target.ns, turn->target.name);
    pass->hpa = (struct schedule_hpa){ .replicas = -1 };
    pass->recommendation = NULL;
    pass->refused =
        s->stay_home ? arena_printf(a,
                                    "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT
                                    " is in another namespace, and the operator runs with "
                                    "--restrict-cross-namespace",
                                    STR_ARG(ref.to_ns), STR_ARG(ref.to_name))
        : !s->grants.homes
            ? arena_printf(a,
                           "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT
                           " is in another namespace than the one that the operator watches",
                           STR_ARG(ref.to_ns), STR_ARG(ref.to_name))
            : grant_refusal(a, &ref);
}

/* ---- gathering */

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
    if (schedule_echo_holds(echo, hpa->meta.rv)) {
        pass->hpa.bounds = echo->bounds;
        pass->hpa.baseline = str_c(echo->baseline);
    }
}

static void copy_texts(struct arena *a, struct schedule_turn *turn)
{
    str *texts[] = { &turn->hpa_rv,        &turn->workload_api_version, &turn->workload_kind,
                     &turn->workload_name, &turn->pass.hpa.baseline,    &turn->rv };
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_str(a, *texts[i]);
}

/* A tenant's query is sent with the operator's token: it may only see the tenant's own namespace. */
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
                         "smartRecommendation.query cannot be confined to namespace " STR_FMT
                         ": %s",
                         STR_ARG(o->ns), e.text);
}

static struct schedule_turn *gather(struct reconcile *r, const struct schedule_record *record,
                                    struct schedule_tracked *tracked)
{
    struct scheduler *s = r->context;
    struct schedule_turn *turn = arena_new(r->arena, struct schedule_turn);
    struct schedule_pass *pass = &turn->pass;
    turn->state = s;
    turn->tracked = tracked;
    turn->rv = record->meta.rv;
    pass->object = schedule_record_object(r->arena, record, s->defaults);
    if (schedule_echo_holds(&tracked->own, record->meta.rv)) {
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
            ? schedule_targets_rival(&s->targets, tracked, target_may_be_governed, turn)
            : NULL;
    pass->rival = rival ? arena_str(r->arena, str_c(rival->key)) : S("");
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

/* ---- the server does not answer */

static void probe(struct timer *timer);

static void probe_answered(void *context, const struct kube_reply *reply)
{
    struct scheduler *s = context;
    s->probe_call = NULL;
    if (reply->code == 0 || reply->code >= 500) {
        timer_set(manager_loop(s->manager), &s->probe,
                  loop_mono_ns(manager_loop(s->manager)) + probe_ns, probe);
        return;
    }
    for (struct map_slot *slot = NULL; (slot = map_next(&s->targets.by_key, slot));) {
        struct schedule_tracked *one = slot->value;
        if (one->waiting)
            controller_add(s->controller, one->ns, one->name);
        one->waiting = false;
    }
}

/* One small request a second instead of every waiting key's own retries. */
static void probe(struct timer *timer)
{
    struct scheduler *s = container_of(timer, struct scheduler, probe);
    s->probe_call =
        kube_send(manager_kube(s->manager), &(struct kube_request){ .verb = KUBE_GET,
                                                                    .path = S("/version"),
                                                                    .timeout_ns = 2 * NS_PER_S,
                                                                    .done = probe_answered,
                                                                    .context = s });
}

void schedule_turn_await_server(struct reconcile *r, struct schedule_turn *turn,
                                const char *failure)
{
    struct scheduler *s = turn->state;
    reconcile_warn(r, "the API server does not answer; its return is awaited", failure);
    turn->tracked->waiting = true;
    if (!s->probe_call && !timer_is_set(&s->probe))
        timer_set(manager_loop(s->manager), &s->probe,
                  loop_mono_ns(manager_loop(s->manager)) + probe_ns, probe);
    reconcile_again(r, fallback_ns);
}

static bool is_away(const struct kube_reply *reply)
{
    return reply->reason == KUBE_NO_ANSWER || reply->reason == KUBE_UNAVAILABLE ||
           reply->reason == KUBE_TIMEOUT || reply->reason == KUBE_TOO_MANY_REQUESTS;
}

/* A failure that is neither ours to explain nor the network's: the queue's backoff decides. */
static void fail(struct reconcile *r, struct schedule_turn *turn, const struct kube_reply *reply)
{
    if (is_away(reply))
        schedule_turn_await_server(r, turn, reply->failure);
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

static void status_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn || reply->reason == KUBE_NOT_FOUND)
        return;
    if (reply->failure) {
        fail(r, turn, reply);
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
                   status_written);
}

/* When many schedules share a boundary their writes are spread over up to two seconds, each always by
 * the same amount, and never before it. */
static int64_t spread_ns(const struct schedule_turn *turn)
{
    size_t many = turn->state->targets.by_key.n;
    uint64_t width_ms = MIN((uint64_t)many / 10, (uint64_t)SPREAD_MAX_MS);
    return width_ms ? (int64_t)(map_hash(str_c(turn->tracked->key)) % width_ms) * NS_PER_MS : 0;
}

static void wake_as_planned(struct reconcile *r, const struct schedule_turn *turn)
{
    int64_t after = turn->plan.wake * NS_PER_S - r->now_ns;
    if (turn->plan.wake == turn->plan.effective.next)
        after += spread_ns(turn);
    reconcile_again(r, MAX(after, NS_PER_MS));
}

static void finish(struct reconcile *r, struct schedule_turn *turn)
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
    wake_as_planned(r, turn);
    schedule_turn_advise(r, turn);
}

/* ---- writes */

static struct json *finalizers(struct arena *a, str text, bool add)
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

static void finalizer_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn || reply->reason == KUBE_NOT_FOUND)
        return;
    if (reply->failure) {
        if (!is_away(reply) && reply->reason != KUBE_CONFLICT)
            schedule_turn_event(turn, &(struct schedule_event){ true, "FinalizerFailed",
                                                                str_c(reply->failure) });
        fail(r, turn, reply);
        return;
    }
    turn->finalizer_sent = turn->pass.object.has_finalizer = true;
    if (!turn->pass.object.deleting)
        schedule_turn_step(r, turn);
}

/* Lists are replaced as a whole, so the version we saw must still be the one there. */
static void send_finalizers(struct reconcile *r, struct schedule_turn *turn, bool add)
{
    struct scheduler *s = turn->state;
    const struct schedule_record *record = cache_get(s->schedules, r->ns, r->name);
    if (!record)
        return;
    struct json *body = json_new_obj(r->arena);
    struct json *metadata = json_make(r->arena, body, "metadata", NULL);
    json_set_str(r->arena, metadata, "resourceVersion", record->meta.rv);
    json_set(r->arena, metadata, S("finalizers"), finalizers(r->arena, record->finalizers, add));
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = &schedule_resource,
                                           .ns = r->ns,
                                           .name = r->name,
                                           .body = json_to_str(r->arena, body) },
                   finalizer_written);
}

static void hpa_created(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn)
        return;
    if (is_away(reply)) {
        schedule_turn_await_server(r, turn, reply->failure);
        return;
    }
    if (reply->reason == KUBE_ALREADY_EXISTS) {
        reconcile_again(r, NS_PER_S); /* the cache will show it */
        return;
    }
    if (reply->failure) {
        turn->pass.create_failed = true;
        turn->pass.trouble = arena_str(r->arena, str_c(reply->failure));
        schedule_turn_step(r, turn);
        return;
    }
    str name = json_text(json_at(reply->object, "metadata", "name", NULL));
    str message =
        arena_printf(r->arena, "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT " was created",
                     STR_ARG(r->ns), STR_ARG(name));
    schedule_turn_event(turn, &(struct schedule_event){ false, "HPACreated", message });
    log_info("HPA created from the template", KV("namespace", r->ns), KV("name", r->name),
             KV("hpa", name));
    reconcile_again(r, NS_PER_S); /* its watch event comes first */
}

static void note_patch(struct schedule_turn *turn, const struct kube_reply *reply)
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
             KV_C("why", turn->plan.reverts ? "somebody else changed them"
                                            : schedule_phase_name(turn->plan.phase)));
}

static void hpa_patched(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn)
        return;
    struct schedule_pass *pass = &turn->pass;
    if (!reply->failure) {
        note_patch(turn, reply);
        log_patch(turn);
        schedule_turn_step(r, turn);
        return;
    }
    schedule_metrics_failure(&turn->state->metrics, r->ns, r->name,
                             str_c(kube_reason_name(reply->reason)));
    reconcile_warn(r, "replica bounds could not be written", reply->failure);
    if (reply->reason == KUBE_NOT_FOUND) {
        pass->hpa = (struct schedule_hpa){ .replicas = -1 };
        pass->template_found = pass->template_found && !turn->target.from_template;
        schedule_turn_step(r, turn);
    } else if (reply->reason == KUBE_INVALID || reply->reason == KUBE_BAD_REQUEST ||
               reply->reason == KUBE_FORBIDDEN) {
        pass->memory->forbidden = reply->reason == KUBE_FORBIDDEN ? pass->memory->forbidden + 1 : 0;
        pass->rejected = true;
        pass->trouble = arena_str(r->arena, str_c(reply->failure));
        schedule_turn_step(r, turn);
    } else {
        fail(r, turn, reply);
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
                   hpa_patched);
}

/* ---- the turn */

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
                       hpa_created);
    } else if (plan->patch) {
        send_patch(r, turn);
    } else if (plan->scale) {
        schedule_turn_scale(r, turn);
    } else if (plan->remove_finalizer) {
        for (size_t i = 0; i < plan->events_n; i++)
            schedule_turn_event(turn, &plan->events[i]);
        send_finalizers(r, turn, false);
    } else if (!turn->pass.object.deleting) {
        finish(r, turn);
    } else if (turn->pass.rejected) {
        wake_as_planned(r, turn);
    }
}

struct reconciled schedule_reconcile(struct reconcile *r)
{
    struct scheduler *s = r->context;
    const struct schedule_record *record = cache_get(s->schedules, r->ns, r->name);
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, r->ns, r->name);
    if (!record || !tracked)
        return reconciled();
    tracked->turn = gather(r, record, tracked);
    tracked->waiting = false;
    schedule_turn_step(r, tracked->turn);
    return reconciled();
}
