#include "tap.h"

#include "market/latency.h"
#include "market/latency_core.h"
#include "market/market_agent_config.h"
#include "market/qtable.h"

/* ---- tables */

static void tables_read_back(void)
{
    struct agent agent, again;
    err_t e;
    agent_init(&agent, 0.17, 1);
    agent_init(&again, 0.5, 1);
    for (int i = 0; i < AGENT_STATE_N; i += 2) {
        struct agent_row *row = agent_add_row(&agent, i);
        row->q[i % AGENT_ACTION_N] = 1.5 * i - 20;
        row->known = (uint8_t)(1 << i % AGENT_ACTION_N);
    }
    auto_buf struct buf text = { 0 }, second = { 0 };
    qtable_write(&agent, &text);
    OK_CALL(qtable_read(buf_str(&text), &again, &e), &e);
    EQ_REAL(again.epsilon, 0.17);
    for (int i = 0; i < AGENT_STATE_N; i++) {
        const struct agent_row *row = agent_row(&again, i);
        EQ_INT(row->known, agent_row(&agent, i)->known);
        for (int action = 0; action < AGENT_ACTION_N; action++)
            EQ_REAL(row->q[action], agent_row(&agent, i)->q[action]);
    }
    EQ_INT(again.row_n, AGENT_STATE_N / 2 + 1);
    agent_add_row(&agent, 0)->q[0] += 0.0001; /* too little to be worth a write */
    qtable_write(&agent, &second);
    EQ_STR(buf_str(&second), buf_str(&text));
    agent_done(&agent);
    agent_done(&again);
}

static void a_full_table_is_small(void)
{
    struct agent agent;
    agent_init(&agent, 0.2, 1);
    for (int i = 0; i < AGENT_STATE_N; i++) {
        struct agent_row *row = agent_add_row(&agent, i);
        row->known = 7;
        row->q[0] = 1e300; /* cut to what can be written */
        row->q[1] = -1e300;
    }
    auto_buf struct buf text = { 0 };
    qtable_write(&agent, &text);
    OK(text.n <= 452);
    err_t e;
    OK_CALL(qtable_read(buf_str(&text), &agent, &e), &e);
    const double *q = agent_row(&agent, 0)->q;
    OK(isfinite(q[0]) && q[0] > 2e6 && q[1] < -2e6);
    agent_done(&agent);
}

static void the_originals_tables_are_read(void)
{
    struct agent agent;
    err_t e;
    agent_init(&agent, 0.2, 1);
    OK_CALL(
        qtable_read(S("{\"low:none:adequate\":{\"normal\":3.25,\"aggressive\":-1},"
                      "\"no:such:state\":{\"normal\":1},\"high:some:low\":{\"normal\":\"+Inf\"}}"),
                    &agent, &e),
        &e);
    int state = agent_state_parse(S("low:none:adequate"));
    EQ_REAL(agent_row(&agent, state)->q[AGENT_NORMAL], 3.25);
    EQ_REAL(agent_row(&agent, state)->q[AGENT_AGGRESSIVE], -1);
    EQ_INT(agent_row(&agent, state)->known, 1 << AGENT_NORMAL | 1 << AGENT_AGGRESSIVE);
    EQ_INT(agent_row(&agent, agent_state_parse(S("high:some:low")))->known, 0);
    EQ_REAL(agent.epsilon, 0.2);
    agent_done(&agent);
}

static void what_is_no_table_changes_nothing(void)
{
    struct agent agent, before;
    err_t e;
    agent_init(&agent, 0.2, 1);
    before = agent;
    static const char *const bad[] = { "",  "%%%%", "AA==",
                                       "{", "AgAA", "ARQB////////////////////////" };
    for (size_t i = 0; i < countof(bad); i++)
        OK(qtable_read(str_c(bad[i]), &agent, &e) < 0);
    OK(memcmp(&agent, &before, sizeof(agent)) == 0);
}

/* ---- configuration */

struct complaints {
    int n;
    char last[600];
};

static void complain(void *context, const char *sentence)
{
    struct complaints *c = context;
    c->n++;
    snprintf(c->last, sizeof(c->last), "%s", sentence);
}

static const char *no_environment(void *context, const char *name)
{
    return context && !strcmp(name, "MBCAS_FAST_LOOP_INTERVAL") ? context : NULL;
}

