/* The product's saturation rules as policies: what saturation_engine.c does for one model in one cycle, with the
 * same cores. Metrics are those of collect_prometheus.c (the highest of a minute per pod), the states those of
 * saturation_gather.c. Decisions go through an HPA per variant (metric External, AverageValue 1, default
 * behavior), as most users run them; the engine looks every 30 s, the HPA every 15 s. The policies with the suffix
 * -direct write the scale themselves. */
#include "fleet_query.h"
#include "policies.h"

#include "../saturation/config/config_core.h"
#include "../saturation/wva/decide_core.h"
#include "../saturation/wva/token_core.h"

#include <math.h>
#include <stdio.h>

static const double engine_s = 30, sync_s = 15;
static const int64_t transition_ns = 300 * (int64_t)1000000000;

struct tracked { /* what saturation_state.h keeps of a variant */
    int desired;
    int seen_current, seen_ready;
    int64_t steady_ns, decided_ns, waiting_ns, grown_ns;
    bool growing;
};

struct rules_policy {
    struct fleet_policy policy;
    enum decide_rules rules;
    bool by_tokens; /* version 2 */
    bool taught;    /* version 2: saw a queue at the load of the first minutes */
    bool direct;    /* writes the scale itself */
    struct tracked tracked[FLEET_VARIANTS_MAX];
    struct decide_memory memory;
    struct sat_token_store store;
    struct policy_followers *followers;
    struct arena scratch;
    int64_t engine_ns; /* next look */
    char reason[FLEET_REASON_ROOM];
};

/* ---- gathering */

struct gathered {
    struct sat_replica *replicas;
    size_t replica_n;
    struct sat_state *states;
    int unknown[FLEET_VARIANTS_MAX];
};

static double finite_or_nan(double value)
{
    return isfinite(value) && value >= 0 ? value : NAN;
}

/* The highest cache usage and queue of the last minute per ready pod; NaN where Prometheus has no sample. */
static void gather_replicas(const struct fleet *f, struct arena *a, struct gathered *g)
{
    struct series_range minute = { fleet_now_s(f), 60 };
    g->replicas = arena_array(a, f->replicas.n, sizeof(*g->replicas));
    for (size_t i = 0; i < f->replicas.n; i++) {
        const struct fleet_replica *r = f->replicas.at[i];
        const struct fleet_variant *v = &f->config->variants[r->variant];
        if (r->phase != FLEET_READY)
            continue;
        double kv = finite_or_nan(series_max(r->series, SERIES_KV, minute));
        double queue = trunc(finite_or_nan(series_max(r->series, SERIES_WAITING, minute)));
        g->unknown[r->variant] += isnan(kv) || isnan(queue);
        g->replicas[g->replica_n++] = (struct sat_replica){ .pod = str_c(r->name),
                                                            .variant = v->name,
                                                            .accelerator = v->name,
                                                            .cost = v->cost,
                                                            .kv_usage = kv,
                                                            .queue = queue };
    }
}

/* As stuck_replicas() and is_settled() of saturation_gather.c. */
static int track_stuck(struct tracked *t, int current, int ready, int64_t now_ns)
{
    if (ready >= current)
        t->waiting_ns = 0;
    else if (!t->waiting_ns || ready > t->seen_ready || current > t->seen_current)
        t->waiting_ns = now_ns;
    t->seen_ready = ready;
    int64_t since_ns = MAX(t->waiting_ns, t->decided_ns);
    return t->waiting_ns && now_ns - since_ns > transition_ns ? current - ready : 0;
}

static bool track_settled(struct tracked *t, int current, int64_t now_ns)
{
    if (current != t->seen_current || !t->steady_ns)
        t->steady_ns = now_ns;
    t->seen_current = current;
    return now_ns - MAX(t->steady_ns, t->decided_ns) > transition_ns;
}

/* What the engine knows of each variant. Replicas without metrics count as pending where the rules ask for
 * it. */
