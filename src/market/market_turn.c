/* One turn: see market_turn.h.
 *
 *      market_reconcile()
 *        |- cache is behind our last resize ----------> try again in a second
 *        |- not entitled, or a duplicate -------------> finish_turn(): Failed
 *        `- run_step(): actuate_decide()
 *             |- no patch ----------------------------> finish_turn(): status, event
 *             `- patch; first record the originals ---> on_originals_written()
 *                  `- send_resize() ------------------> on_resized(): finish_turn(), or wait
 *
 * Usually a change costs two writes: the resize, and the status once the node has enacted it.
 * Only before the first resize of a pod the status is written too, with the original resources:
 * after a crash in between we must not take our own numbers for the owner's.
 *
 * A turn lives in the arena of the reconcile. It ends with end_turn() once, on every path. */
#include "market_turn.h"

#include "../base/log.h"
#include "../json/merge.h"
#include "market_status.h"

static const int64_t lag_ns = NS_PER_S, follow_ns = 2 * NS_PER_S;

/* ---- gathering */

static const struct json *parse_or_null(struct arena *a, str text)
{
    struct json *tree = NULL;
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

/* The present status, including our last write if the cache does not show it yet. */
static void gather_status(struct reconcile *r, struct market_turn *turn,
                          const struct allocation_record *allocation)
{
    struct market_track *track = turn->track;
    const struct json *own = own_write_json(&track->status, r->arena, allocation->meta.rv, 0);
    turn->old = own ? own : parse_or_null(r->arena, allocation->status);
    turn->base = turn->old;
    if (!track->deleted || track->deleted == allocation)
        return;
    struct json *status =
        json_is(turn->old, JSON_OBJ) ? json_copy(r->arena, turn->old) : json_new_obj(r->arena);
    market_status_adopt(r->arena, status, parse_or_null(r->arena, track->deleted->status));
    turn->base = status;
}

static void gather_memory(struct reconcile *r, struct market_turn *turn)
{
    struct market_track *track = turn->track;
    struct actuate_memory *memory = &turn->in.memory;
    *memory = market_status_memory(r->arena, turn->base, turn->generation, &turn->in.pod);
    memory->patched_ns = MAX(memory->patched_ns, track->patched_ns);
    memory->attempted_ns = MAX(memory->attempted_ns, track->attempted_ns);
    memory->error_n = track->error_n;
    if (track->spec_generation != turn->generation) {
        track->spec_generation = turn->generation;
        track->spec_ns = r->now_ns;
    }
}

/* Finds the pod that the allocation was created for; a later pod of the same name is another
 * one. */
static const struct market_pod_record *find_pod(const struct market_controller *m,
                                                const struct allocation_record *allocation)
{
    const struct market_pod_record *pod =
        cache_get(m->pods, allocation->pod_ns, allocation->pod_name);
    if (pod && !market_allocation_can_govern(allocation, pod))
        return NULL;
    bool same = pod && (!allocation->owner_uid.n || str_eq(allocation->owner_uid, pod->meta.uid));
    return same ? pod : NULL;
}

/* Collects everything that actuate_decide() needs. Strings are copied, because records may be
 * replaced during the turn. */
static struct market_turn *gather_turn(struct reconcile *r, struct market_track *track,
                                       const struct allocation_record *allocation,
                                       const struct market_pod_record *pod)
{
    struct market_controller *m = r->context;
    struct market_turn *turn = arena_new(r->arena, struct market_turn);
    *turn = (struct market_turn){
        .state = m,
        .track = track,
        .uid = arena_str(r->arena, allocation->meta.uid),
        .rv = arena_str(r->arena, allocation->meta.rv),
        .pod_ns = arena_str(r->arena, allocation->pod_ns),
        .pod_name = arena_str(r->arena, allocation->pod_name),
        .pod_rv = arena_str(r->arena, pod ? pod->meta.rv : S("")),
        .node = arena_str(r->arena, pod ? pod->node : S("")),
        .generation = allocation->generation,
        .started_ns = loop_mono_ns(manager_loop(m->manager)),
        .in = { .pod = market_gather_pod(r->arena, pod),
                .desired_request = arena_str(r->arena, allocation->desired_request),
                .desired_limit = arena_str(r->arena, allocation->desired_limit),
                .room_milli = INT64_MAX,
                .restore = m->restore || track->deleted == allocation,
                .dry_run = m->dry_run,
                .now_ns = r->now_ns },
    };
    market_gather_memory(&turn->in.pod, allocation);
    gather_status(r, turn, allocation);
    gather_memory(r, turn);
    return turn;
}

/* ---- the end of a turn */

static void emit_event(const struct market_turn *turn, bool warning, const char *reason,
                       str message)
{
    events_emit(manager_events(turn->state->manager),
                &(struct kube_event){ .resource = &market_allocation_resource,
                                      .ns = turn->track->ns,
                                      .name = turn->track->name,
                                      .uid = turn->uid,
                                      .warning = warning,
                                      .reason = reason,
                                      .message = message });
}

static bool same_text(const struct json *old, const struct json *next, const char *field)
{
    return str_eq(json_text(json_get(old, field)), json_text(json_get(next, field)));
}

/* The numbers that decided, as the agent wrote them; "" if it is of another version. */
static str describe_reasons(struct arena *a, const struct json *status)
{
    str need = json_text(json_get(status, "needCPU"));
    if (!need.n)
        return S("");
    return arena_printf(a,
                        ": uses " STR_FMT ", needs " STR_FMT
                        ", throttled in %.0f %% of periods; weight %.2g, guaranteed " STR_FMT
                        ", node price %.3g (" STR_FMT ")",
                        STR_ARG(json_text(json_get(status, "usageCPU"))), STR_ARG(need),
                        json_real(json_get(status, "throttling"), 0) * 100,
                        json_real(json_get(status, "weight"), 0),
                        STR_ARG(json_text(json_get(status, "guaranteedCPU"))),
                        json_real(json_get(status, "shadowPriceCPU"), 0),
                        STR_ARG(json_text(json_get(status, "mode"))));
}

static void emit_memory(struct arena *a, const struct market_turn *turn)
{
    static const double mib = 1000.0 * (1 << 20);
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < turn->in.pod.n; i++) {
        const struct actuate_container *c = &turn->in.pod.containers[i];
        if (c->memory_desired.limit > 0)
            buf_printf(&text, "%s" STR_FMT ": memory limit %.0f MiB and request %.0f MiB",
                       text.n ? "; " : "", STR_ARG(c->name), (double)c->memory.limit / mib,
                       (double)c->memory.request / mib);
    }
    buf_put(&text, S(" are in force"));
    emit_event(turn, false, "MemoryApplied", arena_str(a, buf_str(&text)));
}

