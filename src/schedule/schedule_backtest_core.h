/* How a recommendation would have performed: it is learned again without the last seven days and evaluated
 * on them, against an HPA that only reacts. */
#ifndef FLYBALL_SCHEDULE_BACKTEST_CORE_H
#define FLYBALL_SCHEDULE_BACKTEST_CORE_H

#include "schedule_recommend_core.h"

struct schedule_backtest {
    double under,
        under_without; /* missing replica time as a share of the needed, with and without the schedule */
    double cost, cost_without; /* replica time as a multiple of the needed, likewise */
    double coverage;  /* share of the time in learned windows in which the floor was sufficient */
    double wape;      /* of the median profile: sum |error| / sum demand */
    double strength;  /* seasonal: 1 - Var(demand - profile) / Var(demand) */
    bool good_enough; /* may be applied automatically */
};

/* False if there is too little history to hold back a week. */
bool schedule_backtest(struct arena *a, const struct schedule_sample *samples, size_t n,
                       const struct tz *zone, const struct schedule_learn_params *params,
                       struct schedule_backtest *ret);

#endif
