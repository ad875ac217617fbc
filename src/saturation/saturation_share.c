/* See saturation_share.h.
 *
 *     models of the token analyzer ─► votes ───────────────┐
 *     nodes ─► accelerators of each type, and those in use ─┼─► fair_decide ─► turn->granted
 *     quotas, accelerators that variants have ─────────────┘
 *
 * A share needs the votes of all models at once, so this runs before the decisions about each. What
 * a model gets here is by type of accelerator only. saturation_limits.c still checks whether its pods fit on the
 * nodes, and reports what was cut.
 *
 * Types are compared in upper case: users write the type of a quota, a label and a product by hand.
 * A type that a quota for the cluster does not list is not allowed, so such types get a pool of 0. */
#include "saturation_share.h"

#include "saturation_limits.h"
#include "saturation_tokens.h"

#include <ctype.h>

static str to_upper(struct arena *a, str text)
{
    char *p = arena_alloc(a, text.n + 1);
    for (size_t i = 0; i < text.n; i++)
        p[i] = (char)toupper((unsigned char)text.p[i]);
    p[text.n] = '\0';
    return (str){ p, text.n };
}

/* ---- who takes part */

/* Gathers one model and lets the analyzer vote; NULL: another rule decides, or nothing is known. */
static struct sat_token_turn *prepare_model(struct saturation *s, struct arena *a,
                                            struct sat_model *m)
{
    struct gathering g = {
        .s = s, .m = m, .model = m, .a = a, .now_ns = loop_mono_ns(manager_loop(s->manager))
    };
    if (!m->feed.asked || m->feed.failure || s->no_metrics)
        return NULL;
    g.fresh = g.now_ns - m->feed.fetched_ns <= s->snapshot->ages.fresh_ns;
    saturation_gather(&g);
    if (!g.n || !g.reporting)
        return NULL;
    struct sat_token_turn *turn = saturation_tokens_prepare(&g);
    if (!turn)
        return NULL;
    struct vote_variant *variants = arena_array(a, g.n, sizeof(*variants));
    for (size_t i = 0; i < g.n; i++) {
        variants[i] = turn->vote.variants[i];
        variants[i].accelerator = to_upper(a, saturation_limits_type(s, g.variants[i]));
        variants[i].gpus = saturation_limits_gpus(s, g.variants[i]);
    }
    turn->vote.variants = variants;
    turn->vote.priority = m->priority;
    return turn;
}

/* ---- what is there */

/* Accelerators that variants have or were promised, of each namespace and type. A model that shares counts
 * with what it has: its promise is made again now. */
static struct quota_usage *read_usage(const struct saturation *s, struct arena *a, size_t *ret_n)
{
    struct quota_usage *usage = arena_array(a, s->by_key.n, sizeof(*usage));
    size_t n = 0;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        int64_t has = v->seen_current;
        if (!v->model)
            continue;
        if (!v->model->turn)
            has = MAX(has, (int64_t)v->desired);
        usage[n++] = (struct quota_usage){ v->ns, to_upper(a, saturation_limits_type(s, v)),
                                           has * saturation_limits_gpus(s, v) };
    }
    *ret_n = n;
    return usage;
}

static struct quota_type *find_type(struct quota_type *types, size_t n, str type)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(types[i].type, type))
            return &types[i];
    return NULL;
}

static struct fair_pool *find_pool(struct fair_pool *pools, size_t *n, str type)
{
    for (size_t i = 0; i < *n; i++)
        if (str_eq(pools[i].type, type))
            return &pools[i];
    pools[*n] = (struct fair_pool){ .type = type };
    return &pools[(*n)++];
}

/* Of each type: the accelerators of nodes that a sharing variant can use, less those on which no further replica
 * of it fits now, and those that replicas without a node will take. */
static struct fair_provider stock_provider(struct saturation *s, struct arena *a)
{
    struct gathering g = { .s = s, .a = a };
    struct stock stock = saturation_limits_stock(&g);
    struct fair_pool *pools = arena_array(a, s->by_key.n, sizeof(*pools));
    size_t n = 0;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        if (!v->model || !v->model->turn)
            continue;
        struct stock_room room = saturation_limits_room(&g, &stock, v);
        struct fair_pool *pool = find_pool(pools, &n, to_upper(a, saturation_limits_type(s, v)));
        int64_t free = MAX(pool->limit - pool->used, room.replicas * saturation_limits_gpus(s, v));
        pool->limit = MAX(pool->limit, room.total);
        pool->used = pool->limit - free;
    }
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        if (!v->model)
            continue;
        int64_t has = v->model->turn ? v->seen_current : MAX(v->seen_current, v->desired);
        int64_t coming = MAX(has - saturation_limits_bound(s, v), (int64_t)0);
        str type = to_upper(a, saturation_limits_type(s, v));
        for (size_t i = 0; i < n && coming; i++)
            if (str_eq(pools[i].type, type))
                pools[i].used += coming * saturation_limits_gpus(s, v);
    }
    return (struct fair_provider){ .pools = pools, .pool_n = n };
}