static void gather_states(struct rules_policy *p, const struct fleet *f, struct arena *a,
                          struct gathered *g)
{
    const struct fleet_config *c = f->config;
    g->states = arena_array(a, c->variant_n, sizeof(*g->states));
    for (size_t v = 0; v < c->variant_n; v++) {
        struct tracked *t = &p->tracked[v];
        int current = f->current[v], ready = f->ready[v];
        int stuck = track_stuck(t, current, ready, f->now_ns);
        struct sat_state *s = &g->states[v];
        *s = (struct sat_state){
            .variant = c->variants[v].name,
            .current = current,
            .desired = t->desired,
            .pending = MAX(0, current - ready),
            .stuck = stuck,
            .min = c->variants[v].min,
            .max = c->variants[v].max,
            .cost = c->variants[v].cost,
            .settled = track_settled(t, current, f->now_ns),
            .tolerance_up = 0.1,
            .tolerance_down = 0.1,
        };
        if (t->growing && current >= t->desired && s->pending <= 0) {
            t->growing = false;
            t->grown_ns = f->now_ns;
        }
        if (p->rules == DECIDE_BY_NEED)
            s->pending += g->unknown[v];
    }
}

static bool has_just_grown(const struct rules_policy *p, const struct fleet *f)
{
    int64_t memory_ns = (int64_t)(60 + engine_s) * 1000000000, grown = 0;
    for (size_t v = 0; v < f->config->variant_n; v++)
        grown = MAX(grown, p->tracked[v].grown_ns);
    return grown && f->now_ns - grown < memory_ns;
}

/* ---- deciding */

static size_t find_variant(const struct fleet *f, str name)
{
    size_t v = 0;
    while (!str_eq(f->config->variants[v].name, name))
        v++;
    return v;
}

/* Keeps a decision with its time, which the transition rules need, and appends its reason. */
static void note_target(struct rules_policy *p, const struct fleet *f, size_t v, int target,
                        str reason)
{
    struct tracked *t = &p->tracked[v];
    bool fresh = target != t->desired;
    if (fresh)
        t->decided_ns = f->now_ns;
    if (fresh && target > f->current[v])
        t->growing = true;
    t->desired = target;
    size_t n = strlen(p->reason);
    if (f->current[v] || target)
        snprintf(p->reason + n, sizeof(p->reason) - n, "%s" STR_FMT ": " STR_FMT, n ? "; " : "",
                 STR_ARG(f->config->variants[v].name), STR_ARG(reason));
}

/* The means that the engine asks Prometheus for, and the targets. */
static struct decide_latency query_latency(const struct fleet *f)
{
    return (struct decide_latency){
        .ttft = fleet_query_ratio(f, SERIES_TTFT_SUM, SERIES_TTFT_COUNT, 60),
        .itl = fleet_query_ratio(f, SERIES_ITL_SUM, SERIES_ITL_COUNT, 60),
        .ttft_target = f->config->ttft_s,
        .itl_target = f->config->itl_s,
    };
}

/* One cycle of version 1: gather, decide_model(), keep the targets. */
static void decide_by_rules(struct rules_policy *p, const struct fleet *f, struct arena *a)
{
    struct gathered g = { 0 };
    gather_replicas(f, a, &g);
    gather_states(p, f, a, &g);
    /* a variant without replicas is inactive: it takes no part */
    struct sat_state *active = arena_array(a, f->config->variant_n, sizeof(*active));
    size_t n = 0;
    for (size_t v = 0; v < f->config->variant_n; v++)
        if (f->current[v] > 0)
            active[n++] = g.states[v];
    struct decide_input in = { .rules = p->rules,
                               .mode = DECIDE_CAPACITY,
                               .config = sat_config_builtin,
                               .replicas = g.replicas,
                               .replica_n = g.replica_n,
                               .states = active,
                               .state_n = n,
                               .just_grown = has_just_grown(p, f),
                               .memory = &p->memory,
                               .now = fleet_now_s(f),
                               .latency = query_latency(f) };
    struct decide_answers answers = decide_model(a, &in);
    for (size_t i = 0; i < answers.n; i++)
        note_target(p, f, find_variant(f, answers.at[i].variant), answers.at[i].target,
                    answers.at[i].reason);
}

