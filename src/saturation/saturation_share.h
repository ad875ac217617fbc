/* Limited accelerators shared among the models of the token analyzer, by need and priority: WVA's
 * optimizer "greedy-by-score" (fair_core.h) in the engine. Private to the engine. */
#ifndef FLYBALL_SATURATION_SHARE_H
#define FLYBALL_SATURATION_SHARE_H

#include "saturation_gather.h"

/* At the start of a cycle, while a limiter is on: analyzes these models once and sets `turn` of each
 * that takes part, until saturation_share_end(). Everything is in the arena. */
void saturation_share_begin(struct saturation *s, struct arena *a, struct sat_model **models,
                            size_t n);
void saturation_share_end(struct sat_model **models, size_t n);

#endif
