/* Replicas from need: see target_core.h.
 *
 * The load of a model is the sum of its replicas' use. With threshold T and trigger G a replica should
 * carry at most T − G, so the model needs ceil(load / (T − G)) replicas, for the KV cache and for the
 * queue, whichever is more. On a constant load that number is a fixed point: what it is after a
 * change is what it was before, so nothing swings.
 *
 * A queue is a backlog, not a rate: dividing it by the trigger can ask for any number. Growth in one
 * decision is therefore at most twofold (but always allowed to reach two more). */
#include "target_core.h"

#include <math.h>

struct plan {
    struct arena *arena;
    const struct sat_state **states; /* sorted by variant */
    const struct sat_variant **seen; /* their metrics; NULL: no replica reported */
    int *target;
    size_t n;
};

static int by_variant(const void *a, const void *b)
{
    const struct sat_state *const *x = a, *const *y = b;
    return str_cmp((*x)->variant, (*y)->variant);
}

static const struct sat_variant *find_variant(const struct sat_analysis *analysis, str name)
{
    for (size_t i = 0; i < analysis->variant_n; i++)
        if (str_eq(analysis->variants[i].name, name))
            return &analysis->variants[i];
    return NULL;
}

static struct plan make_plan(struct arena *a, const struct sat_analysis *analysis,
                             const struct sat_state *states, size_t n)
{
    struct plan p = { .arena = a, .n = n };
    p.states = arena_array(a, n, sizeof(struct sat_state *));
    p.seen = arena_array(a, n, sizeof(struct sat_variant *));
    p.target = arena_array(a, n, sizeof(int));
    for (size_t i = 0; i < n; i++)
        p.states[i] = &states[i];
    qsort(p.states, n, sizeof(struct sat_state *), by_variant);
    for (size_t i = 0; i < n; i++)
        p.seen[i] = find_variant(analysis, p.states[i]->variant);
    return p;
}

static double cost_of(const struct plan *p, size_t i)
{
    return p->seen[i] ? p->seen[i]->cost : p->states[i]->cost;
}

static int get_maximum(const struct sat_state *s)
{
    return s->max > 0 ? s->max : INT32_MAX;
}

/* ---- need */

static int replicas_for_load(double load, double per_replica)
{
    if (per_replica <= 0)
        return INT32_MAX; /* the triggers leave no room at all: always too few */
    return (int)fmin(ceil(load / per_replica - 1e-9), INT32_MAX);
}

/* A backlog that goes by itself asks for no more than the `total` that is there or on its way. */
static int needed_replicas(const struct sat_config *c, const struct sat_analysis *analysis,
                           int total)
{
    int kv = replicas_for_load(analysis->load_kv, c->kv_threshold - c->kv_spare_trigger);
    int queue =
        replicas_for_load(analysis->load_queue, c->queue_threshold - c->queue_spare_trigger);
    int most = MAX(analysis->replicas * 2, analysis->replicas + 2);
    if (analysis->draining)
        queue = MIN(queue, total);
    int need = MAX(1, MIN(MAX(kv, queue), most));
    return analysis->scale_up ? MAX(need, analysis->replicas + 1) : need;
}

/* A variant waits for an earlier target while that can still be reached. */
static bool is_moving(const struct sat_state *s)
{
    return s->desired > 0 && sat_clamp_to_bounds(s, s->desired) != s->current && !s->settled;
}

/* ---- growing: cheapest first */

static bool is_cheaper(const struct plan *p, size_t i, size_t best)
{
    return cost_of(p, i) < cost_of(p, best); /* ties keep the smaller name, which came first */
}

/* The least target that the HPA will not take for noise. */
static int clear_tolerance_up(const struct sat_state *s, int target)
{
    double least = floor(s->current * (1 + s->tolerance_up) + 1e-9) + 1;
    return s->tolerance_up > 0 ? MAX(target, (int)fmin(least, INT32_MAX)) : target;
}

