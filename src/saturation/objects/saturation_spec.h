/* The spec of a VariantAutoscaling, parsed and checked. */
#ifndef FLYBALL_SATURATION_SPEC_H
#define FLYBALL_SATURATION_SPEC_H

#include "../../json/json.h"
#include "scale_core.h"

/* No workload has more replicas, whatever an object claims: the sum over a thousand variants fits an int. */
enum { SAT_REPLICAS_MAX = 1 << 20 };

#define SAT_ACCELERATOR_LABEL "inference.optimization/acceleratorName"
#define SAT_INSTANCE_LABEL "wva.llmd.ai/controller-instance"
#define SAT_EXCLUDE_ANNOTATION "wva.llmd.ai/exclude"
#define SAT_WAKE_ANNOTATION "flyball.dev/wake"

struct variant_profile { /* one of modelProfile.accelerators */
    str accelerator;
    int accelerators, batch_max;
    float alpha, beta, gamma, delta;
};

enum { VARIANT_PROBLEMS_MAX = 4 };

struct variant_spec {
    str target_api, target_kind, target_name;
    str model;
    double cost; /* per replica; 10 if absent or invalid */
    bool has_min;
    int min, max; /* max 0: none */
    bool writes_scale;
    bool has_behavior; /* else `behavior` is the default of an HPA */
    struct scale_behavior behavior;
    struct variant_profile *profiles; /* complete ones only */
    size_t profile_n;
    str problems[VARIANT_PROBLEMS_MAX]; /* one sentence each; the spec is still usable */
    size_t problem_n;
};

/* The result lives in the arena. Anything may be missing or invalid: an invalid field is reported
 * as a problem and replaced by its default. */
struct variant_spec saturation_spec_read(struct arena *a, const struct json *spec);

#endif
