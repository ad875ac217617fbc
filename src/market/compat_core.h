/* The market's steps exactly as MBCAS computes them, including its faults: for golden vectors
 * and for side-by-side runs in the benchmark. The product uses none of this. docs/market.md
 * lists the differences. */
#ifndef FLYBALL_COMPAT_CORE_H
#define FLYBALL_COMPAT_CORE_H

#include "../base/str.h"
#include "agent_core.h"

/* Rounds of truncated shares. May leave capacity unused, and exceed it under overload. */
void market_compat_clear(int64_t capacity_milli, const struct bid *bids, size_t n,
                         int64_t *ret_milli);

enum { COMPAT_HISTORY = 3 };

struct compat_agent {
    struct agent agent;
    double history[COMPAT_HISTORY]; /* the last throttling values, oldest first */
    uint8_t history_n;
    int64_t smoothed_milli; /* demand in cost-efficiency mode */
};

void market_compat_agent_init(struct compat_agent *agent, double epsilon, uint64_t seed);
double market_compat_learn(struct compat_agent *agent, const struct agent_rules *rules,
                           struct agent_outcome outcome);

/* A bid whose max may be below its min. In cost-efficiency mode, updates the agent's smoothed
 * demand. */
struct bid market_compat_bid(struct compat_agent *agent, const struct agent_rules *rules,
                             enum agent_action action, double price, bool in_grace);

struct compat_pod { /* what MBCAS keeps of a pod between slow steps */
    int64_t last_allocation, last_smoothed;
};

struct compat_write {
    bool written;
    int64_t limit_milli, request_milli;
};

struct compat_smoothing {
    int64_t allocation_milli; /* from the solver */
    int64_t pod_limit_milli;  /* limit of container 0; <= 0: none */
    bool recently_written;    /* within 30 s */
    double min_change_percent;
    int64_t absolute_min_milli;
};

struct compat_write market_compat_smooth(struct compat_pod *pod, struct compat_smoothing in);

/* One fast step; `demand` is the normalized throttling. */
struct compat_write market_compat_fast_step(struct compat_pod *pod, double demand, double threshold,
                                            double step_min, double step_max);

struct compat_container {
    int64_t limit_milli, request_milli; /* -1: not set */
};

/* Splits the pod's amounts over its containers in proportion to their current ones. */
void market_compat_split(int64_t limit_milli, int64_t request_milli,
                         const struct compat_container *current, size_t n,
                         struct compat_container *ret);

#endif