static void add_replicas(struct plan *p, int missing)
{
    auto_free bool *used = mem_zero(p->n, sizeof(bool));
    while (missing > 0) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < p->n; i++)
            if (!used[i] && p->target[i] < get_maximum(p->states[i]) && !p->states[i]->stuck &&
                (best == SIZE_MAX || is_cheaper(p, i, best)))
                best = i;
        if (best == SIZE_MAX)
            return; /* every variant is at its bound */
        used[best] = true;
        const struct sat_state *s = p->states[best];
        int before = p->target[best];
        p->target[best] =
            sat_clamp_to_bounds(s, clear_tolerance_up(s, before + MIN(missing,
                                                                      get_maximum(s) - before)));
        missing -= p->target[best] - before;
    }
}

/* ---- shrinking: most expensive first */

/* The target nearest below that the HPA will not take for noise; current if that is too low. */
static int clear_tolerance_down(const struct sat_state *s, int target)
{
    int most = (int)fmax(ceil(s->current * (1 - s->tolerance_down) - 1e-9) - 1, -1);
    if (s->tolerance_down <= 0 || target >= s->current || target <= most)
        return target;
    return s->current;
}

int sat_apply_tolerance(const struct sat_state *s, int target)
{
    if (target > s->current)
        return sat_clamp_to_bounds(s, clear_tolerance_up(s, target));
    return target < s->current ? clear_tolerance_down(s, target) : target;
}

static void remove_replicas(struct plan *p, int surplus)
{
    auto_free bool *used = mem_zero(p->n, sizeof(bool));
    while (surplus > 0) {
        size_t worst = SIZE_MAX;
        for (size_t i = 0; i < p->n; i++)
            if (!used[i] && p->target[i] > p->states[i]->min &&
                (worst == SIZE_MAX || cost_of(p, i) >= cost_of(p, worst)))
                worst = i;
        if (worst == SIZE_MAX)
            return;
        used[worst] = true;
        const struct sat_state *s = p->states[worst];
        int before = p->target[worst];
        p->target[worst] = clear_tolerance_down(s, before - MIN(surplus, before - s->min));
        surplus -= before - p->target[worst];
    }
}

/* ---- a scale-down that has not happened yet: the cheapest stay */

static int withdraw_scale_down(struct plan *p, int missing)
{
    auto_free bool *used = mem_zero(p->n, sizeof(bool));
    while (missing > 0) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < p->n; i++)
            if (!used[i] && is_moving(p->states[i]) &&
                p->target[i] < sat_clamp_to_bounds(p->states[i], p->states[i]->current) &&
                (best == SIZE_MAX || is_cheaper(p, i, best)))
                best = i;
        if (best == SIZE_MAX)
            break;
        used[best] = true;
        int room = sat_clamp_to_bounds(p->states[best], p->states[best]->current) - p->target[best];
        p->target[best] += MIN(missing, room);
        missing -= MIN(missing, room);
    }
    return missing;
}

/* ---- the answer */

struct decision_basis {
    const struct sat_analysis *analysis;
    int needed; /* 0: the original's rules, which do not count */
    int total;  /* replicas of the model that are there or on their way, and can become ready */
};

/* Where a variant stands before the load is looked at. */
static int base_target(const struct sat_state *s)
{
    return sat_clamp_to_bounds(s, is_moving(s) ? s->desired : s->current);
}

/* Why it stays, or what its bounds make of it. */
static str reason_to_stay(struct plan *p, size_t i, const struct sat_analysis *analysis)
{
    const struct sat_state *s = p->states[i];
    if (p->target[i] > s->current)
        return arena_printf(p->arena, "its minimum is %d", s->min);
    if (p->target[i] < s->current)
        return arena_printf(p->arena, "its maximum is %d", get_maximum(s));
    if (analysis->scale_up && p->target[i] >= get_maximum(s))
        return arena_printf(p->arena, "at its maximum of %d", get_maximum(s));
    if (analysis->scale_up && s->stuck)
        return arena_printf(p->arena, "no scale-up: %d of its replicas do not become ready",
                            s->stuck);
    if (analysis->keep.n)
        return arena_printf(p->arena, "no scale-down: " STR_FMT, STR_ARG(analysis->keep));
    return S("no change needed");
}

