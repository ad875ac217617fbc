/* The limited solver of the optimizer, and the lookups it shares with alloc_core.c. */
#ifndef FLYBALL_ALLOC_GREEDY_H
#define FLYBALL_ALLOC_GREEDY_H

#include "alloc_core.h"

const struct alloc_accelerator *alloc_find_accelerator(const struct alloc_system *s, str name);
const struct alloc_profile *alloc_find_profile(const struct alloc_system *s, str model,
                                               str accelerator);
int alloc_priority(const struct alloc_system *s, const struct alloc_server *server);

/* Fills `answer->solution` from the candidates, within the capacities of the system. */
void alloc_solve_limited(struct arena *a, const struct alloc_system *s,
                         struct alloc_answer *answer);

#endif
