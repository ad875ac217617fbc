/* The market's controller: resizes pods in place to the CPU that their PodAllocation desires,
 * and reports the result in its status. The node agent that writes PodAllocations is another
 * feature (market_agent.h). */
#ifndef FLYBALL_MARKET_CONTROLLER_H
#define FLYBALL_MARKET_CONTROLLER_H

#include "../kube/manager.h"

extern const struct feature market_feature;

#endif
