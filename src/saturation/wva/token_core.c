/* Analysis and targets of the token analyzer: see token_core.h. What was learned is in
 * token_store.c.
 *
 *     replicas ─► measure_replicas (also teaches the store) ─► median per variant ─► supply, demand
 *                                 no replica reports ─► known_capacity (store, template) ──┘
 *     supply, demand ─► required or spare tokens ─► add_replicas or remove_replicas
 *
 * A replica holds the lower of two bounds: memory (its KV cache up to the threshold) and compute
 * (tokens in use when it was seen saturated, else derived from its command line). Roundings follow
 * WVA, whose vectors are in test/golden; the reasons are quoted: WVA. */
#include "token_store.h"

#include <math.h>

static const double default_scale_up = 0.85, default_scale_down = 0.70;

/* ---- one replica */

/* A request holds its prompt and, on average, half of its answer. */
int64_t sat_token_derived(const struct sat_vllm_args *args, double in, double out)
{
    double batched = (double)sat_vllm_batched_tokens(args);
    if (!(out > 0) || !(batched > 0))
        return 0;
    double requests = fmin(batched * out / (in + out), (double)args->max_seqs);
    double tokens = floor(requests * (in + out / 2));
    return tokens > 0 && tokens < 0x1p53 ? (int64_t)tokens : 0;
}

int64_t sat_token_usable(double tokens, double threshold)
{
    double usable = floor(tokens * threshold);
    return usable > 0 && usable < 0x1p53 ? (int64_t)usable : 0;
}

/* Tokens at which compute, not memory, saturates this replica: observed now, observed before, or
 * derived. */
static int64_t compute_bound(struct sat_token_store *store, const struct sat_token_input *in,
                             const struct sat_token_replica *r, int64_t memory_bound)
{
    struct sat_token_history *history =
        sat_token_get_history(store, in->model, (struct sat_token_hardware){ r->accelerator, -1 },
                              r->output_tokens);
    if (r->queue >= floor(in->queue_threshold) && r->in_use > 0) {
        sat_token_history_add(history, r->in_use);
        return r->in_use;
    }
    double mean = sat_token_history_mean(history);
    if (mean > 0)
        return (int64_t)mean;
    struct sat_token_variant variant = { in->ns, in->model, r->variant };
    const struct sat_token_record *record = sat_token_find(store, variant);
    int64_t derived = record && record->has_args
                          ? sat_token_derived(&record->args, r->input_tokens, r->output_tokens)
                          : 0;
    return derived > 0 ? derived : memory_bound;
}

static double demand_of(const struct sat_token_replica *r)
{
    return (double)r->in_use + (r->input_tokens > 0 ? r->queue * floor(r->input_tokens) : 0);
}

/* ---- one variant */