static int load(struct agent_config *c, const char *data, const char *fast, struct complaints *all,
                err_t *e)
{
    return market_agent_config_load(c,
                                    &(struct agent_config_source){ .data = str_c(data),
                                                                   .environment = no_environment,
                                                                   .environment_context =
                                                                       (void *)fast,
                                                                   .complain = complain,
                                                                   .complain_context = all },
                                    e);
}

static const char *half_a_number(void *context, const char *name)
{
    (void)context;
    return !strcmp(name, "MBCAS_MIN_CHANGE_PERCENT") ? "42y" : NULL;
}

static void an_invalid_number_leaves_its_field_unchanged(void)
{
    auto_arena struct arena a = { 0 };
    struct market_config config = market_config_default(MARKET_DEFAULTS);
    struct complaints all = { 0 };
    EQ_INT(market_config_read_env(&config, &a, half_a_number, NULL, complain, &all), 1);
    EQ_REAL(config.min_change_percent, 5);
    EQ_STR(str_c(all.last), S("environment variable MBCAS_MIN_CHANGE_PERCENT: invalid "
                              "minChangePercent: \"42y\" is not a number"));
}

static void a_bad_value_leaves_the_last_good_one(void)
{
    struct agent_config c = { 0 };
    struct complaints all = { 0 };
    err_t e;
    OK_CALL(load(&c, "", NULL, &all, &e), &e);
    EQ_INT(c.market.slow_ns, INT64_C(15000000000));
    OK_CALL(load(&c, "{\"slowLoopInterval\":\"20s\",\"minChangePercent\":\"7\"}", NULL, &all, &e),
            &e);
    EQ_INT(c.market.slow_ns, INT64_C(20000000000));
    EQ_INT(all.n, 0);
    OK_CALL(load(&c, "{\"slowLoopInterval\":\"soon\",\"minChangePercent\":\"8\"}", NULL, &all, &e),
            &e);
    EQ_INT(c.market.slow_ns, INT64_C(20000000000)); /* the last good one of that name */
    EQ_REAL(c.market.min_change_percent, 8);        /* and the rest apply */
    EQ_INT(all.n, 1);
    OK(strstr(all.last, "slowLoopInterval") && strstr(all.last, "soon"));
    OK_CALL(load(&c, "{}", NULL, &all, &e), &e); /* a key that was removed counts as never set */
    EQ_INT(c.market.slow_ns, INT64_C(15000000000));
    OK_CALL(load(&c, "{\"fastLoopInterval\":\"4s\"}", "3s", &all, &e), &e);
    EQ_INT(c.market.fast_ns, INT64_C(3000000000)); /* the environment wins */
    market_agent_config_done(&c);
}

static void what_is_no_number_is_refused(void)
{
    struct agent_config c = { 0 };
    struct complaints all = { 0 };
    err_t e;
    static const char *const texts[] = { "NaN", "Inf", "-inf", "1e999" };
    for (size_t i = 0; i < countof(texts); i++) {
        char data[100];
        snprintf(data, sizeof(data), "{\"needHeadroomFactor\":\"%s\"}", texts[i]);
        OK_CALL(load(&c, data, NULL, &all, &e), &e);
        EQ_INT(all.n, (int)i + 1);
        OK(strstr(all.last, "needHeadroomFactor") && strstr(all.last, texts[i]));
        EQ_REAL(c.market.need_headroom, 0.15);
    }
    market_agent_config_done(&c);
}

/* Settings that contradict each other keep their last valid values; the others apply. What cannot be read changes nothing. */
static void contradictions_keep_the_last_pair(void)
{
    struct agent_config c = { 0 };
    struct complaints all = { 0 };
    err_t e;
    OK_CALL(load(&c, "{\"minChangePercent\":\"7\"}", NULL, &all, &e), &e);
    int64_t slow_ns = c.market.slow_ns, fast_ns = c.market.fast_ns;
    OK_CALL(load(&c, "{\"minChangePercent\":\"9\",\"slowLoopInterval\":\"1s\"}", NULL, &all, &e),
            &e);
    EQ_INT(all.n, 1);
    OK(strstr(all.last, "slowLoopInterval"));
    EQ_REAL(c.market.min_change_percent, 9);
    OK(c.market.slow_ns == slow_ns && c.market.fast_ns == fast_ns);
    OK(load(&c, "not json", NULL, &all, &e) < 0);
    EQ_REAL(c.market.min_change_percent, 9);
    market_agent_config_done(&c);
}

/* ---- objectives */

