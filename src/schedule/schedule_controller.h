/* The schedule as a feature of the operator: gathers what a plan needs from the caches, carries the plan
 * out, and wakes up when it says so. */
#ifndef FLYBALL_SCHEDULE_CONTROLLER_H
#define FLYBALL_SCHEDULE_CONTROLLER_H

#include "../kube/manager.h"

extern const struct feature schedule_feature;

#endif