struct sat_token_means sat_token_model_means(const struct sat_token_input *in)
{
    struct sat_token_means m = { 0 };
    size_t n = 0;
    for (size_t i = 0; i < in->replica_n; i++) {
        const struct sat_token_replica *r = &in->replicas[i];
        if (!(r->input_tokens > 0) && !(r->output_tokens > 0))
            continue;
        m.in += r->input_tokens;
        m.out += r->output_tokens;
        m.hit += r->hit_rate;
        n++;
    }
    if (n)
        m = (struct sat_token_means){ m.in / (double)n, m.out / (double)n, m.hit / (double)n };
    return m;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int64_t sat_token_median(int64_t *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Capacity of a variant without reporting replicas: its last measurement, or what its template and
 * a similar variant imply. */
static int64_t known_capacity(const struct sat_token_store *store, const struct sat_token_input *in,
                              const struct sat_token_state *state, struct sat_token_means means)
{
    struct sat_token_variant variant = { in->ns, in->model, state->variant };
    const struct sat_token_record *record = sat_token_find(store, variant);
    if (!record)
        return 0;
    if (record->live)
        return record->effective;
    int64_t capacity = sat_token_derived(&record->args, means.in, means.out);
    if (!capacity)
        capacity = sat_vllm_batched_tokens(&record->args);
    if (record->args.gpu_blocks_override > 0) {
        double tokens = (double)record->args.gpu_blocks_override * (double)record->args.block_size;
        capacity = MIN(capacity, sat_token_usable(tokens, in->kv_threshold));
    }
    const struct sat_token_record *alike = sat_token_find_alike(store, record);
    return alike ? MIN(capacity, alike->effective) : capacity;
}

static const struct sat_token_state *state_of(const struct sat_token_input *in, str variant)
{
    for (size_t i = 0; i < in->state_n; i++)
        if (str_eq(in->states[i].variant, variant))
            return &in->states[i];
    return NULL;
}

/* Tokens that each replica can hold; stored too. In input order, because a saturated replica
 * teaches those after it. */
static int64_t *measure_replicas(struct arena *a, struct sat_token_store *store,
                                 const struct sat_token_input *in)
{
    int64_t *effective = arena_array(a, in->replica_n, sizeof(*effective));
    for (size_t i = 0; i < in->replica_n; i++) {
        const struct sat_token_replica *r = &in->replicas[i];
        if (r->capacity <= 0)
            continue;
        int64_t memory = sat_token_usable((double)r->capacity, in->kv_threshold);
        int64_t compute = compute_bound(store, in, r, memory);
        effective[i] = MIN(memory, compute);
        const struct sat_token_state *state = state_of(in, r->variant);
        sat_token_store_measured(store, (struct sat_token_variant){ in->ns, in->model, r->variant },
                                 (struct sat_token_hardware){ r->accelerator,
                                                              state ? state->gpus_per_replica : 1 },
                                 effective[i]);
    }
    return effective;
}

/* Sums the replicas of one variant; false if the capacity of none is known. */
static bool sum_replicas(struct arena *a, const struct sat_token_input *in,
                         const int64_t *effective, struct sat_token_capacity *v)
{
    int64_t *known = arena_array(a, in->replica_n, sizeof(*known));
    size_t n = 0;
    for (size_t i = 0; i < in->replica_n; i++) {
        const struct sat_token_replica *r = &in->replicas[i];
        if (!str_eq(r->variant, v->variant))
            continue;
        v->accelerator = r->accelerator;
        v->cost = r->cost;
        if (r->capacity <= 0)
            continue;
        v->demand += demand_of(r);
        known[n++] = effective[i];
    }
    v->per_replica = n ? sat_token_median(known, n) : 0;
    return n > 0;
}

static double waiting_demand(const struct sat_token_input *in, struct sat_token_means means)
{
    double prompt = fmax(in->waiting_bytes / 4, in->waiting_requests * means.in);
    return prompt * (1 - means.hit) + in->waiting_requests * means.out;
}

static void set_required(struct sat_token_analysis *t, const struct sat_token_input *in,
                         double anticipated)
{
    double up = in->scale_up_at > 0 ? in->scale_up_at : default_scale_up;
    double down = in->scale_down_at > 0 ? in->scale_down_at : default_scale_down;
    t->utilization = t->supply > 0 ? t->demand / t->supply : 0;
    t->required = fmax(t->demand / up - anticipated, 0);
    t->spare = fmax(t->supply - t->demand / down, 0);
}

struct sat_token_analysis sat_token_analyze(struct arena *a, struct sat_token_store *store,
                                            const struct sat_token_input *in)
{
    if (in->rules == TOKEN_AUG2026)
        return sat_token_analyze_roles(a, store, in);
    struct sat_token_analysis t = { arena_array(a, in->state_n, sizeof(*t.variants)), in->state_n };
    struct sat_token_means means = sat_token_model_means(in);
    const int64_t *effective = measure_replicas(a, store, in);
    double anticipated = 0;
    for (size_t i = 0; i < in->state_n; i++) {
        const struct sat_token_state *s = &in->states[i];
        struct sat_token_capacity *v = &t.variants[i];
        v->variant = s->variant;
        v->pending = s->pending;
        v->ready = MAX(s->current - s->pending, (int64_t)0);
        if (!sum_replicas(a, in, effective, v))
            v->per_replica = known_capacity(store, in, s, means);
        v->supply = (double)v->ready * (double)v->per_replica;
        v->utilization = v->supply > 0 ? v->demand / v->supply : 0;
        t.supply += v->supply;
        t.demand += v->demand;
        anticipated += (double)(v->ready + v->pending) * (double)v->per_replica;
    }
    t.demand += waiting_demand(in, means);
    set_required(&t, in, anticipated);
    return t;
}

/* ---- targets */

struct ranked {
    const struct sat_token_capacity *variant;
    double rank;
    size_t at;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Variants with the lowest cost per token grow first; one of unknown capacity does not grow. */
static void add_replicas(struct arena *a, const struct sat_token_analysis *t,
                         struct sat_token_target *targets)
{
    struct ranked *order = arena_array(a, t->n, sizeof(*order));
    for (size_t i = 0; i < t->n; i++) {
        const struct sat_token_capacity *v = &t->variants[i];
        order[i] =
            (struct ranked){ v, v->per_replica > 0 ? v->cost / (double)v->per_replica : HUGE_VAL,
                             i };
    }
    qsort(order, t->n, sizeof(*order), by_rank);
    double remaining = t->required;
    for (size_t i = 0; i < t->n && remaining > 0; i++) {
        double each = (double)order[i].variant->per_replica;
        if (!(each > 0))
            continue;
        double more = ceil(remaining / each);
        targets[order[i].at].replicas += (int64_t)more;
        remaining -= more * each;
    }
}

/* The cheapest variant keeps one replica if no other variant has any. */
static int64_t least_replicas(const struct sat_token_analysis *t,
                              const struct sat_token_target *targets, size_t at)
{
    size_t cheapest = 0;
    bool others = false;
    for (size_t i = 0; i < t->n; i++) {
        if (t->variants[i].cost < t->variants[cheapest].cost)
            cheapest = i;
        others |= i != at && targets[i].replicas > 0;
    }
    return at == cheapest && !others;
}

/* Removes the spare tokens in whole replicas, from the most expensive variant first. */
static void remove_replicas(struct arena *a, const struct sat_token_analysis *t,
                            struct sat_token_target *targets)
{
    struct ranked *order = arena_array(a, t->n, sizeof(*order));
    for (size_t i = 0; i < t->n; i++)
        order[i] = (struct ranked){ &t->variants[i], -t->variants[i].cost, i };
    qsort(order, t->n, sizeof(*order), by_rank);
    double remaining = t->spare;
    for (size_t i = 0; i < t->n && remaining > 0; i++) {
        double each = (double)order[i].variant->per_replica;
        struct sat_token_target *target = &targets[order[i].at];
        int64_t removable = target->replicas - least_replicas(t, targets, order[i].at);
        if (!(each > 0) || removable <= 0)
            continue;
        int64_t fewer = (int64_t)fmin(floor(remaining / each), (double)removable);
        target->replicas -= fewer;
        remaining -= (double)fewer * each;
    }
}

struct sat_token_target *sat_token_decide(struct arena *a, const struct sat_token_analysis *t,
                                          const struct sat_token_state *states)
{
    struct sat_token_target *targets = arena_array(a, t->n, sizeof(*targets));
    for (size_t i = 0; i < t->n; i++)
        targets[i] = (struct sat_token_target){ states[i].variant, states[i].current,
                                                states[i].current, S("V2 steady state") };
    if (t->required > 0)
        add_replicas(a, t, targets);
    else if (t->spare > 0)
        remove_replicas(a, t, targets);
    for (size_t i = 0; i < t->n; i++) {
        if (targets[i].replicas > targets[i].current)
            targets[i].reason =
                arena_printf(a, "V2 scale-up (optimizer: cost-aware, required: %.0f)", t->required);
        else if (targets[i].replicas < targets[i].current)
            targets[i].reason =
                arena_printf(a, "V2 scale-down (optimizer: cost-aware, spare: %.0f)", t->spare);
    }
    return targets;
}
