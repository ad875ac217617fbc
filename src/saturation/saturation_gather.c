/* Gathers the input of a decision: see saturation_gather.h.
 *
 *     model ─► each variant ─► managed? workload? accelerator label? own workload? ──no──► skipped, with a reason
 *                                         │ yes
 *                              bounds, replicas, stuck and settled ─► struct sat_state
 *                              pods ─► feed samples ────────────────► struct sat_replica
 *
 * The invariant: every ready pod becomes a replica, with or without a sample. One without counts as
 * unknown, and unknown replicas count as pending, so that nothing is scaled down before all of them
 * report. */
#include "saturation_slo.h"
#include "saturation_targets.h"

#include <math.h>

/* ---- replicas and states */

static double value_if_fresh(const struct gathering *g, double value)
{
    return g->fresh ? value : NAN;
}

static void add_traffic(struct gathering *g, const struct sat_traffic_replica *t)
{
    struct gather_traffic *to = &g->traffic[g->n - 1];
    const double values[GATHER_FIELD_N] = {
        [GATHER_ITL_SUM] = t->itl_sum,           [GATHER_ITL_COUNT] = t->itl_count,
        [GATHER_PROMPT_RATE] = t->prompt_rate,   [GATHER_GEN_RATE] = t->gen_rate,
        [GATHER_RUNNING] = t->running,           [GATHER_RUNNING_LOW] = t->running_low,
        [GATHER_RUNNING_HIGH] = t->running_high, [GATHER_KV] = t->kv,
        [GATHER_KV_TOKENS] = t->kv_tokens,
    };
    for (int i = 0; i < GATHER_FIELD_N; i++)
        if (isfinite(values[i]) && values[i] >= 0) {
            to->sum[i] += values[i];
            to->n[i]++;
        }
}

/* Notes how long a pod took that became ready since the last decision, or since the last step of the
 * slo policy: decisions between two steps do not learn. */
static void note_start(struct gathering *g, const struct replica_record *pod)
{
    struct gather_traffic *to = &g->traffic[g->n - 1];
    int64_t delay = pod->ready_ns - pod->created_ns;
    int64_t since = g->m->slo ? g->m->slo->looked_ns : g->m->looked_ns;
    if (!pod->created_ns || pod->ready_ns <= since || delay <= 0)
        return;
    double seconds = (double)delay / (double)NS_PER_S;
    to->start_delay = to->started ? to->start_delay : 0;
    to->start_delay += (seconds - to->start_delay) / ++to->started;
}

double saturation_gather_start_delay(const struct gathering *g)
{
    double longest = 0;
    for (size_t i = 0; i < g->n; i++)
        longest = fmax(longest, g->traffic[i].start_delay); /* NaN is no number to fmax */
    return longest;
}

/* Adds a ready pod, with its sample if there is one. */
static void add_replica(void *context, const struct replica_record *pod)
{
    struct gathering *g = context;
    if (pod->deleting || !str_eqc(pod->ready, "True"))
        return;
    if (g->replica_n == g->replica_cap) {
        size_t cap = MAX(g->replica_cap * 2, (size_t)16);
        struct sat_replica *more = arena_array(g->a, cap, sizeof(*more));
        if (g->replica_n)
            memcpy(more, g->replicas, g->replica_n * sizeof(*more));
        g->replicas = more;
        g->replica_cap = cap;
    }
    const struct sat_sample *sample = collect_get_sample(&g->m->feed, pod->meta.name);
    g->traffic[g->n - 1].ready++;
    note_start(g, pod);
    if (g->s->collector.traffic_matters)
        add_traffic(g, sample && g->fresh ? &sample->traffic : &sat_traffic_replica_unknown);
    g->reporting += sample && (!isnan(sample->kv) || !isnan(sample->queue));
    g->unknown +=
        !sample || !g->fresh || isnan(sample->kv) || isnan(sample->queue) || sample->partial;
    g->replicas[g->replica_n++] = (struct sat_replica){
        .pod = pod->meta.name,
        .variant = g->at->name,
        .accelerator = g->at->accelerator,
        .cost = g->at->spec.cost,
        .kv_usage = sample ? value_if_fresh(g, sample->kv) : NAN,
        .queue = sample ? value_if_fresh(g, sample->queue) : NAN,
    };
}

