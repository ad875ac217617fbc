/* The product's slo policy (slo_core.h) in the simulated fleet: every cycle the answers to its queries
 * (fleet_query.h) go into one step, and its targets are written to the scale directly. */
#include "fleet_query.h"
#include "policies.h"

#include "../saturation/slo_core.h"

#include <math.h>
#include <stdio.h>

_Static_assert((int)FLEET_VARIANTS_MAX <= (int)SLO_VARIANTS_MAX, "slo plans every variant");

struct slo_policy {
    struct fleet_policy policy;
    struct slo_config config;
    struct slo_state state;
};

static void fill_input(const struct fleet *f, struct slo_input *in)
{
    struct query_model q;
    fleet_query_model(f, &q);
    *in = (struct slo_input){ .now = fleet_now_s(f),
                              .arrival = q.arrival,
                              .arrival_now = fleet_query_arrival_now(f),
                              .in_tokens = q.in_tokens,
                              .out_tokens = q.out_tokens,
                              .in_tail = q.in_tail,
                              .waiting = q.waiting,
                              .queued = q.queued,
                              .ok = q.ok,
                              .finished = q.finished,
                              .season = NAN,
                              .variant_n = f->config->variant_n };
    for (size_t v = 0; v < in->variant_n; v++) {
        const struct query_variant *from = &q.variants[v];
        in->variants[v] = (struct slo_variant){ .id = v + 1,
                                                .current = from->current,
                                                .ready = from->ready,
                                                .reporting = from->reporting,
                                                .min = f->config->variants[v].min,
                                                .max = f->config->variants[v].max,
                                                .cost = f->config->variants[v].cost,
                                                .itl = from->itl,
                                                .prompt_rate = from->prompt_rate,
                                                .gen_rate = from->gen_rate,
                                                .running = from->running,
                                                .running_low = from->running_low,
                                                .running_high = from->running_high,
                                                .kv = from->kv,
                                                .kv_tokens = from->kv_tokens,
                                                .max_seqs = from->max_seqs,
                                                .start_delay = from->start_delay };
    }
}

static void step_slo(struct fleet_policy *policy, const struct fleet *f,
                     struct fleet_answer *answer)
{
    struct slo_policy *p = container_of(policy, struct slo_policy, policy);
    struct slo_input in;
    struct slo_output out;
    fill_input(f, &in);
    slo_step(&p->state, &p->config, &in, &out);
    for (size_t v = 0; v < in.variant_n; v++)
        answer->targets[v] = out.targets[v];
    snprintf(answer->reason, sizeof(answer->reason), "%s", out.reason);
}

static void free_slo(struct fleet_policy *policy)
{
    free(container_of(policy, struct slo_policy, policy));
}

struct fleet_policy *policy_slo(const struct fleet_config *config)
{
    static const double cycle_s = 15;
    struct slo_policy *p = mem_zero(1, sizeof(*p));
    p->policy = (struct fleet_policy){ "slo", cycle_s, step_slo, free_slo };
    p->config = (struct slo_config){ .ttft = config->ttft_s,
                                     .itl = config->itl_s,
                                     .goal = config->goal,
                                     .cycle = cycle_s,
                                     .reserve = config->reserve,
                                     .reserve_replicas = config->reserve_replicas };
    slo_state_init(&p->state);
    return &p->policy;
}