/* ---- version 2 */

/* Version 2 takes for the capacity of a replica what its cache held when five requests waited at it, and keeps
 * the mean of the last ten such moments: one queue at normal load makes it careful for hours, none leaves it with a
 * bound derived from the command line, which knows no latency. The policy v2-taught is given such moments, in
 * the fifth minute. */
static bool is_being_taught(const struct rules_policy *p, const struct fleet *f)
{
    double now_s = fleet_now_s(f);
    return p->taught && now_s > 240 && now_s <= 300;
}

static double mean_tokens(const struct series *s, double now_s, enum series_field sum,
                          enum series_field count)
{
    struct series_range range = { now_s, 300 };
    double n = series_rate(s, count, range);
    return n > 0 ? series_rate(s, sum, range) / n : 0;
}

/* One cycle of version 2: capacity and demand in tokens (token_core.h). */
static void decide_by_tokens(struct rules_policy *p, const struct fleet *f, struct arena *a)
{
    const struct fleet_config *c = f->config;
    struct gathered g = { 0 };
    gather_replicas(f, a, &g);
    struct sat_token_replica *replicas = arena_array(a, f->replicas.n, sizeof(*replicas));
    size_t n = 0;
    for (size_t i = 0; i < f->replicas.n; i++) {
        const struct fleet_replica *r = f->replicas.at[i];
        const struct replica_profile *profile = &c->variants[r->variant].profile;
        if (r->phase != FLEET_READY)
            continue;
        const struct sat_replica *seen = &g.replicas[n];
        int64_t capacity = (int64_t)profile->kv_blocks * profile->block_tokens;
        bool known = !isnan(seen->kv_usage) && !isnan(seen->queue);
        double queue = is_being_taught(p, f) ? fmax(seen->queue, sat_config_builtin.queue_threshold)
                                             : seen->queue;
        replicas[n++] = (struct sat_token_replica){
            .variant = seen->variant,
            .accelerator = seen->accelerator,
            .cost = seen->cost,
            .queue = known ? queue : 0,
            .capacity = known ? capacity : 0,
            .in_use = known ? (int64_t)llround(seen->kv_usage * (double)capacity) : 0,
            .input_tokens =
                mean_tokens(r->series, fleet_now_s(f), SERIES_INPUT_SUM, SERIES_INPUT_COUNT),
            .output_tokens =
                mean_tokens(r->series, fleet_now_s(f), SERIES_OUTPUT_SUM, SERIES_OUTPUT_COUNT),
        };
    }
    struct sat_token_state *states = arena_array(a, c->variant_n, sizeof(*states));
    size_t state_n = 0;
    for (size_t v = 0; v < c->variant_n; v++)
        if (f->current[v] > 0)
            states[state_n++] = (struct sat_token_state){ c->variants[v].name, f->current[v],
                                                          f->current[v] - f->ready[v], 1 };
    struct sat_token_input in = { .ns = S("llm"),
                                  .model = S("model"),
                                  .kv_threshold = sat_config_builtin.kv_threshold,
                                  .queue_threshold = sat_config_builtin.queue_threshold,
                                  .replicas = replicas,
                                  .replica_n = n,
                                  .states = states,
                                  .state_n = state_n };
    struct sat_token_analysis analysis = sat_token_analyze(a, &p->store, &in);
    const struct sat_token_target *targets = sat_token_decide(a, &analysis, states);
    for (size_t i = 0; i < state_n; i++)
        note_target(p, f, find_variant(f, targets[i].variant), (int)targets[i].replicas,
                    targets[i].reason);
}

