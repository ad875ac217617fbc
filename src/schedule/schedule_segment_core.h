/* The two numeric tools of the recommendation: a weighted quantile, and a day cut into few steps. */
#ifndef FLYBALL_SCHEDULE_SEGMENT_CORE_H
#define FLYBALL_SCHEDULE_SEGMENT_CORE_H

#include "../base/base.h"

enum { SCHEDULE_SLOTS = 48, SCHEDULE_SLOT_MINUTES = 30 };

struct schedule_weighted {
    double value, weight;
};

/* The smallest value at which the weights, counted from the smallest value up, reach `tau` of their
 * sum. Sorts the pairs in place; NAN when there are none. */
double schedule_quantile(struct schedule_weighted *pairs, size_t n, double tau);

struct schedule_segment {
    int from, to; /* slots [from, to) */
    int level;
};

struct schedule_step_costs {
    double over, under; /* of one replica too many, one too few, for one slot */
    double per_step;    /* of one more segment, as a share of the day's sum */
    int least_slots;    /* a segment's shortest length */
    int most_segments;  /* more than this: dearer steps, again */
};

/* The cheapest step function for the wanted levels; returns the number of segments. */
int schedule_segments(const int wanted[SCHEDULE_SLOTS], const struct schedule_step_costs *costs,
                      struct schedule_segment out[SCHEDULE_SLOTS]);

#endif
