/* See saturation_limits.h.
 *
 *     nodes, pods ──► saturation_stock.c ──► room of the variant on nodes that fit it ─┐
 *     quotas, other variants ──────────────► room in each quota ───────────────────────┼─► the smallest one
 *     ResourceQuotas of the namespace ─────► room in each of them ─────────────────────┘
 *
 * All limiters compose: the smallest room counts. What other variants were promised but do not have
 * yet is reserved for them. While the nodes cannot be listed the stock does not limit, and a warning
 * explains it; a quota always limits. A change of (wanted, granted) is an event and a count, once. */
#include "saturation_limits.h"

#include "../base/log.h"
#include "saturation_tokens.h"

static const char stock_name[] = "gpu-limiter";

struct limit {
    int64_t most; /* replicas; INT64_MAX: none */
    str by, why;
};

/* The policy of the global default entry; NULL: nothing is limited. WVA_LIMITED_MODE counts where the
 * entry does not set enableLimiter. */
const struct sat_policy *saturation_limits_policy(const struct saturation *s)
{
    const struct sat_entry *entry = sat_table_find(&s->snapshot->saturation, S("default"));
    if (!entry)
        return s->o.limited ? &policy_none : NULL;
    bool on = entry->policy.has_limiter ? entry->policy.limiter : entry->limiter || s->o.limited;
    return on ? &entry->policy : NULL;
}

/* ---- who else needs accelerators */

struct contention {
    int64_t above; /* accelerators that models of higher priority lack */
    int64_t equal; /* variants of other models of the same priority that lack some */
};

/* Whether the accelerators of this cycle were divided among all models of the token analyzer. */
static bool is_shared(const struct variant *v)
{
    return v->model && v->model->turn && v->model->turn->granted;
}

/* Cuts of other models (of a namespace) that are recent: of a model that is no longer decided about
 * they are not. */
static struct contention find_contention(const struct gathering *g, const struct variant *self,
                                         str type, str ns)
{
    const struct saturation *s = g->s;
    struct contention c = { 0 };
    if (is_shared(self)) /* its share is what it may have */
        return c;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        int64_t lacks = v->limited_wants - v->limited_has;
        if (lacks <= 0 || v->model == self->model || (ns.n && !str_eq(v->ns, ns)) ||
            g->now_ns - v->limited_ns > 3 * s->snapshot->interval_ns ||
            !str_eq_nocase(saturation_limits_type(s, v), type))
            continue;
        if (v->model->priority > self->model->priority)
            c.above += lacks * saturation_limits_gpus(s, v);
        else
            c.equal += v->model->priority == self->model->priority;
    }
    return c;
}

/* ---- the stock */

/* Accelerators of a type that other variants were promised and do not occupy yet. */
static int64_t count_reserved(const struct saturation *s, const struct variant *self, str type)
{
    int64_t sum = 0;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        if (v == self || v->desired <= 0 || (is_shared(self) && is_shared(v)) ||
            !str_eq_nocase(saturation_limits_type(s, v), type))
            continue;
        sum += MAX((int64_t)v->desired - saturation_limits_bound(s, v), (int64_t)0) *
               saturation_limits_gpus(s, v);
    }
    return sum;
}

/* The replicas that the free accelerators of the nodes allow: those that run, and those that still fit.
 * What was promised to others and has no pod on a node yet is not free. */
static struct limit limit_by_stock(struct gathering *g, const struct stock *stock,
                                   const struct variant *v)
{
    int64_t each = saturation_limits_gpus(g->s, v);
    str type = saturation_limits_type(g->s, v);
    struct stock_room room = saturation_limits_room(g, stock, v);
    struct contention others = find_contention(g, v, type, S(""));
    int64_t reserved = (count_reserved(g->s, v, type) + others.above) / each;
    int64_t more = MAX(room.replicas - reserved, (int64_t)0);
    struct limit limit = { .by = str_c(stock_name) };
    more = (more + others.equal) / (others.equal + 1); /* a fair share, rounded up */
    limit.most = saturation_limits_bound(g->s, v) + more;
    limit.why =
        arena_printf(g->a, STR_FMT " %lld free of %lld%s", STR_ARG(type), (long long)room.free,
                     (long long)room.total, room.fragmented ? ", but no node has enough" : "");
    if (others.above)
        limit.why = arena_printf(g->a, STR_FMT ", %lld wanted by models of higher priority",
                                 STR_ARG(limit.why), (long long)others.above);
    if (room.excluded)
        limit.why = arena_printf(g->a, STR_FMT ", %lld on nodes that are %s", STR_ARG(limit.why),
                                 (long long)room.excluded, room.why);
    return limit;
}

