/* The schedule as a feature of the operator: watches schedules and HPAs, and runs a turn for each schedule that a
 * change may affect. */
#ifndef FLYBALL_SCHEDULE_CONTROLLER_H
#define FLYBALL_SCHEDULE_CONTROLLER_H

#include "../kube/manager.h"

extern const struct feature schedule_feature;

#endif
