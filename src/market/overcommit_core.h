/* How far the limits of a node may exceed its capacity.
 *
 * A pod's share is what the market gives it of the capacity; its request carries the share, so the
 * kernel's weights protect it when all pods run at once. Its limit may be higher, into CPU that
 * others leave idle. All limits together stay within kappa times the capacity, and kappa is
 * measured: it rises slowly while idle CPU is wanted, and falls fast when pods below their share
 * have to wait. A full node alone is no reason to lower it, because then the weights decide.
 *
 * All amounts are whole numbers: ppm for ratios, thousandths for kappa. */
#ifndef FLYBALL_OVERCOMMIT_CORE_H
#define FLYBALL_OVERCOMMIT_CORE_H

#include "../base/base.h"

/* ---- pressure */

struct overcommit_second { /* of one pod */
    int64_t usage_milli;
    int64_t waited_usec; /* `some` of cpu.pressure: a task wanted to run and could not */
    bool throttled;      /* its own quota stopped it */
};

enum overcommit_judgement { OVERCOMMIT_IGNORED, OVERCOMMIT_SERVED, OVERCOMMIT_VICTIM };

/* A second counts if the pod ran, was not stopped by its own quota and used at most 70 % of its
 * share; it is a victim's if the pod waited more than a quarter of it. */
enum overcommit_judgement overcommit_judge(int64_t share_milli, struct overcommit_second second);

struct overcommit_seconds { /* of one pod in a slow window */
    int32_t counted, victims;
};

struct overcommit_pressure { /* smoothed over slow rounds, in ppm of counted seconds */
    int64_t victims_ppm;     /* of all pods together */
    int64_t worst_ppm;       /* of the worst pod */
};

struct overcommit_window {
    int64_t mean_ppm, worst_ppm; /* of this window alone */
    size_t worst;                /* the pod; n: no pod has enough seconds */
};

/* Adds a slow window to the pressure. */
struct overcommit_window overcommit_add_window(struct overcommit_pressure *pressure,
                                               const struct overcommit_seconds *pods, size_t n);

/* ---- kappa */

enum overcommit_reason {
    OVERCOMMIT_OFF,    /* limitOvercommit is 1 */
    OVERCOMMIT_START,  /* the agent started: nothing is cut */
    OVERCOMMIT_CAPPED, /* limitOvercommit was lowered */
    OVERCOMMIT_FALL,
    OVERCOMMIT_RISE,
    OVERCOMMIT_HOLD,
    OVERCOMMIT_REASON_N
};
const char *overcommit_reason_name(enum overcommit_reason reason);

struct overcommit_state {
    int64_t kappa_milli;  /* 0: none yet */
    int64_t limits_milli; /* sum of the limits in force; read only when there is no kappa yet */
    struct overcommit_pressure pressure;
    int64_t utilization_ppm; /* of the node's cores */
    int64_t wanted_milli;    /* sum of the bids' maximums in the last round */
    int64_t since_fall_s;
};

struct overcommit_kappa {
    int64_t kappa_milli;
    int64_t limits_capacity_milli; /* what all limits together may be */
    enum overcommit_reason reason;
};

/* `blind`: the kernel has no pressure counters, so no victim would be seen. */
struct overcommit_kappa overcommit_next(double limit_overcommit, bool blind, int64_t capacity_milli,
                                        const struct overcommit_state *state);

#endif