/* ---- quotas */

/* The replicas that a quota leaves to a variant. What others have or were promised counts as used,
 * whichever is more: a promise is kept even if its pods are not there yet. */
static struct limit limit_by_quota(struct gathering *g, const struct quota *q,
                                   const struct variant *v)
{
    struct limit limit = { INT64_MAX, q->name, S("") };
    if (quota_excludes(q, v->ns))
        return limit;
    struct quota_types types = q->by_namespace ? quota_for_namespace(q, v->ns) : q->types;
    str type = saturation_limits_type(g->s, v);
    int64_t most = 0, used = 0;
    for (size_t i = 0; i < types.n; i++)
        if (str_eq_nocase(sat_accelerator_name(types.at[i].type), type))
            most = types.at[i].limit;
    if (most == QUOTA_UNLIMITED)
        return limit;
    for (struct map_slot *slot = NULL; (slot = map_next(&g->s->by_key, slot));) {
        const struct variant *x = slot->value;
        if (x == v || (q->by_namespace && !str_eq(x->ns, v->ns)) ||
            !str_eq_nocase(saturation_limits_type(g->s, x), type))
            continue;
        bool promised = !is_shared(v) || !is_shared(x);
        used += (int64_t)MAX(promised ? x->desired : 0, x->seen_current) *
                saturation_limits_gpus(g->s, x);
    }
    struct contention others = find_contention(g, v, type, q->by_namespace ? v->ns : S(""));
    int64_t has = v->seen_current;
    int64_t more =
        MAX(most - used - others.above, (int64_t)0) / saturation_limits_gpus(g->s, v) - has;
    limit.most = has + (MAX(more, (int64_t)0) + others.equal) / (others.equal + 1);
    limit.why = arena_printf(g->a, STR_FMT " quota %lld, %lld used by others", STR_ARG(type),
                             (long long)most, (long long)used);
    return limit;
}

/* ---- ResourceQuotas */

struct quota_record {
    struct record meta;
    int64_t hard[GPU_RESOURCE_N], used[GPU_RESOURCE_N]; /* milli; hard -1: not limited */
    bool has_scopes, has_selector;
};

#define AT(member) offsetof(struct quota_record, member)
#define QUOTA(resource, i)                                                                         \
    { "status.hard[\"requests." resource "\"]", F_MILLI, AT(hard[i]), .otherwise = -1 },           \
    {                                                                                              \
        "status.used[\"requests." resource "\"]", F_MILLI, AT(used[i])                             \
    }

static const struct field quota_fields[] = {
    QUOTA("nvidia.com/gpu", 0),
    QUOTA("amd.com/gpu", 1),
    QUOTA("habana.ai/gaudi", 2),
    QUOTA("gpu.intel.com/i915", 3),
    QUOTA("gpu.intel.com/xe", 4),
    QUOTA("intel.com/gpu", 5),
    { "spec.scopes", F_HAS, AT(has_scopes) },
    { "spec.scopeSelector", F_HAS, AT(has_selector) },
};
static const struct fields quota_kept = { sizeof(struct quota_record), quota_fields,
                                          countof(quota_fields) };
static const struct resource resource_quotas = { "", "v1", "resourcequotas", "ResourceQuota",
                                                 true };
static const struct cache_spec quota_cache = { .resource = &resource_quotas,
                                               .need = CACHE_IF_ALLOWED,
                                               .keep = &quota_kept };

static void watch_quotas(struct saturation *s)
{
    err_t e;
    if (!s->quotas && !s->o.ignores_resource_quota &&
        manager_cache(s->manager, &quota_cache, &s->quotas, &e) < 0)
        log_error("cannot watch ResourceQuotas", KV_C("error", e.text));
}

static int64_t requested(const struct workload_record *w, size_t i)
{
    int64_t workers = MAX(w->group_size - 1, (int64_t)0);
    const int64_t *first = w->has_leader ? w->leader_milli : w->gpu_milli;
    return first[i] + workers * w->gpu_milli[i];
}