static int to_count(int64_t value)
{
    return (int)MAX((int64_t)0, MIN(value, (int64_t)SAT_REPLICAS_MAX));
}

/* Whether nothing moved within the transition timeout, so that waiting for the last target is
 * useless. */
static bool is_settled(const struct saturation *s, struct variant *v, int current, int wanted,
                       int64_t now_ns)
{
    if (current != wanted || current != v->seen_current || !v->steady_ns)
        v->steady_ns = now_ns;
    v->seen_current = current;
    return now_ns - MAX(v->steady_ns, v->decided_ns) > s->o.transition_ns;
}

/* Replicas that did not become ready within the transition timeout. Call before is_settled(), which
 * stores `current`. */
static int stuck_replicas(const struct saturation *s, struct variant *v, int current, int ready,
                          int64_t now_ns)
{
    if (ready >= current)
        v->waiting_ns = 0;
    else if (!v->waiting_ns || ready > v->seen_ready || current > v->seen_current)
        v->waiting_ns = now_ns;
    v->seen_ready = ready;
    int64_t since_ns = MAX(v->waiting_ns, v->decided_ns);
    return v->waiting_ns && now_ns - since_ns > s->o.transition_ns ? current - ready : 0;
}

/* Stores what the page shows of a variant, from the replicas that were added since `first`. */
static void note_load(const struct gathering *g, struct variant *v, size_t first)
{
    double kv = 0, waiting = 0;
    v->seen_reporting = 0;
    for (size_t i = first; i < g->replica_n; i++) {
        const struct sat_replica *r = &g->replicas[i];
        if (isnan(r->kv_usage) || isnan(r->queue))
            continue;
        v->seen_reporting++;
        kv += r->kv_usage;
        waiting += r->queue;
    }
    v->seen_kv = v->seen_reporting ? kv / v->seen_reporting : 0;
    v->seen_waiting = waiting;
}

/* Adds the state of a variant and all its replicas. */
static void add_variant(struct gathering *g, struct variant *v, const struct workload_record *w)
{
    struct variant_bounds b = saturation_get_bounds(g->s, v);
    b.min = MAX(b.min, v->start.to);
    b.keeps_min |= v->start.to > 0;
    int wanted = to_count(w->wanted), current = to_count(w->replicas),
        ready = to_count(saturation_count_ready(g->s, v, w));
    current = current ? current : wanted;
    int stuck = stuck_replicas(g->s, v, current, ready, g->now_ns);
    bool by_hpa = b.hpa && !v->spec.writes_scale;
    g->variants[g->n] = v;
    g->wanted[g->n] = wanted;
    g->present[g->n] = to_count(w->replicas);
    g->keeps_min[g->n] = b.keeps_min;
    g->states[g->n++] = (struct sat_state){
        .variant = v->name,
        .current = current,
        .desired = v->desired,
        .pending = MAX(0, current - ready),
        .stuck = stuck,
        .min = b.min,
        .max = b.max,
        .cost = v->spec.cost,
        .settled = is_settled(g->s, v, current, wanted, g->now_ns),
        .tolerance_up = by_hpa ? b.tolerance_up : 0,
        .tolerance_down = by_hpa ? b.tolerance_down : 0,
    };
    g->at = v;
    g->unknown = 0;
    g->traffic[g->n - 1] = (struct gather_traffic){ .start_delay = NAN };
    size_t first = g->replica_n;
    saturation_each_pod(g->s, v, add_replica, g);
    note_load(g, v, first);
    g->unknown_n += (size_t)g->unknown;
    if (!decide_is_compat(g->s->o.rules)) /* unknown may be busy: do not scale down */
        g->states[g->n - 1].pending += g->unknown;
}

