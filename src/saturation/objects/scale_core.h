/* How fast replicas may change when flyball writes them itself: stabilization windows and rate
 * policies, with the meaning and defaults of `behavior` in a HorizontalPodAutoscaler. */
#ifndef FLYBALL_SCALE_CORE_H
#define FLYBALL_SCALE_CORE_H

#include "../../base/vec.h"

enum { SCALE_POLICIES_MAX = 4 };

enum scale_select { SCALE_SELECT_MAX, SCALE_SELECT_MIN, SCALE_SELECT_DISABLED };

struct scale_policy {
    bool percent; /* of the replicas at the start of the period; else pods */
    int value, period_s;
};

struct scale_rules { /* of one direction */
    int window_s;
    enum scale_select select;
    struct scale_policy policies[SCALE_POLICIES_MAX];
    size_t policy_n;
};

struct scale_behavior {
    struct scale_rules up, down;
};

extern const struct scale_behavior scale_behavior_default;

struct scale_mark {
    int64_t at_s;
    int replicas; /* a desired number, or the size of a change */
};

struct scale_history { /* {0} is an empty one */
    VEC(struct scale_mark) wishes;
    VEC(struct scale_mark) ups, downs;
};

void scale_history_done(struct scale_history *h);

/* The replicas to set now if `wish` is desired. The first call behaves as if `current` had been
 * desired just before. */
int scale_next_replicas(struct scale_history *h, const struct scale_behavior *behavior,
                        int64_t now_s, int current, int wish);
/* Records a change that was written. */
void scale_record_change(struct scale_history *h, int64_t now_s, int from, int to);

#endif
