/* One pod in the market: how much CPU it needs according to its counters, and what limit follows
 * from an allocation.
 *
 * Counters are read once a second (market_pod_sample). Two windows evaluate them: the fast one
 * detects that the pod is throttled now, the slow one measures what it used and needed since the
 * last clearing. Each has its own anchor reading, so neither shortens the other.
 *
 * Need is the peak of the last minutes: of usage while the pod ran freely, of an estimate while
 * it was throttled. Throttled time is counted per thread, so used plus throttled time shows how
 * many threads wanted to run. A quota that cuts only the tips of short bursts shows in the share
 * of throttled periods instead, and raises the estimate step by step.
 *
 * A limit follows need upwards at once, and downwards only after the peak has left the window: a
 * steady pod is not changed, and a bursty one keeps room for its next burst. Allocations that
 * are not urgent are smoothed, starting from the limit in force, so changes too small to be
 * written add up.
 *
 * With costEfficiencyMode, need is smoothed demand instead of the peak, and limits follow at
 * once both ways. */
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
    int64_t last_ns, fast_ns, slow_ns; /* monotonic time of each; 0: none yet */

    float slow_need_milli;   /* highest need estimate since the slow anchor */
    int32_t slow_max_milli;  /* highest usage in one second since then */
    int32_t slow_hit_milli;  /* highest limit that was hit since then; 0: none */
    float slow_throttled;    /* share of periods in the last slow window */
    float burst;             /* demand inside a second over its mean, as throttling showed; 0: 1 */
    struct market_pod_peak { /* 12 bits and a shift: exact below 4 cores, rounded up above */
        uint16_t need;
        uint16_t bound;        /* the limit at which need was estimated; 0: it was measured */
    } peaks[MARKET_POD_PEAKS]; /* one per slow window; `peak` is the next to be overwritten */
    uint8_t peak, peak_n;
    uint8_t boosts;  /* consecutive boosts that were not enough: the next one is larger */
    bool slo_burns;  /* the error budget burns so fast that the fast loop must act */
    float slo_milli; /* the limit that would attain the objective; 0: none, or attained */

    int64_t boost_until_ns;             /* monotonic; until then the limit is not lowered */
    int64_t started_ns;                 /* monotonic */
    int32_t limit_milli, request_milli; /* in force */
    int32_t min_milli, max_milli;       /* of the annotations; 0: none */
    float slo_ratio;                    /* p99 over its target; 0: no objective, or unknown */
    float slo_weight;                   /* 0.5 .. 4; grows while the objective is missed */
    float reward;                       /* of the last slow window */

    float resize_s;    /* smoothed time from desiring a limit to its being in force */
    float saved_milli; /* smoothed demand of costEfficiencyMode; 0: not started */

    /* what the owner of the pods knows; 0: none, or unknown */
    int32_t original_limit_milli; /* before the first resize */
    int32_t held_milli;           /* least limit while its request is held for an HPA */
    int32_t held_request_milli;   /* that request */
    int32_t boost_milli;          /* limit of a startup boost that lasts */
    bool elastic;                 /* its work can wait: mbcas.io/elastic */
    bool guaranteed_qos;          /* request and limit stay equal */
    bool ignore_readings;         /* they do not enter need: the pod is starting with a boost */
    bool asleep;                  /* lends its baseline: see node_core.h */

    /* the last second */
    bool second_throttled;
    int32_t second_milli;                    /* usage */
    int64_t waited_usec;                     /* total of cpu.pressure at its end; -1: unknown */
    uint8_t seconds_counted, seconds_waited; /* of the slow window: see overcommit_core.h */

    /* the last clearing */
    float smoothed_milli; /* allocations since the limit was set, smoothed; 0: none */
    float weight;
    int32_t bid_max_milli, allocation_milli;
    int32_t guaranteed_milli;   /* 0: no clearing yet */
    int32_t share_milli;        /* of the node's capacity; carried by the request; 0: none */
    uint16_t problems;          /* bits of floor_problem */
    int64_t kept_until_ns;      /* raised while it was throttled: not cut before this */
    int64_t grown_ns;           /* when its limit last grew */
    int64_t request_changed_ns; /* when its request last changed */
};

