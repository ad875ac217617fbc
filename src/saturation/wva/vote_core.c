/* Votes to targets: see vote_core.h. The loop of vote_run_grow() is WVA's, because its vectors in
 * test/golden compare every target:
 *
 *     per role: the cheapest variant per unit of capacity that has room
 *             ─► n replicas that its largest need asks for
 *             ─► the share of the need that those cover; the smallest share of all roles is the step
 *             ─► each role gets its replicas for that share, so that roles grow in proportion
 *
 * The step ends when a role has no variant with room: a decoder without a prefiller is useless.
 * Reasons are quoted: WVA. */
#include "vote_parts_core.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

str vote_role_name(str role)
{
    return role.n ? role : S("both");
}

int64_t vote_gpus(const struct vote_variant *v)
{
    enum { GPUS_MAX = 1 << 20 };
    return v->gpus < 1 ? 1 : MIN(v->gpus, (int64_t)GPUS_MAX);
}

int64_t vote_replicas(double value)
{
    static const double most = 1 << 30;
    return !(value > 0) ? 0 : value >= most ? (int64_t)most : (int64_t)value;
}

struct vote_budget *vote_budget_find(const struct vote_budgets *budgets, str type)
{
    for (size_t i = 0; i < budgets->n; i++)
        if (str_eq(budgets->at[i].type, type))
            return &budgets->at[i];
    return NULL;
}

int64_t vote_budget_get(const struct vote_budgets *budgets, str type)
{
    const struct vote_budget *b = vote_budget_find(budgets, type);
    return b ? b->free : 0;
}

/* The binding voter, or NULL. */
static const struct vote_voter *vote_binding(const struct vote_model *model)
{
    const struct vote_voter *other = NULL;
    size_t others = 0;
    for (size_t i = 0; i < model->voter_n; i++) {
        const struct vote_voter *v = &model->voters[i];
        if (!v->votes || !v->live || !v->informative)
            continue;
        if (str_eqc(v->name, "saturation"))
            return v;
        other = v;
        others++;
    }
    return others == 1 ? other : NULL; /* several: none can size a step for the others */
}

/* ---- the state of a run */

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static void add_role(struct vote_run *run, str role)
{
    for (size_t i = 0; i < run->role_n; i++)
        if (str_eq(run->roles[i], role))
            return;
    run->roles[run->role_n++] = role;
}

static size_t role_index(const struct vote_run *run, str role)
{
    for (size_t i = 0; i < run->role_n; i++)
        if (str_eq(run->roles[i], role))
            return i;
    return SIZE_MAX;
}

static void collect_roles(struct vote_run *run)
{
    size_t most = 1;
    for (size_t i = 0; i < run->voter_n; i++)
        most += run->voters[i]->role_n;
    run->roles = arena_array(run->arena, most, sizeof(str));
    for (size_t i = 0; i < run->voter_n; i++) {
        const struct vote_voter *v = run->voters[i];
        for (size_t r = 0; r < v->role_n; r++)
            add_role(run, vote_role_name(v->roles[r].role));
        if (!v->role_n)
            add_role(run, S("both"));
    }
    qsort(run->roles, run->role_n, sizeof(str), by_text);
}

void vote_run_load_needs(struct vote_run *run)
{
    for (size_t i = 0; i < run->voter_n; i++) {
        const struct vote_voter *v = run->voters[i];
        double *needs = &run->needs[i * run->role_n], *spares = &run->spares[i * run->role_n];
        for (size_t r = 0; r < v->role_n; r++) {
            size_t at = role_index(run, vote_role_name(v->roles[r].role));
            needs[at] = v->roles[r].required;
            spares[at] = v->roles[r].spare;
        }
        if (!v->role_n) {
            needs[role_index(run, S("both"))] = run->rest[i];
            spares[role_index(run, S("both"))] = v->spare;
        }
    }
}

