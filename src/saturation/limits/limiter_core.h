/* Limits scale-ups to the accelerators of the cluster: targets that ask for more are reduced to
 * what is free, and the most saturated variant is served first. */
#ifndef FLYBALL_LIMITER_CORE_H
#define FLYBALL_LIMITER_CORE_H

#include "../../base/arena.h"

struct limiter_stock { /* accelerators of one node, or of several */
    str product;       /* NVIDIA-A100-PCIE-80GB */
    int64_t count;
};

struct limiter_demand { /* what a variant would get without a limit */
    str variant, accelerator;
    int64_t current, target;
    int64_t gpus_per_replica; /* 0 counts as 1 for new replicas and as 0 for existing ones */
    double spare;             /* share of the KV cache, mean over replicas */
    double cost;
};

struct limiter_grant {
    int64_t target;
    int64_t gpus; /* granted in addition to what it has */
    bool limited;
    str reason;
};

/* Grants in the order of the demands; they live in the arena. */
struct limiter_grant *sat_limiter_apply(struct arena *a, const struct limiter_stock *stock,
                                        size_t stock_n, const struct limiter_demand *demands,
                                        size_t n);

#endif
