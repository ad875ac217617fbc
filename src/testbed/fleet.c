/* The discrete-event simulation of a fleet: fleet.h has the rules, this is how they are run.
 *
 *     trace --arrival--> route_request --> replica with the least load, or the gateway's queue
 *                                               |
 *     timers: ready, scrape, step, point        v
 *         run_policy --> add/remove_replica   replica_advance --> request_ended --> outcome[id]
 *
 * Two kinds of events, in time order: requests of the trace, and timers (a replica becomes ready, a scrape,
 * a step of the policy, a point of the picture). Timers are few beside requests, so there is no queue of
 * events: after each timer, the next one is found by a look at all replicas and kept in `timer_ns`. Before
 * any event, all replicas are advanced to its time; for an idle one that is O(1).
 *
 * Invariants: f->current[v] is the number of replicas of a variant that are starting or ready, f->ready[v]
 * those that are ready; every request of the trace has exactly one slot in `outcome`, NaN until it ends, so
 * a request that is never served counts as missed.
 *
 * One seed feeds start delays, scrape phases, lost scrapes and replica noise, in a fixed order: the same run
 * gives the same result byte for byte.
 *
 * struct fleet owns replicas, queue and outcomes for one run. A replica that is gone keeps its series for as
 * long as any query looks back (600 s), because Prometheus would still answer from it. */
#include "fleet.h"

#include "../base/clock.h"

#include <math.h>
#include <stdio.h>

static int64_t to_ns(double seconds)
{
    return (int64_t)(seconds * 1e9);
}

/* ---- requests */

static bool has_attained(const struct fleet_config *c, const struct fleet_request *o)
{
    return (double)o->ttft_s <= c->ttft_s && (double)o->tpot_s <= c->itl_s; /* NaN: no */
}

/* Records the latencies of a request; aborts the run once more have missed than the caller allows. */
static void request_ended(void *context, const struct replica_result *result)
{
    const struct fleet_replica *r = context;
    struct fleet *f = r->fleet;
    const struct replica_request *q = &result->request;
    f->broken +=
        r->phase == FLEET_DRAINING && result->end_ns > r->drained_ns + to_ns(f->config->grace_s);
    struct fleet_request *o = &f->outcome[q->id];
    o->ttft_s = (float)((double)(result->first_ns - q->arrived_ns) / 1e9);
    o->tpot_s =
        q->output_tokens > 1
            ? (float)((double)(result->end_ns - result->first_ns) / 1e9 / (q->output_tokens - 1))
            : 0;
    f->served++;
    f->missed += !has_attained(f->config, o);
    f->aborted |= f->misses_max && f->missed > f->misses_max;
}

static struct fleet_replica *pick_replica(const struct fleet *f)
{
    struct fleet_replica *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < f->replicas.n; i++) {
        struct fleet_replica *r = f->replicas.at[i];
        if (r->phase != FLEET_READY)
            continue;
        double load = replica_load(&r->model);
        if (load < least) {
            least = load;
            best = r;
        }
    }
    return best;
}

static void route_request(void *context, struct replica_request request)
{
    struct fleet *f = context;
    struct fleet_replica *r = pick_replica(f);
    if (r)
        replica_submit(&r->model, request);
    else
        vec_push(&f->gateway_queue, request);
}

static size_t gateway_queued(const struct fleet *f)
{
    return f->gateway_queue.n - f->gateway_first;
}

static void take_from_gateway(struct fleet *f, struct fleet_replica *r)
{
    replica_submit(&r->model, f->gateway_queue.at[f->gateway_first++]);
    if (f->gateway_first == f->gateway_queue.n) {
        vec_clear(&f->gateway_queue);
        f->gateway_first = 0;
    }
}

/* What a burst left behind follows as soon as a replica has nothing waiting. */
static void drain_gateway(struct fleet *f)
{
    while (gateway_queued(f)) {
        struct fleet_replica *r = pick_replica(f);
        if (!r || r->model.waiting_n)
            return;
        take_from_gateway(f, r);
    }
}

