/* Turns a need in busy replicas into replicas of each variant.
 *
 * Up: one replica at a time, of the best class, then of the lowest price for what it adds (capacity
 * beyond the lack is worth nothing). A variant without a replica pays 15 % more: it would have to
 * be learned first. At most 2 * current + 8 replicas in one cycle, whatever a wrong number asks
 * for.
 *
 * 10 % more than needed is added, and nothing is removed until 10 % are free, so that a load that
 * rises or falls steadily is followed in steps of a tenth: 3 % and none gave half again as many
 * changes at equal cost. The first tenth is why the headroom (slo_forecast_core.c) is so small.
 *
 * Down: only what the highest need of the last start delay leaves free (slo_core.c), plus 2 % so
 * that rounding does not decide; at most a quarter of the replicas per cycle, and once in 60 s; never one of a variant that got
 * a replica less than its own start delay ago, and never the last one: zero is decided elsewhere (hybrid_core.c). Nor does
 * one that serves go in exchange for one that still starts: what is ready must be enough without it.
 *
 * Class: a variant that is too slow for the targets (SLO_UNFIT) counts for nothing while another
 * can grow, and goes first when enough others are ready. It is classified by its capacity, and by
 * the time it takes for a long prompt once the error budget is being overspent (1.15 of the target
 * to enter, 0.95 to leave the class). */
#include "slo_parts_core.h"

static const double newcomer_price = 1.15, up_slack = 0.1, down_slack = 0.02, down_step = 0.1,
                    drain = 1.5;
static const double removal_gap = 60; /* s */
static const double cold_shortage = 2, cold_factor = 2;
static const double start_doubt =
    1.25; /* start delays vary: a replica gets this multiple of the mean */
static const double tail_enter = 1.15, tail_leave = 0.95, overspent = 1.2;
enum { SAMPLES_TO_KNOW = 4, STEP_MIN = 8 };

static bool is_slow_for_tail(const struct slo_turn *t, size_t v)
{
    const struct slo_speed *x = t->speed[v];
    if (!(t->in.in_tail > 0) || (!x->unfit && !(t->out->used > overspent)))
        return false;
    double prefill = slo_prefill_seconds(x, t->in.in_tail);
    double limit = x->unfit ? tail_leave : tail_enter;
    return prefill + 2 * t->c->itl / x->th[0] > limit * t->c->ttft;
}

static enum slo_fit classify_variant(const struct slo_turn *t, size_t v)
{
    if (t->speed[v]->samples < SAMPLES_TO_KNOW && !t->in.variants[v].hinted)
        return SLO_UNSEEN;
    return t->capacity[v] <= 0 || is_slow_for_tail(t, v) ? SLO_UNFIT : SLO_FITS;
}

/* Unfit variants are excluded from `have` only while another variant can replace them. */
void slo_plan_capacity(struct slo_turn *t)
{
    for (size_t v = 0; v < t->in.variant_n; v++) {
        const struct slo_variant *in = &t->in.variants[v];
        t->capacity[v] = t->per_request * slo_get_capacity(t, v, t->out->margin);
        t->fit[v] = classify_variant(t, v);
        t->speed[v]->unfit = t->fit[v] == SLO_UNFIT;
        t->has_alternative |= t->fit[v] != SLO_UNFIT && in->max > 0 && !in->stuck;
    }
    for (size_t v = 0; v < t->in.variant_n; v++) {
        const struct slo_variant *in = &t->in.variants[v];
        if (t->has_alternative && t->fit[v] == SLO_UNFIT)
            continue;
        t->out->have += MAX(in->current - in->stuck, 0) * t->capacity[v];
        t->ready_capacity += in->ready * t->capacity[v];
    }
}

/* Only what waits at the gateway counts: new replicas cannot take what waits inside others. It is
 * to be gone within 1.5 horizons, and until the new replicas come it changes by what arrives beyond
 * the ready capacity. */
void slo_plan_backlog(struct slo_turn *t)
{
    double queued = t->in.queued, horizon = t->out->horizon;
    bool is_long = queued > t->in.arrival * t->c->ttft || (queued > 0 && t->in.arrival <= 0);
    double backlog = queued * t->per_request + (t->out->demand - t->ready_capacity) * horizon;
    if (is_long && backlog > 0)
        t->out->need += backlog / (drain * horizon);
}

