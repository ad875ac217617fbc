/* The slo policy, step by step: see slo_core.h for its guarantees.
 *
 * The problem. A replica takes two minutes to start. A policy that reacts when latency suffers is
 * two minutes late; one that keeps enough replicas for any surprise pays twice. Thresholds on the
 * KV cache or on queue lengths do not know where the latency target lies: a compute-bound model
 * misses it with a quarter of its cache full.
 *
 * The invariant. Demand, forecast, need and capacity are in one unit, busy replicas of the
 * reference variant, and every cycle weighs the whole history with the weights known now: numbers
 * of different cycles can always be compared, and a better estimate of a request's weight never
 * looks like a change of load.
 *
 *     load ──► weight ──► demand ──► trend ──► forecast ──► headroom, level ──► need ─┐
 *                ▲                                                   ▲                 ├─► up, down, keep
 *     ITL, rates ┴─► speed of a variant ──► capacity of a replica ◄──┼── margin ──► have┘
 *                                          share within targets ─────┴── error budgets
 *
 * Two error budgets, each of the share 1 - goal of requests, with a memory of 2400 s (long against
 * a start, so that one slow start does not move them much, and short against a day) and a prior of
 * 500 requests just at the goal:
 * - `spent`, of all requests, moves the headroom (slo_forecast_core.c);
 * - `used`, of requests while the load was within plan, moves the margin: the share of a target that
 *   is planned with. 0.70 of the ITL target, because the slowest percent of the requests gets its
 *   tokens 1.5 times as slowly as the mean; 10 % less when twice the budget is used. Misses in an
 *   overload (10 % beyond plan or a queue, and 330 s after: the histograms cover five minutes) do not
 *   concern the model of capacity; misses within plan show that it is wrong.
 * Both give less easily than they take: an unused budget lowers the headroom by 4 % and the margin
 * by 3 % at most. Lower than that, the next rise of the load spends it at once.
 *
 * Nothing is removed in the first 300 s of a state: until then there are no forecast errors to
 * learn from.
 *
 * The files: slo_learn_core.c (speed of a variant), slo_capacity_core.c (weight of a request,
 * capacity of a replica), slo_forecast_core.c (trend and headroom), slo_plan_core.c (replicas). */
#include "slo_parts_core.h"

#include <stdarg.h>
#include <stdio.h>

static const double budget_memory = 2400, budget_prior = 500, watch_first = 300;
static const double margin_planned = 0.70, margin_gain = 0.10, used_least = -0.3;
static const double overload = 1.1, overload_memory = 330, hold_share = 0.8;

void slo_state_init(struct slo_state *s)
{
    *s = (struct slo_state){ .context_factor = 1, .dispersion = 1 };
    for (size_t i = 0; i < SLO_VARIANTS_MAX; i++)
        slo_speed_init(&s->speeds[i], 0);
}

void slo_state_replay(struct slo_state *s, const struct slo_load *loads, size_t n)
{
    struct slo_load own[SLO_RING];
    size_t own_n = s->n;
    if (own_n >= SLO_RING)
        return; /* it knows the hour itself */
    memcpy(own, s->load, own_n * sizeof(*own));
    size_t first = n + own_n > SLO_RING ? n + own_n - SLO_RING : 0;
    s->n = 0;
    for (size_t i = first; i < n; i++) {
        s->load[s->n] = loads[i];
        s->load[s->n++].need = NAN;
    }
    for (size_t i = 0; i < own_n; i++)
        s->load[s->n++] = own[i];
    if (s->n > own_n && !(s->in_tokens > 0)) {
        s->in_tokens = (double)loads[n - 1].in;
        s->out_tokens = (double)loads[n - 1].out;
    }
}

/* ---- input */

/* NaN for an impossible number: negative, infinite, or above `most`. */
static double clean_number(double x, double most)
{
    return x >= 0 && x <= most ? x : NAN;
}

static void clean_input(struct slo_input *in)
{
    in->arrival = clean_number(in->arrival, 1e6);
    in->arrival_now = clean_number(in->arrival_now, 1e6);
    in->in_tokens = clean_number(in->in_tokens, 1e7);
    in->out_tokens = clean_number(in->out_tokens, 1e7);
    in->in_tail = clean_number(in->in_tail, 1e8);
    in->waiting = clean_number(in->waiting, 1e9);
    in->queued = clean_number(in->queued, 1e9);
    in->ok = clean_number(in->ok, 1);
    in->finished = clean_number(in->finished, 1e9);
    in->season = clean_number(in->season, 1e3);
}

