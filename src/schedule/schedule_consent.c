/* Whether a schedule may manage its target: see schedule_turn.h.
 *
 * Within a namespace it may. An HPA of another namespace is managed only if that namespace permits it (kube/grant.h), and
 * other kinds never are. Without consent the target is hidden: not even its existence is visible. */
#include "schedule_turn.h"

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

static bool schedule_can_govern(const struct scheduler *s, str from_ns, str hpa_ns, str hpa_name)
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
        cache_get(s->hpas, tracked->target->ns, tracked->target->name);
    if (s->own_namespace_only || !s->grants.homes)
        return false;
    if (hpa && grant_list_has(hpa->allow, tracked->ns))
        return true;
    uint64_t epoch = grants_epoch(&s->grants);
    if (tracked->consent_epoch != epoch) {
        struct grant_reference ref =
            schedule_grant_reference(tracked->ns, tracked->target->ns, tracked->target->name);
        tracked->consent = grants_permit(&s->grants, &ref, S(""));
        tracked->consent_epoch = epoch;
    }
    return tracked->consent;
}

bool schedule_turn_can_govern(void *context, str from_ns)
{
    const struct schedule_turn *turn = context;
    return schedule_can_govern(turn->state, from_ns, turn->target.ns, turn->target.name);
}

/* The target may have changed since the turn began; what matters is the one that this turn writes to. */
bool schedule_turn_has_consent(const struct schedule_turn *turn)
{
    struct schedule_tracked *one = turn->tracked;
    const struct schedule_target *target = &turn->target;
    const struct schedule_shared *now = one->target;
    return now && str_eq(target->ns, now->ns) && str_eq(target->name, now->name)
               ? schedule_has_consent(turn->state, one)
               : schedule_can_govern(turn->state, one->ns, target->ns, target->name);
}

/* Hides the target from a schedule that may not manage it. Checked before every step, because consent may be
 * withdrawn while a turn waits for an answer. */
void schedule_turn_check_consent(struct arena *a, struct schedule_turn *turn)
{
    const struct scheduler *s = turn->state;
    struct schedule_pass *pass = &turn->pass;
    str from_ns = pass->object.ns;
    bool is_foreign = turn->target.name.n && turn->target.kind != SCHEDULE_TARGET_HPA &&
                      !str_eq(turn->target.ns, from_ns);
    if (!turn->target.name.n || (!is_foreign && schedule_turn_has_consent(turn)))
        return;
    if (is_foreign) { /* grants name HPAs only */
        pass->hpa = (struct schedule_hpa){ .replicas = -1 };
        pass->refused_reason = GRANT_REFUSED;
        pass->refused =
            arena_printf(a,
                         STR_FMT " " STR_FMT "/" STR_FMT " is in another namespace, which is "
                                 "possible for HorizontalPodAutoscalers only",
                         STR_ARG(turn->target.kind_name), STR_ARG(turn->target.ns),
                         STR_ARG(turn->target.name));
        return;
    }
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
