/* Saturation as a feature of the operator: it watches variants, workloads, pods and ConfigMaps; the
 * engine decides periodically, and reconciles write the decisions. */
#ifndef FLYBALL_SATURATION_CONTROLLER_H
#define FLYBALL_SATURATION_CONTROLLER_H

#include "../kube/manager.h"

extern const struct feature saturation_feature;

#endif
