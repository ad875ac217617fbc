/* The index of schedules: see schedule_targets.h.
 *
 *     by_key     "shop/web"       -> schedule_tracked
 *     by_target  "shop/web-hpa"   -> first --next--> second      all with the same target
 *
 * Keys are owned by the entries and borrowed by the maps, so an entry that heads a list is replaced in the map before
 * it is freed. */
#include "schedule_targets.h"

#include "../base/clock.h"

static str make_key(struct arena *a, str ns, str name)
{
    return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name));
}

/* Looks up "namespace/name" without an allocation: this runs for every HPA event. */
static void *find_by_key(const struct map *m, str ns, str name)
{
    char small[600];
    if (ns.n + 1 + name.n > sizeof(small)) /* longer than any valid name */
        return NULL;
    memcpy(small, ns.p, ns.n);
    small[ns.n] = '/';
    memcpy(small + ns.n + 1, name.p, name.n);
    return map_get(m, (str){ small, ns.n + 1 + name.n });
}

void schedule_echo_clear(struct schedule_echo *e)
{
    free(e->before_rv);
    free(e->status);
    free(e->baseline);
    *e = (struct schedule_echo){ 0 };
}

bool schedule_echo_is_current(struct schedule_echo *e, str cached_rv)
{
    if (!e->before_rv)
        return false;
    if (str_eqc(cached_rv, e->before_rv))
        return true;
    schedule_echo_clear(e);
    return false;
}

/* Removes the entry from the list of its target. */
static void unlink_target(struct schedule_targets *t, struct schedule_tracked *one)
{
    if (!one->target_key)
        return;
    str key = str_c(one->target_key);
    struct schedule_tracked *first = map_get(&t->by_target, key);
    if (first == one) {
        map_del(&t->by_target, key);
        if (one->next) /* the map borrows the key of its first entry */
            map_put(&t->by_target, str_c(one->next->target_key), one->next);
    } else {
        while (first->next != one)
            first = first->next;
        first->next = one->next;
    }
    one->next = NULL;
    t->cross_namespace -= schedule_is_cross_namespace(one);
    one->target_ns = one->target_name = (str){ 0 };
    one->consent_epoch = 0;
    free(take(one->target_key));
}

static void link_target(struct schedule_targets *t, struct schedule_tracked *one, str key,
                        size_t ns_n)
{
    one->target_key = mem_dup(key.p, key.n);
    one->target_ns = (str){ one->target_key, ns_n };
    one->target_name = str_from(str_c(one->target_key), ns_n + 1);
    t->cross_namespace += schedule_is_cross_namespace(one);
    one->next = map_get(&t->by_target, key);
    map_put(&t->by_target, str_c(one->target_key), one);
}

static void free_tracked(struct schedule_tracked *one)
{
    schedule_echo_clear(&one->own);
    schedule_echo_clear(&one->hpa);
    free(one->key);
    free(one->target_key);
    free(one->workload_kind);
    free(one->discovery_failure);
    free(one->active);
    free(one->advice);
    free(one->learned);
    free(one);
}

void schedule_targets_done(struct schedule_targets *t)
{
    for (struct map_slot *s = NULL; (s = map_next(&t->by_key, s));)
        free_tracked(s->value);
    map_done(&t->by_key);
    map_done(&t->by_target);
}

struct schedule_tracked *schedule_targets_find(const struct schedule_targets *t, str ns, str name)
{
    return find_by_key(&t->by_key, ns, name);
}

struct schedule_tracked *schedule_targets_of(const struct schedule_targets *t, str ns, str name)
{
    return find_by_key(&t->by_target, ns, name);
}

/* Reads the spec only for the target, so no zone is looked up. */
struct schedule_tracked *schedule_targets_put(struct schedule_targets *t,
                                              const struct schedule_record *r)
{
    auto_arena struct arena a = { 0 };
    str ns = r->meta.ns, name = r->meta.name;
    struct schedule_tracked *one = schedule_targets_find(t, ns, name);
    if (!one) {
        str key = make_key(&a, ns, name);
        one = mem_zero(1, sizeof(*one));
        one->key = mem_dup(key.p, key.n);
        one->ns = (str){ one->key, ns.n };
        one->name = (str){ one->key + ns.n + 1, name.n };
        map_put(&t->by_key, str_c(one->key), one);
    }
    one->created = r->created_ns / NS_PER_S;
    one->deleting = r->deleting;
    struct json *spec = NULL;
    json_parse(&a, r->spec, &spec, NULL);
    struct schedule_spec *read = schedule_spec_read(&a, spec, (struct schedule_defaults){ 0 });
    struct schedule_target target = schedule_target(&a, read, ns, name);
    str key = target.name.n ? make_key(&a, target.ns, target.name) : S("");
    if (!str_eq(key, str_c(one->target_key))) {
        unlink_target(t, one);
        schedule_echo_clear(&one->hpa);
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

static bool is_older(const struct schedule_tracked *x, const struct schedule_tracked *y)
{
    return x->created != y->created ? x->created < y->created
                                    : str_cmp(str_c(x->key), str_c(y->key)) < 0;
}

/* Consent depends on the namespace only, so it is evaluated once for consecutive schedules of one namespace: a
 * thousand of another tenant cost no more than one. */
const struct schedule_tracked *schedule_targets_find_older(const struct schedule_targets *t,
                                                           const struct schedule_tracked *one,
                                                           schedule_can_govern_fn *may_govern,
                                                           void *context)
{
    const struct schedule_tracked *oldest = NULL;
    str asked_ns = S("");
    bool may = false;
    if (!one->target_key)
        return NULL;
    for (const struct schedule_tracked *other = map_get(&t->by_target, str_c(one->target_key));
         other; other = other->next) {
        if (other == one || other->deleting || !is_older(other, one) ||
            (oldest && !is_older(other, oldest)))
            continue;
        if (!str_eq(other->ns, asked_ns)) {
            asked_ns = other->ns;
            may = may_govern(context, asked_ns);
        }
        oldest = may ? other : oldest;
    }
    return oldest;
}
