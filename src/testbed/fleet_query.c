/* What Prometheus and the API server would answer to the product's queries: see fleet_query.h.
 *
 * Rule of all sums here: a series without a value in the range is left out (add_known), and a sum of nothing
 * is NaN, as an empty PromQL vector is. A NaN reaches the policy as "unknown" and is never replaced by 0 on
 * the way.
 *
 * Which replicas count differs per query, as it does in Prometheus: rates over a range include pods that are
 * gone but have samples in it; instant values only pods that exist; values per variant only ready pods with
 * a fresh sample. */
#include "fleet_query.h"

#include <math.h>

static struct series_range last_seconds(const struct fleet *f, double span_s)
{
    return (struct series_range){ fleet_now_s(f), span_s };
}

static void add_known(double *sum, double value)
{
    if (!isnan(value))
        *sum = isnan(*sum) ? value : *sum + value;
}

/* ---- the whole model */

double fleet_query_rate(const struct fleet *f, enum series_field field, double range_s)
{
    double sum = NAN;
    for (size_t i = 0; i < f->replicas.n; i++)
        if (f->replicas.at[i]->series)
            add_known(&sum,
                      series_rate(f->replicas.at[i]->series, field, last_seconds(f, range_s)));
    return sum;
}

double fleet_query_ratio(const struct fleet *f, enum series_field a, enum series_field b,
                         double range_s)
{
    double below = fleet_query_rate(f, b, range_s);
    return below > 0 ? fleet_query_rate(f, a, range_s) / below : NAN;
}

static bool is_running(const struct fleet_replica *r)
{
    return r->phase == FLEET_READY || r->phase == FLEET_DRAINING;
}

double fleet_query_sum(const struct fleet *f, enum series_field field, size_t variant)
{
    static const double lookback_s = 300;
    double sum = NAN;
    for (size_t i = 0; i < f->replicas.n; i++) {
        const struct fleet_replica *r = f->replicas.at[i];
        const struct series_scrape *x = is_running(r) ? series_last(r->series) : NULL;
        if (x && x->at_s >= fleet_now_s(f) - lookback_s &&
            (variant == FLEET_ALL_VARIANTS || r->variant == variant))
            add_known(&sum, x->field[field]);
    }
    return sum;
}

static double sum_deriv(const struct fleet *f, enum series_field field, double range_s)
{
    double sum = NAN;
    for (size_t i = 0; i < f->replicas.n; i++)
        if (f->replicas.at[i]->series)
            add_known(&sum,
                      series_deriv(f->replicas.at[i]->series, field, last_seconds(f, range_s)));
    return sum;
}

static double fleet_query_gateway_rate(const struct fleet *f, double range_s)
{
    /* the gateway's counter as a series of its own */
    struct series s = { 0 };
    size_t from = f->gateway_n > SERIES_SCRAPES ? f->gateway_n - SERIES_SCRAPES : 0;
    for (size_t i = from; i < f->gateway_n; i++) {
        const struct fleet_gateway_scrape *g = &f->gateway[i % FLEET_GATEWAY_SCRAPES];
        s.ring[s.n].at_s = g->at_s;
        s.ring[s.n++].field[SERIES_SUCCESS] = g->requests;
    }
    return series_rate(&s, SERIES_SUCCESS, last_seconds(f, range_s));
}

double fleet_query_arrival_now(const struct fleet *f)
{
    double range_s = 2 * f->config->scrape_s;
    return f->config->has_gateway ? fleet_query_gateway_rate(f, range_s)
                                  : fleet_query_rate(f, SERIES_TTFT_COUNT, range_s);
}

static double prompt_tail(const struct fleet *f, double goal)
{
    static const double range_s = 600, least = 100;
    double sums[SERIES_BUCKETS + 1] = { 0 }, all = 0;
    for (size_t i = 0; i < f->replicas.n; i++)
        if (f->replicas.at[i]->series)
            series_add_bucket_rates(f->replicas.at[i]->series, SERIES_INPUT,
                                    last_seconds(f, range_s), sums);
    for (size_t i = 0; i <= replica_token_bounds.n; i++)
        all += sums[i];
    return all * range_s >= least ? series_quantile(goal, &replica_token_bounds, sums) : NAN;
}

/* The buckets of five minutes, as collect_traffic.c asks for; the requests of one scrape interval of
 * them count as finished now. */
