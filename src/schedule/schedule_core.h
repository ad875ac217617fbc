/* schedule: which replica bounds apply at this time (drop-in replacement for SmartHPA).
 *
 *   schedule_lex, schedule_spec      parse and validate a manifest
 *   schedule_windows_core            when a trigger is active: wall-clock windows as instants
 *   schedule_core                    which trigger governs, what it sets, when that changes
 *   schedule_ramp_core               bounds that move in steps before and after a window
 *   schedule_apply_core              merge a config into the bounds of a live HPA
 *   schedule_plan_core               one pass: objects and now in; writes, status and events out
 *   schedule_report_core, _status_core    the conditions, events and status fields of a pass
 *   schedule_recommend_core, _advice_core, _backtest_core    windows learned from history
 *   schedule_controller, _turn       gather the input, call the plan, carry it out
 *   schedule_draw, schedule_svg      a week in a terminal or as a picture
 *
 * Every file up to _advice_core is pure: instants are seconds since 1970 and `now` is an argument.
 * Nothing depends on past events. What applies now follows from the spec, the creation time and now,
 * so a restart, a missed timer or a changed clock makes no difference.
 *
 * Read first: schedule_spec_read, schedule_effective, schedule_plan. */
#ifndef FLYBALL_SCHEDULE_CORE_H
#define FLYBALL_SCHEDULE_CORE_H

#include "schedule_spec.h"

enum schedule_state {
    SCHEDULE_STATE_WITHIN,
    SCHEDULE_STATE_BEFORE,   /* opens later today */
    SCHEDULE_STATE_AFTER,    /* was open earlier today */
    SCHEDULE_STATE_INACTIVE, /* today is not one of its days, or it has none */
    SCHEDULE_STATE_INVALID,
    SCHEDULE_STATE_SUSPENDED,
    SCHEDULE_STATE_DROPPED,
    SCHEDULE_STATE_N
};

/* Why an open window does not govern. */
enum schedule_rank {
    SCHEDULE_GOVERNS,
    SCHEDULE_LOWER_PRIORITY,
    SCHEDULE_EARLIER_START, /* equal priority: the window that opened last wins */
    SCHEDULE_LATER_IN_LIST, /* equal in both: the first in the list wins */
};

struct schedule_trigger_now {
    enum schedule_state state;
    enum schedule_rank rank; /* only if the state is WITHIN */
    int64_t window_s,
        window_e; /* the open window [start, end) if WITHIN, INT64_MIN and INT64_MAX: it never
                                   was closed, never closes; otherwise 0 */
};

enum schedule_source {
    SCHEDULE_FROM_NONE,  /* no window is open and none has ended since the object was created */
    SCHEDULE_FROM_START, /* an open window: its startHPAConfig */
    SCHEDULE_FROM_END,   /* the window that ended last: its endHPAConfig */
    SCHEDULE_FROM_HOLD,  /* that window has no endHPAConfig: the bounds it set stay */
    SCHEDULE_SOURCE_N
};

struct schedule_effective {
    enum schedule_source source;
    int trigger;                   /* index of the governing trigger; -1: none */
    struct schedule_config config; /* what it sets; unset fields keep the live value */
    int64_t
        since; /* start of the open window (INT64_MIN: always) or end of the last one; 0: neither */
    int64_t next;    /* the first instant at which anything may change; 0: never */
    size_t within_n; /* open windows */
};

/* `states` receives one entry per trigger. `created` is the object's creation time: a window that ended
 * before it has no effect, unless it ended earlier on the same local day. */
struct schedule_effective schedule_effective(const struct schedule_spec *spec, int64_t created,
                                             int64_t now, struct schedule_trigger_now *states);

const char *schedule_state_name(enum schedule_state state); /* "Within", ... */

/* "start:office-hours", "none": the form of a source in status, logs and events. */
str schedule_source_text(struct arena *a, const struct schedule_spec *spec,
                         const struct schedule_effective *e);

#endif
