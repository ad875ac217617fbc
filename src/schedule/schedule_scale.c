/* Scaling the workload behind an HPA: the one-time desiredReplicas, and windows at zero.
 *
 *     discover kind (once, unless built in) -> GET scale -> PATCH scale, only if needed
 *
 * The scale subresource is read first, so that nothing is written when the number is already right or
 * when only scaling up is allowed. A kind that is not built in (an Argo Rollout) is resolved by API discovery;
 * the turn ends, and the answer enqueues the schedule again. */
#include "schedule_turn.h"

#include "../base/log.h"

/* A pending API discovery of a workload's kind. */
struct schedule_discovery {
    struct scheduler *state;
    struct list_item item; /* of scheduler.discoveries */
    str ns, name;          /* the schedule; text in the same block */
    char texts[];
};

/* Records why the workload cannot be scaled and continues the turn, which reports it. */
static void fail_scale(struct reconcile *r, struct schedule_turn *turn, str why)
{
    turn->pass.scaled = SCHEDULE_SCALE_FAILED;
    turn->pass.failure =
        arena_printf(r->arena, STR_FMT " " STR_FMT "/" STR_FMT " cannot be scaled: " STR_FMT,
                     STR_ARG(turn->workload_kind), STR_ARG(turn->target.ns),
                     STR_ARG(turn->workload_name), STR_ARG(why));
    schedule_turn_step(r, turn);
}

static void complete_scale(struct reconcile *r, struct schedule_turn *turn)
{
    turn->pass.scaled = SCHEDULE_SCALE_DONE;
    schedule_turn_step(r, turn);
}

/* True if the request failed; the failure was handled. */
static bool handle_failure(struct reconcile *r, struct schedule_turn *turn,
                           const struct kube_reply *reply)
{
    if (!reply->failure)
        return false;
    if (kube_is_server_failure(reply) || reply->reason == KUBE_CONFLICT)
        reconcile_fail_call(r, reply);
    else
        fail_scale(r, turn, reply->message.n ? reply->message : str_c(reply->failure));
    return true;
}

static void on_scale_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = r->turn;
    if (handle_failure(r, turn, reply))
        return;
    log_info("workload scaled", KV("namespace", turn->target.ns), KV("kind", turn->workload_kind),
             KV("name", turn->workload_name), KV_INT("replicas", turn->scaled_to),
             KV_C("schedule", turn->tracked->key));
    complete_scale(r, turn);
}

/* The resource of the workload's kind; NULL if it must be discovered first. */
static const struct resource *known_workload(const struct schedule_turn *turn)
{
    static const struct resource *const builtin[] = { &resource_deployments, &resource_statefulsets,
                                                      &resource_replicasets };
    for (size_t i = 0; i < countof(builtin); i++)
        if (str_eqc(turn->workload_kind, builtin[i]->kind) &&
            str_eqc(turn->workload_api_version, "apps/v1"))
            return builtin[i];
    return turn->tracked->workload;
}

static struct kube_request scale_request(struct schedule_turn *turn, enum kube_verb verb, str body)
{
    return (struct kube_request){ .verb = verb,
                                  .resource = known_workload(turn),
                                  .ns = turn->target.ns,
                                  .name = turn->workload_name,
                                  .subresource = "scale",
                                  .body = body };
}

static void on_scale_read(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = r->turn;
    if (handle_failure(r, turn, reply))
        return;
    int64_t replicas = json_int(json_at(reply->object, "spec", "replicas", NULL), 0);
    int32_t wanted = turn->plan.replicas;
    if (turn->plan.scale_clamps) {
        struct schedule_bounds bounds = turn->plan.target;
        wanted = (int32_t)MAX((int64_t)bounds.min, MIN(replicas, (int64_t)bounds.max));
    }
    if (wanted == replicas || (wanted < replicas && !turn->plan.scale_down_too)) {
        complete_scale(r, turn);
        return;
    }
    turn->scaled_to = wanted;
    str body = arena_printf(r->arena, "{\"spec\":{\"replicas\":%d}}", wanted);
    struct kube_request request = scale_request(turn, KUBE_MERGE_PATCH, body);
    reconcile_call(r, &request, on_scale_written);
}

/* ---- kinds that are not built in */

/* Stores the result with the schedule, if it still exists, and enqueues it. */
static void on_kind_discovered(void *context, const struct resource *resource, const char *failure)
{
    struct schedule_discovery *q = context;
    struct scheduler *s = q->state;
    list_remove(&q->item);
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, q->ns, q->name);
    if (tracked) {
        tracked->workload = resource;
        free(tracked->discovery_failure);
        tracked->discovery_failure = failure ? mem_dup(failure, strlen(failure)) : NULL;
        controller_add(s->controller, q->ns, q->name);
    }
    free(q);
}

/* The turn ends here; on_kind_discovered() enqueues the schedule again. */
static void discover_kind(struct schedule_turn *turn)
{
    struct scheduler *s = turn->state;
    str ns = turn->tracked->ns, name = turn->tracked->name;
    struct schedule_discovery *q = mem_zero(1, sizeof(*q) + ns.n + name.n);
    memcpy(q->texts, ns.p, ns.n);
    memcpy(q->texts + ns.n, name.p, name.n);
    q->state = s;
    q->ns = (str){ q->texts, ns.n };
    q->name = (str){ q->texts + ns.n, name.n };
    list_append(&s->discoveries, &q->item);
    kube_discover(manager_kube(s->manager), turn->workload_api_version, turn->workload_kind,
                  on_kind_discovered, q);
}

void schedule_discoveries_free(struct scheduler *s)
{
    for (struct schedule_discovery *q;
         (q = list_first(&s->discoveries, struct schedule_discovery, item));) {
        list_remove(&q->item);
        free(q);
    }
}

/* Drops the discovered resource if the HPA now refers to another kind. */
static void update_workload_kind(struct reconcile *r, struct schedule_turn *turn)
{
    struct schedule_tracked *tracked = turn->tracked;
    str kind = arena_printf(r->arena, STR_FMT " " STR_FMT, STR_ARG(turn->workload_api_version),
                            STR_ARG(turn->workload_kind));
    if (str_eq(kind, str_c(tracked->workload_kind)))
        return;
    free(tracked->workload_kind);
    free(take(tracked->discovery_failure));
    tracked->workload_kind = mem_dup(kind.p, kind.n);
    tracked->workload = NULL;
}

void schedule_turn_scale(struct reconcile *r, struct schedule_turn *turn)
{
    update_workload_kind(r, turn);
    if (!turn->pass.hpa.has_target) {
        fail_scale(r, turn, S("the HPA has no scaleTargetRef"));
    } else if (known_workload(turn)) {
        struct kube_request request = scale_request(turn, KUBE_GET, S(""));
        reconcile_call(r, &request, on_scale_read);
    } else if (turn->tracked->discovery_failure) {
        str why = arena_str(r->arena, str_c(turn->tracked->discovery_failure));
        free(take(turn->tracked->discovery_failure)); /* the next pass retries */
        fail_scale(r, turn, why);
    } else {
        discover_kind(turn);
    }
}
