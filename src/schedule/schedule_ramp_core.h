/* Ramps: bounds that move in steps of a minute before a window opens and after it closed, so that
 * pods come and go a few at a time. */
#ifndef FLYBALL_SCHEDULE_RAMP_CORE_H
#define FLYBALL_SCHEDULE_RAMP_CORE_H

#include "schedule_core.h"

/* Changes what was decided without ramps (`states` belong to it) to what holds with them. */
void schedule_ramp(const struct schedule_spec *spec, int64_t created, int64_t now,
                   const struct schedule_trigger_now *states, struct schedule_effective *e);

/* The decision without ramps: schedule_core.c's, for the question "who will govern then?". */
struct schedule_effective schedule_effective_unramped(const struct schedule_spec *spec,
                                                      int64_t created, int64_t now,
                                                      struct schedule_trigger_now *states);

#endif
