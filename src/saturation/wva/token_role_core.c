/* The token analyzer of WVA 0.9: see token_core.h. Against the version of February 2026 it
 *
 *   - charges a waiting request its prompt and its answer (prefill: only its prompt),
 *   - keeps histories per number of GPUs,
 *   - estimates a replica that does not report the size of its cache from what is known about its
 *     variant,
 *   - counts the instances that report, of which a pod with several engines has several,
 *   - sums per role, once a variant is for prefill or decode.
 *
 * Roundings follow WVA, whose vectors are in test/golden. */
#include "token_store.h"

#include <math.h>

static const double default_scale_up = 0.85, default_scale_down = 0.70;

static const char from_observation[] = "P1-obs", from_history[] = "P2-hist",
                  from_arguments[] = "P3-k2", from_memory[] = "P4-k1", from_store[] = "P0-store",
                  no_data[] = "no-data";

/* ---- one replica */

struct measured {
    bool known;
    int64_t effective; /* tokens that it can hold */
    double demand;
    const char *label;
};

static const struct sat_token_state *state_of(const struct sat_token_input *in, str variant)
{
    for (size_t i = 0; i < in->state_n; i++)
        if (str_eq(in->states[i].variant, variant))
            return &in->states[i];
    return NULL;
}

/* Tokens of the requests that wait at a replica. */
static double charge_queue(const struct sat_token_replica *r, str role)
{
    double each = r->input_tokens + (str_eqc(role, "prefill") ? 0 : r->output_tokens);
    double tokens = r->queue * each;
    return r->queue > 0 && tokens > 0 && tokens < 0x1p63 ? floor(tokens) : 0;
}

/* Tokens at which compute saturates a replica: observed now, observed before, or derived. */
static int64_t bound_compute(struct sat_token_store *store, const struct sat_token_input *in,
                             const struct sat_token_replica *r, int64_t gpus, int64_t memory,
                             const char **ret_label)
{
    struct sat_token_history *history =
        sat_token_get_history(store, in->model, (struct sat_token_hardware){ r->accelerator, gpus },
                              r->output_tokens);
    if (r->queue >= floor(in->queue_threshold) && r->in_use > 0) {
        sat_token_history_add(history, r->in_use);
        *ret_label = from_observation;
        return r->in_use;
    }
    double mean = sat_token_history_mean(history);
    *ret_label = from_history;
    if (mean > 0)
        return (int64_t)mean;
    const struct sat_token_record *record =
        sat_token_find(store, (struct sat_token_variant){ in->ns, in->model, r->variant });
    int64_t derived = record && record->has_args
                          ? sat_token_derived(&record->args, r->input_tokens, r->output_tokens)
                          : 0;
    *ret_label = derived > 0 ? from_arguments : from_memory;
    return derived > 0 ? derived : memory;
}

/* The capacity that a record states for a replica of its variant: measured, or the size of a batch. */
static int64_t record_capacity(const struct sat_token_record *r)
{
    return !r ? 0 : r->live ? r->effective : r->has_args ? sat_vllm_batched_tokens(&r->args) : 0;
}

/* A replica that does not report the size of its cache. */
static struct measured estimate_replica(const struct sat_token_store *store,
                                        const struct sat_token_input *in,
                                        const struct sat_token_replica *r, str role)
{
    const struct sat_token_record *record =
        sat_token_find(store, (struct sat_token_variant){ in->ns, in->model, r->variant });
    int64_t effective = sat_token_usable((double)record_capacity(record), in->kv_threshold);
    double used = r->kv_usage * (double)effective;
    if (effective <= 0)
        return (struct measured){ 0 };
    return (struct measured){ true, effective, trunc(used) + charge_queue(r, role), from_memory };
}

static struct measured measure_replica(struct sat_token_store *store,
                                       const struct sat_token_input *in,
                                       const struct sat_token_replica *r)
{
    const struct sat_token_state *state = state_of(in, r->variant);
    str role = state ? state->role : S("");
    int64_t gpus = state ? state->gpus_per_replica : 0;
    if (r->capacity <= 0)
        return estimate_replica(store, in, r, role);
    struct measured m = { .known = true, .demand = (double)r->in_use + charge_queue(r, role) };
    int64_t memory = sat_token_usable((double)r->capacity, in->kv_threshold);
    int64_t compute = bound_compute(store, in, r, gpus, memory, &m.label); /* adds to a history */
    m.effective = MIN(memory, compute);
    sat_token_store_measured(store, (struct sat_token_variant){ in->ns, in->model, r->variant },
                             (struct sat_token_hardware){ r->accelerator, gpus }, m.effective);
    return m;
}

