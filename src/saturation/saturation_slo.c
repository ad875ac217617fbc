/* The slo policy in the engine: see saturation_slo.h.
 *
 * Each target is taken from the first source that has it: the entry of the model in the saturation
 * ConfigMap (slo: {...}), the model's service class, or derived from what was learned: an ITL of
 * three times the slowest variant's unloaded ITL, and a TTFT of two seconds plus the time of a long
 * prompt. Twice the unloaded ITL was rejected: it would move a fleet to its fastest variant and
 * double its cost. Derived targets are kept until they are off by a quarter, so that learning does
 * not move the goal in every cycle.
 *
 *     struct gathering ──► set_targets ──► struct slo_config ─┐
 *            └───────────► model_input ──► struct slo_input ──┴─► slo_step ──► targets, clamped to bounds and tolerance
 *
 * The state (struct sat_slo) belongs to the model and is created with the first decision. Each fetch
 * that brings traffic causes one step, so that a step uses numbers that are new. Other events may
 * cause a decision in between; it repeats the last output, because the state counts cycles. Without
 * a fetch for two cycles there is a step all the same, which holds. */
#include "saturation_slo.h"

#include "../base/sum.h"

#include <math.h>

static const int64_t cycle_ns = 15 * NS_PER_S, follow_ns = 60 * NS_PER_S;
static const int64_t restored_wait_ns = 300 * NS_PER_S; /* for the first rates after a restart */
static const double goal_default = 0.99, itl_at_first = 0.06, ttft_base = 2;
static const double itl_factor = 3, derived_drift = 0.25;
enum { SAMPLES_TO_DERIVE = 8 };

int64_t saturation_slo_cycle_ns(const struct saturation *s)
{
    return MIN(s->snapshot->interval_ns, cycle_ns);
}

/* ---- targets */

static const struct alloc_target *class_target(const struct saturation *s, str model)
{
    const struct optimize_catalog *c = &s->snapshot->catalog;
    for (size_t i = 0; i < c->class_n; i++)
        for (size_t k = 0; k < c->classes[i].target_n; k++)
            if (str_eq(c->classes[i].targets[k].model, model))
                return &c->classes[i].targets[k];
    return NULL;
}

/* The configured latency settings of the model and their source; NaN where there is none. */
static struct slo_settings find_settings(const struct gathering *g, enum slo_source *ret_source)
{
    struct slo_settings s = g->slo;
    const struct alloc_target *class = class_target(g->s, g->m->id);
    *ret_source = SLO_FROM_ENTRY;
    if (isnan(s.ttft) && isnan(s.itl))
        *ret_source = class ? SLO_FROM_CLASS : SLO_DERIVED;
    if (isnan(s.ttft) && class && class->slo.ttft_ms > 0)
        s.ttft = (double)class->slo.ttft_ms / 1000;
    if (isnan(s.itl) && class && class->slo.itl_ms > 0)
        s.itl = (double)class->slo.itl_ms / 1000;
    return s;
}

/* Seconds per token of the slowest known variant without load; 0: not learned yet. */
static double slowest_itl(const struct gathering *g, const struct sat_slo *slo, double *ret_prefill)
{
    double slowest = 0;
    *ret_prefill = 0;
    for (size_t i = 0; i < SLO_VARIANTS_MAX; i++) {
        const struct slo_speed *x = &slo->state.speeds[i];
        if (!x->id || x->samples < SAMPLES_TO_DERIVE)
            continue;
        slowest = fmax(slowest, slo->state.itl / x->th[0]);
        if (g->m->feed.traffic.in_tail > 0)
            *ret_prefill = fmax(*ret_prefill, slo_prefill_seconds(x, g->m->feed.traffic.in_tail));
    }
    return slowest;
}

static double keep_if_near(double old, double fresh)
{
    return old > 0 && fabs(fresh - old) <= derived_drift * old ? old : fresh;
}

/* Sets the configuration of the next step. */
static void set_targets(const struct gathering *g, struct sat_slo *slo)
{
    double prefill, unloaded = slowest_itl(g, slo, &prefill);
    struct slo_settings settings = find_settings(g, &slo->source);
    struct slo_config *c = &slo->config;
    if (!isnan(settings.itl))
        c->itl = settings.itl;
    else if (unloaded > 0)
        c->itl = keep_if_near(c->itl, itl_factor * unloaded);
    else if (!(c->itl > 0))
        c->itl = itl_at_first;
    c->ttft = !isnan(settings.ttft) ? settings.ttft : keep_if_near(c->ttft, ttft_base + prefill);
    c->goal = isnan(settings.goal) ? goal_default : settings.goal;
    c->reserve = isnan(settings.reserve) ? 0 : settings.reserve;
    c->reserve_replicas = isnan(settings.reserve_replicas) ? 0 : settings.reserve_replicas;
    c->caution = isnan(settings.caution) ? 1 : settings.caution;
    c->cycle = (double)saturation_slo_cycle_ns(g->s) / (double)NS_PER_S;
}

