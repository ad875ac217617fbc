/* Which pods a scale-down removes (--wva-deletion-cost). Private to the engine. */
#ifndef FLYBALL_SATURATION_VICTIMS_H
#define FLYBALL_SATURATION_VICTIMS_H

#include "saturation_gather.h"

/* Marks the pods that a lower target should remove, and holds the target until they are marked and
 * have few requests left. */
void saturation_victims_apply(struct gathering *g, struct decide_answers *answers);

#endif