/* ---- one variant */

/* A variant of which no replica reports, by what its template implies. */
static int64_t capacity_of_template(const struct sat_token_store *store,
                                    const struct sat_token_input *in,
                                    const struct sat_token_record *record,
                                    struct sat_token_means means)
{
    const struct sat_vllm_args *args = &record->args;
    int64_t derived = sat_token_derived(args, means.in, means.out);
    if (derived <= 0)
        return sat_vllm_batched_tokens(args);
    double tokens = args->gpu_blocks_override > 0
                        ? (double)args->gpu_blocks_override * (double)args->block_size
                        : (double)args->kv_tokens_override;
    int64_t memory = sat_token_usable(tokens, in->kv_threshold);
    if (memory > 0)
        derived = MIN(derived, memory);
    const struct sat_token_record *alike = sat_token_find_alike(store, record);
    return alike ? MIN(derived, alike->effective) : derived;
}

static void estimate_variant(const struct sat_token_store *store, const struct sat_token_input *in,
                             struct sat_token_means means, struct sat_token_capacity *v)
{
    const struct sat_token_record *record =
        sat_token_find(store, (struct sat_token_variant){ in->ns, in->model, v->variant });
    v->label = no_data;
    if (record_capacity(record) > 0) {
        v->per_replica =
            record->live ? record->effective : capacity_of_template(store, in, record, means);
        v->label = from_store;
        return;
    }
    const struct sat_token_record *alike =
        record && record->has_args && str_eq(record->accelerator, v->accelerator)
            ? sat_token_find_alike(store, record)
            : NULL;
    if (alike) {
        v->per_replica = alike->effective;
        v->label = from_store;
    }
}

struct labelled {
    int64_t effective;
    size_t at;
};

