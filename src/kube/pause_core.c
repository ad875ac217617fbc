/* The pauses of a list or watch: see pause_core.h.
 *
 *     failure                      0.8  1.6  3.2 ... 30 s, each with jitter
 *     absent                       30 s ten times, then 1, 2, 4, 8 minutes: most clusters never have it
 *     announced, not served yet    50 100 200 ms ... 6.4 s, then as above
 *
 *     after a list of much data    as long as it takes to pay that off (struct waste), at most 10 minutes
 *
 * A server announces a definition before it serves the resource, by the moment that its own caches need. */
#include "pause_core.h"

#include "../base/clock.h"

enum { ABSENT_SOON = 10, ABSENT_DOUBLINGS = 4, TRIES = 8 };

static const int64_t first_ns = 800 * NS_PER_MS, most_ns = 30 * NS_PER_S, quiet_ns = 120 * NS_PER_S,
                     absent_ns = 30 * NS_PER_S, try_ns = 50 * NS_PER_MS;

int64_t pause_after_fault_ns(struct pause *p, int64_t now_ns, double jitter)
{
    if (now_ns - p->failed_ns > quiet_ns)
        p->failures = 0;
    double delay = (double)first_ns * (double)(UINT64_C(1) << MIN(p->failures, 10));
    p->failures++;
    p->failed_ns = now_ns;
    return MIN((int64_t)(delay * (1 + jitter)), most_ns);
}

int64_t pause_while_absent_ns(struct pause *p)
{
    p->absences = MIN(p->absences + 1, ABSENT_SOON + ABSENT_DOUBLINGS);
    return absent_ns << MAX(p->absences - ABSENT_SOON, 0);
}

void pause_announced(struct pause *p)
{
    p->tries = TRIES;
    p->failures = 0;
}

int64_t pause_take_try_ns(struct pause *p)
{
    return p->tries ? try_ns << (TRIES - p->tries--) : 0;
}

/* The first failures are free, since a large list may break off once; 8 MiB/s takes about a hundredth of a processor. */
enum { WASTE_FREE = 256 << 20, WASTE_PER_S = 8 << 20, WASTE_S_MAX = 600 };

int64_t pause_add_waste_ns(struct waste *w, uint64_t bytes, int64_t now_ns)
{
    const int64_t most = WASTE_FREE + (int64_t)WASTE_S_MAX * WASTE_PER_S;
    int64_t paid = (now_ns - w->at_ns) / NS_PER_MS * (WASTE_PER_S / 1000);
    w->bytes = MAX(w->bytes - paid, 0) + (int64_t)MIN(bytes, (uint64_t)most);
    w->bytes = MIN(w->bytes, most);
    w->at_ns = now_ns;
    return MAX(w->bytes - WASTE_FREE, 0) * NS_PER_MS / (WASTE_PER_S / 1000);
}
