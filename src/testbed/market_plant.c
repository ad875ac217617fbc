/* The plant of the market's closed loop: see market_plant.h.
 *
 *      plant_run_second()
 *        finish_resizes()      what was asked for a second ago is in force
 *        for each quota period of 100 ms
 *          add_arrivals()            work of this period joins the backlog
 *          cfs_share()         weights divide what quotas let run
 *          count_period()           counters and score
 *        end_second()          misses, restarts
 *
 * Weights are whole numbers as the kubelet and runc compute them, so small requests are coarse. */
#include "market_plant.h"

#include "../base/clock.h"
#include "../base/sum.h"
#include "../market/resize_core.h"
#include "cfs_model.h"

#include <math.h>

static const double period_s = 1.0 / PLANT_PERIODS, backlog_s = 0.5, tiny = 1e-9;
static const int warm_up_s = 300; /* nodes may start with more requests than they can keep */

/* ---- demand */

/* A number in [0, 1) that depends on the seed and the step alone. */
static double hash_unit(uint64_t seed, int64_t step)
{
    return (double)(sum64((str){ (const char *)&step, sizeof(step) }, seed) >> 11) * 0x1p-53;
}

/* Roughly normal: the sum of four uniform numbers. */
static double hash_noise(uint64_t seed, int64_t step)
{
    double sum = 0;
    for (uint64_t k = 0; k < 4; k++)
        sum += hash_unit(seed + 0x9e3779b97f4a7c15u * (k + 1), step);
    return (sum - 2) * 1.7320508;
}

double plant_demand(const struct plant_load *l, int64_t second)
{
    static const double pi = 3.14159265358979;
    double t = (double)second + l->phase_s;
    switch (l->shape) {
    case PLANT_SINE:
        return fmax(0, l->base * (1 + l->depth * sin(2 * pi * t / l->period_s)));
    case PLANT_ABS_SINE:
        return l->base * fabs(sin(pi * t / l->period_s));
    case PLANT_ON_OFF:
        return fmod(t, l->period_s) < l->on_s ? l->base : l->low;
    case PLANT_RAMP:
        return t < l->period_s ? l->low + (l->base - l->low) * fmax(t, 0) / l->period_s : l->base;
    case PLANT_STEPS:
        return l->base * hash_unit(l->seed, (int64_t)floor(t / l->period_s));
    case PLANT_NOISE:
        return fmax(0, l->base * (1 + l->depth * hash_noise(l->seed, (int64_t)floor(t / l->on_s))));
    default:
        return l->base;
    }
}

/* ---- pods */

void plant_init(struct plant *p, uint64_t seed)
{
    *p = (struct plant){ .node_n = 1 };
    random_init(&p->random, seed, 16);
}

struct plant_pod *plant_add(struct plant *p, struct plant_load load, int64_t request, int64_t limit)
{
    assert(p->pod_n < PLANT_PODS_MAX);
    struct plant_pod *pod = &p->pods[p->pod_n++];
    *pod = (struct plant_pod){ .load = load,
                               .original_limit = limit,
                               .original_request = request,
                               .limit = limit,
                               .request = request,
                               .changed_s = -1000 };
    pod->load.seed = (uint64_t)random_u32(&p->random) << 32 | random_u32(&p->random);
    return pod;
}

bool plant_resize(struct plant *p, struct plant_pod *pod, int64_t limit, int64_t request)
{
    auto_arena struct arena a = { 0 };
    if (pod->fixed || pod->resizing || p->second - pod->changed_s < 5)
        return false;
    if (limit != pod->limit)
        limit = resize_step_check(&a, pod->limit, limit, -1).allowed_milli;
    request = MAX(MIN(request, limit - 1), INT64_C(1));
    if (limit == pod->limit && request == pod->request)
        return false;
    pod->next_limit = limit;
    pod->next_request = request;
    pod->resizing = true;
    pod->changed_s = p->second;
    pod->changes++;
    return true;
}

struct demand_cpu_stat plant_stat(const struct plant_pod *pod)
{
    return (struct demand_cpu_stat){ (int64_t)pod->usage_usec, (int64_t)pod->throttled_usec,
                                     pod->nr_periods, pod->nr_throttled };
}

