/* Tells when somebody sets the wall clock. Timers run on the monotonic clock, so a schedule that sleeps
 * until 09:00 must look again when 09:00 moves. */
#ifndef FLYBALL_SCHEDULE_WALLCLOCK_H
#define FLYBALL_SCHEDULE_WALLCLOCK_H

#include "../net/loop.h"

struct schedule_wallclock;

/* NULL where the system cannot tell; the pass every five minutes is the fallback. */
struct schedule_wallclock *schedule_wallclock_new(struct loop *loop, void (*on_set)(void *context),
                                                  void *context);
void schedule_wallclock_free(struct schedule_wallclock *w);

#endif
