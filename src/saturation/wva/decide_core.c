/* One decision about one model: see decide_core.h.
 *
 *     samples ─► sat_analyze ─► apply_memory ─► targets by rule ─► answer_for (with the optimizer) ─► keep_needed
 *                                                (need, slo, WVA)                                         │
 *                                        update_memory ◄─ answers, sorted by variant ◄─ apply_zero_rules ◄┘
 *
 * The rule `need` (target_core.c) sees one moment only. Three things that a moment does not show
 * come from the memory between decisions, because without them the rule oscillated (2, 4, 8, 16, 9,
 * 3 replicas in 100 s on one step of the load):
 * - A backlog is not a rate. While replicas are starting, or while the backlog shrinks, it does not
 *   ask for more, unless it has doubled since they were requested.
 * - Low use proves nothing while requests wait or latency is at its target: then nothing is
 *   removed. At its latency target, a compute-bound model has only a quarter of its cache full.
 * - Replicas are not removed before they could have served: nothing is removed within a start delay
 *   of a scale-up.
 *
 * The memory is the caller's, one per model; everything else lives in the arena. */
#include "decide_core.h"

#include <math.h>

static const struct sat_target *find_target(const struct sat_targets *targets, str variant)
{
    for (size_t i = 0; i < targets->n; i++)
        if (str_eq(targets->at[i].variant, variant))
            return &targets->at[i];
    return NULL;
}

static int by_variant(const void *a, const void *b)
{
    const struct decide_answer *x = a, *y = b;
    return str_cmp(x->variant, y->variant);
}

/* Holds scale-ups: a backlog from before the last one would ask for the same replicas again. */
static void hold_scale_up(const struct decide_input *in, struct sat_targets *targets)
{
    for (size_t i = 0; i < in->state_n; i++)
        for (size_t k = 0; k < targets->n; k++) {
            const struct sat_state *s = &in->states[i];
            struct sat_target *t = &targets->at[k];
            int base = sat_clamp_to_bounds(s, MAX(s->current, s->desired));
            if (str_eq(t->variant, s->variant) && t->replicas > base) {
                t->replicas = base;
                t->reason = S(
                    "no scale-up: the effect of the replicas that were just added is not visible yet");
            }
        }
}

/* ---- need: what a single moment does not show */

static const double start_delay_default = 120, latency_near = 0.9;
static const double start_delay_gain = 0.3, start_delay_least = 5; /* as in slo_core.c */
/* Fewer waiting requests than one per ten replicas do not count: some pod always has one, and a
 * large model could never scale down. */
static const double waiting_per_replica = 0.1;

static bool is_near(double value, double target)
{
    return value > 0 && target > 0 && value >= latency_near * target;
}

static bool is_growing(const struct decide_input *in)
{
    for (size_t i = 0; i < in->state_n; i++) {
        const struct sat_state *s = &in->states[i];
        if (s->pending > s->stuck ||
            (!s->settled && sat_clamp_to_bounds(s, s->desired) > s->current))
            return true;
    }
    return false;
}

/* Why no replica may be removed now; "": no reason. */
static str reason_to_keep(struct arena *a, const struct decide_input *in,
                          const struct sat_analysis *analysis)
{
    const struct decide_latency *l = &in->latency;
    double delay = in->memory->start_delay > 0 ? in->memory->start_delay : start_delay_default;
    if (analysis->load_queue > waiting_per_replica * analysis->replicas)
        return arena_printf(a, "%.0f requests are waiting", analysis->load_queue);
    if (is_near(l->ttft, l->ttft_target))
        return arena_printf(a, "TTFT is %.2f s with a target of %.2f s", l->ttft, l->ttft_target);
    if (is_near(l->itl, l->itl_target))
        return arena_printf(a, "ITL is %.3f s with a target of %.3f s", l->itl, l->itl_target);
    if (in->memory->grown_at > 0 && in->now - in->memory->grown_at < delay)
        return S("replicas were added less than a start delay ago");
    return S("");
}

/* The delay that is waited for is the model's own: two minutes for one that starts in ten seconds
 * would hold an idle fleet for nothing. */
