/* The input of a decision about one model, gathered from caches and feeds: the variants that take
 * part with their states, their ready replicas with samples, and the variants that are skipped. */
#ifndef FLYBALL_SATURATION_GATHER_H
#define FLYBALL_SATURATION_GATHER_H

#include "saturation_state.h"

struct saturation_skipped {
    struct variant *variant;
    str why;       /* "": not managed by this controller; nothing is shown */
    bool asleep;   /* its workload has 0 replicas */
    bool conflict; /* another model has the same workload */
};

/* What the ready replicas of a variant report to the slo policy, summed over those that report the
 * field. */
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
    int n[GATHER_FIELD_N]; /* replicas that report the field */
    int started;           /* pods that became ready since the last decision */
    double start_delay;    /* s; their mean; NaN: there are none */
};

struct gathering {
    struct saturation *s;
    struct sat_model *model; /* the same as `m`, writable */
    const struct sat_model *m;
    struct slo_settings slo;        /* from the configuration */
    struct gather_traffic *traffic; /* of each variant */
    struct arena *a;
    struct variant **variants; /* that take part */
    struct sat_state *states;  /* of each */
    bool *keeps_min;
    int *wanted, *present; /* spec.replicas and status.replicas of each */
    size_t n;
    struct saturation_skipped *skipped;
    size_t skipped_n;
    const struct variant *at; /* whose pods are being added */
    struct sat_replica *replicas;
    size_t replica_n, replica_cap;
    size_t reporting; /* replicas that have a sample */
    int unknown;      /* replicas of `at` whose sample is missing, stale or incomplete */
    size_t unknown_n; /* the same of all variants */
    int64_t now_ns;   /* mono */
    bool fresh;       /* the samples are recent enough to prove that a replica is idle */
    const struct sat_token_turn *turn; /* of the token analyzer; NULL: another rule decides */
};

/* The caller sets `s`, `m`, `model`, `a`, `now_ns` and `fresh`; the rest is filled in and lives in
 * the arena. */
void saturation_gather(struct gathering *g);

/* The longest start of a replica that became ready since the last decision, in s; 0: none did. */
double saturation_gather_start_delay(const struct gathering *g);

#endif
