/* One pod in the market: what its counters say it needs, and what becomes of an allocation.
 *
 * Readings come once a second (market_pod_sample). Two windows look at them: the fast one asks whether the pod
 * is throttled right now, the slow one what it used and needed since the last clearing. Each keeps its
 * own anchor reading, so neither shortens the other's window.
 *
 * Need is the peak of the last minutes: of usage where the pod ran freely, of an estimate where it was
 * throttled. A throttled thread stands still and is counted, so used plus throttled time tells how many
 * threads wanted to run; a quota that cuts only the tips of short bursts shows in the share of throttled
 * periods instead, and asks for a step up.
 *
 * A limit follows need upwards at once and downwards only after the peak has left the window, so a
 * steady pod is left alone and a bursty one keeps room for its next burst. Allocations that are not urgent
 * are smoothed, from the limit in force on: what is too small to be written adds up.
 *
 * With costEfficiencyMode demand is not the peak but smoothed, and limits follow at once both ways. */
#ifndef FLYBALL_MARKET_POD_CORE_H
#define FLYBALL_MARKET_POD_CORE_H

#include "agent_core.h"
#include "demand_core.h"
#include "forecast_core.h"
#include "market_spec.h"

enum { MARKET_POD_PEAKS = 20 }; /* slots of the peak window */

struct market_pod {
    struct agent agent;
    struct forecast forecast;

    struct demand_cpu_stat last, fast_anchor, slow_anchor;
    int64_t last_ns, fast_ns, slow_ns; /* mono time of each; 0: not yet */

    float slow_need_milli;  /* highest need estimate since the slow anchor */
    int32_t slow_max_milli; /* highest usage of a second since then */
    float slow_throttled;   /* share of periods in the last slow window */
    struct
        market_pod_peak { /* twelve bits and a shift: exact below 4 cores, else up to 0.05 % more */
        uint16_t need;
        uint16_t bound;        /* the limit that made it an estimate; 0: it was measured */
    } peaks[MARKET_POD_PEAKS]; /* one a slow window; `peak` is overwritten next */
    uint8_t peak, peak_n;
    uint8_t boosts;  /* raises in a row that did not suffice: each next one is bolder */
    bool slo_burns;  /* its objective is missed so often that the fast loop must act */
    float slo_milli; /* the limit that would meet its objective; 0: none, or it is met */

    int64_t boost_until_ns; /* no decrease before; the boosted limit is a minimum */
    int64_t started_ns;
    int32_t limit_milli, request_milli; /* in force */
    int32_t min_milli, max_milli;       /* by annotation; 0: none */
    float slo_ratio;                    /* p99 over its target; 0: no objective, or nothing known */
    float slo_weight;                   /* grows while the objective is missed, 0.5 .. 4 */
    float reward;                       /* of the last slow window, what the agent learnt from */

    float resize_s;    /* how long a limit takes to come into force, as far as is known */
    float saved_milli; /* smoothed demand of costEfficiencyMode; 0: not begun */

    /* the last clearing */
    float
        smoothed_milli; /* the allocations since the limit was set, fast down and slow up; 0: none */
    float weight;
    int32_t bid_max_milli, allocation_milli;
};

struct market_pod_rules { /* what a pod needs of the configuration, in plain numbers */
    struct agent_rules agent;
    double min_change_percent, throttling_threshold, target_throttling;
    double fast_step_min, fast_step_max;
    int64_t slow_ns, grace_ns, hold_ns;
    double slo_fast; /* for the fast loop latency is over its target from this many times it */
    bool kalman, price_response;
};

struct market_pod_rules market_pod_rules_from(const struct market_config *config);

void market_pod_init(struct market_pod *pod, const struct market_config *config, int64_t now_ns,
                     uint64_t seed);
void market_pod_done(struct market_pod *pod);

/* One reading. `ended` windows are the caller's to close: market_pod_fast_step and market_pod_close_window. */
void market_pod_sample(struct market_pod *pod, const struct market_pod_rules *rules,
                       struct demand_cpu_stat stat, int64_t now_ns);

/* The fast loop: the limit the pod should have at once, at most `room_milli` above the current one; the
 * current limit when nothing must be done. Ends the fast window. */
int64_t market_pod_fast_step(struct market_pod *pod, const struct market_pod_rules *rules,
                             int64_t room_milli, int64_t now_ns);

/* Ends the slow window: learns from it. */
void market_pod_close_window(struct market_pod *pod, const struct market_pod_rules *rules,
                             int64_t now_ns);

/* How much room a node has. */
enum market_supply {
    MARKET_SUPPLY_AMPLE, /* for what all have while they start or were just helped, and for all needs */
    MARKET_SUPPLY_TIGHT,  /* for all needs, when nobody is spared */
    MARKET_SUPPLY_SCARCE, /* not even for those */
};

/* The least the pod can do with, as things are. */
int64_t market_pod_floor(const struct market_pod *pod, const struct market_pod_rules *rules,
                         enum market_supply supply, int64_t now_ns);

/* A bid for the market at this price. */
struct bid market_pod_bid(struct market_pod *pod, const struct market_pod_rules *rules,
                          double price, enum market_supply supply, int64_t now_ns);

/* What to do about an allocation: the new limit, or the current one when a change is not worth it. */
int64_t market_pod_next_limit(struct market_pod *pod, const struct market_pod_rules *rules,
                              int64_t allocation_milli, int64_t now_ns);

/* Tells the pod what was really applied. */
void market_pod_set_limit(struct market_pod *pod, int64_t limit_milli, int64_t request_milli);
/* So many seconds after it was asked for. */
void market_pod_note_resize_time(struct market_pod *pod, double seconds);

int64_t market_pod_need(const struct market_pod *pod); /* the peak of the window, millicores */

#endif