str saturation_slo_describe(struct arena *a, const struct sat_slo *slo)
{
    static const char *const sources[] = { [SLO_FROM_ENTRY] = "from the ConfigMap",
                                           [SLO_FROM_CLASS] = "from the service class",
                                           [SLO_DERIVED] = "derived: none are set" };
    const struct slo_config *c = &slo->config;
    return arena_printf(a, "TTFT %.2f s, ITL %.3f s, goal %g%%, %s", c->ttft, c->itl, c->goal * 100,
                        sources[slo->source]);
}

struct decide_latency saturation_slo_latency(const struct gathering *g)
{
    enum slo_source source;
    struct slo_settings settings = find_settings(g, &source);
    const struct sat_load_view *load = &g->m->feed.load;
    return (struct decide_latency){ .ttft = load->ttft_ms / 1000,
                                    .itl = load->itl_ms / 1000,
                                    .ttft_target = settings.ttft,
                                    .itl_target = settings.itl };
}

/* ---- one step */

static struct sat_slo *make_state(const struct gathering *g)
{
    struct sat_slo *slo = mem_zero(1, sizeof(*slo));
    slo_state_init(&slo->state);
    slo->looked_ns = g->m->looked_ns;
    slo->since_ns = g->now_ns;
    slo->ok = NAN;
    slo->wants_history = true;
    saturation_slo_restore(g, slo);
    return slo;
}

/* Whether the policy was in charge before a restart, or the servers count tokens but were read only once: rates
 * follow with the next scrape. Until then it holds; another rule would decide by other numbers for one cycle,
 * and take it back in the next. */
static bool waits_for_rates(const struct gathering *g, bool is_fresh, bool is_known)
{
    const struct sat_slo *slo = g->m->slo;
    if (is_fresh)
        return is_known;
    return g->m->feed.rates_follow ||
           (is_known && (!slo || g->now_ns - slo->since_ns < restored_wait_ns));
}

bool saturation_slo_applies(const struct gathering *g)
{
    const struct saturation *s = g->s;
    const struct sat_model *m = g->m;
    if (g->n > SLO_VARIANTS_MAX)
        return false;
    if (s->o.rules == DECIDE_SLO)
        return true;
    if (s->o.rules != DECIDE_BY_NEED || !s->o.slo_by_default)
        return false;
    bool fresh = m->feed.traffic_ns && g->now_ns - m->feed.traffic_ns <= s->snapshot->ages.fresh_ns;
    bool counts = m->feed.traffic.in_tokens > 0 && m->feed.traffic.out_tokens > 0;
    if ((fresh && counts) || (m->slo && m->slo->state.n > 0))
        return true;
    return waits_for_rates(g, fresh, m->slo ? m->slo->restored : saturation_slo_is_saved(g));
}

bool saturation_slo_decides(const struct sat_model *m)
{
    return m && m->slo && m->slo->stepped_ns;
}

bool saturation_slo_has_traffic(const struct saturation *s, const struct sat_model *m)
{
    return s->collector.traffic_matters && (m->slo || m->feed.traffic.in_tokens > 0);
}

static double field_mean(const struct gather_traffic *t, enum gather_field field)
{
    return t->n[field] ? t->sum[field] / t->n[field] : NAN;
}

/* The replicas to plan from: what was decided, also by a former process, though an HPA has not followed
 * yet. Planning from spec.replicas would take the decision back in the next cycle; the HPA, which waits
 * for five minutes of agreement, would never remove anything. It has a minute to add. */
static int planned_replicas(const struct gathering *g, size_t i)
{
    int wanted = g->wanted[i], desired = g->states[i].desired;
    int64_t decided_ns = MAX(g->variants[i]->decided_ns, g->m->slo->since_ns);
    bool recent = g->now_ns - decided_ns < follow_ns;
    return desired > 0 && (desired < wanted || recent) ? desired : wanted;
}

/* What the replicas of one variant report: sums where totals count, means otherwise. */
static struct slo_variant variant_input(const struct gathering *g, size_t i)
{
    const struct sat_state *s = &g->states[i];
    const struct gather_traffic *t = &g->traffic[i];
    double tokens = t->sum[GATHER_ITL_COUNT];
    return (struct slo_variant){
        .id = sum64(s->variant, 1) | 1,
        .current = planned_replicas(g, i),
        .ready = t->ready,
        .reporting = t->n[GATHER_RUNNING],
        .min = s->min,
        .max = s->max > 0 ? s->max : INT32_MAX / 4,
        .stuck = s->stuck,
        .cost = s->cost,
        .itl = tokens > 0 ? t->sum[GATHER_ITL_SUM] / tokens : NAN,
        .prompt_rate = field_mean(t, GATHER_PROMPT_RATE),
        .gen_rate = field_mean(t, GATHER_GEN_RATE),
        .running = field_mean(t, GATHER_RUNNING),
        .running_low = field_mean(t, GATHER_RUNNING_LOW),
        .running_high = field_mean(t, GATHER_RUNNING_HIGH),
        .kv = field_mean(t, GATHER_KV),
        .kv_tokens = field_mean(t, GATHER_KV_TOKENS),
        .max_seqs = NAN,
        .start_delay = t->start_delay,
    };
}

