/* Where a pod's demand is going: a Kalman filter of level and trend over throttled (censored) readings. */
#ifndef FLYBALL_FORECAST_CORE_H
#define FLYBALL_FORECAST_CORE_H

#include "../base/base.h"

struct forecast {        /* `{0}` has seen nothing */
    float level, trend;  /* cores, cores a second */
    float p00, p01, p11; /* covariance */
    float noise;         /* of a reading */
    float drift;         /* of the trend */
    uint8_t surprises, calms;
    bool started;
};

/* One reading: `used` cores over `seconds`, while `throttled` (0..1) of the periods hit the quota. */
void forecast_update(struct forecast *f, float used, float throttled, float seconds);

/* Demand `horizon_s` from now that will not be exceeded nine times of ten, in cores. */
float forecast_demand(const struct forecast *f, float horizon_s);

#endif