static void learn_start_delay(struct decide_memory *m, double took)
{
    if (!(took > 0))
        return;
    took = fmax(took, start_delay_least);
    m->start_delay =
        m->start_delay > 0 ? m->start_delay + start_delay_gain * (took - m->start_delay) : took;
}

/* Adds to the analysis what only the past shows. */
static void apply_memory(struct arena *a, const struct decide_input *in,
                         struct sat_analysis *analysis)
{
    struct decide_memory *m = in->memory;
    learn_start_delay(m, in->start_delay);
    if (is_growing(in))
        analysis->draining = analysis->load_queue <= 2 * m->queue_at_growth;
    else
        analysis->draining = analysis->load_queue < m->queue;
    analysis->keep = reason_to_keep(a, in, analysis);
}

static void update_memory(const struct decide_input *in, const struct decide_answers *answers)
{
    struct decide_memory *m = in->memory;
    bool grows = false;
    for (size_t i = 0; i < answers->n; i++)
        for (size_t k = 0; k < in->state_n; k++)
            if (str_eq(answers->at[i].variant, in->states[k].variant))
                grows |= answers->at[i].target > MAX(in->states[k].current, in->states[k].desired);
    m->queue = answers->analysis.load_queue;
    if (grows) {
        m->queue_at_growth = m->queue;
        m->grown_at = in->now;
    }
}

static struct sat_targets capacity_targets(struct arena *a, const struct decide_input *in,
                                           const struct sat_analysis *analysis)
{
    if (in->rules == DECIDE_SLO || in->rules == DECIDE_TOKENS)
        return *in->slo;
    if (in->rules == DECIDE_BY_NEED) {
        struct sat_targets targets = sat_decide(a, &in->config, analysis, in->states, in->state_n);
        if (in->just_grown &&
            analysis->non_saturated > 0) /* if all are saturated, the new ones are too */
            hold_scale_up(in, &targets);
        return targets;
    }
    enum sat_era era = in->rules == DECIDE_SEED ? SAT_ERA_SEED : SAT_ERA_2026;
    return sat_decide_compat(a, era, analysis, in->states, in->state_n);
}

/* The answer for one variant: from capacity, from the optimizer, or from arbitration between them.
 */
static struct decide_answer answer_for(struct arena *a, const struct decide_input *in, size_t i,
                                       const struct sat_target *capacity, bool scale_down_safe)
{
    const struct sat_state *s = &in->states[i];
    struct decide_answer answer = {
        .variant = s->variant,
        .current = s->current,
        .target = sat_clamp_to_bounds(s, capacity ? capacity->replicas : s->current),
        .reason = capacity ? capacity->reason : S("no replica reports metrics"),
        .source = capacity && capacity->by_bounds ? DECIDE_FROM_BOUNDS
                  : in->rules == DECIDE_SLO       ? DECIDE_FROM_SLO
                                                  : DECIDE_FROM_CAPACITY,
    };
    if (in->mode == DECIDE_CAPACITY || !in->model_targets)
        return answer;
    int model = sat_clamp_to_bounds(s, in->model_targets[i]);
    if (in->mode == DECIDE_MODEL_ONLY) {
        answer.target = model;
        answer.source = DECIDE_FROM_MODEL;
        answer.reason = arena_printf(a, "model-based only: %s to %d",
                                     sat_action_name(s->current, model), model);
        return answer;
    }
    struct hybrid_decision d =
        hybrid_arbitrate(a, (struct hybrid_input){ .variant = s->variant,
                                                   .current = s->current,
                                                   .capacity_target = answer.target,
                                                   .model_target = model,
                                                   .scale_down_safe = scale_down_safe });
    answer.target = sat_clamp_to_bounds(s, d.replicas);
    answer.source = d.safety_override ? DECIDE_FROM_VETO : DECIDE_FROM_MODEL;
    answer.reason = d.reason;
    return answer;
}

/* The state of a variant; every answer has one. */
static const struct sat_state *state_of(const struct decide_input *in, str variant)
{
    size_t i = 0;
    while (i + 1 < in->state_n && !str_eq(in->states[i].variant, variant))
        i++;
    return &in->states[i];
}

