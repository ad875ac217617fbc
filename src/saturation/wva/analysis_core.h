/* Spare capacity of one model, from the KV cache use and the queue of each replica. */
#ifndef FLYBALL_ANALYSIS_CORE_H
#define FLYBALL_ANALYSIS_CORE_H

#include "../../base/arena.h"

struct sat_config {
    double kv_threshold;     /* 0..1; a replica at or above it is saturated */
    double queue_threshold;  /* waiting requests; likewise */
    double kv_spare_trigger; /* scale up if the mean spare is below this */
    double queue_spare_trigger;
};

struct sat_replica {
    str pod, variant, accelerator;
    double cost;
    double kv_usage; /* 0..1; NaN: unknown, which never counts as idle */
    double queue;    /* waiting requests; NaN: unknown */
};

struct sat_variant {
    str name, accelerator;
    double cost;
    int replicas; /* that reported */
    int non_saturated;
    double spare_kv, spare_queue; /* mean over non-saturated replicas */
    double max_kv, max_queue;
};

struct sat_analysis {
    int replicas, non_saturated;
    double spare_kv, spare_queue; /* mean over all non-saturated replicas */
    double load_kv, load_queue;   /* sums over all replicas, saturated ones included */
    bool scale_up;
    str scale_up_reason;  /* "" unless scale_up */
    bool scale_down_safe; /* enough spare would be left with one replica less */

    /* Set by the caller from what it remembers; used by sat_decide(). */
    str keep;                     /* why nothing may be removed now; "": no reason */
    bool draining;                /* the backlog shrinks without more replicas */
    struct sat_variant *variants; /* sorted by name */
    size_t variant_n;
};

struct sat_analysis sat_analyze(struct arena *a, const struct sat_config *config,
                                const struct sat_replica *replicas, size_t n);

#endif