/* Emits an event if the phase, the reason or the applied limit changed. A resize of memory changes the phase as well: it is
 * not one of CPU. */
static void emit_change(struct arena *a, const struct market_turn *turn, const struct json *next)
{
    const struct actuate_plan *plan = &turn->plan;
    bool same = same_text(turn->old, next, "phase") && same_text(turn->old, next, "reason");
    bool applied = plan->verified && str_eqc(str_c(plan->reason), "Applied");
    bool is_memory = applied && turn->track->sent_memory;
    if (is_memory)
        emit_memory(a, turn);
    turn->track->sent_memory &= !plan->verified;
    if (applied && ((!same && !is_memory) || !same_text(turn->old, next, "appliedCPULimit")))
        emit_event(turn, false, "CPUApplied",
                   arena_printf(a, "CPU limit %lldm and request %lldm are in force" STR_FMT,
                                (long long)plan->in_force_limit, (long long)plan->in_force_request,
                                STR_ARG(describe_reasons(a, next))));
    else if (same || applied)
        return;
    else if (plan->phase == ACTUATE_APPLIED)
        emit_event(turn, false, "CPUSkipped", plan->message);
    else if (plan->phase == ACTUATE_FAILED || str_eqc(str_c(plan->reason), "Deferred") ||
             str_eqc(str_c(plan->reason), "ResizeError"))
        emit_event(turn, true, plan->reason, plan->message);
}

static void end_turn(const struct market_turn *turn)
{
    struct loop *loop = manager_loop(turn->state->manager);
    market_metrics_turn(&turn->state->metrics,
                        (double)(loop_mono_ns(loop) - turn->started_ns) / 1e9);
}

/* Takes over the written status; false if the write failed: then the turn must end, and a retry
 * is scheduled. */
