/* Finalizers of the turn's object, in the domain of its group. */
#ifndef FLYBALL_SERVICE_FINALIZER_H
#define FLYBALL_SERVICE_FINALIZER_H

#include "consumer.h"

bool aim_finalizer_has(const struct aim_turn *t, const char *name);
/* Adds or removes a finalizer. The patch replaces the whole list, so it requires the version that was read; on a
 * conflict the turn fails and is retried. */
void aim_finalizer_send(struct aim_turn *t, const char *name, bool add);
/* Removes the first of these finalizers that the object has; the turn that follows from it removes the next. */
void aim_finalizer_release(struct aim_turn *t, const char *const *names, size_t n);

#endif
