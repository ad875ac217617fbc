/* The PromQL expressions that the history of an HPA is read with. */
#ifndef FLYBALL_SCHEDULE_SIGNAL_H
#define FLYBALL_SCHEDULE_SIGNAL_H

#include "schedule_advice_core.h"

/* The query for a signal, in the arena; "" if the signal is the user's own query and there is none. */
str schedule_signal_query(struct arena *a, enum schedule_signal signal,
                          const struct schedule_advice *advice, str hpa_ns, str hpa_name);

#endif
