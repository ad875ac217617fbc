/* Windows learned from history: demand in, triggers out. Pure arithmetic over samples; with too little
 * data the answer is "none", never an invented one.
 *
 * Demand is divided into half-hour slots of the local day. Weekdays with similar demand are pooled; for each
 * pool a high quantile of every slot is the wanted floor, and the floors are approximated by a few steps.
 * The lowest step of all is the base; every other step becomes a trigger that opens a little early. */
#ifndef FLYBALL_SCHEDULE_RECOMMEND_CORE_H
#define FLYBALL_SCHEDULE_RECOMMEND_CORE_H

#include "schedule_segment_core.h"
#include "schedule_spec.h"

struct schedule_learn_params {
    double tau_floor, tau_group,
        tau_max;           /* quantiles for the floor, for comparing weekdays, and for the cap */
    double half_life_days; /* half-life of a sample's weight */
    double headroom, max_headroom; /* factors on the floor and on the cap */
    struct schedule_step_costs costs;
    int lead_minutes;
    double likeness;   /* weekdays with a smaller distance are pooled */
    int least_days;    /* with fewer dates there is no recommendation */
    double mad_factor; /* dates this many deviations from their weekday's median are ignored */
    bool forecast;     /* the floor is that of the next hour instead of the windows */
};

struct schedule_learn_params schedule_learn_defaults(enum schedule_profile profile,
                                                     int32_t lead_minutes);

struct schedule_sample {
    int64_t at; /* seconds since 1970 */
    double value;
};

struct schedule_learned_trigger {
    uint8_t weekdays;     /* bit 0 is Sunday */
    int32_t start_minute; /* minute of the day, less the lead time */
    int32_t end_minute;   /* 1440: the end of the day */
    int32_t min, max;
    int32_t priority; /* -99 to -1: every manual trigger wins */
};

struct schedule_recommendation {
    uint8_t groups[7]; /* pooled weekdays; the first group contains Monday if it has data */
    size_t groups_n;
    int32_t *dropped_days; /* ignored as unusual, ascending */
    size_t dropped_n;
    int32_t base_min, base_max;
    struct schedule_learned_trigger *triggers; /* by start, end, level */
    size_t triggers_n;
    size_t days_n;                     /* number of dates used */
    double profile[7][SCHEDULE_SLOTS]; /* per weekday (0 is Sunday): median of its pool */
    int32_t floors[7][SCHEDULE_SLOTS]; /* likewise: the wanted floor; 0: unknown */
    bool is_forecast;                  /* params.forecast */
};

/* NULL if there are too few samples. Samples may be in any order; NAN is skipped. In the arena. */
struct schedule_recommendation *schedule_recommend(struct arena *a,
                                                   const struct schedule_sample *samples, size_t n,
                                                   const struct tz *zone,
                                                   const struct schedule_learn_params *params);

/* "ai-mtuwthf-0850-1200" and the manifest of the trigger. */
str schedule_learned_name(struct arena *a, const struct schedule_learned_trigger *t);
struct json *schedule_learned_json(struct arena *a, const struct schedule_recommendation *r,
                                   size_t at, str zone_name);

/* The largest floor of the slots that the next hour touches; 0: the weekday has no data. */
int32_t schedule_forecast_floor(const struct schedule_recommendation *r, const struct tz *zone,
                                int64_t at);

/* The floor that the recommendation sets at an instant: that of the open window with the highest priority
 * (`*ret_open` is true), or the base. With params.forecast: that of the next hour. */
int32_t schedule_recommended_floor(const struct schedule_recommendation *r, const struct tz *zone,
                                   int64_t at, bool *ret_open);

/* "M,TU,W": Monday first. */
str schedule_weekdays_text(struct arena *a, uint8_t weekdays);

#endif
