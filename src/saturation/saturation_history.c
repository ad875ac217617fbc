/* What Prometheus knows about a model from before this process: the loads of the last 80 minutes and the
 * speed of each variant in the last hour, for a state of the slo policy that does not know them. Without
 * them the policy knows no trend and no level, removes nothing for five minutes, and plans with the
 * prior speed of a replica until some have served for a while.
 *
 *     make_state ─► saturation_slo_replay ─► range queries: one for the load, one per variant
 *                                                 └─► the last answer ─► slo_state_learn, slo_state_replay
 *                                                                        └─► the engine decides again
 *
 * Decisions go on meanwhile. The queries use the slots of suspect calls (prom/query.c), so no query that a
 * decision needs waits for them, and at most IN_FLIGHT_MAX models are replayed at a time; the others follow
 * with one of their next steps. A query that fails is not repeated: the policy then learns as it goes.
 *
 * Pods that served an hour ago are gone, and only their names show which workload they belonged to.
 * They follow from the workload's name by the rules of Deployments and StatefulSets; other kinds have no
 * replayed speeds. The state that a former process saved is newer than anything before it: of its variants
 * only what was measured later is learned. */
#include "../base/log.h"
#include "saturation_slo.h"
#include "saturation_state.h"

#include "../base/sum.h"

#include <math.h>

enum {
    IN_FLIGHT_MAX = 8,
    SPEED_POINTS = 60, /* minutes: the rates are over one, so the points share no sample */
    SPEED_STEP_S = 60, /* between them */
    LOADS_MIN = 20,    /* cycles: less is not worth it */
    GAP_MAX = 4,       /* cycles without a value, as when Prometheus restarts */
    QUERIES_MAX = 1 + SLO_VARIANTS_MAX,
    TOKENS_MAX = 1 << 20, /* of a request: more is a ratio of two rates that did not fit */
};

/* One expression of a query: `before`, the metric with its matchers, `after`. */
struct expression {
    const char *before, *metric, *after;
};

enum load_part {
    GATEWAY,
    OLD_GATEWAY,
    FIRST_TOKENS,
    PROMPT_TOKENS,
    OUT_SUM,
    OUT_COUNT,
    LOAD_PARTS
};
enum speed_part {
    ITL_SUM,
    ITL_COUNT,
    OLD_ITL_SUM,
    OLD_ITL_COUNT,
    PROMPT_RATE,
    GEN_RATE,
    RUNNING,
    RUNNING_LOW,
    RUNNING_HIGH,
    KV,
    REPORTING,
    SPEED_PARTS
};

/* As in collect_traffic.c, where the windows are explained. */
static const struct expression load_parts[LOAD_PARTS] = {
    [GATEWAY] = { "sum(rate(", "inference_objective_request_total", "[1m]))" },
    [OLD_GATEWAY] = { "sum(rate(", "inference_model_request_total", "[1m]))" },
    [FIRST_TOKENS] = { "sum(rate(", "vllm:time_to_first_token_seconds_count", "[1m]))" },
    [PROMPT_TOKENS] = { "sum(rate(", "vllm:prompt_tokens_total", "[1m]))" },
    [OUT_SUM] = { "sum(increase(", "vllm:request_generation_tokens_sum", "[3m]))" },
    [OUT_COUNT] = { "sum(increase(", "vllm:request_generation_tokens_count", "[3m]))" },
};

/* Means over the replicas of a variant. */
static const struct expression speed_parts[SPEED_PARTS] = {
    [ITL_SUM] = { "sum(rate(", "vllm:inter_token_latency_seconds_sum", "[1m]))" },
    [ITL_COUNT] = { "sum(rate(", "vllm:inter_token_latency_seconds_count", "[1m]))" },
    [OLD_ITL_SUM] = { "sum(rate(", "vllm:time_per_output_token_seconds_sum", "[1m]))" },
    [OLD_ITL_COUNT] = { "sum(rate(", "vllm:time_per_output_token_seconds_count", "[1m]))" },
    [PROMPT_RATE] = { "avg(rate(", "vllm:prompt_tokens_total", "[1m]))" },
    [GEN_RATE] = { "avg(rate(", "vllm:generation_tokens_total", "[1m]))" },
    [RUNNING] = { "avg(avg_over_time(", "vllm:num_requests_running", "[1m]))" },
    [RUNNING_LOW] = { "avg(min_over_time(", "vllm:num_requests_running", "[1m]))" },
    [RUNNING_HIGH] = { "avg(max_over_time(", "vllm:num_requests_running", "[1m]))" },
    [KV] = { "avg(last_over_time(", "vllm:kv_cache_usage_perc", "[1m]))" },
    [REPORTING] = { "count(", "vllm:num_requests_running", ")" },
};

