/* The product's slo policy (slo_core.h) in the simulated fleet: every cycle the answers to its queries
 * (fleet_query.h) go into one step, and its targets are written to the scale directly.
 *
 * With a history it starts as the operator does in a cluster whose Prometheus has one (saturation_history.c):
 *
 *     requests of the first two minutes, at random times ─► fleet under a policy that records ─► slo_state_learn, slo_state_replay
 *
 * It then decides at once, and in its first minute the rates are still partly those of the past. */
#include "fleet_query.h"
#include "policies.h"

#include "../base/clock.h"
#include "../saturation/slo/slo_core.h"

#include <math.h>
#include <stdio.h>

_Static_assert((int)FLEET_VARIANTS_MAX <= (int)SLO_VARIANTS_MAX, "slo plans every variant");

enum { HISTORY_S = 1200, SAMPLE_S = 120, RATE_S = 60, CYCLE_S = 15 };

struct policy_history {
    VEC(struct slo_input) cycles; /* the oldest first */
};

struct slo_policy {
    struct fleet_policy policy;
    struct slo_config config;
    struct slo_state state;
    const struct policy_history *history; /* NULL: none */
};

/* The input of one cycle: the answers of fleet_query.h under the names of slo_core.h. */
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

/* ---- history */

struct recorder {
    struct fleet_policy policy;
    struct policy_history *history;
};

static void step_recorder(struct fleet_policy *policy, const struct fleet *f,
                          struct fleet_answer *answer UNUSED)
{
    struct recorder *r = container_of(policy, struct recorder, policy);
    struct slo_input in;
    fill_input(f, &in);
    vec_push(&r->history->cycles, in);
}

struct policy_history *fleet_policy_history_new(const struct fleet_config *config,
                                                struct fleet_trace trace, const int *initial)
{
    size_t n = 0, times = HISTORY_S / SAMPLE_S;
    while (n < trace.n && trace.at[n].arrived_ns < SAMPLE_S * NS_PER_S)
        n++;
    if (!n)
        return NULL;
    struct replica_request *past = mem_alloc(n * times * sizeof(*past));
    struct random r;
    double at_s = 0;
    random_init(&r, config->seed, 13);
    for (size_t i = 0; i < n * times; i++) {
        at_s += -log(1 - random_unit(&r)) * SAMPLE_S / (double)n;
        past[i] = trace.at[i % n];
        past[i].arrived_ns = (int64_t)(at_s * (double)NS_PER_S);
    }
    struct policy_history *h = mem_zero(1, sizeof(*h));
    struct recorder recorder = { { .name = "recorder", .period_s = CYCLE_S, .step = step_recorder },
                                 h };
    fleet_simulate(&(struct fleet_run){ .config = config,
                                        .trace = { past, n * times },
                                        .initial = initial,
                                        .policy = &recorder.policy },
                   NULL);
    free(past);
    return h;
}

void fleet_policy_history_free(struct policy_history *h)
{
    if (h)
        vec_done(&h->cycles);
    free(h);
}

/* As saturation_history.c does with the answers of Prometheus. */
static void replay_history(struct slo_policy *p)
{
    struct slo_load loads[SLO_RING];
    size_t n = 0;
    for (size_t i = 0; i < p->history->cycles.n; i++) {
        const struct slo_input *in = &p->history->cycles.at[i];
        slo_state_learn(&p->state, &p->config, in);
        if (in->arrival >= 0 && in->in_tokens > 0 && in->out_tokens > 0 && n < SLO_RING)
            loads[n++] = (struct slo_load){ .rate = (float)in->arrival,
                                            .in = (float)in->in_tokens,
                                            .out = (float)in->out_tokens };
    }
    slo_state_replay(&p->state, loads, n);
}

/* A rate over a minute is that of the past for as much of it as lies before second 0. */
static void add_past(const struct slo_policy *p, const struct fleet *f, struct slo_input *in)
{
    double share = 1 - fleet_now_s(f) / RATE_S;
    if (!p->history || !p->history->cycles.n || share <= 0)
        return;
    const struct slo_input *last = &p->history->cycles.at[p->history->cycles.n - 1];
    in->arrival =
        isnan(in->arrival) ? last->arrival : share * last->arrival + (1 - share) * in->arrival;
    in->in_tokens = last->in_tokens;
    in->out_tokens = last->out_tokens;
}

/* ---- steps */

static void step_slo(struct fleet_policy *policy, const struct fleet *f,
                     struct fleet_answer *answer)
{
    struct slo_policy *p = container_of(policy, struct slo_policy, policy);
    struct slo_input in;
    struct slo_output out;
    fill_input(f, &in);
    add_past(p, f, &in);
    slo_step(&p->state, &p->config, &in, &out);
    for (size_t v = 0; v < in.variant_n; v++)
        answer->targets[v] = out.targets[v];
    snprintf(answer->reason, sizeof(answer->reason), "%s", out.reason);
}

static void free_slo(struct fleet_policy *policy)
{
    free(container_of(policy, struct slo_policy, policy));
}

struct fleet_policy *fleet_policy_slo(const struct fleet_config *config)
{
    struct slo_policy *p = mem_zero(1, sizeof(*p));
    p->policy = (struct fleet_policy){ .name = "slo",
                                       .period_s = CYCLE_S,
                                       .at_once = config->history != NULL,
                                       .step = step_slo,
                                       .free = free_slo };
    p->config = (struct slo_config){ .ttft = config->ttft_s,
                                     .itl = config->itl_s,
                                     .goal = config->goal,
                                     .cycle = CYCLE_S,
                                     .reserve = config->reserve,
                                     .reserve_replicas = config->reserve_replicas };
    slo_state_init(&p->state);
    p->history = config->history;
    if (p->history)
        replay_history(p);
    return &p->policy;
}
