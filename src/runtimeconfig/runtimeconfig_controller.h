/* Runtime configuration as a feature of the operator: its settings, caches and watches. */
#ifndef FLYBALL_RUNTIMECONFIG_CONTROLLER_H
#define FLYBALL_RUNTIMECONFIG_CONTROLLER_H

#include "../kube/manager.h"

extern const struct feature runtimeconfig_feature;

#endif
