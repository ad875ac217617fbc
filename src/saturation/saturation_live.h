/* What the engine knows about each variant now, for the page (src/web). Nothing is computed here that a decision
 * has not computed already. */
#ifndef FLYBALL_SATURATION_LIVE_H
#define FLYBALL_SATURATION_LIVE_H

#include "../base/arena.h"

struct saturation_live { /* texts are valid during the callback */
    str ns, name, model, accelerator, kind, target;
    bool decided; /* by this process; otherwise the numbers are those of the status */
    int current, desired, pending; /* replicas; -1: unknown */
    double cost;                   /* of one replica */
    double kv, waiting;            /* 0..1; requests in the queues; NaN: unknown */
    double demand, need, have;     /* slo policy, in busy replicas; NaN: unknown */
    double attainment;             /* 0..1: requests within the latency targets; NaN: unknown */
    bool asleep;                   /* scaled to zero */
    str reason;                    /* of the decision; "": none yet */
    str status;                    /* JSON of the object; "": it has none */
};

/* `state` is that of saturation_feature. */
void saturation_live_each(const void *state,
                          void (*fn)(void *context, const struct saturation_live *v),
                          void *context);
/* False: not found. The texts are valid until the loop's turn ends. */
bool saturation_live_find(const void *state, struct arena *a, str ns, str name,
                          struct saturation_live *ret);

struct saturation_feeds { /* how the metrics arrive */
    size_t models, failing;
    str failure;     /* of one of them; "": none */
    bool prometheus; /* false: pods are scraped */
};
struct saturation_feeds saturation_live_feeds(const void *state);

#endif
