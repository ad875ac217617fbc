/* The node agent: the market of one node's pods, as a feature of `flyball agent`. It watches the
 * pods of its node, reads their counters, clears the market, and writes the desired CPU of each
 * pod into its PodAllocation. The controller (market_controller.h) resizes the pods. */
#ifndef FLYBALL_MARKET_AGENT_H
#define FLYBALL_MARKET_AGENT_H

#include "../kube/manager.h"

extern const struct feature market_agent_feature;

#endif
