/* The /metrics page of a simulated server, in the names, labels and bucket bounds of a real vLLM server (V1 engine),
 * with the older name of the inter-token latency beside the newer one, as releases that renamed it do. */
#ifndef FLYBALL_REPLICA_METRICS_H
#define FLYBALL_REPLICA_METRICS_H

#include "../base/buf.h"
#include "replica_model.h"

void replica_print_metrics(const struct replica *r, str model, struct buf *out);

#endif
