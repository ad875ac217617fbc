/* See saturation_advice.h. The rules are in follow_core.h.
 *
 * All scalers are looked at in every cycle of the leader, because a process that takes over has not seen them
 * change. A map from the object's uid to the sum of what was checked ensures that each state is reported once.
 * Most HPAs of a cluster have nothing to do with decisions: a search in the text of their metrics excludes them. */
#include "saturation_advice.h"

#include "../base/log.h"
#include "../base/sum.h"
#include "objects/follow_core.h"

enum { ADVISED_MAX = 20000 };

struct advised { /* value of the map; its key is the uid in it */
    uint64_t sum;
    char uid[];
};

static bool is_news(struct saturation *s, str uid, uint64_t sum)
{
    struct advised *a = map_get(&s->advised, uid);
    if (a && a->sum == sum)
        return false;
    if (!a) {
        if (s->advised.n >= ADVISED_MAX)
            saturation_advice_done(s);
        a = mem_zero(1, sizeof(*a) + uid.n + 1);
        memcpy(a->uid, uid.p, uid.n);
        map_put(&s->advised, (str){ a->uid, uid.n }, a);
    }
    a->sum = sum;
    return true;
}

static void warn_of_mistake(struct saturation *s, const struct resource *of,
                            const struct bounds_record *r, enum follow_mistake one)
{
    log_warn(follow_reason(one), KV_C("kind", of->kind), KV("namespace", r->meta.ns),
             KV("name", r->meta.name), KV("message", follow_message(one)));
    events_emit(manager_events(s->manager), &(struct kube_event){ .resource = of,
                                                                  .ns = r->meta.ns,
                                                                  .name = r->meta.name,
                                                                  .uid = r->meta.uid,
                                                                  .warning = true,
                                                                  .reason = follow_reason(one),
                                                                  .message = follow_message(one) });
}

static void check_scaler(struct saturation *s, const struct resource *of,
                         const struct bounds_record *r)
{
    bool managed = str_eqc(r->managed, "true") || str_eqc(r->managed_label, "true");
    bool child = str_eqc(r->owner_kind, "ScaledObject"); /* its parent is checked */
    if (child || r->deleting || !r->meta.uid.n || (!managed && !follow_is_interesting(r->readings)))
        return;
    uint64_t sum = sum64(r->readings, (uint64_t)r->fallback * 31 + (uint64_t)r->min * 7 + managed);
    if (!is_news(s, r->meta.uid, sum))
        return;
    auto_arena struct arena a = { 0 };
    struct json *readings = NULL;
    if (r->readings.n && json_parse(&a, r->readings, &readings, NULL) < 0)
        return;
    unsigned found =
        follow_check(&(struct follow_scaler){ .by_keda = of == &saturation_scaled_object_resource,
                                              .managed = managed,
                                              .readings = readings,
                                              .has_fallback = r->has_fallback,
                                              .fallback = r->fallback,
                                              .min = r->min });
    for (unsigned bit = 1; bit <= FOLLOW_FALLBACK; bit <<= 1)
        if (found & bit)
            warn_of_mistake(s, of, r, (enum follow_mistake)bit);
}

void saturation_advice_cycle(struct saturation *s)
{
    const struct bounds_record *r;
    cache_each(r, s->hpas)
        check_scaler(s, &resource_hpas, r);
    if (s->scaled_objects)
        cache_each(r, s->scaled_objects)
            check_scaler(s, &saturation_scaled_object_resource, r);
}

void saturation_advice_done(struct saturation *s)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&s->advised, slot));)
        free(slot->value);
    map_done(&s->advised);
    s->advised = (struct map){ 0 };
}