/* Compares with where the variant stood, so that the sentence never contradicts the act. */
static str reason_for(struct plan *p, size_t i, const struct decision_basis *j)
{
    const struct sat_state *s = p->states[i];
    int base = base_target(s);
    if (is_moving(s) && p->target[i] == base)
        return arena_printf(p->arena, "on its way from %d to %d", s->current, p->target[i]);
    if (is_moving(s) && p->target[i] > base && p->target[i] <= s->current)
        return arena_printf(p->arena,
                            "scale-down withdrawn: the load needs %d replicas of the model again",
                            j->needed);
    if (p->target[i] != base && !j->needed && !j->analysis->scale_up &&
        !j->analysis->scale_down_safe)
        return S("as many as report metrics");
    if (p->target[i] > base && !j->needed)
        return arena_printf(p->arena, "scale-up: " STR_FMT, STR_ARG(j->analysis->scale_up_reason));
    if (p->target[i] < base && !j->needed)
        return S("scale-down: the load fits on one replica less");
    if (p->target[i] > base)
        return arena_printf(
            p->arena, "scale-up: the load needs %d replicas of the model, it has %d; " STR_FMT,
            j->needed, j->total, STR_ARG(j->analysis->scale_up_reason));
    if (p->target[i] < base)
        return arena_printf(p->arena,
                            "scale-down: the load needs %d replicas of the model, it has %d",
                            j->needed, j->total);
    return reason_to_stay(p, i, j->analysis);
}

static struct sat_targets make_targets(struct plan *p, const struct decision_basis *j)
{
    struct sat_targets result = { .n = p->n, .needed = j->needed };
    result.at = arena_array(p->arena, p->n, sizeof(*result.at));
    for (size_t i = 0; i < p->n; i++) {
        const struct sat_state *s = p->states[i];
        bool moved = !is_moving(s) && p->target[i] == base_target(s) && p->target[i] != s->current;
        result.at[i] = (struct sat_target){ s->variant, p->target[i], reason_for(p, i, j), moved };
    }
    return result;
}

/* Where the load fits to the last digit, rounding must not ask for a replica that the next look finds to be
 * one too many. A backlog that goes by itself asks for nothing: then only the use of the caches counts, also of
 * replicas that are saturated by their queue. */
static bool needs_more(const struct sat_config *c, const struct sat_analysis *analysis)
{
    static const double rounding = 1e-9;
    if (analysis->draining)
        return analysis->load_kv / MAX(analysis->replicas, 1) >
               c->kv_threshold - c->kv_spare_trigger + rounding;
    return analysis->spare_kv < c->kv_spare_trigger - rounding ||
           analysis->spare_queue < c->queue_spare_trigger - rounding;
}

struct sat_targets sat_decide(struct arena *a, const struct sat_config *config,
                              const struct sat_analysis *seen, const struct sat_state *states,
                              size_t n)
{
    struct sat_analysis adjusted = *seen, *analysis = &adjusted;
    adjusted.scale_up = seen->scale_up && needs_more(config, seen);
    struct plan p = make_plan(a, analysis, states, n);
    bool moving = false, all_report = true;
    int total = 0;
    for (size_t i = 0; i < n; i++) {
        const struct sat_state *s = p.states[i];
        int reporting = p.seen[i] ? p.seen[i]->replicas : 0;
        moving |= is_moving(s);
        all_report &= reporting >= s->current - s->stuck && s->pending <= s->stuck;
        p.target[i] = base_target(s);
        total += p.target[i] - s->stuck;
    }
    struct decision_basis j = { .analysis = analysis, .total = total };
    if (analysis->replicas == 0)
        return make_targets(&p, &j); /* nothing is known: hold */
    j.needed = needed_replicas(config, analysis, total);
    int missing = withdraw_scale_down(&p, j.needed - total);
    /* What is already coming counts as there; what goes away is not taken away twice. */
    if (analysis->scale_up && missing > 0)
        add_replicas(&p, missing);
    else if (!analysis->scale_up && j.needed < total && !moving && all_report && !analysis->keep.n)
        remove_replicas(&p, total - j.needed);
    struct sat_targets result = make_targets(&p, &j);
    result.in_transition = moving;
    return result;
}