static bool take_status(struct reconcile *r, struct market_turn *turn,
                        const struct kube_reply *reply)
{
    if (!reply->failure) {
        own_write_end(&turn->track->status, reply, turn->rv,
                      json_to_str(r->arena, json_get(reply->object, "status")));
        turn->old = turn->base = json_copy(r->arena, json_get(reply->object, "status"));
        if (turn->track->deleted)
            market_track_set_deleted(&turn->state->tracks, turn->track, NULL);
        return true;
    }
    if (reply->reason != KUBE_NOT_FOUND)
        reconcile_fail_call(r, reply);
    return false;
}

typedef void reply_fn(struct reconcile *r, const struct kube_reply *reply);

/* Patches what differs; false if nothing does. */
static bool write_status(struct reconcile *r, struct market_turn *turn, const struct json *next,
                         reply_fn *then)
{
    struct json *diff = merge_diff(r->arena, turn->old ? turn->old : json_new_obj(r->arena), next);
    if (!diff)
        return false;
    reconcile_status_then(r, &market_allocation_resource, diff, then);
    return true;
}

static void on_status_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct market_turn *turn = r->turn;
    take_status(r, turn, reply);
    end_turn(turn);
}

static void note_verified(struct market_turn *turn, const struct json *next)
{
    struct market_track *track = turn->track;
    bool news = !same_text(turn->old, next, "appliedCPULimit") ||
                !same_text(turn->old, next, "appliedCPURequest");
    if (!turn->plan.verified || !news || !track->patched_ns)
        return;
    track->error_n = 0;
    market_metrics_verified(&turn->state->metrics);
}

/* Ends the turn: writes the status and emits events if they changed. */
static void finish_turn(struct reconcile *r, struct market_turn *turn)
{
    struct market_controller *m = turn->state;
    struct market_track *track = turn->track;
    const struct actuate_plan *plan = &turn->plan;
    track->unmovable = plan->phase == ACTUATE_FAILED ||
                       (plan->verified && !str_eqc(str_c(plan->reason), "Applied")) ||
                       str_eqc(str_c(plan->reason), "GuaranteedQoS");
    if (plan->wake_ns)
        reconcile_again(r, MAX(plan->wake_ns, NS_PER_MS));
    bool orphan = track->deleted && !cache_get(m->allocations, r->ns, r->name);
    if (orphan || plan->skip_status) { /* there is no status to write */
        end_turn(turn);
        if (orphan && (plan->verified || plan->skip_status || !turn->in.pod.found))
            market_track_drop(&m->tracks, track);
        return;
    }
    struct market_status status = { .old = turn->base,
                                    .plan = plan,
                                    .pod = &turn->in.pod,
                                    .generation = turn->generation,
                                    .now_ns = r->now_ns,
                                    .attempted_ns = track->attempted_ns,
                                    .applied_ns = plan->verified ? track->patched_ns : 0 };
    struct json *next = market_status_next(r->arena, &status);
    emit_change(r->arena, turn, next);
    note_verified(turn, next);
    if (!write_status(r, turn, next, on_status_written))
        end_turn(turn);
}

/* ---- the resize */

static bool has_cause(const struct json *answer, const char *cause)
{
    const struct json *causes = json_at(answer, "details", "causes", NULL);
    for (size_t i = 0; i < json_len(causes); i++)
        if (str_eqc(json_text(json_get(json_item(causes, i), "reason")), cause))
            return true;
    return false;
}

/* The API server rejected the resize: replaces the plan with the failure and a hint. */
static void note_refusal(struct reconcile *r, struct market_turn *turn,
                         const struct kube_reply *reply)
{
    struct actuate_plan *plan = &turn->plan;
    bool infeasible = has_cause(reply->object, "NodeCapacity");
    const char *hint =
        reply->reason == KUBE_FORBIDDEN && !infeasible
            ? "; allow the operator to patch pods/resize, and check the ResourceQuota"
        : reply->reason == KUBE_NOT_FOUND ? "; in-place resize needs Kubernetes 1.33 or later"
                                          : "";
    bool restoring = str_eqc(str_c(plan->reason), "Restoring");
    int64_t desired = plan->to_milli;
    *plan = (struct actuate_plan){
        .phase = ACTUATE_FAILED,
        .reason = restoring    ? "RestoreFailed"
                  : infeasible ? "Infeasible"
                               : "PatchError",
        .message = arena_printf(r->arena, "%s%s", reply->failure, hint),
        .infeasible_milli = infeasible && !restoring && !plan->of_memory ? desired : 0,
        .memory_refused = plan->of_memory,
        .in_force_request = plan->in_force_request,
        .in_force_limit = plan->in_force_limit,
        .wake_ns = ACTUATE_REFUSED_NS,
    };
}