static struct quota_types upper_types(struct arena *a, struct quota_types from,
                                      const struct quota_usage *usage, size_t usage_n, bool closed)
{
    struct quota_type *types = arena_array(a, from.n + usage_n, sizeof(*types));
    size_t n = 0;
    for (size_t i = 0; i < from.n; i++)
        types[n++] = (struct quota_type){ to_upper(a, sat_accelerator_name(from.at[i].type)),
                                          from.at[i].limit };
    for (size_t i = 0; i < usage_n && closed; i++)
        if (!find_type(types, n, usage[i].type))
            types[n++] = (struct quota_type){ usage[i].type, 0 };
    return (struct quota_types){ types, n };
}

static struct fair_provider read_quota(struct arena *a, const struct quota *from,
                                       const struct quota_usage *usage, size_t usage_n)
{
    struct quota *q = arena_new(a, struct quota);
    struct quota_namespace *spaces = arena_array(a, from->namespace_n, sizeof(*spaces));
    *q = *from;
    q->types = upper_types(a, from->types, usage, usage_n, !from->by_namespace);
    for (size_t i = 0; i < from->namespace_n; i++)
        spaces[i] =
            (struct quota_namespace){ from->namespaces[i].ns,
                                      upper_types(a, from->namespaces[i].types, NULL, 0, false) };
    q->namespaces = spaces;
    return quota_provider(a, q, usage, usage_n);
}

static size_t read_providers(struct saturation *s, struct arena *a, const struct sat_policy *policy,
                             struct fair_provider **ret)
{
    const struct quota *quotas;
    size_t quota_n = policy_quotas(a, policy, &quotas), n = 0, usage_n;
    struct quota_usage *usage = read_usage(s, a, &usage_n);
    *ret = arena_array(a, quota_n + 1, sizeof(**ret));
    if (saturation_limits_uses_stock(s, policy))
        (*ret)[n++] = stock_provider(s, a);
    for (size_t i = 0; i < quota_n; i++)
        (*ret)[n++] = read_quota(a, &quotas[i], usage, usage_n);
    return n;
}

/* ---- sharing */

/* The namespaces whose own entry `default` has enableRescale. */
static void read_rescale(const struct saturation *s, struct arena *a,
                         const struct sat_policy *policy, struct fair_input *in)
{
    str *names = arena_array(a, s->snapshot->local_n, sizeof(str));
    in->rescale_cluster = policy->has_rescale && policy->rescale;
    in->rescale_namespaces = names;
    for (size_t i = 0; i < s->snapshot->local_n; i++) {
        const struct sat_local *local = &s->snapshot->locals[i];
        const struct sat_entry *entry = sat_table_find(&local->saturation, S("default"));
        if (entry && entry->policy.has_rescale && entry->policy.rescale)
            names[in->rescale_namespace_n++] = local->ns;
    }
}

void saturation_share_begin(struct saturation *s, struct arena *a, struct sat_model **models,
                            size_t n)
{
    const struct sat_policy *policy = saturation_limits_policy(s);
    if (!policy)
        return;
    struct vote_model *votes = arena_array(a, n, sizeof(*votes));
    struct sat_model **sharing = arena_array(a, n, sizeof(struct sat_model *));
    struct fair_provider *providers;
    size_t sharing_n = 0;
    for (size_t i = 0; i < n; i++) {
        models[i]->turn = prepare_model(s, a, models[i]);
        if (models[i]->turn)
            sharing[sharing_n++] = models[i];
    }
    size_t provider_n = read_providers(s, a, policy, &providers);
    if (!sharing_n || !provider_n) /* no constraint is known: each model alone, by cost */
        return;
    for (size_t i = 0; i < sharing_n; i++)
        votes[i] = sharing[i]->turn->vote;
    struct fair_input in = {
        .models = votes, .model_n = sharing_n, .providers = providers, .provider_n = provider_n
    };
    read_rescale(s, a, policy, &in);
    struct vote_target **targets = fair_decide(a, &in);
    for (size_t i = 0; i < sharing_n; i++)
        sharing[i]->turn->granted = targets[i];
}

void saturation_share_end(struct sat_model **models, size_t n)
{
    for (size_t i = 0; i < n; i++)
        models[i]->turn = NULL;
}
