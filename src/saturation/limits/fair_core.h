/* Replica targets of all models when accelerators are limited: WVA's optimizer "greedy-by-score".
 *
 * Limits come from providers: the stock of the nodes, and quotas for the cluster or for namespaces.
 * What is free is the minimum over all of them. Models that need more share it by priority, the
 * neediest first, down to the mean of all needs; nothing that runs is taken away for another model,
 * unless the rescale pass is enabled (rescale_core.c). */
#ifndef FLYBALL_FAIR_CORE_H
#define FLYBALL_FAIR_CORE_H

#include "../wva/vote_core.h"

struct fair_pool {
    str type;
    int64_t limit; /* accelerators; negative: unlimited */
    int64_t used;
};

struct fair_namespace { /* the budget of one namespace; it may use the listed types only */
    str ns;
    const struct fair_pool *pools;
    size_t pool_n;
};

struct fair_provider {
    const struct fair_pool *pools; /* of the whole cluster */
    size_t pool_n;
    const struct fair_namespace *namespaces;
    size_t namespace_n;
};

struct fair_input {
    const struct vote_model *models; /* ties are resolved in this order */
    size_t model_n;
    const struct fair_provider *providers;
    size_t provider_n;
    /* Which budgets the rescale pass may redistribute: that of the cluster, and those of these
     * namespaces. */
    bool rescale_cluster;
    const str *rescale_namespaces;
    size_t rescale_namespace_n;
};

/* For each model its targets in the order of its variants, or NULL if it is held. */
struct vote_target **fair_decide(struct arena *a, const struct fair_input *in);

#endif
