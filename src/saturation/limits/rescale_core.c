/* The rescale pass: redistributes a contended budget of accelerators between models by priority
 * times demand, so that important models can take from less important ones. Part of fair_core.h.
 *
 * Only models whose variants all use one type take part, grouped by that type and by the namespace
 * whose quota they share. A group whose demand fits into its budget is left to the ordinary pass.
 *
 *     budget = free + what the group uses now
 *     each model: floor (its minimum replicas) + a share of the rest, up to its cap
 *     shrinking frees accelerators for the next cycle; growth uses what is free now
 *
 * Reasons are quoted: WVA. */
#include "fair_parts_core.h"

#include <math.h>

struct member { /* one model of a group */
    struct vote_run run;
    size_t model;
    str id; /* namespace/model: the order of ties */
    int64_t floor, cap, target;
    double weight; /* priority times demand */
};

struct group {
    str type, ns; /* "": the budget of the cluster */
    struct member *at;
    size_t n;
};

/* ---- accelerators of a model */

static bool is_type_and_role(const struct vote_run *run, size_t variant, str type, str role)
{
    const struct vote_variant *v = &run->model->variants[variant];
    return str_eq(v->accelerator, type) && (!role.n || str_eq(vote_role_name(v->role), role));
}

enum count { COUNT_CURRENT, COUNT_MIN, COUNT_MAX };

/* Accelerators of the variants with that role ("": any); -1 for COUNT_MAX: unbounded. */
static int64_t count_gpus(const struct vote_run *run, str type, str role, enum count what)
{
    int64_t sum = 0;
    for (size_t i = 0; i < run->model->variant_n; i++) {
        const struct vote_variant *v = &run->model->variants[i];
        if (!is_type_and_role(run, i, type, role))
            continue;
        if (what == COUNT_MAX && v->max <= 0)
            return -1;
        int64_t replicas = what == COUNT_CURRENT ? v->current : what == COUNT_MIN ? v->min : v->max;
        sum += MAX(replicas, (int64_t)0) * vote_gpus(v);
    }
    return sum;
}

static double role_demand(const struct vote_voter *binding, str role)
{
    for (size_t i = 0; i < binding->role_n && !str_eqc(role, "both"); i++)
        if (str_eq(vote_role_name(binding->roles[i].role), role))
            return binding->roles[i].demand;
    return binding->demand;
}