static void clean_variant(struct slo_variant *v)
{
    v->itl = clean_number(v->itl, 600);
    v->prompt_rate = clean_number(v->prompt_rate, 1e8);
    v->gen_rate = clean_number(v->gen_rate, 1e8);
    v->running = clean_number(v->running, 1e6);
    v->running_low = clean_number(v->running_low, 1e6);
    v->running_high = clean_number(v->running_high, 1e6);
    v->kv = clean_number(v->kv, 1);
    v->kv_tokens = clean_number(v->kv_tokens, 1e10);
    v->max_seqs = clean_number(v->max_seqs, 1e6);
    v->start_delay = clean_number(v->start_delay, 86400);
}

/* Sorts the variants of the turn by id, by insertion: they are few and mostly sorted already. */
static void sort_variants(struct slo_turn *t, const struct slo_input *given)
{
    t->in = *given;
    t->in.variant_n = MIN(given->variant_n, (size_t)SLO_VARIANTS_MAX);
    for (size_t i = 0; i < t->in.variant_n; i++) {
        struct slo_variant v = given->variants[i];
        size_t k = i;
        v.id = v.id ? v.id : i + 1;
        for (; k > 0 && t->in.variants[k - 1].id > v.id; k--) {
            t->in.variants[k] = t->in.variants[k - 1];
            t->given_at[k] = t->given_at[k - 1];
        }
        t->in.variants[k] = v;
        t->given_at[k] = i;
    }
}

static struct slo_speed *find_speed(struct slo_state *s, uint64_t id)
{
    for (size_t i = 0; i < SLO_VARIANTS_MAX; i++)
        if (s->speeds[i].id == id)
            return &s->speeds[i];
    return NULL;
}

static bool has_variant(const struct slo_input *in, uint64_t id)
{
    for (size_t i = 0; i < in->variant_n; i++)
        if (in->variants[i].id == id)
            return true;
    return false;
}

/* A slot for a new variant: a free one, else that of a variant that is gone. A variant that is only
 * absent for a while keeps its slot until it is needed. There is always one, because there are as
 * many slots as variants. */
static struct slo_speed *take_speed(struct slo_turn *t, uint64_t id)
{
    struct slo_speed *x = find_speed(t->s, 0);
    for (size_t i = 0; !x && i < SLO_VARIANTS_MAX; i++)
        if (!has_variant(&t->in, t->s->speeds[i].id))
            x = &t->s->speeds[i];
    assert(x);
    slo_speed_init(x, id);
    return x;
}

void slo_state_hint(struct slo_state *s, uint64_t id, const double th[3])
{
    struct slo_turn t = { .s = s };
    struct slo_speed *x = find_speed(s, id);
    if (!x && !find_speed(s, 0))
        return; /* no free slot: it will be learned */
    x = x ? x : take_speed(&t, id);
    if (x->samples == 0)
        memcpy(x->th, th, sizeof(x->th));
}

void slo_state_hint_profile(struct slo_state *s, const struct slo_config *c,
                            const struct slo_profile *p)
{
    double in = p->in_tokens > 0 ? p->in_tokens : 500,
           out = p->out_tokens > 0 ? p->out_tokens : 250;
    double idle = c->itl / p->base, context = in + out / 2 + SLO_FIXED_CONTEXT;
    if (!(p->base > 0) || !(p->per_sequence > 0) || !(p->per_prompt_token > 0))
        return;
    slo_state_hint(s, p->id,
                   (double[3]){ idle, idle * p->per_prompt_token / SLO_PROMPT_UNIT,
                                idle * p->per_sequence / (SLO_ATTEND_UNIT * context) });
}

/* Speeds are relative to the ITL target: a new target is a new unit. */
static void follow_target(struct slo_state *s, double itl)
{
    double ratio = s->itl > 0 ? itl / s->itl : 1;
    s->itl = itl;
    for (size_t i = 0; ratio != 1 && i < SLO_VARIANTS_MAX; i++)
        for (int r = 0; s->speeds[i].samples && r < 3; r++) {
            s->speeds[i].th[r] *= ratio;
            s->speeds[i].b[r] *= ratio;
            s->speeds[i].best *= r ? 1 : ratio;
        }
}

static void open_turn(struct slo_turn *t, const struct slo_input *given)
{
    sort_variants(t, given);
    clean_input(&t->in);
    for (size_t v = 0; v < t->in.variant_n; v++) {
        clean_variant(&t->in.variants[v]);
        struct slo_speed *x = find_speed(t->s, t->in.variants[v].id);
        t->speed[v] = x ? x : take_speed(t, t->in.variants[v].id);
        t->target[v] = t->in.variants[v].current;
        t->pool += t->in.variants[v].current;
    }
    t->pool = MAX(t->pool, 1);
}

