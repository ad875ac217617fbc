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

/* What a variant's ready replicas report to the slo policy, summed over those that say it. */
enum gather_field {
    GATHER_ITL_SUM,
    GATHER_ITL_COUNT,
    GATHER_PROMPT_RATE,
    GATHER_GEN_RATE,
    GATHER_RUNNING,
    GATHER_RUNNING_LOW,
    GATHER_RUNNING_HIGH,
    GATHER_KV,
    GATHER_KV_TOKENS,
    GATHER_FIELD_N
};

struct gather_traffic {
    int ready;
    double sum[GATHER_FIELD_N];
    int n[GATHER_FIELD_N];
    double start_delay; /* s; of a pod that became ready since the last look; NaN: none did */
};

struct gathering {
    struct saturation *s;
    struct sat_model *model; /* the same as `m` */
    const struct sat_model *m;
    struct slo_settings slo;        /* of the configuration */
    struct gather_traffic *traffic; /* of each variant */
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
