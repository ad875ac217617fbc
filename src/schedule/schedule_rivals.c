/* Targets that have two names: see schedule_turn.h.
 *
 * A ScaledObject of KEDA owns an HPA. A schedule may name either of them, and both mean the bounds of the ScaledObject:
 *
 *     schedule "a" -> ScaledObject shop <---+ owner
 *     schedule "b" -> HPA keda-hpa-shop ----+      the older one of a and b governs
 *
 * The HPA knows its ScaledObject by a label and the uid of its owner; the other way round, the cache has an index of owners,
 * because users may choose the name of the HPA. */
#include "schedule_turn.h"

/* Does KEDA manage this HPA? A schedule owns the HPA of its own template, whatever its labels. */
bool schedule_is_of_keda(const struct schedule_hpa_record *hpa, str schedule_uid)
{
    return hpa && hpa->scaled_object.n && hpa->owner_uid.n && !str_eq(hpa->owner_uid, schedule_uid);
}

const struct schedule_scaled_record *schedule_owner_of(const struct scheduler *s,
                                                       const struct schedule_hpa_record *hpa)
{
    if (!hpa || !hpa->scaled_object.n)
        return NULL;
    const struct schedule_scaled_record *owner =
        cache_get(s->scaled, hpa->meta.ns, hpa->scaled_object);
    return owner && str_eq(owner->meta.uid, hpa->owner_uid) ? owner : NULL;
}

const struct schedule_hpa_record *schedule_hpa_of(const struct scheduler *s,
                                                  const struct record *scaled)
{
    const struct schedule_hpa_record *hpa;
    cache_each_in(hpa, s->hpas, SCHEDULE_HPA_BY_OWNER, scaled->uid)
        if (str_eq(hpa->meta.ns, scaled->ns))
            return hpa;
    return NULL;
}

/* The schedules that may name the target of this one in the other way; NULL: none. */
const struct list *schedule_counterparts(const struct scheduler *s,
                                         const struct schedule_tracked *one)
{
    const struct schedule_shared *target = one->target;
    if (target && one->kind == SCHEDULE_TARGET_HPA) {
        const struct schedule_scaled_record *owner =
            schedule_owner_of(s, cache_get(s->hpas, target->ns, target->name));
        if (owner)
            return schedule_targets_of(&s->targets, target->ns, owner->meta.name);
    } else if (target && one->kind == SCHEDULE_TARGET_SCALED_OBJECT) {
        const struct schedule_scaled_record *scaled =
            cache_get(s->scaled, target->ns, target->name);
        const struct schedule_hpa_record *hpa = scaled ? schedule_hpa_of(s, &scaled->meta) : NULL;
        if (hpa)
            return schedule_targets_of(&s->targets, target->ns, hpa->meta.name);
    }
    return NULL;
}

/* Other kinds than HPAs are managed from their own namespace only; see schedule_consent.c. */
static bool may_govern(struct scheduler *s, struct schedule_tracked *other)
{
    return other->kind == SCHEDULE_TARGET_HPA ? schedule_has_consent(s, other)
                                              : !schedule_is_cross_namespace(other);
}

const struct schedule_tracked *schedule_find_counterpart(struct scheduler *s,
                                                         const struct schedule_tracked *one)
{
    const struct list *schedules = schedule_counterparts(s, one);
    enum schedule_target_kind kind =
        one->kind == SCHEDULE_TARGET_HPA ? SCHEDULE_TARGET_SCALED_OBJECT : SCHEDULE_TARGET_HPA;
    if (!schedules)
        return NULL;
    list_each(struct schedule_tracked, other, schedules, of_target) {
        if (!schedule_targets_is_older(other, one))
            return NULL;
        if (other->kind == kind && !other->deleting && may_govern(s, other))
            return other;
    }
    return NULL;
}