/* Capacity analysis confirms only that one replica may go, but an optimizer may remove many. Takes
 * removals back until the replicas that exist and stay are enough for the load; replicas added
 * elsewhere are not ready yet. */
static void keep_needed(struct arena *a, struct decide_answers *answers,
                        const struct decide_input *in)
{
    int left = 0;
    for (size_t i = 0; i < answers->n; i++)
        left += MIN(answers->at[i].target,
                    answers->at[i].current - state_of(in, answers->at[i].variant)->stuck);
    for (size_t i = 0; i < answers->n; i++) {
        struct decide_answer *x = &answers->at[i];
        int most = sat_clamp_to_bounds(state_of(in, x->variant), x->current);
        int back = MIN(most - x->target, answers->needed - left);
        if (back <= 0 || x->source != DECIDE_FROM_MODEL)
            continue;
        x->reason = arena_printf(a,
                                 "saturation safety block: the load needs %d replicas of the model "
                                 "(model-based wants %d)",
                                 answers->needed, x->target);
        x->source = DECIDE_FROM_VETO;
        x->target += back;
        left += back;
    }
}

/* ---- scale to zero */

/* An explicit minimum also applies to an idle model. */
static void keep_minimums(struct arena *a, struct decide_answers *answers,
                          const struct decide_input *in)
{
    for (size_t i = 0; i < in->state_n; i++)
        for (size_t k = 0; in->keeps_min && in->keeps_min[i] && k < answers->n; k++)
            if (str_eq(answers->at[k].variant, in->states[i].variant) &&
                answers->at[k].target < in->states[i].min) {
                answers->at[k].target = in->states[i].min;
                answers->at[k].source = DECIDE_FROM_BOUNDS;
                answers->at[k].reason =
                    arena_printf(a, "idle, but its minimum of %d holds", in->states[i].min);
            }
}

/* Scales an idle model to zero if that is enabled; else keeps its last replica. */
static void apply_zero_rules(struct arena *a, struct decide_answers *answers,
                             const struct decide_input *in)
{
    struct sat_target *targets = arena_array(a, answers->n, sizeof(*targets));
    double *costs = arena_array(a, answers->n, sizeof(*costs));
    for (size_t i = 0; i < answers->n; i++) {
        const struct decide_answer *x = &answers->at[i];
        targets[i] = (struct sat_target){ x->variant, x->target, x->reason };
        costs[i] = state_of(in, x->variant)->cost;
    }
    struct hybrid_zero_input rules = { .scale_to_zero = in->scale_to_zero,
                                       .requests_known = in->requests_known,
                                       .requests = in->requests,
                                       .costs = costs };
    if (!hybrid_enforce_zero(targets, answers->n, &rules))
        return;
    for (size_t i = 0; i < answers->n; i++) {
        if (answers->at[i].target != targets[i].replicas) {
            answers->at[i].reason = targets[i].reason;
            answers->at[i].source = DECIDE_FROM_ZERO;
        }
        answers->at[i].target = targets[i].replicas;
    }
    keep_minimums(a, answers, in);
}

struct decide_answers decide_model(struct arena *a, const struct decide_input *in)
{
    struct decide_answers answers = { .n = in->state_n };
    answers.analysis = sat_analyze(a, &in->config, in->replicas, in->replica_n);
    if (in->rules == DECIDE_BY_NEED && in->memory)
        apply_memory(a, in, &answers.analysis);
    struct sat_targets targets = capacity_targets(a, in, &answers.analysis);
    answers.needed = targets.needed;
    answers.in_transition = decide_is_compat(in->rules) && targets.in_transition;
    answers.at = arena_array(a, in->state_n, sizeof(*answers.at));
    for (size_t i = 0; i < in->state_n; i++)
        answers.at[i] = answer_for(a, in, i, find_target(&targets, in->states[i].variant),
                                   answers.analysis.scale_down_safe);
    qsort(answers.at, answers.n, sizeof(*answers.at), by_variant);
    if (in->rules == DECIDE_BY_NEED && in->mode == DECIDE_HYBRID)
        keep_needed(a, &answers, in);
    apply_zero_rules(a, &answers, in);
    if (in->rules == DECIDE_BY_NEED && in->memory)
        update_memory(in, &answers);
    return answers;
}
