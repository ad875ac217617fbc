/* Spare capacity of one model, from the KV-cache use and queue of its replicas. */
#ifndef FLYBALL_ANALYSIS_CORE_H
#define FLYBALL_ANALYSIS_CORE_H

#include "../base/arena.h"

struct sat_config {
    double kv_threshold;     /* a replica at or above is saturated, 0..1 */
    double queue_threshold;  /* likewise, requests waiting */
    double kv_spare_trigger; /* less spare than this on average asks for more */
    double queue_spare_trigger;
};

struct sat_replica {
    str pod, variant, accelerator;
    double cost;
    double kv_usage; /* 0..1; NaN: not known, which never counts as idle */
    double queue;    /* requests waiting; NaN likewise */
};

struct sat_variant {
    str name, accelerator;
    double cost;
    int replicas; /* that reported */
    int non_saturated;
    double spare_kv, spare_queue; /* mean over the non-saturated ones */
    double max_kv, max_queue;
    str *saturated; /* pods, in input order */
    int saturated_n;
};

struct sat_analysis {
    int replicas, non_saturated;
    double spare_kv, spare_queue; /* mean over all non-saturated replicas */
    double load_kv, load_queue;   /* sums over all replicas, the saturated ones too */
    bool scale_up;
    str scale_up_reason;  /* "" unless scale_up */
    bool scale_down_safe; /* one replica less would leave enough spare */

    /* What the caller knows besides the samples; sat_decide() heeds both. */
    str keep;                     /* why nothing may be removed now; "": it may */
    bool draining;                /* the backlog goes without more replicas: it asks for none */
    struct sat_variant *variants; /* sorted by name */
    size_t variant_n;
};

struct sat_analysis sat_analyze(struct arena *a, const struct sat_config *config,
                                const struct sat_replica *replicas, size_t n);

#endif
