/* Workloads for `flyball simulate market`; see market_loads.h. Demand is in cores, requests and limits in
 * millicores.
 *
 * Each builder fills a plant with nodes and pods. The named ones each show one situation that a rule must
 * handle: pods of all kinds, scarcity, many idle pods, one that asks for far too much, pods that cannot be
 * resized, restarts, bursts at the same time, an uneven cluster. The random families exist because rules were
 * tuned on the named ones: `random` draws the first kind of node, `crowd` a second that no rule has seen.
 *
 * Everything random comes from the plant's own generator, so a seed gives the same node on every machine. */
#include "market_loads.h"

#include <math.h>

static struct plant_load constant_load(double cores)
{
    return (struct plant_load){ .shape = PLANT_CONSTANT, .base = cores };
}

static double random_between(struct plant *p, double low, double high)
{
    return low + (high - low) * random_unit(&p->random);
}

/* ---- one node, eight pods of every kind */

static void build_eight(struct plant *p, double cores)
{
    static const int64_t limits[] = { 250, 250, 250, 250, 250, 250, 100, 2000 };
    const struct plant_load loads[] = {
        constant_load(0.2),
        constant_load(1.5),
        { .shape = PLANT_ON_OFF, .base = 1, .low = 0.05, .period_s = 60, .on_s = 10 },
        constant_load(0.002),
        { .shape = PLANT_RAMP, .low = 0.1, .base = 1.5, .period_s = 900 },
        { .shape = PLANT_ABS_SINE, .base = 1, .period_s = 300 },
        constant_load(1.8),
        constant_load(0.05),
    };
    p->cores[0] = cores;
    for (size_t i = 0; i < countof(loads); i++)
        plant_add(p, loads[i], limits[i] * 9 / 10, limits[i]);
}

static void build_mix8(struct plant *p)
{
    build_eight(p, 8);
}

static void build_scarce(struct plant *p)
{
    build_eight(p, 4);
}

static void build_many_idle(struct plant *p)
{
    p->cores[0] = 8;
    for (int i = 0; i < 40; i++)
        plant_add(p,
                  (struct plant_load){ .shape = PLANT_ON_OFF,
                                       .base = random_between(p, 0.03, 0.12),
                                       .low = 0.003,
                                       .period_s = 60,
                                       .on_s = 5,
                                       .phase_s = random_between(p, 0, 60) },
                  50, 200);
    for (int k = 0; k < 4; k++)
        plant_add(p,
                  (struct plant_load){ .shape = PLANT_SINE,
                                       .base = 0.9 + 0.4 * k,
                                       .depth = 0.2,
                                       .period_s = 2513,
                                       .phase_s = 400 * k },
                  250, 500);
}

static void build_greedy(struct plant *p)
{
    p->cores[0] = 2;
    plant_add(p, constant_load(0.3), 200, 500)->min_cpu = 10000;
    for (int k = 0; k < 5; k++)
        plant_add(p,
                  (struct plant_load){ .shape = PLANT_SINE,
                                       .base = 0.26,
                                       .depth = 0.25,
                                       .period_s = 700 + 100 * k,
                                       .phase_s = 130 * k },
                  100, 300);
}

static void build_not_resizable(struct plant *p)
{
    p->cores[0] = 8;
    for (int k = 0; k < 3; k++)
        plant_add(p, constant_load(1.2), 200, 300)->fixed = true;
    for (int k = 0; k < 5; k++)
        plant_add(p, constant_load(1.0 + 0.2 * k), 250, 500);
}

static void build_web_and_batch(struct plant *p)
{
    p->cores[0] = 6;
    for (int k = 0; k < 4; k++)
        plant_add(p,
                  (struct plant_load){
                      .shape = PLANT_SINE, .base = 0.55, .depth = 0.45 / 0.55, .period_s = 3600 },
                  250, 500);
    for (int k = 0; k < 3; k++) {
        struct plant_load load = constant_load(0.75);
        load.waits = true;
        plant_add(p, load, 250, 1000)->elastic = true;
    }
}