bool vote_run_start(struct arena *a, const struct vote_model *model, struct vote_run *ret)
{
    struct vote_run run = { .arena = a, .model = model, .binding = vote_binding(model) };
    if (!run.binding)
        return false;
    run.voters = arena_array(a, model->voter_n, sizeof(*run.voters));
    for (size_t i = 0; i < model->voter_n; i++)
        if (model->voters[i].votes)
            run.voters[run.voter_n++] = &model->voters[i];
    collect_roles(&run);
    run.needs = arena_array(a, run.voter_n * run.role_n, sizeof(double));
    run.spares = arena_array(a, run.voter_n * run.role_n, sizeof(double));
    run.rest = arena_array(a, run.voter_n, sizeof(double));
    run.targets = arena_array(a, model->variant_n, sizeof(int64_t));
    for (size_t i = 0; i < run.voter_n; i++)
        run.rest[i] = run.voters[i]->required;
    for (size_t i = 0; i < model->variant_n; i++)
        run.targets[i] = model->variants[i].current;
    vote_run_load_needs(&run);
    *ret = run;
    return true;
}

static bool vote_run_needs_more(const struct vote_run *run)
{
    for (size_t i = 0; i < run->voter_n * run->role_n; i++)
        if (run->needs[i] > 0)
            return true;
    return false;
}

/* ---- orders of variants */

struct ranked {
    double first, second;
    str name;
    size_t at;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->second != y->second)
        return x->second < y->second ? -1 : 1;
    int names = str_cmp(x->name, y->name);
    return names ? names : x->at < y->at ? -1 : x->at > y->at;
}

static struct vote_order sort_ranked(const struct vote_run *run, struct ranked *ranked, size_t n)
{
    struct vote_order order = { arena_array(run->arena, n, sizeof(size_t)), n };
    qsort(ranked, n, sizeof(*ranked), by_rank);
    for (size_t i = 0; i < n; i++)
        order.at[i] = ranked[i].at;
    return order;
}

static bool has_role(const struct vote_variant *v, str role)
{
    return str_eq(vote_role_name(v->role), role);
}

/* Lowest cost per unit of capacity first, then as listed; unknown capacities last. */
struct vote_order vote_order_by_efficiency(const struct vote_run *run, str role)
{
    const struct vote_model *m = run->model;
    struct ranked *ranked = arena_array(run->arena, m->variant_n, sizeof(*ranked));
    size_t n = 0;
    for (size_t i = 0; i < m->variant_n; i++) {
        double each = run->binding->per_replica[i];
        if (has_role(&m->variants[i], role))
            ranked[n++] = (struct ranked){ .first = each > 0 ? m->variants[i].cost / each : DBL_MAX,
                                           .at = i };
    }
    return sort_ranked(run, ranked, n);
}

/* Most expensive first, then the least capacity by all voters, then by name. */
struct vote_order vote_order_for_shrinking(const struct vote_run *run, str role)
{
    const struct vote_model *m = run->model;
    struct ranked *ranked = arena_array(run->arena, m->variant_n, sizeof(*ranked));
    size_t n = 0;
    for (size_t i = 0; i < m->variant_n; i++) {
        if (!has_role(&m->variants[i], role))
            continue;
        double weight = 0;
        for (size_t v = 0; v < run->voter_n; v++)
            weight += run->voters[v]->score * run->voters[v]->per_replica[i];
        ranked[n++] = (struct ranked){ -m->variants[i].cost, weight, m->variants[i].name, i };
    }
    return sort_ranked(run, ranked, n);
}

/* ---- growth */

struct pick {
    size_t variant;
    int64_t room; /* replicas */
};

static int64_t bounded_room(const struct vote_run *run, size_t variant)
{
    const struct vote_variant *v = &run->model->variants[variant];
    return v->max > 0 ? v->max - run->targets[variant] : INT64_MAX;
}

/* The cheapest variant of the role that has room for a replica; false: none. */
static bool pick_variant(const struct vote_run *run, str role, const struct vote_budgets *budgets,
                         double share, struct pick *ret)
{
    struct vote_order order = vote_order_by_efficiency(run, role);
    for (size_t i = 0; i < order.n; i++) {
        size_t at = order.at[i];
        double each = run->binding->per_replica[at];
        int64_t room = bounded_room(run, at);
        if (!(each > 0) || room <= 0)
            continue;
        if (budgets) {
            const struct vote_variant *v = &run->model->variants[at];
            int64_t available = vote_budget_get(budgets, v->accelerator);
            if (available < vote_gpus(v))
                continue;
            room = MIN(room, available / vote_gpus(v));
            room = MIN(room, vote_replicas(ceil(share / each)));
        }
        if (room <= 0)
            continue;
        *ret = (struct pick){ at, room };
        return true;
    }
    return false;
}