struct history_query {
    struct slo_history *history;
    struct prom_call *call; /* NULL: answered */
    int64_t start_ms, step_ms;
    size_t points;
    float *values; /* owned; [part * points + point]; NaN: not known */
    /* of a variant: */
    uint64_t id;
    int64_t after_ms; /* later points only: the saved state knows the others */
    double kv_tokens;
};

struct slo_history { /* being fetched; owned by the state */
    struct saturation *s;
    struct sat_model *m;
    struct history_query queries[QUERIES_MAX]; /* the first is the load's */
    size_t n, left;
};

/* ---- queries */

/* `pods` is a regular expression without quotes and backslashes; NULL: all pods. */
static void put_query(struct buf *out, const struct sat_feed *feed, const struct expression *parts,
                      size_t n, const char *pods)
{
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%slabel_replace(%s%s{", i ? " or " : "", parts[i].before, parts[i].metric);
        prom_query_matcher(out, "namespace", feed->ns);
        buf_putc(out, ',');
        prom_query_matcher(out, "model_name", feed->model);
        if (pods)
            buf_printf(out, ",pod=~\"%s\"", pods);
        buf_printf(out, "}%s,\"q\",\"%zu\",\"\",\"\")", parts[i].after, i);
    }
}

/* The names of a workload's pods, now and before: false if its kind has no rule for them. */
static bool put_pod_names(struct buf *out, const struct variant *v)
{
    if (!saturation_is_built_in(v))
        return false;
    for (size_t i = 0; i < v->spec.target_name.n; i++) {
        char c = v->spec.target_name.p[i];
        if (c == '.')
            buf_put(out, S("[.]"));
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')
            buf_putc(out, c);
        else
            return false; /* no name of a workload */
    }
    buf_put(out, saturation_is_statefulset(v) ? S("-[0-9]+") : S("-[0-9a-z]{1,10}-[0-9a-z]{5}"));
    return true;
}

static size_t parts_of(const struct history_query *q)
{
    return q->id ? (size_t)SPEED_PARTS : (size_t)LOAD_PARTS;
}

static float *value_at(const struct history_query *q, size_t part, size_t point)
{
    return &q->values[part * q->points + point];
}

/* The label q is the number of the part. */
static void take_series(struct history_query *q, const struct prom_series *s)
{
    int64_t part;
    size_t parts = parts_of(q);
    if (str_to_i64(prom_series_label(s, S("q")), &part) < 0 || part < 0 || part >= (int64_t)parts)
        return;
    for (size_t i = 0; i < s->sample_n; i++) {
        int64_t at = (s->samples[i].time_ms - q->start_ms + q->step_ms / 2) / q->step_ms;
        double value = s->samples[i].value;
        if (at >= 0 && at < (int64_t)q->points && value >= 0 && value < 1e9)
            *value_at(q, (size_t)part, (size_t)at) = (float)value;
    }
}

static void finish_history(struct slo_history *h);

static void on_answer(void *context, const struct prom_result *result, const err_t *failure)
{
    struct history_query *q = context;
    struct slo_history *h = q->history;
    q->call = NULL;
    if (failure)
        log_debug("The history of a model cannot be read", KV("namespace", h->m->ns),
                  KV("model", h->m->id), KV_C("error", failure->text));
    for (size_t i = 0; result && i < result->n; i++)
        take_series(q, &result->series[i]);
    if (--h->left == 0)
        finish_history(h);
}

static void send_query(struct slo_history *h, struct history_query *q, str promql)
{
    size_t all = q->points * parts_of(q);
    q->history = h;
    q->values = mem_alloc(all * sizeof(*q->values));
    for (size_t i = 0; i < all; i++)
        q->values[i] = NAN;
    h->left++;
    q->call = prom_client_query(h->s->collector.prometheus,
                                &(struct prom_query){
                                    .promql = promql,
                                    .start_ms = q->start_ms,
                                    .end_ms = q->start_ms + q->step_ms * (int64_t)(q->points - 1),
                                    .step_ms = q->step_ms,
                                    .suspect = true, /* let the queries of decisions go first */
                                    .on_done = on_answer,
                                    .context = q });
}

/* ---- answers */

/* NaN without a count: the two rates are of different scrapes, and one may be zero. */
static double mean_of(const struct history_query *q, size_t sum, size_t count, size_t at)
{
    double n = (double)*value_at(q, count, at);
    return n > 0 ? (double)*value_at(q, sum, at) / n : NAN;
}

static float tokens_of(const struct history_query *q, size_t sum, size_t count, size_t at)
{
    double mean = mean_of(q, sum, count, at);
    return mean <= TOKENS_MAX ? (float)mean : NAN;
}

/* One point of the load; a rate of NaN: not known. */
static struct slo_load load_at(const struct history_query *q, size_t at)
{
    float rate = *value_at(q, GATEWAY, at);
    rate = isnan(rate) ? *value_at(q, OLD_GATEWAY, at) : rate;
    rate = isnan(rate) ? *value_at(q, FIRST_TOKENS, at) : rate;
    return (struct slo_load){ .rate = rate,
                              .in = tokens_of(q, PROMPT_TOKENS, FIRST_TOKENS, at),
                              .out = tokens_of(q, OUT_SUM, OUT_COUNT, at) };
}

/* The loads in order of time, short gaps filled with what was before. Only what reaches to now without a
 * longer gap is a course. Returns how many. */
static size_t read_loads(const struct history_query *q, struct slo_load out[static SLO_RING])
{
    struct slo_load last = { .rate = NAN };
    size_t n = 0, missing = 0;
    for (size_t i = 0; i < q->points; i++) {
        struct slo_load x = load_at(q, i);
        x.in = x.in > 0 ? x.in : last.in;
        x.out = x.out > 0 ? x.out : last.out;
        bool known = x.rate >= 0 && x.in > 0 && x.out > 0;
        missing = known ? 0 : missing + 1;
        last = known ? x : last;
        if (missing > GAP_MAX || !(last.rate >= 0))
            n = 0;
        else
            out[n++] = last;
    }
    return n >= LOADS_MIN ? n : 0;
}

static struct slo_variant variant_at(const struct history_query *q, size_t at)
{
    bool is_old = isnan(*value_at(q, ITL_COUNT, at));
    double reporting = (double)*value_at(q, REPORTING, at);
    return (struct slo_variant){
        .id = q->id,
        .reporting = reporting >= 1 && reporting < 1e6 ? (int)reporting : 0,
        .itl = is_old ? mean_of(q, OLD_ITL_SUM, OLD_ITL_COUNT, at)
                      : mean_of(q, ITL_SUM, ITL_COUNT, at),
        .prompt_rate = (double)*value_at(q, PROMPT_RATE, at),
        .gen_rate = (double)*value_at(q, GEN_RATE, at),
        .running = (double)*value_at(q, RUNNING, at),
        .running_low = (double)*value_at(q, RUNNING_LOW, at),
        .running_high = (double)*value_at(q, RUNNING_HIGH, at),
        .kv = (double)*value_at(q, KV, at),
        .kv_tokens = q->kv_tokens,
        .max_seqs = NAN,
        .start_delay = NAN,
    };
}

/* The speeds, minute by minute, each with the tokens of its time. */
static void learn_speeds(const struct slo_history *h)
{
    const struct history_query *load = &h->queries[0];
    struct sat_slo *slo = h->m->slo;
    for (size_t at = 0; h->n > 1 && at < SPEED_POINTS; at++) {
        int64_t time_ms = h->queries[1].start_ms + h->queries[1].step_ms * (int64_t)at;
        int64_t near = (time_ms - load->start_ms) / load->step_ms;
        struct slo_load tokens = { .in = NAN, .out = NAN };
        if (near >= 0 && near < (int64_t)load->points)
            tokens = load_at(load, (size_t)near);
        struct slo_input in = { .arrival = NAN,
                                .arrival_now = NAN,
                                .in_tokens = (double)tokens.in,
                                .out_tokens = (double)tokens.out };
        for (size_t i = 1; i < h->n; i++)
            if (time_ms > h->queries[i].after_ms)
                in.variants[in.variant_n++] = variant_at(&h->queries[i], at);
        slo_state_learn(&slo->state, &slo->config, &in);
    }
}

static void history_free(struct slo_history *h)
{
    h->s->replaying--;
    for (size_t i = 0; i < h->n; i++) {
        if (h->queries[i].call)
            prom_call_cancel(h->queries[i].call);
        free(h->queries[i].values);
    }
    free(h);
}

/* All queries were answered. The step that the policy has made meanwhile is made again with what is known
 * now: a cycle is an eighth of a start delay. */
static void finish_history(struct slo_history *h)
{
    struct sat_slo *slo = h->m->slo;
    struct slo_load loads[SLO_RING];
    size_t n = read_loads(&h->queries[0], loads);
    slo->is_due = slo->state.n <= 1;
    if (slo->state.n == 1)
        slo->state.n = 0;
    learn_speeds(h);
    slo_state_replay(&slo->state, loads, n);
    log_info("Replayed the history of a model", KV("namespace", h->m->ns), KV("model", h->m->id),
             KV_INT("cycles", (int64_t)n), KV_INT("variants", (int64_t)h->n - 1));
    controller_add(h->s->engine, h->m->ns, h->m->id);
    history_free(take(slo->history));
}

/* ---- start */

static void ask_speed(const struct gathering *g, struct slo_history *h, size_t i, int64_t end_ms)
{
    auto_buf struct buf pods = { 0 }, promql = { 0 };
    const struct gather_traffic *t = &g->traffic[i];
    if (h->n == QUERIES_MAX || !put_pod_names(&pods, g->variants[i]))
        return;
    struct history_query *q = &h->queries[h->n++];
    *q = (struct history_query){
        .id = sum64(g->states[i].variant, 1) | 1,
        .points = SPEED_POINTS,
        .step_ms = SPEED_STEP_S * 1000,
        .start_ms = end_ms - SPEED_STEP_S * 1000 * (SPEED_POINTS - 1),
        .kv_tokens =
            t->n[GATHER_KV_TOKENS] ? t->sum[GATHER_KV_TOKENS] / t->n[GATHER_KV_TOKENS] : NAN,
    };
    for (size_t k = 0; k < SLO_VARIANTS_MAX; k++)
        if (g->model->slo->state.speeds[k].id == q->id && g->model->slo->restored)
            q->after_ms = g->model->slo->saved_at_s * 1000;
    put_query(&promql, &g->m->feed, speed_parts, SPEED_PARTS, pods.p);
    send_query(h, q, buf_str(&promql));
}

/* The range ends one cycle before this process began to decide: from then on it knows the load itself. */
void saturation_slo_replay(const struct gathering *g)
{
    struct sat_slo *slo = g->model->slo;
    struct saturation *s = g->s;
    if (!slo->wants_history || s->replaying >= IN_FLIGHT_MAX)
        return;
    slo->wants_history = false;
    if (!s->collector.prometheus)
        return; /* pods know no past */
    struct slo_history *h = mem_zero(1, sizeof(*h));
    int64_t cycle_ms = saturation_slo_cycle_ns(s) / NS_PER_MS;
    int64_t age_ms = (g->now_ns - slo->since_ns) / NS_PER_MS;
    int64_t end_ms = loop_wall_ns(manager_loop(s->manager)) / NS_PER_MS - age_ms - cycle_ms;
    s->replaying++;
    h->s = s;
    h->m = g->model;
    h->n = 1;
    h->queries[0] = (struct history_query){ .points = SLO_RING,
                                            .step_ms = cycle_ms,
                                            .start_ms = end_ms - cycle_ms * (SLO_RING - 1) };
    slo->history = h;
    auto_buf struct buf promql = { 0 };
    put_query(&promql, &g->m->feed, load_parts, LOAD_PARTS, NULL);
    send_query(h, &h->queries[0], buf_str(&promql));
    for (size_t i = 0; i < g->n; i++)
        ask_speed(g, h, i, end_ms);
}

void saturation_slo_free(struct sat_slo *slo)
{
    if (slo && slo->history)
        history_free(slo->history);
    free(slo);
}
