/* The model-based optimizer for one model. Two ConfigMaps define what accelerators cost and which
 * latencies are promised, the profiles of the variants how the model performs, and metrics the
 * load; the answer is how many replicas each variant needs to keep the promises. */
#ifndef FLYBALL_OPTIMIZE_CORE_H
#define FLYBALL_OPTIMIZE_CORE_H

#include "../../json/json.h"
#include "../objects/saturation_spec.h"
#include "../objects/status_core.h"
#include "alloc_core.h"

struct optimize_catalog { /* lives in the arena it was read into */
    struct alloc_accelerator *accelerators;
    size_t accelerator_n;
    struct alloc_class *classes; /* sorted by key */
    size_t class_n;
    str problem;    /* why the catalog cannot be used; "": it can */
    size_t skipped; /* accelerators without a valid cost */
};

/* `costs`: accelerator to JSON text {"device", "cost"}; `classes`: key to YAML {name, priority,
 * data: [{model, slo-tpot, slo-ttft}]}. Either may be NULL: the optimizer then has no answer. */
struct optimize_catalog optimize_catalog_read(struct arena *a, const struct json *costs,
                                              const struct json *classes);

struct optimize_variant {
    str name, accelerator;
    const struct variant_spec *spec;
    int current;  /* replicas */
    bool limited; /* the accelerators that are left allow no more than `most` replicas */
    int most;
};

struct optimize_input {
    const struct optimize_catalog *catalog;
    str model;
    const struct optimize_variant *variants;
    size_t n;
    struct sat_load_view load; /* of the whole model; NaN: missing or stale */
    bool at_work;              /* a replica has requests, or does not report */
    bool incomplete;           /* `load` may not include all replicas yet */
    bool may_be_zero;          /* the minimum is 0 replicas, else 1 */
    bool compat;               /* give every variant the whole load, as WVA does */
};

/* Sets `ret_targets[n]`, the replicas of each variant. Fails if anything is missing for any of
 * them. Missing metrics are never treated as idle: without a rate there is no answer, and an
 * incomplete rate never removes replicas. */
int optimize_model(struct arena *a, const struct optimize_input *in, int *ret_targets, err_t *e);

#endif