/* Replicas of the variant that the voter with the largest need in replicas asks for. */
static int64_t replicas_needed(const struct vote_run *run, size_t role, size_t variant)
{
    int64_t most = 0;
    for (size_t i = 0; i < run->voter_n; i++) {
        double each = run->voters[i]->per_replica[variant];
        if (each > 0)
            most = MAX(most, vote_replicas(ceil(run->needs[i * run->role_n + role] / each)));
    }
    return most;
}

static double largest_need(const struct vote_run *run, size_t role)
{
    double most = 0;
    for (size_t i = 0; i < run->voter_n; i++)
        most = fmax(most, run->needs[i * run->role_n + role]);
    return most;
}

/* Adds k replicas for a role and takes their capacity from every voter's need. */
static void commit_role(struct vote_run *run, size_t role, size_t variant, int64_t k)
{
    double added = (double)k * run->binding->per_replica[variant];
    run->targets[variant] += k;
    for (size_t i = 0; i < run->voter_n; i++) {
        double *need = &run->needs[i * run->role_n + role];
        *need = fmax(0, *need - added);
    }
}

/* What is left of the model-wide needs follows one role: prefill if there is one, else both. */
static void commit_rest(struct vote_run *run, const struct pick *picks, const int64_t *k)
{
    size_t role = role_index(run, S("prefill"));
    if (role == SIZE_MAX)
        role = role_index(run, S("both"));
    if (role == SIZE_MAX)
        return;
    for (size_t i = 0; i < run->voter_n; i++) {
        double each = run->voters[i]->per_replica[picks[role].variant];
        if (each > 0)
            run->rest[i] = fmax(0, run->rest[i] - (double)k[role] * each);
    }
}

/* The share of its need that each role can cover now; the smallest of all roles. */
static double smallest_share(const struct vote_run *run, const struct pick *picks, int64_t *ret_n)
{
    double smallest = DBL_MAX;
    for (size_t r = 0; r < run->role_n; r++) {
        double need = largest_need(run, r);
        ret_n[r] = MIN(replicas_needed(run, r, picks[r].variant), picks[r].room);
        double capacity = (double)ret_n[r] * run->binding->per_replica[picks[r].variant];
        smallest = fmin(smallest, need > 0 ? capacity / need : 1);
    }
    return smallest;
}

/* One step; false: nothing more can be added. */
static bool grow_once(struct vote_run *run, struct vote_budgets *budgets, double share,
                      struct pick *picks, int64_t *k)
{
    for (size_t r = 0; r < run->role_n; r++)
        if (!pick_variant(run, run->roles[r], budgets, share, &picks[r]))
            return false;
    double part = smallest_share(run, picks, k);
    bool any = false;
    for (size_t r = 0; r < run->role_n && part > 0; r++) {
        double need = largest_need(run, r), each = run->binding->per_replica[picks[r].variant];
        int64_t least = MIN((int64_t)1, k[r]);
        k[r] = need > 0 ? MAX(vote_replicas(floor(part * need / each)), least) : 0;
        any |= k[r] > 0;
    }
    if (!any)
        return false;
    for (size_t r = 0; r < run->role_n; r++) {
        const struct vote_variant *v = &run->model->variants[picks[r].variant];
        commit_role(run, r, picks[r].variant, k[r]);
        struct vote_budget *b = budgets ? vote_budget_find(budgets, v->accelerator) : NULL;
        if (b)
            b->free -= k[r] * vote_gpus(v);
    }
    commit_rest(run, picks, k);
    return true;
}

