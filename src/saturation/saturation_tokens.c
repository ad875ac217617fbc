/* See saturation_tokens.h.
 *
 *     struct gathering ──► replicas with the size of their KV cache, states ──► sat_token_analyze
 *                                                                                   │ capacity, need, spare
 *                                        targets, bounded ◄── vote_decide ◄─────────┘ as the only voter
 *                                            or fair_decide, with other models (saturation_share.c)
 *
 * Mean prompt and answer lengths are those of the model, because replicas of one model share its
 * traffic. A replica whose sample is missing prevents a scale-down, as with the other rules. */
#include "saturation_tokens.h"

#include "saturation_capacity.h"
#include "saturation_limits.h"

#include <inttypes.h>
#include <math.h>

/* The configuration of the model, with all layers. */
static struct sat_resolved saturation_tokens_resolve(const struct gathering *g)
{
    str(*variants)[2] = arena_array(g->a, g->n, sizeof(*variants));
    for (size_t i = 0; i < g->n; i++) {
        variants[i][0] = g->variants[i]->name;
        variants[i][1] = g->variants[i]->spec.target_name;
    }
    struct sat_lookup q = { g->m->id, g->m->ns, (const str(*)[2])variants, g->n };
    return sat_snapshot_resolve(g->s->snapshot, &q);
}

/* A list without an analyzer that exists here selects it too, and then none votes: the model is held rather than
 * decided by a rule that the entry does not name. */
static bool is_selected(const struct gathering *g, const struct sat_resolved *r)
{
    if (g->s->o.analyzer != ANALYZER_AUTO)
        return g->s->o.analyzer == ANALYZER_TOKEN;
    return r->policy.analyzer_n > 0 || str_eqc(r->analyzer, "saturation");
}

/* ---- input */

static double positive_or_zero(double value)
{
    return isfinite(value) && value > 0 ? value : 0;
}

static struct sat_token_replica *read_replicas(const struct gathering *g)
{
    struct sat_token_replica *list = arena_array(g->a, g->replica_n, sizeof(*list));
    const struct sat_traffic *t = &g->m->feed.traffic;
    for (size_t i = 0; i < g->replica_n; i++) {
        const struct sat_replica *r = &g->replicas[i];
        const struct sat_sample *sample = collect_get_sample(&g->m->feed, r->pod);
        double tokens = sample && g->fresh ? positive_or_zero(sample->traffic.kv_tokens) : 0;
        double usage = fmin(positive_or_zero(r->kv_usage), 1);
        list[i] = (struct sat_token_replica){
            .variant = r->variant,
            .accelerator = r->accelerator,
            .cost = r->cost,
            .queue = positive_or_zero(r->queue),
            .capacity = (int64_t)fmin(tokens, 0x1p53),
            .in_use = (int64_t)round(usage * fmin(tokens, 0x1p53)),
            .input_tokens = positive_or_zero(t->in_tokens),
            .output_tokens = positive_or_zero(t->out_tokens),
            .hit_rate = t->hit_rate,
            .kv_usage = usage,
        };
    }
    return list;
}

static struct sat_token_state *read_states(const struct gathering *g)
{
    struct sat_token_state *list = arena_array(g->a, g->n, sizeof(*list));
    for (size_t i = 0; i < g->n; i++) {
        const struct variant *v = g->variants[i];
        const struct workload_record *w = saturation_get_workload(g->s, v);
        list[i] = (struct sat_token_state){
            .variant = v->name,
            .current = g->states[i].current,
            .pending = g->states[i].pending,
            .gpus_per_replica = saturation_limits_gpus(g->s, v),
            .role =
                w && (str_eqc(workload_role(w), "prefill") || str_eqc(workload_role(w), "decode"))
                    ? workload_role(w)
                    : S(""),
            .has_spec = true,
            .accelerator = v->accelerator,
            .cost = v->spec.cost,
        };
    }
    return list;
}

/* ---- decision */

static struct vote_model make_model(const struct gathering *g, const struct sat_resolved *r,
                                    const struct sat_token_analysis *t,
                                    const struct sat_token_state *states)
{
    struct vote_variant *variants = arena_array(g->a, t->n, sizeof(*variants));
    struct vote_role *roles = arena_array(g->a, t->role_n, sizeof(*roles));
    struct vote_voter *voter = arena_new(g->a, struct vote_voter);
    double *each = arena_array(g->a, t->n, sizeof(double));
    *voter = (struct vote_voter){ .name = S("saturation"),
                                  .score = policy_score(&r->policy, S("saturation")),
                                  .votes = policy_votes(&r->policy, S("saturation")),
                                  .live = true,
                                  .per_replica = each,
                                  .required = t->required,
                                  .spare = t->spare,
                                  .demand = t->demand,
                                  .roles = roles,
                                  .role_n = t->role_n };
    for (size_t i = 0; i < t->n; i++) {
        variants[i] = (struct vote_variant){ .name = t->variants[i].variant,
                                             .accelerator = t->variants[i].accelerator,
                                             .role = t->variants[i].role,
                                             .cost = t->variants[i].cost,
                                             .current = states[i].current,
                                             .min = g->states[i].min,
                                             .max = g->states[i].max,
                                             .gpus = states[i].gpus_per_replica };
        each[i] = (double)t->variants[i].per_replica;
        voter->informative |= t->variants[i].per_replica > 0;
    }
    for (size_t i = 0; i < t->role_n; i++)
        roles[i] = (struct vote_role){ t->roles[i].role, t->roles[i].required, t->roles[i].spare,
                                       t->roles[i].demand };
    return (struct vote_model){ g->m->ns, g->m->id, 1, variants, t->n, voter, 1 };
}