/* ---- the original's rules */

static void add_one_replica(struct plan *p, const bool *eligible)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++)
        if (eligible[i] && (best == SIZE_MAX || is_cheaper(p, i, best)))
            best = i;
    if (best != SIZE_MAX)
        p->target[best]++;
}

static void remove_one_replica(struct plan *p, const bool *eligible)
{
    size_t worst = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++)
        if (eligible[i] && p->target[i] > 1 &&
            (worst == SIZE_MAX || cost_of(p, i) >= cost_of(p, worst)))
            worst = i;
    if (worst != SIZE_MAX)
        p->target[worst]--;
}

static bool has_open_target(const struct sat_state *s)
{
    return s->desired != 0 && s->desired != s->current;
}

static bool prepare_2026(struct plan *p, const struct sat_analysis *analysis, bool *eligible)
{
    bool moving = false;
    for (size_t i = 0; i < p->n; i++)
        moving |= has_open_target(p->states[i]) || p->seen[i]->replicas != p->states[i]->current;
    for (size_t i = 0; i < p->n; i++) {
        const struct sat_state *s = p->states[i];
        p->target[i] = !moving              ? p->seen[i]->replicas
                       : has_open_target(s) ? s->desired
                                            : s->current;
        eligible[i] = !analysis->scale_up || s->pending <= 0;
    }
    return moving;
}

static void prepare_seed(struct plan *p, bool *eligible)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct sat_state *s = p->states[i];
        int reporting = p->seen[i]->replicas;
        eligible[i] = !has_open_target(s);
        p->target[i] = has_open_target(s)        ? s->desired
                       : reporting == s->current ? reporting
                                                 : s->current;
    }
}

/* The variants with metrics, each with its state (all zeros where there is none). */
static struct plan plan_analyzed(struct arena *a, const struct sat_analysis *analysis,
                                 const struct sat_state *states, size_t n)
{
    struct sat_state *known = arena_array(a, analysis->variant_n, sizeof(*known));
    for (size_t i = 0; i < analysis->variant_n; i++) {
        known[i] = (struct sat_state){ .variant = analysis->variants[i].name };
        for (size_t k = 0; k < n; k++)
            if (str_eq(states[k].variant, known[i].variant))
                known[i] = states[k];
    }
    return make_plan(a, analysis, known, analysis->variant_n);
}

struct sat_targets sat_decide_compat(struct arena *a, enum sat_era era,
                                     const struct sat_analysis *analysis,
                                     const struct sat_state *states, size_t n)
{
    if (analysis->variant_n == 0) {
        struct plan hold = make_plan(a, analysis, states, n);
        for (size_t i = 0; i < n; i++)
            hold.target[i] = hold.states[i]->current;
        return make_targets(&hold, &(struct decision_basis){ .analysis = analysis });
    }
    struct plan p = plan_analyzed(a, analysis, states, n);
    bool *eligible = arena_array(a, p.n, sizeof(bool)), moving = false;
    if (era == SAT_ERA_2026)
        moving = prepare_2026(&p, analysis, eligible);
    else
        prepare_seed(&p, eligible);
    if (!moving && analysis->scale_up)
        add_one_replica(&p, eligible);
    else if (!moving && analysis->scale_down_safe)
        remove_one_replica(&p, eligible);
    struct sat_targets result = make_targets(&p, &(struct decision_basis){ .analysis = analysis });
    result.in_transition = moving;
    return result;
}
