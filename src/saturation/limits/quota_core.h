/* Quotas of accelerators, from `limiters` of type `quota` in the saturation ConfigMap: at most so
 * many of a type in the whole cluster, or in each namespace.
 *
 * A type that a quota does not list has none. A quota for namespaces applies to those that it
 * names, and its entry `default` to every other one *each*, not to all of them together; namespaces
 * in `exclude` are not limited by it. */
#ifndef FLYBALL_QUOTA_CORE_H
#define FLYBALL_QUOTA_CORE_H

#include "fair_core.h"

enum { QUOTA_UNLIMITED = -1, QUOTA_MAX = 1 << 20 };

struct quota_type {
    str type;
    int64_t limit; /* QUOTA_UNLIMITED */
};

struct quota_types {
    const struct quota_type *at;
    size_t n;
};

struct quota_namespace {
    str ns; /* "default": every namespace without an entry */
    struct quota_types types;
};

struct quota {
    str name;
    bool by_namespace;
    struct quota_types types; /* of the cluster */
    const struct quota_namespace *namespaces;
    size_t namespace_n;
    const str *exclude;
    size_t exclude_n;
};

bool quota_excludes(const struct quota *q, str ns);
/* The types of a namespace; empty if it has no quota, which allows nothing. */
struct quota_types quota_for_namespace(const struct quota *q, str ns);

/* ---- as a provider of fair_decide() */

struct quota_usage {
    str ns, type;
    int64_t gpus; /* in use */
};

/* `usage` also names every namespace that has a model, with 0 GPUs if need be. */
struct fair_provider quota_provider(struct arena *a, const struct quota *q,
                                    const struct quota_usage *usage, size_t usage_n);

/* ---- for decisions that were made without a limit */

struct quota_step {
    str name, reason;
    bool constrained;
};

struct quota_decision {
    str variant, ns;
    str accelerator; /* filled in if unknown and the quota has exactly one type */
    int64_t current, target;
    int64_t gpus; /* per replica; 0 counts as 1 for new replicas and as 0 for existing ones */
    double spare, cost;
    int64_t min, max; /* a max of 0: unbounded */
    /* results */
    int64_t granted; /* accelerators */
    bool limited;
    str limited_by; /* the first quota that reduced it */
    struct quota_step *steps;
    size_t step_n;
};

/* Reduces targets to what every quota in turn allows, the most saturated variant first.
 * `keep_current`: never below what runs, which WVA does if the target exceeds the maximum. */
void quota_limit(struct arena *a, const struct quota *quotas, size_t quota_n,
                 struct quota_decision *decisions, size_t n, bool keep_current);

#endif
