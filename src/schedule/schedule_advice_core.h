/* A recommendation in the form in which it is published and applied. Pure. */
#ifndef FLYBALL_SCHEDULE_ADVICE_CORE_H
#define FLYBALL_SCHEDULE_ADVICE_CORE_H

#include "schedule_backtest_core.h"

#define SCHEDULE_ADVICE_MANAGER "smarthpa-ai-scheduler"

enum {
    SCHEDULE_ADVICE_LEAST_HOURS = 72,
    SCHEDULE_ADVICE_AGE_MAX_S = 86400, /* of the newest sample, for mode Forecast */
};

/* Sources of the demand, tried in this order until one has data. A query of the user replaces all others. */
enum schedule_signal {
    SCHEDULE_SIGNAL_USER,    /* smartRecommendation.query */
    SCHEDULE_SIGNAL_DEMAND,  /* replicas times the largest ratio of a metric to its target */
    SCHEDULE_SIGNAL_DESIRED, /* what the HPA wanted, limited by its bounds */
    SCHEDULE_SIGNAL_CURRENT, /* what ran, limited likewise */
    SCHEDULE_SIGNAL_N
};

struct schedule_history {
    const struct schedule_sample *samples;
    size_t n;
    enum schedule_signal signal;
    int64_t now;
    int64_t
        from; /* samples before this or after `now` were not asked for and are ignored; 0: any */
};

/* Is there another signal to try if this one has no data? */
bool schedule_signal_has_next(enum schedule_signal signal);

struct schedule_advice_result {
    const char *reason;    /* NULL: there is a recommendation; otherwise "InsufficientData" */
    str message;           /* why there is none */
    struct json *status;   /* for status.recommendation */
    struct json *triggers; /* a list of ai-... triggers */
    bool good_enough;      /* the backtest allows applying them */
    double under;          /* missing share in the backtest; negative: no backtest */
};

struct schedule_advice_result schedule_advise(struct arena *a, const struct schedule_advice *advice,
                                              const struct schedule_history *history);

/* The list of triggers in which the learned ones replace all that are named ai-...; NULL if nothing would
 * change. Other triggers stay as they are, in their order. */
struct json *schedule_advice_merge(struct arena *a, const struct json *triggers,
                                   const struct json *learned);

/* Raises every maxReplicas of learned triggers to at least `most`: learning must not take away room for peaks. */
void schedule_advice_keep_max(struct arena *a, struct json *learned, int64_t most);

#endif
