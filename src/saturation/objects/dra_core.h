/* Accelerators that drivers publish as devices (dynamic resource allocation): ResourceSlices and ResourceClaims
 * of resource.k8s.io/v1 as part of the stock. */
#ifndef FLYBALL_DRA_CORE_H
#define FLYBALL_DRA_CORE_H

#include "../../json/json.h"
#include "stock_core.h"

struct dra_slice {
    str node, driver, pool;
    int64_t generation, slices; /* of the pool: how many slices this generation has */
    const struct json *devices; /* spec.devices */
};

struct dra_item { /* devices of one product on one node */
    str node, product;
    int64_t count, used;
};

/* Counts the devices of `gpu.nvidia.com` in the newest complete generation of every pool, and those that a claim
 * has. `allocations`: status.allocation.devices.results of every claim. Sorts the slices. */
size_t dra_count(struct arena *a, struct dra_slice *slices, size_t slice_n,
                 const struct json *const *allocations, size_t allocation_n, struct dra_item **ret);

/* The stock with these devices. What a node also has as an extended resource it has once: the larger number. */
struct stock dra_merge(struct arena *a, struct stock stock, const struct stock_node *nodes,
                       size_t node_n, const struct dra_item *items, size_t n);

/* Devices that a claim asks for: spec.devices.requests of it or of its template. */
int64_t dra_count_requests(const struct json *requests);

#endif