/* Of a resource: what other variants of the namespace were promised and have no pods for. */
static int64_t count_promised(const struct saturation *s, const struct variant *self, size_t i)
{
    int64_t sum = 0;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        const struct workload_record *w = saturation_get_workload(s, v);
        if (v != self && w && str_eq(v->ns, self->ns) && v->desired > v->seen_current)
            sum += (v->desired - v->seen_current) * requested(w, i);
    }
    return sum;
}

/* The API server refuses pods beyond the quotas of their namespace, so more replicas would only be missing. Those
 * with scopes are ignored: whether they count a pod depends on more than its requests. */
static struct limit limit_by_resource_quota(struct gathering *g, const struct variant *v)
{
    struct saturation *s = g->s;
    const struct workload_record *w = saturation_get_workload(s, v);
    struct limit least = { .most = INT64_MAX, .by = S("resource-quota") };
    const struct quota_record *q;
    if (!w || !s->quotas || !cache_synced(s->quotas))
        return least;
    cache_each(q, s->quotas)
        for (size_t i = 0; i < GPU_RESOURCE_N; i++) {
            int64_t each = requested(w, i);
            if (!each || q->hard[i] < 0 || q->has_scopes || q->has_selector ||
                !str_eq(q->meta.ns, v->ns))
                continue;
            int64_t left = MAX(q->hard[i] - q->used[i] - count_promised(s, v, i), (int64_t)0);
            if (v->seen_current + left / each >= least.most)
                continue;
            least.most = v->seen_current + left / each;
            least.why = arena_printf(g->a, "ResourceQuota " STR_FMT " has %lld of %lld left",
                                     STR_ARG(q->meta.name), (long long)(left / 1000),
                                     (long long)(q->hard[i] / 1000));
        }
    return least;
}

/* The tightest of all limits but the stock. */
static struct limit limit_by_quotas(struct gathering *g, const struct quota *quotas, size_t n,
                                    const struct variant *v, struct limit least)
{
    for (size_t q = 0; q <= n; q++) {
        if (q == n && g->s->o.ignores_resource_quota)
            break;
        struct limit limit =
            q < n ? limit_by_quota(g, &quotas[q], v) : limit_by_resource_quota(g, v);
        least = limit.most < least.most ? limit : least;
    }
    return least;
}

/* ---- the order of models */

/* Equals by key, so that the order does not depend on the hash table. */
static int by_priority(const void *a, const void *b)
{
    const struct sat_model *x = *(struct sat_model *const *)a, *y = *(struct sat_model *const *)b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return strcmp(x->key, y->key);
}

struct sat_model **saturation_limits_order(struct saturation *s, struct arena *a)
{
    struct sat_model **models = arena_array(a, s->models.n, sizeof(struct sat_model *));
    const struct sat_policy *policy = saturation_limits_policy(s);
    bool limited = policy != NULL;
    size_t n = 0;
    saturation_limits_learn(s, policy);
    if (limited) /* early: a decision must not find the cache empty */
        watch_quotas(s);
    for (struct map_slot *slot = NULL; (slot = map_next(&s->models, slot));)
        models[n++] = slot->value;
    for (size_t i = 0; limited && i < n; i++) {
        struct sat_lookup q = { models[i]->id, models[i]->ns, NULL, 0 };
        struct sat_resolved r = sat_snapshot_resolve(s->snapshot, &q);
        models[i]->priority =
            r.policy.has_priority && r.policy.priority > 0 ? r.policy.priority : 1;
    }
    if (limited && n)
        qsort(models, n, sizeof(struct sat_model *), by_priority);
    return models;
}

/* ---- applying */

static void report_limit(struct saturation *s, struct variant *v, const struct limit *limit,
                         str message)
{
    metric_add(METRIC(s->metrics.limited, v->name, v->ns, limit->by, s->metrics.instance), 1);
    saturation_emit(s, v, true, "ResourceConstrained", message);
}

/* Of a model with a share the target is what it got, which may be less. */
static int wants_of(const struct gathering *g, size_t i, const struct decide_answer *x)
{
    const struct sat_token_turn *turn = g->model->turn;
    if (!is_shared(g->variants[i]) || !turn->wanted)
        return x->target;
    int64_t wanted = MIN(turn->wanted[i].replicas, (int64_t)SAT_REPLICAS_MAX);
    return MAX(x->target, sat_clamp_to_bounds(&g->states[i], (int)wanted));
}

