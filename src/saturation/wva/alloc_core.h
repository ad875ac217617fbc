/* The model-based optimizer: which accelerator and how many replicas each server (variant) needs to
 * attain its latency targets at the lowest cost, with or without a limit on the number of
 * accelerators. */
#ifndef FLYBALL_ALLOC_CORE_H
#define FLYBALL_ALLOC_CORE_H

#include "../../base/arena.h"
#include "queue_core.h"

struct alloc_accelerator {
    str name, type;
    int multiplicity; /* devices of that type per accelerator */
    float cost;
};

struct alloc_profile { /* how a model performs on an accelerator; times in ms, see queue_core.h */
    str model, accelerator;
    int accelerators; /* per replica */
    int batch_max, at_tokens;
    float alpha, beta, gamma, delta;
};

struct alloc_target {
    str model;
    struct queue_targets slo;
};

struct alloc_class {
    str name;
    int priority; /* 1 is the highest; values outside 1..100 count as 100 */
    const struct alloc_target *targets;
    size_t target_n;
};

struct allocation {
    str accelerator; /* "": none, at zero load */
    int replicas, batch_max;
    float cost, value; /* value: cost of the transition from the current allocation */
    float itl_ms, ttft_ms;
    float max_rate; /* requests/ms per replica */
};

struct alloc_server {
    str name, service_class, model;
    bool keep_accelerator;
    int min_replicas, batch_max;
    struct allocation current;
    float arrival_per_min;
    int input_tokens, output_tokens;
};

enum alloc_policy {
    ALLOC_NONE,
    ALLOC_PRIORITY_EXHAUSTIVE,
    ALLOC_PRIORITY_ROUND_ROBIN,
    ALLOC_ROUND_ROBIN
};

struct alloc_capacity {
    str type;
    int count;
};

struct alloc_system {
    const struct alloc_accelerator *accelerators;
    size_t accelerator_n;
    const struct alloc_profile *profiles;
    size_t profile_n;
    const struct alloc_class *classes;
    size_t class_n;
    const struct alloc_server *servers;
    size_t server_n;
    const struct alloc_capacity *capacities; /* used unless `unlimited` */
    size_t capacity_n;
    bool unlimited;
    bool delayed_best_effort; /* best effort after all priorities instead of after each */
    enum alloc_policy policy;
    bool compat; /* see queue_spec */
};

struct alloc_candidates {
    struct allocation *at; /* by increasing value */
    size_t n;
};

struct alloc_answer {                    /* arrays indexed by server */
    struct alloc_candidates *candidates; /* before the limited solver reduced any */
    struct allocation *solution;
    bool *solved;
};

struct alloc_answer alloc_solve(struct arena *a, const struct alloc_system *system);

#endif
