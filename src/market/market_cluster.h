/* The cluster-wide view of the market: prices of all nodes and recommendations, in the status of
 * the object ClusterMarket "cluster". Part of the controller; reads PodAllocations, nodes and HPAs,
 * and changes nothing else. */
#ifndef FLYBALL_MARKET_CLUSTER_H
#define FLYBALL_MARKET_CLUSTER_H

#include "../kube/manager.h"

extern const struct resource market_cluster_resource;

struct market_cluster;
/* Borrows the caches of the controller. */
int market_cluster_start(struct manager *manager, struct cache *allocations, struct cache *pods,
                         struct market_cluster **ret, err_t *e);
void market_cluster_stop(struct market_cluster *c);

#endif