/* Cuts a target, never below what runs: a limiter does not remove replicas. Reported once per change
 * of what is wanted or given. */
static void apply_limit(struct gathering *g, size_t i, struct decide_answer *x,
                        const struct limit *limit)
{
    struct variant *v = g->variants[i];
    int wants = wants_of(g, i, x),
        has = (int)MAX((int64_t)x->current, MIN((int64_t)x->target, limit->most));
    bool cut = has < wants && x->target >= x->current;
    bool changed = cut && (v->limited_wants != wants || v->limited_has != has);
    v->limited_wants = cut ? wants : 0;
    v->limited_has = cut ? has : 0;
    v->limited_ns = g->now_ns;
    if (!cut)
        return;
    str message = arena_printf(g->a, "wants %d, may have %d: " STR_FMT " (limited by " STR_FMT ")",
                               wants, has, STR_ARG(limit->why), STR_ARG(limit->by));
    x->target = has;
    x->limited = message;
    x->reason = arena_printf(g->a, STR_FMT "; " STR_FMT, STR_ARG(x->reason), STR_ARG(message));
    if (changed)
        report_limit(g->s, v, limit, message);
}

static bool any_grows(const struct gathering *g, const struct decide_answers *answers)
{
    bool any = false;
    for (size_t i = 0; i < answers->n; i++) {
        bool grows = wants_of(g, i, &answers->at[i]) > answers->at[i].current;
        if (!grows)
            g->variants[i]->limited_wants = g->variants[i]->limited_has = 0;
        any |= grows;
    }
    return any;
}

struct sat_condition saturation_limits_condition(struct variant *v, const struct decide_answer *x)
{
    bool limited = x->limited.n > 0;
    v->was_limited |= limited;
    return (struct sat_condition){ .known = v->was_limited,
                                   .holds = limited,
                                   .reason = limited ? "GPULimited" : "NotLimited",
                                   .message =
                                       limited ? x->limited : S("No limiter reduces the target") };
}

bool saturation_limits_most(struct gathering *g, const struct variant *v, int *ret)
{
    const struct sat_policy *policy = saturation_limits_policy(g->s);
    const struct quota *quotas;
    struct limit least = { .most = INT64_MAX };
    *ret = 0;
    if (!policy)
        return false;
    size_t quota_n = policy_quotas(g->a, policy, &quotas);
    if (saturation_limits_uses_stock(g->s, policy)) {
        struct stock stock = saturation_limits_stock(g);
        least = limit_by_stock(g, &stock, v);
    }
    least = limit_by_quotas(g, quotas, quota_n, v, least);
    *ret = (int)MIN(least.most, (int64_t)SAT_REPLICAS_MAX);
    return least.most != INT64_MAX;
}

struct limit_check saturation_limits_check(struct gathering *g, const struct variant *v)
{
    const struct sat_policy *policy = saturation_limits_policy(g->s);
    const struct quota *quotas;
    struct limit_check check = { .has_room = true };
    if (!policy)
        return check;
    size_t quota_n = policy_quotas(g->a, policy, &quotas);
    struct limit none = { .most = INT64_MAX };
    check.forbidden = limit_by_quotas(g, quotas, quota_n, v, none).most < 1;
    if (saturation_limits_uses_stock(g->s, policy)) {
        struct stock stock = saturation_limits_stock(g);
        check.has_room = limit_by_stock(g, &stock, v).most >= 1;
    }
    return check;
}

void saturation_limits_apply(struct gathering *g, struct decide_answers *answers)
{
    const struct sat_policy *policy = saturation_limits_policy(g->s);
    const struct quota *quotas;
    if (!policy || !any_grows(g, answers))
        return;
    size_t quota_n = policy_quotas(g->a, policy, &quotas);
    bool by_stock = saturation_limits_uses_stock(g->s, policy);
    struct stock stock = by_stock ? saturation_limits_stock(g) : (struct stock){ 0 };
    for (size_t i = 0; i < answers->n; i++) {
        struct decide_answer *x = &answers->at[i];
        struct limit least = { INT64_MAX, S("fair-share"), S("the rest is for other models") };
        if (wants_of(g, i, x) <= x->current)
            continue;
        if (by_stock)
            least = limit_by_stock(g, &stock, g->variants[i]);
        least = limit_by_quotas(g, quotas, quota_n, g->variants[i], least);
        apply_limit(g, i, x, &least);
    }
}
