/* Fair shares: see fair_core.h.
 *
 *     providers ─► what is free, per type, in the cluster and in namespaces with a quota
 *     models    ─► fair_rescale() for contended budgets where it is enabled
 *               ─► the others: those in need share what is free, the rest may shrink
 *
 * A model's claim is its need times its priority. In each round the model with the largest claim
 * grows until its claim is the mean of all; a model that cannot grow leaves the round. The order of
 * operations is WVA's, whose vectors in test/golden compare every target. */
#include "fair_parts_core.h"

#include <math.h>

struct fair_home *fair_home_find(const struct fair_free *available, str ns)
{
    for (size_t i = 0; i < available->home_n; i++)
        if (str_eq(available->homes[i].ns, ns))
            return &available->homes[i];
    return NULL;
}

/* ---- what is free */

static struct vote_budget *find_or_add(struct vote_budgets *budgets, str type, bool *ret_new)
{
    struct vote_budget *b = vote_budget_find(budgets, type);
    *ret_new = !b;
    if (!b) {
        b = &budgets->at[budgets->n++];
        *b = (struct vote_budget){ type, VOTE_UNLIMITED };
    }
    return b;
}

static void limit_cluster(struct vote_budgets *budgets, const struct fair_pool *pool)
{
    bool is_new;
    struct vote_budget *b = find_or_add(budgets, pool->type, &is_new);
    if (pool->limit >= 0)
        b->free = MIN(b->free, MAX(pool->limit - pool->used, (int64_t)0));
}

/* Of two quotas for a namespace the tighter one holds; negative is unlimited. */
static void limit_home(struct vote_budgets *budgets, const struct fair_pool *pool)
{
    bool is_new;
    struct vote_budget *b = find_or_add(budgets, pool->type, &is_new);
    int64_t room = pool->limit < 0 ? -1 : MAX(pool->limit - pool->used, (int64_t)0);
    if (is_new || b->free < 0 || (room >= 0 && room < b->free))
        b->free = room;
}

static size_t count_pools(const struct fair_input *in)
{
    size_t n = 0;
    for (size_t i = 0; i < in->provider_n; i++) {
        n += in->providers[i].pool_n;
        for (size_t s = 0; s < in->providers[i].namespace_n; s++)
            n += in->providers[i].namespaces[s].pool_n;
    }
    return n;
}

static void add_homes(struct arena *a, const struct fair_provider *p, size_t most,
                      struct fair_free *available)
{
    for (size_t s = 0; s < p->namespace_n; s++) {
        struct fair_home *home = fair_home_find(available, p->namespaces[s].ns);
        if (!home) {
            home = &available->homes[available->home_n++];
            home->ns = p->namespaces[s].ns;
            home->budgets.at = arena_array(a, most, sizeof(struct vote_budget));
        }
        for (size_t i = 0; i < p->namespaces[s].pool_n; i++)
            limit_home(&home->budgets, &p->namespaces[s].pools[i]);
    }
}

static struct fair_free merge_providers(struct arena *a, const struct fair_input *in)
{
    size_t most = count_pools(in), homes = 0;
    for (size_t i = 0; i < in->provider_n; i++)
        homes += in->providers[i].namespace_n;
    struct fair_free available = { .homes = arena_array(a, homes, sizeof(struct fair_home)) };
    available.cluster.at = arena_array(a, most, sizeof(struct vote_budget));
    for (size_t i = 0; i < in->provider_n; i++) {
        for (size_t p = 0; p < in->providers[i].pool_n; p++)
            limit_cluster(&available.cluster, &in->providers[i].pools[p]);
        add_homes(a, &in->providers[i], most, &available);
    }
    return available;
}

/* What one model may use: the budgets of the cluster, or of its namespace within those. */
static struct vote_budgets usable_budgets(struct arena *a, const struct fair_free *available,
                                          const struct fair_home *home)
{
    const struct vote_budgets *from = home ? &home->budgets : &available->cluster;
    struct vote_budgets result = { arena_array(a, from->n, sizeof(struct vote_budget)), from->n };
    for (size_t i = 0; i < from->n; i++) {
        result.at[i] = from->at[i];
        const struct vote_budget *whole =
            home ? vote_budget_find(&available->cluster, from->at[i].type) : NULL;
        if (home && from->at[i].free < 0)
            result.at[i].free = whole ? whole->free : VOTE_UNLIMITED;
        else if (whole)
            result.at[i].free = MIN(result.at[i].free, whole->free);
    }
    return result;
}