/* The traffic of the model, or unknown if it is stale, with all variants. */
static struct slo_input model_input(const struct gathering *g, struct sat_slo *slo)
{
    const struct sat_feed *feed = &g->m->feed;
    bool fresh = feed->traffic_ns && g->now_ns - feed->traffic_ns <= g->s->snapshot->ages.fresh_ns;
    const struct sat_traffic *t = fresh ? &feed->traffic : &sat_traffic_unknown;
    slo->ok = sat_traffic_share_ok(t, slo->config.ttft, slo->config.itl);
    struct slo_input in = {
        .now = (double)g->now_ns / (double)NS_PER_S,
        .arrival = t->arrival,
        .arrival_now = t->arrival_now,
        .in_tokens = t->in_tokens,
        .out_tokens = t->out_tokens,
        .in_tail = t->in_tail,
        .waiting = t->waiting,
        .queued = t->queued,
        .ok = slo->ok,
        .finished = sat_traffic_count(&t->ttft) * slo->config.cycle / t->seconds,
        .season = NAN,
        .variant_n = g->n,
    };
    for (size_t i = 0; i < g->n; i++)
        in.variants[i] = variant_input(g, i);
    return in;
}

/* A variant that was never observed is usable by its spec.modelProfile (in ms). */
static void pass_hints(const struct gathering *g, struct sat_slo *slo)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct variant_spec *spec = &g->variants[i]->spec;
        for (size_t k = 0; k < spec->profile_n; k++) {
            const struct variant_profile *p = &spec->profiles[k];
            if (!str_eq(p->accelerator, g->variants[i]->accelerator) || !(p->alpha > 0))
                continue;
            slo_state_hint_profile(&slo->state, &slo->config,
                                   &(struct slo_profile){
                                       .id = sum64(g->variants[i]->name, 1) | 1,
                                       .base = (double)p->alpha / 1000,
                                       .per_sequence = (double)p->beta / 1000,
                                       .per_prompt_token = (double)p->delta / 1000,
                                       .in_tokens = g->m->feed.traffic.in_tokens,
                                       .out_tokens = g->m->feed.traffic.out_tokens });
        }
    }
}

static void run_step(struct gathering *g)
{
    struct sat_slo *slo = g->m->slo;
    set_targets(g, slo);
    if (!slo->state.n)
        pass_hints(g, slo);
    struct slo_input in = model_input(g, slo);
    for (size_t i = 0; i < g->n; i++)
        in.variants[i].hinted = g->variants[i]->spec.profile_n > 0;
    slo_step(&slo->state, &slo->config, &in, &slo->out);
    slo->stepped_ns = g->now_ns;
    slo->is_due = false;
    slo->traffic_ns = g->m->feed.traffic_ns;
    slo->looked_ns = g->m->looked_ns;
    saturation_slo_save(g, slo);
}

/* Whether a step is due: half a cycle after the last one if there is new traffic. */
static bool is_step_due(const struct gathering *g, const struct sat_slo *slo)
{
    int64_t cycle = saturation_slo_cycle_ns(g->s), since = g->now_ns - slo->stepped_ns;
    bool is_new = g->m->feed.traffic_ns != slo->traffic_ns;
    return !slo->stepped_ns || slo->is_due || slo->out.variant_n != g->n ||
           since > (is_new ? cycle / 2 : 2 * cycle);
}

/* The reason of the policy, and for a variant at its maximum whether the model needs more. */
static str explain_target(const struct gathering *g, size_t i, const struct sat_target *targets)
{
    const struct slo_output *out = &g->m->slo->out;
    double fits = 0;
    for (size_t v = 0; v < g->n; v++)
        fits += targets[v].replicas * out->capacity[v];
    bool limited = out->need > fits && out->need > out->have && g->states[i].max > 0 &&
                   targets[i].replicas >= g->states[i].max;
    return arena_printf(g->a, "%s%s", out->reason, limited ? "; limited by maxReplicas" : "");
}

struct sat_targets saturation_slo_decide(struct gathering *g)
{
    struct sat_model *m = g->model;
    if (!m->slo)
        m->slo = make_state(g);
    saturation_slo_replay(g);
    if (is_step_due(g, m->slo))
        run_step(g);
    struct sat_targets result = { .n = g->n };
    result.at = arena_array(g->a, g->n, sizeof(*result.at));
    for (size_t i = 0; i < g->n; i++) {
        const struct sat_state *s = &g->states[i];
        int target = sat_apply_tolerance(s, sat_clamp_to_bounds(s, m->slo->out.targets[i]));
        bool bounded = m->slo->out.targets[i] != sat_clamp_to_bounds(s, m->slo->out.targets[i]);
        result.at[i] = (struct sat_target){ s->variant, target, S(""), bounded };
    }
    for (size_t i = 0; i < g->n; i++)
        result.at[i].reason = explain_target(g, i, result.at);
    return result;
}