static int by_effective(const void *a, const void *b)
{
    const struct labelled *x = a, *y = b;
    if (x->effective != y->effective)
        return x->effective < y->effective ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Sums the replicas of one variant; false if the capacity of none is known. */
static bool sum_variant(struct arena *a, const struct sat_token_input *in,
                        const struct measured *measured, struct sat_token_capacity *v)
{
    struct labelled *known = arena_array(a, in->replica_n, sizeof(*known));
    int64_t *values = arena_array(a, in->replica_n, sizeof(*values));
    size_t n = 0;
    for (size_t i = 0; i < in->replica_n; i++) {
        if (!measured[i].known || !str_eq(in->replicas[i].variant, v->variant))
            continue;
        known[n] = (struct labelled){ measured[i].effective, i };
        values[n++] = measured[i].effective;
        v->demand += measured[i].demand;
    }
    if (!n)
        return false;
    qsort(known, n, sizeof(*known), by_effective);
    v->label = measured[known[(n - 1) / 2].at].label;
    v->per_replica = sat_token_median(values, n);
    int64_t instances = v->ready > 0 ? (int64_t)n / v->ready : 0;
    if (instances > 1)
        v->pending *= instances;
    v->ready = (int64_t)n;
    return true;
}

/* Cost and accelerator of the spec; WVA takes those of the first replica that reports. */
static void set_hardware(const struct sat_token_input *in, const struct sat_token_state *s,
                         struct sat_token_capacity *v)
{
    v->accelerator = s->has_spec ? s->accelerator : S("");
    v->cost = s->has_spec ? s->cost : 0;
    for (size_t i = 0; i < in->replica_n && !s->has_spec; i++)
        if (str_eq(in->replicas[i].variant, s->variant)) {
            v->accelerator = in->replicas[i].accelerator;
            v->cost = in->replicas[i].cost;
            return;
        }
}

/* ---- the model */

struct waiting {
    double prompts, answers; /* tokens in front of the scheduler */
};

static struct waiting count_waiting(const struct sat_token_input *in, struct sat_token_means means)
{
    double prompts = fmax(in->waiting_bytes / 4, in->waiting_requests * means.in);
    return (struct waiting){ prompts * (1 - means.hit), in->waiting_requests * means.out };
}

static double up_of(const struct sat_token_input *in)
{
    return in->scale_up_at > 0 ? in->scale_up_at : default_scale_up;
}

static double down_of(const struct sat_token_input *in)
{
    return in->scale_down_at > 0 ? in->scale_down_at : default_scale_down;
}

static int by_role(const void *a, const void *b)
{
    const struct sat_token_role *x = a, *y = b;
    return str_cmp(x->role, y->role);
}

static struct sat_token_role *find_role(struct sat_token_analysis *t, str role)
{
    for (size_t i = 0; i < t->role_n; i++)
        if (str_eq(t->roles[i].role, role))
            return &t->roles[i];
    t->roles[t->role_n] = (struct sat_token_role){ .role = role };
    return &t->roles[t->role_n++];
}

static void sum_roles(struct arena *a, const struct sat_token_input *in, struct waiting waiting,
                      struct sat_token_analysis *t)
{
    bool split = false;
    for (size_t i = 0; i < t->n; i++)
        split |= !str_eqc(t->variants[i].role, "both");
    if (!split)
        return;
    t->roles = arena_array(a, t->n, sizeof(*t->roles));
    for (size_t i = 0; i < t->n; i++) {
        const struct sat_token_capacity *v = &t->variants[i];
        struct sat_token_role *r = find_role(t, v->role);
        r->supply += v->supply;
        r->demand += v->demand;
        r->anticipated += (double)(v->ready + v->pending) * (double)v->per_replica;
    }
    for (size_t i = 0; i < t->role_n; i++) {
        struct sat_token_role *r = &t->roles[i];
        r->demand += waiting.prompts + (str_eqc(r->role, "prefill") ? 0 : waiting.answers);
        r->required = fmax(r->demand / up_of(in) - r->anticipated, 0);
        r->spare = fmax(r->supply - r->demand / down_of(in), 0);
    }
    qsort(t->roles, t->role_n, sizeof(*t->roles), by_role);
}

static void analyze_variant(struct arena *a, const struct sat_token_store *store,
                            const struct sat_token_input *in, const struct measured *measured,
                            size_t at, struct sat_token_capacity *v)
{
    const struct sat_token_state *s = &in->states[at];
    v->variant = s->variant;
    v->role = s->role.n ? s->role : S("both");
    v->pending = s->pending;
    v->ready = MAX(s->current - s->pending, (int64_t)0);
    set_hardware(in, s, v);
    if (!sum_variant(a, in, measured, v))
        estimate_variant(store, in, sat_token_model_means(in), v);
    v->supply = (double)v->ready * (double)v->per_replica;
    v->utilization = v->supply > 0 ? v->demand / v->supply : 0;
}

struct sat_token_analysis sat_token_analyze_roles(struct arena *a, struct sat_token_store *store,
                                                  const struct sat_token_input *in)
{
    struct sat_token_analysis t = { arena_array(a, in->state_n, sizeof(*t.variants)), in->state_n };
    struct measured *measured = arena_array(a, in->replica_n, sizeof(*measured));
    struct waiting waiting = count_waiting(in, sat_token_model_means(in));
    for (size_t i = 0; i < in->replica_n; i++) /* in order: a saturated replica teaches the next */
        measured[i] = measure_replica(store, in, &in->replicas[i]);
    for (size_t i = 0; i < in->state_n; i++) {
        struct sat_token_capacity *v = &t.variants[i];
        analyze_variant(a, store, in, measured, i, v);
        t.supply += v->supply;
        t.demand += v->demand;
        t.anticipated += (double)(v->ready + v->pending) * (double)v->per_replica;
    }
    t.demand += waiting.prompts + waiting.answers;
    t.utilization = t.supply > 0 ? t.demand / t.supply : 0;
    t.required = fmax(t.demand / up_of(in) - t.anticipated, 0);
    t.spare = fmax(t.supply - t.demand / down_of(in), 0);
    sum_roles(a, in, waiting, &t);
    return t;
}
