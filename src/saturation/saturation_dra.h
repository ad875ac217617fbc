/* Accelerators by dynamic resource allocation, where a limiter is on (--wva-dra): see objects/dra_core.h. */
#ifndef FLYBALL_SATURATION_DRA_H
#define FLYBALL_SATURATION_DRA_H

#include "saturation_gather.h"

/* Once per cycle: watches slices and claims, and counts them again if they changed. */
void saturation_dra_learn(struct saturation *s);
/* Devices that the claims of one pod of the workload ask for. */
int64_t saturation_dra_claimed(const struct saturation *s, const struct workload_record *w);
struct stock saturation_dra_merge(struct gathering *g, struct stock stock,
                                  const struct stock_node *nodes, size_t node_n);
void saturation_dra_done(struct saturation *s);

#endif
