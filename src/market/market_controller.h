/* The market's controller: it makes pods have the CPU that PodAllocations say they should have, in place,
 * and says in their status what became of it. The node agent that writes them is another feature. */
#ifndef FLYBALL_MARKET_CONTROLLER_H
#define FLYBALL_MARKET_CONTROLLER_H

#include "../kube/manager.h"

extern const struct feature market_feature;

#endif
