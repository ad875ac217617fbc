/* Scaling the workload behind an HPA: the one-shot desiredReplicas and windows at zero. Reads the
 * scale subresource first, so that nothing is written that is already so. */
#include "schedule_turn.h"

#include "../base/log.h"

/* A question about a kind that only the server knows. */
struct schedule_question {
    struct scheduler *state;
    struct schedule_question *next; /* of the state's open ones */
    str ns, name;                   /* who asked; in the same block */
    char texts[];
};

static void scale_failed(struct reconcile *r, struct schedule_turn *turn, str why)
{
    turn->pass.scaled = SCHEDULE_SCALE_FAILED;
    turn->pass.trouble =
        arena_printf(r->arena, STR_FMT " " STR_FMT "/" STR_FMT " cannot be scaled: " STR_FMT,
                     STR_ARG(turn->workload_kind), STR_ARG(turn->target.ns),
                     STR_ARG(turn->workload_name), STR_ARG(why));
    schedule_turn_step(r, turn);
}

static void scale_done(struct reconcile *r, struct schedule_turn *turn)
{
    turn->pass.scaled = SCHEDULE_SCALE_DONE;
    schedule_turn_step(r, turn);
}

/* True when the answer is a failure, and was dealt with. */
static bool scale_trouble(struct reconcile *r, struct schedule_turn *turn,
                          const struct kube_reply *reply)
{
    if (!reply->failure)
        return false;
    if (reply->reason == KUBE_NO_ANSWER || reply->reason == KUBE_UNAVAILABLE)
        schedule_turn_await_server(r, turn, reply->failure);
    else if (reply->reason == KUBE_CONFLICT)
        reconcile_fail(r, reply->failure);
    else
        scale_failed(r, turn, reply->message.n ? reply->message : str_c(reply->failure));
    return true;
}

static void scale_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn || scale_trouble(r, turn, reply))
        return;
    log_info("workload scaled", KV("namespace", turn->target.ns), KV("kind", turn->workload_kind),
             KV("name", turn->workload_name), KV_INT("replicas", turn->plan.replicas),
             KV_C("schedule", turn->tracked->key));
    scale_done(r, turn);
}

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

static void scale_read(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn || scale_trouble(r, turn, reply))
        return;
    int64_t replicas = json_int(json_at(reply->object, "spec", "replicas", NULL), 0);
    int32_t wanted = turn->plan.replicas;
    if (wanted == replicas || (wanted < replicas && !turn->plan.scale_down_too)) {
        scale_done(r, turn);
        return;
    }
    str body = arena_printf(r->arena, "{\"spec\":{\"replicas\":%d}}", wanted);
    struct kube_request request = scale_request(turn, KUBE_MERGE_PATCH, body);
    reconcile_call(r, &request, scale_written);
}

/* ---- kinds that are not built in */

static void question_answered(void *context, const struct resource *resource, const char *failure)
{
    struct schedule_question *q = context;
    struct scheduler *s = q->state;
    struct schedule_question **at = &s->questions;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, q->ns, q->name);
    if (tracked) {
        tracked->workload = resource;
        free(tracked->trouble);
        tracked->trouble = failure ? mem_dup(failure, strlen(failure)) : NULL;
        controller_add(s->controller, q->ns, q->name);
    }
    free(q);
}

/* The turn ends here; the answer brings the key back. */
static void ask_kind(struct schedule_turn *turn)
{
    struct scheduler *s = turn->state;
    str ns = turn->tracked->ns, name = turn->tracked->name;
    struct schedule_question *q = mem_zero(1, sizeof(*q) + ns.n + name.n);
    memcpy(q->texts, ns.p, ns.n);
    memcpy(q->texts + ns.n, name.p, name.n);
    q->state = s;
    q->ns = (str){ q->texts, ns.n };
    q->name = (str){ q->texts + ns.n, name.n };
    q->next = s->questions;
    s->questions = q;
    kube_discover(manager_kube(s->manager), turn->workload_api_version, turn->workload_kind,
                  question_answered, q);
}

void schedule_questions_free(struct scheduler *s)
{
    while (s->questions) {
        struct schedule_question *next = s->questions->next;
        free(s->questions);
        s->questions = next;
    }
}

/* What was learned about another kind is forgotten. */
static void follow_kind(struct reconcile *r, struct schedule_turn *turn)
{
    struct schedule_tracked *tracked = turn->tracked;
    str kind = arena_printf(r->arena, STR_FMT " " STR_FMT, STR_ARG(turn->workload_api_version),
                            STR_ARG(turn->workload_kind));
    if (str_eq(kind, str_c(tracked->workload_kind)))
        return;
    free(tracked->workload_kind);
    free(take(tracked->trouble));
    tracked->workload_kind = mem_dup(kind.p, kind.n);
    tracked->workload = NULL;
}

void schedule_turn_scale(struct reconcile *r, struct schedule_turn *turn)
{
    follow_kind(r, turn);
    if (!turn->pass.hpa.has_target) {
        scale_failed(r, turn, S("the HPA names no scaleTargetRef"));
    } else if (known_workload(turn)) {
        struct kube_request request = scale_request(turn, KUBE_GET, S(""));
        reconcile_call(r, &request, scale_read);
    } else if (turn->tracked->trouble) {
        str why = arena_str(r->arena, str_c(turn->tracked->trouble));
        free(take(turn->tracked->trouble)); /* the next pass asks again */
        scale_failed(r, turn, why);
    } else {
        ask_kind(turn);
    }
}