/* ---- replicas */

static double random_normal(struct random *r)
{
    double u = 1 - random_unit(r), v = random_unit(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Starts the model and the series of a replica, and lets it take a batch from the gateway's queue. */
static void make_ready(struct fleet *f, struct fleet_replica *r)
{
    const struct fleet_config *c = f->config;
    r->phase = FLEET_READY;
    replica_init(&r->model, &c->variants[r->variant].profile, f->now_ns,
                 c->seed * 1000003 + f->made + (uint64_t)r->ready_ns);
    r->model.ended = request_ended;
    r->model.context = r;
    r->series = mem_zero(1, sizeof(*r->series));
    r->scrape_ns = f->now_ns + to_ns(c->scrape_s * random_unit(&f->random));
    f->ready[r->variant]++;
    double took = (double)(r->ready_ns - r->created_ns) / 1e9, *mean = &f->start_s[r->variant];
    *mean = f->started[r->variant] ? *mean : 0;
    *mean += (took - *mean) / ++f->started[r->variant];
    for (int i = 0; i < FLEET_TAKEN_AT_ONCE && gateway_queued(f); i++)
        take_from_gateway(f, r);
}

/* `at_once`: a replica that a run starts with, ready immediately. */
static void add_replica(struct fleet *f, size_t variant, bool at_once)
{
    const struct fleet_config *c = f->config;
    struct fleet_replica *r = mem_zero(1, sizeof(*r));
    double delay = c->start_mean_s + c->start_sd_s * random_normal(&f->random);
    delay = at_once ? 0 : fmax(delay, c->start_mean_s / 2);
    r->variant = variant;
    r->fleet = f;
    r->created_ns = f->now_ns;
    r->ready_ns = f->now_ns + to_ns(delay);
    snprintf(r->name, sizeof(r->name), "replica-%llu", (unsigned long long)f->made++);
    vec_push(&f->replicas, r);
    f->current[variant]++;
    if (at_once)
        make_ready(f, r);
}

static void end_replica(struct fleet *f, struct fleet_replica *r)
{
    if (r->phase != FLEET_STARTING)
        replica_done(&r->model);
    r->phase = FLEET_GONE;
    r->gone_ns = f->now_ns;
}

/* The pod-deletion-cost of a replica (saturation_victims.c). */
static double deletion_cost(const struct fleet_replica *r)
{
    const struct replica *m = &r->model;
    return floor(1000.0 * m->used_blocks / m->profile.kv_blocks) + 10 * replica_running(m) +
           5 * (double)m->waiting_n;
}

/* Whether `r`, which is younger, is to be removed before `best`. */
static bool is_better_victim(const struct fleet *f, const struct fleet_replica *r,
                             const struct fleet_replica *best)
{
    if (r->phase != best->phase || r->phase == FLEET_STARTING || !f->config->marks_victims)
        return r->phase <= best->phase;
    return deletion_cost(r) <= deletion_cost(best);
}

/* Not-ready ones first, then the youngest or the least busy. */
static void remove_replica(struct fleet *f, size_t variant)
{
    struct fleet_replica *best = NULL;
    for (size_t i = 0; i < f->replicas.n; i++) {
        struct fleet_replica *r = f->replicas.at[i];
        if (r->variant != variant || r->phase > FLEET_READY)
            continue;
        if (!best || is_better_victim(f, r, best))
            best = r;
    }
    if (!best)
        return;
    f->current[variant]--;
    if (best->phase == FLEET_STARTING) {
        end_replica(f, best);
        return;
    }
    f->ready[variant]--;
    best->phase = FLEET_DRAINING;
    best->drained_ns = f->now_ns;
    replica_give_back(&best->model, route_request, f);
}

static void replica_free(struct fleet_replica *r)
{
    if (r->phase == FLEET_READY || r->phase == FLEET_DRAINING)
        replica_done(&r->model);
    free(r->series);
    free(r);
}

/* Ends what has drained; forgets the series of what is gone for longer than any query looks back. */
static void sweep_replicas(struct fleet *f)
{
    static const double longest_range_s = 600;
    size_t kept = 0;
    for (size_t i = 0; i < f->replicas.n; i++) {
        struct fleet_replica *r = f->replicas.at[i];
        if (r->phase == FLEET_DRAINING && replica_is_idle(&r->model))
            end_replica(f, r);
        bool over = r->phase == FLEET_GONE &&
                    (!r->series || f->now_ns - r->gone_ns > to_ns(longest_range_s));
        if (over) {
            int64_t gone = MIN(r->gone_ns, f->end_ns);
            f->cost += f->config->variants[r->variant].cost *
                       (double)MAX(gone - r->created_ns, (int64_t)0) / 3.6e12;
            replica_free(r);
        } else {
            f->replicas.at[kept++] = r;
        }
    }
    f->replicas.n = kept;
}

static void advance_replicas(struct fleet *f)
{
    for (size_t i = 0; i < f->replicas.n; i++) {
        struct fleet_replica *r = f->replicas.at[i];
        if (r->phase == FLEET_READY || r->phase == FLEET_DRAINING)
            replica_advance(&r->model, f->now_ns);
    }
}

/* ---- timers */

/* Asks the policy, clamps its targets to the bounds of each variant, and applies them at once. */
static void run_policy(struct fleet *f)
{
    const struct fleet_config *c = f->config;
    struct fleet_answer answer = { .reason = "" };
    int before[FLEET_VARIANTS_MAX];
    memcpy(answer.targets, f->current, sizeof(answer.targets));
    memcpy(before, f->current, sizeof(before));
    f->policy->step(f->policy, f, &answer);
    for (size_t v = 0; v < c->variant_n; v++) {
        f->start_s[v] = NAN;
        f->started[v] = 0;
        int target = MAX(c->variants[v].min, MIN(answer.targets[v], c->variants[v].max));
        answer.targets[v] = target;
        f->changes += target != f->current[v];
        while (f->current[v] < target)
            add_replica(f, v, false);
        while (f->current[v] > target)
            remove_replica(f, v);
    }
    if (f->hooks && f->hooks->decided)
        f->hooks->decided(f->hooks->context, f, before, &answer);
}

static bool is_scrape_lost(struct fleet *f)
{
    return f->config->scrape_loss > 0 && random_unit(&f->random) < f->config->scrape_loss;
}

static void scrape_gateway(struct fleet *f)
{
    f->gateway_scrape_ns += to_ns(f->config->scrape_s);
    if (is_scrape_lost(f))
        return;
    f->gateway[f->gateway_n++ % FLEET_GATEWAY_SCRAPES] =
        (struct fleet_gateway_scrape){ fleet_now_s(f), (double)f->gateway_requests,
                                       (double)gateway_queued(f) };
}

static void put_point(struct fleet *f)
{
    struct fleet_point p = { .attained = NAN };
    for (size_t v = 0; v < f->config->variant_n; v++) {
        p.ready[v] = (int16_t)f->ready[v];
        p.current[v] = (int16_t)f->current[v];
    }
    vec_push(&f->course.points, p);
}

static int64_t next_point_ns(const struct fleet *f)
{
    return (int64_t)f->course.points.n * FLEET_POINT_S * NS_PER_S;
}

/* The earliest of all timers. */
static void find_next_timer(struct fleet *f)
{
    int64_t next = MIN(f->gateway_scrape_ns, next_point_ns(f));
    if (f->policy)
        next = MIN(next, f->step_ns);
    for (size_t i = 0; i < f->replicas.n; i++) {
        const struct fleet_replica *r = f->replicas.at[i];
        if (r->phase == FLEET_STARTING)
            next = MIN(next, r->ready_ns);
        else if (r->phase != FLEET_GONE)
            next = MIN(next, r->scrape_ns);
    }
    f->timer_ns = next;
}

/* Everything due now, in a fixed order: replicas, gateway, point, policy. The policy sees the scrapes of
 * this moment. */
static void run_timers(struct fleet *f)
{
    for (size_t i = 0; i < f->replicas.n; i++) {
        struct fleet_replica *r = f->replicas.at[i];
        if (r->phase == FLEET_STARTING && r->ready_ns <= f->now_ns)
            make_ready(f, r);
        if ((r->phase == FLEET_READY || r->phase == FLEET_DRAINING) && r->scrape_ns <= f->now_ns) {
            if (!is_scrape_lost(f))
                series_scrape(r->series, &r->model, fleet_now_s(f));
            r->scrape_ns += to_ns(f->config->scrape_s);
        }
    }
    if (f->gateway_scrape_ns <= f->now_ns)
        scrape_gateway(f);
    drain_gateway(f);
    if (next_point_ns(f) <= f->now_ns) {
        sweep_replicas(f);
        put_point(f);
        if (f->hooks && f->hooks->progress)
            f->aborted |= !f->hooks->progress(f->hooks->context,
                                              fmin(1, (double)f->now_ns / (double)f->end_ns));
    }
    if (f->policy && f->step_ns <= f->now_ns && f->now_ns < f->end_ns) {
        sweep_replicas(f);
        run_policy(f);
    }
    if (f->policy && f->step_ns <= f->now_ns)
        f->step_ns += to_ns(f->policy->period_s);
    find_next_timer(f);
}

/* Moves to `until`, with every timer on the way. */
static void pass_time(struct fleet *f, int64_t until_ns)
{
    while (f->timer_ns <= until_ns && !f->aborted) {
        f->now_ns = f->timer_ns;
        advance_replicas(f);
        run_timers(f);
    }
    f->now_ns = until_ns;
    advance_replicas(f);
}

/* ---- score */

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static double percentile_99(float *values, size_t n)
{
    if (!n)
        return 0;
    qsort(values, n, sizeof(*values), by_size);
    size_t at = (size_t)ceil(0.99 * (double)n);
    return values[at ? at - 1 : 0];
}

/* Fills in how many requests of each interval attained their objective; requests count where they arrived. */
static void score_points(struct fleet *f, const struct fleet_trace *trace)
{
    for (size_t i = 0; i < trace->n; i++) {
        size_t at = (size_t)(trace->at[i].arrived_ns / (FLEET_POINT_S * NS_PER_S));
        struct fleet_point *p = &f->course.points.at[MIN(at, f->course.points.n - 1)];
        p->count++;
        p->ok += has_attained(f->config, &f->outcome[i]);
    }
    for (size_t i = 0; i < f->course.points.n; i++) {
        struct fleet_point *p = &f->course.points.at[i];
        p->arrivals = (float)p->count / FLEET_POINT_S;
        if (p->count)
            p->attained = (float)p->ok / (float)p->count;
    }
}

/* Least share of a minute with at least `least` requests; 2: there is none. */
static double worst_minute(const struct fleet *f, uint32_t least)
{
    enum { A_MINUTE = 60 / FLEET_POINT_S };
    double worst = 2;
    for (size_t i = 0; i < f->course.points.n; i += A_MINUTE) {
        uint32_t count = 0, ok = 0;
        for (size_t k = i; k < i + A_MINUTE && k < f->course.points.n; k++) {
            count += f->course.points.at[k].count;
            ok += f->course.points.at[k].ok;
        }
        if (count >= least)
            worst = fmin(worst, (double)ok / count);
    }
    return worst;
}

/* The numbers of a run. Unserved requests have infinite latency, so percentiles cannot hide them. */
static struct fleet_score score_run(struct fleet *f, const struct fleet_trace *trace)
{
    struct fleet_score s = { .cost = f->cost,
                             .requests = trace->n,
                             .served = f->served,
                             .broken = f->broken,
                             .aborted = f->aborted };
    float *ttft = mem_zero(trace->n, sizeof(float)), *tpot = mem_zero(trace->n, sizeof(float));
    size_t ok = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const struct fleet_request *o = &f->outcome[i];
        ok += has_attained(f->config, o);
        ttft[i] = isnan(o->ttft_s) ? INFINITY : o->ttft_s;
        tpot[i] = isnan(o->tpot_s) ? INFINITY : o->tpot_s;
    }
    score_points(f, trace);
    s.attained = (double)ok / (double)trace->n;
    s.worst_minute = worst_minute(f, 10);
    if (s.worst_minute > 1)
        s.worst_minute = worst_minute(f, 1);
    s.changes_per_hour = (double)f->changes / ((double)f->end_ns / 3.6e12);
    s.p99_ttft_s = percentile_99(ttft, trace->n);
    s.p99_tpot_s = percentile_99(tpot, trace->n);
    free(ttft);
    free(tpot);
    return s;
}

/* ---- a run */

/* Draws the random phases, then the initial replicas: the order is part of the determinism. */
static void begin_run(struct fleet *f, const struct fleet_run *run)
{
    const struct fleet_config *c = run->config;
    int64_t last = run->trace.at[run->trace.n - 1].arrived_ns;
    f->end_ns = MAX((last / NS_PER_S + 1) * NS_PER_S, 60 * NS_PER_S);
    random_init(&f->random, c->seed, 11);
    bool at_once = run->policy && run->policy->at_once;
    f->step_ns = (at_once ? FLEET_AT_ONCE_S : FLEET_POLICY_FROM_S) * NS_PER_S;
    f->gateway_scrape_ns = to_ns(c->scrape_s * random_unit(&f->random));
    f->outcome = mem_alloc(run->trace.n * sizeof(*f->outcome));
    for (size_t i = 0; i < run->trace.n; i++)
        f->outcome[i] = (struct fleet_request){ NAN, NAN };
    for (size_t v = 0; v < c->variant_n; v++)
        for (int i = 0; i < run->initial[v]; i++)
            add_replica(f, v, true);
    for (size_t v = 0; v < FLEET_VARIANTS_MAX; v++) {
        f->start_s[v] = NAN;
        f->started[v] = 0;
    }
    find_next_timer(f);
}

/* Lets the fleet finish its work, with the replicas it has; gives up where no end is in sight. */
static void finish_requests(struct fleet *f, const struct fleet_run *run)
{
    static const int64_t limit_ns = 3600 * NS_PER_S;
    int64_t most = f->end_ns + limit_ns;
    f->policy = NULL;
    while (f->served < run->trace.n && f->now_ns < most && !f->aborted)
        pass_time(f, f->now_ns + 5 * NS_PER_S);
}

struct fleet_score fleet_simulate(const struct fleet_run *run, struct fleet_points *ret_course)
{
    struct fleet f = { .config = run->config,
                       .policy = run->policy,
                       .hooks = run->hooks,
                       .misses_max = run->misses_max };
    assert(run->trace.n);
    begin_run(&f, run);
    for (size_t i = 0; i < run->trace.n && !f.aborted; i++) {
        struct replica_request request = run->trace.at[i];
        pass_time(&f, request.arrived_ns);
        request.id = (uint32_t)i;
        f.gateway_requests++;
        route_request(&f, request);
    }
    pass_time(&f, f.end_ns);
    finish_requests(&f, run);
    for (size_t i = 0; i < f.replicas.n; i++) {
        struct fleet_replica *r = f.replicas.at[i];
        int64_t gone = r->phase == FLEET_GONE ? MIN(r->gone_ns, f.end_ns) : f.end_ns;
        f.cost += f.config->variants[r->variant].cost *
                  (double)MAX(gone - r->created_ns, (int64_t)0) / 3.6e12;
        replica_free(r);
    }
    struct fleet_score score = score_run(&f, &run->trace);
    struct fleet_points course = f.course;
    size_t points = (size_t)((f.end_ns - 1) / (FLEET_POINT_S * NS_PER_S) + 1);
    course.points.n = MIN(course.points.n, points);
    if (ret_course)
        *ret_course = course;
    else
        vec_done(&course.points);
    vec_done(&f.replicas);
    vec_done(&f.gateway_queue);
    free(f.outcome);
    return score;
}
