/* The learning agent: see agent_core.h.
 *
 *      agent_learn(outcome)   Q[state][action] += alpha · (reward + gamma · max Q[state'] − Q)
 *            |
 *            v
 *      agent_choose(price)    state from usage, throttling and allocation; greedy or random action
 *            |
 *            v
 *      the pod's bid          an action is a weight (1.2, 1.0, 0.8) and a headroom
 *
 * The order of operations in every formula is that of MBCAS, so both produce the same last bit;
 * the golden vectors depend on it. The table is an unordered array of the rows in use, because a
 * pod visits few states: all 27 rows would be 864 of the 1,800 bytes that a pod costs. */
#include "agent_core.h"

#include "milli.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *name;
    double weight;
} actions[AGENT_ACTION_N] = {
    [AGENT_AGGRESSIVE] = { "aggressive", 1.2 },
    [AGENT_NORMAL] = { "normal", 1.0 },
    [AGENT_CONSERVATIVE] = { "conservative", 0.8 },
};

static const char *const usage_names[] = { "low", "medium", "high" };
static const char *const throttle_names[] = { "none", "some", "high" };
static const char *const allocation_names[] = { "low", "adequate", "excess" };

static const double price_threshold = 0.3; /* below, agents ignore the price */
static const double epsilon_decay = 0.999, epsilon_floor = 0.01;

void agent_init(struct agent *agent, double epsilon, uint64_t seed)
{
    *agent = (struct agent){
        .epsilon = epsilon,
        .state = -1,
        .action = -1,
        .allocation_milli = 100,
    };
    random_init(&agent->random, seed, 1);
}

void agent_done(struct agent *agent)
{
    free(take(agent->rows));
    agent->row_n = 0;
}

/* ---- the table */

static struct agent_row *find_row(const struct agent *agent, int state)
{
    for (uint8_t i = 0; i < agent->row_n; i++)
        if (agent->rows[i].state == state)
            return &agent->rows[i];
    return NULL;
}

const struct agent_row *agent_row(const struct agent *agent, int state)
{
    static const struct agent_row unseen;
    const struct agent_row *row = find_row(agent, state);
    return row ? row : &unseen;
}

struct agent_row *agent_add_row(struct agent *agent, int state)
{
    struct agent_row *row = find_row(agent, state);
    if (row)
        return row;
    agent->rows = mem_grow(agent->rows, (size_t)agent->row_n + 1, sizeof(*agent->rows));
    row = &agent->rows[agent->row_n++];
    *row = (struct agent_row){ .state = (uint8_t)state };
    return row;
}

/* ---- states and actions */

int agent_state(int64_t usage_milli, double throttling, int64_t allocation_milli)
{
    int usage = usage_milli > 1000 ? 2 : usage_milli > 500 ? 1 : 0;
    int throttle = throttling > 0.3 ? 2 : throttling > 0.1 ? 1 : 0;
    int allocation = allocation_milli < usage_milli       ? 0
                     : allocation_milli > 2 * usage_milli ? 2
                                                          : 1;
    return (usage * 3 + throttle) * 3 + allocation;
}

void agent_state_name(int state, char ret_name[24])
{
    snprintf(ret_name, 24, "%s:%s:%s", usage_names[state / 9], throttle_names[state / 3 % 3],
             allocation_names[state % 3]);
}

int agent_state_parse(str name)
{
    for (int state = 0; state < AGENT_STATE_N; state++) {
        char candidate[24];
        agent_state_name(state, candidate);
        if (str_eqc(name, candidate))
            return state;
    }
    return -1;
}

const char *agent_action_name(enum agent_action action)
{
    return actions[action].name;
}

double agent_action_weight(enum agent_action action)
{
    return actions[action].weight;
}

enum agent_action agent_greedy(const double q[AGENT_ACTION_N], double price)
{
    double value[AGENT_ACTION_N];
    memcpy(value, q, sizeof(value));
    if (price > price_threshold) {
        value[AGENT_AGGRESSIVE] -= 5 * price;
        value[AGENT_CONSERVATIVE] += 2 * price;
    }
    enum agent_action best = AGENT_AGGRESSIVE;
    for (int a = 1; a < AGENT_ACTION_N; a++)
        if (value[a] > value[best])
            best = (enum agent_action)a;
    return best;
}

enum agent_action agent_choose(struct agent *agent, double price, bool explore)
{
    int state = agent_state(agent->usage_milli, agent->throttling, agent->allocation_milli);
    enum agent_action action;
    if (explore && random_unit(&agent->random) < agent->epsilon) {
        action = (enum agent_action)random_below(&agent->random, AGENT_ACTION_N);
    } else {
        action = agent_greedy(agent_add_row(agent, state)->q, price);
    }
    agent->state = (int8_t)state;
    agent->action = (int8_t)action;
    return action;
}

/* ---- learning */

double agent_reward(const struct agent_rules *rules, struct agent_outcome o, int64_t previous_milli)
{
    double usage = (double)o.usage_milli, allocation = (double)o.allocation_milli;
    double reward = 0;
    if (o.allocation_milli >= o.usage_milli)
        reward += 10;
    else
        reward -= 20 * ((double)(o.usage_milli - o.allocation_milli) / usage);
    reward -= 30 * o.throttling;
    reward -= 100 * o.slo_miss;
    if (o.allocation_milli > 2 * o.usage_milli && (o.usage_milli > 0 || rules->infinite_reward))
        reward -= 5 * ((double)(o.allocation_milli - 2 * o.usage_milli) / usage);
    if (o.throttling < 0.01)
        reward += 5;
    if (previous_milli > 0) {
        double change = fabs(allocation - (double)previous_milli) / (double)previous_milli;
        if (change > 0.2)
            reward -= 10 * (change - 0.2);
        else if (change < 0.05)
            reward += 2;
    }
    return reward;
}

static double best_value(const struct agent *agent, int state)
{
    const double *q = agent_row(agent, state)->q;
    double best = 0; /* an action that was never tried counts as 0 */
    for (int a = 0; a < AGENT_ACTION_N; a++)
        if (q[a] > best)
            best = q[a];
    return best;
}

double agent_learn(struct agent *agent, const struct agent_rules *rules, struct agent_outcome o)
{
    agent->usage_milli = milli32(o.usage_milli);
    int64_t previous = agent->allocation_milli;
    agent->allocation_milli = milli32(o.allocation_milli);
    agent->throttling = o.throttling;
    double reward = agent_reward(rules, o, previous);
    if (agent->state >= 0 && agent->action >= 0) {
        int now = agent_state(o.usage_milli, o.throttling, o.allocation_milli);
        struct agent_row *row = agent_add_row(agent, agent->state);
        double *q = &row->q[agent->action];
        double value =
            *q + rules->learning_rate * (reward + rules->discount * best_value(agent, now) - *q);
        if (isfinite(value) || rules->infinite_reward) {
            *q = value;
            row->known |= (uint8_t)(1 << agent->action);
        }
    }
    agent->epsilon = MAX(epsilon_floor, agent->epsilon * epsilon_decay);
    return reward;
}

/* ---- demand */

int64_t agent_price_response(int64_t demand_milli, double price)
{
    if (price <= price_threshold)
        return demand_milli;
    return (int64_t)((double)demand_milli * MAX(1 - price * 0.5, 0.5));
}
