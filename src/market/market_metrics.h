/* Metrics of the market's controller; docs/market.md describes each. Changes and latencies per
 * pod are counted by the node agent. */
#ifndef FLYBALL_MARKET_METRICS_H
#define FLYBALL_MARKET_METRICS_H

#include "../base/metrics.h"

struct market_metrics {
    struct metric_family *duration, *patch_errors, *verified;
};

void market_metrics_init(struct market_metrics *m, struct metrics *registry);

void market_metrics_turn(const struct market_metrics *m, double seconds);
void market_metrics_patch_failed(const struct market_metrics *m, str reason);
void market_metrics_verified(const struct market_metrics *m); /* a resize is in force */

#endif
