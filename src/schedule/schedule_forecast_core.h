/* Forecast mode: a floor under minReplicas for the next hour, from the seasonal model of the recommender. Pure.
 *
 * The operator publishes the floors of the coming day in status.recommendation.forecast, and every pass reads the one
 * that applies now from there. A restart therefore changes nothing, and a forecast that is not renewed ends. */
#ifndef FLYBALL_SCHEDULE_FORECAST_CORE_H
#define FLYBALL_SCHEDULE_FORECAST_CORE_H

#include "schedule_recommend_core.h"

/* Publishes a day more than the time to the next analysis, in case Prometheus is down. */
enum { SCHEDULE_FORECAST_SPARE_S = 86400 };

/* {"validUntil": TIME, "floors": [{"from": TIME, "minReplicas": N}, ...]}, ascending; 0 replicas: unknown. */
struct json *schedule_forecast_json(struct arena *a, const struct schedule_recommendation *r,
                                    const struct tz *zone, int64_t from, int64_t until);

struct schedule_forecast_now {
    int32_t floor;  /* 0: none */
    int64_t next;   /* when it changes; 0: never again */
    bool is_stale;  /* its time is over, or has not begun */
    bool is_capped; /* set by the planner: maxReplicas is lower */
};

/* The part of a published forecast that applies at `now`; `{0}` if there is none. Never trusts its order or its numbers. */
struct schedule_forecast_now schedule_forecast_read(const struct json *forecast, int64_t now);

/* minReplicas beneath the floor, as the annotation on the target keeps it. */
struct schedule_forecast_note {
    bool is_set;
    int32_t own;   /* what the windows or the user set */
    int32_t floor; /* what was written instead */
};

struct schedule_forecast_note schedule_forecast_note_read(const struct json *baseline);

#endif