/* Accelerators that the demand of a role takes on its most cost-efficient variant. */
static int64_t demanded_gpus(const struct vote_run *run, str type, str role)
{
    struct vote_order order = vote_order_by_efficiency(run, role);
    for (size_t i = 0; i < order.n; i++) {
        double each = run->binding->per_replica[order.at[i]];
        if (!is_type_and_role(run, order.at[i], type, role) || !(each > 0))
            continue;
        return vote_replicas(ceil(role_demand(run->binding, role) / each)) *
               vote_gpus(&run->model->variants[order.at[i]]);
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* The roles of the variants of a type, sorted. */
static size_t roles_on_type(const struct vote_run *run, str type, str **ret)
{
    str *roles = arena_array(run->arena, run->model->variant_n, sizeof(str));
    size_t n = 0;
    for (size_t i = 0; i < run->model->variant_n; i++) {
        if (!is_type_and_role(run, i, type, S("")))
            continue;
        str role = vote_role_name(run->model->variants[i].role);
        size_t at = 0;
        while (at < n && !str_eq(roles[at], role))
            at++;
        if (at == n)
            roles[n++] = role;
    }
    qsort(roles, n, sizeof(str), by_text);
    *ret = roles;
    return n;
}

/* The one type that all variants use whose type is known; "": none or several. */
static str single_type(const struct vote_model *m)
{
    str type = S("");
    for (size_t i = 0; i < m->variant_n; i++) {
        str own = m->variants[i].accelerator;
        if (own.n && type.n && !str_eq(own, type))
            return S("");
        type = own.n ? own : type;
    }
    return type;
}

/* ---- shares of whole accelerators */

struct share {
    str key;
    int64_t given, cap; /* a negative cap: none */
    double exact;       /* what it should get on top of `given` */
};

static int by_fraction(const void *a, const void *b)
{
    const struct share *x = *(const struct share *const *)a, *y = *(const struct share *const *)b;
    double fx = x->exact - floor(x->exact), fy = y->exact - floor(y->exact);
    if (fx != fy)
        return fx > fy ? -1 : 1;
    return str_cmp(x->key, y->key);
}

/* Rounds every share down, and gives what is left to the largest fractions. */
static void round_shares(struct arena *a, struct share *shares, size_t n, int64_t total)
{
    struct share **order = arena_array(a, n, sizeof(struct share *));
    for (size_t i = 0; i < n; i++) {
        shares[i].given += (int64_t)floor(shares[i].exact);
        total -= (int64_t)floor(shares[i].exact);
        order[i] = &shares[i];
    }
    qsort(order, n, sizeof(struct share *), by_fraction);
    for (size_t i = 0; i < n && total > 0; i++) {
        if (order[i]->cap >= 0 && order[i]->given >= order[i]->cap)
            continue;
        order[i]->given++;
        total--;
    }
}

/* Fills the members above their floors in proportion to their weights; one that reaches its cap
 * leaves the rest to the others. */
static void fill_members(const struct group *g, double pool, struct share *shares, bool *active)
{
    static const double rounding = 1e-9;
    for (bool capped = true; capped && pool > rounding;) {
        double weights = 0, used = 0;
        for (size_t i = 0; i < g->n; i++)
            weights += active[i] ? g->at[i].weight : 0;
        if (!(weights > 0))
            return;
        capped = false;
        for (size_t i = 0; i < g->n; i++) {
            double room = (double)(g->at[i].cap - g->at[i].floor);
            if (!active[i] || pool * g->at[i].weight / weights < room - rounding)
                continue;
            shares[i].exact = room;
            used += room;
            active[i] = false;
            capped = true;
        }
        for (size_t i = 0; i < g->n && !capped; i++)
            if (active[i])
                shares[i].exact = pool * g->at[i].weight / weights;
        pool -= used;
    }
}

static void set_targets(struct arena *a, struct group *g, int64_t budget)
{
    int64_t floors = 0;
    for (size_t i = 0; i < g->n; i++) {
        g->at[i].target = g->at[i].floor;
        floors += g->at[i].floor;
    }
    if (floors >= budget)
        return;
    struct share *shares = arena_array(a, g->n, sizeof(*shares));
    bool *active = arena_array(a, g->n, sizeof(*active));
    for (size_t i = 0; i < g->n; i++) {
        active[i] = g->at[i].weight > 0 && g->at[i].cap > g->at[i].floor;
        shares[i] = (struct share){ .key = g->at[i].id, .given = g->at[i].floor };
        shares[i].cap = active[i] ? g->at[i].cap : g->at[i].floor;
    }
    fill_members(g, (double)(budget - floors), shares, active);
    double sum = 0;
    for (size_t i = 0; i < g->n; i++)
        sum += shares[i].exact;
    round_shares(a, shares, g->n, (int64_t)round(sum));
    for (size_t i = 0; i < g->n; i++)
        g->at[i].target = shares[i].given;
}

/* Divides a model's accelerators between its roles: floors, then by demand, else by use. */
static void divide_roles(const struct member *m, str type, const str *roles, size_t n, int64_t *ret)
{
    int64_t rest = m->target, weight = 0;
    struct share *shares = arena_array(m->run.arena, n, sizeof(*shares));
    int64_t *weights = arena_array(m->run.arena, n, sizeof(*weights));
    for (size_t i = 0; i < n; i++) {
        shares[i] = (struct share){ .key = roles[i], .cap = -1 };
        shares[i].given = n == 1 ? 0 : count_gpus(&m->run, type, roles[i], COUNT_MIN);
        weights[i] = demanded_gpus(&m->run, type, roles[i]);
        rest -= shares[i].given;
        weight += weights[i];
    }
    for (size_t i = 0; i < n && !weight; i++)
        weights[i] = count_gpus(&m->run, type, roles[i], COUNT_CURRENT);
    for (size_t i = 0; i < n && rest > 0; i++) {
        int64_t sum = 0;
        for (size_t k = 0; k < n; k++)
            sum += weights[k];
        shares[i].exact = sum      ? (double)rest * (double)weights[i] / (double)sum
                          : i == 0 ? (double)rest
                                   : 0;
        if (n == 1)
            shares[i].exact = (double)rest;
    }
    if (rest > 0)
        round_shares(m->run.arena, shares, n, rest);
    for (size_t i = 0; i < n; i++)
        ret[i] = shares[i].given;
}

/* ---- applying the targets */

struct reclaim {
    struct vote_run *run;
    int64_t left; /* accelerators */
};

static int64_t fit_reclaim(void *context, size_t variant)
{
    struct reclaim *r = context;
    return r->left > 0 ? r->left / vote_gpus(&r->run->model->variants[variant]) : 0;
}

static void note_reclaimed(void *context, size_t variant, int64_t n)
{
    struct reclaim *r = context;
    r->left -= n * vote_gpus(&r->run->model->variants[variant]);
}

/* Adds whole replicas, cheapest first; returns the accelerators used. */
static int64_t fill_role(struct vote_run *run, str role, int64_t wanted)
{
    struct vote_order order = vote_order_by_efficiency(run, role);
    int64_t used = 0;
    for (size_t i = 0; i < order.n && used < wanted; i++) {
        const struct vote_variant *v = &run->model->variants[order.at[i]];
        int64_t *target = &run->targets[order.at[i]], room = (wanted - used) / vote_gpus(v);
        if (v->max > 0)
            room = MIN(room, MAX(v->max - *target, (int64_t)0));
        if (!(run->binding->per_replica[order.at[i]] > 0) || room <= 0)
            continue;
        *target += room;
        used += room * vote_gpus(v);
    }
    return used;
}

static void apply_member(struct member *m, str type, int64_t *fillable)
{
    str *roles;
    size_t n = roles_on_type(&m->run, type, &roles);
    int64_t *targets = arena_array(m->run.arena, n, sizeof(*targets));
    divide_roles(m, type, roles, n, targets);
    for (size_t i = 0; i < n; i++) {
        int64_t now = count_gpus(&m->run, type, roles[i], COUNT_CURRENT);
        if (targets[i] < now) {
            struct reclaim context = { &m->run, now - targets[i] };
            struct vote_shrink shrink = { fit_reclaim, note_reclaimed, &context };
            vote_shrink_in_order(&m->run, vote_order_for_shrinking(&m->run, roles[i]), &shrink);
        } else if (targets[i] > now) {
            *fillable -= fill_role(&m->run, roles[i], MIN(targets[i] - now, *fillable));
        }
    }
}

static struct vote_target *member_targets(const struct member *m)
{
    struct vote_target *targets = vote_run_targets(&m->run, "rescale");
    for (size_t i = 0; i < m->run.model->variant_n; i++)
        if (targets[i].replicas < m->run.model->variants[i].current) {
            targets[i].category = S("rescale");
            targets[i].reason = S("rescale (optimizer: rescale, reclaim)");
        }
    return targets;
}

static int by_priority(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->run.model->priority != y->run.model->priority)
        return x->run.model->priority > y->run.model->priority ? -1 : 1;
    return str_cmp(x->id, y->id);
}

/* ---- groups */

/* False if the demand of the group fits into its budget. */
static bool measure_group(struct group *g, int64_t budget)
{
    int64_t demanded = 0;
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->at[i];
        str *roles;
        size_t n = roles_on_type(&m->run, g->type, &roles);
        int64_t own = 0, most = count_gpus(&m->run, g->type, S(""), COUNT_MAX);
        for (size_t r = 0; r < n; r++)
            own += demanded_gpus(&m->run, g->type, roles[r]);
        m->floor = count_gpus(&m->run, g->type, S(""), COUNT_MIN);
        m->cap = MAX(MIN(own, most >= 0 ? most : budget), m->floor);
        m->weight = m->run.model->priority * m->run.binding->demand;
        demanded += own;
    }
    return demanded > budget;
}

