/* Saturation as a feature of the operator: variants, workloads, pods and ConfigMaps are watched, the engine
 * decides on its own clock, and turns write what it decided. */
#ifndef FLYBALL_SATURATION_CONTROLLER_H
#define FLYBALL_SATURATION_CONTROLLER_H

#include "../kube/manager.h"

extern const struct feature saturation_feature;

#endif
