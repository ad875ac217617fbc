/* One pod's agent: it observes usage and throttling, learns which way of bidding pays off, and
 * bids. Tabular Q-learning over 27 states (usage, throttling and allocation in three levels
 * each) and 3 actions.
 *
 * The whole state is in `struct agent`, including its random numbers, so a run can be repeated
 * and a table can be saved. No value in it is ever infinite or NaN. A pod visits few of the
 * states, so the table has rows only for those: the agent owns them, agent_done() frees them. */
#ifndef FLYBALL_AGENT_CORE_H
#define FLYBALL_AGENT_CORE_H

#include "../base/random.h"
#include "../base/str.h"
#include "clear_core.h"

enum agent_action { AGENT_AGGRESSIVE, AGENT_NORMAL, AGENT_CONSERVATIVE, AGENT_ACTION_N };

enum { AGENT_STATE_N = 27 };

struct agent_rules {
    double learning_rate; /* alpha */
    double discount;      /* gamma */
    int64_t absolute_min_milli;
    int64_t baseline_milli; /* floor of the minimum bid */
    double need_headroom;   /* minimum = usage * (1 + this) */
    double want_headroom;   /* maximum = demand * (1 + this) */
    bool cost_efficiency;   /* smooth demand: down fast, up slowly, decay when idle */
    double alpha_down, alpha_up, idle_decay, target_throttling;
    bool infinite_reward; /* as MBCAS: an allocation without usage has a reward of minus infinity */
};

struct agent_row { /* of the table: a state that was visited */
    double q[AGENT_ACTION_N];
    uint8_t state;
    uint8_t known; /* bit a: q[a] was learned */
};

struct agent {
    struct agent_row *rows; /* owned, unordered */
    double epsilon;         /* probability of exploring */
    double throttling;      /* share of throttled periods, 0..1 */
    struct random random;
    int32_t usage_milli, allocation_milli;
    uint8_t row_n;
    int8_t state, action; /* of the last bid; -1: none yet */
};

struct agent_outcome { /* result of the last bid */
    int64_t usage_milli;
    int64_t allocation_milli; /* the limit that was in force */
    double throttling;
    double slo_miss; /* 0: the latency objective is attained .. 1: far from it */
};

void agent_init(struct agent *agent, double epsilon, uint64_t seed);
void agent_done(struct agent *agent);

const struct agent_row *agent_row(const struct agent *agent, int state); /* all 0: never visited */
struct agent_row *agent_add_row(struct agent *agent,
                                int state); /* or the one there; until the next */

/* Updates the table with the outcome and reduces epsilon. Returns the reward. */
double agent_learn(struct agent *agent, const struct agent_rules *rules,
                   struct agent_outcome outcome);

/* Chooses how to bid at this price. `explore` allows a random action; callers forbid it for a pod
 * that is throttled or misses its objective. */
enum agent_action agent_choose(struct agent *agent, double price, bool explore);
enum agent_action agent_greedy(const double q[AGENT_ACTION_N], double price);

int agent_state(int64_t usage_milli, double throttling, int64_t allocation_milli);
void agent_state_name(int state, char ret_name[24]); /* "medium:some:adequate" */
int agent_state_parse(str name);                     /* -1: unknown name */
const char *agent_action_name(enum agent_action action);
double agent_action_weight(enum agent_action action);

double agent_reward(const struct agent_rules *rules, struct agent_outcome outcome,
                    int64_t previous_milli);

/* MBCAS' price response: above a price of 0.3, demand falls by half the price, at most to half. */
int64_t agent_price_response(int64_t demand_milli, double price);

#endif
