/* Nodes and pods for the market's closed loop: what the kernel and the kubelet do with requests and
 * limits, in virtual time.
 *
 * A second has ten quota periods of 100 ms. In each, a pod wants to do the work that arrived and a
 * backlog of at most half a second; its quota and its cpu.weight, which follows from the request,
 * decide how much it gets. Counters are those of cpu.stat and cpu.pressure. A resize takes a
 * second, and steps are bounded and five seconds apart as in the controller.
 *
 * Not modeled: latency, caches, hyperthreads, run queues per CPU. So the plant shows what a rule
 * gives away, not how well a kernel isolates; docs/market.md has measurements on real cgroups. */
#ifndef FLYBALL_MARKET_PLANT_H
#define FLYBALL_MARKET_PLANT_H

#include "../base/random.h"
#include "../market/demand_core.h"

enum { PLANT_PODS_MAX = 64, PLANT_NODES_MAX = 4, PLANT_PERIODS = 10 };

enum plant_shape {
    PLANT_CONSTANT,
    PLANT_SINE,     /* base * (1 + depth * sin) */
    PLANT_ABS_SINE, /* base * |sin| over half periods */
    PLANT_ON_OFF,   /* base for `on` seconds of every period, else `low` */
    PLANT_RAMP,     /* from `low` to base within a period, then base */
    PLANT_STEPS,    /* a new random level up to base every period */
    PLANT_NOISE,    /* base * (1 + depth * noise), new every `on` seconds */
};

struct plant_load { /* demand in cores as a function of the second alone */
    enum plant_shape shape;
    double base, low, depth;
    double period_s, on_s, phase_s;
    double busy; /* share of the quota periods of a second into which the demand falls; 0: 1 */
    bool waits;  /* work that was not done stays queued: batch */
    uint64_t seed;
};

/* Mean demand of the second, in cores. */
double plant_demand(const struct plant_load *load, int64_t second);

/* Memory in MiB. `anon` is a function of the time since the container started, apart from daily and
 * hourly patterns; the hot page cache is dropped under pressure, with a cost that is not modeled. */
enum plant_memory_shape {
    PLANT_MEMORY_NONE, /* not simulated */
    PLANT_MEMORY_STEADY,
    PLANT_MEMORY_DAILY, /* between base and most */
    PLANT_MEMORY_WALK,  /* base and up to `most - base` more, slowly */
    PLANT_MEMORY_LEAK,  /* from base by `rate` an hour, up to most */
    PLANT_MEMORY_SPIKE, /* most for five minutes of every period */
    PLANT_MEMORY_PEAK,  /* most from the 10th to the 12th hour of a day */
    PLANT_MEMORY_STEP,  /* most from half of the day on */
    PLANT_MEMORY_RISE,  /* from base to most within a minute of every period, then base again */
};

struct plant_memory {
    enum plant_memory_shape shape;
    double base, most, rate, period_s, hot;
    int64_t original_limit, original_request; /* bytes */

    int64_t limit, request, next_limit, next_request;
    bool resizing;
    int64_t changed_s;
    int64_t working_set; /* bytes */
    bool pressed;        /* a task waits for memory */
    int64_t down_until_s, backoff_s, started_s;
    int64_t oom_kills;
    double used, reserved; /* sums of working set and request over the seconds in which it ran */
};

struct plant_pod {
    /* spec */
    struct plant_load load;
    int64_t original_limit, original_request; /* millicores; limit 0: none */
    int64_t min_cpu, max_cpu;                 /* annotations; 0: none */
    bool fixed;                               /* cannot be resized */
    bool elastic;
    int restart_every_s;  /* 0: never */
    double startup_work;  /* core seconds after a start, before it is Ready */
    double startup_cores; /* at most at once */
    int boost_factor;     /* startup boost; 0: none */
    int node;

    /* in force, and what a resize under way will set */
    int64_t limit, request, next_limit, next_request;
    bool resizing;
    int64_t changed_s; /* the second of the last resize */
    int64_t share;     /* that was promised; 0: the request */

    /* state */
    double demand;  /* of this second, in cores */
    double backlog; /* core seconds */
    double startup_left;
    int64_t started_s;

    /* counters, monotonic */
    double usage_usec, throttled_usec, waited_usec;
    uint32_t nr_periods, nr_throttled;
    double second_usec; /* used in the last second */

    /* score */
    double wanted, done;               /* core seconds */
    double minute_wanted, minute_done; /* of this minute */
    double limit_seconds, below_baseline_s;
    int64_t minutes, missed, changes, within_share, violated;
    double startup_seconds;
    int64_t startups;
    struct plant_memory memory;
};

struct plant {
    struct plant_pod pods[PLANT_PODS_MAX];
    size_t pod_n, node_n;
    double cores[PLANT_NODES_MAX];
    int64_t memory[PLANT_NODES_MAX]; /* bytes for pods; 0: not simulated */
    double system;                   /* share of a node that the system uses */
    double worst_limits;   /* sum of the limits over the capacity, at the worst moment of a node */
    double worst_requests; /* sum of the requests over the cores, the same */
    int64_t second;        /* of virtual time: the one that runs next */
    struct random random;
};

#define PLANT_RESERVE 0.1 /* of a node, for the system: systemReservePercent */

void plant_init(struct plant *p, uint64_t seed);
/* Returns the pod, to be completed by the caller before the first second. */
struct plant_pod *plant_add(struct plant *p, struct plant_load load, int64_t request,
                            int64_t limit);

/* Lets one second pass. */
void plant_run_second(struct plant *p);

/* Asks for a resize; refused while one is under way, within five seconds of the last, for a fixed
 * pod, or if nothing would change. Steps above the controller's bound are shortened. */
bool plant_resize(struct plant *p, struct plant_pod *pod, int64_t limit, int64_t request);

/* The same for memory. A limit below the working set is not enacted, as by the kubelet. */
bool plant_resize_memory(struct plant *p, struct plant_pod *pod, int64_t limit, int64_t request);

/* market_plant_memory.c: one second of all containers' memory, and of those that are restarting. */
void plant_run_memory(struct plant *p);
double plant_memory_at(const struct plant_memory *m, uint64_t seed, int64_t second,
                       int64_t running_s); /* MiB */

struct demand_cpu_stat plant_stat(const struct plant_pod *pod);

/* What the market may divide on a node. */
int64_t plant_capacity(const struct plant *p, int node);

struct plant_score {         /* of all pods */
    double served;           /* CPU done over wanted */
    double used;             /* of the limits */
    double changes;          /* per pod and hour */
    double jain;             /* of the served parts */
    double missed;           /* pod minutes with less than 95 % */
    double violated;         /* quota periods within the share that got less */
    double limits, requests; /* at worst, over the capacity and the cores */
    double below_baseline;   /* share of pod time with a limit below 100 m */
    double startup_s;        /* mean time to Ready; 0: no pod started */
    double oom_kills;        /* per pod and day */
    double memory_used;      /* working set over memory requests */
};
struct plant_score plant_score(const struct plant *p);

#endif
