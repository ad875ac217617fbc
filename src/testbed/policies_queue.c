/* The product's optimizer (optimize_core.h, the original's queueing model) as a policy, with the profile that the
 * simulated servers really have: decode(n) = alpha + beta n, prefill(n) = gamma + delta * tokens * n. An iteration
 * with n sequences in a steady state computes n * in / out prompt tokens and attends to n * (in + out / 2) tokens, so
 *
 *     alpha = base, beta = perSeq + perPromptToken * in / out + perCachedToken * (in + out / 2)
 *     gamma = base, delta = perPromptToken
 *
 * for requests of the trace's mean lengths. The load is what collect_prometheus.c asks for. Decisions go through an
 * HPA per variant, every 30 s as those of the rules. */
#include "fleet_query.h"
#include "policies.h"

#include "../saturation/wva/optimize_core.h"

#include <math.h>
#include <stdio.h>

static const double engine_s = 30, sync_s = 15;

struct queue_policy {
    struct fleet_policy policy;
    struct variant_spec specs[FLEET_VARIANTS_MAX];
    struct variant_profile profiles[FLEET_VARIANTS_MAX];
    struct alloc_accelerator accelerators[FLEET_VARIANTS_MAX];
    struct alloc_target target;
    struct alloc_class class;
    struct optimize_catalog catalog;
    int desired[FLEET_VARIANTS_MAX];
    struct policy_followers *followers;
    struct arena scratch;
    int64_t engine_ns;
    char reason[FLEET_REASON_ROOM];
};

static struct sat_load_view query_load(const struct fleet *f)
{
    return (struct sat_load_view){
        fleet_query_rate(f, SERIES_SUCCESS, 60) * 60,
        fleet_query_ratio(f, SERIES_INPUT_SUM, SERIES_INPUT_COUNT, 60),
        fleet_query_ratio(f, SERIES_OUTPUT_SUM, SERIES_OUTPUT_COUNT, 60),
        fleet_query_ratio(f, SERIES_ITL_SUM, SERIES_ITL_COUNT, 60) * 1e3,
        fleet_query_ratio(f, SERIES_TTFT_SUM, SERIES_TTFT_COUNT, 60) * 1e3,
    };
}

/* One cycle of the optimizer over the variants with replicas. On failure the last targets stay. */
static void decide_by_queue(struct queue_policy *p, const struct fleet *f)
{
    const struct fleet_config *c = f->config;
    struct optimize_variant variants[FLEET_VARIANTS_MAX];
    size_t index[FLEET_VARIANTS_MAX], n = 0;
    int targets[FLEET_VARIANTS_MAX];
    for (size_t v = 0; v < c->variant_n; v++)
        if (f->current[v] > 0) {
            index[n] = v;
            variants[n++] = (struct optimize_variant){ c->variants[v].name, c->variants[v].name,
                                                       &p->specs[v], f->current[v] };
        }
    struct optimize_input in = { .catalog = &p->catalog,
                                 .model = S("model"),
                                 .variants = variants,
                                 .n = n,
                                 .load = query_load(f),
                                 .at_work = true };
    err_t e;
    if (optimize_model(&p->scratch, &in, targets, &e) < 0) {
        snprintf(p->reason, sizeof(p->reason), "%.*s", FLEET_REASON_ROOM - 1, e.text);
        return;
    }
    for (size_t i = 0; i < n; i++)
        p->desired[index[i]] = targets[i];
    snprintf(p->reason, sizeof(p->reason), "%.1f requests per minute, %.0f and %.0f tokens each",
             in.load.arrival_per_min, in.load.input_tokens, in.load.output_tokens);
}

static void step_queue(struct fleet_policy *policy, const struct fleet *f,
                       struct fleet_answer *answer)
{
    struct queue_policy *p = container_of(policy, struct queue_policy, policy);
    if (f->now_ns >= p->engine_ns) {
        struct arena_mark mark = arena_mark(&p->scratch);
        p->engine_ns = f->now_ns + (int64_t)(engine_s * 1e9);
        decide_by_queue(p, f);
        arena_reset(&p->scratch, mark);
    }
    int desired[FLEET_VARIANTS_MAX];
    for (size_t v = 0; v < f->config->variant_n; v++)
        desired[v] = p->desired[v] > 0 ? p->desired[v] : f->current[v];
    fleet_policy_follow(p->followers, f, desired, answer->targets);
    snprintf(answer->reason, sizeof(answer->reason), "%s", p->reason);
}

static void free_queue(struct fleet_policy *policy)
{
    struct queue_policy *p = container_of(policy, struct queue_policy, policy);
    fleet_policy_followers_free(p->followers);
    arena_done(&p->scratch);
    free(p);
}

static struct variant_profile true_profile(const struct fleet_config *c, size_t v)
{
    const struct replica_profile *r = &c->variants[v].profile;
    double in = c->mean_prompt, out = fmax(c->mean_output, 1), context = in + out / 2;
    double fits = (double)r->kv_blocks * r->block_tokens / fmax(context, 1);
    double beta =
        r->per_seq_ms + r->per_prompt_token_ms * in / out + r->per_cached_token_ms * context;
    return (struct variant_profile){ .accelerator = c->variants[v].name,
                                     .accelerators = 1,
                                     .batch_max = (int)fmax(1, fmin(r->max_seqs, fits)),
                                     .alpha = (float)r->base_ms,
                                     .beta = (float)beta,
                                     .gamma = (float)r->base_ms,
                                     .delta = (float)r->per_prompt_token_ms };
}

struct fleet_policy *fleet_policy_queue_model(const struct fleet_config *c)
{
    struct queue_policy *p = mem_zero(1, sizeof(*p));
    p->policy = (struct fleet_policy){ "queue-model", sync_s, step_queue, free_queue };
    p->followers = fleet_policy_followers_new(c->variant_n);
    for (size_t v = 0; v < c->variant_n; v++) {
        str name = c->variants[v].name;
        p->profiles[v] = true_profile(c, v);
        p->specs[v] = (struct variant_spec){ .model = S("model"),
                                             .cost = c->variants[v].cost,
                                             .profiles = &p->profiles[v],
                                             .profile_n = 1 };
        p->accelerators[v] =
            (struct alloc_accelerator){ name, name, 1, (float)c->variants[v].cost };
    }
    p->target = (struct alloc_target){
        S("model"), { .ttft_ms = (float)(c->ttft_s * 1e3), .itl_ms = (float)(c->itl_s * 1e3) }
    };
    p->class = (struct alloc_class){
        .name = S("class"), .priority = 1, .targets = &p->target, .target_n = 1
    };
    p->catalog = (struct optimize_catalog){ .accelerators = p->accelerators,
                                            .accelerator_n = c->variant_n,
                                            .classes = &p->class,
                                            .class_n = 1,
                                            .problem = S("") };
    return &p->policy;
}