static void note_resize(struct reconcile *r, struct market_turn *turn,
                        const struct kube_reply *reply)
{
    struct market_track *track = turn->track;
    const struct actuate_plan *plan = &turn->plan;
    track->patched_ns = r->now_ns;
    track->error_n = str_eqc(turn->in.pod.progress, "Error") ? track->error_n + 1 : 0;
    own_write_end(&track->resize, reply, turn->pod_rv, S(""));
    track->sent_milli = plan->to_milli;
    track->sent_memory = plan->of_memory;
    log_info(plan->of_memory ? "memory of a pod resized" : "pod resized",
             KV("namespace", turn->pod_ns), KV("pod", turn->pod_name),
             KV_INT("limit_was", plan->from_milli), KV_INT("limit", plan->to_milli),
             KV_C("why", plan->reason));
}

/* Is there anything to report before the node has responded? */
static bool needs_status(const struct actuate_plan *plan)
{
    return plan->phase == ACTUATE_FAILED || str_eqc(str_c(plan->reason), "DryRun") ||
           str_eqc(str_c(plan->reason), "StepSizeExceeded");
}

/* The API server answered the resize. A success is not reported yet: the status is written when
 * the node has enacted it. */
static void on_resized(struct reconcile *r, const struct kube_reply *reply)
{
    struct market_turn *turn = r->turn;
    bool pod_deleted = reply->reason == KUBE_NOT_FOUND &&
                       str_eqc(json_text(json_at(reply->object, "details", "kind", NULL)), "pods");
    if (reply->reason == KUBE_SUPERSEDED) { /* the next turn of this pod decides */
        end_turn(turn);
        return;
    }
    turn->track->attempted_ns = r->now_ns;
    if (reply->failure)
        market_metrics_patch_failed(&turn->state->metrics, str_c(kube_reason_name(reply->reason)));
    if (!reply->failure && !turn->in.dry_run)
        note_resize(r, turn, reply);
    if (kube_is_server_failure(reply) || reply->reason == KUBE_CONFLICT) {
        reconcile_fail_call(r, reply);
        end_turn(turn);
    } else if (pod_deleted) {
        reconcile_again(r, lag_ns); /* the cache will show that it was deleted */
        end_turn(turn);
    } else if (reply->failure) {
        note_refusal(r, turn, reply);
        finish_turn(r, turn);
    } else if (needs_status(&turn->plan)) {
        finish_turn(r, turn);
    } else {
        reconcile_again(r, follow_ns);
        end_turn(turn);
    }
}

static void send_resize(struct reconcile *r, struct market_turn *turn)
{
    reconcile_call(r,
                   &(struct kube_request){
                       .verb = KUBE_STRATEGIC_PATCH,
                       .resource = &resource_pods,
                       .ns = turn->pod_ns,
                       .name = turn->pod_name,
                       .subresource = "resize",
                       .dry_run = turn->in.dry_run,
                       .is_decision = true,
                       .body = json_to_str(r->arena, actuate_patch(r->arena, &turn->in.pod)) },
                   on_resized);
}

static void on_originals_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct market_turn *turn = r->turn;
    if (take_status(r, turn, reply))
        send_resize(r, turn);
    else
        end_turn(turn);
}

/* Lets actuate_decide() choose. Growth is decided a second time, with the room of the node,
 * which is expensive to compute. */
