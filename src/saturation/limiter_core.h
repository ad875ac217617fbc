/* Growth within the accelerators that a cluster has: targets that ask for more are cut to what is free, the
 * most saturated variant being served first. */
#ifndef FLYBALL_LIMITER_CORE_H
#define FLYBALL_LIMITER_CORE_H

#include "../base/arena.h"

struct limiter_stock { /* accelerators of one node, or of several */
    str product;       /* NVIDIA-A100-PCIE-80GB */
    int64_t count;
};

struct limiter_demand { /* what a variant would get if there were no end of accelerators */
    str variant, accelerator;
    int64_t current, target;
    int64_t gpus_per_replica; /* 0 counts as 1 where it grows, and as nothing where it is */
    double spare;             /* of its KV cache, mean over replicas */
    double cost;
};

struct limiter_grant {
    int64_t target;
    int64_t gpus; /* granted beyond what it has */
    bool limited;
    str reason;
};

/* Grants in the order of the demands; they live in the arena. */
struct limiter_grant *limiter_apply(struct arena *a, const struct limiter_stock *stock,
                                    size_t stock_n, const struct limiter_demand *demands, size_t n);

#endif
