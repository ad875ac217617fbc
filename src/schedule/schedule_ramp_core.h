/* Ramps: bounds that change in steps of one minute before a window opens and after it closes, so that
 * pods are added and removed a few at a time. */
#ifndef FLYBALL_SCHEDULE_RAMP_CORE_H
#define FLYBALL_SCHEDULE_RAMP_CORE_H

#include "schedule_core.h"

/* Adjusts a decision made without ramps (`states` belong to it) to the ramps that are under way. */
void schedule_ramp(const struct schedule_spec *spec, int64_t created, int64_t now,
                   const struct schedule_trigger_now *states, struct schedule_effective *e);

/* The decision without ramps; defined in schedule_core.c. A ramp asks which trigger will govern then. */
struct schedule_effective schedule_effective_unramped(const struct schedule_spec *spec,
                                                      int64_t created, int64_t now,
                                                      struct schedule_trigger_now *states);

#endif