/* A fleet that has never been large enough orders twice what the load seems to need while less than half of
 * that is ready: the load is measured at a few overloaded replicas, at which only short answers end,
 * and the first minutes of a service see its load rise. What turns out to be too much goes again
 * after a start delay; too little is noticed one start delay later. Only where the speed of a replica is known, from a
 * history: without one the limit of trust (slo_capacity_core.c) already asks for twice as many. */
void slo_plan_cold(struct slo_turn *t)
{
    if (t->ready_capacity >= t->out->demand)
        t->s->caught_up = 1;
    bool is_cold = !(t->s->caught_up > 0) && t->s->speeds[t->s->reference].settled;
    if (is_cold && t->ready_capacity * cold_shortage < t->out->demand)
        t->out->need *= cold_factor;
}

/* The variant to add a replica of, or SIZE_MAX. */
static size_t choose_to_add(const struct slo_turn *t, double lack)
{
    size_t best = SIZE_MAX;
    double best_price = 0;
    for (size_t v = 0; v < t->in.variant_n; v++) {
        const struct slo_variant *in = &t->in.variants[v];
        if (t->capacity[v] <= 0 || in->stuck > 0 || t->target[v] >= in->max)
            continue;
        double price = in->cost / MIN(t->capacity[v], lack) * (in->current ? 1 : newcomer_price);
        if (best == SIZE_MAX || t->fit[v] < t->fit[best] ||
            (t->fit[v] == t->fit[best] && price < best_price)) {
            best = v;
            best_price = price;
        }
    }
    return best;
}

static int count_replicas(const struct slo_turn *t)
{
    int n = 0;
    for (size_t v = 0; v < t->in.variant_n; v++)
        n += t->in.variants[v].current;
    return n;
}

void slo_plan_up(struct slo_turn *t)
{
    double lack = t->out->need * (1 + up_slack) - t->out->have;
    for (int left = count_replicas(t) + STEP_MIN; lack > 1e-9 && left > 0; left--) {
        size_t v = choose_to_add(t, lack);
        if (v == SIZE_MAX)
            return;
        t->target[v]++;
        t->speed[v]->added = t->in.now;
        lack -= t->capacity[v];
    }
}

/* Whether a removal takes a replica that serves. Those that do not are removed first. */
static bool takes_ready(const struct slo_turn *t, size_t v)
{
    return t->in.variants[v].ready >= t->target[v];
}

/* The variant to take a replica from while `spare` of capacity is free, `ready_spare` of it ready, or SIZE_MAX. */
static size_t choose_to_remove(const struct slo_turn *t, double spare, double ready_spare)
{
    size_t best = SIZE_MAX;
    double best_price = -1;
    for (size_t v = 0; v < t->in.variant_n; v++) {
        bool unfit = t->has_alternative && t->fit[v] == SLO_UNFIT;
        double unused = takes_ready(t, v) ? MIN(spare, ready_spare) : spare;
        bool keep = unfit ? ready_spare < 0 : unused < t->capacity[v];
        const struct slo_speed *x = t->speed[v];
        bool fresh = x->added > 0 && t->in.now - x->added < start_doubt * x->start;
        if (t->target[v] <= t->in.variants[v].min || keep || fresh)
            continue;
        double price = (unfit ? 1e6 : 0) + t->in.variants[v].cost / MAX(t->capacity[v], 1e-6);
        if (price > best_price) {
            best = v;
            best_price = price;
        }
    }
    return best;
}

int slo_plan_down(struct slo_turn *t)
{
    double hold = t->out->hold * (1 + down_slack), spare = t->out->have - hold,
           ready_spare = t->ready_capacity - hold;
    int total = count_replicas(t), removed = 0, most = MIN(MAX(total / 4, 1), total - 1);
    if (t->s->removed > 0 && t->in.now - t->s->removed < removal_gap)
        return 0;
    if (spare < down_step * t->out->have)
        return 0;
    while (removed < most) {
        size_t v = choose_to_remove(t, spare, ready_spare);
        if (v == SIZE_MAX)
            break;
        if (!t->has_alternative || t->fit[v] != SLO_UNFIT) {
            spare -= t->capacity[v];
            ready_spare -= takes_ready(t, v) ? t->capacity[v] : 0;
        }
        t->target[v]--;
        removed++;
    }
    if (removed)
        t->s->removed = t->in.now;
    return removed;
}