void vote_run_grow(struct vote_run *run, struct vote_budgets *budgets, double share)
{
    struct pick *picks = arena_array(run->arena, run->role_n, sizeof(*picks));
    int64_t *k = arena_array(run->arena, run->role_n, sizeof(*k));
    while (vote_run_needs_more(run) && grow_once(run, budgets, share, picks, k))
        ;
}

/* ---- shrinking */

void vote_shrink_in_order(struct vote_run *run, struct vote_order order,
                          const struct vote_shrink *shrink)
{
    bool others = false; /* variants before this one keep replicas */
    for (size_t i = 0; i < order.n; i++) {
        size_t at = order.at[i];
        int64_t *target = &run->targets[at];
        int64_t removable = *target - MAX(run->model->variants[at].min, (int64_t)0);
        if (run->binding->per_replica[at] > 0 && removable > 0) {
            int64_t fit = shrink->fit(shrink->context, at), n = MIN(fit, removable);
            if (i + 1 == order.n && *target - n < 1 && !others)
                n = *target - 1;
            if (n > 0) {
                *target -= n;
                shrink->removed(shrink->context, at, n);
            }
        }
        others |= *target > 0;
    }
}

struct role_shrink {
    struct vote_run *run;
    size_t role;
};

/* Replicas that every live voter can spare. */
static int64_t spare_replicas(void *context, size_t variant)
{
    struct role_shrink *s = context;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < s->run->voter_n; i++) {
        double each = s->run->voters[i]->per_replica[variant];
        if (s->run->voters[i]->live && each > 0)
            least = MIN(least,
                        vote_replicas(floor(s->run->spares[i * s->run->role_n + s->role] / each)));
    }
    return least == INT64_MAX ? 0 : least;
}

static void take_spare(void *context, size_t variant, int64_t n)
{
    struct role_shrink *s = context;
    for (size_t i = 0; i < s->run->voter_n; i++) {
        double *spare = &s->run->spares[i * s->run->role_n + s->role];
        *spare = fmax(0, *spare - (double)n * s->run->voters[i]->per_replica[variant]);
    }
}

/* A role may shrink if there is a live voter and none of them lacks spare capacity. */
static bool can_shrink(const struct vote_run *run, size_t role)
{
    bool any = false;
    for (size_t i = 0; i < run->voter_n; i++) {
        if (!run->voters[i]->live)
            continue;
        if (!(run->spares[i * run->role_n + role] > 0))
            return false;
        any = true;
    }
    return any;
}

void vote_run_shrink(struct vote_run *run)
{
    for (size_t r = 0; r < run->role_n; r++) {
        if (!can_shrink(run, r))
            continue;
        struct role_shrink context = { run, r };
        struct vote_shrink shrink = { spare_replicas, take_spare, &context };
        vote_shrink_in_order(run, vote_order_for_shrinking(run, run->roles[r]), &shrink);
    }
}

/* ---- results */

struct vote_target *vote_run_targets(const struct vote_run *run, const char *optimizer)
{
    const struct vote_model *m = run->model;
    struct vote_target *targets = arena_array(run->arena, m->variant_n, sizeof(*targets));
    for (size_t i = 0; i < m->variant_n; i++) {
        struct vote_target *t = &targets[i];
        *t = (struct vote_target){ .replicas = run->targets[i],
                                   .category = S("V2"),
                                   .reason = S("V2"),
                                   .required = run->binding->required,
                                   .spare = run->binding->spare };
        if (t->replicas != m->variants[i].current)
            t->reason = arena_printf(run->arena, "V2 (optimizer: %s)", optimizer);
        for (size_t r = 0; r < run->binding->role_n; r++)
            if (has_role(&m->variants[i], vote_role_name(run->binding->roles[r].role))) {
                t->required = run->binding->roles[r].required;
                t->spare = run->binding->roles[r].spare;
            }
    }
    return targets;
}

struct vote_target *vote_decide(struct arena *a, const struct vote_model *model)
{
    struct vote_run run;
    if (!vote_run_start(a, model, &run))
        return NULL;
    if (vote_run_needs_more(&run))
        vote_run_grow(&run, NULL, 0);
    else
        vote_run_shrink(&run);
    return vote_run_targets(&run, "cost-aware");
}
