/* Limits on accelerators per cluster or namespace; see quota_core.h.
 *
 * A replica needs all its accelerators, so grants are whole replicas; what is left of a grant that is not
 * enough for one more replica is not offered to others in the same cycle, as in limiter_core.c. Decisions are
 * served in the order of need: the most saturated model first, then the cheapest. Several quotas apply one
 * after the other, each to what the ones before it left.
 *
 * The same quotas are also providers for fair sharing (fair_core.h): pools with a limit and what is used of it.
 * Reasons are quoted: WVA. */
#include "quota_core.h"

#include <inttypes.h>

bool quota_excludes(const struct quota *q, str ns)
{
    for (size_t i = 0; q->by_namespace && i < q->exclude_n; i++)
        if (str_eq(q->exclude[i], ns))
            return true;
    return false;
}

struct quota_types quota_for_namespace(const struct quota *q, str ns)
{
    struct quota_types otherwise = { 0 };
    for (size_t i = 0; i < q->namespace_n; i++) {
        if (str_eq(q->namespaces[i].ns, ns))
            return q->namespaces[i].types;
        if (str_eqc(q->namespaces[i].ns, "default"))
            otherwise = q->namespaces[i].types;
    }
    return otherwise;
}

static const struct quota_type *find_type(struct quota_types types, str type)
{
    for (size_t i = 0; i < types.n; i++)
        if (str_eq(types.at[i].type, type))
            return &types.at[i];
    return NULL;
}

/* ---- as a provider */

static int64_t used_in(const struct quota_usage *usage, size_t n, const str *ns, str type)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        if (str_eq(usage[i].type, type) && (!ns || str_eq(usage[i].ns, *ns)))
            sum += usage[i].gpus;
    return sum;
}

static struct fair_pool *make_pools(struct arena *a, struct quota_types types,
                                    const struct quota_usage *usage, size_t usage_n, const str *ns)
{
    struct fair_pool *pools = arena_array(a, types.n, sizeof(*pools));
    for (size_t i = 0; i < types.n; i++)
        pools[i] = (struct fair_pool){ types.at[i].type, types.at[i].limit,
                                       used_in(usage, usage_n, ns, types.at[i].type) };
    return pools;
}

/* Adds the finite pools of one namespace to the sums of the cluster. */
static void add_pools(struct fair_pool *sums, size_t *n, const struct fair_pool *pools,
                      size_t pool_n)
{
    for (size_t i = 0; i < pool_n; i++) {
        if (pools[i].limit < 0)
            continue;
        size_t at = 0;
        while (at < *n && !str_eq(sums[at].type, pools[i].type))
            at++;
        if (at == *n)
            sums[(*n)++] = (struct fair_pool){ .type = pools[i].type };
        sums[at].limit += pools[i].limit;
        sums[at].used += pools[i].used;
    }
}

static bool is_listed(const struct fair_namespace *list, size_t n, str ns)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i].ns, ns))
            return true;
    return false;
}

/* The namespaces that the quota governs: those in use, or if it excludes all of them, those that it
 * names. */
static size_t list_governed(struct arena *a, const struct quota *q, const struct quota_usage *usage,
                            size_t usage_n, struct fair_namespace *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < usage_n; i++) {
        str ns = usage[i].ns;
        if (quota_excludes(q, ns) || is_listed(ret, n, ns))
            continue;
        struct quota_types types = quota_for_namespace(q, ns);
        ret[n++] =
            (struct fair_namespace){ ns, make_pools(a, types, usage, usage_n, &ns), types.n };
    }
    return n;
}

struct fair_provider quota_provider(struct arena *a, const struct quota *q,
                                    const struct quota_usage *usage, size_t usage_n)
{
    if (!q->by_namespace)
        return (struct fair_provider){ .pools = make_pools(a, q->types, usage, usage_n, NULL),
                                       .pool_n = q->types.n };
    struct fair_namespace *spaces =
        arena_array(a, usage_n + q->namespace_n, sizeof(struct fair_namespace));
    size_t space_n = list_governed(a, q, usage, usage_n, spaces), all = space_n, most = 0, n = 0;
    for (size_t i = 0; i < q->namespace_n && !space_n; i++) {
        const struct quota_namespace *s = &q->namespaces[i];
        if (!str_eqc(s->ns, "default") && !quota_excludes(q, s->ns))
            spaces[all++] =
                (struct fair_namespace){ s->ns, make_pools(a, s->types, usage, usage_n, &s->ns),
                                         s->types.n };
    }
    for (size_t i = 0; i < all; i++)
        most += spaces[i].pool_n;
    struct fair_pool *sums = arena_array(a, most, sizeof(*sums));
    for (size_t i = 0; i < all; i++)
        add_pools(sums, &n, spaces[i].pools, spaces[i].pool_n);
    return (struct fair_provider){ sums, n, spaces, space_n };
}

/* ---- limiting decisions */

static bool is_resolved(str accelerator)
{
    return accelerator.n && !str_eqc(accelerator, "unknown") && !str_eqc(accelerator, "unresolved");
}

/* The only type of a quota; "": none or several. Entries without a limit name a type only for the
 * cluster. */
static str only_type(const struct quota *q)
{
    str only = S("");
    size_t lists = q->by_namespace ? q->namespace_n : 1;
    for (size_t i = 0; i < lists; i++) {
        struct quota_types types = q->by_namespace ? q->namespaces[i].types : q->types;
        if (q->by_namespace &&
            (str_eqc(q->namespaces[i].ns, "default") || quota_excludes(q, q->namespaces[i].ns)))
            continue;
        for (size_t t = 0; t < types.n; t++) {
            if (q->by_namespace && types.at[t].limit == QUOTA_UNLIMITED)
                continue;
            if (only.n && !str_eq(only, types.at[t].type))
                return S("");
            only = types.at[t].type;
        }
    }
    return only;
}