int64_t plant_capacity(const struct plant *p, int node)
{
    return (int64_t)(p->cores[node] * 1000 * (1 - PLANT_RESERVE));
}

/* ---- a quota period */

static void finish_resizes(struct plant *p)
{
    for (size_t i = 0; i < p->pod_n; i++) {
        struct plant_pod *pod = &p->pods[i];
        if (!pod->resizing || p->second <= pod->changed_s)
            continue;
        pod->limit = pod->next_limit;
        pod->request = pod->next_request;
        pod->resizing = false;
    }
}

/* Adds the work of this period; returns what the pod wants to run in it, in cores. Bursts fall into
 * the first periods of a pod's own second. */
static double add_arrivals(struct plant_pod *pod, int period, size_t index)
{
    double busy = pod->load.busy > 0 ? pod->load.busy : 1;
    int place = (period + (int)index * 3) % PLANT_PERIODS;
    double rate = place < (int)lround(busy * PLANT_PERIODS) ? pod->demand / busy : 0;
    double work = rate * period_s;
    pod->wanted += work;
    pod->minute_wanted += work;
    if (pod->startup_left > 0)
        work += fmin(pod->startup_left, pod->startup_cores * period_s);
    return (work + pod->backlog) / period_s;
}

/* cpu.weight of a request, by the kubelet's and runc's formulas. */
static double weight_of(int64_t request)
{
    int64_t shares = MAX(request * 1024 / 1000, INT64_C(2));
    return (double)(1 + (shares - 2) * 9999 / 262142);
}

static void count_throttling(struct plant_pod *pod, double want, double got)
{
    double limit = (double)pod->limit / 1000, threads = ceil(want - tiny);
    pod->nr_periods++;
    if (want <= limit + tiny || got < limit - tiny)
        return;
    pod->nr_throttled++;
    pod->throttled_usec += (1 - limit / fmax(threads, limit)) * period_s * 1e6 * threads;
}

/* Updates counters and score after a period in which the pod wanted and got so many cores. */
static void count_period(const struct plant *p, struct plant_pod *pod, double want, double got)
{
    double allowed = pod->limit > 0 ? fmin(want, (double)pod->limit / 1000) : want;
    double work = got * period_s, start = fmin(pod->startup_left, work);
    pod->usage_usec += work * 1e6;
    pod->second_usec += work * 1e6;
    if (pod->limit > 0 && want > tiny)
        count_throttling(pod, want, got);
    if (got < allowed - tiny)
        pod->waited_usec += (1 - got / allowed) * period_s * 1e6;
    int64_t share = pod->share > 0 ? pod->share : pod->request;
    if (p->second >= warm_up_s && want > tiny && want * 1000 <= (double)share) {
        pod->within_share++;
        pod->violated += got < want - 1e-6;
    }
    pod->startup_left -= start;
    work -= start;
    pod->done += work;
    pod->minute_done += work;
    double left = (want - got) * period_s - pod->startup_left;
    double most = pod->load.waits ? INFINITY : backlog_s * pod->demand;
    pod->backlog = fmin(fmax(left, 0), most);
}

/* One quota period of one node. */
static void run_period(struct plant *p, int node, int period)
{
    struct cfs_claim claims[PLANT_PODS_MAX];
    double wants[PLANT_PODS_MAX];
    size_t index[PLANT_PODS_MAX], n = 0;
    for (size_t i = 0; i < p->pod_n; i++) {
        struct plant_pod *pod = &p->pods[i];
        if (pod->node != node)
            continue;
        wants[n] = add_arrivals(pod, period, i);
        double cap = pod->limit > 0 ? fmin(wants[n], (double)pod->limit / 1000) : wants[n];
        if (p->second < pod->memory.down_until_s)
            cap = 0; /* it restarts */
        claims[n] = (struct cfs_claim){ cap * 1000, weight_of(pod->request), 0 };
        index[n++] = i;
    }
    cfs_share(p->cores[node] * 1000 * (1 - p->system), claims, n);
    for (size_t k = 0; k < n; k++)
        count_period(p, &p->pods[index[k]], wants[k], claims[k].grant_milli / 1000);
}

