/* Two numeric tools of the recommendation: a weighted quantile, and the approximation of a day by few steps. */
#ifndef FLYBALL_SCHEDULE_SEGMENT_CORE_H
#define FLYBALL_SCHEDULE_SEGMENT_CORE_H

#include "../base/base.h"

enum { SCHEDULE_SLOTS = 48, SCHEDULE_SLOT_MINUTES = 30 };

struct schedule_weighted {
    double value, weight;
};

/* The smallest value at which the cumulative weight reaches `tau` of the total. Sorts the pairs in
 * place; NAN if there are none. */
double schedule_quantile(struct schedule_weighted *pairs, size_t n, double tau);

struct schedule_segment {
    int from, to; /* slots [from, to) */
    int level;
};

struct schedule_step_costs {
    double over, under; /* cost of one replica too many and one too few, per slot */
    double per_step;    /* cost of one more segment, as a share of the day's sum */
    int least_slots;    /* minimum length of a segment */
    int most_segments; /* with more segments than this, per_step is doubled and the day cut again */
};

/* The step function of least cost for the wanted levels; returns the number of segments. */
int schedule_segments(const int wanted[SCHEDULE_SLOTS], const struct schedule_step_costs *costs,
                      struct schedule_segment out[SCHEDULE_SLOTS]);

#endif
