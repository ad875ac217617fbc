/* The status of a PodAllocation: what it remembers for the next step, and the smallest merge patch from what
 * is to what should be. */
#ifndef FLYBALL_MARKET_STATUS_H
#define FLYBALL_MARKET_STATUS_H

#include "actuate_core.h"

/* Reads what the status remembers, the containers' originals included. `generation` is the spec's. */
struct actuate_memory market_status_memory(struct arena *a, const struct json *status,
                                           int64_t generation, const struct actuate_pod *pod);

struct market_status {
    const struct json *old; /* NULL: there was none */
    const struct actuate_plan *plan;
    const struct actuate_pod *pod;
    int64_t generation, now_ns;
    int64_t attempted_ns, applied_ns; /* 0: as it was */
};

/* The whole next status; what others wrote there stays. */
struct json *market_status_next(struct arena *a, const struct market_status *s);
/* The same with an older one's originals, for an allocation that was deleted and made again. */
void market_status_adopt(struct arena *a, struct json *status, const struct json *older);

#endif