static void take_used(struct fair_free *available, struct fair_home *home,
                      const struct vote_budgets *before, const struct vote_budgets *after)
{
    for (size_t i = 0; i < before->n; i++) {
        int64_t used = before->at[i].free - after->at[i].free;
        if (used <= 0)
            continue;
        struct vote_budget *cluster = vote_budget_find(&available->cluster, before->at[i].type);
        if (cluster && cluster->free != VOTE_UNLIMITED)
            cluster->free -= used;
        struct vote_budget *own =
            home ? vote_budget_find(&home->budgets, before->at[i].type) : NULL;
        if (own && own->free >= 0)
            own->free -= used;
    }
}

/* ---- sharing */

struct work {
    struct vote_run run;
    size_t model;
    double claim; /* not positive: it left the round */
};

/* Priority times the weighted needs; if that is nothing, the largest need. */
static double claim_of(const struct vote_run *run)
{
    double sum = 0, largest = 0;
    for (size_t i = 0; i < run->voter_n; i++) {
        double roles = 0;
        for (size_t r = 0; r < run->role_n; r++) {
            double need = run->needs[i * run->role_n + r];
            roles += need;
            largest = fmax(largest, need);
        }
        sum += roles * run->voters[i]->score;
    }
    double claim = run->model->priority * sum;
    return claim > 0 ? claim : largest;
}

static bool has_single_role(const struct vote_run *run)
{
    return run->role_n == 1 && str_eqc(run->roles[0], "both");
}

/* Grows one model until its claim is `mean`; false if it could not grow. */
static bool grow_model(struct work *w, double mean, struct fair_free *available)
{
    struct vote_run *run = &w->run;
    double share = w->claim - mean, before = w->claim;
    if (!(share > 0))
        return false;
    vote_run_load_needs(run);
    for (size_t i = 0; i < run->voter_n * run->role_n; i++)
        run->needs[i] = fmin(run->needs[i], share);
    struct fair_home *home = fair_home_find(available, run->model->ns);
    struct vote_budgets budgets = usable_budgets(run->arena, available, home),
                        old = usable_budgets(run->arena, available, home);
    vote_run_grow(run, &budgets, share);
    take_used(available, home, &old, &budgets);
    if (has_single_role(run))
        vote_run_load_needs(run);
    w->claim = claim_of(run);
    return w->claim < before;
}

/* Whether an accelerator is left for anyone; WVA also goes on if the sum became negative. */
static bool has_free(const struct vote_budgets *budgets)
{
    int64_t sum = 0;
    for (size_t i = 0; i < budgets->n; i++) {
        if (budgets->at[i].free == VOTE_UNLIMITED)
            return true;
        sum += budgets->at[i].free;
    }
    return sum != 0;
}

static void share_out(struct work *works, size_t n, struct fair_free *available)
{
    while (has_free(&available->cluster)) {
        struct work *neediest = NULL;
        double sum = 0;
        size_t active = 0;
        for (size_t i = 0; i < n; i++) {
            if (!(works[i].claim > 0))
                continue;
            sum += works[i].claim;
            active++;
            if (!neediest || works[i].claim > neediest->claim)
                neediest = &works[i];
        }
        if (!neediest)
            return;
        double mean = sum / (double)active, goal = mean;
        if (active == 1)
            goal = 0;
        else if (neediest->claim <= mean)
            goal = mean - neediest->claim / (double)active;
        if (!grow_model(neediest, goal, available) || neediest->claim > mean)
            neediest->claim = -1;
    }
}

struct vote_target **fair_decide(struct arena *a, const struct fair_input *in)
{
    struct vote_target **targets = arena_array(a, in->model_n, sizeof(*targets));
    struct work *works = arena_array(a, in->model_n, sizeof(*works));
    size_t n = 0;
    struct fair_free available = merge_providers(a, in);
    if (in->rescale_cluster || in->rescale_namespace_n)
        fair_rescale(a, in, &available, targets);
    for (size_t i = 0; i < in->model_n; i++) {
        struct vote_run run;
        if (targets[i] || !vote_run_start(a, &in->models[i], &run))
            continue;
        double claim = claim_of(&run);
        if (claim > 0) {
            works[n++] = (struct work){ run, i, claim };
            continue;
        }
        vote_run_shrink(&run);
        targets[i] = vote_run_targets(&run, "greedy-by-score");
    }
    share_out(works, n, &available);
    for (size_t i = 0; i < n; i++)
        targets[works[i].model] = vote_run_targets(&works[i].run, "greedy-by-score");
    return targets;
}
