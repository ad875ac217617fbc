#include "tap.h"

#include "market/demand_core.h"
#include "market/limit_core.h"

static void requests_stay_below_limits(void)
{
    EQ_INT(limit_request(602), 542);
    EQ_INT(limit_request(808), 727);
    for (int64_t limit = 2; limit < 20000; limit++)
        OK(limit_request(limit) > 0 && limit_request(limit) < limit);
}

static void boosts_never_lower(void)
{
    struct limit_boost_rules rules = { 0.1, 0.2, 0.4 };
    EQ_INT(limit_boost(808, 0.15, &rules), 994);
    EQ_INT(limit_boost(808, 0.1, &rules), 808);
    EQ_INT(limit_boost(808, 7, &rules), 1131);
    struct limit_boost_rules backwards = { 0.1, -0.9, -0.5 };
    EQ_INT(limit_boost(808, 0.5, &backwards), 808);
}

static void small_changes_are_not_worth_it(void)
{
    OK(!limit_differs(1000, 1049, 5));
    OK(limit_differs(1000, 1050, 5));
    OK(limit_differs(1000, 950, 5));
    OK(limit_differs(0, 1, 5));
}

static void counters_become_usage(void)
{
    struct demand_cpu_stat before =
        demand_cpu_stat_parse(S("usage_usec 0\nnr_periods 10\nnr_throttled 2\n"));
    struct demand_cpu_stat after = demand_cpu_stat_parse(S(
        "usage_usec 500000\nnr_periods 20\nnr_throttled 7\nthrottled_usec 25000\nbogus x\nusage_usec 1 2\n"));
    struct demand_window w = demand_measure(before, after, 1000000000);
    EQ_INT(w.usage_milli, 500);
    EQ_REAL(w.demand, 0.5);
    EQ_REAL(w.throttled, 0.5);
    w = demand_measure(after, before, 1000000000); /* the container was restarted */
    EQ_INT(w.usage_milli, 0);
    w = demand_measure(before, after, 0);
    EQ_INT(w.usage_milli, 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(requests_stay_below_limits),
                                        TAP(boosts_never_lower),
                                        TAP(small_changes_are_not_worth_it),
                                        TAP(counters_become_usage),
                                        { 0 } });
}
