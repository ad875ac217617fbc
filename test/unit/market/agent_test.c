#include "tap.h"

#include "market/agent_core.h"

static const struct agent_rules rules = {
    .learning_rate = 0.1,
    .discount = 0.9,
    .absolute_min_milli = 10,
    .need_headroom = 0.15,
    .want_headroom = 0.1,
};

static void states_have_names(void)
{
    for (int state = 0; state < AGENT_STATE_N; state++) {
        char name[24];
        agent_state_name(state, name);
        EQ_INT(agent_state_parse(str_c(name)), state);
    }
    EQ_INT(agent_state_parse(S("high:some")), -1);
}

/* Whatever happens to a pod, its table stays finite. */
static void nothing_is_ever_infinite(void)
{
    static const int64_t amounts[] = { 0, 1, 9, 100, 5000, 100000 };
    struct agent agent;
    agent_init(&agent, 0.2, 1);
    struct random r;
    random_init(&r, 5, 5);
    for (int step = 0; step < 20000 && !tap_failures; step++) {
        struct agent_outcome o = { .usage_milli = amounts[random_below(&r, 6)],
                                   .allocation_milli = amounts[random_below(&r, 6)],
                                   .throttling = random_unit(&r),
                                   .slo_miss = random_unit(&r) };
        OK(isfinite(agent_learn(&agent, &rules, o)));
        double price = random_unit(&r) * 4;
        agent_choose(&agent, price, true);
    }
    OK(agent.row_n > 3 && agent.row_n <= AGENT_STATE_N);
    for (int s = 0; s < AGENT_STATE_N; s++)
        for (int a = 0; a < AGENT_ACTION_N; a++)
            OK(isfinite(agent_row(&agent, s)->q[a]));
    EQ_REAL(agent.epsilon, 0.01);
    agent_done(&agent);
}

static void a_seed_repeats_a_run(void)
{
    struct agent a, b;
    agent_init(&a, 0.5, 7);
    agent_init(&b, 0.5, 7);
    for (int i = 0; i < 1000; i++)
        OK(agent_choose(&a, 0, true) == agent_choose(&b, 0, true));
    agent_done(&a);
    agent_done(&b);
}

static void no_exploration_unless_allowed(void)
{
    struct agent a;
    agent_init(&a, 1.0, 7);
    for (int i = 0; i < 100; i++)
        OK(agent_choose(&a, 0, false) == AGENT_AGGRESSIVE);
    agent_done(&a);
}

static void an_agent_is_small(void)
{
    OK(sizeof(struct agent) + AGENT_STATE_N * sizeof(struct agent_row) <= 1024);
    OK(sizeof(struct agent) <= 128); /* one that has seen nothing */
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(states_have_names),
                                        TAP(nothing_is_ever_infinite),
                                        TAP(a_seed_repeats_a_run),
                                        TAP(no_exploration_unless_allowed),
                                        TAP(an_agent_is_small),
                                        { 0 } });
}
