/* Replicas of each variant from spare capacity: the rule `need`, and WVA's own rules for
 * comparison.
 *
 * The problem. Replicas report how full their KV cache is and how many requests wait. Which
 * variants should have how many replicas, so that the load fits with some room to spare, at the
 * least cost? WVA adds or removes one replica per cycle and locks the model until the change has
 * arrived, so a step of the load takes one cycle per replica, and a target that a bound makes
 * unreachable locks the model forever.
 *
 * The rule. The load of a model is the sum of its replicas' use. With a threshold T and a trigger
 * G, a replica should carry at most T - G, so the model needs
 *
 *     need = max( ceil(sum of KV use / (Tkv - Gkv)), ceil(sum of queues / (Tq - Gq)) )
 *
 * replicas, and it goes there in one decision.
 *
 * The invariant. On a constant load the answer is a fixed point: the need is computed from the load
 * and does not depend on the replicas that carry it, so the answer after a change is the answer
 * before it, and nothing oscillates. needs_more() protects the fixed point from rounding: a load
 * that fits exactly must not ask for a replica that the next decision finds to be one too many.
 *
 * How a decision is made:
 *
 *     states ──► base target (where each variant is, or is going to) ──► total
 *     analysis ─► need
 *                   │ need > total: withdraw_scale_down, then add_replicas (cheapest variant first)
 *                   │ need < total: remove_replicas (most expensive variant first)
 *                   └ otherwise:    hold
 *     ──► bounds, the HPA's tolerance ──► targets with reasons
 *
 * - A variant that is still moving to an earlier target counts as if it were there, so nothing is
 *   added or removed twice. After --wva-transition-timeout without movement it no longer counts as
 *   moving (`settled`).
 * - Replicas that do not become ready (`stuck`) are no capacity, and their variant does not grow;
 *   others do instead.
 * - Replicas are removed only when nothing moves, every replica reports, and decide_core.c gives no
 *   reason to keep them.
 * - A scale-down that has not been carried out yet is withdrawn when the load needs the replicas
 *   again: that is free, while a new replica takes minutes.
 * - An HPA ignores a change within its tolerance. Such a scale-up is enlarged until the HPA follows
 *   it, and such a scale-down is dropped; otherwise the decision and the workload would differ
 *   indefinitely.
 *
 * A queue is a backlog, not a rate: dividing it by the trigger can ask for any number. One decision
 * therefore at most doubles the replicas (two more are always allowed), and a backlog that drains
 * by itself asks for nothing.
 *
 * Rejected: waiting until every replica is ready before the next decision, which let one variant
 * without free GPUs freeze its whole model; and letting this rule decide from single moments alone,
 * which went through 2, 4, 8, 16, 9 and 3 replicas within 100 s on one step of the load.
 * decide_core.c adds the memory that prevents this.
 *
 * Ties are broken by name, so the order of the input changes nothing. Everything lives in the
 * caller's arena. */
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
        return INT32_MAX; /* the triggers leave no room: any number is too few */
    return (int)fmin(ceil(load / per_replica - 1e-9), INT32_MAX);
}

/* Replicas that the load needs. A backlog that drains by itself needs at most `total`, which exist
 * or are coming. */
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

/* Whether the variant is moving to an earlier target that can still be reached. */
static bool is_moving(const struct sat_state *s)
{
    return s->desired > 0 && sat_clamp_to_bounds(s, s->desired) != s->current && !s->settled;
}

/* ---- adding: cheapest first */

static bool is_cheaper(const struct plan *p, size_t i, size_t best)
{
    return cost_of(p, i) < cost_of(p, best); /* ties keep the smaller name, which came first */
}

/* The smallest target above `current` that is outside the HPA's tolerance, if that is larger than
 * `target`. */
static int clear_tolerance_up(const struct sat_state *s, int target)
{
    double least = floor(s->current * (1 + s->tolerance_up) + 1e-9) + 1;
    return s->tolerance_up > 0 ? MAX(target, (int)fmin(least, INT32_MAX)) : target;
}

/* Adds `missing` replicas to the cheapest variants that have room; one that is stuck gets none. */
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

/* ---- removing: most expensive first */

/* `target` if it is outside the HPA's tolerance, else `current`: removing more than the load allows
 * is no option. */
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

/* Removes up to `surplus` replicas from the most expensive variants, down to their minimum. */
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

/* ---- withdrawing a scale-down that has not been carried out: the cheapest replicas stay */

/* Returns how many replicas are still missing after all scale-downs under way were withdrawn. */
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

/* ---- targets and reasons */

struct decision_basis {
    const struct sat_analysis *analysis;
    int needed; /* 0: WVA's rules, which do not compute it */
    int total;  /* replicas of the model that exist or are coming, without those that are stuck */
    bool lacks; /* the targets are less than the load needs: bounds prevent more */
};

/* The target of a variant before the load is considered. */
static int base_target(const struct sat_state *s)
{
    return sat_clamp_to_bounds(s, is_moving(s) ? s->desired : s->current);
}

/* The reason for a variant that the load does not change: bounds, or why it stays. */
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

/* The reason for one target. It compares with the base target, so that the text never contradicts
 * the change. */
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
        return arena_printf(p->arena,
                            "scale-up: the load needs %d replicas of the model, it has %d; " STR_FMT
                            "%s",
                            j->needed, j->total, STR_ARG(j->analysis->scale_up_reason),
                            j->lacks && p->target[i] >= get_maximum(s) ? "; limited by maxReplicas"
                                                                       : "");
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

/* Whether the spare is really below a trigger, and not only by rounding. While a backlog drains by
 * itself only the use of the caches counts, including that of replicas that are saturated by their
 * queue. */
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
        return make_targets(&p, &j); /* no replica reports: hold */
    j.needed = needed_replicas(config, analysis, total);
    int missing = withdraw_scale_down(&p, j.needed - total);
    /* Replicas that are coming count as present; those that are leaving are not removed twice. */
    if (analysis->scale_up && missing > 0)
        add_replicas(&p, missing);
    else if (!analysis->scale_up && j.needed < total && !moving && all_report && !analysis->keep.n)
        remove_replicas(&p, total - j.needed);
    int planned = 0;
    for (size_t i = 0; i < n; i++)
        planned += p.target[i] - p.states[i]->stuck;
    j.lacks = planned < j.needed;
    struct sat_targets result = make_targets(&p, &j);
    result.in_transition = moving;
    return result;
}

/* ---- WVA's rules */

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

/* WVA 2026: the whole model is locked while any variant is away from its target. Returns whether it
 * is. */
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

/* WVA of the seed era: only the variant that is away from its target is locked. */
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

/* WVA considers only variants with metrics; one without a state gets a state of zeros. */
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