static void build_restarts(struct plant *p)
{
    p->cores[0] = 8;
    for (int k = 0; k < 6; k++) {
        struct plant_pod *pod = plant_add(p, constant_load(0.25), 250, 500);
        pod->restart_every_s = 1200;
        pod->startup_work = 30;
        pod->startup_cores = 2.5;
        pod->boost_factor = 3;
    }
    for (int k = 0; k < 2; k++)
        plant_add(p, constant_load(0.9), 500, 1000);
}

static void build_hot_cold(struct plant *p)
{
    p->node_n = 3;
    for (int node = 0; node < 3; node++)
        p->cores[node] = 4;
    for (int k = 0; k < 8; k++)
        plant_add(p, constant_load(0.5 + 0.05 * k), 250, 500);
    for (int k = 0; k < 6; k++)
        plant_add(p, constant_load(0.25), 250, 500)->node = 1 + k / 3;
}

struct memory_row {
    struct plant_memory memory;
    int64_t limit_mib;
};

/* Twelve containers: what memory does in a day. */
static void build_memory_pods(struct plant *p, int64_t node_mib)
{
    static const struct memory_row rows[] = {
        { { .shape = PLANT_MEMORY_STEADY, .base = 300 }, 1024 },
        { { .shape = PLANT_MEMORY_DAILY, .base = 700, .most = 1200 }, 2048 },
        { { .shape = PLANT_MEMORY_WALK, .base = 600, .most = 1200 }, 2048 },
        { { .shape = PLANT_MEMORY_LEAK, .base = 150, .most = 1500, .rate = 180 }, 1024 },
        { { .shape = PLANT_MEMORY_STEADY, .base = 400, .hot = 600 }, 3072 },
        { { .shape = PLANT_MEMORY_SPIKE, .base = 200, .most = 500, .period_s = 3600 }, 1024 },
        { { .shape = PLANT_MEMORY_LEAK, .base = 250, .most = 650, .rate = 60 }, 512 },
        { { .shape = PLANT_MEMORY_STEADY, .base = 1500 }, 2048 },
        { { .shape = PLANT_MEMORY_STEP, .base = 300, .most = 900 }, 1024 },
        { { .shape = PLANT_MEMORY_PEAK, .base = 500, .most = 1900 }, 2048 },
        { { .shape = PLANT_MEMORY_STEADY, .base = 600 }, 4096 },
        { { .shape = PLANT_MEMORY_RISE, .base = 125, .most = 515, .period_s = 7200 }, 512 },
    };
    static const int64_t mib = 1 << 20;
    p->cores[0] = 8;
    p->memory[0] = node_mib * mib;
    for (size_t i = 0; i < countof(rows); i++) {
        struct plant_memory *m = &plant_add(p, constant_load(0.2), 250, 500)->memory;
        *m = rows[i].memory;
        m->original_limit = m->limit = rows[i].limit_mib * mib;
        m->original_request = m->request = m->limit / 2;
        m->changed_s = -1000;
    }
}

static void build_memory(struct plant *p)
{
    build_memory_pods(p, 24 * 1024);
}

static void build_short_memory(struct plant *p)
{
    build_memory_pods(p, 10 * 1024);
}

/* Ten pods that burst at the same time beside four steady ones. */
static void build_together(struct plant *p)
{
    p->cores[0] = 8;
    for (int k = 0; k < 10; k++)
        plant_add(p,
                  (struct plant_load){
                      .shape = PLANT_ON_OFF, .base = 1.2, .low = 0.1, .period_s = 300, .on_s = 60 },
                  250, 500);
    for (int k = 0; k < 4; k++)
        plant_add(p, constant_load(0.5), 400, 800);
}

/* ---- random nodes */