static void query_attainment(const struct fleet *f, struct query_model *q)
{
    static const double range_s = 300;
    const struct fleet_config *c = f->config;
    double ttft[SERIES_BUCKETS + 1] = { 0 }, tpot[SERIES_BUCKETS + 1] = { 0 }, all = 0;
    for (size_t i = 0; i < f->replicas.n; i++) {
        const struct series *s = f->replicas.at[i]->series;
        if (!s)
            continue;
        series_add_bucket_rates(s, SERIES_TTFT, last_seconds(f, range_s), ttft);
        series_add_bucket_rates(s, SERIES_TPOT, last_seconds(f, range_s), tpot);
    }
    for (size_t i = 0; i < countof(ttft); i++) {
        ttft[i] *= range_s;
        tpot[i] *= range_s;
        all += ttft[i];
    }
    double late = series_share_above(c->ttft_s, &replica_ttft_bounds, ttft);
    double slow = series_share_above(c->itl_s, &replica_tpot_bounds, tpot);
    q->finished = all * c->scrape_s / range_s;
    q->ok = isnan(late) ? NAN : fmax(0, 1 - late - (isnan(slow) ? 0 : slow));
}

/* ---- a variant */

struct mean {
    double sum;
    int n;
};

static void add_to_mean(struct mean *m, double value)
{
    if (isnan(value))
        return;
    m->sum += value;
    m->n++;
}

static double mean_of(struct mean m)
{
    return m.n ? m.sum / m.n : NAN;
}

/* Means over the ready pods of a variant that were scraped in the last minute. */
static void query_variant(const struct fleet *f, size_t v, struct query_variant *ret)
{
    static const double fresh_s = 60;
    struct series_range minute = last_seconds(f, 60);
    struct mean prompt = { 0 }, gen = { 0 }, run = { 0 }, low = { 0 }, high = { 0 }, kv = { 0 };
    double itl_sum = NAN, itl_count = NAN;
    const struct replica_profile *p = &f->config->variants[v].profile;
    *ret = (struct query_variant){ .current = f->current[v],
                                   .ready = f->ready[v],
                                   .kv_tokens = (double)p->kv_blocks * p->block_tokens,
                                   .max_seqs = p->max_seqs,
                                   .start_delay = f->start_s[v] };
    for (size_t i = 0; i < f->replicas.n; i++) {
        const struct fleet_replica *r = f->replicas.at[i];
        if (r->variant != v || r->phase != FLEET_READY)
            continue;
        const struct series *s = r->series;
        const struct series_scrape *x = series_last(s);
        if (!x || x->at_s < minute.now_s - fresh_s)
            continue;
        ret->reporting++;
        add_known(&itl_sum, series_increase(s, SERIES_ITL_SUM, minute));
        add_known(&itl_count, series_increase(s, SERIES_ITL_COUNT, minute));
        add_to_mean(&prompt, series_rate(s, SERIES_PROMPT_TOKENS, minute));
        add_to_mean(&gen, series_rate(s, SERIES_GENERATION_TOKENS, minute));
        add_to_mean(&run, series_avg(s, SERIES_RUNNING, minute));
        add_to_mean(&low, series_min(s, SERIES_RUNNING, minute));
        add_to_mean(&high, series_max(s, SERIES_RUNNING, minute));
        add_to_mean(&kv, x->field[SERIES_KV]);
    }
    ret->itl = itl_count > 0 ? itl_sum / itl_count : NAN;
    ret->prompt_rate = mean_of(prompt);
    ret->gen_rate = mean_of(gen);
    ret->running = mean_of(run);
    ret->running_low = mean_of(low);
    ret->running_high = mean_of(high);
    ret->kv = mean_of(kv);
}

void fleet_query_model(const struct fleet *f, struct query_model *q)
{
    *q = (struct query_model){ 0 };
    q->queued = f->gateway_n ? f->gateway[(f->gateway_n - 1) % FLEET_GATEWAY_SCRAPES].queued : NAN;
    if (f->config->has_gateway) {
        q->arrival = fleet_query_gateway_rate(f, 60);
    } else {
        double waiting_grows = sum_deriv(f, SERIES_WAITING, 60);
        q->arrival =
            fleet_query_rate(f, SERIES_TTFT_COUNT, 60) + (isnan(waiting_grows) ? 0 : waiting_grows);
        q->queued = NAN;
    }
    q->in_tokens = fleet_query_ratio(f, SERIES_PROMPT_TOKENS, SERIES_TTFT_COUNT, 60);
    q->out_tokens = fleet_query_ratio(f, SERIES_OUTPUT_SUM, SERIES_OUTPUT_COUNT, 180);
    q->in_tail = prompt_tail(f, f->config->goal);
    q->waiting = fleet_query_sum(f, SERIES_WAITING, FLEET_ALL_VARIANTS);
    add_known(&q->waiting, q->queued);
    query_attainment(f, q);
    for (size_t v = 0; v < f->config->variant_n; v++)
        query_variant(f, v, &q->variants[v]);
}
