/* What the market's controller counts: see docs/market.md for the meaning of each. */
#ifndef FLYBALL_MARKET_METRICS_H
#define FLYBALL_MARKET_METRICS_H

#include "../base/metrics.h"

struct market_metrics {
    struct metric_family *duration, *patch_errors, *verified, *changes, *latency;
};

void market_metrics_init(struct market_metrics *m, struct metrics *registry);

void market_metrics_turn(const struct market_metrics *m, double seconds);
void market_metrics_patch(const struct market_metrics *m, str ns, str pod, bool grows);
void market_metrics_patch_failed(const struct market_metrics *m, str reason);
/* What was wished is in force, `seconds` after the wish was first seen; negative: not known. */
void market_metrics_verified(const struct market_metrics *m, str ns, str pod, double seconds);
void market_metrics_forget(const struct market_metrics *m, str ns, str pod);

#endif