static void a_missed_objective_weighs_more(void)
{
    struct latency_state state = { 0 };
    double weight = 1;
    for (int i = 0; i < 10; i++) {
        double next = latency_weight(&state, weight, 2);
        OK(next > weight && next <= 4);
        weight = next;
    }
    for (int i = 0; i < 100; i++)
        weight = latency_weight(&state, weight, 2);
    EQ_REAL(weight, 4); /* no further */
    double before = weight;
    weight = latency_weight(&state, weight, 0.5);
    OK(weight < before); /* at once, whatever had piled up */
    for (int i = 0; i < 100; i++)
        weight = latency_weight(&state, weight, 0.1);
    EQ_REAL(weight, 0.5);
    for (int i = 0; i < 200; i++)
        weight = latency_weight(&state, weight, 0);
    OK(fabs(weight - 1) < 1e-6); /* nothing is known any more */
    EQ_REAL(latency_weight(&state, 1, INFINITY), 1);
}

/* Answers arrive every 5 s. How many until the fast loop acts, and until it stops? */
static int steps_until(struct latency_state *state, bool over, bool burns)
{
    int n = 1;
    while (latency_is_burning(state, over, 5) != burns && n < 100000)
        n++;
    return n;
}

static void a_budget_burns(void)
{
    struct latency_state fresh = { 0 };
    OK(latency_is_burning(&fresh, true, 5)); /* nothing speaks for it */

    struct latency_state state = { 0 };
    for (int i = 0; i < 6 * 3600 / 5; i++)
        OK(!latency_is_burning(&state, false, 5));
    struct latency_state once = state;
    OK(!latency_is_burning(&once, true, 5)); /* one bad answer after six good hours is no reason */

    int until = steps_until(&state, true, true) * 5;
    OK(until > 120 && until < 900); /* minutes: the hour must show it too */
    int after = steps_until(&state, false, false) * 5;
    OK(after < 3 * 3600); /* the short windows end it before the long ones forget */

    struct latency_state slow = { 0 };
    bool burnt = false;
    for (int i = 0; i < 12 * 3600 / 5; i++)
        burnt |= latency_is_burning(&slow, i % 10 == 9, 5) && i > 6 * 3600 / 5;
    OK(burnt); /* a tenth of the time, for hours: the slow pair sees it */
    struct latency_state allowed = { 0 };
    burnt = false;
    for (int i = 0; i < 12 * 3600 / 5; i++)
        burnt |= latency_is_burning(&allowed, i % 100 == 99, 5) && i > 600;
    OK(!burnt); /* that is just what the objective allows */
}

/* Requests take 20 ms without contention and may take 100: at 80 % usage the pod just misses its
 * target; at the estimated limit it just attains it. */
static void a_limit_for_an_objective(void)
{
    struct latency_state state = { 0 };
    double usage = 800;
    EQ_REAL(latency_limit(&state, 0.2 / (1 - usage / 1600), usage, 1600), 0); /* it is met */
    double limit = latency_limit(&state, 0.2 / (1 - usage / 900), usage, 900);
    OK(fabs(limit - 1000) < 1);
    OK(fabs(0.2 / (1 - usage / limit) - 1) < 0.01);
    EQ_REAL(latency_limit(&state, 0, usage, 900), 0);
    struct latency_state slow = { 0 };
    EQ_REAL(latency_limit(&slow, 3, 10, 1000), 0); /* idle and late: CPU is not what it lacks */
}

static void all_pods_are_one_query(void)
{
    struct latency_pod targets[] = { { S("shop"), S("web-1") },
                                     { S("shop"), S("web.2") },
                                     { S("bank"), S("teller") } };
    auto_buf struct buf query = { 0 };
    latency_build_query(&query, targets, countof(targets));
    EQ_STR(buf_str(&query), S("histogram_quantile(0.99, sum by (namespace, pod, le) "
                              "(rate(http_request_duration_seconds_bucket{namespace=~\"shop|bank\","
                              "pod=~\"web-1|web[.]2|teller\"}[1m])))"));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(tables_read_back),
                                        TAP(a_full_table_is_small),
                                        TAP(the_originals_tables_are_read),
                                        TAP(what_is_no_table_changes_nothing),
                                        TAP(an_invalid_number_leaves_its_field_unchanged),
                                        TAP(a_bad_value_leaves_the_last_good_one),
                                        TAP(what_is_no_number_is_refused),
                                        TAP(contradictions_keep_the_last_pair),
                                        TAP(a_missed_objective_weighs_more),
                                        TAP(a_budget_burns),
                                        TAP(a_limit_for_an_objective),
                                        TAP(all_pods_are_one_query),
                                        { 0 } });
}
