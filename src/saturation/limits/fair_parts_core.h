/* What fair_core.c and rescale_core.c share: the free accelerators of a cycle. */
#ifndef FLYBALL_FAIR_PARTS_CORE_H
#define FLYBALL_FAIR_PARTS_CORE_H

#include "../wva/vote_parts_core.h"
#include "fair_core.h"

struct fair_home { /* a namespace with a quota */
    str ns;
    struct vote_budgets budgets; /* a negative amount: unlimited in this namespace */
};

struct fair_free {
    struct vote_budgets cluster;
    struct fair_home *homes;
    size_t home_n;
};

struct fair_home *fair_home_find(const struct fair_free *available, str ns);

/* Redistributes contended budgets. Sets `targets[i]` for the models that it decided. */
void fair_rescale(struct arena *a, const struct fair_input *in, struct fair_free *available,
                  struct vote_target **targets);

#endif
