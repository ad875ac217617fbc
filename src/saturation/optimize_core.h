/* The model-based optimizer for one model: what accelerators cost and what latencies are promised come
 * from two ConfigMaps, how the model performs from its variants' profiles, and the load from metrics; the
 * answer is how many replicas each variant would need to keep the promises. */
#ifndef FLYBALL_OPTIMIZE_CORE_H
#define FLYBALL_OPTIMIZE_CORE_H

#include "../json/json.h"
#include "alloc_core.h"
#include "saturation_spec.h"
#include "status_core.h"

struct optimize_catalog { /* lives in the arena it was read into */
    struct alloc_accelerator *accelerators;
    size_t accelerator_n;
    struct alloc_class *classes; /* by key */
    size_t class_n;
    str problem;    /* why it cannot be used as a whole, one sentence; "": it can */
    size_t skipped; /* accelerators without a readable cost */
};

/* `costs`: accelerator to JSON text {"device", "cost"}; `classes`: key to YAML {name, priority, data:
 * [{model, slo-tpot, slo-ttft}]}. Either may be NULL: then there is nothing to optimize by. */
struct optimize_catalog optimize_catalog_read(struct arena *a, const struct json *costs,
                                              const struct json *classes);

struct optimize_variant {
    str name, accelerator;
    const struct variant_spec *spec;
    int current; /* replicas */
};

struct optimize_input {
    const struct optimize_catalog *catalog;
    str model;
    const struct optimize_variant *variants;
    size_t n;
    struct sat_load_view load; /* of the whole model; NaN where it is missing or stale */
    bool at_work;              /* a replica has requests, or does not say whether */
    bool incomplete;           /* the load of some replicas may not be in `load` yet */
    bool may_be_zero;          /* the least is 0 replicas, else 1 */
    bool compat;               /* every variant is given the whole load, as the original does */
};

/* `ret_targets[n]`: replicas of each. Fails, in one sentence, when anything is missing for any of them. What is
 * not known is never taken for idle: without a rate there is no answer, and from an incomplete one none that
 * takes replicas away. */
int optimize_model(struct arena *a, const struct optimize_input *in, int *ret_targets, err_t *e);

#endif
