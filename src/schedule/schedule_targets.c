/* The index of schedules: see schedule_targets.h.
 *
 *     by_key     "shop/web"       -> schedule_tracked
 *     by_target  "shop/web-hpa"   -> schedule_shared -> list of schedule_tracked, all with the same target
 *
 * Keys are owned by the entries and borrowed by the maps. */
#include "schedule_targets.h"

#include "../base/clock.h"
#include "../kube/object_key.h"

/* Removes the entry from the list of its target. */
static void unlink_target(struct schedule_targets *t, struct schedule_tracked *one)
{
    t->cross_namespace -= schedule_is_cross_namespace(one);
    one->consent_epoch = 0;
    struct schedule_shared *shared = take(one->target);
    if (!shared)
        return;
    list_remove(&one->of_target);
    if (shared->schedules.n)
        return;
    map_del(&t->by_target, str_c(shared->key));
    free(shared);
}

bool schedule_targets_is_older(const struct schedule_tracked *x, const struct schedule_tracked *y)
{
    return x->created != y->created ? x->created < y->created
                                    : str_cmp(str_c(x->key), str_c(y->key)) < 0;
}

/* Oldest first. Schedules usually arrive in the order of their age or name, so the search begins at the end. */
static void insert_by_age(struct list *schedules, struct schedule_tracked *one)
{
    struct list_item *before = NULL;
    for (struct list_item *at = schedules->last; at; at = at->previous) {
        if (schedule_targets_is_older(list_owner(at, struct schedule_tracked, of_target), one))
            break;
        before = at;
    }
    list_insert(schedules, &one->of_target, before);
}

static void link_target(struct schedule_targets *t, struct schedule_tracked *one, str key,
                        size_t ns_n)
{
    struct schedule_shared *shared = map_get(&t->by_target, key);
    if (!shared) {
        shared = mem_zero(1, sizeof(*shared) + key.n + 1);
        memcpy(shared->key, key.p, key.n);
        shared->ns = (str){ shared->key, ns_n };
        shared->name = str_from(str_c(shared->key), ns_n + 1);
        map_put(&t->by_target, str_c(shared->key), shared);
    }
    one->target = shared;
    insert_by_age(&shared->schedules, one);
    t->cross_namespace += schedule_is_cross_namespace(one);
}

static void free_tracked(struct schedule_tracked *one)
{
    own_write_done(&one->status);
    own_write_done(&one->hpa);
    free(one->key);
    free(one->workload_kind);
    free(one->discovery_failure);
    free(one->active);
    free(one->advice);
    free(one->advice_problem);
    free(one->learned);
    free(one);
}

void schedule_targets_done(struct schedule_targets *t)
{
    for (struct map_slot *s = NULL; (s = map_next(&t->by_key, s));) {
        unlink_target(t, s->value);
        free_tracked(s->value);
    }
    map_done(&t->by_key);
    map_done(&t->by_target);
}

struct schedule_tracked *schedule_targets_find(const struct schedule_targets *t, str ns, str name)
{
    return object_key_find(&t->by_key, ns, name);
}

const struct list *schedule_targets_of(const struct schedule_targets *t, str ns, str name)
{
    static const struct list none = { 0 };
    const struct schedule_shared *shared = object_key_find(&t->by_target, ns, name);
    return shared ? &shared->schedules : &none;
}

/* Reads the spec only for the target, so no zone is looked up. */
struct schedule_tracked *schedule_targets_put(struct schedule_targets *t,
                                              const struct schedule_record *r)
{
    auto_arena struct arena a = { 0 };
    str ns = r->meta.ns, name = r->meta.name;
    struct schedule_tracked *one = schedule_targets_find(t, ns, name);
    if (!one) {
        one = mem_zero(1, sizeof(*one));
        one->key = object_key_new(ns, name, &one->ns, &one->name);
        map_put(&t->by_key, str_c(one->key), one);
    }
    one->created = r->created_ns / NS_PER_S;
    one->deleting =
        r->deleting && str_find(r->finalizers, S("\"" SCHEDULE_FINALIZER "\"")) == SIZE_MAX;
    one->uses_calendars = str_find(r->spec, S("DatesFrom\"")) != SIZE_MAX;
    struct json *spec = NULL;
    json_parse(&a, r->spec, &spec, NULL);
    struct schedule_spec *read = schedule_spec_read(&a, spec, (struct schedule_defaults){ 0 });
    struct schedule_target target = schedule_target(&a, read, ns, name);
    one->kind = target.kind;
    one->workload_hash = map_hash(target.kind_name);
    str key = target.name.n
                  ? arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(target.ns), STR_ARG(target.name))
                  : S("");
    if (!str_eq(key, one->target ? str_c(one->target->key) : S(""))) {
        unlink_target(t, one);
        own_write_done(&one->hpa);
        if (key.n)
            link_target(t, one, key, target.ns.n);
    }
    return one;
}

void schedule_targets_drop(struct schedule_targets *t, str ns, str name)
{
    struct schedule_tracked *one = schedule_targets_find(t, ns, name);
    if (!one)
        return;
    unlink_target(t, one);
    schedule_targets_keep_zero(t, one, false);
    map_del(&t->by_key, str_c(one->key));
    free_tracked(one);
}

void schedule_targets_keep_zero(struct schedule_targets *t, struct schedule_tracked *one,
                                bool keeps_zero)
{
    t->zero_keepers = t->zero_keepers + keeps_zero - one->keeps_zero;
    one->keeps_zero = keeps_zero;
}

bool schedule_targets_conflict(const struct schedule_tracked *one,
                               const struct schedule_tracked *other)
{
    bool is_other_kind = one->kind == SCHEDULE_TARGET_WORKLOAD &&
                         other->kind == SCHEDULE_TARGET_WORKLOAD &&
                         one->workload_hash != other->workload_hash;
    return !is_other_kind &&
           (other->kind == SCHEDULE_TARGET_HPA || !schedule_is_cross_namespace(other));
}

/* Consent depends on the namespace only, so it is evaluated once for consecutive schedules of one namespace: a
 * thousand of another tenant cost no more than one. */
const struct schedule_tracked *schedule_targets_find_older(const struct schedule_tracked *one,
                                                           schedule_can_govern_fn *may_govern,
                                                           void *context)
{
    str asked_ns = S("");
    bool may = false;
    if (!one->target)
        return NULL;
    list_each(const struct schedule_tracked, other, &one->target->schedules, of_target) {
        if (other == one)
            return NULL; /* the rest is younger */
        if (other->deleting || !schedule_targets_conflict(one, other))
            continue;
        if (!str_eq(other->ns, asked_ns)) {
            asked_ns = other->ns;
            may = may_govern(context, asked_ns);
        }
        if (may)
            return other;
    }
    return NULL;
}
