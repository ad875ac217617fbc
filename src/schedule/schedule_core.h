/* schedule: which replica bounds hold at this hour (drop-in for SmartHPA).
 *
 *   schedule_lex, schedule_spec    the manifest as numbers, and what is wrong with it
 *   schedule_windows               when a trigger is active: wall-clock windows as instants
 *   schedule_core                  which trigger governs, what it asks for, when that changes
 *   schedule_ramp                  bounds that move in steps around a window
 *   schedule_apply                 what that does to a live HPA
 *   schedule_recommend, _advice    windows learned from history
 *   schedule_plan                  one pass: objects and now in, writes, status and events out
 *   schedule_controller, _turn     gather, call the plan, carry it out
 *
 * Everything but the controller is pure: instants are seconds since 1970 and `now` is an argument.
 * There is no memory of past events. What holds now follows from the spec, the creation time and
 * now, so a restart, a missed timer or a stepped clock changes nothing.
 *
 * Read first: schedule_spec_read, schedule_effective, schedule_plan. */
#ifndef FLYBALL_SCHEDULE_CORE_H
#define FLYBALL_SCHEDULE_CORE_H

#include "schedule_spec.h"

enum schedule_state {
    SCHEDULE_STATE_WITHIN,
    SCHEDULE_STATE_BEFORE,   /* opens later today */
    SCHEDULE_STATE_AFTER,    /* was open today */
    SCHEDULE_STATE_INACTIVE, /* not its day, or it has none */
    SCHEDULE_STATE_INVALID,
    SCHEDULE_STATE_SUSPENDED,
    SCHEDULE_STATE_DROPPED,
    SCHEDULE_STATE_N
};

/* Why an open window does not govern. */
enum schedule_rank {
    SCHEDULE_GOVERNS,
    SCHEDULE_LOWER_PRIORITY,
    SCHEDULE_EARLIER_START, /* equal priority: the latest start wins */
    SCHEDULE_LATER_IN_LIST, /* equal in both: the first in the list wins */
};

struct schedule_trigger_now {
    enum schedule_state state;
    enum schedule_rank rank;    /* of a trigger that is within */
    int64_t window_s, window_e; /* the open window [start, end), when within; else 0 */
};

enum schedule_source {
    SCHEDULE_FROM_NONE,  /* no window is open and none has ended since the object was made */
    SCHEDULE_FROM_START, /* an open window: its startHPAConfig */
    SCHEDULE_FROM_END,   /* the window that ended last: its endHPAConfig */
    SCHEDULE_FROM_HOLD,  /* that window has no endHPAConfig: what it left stays */
    SCHEDULE_SOURCE_N
};

struct schedule_effective {
    enum schedule_source source;
    int trigger;                   /* the governing one, -1: none */
    struct schedule_config config; /* what it asks for; unset fields keep the live value */
    int64_t since;                 /* start of the open window or end of the last one; 0: neither */
    int64_t next;                  /* the first instant at which anything may change; 0: never */
    size_t within_n;               /* open windows */
};

/* `states` receives one entry a trigger. `created` is when the object was made: a window that ended
 * before it was never ours to close, unless it was open earlier on that day. */
struct schedule_effective schedule_effective(const struct schedule_spec *spec, int64_t created,
                                             int64_t now, struct schedule_trigger_now *states);

const char *schedule_state_name(enum schedule_state state);    /* "Within", ... */
const char *schedule_source_name(enum schedule_source source); /* "start", "end", "hold", "none" */

/* "start:office-hours", "none": how a source is written in status, logs and events. */
str schedule_source_text(struct arena *a, const struct schedule_spec *spec,
                         const struct schedule_effective *e);

#endif