static str describe_decision(const struct gathering *g, size_t i,
                             const struct sat_token_analysis *t, int target, bool lacks,
                             const char *optimizer)
{
    int current = g->states[i].current;
    bool limited = lacks && g->states[i].max > 0 && target >= g->states[i].max;
    const char *action = target > current ? "scale-up" : target < current ? "scale-down" : "steady";
    return arena_printf(g->a, "V2 %s %d→%d (%s %.0f tokens, utilization %.2f, %s; optimizer %s)%s",
                        action, current, target, t->required > 0 ? "required" : "spare",
                        t->required > 0 ? t->required : t->spare, t->variants[i].utilization,
                        t->variants[i].label, optimizer, limited ? "; limited by maxReplicas" : "");
}

/* Bounds and tolerance, and no scale-down before all replicas report. A capacity that was not measured may be
 * wrong by a factor: one decision then at most doubles the replicas, or adds two. */
static int bound_target(const struct gathering *g, size_t i, int64_t replicas, const char *label)
{
    const struct sat_state *s = &g->states[i];
    int target = (int)MIN(replicas, (int64_t)SAT_REPLICAS_MAX);
    if (!strcmp(label, "P0-store") || !strcmp(label, "P3-k2"))
        target = MIN(target, MAX(2 * s->current, s->current + 2));
    if (g->unknown_n)
        target = MAX(target, s->current);
    return sat_apply_tolerance(s, sat_clamp_to_bounds(s, target));
}

static void hold_targets(const struct gathering *g, struct sat_targets *ret, const char *why)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct sat_state *s = &g->states[i];
        int last = s->desired > 0 ? s->desired : s->current;
        ret->at[i] =
            (struct sat_target){ s->variant, sat_clamp_to_bounds(s, last), str_c(why), false };
    }
}

struct sat_token_turn *saturation_tokens_prepare(struct gathering *g)
{
    struct sat_resolved r = saturation_tokens_resolve(g);
    if (!is_selected(g, &r))
        return NULL;
    g->s->collector.traffic_matters = true; /* sizes of caches are part of it */
    saturation_capacity_learn(g);
    struct sat_token_state *states = read_states(g);
    const struct policy_analyzer *own = policy_find_analyzer(&r.policy, S("saturation"));
    struct sat_token_input in = {
        .ns = g->m->ns,
        .model = g->m->id,
        .kv_threshold = r.config.kv_threshold,
        .queue_threshold = r.config.queue_threshold,
        .scale_up_at = own && own->has_up ? own->up : r.scale_up_at,
        .scale_down_at = own && own->has_down ? own->down : r.scale_down_at,
        .replicas = read_replicas(g),
        .replica_n = g->replica_n,
        .states = states,
        .state_n = g->n,
        .waiting_requests = positive_or_zero(g->m->feed.traffic.queued),
        .waiting_bytes = positive_or_zero(g->m->feed.traffic.queued_bytes),
        .rules = TOKEN_AUG2026,
    };
    struct sat_token_turn *turn = arena_new(g->a, struct sat_token_turn);
    turn->resolved = r;
    turn->analysis = sat_token_analyze(g->a, &g->s->tokens, &in);
    saturation_capacity_save(g);
    turn->vote = make_model(g, &r, &turn->analysis, states);
    turn->wanted = vote_decide(g->a, &turn->vote);
    return turn;
}

static const char *optimizer_of(const struct sat_token_turn *turn, size_t i)
{
    if (!turn->granted)
        return "cost-aware";
    return str_eqc(turn->granted[i].category, "rescale") ? "rescale" : "greedy-by-score";
}

bool saturation_tokens_decide(struct gathering *g, struct sat_targets *ret)
{
    struct sat_token_turn *turn = g->model->turn ? g->model->turn : saturation_tokens_prepare(g);
    g->turn = turn;
    if (!turn)
        return false;
    const struct vote_target *targets = turn->granted ? turn->granted : turn->wanted;
    const struct sat_token_analysis *t = &turn->analysis;
    *ret = (struct sat_targets){ arena_array(g->a, g->n, sizeof(*ret->at)), g->n, false, 0 };
    if (!targets) {
        hold_targets(g, ret,
                     turn->vote.voters[0].votes
                         ? "V2: no replica reports the size of its KV cache; the last target holds"
                         : SAT_TOKENS_NO_VOTE);
        return true;
    }
    double added = 0;
    for (size_t i = 0; i < g->n; i++)
        added += (double)(targets[i].replicas - g->states[i].current) *
                 (double)t->variants[i].per_replica;
    for (size_t i = 0; i < g->n; i++) {
        int target = bound_target(g, i, targets[i].replicas, t->variants[i].label);
        ret->at[i] = (struct sat_target){ g->states[i].variant, target,
                                          describe_decision(g, i, t, target, added < t->required,
                                                            optimizer_of(turn, i)),
                                          target != targets[i].replicas };
    }
    return true;
}