struct limiting {
    struct arena *arena;
    const struct quota *quota;
    struct quota_usage *usage; /* one for each decision, then one for each grant */
    size_t usage_n;
};

static void add_step(struct limiting *l, struct quota_decision *d, str reason, bool constrained)
{
    d->steps[d->step_n++] = (struct quota_step){ l->quota->name, reason, constrained };
}

/* Accelerators that the quota grants of those that are wanted. */
static int64_t grant(struct limiting *l, const struct quota_decision *d, int64_t wanted)
{
    const struct quota *q = l->quota;
    if (quota_excludes(q, d->ns))
        return wanted;
    const struct quota_type *type =
        find_type(q->by_namespace ? quota_for_namespace(q, d->ns) : q->types, d->accelerator);
    if (!type)
        return 0;
    if (type->limit == QUOTA_UNLIMITED)
        return wanted;
    int64_t used = used_in(l->usage, l->usage_n, q->by_namespace ? &d->ns : NULL, d->accelerator);
    int64_t granted = MIN(wanted, MAX(type->limit - used, (int64_t)0));
    l->usage[l->usage_n++] = (struct quota_usage){ d->ns, d->accelerator, granted };
    return granted;
}

static str limit_reason(struct limiting *l, const struct quota_decision *d)
{
    const char *scope = l->quota->by_namespace ? "namespace" : "cluster";
    if (!d->accelerator.n)
        return arena_printf(l->arena, "denied by quota[scope=%s]: accelerator type unresolved",
                            scope);
    if (l->quota->by_namespace)
        return arena_printf(l->arena,
                            "limited by quota[scope=namespace, namespace=" STR_FMT ", type=" STR_FMT
                            "]",
                            STR_ARG(d->ns), STR_ARG(d->accelerator));
    return arena_printf(l->arena, "limited by quota[scope=cluster, type=" STR_FMT "]",
                        STR_ARG(d->accelerator));
}

/* Bounds one decision, most of all by the quota. */
static void limit_decision(struct limiting *l, struct quota_decision *d)
{
    if (d->max > 0)
        d->target = MIN(d->target, d->max);
    int64_t needed = d->target - d->current, each = MAX(d->gpus, (int64_t)1);
    if (needed <= 0)
        return;
    int64_t wanted = needed * each, granted = d->accelerator.n ? grant(l, d, wanted) : 0;
    if (granted < wanted)
        add_step(l, d, limit_reason(l, d), true);
    int64_t replicas = granted / each;
    d->granted = replicas * each;
    d->target = MAX(d->current + replicas, d->min);
    d->limited |= replicas < needed;
}

static str describe_grant(struct limiting *l, const struct quota_decision *d, bool reduced)
{
    if (d->target <= d->current)
        return arena_printf(l->arena, "no scale-up (target=%" PRId64 ", current=%" PRId64 ")",
                            d->target, d->current);
    return arena_printf(l->arena, "%sallocated %" PRId64 " GPUs for +%" PRId64 " replicas",
                        reduced ? "limited: " : "", d->granted, d->target - d->current);
}

/* Most saturated first, then cheapest, then as listed. */
static int by_need(const void *a, const void *b)
{
    const struct quota_decision *x = *(struct quota_decision *const *)a,
                                *y = *(struct quota_decision *const *)b;
    if (x->spare != y->spare)
        return x->spare < y->spare ? -1 : 1;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* One quota over all decisions. Usage starts with what runs now; each grant adds to it. */
static void apply_quota(struct limiting *l, struct quota_decision *decisions, size_t n,
                        bool keep_current)
{
    struct quota_decision **growing = arena_array(l->arena, n, sizeof(*growing));
    int64_t *before = arena_array(l->arena, n, sizeof(*before));
    bool *limited = arena_array(l->arena, n, sizeof(*limited));
    str only = only_type(l->quota);
    size_t growing_n = 0;
    for (size_t i = 0; i < n; i++) {
        struct quota_decision *d = &decisions[i];
        if (only.n && !is_resolved(d->accelerator))
            d->accelerator = only;
        if (d->accelerator.n && (d->ns.n || !l->quota->by_namespace))
            l->usage[l->usage_n++] =
                (struct quota_usage){ d->ns, d->accelerator, d->current * d->gpus };
        before[i] = d->target;
        limited[i] = d->limited;
        if (d->target > d->current)
            growing[growing_n++] = d;
    }
    qsort(growing, growing_n, sizeof(*growing), by_need);
    for (size_t i = 0; i < growing_n; i++) {
        limit_decision(l, growing[i]);
        if (keep_current)
            growing[i]->target = MAX(growing[i]->target, growing[i]->current);
    }
    for (size_t i = 0; i < n; i++) {
        struct quota_decision *d = &decisions[i];
        if (d->limited && !limited[i])
            d->limited_by = l->quota->name;
        bool reduced = d->limited && d->target < before[i];
        add_step(l, d, describe_grant(l, d, reduced), reduced);
    }
}

void quota_limit(struct arena *a, const struct quota *quotas, size_t quota_n,
                 struct quota_decision *decisions, size_t n, bool keep_current)
{
    for (size_t i = 0; i < n; i++)
        decisions[i].steps = arena_array(a, 2 * quota_n, sizeof(struct quota_step));
    for (size_t q = 0; q < quota_n; q++) {
        struct limiting l = { a, &quotas[q], arena_array(a, 2 * n, sizeof(struct quota_usage)), 0 };
        apply_quota(&l, decisions, n, keep_current);
    }
}
