/* Runtime configuration as a feature of the operator. */
#ifndef FLYBALL_RUNTIMECONFIG_CONTROLLER_H
#define FLYBALL_RUNTIMECONFIG_CONTROLLER_H

#include "../kube/manager.h"

extern const struct feature runtimeconfig_feature;

#endif
