/* How well would it have done? The recommendation is learned again without the last seven days and
 * tried on them, against an HPA that only reacts. */
#ifndef FLYBALL_SCHEDULE_BACKTEST_CORE_H
#define FLYBALL_SCHEDULE_BACKTEST_CORE_H

#include "schedule_recommend_core.h"

struct schedule_backtest {
    double under,
        under_without;         /* missing replica time as a share of the needed, with and without */
    double cost, cost_without; /* replica time as a multiple of the needed */
    double coverage;           /* share of time in learned windows at which the floor sufficed */
    double wape;               /* of the median profile: sum |error| / sum demand */
    double strength;           /* seasonal: 1 - Var(demand - profile) / Var(demand) */
    bool good_enough;          /* to be applied without asking */
};

/* False when there is too little history to hold a week back. */
bool schedule_backtest(struct arena *a, const struct schedule_sample *samples, size_t n,
                       const struct tz *zone, const struct schedule_learn_params *params,
                       struct schedule_backtest *ret);

#endif