/* The flags of the pod template's command line, known before the first replica. */
static void know_templates(struct rules_policy *p, const struct fleet_config *c)
{
    for (size_t v = 0; v < c->variant_n; v++) {
        const struct replica_profile *profile = &c->variants[v].profile;
        struct sat_vllm_args args = { .gpu_memory_utilization = 0.9,
                                      .block_size = profile->block_tokens,
                                      .kv_cache_dtype = S("auto"),
                                      .tensor_parallel = 1,
                                      .max_batched_tokens = profile->max_batched_tokens,
                                      .max_seqs = profile->max_seqs,
                                      .v1_engine = true,
                                      .chunked_prefill = true };
        sat_token_store_template(&p->store,
                                 (struct sat_token_variant){ S("llm"), S("model"),
                                                             c->variants[v].name },
                                 (struct sat_token_hardware){ c->variants[v].name, 1 }, &args);
    }
}

/* ---- the policy */

/* Runs the engine if its cycle is due, and hands the targets it last decided to the HPAs or to the scale. */
static void step_rules(struct fleet_policy *policy, const struct fleet *f,
                       struct fleet_answer *answer)
{
    struct rules_policy *p = container_of(policy, struct rules_policy, policy);
    if (f->now_ns >= p->engine_ns) {
        struct arena_mark mark = arena_mark(&p->scratch);
        p->engine_ns = f->now_ns + (int64_t)(engine_s * 1e9);
        p->reason[0] = '\0';
        if (p->by_tokens)
            decide_by_tokens(p, f, &p->scratch);
        else
            decide_by_rules(p, f, &p->scratch);
        arena_reset(&p->scratch, mark);
    }
    int desired[FLEET_VARIANTS_MAX];
    for (size_t v = 0; v < f->config->variant_n; v++)
        desired[v] = p->tracked[v].desired > 0 ? p->tracked[v].desired : f->current[v];
    if (p->direct)
        memcpy(answer->targets, desired, f->config->variant_n * sizeof(*desired));
    else
        fleet_policy_follow(p->followers, f, desired, answer->targets);
    snprintf(answer->reason, sizeof(answer->reason), "%s", p->reason);
}

static void free_rules(struct fleet_policy *policy)
{
    struct rules_policy *p = container_of(policy, struct rules_policy, policy);
    sat_token_store_done(&p->store);
    fleet_policy_followers_free(p->followers);
    arena_done(&p->scratch);
    free(p);
}

static struct rules_policy *rules_new(const struct fleet_config *c, const char *name,
                                      enum decide_rules rules)
{
    struct rules_policy *p = mem_zero(1, sizeof(*p));
    p->policy = (struct fleet_policy){ name, sync_s, step_rules, free_rules };
    p->rules = rules;
    p->followers = fleet_policy_followers_new(c->variant_n);
    p->direct = strstr(name, "-direct") != NULL;
    return p;
}

#define RULES_POLICY(function, name, rules)                                                        \
    struct fleet_policy *function(const struct fleet_config *config)                               \
    {                                                                                              \
        return &rules_new(config, name, rules)->policy;                                            \
    }
RULES_POLICY(fleet_policy_need, "need", DECIDE_BY_NEED)
RULES_POLICY(fleet_policy_need_direct, "need-direct", DECIDE_BY_NEED)
RULES_POLICY(fleet_policy_seed, "seed", DECIDE_SEED)
RULES_POLICY(fleet_policy_2026, "2026", DECIDE_2026)
RULES_POLICY(fleet_policy_2026_direct, "2026-direct", DECIDE_2026)

static struct fleet_policy *v2_new(const struct fleet_config *config, const char *name)
{
    struct rules_policy *p = rules_new(config, name, DECIDE_2026);
    p->by_tokens = true;
    p->taught = strstr(name, "-taught") != NULL;
    know_templates(p, config);
    return &p->policy;
}

struct fleet_policy *fleet_policy_v2(const struct fleet_config *config)
{
    return v2_new(config, "v2");
}

struct fleet_policy *fleet_policy_v2_direct(const struct fleet_config *config)
{
    return v2_new(config, "v2-direct");
}

struct fleet_policy *fleet_policy_v2_taught(const struct fleet_config *config)
{
    return v2_new(config, "v2-taught");
}
