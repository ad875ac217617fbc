/* A recommendation as it is published, and as it is applied. Pure. */
#ifndef FLYBALL_SCHEDULE_ADVICE_CORE_H
#define FLYBALL_SCHEDULE_ADVICE_CORE_H

#include "schedule_backtest_core.h"

#define SCHEDULE_ADVICE_MANAGER "smarthpa-ai-scheduler"

enum { SCHEDULE_ADVICE_LEAST_HOURS = 72 };

/* Where demand is looked for, in this order, until one has data. */
enum schedule_signal {
    SCHEDULE_SIGNAL_USER,    /* smartRecommendation.query */
    SCHEDULE_SIGNAL_DEMAND,  /* replicas times how far the metrics are from their targets */
    SCHEDULE_SIGNAL_DESIRED, /* what the HPA wanted: cut off by its bounds */
    SCHEDULE_SIGNAL_CURRENT, /* what ran: likewise */
    SCHEDULE_SIGNAL_N
};

const char *schedule_signal_name(enum schedule_signal signal);

struct schedule_history {
    const struct schedule_sample *samples;
    size_t n;
    enum schedule_signal signal;
    int64_t now;
};

struct schedule_advice_result {
    const char *reason;    /* NULL: there is an answer; else "InsufficientData" */
    str message;           /* why not */
    struct json *status;   /* for status.recommendation */
    struct json *triggers; /* a list of ai-... triggers */
    bool good_enough;      /* the backtest allows to apply them */
    double under;          /* of the backtest; negative: there was none */
};

struct schedule_advice_result schedule_advise(struct arena *a, const struct schedule_advice *advice,
                                              const struct schedule_history *history);

/* The list of triggers with the learned ones in place of all that are named ai-...; NULL when the list
 * is already so. Others are not touched and keep their order. */
struct json *schedule_advice_merge(struct arena *a, const struct json *triggers,
                                   const struct json *learned);

#endif
