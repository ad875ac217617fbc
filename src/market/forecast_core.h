/* A pod's demand in the near future: a Kalman filter for level and trend. Readings of a
 * throttled pod are censored: the pod would have used more than was measured. */
#ifndef FLYBALL_FORECAST_CORE_H
#define FLYBALL_FORECAST_CORE_H

#include "../base/base.h"

struct forecast {             /* `{0}`: no reading yet */
    float level, trend;       /* cores, cores per second */
    float p00, p01, p11;      /* covariance */
    float noise;              /* variance of a reading */
    float drift;              /* variance of the trend, per second */
    uint8_t surprises, calms; /* consecutive readings far from, and close to, the prediction */
    bool started;
};

/* Adds a reading: `used` cores over `seconds`, while a share `throttled` (0..1) of the periods
 * hit the quota. */
void forecast_update(struct forecast *f, float used, float throttled, float seconds);

/* The demand, in cores, that will not be exceeded `horizon_s` from now with a probability of 90
 * %. */
float forecast_demand(const struct forecast *f, float horizon_s);

#endif