static void rescale_group(struct arena *a, struct group *g, struct fair_free *available,
                          struct vote_target **targets)
{
    struct fair_home *home = g->ns.n ? fair_home_find(available, g->ns) : NULL;
    const struct vote_budgets *from = home ? &home->budgets : &available->cluster;
    int64_t is_free = vote_budget_get(from, g->type), budget = is_free;
    if (is_free < 0 || is_free == VOTE_UNLIMITED)
        return;
    for (size_t i = 0; i < g->n; i++)
        budget += count_gpus(&g->at[i].run, g->type, S(""), COUNT_CURRENT);
    if (!measure_group(g, budget))
        return;
    set_targets(a, g, budget);
    qsort(g->at, g->n, sizeof(*g->at), by_priority);
    struct vote_budget *cluster = vote_budget_find(&available->cluster, g->type);
    struct vote_budget *own = vote_budget_find(from, g->type);
    int64_t fillable = home && cluster ? MIN(is_free, cluster->free) : is_free, left = fillable;
    for (size_t i = 0; i < g->n; i++) {
        apply_member(&g->at[i], g->type, &left);
        targets[g->at[i].model] = member_targets(&g->at[i]);
    }
    if (own)
        own->free -= fillable - left;
    if (home && cluster && cluster->free != VOTE_UNLIMITED)
        cluster->free -= fillable - left;
}

static int by_type(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int types = str_cmp(x->type, y->type);
    return types ? types : str_cmp(x->ns, y->ns);
}

static bool is_enabled(const struct fair_input *in, str ns, bool has_quota)
{
    for (size_t i = 0; has_quota && i < in->rescale_namespace_n; i++)
        if (str_eq(in->rescale_namespaces[i], ns))
            return true;
    return !has_quota && in->rescale_cluster;
}

void fair_rescale(struct arena *a, const struct fair_input *in, struct fair_free *available,
                  struct vote_target **targets)
{
    struct group *groups = arena_array(a, in->model_n, sizeof(*groups));
    size_t n = 0;
    for (size_t i = 0; i < in->model_n; i++) {
        const struct vote_model *model = &in->models[i];
        struct member m = { .model = i };
        str type = single_type(model);
        bool has_quota = fair_home_find(available, model->ns);
        if (!type.n || !is_enabled(in, model->ns, has_quota) || !vote_run_start(a, model, &m.run))
            continue;
        m.id = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(model->ns), STR_ARG(model->model));
        str ns = has_quota ? model->ns : S("");
        size_t at = 0;
        while (at < n && !(str_eq(groups[at].type, type) && str_eq(groups[at].ns, ns)))
            at++;
        if (at == n)
            groups[n++] =
                (struct group){ type, ns, arena_array(a, in->model_n, sizeof(struct member)), 0 };
        groups[at].at[groups[at].n++] = m;
    }
    qsort(groups, n, sizeof(*groups), by_type);
    for (size_t i = 0; i < n; i++)
        rescale_group(a, &groups[i], available, targets);
}
