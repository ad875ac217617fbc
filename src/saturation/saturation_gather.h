/* What a decision about one model is made of, gathered from caches and feeds: its variants that take part,
 * with their states, their ready replicas with their samples, and the variants that take no part. */
#ifndef FLYBALL_SATURATION_GATHER_H
#define FLYBALL_SATURATION_GATHER_H

#include "saturation_state.h"

struct saturation_skipped {
    struct variant *variant;
    str why;     /* "": it is not ours, and nothing is said of it */
    bool asleep; /* its workload has 0 replicas */
};

struct gathering {
    struct saturation *s;
    const struct sat_model *m;
    struct arena *a;
    struct variant **variants; /* that take part */
    struct sat_state *states;  /* of each */
    bool *keeps_min;
    int *wanted, *present; /* spec.replicas and status.replicas of each */
    size_t n;
    struct saturation_skipped *skipped;
    size_t skipped_n;
    const struct variant *at; /* whose pods are being looked at */
    struct sat_replica *replicas;
    size_t replica_n, replica_cap;
    size_t reporting; /* of them that have a sample */
    int unknown;      /* of this variant, that lack one or a part of it */
    size_t unknown_n; /* of all */
    int64_t now_ns;   /* mono */
    bool fresh;       /* the samples are young enough to be believed idle */
};

/* `s`, `m`, `a`, `now_ns` and `fresh` are given; the rest is found and lives in the arena. */
void saturation_gather(struct gathering *g);

#endif
