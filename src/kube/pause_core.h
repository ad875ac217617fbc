/* How long a list or watch pauses after a failure, and while its resource is absent. Pure. */
#ifndef FLYBALL_KUBE_PAUSE_CORE_H
#define FLYBALL_KUBE_PAUSE_CORE_H

#include "../base/base.h"

struct pause {
    int failures;      /* since the last success */
    int absences;      /* answers "absent" in a row */
    int tries;         /* left after pause_announced() */
    int64_t failed_ns; /* mono: the last failure */
};

/* The pause after a failure: 800 ms, doubling up to 30 s; starts over after 2 minutes without one. `jitter` is 0 to 1. */
int64_t pause_after_fault_ns(struct pause *p, int64_t now_ns, double jitter);
/* The pause while the resource is absent: 30 s, doubling later up to 8 minutes. */
int64_t pause_while_absent_ns(struct pause *p);

/* The resource was announced: it is served now or soon. The next pauses are short, until the tries are used up. */
void pause_announced(struct pause *p);
int64_t pause_take_try_ns(struct pause *p); /* 0: none is left */

/* What was read without effect, by all lists and watches of one client. A backoff limits how often a list is tried, not what a try
 * costs: a server that sends objects without end would keep a processor busy with lists that fail. */
struct waste {
    int64_t bytes; /* not paid off at `at_ns` */
    int64_t at_ns; /* mono */
};

/* Adds what a failed attempt has read. Returns how long the next one waits: until all but 256 MiB is paid off at 8 MiB/s. */
int64_t pause_add_waste_ns(struct waste *w, uint64_t bytes, int64_t now_ns);

#endif