/* ---- variants that take part */

/* Why a variant is skipped; "": it takes part. */
static str reason_to_skip(const struct saturation *s, struct arena *a, const struct variant *v,
                          const struct workload_record *w)
{
    if (v->accelerator.n < 2)
        return arena_printf(a,
                            "label " SAT_ACCELERATOR_LABEL " is \"" STR_FMT
                            "\"; set it to the accelerator's name, at least two characters",
                            STR_ARG(v->accelerator));
    if (!w && saturation_is_built_in(v))
        return arena_printf(a, "scale target " STR_FMT " not found", STR_ARG(v->spec.target_name));
    if (!w)
        return saturation_targets_condition(s, a, v).message;
    if (w->wanted <= 0 && !v->start.to && !(v->spec.has_min && v->spec.min == 0))
        return arena_printf(a, "scale target " STR_FMT " has 0 replicas: inactive",
                            STR_ARG(v->spec.target_name));
    return S("");
}

/* Two models cannot scale one workload: neither does, until a user decides. Names the other variant.
 * "": no conflict. */
static str find_model_conflict(const struct gathering *g, const struct variant *v)
{
    const struct variant *rival = saturation_find_rival(g->s, v);
    return !rival ? S("")
                  : arena_printf(g->a,
                                 "scale target " STR_FMT " is also that of variant " STR_FMT
                                 " of model " STR_FMT
                                 "; two models cannot scale one workload, so neither does",
                                 STR_ARG(v->spec.target_name), STR_ARG(rival->name),
                                 STR_ARG(rival->spec.model));
}

/* Two variants with one workload would count its pods twice: the first by name owns it. "": no
 * conflict. */
static str find_owner_conflict(const struct gathering *g, const struct variant *v)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->variants[i]->target == v->target)
            return arena_printf(g->a, "scale target " STR_FMT " belongs to variant " STR_FMT,
                                STR_ARG(v->spec.target_name), STR_ARG(g->variants[i]->name));
    return S("");
}

static void add_skipped(struct gathering *g, struct variant *v, str why, bool asleep)
{
    v->seen_reporting = v->seen_ready = 0;
    g->skipped[g->skipped_n++] = (struct saturation_skipped){ v, why, .asleep = asleep };
}

void saturation_gather(struct gathering *g)
{
    size_t n = 0;
    list_each(const struct variant, v, &g->m->variants, of_model)
        n++;
    g->variants = arena_array(g->a, n, sizeof(*g->variants));
    g->states = arena_array(g->a, n, sizeof(*g->states));
    g->skipped = arena_array(g->a, n, sizeof(*g->skipped));
    g->wanted = arena_array(g->a, n, sizeof(*g->wanted));
    g->present = arena_array(g->a, n, sizeof(*g->present));
    g->keeps_min = arena_array(g->a, n, sizeof(*g->keeps_min));
    g->traffic = arena_array(g->a, n, sizeof(*g->traffic));
    list_each(struct variant, v, &g->m->variants, of_model) {
        str why;
        if (!saturation_is_managed(g->s, v, &why)) {
            add_skipped(g, v, saturation_is_excluded(g->s, v) ? why : S(""), false);
            continue;
        }
        const struct workload_record *w = saturation_get_workload(g->s, v);
        if (w) {
            saturation_bind_workload(v, w);
            saturation_want_restore(g->s, v);
        }
        why = reason_to_skip(g->s, g->a, v, w);
        str conflict = why.n ? S("") : find_model_conflict(g, v);
        if (conflict.n) {
            add_skipped(g, v, conflict, false);
            g->skipped[g->skipped_n - 1].conflict = true;
            continue;
        }
        if (!why.n)
            why = find_owner_conflict(g, v);
        if (why.n)
            add_skipped(g, v, why, w && w->wanted <= 0);
        else
            add_variant(g, v, w);
    }
}