/* ---- a second */

static void end_minute(struct plant_pod *pod)
{
    pod->minutes++;
    pod->missed += pod->minute_done < 0.95 * pod->minute_wanted - tiny;
    pod->minute_wanted = pod->minute_done = 0;
}

static void restart_pod(struct plant *p, struct plant_pod *pod)
{
    pod->startup_left = pod->startup_work;
    pod->started_s = p->second + 1;
    pod->backlog = 0;
    pod->startups++;
}

static void end_second(struct plant *p, struct plant_pod *pod)
{
    int64_t elapsed = p->second + 1;
    pod->limit_seconds += (double)pod->limit / 1000;
    pod->below_baseline_s += pod->limit > 0 && pod->limit < 100;
    pod->startup_seconds += pod->startup_left > 0;
    if (elapsed % 60 == 0)
        end_minute(pod);
    if (pod->restart_every_s && elapsed % pod->restart_every_s == 0)
        restart_pod(p, pod);
}

static void note_worst(struct plant *p, int node)
{
    double limits = 0, requests = 0;
    for (size_t i = 0; i < p->pod_n; i++) {
        if (p->pods[i].node != node)
            continue;
        limits += (double)p->pods[i].limit;
        requests += (double)p->pods[i].request;
    }
    p->worst_limits = fmax(p->worst_limits, limits / (double)plant_capacity(p, node));
    if (p->second >= warm_up_s)
        p->worst_requests = fmax(p->worst_requests, requests / (p->cores[node] * 1000));
}

void plant_run_second(struct plant *p)
{
    finish_resizes(p);
    plant_run_memory(p);
    for (size_t i = 0; i < p->pod_n; i++) {
        p->pods[i].second_usec = 0;
        p->pods[i].demand = plant_demand(&p->pods[i].load, p->second);
    }
    for (int node = 0; node < (int)p->node_n; node++) {
        for (int period = 0; period < PLANT_PERIODS; period++)
            run_period(p, node, period);
        note_worst(p, node);
    }
    for (size_t i = 0; i < p->pod_n; i++)
        end_second(p, &p->pods[i]);
    p->second++;
}

/* ---- score */

struct plant_score plant_score(const struct plant *p)
{
    struct plant_score s = { .limits = p->worst_limits, .requests = p->worst_requests };
    double wanted = 0, done = 0, limits = 0, usage = 0, sum = 0, squares = 0, minutes = 0;
    double memory_used = 0, reserved = 0;
    double within = 0, startups = 0, pods = 0, hours = (double)p->second / 3600;
    for (size_t i = 0; i < p->pod_n; i++) {
        const struct plant_pod *pod = &p->pods[i];
        wanted += pod->wanted;
        done += pod->done;
        limits += pod->limit_seconds;
        usage += pod->usage_usec / 1e6;
        double part = pod->wanted > 0 ? fmin(pod->done / pod->wanted, 1) : 1;
        sum += part;
        squares += part * part;
        pods++;
        minutes += (double)pod->minutes;
        s.missed += (double)pod->missed;
        s.changes += (double)pod->changes;
        s.violated += (double)pod->violated;
        within += (double)pod->within_share;
        s.below_baseline += pod->below_baseline_s;
        s.startup_s += pod->startup_seconds;
        startups += (double)pod->startups;
        s.oom_kills += (double)pod->memory.oom_kills;
        memory_used += pod->memory.used;
        reserved += pod->memory.reserved;
    }
    s.served = wanted > 0 ? done / wanted : 1;
    s.used = limits > 0 ? usage / limits : 0;
    s.changes /= fmax(pods * hours, tiny);
    s.jain = squares > 0 ? sum * sum / (pods * squares) : 1;
    s.missed /= fmax(minutes, 1);
    s.violated /= fmax(within, 1);
    s.below_baseline /= fmax(pods * (double)p->second, 1);
    s.oom_kills /= fmax(pods * hours / 24, tiny);
    s.memory_used = reserved > 0 ? memory_used / reserved : 0;
    s.startup_s = startups > 0 ? s.startup_s / startups : 0;
    return s;
}