struct market_pod_rules { /* the part of the configuration that concerns a pod, as plain numbers */
    struct agent_rules agent;
    double min_change_percent, throttling_threshold, target_throttling;
    double fast_step_min, fast_step_max;
    int64_t slow_ns, grace_ns, hold_ns;
    double slo_fast; /* the fast loop acts on latency above this multiple of the target */
    bool kalman, price_response;
    bool seed_bids;            /* usage times 1.5, 1.2 or 1.0, as MBCAS bids */
    bool lend_baseline;        /* see node_core.h */
    double max_min_share;      /* of the node, for one pod's annotation or boost */
    double overcommit;         /* limits may add up to this multiple of the capacity; 1: off */
    double limit_ceiling;      /* times the original limit; 0: none */
    double shrink_below;       /* an allocation below this share of the limit makes it shrink */
    double min_growth_percent; /* of the limit: less is not written */
};

struct market_pod_rules market_pod_rules_from(const struct market_config *config);

/* 1: limits never add up to more than the capacity. */
void market_pod_rules_set_overcommit(struct market_pod_rules *rules, double limit_overcommit);

void market_pod_init(struct market_pod *pod, const struct market_config *config, int64_t now_ns,
                     uint64_t seed);
void market_pod_done(struct market_pod *pod);

/* Adds a reading. The caller ends windows with market_pod_fast_step() and
 * market_pod_close_window(). */
void market_pod_sample(struct market_pod *pod, const struct market_pod_rules *rules,
                       struct demand_cpu_stat stat, int64_t now_ns);

/* Adds the pod's total of cpu.pressure (`some`) at the reading just made; -1: unknown. */
void market_pod_sample_pressure(struct market_pod *pod, int64_t waited_usec);

/* The fast loop: returns the limit that the pod should have at once, at most `room_milli` above
 * the current one, or the current one if nothing must be done. Ends the fast window. */
int64_t market_pod_fast_step(struct market_pod *pod, const struct market_pod_rules *rules,
                             int64_t room_milli, int64_t now_ns);

/* Ends the slow window: the agent learns from it, and its peak is recorded. */
void market_pod_close_window(struct market_pod *pod, const struct market_pod_rules *rules,
                             int64_t now_ns);

/* How well the node's capacity covers what its pods must have. */
enum market_supply {
    MARKET_SUPPLY_AMPLE,  /* for all needs and for the grace of pods that start */
    MARKET_SUPPLY_TIGHT,  /* for all needs, without that grace */
    MARKET_SUPPLY_SCARCE, /* not even for the needs */
};

/* The minimum of the pod's bid: its guarantee, and as far as supply allows its need. */
int64_t market_pod_floor(const struct market_pod *pod, const struct market_pod_rules *rules,
                         enum market_supply supply, int64_t now_ns);

/* The pod's bid at this price; lets the agent choose an action. */
struct bid market_pod_bid(struct market_pod *pod, const struct market_pod_rules *rules,
                          double price, enum market_supply supply, int64_t now_ns);

/* The limit that follows from an allocation, or the current one if a change is not worth it. */
int64_t market_pod_next_limit(struct market_pod *pod, const struct market_pod_rules *rules,
                              int64_t allocation_milli, int64_t now_ns);

/* Sets what is in force. */
void market_pod_set_limit(struct market_pod *pod, int64_t limit_milli, int64_t request_milli);
/* A resize took this long from the decision until it was in force. */
void market_pod_note_resize_time(struct market_pod *pod, double seconds);

int64_t market_pod_need(const struct market_pod *pod); /* the peak of the window */

/* What the pod wants, before any response to the price and without the forecast; at least its
 * guarantee, at most max-cpu. */
int64_t market_pod_honest_demand(const struct market_pod *pod,
                                 const struct market_pod_rules *rules);

/* The highest limit that the pod may have; INT64_MAX: no bound. */
int64_t market_pod_limit_max(const struct market_pod *pod, const struct market_pod_rules *rules);

#endif