/* Writes the output in the order of the input. */
static void close_turn(struct slo_turn *t)
{
    for (size_t v = 0; v < t->in.variant_n; v++) {
        t->out->targets[t->given_at[v]] = t->target[v];
        t->out->fit[t->given_at[v]] = t->fit[v];
        t->out->capacity[t->given_at[v]] = t->capacity[v];
    }
}

PRINTF_LIKE(2, 3) static void set_reason(struct slo_output *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out->reason, sizeof(out->reason), format, args);
    va_end(args);
}

/* ---- steps */

/* Learns token means, start delays and the speed of every variant, and sets the horizon: when a
 * replica that is requested now will serve. Two cycles pass until the load is visible and a replica
 * is requested. */
static void learn_all(struct slo_turn *t)
{
    struct slo_state *s = t->s;
    if (t->in.in_tokens > 0)
        s->in_tokens = t->in.in_tokens;
    if (t->in.out_tokens > 0)
        s->out_tokens = t->in.out_tokens;
    double slowest = 0;
    for (size_t v = 0; v < t->in.variant_n; v++) {
        const struct slo_variant *in = &t->in.variants[v];
        struct slo_speed *x = t->speed[v];
        if (in->start_delay > 0)
            x->start = 0.7 * x->start + 0.3 * slo_clamp(in->start_delay, 5, 1800);
        if (in->max > 0)
            slowest = MAX(slowest, x->start);
        slo_learn_speed(t, v);
    }
    t->out->horizon = slowest + 2 * t->c->cycle;
}

/* Without a known load nothing changes, except that waiting requests get a first replica. */
static void hold_without_load(struct slo_turn *t)
{
    size_t cheapest = SIZE_MAX;
    int total = 0;
    for (size_t v = 0; v < t->in.variant_n; v++) {
        const struct slo_variant *in = &t->in.variants[v];
        total += in->current;
        if (in->max > 0 && (cheapest == SIZE_MAX || in->cost < t->in.variants[cheapest].cost))
            cheapest = v;
    }
    set_reason(t->out, "hold: the load is not known");
    if (total == 0 && (t->in.waiting > 0 || t->in.arrival > 0) && cheapest != SIZE_MAX) {
        t->target[cheapest] = 1;
        set_reason(t->out, "up: requests wait and there is no replica");
    }
}

/* The reference is the observed variant with the most ready replicas. It defines the unit only: the
 * order of two loads does not depend on it. */
static void choose_reference(struct slo_turn *t)
{
    size_t best = SIZE_MAX;
    for (size_t v = 0; v < t->in.variant_n; v++)
        if (t->speed[v]->samples > 0 &&
            (best == SIZE_MAX || t->in.variants[v].ready > t->in.variants[best].ready))
            best = v;
    if (best != SIZE_MAX)
        t->s->reference = (uint32_t)(t->speed[best] - t->s->speeds);
}

static void weigh_history(struct slo_turn *t)
{
    struct slo_state *s = t->s;
    struct slo_load now = { (float)t->in.arrival, (float)s->in_tokens, (float)s->out_tokens, 0 };
    t->at = s->n % SLO_RING;
    s->load[t->at] = now;
    for (uint32_t k = 0; k < MIN(s->n + 1, (uint32_t)SLO_RING); k++)
        t->weighed[k] = slo_weigh_load(s, s->load[k]);
    now.rate = 1;
    t->per_request = slo_weigh_load(s, now);
    t->out->demand = t->weighed[t->at];
}

static double budget_share(double miss, double seen, double goal)
{
    return (miss + budget_prior * (1 - goal)) / (seen + budget_prior) / (1 - goal);
}

static double find_load_share(struct slo_turn *t)
{
    double planned = 0;
    for (size_t v = 0; v < t->in.variant_n; v++)
        planned +=
            t->in.variants[v].ready * t->per_request * slo_get_capacity(t, v, margin_planned);
    return planned > 0 ? t->out->demand / planned : INFINITY;
}

