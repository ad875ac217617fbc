/* See zero_policy_core.h. Reasons are quoted: WVA. */
#include "zero_policy_core.h"

#include <math.h>

static bool is_exempt(const struct zero_decision *decisions, size_t n, enum zero_rules rules)
{
    for (size_t i = 0; rules == ZERO_WVA && i < n; i++)
        if (decisions[i].min > 0)
            return true;
    return n == 0;
}

bool zero_policy_counts(const struct zero_decision *decisions, size_t n,
                        const struct zero_policy *policy, enum zero_rules rules)
{
    return policy->enabled && !is_exempt(decisions, n, rules);
}

static void set_target(struct arena *a, struct zero_decision *d, int64_t target,
                       const struct zero_policy *policy)
{
    d->target = target;
    const char *action = target > d->current   ? "scale-up"
                         : target < d->current ? "scale-down"
                                               : "no-change";
    d->reason = arena_printf(a, STR_FMT " %s (optimizer: %s, enforced)", STR_ARG(d->category),
                             action, policy->optimizer);
}

/* No requests in the retention period. An unknown number of requests is not zero. */
static bool is_idle(const struct zero_policy *policy, enum zero_rules rules)
{
    if (!policy->counted || isnan(policy->requests))
        return false;
    return rules == ZERO_WVA ? policy->requests <= 0 : policy->requests == 0;
}

static double cost_of(const struct zero_decision *d)
{
    static const double unset = 10;
    return d->cost > 0 ? d->cost : unset;
}

static bool has_role(const struct zero_decision *d, const str *role)
{
    return !role || str_eq(d->role.n ? d->role : S("both"), *role);
}

/* Gives the cheapest variant (of a role) a replica if none would have one. */
static void keep_one(struct arena *a, struct zero_decision *decisions, size_t n, const str *role,
                     const struct zero_policy *policy)
{
    struct zero_decision *cheapest = NULL;
    for (size_t i = 0; i < n; i++) {
        struct zero_decision *d = &decisions[i];
        if (!has_role(d, role))
            continue;
        if (d->target > 0)
            return;
        if (!cheapest || cost_of(d) < cost_of(cheapest) ||
            (cost_of(d) == cost_of(cheapest) && str_cmp(d->variant, cheapest->variant) < 0))
            cheapest = d;
    }
    if (cheapest)
        set_target(a, cheapest, 1, policy);
}

bool zero_policy_apply(struct arena *a, struct zero_decision *decisions, size_t n,
                       const struct zero_policy *policy, enum zero_rules rules)
{
    static const str roles[] = { STR_INIT("both"), STR_INIT("prefill"), STR_INIT("decode") };
    if (is_exempt(decisions, n, rules))
        return false;
    if (!policy->enabled) {
        for (size_t r = 0; rules == ZERO_OURS && r < countof(roles); r++)
            keep_one(a, decisions, n, &roles[r], policy);
        if (rules == ZERO_WVA)
            keep_one(a, decisions, n, NULL, policy);
        return false;
    }
    if (!is_idle(policy, rules))
        return false;
    for (size_t i = 0; i < n; i++)
        set_target(a, &decisions[i], MAX(decisions[i].min, (int64_t)0), policy);
    return true;
}
