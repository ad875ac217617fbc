/* Finalizers of the turn's object, under the domain of its group. */
#ifndef FLYBALL_SERVICE_FINALIZER_H
#define FLYBALL_SERVICE_FINALIZER_H

#include "consumer.h"

bool aim_finalizer_has(const struct aim_turn *t, const char *name);
/* Adds or removes one. Lists are replaced as a whole, so it counts only for the version that was seen; who was too late
 * fails the turn with a conflict and comes again. */
void aim_finalizer_send(struct aim_turn *t, const char *name, bool add);

#endif