static void run_step(struct reconcile *r, struct market_turn *turn)
{
    turn->plan = actuate_decide(r->arena, &turn->in);
    if (turn->plan.patch &&
        turn->plan.to_milli > turn->plan.from_milli) { /* growth: how much room is there? */
        turn->in.room_milli = market_gather_room(turn->state, turn->node, r->now_ns);
        turn->plan = actuate_decide(r->arena, &turn->in);
    }
    if (!turn->plan.patch) {
        finish_turn(r, turn);
        return;
    }
    struct market_status status = { .old = turn->base,
                                    .plan = &turn->plan,
                                    .pod = &turn->in.pod,
                                    .generation = turn->generation,
                                    .now_ns = r->now_ns,
                                    .attempted_ns = r->now_ns };
    if (!turn->plan.record_originals ||
        !write_status(r, turn, market_status_next(r->arena, &status), on_originals_written))
        send_resize(r, turn);
}

static struct actuate_plan failed_plan(const char *reason, str message)
{
    return (struct actuate_plan){ .phase = ACTUATE_FAILED,
                                  .reason = reason,
                                  .message = message,
                                  .in_force_request = -1,
                                  .in_force_limit = -1 };
}

/* Reports that the allocation may not govern the pod that it names; false: it may, or there is no
 * such pod. */
static bool refuse_foreign(struct reconcile *r, struct market_turn *turn,
                           const struct allocation_record *allocation)
{
    const struct market_pod_record *pod =
        cache_get(turn->state->pods, allocation->pod_ns, allocation->pod_name);
    if (turn->track->deleted == allocation)
        return false; /* a deleted allocation cannot be reported on */
    if (!str_eq(allocation->pod_ns, allocation->meta.ns))
        turn->plan = failed_plan(
            "NamespaceMismatch",
            arena_printf(r->arena,
                         "spec.namespace is " STR_FMT
                         "; a PodAllocation governs only pods of its own namespace, " STR_FMT,
                         STR_ARG(allocation->pod_ns), STR_ARG(allocation->meta.ns)));
    else if (pod && !market_allocation_can_govern(allocation, pod))
        turn->plan = failed_plan("NodeMismatch",
                                 arena_printf(r->arena,
                                              "spec.nodeName is " STR_FMT ", but pod " STR_FMT
                                              " runs on node \"" STR_FMT "\"",
                                              STR_ARG(allocation->node), STR_ARG(pod->meta.name),
                                              STR_ARG(pod->node)));
    else
        return false;
    finish_turn(r, turn);
    return true;
}

/* A deleted allocation whose pod is governed by another one restores nothing: the two would undo each
 * other's resizes without end. The other one takes over the original resources, and restores them
 * when it is deleted itself. */
static void hand_over(struct reconcile *r, struct market_track *track,
                      const struct allocation_record *governs)
{
    struct market_controller *m = r->context;
    struct market_track *heir = market_track_make(&m->tracks, governs->meta.ns, governs->meta.name);
    end_turn(r->turn);
    if (!heir->deleted)
        market_track_set_deleted(&m->tracks, heir, track->deleted);
    controller_add(m->controller, governs->meta.ns, governs->meta.name);
    market_track_drop(&m->tracks, track);
}

struct reconciled market_reconcile(struct reconcile *r)
{
    struct market_controller *m = r->context;
    const struct allocation_record *allocation = cache_get(m->allocations, r->ns, r->name);
    struct market_track *track = market_track_find(&m->tracks, r->ns, r->name);
    if (!allocation && track)
        allocation = track->deleted;
    if (!allocation) {
        if (track)
            market_track_drop(&m->tracks, track);
        return reconciled();
    }
    const struct market_pod_record *pod = find_pod(m, allocation);
    track = market_track_make(&m->tracks, r->ns, r->name);
    if (pod && own_write_is_pending(&track->resize, pod->meta.rv, 0))
        return reconciled_after(lag_ns);
    struct market_turn *turn = r->turn = gather_turn(r, track, allocation, pod);
    if (!pod && refuse_foreign(r, turn, allocation))
        return reconciled();
    const struct allocation_record *governs = pod ? market_gather_allocation(m, pod) : NULL;
    if (governs && governs != allocation && track->deleted != allocation) {
        turn->plan =
            failed_plan("Duplicate",
                        arena_printf(r->arena, "PodAllocation " STR_FMT " governs the same pod",
                                     STR_ARG(governs->meta.name)));
        finish_turn(r, turn);
        return reconciled();
    }
    if (governs && governs != allocation) {
        hand_over(r, track, governs);
        return reconciled();
    }
    run_step(r, turn);
    return reconciled();
}
