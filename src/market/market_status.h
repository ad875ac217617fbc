/* The status of a PodAllocation: what it records for the next step, and the next status after
 * one. */
#ifndef FLYBALL_MARKET_STATUS_H
#define FLYBALL_MARKET_STATUS_H

#include "actuate_core.h"

/* Reads what the status records, and sets the originals of the containers. `generation` is that
 * of the spec. */
struct actuate_memory market_status_memory(struct arena *a, const struct json *status,
                                           int64_t generation, const struct actuate_pod *pod);

struct market_status {
    const struct json *old; /* NULL: none */
    const struct actuate_plan *plan;
    const struct actuate_pod *pod;
    int64_t generation, now_ns;
    int64_t attempted_ns, applied_ns; /* 0: unchanged */
};

/* The whole next status; fields of other writers are kept. */
struct json *market_status_next(struct arena *a, const struct market_status *s);
/* Copies the originals from an older status, for an allocation that was deleted and created
 * again. */
void market_status_adopt(struct arena *a, struct json *status, const struct json *older);

#endif
