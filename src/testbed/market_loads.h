/* The workloads of the market's closed loop. */
#ifndef FLYBALL_MARKET_LOADS_H
#define FLYBALL_MARKET_LOADS_H

#include "market_plant.h"

struct market_workload {
    const char *name, *about;
    int seconds;
    bool random; /* a new node for every seed */
    void (*build)(struct plant *p);
};

extern const struct market_workload market_workloads[];
extern const size_t market_workload_n;

const struct market_workload *plant_workload_find(str name); /* NULL: unknown */

#endif
