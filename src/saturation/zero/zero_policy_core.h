/* The last step of a decision: a model without requests scales to zero if it may, and keeps a
 * replica if it may not. */
#ifndef FLYBALL_ZERO_POLICY_CORE_H
#define FLYBALL_ZERO_POLICY_CORE_H

#include "../../base/arena.h"

struct zero_decision {
    str variant;
    str role; /* "": both */
    int64_t current, target, min;
    double cost; /* not positive: 10 */
    str category, reason;
};

struct zero_policy {
    bool enabled; /* the model may scale to zero */
    bool counted; /* the number of requests is known */
    double requests;
    const char *optimizer;
};

/* WVA leaves a model alone if one of its variants has a minimum, takes a negative number of requests
 * for none, and keeps one replica of all roles together. */
enum zero_rules { ZERO_OURS, ZERO_WVA };

/* Whether the number of requests matters for these decisions. */
bool zero_policy_counts(const struct zero_decision *decisions, size_t n,
                        const struct zero_policy *policy, enum zero_rules rules);

/* Changes targets and reasons; returns whether the model scales to zero. */
bool zero_policy_apply(struct arena *a, struct zero_decision *decisions, size_t n,
                       const struct zero_policy *policy, enum zero_rules rules);

#endif