/* Adds the level that the load is made of to `total`. */
static struct plant_load random_load(struct plant *p, double *total)
{
    double u = random_unit(&p->random), base = 0.02 + (1.2 - 0.02) * u * u;
    struct plant_load load = { .shape = PLANT_CONSTANT, .base = base };
    *total += base;
    load.phase_s = random_between(p, 0, 3600);
    load.busy = random_below(&p->random, 2) ? 0.5 : 1;
    switch (random_below(&p->random, 6)) {
    case 1:
        load.shape = PLANT_SINE;
        load.depth = random_between(p, 0.3, 1);
        load.period_s = random_between(p, 300, 3600);
        break;
    case 2:
        load.shape = PLANT_ON_OFF;
        load.period_s = random_between(p, 60, 900);
        load.on_s = load.period_s * random_between(p, 0.1, 0.6);
        load.low = base / 10;
        break;
    case 3:
        load.shape = PLANT_RAMP;
        load.low = base / 10;
        load.period_s = random_between(p, 600, 5400);
        load.phase_s = 0;
        break;
    case 4:
        load.shape = PLANT_STEPS;
        load.base *= 2;
        load.period_s = random_between(p, 120, 1200);
        break;
    case 5:
        load.shape = PLANT_NOISE;
        load.depth = random_between(p, 0.1, 0.6);
        load.on_s = random_between(p, 1, 30);
        break;
    default:
        break;
    }
    return load;
}

static void build_random(struct plant *p)
{
    int n = 6 + (int)random_below(&p->random, 15);
    double total = 0;
    for (int i = 0; i < n; i++) {
        int64_t limit = (int64_t)random_between(p, 100, 1000);
        struct plant_load load = random_load(p, &total);
        plant_add(p, load, (int64_t)((double)limit * random_between(p, 0.3, 0.9)), limit);
    }
    p->cores[0] = fmax(total / random_between(p, 0.5, 1.2) / 0.9, 0.5);
}

/* A second family, for rules that were tuned on the first: more pods, bursts in common, bounds. */
static void build_random_crowd(struct plant *p)
{
    int n = 10 + (int)random_below(&p->random, 31);
    double burst_s = random_between(p, 300, 1800), total = 0;
    for (int i = 0; i < n; i++) {
        int64_t limit = (int64_t)random_between(p, 100, 1000);
        struct plant_load load = random_load(p, &total);
        if (random_below(&p->random, 3) == 0)
            load = (struct plant_load){ .shape = PLANT_ON_OFF,
                                        .base = load.base,
                                        .low = load.base / 5,
                                        .period_s = burst_s,
                                        .on_s = burst_s / 4 };
        struct plant_pod *pod =
            plant_add(p, load, (int64_t)((double)limit * random_between(p, 0.3, 0.9)), limit);
        if (random_below(&p->random, 5) == 0)
            pod->max_cpu = (int64_t)((double)limit * random_between(p, 1, 3));
        pod->fixed = random_below(&p->random, 20) == 0;
    }
    p->cores[0] = fmax(total / random_between(p, 0.5, 1.2) / 0.9, 0.5);
}

const struct market_workload market_workloads[] = {
    { "mix8", "8 pods of all kinds on 8 cores, 2 h", 7200, false, build_mix8 },
    { "scarce", "the same on 4 cores, 2 h", 7200, false, build_scarce },
    { "many-idle", "40 idle and 4 hungry pods on 8 cores, 2 h", 7200, false, build_many_idle },
    { "greedy", "min-cpu=10 on 2 cores, 1 h", 3600, false, build_greedy },
    { "not-resizable", "3 of 8 pods are fixed, 8 cores, 2 h", 7200, false, build_not_resizable },
    { "web-batch", "4 web pods and 3 batch queues on 6 cores, 4 h", 14400, false,
      build_web_and_batch },
    { "restarts", "6 pods restart every 20 min, 8 cores, 3 h", 10800, false, build_restarts },
    { "together", "10 pods burst together beside 4 steady ones, 8 cores, 2 h", 7200, false,
      build_together },
    { "hot-cold", "8 pods on one node, 3 on each of two others, 4 cores each, 3 h", 10800, false,
      build_hot_cold },
    { "memory", "12 pods on 24 GiB: leaks, steps, spikes, daily peaks, 24 h", 86400, false,
      build_memory },
    { "short-memory", "the same on 10 GiB", 86400, false, build_short_memory },
    { "random", "a random node of 6 to 20 pods, 2 h", 7200, true, build_random },
    { "crowd", "a random node of 10 to 40 pods with common bursts, 2 h", 7200, true,
      build_random_crowd },
};
const size_t market_workload_n = countof(market_workloads);

const struct market_workload *plant_workload_find(str name)
{
    for (size_t i = 0; i < market_workload_n; i++)
        if (str_eqc(name, market_workloads[i].name))
            return &market_workloads[i];
    return NULL;
}