/* Updates both error budgets, and from them the margin of the targets. */
static void spend_budgets(struct slo_turn *t)
{
    struct slo_state *s = t->s;
    struct slo_output *out = t->out;
    double keep = exp(-t->c->cycle / budget_memory);
    s->miss *= keep;
    s->seen *= keep;
    s->all_miss *= keep;
    s->all_seen *= keep;
    if (isinf(s->overloaded))
        s->overloaded = t->in.now;
    if (t->in.ok >= 0 && t->in.finished > 0) {
        double miss = (1 - t->in.ok) * t->in.finished;
        s->all_miss += miss;
        s->all_seen += t->in.finished;
        if (!(s->overloaded > 0 && t->in.now - s->overloaded < overload_memory)) {
            s->miss += miss;
            s->seen += t->in.finished;
        }
    }
    bool is_waiting = t->in.waiting > t->in.arrival * t->c->ttft;
    if (find_load_share(t) > overload ||
        is_waiting) /* from the next cycle on: see the law about more load */
        s->overloaded = t->in.now;
    out->spent = budget_share(s->all_miss, s->all_seen, t->c->goal);
    out->used = budget_share(s->miss, s->seen, t->c->goal);
    double caution = t->c->caution >= 1 ? MIN(t->c->caution, 3) : 1;
    out->margin =
        margin_planned * (1 - margin_gain * slo_clamp(out->used - 1, used_least, caution));
}

/* Adds the reserve that the user configured. */
static void add_reserve(struct slo_turn *t)
{
    double replicas = clean_number(t->c->reserve_replicas, 1e6),
           share = clean_number(t->c->reserve, 100);
    const struct slo_speed *reference = &t->s->speeds[t->s->reference];
    if (share > 0)
        t->out->need *= 1 + share;
    for (size_t v = 0; replicas > 0 && v < t->in.variant_n; v++)
        if (t->speed[v] == reference)
            t->out->need += replicas * t->capacity[v];
}

/* Remembers the need, and finds the highest of the last start delay. A replica that is removed and
 * needed again costs a start delay without service, so it is kept for about as long (the rule of the
 * ski rental problem: at most twice the cost of knowing the future). What was needed in a replayed cycle
 * is not known; while one is among them, nothing is removed. */
static void hold_need(struct slo_turn *t)
{
    struct slo_output *out = t->out;
    int cycles = (int)(hold_share * out->horizon / t->c->cycle + 0.5),
        known = (int)MIN(t->s->n + 1, (uint32_t)SLO_RING);
    t->s->load[t->at].need = out->demand > 1e-9 ? (float)(out->need / out->demand) : 0;
    out->hold = out->need;
    for (int j = 1; j < MIN(cycles, known); j++) {
        uint32_t k = (t->at + SLO_RING - (uint32_t)j) % SLO_RING;
        if (isnan(t->s->load[k].need))
            break;
        out->hold = MAX(out->hold, (double)t->s->load[k].need * t->weighed[k]);
        t->watched = j;
    }
    t->knows_hold = t->watched >= MIN(cycles, known) - 1;
}

/* Adds or removes replicas; the reason has the numbers that decided. */
static void decide_targets(struct slo_turn *t)
{
    struct slo_output *out = t->out;
    if (out->need > out->have) {
        slo_plan_up(t);
        set_reason(
            out,
            "up: %.2f busy replicas now, %.2f expected in %.0f s, %.2f with headroom; %.2f fit",
            out->demand, out->forecast, out->horizon, out->need, out->have);
    } else if (t->knows_hold && t->s->n * t->c->cycle >= watch_first) {
        const char *act = slo_plan_down(t) ? "down" : "keep";
        set_reason(out, "%s: %.2f busy replicas now, at most %.2f expected within %.0f s; %.2f fit",
                   act, out->demand, out->hold, out->horizon, out->have);
    } else
        set_reason(out, "keep: watching since %.0f s",
                   t->c->cycle * (t->knows_hold ? t->s->n : (uint32_t)t->watched + 1));
}

void slo_state_learn(struct slo_state *s, const struct slo_config *c, const struct slo_input *past)
{
    struct slo_output out = { 0 };
    struct slo_turn t = { .c = c, .s = s, .out = &out };
    follow_target(s, c->itl);
    open_turn(&t, past);
    learn_all(&t);
}

void slo_step(struct slo_state *s, const struct slo_config *c, const struct slo_input *in,
              struct slo_output *out)
{
    struct slo_turn t = { .c = c, .s = s, .out = out };
    *out = (struct slo_output){ 0 };
    follow_target(s, c->itl);
    open_turn(&t, in);
    out->variant_n = t.in.variant_n;
    learn_all(&t);
    if (!(t.in.arrival >= 0) || !(s->in_tokens > 0) || !(s->out_tokens > 0))
        hold_without_load(&t);
    else {
        choose_reference(&t);
        weigh_history(&t);
        spend_budgets(&t);
        slo_forecast_load(&t);
        slo_plan_capacity(&t);
        slo_plan_cold(&t);
        add_reserve(&t);
        slo_plan_backlog(&t);
        hold_need(&t);
        s->n++;
        decide_targets(&t);
    }
    close_turn(&t);
}
